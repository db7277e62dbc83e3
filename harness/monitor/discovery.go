package monitor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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

// probed is the answer to one trip of probes.
type probed struct {
	processes []capture.Process
	probes    []capture.Probe
}

// discovery is how a session finds processes and learns how each is read.
type discovery struct {
	probes trip[probed]
	open   *openLook
	// queue are processes to be probed, asking those of the trip under way.
	queue, asking []capture.Process
	// forget are those whose level is in doubt; renewed: all are, because the shell is another user.
	forget  []capture.Process
	renewed bool
	// seen is the device time at which a look first found a process that is not watched: a second
	// one of a name, or a child with its parent's name.
	seen map[capture.Process]time.Duration
	// listed: a look has succeeded. failing is when the first look since failed, failure why.
	listed  bool
	failing time.Duration
	failure error
}

func newDiscovery() discovery {
	return discovery{probes: newTrip[probed](), seen: map[capture.Process]time.Duration{}}
}

// looking reports whether a look is under way.
func (s *session) looking() bool { return s.looks.away || s.discovery.open != nil }

func (s *session) sendLook(ctx context.Context) {
	dev := s.dev
	unknown := len(s.order) == 0 && !s.waiting
	s.lookers, s.awaiting = nil, s.lookers
	s.lookMarks, s.lookedAt = s.marks, s.clock.now()
	send(s, &s.looks, func() (look, error) {
		found, err := capture.FindProcesses(ctx, dev, s.run.Patterns)
		l := look{found: found}
		if unknown && err == nil && len(found.Processes) == 0 {
			l.similar = similarNames(ctx, dev, s.run.Patterns)
		}
		return l, err
	})
}

// takeLook takes the processes that were found, and has those probed that are new.
func (s *session) takeLook(ctx context.Context, a answer[look]) {
	s.looks.away = false
	if a.boot != s.boots {
		s.closeLook(nil)
		return
	}
	s.discoverAt = align(s.clock.now(), discoverEvery)
	d := &s.discovery
	if a.err != nil {
		if d.failure == nil {
			d.failing = s.clock.now()
		}
		d.failure = a.err
		s.failed(ctx, errandLook, a.err)
		s.closeLook(a.err)
		return
	}
	d.listed, d.failure = true, nil
	s.well(errandLook)
	s.systemServer = a.value.found.SystemServer
	s.complainOfNames(a.value.found)
	processes := s.numberTwins(a.value.found)
	s.complainOfChildren(a.value.found)
	d.open = &openLook{look: a.value, processes: processes, probes: map[capture.Process]capture.Probe{}, until: time.Now().Add(probeWait)}
	s.queueProbes(processes)
	s.sendProbes(ctx)
	s.endLook(ctx)
}

// queueProbes queues the processes of a look: first those that are not watched yet, as many as
// will be, then those whose answers may have changed.
func (s *session) queueProbes(processes []capture.Process) {
	d := &s.discovery
	var others []capture.Process
	room := maxSubjects - len(s.order)
	for _, p := range processes {
		switch {
		case slices.Contains(d.asking, p) || slices.Contains(d.queue, p):
		case s.watched(p):
			if d.renewed || s.inDoubt(p) {
				others = append(others, p)
			}
		case s.subjects[p.Key()] != nil:
			d.queue = append(d.queue, p)
		case room > 0:
			room--
			d.queue = append(d.queue, p)
		}
	}
	d.queue, d.renewed = append(d.queue, others...), false
}

// inDoubt reports whether a process that is watched may have to be read in another way: its level
// failed, or something did not answer when it was looked for.
func (s *session) inDoubt(p capture.Process) bool {
	return slices.Contains(s.discovery.forget, p) || slices.ContainsFunc(s.subjects[p.Key()].probe.Findings, func(f capture.Finding) bool {
		return f.Answer == capture.Unclear
	})
}

// watched reports whether this incarnation is under watch.
func (s *session) watched(p capture.Process) bool {
	x := s.subjects[p.Key()]
	return x != nil && x.present && x.Same(p)
}

