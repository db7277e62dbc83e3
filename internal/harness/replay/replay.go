package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// Options controls how recordings are judged.
type Options struct {
	// Policy determines the verdicts. If a run was recorded with the policy of
	// this name, the constants of that run are used.
	Policy detector.Policy
	// MustSee is the slowest leak in bytes per hour that a pass must rule out;
	// 0 means the value that the run itself required.
	MustSee float64
	// Bases are recordings of earlier runs; if there are any, the differences
	// from these recordings are judged. Bases require policy "robust".
	Bases []string
	// Column is the column of a table that is judged instead of pss_kb; it may
	// be empty.
	Column string
	// Explain keeps the looks at the first 50 processes of each recording.
	Explain bool
	// Stdin is read if the name of a recording is "-".
	Stdin io.Reader
	// Progress is called with the fraction of a file that has been read, from 0
	// to 1; it may be nil.
	Progress func(file string, share float64)
}

// Run judges recordings: tables, samples.ndjson, or run directories. Run judges
// all processes in the recordings together, like the processes of one gate. It
// returns an error if a recording cannot be read or contains nothing to judge,
// or if ctx is done.
func Run(ctx context.Context, files []string, o Options) (record.Replay, error) {
	if err := o.check(files); err != nil {
		return record.Replay{}, err
	}
	var bases, recordings []*recording
	left := ledger.MaxProcesses
	for _, name := range o.Bases {
		base, err := read(ctx, name, o.unexplained(), left)
		if err != nil {
			return record.Replay{}, err
		}
		left -= len(base.subjects)
		bases = append(bases, base)
	}
	left = ledger.MaxProcesses
	for _, name := range files {
		r, err := read(ctx, name, o, left)
		if err != nil {
			return record.Replay{}, err
		}
		left -= len(r.subjects)
		recordings = append(recordings, r)
	}
	return conclude(o, recordings, bases), nil
}

func (o Options) check(files []string) error {
	if err := o.Policy.Validate(); err != nil {
		return err
	}
	if len(o.Bases) > 0 && o.Policy.Name != detector.PolicyRobust {
		return fmt.Errorf("compare with a base recording: policy %q does not support it; use %q", o.Policy.Name,
			detector.PolicyRobust)
	}
	stdins := 0
	for _, name := range slices.Concat(o.Bases, files) {
		if name == "-" {
			stdins++
		}
	}
	if stdins > 1 {
		return errors.New("read standard input: only one recording can be read from it")
	}
	return nil
}

func (o Options) unexplained() Options {
	o.Explain = false
	return o
}

// read reads one recording; limit is the maximum number of processes in it.
func read(ctx context.Context, name string, o Options, limit int) (r *recording, err error) {
	s, err := openSource(ctx, name, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	form, err := s.form()
	if err == nil && form == lines {
		r, err = readLines(s.in, o, limit)
	} else if err == nil {
		r, err = readTable(s.in, o, limit)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	r.name = name
	return r, nil
}

// conclude collects the verdicts of all detectors.
func conclude(o Options, recordings, bases []*recording) record.Replay {
	result := record.Replay{
		Schema: record.ReplaySchema, Policy: o.Policy.Name, Bases: o.Bases, Processes: []record.ReplayProcess{},
		Apps: []record.ReplayApp{}, Warnings: []string{},
	}
	together := 0
	for _, r := range recordings {
		for _, x := range r.subjects {
			if x.account.Samples > 0 {
				together++
			}
		}
		together += ledger.CountJudged(r.ledger.Apps())
		for _, w := range append(r.warnings, r.ledger.AppWarnings()...) {
			result.Warnings = append(result.Warnings, r.name+": "+w)
		}
	}
	if len(o.Bases) == 1 {
		result.Base = o.Bases[0]
	}
	against := newComparison(bases)
	for _, r := range recordings {
		for _, x := range r.subjects {
			p := x.record(together)
			p.File = r.name
			if x.account.Samples == 0 {
				p.Gate, p.Reason = detector.Inconclusive, "no sample could be used"
			} else {
				against.judge(&p, x)
				if rows, lost := x.rows+r.lost, x.problems.lost+r.lost; p.Gate != detector.Leak && tooMany(lost, rows) {
					p.Gate, p.TrendGate, p.Flat, p.Reason = detector.Inconclusive, detector.Inconclusive, 0,
						lostText(lost, rows, p.Reason)
				}
				p.Unjudged = x.account.Unjudged(p.Process)
			}
			result.Processes = append(result.Processes, p)
		}
	}
	for _, r := range recordings {
		for _, x := range r.apps {
			p := x.record(together)
			p.File = r.name
			against.judgeApp(&p, x)
			if lost := r.lostRows(); p.Gate != detector.Leak && tooMany(lost, r.rows) {
				p.Gate, p.Reason = detector.Inconclusive, lostText(lost, r.rows, p.Reason)
			}
			result.Apps = append(result.Apps, p)
		}
	}
	relate(&result)
	return result
}

// maxLost is the largest share of rows that may be lost without affecting the
// verdict. If more rows are lost, a leak may be in the missing part.
const maxLost = 0.1

// tooMany reports whether so many rows are lost that the remaining rows cannot
// prove a pass.
func tooMany(lost, rows int) bool { return float64(lost) > maxLost*float64(rows) }

// lostText returns the reason for a verdict that is inconclusive because of
// lost rows.
func lostText(lost, rows int, because string) string {
	return fmt.Sprintf("%d of %s could not be used; verdict from the remaining rows: %s", lost,
		text.Plural(rows, "row", "rows"), because)
}

// relate compares the verdicts on the apps of each recording with those on its
// processes.
func relate(r *record.Replay) {
	processes := map[string][]*record.Process{}
	for i := range r.Processes {
		p := &r.Processes[i]
		processes[p.File] = append(processes[p.File], &p.Process)
	}
	for i := range r.Apps {
		ledger.RelateApps([]*record.AppVerdict{&r.Apps[i].AppVerdict}, processes[r.Apps[i].File])
	}
}

// oneLine joins the lines of an error.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", ", ") }
