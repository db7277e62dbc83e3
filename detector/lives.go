package detector

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/detector/trend"
	"github.com/leakgate/leakgate/internal/text"
)

// Cause is the reason why a process ended, as far as it matters for a leak.
type Cause uint8

// The causes of a death. The zero value is unknown.
const (
	// UnknownCause means that no known cause of the death was reported.
	UnknownCause Cause = iota
	// OutOfMemory is an OutOfMemoryError, or a kill because the process itself
	// used too much memory (by Android's memory limiter or because of a memory
	// anomaly).
	OutOfMemory
	// LowMemory is a kill because the device ran low on memory (lmkd).
	LowMemory
	// Crash is an uncaught exception or a fatal signal. NotResponding is an
	// ANR.
	Crash
	NotResponding
	// Killed is any other kill by the system, a user or a test.
	Killed
	// Exited means that the process exited by itself.
	Exited
	// Rebooted means that the device rebooted.
	Rebooted
)

// Quantity is what the samples of a process measure.
type Quantity uint8

// The quantities that samples can measure. The zero value is all memory: Pss
// and SwapPss.
const (
	WholeMemory Quantity = iota
	// WithoutSwap is Pss on a kernel without SwapPss. It does not include
	// swapped memory.
	WithoutSwap
	// Anonymous is RssAnon and VmSwap. It does not include file-backed, ashmem
	// or driver memory.
	Anonymous
)

// lives keeps the data of a process's lives, so that lives too short to be
// judged alone can be judged together.
type lives struct {
	list []pastLife
	// count is the number of lives that ended; levels is the number of levels
	// stored in list.
	count, levels int
	causes        [Rebooted + 1]int
	// early holds the causes of death that were reported before the
	// corresponding restart.
	early []Cause
	// longest is the longest life that ended.
	longest time.Duration
	// expected describes the next out-of-memory death, as predicted from these
	// lives. changed reports whether the lives have changed since expected was
	// computed.
	expected relapse
	changed  bool
}

// pastLife is one life that ended.
type pastLife struct {
	// began is the time of its first sample on the device's clock; length is
	// how long the life was watched.
	began, length time.Duration
	cause         Cause
	// explained reports whether a cause was reported, even if that cause is
	// "unknown".
	explained bool
	// levels are in MB, one per minute from the first sample, for at most two
	// hours.
	levels []float32
	// first is the level of the first two minutes and last is the last sample,
	// both in MB.
	first, last float64
	// rates are the slopes of the dimensions in MB/h; NaN if unknown.
	rates [numTracks]float32
}

const (
	// Of the latest lives, at most maxLives with at most maxLifeLevels levels
	// in total are kept.
	maxLives, maxLifeLevels = 64, 3000
	// maxEarly bounds the number of causes that await a restart.
	maxEarly = 16
	// lifeLevels is the largest number of levels of one life; each level covers
	// lifeSlots slots.
	lifeLevels, lifeSlots = 120, 2
	// Lives can be judged together if at least leastLives of them last
	// leastLife minutes or longer.
	leastLives, leastLife = 3, 4
	// lifeSkip is the fraction of each life that counts as its launch, at most
	// lifeLaunch minutes.
	lifeSkip, lifeLaunch = 0.1, 15
	// lateSkip is a fraction of each life. If the lives last at least lateLife
	// minutes, the part after this fraction is judged as well; if they last at
	// least longLife minutes, only that part is judged.
	lateLife, longLife, lateSkip = 20, 45, 1.0 / 3
	// latePace is the minimum pace of the part after lateSkip, and warmPace is
	// the minimum pace of lives that warm up. Both must be reached with 95 %
	// certainty.
	latePace, warmPace = 0.7, 0.8
	// lifePace is the minimum rate of the second half of the lives relative to
	// the first half, because a warm-up slows down. lifeCertainty is the
	// fraction of all leaks that pass the test for slowing down. If there are
	// many lives with little noise, the test requires more than lifePace.
	lifePace, lifeCertainty = 0.6, 0.96
	// The beginning of a life is compared with the whole life; lifeBegin is the
	// minimum length of the beginning, in minutes.
	lifeBegin = 3
	// outlives is how many times longer than the others a life without growth
	// must be, to be evidence that the others were only warming up.
	outlives = 3
	// leastMemoryDeaths is the minimum number of out-of-memory deaths that
	// prove a leak. A single OutOfMemoryError may be caused by one large image.
	leastMemoryDeaths = 3
)

