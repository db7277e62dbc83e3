package adb

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// bufferSize is the maximum size of one read from the server, in bytes. A sync
// packet fits into it.
const bufferSize = 64 << 10

// readers is a pool of the buffers of closed connections.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, bufferSize) }}

// chunks is a pool of buffers for output on its way to a writer.
var chunks = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// conn is one connection to the server, for a request to the server itself or
// for a service of a device. Its reads and writes end when ctx is done.
type conn struct {
	net   net.Conn
	r     *bufio.Reader
	ctx   context.Context
	stop  func() bool
	wait  time.Duration // for one response
	phase phase
	// hungUp reports whether the connection ended at a point where a response
	// should begin.
	hungUp bool
}

func newConn(ctx context.Context, nc net.Conn, wait time.Duration, p phase) *conn {
	r := readers.Get().(*bufio.Reader)
	r.Reset(nc)
	k := &conn{net: nc, r: r, ctx: ctx, wait: wait, phase: p}
	// A deadline in the past makes all pending and later reads and writes fail,
	// but leaves the connection open for its other users.
	k.stop = context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	return k
}

// close closes the connection and returns its buffer to the pool. It must be
// called only once.
func (k *conn) close() {
	k.stop()
	_ = k.net.Close()
	k.r.Reset(nil)
	readers.Put(k.r)
}

// expect sets how long to wait for the peer's next data; 0 means no limit.
func (k *conn) expect(wait time.Duration) error {
	var deadline time.Time
	if wait > 0 {
		deadline = time.Now().Add(wait)
	}
	if err := k.net.SetDeadline(deadline); err != nil {
		return k.fail(err)
	}
	// The context is checked after SetDeadline, which overwrites the past
	// deadline that marks a canceled context.
	if k.ctx.Err() != nil {
		return contextError(k.ctx)
	}
	return nil
}

// fail translates a connection error into an error for the user.
func (k *conn) fail(err error) error { return k.phase.failure(k.ctx, k.wait, err) }

func (k *conn) malformed(what string, got []byte) error {
	if k.phase.bound {
		return faultf(ErrProtocol, "%s sent %s, want %s: reconnect it", k.phase.name(), quoted(string(got)), what)
	}
	return faultf(ErrProtocol,
		"not an adb server at %s, it sent %s, want %s: stop it, or set ANDROID_ADB_SERVER_PORT to a free port",
		k.phase.endpoint, quoted(string(got)), what)
}

// maxRequest is the largest length that four hex digits can represent.
const maxRequest = 0xffff

// request sends a request and waits for OKAY.
func (k *conn) request(text string) error {
	if len(text) > maxRequest {
		return fmt.Errorf("request of %d bytes exceeds the %d bytes of the adb protocol: move the command into a "+
			"file and run that", len(text), maxRequest)
	}
	if err := k.expect(k.wait); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(k.net, "%04x%s", len(text), text); err != nil {
		k.hungUp = !isTimeout(err)
		return k.fail(err)
	}
	return k.okay()
}

// okay reads OKAY, or FAIL with its reason.
func (k *conn) okay() error {
	var status [4]byte
	if n, err := io.ReadFull(k.r, status[:]); err != nil {
		k.hungUp = n == 0 && !isTimeout(err)
		return k.fail(err)
	}
	switch string(status[:]) {
	case "OKAY":
		return nil
	case "FAIL":
		text, err := k.text()
		if err != nil {
			return err
		}
		return k.phase.refusal(text)
	}
	return k.malformed("OKAY or FAIL", status[:])
}

// text reads a length as four hex digits, and then that many bytes.
func (k *conn) text() (string, error) {
	var digits [4]byte
	if _, err := io.ReadFull(k.r, digits[:]); err != nil {
		return "", k.fail(err)
	}
	var size [2]byte
	if _, err := hex.Decode(size[:], digits[:]); err != nil {
		return "", k.malformed("a length of four hex digits", digits[:])
	}
	text := make([]byte, int(size[0])<<8|int(size[1]))
	if _, err := io.ReadFull(k.r, text); err != nil {
		return "", k.fail(err)
	}
	return string(text), nil
}
