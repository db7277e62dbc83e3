package ledger

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// Ledger holds the data of one run: what its header requested, what its lines
// report about each device, and how it ended.
type Ledger struct {
	// If Opened is not nil, it is called with each new account before the first
	// line of that account.
	Opened func(*Account)
	// If OpenedApp is not nil, it is called with each app whose processes are
	// added up, before the first sum of that app.
	OpenedApp func(*AppSum)
	// Table reports whether the devices represent the processes of one table,
	// with a common clock. The rows of a table may be in any order, and a table
	// does not record when processes end. Table must be set before the first
	// device is added.
	Table bool
	// Limit is the maximum number of accounts; 0 means no limit. Lines about
	// further processes are skipped.
	Limit int

	header   record.Header
	policy   detector.Policy
	parts    []*Part
	byDevice map[string]*Part
	// stopped is the last line of the run; a run without that line counts as
	// killed.
	stopped record.Event
	damage  damage
	// apps holds the apps of a table.
	apps *apps
	// lines is the number of used lines; skipped is the number of lines beyond
	// Limit.
	lines, skipped int
}

// New returns a ledger for the run with this header. The run is judged by
// policy.
func New(h record.Header, policy detector.Policy) (*Ledger, error) {
	l := &Ledger{header: h, policy: policy, byDevice: map[string]*Part{}}
	for _, d := range h.Devices {
		if _, err := l.AddDevice(d); err != nil {
			return nil, err
		}
	}
	l.stopped = record.Event{Text: record.StoppedKilled}
	if h.Plan != nil && h.Plan.Workload != nil {
		w := h.Plan.Workload
		l.stopped.Workload = &record.Workload{Kind: w.Kind, Seed: w.Seed, Events: w.Events, Digest: w.Digest}
	}
	return l, nil
}

// maxMustSee is the highest leak rate, in MB/h, that a header may require a
// pass to rule out.
const maxMustSee = 1 << 20

// mustSee returns the rate, in bytes per hour, of the slowest leak that a pass
// must rule out; 0 if none is required.
func (l *Ledger) mustSee() float64 {
	if l.header.Plan == nil || !(l.header.Plan.MustSee > 0 && l.header.Plan.MustSee <= maxMustSee) {
		return 0
	}
	return l.header.Plan.MustSee * detector.MB
}

// AddDevice adds a device to those of the header and returns the device's Part.
func (l *Ledger) AddDevice(d record.HeaderDevice) (*Part, error) {
	if l.byDevice[d.Device] != nil {
		return nil, fmt.Errorf("device %q is in the header twice", d.Device)
	}
	if err := plausible(d.StartedUp); err != nil {
		return nil, err
	}
	p := newPart(l, d)
	l.byDevice[d.Device] = p
	l.parts = append(l.parts, p)
	return p, nil
}

// Part returns the part of a device in the header; nil for any other device.
// Each part may be used by a goroutine of its own.
func (l *Ledger) Part(device string) *Part { return l.byDevice[device] }

// AddSample adds a sample. It returns an error for a sample that is impossible
// in a run, and ignores the sample.
func (l *Ledger) AddSample(s record.Sample) error {
	p, err := l.partOf(s.Device, s.Process)
	if err != nil {
		return err
	}
	if err := plausible(s.T, s.Up); err != nil {
		return err
	}
	if err := p.bounds.check(s); err != nil {
		return err
	}
	l.lines++
	if !l.full(p, capture.Key{User: s.User, Name: s.Process}) {
		p.AddSample(s)
	}
	return nil
}

// AddEvent adds an event. It returns an error for an event that is impossible
// in a run, and ignores the event.
func (l *Ledger) AddEvent(e record.Event) error {
	if e.Event == "stopped" {
		l.lines++
		l.stopped = e
		return nil
	}
	p, err := l.partOf(e.Device, e.Process)
	if err != nil {
		return err
	}
	if err := plausible(e.T, e.Up, e.Duration); err != nil {
		return err
	}
	l.lines++
	if e.Event != "found" || !l.full(p, processOf(e).Key()) {
		p.AddEvent(e)
	}
	return nil
}