// lifeOf returns the present life as if it ended now.
func (m *robustMachine) lifeOf() (pastLife, bool) {
	t := m.tracks[totalTrack]
	n := min(m.axis.closed/lifeSlots, lifeLevels)
	if n == 0 {
		return pastLife{}, false
	}
	x := pastLife{began: m.axis.origin, length: m.axis.length()}
	for i := range n {
		x.levels = append(x.levels, float32(m.minute(t, i)))
	}
	var scratch [2 * lifeSlots]float64
	x.first = meanOf(appendKnown(scratch[:0], x.levels[:min(n, 2)])) + t.base/MB
	x.last = m.latest // a mean over minutes would lag behind a process that grows fast
	for i := range x.rates {
		x.rates[i] = nan32
		if slope, _, readings := m.lineOf(m.tracks[i], x.length); i != totalTrack && readings >= leastReadings {
			x.rates[i] = float32(slope)
		}
	}
	return x, true
}

// minute returns the level in MB during minute i of the stretch; it is NaN if
// unknown. Values that are no longer in the ring are taken from the floors.
func (m *robustMachine) minute(t *track, i int) float64 {
	from := i * lifeSlots
	if m.axis.closed-from <= ringSlots {
		sum, n := 0.0, 0.0
		for k := from; k < from+lifeSlots; k++ {
			if v := t.ring[k%ringSlots]; v == v {
				sum, n = sum+float64(v), n+1
			}
		}
		return sum / n
	}
	if bin := from / m.axis.binSlots; bin < len(t.bins) {
		return float64(t.bins[bin])
	}
	return math.NaN()
}

func (l *lives) add(x pastLife) {
	l.list = append(l.list, x)
	l.levels += len(x.levels)
	for len(l.list) > maxLives || l.levels > maxLifeLevels {
		l.levels -= len(l.list[0].levels)
		l.list = slices.Delete(l.list, 0, 1)
	}
}

// end records the life that ends.
func (l *lives) end(m *robustMachine) {
	l.changed = true
	l.count++
	l.longest = max(l.longest, m.axis.length())
	x, ok := m.lifeOf()
	if len(l.early) > 0 {
		x.cause, x.explained, l.early = l.early[0], true, l.early[1:]
	}
	if ok {
		l.add(x)
	}
}

// death records the cause of a death. If the present life began before the
// death, the death belongs to the present life, and the restart is still to
// come. Otherwise the death belongs to the last life that began before it, if
// that life was ever sampled.
func (m *robustMachine) death(at time.Duration, c Cause) {
	l := &m.lives
	if c > Rebooted {
		c = UnknownCause
	}
	l.changed = true
	l.causes[c]++
	if m.began.Known && at >= m.began.N {
		if len(l.early) < maxEarly {
			l.early = append(l.early, c)
		}
		return
	}
	for i := len(l.list) - 1; i >= 0; i-- {
		if x := &l.list[i]; x.began <= at {
			if !x.explained {
				x.cause, x.explained = c, true
			}
			return
		}
	}
}

// pool is the combined result of the lives of a process.
type pool struct {
	// lives is the number of lives that were long enough; each is judged from
	// minute skip to minute age.
	lives     int
	skip, age int
	// all holds the rates from skip to age; late holds the rates of the second
	// half.
	all, late ratesOfLives
	// growth is the growth from skip to age, in MB.
	growth float64
	// grows reports whether the rate is significant. straight reports whether
	// the growth is also at least leastGrowth and does not slow down like a
	// warm-up. pace is the rate of the second half relative to the first.
	grows, straight bool
	pace            float64
	// shares are the dimensions that grow.
	shares shares
}

