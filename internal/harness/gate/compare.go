package gate

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/harness/check"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// fewestBase is the number of base runs below which only a new leak can
	// fail. One or two runs do not show how much the results vary.
	fewestBase = 3
	// alpha is the probability of reporting an unchanged count as grown,
	// divided among the leaks of a comparison (Bonferroni).
	alpha = 0.001
	// A count or a size is worse only if it exceeds factor times the value of
	// every base run.
	factor = 1.25
	// floorBytes is the minimum number of additional bytes that all objects of
	// a leak together must retain for the leak to count as heavier.
	floorBytes = 512 << 10
	// staticBytes is the minimum number of bytes that a leak must retain to
	// count as new if it does not grow.
	staticBytes = 1 << 20
	// If all base runs left the same number of objects per loop, scriptStep is
	// the minimum number of additional objects per loop that fails the gate.
	scriptStep = 0.5
	// returned is the minimum number of newest base runs that must lack a leak
	// before it counts as new again.
	returned = 3
	// rare is the maximum probability that the newest base runs lack a leak by
	// chance. If the probability is higher, the leak does not count as new
	// again.
	rare = 0.025
)

// pair is one process in the judged run (head) and in the base runs.
type pair struct {
	in   *Input
	obs  *Observation
	head *Observed
	base []baseRun
	// loads reports whether any base run has loaded a class; headLoads reports
	// whether head has.
	loads, headLoads func(string) bool
	// absent is the number of base runs if the process is in none of them, and
	// 0 otherwise.
	absent int
	// pinned pairs the process with the same process in the runs of the pinned
	// release. In the pair for the pinned release, pinned is nil.
	pinned *pair
	// compared is the number of leaks among which alpha is divided.
	compared int
	rows     []row
}

// row is a row of the comparison that also records whether its leak is proved.
type row struct {
	comparison.Row
	// proved means that the leak has more objects at every mark, or that a
	// check found it.
	proved bool
}

// baseRun is one process in one base run.
type baseRun struct {
	*Observed
	of *Observation
}

// newPair pairs a process of the run with the same process in the base runs,
// which are ordered newest first.
func newPair(in *Input, obs *Observation, head *Observed, base []Observation) *pair {
	p := &pair{in: in, obs: obs, head: head}
	var sets []ClassSet
	for i := range base {
		if o := base[i].find(head.Process); o != nil {
			p.base = append(p.base, baseRun{o, &base[i]})
			sets = append(sets, o.Loaded)
		}
	}
	if len(p.base) == 0 {
		p.absent = CountRuns(base)
	}
	p.loads, p.headLoads = has(sets...), has(head.Loaded)
	return p
}

// runsOf is CountRuns for one process in several observations.
func runsOf(list []baseRun) int {
	return countRuns(len(list), func(i int) *Observation { return list[i].of })
}

// uncompared reports whether there are too few base runs for anything to count
// against the process.
func (p *pair) uncompared() bool { return len(p.base) == 0 && p.absent < fewestBase }

// compare returns the rows of the process.
func (p *pair) compare() []row {
	met := map[string]bool{}
	from := p.movedFrom()
	for i := range p.head.Places {
		if place := &p.head.Places[i]; !place.Library {
			p.compared++
		}
	}
	for i := range p.head.Places {
		place := &p.head.Places[i]
		met[place.Type+place.Key] = true
		if source := from[place.Key]; source != "" && place.Type == TypeLeak {
			met[place.Type+source] = true
		}
		// Native memory varies by itself, so it has a row only if it is larger
		// than in the base.
		if r := p.place(place, from[place.Key]); place.Type != TypeNative && place.Type != TypeGraphics ||
			r.Status != comparison.Known && r.Status != comparison.Shrunk {
			p.rows = append(p.rows, r)
		}
	}
	p.gone(met)
	p.measures()
	p.trend()
	return p.rows
}

// comparable reports whether the leaks in the dumps can be found again in the
// base.
func (p *pair) comparable() bool {
	return sourceNames(p.head.Names) &&
		(len(p.base) == 0 || slices.ContainsFunc(p.base, func(b baseRun) bool { return sourceNames(b.Names) }))
}

func sourceNames(names string) bool { return names == "" || names == "source" || names == "mapping" }

