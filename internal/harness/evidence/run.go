package evidence

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/harness/gate"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// These limits apply when a run directory is read.
const (
	maxSummary  = 64 << 20
	maxAnalysis = 256 << 20
	maxDumps    = 500
)

// FromRun reads the run directory dir. It does not need the heap dumps.
func FromRun(ctx context.Context, dir string) (*Evidence, error) {
	run, err := record.ReadRun(dir)
	if err != nil {
		return nil, err
	}
	return FromRecord(ctx, dir, run)
}

// FromRecord is like FromRun but uses the given record; the run need not have
// ended.
func FromRecord(ctx context.Context, dir string, run record.Run) (*Evidence, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open run: %w", err)
	}
	defer root.Close()
	r := &runReader{
		ctx: ctx, root: root, run: &run,
		out: &Evidence{Traces: map[gate.TraceKey]gate.Trace{}, RunExit: run.ExitCode, Head: headOf(dir, &run)},
	}
	if w := run.Workload; w != nil && (w.Error != "" || len(w.Interrupted) > 0) {
		r.out.WorkloadFailed = true
		r.out.Warnings = append(r.out.Warnings,
			"the workload failed: "+name(cmp.Or(w.Error, "the connection to the device was lost")))
	}
	if run.Stopped == record.StoppedFinished && strings.HasPrefix(run.StopReason, "gate: ") {
		r.out.Warnings = append(r.out.Warnings, "the run ended early because a rule was violated")
	}
	r.readTrip()
	for i := range run.Devices {
		if err := r.device(&run.Devices[i]); err != nil {
			return nil, err
		}
	}
	for _, m := range run.MissingEvidence {
		r.out.Missing = append(r.out.Missing, strings.TrimPrefix(name(m.Process)+": "+name(m.Text), ": "))
	}
	for _, u := range run.Unjudged {
		if u.Process == "" {
			r.out.Unjudged = append(r.out.Unjudged, fmt.Sprintf("device %s: %s", name(u.Device), name(u.Text)))
		}
	}
	return r.out, nil
}

// headOf returns the description of a run that a comparison shows.
func headOf(dir string, run *record.Run) comparison.Head {
	h := comparison.Head{Started: run.Started, App: appOf(run), Devices: []comparison.DeviceRow{}}
	if abs, err := filepath.Abs(dir); err == nil {
		h.Run = filepath.Base(abs)
	}
	if b := run.Build; b != nil {
		h.Variant, h.Commit, h.Branch, h.PullRequest = name(b.Variant), name(b.Commit), name(b.Branch),
			max(b.PullRequest, 0)
	}
	if run.Workload != nil {
		h.Workload = name(run.Workload.Kind)
	}
	for _, d := range run.Devices {
		h.Devices = append(h.Devices,
			comparison.DeviceRow{
				Device: name(d.Device), Model: name(d.Model), API: d.API, ABI: name(d.ABI), Emulator: d.Emulator,
			})
		h.Duration = max(h.Duration, d.Duration)
		for _, b := range d.Builds {
			h.Version = cmp.Or(h.Version, name(b.VersionName))
		}
	}
	return h
}

// appOf returns the package under test: the first pattern without a process
// name.
func appOf(run *record.Run) string {
	if len(run.Patterns) == 0 {
		return ""
	}
	app, _, _ := strings.Cut(run.Patterns[0], ":")
	return name(strings.TrimSuffix(app, "*"))
}

type runReader struct {
	ctx  context.Context
	root *os.Root
	run  *record.Run
	// trip holds the measurements of a trip, or nil if the run is not a trip.
	trip *record.Trip
	out  *Evidence
}

