package gate

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/reporters/comparison"
	"github.com/leakgate/leakgate/internal/retired"
	"github.com/leakgate/leakgate/internal/text"
)

// BaselineSchema is the name of the format of a baseline
// (docs/formats/baseline.md).
const BaselineSchema = "leakgate.baseline/1"

// Window is the default number of good runs that a baseline keeps for each
// subject.
const Window = 10

// These are the limits for the contents of a baseline, which may be untrusted.
const (
	maxBaseline  = 16 << 20
	maxRuns      = 2000
	MaxProcesses = 200
	maxPlaces    = 10_000
	maxMoments   = 500
	maxName      = 1000
	maxLines     = 200
	maxSeen      = 20_000
	maxNumber    = 1 << 50
	maxClassSet  = 4 << 20
)

// Baseline holds the earlier runs with which a run is compared.
type Baseline struct {
	// Runs holds the runs of the base branch, newest first.
	Runs []Observation
	// Pinned holds the runs of a release; PinnedName is the name of the
	// release.
	Pinned     []Observation
	PinnedName string
	// Seen holds the first run in which each place was seen.
	Seen []FirstSighting
}

// FirstSighting identifies the first run in which a place of a process was
// seen.
type FirstSighting struct {
	App     string    `json:"app"`
	Process string    `json:"process"`
	Type    string    `json:"type"`
	Key     string    `json:"key"`
	Commit  string    `json:"commit"`
	Time    time.Time `json:"time"`
}

// Add adds a run. For each subject, the baseline keeps the newest good runs and
// the newest failed runs, at most window of each. It drops a failed run once
// window good runs are newer.
func (b *Baseline) Add(o Observation, window int) Added {
	before := len(b.Runs)
	b.Runs = slices.DeleteFunc(b.Runs, func(x Observation) bool { return same(x, o) })
	known := len(b.Runs) < before
	b.Runs = append(b.Runs, o)
	b.trim(window)
	b.see(sightings(o))
	switch {
	case !slices.ContainsFunc(b.Runs, func(x Observation) bool { return same(x, o) }):
		return TooOld
	case known:
		return Replaced
	}
	return Appended
}

// Added is the result of adding a run to a baseline.
type Added int

// These are the results of adding a run: the run is new, the baseline already
// contained it, or the baseline is full of newer runs.
const (
	Appended Added = iota
	Replaced
	TooOld
)

// same reports whether two observations belong to the same run and device.
func same(a, b Observation) bool {
	return a.Started.Equal(b.Started) && a.Commit == b.Commit && a.Subject == b.Subject && a.Twin == b.Twin
}

func (b *Baseline) trim(window int) {
	slices.SortStableFunc(b.Runs, newer)
	type group struct {
		Testbed
		failed bool
	}
	met := map[group]map[runID]bool{}
	b.Runs = slices.DeleteFunc(b.Runs, func(o Observation) bool {
		of, good := group{o.Subject, o.Failed}, group{o.Subject, false}
		if met[of] == nil {
			met[of] = map[runID]bool{}
		}
		met[of][o.runID()] = true
		return len(met[of]) > window || o.Failed && len(met[good]) >= window
	})
	b.Runs = b.Runs[:min(len(b.Runs), maxRuns)]
}

// sightings returns the places and the growing measures in a run.
func sightings(o Observation) (out []FirstSighting) {
	for _, p := range o.Processes {
		for i := range p.Places {
			out = append(out,
				FirstSighting{o.Subject.App, p.Process, p.Places[i].Type, p.Places[i].Key, o.Commit, o.Started})
		}
		for i := range p.Measures {
			if p.Measures[i].Grows {
				out = append(out,
					FirstSighting{o.Subject.App, p.Process, TypeMeasure, p.Measures[i].Key, o.Commit, o.Started})
			}
		}
	}
	return out
}

