package detector

import (
	"fmt"
	"time"

	"github.com/leakgate/leakgate/internal/known"
)

// The tracks of a process: the total, then the dimensions with their own
// series, and finally the total of the breakdowns.
const (
	totalTrack = iota
	javaTrack
	nativeTrack
	graphicsTrack
	stackTrack
	codeTrack
	otherTrack
	wholeTrack
	numTracks
)

// trackDimensions maps each track to the dimension that it records.
var trackDimensions = [numTracks]Dimension{
	totalTrack: Total, javaTrack: JavaHeap, nativeTrack: NativeHeap, graphicsTrack: Graphics,
	stackTrack: Stack, codeTrack: Code, otherTrack: PrivateOther, wholeTrack: Total,
}

// hiddenTracks are the dimensions that can leak although the total does not
// grow. Code and Private Other are not among them, because the kernel and the
// runtime move memory between these two and other dimensions (rationale.md,
// Capture).
var hiddenTracks = [...]int{javaTrack, nativeTrack, graphicsTrack, stackTrack}

// robustMachine is the state machine of policy "robust".
type robustMachine struct {
	policy Policy
	axis   axis
	tracks [numTracks]*track
	driver driverMemory
	loops  loops
	jumps  jumps

	state, worst State
	// stretchWorst is the worst state of this stretch.
	stretchWorst State
	kind         LeakKind
	// row counts the consecutive looks that fired; faded counts the consecutive
	// looks in LEAKING that did not fire.
	row, faded int
	// first is the result of the first look counted in row; firstSigma is the
	// standard deviation of pairRise at that look.
	first      lookResult
	firstSigma float64
	// fresh counts the breakdowns since CONFIRMING began.
	fresh int
	// relapsing reports whether the state is LEAKING because of earlier deaths;
	// looks do not clear this state.
	relapsing bool

	now, epoch                time.Duration
	started                   bool
	lastSample, lastBreakdown known.Duration
	// previous is the time of the latest sample; rhythm is the time between
	// that sample and the one before it.
	previous, rhythm time.Duration
	// latest is the total of the latest sample in MB.
	latest                        float64
	began                         known.Duration
	samples, breakdowns           int
	ignored, empty, restarts      int
	gaps                          int
	firstSuspicious, firstLeaking known.Duration
	diagnosed                     known.Duration
	pending, graphicsSeen         bool
	// rebooted reports whether the device's clock was reset at the latest
	// restart.
	rebooted bool

	quantity   Quantity
	family     int
	stretches  int
	past       past
	lives      lives
	detectable detectableCache
	// workEnd is the slot in which the workload ended; 0 while it continues.
	workEnd  int
	lookFunc func(Look)
	student  *quantiles
}

func newRobustMachine(p Policy) *robustMachine {
	m := &robustMachine{policy: p, family: 1, stretches: 1, student: students(), axis: newAxis(0)}
	for i := range m.tracks {
		m.tracks[i] = newTrack()
	}
	return m
}

// No look takes place if the latest sample is older than gapBegins and older
// than three sampling intervals.
const gapBegins = 2 * time.Minute

// maxBytes is the largest plausible memory of a process: 1 PB.
const maxBytes = 1 << 50

func (m *robustMachine) addSample(s Sample) []Transition {
	if s.Bytes <= 0 || s.Bytes > maxBytes {
		m.empty++
		return nil
	}
	if !m.accept(s.At, &m.lastSample) {
		m.ignored++
		return nil
	}
	steps := m.advance(s.At)
	m.samples++
	if !m.began.Known {
		m.began = known.OfDuration(s.At)
	}
	m.rhythm, m.previous = s.At-m.previous, s.At
	value := float64(s.Bytes) + m.driver.offset
	m.latest = value / MB
	m.tracks[totalTrack].add(value)
	if jump, ok := m.jumps.add(m, s.At, value); ok {
		steps = append(steps, jump)
	}
	return append(steps, m.relapsed()...)
}

