package spool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

const (
	// pieceSize is the number of bytes that are unpacked before they are
	// written; pieces is the number of buffers of that size: one is filled
	// while another is written.
	pieceSize = 256 << 10
	pieces    = 3
	// certain is the number of bytes of a packed input that must be read before
	// its unpacked size is estimated.
	certain = 2 << 20

	// grace is how long a Read may take to return after its file was closed.
	grace = time.Second

	tempPattern = "leakgate-spool-*"
)

// spool unpacks a stream into a temporary file. One goroutine reads and
// unpacks; the calling goroutine writes. Only the calling goroutine uses the
// file: if the other goroutine is blocked in a Read that cannot be stopped, it
// holds on to nothing but its buffers.
func spool(ctx context.Context, in input, o Options) (*File, error) {
	stop := make(chan struct{})
	room := roomIn(o)
	u := &unpacking{
		src:    &source{r: in.r, stop: stop},
		stop:   stop,
		cap:    min(o.Cap, room.most),
		filled: make(chan []byte),
		free:   make(chan []byte, pieces),
	}
	for range pieces {
		u.free <- nil // created when needed
	}
	go u.run()
	w := &writing{in: in, o: o, u: u, room: room}
	err := w.run(ctx)
	if err == nil {
		return w.file()
	}
	close(stop)
	if in.stop != nil {
		_ = in.stop() // only used to stop the reading
		u.wait()
	}
	return nil, errors.Join(err, w.discard())
}

// unpacking fills buffers with the contents of a stream.
type unpacking struct {
	src  *source
	stop <-chan struct{}
	cap  int64
	// filled is closed at the end of the stream. Buffers are returned through
	// free.
	filled, free chan []byte

	// The following fields are valid once filled is closed.

	format Format
	// refused is the kind of the content if the input was evidently passed by
	// mistake; otherwise it is "".
	refused string
	// declared is the size of the content according to its header, if it
	// exceeds the cap.
	declared uint64
	// at is the number of input bytes consumed.
	at int64
	// err is the reason why the content could not be unpacked completely; nil
	// if it could.
	err error
}

func (u *unpacking) run() {
	defer close(u.filled)
	in := bufio.NewReaderSize(u.src, readSize)
	head, _ := in.Peek(headSize) // the same error is returned again
	u.format = formatOf(head)
	if size := declaredSize(u.format, head); size > uint64(u.cap) {
		u.declared = size
		return
	}
	content, end, err := unpacked(in, u.format)
	if err != nil {
		u.err = err
		return
	}
	defer end()
	u.err = u.pump(content)
	u.at = u.src.read.Load() - int64(in.Buffered())
}

// wait waits until run has returned, but no longer than grace, because a Read
// from some devices cannot be stopped.
func (u *unpacking) wait() {
	deadline := time.After(grace)
	for {
		select {
		case _, more := <-u.filled:
			if !more {
				return
			}
		case <-deadline:
			return
		}
	}
}

func (u *unpacking) pump(content io.Reader) error {
	for first := true; ; first = false {
		var buf []byte
		select {
		case buf = <-u.free:
		case <-u.stop:
			return errStopped
		}
		if buf == nil {
			buf = make([]byte, pieceSize)
		}
		n, err := fill(content, buf)
		if first {
			if u.refused = u.mistaken(buf[:n]); u.refused != "" {
				return nil
			}
		}
		if n > 0 {
			select {
			case u.filled <- buf[:n]:
			case <-u.stop:
				return errStopped
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// fill reads until buf is full or an error occurs, which may be io.EOF.
func fill(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = r.Read(buf[n:])
		n += m
	}
	return n, err
}

func (u *unpacking) mistaken(content []byte) string {
	head := content[:min(len(content), headSize)]
	if u.format == Plain {
		return mistaken(head)
	}
	if f := formatOf(head); f != Plain {
		return fmt.Sprintf("%v data again; unpack it once first", f)
	}
	return mistaken(head)
}

// room is the space that a temporary file may use on a disk: a tenth of the
// free space stays free, even if other processes write to the disk.
type room struct {
	free, most, least int64
}

// roomIn checks the disk before anything is written; if the free space is
// unknown, there is no limit.
func roomIn(o Options) room {
	free, known := o.free(o.Dir)
	if !known {
		return room{most: math.MaxInt64}
	}
	return room{free: free, most: free - free/10, least: free / 10}
}

// writing writes the unpacked data to a temporary file.
type writing struct {
	in   input
	o    Options
	u    *unpacking
	room room

	temp   *os.File
	remove func() error
	size   int64
}

func (w *writing) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return w.cancelled(ctx)
		case piece, more := <-w.u.filled:
			if ctx.Err() != nil {
				return w.cancelled(ctx)
			}
			if !more {
				w.progress() // the last read may be empty
				return w.ending()
			}
			if err := w.write(piece); err != nil {
				return err
			}
			w.u.free <- piece[:cap(piece)]
			w.progress()
		}
	}
}

func (w *writing) cancelled(ctx context.Context) error {
	return fmt.Errorf("read %s: stopped after %s: %w", w.in.name, text.Bytes(w.u.src.read.Load()), context.Cause(ctx))
}

func (w *writing) progress() {
	if w.o.Progress != nil {
		w.o.Progress(w.u.src.read.Load(), w.in.size)
	}
}

