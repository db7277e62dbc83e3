package hprof

import (
	"context"
	"fmt"
	"io"
)

// Stripped is what Strip did to a dump.
type Stripped struct {
	// Arrays are the primitive arrays that have elements, Bytes those of the elements:
	// all of them are zero in the copy.
	Arrays, Bytes int64
	// Truncated tells that the dump ends inside a record, and so does the copy.
	Truncated bool
	// Warnings are those of File: where the length of a heap was guessed, so was where
	// its arrays are.
	Warnings []error
}

// Strip copies a dump of size bytes to w with all elements of primitive arrays set to
// zero: the texts of strings, the pixels of bitmaps, whatever was read or received. All
// else stays as it is, byte by byte and in its place: names, lengths, references, the
// values of fields. To strip a copy again changes nothing.
//
// All heaps of the dump are stripped. One that is truncated is copied as far as it goes,
// also the array in which it ends. The error is a *DamageError where the bytes cannot be
// a dump, else that of r, w or ctx; what was written before is no dump and must not be
// kept. Memory is that of Open and buffers of less than 6 MiB.
func Strip(ctx context.Context, w io.Writer, r io.ReaderAt, size int64) (Stripped, error) {
	f, err := Open(ctx, r, size)
	if err != nil {
		return Stripped{}, err
	}
	s := stripping{ctx: ctx, w: w, window: window{r: r, buf: make([]byte, min(stripBuffer, size)), limit: size}}
	s.Truncated, s.Warnings = f.Truncated >= 0, f.Warnings
	if err = s.heaps(f); err == nil {
		err = s.copyTo(size)
	}
	return s.Stripped, err
}

const (
	stripBuffer = 1 << 20
	// wordEvery is after how many records ctx is asked.
	wordEvery = 4096
)

// stripping copies a file through a window. What is before the window is written, what
// is in it can be changed.
type stripping struct {
	Stripped
	window
	ctx context.Context
	w   io.Writer
}

// heaps erases the arrays of all heaps, which lie one behind the other.
func (s *stripping) heaps(f *File) error {
	records := f.Scanner(nil)
	for i := range f.Snapshots {
		records.Reset(f.Snapshots[i].Segments)
		if err := s.heap(f, records); err != nil {
			return err
		}
	}
	return nil
}

func (s *stripping) heap(f *File, records *Scanner) error {
	for count := 0; records.Next(); count++ {
		if count%wordEvery == 0 && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		if records.Kind != SubPrimitiveArray || records.Count == 0 {
			continue
		}
		from := records.Offset + int64(10+f.IDSize)
		if err := s.erase(from, from+int64(records.Count)*int64(records.Type.Size(f.IDSize))); err != nil {
			return err
		}
	}
	if records.Err() != nil {
		return records.Err()
	}
	if at := records.Truncated(); at >= 0 {
		return s.cut(f, at)
	}
	return nil
}

// cut erases what a file still has of the array in which it ends, if it is one.
func (s *stripping) cut(f *File, at int64) error {
	s.Truncated = true
	head := make([]byte, min(int64(10+f.IDSize), f.Size-at))
	if n, err := f.r.ReadAt(head, at); n < len(head) {
		return fmt.Errorf("read the dump at offset %d: %w", at+int64(n), shorter(err))
	}
	from := at + int64(10+f.IDSize)
	if SubTag(head[0]) != SubPrimitiveArray || from >= f.Size {
		return nil
	}
	return s.erase(from, f.Size)
}

// erase sets a part of the file to zero. Parts come in the order of the file.
func (s *stripping) erase(from, to int64) error {
	s.Arrays++
	s.Bytes += to - from
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

// copyTo writes until an offset is in the window, or, of the end of the file, before it.
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
