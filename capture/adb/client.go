package adb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Options configure the location of the server and the limits of a client. The
// zero value is valid.
type Options struct {
	// Addr is where the server listens: HOST:PORT, or a socket specification of
	// adb (tcp:HOST:PORT, tcp:PORT, localfilesystem:PATH). If it is empty,
	// ADB_SERVER_SOCKET is used, then ANDROID_ADB_SERVER_ADDRESS and
	// ANDROID_ADB_SERVER_PORT, then 127.0.0.1:5037.
	Addr string
	// Dial opens one connection to the server, for example through an SSH
	// tunnel or to a device farm. If Dial is set, Addr is used only as the
	// server's name in messages, and no server is started. If Dial is nil, the
	// client connects to Addr.
	Dial func(ctx context.Context) (net.Conn, error)
	// DialTimeout bounds one connection attempt; 0 means 5 s.
	DialTimeout time.Duration
	// AnswerTimeout is how long a device may send nothing where the protocol
	// requires a response; it does not apply to a running command. 0 means 30
	// s. The server itself must respond within AnswerTimeout or 10 s, whichever
	// is less.
	AnswerTimeout time.Duration
	// NoStart prevents the client from starting a server. If a server
	// disappears, the client still waits a few seconds for it to return.
	NoStart bool
	// NoConnect prevents the client from asking the server to connect to
	// network devices that the server does not list.
	NoConnect bool
	// ADBPath is the adb program that starts a server. If it is empty, adb is
	// searched for in PATH, then in platform-tools of ANDROID_HOME or
	// ANDROID_SDK_ROOT.
	ADBPath string
	// LogDir is the directory for a file with the output of `adb start-server`;
	// the file is kept only if the command fails. If LogDir is empty, the
	// directory for temporary files is used.
	LogDir string
	// MaxStream bounds the output of one command, stdout and stderr together,
	// in bytes; 0 means 64 MiB.
	MaxStream int64
	// MaxFile bounds the size of one Pull, in bytes; 0 means 64 GiB.
	MaxFile int64
	// Getenv reads the environment; nil means os.Getenv.
	Getenv func(string) string
}

// Client is a client of one adb server. Its methods are safe for concurrent
// use; each opens its own connection and closes it.
type Client struct {
	opt Options
	at  endpoint
	// dialTo opens one connection, and launch runs one `adb start-server`.
	dialTo func(ctx context.Context) (net.Conn, error)
	launch func(ctx context.Context, adb, port string) error

	mu    sync.Mutex
	lines map[string]*netLink
}

// NewClient validates the options and the environment. It does not connect.
func NewClient(opt Options) (*Client, error) {
	if opt.Getenv == nil {
		opt.Getenv = os.Getenv
	}
	at, err := opt.endpoint()
	if err != nil {
		return nil, fmt.Errorf("find the adb server: %w", err)
	}
	opt.DialTimeout = orDefault(opt.DialTimeout, 5*time.Second)
	opt.AnswerTimeout = orDefault(opt.AnswerTimeout, 30*time.Second)
	opt.MaxStream = orDefault(opt.MaxStream, 64<<20)
	opt.MaxFile = orDefault(opt.MaxFile, 64<<30)
	c := &Client{opt: opt, at: at, lines: map[string]*netLink{}}
	c.dialTo, c.launch = c.dialReal, c.runStart
	if opt.Dial != nil {
		c.dialTo = c.dialCustom
	}
	return c, nil
}

