package ledger

import (
	"fmt"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/known"
)

const (
	// maxApps is the maximum number of apps of one device, or of one table, for
	// which the processes are added up.
	maxApps = 100
	// maxHold is the maximum time for which the latest value of a process
	// replaces a missing value. It is far shorter than any window of a trend.
	maxHold = 10 * time.Minute
	// silentFor is how long a process without samples is considered alive if
	// its end may not have been recorded: a table does not record ends, and the
	// line that recorded an end may be damaged.
	silentFor = 15 * time.Minute
)

// AppSum is the total memory of all processes of one app, as one series with
// its own detector. If processes pass work to each other or take turns, a leak
// may not be visible in any single process, but it is visible in the sum. The
// demands of this detector are ignored, so sums cause neither readings nor
// dumps.
type AppSum struct {
	// Account is nil until two processes of the app have been alive at the same
	// time.
	*Account

	of      *apps
	members []*member
	growth  growth
	// again means that all processes have ended, and that the next value begins
	// a new life of the app. changed means that the next value is not
	// comparable with the earlier ones.
	again, changed bool
	// anonymous means that the values are RssAnon and VmSwap.
	anonymous bool
	// mixed means that different quantities are currently read from the
	// processes.
	mixed bool
	// disordered means that the rows of the table are not in time order.
	// refused means that the limit maxApps had already been reached.
	disordered, refused bool
	// step is the time between the two latest sums.
	step time.Duration
}

// member is one process of an app.
type member struct {
	*Account
	// live means that the process has a value, and that no line has reported
	// its end. unsure means that lines are missing since that value.
	live, unsure bool
	// fresh means that the value of the process is newer than the latest sum.
	fresh bool
	at    time.Duration
	bytes int64
	// step is the time between the two latest values of the process.
	step time.Duration
	// pid and start identify the life to which the value belongs.
	pid   int
	start uint64
	// since is the t_s of the first value of the life; early is the maximum of
	// the values in the first minutes of the life.
	since float64
	early int64
	// cells holds the sum of the process's values, in MB, for each cell of
	// growth.
	cells []float64

	breakdown detector.Breakdown
	// detailed means that the breakdown of this process is newer than the
	// latest breakdown of the app.
	detailed bool
}

// apps holds the apps of one device, or of one table.
type apps struct {
	byKey  map[capture.Key]*AppSum
	list   []*AppSum
	opened []*AppSum
	// table means that the lines are rows of a table.
	table bool
	// skipped counts the apps beyond maxApps.
	skipped int
}

func newApps(table bool) *apps { return &apps{byKey: map[capture.Key]*AppSum{}, table: table} }

// join makes a process a member of its app. An app consists of all processes
// whose names are the same up to the colon, including isolated processes.
func (s *apps) join(a *Account) {
	key := capture.Key{User: a.User, Name: a.Package()}
	x := s.byKey[key]
	if x == nil {
		x = &AppSum{of: s}
		s.byKey[key] = x
		s.list = append(s.list, x)
	}
	a.app, a.member = x, &member{Account: a}
	x.members = append(x.members, a.member)
}

// addToApp adds a value of the process to the sum of its app. The sum is
// computed once every process has a new value, or when one process has its
// second new value. In the latter case the other processes have no value in
// that round, and their latest values are used for a while.
func (a *Account) addToApp(up time.Duration, bytes int64) {
	if bytes <= 0 {
		return // the detector also ignores this value
	}
	if a.part.of.policy.Name != detector.PolicyRobust {
		return // policy "article" judges only processes
	}
	if a.app == nil {
		a.part.apps.join(a)
	}
	x, m := a.app, a.member
	x.checkOrder(m, up)
	if m.live && m.fresh && x.sameRound(m, x.latest()) {
		x.add()
	}
	x.take(m, up, bytes)
	x.expire(up)
	x.open()
	if x.complete(up) {
		x.add()
	}
}

// sameRound reports whether the value of a process belongs to the round at the
// given time: its age is at most half the time between two sums.
func (x *AppSum) sameRound(m *member, at time.Duration) bool {
	return x.step == 0 || at-m.at <= x.step/2
}

// leaveApp is called when a life ends, and subtracts its memory from the sum.
func (a *Account) leaveApp() {
	if a.app == nil {
		return
	}
	a.member.end()
	a.app.again = a.app.again || a.app.living() == 0
}

func (m *member) end() {
	m.live, m.unsure, m.fresh, m.detailed = false, false, false, false
	m.breakdown = detector.Breakdown{}
}

// startup is how long a process is expected to grow after its start, in
// seconds.
const startup = 300

