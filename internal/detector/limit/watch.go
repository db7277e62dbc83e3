package limit

import "time"

// Use is one reading of a resource.
type Use struct {
	// At is a time on the device's clock, counted from boot.
	At time.Duration
	// Used and Limit are in bytes for memory, and are counts otherwise.
	Used, Limit int64
	// Garbage is the largest amount, in bytes, that a collection of the Java
	// heap could free. 0 means unknown; the value of the largest phones is used
	// then.
	Garbage int64
	// Assumed reports whether the limit was assumed, because it was not read
	// from the device.
	Assumed bool
}

// Warning reports that a process is coming close to a limit.
type Warning struct {
	At       time.Duration
	Resource Resource
	// Used is the amount that is compared with Limit. For the Java heap it is
	// the size after collections. Both values are in bytes for memory, and are
	// counts otherwise.
	Used, Limit int64
	// Rate is the growth of the last hour (for the Java heap: of the last four
	// hours).
	Rate Rate
	// TimeLeft is the time until the limit is reached at this rate; it is valid
	// only if TimeKnown is set.
	TimeLeft  time.Duration
	TimeKnown bool
	// Urgent reports whether 95 % of the limit is used.
	Urgent bool
	// Assumed has the same meaning as in Use.
	Assumed bool
	// Text is the warning in one line of English.
	Text string
}

// Standing is the present state of one resource of a process.
type Standing struct {
	Resource Resource
	// At, Used and Limit are the values of the last reading.
	At          time.Duration
	Used, Limit int64
	// Level is the amount that is compared with the limit, and Share is its
	// fraction of the limit; both are valid only if LevelKnown is set. The
	// level of the Java heap is unknown until a collection has been seen.
	Level      int64
	Share      float64
	LevelKnown bool
	Rate       Rate
	// TimeLeft is known if growth is even and continues.
	TimeLeft  time.Duration
	TimeKnown bool
	// Exceeded reports whether the use was above the limit. If it was, Limit is
	// not the real limit, and no warning is based on it.
	Exceeded bool
	// Warned reports whether a warning is active.
	Warned bool
	// Assumed has the same meaning as in Use.
	Assumed bool
}

const (
	near   = 0.80
	urgent = 0.95
	// A distance warning may be repeated once the level has been below
	// nearAgain or urgentAgain.
	nearAgain   = 0.60
	urgentAgain = 0.80
	// A time warning is issued if less than soon is left and at least soonShare
	// of the limit is used.
	soon      = time.Hour
	soonShare = 0.40
	// A time warning may be repeated once the time left has been above
	// soonAgain.
	soonAgain = 3 * time.Hour
	// again is the minimum time between two warnings of one kind.
	again = time.Hour
	// warmUp is the time after a start in which every process grows.
	warmUp = 5 * time.Minute
	// confirmations is the number of consecutive blocks that must predict that
	// the limit will be reached.
	confirmations = 2
)

// Watch judges one process. It keeps a few kilobytes, however many readings it
// receives. The zero Watch is ready to use: the process is assumed to have
// started at its first reading.
type Watch struct {
	from   time.Duration
	begun  bool
	tracks [NumResources]track
}

// track is the state of one resource of a process.
type track struct {
	last   Use
	seen   bool
	peak   int64
	series series
	recent recent
	floors outlook
	// climb and steep detect growth of a Java heap that its floors do not show
	// yet.
	climb series
	steep outlook
	// coming counts the consecutive blocks that predict that the limit will be
	// reached.
	coming int
	near   alarm
	urgent alarm
	soon   alarm
}

// alarm is a warning that is issued only once until it is cleared.
type alarm struct {
	on bool
	at time.Duration
}

func (a *alarm) raise(at time.Duration) { *a = alarm{true, at} }

// clear allows the alarm to be raised again, if enough time has passed since it
// was raised.
func (a *alarm) clear(at time.Duration) {
	if a.on && at-a.at >= again {
		a.on = false
	}
}

// Restart records that a new process began at the given time. All readings of
// the old process are dropped.
func (w *Watch) Restart(at time.Duration) { *w = Watch{from: max(0, at), begun: true} }

// Add adds a reading and returns the resulting warnings, at most one. An
// impossible reading (negative, without a limit, not later than the last) is
// ignored.
func (w *Watch) Add(r Resource, u Use) []Warning {
	if r >= NumResources || u.At < 0 || u.Used < 0 || u.Limit <= 0 {
		return nil
	}
	if !w.begun {
		w.from, w.begun = u.At, true
	}
	t := &w.tracks[r]
	if u.At < w.from || t.seen && u.At <= t.last.At {
		return nil
	}
	t.last, t.seen = u, true
	t.peak = max(t.peak, u.Used)
	t.recent.add(shapeOf(r, u), u.At, u.Used)
	return t.judge(r, u.At-w.from >= warmUp && t.look(r, u))
}

