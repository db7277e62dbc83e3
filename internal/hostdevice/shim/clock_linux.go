package shim

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/leakgate/leakgate/internal/hostdevice/state"
)

// cat prints the device's clock for `cat /proc/uptime`; otherwise it runs the
// real cat.
func cat(c command) int {
	if len(c.args) != 1 || c.args[0] != "/proc/uptime" {
		return realTool(c, "cat")
	}
	clock, err := c.dir.Clock()
	if err != nil {
		return fail(c.err, "cat", err)
	}
	now, err := clock.Now()
	if err != nil {
		return fail(c.err, "cat", err)
	}
	io.WriteString(c.out, state.Uptime(now))
	return 0
}

// realTool replaces the process with this machine's tool of the given name.
func realTool(c command, name string) int {
	for _, dir := range []string{"/usr/bin", "/bin"} {
		err := syscall.Exec(filepath.Join(dir, name), append([]string{name}, c.args...), os.Environ())
		if err != syscall.ENOENT {
			return fail(c.err, name, err)
		}
	}
	return fail(c.err, name, syscall.ENOENT)
}

// getprop prints a property, or all properties as [key]: [value].
func getprop(c command) int {
	list, err := c.dir.Properties()
	if err != nil {
		return fail(c.err, "getprop", err)
	}
	if len(c.args) == 0 {
		for _, p := range list {
			io.WriteString(c.out, "["+p.Key+"]: ["+p.Value+"]\n")
		}
		return 0
	}
	value := strings.Join(c.args[1:min(2, len(c.args))], "")
	for _, p := range list {
		if p.Key == c.args[0] && p.Value != "" {
			value = p.Value
		}
	}
	io.WriteString(c.out, value+"\n")
	return 0
}
