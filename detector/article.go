package detector

import (
	"math"
	"time"

	"github.com/leakgate/leakgate/detector/trend"
)

// input is what the machine was told.
type input uint8

const (
	onSample input = 1 << iota
	onBreakdown
	onDiagnosis
	onRestart
	onGap
	onReading = onSample | onBreakdown
)

// row is one arrow of the state machine: from where to where, on which input, under
// which condition. holds decides and words the reason; it changes nothing but the kind
// and the evidence of a leak.
type row struct {
	rule     string
	from, to State
	on       input
	holds    func(*articleMachine) (because string, ok bool)
}

// The rows that leave something behind.
const (
	ruleSpike   = "5.4 spike"
	ruleTimeOut = "5.5 time-out"
)

// articleTable is the state machine of policy "article". The rows of one state are
// asked in this order, one step an input. A time-out comes before all evidence (8.2:
// "whatever the state at that moment"), the end of a suspicion before its promotion.
var articleTable = []row{
	{ruleSpike, Normal, Leaking, onSample, (*articleMachine).spikes},
	{"5.4 gpu", Normal, Leaking, onReading, (*articleMachine).gpuLeaks},
	{"5.5 trend", Normal, Suspicious, onSample, (*articleMachine).trendHolds},

	{"8.3 restart", Suspicious, Normal, onRestart, always("the process restarted")},
	{"gap", Suspicious, Normal, onGap, always("the process was not watched for a while")},
	{ruleTimeOut, Suspicious, Normal, onReading, (*articleMachine).suspicionExpired},
	{ruleSpike, Suspicious, Leaking, onSample, (*articleMachine).spikesAnywhere},
	{"5.4 gpu", Suspicious, Leaking, onReading, (*articleMachine).gpuLeaks},
	{"5.5 not significant", Suspicious, Normal, onSample, (*articleMachine).trendFaded},
	{"5.3 floors", Suspicious, Confirming, onSample, (*articleMachine).floorsRise},

	{"8.3 restart", Confirming, Normal, onRestart, always("the process restarted")},
	{"gap", Confirming, Normal, onGap, always("the process was not watched for a while")},
	{ruleTimeOut, Confirming, Normal, onReading, (*articleMachine).confirmationExpired},
	{ruleSpike, Confirming, Leaking, onSample, (*articleMachine).spikesAnywhere},
	{"5.4 gpu", Confirming, Leaking, onReading, (*articleMachine).gpuLeaks},
	{"5.6 dimensions", Confirming, Leaking, onReading, (*articleMachine).dimensionsConfirm},
	{"5.5 not confirmed", Confirming, Normal, onReading, (*articleMachine).dimensionsRefuse},

	{"8.3 restart", Leaking, Normal, onRestart, always("the process restarted")},
	{"6.4 diagnosis done", Leaking, Normal, onDiagnosis, (*articleMachine).diagnosisEnds},
	{"6.4 cooldown", Leaking, Normal, onReading, (*articleMachine).reportEnds},
	{"5.5 cooled", Leaking, Normal, onReading, (*articleMachine).cooledDown},
}

func always(because string) func(*articleMachine) (string, bool) {
	return func(*articleMachine) (string, bool) { return because, true }
}

// look is what the article's machine remembers from one input to the next.
type look struct {
	// line is the fit of the last window that was looked at; rising and fading count
	// the windows in a row that were, and were not, significant.
	line           trend.Line
	rising, fading int
	// lookedAt is when WindowsMinute looked last, block what WindowsDisjoint waits for.
	lookedAt Moment
	block    int64
	// suspected is when SUSPICIOUS last began, level the total at that time.
	suspected Moment
	level     float64
	// fresh counts the breakdowns since CONFIRMING began.
	fresh int
	// spike is the rise above the floor, spikeArmed that the last one has passed.
	spike      spike
	spikeArmed bool
	// gpuSince is the time in seconds before which breakdowns are used up; gpuDue
	// says that the GPU path has something new to look at.
	gpuSince float64
	gpuDue   bool
	// event says that this leak is reported without a diagnosis, pending that a
	// diagnosis is wanted.
	event, pending bool
	// unconfirmed says that CONFIRMING ended for want of breakdowns.
	unconfirmed bool
}