// withSeries returns the base runs in which places of the given type were
// counted in a comparable way: in the same unit, by names that are not
// obfuscated, and often enough. A run with fewer dumps than a verdict needs may
// miss a leak. Checks that find nothing take no dump.
func (p *pair) withSeries(what string) []baseRun {
	lives := p.head.series(what).SeparateLives
	return slices.DeleteFunc(slices.Clone(p.base), func(b baseRun) bool {
		s := b.series(what)
		return len(s.Exposure) == 0 && !(what == TypeLeak && b.Checked) || s.SeparateLives != lives ||
			b.of.Unit != p.obs.Unit || what == TypeLeak &&
			(!sourceNames(b.Names) || p.head.Heap.enough() && !b.Heap.enough())
	})
}

// compares reports whether anything in the process, its leaks or its memory
// trend, is compared with a base run.
func (p *pair) compares() bool {
	if p.head.Trend.decided() && slices.ContainsFunc(p.base, func(b baseRun) bool { return b.Trend.decided() }) {
		return true
	}
	if slices.ContainsFunc(p.base, func(b baseRun) bool { return len(b.Measures) > 0 }) && len(p.head.Measures) > 0 {
		return true
	}
	counted := len(p.head.Heap.Exposure) > 0 || p.head.Checked
	return p.absent >= fewestBase || counted && p.comparable() && len(p.withSeries(TypeLeak)) > 0
}

// place returns the row for one place in head, compared with the base.
func (p *pair) place(h *Place, movedFrom string) row {
	key := h.Key
	if movedFrom != "" && h.Type == TypeLeak {
		key = movedFrom
	}
	base := p.withSeries(h.Type)
	c := &contrast{pair: p, head: h, key: key, base: base, series: p.head.series(h.Type)}
	c.measure()
	r := p.describe(h)
	r.Unit = p.unit(c.series)
	c.fill(&r)
	r.Status, r.StatusReason = c.status(movedFrom != "")
	if h.Type == TypeLeak && (movedFrom != "" || r.Status == comparison.Moved) {
		r.MovedFrom = movedFrom
		if b := c.newest(); b != nil && b.leaking() != h.leaking() {
			r.MovedClass = b.leaking()
		}
	}
	r.Evidence = c.evidence()
	p.sight(&r, key)
	named := h
	if r.Status == comparison.Wider { // accepting one class does not accept other classes in the same place
		named = c.widening()
	}
	p.accept(&r, named)
	p.creep(&r, c)
	return row{r, h.Type == TypeLeak && !h.Library && (h.accumulates(c.series) || len(h.Checks) > 0)}
}

func (p *pair) unit(s Timeline) string {
	if s.exposure() == 0 {
		return UnitRun
	}
	return cmp.Or(p.obs.Unit, UnitLoop)
}

// describe returns a row with everything that is known about a place without a
// base.
func (p *pair) describe(h *Place) comparison.Row {
	r := comparison.Row{
		Device: p.obs.Device, Process: p.head.Process, Type: h.Type, Class: h.leaking(), Key: h.Key, HeldBy: h.HeldBy,
		Library:      h.Library,
		Fingerprints: append([]string{}, h.Fingerprints...), Counts: h.Counts, Bytes: h.Bytes,
	}
	_, r.HeadBytes = h.last()
	if t, ok := p.in.Traces[TraceKey{p.obs.Device, p.head.Process, h.Key}]; ok {
		r.Trace, r.Suspects = t.Lines, t.Suspects
		r.HeldBy = cmp.Or(r.HeldBy, t.HeldBy)
	}
	return r
}

// contrast is one place in head and in the base runs.
type contrast struct {
	*pair
	head   *Place
	key    string
	base   []baseRun
	series Timeline

	// has is the list of the base runs that contain the place.
	has []baseRun
	// rates lists the measures of those base runs whose measure is known.
	// ratedRuns is the number of runs with a measure, and sized is the number
	// of runs with a size.
	rates            []measure
	ratedRuns, sized int
	rate             measure
	rated            bool
	// common is the number of loops after which the sizes are compared. each[i]
	// is the size of one object in a base run; the largest comes first.
	common   float64
	each     []float64
	headEach float64
	eachOK   bool
}

func (c *contrast) measure() {
	c.rate, c.rated = measured(c.head, c.series)
	all := []Timeline{c.series}
	var withRate, withSize []baseRun
	for _, b := range c.base {
		s := b.series(c.head.Type)
		place := b.place(c.head.Type, c.key)
		if m, ok := measured(place, s); ok {
			c.rates = append(c.rates, m)
			withRate = append(withRate, b)
		}
		if place != nil {
			c.has = append(c.has, b)
			all = append(all, s)
		}
	}
	c.common = commonExposure(all...)
	c.headEach, c.eachOK = c.head.each(c.series, c.common)
	for _, b := range c.has {
		if each, ok := b.place(c.head.Type, c.key).each(b.series(c.head.Type), c.common); ok {
			c.each = append(c.each, each)
			withSize = append(withSize, b)
		}
	}
	c.ratedRuns, c.sized = runsOf(withRate), runsOf(withSize)
	slices.SortFunc(c.each, func(a, b float64) int { return cmp.Compare(b, a) })
}

