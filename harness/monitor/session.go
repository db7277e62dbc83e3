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
	"github.com/leakgate/leakgate/internal/capture/detail"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// maxSubjects bounds the processes of one device under watch.
	maxSubjects = 500
	// maxBacks is how often one incarnation may be told gone and back: a device may
	// contradict itself all night.
	maxBacks = 3
	// discoverEvery is the device time between two looks for new processes.
	discoverEvery = 30 * time.Second
	// discoverSoon is the least device time between two looks.
	discoverSoon = 5 * time.Second
	// usageEvery is the device time between two lines that tell the costs.
	usageEvery = 10 * time.Minute
	// reprobeAfter is how many failed readings in a row put a level in doubt.
	reprobeAfter = 3
)

// session is one device with its processes. One goroutine, watch, owns all of
// it; trips to the device run beside and hand their answers back.
type session struct {
	run      *run
	dev      Device
	clock    clock
	part     *ledger.Part
	fast     *capture.Fast
	levels   *capture.Levels
	rotation *rotation

	subjects     map[capture.Key]*subject
	order        []*subject
	systemServer int
	boot         string
	boots        int
	// marks counts those on the device; foundMarks is how many there were when the latest look
	// began that has ended, lookMarks when the one under way began, at lookedAt.
	marks, foundMarks, lookMarks int
	lookedAt                     time.Duration
	// pending are the marks whose heap dumps wait for a look.
	pending []pendingMark

	// reading is the process that the detail channel reads now; zero for none.
	reading capture.Key

	rounds trip[[]capture.Round]
	// finalRounds are closed when the last samples of the run are there.
	finalRounds []chan<- struct{}
	details     trip[detail.Detail]
	looks       trip[look]
	discovery   discovery
	// lookers wait for a look that has not begun, awaiting for the one under way.
	lookers, awaiting []chan<- error
	pulses            trip[capture.Pulse]
	returns           trip[struct{}]
	resets            trip[struct{}]
	sweeps            trip[[]string]
	rooms             trip[[]capture.Headroom]
	builds            trip[*record.AppBuild]
	deaths            trip[record.Death]
	// ends are the incarnations whose reasons are not read yet, ending is being read.
	ends   []lostProcess
	ending lostProcess
	// past are the latest incarnations that have ended.
	past []pastProcess
	// packages are the apps that were met, unread those whose builds are not read yet.
	packages, unread []string
	// headrooms reads how near processes are to their limits, next at roomsAt.
	headrooms *capture.Headrooms
	roomsAt   time.Duration
	// requested reads the same for who asks; requestedMu guards it.
	requested   *capture.Headrooms
	requestedMu sync.Mutex
	respond     responses
	garbage     collecting
	notes       mailbox
	trips       sync.WaitGroup

	// skipped are the marks and events of the workload for which there was no room.
	skipped skips

	discoverAt time.Duration
	usageAt    time.Duration
	silent     silence
	// deviceClock is the clock of the device, as rounds show it.
	deviceClock deviceClock
	waiting     bool
	usage       usage
	left        bool
	// calm is the device time between two samples while nothing is suspected.
	calm time.Duration
	// failing is when the first round failed since the latest good one, stumbles how
	// many did.
	failing  time.Time
	stumbles int
	// complaints are the texts last told of each kind of errand.
	complaints map[errand]string
	// gone is closed when the device's part of the run has ended early.
	gone chan struct{}
	// over is closed when nothing is recorded of the device any more.
	over chan struct{}
	err  error
}

func newSession(r *run, d Device) *session {
	fast := capture.NewFast(d)
	fast.MemTotal = d.Facts.MemTotal
	return &session{
		run: r, dev: d, boot: d.Facts.Boot,
		clock:    clock{started: time.Now(), scale: d.Facts.TimeScale},
		part:     r.ledger.Part(d.Serial()),
		calm:     detector.New(r.Policy).Demand().Interval,
		fast:     fast,
		levels:   capture.NewLevels(d, d.Facts),
		rotation: newRotation(r.Detail),
		subjects: map[capture.Key]*subject{},
		rounds:   newTrip[[]capture.Round](), details: newTrip[detail.Detail](), looks: newTrip[look](), discovery: newDiscovery(),
		pulses: newTrip[capture.Pulse](), returns: newTrip[struct{}](), resets: newTrip[struct{}](),
		rooms: newTrip[[]capture.Headroom](), headrooms: capture.NewHeadrooms(d, d.Facts), roomsAt: r.Headroom, requested: capture.NewHeadrooms(d, d.Facts),
		sweeps: newTrip[[]string](), builds: newTrip[*record.AppBuild](), deaths: newTrip[record.Death](), respond: newResponses(), garbage: newCollecting(),
		notes: newMailbox(), usageAt: usageEvery, gone: make(chan struct{}), over: make(chan struct{}), complaints: map[errand]string{},
	}
}