// sendProbes asks how the next processes of the queue can be read.
func (s *session) sendProbes(ctx context.Context) {
	d := &s.discovery
	if d.probes.away || len(d.queue) == 0 {
		return
	}
	n := min(len(d.queue), probesPerTrip)
	forget, levels := d.forget, s.levels
	d.asking, d.queue, d.forget = d.queue[:n:n], d.queue[n:], nil
	asking := d.asking
	send(s, &d.probes, func() (probed, error) {
		for _, p := range forget {
			levels.Forget(p)
		}
		probes, err := levels.ProbeAll(ctx, asking)
		return probed{asking, probes}, err
	})
}

func (s *session) takeProbes(ctx context.Context, a answer[probed]) {
	d := &s.discovery
	d.probes.away, d.asking = false, nil
	switch {
	case a.boot != s.boots:
	case a.err != nil:
		d.queue = nil // the next look asks again
		s.failed(ctx, errandLook, a.err)
	default:
		for i, p := range a.value.processes {
			s.takeProbe(p, a.value.probes[i])
		}
	}
	s.sendProbes(ctx)
	s.endLook(ctx)
}

func (s *session) takeProbe(p capture.Process, probe capture.Probe) {
	if s.watched(p) {
		s.setLevel(s.subjects[p.Key()], probe)
	} else if s.discovery.open != nil {
		s.discovery.open.probes[p] = probe
	}
}

// endLook ends the look under way if all its processes are probed, or if it has waited long enough.
func (s *session) endLook(ctx context.Context) {
	l := s.discovery.open
	if l == nil {
		return
	}
	missing := s.unprobed(l)
	if missing > 0 && time.Now().Before(l.until) && ctx.Err() == nil {
		return
	}
	if missing > 0 {
		s.event(record.Event{Event: "probing", Text: fmt.Sprintf("%d of %d processes are read by status until the device says how else they can be read", missing, len(l.processes))})
	}
	s.discovery.open = nil
	for _, p := range l.processes {
		if s.watched(p) {
			continue
		}
		probe, ok := l.probes[p]
		if !ok {
			probe = provisionalProbe()
		}
		s.meet(p, probe)
		if x := s.subjects[p.Key()]; x != nil && x.Same(p) {
			x.provisional = !ok
		}
	}
	s.foundMarks = s.lookMarks
	if len(s.awaiting) > 0 || len(s.pending) > 0 && s.foundFor(s.pending[0]) {
		s.loseMissing(l.processes)
	}
	if len(s.order) == 0 {
		s.discoverAt = s.clock.now() + discoverSoon
		s.wait(l.similar)
	}
	s.closeLook(nil)
}

// provisionalProbe is the probe of a process of which the device has not said yet how it can be
// read: every build lets the shell read its status.
func provisionalProbe() capture.Probe {
	return capture.Probe{
		Level:    capture.Level{Source: capture.Status},
		Findings: []capture.Finding{{Source: capture.SmapsRollup, Reason: "the device has not answered yet"}},
	}
}

// unprobed counts the processes of a look that are to be watched and whose probe is missing.
func (s *session) unprobed(l *openLook) (n int) {
	waits := func(p capture.Process) bool {
		_, ok := l.probes[p]
		return !ok && !s.watched(p)
	}
	for _, p := range s.discovery.asking {
		if waits(p) {
			n++
		}
	}
	for _, p := range s.discovery.queue {
		if waits(p) {
			n++
		}
	}
	return n
}

// closeLook answers those who waited for a look that has ended.
func (s *session) closeLook(err error) {
	s.orderAtMarks()
	s.lookForMarks()
	s.answerLookers(err)
}

// dropLook forgets what was found before the device restarted.
func (s *session) dropLook() {
	d := &s.discovery
	d.queue, d.forget = nil, nil
	clear(d.seen)
	if d.open != nil {
		d.open = nil
		s.closeLook(errSilent)
	}
}

