package hostdevice

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/hostdevice/state"
)

// failed is the exit code of a failed Android shell command (-1).
const failed = 255

// am runs the commands of the activity manager
// (ActivityManagerShellCommand.java).
func (c *call) am(ctx context.Context) int {
	switch verb := c.next(); verb {
	case "start", "start-activity":
		return c.startActivity(ctx)
	case "force-stop", "kill", "crash":
		return c.endApp(verb)
	case "dumpheap":
		return c.dumpHeap(ctx)
	case "help", "-h", "--help", "":
		c.print("%s", amHelp)
		if c.device.hasForcedCollection() {
			c.print("%s", amHelpForce)
		}
		return 0
	default:
		c.complain("Unknown command: %s\n", verb)
		return failed
	}
}

const amHelp = `Activity manager (activity) commands:
  help
      Print this help text.
  start-activity [-W] [-S] [--user <USER_ID> | current] <INTENT>
      Start an Activity.  Options are:
      -W: wait for launch to complete
      -S: force stop the target app before starting the activity
  force-stop [--user <USER_ID> | all | current] <PACKAGE>
      Completely stop the given application package.
  kill [--user <USER_ID> | all | current] <PACKAGE>
      Kill all background processes associated with the given application.
  crash [--user <USER_ID>] <PACKAGE|PID>
      Induce a VM crash in the specified package or process
  dumpheap [--user <USER_ID> current] [-n] [-g] <PROCESS> <FILE>
      Dump the heap of a process.  The given <PROCESS> argument may
        be either a process name or pid.  Options are:
      -n: dump native heap instead of managed heap
      --user <USER_ID> | current: When supplying a process name,
          specify user of process to dump; uses current user if not specified.
`

const amHelpForce = "      -g: force GC before dumping the heap\n"

// hasForcedCollection reports whether am dumpheap supports -g, which was added
// around Android 9.
func (d *Device) hasForcedCollection() bool { return d.options.API >= 28 }

// intent holds the parsed command line of `am start`.
type intent struct {
	component    string
	wait, fresh  bool
	extras       bool
	leak         leak
	unknown, bad string
}

func (c *call) parseIntent() intent {
	in := intent{leak: leak{mbPerHour: defaultRate}}
	for len(c.args) > 0 {
		switch word := c.next(); word {
		case "-n":
			in.component = c.next()
		case "-W":
			in.wait = true
		case "-S":
			in.fresh = true
		case "-a", "-c", "-d", "-t", "-f", "--user", "--display":
			c.next()
		case "--es", "--ei", "--el", "--ef":
			in.extra(c.next(), c.next())
		case "--ez":
			c.next()
			c.next()
			in.extras = true
		default:
			in.unknown = word
			return in
		}
	}
	return in
}

// maxExtra is the maximum value of an extra: a rate in MB/h or a time in
// seconds that exceeds it must be a typo.
const maxExtra = 1e7

func (in *intent) extra(key, value string) {
	in.extras = true
	if key != "mb_per_h" && key != "for_s" {
		return
	}
	f, err := strconv.ParseFloat(value, 64)
	if err != nil || !(f >= 0 && f <= maxExtra) {
		in.bad = key + "=" + value
		return
	}
	if key == "for_s" {
		in.leak.seconds = f
		return
	}
	in.leak.mbPerHour = f
}

func (c *call) startActivity(ctx context.Context) int {
	began := time.Now()
	in := c.parseIntent()
	switch {
	case in.unknown != "":
		c.complain("Error: Unknown option: %s\n", in.unknown)
		return failed
	case in.bad != "":
		c.complain("Error: bad extra: %s\n", in.bad)
		return failed
	}
	extras := ""
	if in.extras {
		extras = " (has extras)"
	}
	c.print("Starting: Intent { cmp=%s%s }\n", in.component, extras)
	pkg, class, _ := strings.Cut(in.component, "/")
	modes := activities[strings.TrimPrefix(class, pkg)]
	if pkg != c.device.options.Package || modes == nil {
		c.complain("Error type 3\nError: Activity class {%s/%s} does not exist.\n", pkg,
			strings.Replace(class, ".", pkg+".", 1))
		return 1
	}
	if in.fresh {
		c.device.app.stop(c.device.app.list(), forceStopped(pkg))
	}
	fresh := false
	for _, mode := range modes {
		started, err := c.device.app.start(ctx, mode, in.leak)
		if err != nil {
			c.complain("Error: Activity not started: %v\n", err)
			return 1
		}
		fresh = fresh || started
	}
	if !fresh {
		c.complain("Warning: Activity not started, its current task has been brought to the front\n")
	}
	if in.wait {
		took := time.Since(began).Milliseconds()
		c.print("Status: ok\nLaunchState: COLD\nActivity: %s\nTotalTime: %d\nWaitTime: %[2]d\nComplete\n", in.component,
			took)
	}
	return 0
}

