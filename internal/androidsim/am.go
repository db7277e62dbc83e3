package androidsim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
)

// am implements the am command, as far as memory tests need it.
func am(c *call) int {
	if len(c.Args) > 1 && c.Args[1] == "instrument" {
		return c.instrument(c.Args[2:]) // a separate program (cmds/am/am)
	}
	if c.phone.server() == 0 {
		return c.noService("activity")
	}
	args := c.Args[1:]
	if len(args) == 0 {
		args = []string{"help"}
	}
	switch args[0] {
	case "dumpheap":
		return c.dumpHeap(args[1:])
	case "force-stop":
		return c.forceStop(args[1:])
	case "start", "start-activity", "startservice", "start-service", "start-foreground-service":
		return c.startApp(args)
	case "kill":
		for _, pkg := range args[1:] {
			c.phone.each(pkg, func(proc *process, up time.Duration) {
				if proc.alive() {
					c.phone.recordExit(proc, up,
						cause{reason: androidtext.UserRequested, subreason: 24, description: "kill background"})
					proc.die(up, proc.backAfter())
				}
			})
		}
		return 0
	case "broadcast":
		c.Printf("Broadcasting: Intent { flg=0x400000 }\nBroadcast completed: result=0\n")
		return 0
	case "memory-limiter":
		return c.memoryLimiter(args[1:])
	case "get-current-user":
		c.Printf("0\n")
		return 0
	case "help", "-h", "--help":
		c.Printf("%s", amHelp(c.phone.opt.API))
		return 0
	}
	fmt.Fprintf(c.Errs, "Unknown command: %s\n", args[0])
	return 255
}

func amHelp(api int) string {
	options, notes := "[--user <USER_ID> current] [-n]", "      -n: dump native heap instead of managed heap\n"
	if api >= heapGC {
		options += " [-g]"
		notes += "      -g: force GC before dumping the heap\n"
	}
	if api >= heapBitmaps {
		options += " [-b <format>]"
		notes += "      -b <format>: dump contents of bitmaps in the format specified,\n         which can be " +
			"\"png\", \"jpg\" or \"webp\".\n"
	}
	return "Activity manager (activity) commands:\n  help\n      Print this help text.\n" +
		"  start-activity [-D] [-N] [-W] [-S] <INTENT>\n      Start an Activity.\n" +
		"  dumpheap " + options +
		"\n          <PROCESS> <FILE>\n      Dump the heap of a process.  The given <PROCESS> argument may\n        " +
		"be either a process name or pid.  Options are:\n" + notes +
		"  instrument [-r] [-e <NAME> <VALUE>] [-w] [--user <USER_ID> | current] <COMPONENT>\n      Start an " +
		"Instrumentation.\n" +
		"  force-stop [--user <USER_ID> | all | current] <PACKAGE>\n      Completely stop the given application " +
		"package.\n" +
		"  kill [--user <USER_ID> | all | current] <PACKAGE>\n      Kill all background processes associated with " +
		"the given application.\n"
}

// each calls f for every process of a package. It returns false if the package
// has no process.
func (p *Phone) each(pkg string, f func(*process, time.Duration)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	up := p.clock.up()
	p.advance(up)
	found := false
	for _, proc := range p.procs {
		if proc.app != nil && proc.fixed == 0 && proc.app.Package == pkg {
			found = true
			f(proc, up)
		}
	}
	return found
}

func (c *call) forceStop(args []string) int {
	pkg := operand(args, "--user")
	if pkg == "" {
		fmt.Fprintln(c.Errs, "Error: Argument expected after \"force-stop\"")
		return 255
	}
	c.phone.mu.Lock()
	defer c.phone.mu.Unlock()
	up := c.phone.clock.up()
	c.phone.advance(up)
	c.phone.stopPackage(pkg, up, fmt.Sprintf("from pid %d", c.Leader.PID))
	return 0
}

// stopPackage kills the processes of a package; they stay down until they are
// started again (ActivityManagerService.forceStopPackageLocked). The caller
// must hold the lock.
func (p *Phone) stopPackage(pkg string, at time.Duration, reason string) {
	why := cause{reason: androidtext.UserRequested, subreason: 21, description: "stop " + pkg + stopReason + reason}
	for _, proc := range p.procs {
		if proc.app == nil || proc.fixed != 0 || proc.app.Package != pkg {
			continue
		}
		if proc.alive() {
			p.recordExit(proc, at, why)
			proc.die(at, never)
		}
		proc.next = never
	}
}

// stopReason precedes the reason in the description of a stopped process.
const stopReason = " due to "

// operand returns the first argument that is not an option; the options in
// valued take a value.
func operand(args []string, valued ...string) string {
	for i := 0; i < len(args); i++ {
		skip := false
		for _, v := range valued {
			skip = skip || args[i] == v
		}
		switch {
		case skip:
			i++
		case !strings.HasPrefix(args[i], "-"):
			return args[i]
		}
	}
	return ""
}