// finishLook ends the look under way with what is known, so that every process that was found is
// in the record. ctx has ended, or the session asks for nothing else.
func (s *session) finishLook(ctx context.Context) {
	for s.discovery.open != nil && s.discovery.probes.away {
		l := s.discovery.open
		select {
		case a := <-s.discovery.probes.done:
			s.takeProbes(ctx, a)
		case <-time.After(time.Until(l.until)):
			s.endLook(ctx)
		}
	}
	if s.discovery.open != nil {
		s.discovery.queue = nil
		s.endLook(ctx)
	}
}

// endLooks waits for what the session's own looks still have on their way; its context has ended.
func (s *session) endLooks() {
	if s.looks.away {
		a := <-s.looks.done
		s.looks.away = false
		s.answerLookers(a.err)
	}
	if s.discovery.probes.away {
		<-s.discovery.probes.done
		s.discovery.probes.away, s.discovery.asking = false, nil
	}
}

// lookWake is the device time at which a look is due or ends, if that is before next.
func (s *session) lookWake(now, next time.Duration) time.Duration {
	switch {
	case s.discovery.open != nil:
		wait := max(0, time.Until(s.discovery.open.until))
		return min(next, now+time.Duration(float64(wait)*s.clock.scale))
	case !s.looks.away:
		return min(next, s.discoverAt)
	}
	return next
}

// blind returns an error where the device never listed its processes, or where none of those that
// were watched is left and it has not listed any since: what runs now, nobody has seen.
func (s *session) blind() error {
	d := &s.discovery
	since := s.clock.now() - d.failing
	switch {
	case d.failure == nil:
		return nil
	case !d.listed:
		return fmt.Errorf("device %s: its processes could not be listed: %w", s.dev.Serial(), d.failure)
	case since > unlistedAfter && !s.anyPresent():
		return fmt.Errorf("device %s: its processes could not be listed for the last %v, and none of those watched before is left: %w",
			s.dev.Serial(), since.Round(time.Second), d.failure)
	}
	return nil
}

// complainOfNames records once that processes cannot be named.
func (s *session) complainOfNames(found capture.Found) {
	if found.Unnamed > 0 {
		s.complainOfDevice(names, fmt.Errorf("processes whose names begin with %s cannot be watched: %d names are not printable text of at most 255 bytes", words(s.run.Patterns), found.Unnamed))
	}
}

// complainOfChildren records once that a process has a child that stays and has its name: the
// memory of that child is not sampled.
func (s *session) complainOfChildren(found capture.Found) {
	for _, p := range found.Children {
		if s.sighted(p) < childAfter {
			continue
		}
		for _, x := range s.order {
			if x.present && x.Name == p.Name && x.User == p.User && !x.hasChild {
				x.hasChild = true
				s.about(x, "error", fmt.Sprintf("pid %d is a child that keeps the name of its parent; it is not watched", p.PID))
			}
		}
	}
}

// sighted is the device time since a look first found a process that is not watched.
func (s *session) sighted(p capture.Process) time.Duration {
	now := s.clock.now()
	first, ok := s.discovery.seen[p]
	if !ok {
		s.discovery.seen[p] = now
		return 0
	}
	return now - first
}

// numberTwins numbers the processes of one user and name that run at the same time, so that each
// has a series of its own. A process keeps its number as long as it lives; the next of that name
// takes a number that is free, before all that of a process with its uid. One that runs beside
// another must be seen twice: an incarnation that is about to end is no twin.
func (s *session) numberTwins(found capture.Found) []capture.Process {
	s.forgetUnseen(found)
	var out []capture.Process
	for group := range groups(found.Processes) {
		out = append(out, s.numberGroup(group)...)
	}
	return out
}

// groups yields the processes of each user and name, which stand together.
func groups(ps []capture.Process) func(func([]capture.Process) bool) {
	return func(yield func([]capture.Process) bool) {
		for len(ps) > 0 {
			n := slices.IndexFunc(ps, func(p capture.Process) bool { return p.Key() != ps[0].Key() })
			if n < 0 {
				n = len(ps)
			}
			if !yield(ps[:n]) {
				return
			}
			ps = ps[n:]
		}
	}
}