// take records a value as the latest value of a member.
func (x *AppSum) take(m *member, up time.Duration, bytes int64) {
	same := m.at > 0 && m.pid == m.PID && m.start == m.Start
	t := m.part.Seconds(up)
	switch {
	case m.live && same:
		m.step = min(max(up-m.at, 0), maxHold)
	case same:
		// The process existed all the time, so the sums that lacked it were too
		// low.
		x.changed = true
	}
	if !same {
		m.since, m.early, m.step = t, 0, 0
	}
	if t <= m.since+startup {
		m.early = max(m.early, bytes)
	}
	m.live, m.unsure, m.fresh = true, false, true
	m.at, m.bytes, m.pid, m.start = up, bytes, m.PID, m.Start
}

// checkOrder detects rows that are not in time order, for example if a table
// lists all rows of one process and then those of another. Such rows cannot be
// added up while they are read.
func (x *AppSum) checkOrder(m *member, up time.Duration) {
	if !x.of.table || x.disordered {
		return
	}
	for _, other := range x.members {
		if other != m && other.live && up+maxHold < other.at {
			x.disordered = true
		}
	}
}

// open begins the series of an app once two of its processes are alive.
func (x *AppSum) open() {
	if x.Account != nil || x.refused || x.living() < 2 {
		return
	}
	if len(x.of.opened) == maxApps {
		x.refused = true
		x.of.skipped++
		return
	}
	first := x.members[0].Account
	l := first.part.of
	x.Account = &Account{
		Process: capture.Process{Name: first.Package(), User: first.User}, Detector: detector.New(l.policy),
		part: first.part,
	}
	x.opened = x.seconds()
	x.of.opened = append(x.of.opened, x)
	if l.OpenedApp != nil {
		l.OpenedApp(x)
	}
}

// seconds returns t_s of the latest value.
func (x *AppSum) seconds() float64 { return x.members[0].part.Seconds(x.latest()) }

// latest returns the time of the latest new value on the device's clock.
func (x *AppSum) latest() time.Duration {
	var at time.Duration
	for _, m := range x.members {
		if m.live && m.fresh {
			at = max(at, m.at)
		}
	}
	return at
}

func (x *AppSum) living() int {
	n := 0
	for _, m := range x.members {
		if m.live {
			n++
		}
	}
	return n
}

// expire marks processes as ended if they have been silent for a long time and
// their ends may not have been recorded.
func (x *AppSum) expire(up time.Duration) {
	for _, m := range x.members {
		if (x.of.table || m.unsure) && m.live && up-m.at > silentFor {
			m.end()
		}
	}
}

// complete reports whether every process has a new value and all these values
// belong to the same round.
func (x *AppSum) complete(up time.Duration) bool {
	if x.Account == nil {
		return false
	}
	for _, m := range x.members {
		if m.live && (!m.fresh || !x.sameRound(m, up)) {
			return false
		}
	}
	return true
}

// slowest returns the longest sampling interval that the policy demands.
func (x *AppSum) slowest() time.Duration {
	p := x.members[0].part.of.policy
	return max(p.NormalInterval, p.SuspiciousInterval, p.LeakingInterval)
}

// hold returns how long the latest value of a process is used in place of a
// missing one.
func (x *AppSum) hold(m *member) time.Duration {
	return min(max(2*m.step, 2*x.slowest()), maxHold)
}

// add computes the sum of the latest values if all of them are known and
// measure the same quantity.
func (x *AppSum) add() {
	if x.Account == nil || x.disordered {
		return
	}
	at := x.latest()
	total, anonymous, living, lacking := int64(0), 0, 0, false
	for _, m := range x.members {
		m.fresh = false
		if !m.live {
			continue
		}
		living++
		total += m.bytes
		lacking = lacking || m.unsure || at-m.at > x.hold(m)
		if m.source == capture.Status {
			anonymous++
		}
	}
	if x.mixed = anonymous > 0 && anonymous < living; x.mixed {
		x.changed = true
		x.warn("some of its processes are measured in Pss, others in RssAnon; they are not added up during this time")
		return
	}
	if living == 0 || lacking || x.Samples > 0 && x.LastUp > 0 && at <= x.LastUp {
		return
	}
	if (anonymous > 0) != x.anonymous {
		x.anonymous, x.changed = anonymous > 0, true
	}
	if b := x.part.bounds; total > (b.memory+b.swap)<<10 {
		x.impossible++
		return
	}
	x.judgeSum(at, total)
}

