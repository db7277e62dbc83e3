package trip

import (
	"context"
	"errors"
	"fmt"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/growth"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

// heaps compares the heap dumps of a trip.
type heaps struct {
	// loops is the number of loops between two dumps.
	loops  int
	series *analysis.GrowthSeries
	// taken is the total number of dumps; compared is the number of dumps in
	// the current series. again reports whether this is the second series.
	taken, compared int
	again           bool
	report          *analysis.Growth
	// failure is the reason why the heap cannot be dumped.
	failure string
}

// firstDumps is the number of dumps after which dumping stops if nothing grows
// in the heap.
const firstDumps = 2

// maxPlaces is the maximum number of places in a result; maxSteps is the
// maximum number of steps that are kept at the end of a path.
const (
	maxPlaces = 10
	maxSteps  = 30
	maxStep   = 300
)

// wanted reports whether to dump the heap now. If nothing grew in the first
// dumps but Java memory still grows, a second series begins unless this is the
// last reading. A new series is needed because growth is found only in places
// that have grown in each dump of a series.
func (h *heaps) wanted(rises, last bool) bool {
	switch {
	case h.failure != "":
		return false
	case h.compared < firstDumps || h.report.Found > 0:
		return true
	}
	return rises && !last && !h.again
}

// add reads a dump. It returns an error only if the context is done.
func (h *heaps) add(ctx context.Context, d *Dump) error {
	if h.flat() {
		h.series, h.compared, h.again = nil, 0, true
	}
	if h.series == nil {
		h.series = analysis.NewGrowthSeries(h.loops)
	}
	err := h.series.Add(ctx, d.Name, d, d.Size, d.Options)
	if d.Close != nil {
		err = errors.Join(err, d.Close())
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		h.failure = "compare heap dumps: " + text.Head(err.Error(), maxStep)
		return nil
	}
	h.taken, h.compared = h.taken+1, h.compared+1
	h.report = h.series.Report(maxPlaces)
	return nil
}

// flat reports whether nothing grew in the dumps of the current series.
func (h *heaps) flat() bool {
	return h.failure == "" && h.compared >= firstDumps && h.report.Found == 0
}

// verdict judges the growing places. growing lists the places whose growth does
// not slow down.
func (h *heaps) verdict() (v record.CheckVerdict, growing []*growth.Place, reason string) {
	switch {
	case h.failure != "":
		return record.VerdictInconclusive, nil, h.failure
	case h.compared < firstDumps && !h.again:
		return record.VerdictInconclusive, nil, fmt.Sprintf("%s; want 2 or more",
			text.Count(h.compared, "heap dump", "heap dumps"))
	case h.report.Found == 0:
		return record.VerdictPass, nil, fmt.Sprintf("no place grows in %d heap dumps", h.taken)
	}
	var doubt string
	settling := 0
	for i := range h.report.Growth {
		p := &h.report.Growth[i]
		switch increments := increments(p); {
		case h.compared <= firstDumps:
			doubt = "grew between 2 heap dumps; needs more loops to distinguish a leak from a filling cache"
			growing = append(growing, p)
		case p.Stepwise:
			doubt = "a buffer grows in steps"
		case slower(increments, settled):
			settling++
		case slower(increments, slowing):
			doubt = "growth slows, like a filling cache"
		default:
			v, growing = record.VerdictLeak, append(growing, p)
		}
	}
	switch {
	case v == record.VerdictLeak:
		more := ""
		if n := h.report.Found - len(growing); n > 0 {
			more = fmt.Sprintf("; %s",
				text.Count(n, "other place may be a cache that is still filling",
					"other places may be caches that are still filling"))
		}
		return v, growing, fmt.Sprintf("%s in each of %d heap dumps%s",
			text.Count(len(growing), "place grows", "places grow"), h.compared, more)
	case doubt != "":
		return record.VerdictInconclusive, growing, doubt
	}
	return record.VerdictPass, nil, fmt.Sprintf("%s up and settled",
		text.Count(settling, "place filled", "places filled"))
}

// increments returns the differences between each dump and the previous one, in
// objects, or in bytes if the objects become larger rather than more numerous.
func increments(p *growth.Place) []int64 {
	if !p.Larger {
		return p.Increments
	}
	var out []int64
	for i := 1; i < len(p.RetainedBytes); i++ {
		out = append(out, p.RetainedBytes[i]-p.RetainedBytes[i-1])
	}
	return out
}

// slower reports whether the last increment is less than the given share of the
// first.
func slower(list []int64, share float64) bool {
	return len(list) > 1 && float64(list[len(list)-1]) < share*float64(list[0])
}

// perLoop returns the number of objects that all growing places gain per loop.
func perLoop(list []*growth.Place) float64 {
	sum := 0.0
	for _, p := range list {
		sum += p.PerLoop
	}
	return sum
}

// findings returns the places of a result, each with the last steps of its
// path.
func findings(list []*growth.Place) []record.Finding {
	out := []record.Finding{}
	for _, p := range list {
		f := reporters.PlaceFinding(p)
		if skipped := len(f.Trace) - maxSteps; skipped > 0 {
			f.Trace = append([]string{fmt.Sprintf("... %s", text.Count(skipped, "step", "steps"))},
				f.Trace[skipped:]...)
		}
		out = append(out, f)
	}
	return out
}
