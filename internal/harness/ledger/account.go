package ledger

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// Account holds everything known about one process name on one device, across
// restarts of the process.
type Account struct {
	capture.Process
	Detector *detector.Detector
	// LastUp is the time of the latest sample of the current series on the
	// device's clock; 0 if there is no sample.
	LastUp    time.Duration
	LastBytes int64
	// Samples counts the judged samples. First and Last are the times (t_s) of
	// the first and the latest judged sample.
	Samples     int
	First, Last float64
	// Marks counts the marks since the account was opened.
	Marks int
	// Diagnosed is the time on the device's clock at which the latest diagnosis
	// of a leak ended; 0 if there was none since the device booted.
	Diagnosed time.Duration

	part     *Part
	presence presence
	source   capture.Source
	// measured is the quantity that the detector of this account judges.
	measured detector.Quantity
	swap     swapless
	// app is the sum over the processes of the app, and member is this
	// process's part of it. Both are nil until the process has a value.
	app    *AppSum
	member *member
	// opened is the earliest t_s at which the series could begin.
	opened  float64
	reasons []string

	restarts, details int
	// impossible counts the values that exceed what any process on the device
	// can use.
	impossible int
	// missed and gaps count the gaps in the series; absent is the total
	// duration of these gaps in seconds.
	missed, gaps int
	absent       float64

	// missingLines means that lines are missing before the next sample. unsure
	// means that the missing lines may include one that changed how the process
	// is read.
	missingLines, unsure bool

	// firstSuspicious and firstLeaking are kept here and not taken from the
	// detector, because the detector uses the device's clock, which restarts
	// with a reboot.
	firstSuspicious, firstLeaking *float64

	limits    limits
	diagnoses []record.Diagnosis
	missing   []record.MissingEvidence
	// unlisted means that more than maxMissing heap dumps are missing.
	unlisted bool
	objects  map[string]record.ObjectCount
	// graphics means that a breakdown contained graphics memory.
	graphics bool
	// deaths holds the latest deaths; reasonsOfDeath counts all deaths by
	// reason.
	deaths         []record.Death
	reasonsOfDeath map[string]int
	// faults holds the latest faults that the workload reported; faultCount is
	// the number of all faults.
	faults     []record.Death
	faultCount int
	incidents  incidents
	// atMarks holds the heap dumps at marks, for each life of the process.
	atMarks []*markedDumps
	// counts holds the object counts at the marks of a loop; reading is the
	// reading of the latest mark.
	counts  []*countSeries
	reading *openReading
	// paused is the time, in seconds, during which heap dumps prevented
	// sampling.
	paused float64

	transitions []record.Transition
	// dropped counts the transitions that are no longer kept.
	dropped int
	// jumps holds one entry for each of the latest jumps: the reading of the
	// device's clock at t_s 0. A reboot changes this value; the entry is the
	// one that was valid at the time of the jump.
	jumps    []time.Duration
	warnings []string
}

const (
	maxWarnings = 50
	// maxTransitions is the maximum number of transitions of one process in
	// run.json, which contains the latest ones. samples.ndjson contains all of
	// them.
	maxTransitions = 1000
	// maxJumps is the maximum number of jumps in a verdict.
	maxJumps = 16
	// maxDiagnoses is the maximum number of diagnoses of one process in
	// run.json: an overnight run may take a dump at each mark.
	maxDiagnoses = 500
	// maxMissing is the maximum number of missing heap dumps of one process in
	// run.json.
	maxMissing = 500
)

// Device returns the device of the process.
func (a *Account) Device() string { return a.part.header.Device }

// Seconds converts a time of the device's clock to t_s, seconds since the run
// began.
func (a *Account) Seconds(up time.Duration) float64 { return a.part.Seconds(up) }

// Inputs returns the number of inputs so far that may have changed the verdict.
func (a *Account) Inputs() int { return a.Samples + a.details + a.restarts }

// Limits returns the early warnings so far.
func (a *Account) Limits() []record.LimitWarning { return a.limits.warnings }

