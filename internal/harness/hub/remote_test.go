//go:build unix

package hub

//unit:listen the processes of a suite meet at a socket

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// socket returns a path that is short enough for a socket.
func socket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// served returns a hub without a run that is served on a socket.
func served(t *testing.T) (*Hub, *Listener, string) {
	t.Helper()
	h, path := newHub(t, Options{}), socket(t)
	l, err := Serve(h, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return h, l, path
}

// The turn of another process lasts until that process releases the device or
// exits. The waiting process learns who holds the device.
func TestRemoteTurns(t *testing.T) {
	h, l, path := served(t)
	one, two := NewRemote(path), NewRemote(path)
	dying, die := context.WithCancel(t.Context())
	first, err := one.Turn(t.Context(), "first", func(string) {})
	if err != nil || first.Serial() != "" {
		t.Fatal(err)
	}
	granted := make(chan Lent, 1)
	asked := make(chan string, 1)
	go func() {
		turn, err := two.Turn(t.Context(), "second", func(holder string) { asked <- holder })
		if err != nil {
			t.Error(err)
		}
		granted <- turn
	}()
	if holder := <-asked; holder != "first" {
		t.Errorf("the second spec waits for %q, want first", holder)
	}
	first.Release()
	first.Release()
	second := <-granted

	// A wait can be canceled in another process and in the process of the hub.
	gone := make(chan error, 1)
	go func() {
		_, err := one.Turn(dying, "third", func(string) { die() })
		gone <- err
	}()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	local := make(chan Lent, 1)
	go func() {
		turn, err := h.Turn(t.Context(), "local", func(string) {})
		if err != nil {
			t.Error(err)
		}
		local <- turn
	}()

	// Breaking the connection of the second process simulates its death.
	second.(*remoteTurn).body.Close()
	two.http.CloseIdleConnections()
	(<-local).Release()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket was not removed: %v", err)
	}
	for _, c := range []*Remote{one, NewRemote(path)} {
		if err := c.Start(t.Context(), false); !errors.Is(err, errNoHub) {
			t.Errorf("request after the suite has ended: %v", err)
		}
		if _, err := c.Turn(t.Context(), "late", func(string) {}); !errors.Is(err, errNoHub) {
			t.Errorf("request after the suite has ended: %v", err)
		}
	}
}

// When the hub stops, the other processes stop waiting.
func TestRemoteTurnAtTheEnd(t *testing.T) {
	h, l, path := served(t)
	held, err := h.Turn(t.Context(), "local", func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	asked, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := NewRemote(path).Turn(t.Context(), "remote", func(string) { close(asked) })
		ended <- err
	}()
	<-asked
	l.Close()
	if err := <-ended; !errors.Is(err, errNoHub) {
		t.Errorf("%v", err)
	}
}

