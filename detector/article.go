package detector

import (
	"math"

	"github.com/leakgate/leakgate/internal/detector/trend"
	"github.com/leakgate/leakgate/internal/known"
)

// input is the type of an input of the state machine. The values are bits, so
// that a row can accept several types.
type input uint8

const (
	onSample input = 1 << iota
	onBreakdown
	onDiagnosis
	onRestart
	onGap
	onReading = onSample | onBreakdown
)

// row is one transition of the state machine: its two states, the inputs that
// can cause it, and its condition. holds evaluates the condition and returns
// the reason in words. It may also set the kind and the evidence of a leak.
type row struct {
	rule     string
	from, to State
	on       input
	holds    func(*articleMachine) (because string, ok bool)
}

// The function leave handles these two rules specially.
const (
	ruleSpike   = "5.4 spike"
	ruleTimeOut = "5.5 time-out"
)

// articleTable is the state machine of policy "article". The rows of a state
// are evaluated in this order, and each input causes at most one transition. A
// timeout takes precedence over all evidence (8.2: "whatever the state at that
// moment"), and the end of a suspicion takes precedence over its promotion.
var articleTable = []row{
	{ruleSpike, Normal, Leaking, onSample, (*articleMachine).spikes},
	{"5.4 gpu", Normal, Leaking, onReading, (*articleMachine).gpuLeaks},
	{"5.5 trend", Normal, Suspicious, onSample, (*articleMachine).trendHolds},

	{"8.3 restart", Suspicious, Normal, onRestart, always("the process restarted")},
	{"gap", Suspicious, Normal, onGap, always("the process was not watched for a while")},
	{ruleTimeOut, Suspicious, Normal, onReading, (*articleMachine).suspicionExpired},
	{"5.4 gpu", Suspicious, Leaking, onReading, (*articleMachine).gpuLeaks},
	{"5.5 not significant", Suspicious, Normal, onSample, (*articleMachine).trendFaded},
	{"5.3 floors", Suspicious, Confirming, onSample, (*articleMachine).floorsRise},

	{"8.3 restart", Confirming, Normal, onRestart, always("the process restarted")},
	{"gap", Confirming, Normal, onGap, always("the process was not watched for a while")},
	{ruleTimeOut, Confirming, Normal, onReading, (*articleMachine).confirmationExpired},
	{"5.4 gpu", Confirming, Leaking, onReading, (*articleMachine).gpuLeaks},
	{"5.6 dimensions", Confirming, Leaking, onReading, (*articleMachine).dimensionsConfirm},

	{"8.3 restart", Leaking, Normal, onRestart, always("the process restarted")},
	{"6.4 diagnosis done", Leaking, Normal, onDiagnosis, always("the diagnosis is done")},
	{"6.4 cooldown", Leaking, Normal, onReading, (*articleMachine).reportEnds},
}

func always(because string) func(*articleMachine) (string, bool) {
	return func(*articleMachine) (string, bool) { return because, true }
}

// look is the data that the machine of policy "article" keeps between inputs.
type look struct {
	// line is the fit of the latest window. rising counts the latest
	// consecutive significant windows; fading counts the latest consecutive
	// windows without a significant rise.
	line           trend.Line
	rising, fading int
	// suspected is when SUSPICIOUS last began; level is the total memory in
	// bytes at that time.
	suspected known.Duration
	level     float64
	// fresh counts the breakdowns since CONFIRMING began.
	fresh int
	// spike is the latest sample compared with the floor. spikeArmed reports
	// whether the previous spike is over.
	spike      spike
	spikeArmed bool
	// Breakdowns from before gpuSince (in seconds) have already been used.
	// gpuDue reports whether the GPU path has new data.
	gpuSince float64
	gpuDue   bool
	// event reports whether this leak is reported without a diagnosis; pending
	// reports whether a requested diagnosis has not finished yet.
	event, pending bool
	// unconfirmed reports whether CONFIRMING timed out for lack of breakdowns.
	unconfirmed bool
}

type spike struct {
	floor, above, limit float64
	holds, known        bool
}

// observe updates the spike and the trend after each sample.
func (d *articleMachine) observe() {
	d.observeSpike()
	if d.state == Normal || d.state == Suspicious {
		d.observeTrend()
	}
}

func (d *articleMachine) observeSpike() {
	floor, n := d.series.recentFloor(d.a.segment)
	s := spike{floor: floor, known: n >= d.a.spikeMinPoints}
	s.above = d.series.current() - floor
	s.limit = max(floor*d.a.spikePct/100, float64(d.a.spikeMin))
	s.holds = s.known && s.above > s.limit
	d.look.spike = s
	if s.known && !s.holds {
		d.look.spikeArmed = true
	}
}

func (d *articleMachine) observeTrend() {
	total := d.series.total
	if total.Len() < d.a.minPoints {
		return
	}
	l := trend.Fit(total.X(), total.Y())
	d.look.line = l
	significant := l.Slope > 0 && l.T > d.a.tMin && l.R2 > d.a.r2Min
	d.look.rising = runLength(d.look.rising, significant)
	d.look.fading = runLength(d.look.fading, l.T <= d.a.tMin)
}

func runLength(n int, again bool) int {
	if again {
		return n + 1
	}
	return 0
}

func (d *articleMachine) spikes() (string, bool) {
	if !d.look.spike.holds || !d.look.spikeArmed {
		return "", false
	}
	// A spike leads to LEAKING without CONFIRMING, so its kind is unknown
	// (6.2).
	d.kind, d.evidence = Unknown, nil
	return spikeText(d.look.spike, &d.a), true
}