// device adds the observation of one device.
func (r *runReader) device(d *record.Device) error {
	run := r.run
	o := gate.Observation{
		Device: name(d.Device), Started: run.Started, Tool: name(run.Tool), Unit: gate.UnitLoop,
		Processes: []gate.Observed{},
		Commit:    r.out.Head.Commit, Branch: r.out.Head.Branch, PullRequest: r.out.Head.PullRequest,
		Subject: gate.Testbed{
			App: r.out.Head.App, Variant: r.out.Head.Variant, Marks: name(d.MarksDigest), Model: name(d.Model),
			API: d.API, ABI: name(d.ABI), Workload: "none",
		},
	}
	if r.trip != nil {
		o.Subject.Workload = "trip " + name(r.trip.Digest)
	}
	events := 0.0 // one second
	if w := run.Workload; w != nil {
		o.Subject.Workload = name(cmp.Or(w.Digest, w.Kind))
		if w.Kind == "monkey" && w.Events > 0 && d.Duration > 0 {
			// The marks of a Monkey run do not delimit loops, so the exposure
			// is the number of events.
			o.Unit, events, o.Subject.Marks = gate.UnitEvent, float64(w.Events)/cmp.Or(w.Pass, d.Duration), ""
		}
	}
	for i := range r.out.Observations {
		if r.out.Observations[i].Subject == o.Subject {
			o.Twin++
		}
	}
	for i := range run.Processes {
		p := &run.Processes[i]
		if p.Device != d.Device {
			continue
		}
		observed, err := r.process(&o, p, events)
		if err != nil {
			return err
		}
		o.Processes = append(o.Processes, *observed)
	}
	r.together(&o, d)
	slices.SortFunc(o.Processes, func(a, b gate.Observed) int { return strings.Compare(a.Process, b.Process) })
	r.out.Observations = append(r.out.Observations, o)
	return nil
}

// process reads one process; events is the number of events that monkey sends
// per second, or 0 if the workload is not monkey.
func (r *runReader) process(o *gate.Observation, p *record.Process, events float64) (*gate.Observed, error) {
	out := &gate.Observed{
		Process: name(p.Process), Places: []gate.Place{}, Gate: string(p.Gate), Reason: name(verdictText(p)),
		Trend: trendOf(p), Deaths: map[string]int{},
	}
	if p.User != 0 {
		out.Process += fmt.Sprintf(" (user %d)", p.User)
	}
	if n := survivedANRs(*p); n > 0 {
		out.Deaths[gate.SurvivedANR] = n
	}
	for _, u := range r.run.Unjudged {
		if u.Device == p.Device && u.User == p.User && u.Process == p.Process {
			out.Unjudged = name(u.Text)
		}
	}
	for reason, n := range p.DeathsByReason {
		out.Deaths[name(reason)] += max(n, 0)
	}
	dumps, lives := r.dumpsOf(p)
	if r.tripped(p) {
		dumps, lives = nil, false // the trip has compared its dumps itself
	}
	moments := make([]moment, 0, len(dumps))
	for i, d := range dumps {
		m, err := r.moment(d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text.Printable(p.Process), err)
		}
		m.at = exposureOf(d, i, lives, events)
		if n := len(moments); n > 0 && m.at <= moments[n-1].at {
			m.at = moments[n-1].at + 1
		}
		moments = append(moments, m)
	}
	series(out, moments, lives)
	if n := len(dumps); n > 0 {
		r.traces(o.Device, out.Process, dumps[n-1])
	}
	r.checks(out, p)
	r.out.name(o.Device, out)
	r.snapshots(out, p)
	r.measures(out, p)
	return out, nil
}

// together adds one entry for each app that has a verdict on the total memory
// of its processes.
func (r *runReader) together(o *gate.Observation, d *record.Device) {
	for i := range r.run.Apps {
		a := &r.run.Apps[i]
		if a.Device != d.Device || a.Gate == "inconclusive" || len(o.Processes) >= gate.MaxProcesses {
			continue
		}
		p := a.Verdict()
		who := name(a.App)
		if a.User != 0 {
			who += fmt.Sprintf(" (user %d)", a.User)
		}
		o.Processes = append(o.Processes, gate.Observed{
			Process: who + " (all processes)", Places: []gate.Place{}, Gate: string(a.Gate), Reason: name(a.Reason),
			Trend:    trendOf(&p),
			WholeApp: true, Explained: len(a.Leaking) > 0,
		})
	}
}

