package adb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Options say where the server is and what a client may cost. The zero value is
// good.
type Options struct {
	// Addr is where the server listens: HOST:PORT, or a socket specification of adb
	// (tcp:HOST:PORT, tcp:PORT, localfilesystem:PATH). Empty: ADB_SERVER_SOCKET, else
	// ANDROID_ADB_SERVER_ADDRESS and ANDROID_ADB_SERVER_PORT, else 127.0.0.1:5037.
	Addr string
	// DialTimeout is for one connection to the server; 0 is 5 s.
	DialTimeout time.Duration
	// AnswerTimeout is how long the server or a device may be silent where the
	// protocol owes an answer, a running command apart; 0 is 30 s.
	AnswerTimeout time.Duration
	// NoStart keeps the client from starting a server where none answers.
	NoStart bool
	// ADBPath is the adb program that starts a server. Empty: adb in PATH, else in
	// platform-tools of ANDROID_HOME or ANDROID_SDK_ROOT.
	ADBPath string
	// LogDir holds the file with what `adb start-server` prints; it stays only if
	// that fails. Empty: the directory for temporary files.
	LogDir string
	// MaxStream bounds what one command may print, stdout and stderr together, in
	// bytes; 0 is 64 MiB.
	MaxStream int64
	// MaxFile bounds what one Pull may receive, in bytes; 0 is 64 GiB.
	MaxFile int64
	// Getenv reads the environment; nil is os.Getenv.
	Getenv func(string) string
}

// Client talks to one adb server. Its methods may be called at the same time;
// each opens a connection of its own and leaves none behind.
type Client struct {
	opt Options
	at  endpoint
}

// NewClient checks the options and the environment. It does not connect.
func NewClient(opt Options) (*Client, error) {
	if opt.Getenv == nil {
		opt.Getenv = os.Getenv
	}
	at, err := findEndpoint(opt.Addr, opt.Getenv)
	if err != nil {
		return nil, fmt.Errorf("find the adb server: %w", err)
	}
	opt.DialTimeout = orDefault(opt.DialTimeout, 5*time.Second)
	opt.AnswerTimeout = orDefault(opt.AnswerTimeout, 30*time.Second)
	opt.MaxStream = orDefault(opt.MaxStream, 64<<20)
	opt.MaxFile = orDefault(opt.MaxFile, 64<<30)
	return &Client{opt: opt, at: at}, nil
}

func orDefault[T ~int64](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// Addr is where the client looks for the server: HOST:PORT, or a path.
func (c *Client) Addr() string { return c.at.addr }

// dial connects to the server, and starts one where that is allowed and none
// listens.
func (c *Client) dial(ctx context.Context, start bool) (*conn, error) {
	nc, err := c.dialOnce(ctx)
	if err != nil && start && ctx.Err() == nil && isRefused(err) {
		if err := c.startServer(ctx); err != nil {
			return nil, err
		}
		nc, err = c.dialOnce(ctx)
	}
	if err != nil {
		return nil, c.dialError(ctx, err)
	}
	return newConn(ctx, nc, c.opt.AnswerTimeout, phase{endpoint: c.at.addr}), nil
}

func (c *Client) dialOnce(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: c.opt.DialTimeout}
	return d.DialContext(ctx, c.at.network, c.at.addr)
}

func (c *Client) dialError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	todo := "start it there, or correct ADB_SERVER_SOCKET"
	if _, local := c.at.localPort(); local {
		todo = "run `adb start-server`"
	}
	return &fault{kind: ErrNoServer, cause: err, text: fmt.Sprintf("no adb server answers at %s: %s", c.at.addr, todo)}
}

// query sends a request and reads the one text that answers it.
func (c *Client) query(ctx context.Context, request string) (string, error) {
	k, err := c.dial(ctx, !c.opt.NoStart)
	if err != nil {
		return "", err
	}
	defer k.close()
	if err := k.request(request); err != nil {
		return "", err
	}
	return k.text()
}

// Version is the server's protocol version: 41 for every release from 29 to 35.
func (c *Client) Version(ctx context.Context) (int, error) {
	text, err := c.query(ctx, "host:version")
	if err != nil {
		return 0, fmt.Errorf("ask for the server's version: %w", err)
	}
	v, err := strconv.ParseUint(text, 16, 16)
	if err != nil {
		return 0, fmt.Errorf("ask for the server's version: %w", faultf(ErrProtocol, "the adb server at %s calls its version %s: check that it is an adb server", c.at.addr, quoted(text)))
	}
	return int(v), nil
}

// Devices lists all devices that the server knows, in every state.
func (c *Client) Devices(ctx context.Context) ([]DeviceInfo, error) {
	text, err := c.query(ctx, "host:devices-l")
	if err != nil {
		return nil, fmt.Errorf("list devices: %w", err)
	}
	return parseDevices(text), nil
}

// Track calls changed with the list of devices now and after every change, until
// ctx ends, changed gives an error, or the server goes away. It never returns nil.
// A server too old for the long list leaves all but Serial and State empty.
func (c *Client) Track(ctx context.Context, changed func([]DeviceInfo) error) error {
	k, err := c.track(ctx)
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

// track asks for the long list first; a server that does not know it says so.
func (c *Client) track(ctx context.Context) (*conn, error) {
	k, err := c.trackAs(ctx, "host:track-devices-l")
	if errors.Is(err, errUnknownService) {
		return c.trackAs(ctx, "host:track-devices")
	}
	return k, err
}

func (c *Client) trackAs(ctx context.Context, request string) (*conn, error) {
	k, err := c.dial(ctx, !c.opt.NoStart)
	if err != nil {
		return nil, err
	}
	if err := k.request(request); err != nil {
		k.close()
		return nil, err
	}
	return k, nil
}

// Select finds the device to work with: the one named, else the one that
// ANDROID_SERIAL names, else the only usable one. It must be in state device.
func (c *Client) Select(ctx context.Context, serial string) (*Device, error) {
	list, err := c.Devices(ctx)
	if err != nil {
		return nil, err
	}
	from := ""
	if serial == "" {
		serial, from = c.opt.Getenv("ANDROID_SERIAL"), " (from ANDROID_SERIAL)"
	}
	info, err := choose(list, serial, from)
	if err != nil {
		return nil, err
	}
	return &Device{client: c, info: info}, nil
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
		return DeviceInfo{}, faultf(ErrSeveralDevices, "%d devices are connected (%s): name one with --device or ANDROID_SERIAL", len(usable), serials(usable))
	case len(list) == 0:
		return DeviceInfo{}, noDevice()
	}
	return DeviceInfo{}, list[0].unusable()
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
		return DeviceInfo{}, faultf(ErrNoDevice, "device %s%s is not connected, nor is any other: connect it with USB debugging on, and check with `adb devices`", quoted(serial), from)
	}
	return DeviceInfo{}, faultf(ErrNoDevice, "device %s%s is not connected, but %s: check the cable, or name another with --device", quoted(serial), from, serials(list))
}

// maxNamed bounds the devices that a message lists.
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