func (w *writing) write(piece []byte) error {
	if int64(len(piece)) > w.o.Cap-w.size {
		return fmt.Errorf("spool %s: %w of %s for a temporary file%s; if this size is expected, "+
			"raise the cap with --spool-cap",
			w.in.name, ErrCap, text.Bytes(w.o.Cap), w.need())
	}
	if w.fills(int64(len(piece))) {
		return w.noRoom()
	}
	if w.temp == nil {
		f, remove, err := w.o.create(w.o.Dir)
		if err != nil {
			return fmt.Errorf("spool %s: create a temporary file in %s: %w; set TMPDIR (TMP on "+
				"Windows)", w.in.name, w.o.Dir, err)
		}
		w.temp, w.remove = f, remove
	}
	n, err := w.temp.Write(piece)
	w.size += int64(n)
	if err != nil {
		return w.full(err)
	}
	return nil
}

// fills reports whether more bytes would exceed the limit. A disk that
// compresses data or allocates space late reports more free space than it has,
// so the file's own bytes count as well.
func (w *writing) fills(more int64) bool {
	if more > w.room.most-w.size {
		return true
	}
	free, known := w.o.free(w.o.Dir)
	return known && w.room.free > 0 && free-more < w.room.least
}

func (w *writing) noRoom() error {
	return fmt.Errorf("spool %s: %w: a temporary file in %s may take 90%% of what was free, %s; written: %s%s; free "+
		"some space, or set TMPDIR (TMP on Windows) to a folder on a larger disk",
		w.in.name, ErrDiskFull, w.o.Dir, text.Bytes(w.room.free), text.Bytes(w.size), w.need())
}

// full returns the error for a failed write; the usual cause is a full disk.
func (w *writing) full(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err // its path names a file that no longer exists
	}
	free := ""
	if n, ok := FreeBytes(w.o.Dir); ok {
		free = fmt.Sprintf(", free there: %s", text.Bytes(n))
	}
	return fmt.Errorf("spool %s: write a temporary file in %s: %w; written: %s%s%s; free some space, or set "+
		"TMPDIR (TMP on Windows) to a folder on a larger disk",
		w.in.name, w.o.Dir, err, text.Bytes(w.size), free, w.need())
}

// need returns a text with the estimated size of the temporary file, or "" if
// too little of the input has been read for an estimate.
func (w *writing) need() string {
	read := w.u.src.read.Load()
	if read < certain || read >= w.in.size {
		return ""
	}
	return fmt.Sprintf(", needed: about %s", text.Bytes(int64(float64(w.size)/float64(read)*float64(w.in.size))))
}

// ending returns the reason why the stream does not yield a File, or nil if it
// does.
func (w *writing) ending() error {
	switch {
	case w.u.refused != "" && w.u.format == Plain:
		return fmt.Errorf("read %s: this looks like %s", w.in.name, w.u.refused)
	case w.u.declared > 0 && w.room.most < w.o.Cap:
		return fmt.Errorf("spool %s: %w: it has %d bytes unpacked, and a temporary file in %s may take 90%% of what "+
			"was free, %s; free some space, or set TMPDIR (TMP on Windows) to a folder on a larger disk",
			w.in.name, ErrDiskFull, w.u.declared, w.o.Dir, text.Bytes(w.room.free))
	case w.u.declared > 0:
		return fmt.Errorf("spool %s: %w of %s for a temporary file: it has %d bytes unpacked; if this size is "+
			"expected, raise the cap with --spool-cap",
			w.in.name, ErrCap, text.Bytes(w.o.Cap), w.u.declared)
	case w.u.refused != "":
		return fmt.Errorf("unpack %s: it is packed with %v, and its content looks like %s", w.in.name, w.u.format,
			w.u.refused)
	case w.u.src.err != nil:
		return fmt.Errorf("read %s: failed after %s: %w", w.in.name, text.Bytes(w.u.src.read.Load()), w.u.src.err)
	case w.size > 0:
		return nil
	case w.u.err != nil && w.truncated():
		return fmt.Errorf("unpack %s: it ends after %s, before anything can be unpacked: %w", w.in.name,
			text.Bytes(w.u.at), io.ErrUnexpectedEOF)
	case w.u.err != nil:
		return fmt.Errorf("unpack %s: %w", w.in.name, w.u.err)
	case w.u.format != Plain:
		return fmt.Errorf("unpack %s: it is packed with %v, and empty", w.in.name, w.u.format)
	}
	return fmt.Errorf("read %s: it is empty", w.in.name)
}

// truncated reports whether the input is truncated rather than damaged, as far
// as that can be determined.
func (w *writing) truncated() bool { return w.u.src.ended && errors.Is(w.u.err, io.ErrUnexpectedEOF) }

func (w *writing) file() (*File, error) {
	f := &File{Format: w.u.format, name: w.in.name, f: w.temp, size: w.size, close: w.remove}
	switch {
	case w.u.err == nil:
	case w.truncated():
		f.Truncated = fmt.Errorf("%s is truncated: its %v data ends early, after %s; %s were unpacked: %w",
			w.in.name, w.u.format, text.Bytes(w.u.at), text.Bytes(w.size), io.ErrUnexpectedEOF)
	default:
		f.Damage = &DamageError{Format: w.u.format, At: w.u.at, Kept: w.size, Err: w.u.err}
	}
	return f, nil
}

func (w *writing) discard() error {
	if w.temp == nil {
		return nil
	}
	return w.remove()
}