type spike struct {
	floor, above, limit float64
	holds, known        bool
}

// observe looks at the series once for each sample.
func (d *articleMachine) observe() {
	d.look.gpuDue = d.look.gpuDue || d.a.GPU == GPULiteral || d.a.GPU == GPULiteralCorrected
	d.observeSpike()
	if d.state == Normal || d.state == Suspicious {
		d.observeTrend()
	}
}

func (d *articleMachine) observeSpike() {
	floor, n := d.series.recentFloor(d.a.Segment)
	s := spike{floor: floor, known: n >= d.a.SpikeMinPoints}
	s.above = d.series.current() - floor
	s.limit = max(floor*d.a.SpikePct/100, float64(d.a.SpikeMin))
	s.holds = s.known && s.above > s.limit
	d.look.spike = s
	if s.known && !s.holds {
		d.look.spikeArmed = true
	}
}

func (d *articleMachine) observeTrend() {
	x, y, due := d.nextWindow()
	if !due || len(x) < d.a.MinPoints {
		return
	}
	l := trend.Fit(x, y)
	d.look.line = l
	significant := l.Slope > 0 && l.T > d.a.TMin && l.R2 > d.a.R2Min
	d.look.rising = runLength(d.look.rising, significant)
	faded := l.T <= d.a.TMin
	if d.a.FallBack == FallBackByAll {
		faded = !significant
	}
	d.look.fading = runLength(d.look.fading, faded)
}

func runLength(n int, again bool) int {
	if again {
		return n + 1
	}
	return 0
}

const (
	walkStep   = time.Minute
	tenMinutes = 10 * time.Minute
)

// nextWindow is the window to look at with this sample, if one is due.
func (d *articleMachine) nextWindow() (x, y []float64, due bool) {
	total := d.series.total
	switch d.a.Windows {
	case WindowsMinute:
		if d.look.lookedAt.Known && d.now-d.look.lookedAt.At < walkStep {
			return nil, nil, false
		}
		d.look.lookedAt = Moment{At: d.now, Known: true}
	case WindowsLast:
		x, y = total.From(d.series.last() - tenMinutes.Seconds())
		return x, y, true
	case WindowsDisjoint:
		return d.finishedBlock()
	}
	return total.X(), total.Y(), true
}

// finishedBlock is the last block of ten minutes, when this sample is the first behind it.
func (d *articleMachine) finishedBlock() (x, y []float64, due bool) {
	blocks := trend.Blocks{From: d.series.start, Length: tenMinutes.Seconds()}
	k := blocks.Of(d.series.last())
	if k <= d.look.block {
		return nil, nil, false
	}
	d.look.block = k
	from := blocks.From + float64(k-1)*blocks.Length
	x, y = d.series.total.From(from)
	end := len(x)
	for end > 0 && x[end-1] >= from+blocks.Length {
		end--
	}
	return x[:end], y[:end], true
}

func (d *articleMachine) spikes() (string, bool) {
	if !d.look.spike.holds || !d.look.spikeArmed {
		return "", false
	}
	// A spike never passed CONFIRMING, so its kind is unknown (6.2).
	d.kind, d.evidence = Unknown, nil
	return spikeText(d.look.spike, d.a), true
}

func (d *articleMachine) spikesAnywhere() (string, bool) {
	if d.a.SpikeFrom != SpikeFromAny {
		return "", false
	}
	return d.spikes()
}

func (d *articleMachine) trendHolds() (string, bool) {
	if d.look.rising < d.a.Consecutive {
		return "", false
	}
	return trendText("memory", d.look.line) + windowsText(d.look.rising), true
}

func (d *articleMachine) trendFaded() (string, bool) {
	if d.look.fading < d.a.Consecutive {
		return "", false
	}
	return "no significant rise any more: " + trendText("memory", d.look.line) + windowsText(d.look.fading), true
}

