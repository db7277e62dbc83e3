package gatecalibrate

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/harness/gate"
)

var (
	full  = flag.Bool("calibrate", false, "run the full calibration instead of a few runs")
	write = flag.String("write", "", "write the tables between the markers of `page`")
	raw   = flag.String("raw", "", "write one line per pair to `file`")
	seed  = flag.Uint64("seed", 1000, "`number` before the seed of the first run")
)

// The gate passes runs of one build, and reports leaks that are worse in
// another build.
func TestCalibration(t *testing.T) {
	p := plan{seed: *seed}
	if *full {
		for _, c := range cells() {
			p.add(c, sizeOf(c))
		}
	} else {
		p.add(cell{program: shop}, size{usual: 4, changed: 1})
	}
	carryOut(t, p.trials)
	for _, x := range p.pairs {
		x.judge()
		switch {
		case x.head.change == nothing && x.failed:
			t.Logf("failed: %s: %s", x.name(), x.text)
		case x.head.change != nothing && !x.reported && !x.head.monkey:
			t.Logf("not reported: %s: %s", x.name(), x.text)
		}
	}
	tables := map[string]string{"unchanged": unchanged(p.pairs), "base": byBase(p.pairs), "changed": changed(p.pairs)}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		t.Logf("%s:\n%s", name, tables[name])
	}
	for _, m := range missed(p.pairs) {
		t.Error(m)
	}
	keep(t, p.pairs, tables)
}

// Each loop of a program leaks the objects that its source declares.
func TestCounts(t *testing.T) {
	trials := []*trial{{cell: cell{program: chat}, seed: 1}, {cell: cell{program: phone}, seed: 2}}
	carryOut(t, trials)
	for _, r := range trials {
		want := map[string][]int64{chat: {3, 6, 9, 12}, phone: {2, 4, 6, 8}}[r.program]
		o := r.shown.Processes[0]
		found := slices.ContainsFunc(o.Places, func(p gate.Place) bool {
			return simple(p.Class) == changedClass(r) && slices.Equal(p.Counts, want)
		})
		if !found || !o.Heap.Settled || !slices.Equal(o.Heap.Exposure, []float64{1, 2, 3, 4}) {
			t.Errorf("%s: no %v of %s in %+v", r.name(), want, changedClass(r), r.shown)
		}
	}
}

// keep writes the files that flags request.
func keep(t *testing.T, pairs []*pair, tables map[string]string) {
	t.Helper()
	if *raw != "" {
		var out strings.Builder
		out.WriteString(rowHead)
		for _, p := range pairs {
			out.WriteString(p.row())
		}
		if err := os.WriteFile(*raw, []byte(out.String()), 0o644); err != nil {
			t.Error(err)
		}
	}
	if *write == "" {
		return
	}
	page, err := os.ReadFile(*write)
	for name, text := range tables {
		if err == nil {
			page, err = replace(page, name, text)
		}
	}
	if err == nil {
		err = os.WriteFile(*write, page, 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}
