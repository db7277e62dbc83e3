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
	// probeWait is the maximum wall-clock time that a scan waits for the device
	// to report how each process can be read. Processes that have not been
	// probed by then are read from their status file, which every build allows,
	// and are probed in the background. Otherwise a thousand processes, or an
	// su that waits for a confirmation, would delay the first sample.
	probeWait = time.Second
	// probesPerRequest bounds the number of processes that one request probes,
	// so that the first results arrive early.
	probesPerRequest = 50
	// childAfter is how long, in device time, a child process may have its
	// parent's name before it is expected to keep that name. A heap dump by
	// Perfetto forks the process for a minute.
	childAfter = 5 * time.Minute
	// unlistedAfter is the device time after which a failing process list
	// counts as an error: a phone that is out of memory sometimes fails a scan.
	unlistedAfter = 2 * scanInterval
)

// scan is the result of one search for processes.
type scan struct {
	found capture.Found
	// similar lists the names of running processes that resemble the watched
	// names. It is set if the first scans found no process.
	similar []string
	// siblings holds the processes of the app that no pattern matches, if
	// searched is set and siblingsErr is nil.
	searched    bool
	siblings    []capture.Process
	siblingsErr error
}

// openScan is a scan whose processes have not all been probed yet.
type openScan struct {
	scan
	// processes are the processes found, with their twin numbers.
	processes []capture.Process
	probes    map[capture.Process]capture.Probe
	// until is the host's time at which the scan ends even if probes are
	// missing.
	until time.Time
}

// discovery finds the processes to watch.
type discovery struct {
	*port
	call call[scan]
	open *openScan
	// due is the time of the next scan on the session's clock.
	due time.Duration
	// waiters wait for the next scan; currentWaiters wait for the scan in
	// progress.
	waiters, currentWaiters []chan<- error
	// waitingRecorded is set once the record states that no watched process is
	// running yet.
	waitingRecorded bool
	// listed is set once a scan has succeeded. failing is the time of the first
	// failure since the latest success, and failure is its error.
	listed  bool
	failing time.Duration
	failure error

	probing  probing
	twins    twins
	siblings siblings
	marks    *marks
}

func newDiscovery(p *port, m *marks) *discovery {
	return &discovery{
		port: p, call: newCall[scan](), marks: m,
		probing:  probing{port: p, call: newCall[probed](), levels: capture.NewLevels(p.dev, p.dev.Facts)},
		twins:    twins{port: p, seen: map[capture.Process]time.Duration{}},
		siblings: siblings{port: p},
	}
}

// scanBy schedules a scan no later than the given time on the session's clock.
func (d *discovery) scanBy(at time.Duration) { d.due = min(d.due, at) }

// scanning reports whether a scan is in progress.
func (d *discovery) scanning() bool { return d.call.inFlight || d.open != nil }

// sendDue starts a scan if one is due.
func (d *discovery) sendDue(ctx context.Context, now time.Duration) {
	if !d.scanning() && now >= d.due {
		d.send(ctx)
	}
}

func (d *discovery) send(ctx context.Context) {
	dev := d.dev
	unknown := len(d.subjects.order) == 0 && !d.waitingRecorded
	search := d.siblings.searchNow()
	d.waiters, d.currentWaiters = nil, d.waiters
	d.marks.scanBegan()
	send(d.port, &d.call, func() (scan, error) {
		found, err := capture.FindProcesses(ctx, dev, d.run.Patterns)
		l := scan{found: found}
		if unknown && err == nil && len(found.Processes) == 0 {
			l.similar = similarNames(ctx, dev, d.run.Patterns)
		}
		if search && err == nil {
			l.searched = true
			l.siblings, l.siblingsErr = capture.FindSiblings(ctx, dev, found.Processes, d.run.Patterns)
		}
		return l, err
	})
}

