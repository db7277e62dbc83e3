package adbd

import (
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Line is a cable with faults on demand. Its Wire method is the hook for a
// Daemon or a Server:
//
//	line := new(adbd.Line)
//	daemon.Wire = line.Wire
//	end := line.InterruptAfter(1000)
//
// The zero value has no faults and costs one atomic load per write. All methods
// are safe for concurrent use. A method that starts a fault returns the
// function that ends it, which may be called repeatedly. Several faults may be
// active at the same time.
//
// Byte counts refer to the bytes that the device's side sends, over all
// connections of the line together: packets of the transport protocol for a
// Daemon, smart-socket responses for a Server. Times are measured on the host's
// clock, even if the phone's clock is faster.
type Line struct {
	// faulty reports whether any fault is active.
	faulty atomic.Bool

	mu    sync.Mutex
	conns map[*wire]struct{}
	// on lists the active faults in the order in which they started.
	on []*lineFault
}

// lineFault is one fault of a Line. All fields except ended are guarded by
// Line.mu.
type lineFault struct {
	// kind selects the fault; each field below is used only by some types of
	// faults.
	kind lineKind
	// left is how much may still pass: the number of bytes until the
	// interruption or the next garbled byte, or the number of services until
	// the interruption.
	left int64
	// every is the value to which left is reset, or 0 for a fault that occurs
	// once.
	every  int64
	delay  time.Duration
	random *rand.Rand
	// garbled reports whether a byte was replaced.
	garbled bool
	garbage []byte
	ended   chan struct{}
}

type lineKind int

const (
	lineInterrupt lineKind = iota
	lineInterruptAtOpen
	lineUnplugged
	lineDelay
	lineGarble
	lineInsert
)

// Wire attaches a connection to the line.
func (l *Line) Wire(conn net.Conn) net.Conn {
	w := &wire{Conn: conn, line: l, closed: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.ContainsFunc(l.on, func(f *lineFault) bool { return f.kind == lineUnplugged }) {
		w.shut()
		return w
	}
	if l.conns == nil {
		l.conns = make(map[*wire]struct{})
	}
	l.conns[w] = struct{}{}
	return w
}

// Interrupt interrupts all connections now, as if the cable were unplugged and
// plugged in again.
func (l *Line) Interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut()
}

// cut interrupts all connections. The caller must hold the lock.
func (l *Line) cut() {
	for w := range l.conns {
		w.shut()
	}
	clear(l.conns)
}

// InterruptAfter interrupts a connection once, after n more bytes: those n
// bytes still arrive, but the next byte does not. A handshake of the transport
// protocol takes about 150 bytes.
func (l *Line) InterruptAfter(n int64) (end func()) {
	return l.start(&lineFault{kind: lineInterrupt, left: max(n, 0)})
}

// InterruptEvery is like InterruptAfter but repeats, like a loose contact:
// after every n bytes (n is at least 1) a connection is interrupted.
func (l *Line) InterruptEvery(n int64) (end func()) {
	n = max(n, 1)
	return l.start(&lineFault{kind: lineInterrupt, left: n, every: n})
}

// InterruptAtOpen interrupts a connection once, when the peer opens the n-th
// service after the call, counting from 1. A service is a shell or a file
// session or, for a Daemon, an OPEN packet. The peer receives no response to
// it, and all other streams of the connection are interrupted too.
// InterruptAtOpen has no effect if another Wire wraps the line's connections,
// because the line then cannot detect services.
func (l *Line) InterruptAtOpen(n int) (end func()) {
	return l.start(&lineFault{kind: lineInterruptAtOpen, left: int64(max(n, 1))})
}

// Unplug interrupts all connections, and each new one immediately, until the
// fault is ended. An adb server retries for minutes and then removes the
// device.
func (l *Line) Unplug() (end func()) {
	end = l.start(&lineFault{kind: lineUnplugged})
	l.Interrupt()
	return end
}

// Delay delays every write by d. The writes of one connection are delayed one
// after the other, as on a slow line; a delay of an hour simulates a device
// that hangs. When the fault ends or the connection is closed, pending writes
// are released.
func (l *Line) Delay(d time.Duration) (end func()) {
	return l.start(&lineFault{kind: lineDelay, delay: d})
}

// Garble replaces every n-th byte (n is at least 1) with a different one chosen
// by the seed. If the command of a packet is garbled, the peer ends the
// connection. If the length is garbled, the peer may wait forever for the rest
// of the packet. A garbled payload is not detected, because the protocol has
// not used checksums since version 0x01000001. If any byte was replaced, ending
// the fault interrupts the connections, because otherwise a waiting peer would
// keep waiting.
func (l *Line) Garble(n int64, seed uint64) (end func()) {
	n = max(n, 1)
	return l.start(&lineFault{kind: lineGarble, left: n - 1, every: n, random: rand.New(rand.NewPCG(seed, 0))})
}

// Insert sends garbage once, before the next write; the peer then loses the
// packet boundaries.
func (l *Line) Insert(garbage []byte) (end func()) {
	return l.start(&lineFault{kind: lineInsert, garbage: slices.Clone(garbage)})
}

func (l *Line) start(f *lineFault) (end func()) {
	f.ended = make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.on = append(l.on, f)
	l.faulty.Store(true)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.finish(f)
	}
}

