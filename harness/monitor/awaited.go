package monitor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/detail"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/reporters/record"
)

// awaited are the heap dumps of one mark for which somebody waits. Nil is for nobody.
type awaited struct {
	mu      sync.Mutex
	left    int
	missing []string
	// owed: the run dumps at marks; taken counts the dumps that were taken.
	owed  bool
	taken int
	// done is called once.
	done func(markDumps)
}

// markDumps is what became of the heap dumps of one mark.
type markDumps struct {
	// missing has a line for each dump that was not taken.
	missing []string
	// none reports that the run dumps at marks and took no dump of any process.
	none bool
}

// begin notes n more that must end before somebody goes on.
func (a *awaited) begin(n int) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left += n
}

// lack notes a dump that is missing.
func (a *awaited) lack(why string) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.missing = append(a.missing, why)
}

// got notes a dump that was taken.
func (a *awaited) got() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken++
}

func (a *awaited) end() {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.left--
	over := a.left == 0
	a.mu.Unlock()
	if over {
		a.done(markDumps{a.missing, a.owed && a.taken == 0})
	}
}

// takeMark puts a mark of another process on the time axis of every device. The answer, if
// not nil, is given when every process has been dumped, where the run dumps at marks.
func (m *run) takeMark(text string, answer func(markDumps) error) {
	if text == "" {
		m.workloads.mark("", text)
		if answer != nil {
			m.keep(answer(markDumps{missing: []string{"the mark has no text"}}))
		}
		return
	}
	var dumps *awaited
	if answer != nil {
		dumps = &awaited{left: len(m.sessions), owed: m.atMarks(), done: func(d markDumps) { m.keep(answer(d)) }}
		if !dumps.owed {
			dumps.lack("nothing was dumped: the run does not dump at marks (diagnose.dump: at_marks, or --dump at_marks)")
		}
	}
	for _, s := range m.sessions {
		s.notes.put(letter{Event: record.Event{Event: "mark", Text: text}, dumps: dumps})
	}
}

// atMarks reports whether heaps are dumped at marks, and atEnd whether at the end.
func (m *run) atMarks() bool {
	return m.responder != nil && m.responder.Options().Dump == response.AtMarks
}

func (m *run) atEnd() bool { return m.responder != nil && m.responder.Options().Dump == response.AtEnd }

const (
	// quiet is the device time for which an app is left alone before its heap is dumped, as
	// LeakCanary does before it takes an object for retained
	// (leakcanary AppWatcher.kt, retainedDelayMillis).
	quiet = 5 * time.Second
	// settleMost is the device time within which the counts of objects must stand still.
	settleMost = 10 * time.Second
	// settleStep is the device time between two counts.
	settleStep = time.Second
)

// settlingCounts are those of dumpsys meminfo that must stand still. For them the process
// collects its garbage: ActivityThread.dumpMemInfo (AOSP frameworks/base) calls
// Runtime.gc before it counts instances.
var settlingCounts = []string{"Activities", "AppContexts", "ViewRootImpl", "Views", "WebViews"}

// settle waits until an app that has been left alone since a moment has let go what it had
// in flight. It is false where the counts of its objects did not stand still.
func settle(ctx context.Context, dev Device, c clock, p capture.Process, since time.Time) bool {
	before, err := countObjects(ctx, dev, p)
	if err != nil {
		return false
	}
	step := c.real(settleStep)
	if nap(ctx, max(time.Until(since.Add(c.real(quiet))), step)) != nil {
		return false
	}
	for end := time.Now().Add(c.real(settleMost)); ; {
		now, err := countObjects(ctx, dev, p)
		if err != nil || now == before {
			return err == nil
		}
		if before = now; time.Now().After(end) || nap(ctx, step) != nil {
			return false
		}
	}
}

// objectCounts are the counts that must stand still; 0 is also for what is not known.
type objectCounts [5]int64

func countObjects(ctx context.Context, dev Device, p capture.Process) (counts objectCounts, err error) {
	objects, err := readObjects(ctx, dev, p)
	for i, name := range settlingCounts {
		counts[i] = objects[name]
	}
	return counts, err
}

// readObjects counts what dumpsys meminfo counts of a process.
func readObjects(ctx context.Context, dev Device, p capture.Process) (map[string]int64, error) {
	d, err := detail.Read(ctx, dev, dev.Facts, p, 0)
	if err != nil {
		return nil, fmt.Errorf("count objects: %w", err)
	}
	return d.Block.Objects, nil
}

// heapError says why a case has no heap dump, nil where it has one.
func heapError(c *response.Case) error {
	for _, step := range c.Record.Steps {
		switch {
		case step.Step != "heap":
		case step.File != "":
			return nil
		case len(step.Reasons) > 0:
			return errors.New(step.Reasons[0])
		}
	}
	return errors.New("the device gave none")
}
