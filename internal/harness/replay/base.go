package replay

import (
	"fmt"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// comparison holds the bases with which processes and apps are compared. A nil
// comparison compares nothing.
type comparison struct {
	bases []*base
}

// base is one recording of an earlier run.
type base struct {
	name string
	// processes and apps hold the detectors of the series that have samples.
	processes, apps series
}

// series finds detectors by device, user and name. If there is none for the
// device, it returns the first detector with that name.
type series struct {
	exact map[key]*detector.Detector
	named map[string]*detector.Detector
}

func newSeries() series {
	return series{map[key]*detector.Detector{}, map[string]*detector.Detector{}}
}

func (s *series) add(k key, d *detector.Detector) {
	if s.exact[k] == nil {
		s.exact[k] = d
	}
	if s.named[k.process] == nil {
		s.named[k.process] = d
	}
}

func (s *series) find(k key) *detector.Detector {
	if d := s.exact[k]; d != nil {
		return d
	}
	return s.named[k.process]
}

func newComparison(recordings []*recording) *comparison {
	if len(recordings) == 0 {
		return nil
	}
	c := &comparison{}
	for _, r := range recordings {
		b := &base{name: r.name, processes: newSeries(), apps: newSeries()}
		for _, x := range r.subjects {
			if x.account.Samples > 0 {
				b.processes.add(x.key, x.account.Detector)
			}
		}
		for _, x := range r.apps {
			if x.Judged() {
				b.apps.add(x.key, x.Detector)
			}
		}
		c.bases = append(c.bases, b)
	}
	return c
}

// of returns the names and detectors of the bases that contain a series, and
// warnings about the other bases. what describes the series in the warnings.
func (c *comparison) of(k key, in func(*base) *series, what string) (names []string, of []*detector.Detector,
	warnings []string) {
	var without []string
	for _, b := range c.bases {
		if d := in(b).find(k); d != nil {
			names, of = append(names, b.name), append(of, d)
		} else {
			without = append(without, b.name)
		}
	}
	switch {
	case len(of) == 0 && len(c.bases) > 1:
		return nil, nil,
			[]string{
				fmt.Sprintf("none of %s has %s; no comparison was made",
					text.Count(len(c.bases), "base recording", "base recordings"), what),
			}
	case len(of) == 0:
		return nil, nil, []string{fmt.Sprintf("%s does not have %s; no comparison was made", without[0], what)}
	}
	for _, name := range without {
		warnings = append(warnings,
			fmt.Sprintf("%s does not have %s; the comparison ignores this recording", name, what))
	}
	return names, of, warnings
}

// judge replaces the verdict on a process with a verdict on its difference from
// the bases that contain the process.
func (c *comparison) judge(p *record.ReplayProcess, s *subject) {
	if c == nil {
		return
	}
	names, of, warnings := c.of(s.key, func(b *base) *series { return &b.processes }, "a process of this name")
	p.Warnings = append(p.Warnings, warnings...)
	if len(of) == 0 {
		return
	}
	v, err := s.account.Detector.CompareTo(of...)
	if err != nil {
		p.Warnings = append(p.Warnings, fmt.Sprintf("no comparison was made: %v", err))
		return
	}
	p.Base, p.Bases = only(names), names
	ledger.SetVerdict(&p.Process, v)
}

// judgeApp is like judge, for the sum of all processes of an app.
func (c *comparison) judgeApp(p *record.ReplayApp, x *app) {
	if c == nil || !x.Judged() {
		return
	}
	names, of, warnings := c.of(x.key, func(b *base) *series { return &b.apps },
		"two processes of this app at the same time")
	p.Warnings = append(p.Warnings, warnings...)
	if len(of) == 0 {
		return
	}
	v, err := x.Detector.CompareTo(of...)
	if err != nil {
		p.Warnings = append(p.Warnings, fmt.Sprintf("no comparison was made: %v", err))
		return
	}
	p.Base, p.Bases = only(names), names
	verdict := p.Verdict()
	ledger.SetVerdict(&verdict, v)
	p.SetVerdict(verdict)
	x.Explain(&p.AppVerdict)
}

// only returns the element of a list that has exactly one element; for any
// other list, it returns nil.
func only(names []string) *string {
	if len(names) != 1 {
		return nil
	}
	return &names[0]
}
