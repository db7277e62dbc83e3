package adbd

import (
	"io"
	"sync"
)

// inletSize bounds the pending input of a command in bytes. If the peer of a
// Server has sent more input than its command reads, its disconnection is not
// noticed until the command writes; the adb server has the same limitation.
const inletSize = 256 << 10

// inlet is a command's stdin: a pipe with a bounded buffer. The buffer allows
// the service to detect that the peer has disconnected even if the command does
// not read.
type inlet struct {
	mu       sync.Mutex
	moved    *sync.Cond
	buf      []byte
	finished bool
	stopped  bool
}

func newInlet() *inlet {
	in := new(inlet)
	in.moved = sync.NewCond(&in.mu)
	return in
}

// Write waits for space. Input that arrives after stdin was closed or the
// command ended is dropped.
func (in *inlet) Write(p []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	written := 0
	for written < len(p) {
		for len(in.buf) >= inletSize && !in.finished && !in.stopped {
			in.moved.Wait()
		}
		if in.finished || in.stopped {
			return len(p), nil
		}
		n := min(inletSize-len(in.buf), len(p)-written)
		in.buf = append(in.buf, p[written:written+n]...)
		written += n
		in.moved.Broadcast()
	}
	return written, nil
}

func (in *inlet) Read(p []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.buf) == 0 && !in.finished && !in.stopped {
		in.moved.Wait()
	}
	if in.stopped {
		return 0, io.ErrClosedPipe
	}
	if len(in.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(p, in.buf)
	in.buf = in.buf[:copy(in.buf, in.buf[n:])]
	in.moved.Broadcast()
	return n, nil
}

// finish marks the end of the input; pending input can still be read.
func (in *inlet) finish() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.finished = true
	in.moved.Broadcast()
}

// stop marks the end of the command.
func (in *inlet) stop() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.stopped = true
	in.buf = nil
	in.moved.Broadcast()
}
