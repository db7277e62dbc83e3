//go:build e2e

package capturetest_test

import (
	"os"
	"testing"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/capturetest"
	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/hostdevicetest"
)

// TestHostDevice tests the adb client with the real adb server and real
// processes. If the test runs as root, the device's shell may not read other
// users' files.
func TestHostDevice(t *testing.T) {
	var o capturetest.Options
	var h hostdevice.Options
	if os.Getuid() == 0 {
		h.ShellUID = 2000
		o.Unreadable = "/proc/1/smaps"
	}
	r := hostdevicetest.StartRooted(t, h)
	o.Cut = r.Daemon.Drop
	capturetest.Run(t, func(t *testing.T) capture.Device { return selected(t, r.Server.Addr, r.Serial) }, o)
}

// TestNestedHostDevice tests the adb client with Android's own adbd, once with
// the shell of a user build and once with the shell of a build where adb has
// root.
func TestNestedHostDevice(t *testing.T) {
	for name, tt := range map[string]struct {
		uid     int
		options capturetest.Options
	}{
		"shell": {2000, capturetest.Options{Unreadable: "/proc/1/smaps"}},
		"root":  {0, capturetest.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := hostdevicetest.StartNested(t, hostdevice.Options{ShellUID: tt.uid})
			o := tt.options
			o.Cut = r.Disconnect
			capturetest.Run(t, func(t *testing.T) capture.Device { return selected(t, r.Server.Addr, r.Serial) }, o)
		})
	}
}