// newest returns the place in the newest base run that contains it.
func (c *contrast) newest() *Place {
	if len(c.has) == 0 {
		return nil
	}
	return c.has[0].place(c.head.Type, c.key)
}

// fill sets the numbers in a row.
func (c *contrast) fill(row *comparison.Row) {
	if c.rated {
		row.PerLoop.Head = new(rounded(c.rate.rate()))
	}
	if len(c.rates) > 0 {
		added, loops := pooled(c.rates)
		row.PerLoop.Base = new(rounded(float64(added) / loops))
	}
	if c.head.Type != TypeLeak {
		row.Classes = classCounts(c.newest(), c.head)
		if b := c.newest(); b != nil {
			_, row.BaseBytes = b.last()
		}
		return
	}
	if c.eachOK {
		row.BytesEach.Head = new(math.Round(c.headEach))
	}
	if n := len(c.each); n > 0 {
		row.BytesEach.Base = new(math.Round(c.each[n/2]))
	}
	if b := c.newest(); b != nil {
		_, row.BaseBytes = b.last()
	}
	row.Classes = classCounts(c.newest(), c.head)
}

func rounded(x float64) float64 { return record.Round(x, 4) }

func pooled(list []measure) (added int64, loops float64) {
	for _, m := range list {
		added, loops = added+m.added, loops+m.exposure
	}
	return added, loops
}

// mostClasses is the maximum number of classes in a row.
const mostClasses = 20

func classCounts(base, head *Place) []comparison.ClassCounts {
	all := map[string]*comparison.ClassCounts{}
	of := func(class string) *comparison.ClassCounts {
		if all[class] == nil {
			all[class] = &comparison.ClassCounts{Class: class}
		}
		return all[class]
	}
	for side, p := range []*Place{base, head} {
		if p == nil {
			continue
		}
		for class, counts := range p.Classes {
			if len(counts) == 0 || counts[len(counts)-1] == 0 {
				continue
			}
			if n := counts[len(counts)-1]; side == 0 {
				of(class).Base = n
			} else {
				of(class).Head = n
			}
		}
	}
	out := []comparison.ClassCounts{}
	for _, c := range all {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b comparison.ClassCounts) int {
		return cmp.Or(cmp.Compare(b.Head, a.Head), cmp.Compare(b.Base, a.Base), strings.Compare(a.Class, b.Class))
	})
	return out[:min(len(out), mostClasses)]
}

// status returns the result of comparing the place with the base, and the
// reason for it.
func (c *contrast) status(moved bool) (comparison.Status, string) {
	switch {
	case c.absent >= fewestBase:
		return c.unseen(fmt.Sprintf("none of %d base runs has this process", c.absent))
	case len(c.pair.base) == 0:
		return comparison.Present, "no earlier run has this process"
	case c.head.Type == TypeLeak && !c.comparable():
		return comparison.Present, "names are obfuscated: give each run its own app.mapping"
	case len(c.base) == 0:
		return comparison.Present, "no earlier run has a count of it"
	}
	if where := c.missingLately(); where != "" {
		return c.unseen(where)
	}
	if len(c.has) == 0 {
		return c.unseen("in " + noneOf(runsOf(c.base)))
	}
	if class, ok := c.widened(); ok {
		return comparison.Wider, fmt.Sprintf(
			"this reference also holds %s, which it does not hold in any base run", class)
	}
	if why, ok := c.grown(); ok {
		return comparison.Grown, why
	}
	if why, ok := c.heavier(); ok {
		return comparison.Heavier, why
	}
	if moved {
		return comparison.Moved, "something else holds the same objects"
	}
	if c.replaced() {
		return comparison.Moved, "the same reference holds another class"
	}
	if why, ok := c.shrunk(); ok {
		return comparison.Shrunk, why
	}
	return comparison.Known, c.uncertainty()
}

