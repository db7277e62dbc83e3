package monitor

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/detector/limit"
	"github.com/leakgate/leakgate/harness/response"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// ledger is one device's part of a run as its lines tell it. A session hands it
// every line that it records, a rebuild every line that it reads: both come to
// the same verdicts, because there is no other way in.
type ledger struct {
	policy   detector.Policy
	device   record.HeaderDevice
	accounts map[capture.Key]*account
	order    []*account
	// begun is the device's clock at t_s 0, up its latest reading and last the
	// t_s of the latest line.
	begun, up time.Duration
	last      float64
	usage     record.Usage
	own       *record.Own // for all devices together
	// lost says why the device's part ended early.
	lost string
	// dropped is t_s at which the device has dropped the workload's command.
	dropped *float64
	// torn: lines are missing before the next one. damaged: some were missing.
	torn, damaged bool
}

func newLedger(policy detector.Policy, device record.HeaderDevice) *ledger {
	up := clockOf(device.StartedUp)
	if device.TimeScale <= 0 {
		device.TimeScale = 1
	}
	return &ledger{policy: policy, device: device, accounts: map[capture.Key]*account{}, begun: up, up: up}
}

// clockOf is seconds of a line as the device's clock, which counts hundredths of
// a second (/proc/uptime): whole milliseconds bring back exactly what was read.
func clockOf(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds*1000)) * time.Millisecond
}

// open gives the account of a process, a new one if there is none.
func (l *ledger) open(p capture.Process) *account {
	a := l.accounts[p.Key()]
	if a == nil {
		// The line that told how it is read may be missing.
		a = &account{Process: p, detector: detector.New(l.policy), unsure: l.damaged}
		l.accounts[p.Key()] = a
		l.order = append(l.order, a)
	}
	return a
}

// step is one step of the machine of one process. One that leads nowhere tells a
// jump of the memory.
type step struct {
	of *account
	record.Transition
}

func (s step) jump() bool { return s.From == s.To }

// sample hears one sample and gives the steps that it caused.
func (l *ledger) sample(s record.Sample) []step {
	steps := l.mend(s.T, clockOf(s.Up))
	a := l.open(capture.Process{Name: s.Process, User: s.User, PID: s.PID, Start: s.Start})
	up := clockOf(s.Up)
	l.up, l.last = max(l.up, up), max(l.last, s.T)
	if s.Breakdown != nil {
		a.javaHeard(*s.Breakdown, up, l.seconds)
	}
	return append(steps, l.steps(a, a.hear(s, up))...)
}

// event hears one event and gives the steps that it caused. Steps and jumps are
// events too; they follow from the others and are not heard.
func (l *ledger) event(e record.Event) []step {
	up := clockOf(e.Up)
	var steps []step
	if e.Event != "reboot" { // which tells the new clock itself
		steps = l.mend(e.T, up)
	}
	l.last = max(l.last, e.T)
	if e.Process == "" {
		return append(steps, l.ofDevice(e, up)...)
	}
	user := 0
	if e.User != nil {
		user = *e.User
	}
	p := capture.Process{Name: e.Process, User: user, PID: e.PID, Start: e.Start}
	if l.accounts[p.Key()] == nil && e.Event != "found" {
		return steps // of another version: what it says nobody knows
	}
	a := l.open(p)
	return append(steps, l.steps(a, a.told(e, up, l.seconds))...)
}

func (l *ledger) ofDevice(e record.Event, up time.Duration) []step {
	switch e.Event {
	case "usage":
		if e.Usage != nil {
			l.usage = *e.Usage
		}
		l.own = e.Own
	case "lost":
		l.lost = e.Text
	case "dropped":
		l.dropped = new(e.T)
	case "reboot":
		return l.reboot(e.T, up)
	case "mark":
		for _, a := range l.order {
			a.detector.AddMark(detector.Mark{At: up, Text: e.Text})
		}
	}
	return nil
}