func orDefault[T ~int64](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// Addr returns the address at which the client expects the server: HOST:PORT or
// a path.
func (c *Client) Addr() string { return c.at.addr }

// serverTimeout is how long the server may remain silent. A server responds
// immediately from memory; a longer silence means that it hangs or is not an
// adb server.
const serverTimeout = 10 * time.Second

// dial connects to the server. If wait is set and a local server has just
// disappeared, dial waits until it returns, and starts one if allowed; see the
// package comment.
func (c *Client) dial(ctx context.Context, wait bool) (*conn, error) {
	nc, err := c.dialOnce(ctx)
	if err != nil && wait && ctx.Err() == nil && isRefused(err) && c.at.local() {
		nc, err = c.await(ctx)
	}
	if err != nil {
		return nil, c.dialError(ctx, err)
	}
	return newConn(ctx, nc, min(serverTimeout, c.opt.AnswerTimeout), phase{endpoint: c.at.addr}), nil
}

// await dials an address at which a dial has just found no listener. One call
// at a time polls the address, on behalf of all waiting calls, and starts the
// server when a start is due.
func (c *Client) await(ctx context.Context) (net.Conn, error) {
	s := serverStateAt(c.at.addr)
	if err := s.turn.lock(ctx); err != nil {
		return nil, err
	}
	defer s.turn.unlock()
	port, startable := c.at.localPort()
	for {
		nc, err := c.dialOnce(ctx)
		if err == nil || ctx.Err() != nil || !isRefused(err) {
			return nc, err
		}
		switch s.next(time.Now(), startable && !c.opt.NoStart) {
		case stepWait:
			if err := sleep(ctx, pollEvery); err != nil {
				return nil, err
			}
		case stepStart:
			if err := c.startServer(ctx, s, port); err != nil {
				return nil, err
			}
		case stepFail:
			return nil, c.stillGone(s, err)
		}
	}
}

// stillGone returns the error of a call that found no server and may not start
// one now.
func (c *Client) stillGone(s *serverState, err error) error {
	ago, failed := s.last(time.Now())
	switch {
	case failed != nil:
		return failed
	case ago > 0:
		return &fault{
			kind: ErrNoServer, cause: err,
			text: fmt.Sprintf("no adb server at %s, and the one started %v ago is gone: see what `adb nodaemon "+
				"server` prints", c.at.addr, ago.Round(100*time.Millisecond)),
		}
	}
	return err
}

func (c *Client) dialReal(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: c.opt.DialTimeout}
	for deadline := time.Now().Add(c.opt.DialTimeout); ; {
		nc, err := d.DialContext(ctx, c.at.network, c.at.addr)
		// On a Unix socket the kernel refuses connections while the queue is
		// full (unix(7)), and the queue of the adb server has four slots (AOSP
		// libcutils, LISTEN_BACKLOG). A server that exits resets connections
		// that it has not accepted, some of them before the dial returns.
		full, reset := errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ECONNRESET)
		if !full && !reset || time.Now().After(deadline) {
			return nc, err
		}
		if err := sleep(ctx, redialEvery); err != nil {
			return nil, err
		}
	}
}

// dialCustom calls Options.Dial within DialTimeout.
func (c *Client) dialCustom(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.DialTimeout)
	defer cancel()
	return c.opt.Dial(ctx)
}

// redialEvery is the retry interval for a full queue or a reset.
const redialEvery = 2 * time.Millisecond

func (c *Client) dialOnce(ctx context.Context) (net.Conn, error) {
	nc, err := c.dialTo(ctx)
	switch {
	case !c.at.local():
	case err == nil:
		serverStateAt(c.at.addr).found()
	case isRefused(err):
		serverStateAt(c.at.addr).missed(time.Now())
	}
	return nc, err
}

func (c *Client) dialError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	var known *fault
	if errors.As(err, &known) {
		return err
	}
	todo := "start it there, or correct ADB_SERVER_SOCKET"
	if c.opt.Dial != nil {
		todo = "start it there, or check the tunnel to it"
	} else if _, local := c.at.localPort(); local {
		todo = "run `adb start-server`"
	}
	return &fault{
		kind: ErrNoServer, cause: err,
		text: fmt.Sprintf("no adb server at %s (%s): %s", c.at.addr, dialReason(err), todo),
	}
}

// call connects to the server and sends the first request of a connection;
// serial is the device to which the request applies, if any. A server that
// closes the connection without a response is about to exit, for example after
// `adb kill-server` or because another version takes over; the request is then
// sent again, to the next server. Therefore call may be used only for requests
// that can safely be sent twice, and not for requests that reach a device.
func (c *Client) call(ctx context.Context, request, serial string) (*conn, error) {
	for first := true; ; first = false {
		k, err := c.dial(ctx, true)
		if err != nil {
			return nil, err
		}
		k.phase.serial = serial
		if err = k.request(request); err == nil {
			return k, nil
		}
		k.close()
		if !first || !k.hungUp || ctx.Err() != nil {
			return nil, err
		}
	}
}

// query sends a request and returns the text of the response.
func (c *Client) query(ctx context.Context, request string) (string, error) {
	k, err := c.call(ctx, request, "")
	if err != nil {
		return "", err
	}
	defer k.close()
	return k.text()
}

// Devices lists all devices of the server, in every state.
func (c *Client) Devices(ctx context.Context) ([]DeviceInfo, error) {
	text, err := c.query(ctx, "host:devices-l")
	if err != nil {
		return nil, fmt.Errorf("list devices: %w", err)
	}
	return parseDevices(text), nil
}

