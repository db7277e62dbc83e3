package shim

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/hostdevice/state"
)

// monkeyPlan is what a call of monkey asks for.
type monkeyPlan struct {
	packages []string
	seed     int64
	throttle time.Duration
	events   int
	verbose  int
}

const (
	// eventCost is the device time that an event takes even without a throttle.
	eventCost = 5 * time.Millisecond
	// monkeyChunk is the number of events between two lines of output
	// (development/cmds/monkey Monkey.java, runMonkeyCycles).
	monkeyChunk = 100
)

// monkey prints what the UI exerciser prints and takes as long, on the device's
// clock; there is no screen for its events to hit, and
// it starts no app.
func monkey(c command) int {
	plan, err := parseMonkey(c.args)
	if err != nil {
		fmt.Fprintf(c.err, "** Error: %v\n%s", err, monkeyUsage)
		return 255
	}
	installed, err := c.dir.Property(state.PackageProperty)
	if err != nil {
		return fail(c.err, "monkey", err)
	}
	clock, err := c.dir.Clock()
	if err != nil {
		return fail(c.err, "monkey", err)
	}
	plan.begin(c)
	for _, p := range plan.packages {
		if p != installed {
			// Monkey.java exits with -4 then.
			fmt.Fprintln(c.out, "** No activities found to run, monkey aborted.")
			return 252
		}
	}
	began := time.Now()
	plan.run(c, clock)
	fmt.Fprintf(c.out, "Events injected: %d\n", plan.events)
	took := time.Duration(float64(time.Since(began)) * clock.Scale).Milliseconds()
	fmt.Fprintf(c.out, "## Network stats: elapsed time=%dms (0ms mobile, 0ms wifi, %[1]dms not connected)\n", took)
	fmt.Fprintln(c.out, "// Monkey finished")
	return 0
}

func (p monkeyPlan) begin(c command) {
	if p.verbose == 0 {
		return
	}
	fmt.Fprintf(c.out, ":Monkey: seed=%d count=%d\n", p.seed, p.events)
	for _, name := range p.packages {
		fmt.Fprintf(c.out, ":AllowPackage: %s\n", name)
	}
	fmt.Fprintln(c.out, ":IncludeCategory: android.intent.category.LAUNCHER")
	fmt.Fprintln(c.out, ":IncludeCategory: android.intent.category.MONKEY")
}

// run waits for as long as the events take.
func (p monkeyPlan) run(c command, clock state.Clock) {
	for done := 0; done < p.events; {
		n := min(monkeyChunk, p.events-done)
		time.Sleep(clock.Real(time.Duration(n) * max(p.throttle, eventCost)))
		done += n
		if p.verbose > 0 && done%monkeyChunk == 0 && done < p.events {
			fmt.Fprintf(c.out, "    // Sending event #%d\n", done)
		}
	}
}

const monkeyUsage = `usage: monkey [-p ALLOWED_PACKAGE [-p ALLOWED_PACKAGE] ...]
              [--ignore-crashes] [--ignore-timeouts]
              [--ignore-security-exceptions] [--kill-process-after-error]
              [--pct-EVENT PERCENT] [-c MAIN_CATEGORY]
              [--throttle MILLISEC] [-s SEED] [-v [-v] ...]
              COUNT
`

func parseMonkey(args []string) (monkeyPlan, error) {
	p := monkeyPlan{seed: rand.Int64N(1 << 41)}
	for len(args) > 1 {
		word := args[0]
		switch {
		case word == "-v", word == "-vv", word == "-vvv":
			p.verbose += strings.Count(word, "v")
			args = args[1:]
			continue
		case takesNoValue(word):
			args = args[1:]
			continue
		case len(args) < 3:
			return p, fmt.Errorf("%s needs a value", word)
		}
		if err := p.option(word, args[1]); err != nil {
			return p, err
		}
		args = args[2:]
	}
	if len(args) == 0 {
		return p, fmt.Errorf("count not specified")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 0 {
		return p, fmt.Errorf("count is not a number: %q", args[0])
	}
	p.events = n
	return p, nil
}

func takesNoValue(word string) bool {
	for _, prefix := range []string{"--ignore-", "--kill-", "--monitor-", "--hprof", "--dbg-no-events", "--randomize-throttle", "--bugreport"} {
		if strings.HasPrefix(word, prefix) {
			return true
		}
	}
	return false
}

func (p *monkeyPlan) option(word, value string) error {
	switch {
	case word == "-p":
		p.packages = append(p.packages, value)
		return nil
	case word == "-c", strings.HasPrefix(word, "--pkg-"), strings.HasPrefix(word, "--pct-"), word == "--setup", word == "--profile-wait", word == "--device-sleep-time":
		return nil
	case word != "-s" && word != "--throttle":
		return fmt.Errorf("unknown option: %s", word)
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return fmt.Errorf("%s: not a number: %q", word, value)
	}
	if word == "-s" {
		p.seed = n
		return nil
	}
	if n < 0 || n > int64(time.Hour/time.Millisecond) {
		return fmt.Errorf("--throttle: %d is out of range", n)
	}
	p.throttle = time.Duration(n) * time.Millisecond
	return nil
}
