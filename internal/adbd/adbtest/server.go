// Package adbtest runs the real adb server for a test, on its own port and with
// its own home directory, until the test ends.
//
// It never uses the server on the default port 5037, never runs `adb
// kill-server` and never lets the adb program start a server by itself.
package adbtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/recorded"
)

const (
	readyWithin   = 20 * time.Second
	connectWithin = 30 * time.Second
	starts        = 5
	poll          = 20 * time.Millisecond
	exchangeLimit = 15 * time.Second
	maxLog        = 1 << 20
)

// filesystem is the address prefix of a server that listens on a Unix domain
// socket.
const filesystem = "localfilesystem:"

// Server is a running adb server.
type Server struct {
	// Addr is the address at which the server listens, as host:port or
	// localfilesystem:PATH; Port is the port alone, or 0 for a path.
	Addr string
	Port int

	program string
	env     []string
	log     *logBuffer
	cancel  context.CancelFunc
	ended   chan struct{}
}

// Program returns the path of the adb program. If the program is missing, the
// test is skipped; see recorded.Missing.
func Program(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("adb")
	if err != nil {
		recorded.Missing(t, "needs the adb program: %v", err)
	}
	return path
}

// StartServer starts a server and waits until it answers. The test's cleanup
// stops the server and waits until it has exited. On Linux the server is also
// killed if the test binary is killed before its cleanups run.
func StartServer(t testing.TB) *Server {
	t.Helper()
	s, err := startAnew(Program(t), environment(t.TempDir()))
	if err != nil {
		t.Fatalf("start the adb server: %v", err)
	}
	t.Cleanup(s.stop)
	return s
}

// startAnew tries free ports one after another, since another process may take
// a port first.
func startAnew(program string, env []string) (*Server, error) {
	var failures []string
	for range starts {
		s, err := start(program, env)
		if err == nil {
			return s, nil
		}
		failures = append(failures, err.Error())
	}
	return nil, errors.New(strings.Join(failures, "; "))
}

// At returns a server at addr (HOST:PORT or localfilesystem:PATH) that the
// caller starts and stops. Kill and Restart must not be called on this server.
func At(t testing.TB, addr string) *Server {
	t.Helper()
	return &Server{Addr: addr, program: Program(t), env: environment(t.TempDir()), log: new(logBuffer)}
}

// environment returns the caller's environment without the variables that
// redirect adb, and with the given home directory.
func environment(home string) []string {
	var env []string
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "ADB_") || strings.HasPrefix(name, "ANDROID_") || name == "HOME" ||
			name == "TMPDIR" {
			continue
		}
		env = append(env, kv)
	}
	return append(env,
		"HOME="+home, "ANDROID_SDK_HOME="+home, "TMPDIR="+home,
		// Without these variables, the server's scan for emulators on ports
		// 5555 to 5585 of this machine would find emulators of other tests or
		// of the developer.
		"ADB_LOCAL_TRANSPORT_MAX_PORT=5553", "ADB_EMU=0",
	)
}

func start(program string, env []string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	s := &Server{
		Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Port: port,
		program: program, env: env, log: new(logBuffer),
	}
	return s, s.run()
}

// run starts the program and waits until it answers.
func (s *Server) run() error {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	s.cancel, s.ended = cancel, ended
	// The server of release 29 accepts no host name except localhost as its
	// address.
	cmd := exec.CommandContext(ctx, s.program, "-L", fmt.Sprintf("tcp:localhost:%d", s.Port), "server", "nodaemon")
	cmd.Env = s.env
	cmd.Stdout, cmd.Stderr = s.log, s.log
	cmd.WaitDelay = 5 * time.Second
	go func() {
		defer close(ended)
		defer cancel()
		if err := runTied(cmd); err != nil {
			fmt.Fprintf(s.log, "%v\n", err)
		}
	}()
	if err := s.waitReady(); err != nil {
		s.stop()
		return fmt.Errorf("%w\n%s", err, s.Log())
	}
	return nil
}

// Kill kills the server immediately, as in a crash. It must not be called
// concurrently with Restart.
func (s *Server) Kill() { s.stop() }

// Restart starts a new server at the address of a killed one. The new server
// does not know the devices that were added by `adb connect`.
func (s *Server) Restart() error {
	var err error
	for range starts {
		if err = s.run(); err == nil {
			return nil
		}
	}
	return fmt.Errorf("restart the adb server: %w", err)
}