// exposureOf returns how many loops or events of a workload preceded a heap
// dump.
func exposureOf(d *record.Diagnosis, i int, lives bool, events float64) float64 {
	switch {
	case lives:
		return float64(i + 1)
	case events > 0:
		return events * max(d.T, 0)
	case d.Marks > 0:
		return float64(d.Marks)
	}
	return float64(i + 1)
}

// trendText returns the part of a reason that concerns the trend. It omits the
// part about heap dumps at marks, which are compared separately (ledger,
// judgeAtMarks).
func trendText(because string) string {
	for _, words := range []string{"memory trend: ", "memory trend not judged: "} {
		if _, trend, ok := strings.Cut(because, words); ok {
			because = trend
		}
	}
	parts := strings.Split(because, "; ")
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool {
		return strings.Contains(part, "at marks") || strings.Contains(part, "at a mark")
	}), "; ")
}

// leftBehind returns the counts at marks that prove a leak; nil if there are
// none.
func leftBehind(p *record.Process) *record.CountsAtMarks {
	for i := range p.CountsAtMarks {
		if p.CountsAtMarks[i].Gate == "leak" {
			return &p.CountsAtMarks[i]
		}
	}
	return nil
}

// verdictText returns the parts of a verdict's reason that concern the trend
// and the counts at marks.
func verdictText(p *record.Process) string {
	trend := trendText(p.Reason)
	if left := leftBehind(p); left != nil {
		return strings.TrimSuffix(left.Reason+"; "+strings.TrimPrefix(trend, left.Reason+"; "), "; ")
	}
	return trend
}

// trendOf returns the verdict on the trend. It also returns a leak if counts at
// marks prove one, because the counted objects are not in a heap dump that
// could be compared.
func trendOf(p *record.Process) *gate.TrendVerdict {
	t := &gate.TrendVerdict{Gate: string(cmp.Or(p.TrendGate, p.Gate)), Rate: p.Rate}
	if t.Gate == "leak" {
		t.Kind = p.Kind.String()
	} else if left := leftBehind(p); left != nil {
		t.Gate, t.Kind = "leak", left.Kind.String()
	}
	if len(p.RateInterval) == 2 {
		t.Lower, t.Upper = new(p.RateInterval[0]), new(p.RateInterval[1])
	}
	return t
}

// dumpsOf selects the heap dumps of a process that are compared. These are the
// dumps at marks, from the life with the most dumps. If each life has only one
// (for example, because each instrumented test runs in its own process), they
// are the first dumps of all lives. If no dump was taken at a mark, it is the
// last dump of the run.
func (r *runReader) dumpsOf(p *record.Process) (dumps []*record.Diagnosis, lives bool) {
	var all [][]*record.Diagnosis // dumps of each life
	latest := map[int]int{}       // index of the last life with this PID
	var last *record.Diagnosis
	for i := range r.run.Diagnoses {
		d := &r.run.Diagnoses[i]
		if d.Device != p.Device || d.User != p.User || d.Process != p.Process || d.Leaks == nil {
			continue
		}
		if d.Trigger != record.TriggerMark {
			last = d
			continue
		}
		at, ok := latest[d.PID]
		if !ok || anotherLife(all[at][0], d) {
			at = len(all)
			latest[d.PID], all = at, append(all, nil)
		}
		if len(all[at]) < maxDumps {
			all[at] = append(all[at], d)
		}
	}
	var longest []*record.Diagnosis
	for _, list := range all {
		if len(list) >= len(longest) {
			longest = list
		}
	}
	switch {
	case len(longest) == 1 && len(all) > 1:
		for _, list := range all[:min(len(all), maxDumps)] {
			dumps = append(dumps, list[0])
		}
		return dumps, true
	case len(longest) > 0:
		return longest, false
	case last != nil:
		return []*record.Diagnosis{last}, false
	}
	return nil, false
}

// anotherLife reports whether d and before belong to different lives. A PID may
// be reused, in particular after a reboot of the device.
func anotherLife(before, d *record.Diagnosis) bool {
	const slack = 1 // one second, for rounding
	return before.PID != d.PID || d.Age != nil && d.T-*d.Age > before.T+slack
}

