package adbd

import (
	"context"
	"io"
	"sync"
)

// channel is one stream of a link. Each direction has at most one WRTE in
// flight: the next may be sent when the other side has sent OKAY. This side
// sends OKAY when the data has been read.
type channel struct {
	link          *link
	local, remote uint32
	ctx           context.Context
	cancel        context.CancelFunc

	in    chan []byte
	rest  []byte
	ready chan struct{}

	once   sync.Once
	hungUp sync.Once
	closed chan struct{}
}

// maxAhead is the maximum number of pending packets of one stream. The protocol
// allows one pending packet. But if the client of an adb server disconnects in
// the middle of a push, the server continues without the OKAY (AOSP
// adb/fdevent/fdevent_poll.cpp treats a hang-up like data), and a phone queues
// its packets.
const maxAhead = 64

func newChannel(l *link, local, remote uint32) *channel {
	c := &channel{
		link: l, local: local, remote: remote,
		in: make(chan []byte, maxAhead), ready: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancel(l.ctx)
	// We answer OPEN with OKAY, so we may write first.
	c.ready <- struct{}{}
	return c
}

// deliver accepts the payload of a WRTE; it returns false if too many earlier
// payloads are unread.
func (c *channel) deliver(payload []byte) bool {
	select {
	case c.in <- payload:
		return true
	default:
		return false
	}
}

// grant allows the next WRTE.
func (c *channel) grant() {
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// hangUp handles the peer's CLSE or the end of the link.
func (c *channel) hangUp() {
	c.hungUp.Do(func() { close(c.closed) })
	c.cancel()
}

// Read returns what the peer sent. It returns all data that arrived before the
// end and then io.EOF.
func (c *channel) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		payload, ok := c.next()
		if !ok {
			return 0, io.EOF
		}
		if c.rest = payload; len(payload) == 0 {
			c.consumed()
		}
	}
	n := copy(p, c.rest)
	if c.rest = c.rest[n:]; len(c.rest) == 0 {
		c.consumed()
	}
	return n, nil
}

func (c *channel) next() ([]byte, bool) {
	select {
	case payload := <-c.in:
		return payload, true
	default:
	}
	select {
	case payload := <-c.in:
		return payload, true
	case <-c.closed:
		return nil, false
	}
}

// consumed sends OKAY, which allows the peer to send more. If sending fails,
// the link has ended, which Read reports as io.EOF.
func (c *channel) consumed() {
	select {
	case <-c.closed:
	default:
		c.link.send(cmdOkay, c.local, c.remote, nil)
	}
}

func (c *channel) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		select {
		case <-c.ready:
		case <-c.closed:
			return written, io.ErrClosedPipe
		}
		chunk := p[written:min(len(p), written+int(c.link.payload.Load()))]
		if err := c.link.send(cmdWrite, c.local, c.remote, chunk); err != nil {
			return written, err
		}
		written += len(chunk)
	}
	return written, nil
}

// Close reports to the peer that the service has ended.
func (c *channel) Close() error {
	c.once.Do(func() {
		c.link.forget(c)
		c.hangUp()
		c.link.send(cmdClose, c.local, c.remote, nil)
	})
	return nil
}
