package adb

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

const (
	defaultHost = "127.0.0.1"
	defaultPort = "5037"
)

// endpoint is the address at which the adb server listens.
type endpoint struct {
	network string // tcp, unix, or custom for Options.Dial
	addr    string // HOST:PORT, a path, or Options.Addr with a custom Dial
}

func (e endpoint) String() string { return e.addr }

// localPort returns the port of the endpoint, and reports whether a server that
// is started on this machine would listen on that port.
func (e endpoint) localPort() (string, bool) {
	if e.network != "tcp" {
		return "", false
	}
	host, port, err := net.SplitHostPort(e.addr)
	if err != nil {
		return "", false
	}
	ip, err := netip.ParseAddr(host)
	return port, host == "localhost" || err == nil && ip.IsLoopback()
}

// local reports whether the endpoint is on this machine.
func (e endpoint) local() bool {
	_, tcp := e.localPort()
	return tcp || e.network == "unix"
}

// endpoint returns the endpoint at which a client with these options connects
// to the server.
func (o Options) endpoint() (endpoint, error) {
	if o.Dial == nil {
		return findEndpoint(o.Addr, o.Getenv)
	}
	// The network "custom" marks the server as not local: the client waits for
	// a server, or starts one, only on this machine.
	return endpoint{"custom", cmp.Or(o.Addr, "Options.Dial")}, nil
}

// findEndpoint applies the rules of AOSP adb/client/commandline.cpp: an
// explicit address, then ADB_SERVER_SOCKET, then ANDROID_ADB_SERVER_ADDRESS and
// ANDROID_ADB_SERVER_PORT.
func findEndpoint(addr string, getenv func(string) string) (endpoint, error) {
	if addr != "" {
		return parseEndpoint(addr)
	}
	if spec := getenv("ADB_SERVER_SOCKET"); spec != "" {
		e, err := parseSpec(spec)
		if err != nil {
			return endpoint{}, fmt.Errorf("read ADB_SERVER_SOCKET: %w", err)
		}
		return e, nil
	}
	host, port := getenv("ANDROID_ADB_SERVER_ADDRESS"), getenv("ANDROID_ADB_SERVER_PORT")
	if host == "" {
		host = defaultHost
	}
	if port == "" {
		port = defaultPort
	}
	if err := checkPort(port); err != nil {
		return endpoint{}, fmt.Errorf("read ANDROID_ADB_SERVER_PORT: %w", err)
	}
	return endpoint{"tcp", net.JoinHostPort(strings.Trim(host, "[]"), port)}, nil
}

// parseEndpoint parses HOST:PORT or a socket specification.
func parseEndpoint(text string) (endpoint, error) {
	switch kind, _, _ := strings.Cut(text, ":"); kind {
	case "tcp", "local", "localreserved", "localabstract", "localfilesystem", "vsock":
		return parseSpec(text)
	}
	return parseSpec("tcp:" + text)
}

// parseSpec parses a socket specification of adb (AOSP adb/socket_spec.cpp).
func parseSpec(spec string) (endpoint, error) {
	kind, rest, ok := strings.Cut(spec, ":")
	if !ok {
		return endpoint{}, fmt.Errorf("invalid socket specification %s: "+
			"want tcp:PORT, tcp:HOST:PORT or localfilesystem:PATH", quoted(spec))
	}
	switch kind {
	case "tcp":
		return parseTCP(spec, rest)
	case "localfilesystem":
		if rest == "" {
			return endpoint{}, fmt.Errorf("socket specification %s has no path: want localfilesystem:PATH",
				quoted(spec))
		}
		return endpoint{"unix", rest}, nil
	}
	return endpoint{}, fmt.Errorf("unsupported socket kind %s: want tcp:PORT, tcp:HOST:PORT or localfilesystem:PATH",
		quoted(kind))
}

func parseTCP(spec, rest string) (endpoint, error) {
	host, port := defaultHost, rest
	if strings.Contains(rest, ":") {
		var err error
		if host, port, err = net.SplitHostPort(rest); err != nil {
			return endpoint{}, fmt.Errorf("invalid TCP address %s: want tcp:HOST:PORT, with an IPv6 host in brackets",
				quoted(spec))
		}
	}
	if host == "" {
		host = defaultHost
	}
	if err := checkPort(port); err != nil {
		return endpoint{}, err
	}
	return endpoint{"tcp", net.JoinHostPort(host, port)}, nil
}

func checkPort(port string) error {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return fmt.Errorf("invalid port %s: want a number from 1 to 65535", quoted(port))
	}
	return nil
}