// moment reads one heap dump from its summary or, without a summary, from the
// data in the record.
func (r *runReader) moment(d *record.Diagnosis) (moment, error) {
	m := moment{settled: d.Settled, undecided: name(d.Undecided)}
	if d.Heap != nil {
		m.reachable, m.names = max(d.Heap.ReachableBytes+d.Heap.ReachableNative, 0), d.Heap.Names
	}
	if d.Heap != nil && d.Heap.Summary != "" {
		s, err := r.summary(d)
		if err == nil {
			m.leaks, m.loaded = s.Leaks(), s.Loaded()
			return m, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return m, err
		}
	}
	for _, l := range d.Leaks {
		found := analysis.SummaryLeak{
			Key: name(l.Key), Library: l.Library, Instances: max(l.Count, 0), RetainedBytes: max(l.Bytes, 0),
			Classes: map[string]int64{},
		}
		for _, c := range l.Classes {
			found.Class = cmp.Or(found.Class, c.Class)
			found.Classes[c.Class] += max(c.Count, 0)
		}
		m.leaks = append(m.leaks, found)
	}
	if d.LeaksOmitted > 0 {
		m.undecided = cmp.Or(m.undecided, fmt.Sprintf("%d leaks are not in the record of the run", d.LeaksOmitted))
	}
	return m, nil
}

// open opens a file of an artifact, which must be a regular file inside the run
// directory.
func (r *runReader) open(folder, file string) (*os.File, error) {
	path := filepath.Join(filepath.FromSlash(folder), file)
	if !filepath.IsLocal(path) || !strings.HasPrefix(folder, "artifacts/") {
		return nil, fmt.Errorf("open %s: it is not an artifact of the run", text.Quote(folder+"/"+file, 200))
	}
	info, err := r.root.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("open artifact: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open %s: it is not a regular file", text.Quote(path, 200))
	}
	f, err := r.root.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open artifact: %w", err)
	}
	return f, nil
}

func (r *runReader) summary(d *record.Diagnosis) (*analysis.Summary, error) {
	f, err := r.open(d.Folder, d.Heap.Summary)
	if err != nil {
		return nil, err
	}
	unpacked, err := spool.OpenFile(r.ctx, d.Heap.Summary, f, spool.Options{Cap: maxSummary + 1})
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", text.Printable(d.Folder), err)
	}
	defer unpacked.Close()
	if err := errors.Join(unpacked.Truncated, unpacked.Damage); err != nil {
		return nil, fmt.Errorf("unpack %s: %w", text.Printable(d.Folder), err)
	}
	s, err := analysis.ReadSummary(io.NewSectionReader(unpacked, 0, unpacked.Size()))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text.Printable(d.Folder), err)
	}
	return s, nil
}

// traces reads the traces of the leaks in a dump. Without analysis.json, the
// run is still compared.
func (r *runReader) traces(device, process string, d *record.Diagnosis) {
	f, err := r.open(d.Folder, "analysis.json")
	if err != nil {
		r.out.Warnings = append(r.out.Warnings, fmt.Sprintf("%s: no leak traces: %v", process, err))
		return
	}
	defer f.Close()
	var report struct {
		Leaks []analysis.Leak `json:"leaks"`
	}
	if err := json.NewDecoder(io.LimitReader(f, maxAnalysis)).Decode(&report); err != nil {
		r.out.Warnings = append(r.out.Warnings,
			fmt.Sprintf("%s: no leak traces: decode analysis.json: %v", process, err))
		return
	}
	addTraces(r.out.Traces, device, process, report.Leaks)
}

func addTraces(to map[gate.TraceKey]gate.Trace, device, process string, leaks []analysis.Leak) {
	for i := range leaks {
		key := gate.TraceKey{
			Device: device, Process: process, Key: cmp.Or(leaks[i].Key, leaks[i].Fingerprint, leaks[i].Class),
		}
		if _, ok := to[key]; !ok {
			to[key] = traceOf(&leaks[i])
		}
	}
}

