package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/reporters/record"
)

// Options say how recordings are judged.
type Options struct {
	// Policy judges; where it has the name of the policy that a run had, the
	// constants of the run count.
	Policy detector.Policy
	// MustSee is the slowest leak in bytes per hour that a pass must rule out; 0 for what a run
	// itself demanded.
	MustSee float64
	// Base is a recording: what is judged is the difference from it. Empty for none.
	// It needs policy "robust".
	Base string
	// Column of a table is judged instead of pss_kb. Empty for none.
	Column string
	// Explain keeps the looks of the first 50 processes of each recording.
	Explain bool
	// Stdin is read where a recording is called "-".
	Stdin io.Reader
	// Progress hears how far a file is read, from 0 to 1; nil for nobody.
	Progress func(file string, share float64)
}

// Run judges recordings: tables, samples.ndjson, or run directories. All of their
// processes are judged together, as those of one gate. An error is a recording
// that cannot be read or holds nothing to judge, or the end of ctx.
func Run(ctx context.Context, files []string, o Options) (record.Replay, error) {
	if err := o.check(files); err != nil {
		return record.Replay{}, err
	}
	var base *recording
	left := ledger.MaxProcesses
	if o.Base != "" {
		var err error
		if base, err = read(ctx, o.Base, o.unexplained(), left); err != nil {
			return record.Replay{}, err
		}
	}
	var recordings []*recording
	for _, name := range files {
		r, err := read(ctx, name, o, left)
		if err != nil {
			return record.Replay{}, err
		}
		left -= len(r.subjects)
		recordings = append(recordings, r)
	}
	return conclude(o, recordings, base), nil
}

func (o Options) check(files []string) error {
	if err := o.Policy.Validate(); err != nil {
		return err
	}
	if o.Base != "" && o.Policy.Name != detector.PolicyRobust {
		return fmt.Errorf("compare with a base recording: policy %q cannot; use %q", o.Policy.Name, detector.PolicyRobust)
	}
	stdins := 0
	for _, name := range append([]string{o.Base}, files...) {
		if name == "-" {
			stdins++
		}
	}
	if stdins > 1 {
		return errors.New("read standard input: it can be one recording only")
	}
	return nil
}

func (o Options) unexplained() Options {
	o.Explain = false
	return o
}

// read reads one recording of at most limit processes.
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

// conclude asks all detectors for their verdicts.
func conclude(o Options, recordings []*recording, base *recording) record.Replay {
	result := record.Replay{Schema: record.ReplaySchema, Policy: o.Policy.Name, Base: o.Base, Processes: []record.ReplayProcess{}, Warnings: []string{}}
	together := 0
	for _, r := range recordings {
		for _, x := range r.subjects {
			if x.account.Samples > 0 {
				together++
			}
		}
		for _, w := range r.warnings {
			result.Warnings = append(result.Warnings, r.name+": "+w)
		}
	}
	against := newComparison(o.Base, base)
	for _, r := range recordings {
		for _, x := range r.subjects {
			p := x.record(together)
			p.File = r.name
			if x.account.Samples == 0 {
				p.Gate, p.Because = detector.Inconclusive, "no sample could be used"
			} else {
				against.judge(&p, x)
				p.Unjudged = x.account.Unjudged(p.Process)
			}
			result.Processes = append(result.Processes, p)
		}
	}
	return result
}

// comparison is the base that processes are compared with.
type comparison struct {
	name string
	// exact finds by device, user and name, named by the name alone.
	exact map[key]*subject
	named map[string]*subject
}

func newComparison(name string, base *recording) *comparison {
	if base == nil {
		return nil
	}
	c := &comparison{name: name, exact: map[key]*subject{}, named: map[string]*subject{}}
	for _, s := range base.subjects {
		if s.account.Samples == 0 {
			continue
		}
		if c.exact[s.key] == nil {
			c.exact[s.key] = s
		}
		if c.named[s.key.process] == nil {
			c.named[s.key.process] = s
		}
	}
	return c
}

// judge makes the verdict on a process one on the difference, where the base has
// the process too.
func (c *comparison) judge(p *record.ReplayProcess, s *subject) {
	if c == nil {
		return
	}
	of := c.exact[s.key]
	if of == nil {
		of = c.named[s.key.process]
	}
	if of == nil {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%s has no process of this name: it is judged alone", c.name))
		return
	}
	v, err := s.account.Detector.Against(of.account.Detector)
	if err != nil {
		p.Warnings = append(p.Warnings, fmt.Sprintf("it is judged alone: %v", err))
		return
	}
	p.Base = &c.name
	ledger.SetVerdict(&p.Process, v)
}

// oneLine makes one line of joined errors.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", ", ") }
