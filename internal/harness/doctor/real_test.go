//go:build e2e

package doctor

import (
	"strings"
	"testing"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/adbd/adbtest"
	"github.com/leakgate/leakgate/internal/androidsim"
)

// The real adb server serves a simulated phone.
func TestRealServer(t *testing.T) {
	server := adbtest.StartServer(t)
	phone := androidsim.New(androidsim.Options{Serial: "x", Scale: 400, Root: true, Apps: shop(false)})
	daemon := adbd.NewDaemon(phone)
	if err := daemon.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { daemon.Close() })
	locked := &recordingPhone{Phone: androidsim.New(androidsim.Options{Serial: "y"}), state: adbd.StateUnauthorized}
	other := adbd.NewDaemon(locked)
	if err := other.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	serial := server.Connect(t, daemon.Addr())
	refused := server.ConnectState(t, other.Addr(), "unauthorized")
	home := t.TempDir()
	t.Setenv("HOME", home)
	before := snapshot(t, home)
	r := examine(t, at(t, server.Addr), Options{Patterns: []capture.Pattern{"com.shop"}})
	if after := snapshot(t, home); after != before {
		t.Errorf("the adb program wrote files:\n%s", after)
	}
	if r.Outcome != Usable || r.Text != "device "+serial+" is usable" || len(r.Devices) != 2 {
		t.Errorf("%+v", r)
	}
	expect(t, r, "adb", OK, "version 1.0.41")
	expect(t, r, "server", OK, "version 41")
	expect(t, r, "memory", OK, "smaps_rollup")
	if c := find(t, r, "state"); c.Device != refused || c.Status != Bad || !strings.Contains(c.Text, "not authorized") {
		t.Errorf("%+v", c)
	}
}