// checks adds the leaks that the checks of specs found, unless several heap
// dumps can be compared. A single check is enough to prove a leak, because it
// counts only the leaks of its own spec.
func (r *runReader) checks(out *gate.Observed, p *record.Process) {
	if len(out.Heap.Exposure) > 1 {
		return
	}
	places := map[string]*gate.Place{}
	var keys []string
	for i := range r.run.Checks {
		c := &r.run.Checks[i]
		if c.Device != p.Device {
			continue
		}
		for k := range c.Processes {
			cp := &c.Processes[k]
			if cp.Process != p.Process || cp.User != p.User {
				continue
			}
			out.Checked = out.Checked ||
				slices.Contains([]record.CheckVerdict{record.VerdictPass, record.VerdictLeak, record.VerdictKnown},
					cp.Verdict)
			for n := range cp.Leaks {
				l := &cp.Leaks[n]
				place := places[l.Key]
				if place == nil {
					place = &gate.Place{
						Type: gate.TypeLeak, Key: name(l.Key), Counts: []int64{0}, Bytes: []int64{0},
						Classes: map[string][]int64{},
					}
					places[l.Key], keys = place, append(keys, l.Key)
				}
				r.addChecked(place, c, l, out, p.Device)
			}
		}
	}
	if len(keys) == 0 {
		return
	}
	// The dump of the last check also contains the leaks of earlier checks, so
	// the checks are counted instead.
	out.Heap, out.Reachable, out.Places = gate.Timeline{Exposure: []float64{1}, Settled: true}, nil, []gate.Place{}
	for _, key := range keys {
		out.Places = append(out.Places, *places[key])
	}
}

// mostChecks is the maximum number of checks that are named for one leak.
const mostChecks = 20

func (r *runReader) addChecked(place *gate.Place, c *record.Check, l *record.CheckedLeak, out *gate.Observed,
	device string) {
	// Count and Bytes describe the whole heap, which may also contain objects
	// of earlier checks.
	place.Counts[0] += max(l.New, 0)
	place.Bytes[0] += max(l.Bytes, 0) / max(l.Count, 1) * min(max(l.New, 0), max(l.Count, 1))
	place.Library = l.Library
	if _, held, ok := strings.Cut(l.Name, "held by "); ok {
		place.HeldBy = name(held)
	}
	if check := name(c.Name); len(place.Checks) < mostChecks && !slices.Contains(place.Checks, check) {
		place.Checks = append(place.Checks, check)
	}
	for _, class := range l.Classes {
		known := name(class.Class)
		place.Class = cmp.Or(place.Class, known)
		if place.Classes[known] == nil {
			place.Classes[known] = []int64{0}
		}
		place.Classes[known][0] += max(class.Count, 0)
	}
	key := gate.TraceKey{Device: name(device), Process: out.Process, Key: place.Key}
	if _, ok := r.out.Traces[key]; !ok && len(l.Trace) > 0 {
		r.out.Traces[key] = gate.Trace{Lines: l.Trace[:min(len(l.Trace), maxTrace)], HeldBy: place.HeldBy}
	}
}

// maxTrip is the maximum size of trip.json in bytes.
const maxTrip = 16 << 20

// readTrip reads the measurements of a trip into r.trip, which remains nil if
// the run is not a trip.
func (r *runReader) readTrip() {
	f, err := r.root.Open(record.TripName)
	if err != nil {
		return
	}
	defer f.Close()
	var t record.Trip
	if err := json.NewDecoder(io.LimitReader(f, maxTrip)).Decode(&t); err != nil || t.Schema != record.TripSchema {
		r.out.Warnings = append(r.out.Warnings, fmt.Sprintf("%s cannot be read", record.TripName))
		return
	}
	r.trip = &t
}

// tripped reports whether the run is a trip that has judged this process.
func (r *runReader) tripped(p *record.Process) bool {
	t := r.trip
	return t != nil && t.Device == p.Device && t.User == p.User && t.Process == p.Process && t.Judged
}

