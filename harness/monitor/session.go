package monitor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters"
)

const (
	// discoverEvery is the device time between two looks for new processes.
	discoverEvery = 30 * time.Second
	// discoverSoon is the least device time between two looks.
	discoverSoon = 5 * time.Second
	// patience is the real time that a device may stay silent before its part of
	// the run ends.
	patience = 60 * time.Second
	// retryFirst is the real time before a failed trip is tried again.
	retryFirst = 500 * time.Millisecond
	retryMost  = 10 * time.Second
	// reprobeAfter is how many failed readings in a row put a level in doubt.
	reprobeAfter = 3
)

// session is one device with its processes. One goroutine, watch, owns all of
// it; trips to the device run beside and hand their answers back.
type session struct {
	run      *run
	dev      Device
	clock    clock
	begun    time.Duration // the device's clock at t_s 0
	lastUp   time.Duration
	fast     *capture.Fast
	levels   *capture.Levels
	rotation *capture.Rotation

	subjects     map[capture.Key]*subject
	order        []*subject
	systemServer int

	// reading is the process that the detail channel reads now; zero for none.
	reading capture.Key

	rounds  trip[[]capture.Round]
	details trip[capture.Detail]
	looks   trip[look]
	marks   chan string
	trips   sync.WaitGroup

	discoverAt time.Duration
	forget     []capture.Process
	silent     silence
	waiting    bool
	usage      usage
	err        error
}

// trip is one kind of errand to the device: at most one is on its way.
type trip[T any] struct {
	done chan answer[T]
	away bool
}

type answer[T any] struct {
	value T
	err   error
	// after is the latest reading of the device's clock when the errand began.
	after time.Duration
}

func newTrip[T any]() trip[T] { return trip[T]{done: make(chan answer[T], 1)} }

// send starts an errand beside the session.
func send[T any](s *session, t *trip[T], errand func() (T, error)) {
	t.away = true
	after := s.lastUp
	s.trips.Go(func() {
		v, err := errand()
		t.done <- answer[T]{v, err, after}
	})
}

// look is what one search for processes gave, with a probe for each.
type look struct {
	found  capture.Found
	probes []capture.Probe
}

func newSession(r *run, d Device) *session {
	return &session{
		run: r, dev: d, begun: d.Facts.Up, lastUp: d.Facts.Up,
		clock:    clock{started: time.Now(), scale: d.Facts.TimeScale},
		fast:     capture.NewFast(d),
		levels:   capture.NewLevels(d, d.Facts),
		rotation: capture.NewRotation(r.Detail),
		subjects: map[capture.Key]*subject{},
		rounds:   newTrip[[]capture.Round](), details: newTrip[capture.Detail](), looks: newTrip[look](),
		marks: make(chan string, 64),
	}
}

// watch goes on until ctx ends or the device is lost.
func (s *session) watch(ctx context.Context) {
	defer s.trips.Wait()
	s.event(reporters.Event{Event: "start", Text: s.dev.Facts.Describe()})
	wake := time.NewTimer(0)
	defer wake.Stop()
	for s.err == nil {
		select {
		case <-ctx.Done():
			s.event(reporters.Event{Event: "end", Text: context.Cause(ctx).Error()})
			return
		case <-wake.C:
			s.depart(ctx)
		case a := <-s.looks.done:
			s.takeLook(ctx, a)
		case a := <-s.rounds.done:
			s.takeRounds(ctx, a)
		case a := <-s.details.done:
			s.takeDetail(ctx, a)
		case text := <-s.marks:
			s.event(reporters.Event{Event: "mark", Text: text})
		}
		s.run.Observer.Changed(s.dev.Serial(), s.rows())
		wake.Reset(s.clock.until(s.nextWake()))
	}
}

