package adbd

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxStreams bounds the number of open streams of one server.
	maxStreams = 1024

	// The types of AUTH messages: the device sends a token; the host responds
	// with signatures and finally with its public key.
	authToken     = 1
	authSignature = 2
	authTokenSize = 20
)

// link is the connection to one adb server. One goroutine reads from it, and
// each stream has its own goroutine, so a slow stream does not block others.
// The reader never waits for a stream.
type link struct {
	phone  Phone
	conn   net.Conn
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	// version and payload are from the peer's last CNXN.
	version, payload atomic.Uint32

	writing sync.Mutex
	out     []byte

	greeting sync.Mutex
	// greeted is the state with which the peer's CNXN was answered, or ""
	// before that. session is the session of the phone at that time.
	greeted string
	session uint64

	mu      sync.Mutex
	lastID  uint32
	streams map[uint32]*channel
}

func newLink(ctx context.Context, phone Phone, conn net.Conn) *link {
	ctx, cancel := context.WithCancel(ctx)
	l := &link{phone: phone, conn: conn, ctx: ctx, cancel: cancel, streams: make(map[uint32]*channel)}
	l.payload.Store(minPayload)
	return l
}

// serve answers the peer until the connection ends, and returns when all
// streams have ended.
func (l *link) serve() error {
	l.work.Go(l.follow)
	err := l.read()
	l.conn.Close()
	l.hangUpAll()
	l.cancel()
	l.work.Wait()
	return err
}

func (l *link) read() error {
	for {
		p, err := readPacket(l.conn)
		if err != nil {
			return err
		}
		if err := l.handle(p); err != nil {
			return err
		}
	}
}

func (l *link) handle(p packet) error {
	if p.command == cmdConnect {
		return l.connect(p)
	}
	if !p.intact(l.version.Load()) {
		return fmt.Errorf("read a packet: wrong checksum")
	}
	if p.command == cmdAuth {
		return l.refuseKey(p)
	}
	if !l.online() {
		return nil
	}
	switch p.command {
	case cmdOpen:
		return l.open(p)
	case cmdWrite:
		if c := l.stream(p); c != nil && !c.deliver(p.payload) {
			return fmt.Errorf("read a packet: WRTE before the OKAY for the previous one")
		}
	case cmdOkay:
		if c := l.stream(p); c != nil {
			c.grant()
		}
	case cmdClose:
		if c := l.stream(p); c != nil {
			c.hangUp()
		}
	}
	// Unknown commands are ignored, as on devices.
	return nil
}

// send writes one packet as a whole.
func (l *link) send(command, arg0, arg1 uint32, payload []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	version := l.version.Load()
	if command == cmdConnect || command == cmdAuth {
		// The peer does not know our version yet.
		version = 0
	}
	l.out = appendPacket(l.out[:0], command, arg0, arg1, payload, version)
	_, err := l.conn.Write(l.out)
	return err
}

// connect handles the peer's CNXN(version, payload, banner). A peer that sends
// a second CNXN must reconnect, because its earlier streams may still be open.
func (l *link) connect(p packet) error {
	if !p.intact(p.arg0) {
		return fmt.Errorf("read CNXN: wrong checksum")
	}
	if p.arg1 < minPayload {
		return fmt.Errorf("read CNXN: the peer accepts only %d bytes", p.arg1)
	}
	l.greeting.Lock()
	defer l.greeting.Unlock()
	if l.greeted != "" {
		return fmt.Errorf("read CNXN: duplicate")
	}
	l.version.Store(min(p.arg0, skipChecksum))
	l.payload.Store(min(p.arg1, maxPayload))
	return l.greet(l.phone.Identity())
}

// greet answers a CNXN according to the phone's state. The caller must hold the
// mutex greeting.
func (l *link) greet(id Identity) error {
	l.greeted, l.session = id.state(), id.Session
	switch {
	case l.greeted == StateOffline:
		return nil
	case l.greeted == StateUnauthorized:
		return l.askForKey()
	}
	return l.send(cmdConnect, skipChecksum, maxPayload, []byte(banner(id)))
}