// finish removes a fault. The caller must hold the lock.
func (l *Line) finish(f *lineFault) {
	i := slices.Index(l.on, f)
	if i < 0 {
		return
	}
	// The faults are copied to a new slice, because pass may be iterating over
	// the old one.
	l.on = slices.Concat(l.on[:i], l.on[i+1:])
	l.faulty.Store(len(l.on) > 0)
	close(f.ended)
	if f.garbled {
		l.cut()
	}
}

// delays returns the faults that delay a write.
func (l *Line) delays() []*lineFault {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*lineFault
	for _, f := range l.on {
		if f.kind == lineDelay {
			out = append(out, f)
		}
	}
	return out
}

// pass applies the faults to the bytes being sent: it returns the bytes to send
// and whether the connection is interrupted after them. It does not change p.
func (l *Line) pass(p []byte) (out []byte, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out = p
	for _, f := range l.on {
		switch f.kind {
		case lineInsert:
			out = slices.Concat(f.garbage, out)
			l.finish(f)
		case lineGarble:
			out = f.garble(out)
		}
	}
	for _, f := range l.on {
		if f.kind != lineInterrupt {
			continue
		}
		if f.left >= int64(len(out)) {
			f.left -= int64(len(out))
			continue
		}
		out, cut = out[:f.left], true
		if f.left = f.every; f.every == 0 {
			l.finish(f)
		}
	}
	return out, cut
}

// garble returns p or, if bytes are due to be replaced, a copy of p with these
// bytes replaced.
func (f *lineFault) garble(p []byte) []byte {
	if f.left >= int64(len(p)) {
		f.left -= int64(len(p))
		return p
	}
	p, f.garbled = slices.Clone(p), true
	at := f.left
	for ; at < int64(len(p)); at += f.every {
		p[at] ^= byte(1 + f.random.IntN(255))
	}
	f.left = at - int64(len(p))
	return p
}

// opening counts a service that the peer opens; it returns false if a fault
// interrupts the connection at this service.
func (l *Line) opening() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	open := true
	for _, f := range l.on {
		if f.kind != lineInterruptAtOpen {
			continue
		}
		if f.left--; f.left == 0 {
			open = false
			l.finish(f)
		}
	}
	return open
}

// wire is one connection on a Line.
type wire struct {
	net.Conn
	line   *Line
	once   sync.Once
	closed chan struct{}
}

func (w *wire) Write(p []byte) (int, error) {
	if !w.line.faulty.Load() {
		return w.Conn.Write(p)
	}
	if err := w.wait(); err != nil {
		return 0, err
	}
	out, cut := w.line.pass(p)
	n, err := w.Conn.Write(out)
	if cut {
		w.sever()
		return min(n, len(p)), net.ErrClosed
	}
	if err != nil {
		return min(n, len(p)), err
	}
	return len(p), nil
}

// wait waits for all delays that apply to a write.
func (w *wire) wait() error {
	for _, f := range w.line.delays() {
		timer := time.NewTimer(f.delay)
		select {
		case <-timer.C:
		case <-f.ended:
		case <-w.closed:
		}
		timer.Stop()
	}
	select {
	case <-w.closed:
		return net.ErrClosed
	default:
		return nil
	}
}

// sever closes the connection in such a way that sent data still arrives. A
// plain close would discard sent data if there are unread bytes from the peer.
func (w *wire) sever() {
	if (&socketStream{Conn: w.Conn}).Close() != nil {
		w.Close()
	}
}

// CloseWrite closes the sending side, or the whole connection if the sides
// cannot be closed separately.
func (w *wire) CloseWrite() error {
	if half, ok := w.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return w.Close()
}

// shut closes the connection and aborts its pending writes. Line.mu may be
// held.
func (w *wire) shut() error {
	w.once.Do(func() { close(w.closed) })
	return w.Conn.Close()
}

// Close closes the connection.
func (w *wire) Close() error {
	w.line.mu.Lock()
	delete(w.line.conns, w)
	w.line.mu.Unlock()
	return w.shut()
}

func (w *wire) opening() bool { return !w.line.faulty.Load() || w.line.opening() }

// opening reports a new service to the connection, if it belongs to a Line; it
// returns false if the connection must be interrupted.
func opening(conn net.Conn) bool {
	w, ok := conn.(*wire)
	return !ok || w.opening()
}