// missingLately describes which base runs contain a place, if the newest base
// runs lack the place and earlier runs contain it. In that case the leak was
// fixed and has returned in head. It returns "" if the place may be missing by
// chance.
func (c *contrast) missingLately() string {
	n := 0
	for n < len(c.base) && c.base[n].place(c.head.Type, c.key) == nil {
		n++
	}
	earlier, with := runsOf(c.base[n:]), runsOf(c.has)
	lacking := runsOf(c.base) - earlier
	switch {
	case lacking < returned || with == 0:
		return ""
	case with == earlier:
		return fmt.Sprintf("in none of the latest %d base runs, but in all earlier ones", lacking)
	case gapByChance(lacking, with, earlier) > rare:
		return ""
	}
	return fmt.Sprintf("in none of the latest %d base runs, but in %d of the %d earlier ones", lacking, with, earlier)
}

// gapByChance returns the probability that all later runs lack a leak although
// nothing has changed. The with parameter is the number of earlier runs that
// contain the leak. The share of runs that contain the leak is unknown; before
// the first run, all shares are equally likely (Laplace's rule of succession).
func gapByChance(later, with, earlier int) float64 {
	p := 1.0
	for i := range later {
		p *= float64(earlier-with+1+i) / float64(earlier+2+i)
	}
	return p
}

// unseen returns the status of a place that is missing from all base runs, or
// at least from the newest ones. The where parameter describes these runs.
func (c *contrast) unseen(where string) (comparison.Status, string) {
	h := c.head
	_, bytes := h.last()
	switch {
	case len(h.Checks) > 0:
		return comparison.New, where + ", and found by " + text.Count(len(h.Checks), "check", "checks")
	case h.Type != TypeLeak:
		return comparison.Transient, where + "; two counts do not show whether it keeps growing"
	case h.accumulates(c.series):
		return comparison.New, where + ", and grew at every mark"
	case h.stays(c.series) && bytes >= staticBytes:
		return comparison.New, where + ", and present at every mark"
	case h.stays(c.series) && !c.series.SeparateLives:
		return comparison.Transient, where + "; did not grow at every mark, and retains less than 1 MB"
	case !c.series.enough():
		return comparison.Transient, fmt.Sprintf("%s; %s cannot show whether it grows",
			where, text.Count(len(c.series.Exposure), "heap dump", "heap dumps"))
	}
	return comparison.Transient, where + "; did not grow at every mark"
}

func noneOf(n int) string {
	if n == 1 {
		return "no base run"
	}
	return fmt.Sprintf("none of %d base runs", n)
}

// widened returns the names of the classes whose objects accumulate at this
// place, but are not at this place in any base run. If a base run has loaded
// one of them, only that name is returned. It returns false if these classes
// may be classes of the base under new names.
func (c *contrast) widened() (string, bool) {
	var added []string
	for _, class := range slices.Sorted(maps.Keys(c.head.Classes)) {
		counts := c.head.Classes[class]
		in := &Place{Counts: counts}
		last, _ := in.last()
		// A leak that a check finds is proved by that check.
		if !in.accumulates(c.series) && (len(c.head.Checks) == 0 || last == 0) {
			continue
		}
		known := slices.ContainsFunc(c.has, func(b baseRun) bool {
			place := b.place(c.head.Type, c.key)
			// The classes of a place may be unknown, for example if the place
			// is from a LeakCanary report.
			return len(place.Classes) == 0 || len(place.Classes[class]) > 0
		})
		if !known && c.loads(class) {
			return class, true
		}
		if !known {
			added = append(added, class)
		}
	}
	return strings.Join(added, " or "), len(added) > c.renamed()
}

// widening returns the place with only those classes that are not at this place
// in any base run.
func (c *contrast) widening() *Place {
	out := *c.head
	out.Classes = maps.Clone(out.Classes)
	for _, b := range c.has {
		for class := range b.place(c.head.Type, c.key).Classes {
			delete(out.Classes, class)
		}
	}
	return &out
}

// renamed returns how many classes of this place may have a new name in head:
// those that the base has at this place and that head has not loaded. Each such
// class excuses one class that the base has not loaded.
func (c *contrast) renamed() (n int) {
	for old := range c.newest().Classes {
		if len(c.head.Classes[old]) == 0 && !c.headLoads(old) {
			n++
		}
	}
	return n
}

// replaced reports whether the leaking class may be a class of the base under a
// new name.
func (c *contrast) replaced() bool {
	before, now := c.newest(), c.head
	return c.pair.head.Loaded != "" && len(before.Classes) > 0 && len(now.Classes) > 0 &&
		before.leaking() != now.leaking() && !c.headLoads(before.leaking()) && !c.loads(now.leaking())
}