func (m *robustMachine) addBreakdown(b Breakdown) []Transition {
	if !m.accept(b.At, &m.lastBreakdown) {
		m.ignored++
		return nil
	}
	steps := m.advance(b.At)
	m.breakdowns++
	m.dropImplausible(&b)
	if raised := m.driver.add(b); raised != 0 {
		m.tracks[totalTrack].raise(raised)
		m.loops.after.raise(raised / MB)
		m.jumps.raise(raised)
	}
	m.addDimensions(b)
	if m.state == Confirming {
		m.fresh++
	}
	return steps
}

// addDimensions adds a breakdown to the tracks. The value of Graphics comes
// from the rows of graphics memory if there are any. The App Summary's figure
// measures something else, so the track restarts when the first rows of
// graphics memory arrive.
func (m *robustMachine) addDimensions(b Breakdown) {
	for i := javaTrack; i < numTracks; i++ {
		if v := b.Dim[trackDimensions[i]]; i != graphicsTrack && v.Known {
			m.tracks[i].add(float64(v.N))
		}
	}
	if !b.Dim[Total].Known {
		return
	}
	graphics, _, known := m.driver.split(b)
	if !known {
		return
	}
	if m.driver.sourceChanged {
		m.driver.sourceChanged = false
		m.tracks[graphicsTrack].clear()
	}
	m.graphicsSeen = m.graphicsSeen || graphics > 0
	m.tracks[graphicsTrack].add(graphics)
}

// dropImplausible marks implausible values as unknown.
func (m *robustMachine) dropImplausible(b *Breakdown) {
	check := func(a *Amount) {
		if a.Known && !plausible(a.N) {
			*a = Amount{}
			m.empty++
		}
	}
	for i := range b.Dim {
		check(&b.Dim[i])
	}
	for _, a := range []*Amount{&b.EGL, &b.GL, &b.OtherMtrack, &b.GfxDev} {
		check(a)
	}
}

func plausible(bytes int64) bool { return bytes >= 0 && bytes <= maxBytes }

// accept reports whether a reading at the given time belongs to this stretch
// and is newer than the last one of its type. It records the time of an
// accepted reading.
func (m *robustMachine) accept(at time.Duration, last *known.Duration) bool {
	if at < 0 || at < m.epoch || last.Known && at <= last.N {
		return false
	}
	*last = known.OfDuration(at)
	m.now = max(m.now, at)
	return true
}

// advance closes the slots that end before the given time. A gap longer than
// MaxGap ends the stretch.
func (m *robustMachine) advance(at time.Duration) []Transition {
	if !m.started {
		m.axis, m.started = newAxis(at), true
		return nil
	}
	slot := m.axis.slot(at)
	if time.Duration(slot-m.axis.closed)*slotTime > m.policy.MaxGap {
		m.gaps++
		sample, breakdown := m.lastSample, m.lastBreakdown
		steps := m.endStretch(at, fmt.Sprintf("nothing was measured for %s", minutesText(at-m.axis.at())))
		m.axis, m.started = newAxis(at), true
		m.lastSample, m.lastBreakdown = sample, breakdown
		return steps
	}
	var steps []Transition
	// Closing a slot may drop the beginning of the axis and thereby renumber
	// all slots.
	for m.axis.closed < m.axis.slot(at) {
		steps = append(steps, m.closeSlot()...)
	}
	return steps
}

func (m *robustMachine) closeSlot() []Transition {
	i := m.axis.closed
	m.axis.closed++
	for _, t := range m.tracks {
		if t.values > 0 {
			t.closeSlot(i)
		}
	}
	m.loops.close(m)
	if m.axis.closed%m.axis.binSlots != 0 {
		return nil
	}
	for _, t := range m.tracks {
		t.closeBin(m.axis.closed, m.axis.binSlots)
	}
	m.axis.binned++
	m.compact()
	return m.observe()
}