func (a *Account) addSample(s record.Sample, up time.Duration) []detector.Transition {
	a.presence.arrive(s.T)
	if s.Breakdown != nil {
		a.limits.addBreakdown(*s.Breakdown, a.part.bounds, up, a.part.Seconds)
	}
	steps := a.resync(s, up)
	a.limits.addSample(s, a.part.bounds, up, a.part.Seconds)
	a.addSwap(s)
	if s.Breakdown == nil {
		if bytes := a.part.bounds.bytesOf(s); bytes.Known {
			steps = append(steps, a.judge(s.T, up, bytes.N)...)
		} else if value, _ := valuesOf(s); value != nil {
			a.impossible++
		}
		a.addSampleAtMark(s, up)
		return steps
	}
	for _, warning := range s.Warnings {
		a.warn(warning)
	}
	a.details++
	a.addObjects(s.Breakdown.Objects)
	a.addObjectsAtMark(s.Breakdown.Objects, up)
	b := a.breakdownOf(*s.Breakdown, up)
	a.graphics = a.graphics || hasGraphics(b)
	steps = append(steps, a.Detector.AddBreakdown(b)...)
	a.addBreakdownToApp(b)
	switch mapped := b.Mapped(); {
	case a.source != capture.Dumpsys || !mapped.Known:
	case mapped.N <= 0: // the driver memory is as large as the total, or larger
		a.impossible++
	default:
		steps = append(steps, a.judge(s.T, up, mapped.N)...)
		a.addSampleAtMark(s, up)
	}
	return steps
}

func (a *Account) judge(t float64, up time.Duration, bytes int64) []detector.Transition {
	a.count(t, up, bytes)
	a.addToApp(up, bytes)
	return a.Detector.AddSample(detector.Sample{At: up, Bytes: bytes})
}

// count counts a judged value and records it as the latest one.
func (a *Account) count(t float64, up time.Duration, bytes int64) {
	if a.Samples == 0 {
		a.First = t
	}
	a.Samples++
	a.presence.sample(t, a.part.of.policy.MaxGap.Seconds())
	a.Last, a.LastUp, a.LastBytes = t, up, bytes
}

// addEvent adds an event about the process.
func (a *Account) addEvent(e record.Event, up time.Duration) []detector.Transition {
	switch e.Event {
	case "found":
		a.presence.arrive(e.T)
		a.readBy(e)
	case "back":
		a.presence.arrive(e.T)
	case "gone":
		a.presence.depart(e.T)
		a.leaveApp()
	case "probed":
		a.readBy(e)
	case "level":
		// A different level may measure a different quantity, so a change of
		// level ends every trend.
		a.countGap(up)
		if a.app != nil && capture.Source(e.Source) != a.source {
			a.app.changed = true
		}
		a.presence.open = false
		a.readBy(e)
		return a.Detector.ChangeQuantity(up)
	case "restart":
		a.missingLines = false
		a.presence.depart(e.T)
		a.presence.arrive(e.T)
		a.restart(e.PID, e.Start)
		a.readBy(e)
		a.limits.watch.Restart(up)
		return a.Detector.Restart(up)
	case "gap":
		if a.missingLines {
			return nil // this gap is part of a longer one
		}
		a.gaps++
		a.absent += e.Duration
		return a.Detector.Gap(up)
	case "missed":
		if a.missingLines {
			return nil
		}
		a.missed++
		a.absent += e.Duration
	case "unseen":
		// The series ended before the run did, so its result is kept.
		a.gaps++
		a.absent += e.Duration
		a.warn(e.Text)
	case "error", "unresponsive":
		a.warn(e.Text)
	case "pause":
		a.paused += e.Duration
	case "mark":
		a.addMark(e, up)
	case "collected", "not_collected":
		a.openCounts(e, up)
	case "headroom":
		if e.Headroom != nil {
			a.addHeadroomAtMark(*e.Headroom, up)
			a.limits.addHeadroom(*e.Headroom, up, a.part.Seconds)
		}
	case "diagnose", "diagnosed":
		return a.addDiagnosis(e, up)
	case "missing":
		a.addMissing(e)
	case "death":
		a.addDeath(e, up)
	case "fault":
		a.faultCount++
		d := deathOf(e)
		a.faults = append(latest(a.faults), d)
		a.incidents.addFault(d)
	}
	return nil
}

func (a *Account) addMark(e record.Event, up time.Duration) {
	a.Marks++
	a.Detector.AddMark(detector.Mark{At: up, Text: e.Text})
}

// maxObjects is the maximum number of kinds of objects that are counted.
const maxObjects = 64

