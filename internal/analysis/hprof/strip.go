package hprof

import (
	"context"
	"fmt"
	"io"
)

// Stripped describes the result of Strip.
type Stripped struct {
	// Arrays is the number of primitive arrays that have elements; Bytes is
	// their total size. All their elements are zero in the copy.
	Arrays, Bytes int64
	// Hashes is the number of fields that were zeroed because they may hold the
	// hash of a string, or because no class declares them.
	Hashes int64
	// Truncated is true if the dump ends inside a record; the copy then ends
	// inside the same record.
	Truncated bool
	// Warnings is copied from File. If the length of a heap was guessed, the
	// positions of its arrays are also uncertain.
	Warnings []error
}

// Strip copies a dump of size bytes to w with all elements of primitive arrays
// set to zero: the contents of strings, the pixels of bitmaps, data that was
// read or received. It also zeroes the hashes of strings, from which short
// strings could be recovered: see hashFields. Everything else is copied
// unchanged: names, lengths, references, the values of other fields. Stripping
// a copy again changes nothing.
//
// All heaps of the dump are stripped. A truncated heap is copied up to its end,
// including its incomplete record. The error is a *DamageError if the bytes
// cannot be a dump; otherwise it is the error of r, w or ctx. In case of an
// error, the output is not a dump and must not be kept. Strip uses as much
// memory as Open, buffers of less than 10 MiB, and memory for the layouts of
// the classes.
func Strip(ctx context.Context, w io.Writer, r io.ReaderAt, size int64) (Stripped, error) {
	f, err := Open(ctx, r, size)
	if err != nil {
		return Stripped{}, err
	}
	s := stripping{
		ctx: ctx, w: w, file: f, hashes: newHashFields(f),
		window: window{r: r, buf: make([]byte, min(stripBuffer, size)), limit: size},
	}
	s.Truncated, s.Warnings = f.Truncated >= 0, f.Warnings
	if err = s.heaps(); err == nil {
		err = s.copyTo(size)
	}
	return s.Stripped, err
}

const (
	stripBuffer = 1 << 20
	// wordEvery is the number of records between two checks of ctx.
	wordEvery = 4096
)

// stripping copies a file through a window. The bytes before the window have
// been written; the bytes in the window can still be changed.
type stripping struct {
	Stripped
	window
	ctx    context.Context
	w      io.Writer
	file   *File
	hashes *hashFields
}

// heaps erases the contents of all heaps, which are adjacent.
func (s *stripping) heaps() error {
	records := s.file.Scanner(nil)
	for i := range s.file.Snapshots {
		segments := s.file.Snapshots[i].Segments
		records.Reset(segments)
		if err := s.hashes.read(records, s.ctx.Err); err != nil {
			return err
		}
		records.Reset(segments)
		if err := s.heap(records); err != nil {
			return err
		}
	}
	return nil
}

func (s *stripping) heap(records *Scanner) error {
	for count := 0; records.Next(); count++ {
		if count%wordEvery == 0 && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		if err := s.record(records); err != nil {
			return err
		}
	}
	if records.Err() != nil {
		return records.Err()
	}
	if at := records.Truncated(); at >= 0 {
		return s.cut(at)
	}
	return nil
}

func (s *stripping) record(r *Scanner) error {
	id := int64(s.file.IDSize)
	switch r.Kind {
	case SubPrimitiveArray:
		if r.Count == 0 {
			return nil
		}
		from := r.Offset + 10 + id
		return s.eraseArray(from, from+int64(r.Count)*int64(r.Type.Size(s.file.IDSize)))
	case SubInstance:
		return s.hashes.of(r.Class).in(int(r.Count), s.eraseHash(r.Offset+9+2*id))
	case SubClassDump:
		return s.hashes.statics(r.Body, s.eraseHash(r.Offset))
	}
	return nil
}

// cut erases the contents of the incomplete record at the end of a file.
func (s *stripping) cut(at int64) error {
	s.Truncated = true
	b, err := s.file.tail(at, maxRecord)
	if err != nil {
		return err
	}
	id := s.file.IDSize
	switch body := at + int64(10+id); SubTag(b[0]) {
	case SubPrimitiveArray:
		if body < s.file.Size {
			return s.eraseArray(body, s.file.Size)
		}
	case SubInstance:
		head := 9 + 2*id
		if len(b) > head {
			return s.hashes.of(readID(b[5+id:], id)).in(len(b)-head, s.eraseHash(at+int64(head)))
		}
	case SubClassDump:
		return s.hashes.statics(b, s.eraseHash(at))
	}
	return nil
}

func (s *stripping) eraseArray(from, to int64) error {
	s.Arrays++
	s.Bytes += to - from
	return s.erase(from, to)
}

// eraseHash returns a function that erases parts of the record at the given
// offset.
func (s *stripping) eraseHash(at int64) func(span) error {
	return func(p span) error {
		s.Hashes++
		return s.erase(at+int64(p.from), at+int64(p.to))
	}
}

// erase sets a part of the file to zero. Parts must be erased in the order of
// the file.
func (s *stripping) erase(from, to int64) error {
	for from < to {
		if err := s.copyTo(from); err != nil {
			return err
		}
		end := min(to, s.base+int64(s.n))
		clear(s.buf[from-s.base : end-s.base])
		from = end
	}
	return nil
}

// copyTo writes until the given offset is in the window, or the window reaches
// the end of the file.
func (s *stripping) copyTo(at int64) error {
	for at >= s.base+int64(s.n) && (s.n > 0 || s.base < s.limit) {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if _, err := s.w.Write(s.buf[:s.n]); err != nil {
			return fmt.Errorf("write the stripped dump: %w", err)
		}
		if err := s.fill(s.base + int64(s.n)); err != nil {
			return err
		}
	}
	return nil
}