// full counts a line of a process beyond the limit, and reports whether the
// line is to be skipped.
func (l *Ledger) full(p *Part, k capture.Key) bool {
	if l.Limit == 0 || p.byKey[k] != nil {
		return false
	}
	accounts := 0
	for _, other := range l.parts {
		accounts += len(other.accounts)
	}
	if accounts < l.Limit {
		return false
	}
	l.skipped++
	return true
}

// partOf returns the part to which a line about a process belongs. It returns
// an error if no run can contain the line.
func (l *Ledger) partOf(device, process string) (*Part, error) {
	p := l.byDevice[device]
	switch {
	case p == nil:
		return nil, fmt.Errorf("device %q is not in the header", device)
	case len(process) > MaxName:
		return nil, fmt.Errorf("the name of the process has %d bytes, want at most %d", len(process), MaxName)
	}
	return p, nil
}

const (
	// MaxProcesses is the maximum number of processes in recordings that are
	// read together; each process uses memory until all recordings have been
	// read.
	MaxProcesses = 10_000
	// MaxName is the maximum length of a process name in bytes; Android allows
	// at most 255 characters.
	MaxName = 1024
	// MaxSeconds is the maximum time in a line; it corresponds to the seconds
	// from 1970 to the end of this century.
	MaxSeconds = 4.2e9
)

// plausible returns an error for a time beyond MaxSeconds: it cannot occur in
// any run, and the type of the clock or JSON may be unable to represent it.
func plausible(seconds ...float64) error {
	for _, s := range seconds {
		if math.Abs(s) > MaxSeconds {
			return fmt.Errorf("invalid time %g s", s)
		}
	}
	return nil
}

// AddDamage records an unusable line with its number and the reason. The line
// may have concerned any process of any device, so all trends restart after it.
func (l *Ledger) AddDamage(line int, why error) {
	l.damage.add(line, why)
	for _, p := range l.parts {
		p.markMissing()
	}
}

// Accounts returns all accounts, ordered by device and then by first line.
func (l *Ledger) Accounts() []*Account {
	var out []*Account
	for _, p := range l.parts {
		out = append(out, p.accounts...)
	}
	return out
}

// newApps returns the apps of a device; all parts of a table share the same
// apps.
func (l *Ledger) newApps() *apps {
	if !l.Table {
		return newApps(false)
	}
	if l.apps == nil {
		l.apps = newApps(true)
	}
	return l.apps
}

// allApps returns the apps of all devices.
func (l *Ledger) allApps() []*apps {
	if l.Table {
		return []*apps{l.newApps()}
	}
	var out []*apps
	for _, p := range l.parts {
		out = append(out, p.apps)
	}
	return out
}

// Apps returns the apps that have had two processes at the same time.
func (l *Ledger) Apps() []*AppSum {
	var out []*AppSum
	for _, s := range l.allApps() {
		out = append(out, s.opened...)
	}
	return out
}

// AppWarnings returns warnings about apps that are not judged.
func (l *Ledger) AppWarnings() []string {
	var out []string
	for _, s := range l.allApps() {
		out = append(out, s.warnings()...)
	}
	return out
}