// ratesOfLives is the mean of the rates of some lives in MB/h, with its
// standard error and its 95 % interval.
type ratesOfLives struct{ rate, se, low, high float64 }

func newRates(rates []float64) ratesOfLives {
	var r ratesOfLives
	r.rate, r.se = meanAndError(rates)
	half := trend.StudentQuantile(0.5+confidence/2, float64(len(rates)-1)) * r.se
	r.low, r.high = r.rate-half, r.rate+half
	return r
}

// poolLives judges the lives together, aligned by age. If the lives last at
// least 20 min, it also judges a later part of them, because a leak grows
// evenly once the warm-up is over.
func (m *robustMachine) poolLives() (pool, bool) {
	age := pooledAge(m.livesOf(0))
	if age < leastLife {
		return pool{}, false
	}
	list := m.livesOf(age)
	early := min(int(math.Ceil(lifeSkip*float64(age))), lifeLaunch, age-leastLife+1)
	late := int(lateSkip * float64(age))
	if age >= longLife {
		p, ok := m.pool(list, late, age)
		p.straight = p.straight && p.surely(list, latePace)
		return p, ok
	}
	p, ok := m.pool(list, early, age)
	p.straight = p.straight && (!p.warmsUp(list) || p.surely(list, warmPace))
	if !ok || p.straight || age < lateLife {
		return p, ok
	}
	if q, ok := m.pool(list, late, age); ok && q.grows && q.growth >= leastGrowth && q.pace < 1/lifePace &&
		q.surely(list, latePace) {
		q.straight = true
		return q, true
	}
	return p, true
}

// livesOf returns the lives that last at least the given number of minutes. The
// present life is included.
func (m *robustMachine) livesOf(minutes int) []pastLife {
	list := slices.Clone(m.lives.list)
	if x, ok := m.lifeOf(); ok {
		list = append(list, x)
	}
	return slices.DeleteFunc(list, func(x pastLife) bool { return len(x.levels) < minutes })
}

// pool judges the part of the lives between two ages in minutes.
func (m *robustMachine) pool(list []pastLife, skip, age int) (pool, bool) {
	p := pool{age: age, skip: skip}
	all, firsts, seconds := slopesOfLives(list, skip, age)
	if p.lives = len(all); p.lives < leastLives {
		return pool{}, false
	}
	df := float64(p.lives - 1)
	p.all, p.late = newRates(all), newRates(seconds)
	p.growth = p.all.rate * p.hours()
	p.grows = p.growth >= leastGrowth/2 && p.all.rate > m.critical(df)*p.all.se
	slowing, slowError := meanAndError(lessTimes(firsts, seconds, 1))
	p.pace = p.late.rate / max(meanOf(firsts), 1e-9)
	p.straight = p.grows && p.growth >= leastGrowth && p.pace >= lifePace &&
		slowing < trend.StudentQuantile(lifeCertainty, df)*slowError
	p.shares = sharesOfLives(list, time.Duration(age-skip)*time.Minute)
	return p, true
}

// hours returns the length of the judged part in hours.
func (p *pool) hours() float64 { return float64(p.age-p.skip) / 60 }

// surely reports whether, with 95 % certainty, the rate of the second half is
// more than pace times the rate of the first half.
func (p *pool) surely(list []pastLife, pace float64) bool {
	_, firsts, seconds := slopesOfLives(list, p.skip, p.age)
	margin, se := meanAndError(lessTimes(seconds, firsts, pace))
	return margin > trend.StudentQuantile(0.95, float64(p.lives-1))*se
}

