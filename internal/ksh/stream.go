package ksh

import (
	"context"
	"errors"
	"io"
	"sync"
	"syscall"
)

// source is where a command reads its input; sink is where it writes its
// output. Their methods return when ctx is done, so no command outlives its
// shell.
type source interface {
	read(ctx context.Context, b []byte) (int, error)
}

type sink interface {
	write(ctx context.Context, b []byte) (int, error)
}

// end is an open file of a shell.
type end struct {
	source
	sink
}

// errPipe is the error that corresponds to SIGPIPE in a real process.
var errPipe = syscall.EPIPE

// pipe connects the output of a command to the input of another. It holds only
// a few chunks, which bounds its memory. It waits only on channels, which a
// synctest bubble can observe.
type pipe struct {
	chunks chan []byte
	// Only the reader that holds token may use rest.
	token chan struct{}
	rest  []byte

	writerGone, readerGone   chan struct{}
	closeWriter, closeReader func()
}

const maxChunk = 32 << 10

func newPipe() *pipe {
	p := &pipe{
		chunks: make(chan []byte, 4), token: make(chan struct{}, 1),
		writerGone: make(chan struct{}), readerGone: make(chan struct{}),
	}
	p.closeWriter = sync.OnceFunc(func() { close(p.writerGone) })
	p.closeReader = sync.OnceFunc(func() { close(p.readerGone) })
	return p
}

func (p *pipe) write(ctx context.Context, b []byte) (int, error) {
	n := 0
	for n < len(b) {
		chunk := b[n:min(len(b), n+maxChunk)]
		select {
		case <-p.readerGone:
			return n, errPipe
		case <-p.writerGone:
			return n, errPipe
		default:
		}
		select {
		case p.chunks <- append([]byte(nil), chunk...):
			n += len(chunk)
		case <-p.readerGone:
			return n, errPipe
		case <-ctx.Done():
			return n, ctx.Err()
		}
	}
	return n, nil
}

func (p *pipe) read(ctx context.Context, b []byte) (int, error) {
	select {
	case p.token <- struct{}{}:
		defer func() { <-p.token }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if len(p.rest) == 0 {
		chunk, err := p.next(ctx)
		if err != nil {
			return 0, err
		}
		p.rest = chunk
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

func (p *pipe) next(ctx context.Context) ([]byte, error) {
	select {
	case chunk := <-p.chunks:
		return chunk, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.writerGone:
	}
	select {
	case chunk := <-p.chunks:
		return chunk, nil
	default:
		return nil, io.EOF
	}
}

// stdin is the input of a command line. The first read starts a goroutine that
// copies the input into a pipe until the input ends.
type stdin struct {
	r    io.Reader
	pipe *pipe
	once sync.Once
}

func (s *stdin) read(ctx context.Context, b []byte) (int, error) {
	s.once.Do(func() {
		if s.r == nil {
			s.pipe.closeWriter()
			return
		}
		go func() {
			defer s.pipe.closeWriter()
			io.Copy(writer{context.Background(), s.pipe, nil}, s.r)
		}()
	})
	return s.pipe.read(ctx, b)
}

// outlet forwards the output of several commands, one write at a time.
type outlet struct {
	w     io.Writer
	token chan struct{}
}

func newOutlet(w io.Writer) *outlet {
	if w == nil {
		w = io.Discard
	}
	return &outlet{w: w, token: make(chan struct{}, 1)}
}

func (o *outlet) write(ctx context.Context, b []byte) (int, error) {
	select {
	case o.token <- struct{}{}:
		defer func() { <-o.token }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	n, err := o.w.Write(b)
	if err != nil {
		return n, errPipe
	}
	return n, nil
}

// content is a file open for reading; several commands may share its position.
type content struct {
	mu sync.Mutex
	r  io.Reader
}

func (c *content) read(_ context.Context, b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.r.Read(b)
}

type file struct{ w io.Writer }

func (f file) write(_ context.Context, b []byte) (int, error) { return f.w.Write(b) }

// buffer is a sink that stores what is written, up to a limit.
type buffer struct {
	mu   sync.Mutex
	data []byte
	max  int
	full bool
}

func (k *buffer) write(_ context.Context, b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.data)+len(b) > k.max {
		k.full = true
		return 0, errPipe
	}
	k.data = append(k.data, b...)
	return len(b), nil
}

// reader and writer are the ends of a stream, bound to a context.
type reader struct {
	ctx context.Context
	source
}

func (r reader) Read(b []byte) (int, error) {
	if r.source == nil {
		return 0, io.EOF
	}
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.read(r.ctx, b)
}

// writer calls broken, the equivalent of SIGPIPE, if nobody reads its output.
type writer struct {
	ctx context.Context
	sink
	broken func()
}

func (w writer) Write(b []byte) (int, error) {
	if w.sink == nil {
		return 0, syscall.EBADF
	}
	n, err := w.write(w.ctx, b)
	if errors.Is(err, errPipe) && w.broken != nil {
		w.broken()
	}
	return n, err
}