func headerOf(d Device) record.HeaderDevice {
	return record.HeaderDevice{
		Device: d.Serial(), Model: d.Facts.Model, API: d.Facts.API,
		StartedUp: record.Round(d.Facts.Up.Seconds(), 3), TimeScale: d.Facts.TimeScale,
		ABI: d.Facts.ABI, Fingerprint: d.Facts.Fingerprint, Emulator: d.Facts.Emulator, HeapLimit: record.Round(float64(d.Facts.HeapLimit)/detector.MB, 2),
		MemTotal: d.Facts.MemTotal >> 10,
	}
}

// watch goes on until ctx ends or the device is lost. What a leak calls for goes on until
// it is done, or until user ends.
func (s *session) watch(ctx, user context.Context) {
	defer s.trips.Wait()
	responding, giveUp := context.WithCancel(user)
	defer giveUp()
	// Errands end with the session, also where the run goes on without it.
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.event(record.Event{Event: "start", Text: s.dev.Facts.Describe()})
	s.sendSweep(responding)
	s.followMarks(ctx)
	wake := time.NewTimer(0)
	defer wake.Stop()
	for s.err == nil && ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
		case <-wake.C:
			s.depart(ctx)
		case a := <-s.looks.done:
			s.takeLook(ctx, a)
		case a := <-s.discovery.probes.done:
			s.takeProbes(ctx, a)
		case a := <-s.rounds.done:
			s.takeRounds(ctx, a)
		case a := <-s.details.done:
			s.takeDetail(ctx, a)
		case a := <-s.pulses.done:
			s.takePulse(ctx, a)
		case a := <-s.returns.done:
			s.takeReturn(ctx, a)
		case a := <-s.resets.done:
			s.resets.away = false
			s.silent.hurry()
			if a.err != nil && ctx.Err() == nil {
				s.event(record.Event{Event: "error", Text: a.err.Error()})
			}
		case a := <-s.rooms.done:
			s.takeHeadroom(ctx, a)
		case a := <-s.garbage.trip.done:
			s.takeCollection(ctx, a)
		case a := <-s.builds.done:
			s.takeBuild(a)
		case a := <-s.deaths.done:
			s.takeDeath(a)
		case a := <-s.sweeps.done:
			s.takeSweep(responding, a)
		case on := <-s.respond.pauses:
			s.paused(on)
		case a := <-s.respond.collects.done:
			s.takeCollect(ctx, a)
		case a := <-s.respond.analyses.done:
			s.takeAnalysis(a)
		case <-s.notes.bell:
			s.takeNotes()
		}
		s.sendResponses(responding)
		s.run.Observer.Changed(s.dev.Serial(), s.rows)
		wake.Reset(s.clock.until(s.nextWake()))
	}
	s.finishLook(ctx)
	if s.err == nil {
		s.err = s.blind()
	}
	cause := context.Cause(ctx)
	lost := s.err != nil
	if lost || !final(cause) {
		giveUp()
	} else {
		s.lastCall(responding)
	}
	// Nothing is sampled from here on, and what is still collected takes its time.
	for _, x := range s.order {
		s.trail(x)
	}
	s.conclude(responding, cause)
	s.readDeaths(responding)
	if !lost {
		return
	}
	s.leave(s.err)
	close(s.gone)
}

// leave ends the device's part of the run in its record, once.
func (s *session) leave(cause error) {
	if s.left {
		return
	}
	s.left = true
	s.takeNotes()
	for len(s.pending) > 0 {
		s.orderFirstMark()
	}
	for _, o := range s.respond.orders {
		s.lack(o, "the run had ended")
	}
	s.respond.orders = nil
	s.recordSkips(true)
	s.tellUsage()
	end := record.Event{Event: "end", Text: cause.Error()}
	if s.err != nil {
		end.Event, end.Text = "lost", s.err.Error()
	}
	s.event(end)
	close(s.over)
	s.notes.close()
}

var errOver = errors.New("the run has ended")

// ask has the session do something, and returns once it is done. The error is a session
// that has ended.
func (s *session) ask(do func()) error {
	done := make(chan struct{})
	s.notes.put(letter{do: func() { do(); close(done) }})
	select {
	case <-done:
		return nil
	case <-s.over:
	}
	select {
	case <-done: // it was done at the end
		return nil
	default:
		return errOver
	}
}

// trail tells that a process that is still there has no samples until the end.
func (s *session) trail(x *subject) {
	now := max(s.part.Up(), s.part.At(s.clock.now()))
	hole := now - x.LastUp - x.pauses
	if x.paused {
		hole -= s.clock.now() - x.pausedAt
	}
	if x.present && x.LastUp > 0 && hole > 3*s.rhythm(x) {
		e := s.naming(x.Account, "unseen", fmt.Sprintf("no sample in the last %v", hole.Round(time.Second)))
		if s.deviceClock.told {
			e.Text = fmt.Sprintf("no sample with a time of its own in the last %v: the device's clock has stopped", hole.Round(time.Second))
		}
		e.Duration = record.Round(hole.Seconds(), 3)
		s.event(e)
	}
}