// freePort returns a free port chosen by the kernel. Another process may take
// the port before the server binds it; the server then exits and start is
// called again.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (s *Server) waitReady() error {
	deadline := time.Now().Add(readyWithin)
	for {
		_, err := s.Ask("host:version")
		select {
		case <-s.ended:
			return fmt.Errorf("the server on %s exited immediately", s.Addr)
		default:
		}
		if err == nil {
			// An unrelated server that holds the port would respond too, while
			// our server is about to fail to bind it.
			select {
			case <-s.ended:
				return fmt.Errorf("the server on %s exited immediately", s.Addr)
			case <-time.After(5 * poll):
				return nil
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the server on %s does not respond: %w", s.Addr, err)
		}
		time.Sleep(poll)
	}
}

func (s *Server) stop() {
	s.cancel()
	<-s.ended
}

// Log returns the output of the server.
func (s *Server) Log() string { return s.log.String() }

// Command returns a command that runs adb with args as a client of this server.
// The program is killed when ctx is done.
func (s *Server) Command(ctx context.Context, args ...string) *exec.Cmd {
	return Client(ctx, s.program, s.env, s.Addr, args...)
}

// Client returns a command that runs adb with args as a client of the server at
// addr.
func Client(ctx context.Context, program string, env []string, addr string, args ...string) *exec.Cmd {
	if !strings.HasPrefix(addr, filesystem) {
		addr = "tcp:" + addr
	}
	cmd := exec.CommandContext(ctx, program, append([]string{"-L", addr}, args...)...)
	cmd.Env = env
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// Environment returns an environment that keeps an adb client from using the
// caller's home directory and the default server.
func Environment(t testing.TB) []string {
	t.Helper()
	return environment(t.TempDir())
}

// Connect makes the server connect to the device daemon at addr (host:port) and
// waits until the device is in the state "device". It returns the serial, which
// is addr. The test's cleanup disconnects the device.
func (s *Server) Connect(t testing.TB, addr string) (serial string) {
	t.Helper()
	return s.ConnectState(t, addr, "device")
}

// ConnectState is like Connect, for a device that is expected in another state,
// such as "unauthorized" or "offline".
func (s *Server) ConnectState(t testing.TB, addr, state string) (serial string) {
	t.Helper()
	answer, err := s.Ask("host:connect:" + addr)
	if err != nil {
		t.Fatalf("connect to %s: %v", addr, err)
	}
	t.Cleanup(func() { s.disconnect(addr) })
	deadline := time.Now().Add(connectWithin)
	for {
		got, err := s.State(addr)
		if got == state {
			return addr
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is %q (%v), not %q, after %q\n%s", addr, got, err, state, answer, s.Log())
		}
		time.Sleep(poll)
	}
}

// disconnect requests that the server remove a device and waits until the
// device has been removed: the server responds while it still lists the device
// as offline.
func (s *Server) disconnect(addr string) {
	if _, err := s.Ask("host:disconnect:" + addr); err != nil {
		return
	}
	for deadline := time.Now().Add(connectWithin); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if state, err := s.State(addr); state == "" || err != nil {
			return
		}
	}
}

// State returns the state of a device in `adb devices`, or "" if the server
// does not list it.
func (s *Server) State(serial string) (string, error) {
	list, err := s.Ask("host:devices")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(list) {
		name, state, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if name == serial {
			return state, nil
		}
	}
	return "", nil
}

// Ask sends one host request, such as host:devices-l, and returns the content
// of the response.
func (s *Server) Ask(request string) (string, error) {
	return Ask(s.Addr, request)
}

// Ask sends one host request to the adb server at addr; see Server.Ask.
func Ask(addr, request string) (string, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(addr, filesystem); ok {
		network, addr = "unix", path
	}
	conn, err := net.DialTimeout(network, addr, exchangeLimit)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(exchangeLimit))
	if _, err := fmt.Fprintf(conn, "%04x%s", len(request), request); err != nil {
		return "", fmt.Errorf("send %s: %w", request, err)
	}
	status := make([]byte, 4)
	if _, err := io.ReadFull(conn, status); err != nil {
		return "", fmt.Errorf("read the status of %s: %w", request, err)
	}
	text, err := readText(conn)
	if string(status) == "OKAY" {
		if err != nil {
			return "", fmt.Errorf("read the response to %s: %w", request, err)
		}
		return text, nil
	}
	return "", fmt.Errorf("%s: %s %s", request, status, text)
}

func readText(r io.Reader) (string, error) {
	digits := make([]byte, 4)
	if _, err := io.ReadFull(r, digits); err != nil {
		return "", err
	}
	n, err := strconv.ParseUint(string(digits), 16, 32)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(r, int64(n)))
	return string(text), err
}

// logBuffer stores the beginning of a server's output.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if room := maxLog - b.buf.Len(); room > 0 {
		b.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