// depart sends every errand that is due.
func (s *session) depart(ctx context.Context) {
	now := s.clock.now()
	if !s.silent.over(time.Now()) {
		return
	}
	if !s.looks.away && now >= s.discoverAt {
		s.sendLook(ctx)
	}
	if targets := s.dueTargets(now); !s.rounds.away && len(targets) > 0 {
		s.sendRound(ctx, targets)
	}
	if !s.details.away {
		s.sendDetail(ctx, now)
	}
}

// nextWake is the device time since the start at which something is due next.
func (s *session) nextWake() time.Duration {
	now := s.clock.now()
	next := now - now%s.rotation.Slot() + s.rotation.Slot()
	if !s.looks.away {
		next = min(next, s.discoverAt)
	}
	if !s.rounds.away {
		for _, x := range s.order {
			if x.present {
				next = min(next, x.due)
			}
		}
	}
	if pause := s.silent.left(time.Now()); pause > 0 {
		next = max(next, now+time.Duration(float64(pause)*s.clock.scale))
	}
	return next
}

func (s *session) sendLook(ctx context.Context) {
	forget := s.forget
	s.forget = nil
	send(s, &s.looks, func() (look, error) {
		for _, p := range forget {
			s.levels.Forget(p)
		}
		found, err := capture.FindProcesses(ctx, s.dev, s.run.Patterns)
		l := look{found: found}
		for _, p := range found.Processes {
			if err != nil {
				break
			}
			var probe capture.Probe
			probe, err = s.levels.Probe(ctx, p)
			l.probes = append(l.probes, probe)
		}
		return l, err
	})
}

func (s *session) takeLook(ctx context.Context, a answer[look]) {
	s.looks.away = false
	s.discoverAt = align(s.clock.now(), discoverEvery)
	if a.err != nil {
		s.failed(ctx, a.err)
		return
	}
	s.silent.reset()
	s.systemServer = a.value.found.SystemServer
	for i, p := range a.value.found.Processes {
		s.meet(p, a.value.probes[i])
	}
	if len(s.order) == 0 {
		s.discoverAt = s.clock.now() + discoverSoon
		s.wait()
	}
}

// wait tells once that no process is there yet: a name may be misspelled.
func (s *session) wait() {
	if s.waiting {
		return
	}
	s.waiting = true
	s.event(reporters.Event{Event: "waiting", Text: fmt.Sprintf("no process %s runs yet", words(s.run.Patterns))})
}

func words(patterns []capture.Pattern) string {
	out := make([]string, len(patterns))
	for i, p := range patterns {
		out[i] = string(p)
	}
	return strings.Join(out, " or ")
}

// meet takes a process that a look has found: a new one, one that has come back
// as another incarnation, or one that is under watch already.
func (s *session) meet(p capture.Process, probe capture.Probe) {
	x := s.subjects[p.Key()]
	switch {
	case x == nil:
		x = &subject{Process: p, probe: probe, detector: detector.New(s.run.Policy)}
		s.subjects[p.Key()] = x
		s.order = append(s.order, x)
		s.welcome(x, "found", fmt.Sprintf("pid %d, read by %s", p.PID, probe.Level.Source))
	case !x.Same(p):
		old := x.PID
		x.Process, x.restarts = p, x.restarts+1
		x.lastUp = 0
		s.moved(x, x.detector.Restart(s.lastUp))
		s.setLevel(x, probe)
		s.welcome(x, "restart", fmt.Sprintf("pid %d is pid %d now; a new series begins", old, p.PID))
	case !x.present:
		s.welcome(x, "back", fmt.Sprintf("pid %d", p.PID))
	default:
		s.setLevel(x, probe)
	}
}

func (s *session) welcome(x *subject, event, text string) {
	x.present, x.failures, x.hung, x.said = true, 0, 0, [2]string{}
	x.due = s.clock.now()
	s.rotation.Add(x.Key())
	s.rotation.Answered(x.Key())
	s.about(x, event, text)
}

