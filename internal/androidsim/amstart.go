package androidsim

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/ksh"
)

type startCall struct {
	wait, stop bool
	// repeat is the number of starts; 0 means one.
	repeat int
	intent intent
}

type intent struct {
	action, data, mime string
	categories         []string
	flags              uint32
	// pkg is set by -p or a package name alone; component is the package of the
	// component, and className is its full class name.
	pkg                  string
	component, className string
	extras               bool
}

// Flags of android.content.Intent that decide whether a new instance starts.
const (
	singleTop uint32 = 0x20000000
	clearTop  uint32 = 0x04000000
	clearTask uint32 = 0x00008000
)

// intentFlags maps options to the flags they set (Intent.parseCommandArgs).
var intentFlags = map[string]uint32{
	"--grant-read-uri-permission": 1, "--grant-write-uri-permission": 2, "--grant-persistable-uri-permission": 0x40,
	"--grant-prefix-uri-permission": 0x80,
	"--exclude-stopped-packages":    0x10, "--include-stopped-packages": 0x20, "--debug-log-resolution": 8,
	"--activity-brought-to-front": 0x00400000, "--activity-clear-top": clearTop,
	"--activity-clear-when-task-reset": 0x00080000,
	"--activity-exclude-from-recents":  0x00800000, "--activity-launched-from-history": 0x00100000,
	"--activity-multiple-task": 0x08000000,
	"--activity-no-animation":  0x00010000, "--activity-no-history": 0x40000000,
	"--activity-no-user-action":  0x00040000,
	"--activity-previous-is-top": 0x01000000, "--activity-reorder-to-front": 0x00020000,
	"--activity-reset-task-if-needed": 0x00200000,
	"--activity-single-top":           singleTop, "--activity-clear-task": clearTask,
	"--activity-task-on-home": 0x00004000, "--activity-match-external": 0x00000800,
}

// startSwitches lists the options without a value that have no effect here, and
// startValues lists such options with a value
// (ActivityManagerShellCommand.makeIntent). extraValues is the number of values
// of each kind of extra.
var (
	startSwitches = map[string]bool{
		"-D": true, "-N": true, "--streaming": true, "--track-allocation": true, "--task-overlay": true,
		"--lock-task":                        true,
		"--allow-background-activity-starts": true, "--splashscreen-show-icon": true, "--dismiss-keyguard": true,
		"--selector": true,
	}
	startValues = map[string]bool{
		"-P": true, "--start-profiler": true, "--sampling": true, "--attach-agent": true, "--attach-agent-bind": true,
		"--user":                true,
		"--receiver-permission": true, "--display": true, "--windowingMode": true, "--activityType": true,
		"--task": true, "-i": true,
	}
	extraValues = map[string]int{
		"-e": 2, "--es": 2, "--esn": 1, "--ei": 2, "--eu": 2, "--ecn": 2, "--eia": 2, "--eial": 2, "--el": 2,
		"--ela": 2, "--elal": 2,
		"--ef": 2, "--efa": 2, "--efal": 2, "--esa": 2, "--esal": 2, "--ez": 2, "--ed": 2, "--eda": 2, "--edal": 2,
	}
)

// maxRepeat bounds the number of starts of one command.
const maxRepeat = 10_000

type startParser struct {
	args []string
	last string
	out  startCall
	// thrown is the exception that aborts the command.
	thrown string
}

// parseStart parses the arguments (ActivityManagerShellCommand.makeIntent and
// Intent.parseCommandArgs). If the arguments are invalid, thrown is the
// exception.
func parseStart(args []string) (o startCall, thrown string) {
	p := &startParser{args: args}
	for p.thrown == "" && len(p.args) > 0 && strings.HasPrefix(p.args[0], "-") {
		option := p.next()
		if option == "--" {
			break
		}
		p.option(option)
	}
	p.operand()
	return p.out, p.thrown
}

func (p *startParser) next() string {
	if len(p.args) == 0 {
		p.throw("IllegalArgumentException", "Argument expected after \"%s\"", p.last)
		return ""
	}
	p.last, p.args = p.args[0], p.args[1:]
	return p.last
}

// throw records the first exception.
func (p *startParser) throw(class, format string, args ...any) {
	if p.thrown == "" {
		p.thrown = "java.lang." + class + ": " + fmt.Sprintf(format, args...)
	}
}

