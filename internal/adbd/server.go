package adbd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"
)

const (
	// statePoll is the interval at which a phone that sends no notifications is
	// polled while a client waits for its state.
	statePoll = 250 * time.Millisecond
	// linger is how long a finished service waits for its client to close the
	// connection. If the server closed it first, an exit status that the client
	// has not read yet could be lost.
	linger = 2 * time.Second
)

// Server is an adb server with phones in memory. Create one with NewServer; all
// methods are safe for concurrent use.
type Server struct {
	// Wire, if set before Serve or Dial, wraps every accepted connection. It is
	// used to inject faults. A connection without CloseWrite is closed as a
	// whole after its last service.
	Wire func(net.Conn) net.Conn

	end    *endpoint
	roster *roster
}

// NewServer returns a server that does not listen yet.
func NewServer(phones ...Phone) *Server {
	s := &Server{end: newEndpoint(), roster: newRoster()}
	for _, phone := range phones {
		s.Add(phone)
	}
	return s
}

// Listen returns a server that listens on a free port of 127.0.0.1.
func Listen(phones ...Phone) (*Server, error) {
	s := NewServer(phones...)
	if err := s.end.listen("127.0.0.1:0", nil, s.handle); err != nil {
		return nil, err
	}
	return s, nil
}

// Serve answers the connections that l accepts until Close is called or a
// client sends host:kill; it then returns nil. It closes l in every case.
func (s *Server) Serve(l net.Listener) error {
	if err := s.end.admit(l); err != nil {
		return err
	}
	return s.end.accept(l, s.Wire, s.handle)
}

// Dial connects to the server in memory through net.Pipe, even if the server
// does not listen. In a synctest bubble, only the bubble's clock is used. A
// write blocks until the peer reads.
func (s *Server) Dial(context.Context) (net.Conn, error) { return s.end.dial(s.Wire, s.handle) }

// Addr returns the address of the first listener, or "" if there is none yet.
func (s *Server) Addr() string { return s.end.address() }

// Add plugs a phone in. A phone with the same serial is removed first.
func (s *Server) Add(phone Phone) { s.roster.add(s.end.ctx, phone) }

// Remove unplugs the phone with the same serial as phone: its connections are
// interrupted and its commands are canceled.
func (s *Server) Remove(phone Phone) { s.roster.remove(phone.Identity().Serial) }

// Drop interrupts all connections; new ones are still accepted.
func (s *Server) Drop() { s.end.drop() }

// Close closes every connection, stops every command, and returns when all of
// them have ended.
func (s *Server) Close() error { return s.end.close() }

// handle answers the requests of one connection until a request takes over the
// connection.
func (s *Server) handle(ctx context.Context, conn net.Conn) {
	c := &client{server: s, ctx: ctx, conn: conn}
	for {
		request, err := readRequest(conn)
		if err != nil || !c.answer(request) {
			return
		}
	}
}

// client is one connection to the Server.
type client struct {
	server *Server
	ctx    context.Context
	conn   net.Conn
	// bound is the phone that a transport request has selected.
	bound *plug
}

func (c *client) okay(rest string) bool {
	_, err := io.WriteString(c.conn, "OKAY"+rest)
	return err == nil
}

func (c *client) fail(err error) {
	io.WriteString(c.conn, "FAIL"+withLength(err.Error()))
	c.hangUp()
}

// hangUp closes the connection for writing, so that data already sent still
// arrives, and then waits briefly for the client to close its side.
func (c *client) hangUp() {
	(&socketStream{Conn: c.conn}).Close()
	io.Copy(io.Discard, c.conn)
}

// answer serves one request and reports whether another may follow on the
// connection.
func (c *client) answer(request string) (more bool) {
	t, service, ok := parseHost(request, c.server.roster.known)
	if !ok || service == "" {
		c.open(request)
		return false
	}
	return c.host(t, service)
}

const errUnknownService = refusal("unknown host service")

func (c *client) host(t target, service string) (more bool) {
	if chosen, withID, ok := parseTransport(service); ok {
		return c.bind(chosen, withID)
	}
	if state, ok := strings.CutPrefix(service, "wait-for-"); ok {
		c.wait(t, state)
		return false
	}
	switch service {
	case "track-devices", "track-devices-l":
		c.track(service == "track-devices-l")
		return false
	case "kill":
		c.okay("")
		c.server.end.shutdown()
		return false
	}
	text, err := c.query(t, service)
	if err != nil {
		c.fail(err)
		return false
	}
	if c.okay(withLength(text)) {
		c.hangUp()
	}
	return false
}