// reboot takes the device's new clock, which shows up at a moment of the run: nothing
// before it is compared with anything after.
func (l *ledger) reboot(t float64, up time.Duration) []step {
	l.torn = false
	l.begun, l.up = up-clockOf(t), up
	var out []step
	for _, a := range l.order {
		a.lastUp, a.diagnosed = 0, 0
		a.room.Restart(up)
		out = append(out, l.steps(a, a.detector.Restart(up))...)
	}
	return out
}

// seconds is a moment of the device's clock on the time axis of the run.
func (l *ledger) seconds(up time.Duration) float64 { return round((up - l.begun).Seconds(), 3) }

// steps keeps the steps of an account's machine, on the time axis of the run.
func (l *ledger) steps(a *account, machine []detector.Transition) []step {
	var out []step
	for _, t := range machine {
		x := step{a, record.Transition{
			T: l.seconds(t.At), From: t.From.String(), To: t.To.String(), Kind: t.Kind.String(), Because: t.Because,
		}}
		if x.jump() {
			a.jumped(l.begun)
		} else {
			a.keep(x.Transition)
		}
		out = append(out, x)
	}
	return out
}

// record is the device as run.json has it.
func (l *ledger) record() record.Device {
	return record.Device{
		Device: l.device.Device, Model: l.device.Model, API: l.device.API, TimeScale: l.device.TimeScale,
		StartedUp: l.device.StartedUp, Duration: l.last, Error: l.lost, Usage: l.usage,
	}
}

// account is one process name on one device, across its restarts.
type account struct {
	capture.Process
	source   capture.Source
	reasons  []string
	detector *detector.Detector

	restarts, samples, details int
	// missing and gaps count holes in the series; absent is their time in seconds.
	missing, gaps int
	absent        float64
	// lastUp is the device's clock at the latest sample of the present series, 0
	// for none.
	lastUp    time.Duration
	lastBytes int64

	// torn: lines are missing before the next sample. unsure: one that told how the
	// process is read may be among those that were missing.
	torn, unsure bool

	// firstSuspicious and firstLeaking are kept here, and not taken from the
	// detector, whose clock is the device's and begins anew with a reboot.
	firstSuspicious, firstLeaking *float64

	// room judges how near it is to its limits, limits are the warnings, roomReasons say
	// what could not be read.
	room        limit.Watch
	limits      []record.LimitWarning
	limitsCut   int // how many more there were
	roomReasons []string
	// javaLimit is that of its Java heap in bytes, 0 where it is not known, and javaGarbage
	// the most of the heap that a collection could free.
	javaLimit, javaGarbage int64

	// diagnosed is the device's clock when the latest diagnosis of a leak ended, 0 for
	// none since the device started; paused the time in seconds in which heap dumps kept
	// it from being sampled.
	diagnosed time.Duration
	diagnoses []record.Diagnosis
	paused    float64

	transitions []record.Transition
	dropped     int
	// jumps has, for each of the latest jumps, the device's clock at t_s 0 as it was
	// then: a reboot changes it.
	jumps    []time.Duration
	warnings []string
}

const (
	maxWarnings = 50
	// maxTransitions bounds what run.json holds of one process: the latest ones.
	// samples.ndjson has them all.
	maxTransitions = 1000
	// maxJumps is how many jumps a verdict has at most.
	maxJumps = 16
)

// hear takes one sample.
func (a *account) hear(s record.Sample, up time.Duration) []detector.Transition {
	steps := a.mend(s, up)
	if s.Breakdown == nil {
		bytes, ok := bytesOf(s)
		if !ok {
			return steps
		}
		return append(steps, a.judge(up, bytes)...)
	}
	for _, text := range s.Warnings {
		a.warn(text)
	}
	a.details++
	b := breakdownOf(*s.Breakdown, up)
	steps = append(steps, a.detector.AddBreakdown(b)...)
	if mapped := b.Mapped(); a.source == capture.Dumpsys && mapped.Known {
		steps = append(steps, a.judge(up, mapped.Bytes)...)
	}
	return steps
}