func (s *session) numberGroup(group []capture.Process) []capture.Process {
	var out, fresh []capture.Process
	taken := map[int]bool{}
	for _, p := range group {
		if x := s.incarnation(p); x != nil {
			p.Twin = x.Twin
			taken[p.Twin] = true
			out = append(out, p)
		} else {
			fresh = append(fresh, p)
		}
	}
	// Of several that are new at once the latest is what the app is now.
	slices.SortFunc(fresh, func(a, b capture.Process) int {
		return cmp.Or(-cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID))
	})
	for _, p := range fresh {
		if len(taken) > 0 && s.sighted(p) < discoverSoon {
			s.discoverAt = min(s.discoverAt, s.clock.now()+discoverSoon)
			continue
		}
		p.Twin = s.freeNumber(p, taken)
		taken[p.Twin] = true
		out = append(out, p)
	}
	return out
}

// incarnation is the subject of a process that is or was under watch; nil for none.
func (s *session) incarnation(p capture.Process) *subject {
	for _, x := range s.order {
		if x.User == p.User && x.Name == p.Name && x.Same(p) {
			return x
		}
	}
	return nil
}

// freeNumber is the number of a process that is new among those of its name.
func (s *session) freeNumber(p capture.Process, taken map[int]bool) int {
	free := -1
	for _, x := range s.order {
		if x.User != p.User || x.Name != p.Name || taken[x.Twin] {
			continue
		}
		if x.UID == p.UID {
			return x.Twin
		}
		if free < 0 {
			free = x.Twin
		}
	}
	if free >= 0 {
		return free
	}
	for n := range len(taken) + 1 {
		if n == 1 {
			continue // the first is 0, the second 2
		}
		if !taken[n] {
			return n
		}
	}
	return len(taken) + 1
}

// forgetUnseen forgets processes that are gone.
func (s *session) forgetUnseen(found capture.Found) {
	for p := range s.discovery.seen {
		if !slices.Contains(found.Processes, p) && !slices.Contains(found.Children, p) {
			delete(s.discovery.seen, p)
		}
	}
}

// meet takes a process that a look has found: a new one, one that has come back
// as another incarnation, or one that is under watch already.
func (s *session) meet(p capture.Process, probe capture.Probe) {
	x := s.subjects[p.Key()]
	switch {
	case x == nil && len(s.order) >= maxSubjects:
		s.complainOfDevice(crowd, fmt.Errorf("more than %d processes have the names that are watched; the others are not watched", maxSubjects))
	case x == nil:
		x = &subject{Account: s.part.Open(p), probe: probe}
		s.subjects[p.Key()] = x
		s.order = append(s.order, x)
		s.welcome(x)
		s.event(s.identity(x, "found", foundText(p, probe)))
	case !x.Same(p):
		old := x.PID
		if x.present { // nobody has seen its end
			s.noteDeath(x, x.Process)
		}
		x.response = responseTo{snapshot: x.response.snapshot, early: x.response.early}
		x.Process, x.probe, x.backs, x.hasChild = p, probe, 0, false
		s.welcome(x)
		// At the latest reading and not now: what is read next is never before it.
		s.at(s.identity(x, "restart", fmt.Sprintf("pid %d is pid %d now; a new series begins", old, p.PID)), s.part.Up())
	case !x.present:
		s.undoDeath(p)
		s.welcome(x)
		s.setLevel(x, probe)
		if x.backs++; x.backs <= maxBacks {
			s.about(x, "back", fmt.Sprintf("pid %d", p.PID))
		}
	}
}

// foundText is what is recorded of a process that is new.
func foundText(p capture.Process, probe capture.Probe) string {
	if p.Twin > 1 {
		return fmt.Sprintf("pid %d of uid %d, which runs beside another process of this name, read by %s", p.PID, p.UID, probe.Level.Source)
	}
	return fmt.Sprintf("pid %d, read by %s", p.PID, probe.Level.Source)
}