// setLevel changes how a process is read. Another level may be another quantity,
// so that no trend may cross the change.
func (s *session) setLevel(x *subject, probe capture.Probe) {
	if probe.Level == x.probe.Level {
		x.probe = probe
		return
	}
	was := x.probe.Level.Source
	x.probe = probe
	s.moved(x, x.detector.Gap(s.lastUp))
	s.about(x, "level", fmt.Sprintf("read by %s instead of %s", probe.Level.Source, was))
}

// dueTargets gives the processes that want a sample now. Intervals are aligned, so
// that one trip serves all.
func (s *session) dueTargets(now time.Duration) []capture.Target {
	var out []capture.Target
	for _, x := range s.order {
		if x.present && x.due <= now {
			out = append(out, x.target())
		}
	}
	return out
}

// fastDeadline is the real time that one round may take: smaps costs seconds per
// process on an old phone, everything else milliseconds.
func fastDeadline(targets []capture.Target) time.Duration {
	d := 10 * time.Second
	for _, t := range targets {
		if t.Level.Source == capture.Smaps {
			d += 5 * time.Second
		}
	}
	return d
}

func (s *session) sendRound(ctx context.Context, targets []capture.Target) {
	systemServer := s.systemServer
	send(s, &s.rounds, func() ([]capture.Round, error) {
		return s.fast.Read(ctx, targets, systemServer, fastDeadline(targets))
	})
}

func (s *session) takeRounds(ctx context.Context, a answer[[]capture.Round]) {
	s.rounds.away = false
	for _, r := range a.value {
		s.takeRound(r, a.after)
	}
	s.usage.fast.count(a.err)
	if a.err != nil {
		s.failed(ctx, a.err)
	} else {
		s.silent.reset()
	}
}

func (s *session) takeRound(r capture.Round, after time.Duration) {
	s.advance(r.Up, after)
	s.usage.fast.add(r.Took)
	s.usage.cpu(r.Up, r.SystemServer)
	cost := round(r.Took.Seconds()*1000/float64(max(1, len(r.Readings))), 3)
	for _, reading := range r.Readings {
		x := s.subjects[reading.Key()]
		if x == nil || !x.Same(reading.Process) {
			continue
		}
		x.due = align(s.clock.now(), x.detector.Demand().Interval)
		if reading.Err != nil {
			s.missed(x, reading.Err)
			continue
		}
		s.sampled(x, reading, r.Up, cost)
	}
}

// sampled takes one good reading of the fast channel.
func (s *session) sampled(x *subject, r capture.Reading, up time.Duration, costMS float64) {
	x.failures, x.hung, x.said[fastChannel] = 0, 0, ""
	x.last, x.costMS = r, costMS
	line := s.line(x, up)
	line.Source, line.CostMS = string(r.Level.Source), costMS
	line.PSS, line.SwapPSS = kb(r.PSS), kb(r.SwapPSS)
	line.RSSAnon, line.Swap, line.Threads = kb(r.RSSAnon), kb(r.Swap), kb(r.Threads)
	s.run.keep(s.run.recorder.Sample(line))
	if r.Level.Source != capture.Dumpsys {
		s.judge(x, detector.Sample{At: up, Bytes: r.Bytes()})
	}
}

// judge hands one sample to the detector and acts on what it says.
func (s *session) judge(x *subject, sample detector.Sample) {
	if x.lastUp > 0 && sample.At-x.lastUp > s.gapAfter(x) {
		s.about(x, "gap", fmt.Sprintf("no sample for %v; the trend starts again", (sample.At-x.lastUp).Round(time.Second)))
		s.moved(x, x.detector.Gap(sample.At))
	}
	x.samples++
	x.lastUp, x.lastBytes = sample.At, sample.Bytes
	s.moved(x, x.detector.AddSample(sample))
	s.obey(x)
}

// gapAfter is the time without a sample that breaks a series: three times that in
// which one was due. Where only dumpsys can read a process, that is its turn.
func (s *session) gapAfter(x *subject) time.Duration {
	due := x.detector.Demand().Interval
	if x.probe.Level.Source == capture.Dumpsys {
		due = max(due, s.rotation.Round())
	}
	return 3 * due
}