// warmsUp reports whether, with 99 % certainty, the lives grow faster at their
// beginning than from minute skip to minute age.
func (p *pool) warmsUp(list []pastLife) bool {
	begin := max(lifeBegin, p.age/5)
	all, _, _ := slopesOfLives(list, p.skip, p.age)
	first, _, _ := slopesOfLives(list, 0, begin)
	if len(first) != len(all) {
		return true
	}
	faster, se := meanAndError(lessTimes(first, all, 1))
	return faster > trend.StudentQuantile(0.99, float64(len(all)-1))*se
}

// lessTimes returns a minus factor times b, element by element.
func lessTimes(a, b []float64, factor float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] - factor*b[i]
	}
	return out
}

// slopesOfLives returns the slopes of lives in MB/h over the time between two
// ages, and over each half of that time.
func slopesOfLives(list []pastLife, skip, age int) (all, firsts, seconds []float64) {
	for _, x := range list {
		y := x.between(skip, age)
		if math.IsNaN(y[0]) {
			continue
		}
		half := len(y) / 2
		all = append(all, 60*trend.Slope(y))
		firsts, seconds = append(firsts, 60*trend.Slope(y[:len(y)-half])), append(seconds, 60*trend.Slope(y[half:]))
	}
	return all, firsts, seconds
}

// pooledAge returns the age in minutes up to which the lives are compared. A
// longer age uses more of each life but fewer lives.
func pooledAge(list []pastLife) int {
	var lengths []int
	for _, x := range list {
		lengths = append(lengths, len(x.levels))
	}
	slices.Sort(lengths)
	best, most := 0, 0.0
	for i, n := range lengths {
		lives := len(lengths) - i
		if worth := float64(lives) * float64(n) * float64(n); lives >= leastLives && worth > most {
			best, most = n, worth
		}
	}
	return best
}

// between returns the levels of a life between two minutes, with gaps
// interpolated.
func (x *pastLife) between(from, to int) []float64 {
	y := make([]float64, to-from)
	for i := range y {
		y[i] = float64(x.levels[from+i])
	}
	bridge(y)
	return y
}