func (p *startParser) option(option string) {
	in := &p.out.intent
	flag, isFlag := intentFlags[option]
	extras, isExtra := extraValues[option]
	switch {
	case option == "-W":
		p.out.wait = true
	case option == "-S":
		p.out.stop = true
	case option == "-R":
		p.out.repeat = min(max(int(p.number(p.next(), 10)), 0), maxRepeat)
	case option == "-a":
		in.action = p.next()
	case option == "-d":
		in.data = p.next()
	case option == "-t":
		in.mime = p.next()
	case option == "-c":
		in.categories = append(in.categories, p.next())
	case option == "-p":
		in.pkg = p.next()
	case option == "-n":
		p.component(p.next())
	case option == "-f":
		in.flags = uint32(p.number(p.next(), 0)) // Intent.setFlags
	case isFlag:
		in.flags |= flag
	case isExtra:
		for range extras {
			p.next()
		}
		in.extras = true
	case startValues[option]:
		p.next()
	case !startSwitches[option]:
		p.throw("IllegalArgumentException", "Unknown option: %s", option)
	}
}

// number implements Integer.parseInt or, with base 0, Integer.decode.
func (p *startParser) number(text string, base int) int64 {
	n, err := strconv.ParseInt(text, base, 64)
	if (err != nil || n != int64(int32(n))) && p.thrown == "" {
		p.throw("NumberFormatException", "For input string: \"%s\"", text)
		return 0
	}
	return n
}

func (p *startParser) component(text string) {
	pkg, class, ok := strings.Cut(text, "/")
	if !ok || class == "" {
		p.throw("IllegalArgumentException", "Bad component name: %s", text)
		return
	}
	if strings.HasPrefix(class, ".") {
		class = pkg + class
	}
	p.out.intent.component, p.out.intent.className = pkg, class
}

// operand parses the argument after the options: a URI, component or package.
func (p *startParser) operand() {
	in := &p.out.intent
	switch {
	case p.thrown != "":
	case len(p.args) == 0:
		if in.action == "" && in.data == "" && in.mime == "" && in.categories == nil && in.pkg == "" &&
			in.className == "" {
			p.throw("IllegalArgumentException", "No intent supplied")
		}
	case strings.Contains(p.args[0], ":"):
		in.data = p.next()
	case strings.Contains(p.args[0], "/"):
		p.component(p.next())
		in.launches()
	default:
		in.pkg = p.next()
		in.launches()
	}
}

// launches sets the action and category of a launcher icon, unless the intent
// already has others.
func (in *intent) launches() {
	if in.action == "" {
		in.action = "android.intent.action.MAIN"
	}
	if in.categories == nil {
		in.categories = []string{"android.intent.category.LAUNCHER"}
	}
}

// target returns the package to start, or "" if the intent names none.
func (in intent) target() string {
	if in.component != "" {
		return in.component
	}
	return in.pkg
}

// String implements Intent.toString.
func (in intent) String() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if in.action != "" {
		add("act=%s", in.action)
	}
	if in.categories != nil {
		add("cat=[%s]", strings.Join(in.categories, ","))
	}
	if in.data != "" {
		add("dat=%s", in.data)
	}
	if in.mime != "" {
		add("typ=%s", in.mime)
	}
	if in.flags != 0 {
		add("flg=0x%x", in.flags)
	}
	if in.pkg != "" {
		add("pkg=%s", in.pkg)
	}
	if in.className != "" {
		add("cmp=%s", shortComponent(in.component, in.className))
	}
	if in.extras {
		add("(has extras)")
	}
	return "Intent { " + strings.Join(parts, " ") + " }"
}

func shortComponent(pkg, class string) string {
	if rest, ok := strings.CutPrefix(class, pkg); ok && strings.HasPrefix(rest, ".") {
		class = rest
	}
	return pkg + "/" + class
}

// Device times of am start: for the command itself, for stopping the app first,
// and for drawing the screen after a cold or a warm start.
const (
	startTakes  = 60 * time.Millisecond
	stopTakes   = 250 * time.Millisecond
	coldStart   = 480 * time.Millisecond
	warmStart   = 120 * time.Millisecond
	usualLaunch = "com.android.launcher3"
)