// compact halves the number of floors when there is no room for more.
func (m *robustMachine) compact() {
	if m.axis.binned < maxBins {
		return
	}
	grow := m.axis.binSlots < largestBin
	for _, t := range m.tracks {
		if grow {
			t.pair()
		} else {
			t.forget()
		}
	}
	m.axis.binned /= 2
	if grow {
		m.axis.binSlots *= 2
		return
	}
	// The axis begins where the remaining floors begin.
	gone := m.axis.binned * m.axis.binSlots
	m.axis.origin += time.Duration(gone) * slotTime
	m.axis.closed -= gone
	m.loops.shift(gone)
	m.workEnd = max(0, m.workEnd-gone)
}

// observe looks at all series once. If the latest sample is too old, it does
// nothing; looks continue with the samples after the gap.
func (m *robustMachine) observe() []Transition {
	if age := m.axis.at() - m.previous; age > gapBegins && age > 3*m.rhythm {
		return nil
	}
	s := m.look(m.tracks[totalTrack], stage(m.row), nil)
	leading := totalTrack
	m.reportLook(totalTrack, s)
	for _, i := range hiddenTracks {
		if s.reason == fires {
			break
		}
		if m.tracks[i].values == 0 {
			continue
		}
		got := m.look(m.tracks[i], stage(m.row), m.tracks[totalTrack])
		m.reportLook(i, got)
		if got.reason == fires {
			s, leading = got, i
		}
	}
	return m.decide(s, leading)
}

func (m *robustMachine) reportLook(i int, s lookResult) {
	if m.lookFunc == nil {
		return
	}
	m.lookFunc(Look{
		At: m.axis.at(), Series: seriesName(i), Window: s.window, Fired: s.reason == fires, Text: s.text(seriesName(i)),
	})
}

func seriesName(i int) string {
	if i == totalTrack {
		return "memory"
	}
	return trackDimensions[i].String()
}

// decide performs at most one transition per look.
func (m *robustMachine) decide(s lookResult, leading int) []Transition {
	if s.reason == gaps {
		return nil
	}
	fired := s.reason == fires
	if fired && m.state == Confirming && !m.keepsPace(m.tracks[leading]) {
		fired, s.reason = false, slowed
	}
	if !fired {
		return m.fade(s, leading)
	}
	m.row, m.faded = m.row+1, 0
	switch m.state {
	case Normal:
		m.first = s
		m.firstSigma = pairSigma(m.tracks[leading], s.window)
		return m.enter(Suspicious, "first look", s.text(seriesName(leading)))
	case Suspicious:
		m.fresh = 0
		return m.enter(Confirming, "second look", s.text(seriesName(leading)))
	case Confirming:
		return m.leak(s, leading)
	}
	return nil
}

// fade handles a look without evidence.
func (m *robustMachine) fade(s lookResult, leading int) []Transition {
	m.row = 0
	if m.state == Normal || m.relapsing {
		return nil
	}
	if m.state == Leaking {
		if m.faded++; m.faded < fadedLooks {
			m.row = 3
			return nil
		}
	}
	m.faded, m.pending = 0, false
	return m.enter(Normal, "no evidence", s.text(seriesName(leading)))
}

func (m *robustMachine) leak(s lookResult, leading int) []Transition {
	shares := m.sharesOver(s.window)
	m.kind = shares.kind()
	m.pending = !m.inCooldown()
	text := s.text(seriesName(leading)) + "; " + shares.text()
	if !m.pending {
		text += "; no diagnosis: the previous one was less than " + minutesText(m.policy.Cooldown) + " old"
	}
	return m.enter(Leaking, "third look", text)
}