// banner returns the device's description of itself (get_connection_string in
// adb.cpp).
func banner(id Identity) string {
	return fmt.Sprintf("%s::ro.product.name=%s;ro.product.model=%s;ro.product.device=%s;features=%s",
		id.state(), id.Product, id.Model, id.Device, strings.Join(id.Features, ","))
}

func (l *link) askForKey() error {
	token := make([]byte, authTokenSize)
	rand.Read(token)
	return l.send(cmdAuth, authToken, 0, token)
}

// refuseKey answers each signature with a new token. The host sends its public
// key last; the user would have to confirm it, which never happens.
func (l *link) refuseKey(p packet) error {
	l.greeting.Lock()
	defer l.greeting.Unlock()
	if l.greeted != StateUnauthorized || p.arg0 != authSignature {
		return nil
	}
	return l.askForKey()
}

func (l *link) online() bool {
	l.greeting.Lock()
	defer l.greeting.Unlock()
	return l.greeted != "" && l.greeted != StateOffline && l.greeted != StateUnauthorized
}

// follow reports changes in the phone's state to the peer.
func (l *link) follow() {
	ticker := time.NewTicker(statePoll)
	defer ticker.Stop()
	for {
		changed := changes(l.phone)
		if l.review(l.phone.Identity()) != nil {
			l.conn.Close()
			return
		}
		select {
		case <-l.ctx.Done():
			return
		case <-changed:
		case <-ticker.C:
		}
	}
}

// review handles a changed state or session. An accepted peer is disconnected,
// since the protocol has no message for a change of state or session.
func (l *link) review(id Identity) error {
	l.greeting.Lock()
	defer l.greeting.Unlock()
	in := l.greeted != StateOffline && l.greeted != StateUnauthorized
	switch {
	case l.greeted == "":
		return nil
	case in && l.session != id.Session:
		return fmt.Errorf("serve a phone that has restarted: %w", net.ErrClosed)
	case l.greeted == id.state():
		return nil
	case in:
		return fmt.Errorf("serve a phone that changed from %s to %s: %w", l.greeted, id.state(), net.ErrClosed)
	}
	return l.greet(id)
}

// open answers OPEN(peer's id, 0, service).
func (l *link) open(p packet) error {
	if p.arg0 == 0 {
		return nil
	}
	name, _, _ := bytes.Cut(p.payload, []byte{0})
	if !opening(l.conn) {
		return fmt.Errorf("open %q: %w", name, net.ErrClosed)
	}
	id := l.phone.Identity()
	if err := l.review(id); err != nil {
		return err
	}
	svc, ok := lookup(id, string(name))
	if !ok {
		return l.send(cmdClose, 0, p.arg0, nil)
	}
	c := l.admit(p.arg0)
	if c == nil {
		return l.send(cmdClose, 0, p.arg0, nil)
	}
	l.work.Go(func() {
		defer c.Close()
		if l.send(cmdOkay, c.local, c.remote, nil) == nil {
			svc.run(c.ctx, l.phone, c)
		}
	})
	return nil
}

// admit creates a stream, or returns nil if there are too many.
func (l *link) admit(remote uint32) *channel {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.streams) >= maxStreams {
		return nil
	}
	l.lastID++
	for l.lastID == 0 || l.streams[l.lastID] != nil {
		l.lastID++
	}
	c := newChannel(l, l.lastID, remote)
	l.streams[c.local] = c
	return c
}

// stream returns the stream to which a packet from the peer belongs.
func (l *link) stream(p packet) *channel {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.streams[p.arg1]
	if c == nil || c.remote != p.arg0 {
		return nil
	}
	return c
}

func (l *link) forget(c *channel) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.streams, c.local)
}

func (l *link) hangUpAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.streams {
		c.hangUp()
	}
}
