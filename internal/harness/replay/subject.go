package replay

import (
	"slices"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/reporters/record"
)

// recording is the data of one source.
type recording struct {
	name     string
	ledger   *ledger.Ledger
	subjects []*subject
	apps     []*app
	warnings []string
	// lost is the number of skipped rows of a table that do not belong to a
	// process; rows is the total number of rows.
	lost, rows int
}

// subject is one process of a recording.
type subject struct {
	account *ledger.Account
	key     key
	looks   looks
	// source is the judged column of a table; problems holds the rows that
	// could not be used.
	source   string
	problems rowProblems
	// rows is the number of rows of the process.
	rows int
}

// app is the sum of all processes of an app in a recording.
type app struct {
	*ledger.AppSum
	key   key
	looks looks
}

// addApp adds the sum of an app's processes to the recording, and collects its
// looks if o.Explain is set.
func (r *recording) addApp(x *ledger.AppSum, o Options) {
	out := &app{AppSum: x, key: key{x.Device(), x.User, x.Name}}
	if r.ledger.Table {
		out.key.device = ""
	}
	if o.Explain && len(r.apps) < maxExplained {
		x.Detector.OnLook(func(seen detector.Look) { out.looks.add(since(x.Seconds(seen.At), x.Account), seen) })
	}
	r.apps = append(r.apps, out)
}

// record returns the record of the app, which was judged together with the
// given number of series. Times are relative to the first sample of the app, as
// in subject.record.
func (x *app) record(together int) record.ReplayApp {
	a := x.Account
	p := record.ReplayApp{AppVerdict: x.Record(together), Looks: x.looks.kept}
	p.Device, p.Duration = x.key.device, since(a.Last, a)
	p.Transitions, p.FirstSuspicious, p.FirstLeaking = sinceFirst(a, p.Transitions, p.Jumps, p.FirstSuspicious,
		p.FirstLeaking)
	p.Warnings = append(append([]string{}, p.Warnings...), x.looks.skippedText()...)
	return p
}

// sinceFirst converts times on the axis of a run to seconds from the first
// sample.
func sinceFirst(a *ledger.Account, steps []record.Transition, jumps []record.Jump, suspicious,
	leaking *float64) (own []record.Transition, ownSuspicious, ownLeaking *float64) {
	own = slices.Clone(steps)
	for i := range own {
		own[i].T = since(own[i].T, a)
	}
	for i := range jumps {
		jumps[i].T = since(jumps[i].T, a)
	}
	moved := func(t *float64) *float64 {
		if t == nil {
			return nil
		}
		return new(since(*t, a))
	}
	return own, moved(suspicious), moved(leaking)
}

// key identifies a process across recordings.
type key struct {
	device  string
	user    int
	process string
}

// add adds a process to the recording, and collects its looks if o.Explain is
// set.
func (r *recording) add(a *ledger.Account, o Options) *subject {
	x := &subject{account: a, key: key{a.Device(), a.User, a.Name}}
	if o.Explain && len(r.subjects) < maxExplained {
		a.Detector.OnLook(func(seen detector.Look) { x.looks.add(since(a.Seconds(seen.At), a), seen) })
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

// lostRows counts the rows that were skipped.
func (r *recording) lostRows() int {
	n := r.lost
	for _, x := range r.subjects {
		n += x.problems.lost
	}
	return n
}

// since converts a time on the axis of a run to seconds from the first sample
// of a process.
func since(t float64, a *ledger.Account) float64 { return record.Round(t-a.First, 3) }

// record returns the record of the process, which was judged together with the
// given number of processes. Times are relative to the first sample of the
// process, and the record ends with the last sample.
func (x *subject) record(processes int) record.ReplayProcess {
	a := x.account
	// Computing the verdict may add another look.
	p := record.ReplayProcess{Process: a.Record(processes), Marks: a.Marks, Looks: x.looks.kept}
	p.Device, p.Duration = x.key.device, since(a.Last, a)
	p.Alive = record.Round(a.AliveUntil(a.Last), 3)
	p.Transitions, p.FirstSuspicious, p.FirstLeaking = sinceFirst(a, p.Transitions, p.Jumps, p.FirstSuspicious,
		p.FirstLeaking)
	if x.source != "" {
		p.Source = x.source
	}
	p.Warnings = append(append(append([]string{}, x.problems.list()...), p.Warnings...), x.looks.skippedText()...)
	return p
}