// startProcesses starts those processes of a package that are not running, if
// system_server is running.
func (p *Phone) startProcesses(pkg string) (found, started bool) {
	system := p.server() != 0
	found = p.each(pkg, func(proc *process, up time.Duration) {
		if system && !proc.alive() {
			p.spawn(proc, up)
			started = true
		}
	})
	return found, started
}

// componentIn returns the component in the arguments of am start, and whether
// the arguments contain -S.
func componentIn(args []string) (component string, stop bool) {
	for i := 1; i < len(args); i++ {
		switch {
		case args[i] == "-S":
			stop = true
		case args[i] == "-n" && i+1 < len(args):
			i++
			component = args[i]
		case strings.Contains(args[i], "/") && !strings.Contains(args[i], ":"):
			component = args[i]
		}
	}
	return component, stop
}

func (c *call) startApp(args []string) int {
	ofActivity := !strings.Contains(args[0], "service")
	if ofActivity {
		if status, ours := c.startScreen(args); ours {
			return status
		}
	}
	component, stop := componentIn(args)
	pkg, class, ok := strings.Cut(component, "/")
	if !ok {
		fmt.Fprintln(c.Errs, "Error: Activity not started, unable to resolve Intent { }")
		return 1
	}
	if stop {
		c.forceStop([]string{pkg})
	}
	if !ofActivity {
		c.Printf("Starting service: Intent { cmp=%s }\n", component)
	} else {
		c.Printf("Starting: Intent { cmp=%s }\n", component)
	}
	found, started := c.phone.startProcesses(pkg)
	if found && ofActivity {
		c.phone.toFront(pkg)
	}
	switch {
	case !found:
		if strings.HasPrefix(class, ".") {
			class = pkg + class
		}
		fmt.Fprintf(c.Errs, "Error type 3\nError: Activity class {%s/%s} does not exist.\n", pkg, class)
		return 1
	case !started && args[0] == "start":
		c.Printf("Warning: Activity not started, its current task has been brought to the front\n")
	}
	return 0
}

// noService prints the error of `cmd` when system_server is not running
// (frameworks/native cmds/cmd/cmd.cpp); am and pm have used cmd since Android
// 8.
func (c *call) noService(name string) int {
	if c.phone.opt.API < 26 {
		fmt.Fprintf(c.Errs, "Error: Unable to connect to %s manager; is the system running?\n", name)
		return 1
	}
	fmt.Fprintf(c.Errs, "cmd: Can't find service: %s\n", name)
	return 20
}

// pm implements the pm command: it lists packages and their paths.
func pm(c *call) int {
	if c.phone.server() == 0 {
		return c.noService("package")
	}
	args := c.Args[1:]
	switch {
	case len(args) >= 2 && args[0] == "list" && args[1] == "packages":
		c.listPackages(args[2:])
		return 0
	case len(args) >= 2 && args[0] == "list" && args[1] == "instrumentation":
		c.listInstrumentations(args[2:])
		return 0
	case len(args) >= 2 && args[0] == "path":
		_, ok := c.phone.app(args[1], 0)
		if ok || slices.Contains(c.phone.testPackages(), args[1]) {
			c.Printf("package:/data/app/%s-1/base.apk\n", args[1])
			return 0
		}
		return 1
	}
	fmt.Fprintln(c.Errs, "Error: Unknown command")
	return 255
}

// systemPackages lists the packages on the system partition other than those in
// Options.Apps.
var systemPackages = []string{"com.android.systemui", "com.android.phone"}

// listPackages implements pm list packages
// (PackageManagerShellCommand.runListPackages): -3 omits system packages, -s
// omits the others, and -d omits all enabled packages.
func (c *call) listPackages(args []string) {
	filter := operand(args, "--user", "--uid")
	show := func(pkg string) {
		if !slices.Contains(args, "-d") && strings.Contains(pkg, filter) {
			c.Printf("package:%s\n", pkg)
		}
	}
	if !slices.Contains(args, "-s") {
		for _, pkg := range c.phone.Packages() {
			show(pkg)
		}
	}
	if !slices.Contains(args, "-3") {
		for _, pkg := range systemPackages {
			show(pkg)
		}
	}
}

// testPackages returns the packages that contain instrumentations but no app.
func (p *Phone) testPackages() (out []string) {
	for _, i := range p.opt.Instrumentations {
		if _, app := p.app(i.Package, 0); !app && !slices.Contains(out, i.Package) {
			out = append(out, i.Package)
		}
	}
	return out
}

// listInstrumentations implements pm list instrumentation
// (PackageManagerShellCommand.runListInstrumentation).
func (c *call) listInstrumentations(args []string) {
	target := operand(args)
	for _, i := range c.phone.opt.Instrumentations {
		if target == "" || i.Target == target {
			c.Printf("instrumentation:%s (target=%s)\n", i.component(), i.Target)
		}
	}
}
