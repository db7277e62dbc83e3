package monitor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// probeWait is the real time for which a look waits until the device has said how each
	// process can be read. Then those without an answer are read by their status, which every
	// build allows, and asked on beside it: a suite with a thousand processes, or an su that
	// waits for a person, must not delay the first sample.
	probeWait = time.Second
	// probesPerTrip bounds the processes that are asked in one trip, so that answers come in turn.
	probesPerTrip = 50
	// childAfter is the device time after which a child that still has the name of its parent is
	// not on its way to another program: a heap dump of Perfetto forks for a minute.
	childAfter = 5 * time.Minute
	// unlistedAfter is the device time after which a list of processes that cannot be read counts:
	// a phone that is out of memory fails at a look now and then.
	unlistedAfter = 2 * discoverEvery
)

// look is what one search for processes found.
type look struct {
	found capture.Found
	// similar are names like those that are watched, where none was found for the first time.
	similar []string
}

// openLook is a look whose processes are not all probed yet.
type openLook struct {
	look
	// processes are those that were found, with the numbers of twins.
	processes []capture.Process
	probes    map[capture.Process]capture.Probe
	// until is the host's time at which it ends without the probes that are missing.
	until time.Time
}

// discovery finds the processes to watch.
type discovery struct {
	*port
	call call[look]
	open *openLook
	// due is when the next look is due, on the session's clock.
	due time.Duration
	// lookers wait for a look that has not begun, awaiting for the one under way.
	lookers, awaiting []chan<- error
	// waiting: the record says that no process is there yet.
	waiting bool
	// listed: a look has succeeded. failing is when the first look since failed, failure why.
	listed  bool
	failing time.Duration
	failure error

	probing probing
	twins   twins
	marks   *marks
}

func newDiscovery(p *port, m *marks) *discovery {
	return &discovery{
		port: p, call: newCall[look](), marks: m,
		probing: probing{port: p, call: newCall[probed](), levels: capture.NewLevels(p.dev, p.dev.Facts)},
		twins:   twins{port: p, seen: map[capture.Process]time.Duration{}},
	}
}

// lookBy has the processes listed by a time of the session's clock.
func (d *discovery) lookBy(at time.Duration) { d.due = min(d.due, at) }

// looking reports whether a look is under way.
func (d *discovery) looking() bool { return d.call.inFlight || d.open != nil }

// sendDue begins a look that is due.
func (d *discovery) sendDue(ctx context.Context, now time.Duration) {
	if !d.looking() && now >= d.due {
		d.send(ctx)
	}
}

func (d *discovery) send(ctx context.Context) {
	dev := d.dev
	unknown := len(d.subjects.order) == 0 && !d.waiting
	d.lookers, d.awaiting = nil, d.lookers
	d.marks.lookBegan()
	send(d.port, &d.call, func() (look, error) {
		found, err := capture.FindProcesses(ctx, dev, d.run.Patterns)
		l := look{found: found}
		if unknown && err == nil && len(found.Processes) == 0 {
			l.similar = similarNames(ctx, dev, d.run.Patterns)
		}
		return l, err
	})
}

// take takes the processes that were found, and has those probed that are new.
func (d *discovery) take(ctx context.Context, a answer[look]) {
	d.call.inFlight = false
	if stale(d.port, a) {
		d.closeLook(nil)
		return
	}
	d.due = align(d.clock.now(), discoverEvery)
	if a.err != nil {
		if d.failure == nil {
			d.failing = d.clock.now()
		}
		d.failure = a.err
		d.silence.requestFailed(ctx, requestLook, a.err)
		d.closeLook(a.err)
		return
	}
	d.listed, d.failure = true, nil
	d.silence.requestSucceeded(requestLook)
	d.subjects.systemServer = a.value.found.SystemServer
	d.recordUnnamed(a.value.found)
	processes := d.twins.number(a.value.found)
	d.recordChildren(a.value.found)
	d.open = &openLook{look: a.value, processes: processes, probes: map[capture.Process]capture.Probe{}, until: time.Now().Add(probeWait)}
	d.probing.queueFound(processes)
	d.probing.send(ctx)
	d.endLook(ctx)
}

func (d *discovery) takeProbes(ctx context.Context, a answer[probed]) {
	d.probing.take(ctx, a)
	if !stale(d.port, a) && a.err == nil {
		for i, p := range a.value.processes {
			d.takeProbe(p, a.value.probes[i])
		}
	}
	d.probing.send(ctx)
	d.endLook(ctx)
}

func (d *discovery) takeProbe(p capture.Process, probe capture.Probe) {
	if d.subjects.watched(p) {
		d.subjects.setLevel(d.subjects.byKey[p.Key()], probe)
	} else if d.open != nil {
		d.open.probes[p] = probe
	}
}

// endLook ends the look under way if all its processes are probed, or if it has waited long enough.
func (d *discovery) endLook(ctx context.Context) {
	l := d.open
	if l == nil {
		return
	}
	missing := d.probing.missing(l)
	if missing > 0 && time.Now().Before(l.until) && ctx.Err() == nil {
		return
	}
	if missing > 0 {
		d.event(record.Event{Event: "probing", Text: fmt.Sprintf("%d of %d processes are read by status until the device says how else they can be read", missing, len(l.processes))})
	}
	d.open = nil
	for _, p := range l.processes {
		if d.subjects.watched(p) {
			continue
		}
		probe, ok := l.probes[p]
		if !ok {
			probe = provisionalProbe()
		}
		d.subjects.reconcile(p, probe)
		if x := d.subjects.byKey[p.Key()]; x != nil && x.Same(p) {
			x.provisional = !ok
		}
	}
	d.marks.lookEnded()
	if len(d.awaiting) > 0 || d.marks.firstFound() {
		d.stopMissing(l.processes)
	}
	if len(d.subjects.order) == 0 {
		d.due = d.clock.now() + discoverSoon
		d.recordWaiting(l.similar)
	}
	d.closeLook(nil)
}