// endApp terminates all processes of a package, or the process with the given
// pid or name.
func (c *call) endApp(verb string) int {
	target := c.next()
	if target == "--user" {
		c.next()
		target = c.next()
	}
	if target == "" {
		c.complain("Exception occurred while executing:\njava.lang.IllegalArgumentException: Argument expected after "+
			"\"%s\"\n", c.Args[1])
		return failed
	}
	list := c.device.app.list()
	if target != c.device.options.Package {
		list = nil
		if p, ok := c.device.app.find(target); ok {
			list = append(list, p)
		}
	}
	why := forceStopped(c.device.options.Package)
	switch verb {
	case "kill":
		why = inBackground
	case "crash":
		why = byShell
	}
	c.device.app.stop(list, why)
	return 0
}

// noNativeDump is the content of the file that -n writes unless the memory
// allocator is configured to record allocations (core/jni/android_os_Debug.cpp,
// dumpNativeHeap).
const noNativeDump = `Native heap dump not available. To enable, run these commands (requires root):
# adb shell stop
# adb shell setprop libc.debug.malloc.options backtrace
# adb shell start
`

// dumpHeap implements `am dumpheap [--user U] [-n] [-g] PROCESS [FILE]`. It
// waits until the dump ends, like Android 12 and later.
func (c *call) dumpHeap(ctx context.Context) int {
	collect, native := false, false
	for len(c.args) > 0 && strings.HasPrefix(c.args[0], "-") {
		switch word := c.next(); {
		case word == "-g" && c.device.hasForcedCollection():
			collect = true
		case word == "-n":
			native = true
		case word == "--user":
			c.next()
		default:
			c.complain("Error: Unknown option: %s\n", word)
			return failed
		}
	}
	target, file := c.next(), c.next()
	if file == "" {
		file = path.Join(c.device.dir.Shared(), "heapdump-"+time.Now().Format("20060102-150405")+".prof")
	}
	p, ok := c.device.app.find(target)
	if !ok {
		c.complain("\nException occurred while executing 'dumpheap':\njava.lang.IllegalArgumentException: Unknown "+
			"process: %s\n", target)
		return failed
	}
	if !c.device.debuggable() {
		c.complain("Security exception: Process not debuggable: ProcessRecord{f23cc4a %d:%s/u0a123}\n", p.pid, p.name)
		return failed
	}
	file = c.device.local(file) // a real adbd does not replace paths
	shown := c.device.shown(file)
	c.print("File: %s\n", shown)
	// The file must be directly in the shared directory: below it, the shell
	// could have created a symbolic link to another directory, and jcmd would
	// write there.
	if clean := filepath.Clean(file); filepath.Dir(clean) != c.device.dir.Shared() {
		c.complain("Error: Unable to open file: %s\nConsider using a file under %s/\n", shown, state.SharedDir)
		return failed
	}
	c.print("Waiting for dump to finish...\n")
	if err := c.writeDump(ctx, p, filepath.Clean(file), native, collect); err != nil {
		c.complain("Error: %v\n", err)
		return failed
	}
	return 0
}

func (c *call) writeDump(ctx context.Context, p *appProcess, file string, native, collect bool) error {
	if !native {
		return c.device.app.dump(ctx, p, file, !collect)
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(file, []byte(noNativeDump), 0o644); err != nil {
		return err
	}
	return os.Chown(file, c.device.options.AppUID, -1)
}
