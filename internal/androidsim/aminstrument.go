package androidsim

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/ksh"
)

type instrumentCall struct {
	wait, raw bool
	// values holds the -e options.
	values    map[string]string
	component string
}

// instrumentFlags are the options without a value that have no effect here,
// each with the API level that added it.
var instrumentFlags = map[string]int{
	"--no_window_animation": 0, "--no-window-animation": 24, "--no-hidden-api-checks": 28, "--no-isolated-storage": 29,
	"--no-test-api-access": 30, "--no-restart": 31, "--always-check-signature": 34,
}

// parseInstrument parses the arguments (cmds/am Am.java, runInstrument).
// unknown is the first unknown option; illegal describes any other error. -m
// and -f, which write protocol buffers, count as unknown here.
func parseInstrument(args []string, api int) (o instrumentCall, unknown, illegal string) {
	o.values = map[string]string{}
	last := "instrument"
	required := func() string {
		if len(args) == 0 {
			illegal = fmt.Sprintf("Argument expected after \"%s\"", last)
			return ""
		}
		last, args = args[0], args[1:]
		return last
	}
	for illegal == "" && len(args) > 0 && strings.HasPrefix(args[0], "-") {
		option := required()
		if option == "--" {
			break
		}
		since, flag := instrumentFlags[option]
		switch {
		case option == "-w":
			o.wait = true
		case option == "-r":
			o.raw = true
		case option == "-e":
			key := required()
			o.values[key] = required()
		case option == "-p", option == "--user", option == "--abi":
			required()
		case !flag || since > api:
			return o, option, ""
		}
	}
	if illegal == "" {
		o.component = required()
	}
	return o, "", illegal
}

// instrument implements `am instrument` (cmds/am Instrument.java).
func (c *call) instrument(args []string) int {
	if c.phone.server() == 0 {
		fmt.Fprintln(c.Errs, "Error type 2")
		return c.thrown("Can't connect to activity manager; is the system running?")
	}
	o, unknown, illegal := parseInstrument(args, c.phone.opt.API)
	switch {
	case unknown != "":
		fmt.Fprintf(c.Errs, "Error: Unknown option: %s\n", unknown)
		return 0
	case illegal != "":
		return c.illegal(illegal)
	}
	component, illegal := c.phone.componentOf(o.component)
	if illegal != "" {
		c.instrumentError(o, illegal, true)
		return c.illegal(illegal)
	}
	at := slices.IndexFunc(c.phone.opt.Instrumentations,
		func(i Instrumentation) bool { return i.component() == component })
	if at < 0 {
		return c.noInstrumentation(o, component, "Unable to find instrumentation info for: ComponentInfo{"+component+
			"}")
	}
	i := &c.phone.opt.Instrumentations[at]
	delay, err := testDelay(o.values["delay_msec"])
	if err != "" {
		return c.failOnCreate(o, i, "java.lang.NumberFormatException", err)
	}
	run := c.phone.startTests(i, i.chosen(o.values), delay)
	if run == nil {
		return c.noInstrumentation(o, component, "Unable to find instrumentation target package: "+i.Target)
	}
	if !o.wait {
		return 0
	}
	return c.follow(run, o)
}

// componentOf returns the full name of an instrumentation. Since Android 8 the
// package name is sufficient (Instrument.parseComponentName).
func (p *Phone) componentOf(text string) (component, illegal string) {
	pkg, class, ok := strings.Cut(text, "/")
	switch {
	case ok && class != "":
		if strings.HasPrefix(class, ".") {
			class = pkg + class
		}
		return pkg + "/" + class, ""
	case ok || p.opt.API < 26:
		return "", "Bad component name: " + text
	}
	var found []string
	for _, i := range p.opt.Instrumentations {
		if i.Package == text {
			found = append(found, i.component())
		}
	}
	switch len(found) {
	case 0:
		return "", "No instrumentation found for: " + text
	case 1:
		return found[0], ""
	}
	return "", "Found multiple instrumentations: " + strings.Join(found, ", ")
}

// chosen returns the tests that the -e options select: the class option lists
// classes and methods; without it, all tests run. With the log option, the
// tests are only reported (androidx.test.internal.runner.RunnerArgs and
// TestRequestBuilder).
func (i Instrumentation) chosen(values map[string]string) []Test {
	tests := i.Tests
	if list, ok := values["class"]; ok {
		tests = nil
		names := strings.Split(list, ",")
		for _, t := range i.Tests {
			if slices.Contains(names, t.class()) || slices.Contains(names, t.Name) {
				tests = append(tests, t)
			}
		}
		for _, name := range names {
			class, _, _ := strings.Cut(name, "#")
			if !slices.ContainsFunc(i.Tests, func(t Test) bool { return t.class() == class }) {
				tests = append(tests,
					Test{Name: class + "#initializationError", Outcome: testUnloadable, Took: time.Millisecond})
			}
		}
	}
	if values["log"] != "true" {
		return tests
	}
	tests = slices.Clone(tests)
	for n, t := range tests {
		tests[n] = Test{Name: t.Name, Took: time.Nanosecond}
		if t.Outcome == TestIgnored {
			tests[n].Outcome = TestIgnored
		}
	}
	return tests
}

