//go:build e2e

package adb

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/adbd/adbtest"
	"github.com/leakgate/leakgate/internal/androidsim"
)

// plugged returns a simulated phone behind the real adb server, and a client of
// that server.
func plugged(t *testing.T) (*adbtest.Server, *androidsim.Phone, *adbd.Line, *Device) {
	t.Helper()
	server := adbtest.StartServer(t)
	p := androidsim.New(androidsim.Options{})
	line := &adbd.Line{}
	d := adbd.NewDaemon(p)
	d.Wire = line.Wire
	if err := d.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	serial := server.Connect(t, d.Addr())
	c, err := NewClient(Options{Addr: server.Addr, NoStart: true})
	if err != nil {
		t.Fatal(err)
	}
	dev, err := c.Select(t.Context(), serial)
	if err != nil {
		t.Fatal(err)
	}
	return server, p, line, dev
}

// answers reports whether the device runs a command within the given time.
func answers(t *testing.T, d *Device, within time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	exit, err := d.Shell(ctx, "exit 7", nil, nil)
	return err == nil && exit == 7
}

func TestReturn(t *testing.T) {
	server, p, _, dev := plugged(t)
	for name, away := range map[string]func() (back func()){
		"offline":      func() func() { return p.SetAdbState(adbd.StateOffline) },
		"unauthorized": func() func() { return p.SetAdbState(adbd.StateUnauthorized) },
		"no adb server": func() func() {
			server.Kill()
			return func() {
				if err := server.Restart(); err != nil {
					t.Error(err)
				}
				// Connect the device first, as a command of a run would do.
				go func() { _, _ = server.Ask("host:connect:" + dev.Serial()) }()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), answerTimeout)
			defer cancel()
			returned := make(chan error, 1)
			go func() { returned <- dev.Return(ctx) }()
			select {
			case err := <-returned:
				t.Fatalf("Return returned while the device was connected: %v", err)
			case <-time.After(300 * time.Millisecond):
			}
			back := away()
			select {
			case err := <-returned:
				t.Fatalf("Return returned while the device was disconnected: %v", err)
			case <-time.After(700 * time.Millisecond):
			}
			back()
			if err := <-returned; err != nil {
				t.Fatal(err)
			}
			if !answers(t, dev, answerTimeout) {
				t.Error("the device returned but does not respond")
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := dev.Return(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A connection that has lost its position in the packet stream stays silent
// forever; a reset makes the device respond again.
func TestReset(t *testing.T) {
	_, _, line, dev := plugged(t)
	// The header announces a megabyte, so the bytes that follow are read as its
	// data.
	end := line.Insert([]byte("WRTE\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x0f\x00\x00\x00\x00\x00\xa8\xad\xab\xba"))
	if answers(t, dev, 2*time.Second) {
		t.Error("the device responds over a garbled connection")
	}
	end()
	if answers(t, dev, 2*time.Second) {
		t.Error("the device responds without a reset: the test proves nothing")
	}
	if err := dev.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A command may still be sent over the old connection; it then ends with
	// that connection.
	waitFor(t, "an answer after the reset", func() bool { return answers(t, dev, answerTimeout/4) })
}