// take handles the result of a scan: it records the processes that were found
// and probes the new ones.
func (d *discovery) take(ctx context.Context, a answer[scan]) {
	d.call.inFlight = false
	if stale(d.port, a) {
		d.scanEnded(nil)
		return
	}
	d.due = align(d.clock.now(), scanInterval)
	if a.err != nil {
		if d.failure == nil {
			d.failing = d.clock.now()
		}
		d.failure = a.err
		d.silence.requestFailed(ctx, requestScan, a.err)
		d.scanEnded(a.err)
		return
	}
	d.listed, d.failure = true, nil
	d.silence.requestSucceeded(requestScan)
	d.subjects.systemServer = a.value.found.SystemServer
	d.recordUnnamed(a.value.found)
	processes := d.twins.number(a.value.found)
	d.recordChildren(a.value.found)
	d.siblings.take(a.value)
	d.open = &openScan{
		scan: a.value, processes: processes, probes: map[capture.Process]capture.Probe{},
		until: time.Now().Add(probeWait),
	}
	d.probing.queueFound(processes)
	d.probing.send(ctx)
	d.endScan(ctx)
}

func (d *discovery) takeProbes(ctx context.Context, a answer[probed]) {
	d.probing.take(ctx, a)
	if !stale(d.port, a) && a.err == nil {
		for i, p := range a.value.processes {
			d.takeProbe(p, a.value.probes[i])
		}
	}
	d.probing.send(ctx)
	d.endScan(ctx)
}

func (d *discovery) takeProbe(p capture.Process, probe capture.Probe) {
	if d.subjects.watched(p) {
		d.subjects.setLevel(d.subjects.byKey[p.Key()], probe)
	} else if d.open != nil {
		d.open.probes[p] = probe
	}
}