// A remote returns the errors of its hub. Each method sends its own request.
func TestRemoteErrors(t *testing.T) {
	_, _, path := served(t)
	c := NewRemote(path)
	start := c.Start(t.Context(), false)
	if start == nil || !strings.HasPrefix(start.Error(), "start the watch: ") || errors.Is(start, errNoHub) {
		t.Errorf("%v", start)
	}
	_, open := c.Open(t.Context(), OpenRequest{Name: "spec"})
	_, now := c.Now(t.Context(), "*")
	_, snapshot := c.Snapshot(t.Context(), ProcessRequest{})
	_, settle := c.Settle(t.Context(), ProcessRequest{})
	_, dump := c.Dump(t.Context(), ProcessRequest{})
	_, stress := c.Stress(t.Context(), StressRequest{})
	_, exec := c.Exec(t.Context(), ExecRequest{})
	for name, err := range map[string]error{
		"open": open, "now": now, "snapshot": snapshot, "settle": settle, "dump": dump, "stress": stress, "exec": exec,
		"look": c.Discover(t.Context()),
	} {
		if err == nil || err.Error() != start.Error() {
			t.Errorf("%s: %v, want %v", name, err, start)
		}
	}
	_, closing := c.Close(t.Context(), CloseRequest{Check: 3})
	for name, err := range map[string]error{
		"recount": c.Recount(t.Context(), 3), "collect": c.Collect(t.Context(), CollectRequest{Check: 3}),
		"close": closing,
	} {
		if err == nil || err.Error() != "there is no open check 3" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if c.Dir() != "" {
		t.Errorf("%q", c.Dir())
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := c.Discover(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// Malformed requests are rejected and do no damage.
func TestHostileRequests(t *testing.T) {
	_, _, path := served(t)
	for _, body := range []string{"", "{", "[]", `"` + strings.Repeat("x", maxRequest) + `"`, "\x00\xff"} {
		for _, name := range []string{"open", "turn", "close", "nothing"} {
			answer, err := NewRemote(path).http.Post("http://hub/"+name, "", strings.NewReader(body))
			if err != nil {
				continue // the request was rejected before it was sent completely
			}
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			if answer.StatusCode < 400 || answer.StatusCode >= 500 {
				t.Errorf("%s with %d bytes: %s", name, len(body), answer.Status)
			}
		}
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if turn, err := NewRemote(path).Turn(t.Context(), "spec", func(string) {}); err != nil {
		t.Error(err)
	} else {
		turn.Release()
	}
}

// If a turn of another process was granted before the run started, it gets a
// device of the run afterwards.
func TestRemoteTurnBeforeTheRun(t *testing.T) {
	h, _, path := served(t)
	turn, err := NewRemote(path).Turn(t.Context(), "spec", func(string) {})
	if err != nil || turn.Serial() != "" {
		t.Fatal(err)
	}
	h.turns.open([]string{"a", "b"})
	other, err := NewRemote(path).Turn(t.Context(), "other", func(string) {})
	if err != nil || other.Serial() != "b" || turn.Serial() != "a" {
		t.Errorf("%q, %q, %v", turn.Serial(), other.Serial(), err)
	}
	turn.Release()
	other.Release()
	if got := h.turns.deviceOf(-1); got != "" {
		t.Errorf("a turn without a holder has the device %q", got)
	}
}

// If many processes request a turn at the same time, at most one of them holds
// the device.
func TestConcurrentRemoteTurns(t *testing.T) {
	_, _, path := served(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	inside := 0
	for range 8 {
		c := NewRemote(path)
		wg.Go(func() {
			for range 5 {
				turn, err := c.Turn(t.Context(), "spec", func(string) {})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				inside++
				if inside != 1 {
					t.Errorf("%d specs hold the device at once", inside)
				}
				mu.Unlock()
				mu.Lock()
				inside--
				mu.Unlock()
				turn.Release()
			}
		})
	}
	wg.Wait()
}

// The next suite removes the sockets of suites that were killed, but not
// sockets in use, recent sockets or other files.
func TestDeadSockets(t *testing.T) {
	folder := filepath.Dir(socket(t))
	at := func(name string) string { return filepath.Join(folder, name) }
	old := time.Now().Add(-2 * deadAge)
	for _, name := range []string{"dead", "young", "alive"} {
		l, err := net.Listen("unix", at(name))
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		if name == "alive" {
			defer l.Close()
		} else {
			l.Close()
		}
	}
	if err := os.WriteFile(at("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dead", "alive", "file"} {
		if err := os.Chtimes(at(name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Serve(newHub(t, Options{}), at("own"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, want := range map[string]bool{"dead": false, "young": true, "alive": true, "file": true, "own": true} {
		if _, err := os.Lstat(at(name)); (err == nil) != want {
			t.Errorf("%s exists: %v", name, err == nil)
		}
	}
}

// The directory of the sockets is accessible to this user only.
func TestSocketPath(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	one, err := SocketPath("127.0.0.1:1 1")
	two, err2 := SocketPath("127.0.0.1:1 2")
	again, err3 := SocketPath("127.0.0.1:1 1")
	if err := errors.Join(err, err2, err3); err != nil || one == two || one != again {
		t.Errorf("%q, %q, %q: %v", one, two, again, err)
	}
	if err := os.Chmod(filepath.Dir(one), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := SocketPath("x"); err == nil || !strings.Contains(err.Error(), "other users can write to it") {
		t.Errorf("%v", err)
	}
	if err := os.RemoveAll(filepath.Dir(one)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), filepath.Dir(one)); err != nil {
		t.Fatal(err)
	}
	if _, err := SocketPath("x"); err == nil {
		t.Error("a symbolic link is accepted as the socket directory")
	}
}
