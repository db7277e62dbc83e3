package androidtext

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Monkey is a run of the event generator (development/cmds/monkey Monkey.java).
type Monkey struct {
	Packages      []string
	Seed          int64
	Throttle      time.Duration
	Verbose       int
	Events        int
	IgnoreCrashes bool
}

// MonkeyChunk is the number of events between two progress lines.
const MonkeyChunk = 100

const maxThrottle = 24 * time.Hour

// MonkeyNoActivities is printed if there is no app to run.
const MonkeyNoActivities = "** No activities found to run, monkey aborted.\n"

// MonkeyUsage is printed after an error.
const MonkeyUsage = `usage: monkey [-p ALLOWED_PACKAGE [-p ALLOWED_PACKAGE] ...]
              [--ignore-crashes] [--ignore-timeouts]
              [--ignore-security-exceptions] [--kill-process-after-error]
              [--pct-EVENT PERCENT] [-c MAIN_CATEGORY]
              [--throttle MILLISEC] [-s SEED] [-v [-v] ...]
              COUNT
`

var (
	monkeySwitches = []string{
		"--ignore-", "--kill-", "--monitor-", "--hprof", "--dbg-no-events", "--randomize-throttle", "--bugreport",
	}
	monkeyValues = []string{"-c", "--pkg-whitelist-file", "--pkg-blacklist-file", "--setup"}
	monkeyNumber = []string{"--pct-", "--profile-wait", "--device-sleep-time"}
)

func hasPrefix(text string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}

// monkeyProblem returns the error message of monkey for invalid arguments.
func monkeyProblem(format string, args ...any) string {
	return "** Error: " + fmt.Sprintf(format, args...) + "\n" + MonkeyUsage
}

// ParseMonkey parses the arguments of monkey; seed is used if the arguments do
// not contain one. If an argument is invalid, problem is the message that
// monkey prints to standard error.
func ParseMonkey(args []string, seed int64) (m Monkey, problem string) {
	m = Monkey{Seed: seed, Events: -1}
	for i := 0; i < len(args); i++ {
		word := args[i]
		switch {
		case strings.Trim(word, "v") == "-" && word != "-":
			m.Verbose += len(word) - 1
			continue
		case hasPrefix(word, monkeySwitches):
			m.IgnoreCrashes = m.IgnoreCrashes || word == "--ignore-crashes"
			continue
		case !strings.HasPrefix(word, "-"):
			n, err := strconv.Atoi(word)
			if err != nil || n < 0 {
				return m, monkeyProblem("Count is not a number: %q", word)
			}
			m.Events = n
			continue
		}
		text := word == "-p" || slices.Contains(monkeyValues, word)
		if !text && word != "-s" && word != "--throttle" && !hasPrefix(word, monkeyNumber) {
			return m, monkeyProblem("Unknown option: %s", word)
		}
		if i++; i >= len(args) {
			return m, monkeyProblem("%s needs a value", word)
		}
		if problem := m.option(word, args[i], text); problem != "" {
			return m, problem
		}
	}
	if m.Events < 0 {
		return m, monkeyProblem("Count not specified")
	}
	return m, ""
}

func (m *Monkey) option(word, value string, text bool) (problem string) {
	if text {
		if word == "-p" {
			m.Packages = append(m.Packages, value)
		}
		return ""
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return monkeyProblem("%s: not a number: %q", word, value)
	}
	switch word {
	case "-s":
		m.Seed = n
	case "--throttle":
		if n < 0 || n > maxThrottle.Milliseconds() {
			return monkeyProblem("%s: %d is out of range", word, n)
		}
		m.Throttle = time.Duration(n) * time.Millisecond
	}
	return ""
}

// Begin returns the output before the first event. Since Android 8, the output
// contains args.
func (m *Monkey) Begin(api int, args []string) string {
	var b strings.Builder
	if api >= 26 {
		for _, a := range args {
			b.WriteString("  bash arg: " + a + "\n")
		}
	}
	if m.Verbose == 0 {
		return b.String()
	}
	fmt.Fprintf(&b, ":Monkey: seed=%d count=%d\n", m.Seed, m.Events)
	for _, p := range m.Packages {
		b.WriteString(":AllowPackage: " + p + "\n")
	}
	b.WriteString(":IncludeCategory: android.intent.category.LAUNCHER\n" +
		":IncludeCategory: android.intent.category.MONKEY\n")
	return b.String()
}

// Progress returns the output before event number done, counting from 0.
func (m *Monkey) Progress(done int) string {
	if m.Verbose == 0 || done%MonkeyChunk != 0 || done == 0 || done >= m.Events {
		return ""
	}
	return fmt.Sprintf("    // Sending event #%d\n", done)
}

// MonkeyCrash returns monkey's report of an app crash.
func MonkeyCrash(process string, pid int) string {
	return fmt.Sprintf("// CRASH: %s (pid %d)\n// Short Msg: Process crashed\n", process, pid)
}

// Aborted returns the lines that monkey prints to standard output and to
// standard error when a run ends at a crash.
func (m *Monkey) Aborted(done int) (out, errs string) {
	return fmt.Sprintf("** Monkey aborted due to error.\nEvents injected: %d\n", done),
		fmt.Sprintf("** System appears to have crashed at event %d of %d using seed %d\n", done, m.Events, m.Seed)
}

// End returns the output after the last event.
func (m *Monkey) End(took time.Duration) string {
	ms := took.Milliseconds()
	network := fmt.Sprintf("## Network stats: elapsed time=%dms (0ms mobile, 0ms wifi, %dms not connected)\n", ms, ms)
	text := fmt.Sprintf("Events injected: %d\n", m.Events)
	if m.Verbose == 0 {
		return text + network
	}
	return text + ":Sending rotation degree=0, persist=false\n" +
		":Dropped: keys=0 pointers=0 trackballs=0 flips=0 rotations=0\n" + network + "// Monkey finished\n"
}