// judgeSum adds a sum to the series.
func (x *AppSum) judgeSum(at time.Duration, total int64) {
	a := x.Account
	var steps []detector.Transition
	switch {
	case x.Samples == 0:
	case x.again:
		a.restarts++
		a.LastUp = 0
		steps = a.Detector.Restart(at)
	case x.changed:
		steps = a.Detector.ChangeQuantity(at)
	}
	x.again, x.changed = false, false
	if a.LastUp > 0 {
		gap := at - a.LastUp
		if gap > 3*max(x.step, x.slowest()) {
			a.gaps++
			a.absent += gap.Seconds()
			steps = append(steps, a.Detector.Gap(at)...)
		} else {
			x.step = min(gap, maxHold)
		}
	}
	a.Detector.SetQuantity(x.quantity())
	t := a.part.Seconds(at)
	a.count(t, at, total)
	a.part.entries(a, append(steps, a.Detector.AddSample(detector.Sample{At: at, Bytes: total})...))
	x.growth.add(t, x.members)
}

// quantity returns what the sum measures. If a part of the sum does not measure
// all memory, neither does the sum.
func (x *AppSum) quantity() detector.Quantity {
	out := detector.WholeMemory
	for _, m := range x.members {
		if m.live {
			out = max(out, m.quantity())
		}
	}
	return out
}

// addBreakdownToApp adds a breakdown of the process to the breakdown of its
// app, which is complete once every process has a new breakdown.
func (a *Account) addBreakdownToApp(b detector.Breakdown) {
	if a.app == nil {
		return // it has no value yet
	}
	x, m := a.app, a.member
	m.breakdown, m.detailed = keepDriver(m.breakdown, b), true
	if x.Account == nil || x.disordered || x.mixed {
		return
	}
	for _, m := range x.members {
		if m.live && (!m.detailed || b.At-m.breakdown.At > maxHold) {
			return
		}
	}
	sum, first := detector.Breakdown{At: b.At}, true
	for _, m := range x.members {
		if !m.live {
			continue
		}
		addBreakdowns(&sum, m.breakdown, first)
		first, m.detailed = false, false
	}
	if first {
		return
	}
	x.details++
	x.part.entries(x.Account, x.Detector.AddBreakdown(sum))
}

// keepDriver returns a breakdown in which missing rows of driver memory are
// copied from the previous breakdown: dumpsys does not print rows of zeros, and
// a row may fail to parse (AOSP ActivityThread, dumpMemInfoTable). If the App
// Summary shows 0 kB of graphics memory, missing EGL, GL and Gfx dev rows are
// not copied.
func keepDriver(before, b detector.Breakdown) detector.Breakdown {
	graphics := b.Dim[detector.Graphics]
	none := graphics.Known && graphics.N == 0 && !b.EGL.Known && !b.GL.Known && !b.GfxDev.Known
	for _, row := range []struct {
		now, was *detector.Amount
	}{{&b.EGL, &before.EGL}, {&b.GL, &before.GL}, {&b.GfxDev, &before.GfxDev}} {
		if !row.now.Known && !none {
			*row.now = *row.was
		}
	}
	if !b.OtherMtrack.Known {
		b.OtherMtrack = before.OtherMtrack
	}
	return b
}

// addBreakdowns adds a breakdown to a sum. A dimension of the sum is known if
// it is known for all processes. A row of driver memory is known if it is known
// for any process, because the other processes have no such memory.
func addBreakdowns(sum *detector.Breakdown, b detector.Breakdown, first bool) {
	for d, v := range b.Dim {
		switch have := sum.Dim[d]; {
		case first:
			sum.Dim[d] = v
		case have.Known && v.Known:
			sum.Dim[d] = known.Of(have.N + v.N)
		default:
			sum.Dim[d] = detector.Amount{}
		}
	}
	for _, row := range []struct {
		sum, of *detector.Amount
	}{{&sum.EGL, &b.EGL}, {&sum.GL, &b.GL}, {&sum.GfxDev, &b.GfxDev}, {&sum.OtherMtrack, &b.OtherMtrack}} {
		if row.of.Known {
			*row.sum = known.Of(row.sum.N + row.of.N)
		}
	}
}

// reboot marks all processes as ended because the device's clock restarts.
func (s *apps) reboot(up time.Duration) {
	for _, x := range s.list {
		for _, m := range x.members {
			m.end()
			m.at = 0
		}
		x.again, x.changed = false, false
		if x.Account != nil {
			x.LastUp = 0
			x.restarts++
			x.part.entries(x.Account, x.Detector.Restart(up))
		}
	}
}

// markMissing records that lines are missing: since the latest line, a process
// may have ended, or may be read differently.
func (s *apps) markMissing() {
	for _, x := range s.list {
		x.changed = true
		for _, m := range x.members {
			m.unsure = m.live
			m.fresh = false
		}
	}
}

// warnings returns a warning if some apps are not judged.
func (s *apps) warnings() []string {
	if s.skipped == 0 {
		return nil
	}
	return []string{
		fmt.Sprintf("the processes of %d apps are not added up: there are more than %d apps with several processes",
			s.skipped, maxApps),
	}
}
