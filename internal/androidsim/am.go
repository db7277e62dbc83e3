package androidsim

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// am is the activity manager's command, as far as a memory test needs it.
func am(c *call) int {
	if c.phone.server() == 0 {
		return c.noService("activity")
	}
	args := c.args[1:]
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
					proc.die(up, proc.backAfter())
				}
			})
		}
		return 0
	case "broadcast":
		c.printf("Broadcasting: Intent { flg=0x400000 }\nBroadcast completed: result=0\n")
		return 0
	case "get-current-user":
		c.printf("0\n")
		return 0
	case "help", "-h", "--help":
		c.printf("%s", amHelp(c.phone.opt.API))
		return 0
	}
	fmt.Fprintf(c.errs, "Unknown command: %s\n", args[0])
	return 255
}

// amHelp says which options of dumpheap this version has.
func amHelp(api int) string {
	options, notes := "[--user <USER_ID> current] [-n]", "      -n: dump native heap instead of managed heap\n"
	if api >= heapGC {
		options += " [-g]"
		notes += "      -g: force GC before dumping the heap\n"
	}
	if api >= heapBitmaps {
		options += " [-b <format>]"
		notes += "      -b <format>: dump contents of bitmaps in the format specified,\n         which can be \"png\", \"jpg\" or \"webp\".\n"
	}
	return "Activity manager (activity) commands:\n  help\n      Print this help text.\n" +
		"  start-activity [-D] [-N] [-W] [-S] <INTENT>\n      Start an Activity.\n" +
		"  dumpheap " + options + "\n          <PROCESS> <FILE>\n      Dump the heap of a process.  The given <PROCESS> argument may\n        be either a process name or pid.  Options are:\n" + notes +
		"  force-stop [--user <USER_ID> | all | current] <PACKAGE>\n      Completely stop the given application package.\n" +
		"  kill [--user <USER_ID> | all | current] <PACKAGE>\n      Kill all background processes associated with the given application.\n"
}

// The versions from which dumpheap knows -g and -b, and from which it waits for
// the end of the dump.
const (
	heapGC      = 28
	heapBitmaps = 35
	heapWaits   = 30
	// heapErases is from when on ART empties a dump that it could not write whole.
	heapErases = 23
)

// dumpTakes is the device time of a heap dump.
const dumpTakes = 2 * time.Second

// each calls f with every process of a package. It is false if there is none.
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
		fmt.Fprintln(c.errs, "Error: Argument expected after \"force-stop\"")
		return 255
	}
	c.phone.each(pkg, func(proc *process, up time.Duration) {
		if proc.alive() {
			proc.die(up, never)
		}
		proc.next = never
	})
	return 0
}

// operand is the first argument that is no option; valued options take the next.
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

// startProcesses starts what is down of a package, if there is a system to do it.
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

func (c *call) startApp(args []string) int {
	component, stop := "", false
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
	pkg, class, ok := strings.Cut(component, "/")
	if !ok {
		fmt.Fprintln(c.errs, "Error: Activity not started, unable to resolve Intent { }")
		return 1
	}
	if stop {
		c.forceStop([]string{pkg})
	}
	if strings.Contains(args[0], "service") {
		c.printf("Starting service: Intent { cmp=%s }\n", component)
	} else {
		c.printf("Starting: Intent { cmp=%s }\n", component)
	}
	found, started := c.phone.startProcesses(pkg)
	switch {
	case !found:
		if strings.HasPrefix(class, ".") {
			class = pkg + class
		}
		fmt.Fprintf(c.errs, "Error type 3\nError: Activity class {%s/%s} does not exist.\n", pkg, class)
		return 1
	case !started && args[0] == "start":
		c.printf("Warning: Activity not started, its current task has been brought to the front\n")
	}
	return 0
}

// dumpHeap is am dumpheap (ActivityManagerShellCommand.runDumpHeap).
func (c *call) dumpHeap(args []string) int {
	var native, collect bool
	api := c.phone.opt.API
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch option := args[0]; {
		case option == "-n":
			native = true
		case option == "-g" && api >= heapGC:
			collect = true
		case (option == "--user" || option == "-b" && api >= heapBitmaps) && len(args) > 1:
			args = args[1:]
		default:
			fmt.Fprintf(c.errs, "Error: Unknown option: %s\n", option)
			return 255
		}
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(c.errs, "Error: Argument expected after \"dumpheap\"")
		return 255
	}
	name := "/data/local/tmp/heapdump-" + c.phone.wall().UTC().Format("20060102-150405") + ".prof"
	if len(args) > 1 {
		name = args[1]
	}
	var w *fileWriter
	if at := clean(c.cwd, name); strings.HasPrefix(at, "/data/local/tmp/") {
		w, _ = c.phone.openWrite(at, c.cred, 0o666, false, false)
	}
	if w == nil {
		fmt.Fprintf(c.errs, "Error: Unable to open file: %s\nConsider using a file under /data/local/tmp/\n", name)
		return 255
	}
	if len(args) < 2 || api >= 26 {
		c.printf("File: %s\n", name)
	}
	found := c.phone.wanted(args[0], false)
	if len(found) == 0 || found[0].native {
		fmt.Fprintf(c.errs, "\nException occurred while executing 'dumpheap':\njava.lang.IllegalArgumentException: Unknown process: %s\n\tat com.android.server.am.ActivityManagerService.dumpHeap(ActivityManagerService.java:16012)\n", args[0])
		return 255
	}
	v := found[0]
	if c.phone.opt.BuildType == "user" && (v.app == nil || !v.app.Debuggable) {
		c.out.Flush()
		fmt.Fprintf(c.errs, "Security exception: Process not debuggable: ProcessRecord{%x %d:%s/%s}\n", hashText(v.name)&0xfffffff, v.pid, v.name, userName(v.uid))
		return 255
	}
	return c.writeHeap(w, v, native, collect)
}