func (a *account) judge(up time.Duration, bytes int64) []detector.Transition {
	a.samples++
	a.lastUp, a.lastBytes = up, bytes
	return a.detector.AddSample(detector.Sample{At: up, Bytes: bytes})
}

// told takes one event about the process. seconds is the time axis of the run.
func (a *account) told(e record.Event, up time.Duration, seconds func(time.Duration) float64) []detector.Transition {
	switch e.Event {
	case "found":
		a.readBy(e)
	case "level":
		// Another level may be another quantity: no trend crosses the change.
		a.bridge(up)
		a.readBy(e)
		return a.detector.Change(up)
	case "restart":
		a.torn = false
		a.PID, a.Start = e.PID, e.Start
		a.restarts++
		a.lastUp = 0
		a.readBy(e)
		a.room.Restart(up)
		return a.detector.Restart(up)
	case "gap":
		if a.torn {
			return nil // it is part of a longer one
		}
		a.gaps++
		a.absent += e.Lasted
		return a.detector.Gap(up)
	case "missed":
		if a.torn {
			return nil
		}
		a.missing++
		a.absent += e.Lasted
	case "unseen":
		// The series has ended before the run: what it showed stands.
		a.gaps++
		a.absent += e.Lasted
		a.warn(e.Text)
	case "error", "unresponsive":
		a.warn(e.Text)
	case "pause":
		a.paused += e.Lasted
	case "headroom":
		if e.Headroom != nil {
			a.roomHeard(*e.Headroom, up, seconds)
		}
	case "diagnose", "diagnosed":
		return a.examined(e, up)
	}
	return nil
}

// maxDiagnoses bounds what run.json holds of one process: dumps at the marks of a night.
const maxDiagnoses = 500

// examined takes a diagnosis: what was collected, and later what it says.
func (a *account) examined(e record.Event, up time.Duration) []detector.Transition {
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
		a.warn(fmt.Sprintf("more than %d diagnoses; the others are in the folder artifacts alone", maxDiagnoses))
	}
	if e.Event != "diagnose" || d.Trigger != response.TriggerLeak || e.Again {
		return nil
	}
	a.diagnosed = up
	return a.detector.DiagnosisDone(up)
}

func (a *account) readBy(e record.Event) {
	a.PID, a.Start = e.PID, e.Start
	a.source, a.reasons, a.unsure = capture.Source(e.Source), e.Reasons, false
}

func (a *account) warn(text string) {
	for _, have := range a.warnings {
		if have == text {
			return
		}
	}
	if len(a.warnings) < maxWarnings {
		a.warnings = append(a.warnings, text)
	}
}

func (a *account) keep(t record.Transition) {
	switch {
	case t.To == detector.Suspicious.String() && a.firstSuspicious == nil:
		a.firstSuspicious = new(t.T)
	case t.To == detector.Leaking.String() && a.firstLeaking == nil:
		a.firstLeaking = new(t.T)
	}
	if len(a.transitions) == maxTransitions {
		a.transitions = append(a.transitions[:0], a.transitions[1:]...)
		a.dropped++
	}
	a.transitions = append(a.transitions, t)
}

func (a *account) jumped(begun time.Duration) {
	if len(a.jumps) == maxJumps {
		a.jumps = append(a.jumps[:0], a.jumps[1:]...)
	}
	a.jumps = append(a.jumps, begun)
}

// bytesOf is the value of the judged series in a line of the fast channel: Pss +
// SwapPss, or RssAnon + VmSwap where the kernel shows no more. A kernel without
// swap accounting gives no SwapPss, which then counts as none.
func bytesOf(s record.Sample) (int64, bool) {
	value, swap := s.PSS, s.SwapPSS
	switch capture.Source(s.Source) {
	case capture.Dumpsys:
		return 0, false
	case capture.Status:
		value, swap = s.RSSAnon, s.Swap
	}
	if value == nil {
		return 0, false
	}
	sum := *value
	if swap != nil {
		sum += *swap
	}
	return sum << 10, true
}

