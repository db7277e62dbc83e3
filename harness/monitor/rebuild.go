package monitor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// Rebuild makes the record of a run from the lines of its directory: they are
// judged again by the rules that the run had. A run that was killed is told as
// such, with all that it has measured. Lines that are damaged are left out, and no
// verdict crosses them. The warnings say what of the directory could not be used;
// the error is a directory without a run, or with one of which nothing can be read.
func Rebuild(dir string) (record.Run, []error, error) {
	path := filepath.Join(dir, record.SamplesName)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return record.Run{}, nil, fmt.Errorf("open run: %s holds no run: there is no %s in it", dir, record.SamplesName)
	case err != nil:
		return record.Run{}, nil, fmt.Errorf("open run: %w", err)
	case !info.Mode().IsRegular(): // opening a pipe would wait for its writer
		return record.Run{}, nil, fmt.Errorf("open run: %s is no file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return record.Run{}, nil, fmt.Errorf("open run: %w", err)
	}
	defer f.Close()
	var b rebuild
	cut, err := record.ReadSamples(f, record.Lines{Header: b.begin, Sample: b.sample, Event: b.event, Damaged: b.damaged})
	if err == nil && b.heard == 0 && b.damage.lines > 0 {
		first := b.damage.first[0]
		err = fmt.Errorf("nothing can be read but the header; line %d: %s", first.number, first.why)
	}
	if err != nil {
		return record.Run{}, nil, fmt.Errorf("read run in %s: %w", dir, err)
	}
	return b.record(), append(b.damage.warnings(), cut...), nil
}

// rebuild hears the lines of a run.
type rebuild struct {
	outcome
	byDevice map[string]*ledger
	heard    int // lines
}

func (b *rebuild) begin(h record.Header) error {
	policy, err := policyOf(h)
	if err != nil {
		return err
	}
	return b.beginBy(policy, h)
}

// beginBy is begin by another policy than that of the header.
func (b *rebuild) beginBy(policy detector.Policy, h record.Header) error {
	b.header, b.byDevice = h, map[string]*ledger{}
	for _, d := range h.Devices {
		if b.byDevice[d.Device] != nil {
			return fmt.Errorf("device %q stands twice in the header", d.Device)
		}
		if err := plausible(d.StartedUp); err != nil {
			return err
		}
		l := newLedger(policy, d)
		b.byDevice[d.Device] = l
		b.ledgers = append(b.ledgers, l)
	}
	b.final = record.Event{Text: stoppedKilled}
	if h.Plan != nil {
		b.final.Workload = h.Plan.Workload
	}
	return nil
}

// policyOf is the policy that the run had; the default where the header does not
// tell it, as before leakgate wrote it there.
func policyOf(h record.Header) (detector.Policy, error) {
	policy := detector.ArticlePolicy()
	if h.Plan == nil || len(h.Plan.Policy) == 0 {
		return policy, nil
	}
	if err := json.Unmarshal(h.Plan.Policy, &policy); err != nil {
		return policy, fmt.Errorf("decode policy: %w", err)
	}
	return policy, policy.Validate()
}

func (b *rebuild) sample(s record.Sample) error {
	if err := b.checkSample(s); err != nil {
		return err
	}
	b.heard++
	b.byDevice[s.Device].sample(s)
	return nil
}

// checkSample refuses what no run has.
func (b *rebuild) checkSample(s record.Sample) error {
	if b.byDevice[s.Device] == nil {
		return fmt.Errorf("device %q is not in the header", s.Device)
	}
	if err := plausible(s.T, s.Up); err != nil {
		return err
	}
	if bytes, ok := bytesOf(s); ok && (bytes < 0 || bytes > maxBytes) {
		return fmt.Errorf("process %q has %d bytes", s.Process, bytes)
	}
	return nil
}

const (
	// maxSeconds bounds the times of a line: thirty years.
	maxSeconds = 1e9
	// maxBytes bounds the memory of a process.
	maxBytes = 1 << 50
)

// plausible refuses times that no run can have and that the clock's type, or JSON,
// could not hold.
func plausible(seconds ...float64) error {
	for _, s := range seconds {
		if math.Abs(s) > maxSeconds {
			return fmt.Errorf("a time of %g s", s)
		}
	}
	return nil
}

func (b *rebuild) event(e record.Event) error {
	if err := b.checkEvent(e); err != nil {
		return err
	}
	b.heard++
	if e.Event == "stopped" {
		b.final = e
		return nil
	}
	b.byDevice[e.Device].event(e)
	return nil
}

// checkEvent refuses what no run has.
func (b *rebuild) checkEvent(e record.Event) error {
	if e.Event == "stopped" {
		return nil
	}
	if b.byDevice[e.Device] == nil {
		return fmt.Errorf("device %q is not in the header", e.Device)
	}
	return plausible(e.T, e.Up, e.Lasted)
}

// damaged hears that a line cannot be used. What it told may have been of any process
// of any device.
func (b *rebuild) damaged(number int, why error) {
	b.damage.add(number, why)
	b.tear()
}

func (b *rebuild) tear() {
	for _, l := range b.ledgers {
		l.tear()
	}
}

// record is the run; one that was killed has ended with its last line.
func (b *rebuild) record() record.Run {
	if b.final.Ended == nil {
		longest := 0.0
		for _, l := range b.ledgers {
			longest = max(longest, l.last/l.device.TimeScale)
		}
		b.final.Ended = new(b.header.Started.Add(time.Duration(longest * float64(time.Second))).Round(time.Millisecond))
	}
	return b.outcome.record()
}

