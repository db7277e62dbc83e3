//go:build unix && e2e

package main

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/adbd/adbtest"
)

// The adb program can use the served phone: it lists the phone, runs its tests
// and copies files.
func TestDemoServeWithADBProgram(t *testing.T) {
	path, env := adbtest.Program(t), adbtest.Environment(t)
	cmd, at, _ := serveDemo(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"devices"}, "demo-phone\tdevice"},
		{
			[]string{"shell", "am", "instrument", "-w", "-e", "class", "com.shop.CartTest", at.Instrumentations[0]},
			"com.shop.CartTest:..\n\nTime: 6\n\nOK (2 tests)\n",
		},
		{[]string{"shell", "am", "start", "-n", "com.shop/.MainActivity"}, "Starting: Intent"},
		{[]string{"shell", "input", "tap", "100", "200"}, ""},
		{
			[]string{"shell", "am", "start", "-W", "-n", "com.cart/.CheckoutActivity"},
			"Status: ok\nLaunchState: WARM\nActivity: com.cart/.CheckoutActivity\n",
		},
		{[]string{"shell", "input", "keyevent", "BACK"}, ""},
		{[]string{"shell", "dumpsys", "meminfo", "com.cart"}, "Activities:        1\n"},
		{[]string{"push", "demoserve_adb_test.go", "/data/local/tmp/x"}, "1 file pushed"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		out, err := adbtest.Client(ctx, path, env, at.Address, c.args...).CombinedOutput()
		cancel()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("adb %q: %v\n%s", c.args, err, out)
		}
	}
	stopBy(t, cmd, syscall.SIGINT)
}
