package adbtest

import (
	"net"
	"sync"
	"testing"
	"time"
)

func TestStartServer(t *testing.T) {
	var addr string
	t.Run("lives", func(t *testing.T) {
		s := StartServer(t)
		addr = s.Addr
		// 0x29 = 41 is the ADB_SERVER_VERSION of every release from 29 to 35.
		if got, err := s.Ask("host:version"); got != "0029" || err != nil {
			t.Errorf("host:version = %q, %v; want 0029", got, err)
		}
		if got, err := s.Ask("host:devices"); got != "" || err != nil {
			t.Errorf("devices of a new server = %q, %v; want none", got, err)
		}
		if got, err := s.Ask("host:no-such-thing"); err == nil {
			t.Errorf("response to an unknown request = %q", got)
		}
		out, err := s.Command(t.Context(), "devices").CombinedOutput()
		if want := "List of devices attached\n\n"; string(out) != want || err != nil {
			t.Errorf("adb devices = %q, %v; want %q", out, err, want)
		}
	})
	if t.Failed() || addr == "" {
		return
	}
	if conn, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
		conn.Close()
		t.Errorf("the server on %s is still running after its test", addr)
	}
}

func TestServersBesideEachOther(t *testing.T) {
	Program(t)
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		seen = make(map[string]bool)
	)
	for range 4 {
		wg.Go(func() {
			// If two servers with the same home find no .android directory,
			// both try to create it and one of them exits.
			s, err := startAnew(Program(t), environment(t.TempDir()))
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(s.stop)
			mu.Lock()
			defer mu.Unlock()
			if seen[s.Addr] {
				t.Errorf("%s was returned twice", s.Addr)
			}
			seen[s.Addr] = true
		})
	}
	wg.Wait()
}
