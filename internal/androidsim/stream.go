package androidsim

import (
	"context"
	"errors"
	"io"
	"sync"
	"syscall"
)

// source and sink are the ends of what a command reads and writes. Both give up
// when ctx ends, so that no command outlives its shell.
type source interface {
	read(ctx context.Context, b []byte) (int, error)
}

type sink interface {
	write(ctx context.Context, b []byte) (int, error)
}

// errPipe is what SIGPIPE is about.
var errPipe = syscall.EPIPE

// pipe is a pipe of the phone. It holds a few chunks, so that its memory is
// bounded. Waiting is done on channels alone: a synctest bubble sees it.
type pipe struct {
	chunks chan []byte
	// token is held by the one who reads; rest is his.
	token chan struct{}
	rest  []byte

	writerGone, readerGone chan struct{}
	closeWriter            func()
	closeReader            func()
}

const (
	pipeChunks = 4
	maxChunk   = 32 << 10
)

func newPipe() *pipe {
	p := &pipe{
		chunks: make(chan []byte, pipeChunks), token: make(chan struct{}, 1),
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
	default:
	}
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

// stdin is the input of the whole shell. The first read starts the goroutine
// that copies it into a pipe; it ends with the input, which the owner of the
// input must see to.
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
			buf := make([]byte, maxChunk)
			for {
				n, err := s.r.Read(buf)
				if n > 0 {
					if _, werr := s.pipe.write(context.Background(), buf[:n]); werr != nil {
						return
					}
				}
				if err != nil {
					return
				}
			}
		}()
	})
	return s.pipe.read(ctx, b)
}

// outlet hands what several commands write to the shell's output, one at a time.
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

// content is the source of a file or a here-document.
type content struct {
	mu   sync.Mutex
	rest io.Reader
	// size is that of the file, where it is one that says so.
	size int64
}

func (c *content) read(_ context.Context, b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rest.Read(b)
}

// toFile is the sink of a file.
type toFile struct{ w *fileWriter }

func (f toFile) write(_ context.Context, b []byte) (int, error) { return f.w.Write(b) }

// buffer is a sink that keeps what it gets, up to a limit.
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

// reader and writer bind an end to the context of one command.
type reader struct {
	ctx context.Context
	source
}

func (r reader) Read(b []byte) (int, error) {
	if r.source == nil {
		return 0, io.EOF
	}
	return r.read(r.ctx, b)
}

// writer also ends its command when nobody reads any more, as SIGPIPE does.
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
