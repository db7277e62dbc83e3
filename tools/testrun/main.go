// Command testrun runs go test for CI: it prints one line for each package and the output
// of tests that fail, holds packages to their budgets of CPU time, and names the slowest
// tests.
//
//	testrun [-budgets PAGE] [-retry LOG] [go test flags and packages]
//
// CPU time is that of a test binary and its children as /proc has it, so budgets are
// checked on Linux only; a result from the cache has none. With -retry, tests that fail
// run once more: one that passes then is printed as FLAKY and appended to LOG.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

func main() {
	budgets, log, args := flags(os.Args[1:])
	ok, err := run(os.Stdout, budgets, log, args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "testrun: %v\n", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// flags takes testrun's own flags, which come first; the rest is go test's.
func flags(args []string) (budgets, log string, rest []string) {
	for len(args) > 1 {
		switch args[0] {
		case "-budgets":
			budgets = args[1]
		case "-retry":
			log = args[1]
		default:
			return budgets, log, args
		}
		args = args[2:]
	}
	return budgets, log, args
}

func run(out io.Writer, page, log string, args []string) (ok bool, err error) {
	limits, err := readBudgets(page)
	if err != nil {
		return false, err
	}
	began := time.Now()
	r, cpu, ok, err := goTest(out, args)
	if err != nil {
		return false, err
	}
	if !ok && log != "" {
		if ok, err = retry(out, r, log, args); err != nil {
			return false, err
		}
	}
	r.summarize(out, time.Since(began))
	return limits.check(out, cpu) && ok, nil
}

// goTest runs go test once. ok is false where it fails.
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
		_, _ = io.Copy(io.Discard, stream) // or go test would wait for a reader
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

// name is a test, or a package where Test is empty.
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
	// first is the first line of a failure.
	first string
}

// results are those of one go test.
type results struct {
	out    io.Writer
	output map[name]*strings.Builder
	tests  []result
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

// print shows the line of a package, and keeps what a test prints until it fails. What a
// package prints beside its tests, such as a panic, is shown at once.
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

// firstLine is the first line that a test prints about its failure.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			return line
		}
	}
	return "no message"
}

// slowest is how many tests the summary names.
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
	fmt.Fprintf(out, "DONE %d tests, %d skipped, %d failed in %.0fs\n", len(top), counts["skip"], counts["fail"], took.Seconds())
}

const module = "github.com/leakgate/leakgate/"

func short(pkg string) string { return strings.TrimPrefix(pkg, module) }
