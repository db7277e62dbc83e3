package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// androidRuns is the minimum number of measurements of a small dump, because a
// single run of a hundredth of a second is not reliable.
const androidRuns = 10

// plan describes what is measured; after carryOut it also contains the figures.
type plan struct {
	rounds int
	dumps  []*dump
	tools  []*tool
	jobs   []*job
	// scale holds the names of the dumps that show how the cost per object
	// grows.
	scale []string
	// noAndroid is the reason why there are no Android dumps, or "" if there
	// are such dumps.
	noAndroid string
}

// job is one row of the tables: the runs of a tool on a dump.
type job struct {
	dump    *dump
	tool    *tool
	figures []figure
	// failed is the error of the run that failed, or "" if no run has failed.
	failed string
}

func (j *job) name() string { return j.dump.name + " " + j.tool.name }

// newPlan returns all selected rows, in the order of the page.
func newPlan(o options) *plan {
	p := &plan{rounds: o.rounds, tools: allTools()}
	if o.small {
		p.made(o, "0.1M", 100_000, ours)
		p.made(o, "0.35M", 350_000, ours, reading, tracing, growing, analyzer, slurp)
	} else {
		p.made(o, "1M", 1_000_000, ours)
		p.made(o, "4M", 4_000_000, ours)
		p.made(o, "mid", 9_370_000, ours, reading, tracing, growing, analyzer, slurp)
		p.made(o, "18M", 18_000_000, ours)
		p.made(o, "big", 36_500_000, ours, reading, tracing, analyzer, slurp)
	}
	recorded, err := androidDumps(o.testdata)
	if err != nil {
		p.noAndroid = err.Error()
	}
	for _, d := range recorded {
		p.add(o, d, ours, slurp, shark)
	}
	return p
}

// made adds a dump that is generated here to the plan.
func (p *plan) made(o options, name string, objects int64, tools ...string) {
	p.scale = append(p.scale, name)
	p.add(o, &dump{name: name, asked: objects}, tools...)
}

func (p *plan) add(o options, d *dump, tools ...string) {
	p.dumps = append(p.dumps, d)
	for _, name := range tools {
		j := &job{dump: d, tool: p.tool(name)}
		if o.only == nil || o.only.MatchString(j.name()) {
			p.jobs = append(p.jobs, j)
		}
	}
}

func (p *plan) tool(name string) *tool {
	i := slices.IndexFunc(p.tools, func(t *tool) bool { return t.name == name })
	return p.tools[i]
}

// job returns the row of a tool on a dump, or nil if it is not planned.
func (p *plan) job(dump, tool string) *job {
	for _, j := range p.jobs {
		if j.dump.name == dump && j.tool.name == tool {
			return j
		}
	}
	return nil
}

// carryOut prepares the dumps and tools, and measures. If a peer or a dump is
// missing, the reason is recorded; an error means that nothing can be measured.
func (p *plan) carryOut(ctx context.Context, o options, log io.Writer) error {
	c := cache(o.cache)
	scratch, err := c.scratch()
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	for _, t := range p.tools {
		if !p.uses(func(j *job) bool { return j.tool == t }) {
			continue
		}
		err := t.get(ctx, c, o, log)
		if err != nil && (t.name == ours || t.name == reading) {
			return err
		}
		if err != nil {
			t.missing = err.Error()
			fmt.Fprintf(log, "heapbench: skipped: %s: %v\n", t.name, err)
		}
	}
	for _, d := range p.dumps {
		if d.asked == 0 || !p.uses(func(j *job) bool { return j.dump == d }) {
			continue
		}
		if err := d.get(ctx, c, log); err != nil {
			d.missing = err.Error()
			fmt.Fprintf(log, "heapbench: skipped: dump %s: %v\n", d.name, err)
		}
	}
	for round := range p.rounds {
		for _, d := range p.dumps {
			if err := p.measure(ctx, round, d, scratch, log); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *plan) uses(which func(*job) bool) bool { return slices.ContainsFunc(p.jobs, which) }

// measure runs every tool on a dump, in turn. Every second round uses the
// reverse order, because the state of the machine changes during a round.
func (p *plan) measure(ctx context.Context, round int, d *dump, scratch string, log io.Writer) error {
	var jobs []*job
	for _, j := range p.jobs {
		if j.dump == d && d.missing == "" && j.tool.missing == "" {
			jobs = append(jobs, j)
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	if round%2 == 1 {
		slices.Reverse(jobs)
	}
	if err := d.warm(); err != nil {
		return err
	}
	for range d.repeats(p.rounds) {
		for _, j := range jobs {
			// A tool that failed once would probably fail again, possibly after
			// many minutes.
			if j.failed == "" {
				j.run(ctx, scratch)
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	for _, j := range jobs {
		fmt.Fprintf(log, "heapbench: round %d: %-28s %s\n", round+1, j.name(), j.last())
	}
	return nil
}

// repeats returns how many times in a row a dump is measured in each round, for
// the given number of rounds.
func (d *dump) repeats(rounds int) int {
	if d.asked > 0 {
		return 1
	}
	return (androidRuns + rounds - 1) / rounds
}

// run measures one run of a tool and adds the figure to its row.
func (j *job) run(ctx context.Context, scratch string) {
	phases := filepath.Join(scratch, "phases.json")
	f, err := j.tool.command(j.dump, scratch, phases).measure(ctx)
	if err != nil {
		j.failed = err.Error()
		return
	}
	f.phases = takePhases(phases)
	j.figures = append(j.figures, f)
}

// last describes the result of the latest run.
func (j *job) last() string {
	if j.failed != "" {
		return j.failed
	}
	f := j.figures[len(j.figures)-1]
	return fmt.Sprintf("%s s, %s MB", seconds(f.wall), megabytes(f.peak))
}