func pointers[T any](list []T) []*T {
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

// Run returns the record of the run, judged by all lines so far. A killed run
// is considered to have ended with its last line.
func (l *Ledger) Run() record.Run {
	plan := record.Plan{Assert: record.AssertEnd}
	if l.header.Plan != nil {
		plan = *l.header.Plan
	}
	r := record.Run{
		Schema: record.RunSchema, Tool: plan.Tool, Started: l.header.Started, Ended: l.ended(),
		Policy: plan.Policy, Patterns: append([]string{}, plan.Processes...), Stopped: l.stopped.Text,
		StopReason: l.stopped.Reason, Workload: l.workload(), Build: plan.Build, Overhead: l.stopped.Overhead,
		Devices: []record.Device{}, Processes: []record.Process{}, Apps: []record.AppVerdict{},
		Windows: []record.JudgedWindow{}, Checks: []record.Check{}, Diagnoses: []record.Diagnosis{},
		MissingEvidence: []record.MissingEvidence{}, Warnings: []string{},
	}
	for _, p := range l.parts {
		if r.Overhead == nil {
			r.Overhead = p.own
		}
		if p.extended != nil && p.last-*p.extended >= r.Extended {
			r.Extended, r.ExtendedReason = record.Round(p.last-*p.extended, 3), p.extendedBecause
		}
		r.Devices = append(r.Devices, p.device())
		r.Diagnoses = append(r.Diagnoses, p.diagnoses()...)
		r.Windows = append(r.Windows, p.recordedWindows()...)
		r.Checks = append(r.Checks, p.checks...)
		r.Warnings = append(append(r.Warnings, p.windowWarnings()...), p.checkWarnings()...)
		r.Warnings = append(append(r.Warnings, p.skipWarnings()...), p.unwatched.warnings(p)...)
		r.MissingEvidence = append(r.MissingEvidence, p.missingEvidence()...)
	}
	accounts, apps := l.Accounts(), l.Apps()
	together := len(accounts) + CountJudged(apps)
	for _, a := range accounts {
		r.Processes = append(r.Processes, a.Record(together))
	}
	for _, x := range apps {
		r.Apps = append(r.Apps, x.Record(together))
	}
	RelateApps(pointers(r.Apps), pointers(r.Processes))
	r.Warnings = append(append(r.Warnings, l.AppWarnings()...), idleWarnings(r.Processes)...)
	for _, p := range l.parts {
		r.Warnings = append(r.Warnings, p.graphicsWarnings(r.Processes)...)
	}
	r.Unjudged = unjudged(r)
	var cut int
	if r.Diagnoses, cut = shorten(r.Diagnoses); cut > 0 {
		r.Warnings = append(r.Warnings,
			fmt.Sprintf("%d diagnoses, or their findings, are omitted here: see their folders", cut))
	}
	r.Interrupted = r.Stopped == record.StoppedInterrupted || r.Stopped == record.StoppedKilled
	r.Warnings = append(append(r.Warnings, l.headerWarnings()...), l.unseen(plan.Processes)...)
	if text := l.damage.summary(); text != "" {
		r.Warnings = append(r.Warnings, text)
	}
	r.ExitCode = ExitCode(r, plan)
	return r
}

// headerWarnings returns warnings about invalid entries of the header.
func (l *Ledger) headerWarnings() []string {
	var out []string
	for _, text := range l.header.Warnings {
		out = append(out, fmt.Sprintf("line 1 of %s: %s", record.SamplesName, text))
	}
	return out
}

func (l *Ledger) ended() time.Time {
	if l.stopped.Ended != nil {
		return *l.stopped.Ended
	}
	longest := 0.0
	for _, p := range l.parts {
		longest = max(longest, p.last/p.header.TimeScale)
	}
	return l.header.Started.Add(time.Duration(longest * float64(time.Second))).Round(time.Millisecond)
}

// workload returns how the workload ended, and at which points it was
// interrupted.
func (l *Ledger) workload() *record.Workload {
	if l.stopped.Workload == nil {
		return nil
	}
	w := *l.stopped.Workload
	w.Interrupted = nil
	for _, p := range l.parts {
		if p.dropped != nil {
			w.Interrupted = append(w.Interrupted, record.Interruption{Device: p.header.Device, T: *p.dropped})
		}
	}
	return &w
}

// unseen returns a warning for each configured process that was never seen. A
// pattern with a star may match nothing, as long as any process was seen.
func (l *Ledger) unseen(patterns []string) []string {
	accounts := l.Accounts()
	var out, similar []string
	for _, p := range l.parts {
		similar = append(similar, p.similar...)
	}
	hint := ""
	if slices.Sort(similar); len(accounts) == 0 && len(similar) > 0 {
		hint = "; running processes with similar names: " + strings.Join(slices.Compact(similar), ", ")
	}
	for _, text := range patterns {
		p := capture.Pattern(text)
		seen := slices.ContainsFunc(accounts, func(a *Account) bool { return p.Match(a.Name) })
		if !seen && !(len(accounts) > 0 && strings.HasSuffix(text, "*")) {
			out = append(out, fmt.Sprintf("no process %s was seen%s", p, hint))
			hint = "" // once is enough
		}
	}
	return out
}