// query handles the requests whose response is a single string.
func (c *client) query(t target, service string) (string, error) {
	r := c.server.roster
	switch service {
	case "version":
		return fmt.Sprintf("%04x", serverVersion), nil
	case "devices", "devices-l":
		return r.list(service == "devices-l"), nil
	case "host-features":
		return strings.Join(ModernFeatures(), ","), nil
	case "features", "get-state", "get-serialno", "get-devpath":
	default:
		return "", errUnknownService
	}
	_, id, err := c.acquire(t)
	if err != nil {
		return "", err
	}
	switch service {
	case "features":
		return strings.Join(id.Features, ","), nil
	case "get-state":
		return id.state(), nil
	case "get-serialno":
		return id.Serial, nil
	}
	return "unknown", nil
}

// acquire returns the phone to which the connection is bound, if any, and
// otherwise the phone that t selects.
func (c *client) acquire(t target) (*plug, Identity, error) {
	if c.bound != nil {
		t = target{id: c.bound.id}
	}
	return c.server.roster.acquire(t)
}

func (c *client) bind(t target, withID bool) (more bool) {
	p, _, err := c.server.roster.acquire(t)
	if err != nil {
		c.fail(err)
		return false
	}
	c.bound = p
	if withID {
		return c.okay(string(binary.LittleEndian.AppendUint64(nil, p.id)))
	}
	return c.okay("")
}

// open runs a service on the bound phone.
func (c *client) open(name string) {
	if c.bound == nil {
		c.fail(refusal("device offline (no transport)"))
		return
	}
	id := c.bound.phone.Identity()
	svc, ok := lookup(id, name)
	if !id.serves() {
		c.fail(refusal("device offline (transport offline)"))
		return
	}
	if !ok || !c.bound.hold(c.conn) {
		c.fail(refusal("closed"))
		return
	}
	defer c.bound.release(c.conn)
	defer c.follow(id)()
	if !opening(c.conn) || !c.okay("") {
		return
	}
	svc.run(c.bound.ctx, c.bound.phone, &socketStream{Conn: c.conn})
	io.Copy(io.Discard, c.conn)
}

// follow interrupts the connection when the phone is removed, becomes unusable,
// or has restarted since id was read. When the service has ended, the caller
// must call stop.
func (c *client) follow(id Identity) (stop func()) {
	ctx, cancel := context.WithCancel(c.bound.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			changed := changes(c.bound.phone)
			if now := c.bound.phone.Identity(); !now.serves() || now.Session != id.Session {
				c.conn.Close()
				return
			}
			if !pause(ctx, changed) {
				return
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// watch reads until the client disconnects; it then calls cancel and closes the
// channel. The caller must close the connection and then wait until the channel
// is closed.
func (c *client) watch(cancel context.CancelFunc) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		io.Copy(io.Discard, c.conn)
	}()
	return ended
}

// track sends the list of phones now and after each change.
func (c *client) track(long bool) {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	if !c.okay("") {
		return
	}
	ended := c.watch(cancel)
	defer func() { c.conn.Close(); <-ended }()
	last := "never sent"
	for {
		_, changed := c.server.roster.view()
		if list := c.server.roster.list(long); list != last {
			if _, err := io.WriteString(c.conn, withLength(list)); err != nil {
				return
			}
			last = list
		}
		if !pause(ctx, changed) {
			return
		}
	}
}

// pause waits for a change, for at most statePoll; it returns false if ctx was
// done first.
func pause(ctx context.Context, changed <-chan struct{}) bool {
	timer := time.NewTimer(statePoll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-timer.C:
	}
	return true
}

// wait answers OKAY immediately, and OKAY again when the phone is in the
// requested state, or FAIL if the request is ambiguous.
func (c *client) wait(t target, text string) {
	kind, state, ok := parseWait(text)
	if !ok {
		c.fail(errUnknownService)
		return
	}
	if t == (target{}) {
		t.kind = kind
	}
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	if !c.okay("") {
		return
	}
	ended := c.watch(cancel)
	defer func() { <-ended }()
	for {
		_, changed := c.server.roster.view()
		_, id, err := c.server.roster.find(t)
		switch {
		case errors.Is(err, refusal(ambiguous[t.kind])):
			io.WriteString(c.conn, "FAIL"+withLength(err.Error()))
		case !reached(id, err, state):
			if pause(ctx, changed) {
				continue
			}
		default:
			c.okay("")
		}
		(&socketStream{Conn: c.conn}).Close()
		return
	}
}

func reached(id Identity, err error, state string) bool {
	if state == waitDisconnect {
		return err != nil
	}
	states := waitStates[state]
	return err == nil && (states == nil || slices.Contains(states, id.state()))
}

// socketStream is a service on its own connection.
type socketStream struct {
	net.Conn
}

// Close ends the output. The connection can then be read for at most linger,
// until the client closes its side.
func (s *socketStream) Close() error {
	half, ok := s.Conn.(interface{ CloseWrite() error })
	if !ok {
		return s.Conn.Close()
	}
	s.Conn.SetReadDeadline(time.Now().Add(linger))
	return half.CloseWrite()
}