func (d *articleMachine) trendHolds() (string, bool) {
	if d.look.rising < d.a.consecutive {
		return "", false
	}
	return trendText("memory", d.look.line) + windowsText(d.look.rising), true
}

func (d *articleMachine) trendFaded() (string, bool) {
	if d.look.fading < d.a.consecutive {
		return "", false
	}
	return "no longer a significant rise: " + trendText("memory", d.look.line) + windowsText(d.look.fading), true
}

func (d *articleMachine) suspicionExpired() (string, bool) {
	if d.now-d.entered < d.a.suspiciousMax {
		return "", false
	}
	text := "not confirmed within " + minutesText(d.a.suspiciousMax)
	var room floorRoom
	if floors := d.currentFloors(room[:0]); len(floors) > 0 {
		text += ": the floors of " + minutesText(d.a.segment) + " were " + floorsText(floors)
	}
	return text, true
}

func (d *articleMachine) confirmationExpired() (string, bool) {
	if d.now-d.entered < d.a.confirmingMax {
		return "", false
	}
	return "not confirmed within " + minutesText(d.a.confirmingMax) + ": " + d.refusalText(), true
}

// floorRoom is a buffer on the stack for 32 floors, which cover 160 minutes
// with the article's segments. More floors require an allocation.
type floorRoom [32]trend.Floor

// currentFloors appends to dst the floors of the complete segments since
// SUSPICIOUS began, oldest first.
func (d *articleMachine) currentFloors(dst []trend.Floor) []trend.Floor {
	total := d.series.total
	blocks := trend.Blocks{From: d.entered.Seconds(), Length: d.a.segment.Seconds()}
	return trend.Floors(dst, total.X(), total.Y(), blocks)
}

func (d *articleMachine) floorsRise() (string, bool) {
	var room floorRoom
	floors := d.currentFloors(room[:0])
	if len(floors) < d.a.minSegments {
		return "", false
	}
	for i := 1; i < len(floors); i++ {
		if floors[i].Value <= floors[i-1].Value {
			return "", false
		}
	}
	return "the floors (P25) of " + minutesText(d.a.segment) + " rise: " + floorsText(floors), true
}

// gpuLeaks reports whether graphics memory rises while the other memory in the
// same breakdowns does not, and returns the reason.
func (d *articleMachine) gpuLeaks() (string, bool) {
	if !d.look.gpuDue {
		return "", false
	}
	d.look.gpuDue = false
	rise := trend.Fit(d.series.graphics.From(d.look.gpuSince))
	rest := trend.Fit(d.series.rest.From(d.look.gpuSince))
	if rise.N < d.a.minPoints || !(rise.T > d.a.tMin && rise.R2 > d.a.r2Min) ||
		rise.Growth() < float64(d.a.minGrowth) || rest.T >= d.a.flatT {
		return "", false
	}
	d.kind, d.evidence = GPU, gpuEvidence(rise, rest)
	return gpuText("graphics memory", rise, "the rest", rest), true
}

func (d *articleMachine) dimensionsConfirm() (string, bool) {
	if d.look.fresh < d.a.extraBreakdowns || d.grown() <= float64(d.a.minGrowth) {
		return "", false
	}
	rises := d.dimensionRises()
	if !rises.any() {
		return "", false
	}
	kind, why := rises.kind()
	d.kind, d.evidence = kind, rises.evidence()
	return kind.String() + ": " + why + "; memory grew " + mbText(d.grown()) + " in the " +
		minutesText(d.now-d.look.suspected.N) + " since it became SUSPICIOUS", true
}

// grown returns the growth since SUSPICIOUS began, in bytes.
func (d *articleMachine) grown() float64 { return d.series.current() - d.look.level }

func (d *articleMachine) dimensionRises() rises {
	var r rises
	for dim := range r {
		l := trend.Fit(d.series.dim(Dimension(dim)).From(math.Inf(-1)))
		r[dim] = rise{line: l, significant: l.Fitted() && l.T > d.a.tMin}
	}
	return r
}

func (d *articleMachine) reportEnds() (string, bool) {
	if !d.look.event {
		return "", false
	}
	return "reported without a diagnosis: the previous one was less than " + minutesText(d.policy.Cooldown) + " old",
		true
}

// enterLeaking decides between requesting a diagnosis and only reporting the
// leak (6.1, 6.4). If it only reports the leak, it returns a note that says
// why.
func (d *articleMachine) enterLeaking() string {
	if !d.firstLeaking.Known {
		d.firstLeaking = known.OfDuration(d.now)
	}
	d.look.event = d.inCooldown()
	d.look.pending = !d.look.event
	if d.look.event {
		return " (reported only: diagnosed " + minutesText(d.now-d.diagnosed.N) + " ago)"
	}
	return ""
}

// leave clears the data that the next state must collect again (6.4: two new
// windows).
func (d *articleMachine) leave(r *row) {
	l := &d.look
	l.rising, l.fading = 0, 0
	switch {
	case r.rule == ruleSpike:
		l.spikeArmed = false
	case d.state == Confirming && r.rule == ruleTimeOut && l.fresh < d.a.extraBreakdowns:
		l.unconfirmed = true
	case d.state == Leaking:
		l.event, l.pending = false, false
		// A breakdown that was evidence for one leak is not evidence for the
		// next.
		l.gpuSince = math.Nextafter(d.now.Seconds(), math.Inf(1))
	}
	l.fresh = 0
}