// Replay judges the lines of a recorded run again, by any policy. It hears them one
// by one in their order. Several of them can share one run: each opens and hears
// some of the processes, and all hear what is told of a device.
type Replay struct {
	rebuild
	series map[*account]*Series
	marks  map[*ledger]int
}

// NewReplay begins the replay of the run with this header.
func NewReplay(h record.Header, policy detector.Policy) (*Replay, error) {
	r := &Replay{series: map[*account]*Series{}, marks: map[*ledger]int{}}
	if err := r.beginBy(policy, h); err != nil {
		return nil, err
	}
	return r, nil
}

// PolicyOf is the policy that the run with this header had.
func PolicyOf(h record.Header) (detector.Policy, error) { return policyOf(h) }

// Open gives the series of a process, a new one if there is none. An error is a
// device that is not in the header.
func (r *Replay) Open(device string, p capture.Process) (*Series, error) {
	l := r.byDevice[device]
	if l == nil {
		return nil, fmt.Errorf("device %q is not in the header", device)
	}
	a := l.open(p)
	if r.series[a] == nil {
		r.series[a] = &Series{of: r, ledger: l, account: a, before: r.marks[l]}
	}
	return r.series[a], nil
}

// CheckSample refuses a sample that no run has. It may be called beside the other
// methods.
func (r *Replay) CheckSample(s record.Sample) error { return r.checkSample(s) }

// CheckEvent is CheckSample for events.
func (r *Replay) CheckEvent(e record.Event) error { return r.checkEvent(e) }

// Damaged hears that a line cannot be read, or is refused: no verdict crosses it.
func (r *Replay) Damaged() { r.tear() }

// Sample hears one sample of an open process. An error is a line that no run has;
// nothing of it is used.
func (r *Replay) Sample(s record.Sample) error {
	if err := r.checkSample(s); err != nil {
		return err
	}
	l := r.byDevice[s.Device]
	x := r.series[l.accounts[capture.Key{User: s.User, Name: s.Process}]]
	if x == nil {
		return r.sample(s)
	}
	l.mend(s.T, clockOf(s.Up)) // the clock may be another than that of the last sample
	last := x.account.lastUp
	if s.Breakdown == nil && last > 0 && clockOf(s.Up) <= last {
		return fmt.Errorf("up_s %g is not after %g", s.Up, last.Seconds())
	}
	if err := r.sample(s); err != nil {
		return err
	}
	x.took(s.T)
	return nil
}

// Event hears one event. An error is as in Sample.
func (r *Replay) Event(e record.Event) error {
	if err := r.event(e); err != nil {
		return err
	}
	if e.Event == "mark" {
		r.marks[r.byDevice[e.Device]]++
	}
	return nil
}

// Last is t_s of the last line of each device in the order of the header, as far as
// this Replay has heard.
func (r *Replay) Last() []float64 {
	out := make([]float64, len(r.ledgers))
	for i, l := range r.ledgers {
		out[i] = l.last
	}
	return out
}

// Until says when each device's part ended, as Last does, where others have heard more.
func (r *Replay) Until(last []float64) {
	for i, l := range r.ledgers {
		l.last = max(l.last, last[i])
	}
}

// Series is one process of a Replay.
type Series struct {
	of      *Replay
	ledger  *ledger
	account *account
	// first and last are t_s of the samples that were judged, heard their number.
	first, last float64
	heard       int
	before      int // marks from before
}

func (x *Series) took(t float64) {
	switch x.account.samples {
	case x.heard:
		return // nothing that is judged
	case 1:
		x.first = t
	}
	x.heard, x.last = x.account.samples, t
}

// Detector is what judges the series.
func (x *Series) Detector() *detector.Detector { return x.account.detector }

// Samples is how many samples were judged.
func (x *Series) Samples() int { return x.heard }

// Seconds is a moment of the device's present clock, from the first sample on.
func (x *Series) Seconds(up time.Duration) float64 {
	return round(x.ledger.seconds(up)-x.first, 3)
}

// Marks is how many marks were set while the series was open.
func (x *Series) Marks() int { return x.of.marks[x.ledger] - x.before }

// Record is the series as run.json has it where so many processes are judged
// together, but its times count from its first sample and it lasts until its last.
func (x *Series) Record(processes int) record.Process {
	p := x.account.record(x.ledger, processes)
	p.Duration = round(x.last-x.first, 3)
	since := func(t float64) float64 { return round(t-x.first, 3) }
	p.Transitions = slices.Clone(p.Transitions)
	for i := range p.Transitions {
		p.Transitions[i].T = since(p.Transitions[i].T)
	}
	for i := range p.Jumps {
		p.Jumps[i].T = since(p.Jumps[i].T)
	}
	for _, t := range []**float64{&p.FirstSuspicious, &p.FirstLeaking} {
		if *t != nil {
			*t = new(since(**t))
		}
	}
	return p
}

// leftovers begin the names of what a run has in its directory only while it goes on.
var leftovers = []string{inboxName, record.SamplesName + ".new", ".run.json-", "." + record.SamplesName + ".new-"}

// Finish takes away what a killed run has left in its directory beside its record.
func Finish(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("finish run: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if slices.ContainsFunc(leftovers, func(begin string) bool { return strings.HasPrefix(e.Name(), begin) }) {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("finish run: %w", err)
	}
	return nil
}