func (d *articleMachine) suspicionExpired() (string, bool) {
	if d.now-d.entered < d.a.SuspiciousMax {
		return "", false
	}
	text := "not confirmed within " + minutesText(d.a.SuspiciousMax)
	var room floorRoom
	if floors := d.currentFloors(room[:0]); len(floors) > 0 {
		text += ": the floors of " + minutesText(d.a.Segment) + " were " + floorsText(floors)
	}
	return text, true
}

func (d *articleMachine) confirmationExpired() (string, bool) {
	if d.now-d.entered < d.a.ConfirmingMax {
		return "", false
	}
	return "not confirmed within " + minutesText(d.a.ConfirmingMax) + ": " + d.refusalText(), true
}

// floorRoom is room on the stack for the floors of 160 minutes in the article's
// segments; more of them cost an allocation.
type floorRoom [32]trend.Floor

// currentFloors appends to dst the floors that count, oldest first.
func (d *articleMachine) currentFloors(dst []trend.Floor) []trend.Floor {
	s := d.series
	from := d.entered.Seconds()
	if d.a.FloorsFrom == FloorsFromHistory {
		from = s.start
	}
	blocks := trend.Blocks{From: from, Length: d.a.Segment.Seconds()}
	x, y := s.total.X(), s.total.Y()
	floors := trend.Floors(dst, x, y, blocks)
	if d.a.FloorsFrom == FloorsFromOpen {
		floors = appendOpenFloor(floors, s, blocks)
	}
	return floors
}

// openAfter is how far a segment must have come to count with FloorsFromOpen.
const openAfter = 2 * time.Minute

func appendOpenFloor(floors []trend.Floor, s *series, b trend.Blocks) []trend.Floor {
	k := b.Of(s.last())
	begin := b.From + float64(k)*b.Length
	if k < 0 || s.last()-begin < openAfter.Seconds() {
		return floors
	}
	_, y := s.total.From(begin)
	v, ok := trend.P25(y)
	if !ok {
		return floors
	}
	return append(floors, trend.Floor{Block: k, Value: v, N: len(y)})
}

func (d *articleMachine) floorsRise() (string, bool) {
	var room floorRoom
	floors := d.currentFloors(room[:0])
	if len(floors) < d.a.MinSegments {
		return "", false
	}
	falls := 0
	if d.a.Floors == FloorsLast {
		floors = floors[len(floors)-d.a.MinSegments:]
	}
	for i := 1; i < len(floors); i++ {
		if floors[i].Value <= floors[i-1].Value {
			falls++
		}
	}
	if falls > 1 || falls == 1 && d.a.Floors != FloorsOneFall {
		return "", false
	}
	return "the floors (P25) of " + minutesText(d.a.Segment) + " rise: " + floorsText(floors), true
}

func (d *articleMachine) gpuLeaks() (string, bool) {
	if !d.look.gpuDue {
		return "", false
	}
	d.look.gpuDue = false
	switch d.a.GPU {
	case GPUOff:
		return "", false
	case GPUGraphics:
		return d.graphicsRise()
	}
	return d.totalRisesAlone()
}

// graphicsRise tests the graphics memory itself, and the rest of the same breakdowns.
func (d *articleMachine) graphicsRise() (string, bool) {
	rise := trend.Fit(d.series.graphics.From(d.look.gpuSince))
	rest := trend.Fit(d.series.rest.From(d.look.gpuSince))
	if rise.N < d.a.MinPoints || !(rise.T > d.a.TMin && rise.R2 > d.a.R2Min) ||
		rise.Growth() < float64(d.a.MinGrowth) || rest.T >= d.a.FlatT {
		return "", false
	}
	d.kind, d.evidence = GPU, gpuEvidence(rise, rest)
	return gpuText("graphics memory", rise, "the rest", rest), true
}