// endScan ends the scan in progress if all its processes are probed or it has
// waited long enough.
func (d *discovery) endScan(ctx context.Context) {
	l := d.open
	if l == nil {
		return
	}
	missing := d.probing.missing(l)
	if missing > 0 && time.Now().Before(l.until) && ctx.Err() == nil {
		return
	}
	if missing > 0 {
		d.recordEvent(record.Event{
			Event: "probing",
			Text: fmt.Sprintf(
				"%d of %d processes are read from status until the device reports better sources", missing,
				len(l.processes)),
		})
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
	d.marks.scanEnded()
	if len(d.currentWaiters) > 0 || d.marks.firstFound() {
		d.stopMissing(l.processes)
	}
	if len(d.subjects.order) == 0 {
		d.due = d.clock.now() + rescanDelay
		d.recordWaiting(l.similar)
	} else if d.siblings.firstFound() {
		d.scanBy(d.clock.now() + rescanDelay)
	}
	d.scanEnded(nil)
}

// scanEnded notifies the callers that wait for the scan.
func (d *discovery) scanEnded(err error) {
	d.marks.order()
	d.marks.requestScan()
	d.answerWaiters(err)
}

// restarted discards what was found before the reboot, and schedules a scan.
func (d *discovery) restarted() {
	d.due = d.clock.now()
	d.probing.restarted()
	d.twins.restarted()
	d.siblings.due = 0
	if d.open != nil {
		d.open = nil
		d.scanEnded(errNotResponding)
	}
}

// userChanged schedules a scan and probes every process again, because the
// shell now runs as another user.
func (d *discovery) userChanged() {
	d.probing.userChanged()
	d.due = d.clock.now()
}

// reprobe determines again how a process can be read.
func (d *discovery) reprobe(p capture.Process) {
	d.probing.reprobe(p)
	d.scanBy(d.clock.now() + rescanDelay)
}

// request schedules a scan now. When the scan has ended, its error is sent to
// answer.
func (d *discovery) request(answer chan<- error) {
	if d.silence.on() {
		answer <- errNotResponding
		return
	}
	d.waiters = append(d.waiters, answer)
	d.due = d.clock.now()
}

// finishScan ends the scan in progress with the results so far, so that every
// process found is recorded. Call it when ctx is done or the session sends no
// other requests.
func (d *discovery) finishScan(ctx context.Context) {
	for d.open != nil && d.probing.busy() {
		l := d.open
		select {
		case a := <-d.probing.call.done:
			d.takeProbes(ctx, a)
		case <-time.After(time.Until(l.until)):
			d.endScan(ctx)
		}
	}
	if d.open != nil {
		d.probing.dropQueue()
		d.endScan(ctx)
	}
}

// awaitScan waits for the scan and the probes in flight. Call it when the
// context of these requests is done.
func (d *discovery) awaitScan() {
	if d.call.inFlight {
		a := <-d.call.done
		d.call.inFlight = false
		d.answerWaiters(a.err)
	}
	d.probing.awaitAnswer()
}

// nextWake returns the earliest device time at which a scan is due or ends, or
// next if that is earlier.
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

// listingError returns an error if the device has never listed its processes.
// It also returns an error if no watched process is left and the latest scans
// have failed, because it is then unknown which processes are running.
func (d *discovery) listingError() error {
	since := d.clock.now() - d.failing
	switch {
	case d.failure == nil:
		return nil
	case !d.listed:
		return fmt.Errorf("device %s: its processes could not be listed: %w", d.dev.Serial(), d.failure)
	case since > unlistedAfter && !d.subjects.anyPresent():
		return fmt.Errorf("device %s: its processes could not be listed for the last %v, and no watched process is "+
			"left: %w",
			d.dev.Serial(), since.Round(time.Second), d.failure)
	}
	return nil
}

// recordUnnamed records that some processes have unusable names.
func (d *discovery) recordUnnamed(found capture.Found) {
	if found.Unnamed > 0 {
		d.recordFault(faultNames,
			fmt.Errorf("processes whose names begin with %s cannot be watched: %d names are not printable text of at "+
				"most 255 bytes", words(d.run.Patterns), found.Unnamed))
	}
}

// recordChildren records that a process has a long-lived child with the same
// name. The memory of that child is not sampled.
func (d *discovery) recordChildren(found capture.Found) {
	for _, p := range found.Children {
		if d.twins.seenFor(p) < childAfter {
			continue
		}
		for _, x := range d.subjects.order {
			if x.present && x.Name == p.Name && x.User == p.User && !x.childRecorded {
				x.childRecorded = true
				d.recordProcessEvent(x, "error",
					fmt.Sprintf("pid %d is a child process with the same name as its parent; it is not watched", p.PID))
			}
		}
	}
}

// recordWaiting records that no watched process is running yet: the name may be
// misspelled.
func (d *discovery) recordWaiting(similar []string) {
	if d.waitingRecorded {
		return
	}
	d.waitingRecorded = true
	e := record.Event{
		Event: "waiting", Similar: similar, Text: fmt.Sprintf("waiting for %s to start", words(d.run.Patterns)),
	}
	if len(similar) > 0 {
		e.Text += "; running processes with similar names: " + strings.Join(similar, ", ")
	}
	d.recordEvent(e)
}

func words(patterns []capture.Pattern) string {
	out := make([]string, len(patterns))
	for i, p := range patterns {
		out[i] = string(p)
	}
	return strings.Join(out, " or ")
}

// answerWaiters notifies the callers that were waiting for the finished scan. A
// process that the scan did not find has ended; the fast channel would detect
// that up to half a minute later.
func (d *discovery) answerWaiters(err error) {
	for _, l := range d.currentWaiters {
		l <- err
	}
	d.currentWaiters = nil
	if len(d.waiters) > 0 { // other scans were requested during this one
		d.due = d.clock.now()
	}
}

// rejectWaiters notifies the callers that wait for a scan if the device does
// not respond.
func (d *discovery) rejectWaiters() {
	for _, l := range d.waiters {
		l <- errNotResponding
	}
	d.waiters = nil
}

// stopMissing stops tracking the processes that a scan no longer found.
func (d *discovery) stopMissing(found []capture.Process) {
	for _, x := range d.subjects.order {
		there := slices.ContainsFunc(found, func(p capture.Process) bool { return p.Key() == x.Key() })
		if x.present && !there {
			d.subjects.stopTracking(x, fmt.Errorf("pid %d: %w", x.PID, capture.ErrGone))
		}
	}
}