// meanAndError returns the mean of the values and its standard error.
func meanAndError(v []float64) (mean, se float64) {
	mean = meanOf(v)
	for _, x := range v {
		se += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(se / float64(len(v)-1) / float64(len(v)))
}

// sharesOfLives returns the dimensions that grow in the lives, by a t-test over
// the lives.
func sharesOfLives(list []pastLife, span time.Duration) shares {
	var out shares
	for i := javaTrack; i < wholeTrack; i++ {
		var rates []float64
		for _, x := range list {
			if v := float64(x.rates[i]); v == v {
				rates = append(rates, v)
			}
		}
		out.readings = max(out.readings, len(rates)*leastReadings)
		if len(rates) < leastLives {
			continue
		}
		rate, se := meanAndError(rates)
		growth := rate * span.Hours()
		if rate > trend.StudentQuantile(1-shareP/(wholeTrack-1), float64(len(rates)-1))*se && growth >= smallShare {
			out.list = append(out.list,
				Share{Dimension: trackDimensions[i], Growth: int64(growth * MB), Rate: rate * MB})
			if i == graphicsTrack {
				out.graphicsT = rate / max(se, 1e-9)
			}
		}
	}
	out.finish()
	out.certainty = 1
	return out
}

// memoryDeaths counts the out-of-memory deaths.
func (m *robustMachine) memoryDeaths(p pool, pooled bool) int {
	n := m.lives.causes[OutOfMemory]
	if pooled && p.killsCount() {
		n += m.lives.causes[LowMemory]
	}
	return n
}

// killsCount reports whether low-memory kills are evidence. If the device runs
// low on memory, the system kills any process, so the lives must also have
// grown in a way that a warm-up does not explain.
func (p *pool) killsCount() bool { return p.grows && p.pace >= lifePace }

// atOneLevel reports whether the lives end at about the same level but at
// different ages, as if the process were killed for its size: the final levels
// differ by much less than the ages would explain.
func (m *robustMachine) atOneLevel(p pool) (level float64, ok bool) {
	var ends, ages []float64
	for _, x := range m.lives.list {
		if x.cause == UnknownCause || x.cause == Killed || x.cause == LowMemory {
			ends, ages = append(ends, x.last), append(ages, x.length.Hours())
		}
	}
	if len(ends) < 5 || 2*len(ends) < m.lives.count || !p.grows {
		return 0, false
	}
	level, levelError := meanAndError(ends)
	_, ageError := meanAndError(ages)
	by := p.all.rate * ageError * math.Sqrt(float64(len(ages)))
	return level, by >= leastGrowth && levelError*math.Sqrt(float64(len(ends))) < by/3
}

// causeWords are the names of the causes of death in reports, in singular and
// plural.
var causeWords = [Rebooted + 1][2]string{
	OutOfMemory: {"out of memory", "out of memory"}, LowMemory: {"low-memory kill", "low-memory kills"},
	Crash: {"crash", "crashes"}, NotResponding: {"ANR", "ANRs"}, Killed: {"kill", "kills"},
	Exited: {"exit", "exits"}, Rebooted: {"reboot", "reboots"},
}

// text returns how often the process ended, and the causes: "restarted 30 times
// (22 out of memory, 8 crashes)".
func (l *lives) text() string {
	type count struct {
		n    int
		word string
	}
	var list []count
	for i, n := range l.causes {
		if words := causeWords[i]; n == 1 && words[0] != "" {
			list = append(list, count{1, words[0]})
		} else if n > 1 && words[1] != "" {
			list = append(list, count{n, words[1]})
		}
	}
	slices.SortStableFunc(list, func(a, b count) int { return cmp.Compare(b.n, a.n) })
	var parts []string
	for _, c := range list {
		parts = append(parts, fmt.Sprintf("%d %s", c.n, c.word))
	}
	out, ends := "restarted "+text.Count(l.count, "time", "times"), 0
	for _, n := range l.causes {
		ends += n
	}
	if ends > l.count && len(parts) > 0 {
		out += ", ended " + text.Count(ends, "time", "times") // no life followed the last one
	}
	if len(parts) > 0 {
		out += " (" + strings.Join(parts, ", ") + ")"
	}
	return out
}

// together combines j, the judgement by stretches, with the judgement on all
// lives together.
func (m *robustMachine) together(j judgement, all *past) judgement {
	p, ok := m.poolLives()
	deaths := m.memoryDeaths(p, ok)
	level, oneLevel := 0.0, false
	if ok {
		level, oneLevel = m.atOneLevel(p)
	}
	restarts := m.lives.text()
	inLife := restarts + "; "
	if j.length >= shortest {
		inLife += fmt.Sprintf("in a life of %s: ", minutesText(j.length))
	}
	// A much longer life without growth is evidence that the short lives only
	// warm up.
	warmUp := ok && all.quiet >= outlives*time.Duration(p.age)*time.Minute
	// The shorter lives do not cover the later part of a longer life.
	beyond := ok && j.rising && j.length > time.Duration(p.age)*time.Minute*3/2
	switch {
	case j.gate == Leak:
		j.because = inLife + j.because
		return j
	case deaths >= leastMemoryDeaths:
		j = p.judgement(m, Leak)
		j.because = fmt.Sprintf("%s; %s: %s", restarts,
			text.Count(deaths, "out-of-memory death", "out-of-memory deaths"), p.text(ok))
	case oneLevel && !warmUp:
		j = p.judgement(m, Leak)
		j.because = fmt.Sprintf("%s, always at about %s MB, regardless of age; %s", restarts, number(level), p.text(ok))
	case ok && p.straight && !warmUp:
		j = p.judgement(m, Leak)
		j.because = restarts + "; " + p.text(ok)
	case ok && p.grows && !warmUp:
		j = p.judgement(m, Inconclusive)
		j.because = restarts + "; " + p.text(ok) +
			"; a warm-up can cause this too: run without restarts, or compare with --base"
	case ok && p.flat() && !beyond:
		j = p.judgement(m, Pass)
		j.because = fmt.Sprintf("%s; no growth %s; a leak of %s MB/h or more would have been detected", restarts,
			p.where(), number(j.detectable))
	case j.gate == Inconclusive && j.rising:
		j.because = inLife + j.because
	case all.judged == 0 || 2*all.judged < all.watched:
		longest := max(m.lives.longest, m.axis.length())
		j = judgement{gate: Inconclusive, leading: totalTrack, length: longest}
		j.because = fmt.Sprintf("%s; longest life %s, a trend needs %s", restarts, minutesText(longest),
			minutesText(30*time.Minute))
		if longest == 0 {
			j.because = fmt.Sprintf("%s; no life was sampled twice, a trend needs %s", restarts,
				minutesText(30*time.Minute))
		}
		if ok {
			j.finding = p.finding(m)
			j.because += fmt.Sprintf("; %s, but each life is short; leaks slower than %s MB/h cannot be ruled out",
				p.text(ok), number(j.detectable))
		}
	default:
		j.because = restarts + "; in one life: " + j.because
	}
	return j
}

// flat reports whether the lives are long enough for a pass and do not grow
// significantly, at least not in their second half.
func (p *pool) flat() bool {
	if time.Duration(p.age)*time.Minute < shortest {
		return false
	}
	return !p.grows && p.all.high*p.hours() < 2*leastGrowth || p.age >= longLife &&
		p.late.high*p.hours()/2 < leastGrowth
}

// finding returns the numbers for all lives together.
func (p *pool) finding(m *robustMachine) finding {
	f := finding{detectable: math.Inf(1), lately: math.Inf(1)}
	if p.lives < leastLives {
		return f
	}
	f.lookResult = lookResult{window: time.Duration(p.hours() * float64(time.Hour)), growth: p.growth, blocks: p.lives}
	f.begins, f.ends = m.axis.origin, m.axis.at()
	f.rate, f.low, f.high, f.se, f.known = p.all.rate, p.all.low, p.all.high, p.all.se, true
	f.drift = trend.Drift{Slope: p.all.rate, SE: p.all.se, N: p.lives}
	crit := m.critical(float64(p.lives - 1))
	f.detectable = max(leastGrowth/p.hours(), (crit+certain)*max(p.all.se, p.late.se))
	return f
}

// judgement returns the judgement on all lives together.
func (p *pool) judgement(m *robustMachine, g Gate) judgement {
	return judgement{
		gate: g, leading: totalTrack, lives: p.lives, finding: p.finding(m), shares: p.shares,
		length: time.Duration(p.age) * time.Minute, rising: g == Inconclusive,
	}
}

// where describes the part of the lives that was compared.
func (p *pool) where() string {
	return fmt.Sprintf("in %s, from minute %d to %d of each", text.Count(p.lives, "life", "lives"), p.skip, p.age)
}

// text describes by how much the lives grow.
func (p *pool) text(ok bool) string {
	if !ok {
		return "the lives are too short to measure their growth"
	}
	if !p.grows && p.all.low <= 0 {
		return fmt.Sprintf("no growth over %s on average (95 %% interval %s MB/h, from minute %d to %d)",
			text.Count(p.lives, "life", "lives"), intervalText(p.all.low, p.all.high), p.skip, p.age)
	}
	out := fmt.Sprintf("grew %s MB per life on average (%s MB/h, 95 %% interval %s, over %s, from minute %d to %d)",
		number(p.growth), number(p.all.rate), intervalText(p.all.low, p.all.high), text.Count(p.lives, "life", "lives"),
		p.skip, p.age)
	switch {
	case p.grows && p.pace > 3:
		out += ", most of it in the second half"
	case p.grows:
		out += fmt.Sprintf(", the second half at %.0f %% of the rate of the first", 100*p.pace)
	}
	if len(p.shares.list) > 0 {
		out += "; " + p.shares.text()
	}
	return out
}
