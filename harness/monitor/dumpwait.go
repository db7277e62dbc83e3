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

// dumpWait collects the results of the heap dumps of one mark for a caller that
// waits for them. It is nil if no caller waits.
type dumpWait struct {
	mu      sync.Mutex
	pending int
	missing []string
	// requested is set if the run dumps heaps at marks; taken is the number of
	// dumps that were taken.
	requested bool
	taken     int
	// done is called once, with the result.
	done func(markDumps)
}

// markDumps is the result of the heap dumps of one mark.
type markDumps struct {
	// missing contains one line for each dump that was not taken.
	missing []string
	// The flag none is set if the run dumps heaps at marks but no process could
	// be dumped.
	none bool
}

// add increases the number of dumps to wait for by n.
func (a *dumpWait) add(n int) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pending += n
}

// addMissing records why a dump is missing.
func (a *dumpWait) addMissing(why string) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.missing = append(a.missing, why)
}

// addTaken counts a dump that was taken.
func (a *dumpWait) addTaken() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken++
}

func (a *dumpWait) finishOne() {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.pending--
	over := a.pending == 0
	a.mu.Unlock()
	if over {
		a.done(markDumps{a.missing, a.requested && a.taken == 0})
	}
}

// takeMark records a mark sent by another process or by a caller of LiveRun.
// The mark is set on the time axis of every device. If answer is not nil, it is
// called when every process has been dumped, or immediately if the run does not
// dump heaps at marks.
func (m *run) takeMark(text string, answer func(markDumps) error) {
	if text == "" {
		m.workloads.mark("", text)
		if answer != nil {
			m.checkWrite(answer(markDumps{missing: []string{"the mark has no text"}}))
		}
		return
	}
	var dumps *dumpWait
	if answer != nil {
		dumps = &dumpWait{
			pending: len(m.sessions), requested: m.atMarks(), done: func(d markDumps) { m.checkWrite(answer(d)) },
		}
		if !dumps.requested {
			dumps.addMissing("nothing was dumped: the run does not dump at marks " +
				"(diagnose.dump: at_marks, or --dump at_marks)")
		}
	}
	for _, s := range m.sessions {
		s.mailbox.post(message{Event: record.Event{Event: "mark", Text: text}, dumps: dumps})
	}
}

// atMarks reports whether the run dumps heaps at marks; atEnd reports whether
// it dumps them at its end.
func (m *run) atMarks() bool {
	return m.responder != nil && m.responder.Options().Dump == response.AtMarks
}

func (m *run) atEnd() bool { return m.responder != nil && m.responder.Options().Dump == response.AtEnd }

const (
	// quietTime is the device time for which an app is left alone before its
	// heap is dumped. LeakCanary waits for the same time before it considers an
	// object retained (leakcanary AppWatcher.kt, retainedDelayMillis).
	quietTime = 5 * time.Second
	// maxSettleTime is the device time within which the object counts must
	// become stable.
	maxSettleTime = 10 * time.Second
	// settleStep is the device time between two counts.
	settleStep = time.Second
)

// settlingCounts are the counts of dumpsys meminfo that must become stable. The
// counts do not include garbage: ActivityThread.dumpMemInfo (AOSP
// frameworks/base) calls Runtime.gc before it counts instances.
var settlingCounts = []string{"Activities", "AppContexts", "ViewRootImpl", "Views", "WebViews"}

// settle waits until an app that has been left alone since the given time has
// released the objects of its unfinished work. It reports whether the object
// counts became stable.
func settle(ctx context.Context, dev Device, c clock, p capture.Process, since time.Time) bool {
	before, err := countObjects(ctx, dev, p)
	if err != nil {
		return false
	}
	step := c.real(settleStep)
	if sleep(ctx, max(time.Until(since.Add(c.real(quietTime))), step)) != nil {
		return false
	}
	for end := time.Now().Add(c.real(maxSettleTime)); ; {
		now, err := countObjects(ctx, dev, p)
		if err != nil || now == before {
			return err == nil
		}
		if before = now; time.Now().After(end) || sleep(ctx, step) != nil {
			return false
		}
	}
}

// objectCounts are the counts that must become stable; unknown counts are 0.
type objectCounts [5]int64

func countObjects(ctx context.Context, dev Device, p capture.Process) (counts objectCounts, err error) {
	objects, err := readObjects(ctx, dev, p)
	for i, name := range settlingCounts {
		counts[i] = objects[name]
	}
	return counts, err
}

// readObjects returns the object counts that dumpsys meminfo prints for a
// process.
func readObjects(ctx context.Context, dev Device, p capture.Process) (map[string]int64, error) {
	d, err := detail.Read(ctx, dev, dev.Facts, p, 0)
	if err != nil {
		return nil, fmt.Errorf("count objects: %w", err)
	}
	return d.Block.Objects, nil
}

// heapError returns an error that states why a case has no heap dump, or nil if
// it has one.
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
	return errors.New("the device returned none")
}