// grown reports whether each loop leaves more objects than in the base runs,
// and returns the reason. The number must be larger according to the exact
// conditional test of two Poisson rates (Przyborowski and Wilenski, Biometrika
// 31, 1940), and also a quarter larger than in every base run. If all base runs
// left the same number, an increase of half an object per loop suffices
// instead.
func (c *contrast) grown() (string, bool) {
	if !c.rated || len(c.rates) == 0 || c.rate.added <= 0 || c.head.Type == TypeLeak && !c.series.enough() {
		return "", false
	}
	most, same := 0.0, true
	for _, m := range c.rates {
		most = max(most, m.rate())
		same = same && m.even && m.rate() == c.rates[0].rate()
	}
	if same && most == 0 && c.obs.Unit == UnitLoop && c.head.accumulates(c.series) {
		return "grew at every mark, but did not grow in " + text.Count(c.ratedRuns, "base run", "base runs"), true
	}
	if c.ratedRuns < fewestBase {
		return "", false
	}
	if c.rate.steady <= most {
		return "", false
	}
	rates := fmt.Sprintf("%s per %s, at most %s in %d base runs", number(c.rate.rate()), c.unit(c.series), number(most),
		c.ratedRuns)
	if same && c.obs.Unit == UnitLoop && c.rate.rate() >= most+scriptStep && c.rate.steady > most+scriptStep/2 {
		return rates + ", all of which leaked the same number", true
	}
	if c.rate.rate() <= factor*most {
		return "", false
	}
	added, loops := pooled(c.rates)
	if added < 0 { // objects come and go: a run that lost some might just as well have gained some
		added = 0
		for _, m := range c.rates {
			added += max(m.added, -m.added)
		}
	}
	p := upperTail(c.rate.added, c.rate.added+added, c.rate.exposure/(c.rate.exposure+loops))
	if p >= alpha/float64(max(c.compared, 1)) || c.shifted() {
		return "", false
	}
	return fmt.Sprintf("%s (p = %.1g)", rates, p), true
}

// shifted reports whether other places have lost at least half as many objects
// of the same classes as this place has gained. The gained objects are then
// considered to be the lost ones, held by another reference. While an app is in
// use, for example, the queue of a pool holds objects that the pool has not
// processed yet.
func (c *contrast) shifted() bool {
	if c.head.Type != TypeLeak || c.series.SeparateLives || c.series.Settled {
		return false
	}
	elsewhere := func(o *Observed) (n int64) {
		for i := range o.Places {
			p := &o.Places[i]
			if p.Type != TypeLeak || p.Key == c.key || p.Key == c.head.Key {
				continue
			}
			for class, counts := range p.Classes {
				if len(c.head.Classes[class]) > 0 && len(counts) > 0 {
					n += counts[len(counts)-1] - counts[0]
				}
			}
		}
		return n
	}
	var here, others int64
	var loops float64
	for _, b := range c.base {
		if m, ok := measured(b.place(TypeLeak, c.key), b.Heap); ok {
			here, others, loops = here+m.added, others+elsewhere(b.Observed), loops+m.exposure
		}
	}
	usual := func(before int64) float64 { return float64(before) / loops * c.rate.exposure }
	return loops > 0 && usual(others)-float64(elsewhere(c.pair.head)) > (float64(c.rate.added)-usual(here))/2
}

func number(x float64) string {
	switch {
	case x == math.Trunc(x):
		return fmt.Sprintf("%.0f", x)
	case math.Abs(x) < 0.1:
		return fmt.Sprintf("%.2g", x)
	}
	return fmt.Sprintf("%.3g", x)
}

// heavier reports whether one object retains more memory than in every base
// run, and returns the reason.
func (c *contrast) heavier() (string, bool) {
	if c.sized < fewestBase || !c.eachOK || c.head.Type != TypeLeak {
		return "", false
	}
	count, _ := c.head.last()
	most := c.each[0]
	if c.headEach <= factor*most || (c.headEach-most)*float64(count) < floorBytes {
		return "", false
	}
	return fmt.Sprintf("%s each, at most %s in %d base runs", text.Size(int64(c.headEach)), text.Size(int64(most)),
		c.sized), true
}