// totalRisesAlone is 5.4 as it is written: TOTAL of the breakdowns against the samples,
// each over its own window.
func (d *articleMachine) totalRisesAlone() (string, bool) {
	samples := d.series.total
	if d.a.GPU == GPULiteral {
		samples = d.series.raw()
	}
	rise := trend.Fit(d.series.dim(Total).From(d.look.gpuSince))
	if rise.N < d.a.MinPoints || samples.Len() < d.a.MinPoints || rise.T <= d.a.TMin {
		return "", false
	}
	flat := trend.Fit(samples.X(), samples.Y())
	if flat.T >= d.a.FlatT {
		return "", false
	}
	d.kind, d.evidence = GPU, gpuEvidence(rise, flat)
	return gpuText("TOTAL PSS", rise, "the samples", flat), true
}

func (d *articleMachine) dimensionsConfirm() (string, bool) {
	if d.look.fresh < d.a.ExtraBreakdowns || d.grown() <= float64(d.a.MinGrowth) ||
		d.a.CooldownRule == CooldownBlocks && d.cooling() {
		return "", false
	}
	rises := d.dimensionRises()
	if !rises.anyVote(d.a.TotalVote) {
		return "", false
	}
	kind, why := rises.kind(d.a.Kind)
	d.kind, d.evidence = kind, rises.evidence()
	return kind.String() + ": " + why + "; memory grew " + mbText(d.grown()) + " in the " +
		minutesText(d.now-d.look.suspected.At) + " since it became SUSPICIOUS", true
}

func (d *articleMachine) dimensionsRefuse() (string, bool) {
	if d.a.Unconfirmed != UnconfirmedFallsBack || d.look.fresh < d.a.ExtraBreakdowns {
		return "", false
	}
	return "not confirmed: " + d.refusalText(), true
}

// grown is the growth since SUSPICIOUS began, in bytes.
func (d *articleMachine) grown() float64 { return d.series.current() - d.look.level }

func (d *articleMachine) dimensionRises() rises {
	from := math.Inf(-1)
	if d.a.Dimensions == DimensionsFresh {
		from = d.entered.Seconds()
	}
	var r rises
	for dim := range r {
		l := trend.Fit(d.series.dim(Dimension(dim)).From(from))
		r[dim] = rise{line: l, significant: l.Fitted() && l.T > d.a.TMin}
	}
	return r
}

func (d *articleMachine) diagnosisEnds() (string, bool) {
	if d.a.AfterDiagnosis == AfterDiagnosisCooled && d.cooling() {
		return "", false
	}
	return "the diagnosis is done", true
}

func (d *articleMachine) reportEnds() (string, bool) {
	if !d.look.event {
		return "", false
	}
	return "reported without a diagnosis: the last one is less than " + minutesText(d.a.Cooldown) + " old", true
}

func (d *articleMachine) cooledDown() (string, bool) {
	if d.a.AfterDiagnosis != AfterDiagnosisCooled || d.look.pending || d.look.event || d.cooling() {
		return "", false
	}
	return "the diagnosis is done and the cooldown is over", true
}

// enterLeaking decides between a diagnosis and a report (6.1, 6.4) and words the latter.
func (d *articleMachine) enterLeaking() string {
	if !d.firstLeaking.Known {
		d.firstLeaking = Moment{At: d.now, Known: true}
	}
	d.look.event = d.cooling()
	d.look.pending = !d.look.event
	if d.look.event {
		return " (reported only: diagnosed " + minutesText(d.now-d.diagnosed.At) + " ago)"
	}
	return ""
}

// leave forgets what the next state must gather anew (6.4: two new windows).
func (d *articleMachine) leave(r *row) {
	l := &d.look
	l.rising, l.fading = 0, 0
	switch {
	case r.rule == ruleSpike:
		l.spikeArmed = false
	case d.state == Confirming && r.rule == ruleTimeOut && l.fresh < d.a.ExtraBreakdowns:
		l.unconfirmed = true
	case d.state == Leaking:
		l.event, l.pending = false, false
		// A breakdown that has carried one leak does not carry the next.
		l.gpuSince = math.Nextafter(d.now.Seconds(), math.Inf(1))
	}
	l.fresh = 0
}