// closeLook answers those who waited for a look that has ended.
func (d *discovery) closeLook(err error) {
	d.marks.order()
	d.marks.look()
	d.answerLookers(err)
}

// restarted forgets what was found before the device restarted, and has the processes listed again.
func (d *discovery) restarted() {
	d.due = d.clock.now()
	d.probing.restarted()
	d.twins.restarted()
	if d.open != nil {
		d.open = nil
		d.closeLook(errSilent)
	}
}

// userChanged has every process listed and asked again, by the shell of another user.
func (d *discovery) userChanged() {
	d.probing.userChanged()
	d.due = d.clock.now()
}

// reprobe has the device asked again how a process can be read.
func (d *discovery) reprobe(p capture.Process) {
	d.probing.again(p)
	d.lookBy(d.clock.now() + discoverSoon)
}

// request answers at the end of a look that has not begun yet; one is due now.
func (d *discovery) request(answer chan<- error) {
	if d.silence.on() {
		answer <- errSilent
		return
	}
	d.lookers = append(d.lookers, answer)
	d.due = d.clock.now()
}

// finishLook ends the look under way with what is known, so that every process that was found is
// in the record. ctx has ended, or the session asks for nothing else.
func (d *discovery) finishLook(ctx context.Context) {
	for d.open != nil && d.probing.busy() {
		l := d.open
		select {
		case a := <-d.probing.call.done:
			d.takeProbes(ctx, a)
		case <-time.After(time.Until(l.until)):
			d.endLook(ctx)
		}
	}
	if d.open != nil {
		d.probing.dropQueue()
		d.endLook(ctx)
	}
}

// endLooks waits for what the session's own looks still have on their way; its context has ended.
func (d *discovery) endLooks() {
	if d.call.inFlight {
		a := <-d.call.done
		d.call.inFlight = false
		d.answerLookers(a.err)
	}
	d.probing.end()
}

// nextWake is the device time at which a look is due or ends, if that is before next.
func (d *discovery) nextWake(now, next time.Duration) time.Duration {
	switch {
	case d.open != nil:
		wait := max(0, time.Until(d.open.until))
		return min(next, now+time.Duration(float64(wait)*d.clock.scale))
	case !d.call.inFlight:
		return min(next, d.due)
	}
	return next
}

// listingError returns an error where the device never listed its processes, or where none of those that
// were watched is left and it has not listed any since: what runs now, nobody has seen.
func (d *discovery) listingError() error {
	since := d.clock.now() - d.failing
	switch {
	case d.failure == nil:
		return nil
	case !d.listed:
		return fmt.Errorf("device %s: its processes could not be listed: %w", d.dev.Serial(), d.failure)
	case since > unlistedAfter && !d.subjects.anyPresent():
		return fmt.Errorf("device %s: its processes could not be listed for the last %v, and none of those watched before is left: %w",
			d.dev.Serial(), since.Round(time.Second), d.failure)
	}
	return nil
}

// recordUnnamed records once that processes cannot be named.
func (d *discovery) recordUnnamed(found capture.Found) {
	if found.Unnamed > 0 {
		d.recordFault(faultNames, fmt.Errorf("processes whose names begin with %s cannot be watched: %d names are not printable text of at most 255 bytes", words(d.run.Patterns), found.Unnamed))
	}
}

// recordChildren records once that a process has a child that stays and has its name: the
// memory of that child is not sampled.
func (d *discovery) recordChildren(found capture.Found) {
	for _, p := range found.Children {
		if d.twins.seenFor(p) < childAfter {
			continue
		}
		for _, x := range d.subjects.order {
			if x.present && x.Name == p.Name && x.User == p.User && !x.hasChild {
				x.hasChild = true
				d.about(x, "error", fmt.Sprintf("pid %d is a child that keeps the name of its parent; it is not watched", p.PID))
			}
		}
	}
}

// recordWaiting records once that no process is there yet: a name may be misspelled.
func (d *discovery) recordWaiting(similar []string) {
	if d.waiting {
		return
	}
	d.waiting = true
	e := record.Event{Event: "waiting", Similar: similar, Text: fmt.Sprintf("waiting for %s to start", words(d.run.Patterns))}
	if len(similar) > 0 {
		e.Text += "; similar names that run: " + strings.Join(similar, ", ")
	}
	d.event(e)
}

func words(patterns []capture.Pattern) string {
	out := make([]string, len(patterns))
	for i, p := range patterns {
		out[i] = string(p)
	}
	return strings.Join(out, " or ")
}

// answerLookers lets go on who waited for the look that has ended. A process that the look
// did not find is gone: the fast channel would notice that up to half a minute later.
func (d *discovery) answerLookers(err error) {
	for _, l := range d.awaiting {
		l <- err
	}
	d.awaiting = nil
	if len(d.lookers) > 0 { // who asked while it was under way
		d.due = d.clock.now()
	}
}

// refuseLookers answers who waits for a look at a device that does not respond.
func (d *discovery) refuseLookers() {
	for _, l := range d.lookers {
		l <- errSilent
	}
	d.lookers = nil
}

// stopMissing notices the end of processes that a look has not found.
func (d *discovery) stopMissing(found []capture.Process) {
	for _, x := range d.subjects.order {
		there := slices.ContainsFunc(found, func(p capture.Process) bool { return p.Key() == x.Key() })
		if x.present && !there {
			d.subjects.stopTracking(x, fmt.Errorf("pid %d: %w", x.PID, capture.ErrGone))
		}
	}
}