// see adds sightings; for each place, the earliest sighting is kept.
func (b *Baseline) see(list []FirstSighting) {
	at := map[[4]string]int{}
	id := func(s FirstSighting) [4]string { return [4]string{s.App, s.Process, s.Type, s.Key} }
	for i, s := range b.Seen {
		at[id(s)] = i
	}
	for _, s := range list {
		if n, ok := at[id(s)]; !ok {
			at[id(s)] = len(b.Seen)
			b.Seen = append(b.Seen, s)
		} else if s.Time.Before(b.Seen[n].Time) {
			b.Seen[n] = s
		}
	}
	slices.SortFunc(b.Seen, func(x, y FirstSighting) int {
		return cmp.Or(strings.Compare(x.App, y.App), strings.Compare(x.Process, y.Process),
			strings.Compare(x.Type, y.Type), strings.Compare(x.Key, y.Key))
	})
	if n := len(b.Seen) - maxSeen; n > 0 { // the oldest sightings are the least likely to be needed
		slices.SortStableFunc(b.Seen, func(x, y FirstSighting) int { return y.Time.Compare(x.Time) })
		b.Seen = b.Seen[:maxSeen]
	}
}

// FirstSeen returns the first sighting of each place that is recorded for an
// app.
func (b *Baseline) FirstSeen(app string) map[SeenKey]comparison.Sighting {
	out := map[SeenKey]comparison.Sighting{}
	for _, s := range b.Seen {
		if s.App == app {
			out[SeenKey{s.Process, s.Type, s.Key}] = comparison.Sighting{Commit: s.Commit, Time: s.Time}
		}
	}
	return out
}

// Pin stores the current good runs as the runs of the release with the given
// name, and returns their number.
func (b *Baseline) Pin(name string) int {
	b.PinnedName = text.Head(text.Printable(name), maxName)
	b.Pinned = slices.DeleteFunc(slices.Clone(b.Runs), func(o Observation) bool { return o.Failed })
	return CountRuns(b.Pinned)
}

// Merge adds the contents of another baseline, for example one that contains a
// run recorded at the same time.
func (b *Baseline) Merge(o *Baseline, window int) {
	for _, run := range o.Runs {
		if !slices.ContainsFunc(b.Runs, func(x Observation) bool { return same(x, run) }) {
			b.Runs = append(b.Runs, run)
		}
	}
	b.trim(window)
	seen := slices.Clone(o.Seen)
	for _, run := range o.Runs {
		seen = append(seen, sightings(run)...)
	}
	b.see(seen)
	if len(b.Pinned) == 0 {
		b.Pinned, b.PinnedName = o.Pinned, o.PinnedName
	}
}

// baselineFile is the written form of a baseline. The description of a place is
// stored once for all runs.
type baselineFile struct {
	Schema     string                 `json:"schema"`
	Runs       []Observation          `json:"runs"`
	PinnedName string                 `json:"pinned_name,omitempty"`
	Pinned     []Observation          `json:"pinned,omitempty"`
	Places     map[string]Description `json:"places"`
	Seen       []FirstSighting        `json:"first_seen"`
}

// Encode returns the baseline as JSON with one run per line, so that a diff of
// two baselines shows what changed. It returns an error if ReadBaseline would
// reject the baseline.
func (b *Baseline) Encode() ([]byte, error) {
	f := baselineFile{
		Schema: BaselineSchema, PinnedName: b.PinnedName, Places: map[string]Description{},
		Seen: append([]FirstSighting{}, b.Seen...),
	}
	f.Runs, f.Pinned = f.strip(b.Runs), f.strip(b.Pinned)
	if err := f.check(); err != nil { // ReadBaseline would reject it
		return nil, fmt.Errorf("encode baseline: %w", err)
	}
	out, err := f.lines()
	if err != nil {
		return nil, fmt.Errorf("encode baseline: %w", err)
	}
	if len(out) > maxBaseline {
		return nil, fmt.Errorf("encode baseline: it is larger than %s", text.Size(maxBaseline))
	}
	return out, nil
}

// lines returns the JSON with one entry per line.
func (f *baselineFile) lines() ([]byte, error) {
	var out bytes.Buffer
	var failed error
	value := func(v any) {
		raw, err := json.Marshal(v)
		failed = errors.Join(failed, err)
		out.Write(raw)
	}
	list := func(key string, n int, entry func(i int)) {
		out.WriteString(",\n\"" + key + "\":[")
		for i := range n {
			out.WriteString(map[bool]string{true: "\n", false: ",\n"}[i == 0])
			entry(i)
		}
		out.WriteString("\n]")
	}
	out.WriteString(`{"schema":`)
	value(f.Schema)
	list("runs", len(f.Runs), func(i int) { value(f.Runs[i]) })
	if len(f.Pinned) > 0 {
		out.WriteString(",\n\"pinned_name\":")
		value(f.PinnedName)
		list("pinned", len(f.Pinned), func(i int) { value(f.Pinned[i]) })
	}
	out.WriteString(",\n\"places\":{")
	for i, key := range slices.Sorted(maps.Keys(f.Places)) {
		out.WriteString(map[bool]string{true: "\n", false: ",\n"}[i == 0])
		value(key)
		out.WriteString(":")
		value(f.Places[key])
	}
	out.WriteString("\n}")
	list("first_seen", len(f.Seen), func(i int) { value(f.Seen[i]) })
	out.WriteString("}\n")
	return out.Bytes(), failed
}