// obey does what the machine demands.
func (s *session) obey(x *subject) {
	d := x.detector.Demand()
	now := s.clock.now()
	x.due = min(x.due, align(now, d.Interval))
	if x.probe.Level.Source == capture.Dumpsys {
		x.due = align(now, d.Interval)
	}
	switch {
	case d.Breakdowns == 0:
		s.rotation.Cancel(x.Key())
	case s.rotation.Wanted(x.Key()) == 0 && s.reading != x.Key():
		s.rotation.Want(x.Key(), d.Breakdowns, now, d.Spacing)
	}
}

// missed takes a reading that gave no sample.
func (s *session) missed(x *subject, err error) {
	switch {
	case errors.Is(err, capture.ErrGone):
		s.lost(x, err)
	case errors.Is(err, capture.ErrNoAnswer):
		x.hung++
		x.due += pauseAfter(x.hung)
		s.complain(x, fastChannel, "unresponsive", err)
	default:
		x.failures++
		if x.failures%reprobeAfter == 0 {
			s.forget = append(s.forget, x.Process)
			s.discoverAt = min(s.discoverAt, s.clock.now()+discoverSoon)
		}
		s.complain(x, fastChannel, "error", err)
	}
}

// pauseAfter is the device time that a hung process is left alone: half a minute
// doubled each time, up to eight minutes.
func pauseAfter(times int) time.Duration {
	return 15 * time.Second << min(times, 5)
}

// lost takes a process that has ended.
func (s *session) lost(x *subject, err error) {
	if !x.present {
		return
	}
	x.present = false
	s.rotation.Remove(x.Key())
	s.discoverAt = min(s.discoverAt, s.clock.now()+discoverSoon)
	s.about(x, "gone", err.Error())
}

// complain tells a fault of one process once, until its channel reads it again.
func (s *session) complain(x *subject, on channel, event string, err error) {
	text := err.Error()
	if text == x.said[on] {
		return
	}
	x.said[on] = text
	x.warn(err)
	s.about(x, event, text)
}

func (s *session) sendDetail(ctx context.Context, now time.Duration) {
	key, ok := s.rotation.Turn(now)
	if !ok {
		return
	}
	s.reading = key
	x := s.subjects[key]
	process, systemServer := x.Process, s.systemServer
	send(s, &s.details, func() (capture.Detail, error) {
		return capture.ReadDetail(ctx, s.dev, s.dev.Facts, process, systemServer)
	})
}

func (s *session) takeDetail(ctx context.Context, a answer[capture.Detail]) {
	s.details.away, s.reading = false, capture.Key{}
	d := a.value
	s.usage.detail.count(a.err)
	x := s.subjects[d.Key()]
	switch {
	case a.err == nil && x.Same(d.Process):
		s.advance(d.Up, a.after)
		s.detailed(x, d)
	case a.err == nil || ctx.Err() != nil:
	case errors.Is(a.err, capture.ErrGone):
		if x.Same(d.Process) {
			s.lost(x, a.err)
		}
	case errors.Is(a.err, capture.ErrNoAnswer):
		s.rotation.Hung(d.Key())
		s.rotation.Skip(s.clock.now())
		s.complain(x, detailChannel, "unresponsive", a.err)
	case errors.Is(a.err, capture.ErrDevice):
		s.failed(ctx, a.err)
	default:
		s.rotation.Skip(s.clock.now())
		s.complain(x, detailChannel, "error", a.err)
	}
}