// measures adds the measurements of a trip in this process.
func (r *runReader) measures(out *gate.Observed, p *record.Process) {
	if !r.tripped(p) {
		return
	}
	t := r.trip
	for i := range t.Measures {
		m := &t.Measures[i]
		measure := gate.Measure{
			Key: name(m.Name), Name: name(strings.ReplaceAll(m.Name, "_", " ")), Unit: name(m.Unit), PerLoop: m.PerLoop,
			Grows: m.Verdict == record.VerdictLeak && !explained(m, t),
		}
		if len(m.Interval) == 2 {
			measure.Lower, measure.Upper = new(m.Interval[0]), new(m.Interval[1])
		}
		out.Measures = append(out.Measures, measure)
	}
	// Add each growing place in the heap as a separate measure.
	for i := range t.Growing {
		f := &t.Growing[i]
		place := gate.Measure{
			Key: name(cmp.Or(f.Key, f.Name)), Name: name(f.Name), Unit: record.UnitCount,
			Grows: t.Verdict == record.VerdictLeak,
		}
		if f.CountDelta != nil && t.Loops > 0 {
			place.PerLoop = new(float64(*f.CountDelta) / float64(t.Loops))
		}
		out.Measures = append(out.Measures, place)
	}
}

// explained reports whether growing places of the heap account for the growth
// of a measure of Java objects.
func explained(m *record.TripMeasure, t *record.Trip) bool {
	objects := m.Name == "java_heap" || m.Unit == record.UnitCount && m.Name != "threads" && m.Name != "files"
	return objects && len(t.Growing) > 0
}

// kinds maps the kinds of findings in a comparison of two snapshots to types of
// places.
var kinds = map[string]string{"threads": gate.TypeThreads, "library": gate.TypeNative, "graphics": gate.TypeGraphics}

// leastNative is the minimum growth, in bytes, at which native or graphics
// memory is listed.
const leastNative = 64 << 10

// snapshots adds everything that grew between the first and the last snapshot
// of a process.
func (r *runReader) snapshots(out *gate.Observed, p *record.Process) {
	var first, last *record.Diagnosis
	for i := range r.run.Diagnoses {
		d := &r.run.Diagnoses[i]
		if d.Device != p.Device || d.User != p.User || d.Process != p.Process {
			continue
		}
		switch d.Trigger {
		case record.TriggerFirst:
			first = d
		case record.TriggerLast:
			last = d
		}
	}
	if first == nil || last == nil || anotherLife(first, last) || last.Marks <= first.Marks {
		return
	}
	out.Snapshots = gate.Timeline{Exposure: []float64{float64(first.Marks), float64(last.Marks)}}
	met := map[string]bool{}
	for i := range last.Findings {
		f := &last.Findings[i]
		what := kinds[f.Type]
		if what == "" || f.Key == "" || met[what+f.Key] {
			continue
		}
		p := gate.Place{
			Type: what, Key: name(f.Key), Counts: before(f.Count, f.CountDelta), Bytes: before(f.Bytes, f.BytesDelta),
		}
		if what != gate.TypeThreads {
			// For memory, the count is the size in kB, because the number of
			// mappings means little.
			p.Counts = []int64{p.Bytes[0] >> 10, p.Bytes[1] >> 10}
		}
		if p.Counts[1] <= p.Counts[0] || what != gate.TypeThreads && p.Bytes[1]-p.Bytes[0] < leastNative {
			continue
		}
		met[what+f.Key] = true
		p.Class = name(f.Name)
		out.Places = append(out.Places, p)
	}
}

// before returns the earlier and the current value of a number that has changed
// by delta. Without a delta the two values are equal.
func before(now, delta *int64) []int64 {
	if now == nil {
		return []int64{0, 0}
	}
	n := max(*now, 0)
	if delta == nil {
		return []int64{n, n}
	}
	return []int64{max(n-*delta, 0), n}
}

// survivedANRs returns the number of ANRs that a process survived.
func survivedANRs(p record.Process) int {
	for _, f := range p.Findings {
		if f.Kind == "anr" {
			return max(0, f.Count-p.DeathsByReason["anr"])
		}
	}
	return 0
}