func (c *call) writeHeap(w *fileWriter, v view, native, collect bool) int {
	if collect {
		c.phone.signal(cred{uid: uidRoot}, v.pid, sigUSR1)
	}
	up := c.phone.Uptime()
	w.growing(up, up+maxWait)
	var err error
	switch {
	case native:
		_, err = fmt.Fprintf(w, "Android Native Heap Dump v1.2\n\nBuild fingerprint: 'simulated'\n\nTotal memory: %d\nEND\n", v.memory().rows[rowNative].privateDirty<<10)
	case c.phone.opt.DumpHeap != nil:
		err = c.phone.opt.DumpHeap(w, Heap{
			Process: v.name, PID: v.pid, Up: v.up, Age: v.age, API: c.phone.opt.API, Java: v.memory().summarize(true).java << 10,
		})
	default:
		err = emptyDump(w, c.phone.wall())
	}
	// Whether the app could write is in its log alone: am is told that it has
	// finished (ActivityThread.handleDumpHeap), and what is left is an empty file
	// (art/runtime/hprof/hprof.cc, DumpToFile, FdFile::Erase) or one that is cut.
	if err != nil && !native && c.phone.opt.API >= heapErases {
		w.erase()
	}
	w.growing(up, up+dumpTakes)
	if c.phone.opt.API < heapWaits {
		return 0 // the file grows after the command has returned
	}
	c.printf("Waiting for dump to finish...\n")
	c.out.Flush()
	if v.frozen || c.phone.now().wait(c.ctx, dumpTakes) != nil {
		<-c.ctx.Done()
		return statusOf(c.ctx)
	}
	return 0
}

// growing makes the file one that is being written from since until the time given.
func (w *fileWriter) growing(since, until time.Duration) {
	if w.node == nil {
		return
	}
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.node.since, w.node.until = since, until
}

// erase empties the file.
func (w *fileWriter) erase() {
	if w.node == nil {
		return
	}
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.store.used -= w.node.counts()
	w.node.data = nil
}

// noService is what `cmd` says when system_server does not run (frameworks/native
// cmds/cmd/cmd.cpp), which am, pm and settings go through since Android 8.
func (c *call) noService(name string) int {
	if c.phone.opt.API < 26 {
		fmt.Fprintf(c.errs, "Error: Unable to connect to %s manager; is the system running?\n", name)
		return 1
	}
	fmt.Fprintf(c.errs, "cmd: Can't find service: %s\n", name)
	return 20
}

// emptyDump is a heap dump without an object: the header, an empty segment and
// HEAP_DUMP_END (art/runtime/hprof/hprof.cc).
func emptyDump(w io.Writer, now time.Time) error {
	b := append([]byte("JAVA PROFILE 1.0.3"), 0)
	b = binary.BigEndian.AppendUint32(b, 4)
	b = binary.BigEndian.AppendUint64(b, uint64(now.UnixMilli()))
	for _, tag := range []byte{0x1c, 0x2c} {
		b = append(b, tag, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	_, err := w.Write(b)
	return err
}

// pm lists packages and where they are.
func pm(c *call) int {
	if c.phone.server() == 0 {
		return c.noService("package")
	}
	args := c.args[1:]
	switch {
	case len(args) >= 2 && args[0] == "list" && args[1] == "packages":
		c.listPackages(args[2:])
		return 0
	case len(args) >= 2 && args[0] == "path":
		if _, ok := c.phone.app(args[1], 0); ok {
			c.printf("package:/data/app/%s-1/base.apk\n", args[1])
			return 0
		}
		return 1
	}
	fmt.Fprintln(c.errs, "Error: Unknown command")
	return 255
}

// systemPackages are on the system's partition; the apps of Options are not.
var systemPackages = []string{"com.android.systemui", "com.android.phone"}

// listPackages is pm list packages (PackageManagerShellCommand.runListPackages):
// -3 leaves those of the system out, -s the others, and -d all that are enabled.
func (c *call) listPackages(args []string) {
	filter := operand(args, "--user", "--uid")
	show := func(pkg string) {
		if !slices.Contains(args, "-d") && strings.Contains(pkg, filter) {
			c.printf("package:%s\n", pkg)
		}
	}
	if !slices.Contains(args, "-s") {
		for _, a := range c.phone.opt.Apps {
			show(a.Package)
		}
	}
	if !slices.Contains(args, "-3") {
		for _, pkg := range systemPackages {
			show(pkg)
		}
	}
}