// shrunk is the opposite of grown: it reports whether each loop leaves fewer
// objects than in the base runs, and returns the reason.
func (c *contrast) shrunk() (string, bool) {
	if !c.rated || c.ratedRuns < fewestBase {
		return "", false
	}
	least, same := math.Inf(1), true
	for _, m := range c.rates {
		least = min(least, m.rate())
		same = same && m.even && m.rate() == c.rates[0].rate()
	}
	rates := fmt.Sprintf("%s per %s, at least %s in %d base runs", number(c.rate.rate()), c.unit(c.series),
		number(least), c.ratedRuns)
	if same && c.rate.even && c.rate.rate() <= least-scriptStep {
		return rates, true
	}
	added, loops := pooled(c.rates)
	if c.rate.rate()*factor >= least || c.rate.added < 0 {
		return "", false
	}
	p := upperTail(added, c.rate.added+added, loops/(c.rate.exposure+loops))
	return rates, p < alpha/float64(max(c.compared, 1))
}

// uncertainty returns the reason why a known place could not be judged.
func (c *contrast) uncertainty() string {
	switch {
	case !c.rated:
		return "in the base; one heap dump does not show how many objects each loop leaks"
	case c.ratedRuns < fewestBase:
		return fmt.Sprintf("in the base; %s too few to show whether it has grown",
			count(c.ratedRuns, "base run is", "base runs are"))
	}
	return ""
}

func count(n int, one, many string) string { return text.Count(n, one, many) }

// evidence describes the measurements of the place in head.
func (c *contrast) evidence() string {
	h, s := c.head, c.series
	switch {
	case len(h.Checks) > 0:
		return text.Count(len(h.Checks), "check", "checks") + ": " +
			strings.Join(h.Checks[:min(len(h.Checks), 3)], ", ")
	case len(s.Exposure) == 0:
		return ""
	case s.SeparateLives:
		return fmt.Sprintf("%s objects in %d lifetimes of the process", text.Series(h.Counts), len(s.Exposure))
	case len(s.Exposure) == 1:
		n, _ := h.last()
		return text.Count(int(n), "object in 1 heap dump", "objects in 1 heap dump")
	case h.Type == TypeThreads:
		return fmt.Sprintf("%s at two moments, %s loops apart", text.Series(h.Counts), number(s.exposure()))
	case h.Type != TypeLeak:
		return fmt.Sprintf("%s kB at two moments, %s loops apart", text.Series(h.Counts), number(s.exposure()))
	}
	settled := ""
	if !s.Settled {
		settled = ", app in use"
	}
	return fmt.Sprintf("%s objects at %d marks%s", text.Series(h.Counts), len(s.Exposure), settled)
}

// movedFrom finds leaks of the base that are held by another reference in head.
// It returns a map from the keys in head to the keys in the base.
func (p *pair) movedFrom() map[string]string {
	out := map[string]string{}
	bases := p.withSeries(TypeLeak)
	if len(bases) == 0 || !p.comparable() {
		return out
	}
	inBase := map[string]bool{}
	for _, b := range bases {
		for i := range b.Places {
			inBase[b.Places[i].Key] = true
		}
	}
	all := []Timeline{p.head.Heap}
	for _, b := range bases {
		all = append(all, b.Heap)
	}
	common := commonExposure(all...)
	// For each missing leak, use the newest run that contains it: a rare leak
	// may be only in an older run.
	var gone, added []analysis.SummaryLeak
	seen := map[string]bool{}
	for _, b := range bases {
		for i := range b.Places {
			if l := &b.Places[i]; l.Type == TypeLeak && !seen[l.Key] && p.head.place(TypeLeak, l.Key) == nil {
				seen[l.Key] = true
				gone = append(gone, l.summary(b.Heap, common))
			}
		}
	}
	for i := range p.head.Places {
		if l := &p.head.Places[i]; l.Type == TypeLeak && !inBase[l.Key] {
			added = append(added, l.summary(p.head.Heap, common))
		}
	}
	for h, b := range analysis.MatchMoved(gone, added, p.loads, p.headLoads) {
		out[added[h].Key] = gone[b].Key
	}
	return out
}

// summary converts a leak to an entry of a dump's summary, with the numbers
// after the given number of loops.
func (p *Place) summary(s Timeline, loops float64) analysis.SummaryLeak {
	n, bytes := p.instances(s, loops)
	l := analysis.SummaryLeak{
		Key: p.Key, KeyText: p.KeyText, Class: p.Class, Library: p.Library, Fingerprints: p.Fingerprints, Instances: n,
		RetainedBytes: bytes, Classes: map[string]int64{},
	}
	for class, counts := range p.Classes {
		if len(counts) > 0 {
			l.Classes[class] = counts[len(counts)-1]
		}
	}
	if len(l.Classes) == 0 && p.Class != "" {
		l.Classes[p.Class] = n
	}
	return l
}

