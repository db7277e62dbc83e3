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

// Monkey is a workload of random events by the device's own monkey. A device that
// drops it, by its cable or a reboot, gets the rest of the events when it is back.
type Monkey struct {
	Package  string
	Seed     int64
	Throttle time.Duration
	Events   int
}

// Describe implements Workload.
func (m Monkey) Describe() record.Workload {
	return record.Workload{Kind: "monkey", Seed: new(m.Seed), Events: m.Events, Digest: digestOf("monkey", m.Package, m.Throttle.String())}
}

// Run implements Workload.
func (m Monkey) Run(ctx context.Context, st Stage) (record.Workload, error) {
	exit, err := st.onEach(ctx, m.runOn)
	rec := m.Describe()
	rec.Exit = exit
	return rec, err
}

// vainTurns is how often monkey may be begun in a row without sending an event.
const vainTurns = 5

func (m Monkey) runOn(ctx context.Context, dev capture.Device, st Stage) (*int, error) {
	rest, vain := m, 0
	for {
		sent, exit, err := rest.turn(ctx, dev, st)
		if err == nil || ctx.Err() != nil {
			return st.ended(dev, exit, err)
		}
		if vain++; sent > 0 {
			vain = 0
		}
		rest.Events -= sent
		if vain == vainTurns || rest.Events <= 0 {
			return st.ended(dev, exit, err)
		}
		if !returned(ctx, dev) {
			return st.ended(dev, exit, err)
		}
		// The same seed would send the same beginning again.
		rest.Seed++
		st.Note(dev.Serial(), record.Event{Event: "workload", Text: fmt.Sprintf(
			"the device has dropped monkey; it goes on after about %d of %d events with seed %d", m.Events-rest.Events, m.Events, rest.Seed)})
	}
}

// turn runs monkey once and gives how many events it has told to have sent.
func (m Monkey) turn(ctx context.Context, dev capture.Device, st Stage) (sent, exit int, err error) {
	out := &listener{out: st.Output, heard: func(line string) {
		if n, ok := eventCount(line); ok {
			sent = min(n, m.Events)
		}
	}}
	out.heard = reporting(dev, st, out.heard)
	// Crashes are on its error output (Logger.err), which older shells mix with the other.
	errs := &listener{out: st.Output, heard: reporting(dev, st, func(string) {})}
	exit, err = dev.Shell(ctx, m.command(), out, errs)
	return sent, exit, err
}

// reporting reads lines and records the crashes and ANRs that monkey reports in them, which it
// is started to ignore; others are passed on.
func reporting(dev capture.Device, st Stage, next func(string)) func(string) {
	var crash record.Event // that waits for its cause
	return func(line string) {
		switch fault, ok := monkeyFault(line); {
		case ok && fault.Reason == "crash":
			crash = fault
			return
		case ok:
			st.Note(dev.Serial(), fault)
			return
		}
		if crash.Process != "" {
			// The next line is the class of the exception; its message may be about people.
			if cause, ok := strings.CutPrefix(line, "// Short Msg: "); ok {
				crash.Text = text.Head(cause, maxReason)
			}
			st.Note(dev.Serial(), crash)
			crash = record.Event{}
		}
		next(line)
	}
}

// monkeyFault reads "// CRASH: com.shop (pid 123)" and "// NOT RESPONDING: com.shop (pid 123)"
// (AOSP development/cmds/monkey, Monkey.java, appCrashed and appNotResponding).
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
		return record.Event{Event: "fault", User: new(0), Process: name, PID: pid, Reason: reason, Text: "reported by monkey"}, true
	}
	return record.Event{}, false
}

// command ignores crashes and ANRs of the app: a leak hunt lives longer than a crash.
func (m Monkey) command() string {
	return strings.Join([]string{
		"exec monkey", "-p", text.ShellQuote(m.Package), "-s", strconv.FormatInt(m.Seed, 10),
		"--throttle", strconv.FormatInt(m.Throttle.Milliseconds(), 10),
		"--ignore-crashes", "--ignore-timeouts", "--ignore-security-exceptions", "-v", strconv.Itoa(m.Events),
	}, " ")
}

// eventCount reads "    // Sending event #300", which monkey prints every hundred
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
	// askAgain is the real time between two questions for a device that is away, and
	// askDeadline what it has for an answer.
	askAgain    = time.Second
	askDeadline = 10 * time.Second
)

// booted reports whether a device says within the deadline (real time) that it has
// started up; one that does not say counts as started.
func booted(ctx context.Context, dev capture.Device, deadline time.Duration) bool {
	a, err := shell.Ask(ctx, dev, deadline, "getprop sys.boot_completed")
	text := strings.TrimSpace(string(a.Stdout))
	return err == nil && (text == "" || text == "1")
}

// returned waits until a device answers again and has started up. It is false if
// ctx ends first, as it does when the device is lost.
func returned(ctx context.Context, dev capture.Device) bool {
	for {
		if _, err := capture.ReadPulse(ctx, dev, askDeadline); err == nil && booted(ctx, dev, askDeadline) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(askAgain):
		}
	}
}
