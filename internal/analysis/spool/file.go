package spool

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/leakgate/leakgate/internal/text"
)

// File is an input that any number of goroutines can read at any offset. It has
// at least one byte.
type File struct {
	// Format is the format in which the input was packed.
	Format Format
	// Truncated is nil, or the reason why the packed input ended early; in that
	// case, the file contains what could be unpacked. It wraps
	// io.ErrUnexpectedEOF.
	Truncated error
	// Damage is nil, or a *DamageError: the packed input could not be unpacked
	// completely, or its checksum is wrong. In that case, the file contains
	// what was unpacked before the damage, none of which is reliable.
	Damage error

	name  string
	f     *os.File
	size  int64
	close func() error
}

// DamageError reports where packed data cannot be unpacked.
type DamageError struct {
	Format Format
	// At is the number of bytes read from the packed input; Kept is the number
	// of bytes unpacked before the damage.
	At, Kept int64
	Err      error
}

func (d *DamageError) Error() string {
	return fmt.Sprintf("damaged %v data before byte %d of the input: %v; %s were unpacked", d.Format, d.At, d.Err,
		text.Bytes(d.Kept))
}

func (d *DamageError) Unwrap() error { return d.Err }

// Size returns the length of the file in bytes; for a plain file, it is the
// length when the file was opened.
func (f *File) Size() int64 { return f.size }

// ReadAt implements io.ReaderAt. A plain file that grows is read up to its
// original size; if it shrinks, ReadAt returns an error that wraps
// io.ErrUnexpectedEOF.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read %s: negative offset %d", f.name, off)
	}
	if off >= f.size {
		return 0, io.EOF
	}
	var end error
	if rest := f.size - off; int64(len(p)) > rest {
		p, end = p[:rest], io.EOF
	}
	n, err := f.f.ReadAt(p, off)
	switch {
	case n == len(p):
		return n, end
	case errors.Is(err, io.EOF):
		return n, fmt.Errorf("read %s: it became shorter while it was read: it had %d bytes and now ends at %d: %w",
			f.name, f.size, off+int64(n), io.ErrUnexpectedEOF)
	}
	return n, err
}

// Close stops reading and removes temporary files.
func (f *File) Close() error { return f.close() }
