package adb

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/androidsim"
)

// If Options.Dial is set, it is the only way to reach the server: the
// environment is ignored, no server is started, and a dial that hangs ends
// after DialTimeout.
func TestDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := adbd.NewServer(androidsim.New(androidsim.Options{Serial: "X"}))
		defer server.Close()
		c, err := NewClient(Options{Dial: server.Dial, Getenv: env("ADB_SERVER_SOCKET", "nonsense")})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if exit, err := selected(t, c, "").Shell(t.Context(), "echo hello; exit 7", &out, nil); exit != 7 ||
			err != nil || out.String() != "hello\n" {
			t.Errorf("exit %d, %v, %q", exit, err, out.String())
		}
		began := time.Now()
		c.opt.Dial = func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
		_, err = c.Devices(t.Context())
		checkSentence(t, err, ErrNoServer,
			"no adb server at Options.Dial (no answer in time): start it there, or check the tunnel to it")
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("took %v", took)
		}
		if _, port := c.at.localPort(); port || c.at.local() {
			t.Error("Options.Dial is treated as a local address")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Devices(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
	})
}
