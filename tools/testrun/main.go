// Command testrun runs go test for CI: it prints one line for each package and
// the output of failing tests, enforces the packages' budgets of CPU time, and
// lists the slowest tests.
//
//	testrun [-budgets PAGE] [-seconds N] [-retry LOG] [go test flags and packages]
//
// The CPU time of a test binary and its children is read from /proc, so budgets
// are checked on Linux only; cached results have no CPU time. With -seconds,
// testrun fails if all packages together take more than twice that time. With
// -retry, failing tests run once more: a test that then passes is printed as
// FLAKY and appended to LOG.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	o, args, err := flags(os.Args[1:])
	ok := false
	if err == nil {
		ok, err = run(os.Stdout, o, args)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "testrun: %v\n", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// options holds testrun's own flags.
type options struct {
	// budgets is the path of a page, and retry is the path of a log; either may
	// be empty.
	budgets, retry string
	// seconds is the time limit for all packages together; 0 means unlimited.
	seconds float64
}

// flags parses testrun's own flags, which come first; the other arguments are
// for go test.
func flags(args []string) (o options, rest []string, err error) {
	for len(args) > 1 {
		switch args[0] {
		case "-budgets":
			o.budgets = args[1]
		case "-retry":
			o.retry = args[1]
		case "-seconds":
			if o.seconds, err = strconv.ParseFloat(args[1], 64); err != nil || o.seconds <= 0 {
				return o, nil, fmt.Errorf("read -seconds %q: want a number above 0", args[1])
			}
		default:
			return o, args, nil
		}
		args = args[2:]
	}
	return o, args, nil
}

func run(out io.Writer, o options, args []string) (ok bool, err error) {
	limits, err := readBudgets(o.budgets)
	if err != nil {
		return false, err
	}
	began := time.Now()
	r, cpu, ok, err := goTest(out, args)
	if err != nil {
		return false, err
	}
	if !ok && o.retry != "" {
		if ok, err = retry(out, r, o.retry, args); err != nil {
			return false, err
		}
	}
	r.summarize(out, time.Since(began))
	inTime := o.inTime(out, r.seconds)
	return limits.check(out, cpu) && inTime && ok, nil
}

// inTime fails the run if the packages take more than twice the limit. The
// factor allows for a slow machine.
func (o options) inTime(out io.Writer, took float64) bool {
	if o.seconds == 0 || took <= 2*o.seconds {
		return true
	}
	fmt.Fprintf(out,
		"FAIL  the packages take %.0f s together, more than twice the limit of %.0f s: move tests to another layer\n",
		took, o.seconds)
	return false
}

// goTest runs go test once. ok reports whether go test succeeded.
func goTest(out io.Writer, args []string) (r *results, cpu usage, ok bool, err error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = out
	stream, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, false, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, false, fmt.Errorf("start go test: %w", err)
	}
	stop := watch(cmd.Process.Pid)
	r = &results{out: out, output: map[name]*strings.Builder{}}
	err = r.read(stream)
	if err != nil {
		_, _ = io.Copy(io.Discard, stream) // otherwise go test would block when it writes to the pipe
	}
	failed := cmd.Wait()
	cpu = stop()
	var exit *exec.ExitError
	switch {
	case err != nil:
		return nil, nil, false, fmt.Errorf("read the output of go test: %w", err)
	case failed != nil && !errors.As(failed, &exit):
		return nil, nil, false, fmt.Errorf("run go test: %w", failed)
	}
	return r, cpu, failed == nil, nil
}

// name identifies a test, or a package if Test is empty.
type name struct{ Package, Test string }

// event is a line of go test -json (go doc test2json).
type event struct {
	name
	Action, Output string
	Elapsed        float64
}

type result struct {
	name
	action  string
	seconds float64
	// first is the first line that a test prints about its failure.
	first string
}

// results holds the results of one run of go test.
type results struct {
	out    io.Writer
	output map[name]*strings.Builder
	tests  []result
	// seconds is the total time of the packages.
	seconds float64
}

func (r *results) read(stream io.Reader) error {
	for lines := json.NewDecoder(stream); ; {
		var e event
		if err := lines.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		r.add(e)
	}
}

func (r *results) add(e event) {
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		r.print(e)
	case "pass", "skip", "fail":
		text := r.output[e.name]
		delete(r.output, e.name)
		if e.Test == "" {
			r.seconds += e.Elapsed
			return
		}
		x := result{name: e.name, action: e.Action, seconds: e.Elapsed}
		if e.Action == "fail" && text != nil {
			fmt.Fprint(r.out, text)
			x.first = firstLine(text.String())
		}
		r.tests = append(r.tests, x)
	}
}

// print prints the line of a package. It keeps the output of a test, which is
// printed only if the test fails. Output of a package outside its tests, such
// as a panic, is printed immediately.
func (r *results) print(e event) {
	if e.Test != "" {
		if r.output[e.name] == nil {
			r.output[e.name] = new(strings.Builder)
		}
		r.output[e.name].WriteString(e.Output)
		return
	}
	if e.Output != "PASS\n" && !strings.Contains(e.Output, "[no test files]") {
		fmt.Fprint(r.out, e.Output)
	}
}

// firstLine returns the first line that a test prints about its failure.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			return line
		}
	}
	return "no message"
}

// slowest is the number of slow tests that the summary lists.
const slowest = 10

func (r *results) summarize(out io.Writer, took time.Duration) {
	counts := map[string]int{}
	var top []result
	for _, x := range r.tests {
		if strings.Contains(x.Test, "/") {
			continue
		}
		counts[x.action]++
		top = append(top, x)
	}
	slices.SortFunc(top, func(a, b result) int { return int(1000 * (b.seconds - a.seconds)) })
	for _, x := range top[:min(slowest, len(top))] {
		fmt.Fprintf(out, "%7.1fs  %s %s\n", x.seconds, short(x.Package), x.Test)
	}
	fmt.Fprintf(out, "DONE %d tests, %d skipped, %d failed in %.0fs\n", len(top), counts["skip"], counts["fail"],
		took.Seconds())
}

const module = "github.com/leakgate/leakgate/"

func short(pkg string) string { return strings.TrimPrefix(pkg, module) }
