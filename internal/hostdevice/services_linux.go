package hostdevice

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/leakgate/leakgate/internal/hostdevice/control"
	"github.com/leakgate/leakgate/internal/hostdevice/state"
)

// serve runs a command that a system service handles on a phone, such as am.
func (d *Device) serve(ctx context.Context, r control.Request) (exit int) {
	if !d.enter() {
		return killed
	}
	defer d.running.Done()
	c := call{Request: r, device: d, args: r.Args[1:]}
	switch r.Args[0] {
	case "am":
		return c.am(ctx)
	case "dumpsys":
		return c.dumpsys()
	case "pm":
		return c.pm()
	case "run-as":
		return c.runAs(ctx)
	}
	c.complain("%s: not found\n", r.Args[0])
	return 127
}

// call is a command that serve runs; args are the arguments that have not been
// parsed yet.
type call struct {
	control.Request
	device *Device
	args   []string
}

func (c *call) print(format string, a ...any)    { fmt.Fprintf(c.Stdout, format, a...) }
func (c *call) complain(format string, a ...any) { fmt.Fprintf(c.Stderr, format, a...) }

// next returns and removes the next argument, or "" if there is none.
func (c *call) next() string {
	if len(c.args) == 0 {
		return ""
	}
	arg := c.args[0]
	c.args = c.args[1:]
	return arg
}

// pm supports `list packages [FILTER]` and `path PACKAGE`.
func (c *call) pm() int {
	name := c.device.options.Package
	switch verb := c.next(); {
	case verb == "list" && c.next() == "packages":
		for _, filter := range c.args {
			if !strings.HasPrefix(filter, "-") && !strings.Contains(name, filter) {
				return 0
			}
		}
		c.print("package:%s\n", name)
		return 0
	case verb == "path":
		if c.next() != name {
			return 1
		}
		c.print("package:/data/app/%s/base.apk\n", name)
		return 0
	default:
		c.complain("Unknown command: %s\n", verb)
		return 255
	}
}

// debuggable reports whether am dumpheap may dump the app's heap.
func (d *Device) debuggable() bool { return !d.options.Released || d.options.BuildType != "user" }

// runAs runs a program as the app's user (system/core run-as/run-as.cpp).
func (c *call) runAs(ctx context.Context) int {
	pkg := c.next()
	if pkg == "" {
		c.complain("run-as: usage: run-as <package-name> [--user <uid>] <command> [<args>]\n")
		return 1
	}
	if len(c.args) > 1 && c.args[0] == "--user" {
		c.args = c.args[2:]
	}
	if pkg != c.device.options.Package {
		c.complain("run-as: unknown package: %s\n", pkg)
		return 1
	}
	// Unlike am dumpheap, run-as checks the app's debuggable flag on every
	// build.
	if c.device.options.Released {
		c.complain("run-as: package not debuggable: %s\n", pkg)
		return 1
	}
	if len(c.args) == 0 {
		c.args = []string{"sh"}
	}
	return c.runTool(ctx)
}

func (c *call) runTool(ctx context.Context) int {
	d := c.device
	for i, arg := range c.args {
		c.args[i] = d.local(arg) // a real adbd does not replace paths
	}
	program := c.args[0]
	if !strings.Contains(program, "/") {
		program = filepath.Join(d.dir.Bin(), program)
	}
	cmd := exec.Command(program)
	cmd.Args = c.args
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = d.dir.Home(), c.Stdin, c.Stdout, c.Stderr
	cmd.Env = append(d.env[:len(d.env):len(d.env)], state.CommandVariable+"="+c.Token)
	if err := d.starter.start(cmd, d.options.AppUID, os.Getuid()); err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		c.complain("run-as: exec failed for %s: %v\n", c.args[0], err)
		return 1
	}
	stop := context.AfterFunc(ctx, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer stop()
	return exitCode(cmd.Wait())
}