// addObjects adds the object counts of a breakdown.
func (a *Account) addObjects(counts map[string]int64) {
	for name, n := range counts {
		c, known := a.objects[name]
		switch {
		case !known && (len(a.objects) == maxObjects || len(name) > maxObjects):
			continue
		case !known:
			c = record.ObjectCount{Name: name, First: n, Max: n}
		}
		c.Max, c.Last = max(c.Max, n), n
		if a.objects == nil {
			a.objects = map[string]record.ObjectCount{}
		}
		a.objects[name] = c
	}
}

// objectCounts returns the counts by name.
func (a *Account) objectCounts() []record.ObjectCount {
	out := []record.ObjectCount{}
	for _, name := range slices.Sorted(maps.Keys(a.objects)) {
		out = append(out, a.objects[name])
	}
	return out
}

const (
	// maxDeaths is the maximum number of deaths of one process in run.json,
	// which contains the latest ones.
	maxDeaths = 100
	// maxReasons is the maximum number of reasons that are counted; eleven are
	// defined.
	maxReasons    = 20
	maxDeathLines = 10
	// maxText and maxWord are the maximum lengths, in characters, of a string
	// and of a word that run.json copies from a line.
	maxText = 500
	maxWord = 40
)

// latest returns the list with room for one more death: if the list is full,
// the oldest death is removed.
func latest(list []record.Death) []record.Death {
	if len(list) < maxDeaths {
		return list
	}
	return append(list[:0], list[1:]...)
}

// Deaths returns the deaths of the process; at most maxDeaths, the latest, are
// kept.
func (a *Account) Deaths() []record.Death { return a.deaths }

// Faults returns the latest crashes and ANRs that a workload reported.
func (a *Account) Faults() []record.Death { return a.faults }

// deathOf returns the death that an event reports, with its strings truncated.
func deathOf(e record.Event) record.Death {
	d := record.Death{T: e.T, PID: e.PID, Reason: text.Head(e.Reason, maxWord), Text: text.Head(e.Text, maxText)}
	for _, line := range e.Lines[:min(len(e.Lines), maxDeathLines)] {
		d.Lines = append(d.Lines, text.Head(line, maxText))
	}
	return d
}

// causes maps the recorded reason for a death to a cause of the detector. The
// memory limiter and a memory anomaly kill a process because of its own memory,
// as an OutOfMemoryError does.
var causes = map[string]detector.Cause{
	"out_of_memory": detector.OutOfMemory, "memory_limiter": detector.OutOfMemory, "anomaly": detector.OutOfMemory,
	"low_memory": detector.LowMemory, "crash": detector.Crash, "native_crash": detector.Crash,
	"anr":  detector.NotResponding,
	"kill": detector.Killed, "exit": detector.Exited, "reboot": detector.Rebooted,
}

// Reasons returns those reasons for a death that have a cause in package
// detector.
func Reasons() []string { return slices.Sorted(maps.Keys(causes)) }

// endOf returns the time and cause of a death for the detector. If the line
// contains the time at which the process was last seen, that time is used.
func endOf(e record.Event, up time.Duration) (time.Duration, detector.Cause) {
	at := up
	if e.EndedUp != nil && *e.EndedUp >= 0 && *e.EndedUp <= MaxSeconds {
		at = min(up, clockOf(*e.EndedUp))
	}
	return at, causes[e.Reason]
}

// addDeath adds the death of a life. up is the time on the device's clock at
// which the reason was read.
func (a *Account) addDeath(e record.Event, up time.Duration) {
	d := a.incidents.explain(deathOf(e))
	e.Reason = d.Reason
	a.Detector.AddDeath(endOf(e, up))
	a.incidents.addDeath(d)
	a.deaths = append(latest(a.deaths), d)
	if a.reasonsOfDeath == nil {
		a.reasonsOfDeath = map[string]int{}
	}
	if _, known := a.reasonsOfDeath[d.Reason]; known || len(a.reasonsOfDeath) < maxReasons {
		a.reasonsOfDeath[d.Reason]++
	}
}

// addMissing records that a heap dump should have been taken but was not.
func (a *Account) addMissing(e record.Event) {
	if len(a.missing) == maxMissing {
		a.unlisted = true
		a.warn(fmt.Sprintf("more than %d heap dumps are missing; the others are not listed", maxMissing))
		return
	}
	a.missing = append(a.missing, record.MissingEvidence{
		Device: a.Device(), User: a.User, Process: a.Key().Name, T: e.T, Mark: text.Head(e.Mark, maxText),
		Text: text.Head(e.Text, maxText), Unreadable: e.Unreadable,
	})
}

