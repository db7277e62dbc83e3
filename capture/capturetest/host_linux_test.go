package capturetest_test

import (
	"os"
	"testing"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/capture/capturetest"
	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/hostdevicetest"
)

// TestHostDevice is the adb client, the real adb server and real processes; with
// root, as a shell that the kernel keeps from other users' files.
func TestHostDevice(t *testing.T) {
	var o capturetest.Options
	var h hostdevice.Options
	if os.Getuid() == 0 {
		h.ShellUID = 2000
		o.Unreadable = "/proc/1/smaps"
	}
	r := hostdevicetest.Start(t, h)
	o.Cut = r.Daemon.Drop
	capturetest.Run(t, func(t *testing.T) capture.Device { return selected(t, r.Server.Addr, r.Serial) }, o)
}