// gone adds rows for the places that are in at least half of the base runs but
// not in head.
func (p *pair) gone(met map[string]bool) {
	if len(p.head.Heap.Exposure) == 0 || !p.comparable() {
		return
	}
	times, base := map[string]int{}, p.withSeries(TypeLeak)
	for _, b := range base {
		for i := range b.Places {
			l := &b.Places[i]
			id := l.Type + l.Key
			if l.Type != TypeLeak || met[id] {
				continue
			}
			times[id]++
			if times[id]*2 != len(base) && times[id]*2 != len(base)+1 {
				continue // add the row only once: when the count reaches half of the runs
			}
			c := &contrast{
				pair: p,
				head: &Place{
					Type: l.Type, Key: l.Key, Description: l.Description,
					Counts: make([]int64, len(p.head.Heap.Exposure)), Bytes: make([]int64, len(p.head.Heap.Exposure)),
				}, key: l.Key, base: base, series: p.head.Heap,
			}
			c.measure()
			if c.missingLately() != "" {
				continue // the leak disappeared in the base, not in this run
			}
			r := p.describe(c.head)
			r.Class, r.Unit = l.leaking(), p.unit(c.series)
			c.fill(&r)
			r.Status, r.Evidence = comparison.Gone, "not in any heap dump of this run"
			p.sight(&r, l.Key)
			p.rows = append(p.rows, row{r, false})
		}
	}
}

// sight records the first sighting of a place in its row.
func (p *pair) sight(row *comparison.Row, key string) {
	if row.Status == comparison.New || row.Status == comparison.Present {
		return
	}
	if s, ok := p.in.FirstSeen[SeenKey{p.head.Process, row.Type, key}]; ok {
		row.FirstSeen = &s
	}
}

// accept marks a row that matches an entry of the accepted leaks. If the entry
// accepts a reference by its key, a new class held by that reference counts as
// another leak.
func (p *pair) accept(row *comparison.Row, h *Place) {
	if row.Type != TypeLeak && row.Type != TypeMeasure || row.Library {
		return
	}
	for i := range p.in.Accepted {
		e := &p.in.Accepted[i]
		if !names(e, row, h) || row.Status == comparison.Wider && e.Class == "" {
			continue
		}
		row.Accepted = &comparison.Acceptance{
			Reason: e.Reason, Owner: e.Owner, Until: e.Until.Format("2006-01-02"), Expired: e.Expired(p.in.Now),
		}
		if !row.Accepted.Expired {
			row.Status = comparison.Accepted
		}
		return
	}
}

func names(e *check.Exception, row *comparison.Row, h *Place) bool {
	l := record.DumpLeak{Key: h.Key, Name: h.Class + ", held by " + row.HeldBy}
	for class := range h.Classes {
		l.Classes = append(l.Classes, record.ClassCount{Class: class})
	}
	if len(l.Classes) == 0 {
		l.Classes = append(l.Classes, record.ClassCount{Class: h.Class})
	}
	return e.Names(l, row.Trace)
}

// creep compares a known leak with the pinned release as well. If the leak is
// worse than in that release, creep records the reason in the row.
func (p *pair) creep(row *comparison.Row, c *contrast) {
	pinned := p.pinned
	if pinned == nil || row.Status != comparison.Known {
		return
	}
	pinned.compared = p.compared
	old := &contrast{pair: pinned, head: c.head, key: c.key, base: pinned.withSeries(c.head.Type), series: c.series}
	old.measure()
	if why, ok := old.grown(); ok {
		row.Pinned = why
	} else if why, ok := old.heavier(); ok {
		row.Pinned = why
	} else if len(old.base) > 0 && len(old.has) == 0 && c.head.accumulates(c.series) {
		row.Pinned = "not in " + text.Count(len(old.base), "run", "runs") + " of that release"
	}
}

// measures adds rows for everything that grows with each loop of a trip.
func (p *pair) measures() {
	for i := range p.head.Measures {
		m := &p.head.Measures[i]
		if !m.Grows {
			continue
		}
		r := comparison.Row{
			Device: p.obs.Device, Process: p.head.Process, Type: TypeMeasure, Class: m.Name, Key: m.Key, Unit: UnitLoop,
			Fingerprints: []string{},
			PerLoop:      comparison.Sides{Head: m.PerLoop}, Evidence: m.evidence(),
		}
		r.Status, r.StatusReason = p.measureStatus(m, &r)
		p.sight(&r, m.Key)
		p.accept(&r, &Place{Type: TypeLeak, Key: m.Key, Description: Description{Class: m.Name}})
		p.rows = append(p.rows, row{r, true})
	}
}

