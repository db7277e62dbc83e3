package ledger

import (
	"fmt"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// MaxOpenWindows is the maximum number of open windows of one device; every
	// line is added to each of them.
	MaxOpenWindows = 256
	// maxVerdicts is the maximum number of verdicts in run.json for all windows
	// of one device.
	maxVerdicts = 50_000
)

// window is a span of one device's part of a run. It is judged separately: from
// its beginning, the device's lines are also added to the window's own Part.
type window struct {
	number int
	name   string
	part   *Part
}

// windows holds the windows of one part.
type windows struct {
	open []*window
	// opened is the number of windows that were opened; verdicts is the number
	// of verdicts that are kept.
	opened, verdicts int
	closed           []record.JudgedWindow
	// skipped counts the windows that are not judged or not kept.
	skipped int
}

// openWindow opens a window at the given time of the run. The window contains
// the processes that are watched at that time.
func (p *Part) openWindow(e record.Event) {
	if len(p.windows.open) == MaxOpenWindows {
		p.windows.skipped++
		return
	}
	p.windows.opened++
	inner := newPart(&Ledger{policy: p.of.policy, header: p.of.header}, p.header)
	inner.begun, inner.up, inner.last, inner.since = p.begun, p.up, e.T, e.T
	inner.load = workloads{running: p.load.running, recorded: p.load.recorded}
	for _, a := range p.accounts {
		inner.Open(a.Process).readBy(
			record.Event{PID: a.PID, Start: a.Start, Source: string(a.source), Reasons: a.reasons})
	}
	p.windows.open = append(p.windows.open, &window{number: e.Window, name: text.Head(e.Text, maxText), part: inner})
}

// closeWindow closes the most recently opened window with the given number.
func (p *Part) closeWindow(e record.Event) {
	w := &p.windows
	for i := len(w.open) - 1; i >= 0; i-- {
		if w.open[i].number != e.Window {
			continue
		}
		closed := w.open[i].record(e.T, w.opened)
		w.open = append(w.open[:i], w.open[i+1:]...)
		if w.verdicts += len(closed.Processes) + len(closed.Apps); w.verdicts > maxVerdicts {
			w.skipped++
			return
		}
		w.closed = append(w.closed, closed)
		return
	}
}

// eachWindow calls a function with the Part of each open window.
func (p *Part) eachWindow(call func(*Part)) {
	for _, w := range p.windows.open {
		call(w.part)
	}
}

// record judges a window that ends at the given time of the run. windows is the
// total number of windows that are judged.
func (w *window) record(ended float64, windows int) record.JudgedWindow {
	out := record.JudgedWindow{
		Number: w.number, Name: w.name, Device: w.part.header.Device,
		T: w.part.since, Ended: ended, Processes: []record.WindowProcess{}, Apps: []record.WindowApp{},
	}
	w.part.last = max(w.part.last, ended)
	seen := CountJudged(w.part.apps.opened)
	for _, a := range w.part.accounts {
		if a.Inputs() > 0 {
			seen++
		}
	}
	for _, a := range w.part.accounts {
		if a.Inputs() > 0 {
			out.Processes = append(out.Processes, ofWindow(a.Record(seen*windows)))
		}
	}
	for _, x := range w.part.apps.opened {
		out.Apps = append(out.Apps, appOfWindow(x.Record(seen*windows)))
	}
	return out
}

// ofWindow returns those parts of a process record that a window keeps.
func ofWindow(p record.Process) record.WindowProcess {
	return record.WindowProcess{
		User: p.User, Process: p.Process, PID: p.PID, Samples: p.Samples, Restarts: p.Restarts, Gaps: p.Gaps,
		Missing:  p.Missing,
		Duration: p.Duration, State: p.State, Worst: p.Worst, Gate: p.Gate, Kind: p.Kind, Reason: p.Reason,
		Rate: p.Rate, RateInterval: p.RateInterval, MinDetectable: p.MinDetectable, Growth: p.Growth,
		AtMarks: p.AtMarks, CountsAtMarks: p.CountsAtMarks,
	}
}

// appOfWindow returns those parts of an app record that a window keeps.
func appOfWindow(x record.AppVerdict) record.WindowApp {
	return record.WindowApp{
		User: x.User, App: x.App, Samples: x.Samples, Gaps: x.Gaps, Missing: x.Missing, Duration: x.Duration,
		State: x.State, Worst: x.Worst, Gate: x.Gate, Kind: x.Kind, Reason: x.Reason,
		Rate: x.Rate, RateInterval: x.RateInterval, MinDetectable: x.MinDetectable, Growth: x.Growth,
	}
}

// OpenWindows returns the number of open windows.
func (p *Part) OpenWindows() int { return len(p.windows.open) }

// Window returns the most recently closed window with the given number; nil if
// there is none.
func (p *Part) Window(number int) *record.JudgedWindow {
	for i := len(p.windows.closed) - 1; i >= 0; i-- {
		if p.windows.closed[i].Number == number {
			w := p.windows.closed[i]
			return &w
		}
	}
	return nil
}

// recordedWindows returns the records of the part's windows. Windows that were
// never closed end with the part.
func (p *Part) recordedWindows() []record.JudgedWindow {
	out := append([]record.JudgedWindow{}, p.windows.closed...)
	for _, w := range p.windows.open {
		open := w.record(p.last, p.windows.opened)
		open.Open = true
		out = append(out, open)
	}
	return out
}

// windowWarnings returns warnings about windows that are not in the record.
func (p *Part) windowWarnings() []string {
	if p.windows.skipped == 0 {
		return nil
	}
	return []string{
		fmt.Sprintf("device %s: %d windows are not recorded: more than %d were open, or there were more than %d "+
			"verdicts",
			p.header.Device, p.windows.skipped, MaxOpenWindows, maxVerdicts),
	}
}

// forward adds a line about a process to all open windows.
func (p *Part) forward(e record.Event, k capture.Key) {
	p.eachWindow(func(inner *Part) {
		if e.Event == "found" || inner.byKey[k] != nil {
			inner.AddEvent(e)
		}
	})
}