// MissingUnlisted reports whether some missing heap dumps are not listed. If it
// returns true, another missing dump does not change the record.
func (a *Account) MissingUnlisted() bool { return a.unlisted }

// addDiagnosis adds what a diagnosis collected, and later its results.
func (a *Account) addDiagnosis(e record.Event, up time.Duration) []detector.Transition {
	if e.Diagnosis == nil {
		return nil
	}
	d := *e.Diagnosis
	at := slices.IndexFunc(a.diagnoses, func(have record.Diagnosis) bool { return have.Folder == d.Folder })
	switch {
	case at >= 0 && d.Folder != "":
		a.diagnoses[at] = d
	case len(a.diagnoses) < maxDiagnoses:
		a.diagnoses = append(a.diagnoses, d)
	default:
		a.warn(fmt.Sprintf("more than %d diagnoses; the others are only in the artifacts folder", maxDiagnoses))
	}
	a.addDump(d)
	if e.Event != "diagnose" || d.Trigger != record.TriggerLeak || e.Retry {
		return nil
	}
	a.Diagnosed = up
	return a.Detector.DiagnosisFinished(up)
}

// restart sets the identity of the process's next life.
func (a *Account) restart(pid int, start uint64) {
	a.leaveApp()
	a.PID, a.Start = pid, start
	a.restarts++
	a.LastUp = 0
	a.objects, a.reading = nil, nil
}

func (a *Account) readBy(e record.Event) {
	a.PID, a.Start = e.PID, e.Start
	a.source, a.reasons, a.unsure = capture.Source(e.Source), e.Reasons, false
	a.setQuantity()
}

func (a *Account) warn(warning string) {
	if len(a.warnings) < maxWarnings && !slices.Contains(a.warnings, warning) {
		a.warnings = append(a.warnings, warning)
	}
}

// WasLeaking reports whether the process was in the LEAKING state at any time
// between two times of the run, given in seconds.
func (a *Account) WasLeaking(from, to float64) bool {
	leaking := false
	for _, t := range a.transitions {
		switch {
		case t.T <= from:
			leaking = t.To == detector.Leaking
		case t.T <= to && t.To == detector.Leaking:
			return true
		}
	}
	return leaking
}

func (a *Account) addTransition(t record.Transition) {
	switch {
	case t.To == detector.Suspicious && a.firstSuspicious == nil:
		a.firstSuspicious = new(t.T)
	case t.To == detector.Leaking && a.firstLeaking == nil:
		a.firstLeaking = new(t.T)
	}
	if len(a.transitions) == maxTransitions {
		a.transitions = append(a.transitions[:0], a.transitions[1:]...)
		a.dropped++
	}
	a.transitions = append(a.transitions, t)
}

// addJump adds an entry for a new jump. The entry is the reading of the
// device's clock at t_s 0.
func (a *Account) addJump(begun time.Duration) {
	if len(a.jumps) == maxJumps {
		a.jumps = append(a.jumps[:0], a.jumps[1:]...)
	}
	a.jumps = append(a.jumps, begun)
}

// breakdownOf converts a breakdown from samples.ndjson for the detector and
// removes impossible values.
func (a *Account) breakdownOf(b record.Breakdown, at time.Duration) detector.Breakdown {
	// TOTAL includes the swapped memory if dumpsys prints it.
	most := a.part.bounds.memory + a.part.bounds.swap
	amount := func(kb *int64) detector.Amount {
		v := within(kb, most)
		if kb != nil && !v.Known {
			a.impossible++
		}
		return v
	}
	out := detector.Breakdown{
		At:  at,
		EGL: amount(b.EGL), GL: amount(b.GL), OtherMtrack: amount(b.OtherMtrack), GfxDev: amount(b.GfxDev),
	}
	out.Dim = [detector.NumDimensions]detector.Amount{
		detector.JavaHeap:     amount(b.JavaHeap),
		detector.NativeHeap:   amount(b.NativeHeap),
		detector.Code:         amount(b.Code),
		detector.Stack:        amount(b.Stack),
		detector.Graphics:     amount(b.Graphics),
		detector.PrivateOther: amount(b.PrivateOther),
		detector.System:       amount(b.System),
		detector.Total:        amount(b.TotalPSS),
	}
	return out
}