// record is the account as run.json of a run with so many processes has it.
func (a *account) record(of *ledger, processes int) record.Process {
	a.detector.Among(processes)
	v := a.detector.Verdict()
	watched := of.last
	p := record.Process{
		Device: of.device.Device, User: a.User, Process: a.Name, PID: a.PID,
		Source: string(a.source), Reasons: present(a.reasons),
		Restarts: a.restarts, Samples: a.samples, Details: a.details,
		Missed: a.missing, Gaps: a.gaps, Absent: round(a.absent, 3), Paused: round(a.paused, 3),
		Duration: round(v.Duration.Seconds(), 3),
		State:    v.State.String(), Worst: v.Worst.String(), Gate: string(v.Gate), Kind: v.Kind.String(),
		FirstSuspicious: a.firstSuspicious, FirstLeaking: a.firstLeaking,
		Growth: round(mb(v.Growth), 2), Shares: shares(v.Shares), Jumps: a.jumpsAsTold(v.Jumps, of.begun), Because: v.Because,
		Headroom: a.standings(), HeadroomReasons: present(a.roomReasons), Limits: present(a.limits),
		Transitions: present(a.transitions), Warnings: append([]string{}, a.warnings...), Evidence: []record.Evidence{},
	}
	if p.Gate == string(detector.Pass) && a.absent > watched/2 {
		p.Gate = string(detector.Inconclusive)
		p.Because = fmt.Sprintf("no samples for %s of %s: %s", text.Span(a.absent), text.Span(watched), p.Because)
	}
	if a.samples > 0 {
		p.LastMB = new(round(mb(a.lastBytes), 2))
	}
	if v.RateKnown {
		p.Rate = new(perHour(v.Rate))
		p.RateInterval = []float64{perHour(v.RateLow), perHour(v.RateHigh)}
	}
	if v.MinDetectable > 0 {
		p.MinDetectable = new(perHour(v.MinDetectable))
	}
	for _, e := range v.Evidence {
		if !math.IsNaN(e.Value) && !math.IsInf(e.Value, 0) {
			p.Evidence = append(p.Evidence, record.Evidence{Name: e.Name, Value: e.Value, Unit: e.Unit})
		}
	}
	for _, w := range v.Warnings {
		p.Warnings = append(p.Warnings, w.Error())
	}
	if a.limitsCut > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%d more early warnings of limits are left out", a.limitsCut))
	}
	if a.dropped > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%d earlier steps are left out here; samples.ndjson has them", a.dropped))
	}
	for _, u := range of.usage.Apps {
		if u.Process == a.Name && u.User == a.User {
			p.CPU, p.CostCPU = u.CPU, u.Cost
		}
	}
	return p
}

// jumpsAsTold are the jumps of a verdict on the time axis of the run. The latest of
// them are those that were told; begun is for one that was not.
func (a *account) jumpsAsTold(jumps []detector.Jump, begun time.Duration) []record.Jump {
	out := make([]record.Jump, len(jumps))
	for i, j := range jumps {
		zero := begun
		if told := len(a.jumps) - len(jumps) + i; told >= 0 {
			zero = a.jumps[told]
		}
		out[i] = record.Jump{T: round((j.At - zero).Seconds(), 3), MB: round(mb(j.Bytes), 2), Stayed: j.Stayed}
	}
	return out
}

func shares(of []detector.Share) []record.Share {
	out := make([]record.Share, len(of))
	for i, s := range of {
		out[i] = record.Share{
			Dimension: s.Dimension.String(), Growth: round(mb(s.Growth), 2), Share: round(s.Share, 4), Rate: perHour(s.Rate),
		}
	}
	return out
}

// present makes an empty list of none: in JSON a list is a list.
func present[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func mb(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// perHour makes MB/h of bytes per hour, to a tenth of a kB.
func perHour(bytes float64) float64 { return round(bytes/(1<<20), 4) }

func round(x float64, digits int) float64 {
	p := math.Pow(10, float64(digits))
	return math.Round(x*p) / p
}