// track calls changed with the list of devices now and after every change,
// until ctx is done, changed returns an error, or the server disappears. It
// never returns nil. If the server does not support the long list, only Serial
// and State are set.
func (c *Client) track(ctx context.Context, changed func([]DeviceInfo) error) error {
	k, err := c.openTrack(ctx)
	if err != nil {
		return fmt.Errorf("track devices: %w", err)
	}
	defer k.close()
	for {
		if err := k.expect(0); err != nil {
			return fmt.Errorf("track devices: %w", err)
		}
		text, err := k.text()
		if err != nil {
			return fmt.Errorf("track devices: %w", err)
		}
		if err := changed(parseDevices(text)); err != nil {
			return err
		}
	}
}

// openTrack first requests the long list; a server that does not support it
// responds with an error.
func (c *Client) openTrack(ctx context.Context) (*conn, error) {
	k, err := c.call(ctx, "host:track-devices-l", "")
	if errors.Is(err, errUnknownService) {
		return c.call(ctx, "host:track-devices", "")
	}
	return k, err
}

// Select returns the device to use: the named device, otherwise the one that
// ANDROID_SERIAL names, otherwise the only usable one. The device must be in
// the state "device". A device named HOST:PORT that the server does not list is
// connected first.
func (c *Client) Select(ctx context.Context, serial string) (*Device, error) {
	list, err := c.Devices(ctx)
	if err != nil {
		return nil, err
	}
	from := ""
	if serial == "" {
		serial, from = c.opt.Getenv("ANDROID_SERIAL"), " (from ANDROID_SERIAL)"
	}
	if networkSerial(serial) && !listed(list, serial) {
		if list, err = c.fetch(ctx, serial, from); err != nil {
			return nil, err
		}
	}
	info, err := choose(list, serial, from)
	if err != nil {
		return nil, err
	}
	return &Device{client: c, info: info}, nil
}

// fetch requests that the server connect to a network device, and then lists
// the devices again.
func (c *Client) fetch(ctx context.Context, serial, from string) ([]DeviceInfo, error) {
	answer, err := c.reconnect(ctx, serial)
	if err != nil {
		return nil, err
	}
	list, err := c.Devices(ctx)
	if err == nil && !listed(list, serial) {
		err = notReached(ErrNoDevice, serial, from, answer)
	}
	return list, err
}

func choose(list []DeviceInfo, serial, from string) (DeviceInfo, error) {
	if serial != "" {
		return named(list, serial, from)
	}
	var usable []DeviceInfo
	for _, d := range list {
		if d.State == StateDevice {
			usable = append(usable, d)
		}
	}
	switch {
	case len(usable) == 1:
		return usable[0], nil
	case len(usable) > 1:
		return DeviceInfo{},
			faultf(ErrSeveralDevices, "%d devices are connected (%s): choose one with --device or ANDROID_SERIAL",
				len(usable), serials(usable))
	case len(list) == 0:
		return DeviceInfo{}, noDevice()
	}
	if len(list) > 1 {
		return DeviceInfo{}, noneUsable(list)
	}
	return DeviceInfo{}, list[0].unusable()
}

// noneUsable returns an error that says why each device cannot be used; its
// kind is that of the first device's error.
func noneUsable(list []DeviceInfo) error {
	kind := ErrOffline
	var first *fault
	if errors.As(list[0].unusable(), &first) {
		kind = first.kind
	}
	why := make([]string, 0, maxNamed)
	for i, d := range list {
		if i == maxNamed {
			why = append(why, fmt.Sprintf("and %d more", len(list)-maxNamed))
			break
		}
		why = append(why, d.unusable().Error())
	}
	return faultf(kind, "none of the %d devices can be used: %s", len(list), strings.Join(why, "; "))
}

func named(list []DeviceInfo, serial, from string) (DeviceInfo, error) {
	for _, d := range list {
		if d.Serial != serial {
			continue
		}
		if d.State != StateDevice {
			return DeviceInfo{}, d.unusable()
		}
		return d, nil
	}
	if len(list) == 0 {
		return DeviceInfo{},
			faultf(ErrNoDevice,
				"device %s%s is not connected, and no other device is: connect it with USB debugging on, and check "+
					"with `adb devices`", quoted(serial), from)
	}
	return DeviceInfo{},
		faultf(ErrNoDevice,
			"device %s%s is not connected; connected: %s: check the cable, or choose another with --device",
			quoted(serial), from, serials(list))
}

// maxNamed is the maximum number of devices listed in a message.
const maxNamed = 10

func serials(list []DeviceInfo) string {
	names := make([]string, 0, maxNamed+1)
	for i, d := range list {
		if i == maxNamed {
			names = append(names, fmt.Sprintf("and %d more", len(list)-maxNamed))
			break
		}
		names = append(names, quoted(d.Serial))
	}
	return strings.Join(names, ", ")
}
