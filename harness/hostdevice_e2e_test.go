//go:build linux && realtime && e2e

package harness_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/hostdevicetest"
)

// A suite runs against real Java virtual machines behind the real adb server.
// The suite detects a list that grows by one object per loop, and native memory
// that grows by 200 kB per loop. A cache that fills up passes, and so does an
// idle process; both checks need fewer loops. A Java virtual machine does not
// mark any object as destroyed, so its heap dump cannot prove the absence of
// leaks. The check is therefore inconclusive.
func TestSuiteOnTheHostDevice(t *testing.T) {
	hostdevicetest.RequireJava(t)
	for _, c := range []struct {
		activity, mode string
		code           int
		shows          []string
	}{
		{".List", "list", 1, []string{"LEAK", "Leaky.ITEMS"}},
		{".Buffers", "buffers", 1, []string{"LEAK", "native_heap"}},
		{".Filling", "filling", 0, nil},
		{".Steady", "steady", 0, nil},
	} {
		t.Run(c.mode, func(t *testing.T) {
			device := hostdevicetest.StartRooted(t, hostdevice.Options{Scale: 20})
			device.Must(t, "shell", "am start -n "+device.Package()+"/"+c.activity)
			b := newBench(t)
			b.port = strconv.Itoa(device.ADBPort)
			r := b.run(t,
				child{
					scenario: "jvm",
					env: []string{
						"SUITE_WATCHES=" + device.Package() + ":" + c.mode, "SUITE_OPTIONS=device=" + device.Serial,
					},
				})
			if r.code != c.code {
				t.Errorf("exit %d", r.code)
			}
			for _, want := range append(c.shows, "nothing marks objects of a JVM") {
				if !strings.Contains(r.console, want) {
					t.Errorf("no %q on the console", want)
				}
			}
			if left := strings.TrimSpace(device.Must(t, "shell", "ls /data/local/tmp")); strings.Contains(left,
				"hprof") {
				t.Errorf("files remain on the device: %s", left)
			}
		})
	}
}