// look adds a reading to the prediction, and reports whether the prediction was
// updated.
func (t *track) look(r Resource, u Use) bool {
	floors := shapeOf(r, u)
	closed := t.series.add(floors, u.At, u.Used)
	if closed {
		t.floors = t.series.outlook(floors)
	}
	if r != JavaHeap {
		return closed
	}
	climb := climbOf(u)
	climbed := t.climb.add(climb, u.At, u.Used)
	if climbed {
		t.steep = t.climb.outlook(climb)
	}
	if t.floors.pace > 0 {
		return closed
	}
	return climbed
}

// outlook returns the prediction from the floors, or the one from steep growth
// if the floors do not show growth yet.
func (t *track) outlook() outlook {
	if t.floors.pace <= 0 && t.steep.pace > 0 {
		return t.steep
	}
	return t.floors
}

// exceeded reports whether the use is above the limit, which therefore is not
// the real one.
func (t *track) exceeded() bool { return t.peak > t.last.Limit }

// judge checks the distance to the limit and the time left.
func (t *track) judge(r Resource, closed bool) []Warning {
	level, ok := t.level(r)
	if !ok || t.exceeded() {
		t.coming = 0
		return nil
	}
	far := t.byDistance(level)
	if !t.byTime(r, level, closed) && !far {
		return nil
	}
	w := Warning{
		At: t.last.At, Resource: r, Used: level, Limit: t.last.Limit, Rate: t.outlook().rate, Assumed: t.last.Assumed,
	}
	w.TimeLeft, w.TimeKnown = t.left(r)
	w.Urgent = far && share(level, t.last.Limit) >= urgent
	w.Text = w.text()
	return []Warning{w}
}

// byDistance reports whether the level requires a warning.
func (t *track) byDistance(level int64) bool {
	at, s := t.last.At, share(level, t.last.Limit)
	if s < nearAgain {
		t.near.clear(at)
	}
	if s < urgentAgain {
		t.urgent.clear(at)
	}
	switch {
	case s >= urgent && !t.urgent.on:
		t.urgent.raise(at)
		t.near.raise(at)
		t.soon.raise(at)
		return true
	case s >= near && !t.near.on:
		t.near.raise(at)
		return true
	}
	return false
}

// byTime reports whether the time left requires a warning. Only a complete
// block is new evidence.
func (t *track) byTime(r Resource, level int64, closed bool) bool {
	if !closed {
		return false
	}
	left, ok := t.left(r)
	if !ok || left > soonAgain {
		t.soon.clear(t.last.At)
	}
	if !ok || left > soon || share(level, t.last.Limit) < soonShare {
		t.coming = 0
		return false
	}
	t.coming++
	if t.coming < confirmations || t.soon.on || t.urgent.on {
		return false
	}
	t.soon.raise(t.last.At)
	return true
}

// level returns the amount that is compared with the limit.
func (t *track) level(r Resource) (used int64, ok bool) {
	used, ok = t.recent.level(shapeOf(r, t.last))
	if r != JavaHeap {
		return used, ok
	}
	if !ok {
		used = 0
	}
	// The floor of a growing heap lags behind the memory that is in use.
	if o := t.outlook(); o.pace > 0 {
		used, ok = max(used, o.level), true
	}
	if sure := t.recent.least(2) - t.last.garbage(); share(sure, t.last.Limit) >= near {
		used, ok = max(used, sure), true
	}
	return used, ok
}

// farthest is the longest time left that is reported; predictions beyond it are
// not reliable.
const farthest = 1000 * time.Hour

func (t *track) left(r Resource) (time.Duration, bool) {
	level, ok := t.level(r)
	pace := t.outlook().pace
	if !ok || pace <= 0 || t.exceeded() {
		return 0, false
	}
	seconds := float64(t.last.Limit-level) / pace
	if !(seconds < farthest.Seconds()) {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

func share(used, limit int64) float64 { return float64(used) / float64(limit) }

// State returns the standing of every resource that has readings, in the order
// of the Resource constants.
func (w *Watch) State() []Standing {
	var out []Standing
	for r := range NumResources {
		t := &w.tracks[r]
		if !t.seen {
			continue
		}
		s := Standing{
			Resource: r, At: t.last.At, Used: t.last.Used, Limit: t.last.Limit, Rate: t.outlook().rate,
			Exceeded: t.exceeded(), Warned: t.near.on || t.urgent.on || t.soon.on,
			Assumed: t.last.Assumed,
		}
		if level, ok := t.level(r); ok {
			s.Level, s.Share, s.LevelKnown = level, share(level, t.last.Limit), true
		}
		s.TimeLeft, s.TimeKnown = t.left(r)
		out = append(out, s)
	}
	return out
}