// depart sends every errand that is due. A silent device is only asked for its pulse.
func (s *session) depart(ctx context.Context) {
	s.orderAtMarks()
	now := s.clock.now()
	if s.silent.on() {
		s.garbage.wanted = "" // its mark is long gone when the device answers
		s.callOut(ctx)
		s.refuseLookers()
		return
	}
	s.endLook(ctx)
	if !s.looking() && now >= s.discoverAt {
		s.sendLook(ctx)
	}
	s.sendCollection(ctx)
	if targets := s.dueTargets(now); !s.rounds.away && len(targets) > 0 {
		s.sendRound(ctx, targets)
	}
	if !s.details.away {
		s.sendDetail(ctx, now)
	}
	s.sendHeadroom(ctx, now)
	s.sendBuild(ctx)
	s.sendDeath(ctx, deathDelay)
	if now >= s.usageAt {
		s.usageAt = align(now, usageEvery)
		s.tellUsage()
	}
}

// nextWake is the device time since the start at which something is due next.
func (s *session) nextWake() time.Duration {
	next := s.nextErrand()
	if at, ok := s.markWake(); ok {
		next = min(next, at)
	}
	return next
}

func (s *session) nextErrand() time.Duration {
	now := s.clock.now()
	switch {
	case s.silent.on() && s.pulses.away:
		return now + discoverEvery // its answer wakes the session
	case s.silent.on():
		return now + time.Duration(float64(s.silent.left(time.Now()))*s.clock.scale)
	}
	next := s.collectWake(now, min(align(now, s.rotation.Slot()), s.usageAt))
	next = s.lookWake(now, next)
	if len(s.ends) > 0 && !s.deaths.away {
		next = min(next, s.ends[0].missed+deathDelay)
	}
	if s.run.Headroom > 0 && !s.rooms.away {
		next = min(next, s.roomsAt)
	}
	if !s.rounds.away {
		for _, x := range s.order {
			if x.present && !x.paused {
				next = min(next, x.due)
			}
		}
	}
	return next
}

// wait records once that no process is there yet: a name may be misspelled.
func (s *session) wait(similar []string) {
	if s.waiting {
		return
	}
	s.waiting = true
	e := record.Event{Event: "waiting", Similar: similar, Text: fmt.Sprintf("waiting for %s to start", words(s.run.Patterns))}
	if len(similar) > 0 {
		e.Text += "; similar names that run: " + strings.Join(similar, ", ")
	}
	s.event(e)
}

func words(patterns []capture.Pattern) string {
	out := make([]string, len(patterns))
	for i, p := range patterns {
		out[i] = string(p)
	}
	return strings.Join(out, " or ")
}

func (s *session) welcome(x *subject) {
	x.present, x.met, x.failures, x.hung, x.said = true, time.Now(), 0, 0, [2]string{}
	x.due = s.clock.now()
	s.wantBuild(x.Process)
	s.rotation.Add(x.Key())
	s.rotation.Answered(x.Key())
}

// setLevel changes how a process is read.
func (s *session) setLevel(x *subject, probe capture.Probe) {
	was, provisional := x.probe, x.provisional
	x.probe, x.provisional = probe, false
	switch {
	case probe.Level != was.Level:
		s.at(s.identity(x, "level", fmt.Sprintf("read by %s instead of %s", probe.Level.Source, was.Level.Source)), s.part.Up())
	case provisional:
		s.event(s.identity(x, "probed", fmt.Sprintf("read by %s", probe.Level.Source)))
	}
}

// identity is an event that says who a process is from now on and how it is read.
func (s *session) identity(x *subject, event, text string) record.Event {
	e := s.naming(x.Account, event, text)
	e.Start, e.Source, e.Reasons = x.Start, string(x.probe.Level.Source), x.probe.Reasons()
	return e
}

// advance follows the device's clock. A clock that shows less than it did before
// the errand began is that of a device that has started again. The two channels
// overlap, so that the latest reading is not the one to compare with; where that
// is older than the errand's departure, the new start is known already.
func (s *session) advance(ctx context.Context, up, after time.Duration) {
	if up < after && after <= s.part.Up() {
		s.startedAnew(up)
		s.sendPulse(ctx)
	}
	s.part.Advance(up)
}

// startedAnew begins the device's new clock: the time axis of the run goes on where
// the host's clock puts it, but never back; a host that was suspended is late.
func (s *session) startedAnew(up time.Duration) {
	latest := s.part.Seconds(s.part.Up())
	e := record.Event{
		Event: "reboot", Text: "the device has started again; every trend starts again",
		T: max(latest, record.Round(s.clock.now().Seconds(), 3)), Up: record.Round(up.Seconds(), 3),
	}
	e.Duration = record.Round(e.T-latest, 3)
	s.boots++
	s.boot, s.discoverAt = "", s.clock.now()
	for _, x := range s.order {
		x.rebooted = x.present
	}
	s.headrooms = capture.NewHeadrooms(s.dev, s.dev.Facts)
	s.dropLook()
	if s.tell(e) {
		s.moved(s.part.AddEvent(e))
	}
}
