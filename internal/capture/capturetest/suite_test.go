package capturetest_test

//unit:listen the suite goes through a socket, as with a phone

import (
	"context"
	"testing"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/adbd/adbtest"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/capture/capturetest"
)

// selected returns the device with this serial number from the adb server at
// addr.
func selected(t *testing.T, addr, serial string) capture.Device {
	t.Helper()
	c, err := adb.NewClient(adb.Options{Addr: addr, NoStart: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d, err := c.Select(ctx, serial)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// phones lists simulated phones, one with each kind of adbd.
var phones = map[string]struct {
	api     int
	options capturetest.Options
}{
	"modern": {34, capturetest.Options{Unreadable: "/proc/1/smaps"}},
	"old":    {22, capturetest.Options{Old: true, Unreadable: "/proc/1/smaps", Large: 1 << 20}},
}

// TestSimulatedPhone tests the adb client with the in-memory server.
func TestSimulatedPhone(t *testing.T) {
	for name, tt := range phones {
		t.Run(name, func(t *testing.T) {
			phone := androidsim.New(androidsim.Options{API: tt.api})
			s, err := adbd.Listen(phone)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			o := tt.options
			o.Cut = func() { s.Remove(phone) }
			capturetest.Run(t,
				func(t *testing.T) capture.Device { return selected(t, s.Addr(), phone.Identity().Serial) }, o)
		})
	}
}

// TestSimulatedPhoneBehindADB tests the adb client with the real adb server in
// between.
func TestSimulatedPhoneBehindADB(t *testing.T) {
	for name, tt := range phones {
		t.Run(name, func(t *testing.T) {
			s := adbtest.StartServer(t)
			d := adbd.NewDaemon(androidsim.New(androidsim.Options{API: tt.api}))
			if err := d.Listen("127.0.0.1:0"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { d.Close() })
			o := tt.options
			o.Cut = d.Drop
			capturetest.Run(t, func(t *testing.T) capture.Device { return selected(t, s.Addr, s.Connect(t, d.Addr())) },
				o)
		})
	}
}
