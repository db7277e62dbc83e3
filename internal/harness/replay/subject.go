package replay

import (
	"slices"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/reporters/record"
)

// recording is what was read of one source.
type recording struct {
	name     string
	subjects []*subject
	warnings []string
}

// subject is one process of a recording.
type subject struct {
	account *ledger.Account
	key     key
	looks   looks
	// source is the column of a table that was judged, doubts are the rows that could
	// not be used.
	source string
	doubts doubts
}

// key is what the same process has in two recordings.
type key struct {
	device  string
	user    int
	process string
}

// add adds a process.
func (r *recording) add(a *ledger.Account, o Options) *subject {
	x := &subject{account: a, key: key{a.Device(), a.User, a.Name}}
	if o.Explain && len(r.subjects) < maxExplained {
		a.Detector.Explain(func(seen detector.Look) { x.looks.add(since(a.Seconds(seen.At), a), seen) })
	}
	r.subjects = append(r.subjects, x)
	return x
}

func (r *recording) samples() int {
	n := 0
	for _, x := range r.subjects {
		n += x.account.Samples
	}
	return n
}

// since is a time on the axis of a run as seconds from the first sample of a process.
func since(t float64, a *ledger.Account) float64 { return record.Round(t-a.First, 3) }

// record returns the process where so many are judged together. Its times count from
// its first sample, and it lasts until its last one.
func (x *subject) record(processes int) record.ReplayProcess {
	a := x.account
	p := record.ReplayProcess{Process: a.Record(processes), Marks: a.Marks, Looks: x.looks.kept} // a verdict may look once more
	p.Device, p.Duration = x.key.device, since(a.Last, a)
	p.Alive = record.Round(a.AliveUntil(a.Last), 3)
	p.Transitions = slices.Clone(p.Transitions)
	for i := range p.Transitions {
		p.Transitions[i].T = since(p.Transitions[i].T, a)
	}
	for i := range p.Jumps {
		p.Jumps[i].T = since(p.Jumps[i].T, a)
	}
	for _, t := range []**float64{&p.FirstSuspicious, &p.FirstLeaking} {
		if *t != nil {
			*t = new(since(**t, a))
		}
	}
	if x.source != "" {
		p.Source = x.source
	}
	p.Warnings = append(append(append([]string{}, x.doubts.list()...), p.Warnings...), x.looks.leftOut()...)
	return p
}