// strip moves the descriptions of places to Places, where the newest
// description for each key is kept. Loaded classes are kept only for the newest
// run of each subject; they show which names are in use.
func (f *baselineFile) strip(runs []Observation) []Observation {
	type id struct {
		subject Testbed
		process string
	}
	newest := map[id]bool{}
	out := make([]Observation, len(runs))
	for i, o := range runs {
		o.Processes = slices.Clone(o.Processes)
		for k := range o.Processes {
			p := &o.Processes[k]
			if of := (id{o.Subject, p.Process}); newest[of] {
				p.Loaded = ""
			} else {
				newest[of] = p.Loaded != ""
			}
			p.Places = f.stripPlaces(p.Places)
		}
		out[i] = o
	}
	return out
}

func (f *baselineFile) stripPlaces(places []Place) []Place {
	out := slices.Clone(places)
	for i := range out {
		l := &out[i]
		if l.Type != TypeLeak {
			continue
		}
		if _, ok := f.Places[l.Key]; !ok {
			f.Places[l.Key] = l.Description
		}
		l.Description = Description{Library: l.Library}
	}
	return out
}

// ReadBaseline parses the output of Encode. The input may be untrusted; a
// baseline with impossible contents is rejected.
func ReadBaseline(raw []byte) (*Baseline, error) {
	if len(raw) > maxBaseline {
		return nil, fmt.Errorf("read baseline: it is larger than %s", text.Size(maxBaseline))
	}
	if err := retired.Check(raw, "what", "because"); err != nil {
		return nil, fmt.Errorf("read baseline: %w", err)
	}
	var f baselineFile
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("read baseline: %w", err)
	}
	if f.Schema != BaselineSchema {
		return nil, fmt.Errorf("read baseline: its schema is %s, want %s; use the leakgate version that wrote it",
			text.Quote(f.Schema, 40), BaselineSchema)
	}
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("read baseline: %w", err)
	}
	f.attach(f.Runs)
	f.attach(f.Pinned)
	return &Baseline{Runs: f.Runs, Pinned: f.Pinned, PinnedName: f.PinnedName, Seen: f.Seen}, nil
}

func (f *baselineFile) attach(runs []Observation) {
	for i := range runs {
		for k := range runs[i].Processes {
			p := &runs[i].Processes[k]
			for n := range p.Places {
				if l := &p.Places[n]; l.Type == TypeLeak {
					library := l.Library
					l.Description = f.Places[l.Key]
					l.Library = library
				}
			}
		}
	}
}

// check rejects contents that cannot occur in a valid baseline.
func (f *baselineFile) check() error {
	if len(f.Runs) > maxRuns || len(f.Pinned) > maxRuns || len(f.Seen) > maxSeen {
		return errors.New("it has too many runs")
	}
	for i := range f.Runs {
		if err := f.Runs[i].check(); err != nil {
			return fmt.Errorf("run %d: %w", i+1, err)
		}
	}
	for i := range f.Pinned {
		if err := f.Pinned[i].check(); err != nil {
			return fmt.Errorf("pinned run %d: %w", i+1, err)
		}
	}
	for key, d := range f.Places {
		if err := d.check(key); err != nil {
			return err
		}
	}
	for _, s := range f.Seen {
		if !short(s.App, s.Process, s.Type, s.Key, s.Commit) {
			return errors.New("a string is too long")
		}
	}
	return nil
}

func (d Description) check(key string) error {
	if !short(key, d.Class, d.HeldBy) || !short(d.KeyText...) || !short(d.Fingerprints...) ||
		len(d.KeyText) > maxLines || len(d.Fingerprints) > maxLines {
		return fmt.Errorf("place %s: a string is too long", text.Quote(key, 80))
	}
	return nil
}

func short(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(s string) bool { return len(s) > maxName })
}

