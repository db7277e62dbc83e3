package response

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

// series holds the dumps that were taken at marks during one life of a process.
type series struct {
	process capture.Process
	device  string
	growth  *analysis.GrowthSeries
	dumps   int
	// t is the time of the latest dump, in seconds since the start of the run.
	t float64
}

// toldPlaces is the maximum number of growing places in a record.
const toldPlaces = 10

// addToSeries compares a dump that was taken at a mark with the dumps at
// earlier marks. Dumps from before a restart of the process are not compared.
func (r *Responder) addToSeries(ctx context.Context, c *Case, file string) {
	at := place{c.Record.Device, c.Process.Key()}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.series[at]
	if s != nil && !s.process.Same(c.Process) {
		if err := r.keepGrowth(s); err != nil {
			c.warn(err)
		}
		s = nil
	}
	if s == nil {
		s = &series{process: c.Process, device: c.Record.Device, growth: analysis.NewGrowthSeries(1)}
		r.series[at] = s
	}
	d, err := r.openDump(ctx, c.folder, file)
	if err == nil {
		options := r.heapOptions()
		options.Cut = d.cut
		err = s.growth.Add(ctx, r.keptName(c, file), d, d.size, options)
		err = errors.Join(err, d.Close())
	}
	if err != nil {
		c.warn(fmt.Errorf("compare %s with the dumps at earlier marks: %w", unpacked(file), err))
		return
	}
	s.dumps, s.t = s.dumps+1, c.T
}

// keptName returns the name under which a dump is kept or, if the dump is not
// kept, the name of its folder.
func (r *Responder) keptName(c *Case, file string) string {
	if r.options.Keep == Nothing {
		return c.Record.Folder
	}
	return c.Record.Folder + "/" + packed(file)
}

// Growth returns a diagnosis for each life of a process with at least two dumps
// at marks: what grew from each dump to the next. It must be called after all
// cases are analyzed.
func (r *Responder) Growth() ([]record.Diagnosis, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, at := range slices.SortedFunc(maps.Keys(r.series), place.compare) {
		errs = append(errs, r.keepGrowth(r.series[at]))
	}
	out := r.grown
	r.series, r.grown = map[place]*series{}, nil
	return out, errors.Join(errs...)
}

func (p place) compare(q place) int {
	return cmp.Or(strings.Compare(p.device, q.device), strings.Compare(p.key.Name, q.key.Name),
		cmp.Compare(p.key.User, q.key.User))
}

// keepGrowth adds the growth of a series to the results, if the series has at
// least two dumps. The caller then drops the series, because it uses a lot of
// memory.
func (r *Responder) keepGrowth(s *series) error {
	if s.dumps < 2 {
		return nil
	}
	d, err := r.writeGrowth(s)
	if err == nil {
		r.grown = append(r.grown, d)
	}
	return err
}

func (r *Responder) writeGrowth(s *series) (record.Diagnosis, error) {
	began := time.Now()
	report := s.growth.Report(topClasses)
	dir, err := r.newFolder(Order{Process: s.process, Recipe: "growth"})
	if err != nil {
		return record.Diagnosis{}, err
	}
	c := &Case{Order: Order{Process: s.process}, folder: dir, Record: record.Diagnosis{
		Device: s.device, User: s.process.User, Process: s.process.Key().Name, PID: s.process.PID, T: s.t,
		Trigger: record.TriggerMarks, Recipe: "growth", Folder: dir.name, Outcome: record.DiagnosisComplete,
		Keep: string(r.options.Keep), Analyzed: true,
		Steps: []record.Collected{}, Findings: growing(report), Warnings: []string{},
	}}
	for _, text := range report.Warnings {
		c.warnText(text)
	}
	lines := textLines(reporters.WriteGrowth, report)
	c.Record.Summary = bounded(
		append([]string{
			fmt.Sprintf("%d dumps at marks: %s in every one of them", s.dumps,
				text.Count(report.Found, "place grew", "places grew")),
		}, lines...))
	encoded, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return c.Record, fmt.Errorf("encode growth.json: %w", err)
	}
	if err := record.WriteFileAtomic(dir.in("growth.json"), append(encoded, '\n')); err != nil {
		return c.Record, err
	}
	if err := dir.text("summary.txt", lines); err != nil {
		return c.Record, err
	}
	c.Record.Analysis = seconds(time.Since(began))
	c.fit()
	return c.Record, c.write()
}

func growing(r *analysis.Growth) []record.Finding {
	out := []record.Finding{}
	for i := range r.Growth[:min(len(r.Growth), toldPlaces)] {
		f := reporters.PlaceFinding(&r.Growth[i])
		f.Trace = head(f.Trace, "growth.json")
		out = append(out, f)
	}
	return out
}
