package trip

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// Options controls how a scenario is repeated.
type Options struct {
	Device, Process string
	// WarmUp is the number of loops before the first reading, or DefaultWarmUp
	// if it is nil.
	WarmUp *int
	// Loops is the maximum number of loops after the warm-up, or DefaultLoops
	// if it is zero.
	Loops int
	// LoopsPerReading is the number of loops between two readings. Zero means
	// 2, or 1 if Loops is small.
	LoopsPerReading int
	// NoDumps disables heap dumps.
	NoDumps bool
	// Death returns the reason why the process with the given pid has ended, or
	// "" if it is unknown. Death may be nil.
	Death func(ctx context.Context, pid int) string
	// Progress receives messages; it may be nil.
	Progress func(string)
}

// The defaults follow LeakCanary's repeating scenarios, which take up to 5
// dumps with 2 loops between them.
const (
	DefaultWarmUp          = 2
	DefaultLoops           = 10
	defaultLoopsPerReading = 2
)

// MaxLoops is the maximum number of loops of a trip.
const MaxLoops = 10_000

// LoopError is the error for a scenario that failed.
type LoopError struct {
	// Loop is the number of the loop, counted from 1; warm-up loops are
	// numbered separately.
	Loop   int
	WarmUp bool
	Err    error
}

func (e *LoopError) Error() string { return fmt.Sprintf("%s: %v", loopName(e.Loop, e.WarmUp), e.Err) }

func (e *LoopError) Unwrap() error { return e.Err }

// RestartError is the error for a process that has restarted or ended during a
// trip: its memory before and after cannot be compared.
type RestartError struct {
	Process string
	// Loop is the number of the loop in which the process restarted or ended.
	Loop   int
	WarmUp bool
	// Old is the previous life, and New the current one; the PID of New is 0 if
	// the process is not running.
	Old, New Life
	// Reason explains why the process ended; it is "" if this is unknown.
	Reason string
}

func (e *RestartError) Error() string {
	what := fmt.Sprintf("%s ended", text.Printable(e.Process))
	if e.New.PID != 0 {
		what = fmt.Sprintf("%s restarted", text.Printable(e.Process))
	}
	at := "in " + loopName(e.Loop, e.WarmUp)
	if e.Loop == 0 {
		at = "before the first loop"
	}
	pids := fmt.Sprintf("pid %d", e.Old.PID)
	if e.New.PID != 0 {
		pids = fmt.Sprintf("pid %d, then %d", e.Old.PID, e.New.PID)
	}
	reason := ""
	if e.Reason != "" {
		reason = ": " + text.Printable(e.Reason)
	}
	return fmt.Sprintf("%s %s (%s)%s; a scenario must leave its process running", what, at, pids, reason)
}

// Unwrap lets callers check for ErrGone.
func (e *RestartError) Unwrap() error {
	if e.New.PID == 0 {
		return ErrGone
	}
	return nil
}

func loopName(n int, warmUp bool) string {
	if warmUp {
		return fmt.Sprintf("warm-up loop %d", n)
	}
	return fmt.Sprintf("loop %d", n)
}

// Run repeats a scenario until nothing grows any more or all loops are done,
// and judges what the scenario adds to the process. The result contains the
// measurements even if an error ends the trip. The error is a [LoopError], a
// [RestartError], the error from reading the process, or the cause of
// ctx.
func Run(ctx context.Context, s Subject, loop func(context.Context) error, o Options) (record.Trip, error) {
	t, err := newTrip(s, loop, o)
	if err != nil {
		return record.Trip{}, err
	}
	err = t.run(ctx)
	return t.result(ctx, err), err
}

// trip is one trip in progress.
type trip struct {
	Options
	subject Subject
	loop    func(context.Context) error
	warmUp  int

	warmedUp, done int
	process        *Life
	user           int
	series         series
	heaps          *heaps
	// unsettled is the number of readings that were taken before the process
	// had settled.
	unsettled int
	stopped   string
	warnings  []string
}

