package monitor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// Monkey is a workload that sends random events with the device's monkey
// command. After a disconnect or reboot, the remaining events are sent once the
// device is back.
type Monkey struct {
	Package  string
	Seed     int64
	Throttle time.Duration
	Events   int
}

// Describe implements Workload.
func (m Monkey) Describe() record.Workload {
	return record.Workload{
		Kind: "monkey", Seed: new(m.Seed), Events: m.Events, Digest: digestOf("monkey", m.Package, m.Throttle.String()),
	}
}

// Run implements Workload.
func (m Monkey) Run(ctx context.Context, st Env) (record.Workload, error) {
	exit, err := st.onEach(ctx, m.runOn)
	rec := m.Describe()
	rec.Exit = exit
	return rec, err
}

// maxIdleStarts bounds how many times in a row monkey is started without
// sending an event.
const maxIdleStarts = 5

func (m Monkey) runOn(ctx context.Context, dev capture.Device, st Env) (*int, error) {
	rest, vain := m, 0
	for {
		sent, exit, err := rest.runOnce(ctx, dev, st)
		if err == nil || ctx.Err() != nil {
			return st.resultOf(dev, exit, err)
		}
		if vain++; sent > 0 {
			vain = 0
		}
		rest.Events -= sent
		if vain == maxIdleStarts || rest.Events <= 0 {
			return st.resultOf(dev, exit, err)
		}
		if !waitForDevice(ctx, dev) {
			return st.resultOf(dev, exit, err)
		}
		// With the same seed, monkey would repeat the first events.
		rest.Seed++
		st.Record(dev.Serial(), record.Event{Event: "workload", Text: fmt.Sprintf(
			"device dropped the connection to monkey; continuing after about %d of %d events with seed %d",
			m.Events-rest.Events, m.Events, rest.Seed)})
	}
}

// runOnce runs monkey once and returns how many events it reported.
func (m Monkey) runOnce(ctx context.Context, dev capture.Device, st Env) (sent, exit int, err error) {
	out := &lineReader{out: st.Output, onLine: func(line string) {
		if n, ok := eventCount(line); ok {
			sent = min(n, m.Events)
		}
	}}
	out.onLine = recordFaults(dev, st, out.onLine)
	// monkey reports crashes on its error output (Logger.err), which older
	// shells merge with the standard output.
	errs := &lineReader{out: st.Output, onLine: recordFaults(dev, st, func(string) {})}
	exit, err = dev.Shell(ctx, m.command(), out, errs)
	return sent, exit, err
}

// recordFaults records the crashes and ANRs that monkey reports and is
// configured to ignore. It passes all other lines on.
func recordFaults(dev capture.Device, st Env, next func(string)) func(string) {
	var crash record.Event // a crash whose cause has not been read yet
	return func(line string) {
		switch fault, ok := monkeyFault(line); {
		case ok && fault.Reason == "crash":
			crash = fault
			return
		case ok:
			st.Record(dev.Serial(), fault)
			return
		}
		if crash.Process != "" {
			// The next line is the class of the exception; its message may
			// contain personal data.
			if cause, ok := strings.CutPrefix(line, "// Short Msg: "); ok {
				crash.Text = text.Head(cause, maxReason)
			}
			st.Record(dev.Serial(), crash)
			crash = record.Event{}
		}
		next(line)
	}
}

// monkeyFault parses "// CRASH: com.shop (pid 123)" and "// NOT RESPONDING:
// com.shop (pid 123)" (AOSP development/cmds/monkey, Monkey.java, appCrashed
// and appNotResponding).
func monkeyFault(line string) (record.Event, bool) {
	for begin, reason := range map[string]string{"// CRASH: ": "crash", "// NOT RESPONDING: ": "anr"} {
		rest, ok := strings.CutPrefix(line, begin)
		if !ok {
			continue
		}
		name, tail, ok := strings.Cut(rest, " (pid ")
		pid, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(tail), ")"))
		if !ok || err != nil || pid <= 0 || name == "" || len(name) > 255 {
			return record.Event{}, false
		}
		return record.Event{
			Event: "fault", User: new(0), Process: name, PID: pid, Reason: reason, Text: "reported by monkey",
		}, true
	}
	return record.Event{}, false
}

// command returns the command line of monkey, with options that make it ignore
// crashes and ANRs of the app: a leak test continues after a crash.
func (m Monkey) command() string {
	return strings.Join([]string{
		"exec monkey", "-p", text.ShellQuote(m.Package), "-s", strconv.FormatInt(m.Seed, 10),
		"--throttle", strconv.FormatInt(m.Throttle.Milliseconds(), 10),
		"--ignore-crashes", "--ignore-timeouts", "--ignore-security-exceptions", "-v", strconv.Itoa(m.Events),
	}, " ")
}

// eventCount parses " // Sending event #300", which monkey prints every hundred
// events (AOSP development/cmds/monkey, Monkey.java, runMonkeyCycles).
func eventCount(line string) (int, bool) {
	_, text, ok := strings.Cut(line, "// Sending event #")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	return n, err == nil && n >= 0
}

const (
	// retryInterval is the wall-clock time between two requests to a
	// disconnected device. answerTimeout is the wall-clock time within which
	// the device must respond.
	retryInterval = time.Second
	answerTimeout = 10 * time.Second
)

// booted reports whether the device has finished booting. deadline is the
// wall-clock time within which it must respond. A device that lacks the
// property counts as booted.
func booted(ctx context.Context, dev capture.Device, deadline time.Duration) bool {
	a, err := shell.Ask(ctx, dev, deadline, "getprop sys.boot_completed")
	text := strings.TrimSpace(string(a.Stdout))
	return err == nil && (text == "" || text == "1")
}

// waitForDevice waits until a device responds and has booted. It returns false
// if ctx is done first, which is also the case when the device is lost.
func waitForDevice(ctx context.Context, dev capture.Device) bool {
	for {
		if _, err := capture.ReadPulse(ctx, dev, answerTimeout); err == nil && booted(ctx, dev, answerTimeout) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(retryInterval):
		}
	}
}
