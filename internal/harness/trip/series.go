package trip

import (
	"maps"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/reporters/record"
)

// series holds the readings of a trip, measure by measure.
type series struct {
	// loops holds, for each reading, the number of loops before it.
	loops    []float64
	readings []Measured
}

func (s *series) add(loops int, r Measured) {
	s.loops, s.readings = append(s.loops, float64(loops)), append(s.readings, r)
}

// measure is a quantity with its values in all readings; a value is nil if the
// reading does not contain the quantity.
type measure struct {
	name   string
	rule   rule
	values []*float64
}

// dimensions lists the measures of memory, each with its usual noise in kB.
var dimensions = []struct {
	name string
	rule rule
	of   func(*Measured) *int64
}{
	{"java_heap", inJava(memory(400)), func(r *Measured) *int64 { return r.Breakdown.JavaHeap }},
	{"native_heap", memory(150), func(r *Measured) *int64 { return r.Breakdown.NativeHeap }},
	{"code", memory(150), func(r *Measured) *int64 { return r.Breakdown.Code }},
	{"stack", memory(150), func(r *Measured) *int64 { return r.Breakdown.Stack }},
	{"graphics", memory(300), func(r *Measured) *int64 { return graphics(&r.Breakdown) }},
	{"private_other", memory(200), func(r *Measured) *int64 { return r.Breakdown.PrivateOther }},
	// Shared memory is divided by the number of processes that share it, so the
	// total changes by megabytes when another process starts or ends.
	{"total_pss", shownOnly(memory(400)), func(r *Measured) *int64 { return r.PSS }},
	{"threads", pooled, func(r *Measured) *int64 { return r.Threads }},
	{"files", pooled, func(r *Measured) *int64 { return r.Files }},
}

// graphics returns the graphics memory. Graphics of the App Summary is the sum
// of Gfx dev, EGL mtrack and GL mtrack
// (android.app.ActivityThread.dumpMemInfoTable,
// Debug.MemoryInfo.getSummaryGraphics). Without a summary, the known values are
// added up; the result is nil if neither EGL mtrack nor GL mtrack is known.
func graphics(b *record.Breakdown) *int64 {
	if b.Graphics != nil || b.EGL == nil && b.GL == nil {
		return b.Graphics
	}
	sum := int64(0)
	for _, n := range []*int64{b.EGL, b.GL, b.GfxDev} {
		if n != nil {
			sum += *n
		}
	}
	return &sum
}

// screenCounts lists the object counts of dumpsys meminfo that rise with each
// open screen and are not affected by pools.
var screenCounts = []string{"Activities", "ViewRootImpl", "AppContexts", "WebViews"}

// maxObjects is the maximum number of object names that are judged, because a
// device may print any number of names.
const maxObjects = 30

// measures returns the measures that at least one reading contains.
func (s *series) measures() []measure {
	var out []measure
	for _, d := range dimensions {
		m := measure{name: d.name, rule: d.rule}
		for i := range s.readings {
			m.values = append(m.values, number(d.of(&s.readings[i])))
		}
		out = append(out, m)
	}
	for _, name := range s.objectNames() {
		m := measure{name: name, rule: objectRule(name)}
		for i := range s.readings {
			var v *float64
			if n, ok := s.readings[i].Objects[name]; ok {
				v = number(&n)
			}
			m.values = append(m.values, v)
		}
		out = append(out, m)
	}
	return slices.DeleteFunc(out,
		func(m measure) bool { return !slices.ContainsFunc(m.values, func(v *float64) bool { return v != nil }) })
}

func number(n *int64) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}

func objectRule(name string) rule {
	switch {
	case slices.Contains(screenCounts, name):
		return screens
	case name == "Views":
		return inJava(pooled)
	}
	return pooled
}

// objectNames returns the names of the counts in the readings, in an order that
// does not depend on the order of the readings. Sizes in the readings, such as
// "Parcel memory" in kB, are not counts.
func (s *series) objectNames() []string {
	names := map[string]bool{}
	for _, r := range s.readings {
		for name := range r.Objects {
			if !strings.Contains(strings.ToLower(name), "memory") {
				names[name] = true
			}
		}
	}
	sorted := slices.Sorted(maps.Keys(names))
	slices.SortStableFunc(sorted, func(a, b string) int { return rank(a) - rank(b) })
	return sorted[:min(len(sorted), maxObjects)]
}

// rank returns a sort key that puts the counts of screens first.
func rank(name string) int {
	if i := slices.Index(screenCounts, name); i >= 0 {
		return i
	}
	return len(screenCounts)
}

// known returns the readings that contain the measure.
func (s *series) known(m *measure) (x, y []float64) {
	for i, v := range m.values {
		if v != nil {
			x, y = append(x, s.loops[i]), append(y, *v)
		}
	}
	return x, y
}

// maxSwapped is the smallest growth of swap, in kB, that is reported:
// swapped-out memory is not part of any dimension.
const maxSwapped = 512

// swapped returns by how much swap grew, or 0 if the growth is small or
// unknown.
func (s *series) swapped() int64 {
	if len(s.readings) < 2 {
		return 0
	}
	first, last := s.readings[0].Breakdown.SwapPSS, s.readings[len(s.readings)-1].Breakdown.SwapPSS
	if first == nil || last == nil || *last-*first < maxSwapped {
		return 0
	}
	return *last - *first
}