func newTrip(s Subject, loop func(context.Context) error, o Options) (*trip, error) {
	t := &trip{Options: o, subject: s, loop: loop, warmUp: DefaultWarmUp}
	if o.WarmUp != nil {
		t.warmUp = *o.WarmUp
	}
	if t.Loops == 0 {
		t.Loops = DefaultLoops
	}
	if t.LoopsPerReading == 0 {
		t.LoopsPerReading = defaultLoopsPerReading
		if t.Loops < defaultLoopsPerReading*leastMemory {
			t.LoopsPerReading = 1
		}
	}
	switch {
	case t.warmUp < 0 || t.warmUp > MaxLoops:
		return nil, fmt.Errorf("start trip: %d warm-up loops; want 0 to %d", t.warmUp, MaxLoops)
	case t.Loops < leastCounts || t.Loops > MaxLoops:
		return nil, fmt.Errorf("start trip: %d loops; want %d to %d", t.Loops, leastCounts, MaxLoops)
	case t.LoopsPerReading < 1 || t.LoopsPerReading*leastCounts > t.Loops:
		return nil, fmt.Errorf("start trip: %d loops per reading; want 1 to %d, a third of the loops",
			t.LoopsPerReading, t.Loops/leastCounts)
	}
	if t.Progress == nil {
		t.Progress = func(string) {}
	}
	if !t.NoDumps {
		t.heaps = &heaps{loops: t.LoopsPerReading}
	}
	return t, nil
}

func (t *trip) run(ctx context.Context) error {
	if err := t.check(ctx, 0, false); err != nil {
		return err
	}
	for i := 1; i <= t.warmUp; i++ {
		if err := t.repeat(ctx, i, true); err != nil {
			return err
		}
		t.warmedUp = i
		if i == 1 {
			if err := t.dumpFirst(ctx); err != nil {
				return err
			}
		}
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	for t.done < t.Loops {
		for range min(t.LoopsPerReading, t.Loops-t.done) {
			if err := t.repeat(ctx, t.done+1, false); err != nil {
				return err
			}
			t.done++
		}
		if err := t.read(ctx); err != nil {
			return err
		}
		if err := t.dump(ctx); err != nil {
			return err
		}
		if t.over() {
			t.stopped = record.TripStoppedQuiet
			return nil
		}
	}
	t.stopped = record.TripStoppedLoops
	return nil
}

// repeat runs the scenario once and checks that its process is still running.
func (t *trip) repeat(ctx context.Context, n int, warmUp bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t.Progress(loopName(n, warmUp))
	if err := t.loop(ctx); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		t.stopped = record.TripStoppedLoop
		return &LoopError{n, warmUp, err}
	}
	return t.check(ctx, n, warmUp)
}

// check compares the running life with the previous one.
func (t *trip) check(ctx context.Context, n int, warmUp bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	now, err := t.subject.Alive(ctx)
	return t.compare(ctx, now, err, n, warmUp)
}

func (t *trip) compare(ctx context.Context, now Life, err error, n int, warmUp bool) error {
	if err != nil && t.process != nil && ctx.Err() == nil {
		now, err = t.lookAgain(ctx, err)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && !errors.Is(err, ErrGone):
		t.stopped = record.TripStoppedUnread
		return err
	case err == nil && (t.process == nil || *t.process == now):
		t.process = &now
		return nil
	case t.process == nil:
		t.stopped = record.TripStoppedGone
		return fmt.Errorf("%s: %w", text.Printable(t.Process), ErrGone)
	}
	restart := &RestartError{Process: t.Process, Loop: n, WarmUp: warmUp, Old: *t.process, New: now}
	t.stopped = record.TripStoppedRestart
	if err != nil {
		restart.New = Life{}
		t.stopped = record.TripStoppedGone
	}
	if t.Death != nil {
		restart.Reason = t.Death(ctx, t.process.PID)
	}
	return restart
}

// lookAgain checks after an error whether the process is still running: reading
// a process while it restarts can fail in many ways.
func (t *trip) lookAgain(ctx context.Context, err error) (Life, error) {
	now, aerr := t.subject.Alive(ctx)
	switch {
	case aerr == nil && now != *t.process:
		return now, nil
	case errors.Is(aerr, ErrGone):
		return now, aerr
	}
	return now, err
}

// at returns the number of the loop that has just ended.
func (t *trip) at() (n int, warmUp bool) {
	if t.done == 0 && t.warmedUp > 0 {
		return t.warmedUp, true
	}
	return t.done, false
}

// settle waits until the process has settled.
func (t *trip) settle(ctx context.Context) (rests bool, err error) {
	rests, err = t.subject.Settle(ctx)
	if err != nil || ctx.Err() != nil {
		last, warmUp := t.at()
		return false, t.compare(ctx, Life{}, err, last, warmUp)
	}
	return rests, nil
}

