package androidsim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// monkeyRun is one run of the event generator (development cmds/monkey).
type monkeyRun struct {
	packages []string
	seed     int64
	throttle time.Duration
	verbose  int
	events   int
	ignore   bool
}

// eventTime is the device time of an event without a throttle.
const eventTime = time.Millisecond

func monkey(c *call) int {
	m, ok := c.monkeyOptions()
	if !ok {
		return 255
	}
	if c.phone.server() == 0 {
		fmt.Fprintln(c.errs, "** Error: Unable to connect to activity manager; is the system running?")
		return 253
	}
	if c.phone.opt.API >= 26 {
		for _, a := range c.args[1:] {
			c.printf("  bash arg: %s\n", a)
		}
	}
	if m.verbose > 0 {
		c.printf(":Monkey: seed=%d count=%d\n", m.seed, m.events)
		for _, p := range m.packages {
			c.printf(":AllowPackage: %s\n", p)
		}
		c.printf(":IncludeCategory: android.intent.category.LAUNCHER\n:IncludeCategory: android.intent.category.MONKEY\n")
	}
	found := len(m.packages) == 0
	for _, p := range m.packages {
		ok, _ := c.phone.startProcesses(p)
		if ok {
			c.phone.toFront(p)
		}
		found = found || ok
	}
	if !found {
		c.printf("** No activities found to run, monkey aborted.\n")
		return 252
	}
	return c.runMonkey(m)
}

func (c *call) monkeyOptions() (m monkeyRun, ok bool) {
	args := c.args[1:]
	m.seed = int64(mix(c.phone.opt.Seed, uint64(c.phone.Uptime())) >> 20)
	m.events = -1
	fail := func(format string, values ...any) (monkeyRun, bool) {
		fmt.Fprintf(c.errs, "** Error: "+format+"\n", values...)
		fmt.Fprint(c.errs, "usage: monkey [-p ALLOWED_PACKAGE [-p ALLOWED_PACKAGE] ...]\n              [--throttle MILLISEC] [--ignore-crashes]\n              [-s SEED] [-v [-v] ...]\n              COUNT\n")
		return m, false
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		value := func() (string, bool) {
			if i++; i < len(args) {
				return args[i], true
			}
			return "", false
		}
		number := func() (int64, bool) {
			text, _ := value()
			n, err := strconv.ParseInt(text, 10, 64)
			return n, err == nil
		}
		good := true
		var n int64
		switch {
		case a == "-p":
			var p string
			p, good = value()
			m.packages = append(m.packages, p)
		case a == "-c" || a == "--pkg-whitelist-file" || a == "--pkg-blacklist-file":
			_, good = value()
		case a == "-s":
			m.seed, good = number()
		case a == "--throttle":
			n, good = number()
			m.throttle = time.Duration(min(max(n, 0), 1<<31)) * time.Millisecond
		case strings.HasPrefix(a, "--pct-"):
			_, good = number()
		case a == "--ignore-crashes":
			m.ignore = true
		case strings.HasPrefix(a, "--ignore-") || a == "--kill-process-after-error" || a == "--monitor-native-crashes" || a == "--randomize-throttle" || a == "--hprof":
		case strings.Trim(a, "v") == "-":
			m.verbose += len(a) - 1
		case strings.HasPrefix(a, "-"):
			return fail("Unknown option: %s", a)
		default:
			var err error
			if m.events, err = strconv.Atoi(a); err != nil || m.events < 0 {
				return fail("Count is not a number: \"%s\"", a)
			}
		}
		if !good {
			return fail("bad value of option %s", a)
		}
	}
	if m.events < 0 {
		return fail("Count not specified")
	}
	return m, true
}

// deaths returns how many processes of the packages have died so far, how many of those crashed,
// which is all that monkey reports, and the process that crashed last.
func (c *call) deaths(packages []string) (n, crashes int, last *process) {
	p := c.phone
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance(p.clock.up())
	for _, proc := range p.procs {
		if proc.app != nil && slices.Contains(packages, proc.app.Package) {
			n, crashes = n+proc.deaths, crashes+proc.crashed
			if proc.crashed > 0 && (last == nil || proc.crashedAt > last.crashedAt) {
				last = proc
			}
		}
	}
	return n, crashes, last
}

func (c *call) runMonkey(m monkeyRun) int {
	clock := c.phone.now()
	began := clock.up()
	each := max(m.throttle, eventTime)
	before, crashesBefore, _ := c.deaths(m.packages)
	done := 0
	for done < m.events {
		// Events are counted by the clock, so that the run takes the time it should
		// however late the host wakes up.
		next := min(m.events, done-done%100+100)
		c.out.Flush()
		if clock.wait(c.ctx, began+time.Duration(next)*each-clock.up()) != nil {
			return statusOf(c.ctx)
		}
		done = next
		if m.verbose > 0 && done%100 == 0 {
			c.printf("    // Sending event #%d\n", done)
		}
		now, crashes, last := c.deaths(m.packages)
		if now == before {
			continue
		}
		crash := crashes > crashesBefore
		before, crashesBefore = now, crashes
		if crash {
			c.printf("// CRASH: %s (pid %d)\n// Short Msg: Process crashed\n", last.spec.Name, last.crashedPID)
		}
		if crash && !m.ignore {
			c.printf("** Monkey aborted due to error.\nEvents injected: %d\n", done)
			c.out.Flush()
			fmt.Fprintf(c.errs, "** System appears to have crashed at event %d of %d using seed %d\n", done, m.events, m.seed)
			return max(done&255, 1)
		}
		// Some of the events that it sends start activities.
		for _, p := range m.packages {
			c.phone.startProcesses(p)
			c.phone.toFront(p)
		}
	}
	took := (clock.up() - began).Milliseconds()
	c.printf("Events injected: %d\n", done)
	if m.verbose > 0 {
		c.printf(":Sending rotation degree=0, persist=false\n:Dropped: keys=0 pointers=0 trackballs=0 flips=0 rotations=0\n")
	}
	c.printf("## Network stats: elapsed time=%dms (0ms mobile, 0ms wifi, %dms not connected)\n", took, took)
	if m.verbose > 0 {
		c.printf("// Monkey finished\n")
	}
	return 0
}