func (m *robustMachine) enter(to State, rule, because string) []Transition {
	at := m.axis.at()
	t := Transition{At: at, From: m.state, To: to, Rule: rule, Because: because}
	m.state = to
	m.worst, m.stretchWorst = max(m.worst, to), max(m.stretchWorst, to)
	if to >= Suspicious && !m.firstSuspicious.Known {
		m.firstSuspicious = known.OfDuration(at)
	}
	if to == Leaking {
		t.Kind = m.kind
		if !m.firstLeaking.Known {
			m.firstLeaking = known.OfDuration(at)
		}
	}
	return []Transition{t}
}

// inCooldown reports whether the time since the last diagnosis is shorter than
// the cooldown.
func (m *robustMachine) inCooldown() bool {
	return m.diagnosed.Known && m.now-m.diagnosed.N < m.policy.Cooldown
}

func (m *robustMachine) diagnosisFinished(at time.Duration) []Transition {
	m.now = max(m.now, at)
	m.diagnosed = known.OfDuration(max(at, m.diagnosed.N))
	m.pending = false
	return nil
}

func (m *robustMachine) restart(at time.Duration) []Transition {
	m.restarts++
	if m.diagnosed.Known && m.diagnosed.N > at {
		// The clock was reset, so the age of the last diagnosis is unknown.
		m.diagnosed = known.Duration{}
	}
	// A reboot is reported as two restarts, of the device's clock and then of
	// the process. Only the first of these two restarts ends a life.
	again := m.rebooted && m.samples == 0
	m.rebooted = at < m.now
	if !again {
		m.lives.end(m)
	}
	steps := m.endStretch(at, "the process restarted")
	m.now = at
	m.driver = driverMemory{}
	m.began, m.samples = known.Duration{}, 0
	return steps
}

// gap does nothing: advance computes the length of the gap itself.
func (m *robustMachine) gap(time.Duration) []Transition { return nil }

func (m *robustMachine) change(at time.Duration) []Transition {
	at = max(at, m.epoch)
	m.now = max(m.now, at)
	return m.endStretch(at, "memory is measured differently from here on")
}

// endStretch judges the stretch that ends and begins a new one.
func (m *robustMachine) endStretch(at time.Duration, because string) []Transition {
	long := m.axis.length() >= shortest
	m.close()
	for _, t := range m.tracks {
		t.reset()
	}
	m.loops.reset()
	m.jumps.endStretch()
	m.started, m.axis = false, newAxis(at)
	m.epoch, m.workEnd = at, 0
	m.lastSample, m.lastBreakdown = known.Duration{}, known.Duration{}
	m.row, m.faded, m.pending, m.relapsing = 0, 0, false, false
	if long {
		m.stretches++
	}
	m.stretchWorst = Normal
	if m.state == Normal {
		return nil
	}
	return m.enter(Normal, "break", because)
}

func (m *robustMachine) mark(k Mark) { m.loops.mark(m, k) }

func (m *robustMachine) endWorkload(at time.Duration) {
	if m.started && at >= m.axis.origin {
		m.workEnd = m.axis.slot(at)
	}
}

func (m *robustMachine) measure(q Quantity) { m.quantity = q }

func (m *robustMachine) setFamilySize(processes int) { m.family = processes }

func (m *robustMachine) onLook(f func(Look)) { m.lookFunc = f }

const (
	// In CONFIRMING, the detector requests extraBreakdowns breakdowns,
	// extraSpacing apart, to determine the kind of the leak (as in section 5.5
	// of the article). These breakdowns take one of the five minutes until the
	// next look.
	extraBreakdowns = 3
	extraSpacing    = 30 * time.Second
)

func (m *robustMachine) demand() Demand {
	d := Demand{Interval: m.policy.NormalInterval}
	switch m.state {
	case Suspicious:
		d.Interval = m.policy.SuspiciousInterval
	case Confirming:
		d.Interval = m.policy.SuspiciousInterval
		d.Breakdowns, d.Spacing = max(0, extraBreakdowns-m.fresh), extraSpacing
	case Leaking:
		d.Interval = m.policy.LeakingInterval
		if m.pending {
			d.Diagnose = m.kind
		}
	}
	return d
}