// testDelay parses delay_msec (RunnerArgs.parseUnsignedInt); illegal is the
// message of its NumberFormatException.
func testDelay(text string) (delay time.Duration, illegal string) {
	if text == "" {
		return 0, ""
	}
	n, err := strconv.ParseInt(text, 10, 32)
	switch {
	case err != nil:
		return 0, fmt.Sprintf("For input string: \"%s\"", text)
	case n < 0:
		return 0, "delay_msec can not be negative"
	}
	return time.Duration(n) * time.Millisecond, ""
}

// instrumentPoll is the interval, in device time, at which `am instrument`
// checks whether the process is alive.
const instrumentPoll = 500 * time.Millisecond

// follow prints the reports of a run as they arrive. The tests run
// independently of follow.
func (c *call) follow(r *testRun, o instrumentCall) int {
	p := c.phone
	out := &reportPrinter{call: c, raw: o.raw, run: r}
	server := p.server()
	for printed := 0; ; {
		p.mu.Lock()
		up := p.clock.up()
		p.advance(up)
		reports, over := r.reports, r.over
		next, known := r.due()
		p.mu.Unlock()
		for _, report := range reports[printed:] {
			out.test(report)
		}
		printed = len(reports)
		switch {
		case p.server() != server:
			c.instrumentError(o, "INSTRUMENTATION_ABORTED: System has crashed.", false)
			return 0
		case over:
			out.end(reports)
			return 0
		}
		c.Out.Flush()
		if !known {
			next = math.MaxInt64
		}
		if p.now().wait(c.Ctx, min(max(next-up, time.Millisecond), instrumentPoll)) != nil {
			return ksh.Status(c.Ctx)
		}
	}
}

// instrumentError prints an error as TextStatusReporter.onError does with -w.
// BaseCommand prints the message of a command error, so it is omitted here.
func (c *call) instrumentError(o instrumentCall, message string, ofCommand bool) {
	switch {
	case !o.wait:
		return
	case o.raw && c.phone.opt.API >= 28:
		c.Printf("onError: commandError=%t message=%s\n", ofCommand, message)
	}
	if !ofCommand {
		c.Printf("%s\n", message)
	}
}

// noInstrumentation prints that the instrumentation cannot be started
// (ActivityManagerService.reportStartInstrumentationFailureLocked).
func (c *call) noInstrumentation(o instrumentCall, component, why string) int {
	if o.wait {
		c.report(bundle{{"id", "ActivityManagerService"}, {"Error", why}}, o.raw, statusReport, -1)
	}
	failure := "INSTRUMENTATION_FAILED: " + component
	c.instrumentError(o, failure, true)
	return c.thrown(failure)
}

// failOnCreate reports that the runner threw an exception before its first test
// (AppErrors.crashApplicationInner).
func (c *call) failOnCreate(o instrumentCall, i *Instrumentation, thrown, message string) int {
	p := c.phone
	p.mu.Lock()
	up := p.clock.up()
	p.advance(up)
	p.stopPackage(i.Target, up, "start instr")
	p.mu.Unlock()
	if o.wait {
		c.report(bundle{{"longMsg", thrown + ": " + message}, {"shortMsg", thrown}}, o.raw, resultReport,
			resultCanceled)
	}
	return 0
}

// thrown prints an exception that aborts am
// (com.android.internal.os.BaseCommand.run).
func (c *call) thrown(message string) int {
	c.Out.Flush()
	fmt.Fprintf(c.Errs,
		"android.util.AndroidException: %s\n\tat com.android.commands.am.Instrument.run(Instrument.java:519)\n\tat "+
			"com.android.commands.am.Am.runInstrument(Am.java:202)\n\tat "+
			"com.android.commands.am.Am.onRun(Am.java:80)\n\tat "+
			"com.android.internal.os.BaseCommand.run(BaseCommand.java:60)\n", message)
	return 1
}

// illegal prints an IllegalArgumentException, followed by the help that
// BaseCommand adds.
func (c *call) illegal(message string) int {
	c.Printf("%s", amHelp(c.phone.opt.API))
	c.Out.Flush()
	fmt.Fprintf(c.Errs, "\nError: %s\n", message)
	return 0
}