// startScreen implements am start for an app with screens (runStartActivity of
// ActivityManagerShellCommand). If the app has no screens, ours is false and
// nothing is started.
func (c *call) startScreen(args []string) (status int, ours bool) {
	o, thrown := parseStart(args[1:])
	pkg := o.intent.target()
	if pkg == "" {
		component, _ := componentIn(args)
		pkg, _, _ = strings.Cut(component, "/")
	}
	app, _ := c.phone.app(pkg, 0)
	if app.Screens == nil {
		return 0, false
	}
	if thrown != "" {
		return c.refuseStart(args[0], thrown), true
	}
	for n := range max(o.repeat, 1) {
		if n > 0 {
			c.phone.press(keyBack)
		}
		if status := c.startOnce(app, o); status != 0 {
			return status, true
		}
	}
	return 0, true
}

// refuseStart prints the error for invalid arguments
// (android.os.ShellCommand.exec; before Android 8
// com.android.internal.os.BaseCommand.run).
func (c *call) refuseStart(command, thrown string) int {
	if c.phone.opt.API < 26 {
		_, message, _ := strings.Cut(thrown, ": ")
		return c.illegal(message)
	}
	fmt.Fprintf(c.Errs,
		"\nException occurred while executing '%s':\n%s\n\tat "+
			"android.content.Intent.parseCommandArgs(Intent.java:8047)\n\tat "+
			"com.android.server.am.ActivityManagerShellCommand.makeIntent(ActivityManagerShellCommand.java:446)\n",
		command, thrown)
	return 255
}

func (c *call) startOnce(app App, o startCall) int {
	p := c.phone
	if o.stop {
		c.Printf("Stopping: %s\n", app.Package)
		c.forceStop([]string{app.Package})
		if c.pass(stopTakes) != nil {
			return ksh.Status(c.Ctx)
		}
	}
	c.Printf("Starting: %s\n", o.intent)
	var out io.Writer = c.Errs
	if o.wait {
		out = c.Out
	}
	class := o.intent.className
	if o.intent.component == "" {
		class = app.class(app.Screens[0].Class)
	}
	screen := app.screen(class)
	if screen < 0 {
		c.Out.Flush()
		fmt.Fprintf(out, "Error type 3\nError: Activity class {%s/%s} does not exist.\n", app.Package, class)
		return 1
	}
	if c.pass(startTakes) != nil {
		return ksh.Status(c.Ctx)
	}
	_, started := p.startProcesses(app.Package)
	p.mu.Lock()
	up := p.clock.up()
	p.advance(up)
	how := opensCrash
	if proc := p.uiProcess(app.Package); proc != nil && proc.alive() {
		how = p.open(proc, screen, o.intent.flags, up)
	}
	p.mu.Unlock()
	if how == deliversToTop {
		c.Out.Flush()
		fmt.Fprintln(out,
			"Warning: Activity not started, intent has been delivered to currently running top-most instance.")
	}
	if !o.wait {
		return 0
	}
	return c.reportLaunch(shortComponent(app.Package, class), how, started)
}

// pass flushes the output and waits for the given device time.
func (c *call) pass(t time.Duration) error {
	c.Out.Flush()
	return c.phone.now().wait(c.Ctx, t)
}

// reportLaunch prints the report of -W once the screen is drawn. After a crash,
// the report is about the launcher.
func (c *call) reportLaunch(component string, how opening, cold bool) int {
	took, state := warmStart, "WARM"
	switch {
	case how == deliversToTop:
		took, state = 0, "UNKNOWN (0)"
	case how == opensCrash:
		took, state, component = coldStart, "UNKNOWN (0)", usualLaunch+"/.Launcher"
	case cold:
		took, state = coldStart, "COLD"
	}
	if c.pass(took) != nil {
		return ksh.Status(c.Ctx)
	}
	c.Printf("Status: ok\n")
	if c.phone.opt.API >= 29 {
		c.Printf("LaunchState: %s\n", state)
	}
	c.Printf("Activity: %s\nTotalTime: %d\nWaitTime: %d\nComplete\n", component, took.Milliseconds(),
		(took + 3*time.Millisecond).Milliseconds())
	return 0
}
