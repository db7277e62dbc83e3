package capture

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/shelltest"
)

// labeled returns a device that responds to each labeled part of a joined
// command.
func labeled(parts map[string]string) *shelltest.Device {
	return &shelltest.Device{Run: func(_ context.Context, command string, stdout, _ io.Writer) (int, error) {
		m, _, _ := strings.Cut(strings.TrimPrefix(command, "echo; echo "), " ")
		for label, text := range parts {
			if !strings.Contains(command, m+" '"+label+"'") {
				return 1, fmt.Errorf("unexpected command %s: %s", label, command)
			}
			fmt.Fprintf(stdout, "\n%s %s\n%s", m, label, text)
		}
		_, err := fmt.Fprintf(stdout, "\n%s end\n", m)
		return 0, err
	}}
}

func TestRunningApps(t *testing.T) {
	const installed = "package:com.shop\r\npackage:org.idle\npackage:com.mail\npackage:bad name\npackage:\nError: x\n"
	const toybox = "USER           PID  PPID     VSZ    RSS WCHAN            ADDR S NAME\nroot             1     0 " +
		"10.0 200 0 0 S init\n" +
		"u0_a123       4321   700 1234567 123456 0 0 S com.shop:push\nu10_a99       4322   700 1 2 0 0 S " +
		"com.mail\nu0_a1 5 7 1 2 0 0 S com.android.systemui\n"
	const toolbox = "USER     PID   PPID  VSIZE  RSS   WCHAN    PC         NAME\nu0_a12    4321  150   512340 43210 " +
		"ffffffff 400f S com.shop\r\n"
	for name, c := range map[string]struct {
		running string
		limit   int
		want    string
		total   int
	}{
		"toybox":  {toybox, 20, "com.mail com.shop", 2},
		"toolbox": {toolbox, 20, "com.shop", 1},
		"limit":   {toybox, 1, "com.mail", 2},
		"none":    {"", 20, "", 0},
	} {
		packages, total, err := RunningApps(t.Context(),
			labeled(map[string]string{"installed": installed, "running": c.running}),
			c.limit)
		if err != nil || strings.Join(packages, " ") != c.want || total != c.total {
			t.Errorf("%s: %v of %d, %v", name, packages, total, err)
		}
	}
}

// FuzzRunningPackages checks that every returned package is installed and has a
// process.
func FuzzRunningPackages(f *testing.F) {
	f.Add("package:com.shop\n", "u0_a1 1 2 S com.shop:push\n")
	f.Add("package:com.shop\r\npackage:a\n", "x com.shop\r\na\n")
	f.Fuzz(func(t *testing.T, installed, running string) {
		packages := runningPackages([]byte(installed), []byte(running))
		for i, pkg := range packages {
			if !strings.Contains(installed, "package:"+pkg) || !strings.Contains(running, pkg) ||
				!validName([]byte(pkg)) {
				t.Errorf("%q of %q and %q", pkg, installed, running)
			}
			if i > 0 && packages[i-1] >= pkg {
				t.Errorf("not sorted: %q", packages)
			}
		}
	})
}