func (o *Observation) check() error {
	s := o.Subject
	if !short(s.App, s.Variant, s.Test, s.Workload, s.Marks, s.Model, s.ABI, o.Commit, o.Branch, o.Tool) {
		return errors.New("a string is too long")
	}
	if o.Unit != UnitLoop && o.Unit != UnitEvent {
		return fmt.Errorf("its unit is %s, want %s or %s", text.Quote(o.Unit, 40), UnitLoop, UnitEvent)
	}
	if len(o.Processes) > MaxProcesses {
		return errors.New("it has too many processes")
	}
	met := map[string]bool{}
	for i := range o.Processes {
		p := &o.Processes[i]
		if met[p.Process] {
			return fmt.Errorf("duplicate process %s", text.Quote(p.Process, 80))
		}
		met[p.Process] = true
		if err := p.check(); err != nil {
			return fmt.Errorf("process %s: %w", text.Quote(p.Process, 80), err)
		}
	}
	return nil
}

func (o *Observed) check() error {
	if !short(o.Process, o.Names, o.Undecided, o.Gate, o.Reason) || len(o.Loaded) > maxClassSet ||
		len(o.Places) > maxPlaces {
		return errors.New("a string or list is too long")
	}
	if _, err := base64.StdEncoding.DecodeString(string(o.Loaded)); err != nil {
		return errors.New("its loaded classes are damaged")
	}
	if err := errors.Join(o.Heap.check(), o.Snapshots.check()); err != nil {
		return err
	}
	if n := len(o.Reachable); n > 0 && n != len(o.Heap.Exposure) || !plausible(o.Reachable) {
		return errors.New("its reachable bytes are damaged")
	}
	for reason, n := range o.Deaths {
		if !short(reason) || n < 0 || n > maxNumber {
			return errors.New("its deaths are damaged")
		}
	}
	met := map[string]bool{}
	for i := range o.Places {
		l := &o.Places[i]
		if met[l.Type+" "+l.Key] {
			return fmt.Errorf("duplicate place %s", text.Quote(l.Key, 80))
		}
		met[l.Type+" "+l.Key] = true
		if err := l.check(len(o.series(l.Type).Exposure)); err != nil {
			return fmt.Errorf("place %s: %w", text.Quote(l.Key, 80), err)
		}
	}
	for i := range o.Measures {
		if m := &o.Measures[i]; !short(m.Key, m.Name, m.Unit) || !finite(m.PerLoop, m.Lower, m.Upper) ||
			len(o.Measures) > maxLines {
			return errors.New("its measures are damaged")
		}
	}
	return o.Trend.check()
}

func finite(numbers ...*float64) bool {
	return !slices.ContainsFunc(numbers, func(x *float64) bool { return x != nil && !(math.Abs(*x) < maxNumber) })
}

func (t *TrendVerdict) check() error {
	if t == nil {
		return nil
	}
	if !short(t.Gate, t.Kind) || !finite(t.Rate, t.Lower, t.Upper) {
		return errors.New("its trend is damaged")
	}
	return nil
}

func (s Timeline) check() error {
	if len(s.Exposure) > maxMoments {
		return errors.New("it has too many dumps")
	}
	for i, at := range s.Exposure {
		if !(at >= 0 && at < maxNumber) || i > 0 && at <= s.Exposure[i-1] {
			return errors.New("its dumps are out of order")
		}
	}
	return nil
}

func (p *Place) check(moments int) error {
	if !slices.Contains([]string{TypeLeak, TypeThreads, TypeNative, TypeGraphics}, p.Type) || !short(p.Type, p.Key) ||
		!short(p.Checks...) || len(p.Classes) > maxLines || len(p.Checks) > maxLines {
		return errors.New("a string or list is too long")
	}
	if err := p.Description.check(p.Key); err != nil {
		return err
	}
	if len(p.Counts) != moments || len(p.Bytes) != moments || !plausible(p.Counts) || !plausible(p.Bytes) {
		return fmt.Errorf("it has %d counts and %d sizes for %d dumps, or invalid numbers", len(p.Counts), len(p.Bytes),
			moments)
	}
	for class, counts := range p.Classes {
		if !short(class) || len(counts) != moments || !plausible(counts) {
			return errors.New("its classes are damaged")
		}
	}
	return nil
}

func plausible(list []int64) bool {
	return !slices.ContainsFunc(list, func(n int64) bool { return n < 0 || n > maxNumber })
}
