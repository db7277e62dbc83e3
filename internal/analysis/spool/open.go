package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// DefaultCap is the default cap of a temporary file, in bytes.
const DefaultCap = 64 << 30

// Options configure the temporary file.
type Options struct {
	// Dir is the directory of the temporary file; "" means os.TempDir.
	Dir string
	// Cap is the maximum size of the temporary file in bytes; 0 means
	// DefaultCap. It does not apply to plain files, which need no temporary
	// file.
	Cap int64
	// Progress, if not nil, is called often while a temporary file grows, by
	// the goroutine that called Open. Its arguments are the number of bytes
	// read so far and the total, or 0 if the total is unknown.
	Progress func(done, total int64)

	// create creates the temporary file; if it is nil, temporary is called.
	create func(dir string) (*os.File, func() error, error)
	// free returns the free space of a directory; if it is nil, FreeBytes is
	// called.
	free func(dir string) (int64, bool)
}

// ErrCap is wrapped by the error of Open if the input is larger than the cap.
var ErrCap = errors.New("it is larger than the cap")

// ErrDiskFull is wrapped by the error of Open if the input would fill the disk.
// A temporary file takes at most 90 % of the space that was free when it was
// created, minus what other processes have used since then.
var ErrDiskFull = errors.New("it would fill the disk")

// These are the errors for a path that cannot be an input.
var (
	ErrNoName = errors.New("open input: its name is empty")
	ErrFolder = errors.New("it is a folder")
)

// Open opens the file at path, or stdin if path is "-", and unpacks it if
// necessary. It returns when the whole stream has been read, or soon after ctx
// is done. After an error, including that of ctx, a Read of stdin may still be
// blocked; stdin must not be used any more.
func Open(ctx context.Context, path string, stdin io.Reader, o Options) (*File, error) {
	o = o.withDefaults()
	if path == "-" {
		if stdin == nil {
			return nil, errors.New("read standard input: it is not available")
		}
		return spool(ctx, input{name: "standard input", r: stdin}, o)
	}
	return openPath(ctx, path, o)
}

// OpenFile is like Open for a file that the caller has already opened, so
// symbolic links are not followed again. name is used only in errors. OpenFile
// closes f, at the latest when the File is closed.
func OpenFile(ctx context.Context, name string, f *os.File, o Options) (*File, error) {
	return takeFile(ctx, name, f, o.withDefaults())
}

func (o Options) withDefaults() Options {
	if o.Cap <= 0 {
		o.Cap = DefaultCap
	}
	if o.Dir == "" {
		o.Dir = os.TempDir()
	}
	if o.create == nil {
		o.create = temporary
	}
	if o.free == nil {
		o.free = FreeBytes
	}
	return o
}

func openPath(ctx context.Context, path string, o Options) (*File, error) {
	info, err := os.Stat(path)
	switch {
	case path == "":
		return nil, ErrNoName
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("open %s: %w", path, fs.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("open input: %w", err)
	case info.IsDir():
		return nil, fmt.Errorf("open %s: %w; name a file", path, ErrFolder)
	}
	open := openFile
	if info.Mode()&fs.ModeNamedPipe != 0 {
		open = openPipe
	}
	f, err := open(ctx, path)
	if err != nil {
		return nil, err
	}
	return takeFile(ctx, path, f, o)
}

// takeFile calls fromFile, and closes f if the returned File does not use it.
func takeFile(ctx context.Context, path string, f *os.File, o Options) (*File, error) {
	file, err := fromFile(ctx, path, f, o)
	if err != nil || file.f != f {
		_ = f.Close() // the file was only read
	}
	return file, err
}

func openFile(_ context.Context, path string) (*os.File, error) { return os.Open(path) }

// openPipe opens a FIFO. It waits until a writer opens the FIFO or ctx is done.
func openPipe(ctx context.Context, path string) (*os.File, error) {
	type result struct {
		f   *os.File
		err error
	}
	opened, ended := make(chan result), make(chan struct{})
	go func() {
		defer close(ended)
		f, err := os.Open(path)
		select {
		case opened <- result{f, err}:
		case <-ctx.Done():
			if err == nil {
				_ = f.Close() // nothing was read from it
			}
		}
	}()
	select {
	case r := <-opened:
		return r.f, r.err
	case <-ctx.Done():
		wake(path, ended)
		return nil, fmt.Errorf("open %s: nothing writes to it: %w", path, context.Cause(ctx))
	}
}

// fromFile returns a File that uses f itself, or a temporary file with the
// contents of f.
func fromFile(ctx context.Context, path string, f *os.File, o Options) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	in := input{name: path, r: f, stop: f.Close}
	if !info.Mode().IsRegular() {
		return spool(ctx, in, o)
	}
	in.size = info.Size()
	head := make([]byte, headSize)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	head = head[:n]
	switch {
	case n == 0 || in.size == 0:
		return nil, fmt.Errorf("open %s: the file is empty", path)
	case formatOf(head) != Plain:
		return spool(ctx, in, o)
	}
	if what := mistaken(head); what != "" {
		return nil, fmt.Errorf("open %s: this looks like %s", path, what)
	}
	return &File{name: path, f: f, size: in.size, close: f.Close}, nil
}