// detailed takes one good reading of the detail channel.
func (s *session) detailed(x *subject, d capture.Detail) {
	s.rotation.Answered(x.Key())
	x.said[detailChannel] = ""
	s.usage.detail.add(d.Took)
	s.usage.detailCPU(d)
	for _, w := range d.Warnings {
		x.warn(w)
	}
	x.details++
	line := s.line(x, d.Up)
	line.Source, line.CostMS = string(capture.Dumpsys), round(d.Took.Seconds()*1000, 3)
	line.Breakdown = breakdown(d.Block)
	s.run.keep(s.run.recorder.Sample(line))
	b := d.Breakdown()
	s.moved(x, x.detector.AddBreakdown(b))
	if mapped := b.Mapped(); x.probe.Level.Source == capture.Dumpsys && mapped.Known {
		x.costMS = line.CostMS
		s.judge(x, detector.Sample{At: d.Up, Bytes: mapped.Bytes})
		return
	}
	s.obey(x)
}

// failed takes an errand that the device did not answer. The device gets a pause
// that grows; one that stays silent too long ends the session.
func (s *session) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if s.silent.since.IsZero() {
		s.event(reporters.Event{Event: "error", Text: err.Error()})
	}
	if s.silent.fail(time.Now()) > patience {
		s.err = fmt.Errorf("device %s is lost: %w", s.dev.Serial(), err)
		s.event(reporters.Event{Event: "end", Text: s.err.Error()})
	}
}

// advance follows the device's clock. A clock that shows less than it did before
// the errand began is that of a device that has started again: the time axis of
// the run goes on where the host's clock puts it. The two channels overlap, so
// that the latest reading is not the one to compare with.
func (s *session) advance(up, after time.Duration) {
	// Where the latest reading is older than that, the new start is known already.
	if up < after && after <= s.lastUp {
		s.begun, s.lastUp = up-s.clock.now(), up
		s.event(reporters.Event{Event: "gap", Text: "the device has started again"})
		for _, x := range s.order {
			x.lastUp = 0
			s.moved(x, x.detector.Gap(up))
		}
	}
	s.lastUp = max(s.lastUp, up)
}

// moved records the steps of a process's machine.
func (s *session) moved(x *subject, steps []detector.Transition) {
	for _, t := range steps {
		x.transitions = append(x.transitions, reporters.Transition{
			T: s.seconds(t.At), From: t.From.String(), To: t.To.String(), Kind: t.Kind.String(), Because: t.Because,
		})
		e := s.naming(x, "state", t.Because)
		e.From, e.To, e.Kind = t.From.String(), t.To.String(), t.Kind.String()
		e.T, e.Up = s.seconds(t.At), round(t.At.Seconds(), 3)
		s.tell(e)
	}
}

func (s *session) mark(text string) {
	select {
	case s.marks <- text:
	default: // more than 64 marks wait: a workload that prints nothing else
	}
}

// seconds is a moment of the device's clock on the time axis of the run.
func (s *session) seconds(up time.Duration) float64 { return round((up - s.begun).Seconds(), 3) }

func (s *session) line(x *subject, up time.Duration) reporters.Sample {
	return reporters.Sample{
		T: s.seconds(up), Up: round(up.Seconds(), 3), Device: s.dev.Serial(),
		User: x.User, Process: x.Name, PID: x.PID, Start: x.Start,
	}
}

func (s *session) naming(x *subject, event, text string) reporters.Event {
	return reporters.Event{Event: event, User: new(x.User), Process: x.Name, PID: x.PID, Text: text}
}

func (s *session) about(x *subject, event, text string) { s.event(s.naming(x, event, text)) }

// event records something that happens now.
func (s *session) event(e reporters.Event) {
	up := s.begun + s.clock.now()
	e.T, e.Up = s.seconds(up), round(up.Seconds(), 3)
	s.tell(e)
}

func (s *session) tell(e reporters.Event) {
	e.Device = s.dev.Serial()
	s.run.keep(s.run.recorder.Event(e))
	s.run.Observer.Happened(e)
}

func (s *session) rows() []Row {
	now := s.clock.now()
	out := make([]Row, len(s.order))
	for i, x := range s.order {
		out[i] = x.row(s.dev.Serial(), now)
	}
	return out
}