// read reads the process once it has settled.
func (t *trip) read(ctx context.Context) error {
	rests, err := t.settle(ctx)
	if err != nil {
		return err
	}
	if !rests {
		t.unsettled++
	}
	last, warmUp := t.at()
	r, err := t.subject.Snapshot(ctx)
	if err := t.compare(ctx, r.Life, err, last, warmUp); err != nil {
		return err
	}
	t.user = r.User
	t.series.add(t.done, r)
	if r.Threads == nil || r.Files == nil || len(r.Objects) == 0 {
		for _, reason := range r.Reasons {
			t.warn(reason)
		}
	}
	return nil
}

// dumpFirst takes a dump that is not compared. The first dumps allocate memory
// in the process, such as tables and buffers of the writer (a JVM: one thread,
// one file, 1 MB), which must not look like growth.
func (t *trip) dumpFirst(ctx context.Context) error {
	if t.heaps == nil {
		return nil
	}
	d, err := t.takeDump(ctx)
	if d == nil || err != nil {
		return err
	}
	t.heaps.taken++
	if d.Close != nil {
		return d.Close()
	}
	return nil
}

// begin takes the first readings, with which later readings are compared.
func (t *trip) begin(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if t.heaps != nil && t.heaps.failure == "" {
		if _, err := t.settle(ctx); err != nil {
			return err
		}
		if err := t.compareDump(ctx); err != nil {
			return err
		}
	}
	return t.read(ctx)
}

// dump takes a heap dump if a dump may show growth.
func (t *trip) dump(ctx context.Context) error {
	if t.heaps == nil || t.done%t.LoopsPerReading != 0 || !t.heaps.wanted(t.javaRises(), t.done == t.Loops) {
		return nil
	}
	return t.compareDump(ctx)
}

// compareDump takes a dump and compares it with the previous ones.
func (t *trip) compareDump(ctx context.Context) error {
	d, err := t.takeDump(ctx)
	if d == nil || err != nil {
		return err
	}
	return t.heaps.add(ctx, d)
}

// takeDump takes a dump. It returns nil if the heap cannot be dumped.
func (t *trip) takeDump(ctx context.Context) (*Dump, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	last, warmUp := t.at()
	t.Progress("heap dump after " + loopName(last, warmUp))
	d, err := t.subject.Dump(ctx)
	switch {
	case ctx.Err() != nil:
		if err == nil && d.Close != nil {
			return nil, errors.Join(context.Cause(ctx), d.Close())
		}
		return nil, context.Cause(ctx)
	case err != nil:
		if cerr := t.check(ctx, last, warmUp); cerr != nil {
			return nil, cerr
		}
		t.heaps.failure = "the heap could not be dumped: " + text.Head(err.Error(), maxStep)
		return nil, nil
	}
	return d, nil
}

// javaRises reports whether the Java heap or the number of objects in it may be
// growing.
func (t *trip) javaRises() bool {
	for _, m := range t.series.measures() {
		if m.rule.unit == record.UnitKB && !m.rule.java || m.name == "threads" || m.name == "files" {
			continue
		}
		if s := m.rule.judge(t.series.known(&m)).state; s == rising || s == growing {
			return true
		}
	}
	return false
}

// over reports whether the trip can end: nothing grows any more, and any growth
// that might be missed is too small to matter.
func (t *trip) over() bool {
	if t.heaps != nil && t.heaps.failure == "" && !t.heaps.flat() {
		return false
	}
	judged := false
	for _, m := range t.judged() {
		switch {
		case m.rule.shown || m.overruled || m.state == unread && m.readings < 2: // more loops would not change that
		case m.state != quiet:
			return false
		default:
			judged = true
		}
	}
	return judged
}

// judgedMeasure is a measure with its current judgment.
type judgedMeasure struct {
	measure
	judgment
	// overruled reports whether heap dumps show that Java memory does not grow.
	overruled bool
}

// judged returns all measures with their current judgments.
func (t *trip) judged() []judgedMeasure {
	var out []judgedMeasure
	flat := t.heaps != nil && t.heaps.flat()
	for _, m := range t.series.measures() {
		out = append(out, judgedMeasure{m, m.rule.judge(t.series.known(&m)), flat && m.rule.java})
	}
	return out
}

// maxWarnings is the maximum number of warnings in a result.
const maxWarnings = 20

func (t *trip) warn(line string) {
	line = text.Head(line, maxStep)
	if len(t.warnings) < maxWarnings && !slices.Contains(t.warnings, line) {
		t.warnings = append(t.warnings, line)
	}
}