// evidence describes a measure in words.
func (m *Measure) evidence() string {
	unit := map[string]string{"kB": " kB"}[m.Unit]
	switch {
	case m.PerLoop == nil:
		return "grows with every loop of a trip"
	case m.Lower == nil || m.Upper == nil:
		return fmt.Sprintf("%s%s per loop of a trip", number(*m.PerLoop), unit)
	}
	return fmt.Sprintf("%s%s per loop of a trip (95 %%: %s to %s)", number(*m.PerLoop), unit, number(*m.Lower),
		number(*m.Upper))
}

// measureStatus returns the result of comparing the growth of a measure with
// its growth in the base runs.
func (p *pair) measureStatus(m *Measure, r *comparison.Row) (comparison.Status, string) {
	most, grew, known, tripped := math.Inf(-1), 0, 0, 0
	for _, b := range p.base {
		if len(b.Measures) == 0 {
			continue
		}
		tripped++
		at := slices.IndexFunc(b.Measures, func(x Measure) bool { return x.Key == m.Key && x.Grows })
		if at < 0 {
			continue
		}
		grew++
		if base := &b.Measures[at]; base.Upper != nil || base.PerLoop != nil {
			known++
			most = max(most, *cmp.Or(base.Upper, base.PerLoop))
			r.PerLoop.Base = cmp.Or(r.PerLoop.Base, base.PerLoop)
		}
	}
	lower := cmp.Or(m.Lower, m.PerLoop)
	switch {
	case p.absent >= fewestBase:
		return comparison.New, fmt.Sprintf("none of %d base runs has this process", p.absent)
	case tripped == 0:
		return comparison.Present, "no earlier run has repeated the scenario"
	case grew == 0:
		return comparison.New, "it grew in " + noneOf(tripped)
	case tripped >= fewestBase && known > 0 && lower != nil && *lower > factor*most:
		return comparison.Grown, fmt.Sprintf("at least %s per loop, at most %s in %s",
			number(*lower), number(most), text.Count(known, "base run", "base runs"))
	}
	return comparison.Known, ""
}

// trend adds a row for the growth of the process's memory over time if this
// growth is a leak.
func (p *pair) trend() {
	t := p.head.Trend
	if t == nil || t.Gate != "leak" || p.head.Explained {
		return
	}
	r := comparison.Row{
		Device: p.obs.Device, Process: p.head.Process, Type: TypeTrend, Key: strings.TrimSuffix("trend:"+t.Kind, ":"),
		Unit:         UnitHour,
		Fingerprints: []string{}, Evidence: p.head.Reason, PerLoop: comparison.Sides{Head: t.Rate},
	}
	r.Status, r.StatusReason = p.trendStatus(&r)
	p.rows = append(p.rows, row{r, false})
}

func (p *pair) trendStatus(row *comparison.Row) (comparison.Status, string) {
	switch {
	case p.head.WholeApp && len(p.base) == 0:
		return comparison.Present, "no earlier run has a total for all processes of this app"
	case p.absent >= fewestBase:
		return comparison.New, fmt.Sprintf("none of %d base runs has this process", p.absent)
	case len(p.base) == 0:
		return comparison.Present, "no earlier run has this process"
	}
	most, decided, leaks, known := math.Inf(-1), 0, 0, 0
	for _, b := range p.base {
		if b.Trend.decided() {
			decided++
		}
		if b.Trend == nil || b.Trend.Gate != "leak" {
			continue
		}
		leaks++
		if b.Trend.Rate != nil && row.PerLoop.Base == nil {
			row.PerLoop.Base = b.Trend.Rate
		}
		if b.Trend.Upper != nil {
			known++
			most = max(most, *b.Trend.Upper)
		}
	}
	t := p.head.Trend
	switch {
	case decided == 0:
		return comparison.Present, "no earlier run has a verdict on its memory"
	case leaks == 0:
		return comparison.New, fmt.Sprintf("the memory grew in %s", noneOf(decided))
	case t.Lower != nil && *t.Lower > factor*most && known >= fewestBase:
		return comparison.Grown, fmt.Sprintf("at least %s MB/h, at most %s in %d base runs",
			number(*t.Lower), number(most), known)
	}
	return comparison.Known, ""
}
