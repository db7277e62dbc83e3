package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
)

// ServerState describes what was found at the address of the adb server.
type ServerState string

// The states of the server's address.
const (
	Answers     ServerState = "answers"     // an adb server answers
	Absent      ServerState = "absent"      // nothing listens
	Unreachable ServerState = "unreachable" // no connection within the time limit
	Foreign     ServerState = "foreign"     // something other than an adb server
	Silent      ServerState = "silent"      // accepts connections and sends nothing
)

// limits holds the time limits for the requests on the host, in wall-clock
// time.
type limits struct {
	dial time.Duration
	// answer is the time limit for the response of an adb server, which answers
	// host:version from memory.
	answer time.Duration
	// react is the time that a server of another kind has to reject the
	// request.
	react time.Duration
	// program is the time limit for `adb version`, which opens no connection.
	program time.Duration
}

var usualLimits = limits{dial: 3 * time.Second, answer: 3 * time.Second, react: time.Second, program: 5 * time.Second}

// versionRequest is the request host:version (AOSP adb/SERVICES.TXT), which
// changes nothing.
const versionRequest = "000chost:version"

// serverReply is the reply from an address to one request.
type serverReply struct {
	state    ServerState
	protocol int
	// said is the beginning of a response that does not come from adb; it may
	// be empty.
	said string
	err  error
}

// dialer returns a function that connects to an address, which is HOST:PORT or
// a path.
func (l limits) dialer(address string) func(context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: l.dial}
	return func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, networkOf(address), address) }
}

// probeServer requests the version of the server that dial connects to. If the
// request is not answered, probeServer sends it again, followed by a newline:
// servers of line-based protocols, such as HTTP, then reject it, while a hung
// adb server still does not respond.
func (l limits) probeServer(ctx context.Context, dial func(context.Context) (net.Conn, error)) serverReply {
	k := probeOnce(ctx, dial, versionRequest, l.answer)
	if k.state != Silent || ctx.Err() != nil {
		return k
	}
	if again := probeOnce(ctx, dial, versionRequest+"\r\n\r\n", l.react); again.said != "" {
		return again
	}
	return k
}

func probeOnce(ctx context.Context, dial func(context.Context) (net.Conn, error), request string,
	within time.Duration) serverReply {
	conn, err := dial(ctx)
	if err != nil {
		return serverReply{state: dialState(ctx, err), err: err}
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil || ctx.Err() != nil {
		return serverReply{state: Silent, err: errors.Join(err, ctx.Err())}
	}
	// If the connection failed, the read returns the error too, and may still
	// return data that arrived before.
	_, _ = io.WriteString(conn, request)
	var answer [64]byte
	n, err := io.ReadAtLeast(conn, answer[:], len("OKAY00040029"))
	return understand(string(answer[:n]), err)
}

func networkOf(address string) string {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return "unix"
	}
	return "tcp"
}

func dialState(ctx context.Context, err error) ServerState {
	var n net.Error
	if ctx.Err() != nil || errors.As(err, &n) && n.Timeout() {
		return Unreachable
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return Unreachable
	}
	return Absent
}

// understand parses a response that consists of OKAY, a length of four hex
// digits, and the version in hex.
func understand(answer string, err error) serverReply {
	if rest, ok := strings.CutPrefix(answer, "OKAY0004"); ok && len(rest) >= 4 {
		if v, err := strconv.ParseUint(rest[:4], 16, 16); err == nil {
			return serverReply{state: Answers, protocol: int(v)}
		}
	}
	switch {
	case answer != "":
		return serverReply{state: Foreign, said: answer}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return serverReply{state: Silent, err: err}
	}
	return serverReply{state: Foreign, err: err}
}

// defaultAddress is used if no variable sets the address.
const defaultAddress = "default"

// addressFrom returns the variable that sets the server's address, using the
// precedence of AOSP adb/client/commandline.cpp.
func addressFrom(getenv func(string) string) string {
	if getenv("ADB_SERVER_SOCKET") != "" {
		return "ADB_SERVER_SOCKET"
	}
	var from []string
	for _, name := range []string{"ANDROID_ADB_SERVER_ADDRESS", "ANDROID_ADB_SERVER_PORT"} {
		if getenv(name) != "" {
			from = append(from, name)
		}
	}
	if len(from) == 0 {
		return defaultAddress
	}
	return strings.Join(from, " and ")
}

// local reports whether `adb start-server` would start a server at this address
// on this host.
func local(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// anotherPort returns the setting that makes adb use the next port.
func anotherPort(address, from string) string {
	next := 5038
	if _, port, err := net.SplitHostPort(address); err == nil {
		if n, err := strconv.Atoi(port); err == nil && n < 65535 {
			next = n + 1
		}
	}
	if from == "ADB_SERVER_SOCKET" {
		return fmt.Sprintf("set ADB_SERVER_SOCKET=tcp:127.0.0.1:%d", next)
	}
	return fmt.Sprintf("set ANDROID_ADB_SERVER_PORT=%d", next)
}
