package adbd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// endpoint accepts and closes connections. It is the part of a front end that
// handles sockets, independent of the protocol.
type endpoint struct {
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu        sync.Mutex
	ended     bool
	addr      string
	listeners map[net.Listener]struct{}
	conns     map[net.Conn]struct{}
}

func newEndpoint() *endpoint {
	ctx, cancel := context.WithCancel(context.Background())
	return &endpoint{
		ctx: ctx, cancel: cancel,
		listeners: make(map[net.Listener]struct{}),
		conns:     make(map[net.Conn]struct{}),
	}
}

// admit registers l. The caller must then run the accept loop, which close
// waits for.
func (e *endpoint) admit(l net.Listener) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		l.Close()
		return fmt.Errorf("serve %s: %w", l.Addr(), net.ErrClosed)
	}
	if e.addr == "" {
		e.addr = l.Addr().String()
	}
	e.listeners[l] = struct{}{}
	e.work.Add(1)
	return nil
}

// listen opens addr and serves it in the background.
func (e *endpoint) listen(addr string, wire func(net.Conn) net.Conn, handle func(context.Context, net.Conn)) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	if err := e.admit(l); err != nil {
		return err
	}
	go e.accept(l, wire, handle)
	return nil
}

// accept runs the accept loop of an admitted listener. The error is nil if
// shutdown ended the loop.
func (e *endpoint) accept(l net.Listener, wire func(net.Conn) net.Conn, handle func(context.Context, net.Conn)) error {
	defer e.work.Done()
	defer e.dismiss(l)
	for {
		conn, err := l.Accept()
		if err != nil {
			if e.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			if exhausted(err) {
				time.Sleep(statePoll)
				continue
			}
			return fmt.Errorf("accept on %s: %w", l.Addr(), err)
		}
		if !e.serve(conn, wire, handle) {
			return nil
		}
	}
}

// dial connects in memory through net.Pipe.
func (e *endpoint) dial(wire func(net.Conn) net.Conn, handle func(context.Context, net.Conn)) (net.Conn, error) {
	ours, theirs := net.Pipe()
	if !e.serve(theirs, wire, handle) {
		return nil, net.ErrClosed
	}
	return ours, nil
}

// serve handles a connection in the background; after shutdown it returns false
// instead.
func (e *endpoint) serve(conn net.Conn, wire func(net.Conn) net.Conn, handle func(context.Context, net.Conn)) bool {
	if wire != nil {
		conn = wire(conn)
	}
	if !e.enter(conn) {
		conn.Close()
		return false
	}
	go func() {
		defer e.leave(conn)
		handle(e.ctx, conn)
	}()
	return true
}

// exhausted reports whether the error means that no file descriptors are left,
// which is temporary.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

func (e *endpoint) dismiss(l net.Listener) {
	l.Close()
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.listeners, l)
}

func (e *endpoint) enter(conn net.Conn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return false
	}
	e.conns[conn] = struct{}{}
	e.work.Add(1)
	return true
}

func (e *endpoint) leave(conn net.Conn) {
	defer e.work.Done()
	conn.Close()
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.conns, conn)
}

// drop closes every open connection immediately; new ones are still accepted.
func (e *endpoint) drop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for conn := range e.conns {
		conn.Close()
	}
}

// shutdown closes all listeners and connections and cancels all commands,
// without waiting until they have ended. It closes the connections first, so a
// command that ends because of the shutdown can no longer report an exit
// status.
func (e *endpoint) shutdown() {
	e.mu.Lock()
	e.ended = true
	for l := range e.listeners {
		l.Close()
	}
	for conn := range e.conns {
		conn.Close()
	}
	e.mu.Unlock()
	e.cancel()
}

// close calls shutdown and waits until all accept loops and connections have
// ended.
func (e *endpoint) close() error {
	e.shutdown()
	e.work.Wait()
	return nil
}

func (e *endpoint) address() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.addr
}
