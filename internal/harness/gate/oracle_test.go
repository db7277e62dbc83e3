package gate

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
)

// TestStatusOracle determines the statuses of random observations from
// docs/formats/gate.md, using fractions and none of the tested code, and checks
// that Compare returns the same statuses.
func TestStatusOracle(t *testing.T) {
	trials := 5000
	if recorded.Long() {
		trials = 300_000
	}
	seen, intermittent := map[comparison.Status]int{}, 0
	for seed := range uint64(trials) {
		base, head := randomRuns(rand.New(rand.NewPCG(seed, 20)))
		got := judge(base, head)
		fails := false
		for i := range head.Processes[0].Places {
			place := &head.Processes[0].Places[i]
			row := rowOf(t, got, place.Key)
			want := statusByTheDocs(base, head, place)
			seen[want]++
			if back, always := backByTheDocs(base, place.Key); back && !always {
				intermittent++
			}
			is := row.Status
			if is == comparison.Shrunk {
				is = comparison.Known // the oracle decides whether it is worse
			}
			worse := slices.Contains(
				[]comparison.Status{comparison.New, comparison.Wider, comparison.Grown, comparison.Heavier}, want)
			fails = fails || worse
			if is != want || row.Fails != worse {
				t.Errorf("seed %d: %s is %s, fails %t, %s; want %s\nhead %v at %v %+v", seed, place.Key, row.Status,
					row.Fails, row.StatusReason, want, place.Counts, head.Processes[0].Heap, place)
				for _, b := range base {
					t.Logf("base at %v %+v", b.Processes[0].Heap, b.Processes[0].place(TypeLeak, place.Key))
				}
			}
		}
		if (got.Verdict == comparison.Fail) != fails {
			t.Errorf("seed %d: %s: %s", seed, got.Verdict, got.Text)
		}
		if t.Failed() {
			return
		}
	}
	if intermittent < trials/100 {
		t.Errorf("got %d returning leaks that only some of the earlier runs contain, want at least %d", intermittent,
			trials/100)
	}
	// Each status occurs often enough to matter.
	for _, status := range []comparison.Status{
		comparison.New, comparison.Wider, comparison.Grown, comparison.Heavier, comparison.Known, comparison.Transient,
		comparison.Present,
	} {
		if seen[status] < trials/100 {
			t.Errorf("%d of %s: %v", seen[status], status, seen)
		}
	}
}

// randomRuns returns up to ten base runs, and a judged run, with up to four
// leaks.
func randomRuns(random *rand.Rand) (base []Observation, head Observation) {
	unit, settled := UnitLoop, random.IntN(5) > 0
	if random.IntN(5) == 0 {
		unit = UnitEvent
	}
	var habits []habit
	for i := range 2 + random.IntN(3) {
		habits = append(habits, newHabit(random, i))
	}
	var loaded []string
	for i := range habits {
		loaded = append(loaded, habits[i].class, habits[i].other)
	}
	dumps, step := 3+random.IntN(3), 1+random.IntN(3)
	if random.IntN(10) == 0 {
		dumps = 2
	}
	observe := func(n int, isHead bool) Observation {
		o := observed(n)
		o.Unit = unit
		p := &o.Processes[0]
		p.Heap, p.Loaded = Timeline{Settled: settled}, NewClassSet(loaded)
		at := float64(random.IntN(3))
		for range dumps {
			p.Heap.Exposure = append(p.Heap.Exposure, at)
			at += float64(step)
			if random.IntN(10) == 0 {
				at += float64(random.IntN(3))
			}
		}
		for i := range habits {
			if place, ok := habits[i].place(random, p.Heap, isHead); ok {
				p.Places = append(p.Places, place)
			}
		}
		return o
	}
	runs := random.IntN(5)
	fixed := random.IntN(3) == 0
	if fixed {
		runs, habits[0].absent = 6+random.IntN(5), 15
	}
	for i := range runs {
		base = append(base, observe(i, false))
	}
	if fixed {
		fix(base[2+random.IntN(runs-4):], habits[0].key)
	}
	if random.IntN(3) == 0 {
		dumps = 2 + random.IntN(4)
	}
	return base, observe(50, true)
}

// fix removes a leak from runs.
func fix(runs []Observation, key string) {
	for i := range runs {
		p := &runs[i].Processes[0]
		p.Places = slices.DeleteFunc(p.Places, func(p Place) bool { return p.Key == key })
	}
}

// habit describes how a leak behaves in all runs.
type habit struct {
	key, class, other string
	// rate is the number of objects that a loop leaves in the base and in head,
	// first is the number of objects at the first mark, and each is the memory
	// that one of them retains.
	rate, first, each [2]int64
	// noise is the percentage of intervals with one additional object; absent
	// is the percentage of base runs in which the leak is missing.
	noise  [2]int
	absent int
	// burst means that the last interval of head adds many objects. limit means
	// that the objects of head together are 512 KB heavier, or slightly less.
	// swells means that objects retain more memory in longer runs.
	burst, limit, swells bool
	// wider is the number of objects of another class that a loop leaves in the
	// base and in head.
	wider [2]int64
}

func newHabit(random *rand.Rand, i int) habit {
	pick := func(list ...int64) int64 { return list[random.IntN(len(list))] }
	h := habit{key: fmt.Sprint("key", i), class: fmt.Sprint("Screen", i), other: fmt.Sprint("Other", i)}
	h.rate[0], h.first[0], h.each[0] = pick(0, 0, 1, 2, 3, 10), pick(0, 1, 1, 5), pick(10, kB, 100*kB, 500*kB)
	h.rate[1], h.first[1], h.each[1] = h.rate[0]+pick(0, 0, 0, 1, 1, 5), h.first[0],
		h.each[0]*pick(100, 100, 100, 124, 125, 126, 300)/100
	h.noise, h.absent = [2]int{int(pick(0, 0, 0, 30)), int(pick(0, 0, 0, 30))}, int(pick(0, 0, 0, 50, 100))
	h.burst, h.limit, h.swells = random.IntN(8) == 0, random.IntN(8) == 0, random.IntN(4) == 0
	if random.IntN(4) == 0 {
		h.wider = [2]int64{pick(0, 0, 1), pick(0, 1, 1)}
	}
	return h
}

// place returns the leak in one run, and false if the run does not contain it.
func (h *habit) place(random *rand.Rand, s Timeline, head bool) (Place, bool) {
	side := 0
	if head {
		side = 1
	} else if random.IntN(100) < h.absent {
		return Place{}, false
	}
	n, m := h.first[side], int64(0)
	var counts, others []int64
	for i := range s.Exposure {
		if i > 0 {
			loops := int64(s.Exposure[i] - s.Exposure[i-1])
			n, m = n+h.rate[side]*loops, m+h.wider[side]*loops
			if random.IntN(100) < h.noise[side] {
				n++
			}
			if head && h.burst && i == len(s.Exposure)-1 {
				n += 20
			}
		}
		counts, others = append(counts, n), append(others, m)
	}
	each := h.each[side]
	if head && h.limit && n+m > 0 {
		each = h.each[0] + 512<<10/(n+m)
	}
	p := leak(h.key, h.class, each, counts...)
	p.KeyText = []string{h.key, h.class, "field"} // no two cases differ in only one line of KeyText
	if m > 0 {
		p = withClass(p, h.other, each, others...)
	}
	for i := range p.Bytes {
		if h.swells {
			p.Bytes[i] += p.Bytes[i] * int64(s.Exposure[i]-s.Exposure[0])
		}
	}
	return p, n+m > 0
}

// statusByTheDocs returns the status that docs/formats/gate.md specifies for a
// leak that did not move.
func statusByTheDocs(base []Observation, head Observation, p *Place) comparison.Status {
	heap := head.Processes[0].Heap
	base = slices.DeleteFunc(slices.Clone(base), func(b Observation) bool {
		return enoughDumps(heap) && !enoughDumps(b.Processes[0].Heap)
	})
	if len(base) == 0 {
		return comparison.Present
	}
	var with []Observation
	for _, b := range base { // the oldest run is first
		if in(b, p.Key) != nil {
			with = append(with, b)
		}
	}
	back, _ := backByTheDocs(base, p.Key)
	switch {
	case (len(with) == 0 || back) &&
		(risesAtEveryMark(p.Counts, heap) || enoughDumps(heap) && slices.Min(p.Counts) > 0 &&
			p.Bytes[len(p.Bytes)-1] >= 1<<20):
		return comparison.New
	case len(with) == 0 || back:
		return comparison.Transient
	}
	for class, counts := range p.Classes {
		if !slices.ContainsFunc(with, func(b Observation) bool { return in(b, p.Key).Classes[class] != nil }) &&
			risesAtEveryMark(counts, heap) {
			return comparison.Wider
		}
	}
	switch {
	case growsByTheDocs(base, head, p):
		return comparison.Grown
	case heavierByTheDocs(with, head, p):
		return comparison.Heavier
	}
	return comparison.Known
}

// backByTheDocs reports whether the newest base runs, at least three, lack a
// leak that all earlier ones contain (always), or a leak that would be missing
// from them by chance in at most 1 of 40 cases. The oldest run is first.
func backByTheDocs(base []Observation, key string) (back, always bool) {
	earlier, with := 0, 0
	for i, b := range base {
		if in(b, key) != nil {
			earlier, with = i+1, with+1
		}
	}
	later := len(base) - earlier
	if later < 3 || with == 0 {
		return false, false
	}
	// The integral of q^with (1-q)^without over all shares q of runs that show
	// the leak is 1 / ((earlier+1) binom(earlier, with)).
	weight := func(runs int) *big.Rat {
		n := new(big.Int).Binomial(int64(runs), int64(with))
		return new(big.Rat).SetFrac(big.NewInt(1), n.Mul(n, big.NewInt(int64(runs+1))))
	}
	chance := new(big.Rat).Quo(weight(len(base)), weight(earlier))
	always = with == earlier
	return always || chance.Cmp(big.NewRat(1, 40)) <= 0, always
}

func in(o Observation, key string) *Place {
	for i := range o.Processes[0].Places {
		if p := &o.Processes[0].Places[i]; p.Key == key {
			return p
		}
	}
	return nil
}

// enoughDumps requires three dumps of an idle app, or five dumps of an app in
// use.
func enoughDumps(m Timeline) bool { return m.Settled && len(m.Exposure) >= 3 || len(m.Exposure) >= 5 }

// risesAtEveryMark requires as many dumps as enoughDumps. In an app in use,
// each interval must also add at least half of its share.
func risesAtEveryMark(counts []int64, m Timeline) bool {
	if !enoughDumps(m) {
		return false
	}
	for i := 1; i < len(counts); i++ {
		rise := counts[i] - counts[i-1]
		if rise <= 0 || !m.Settled && 2*rise*int64(len(counts)-1) < counts[len(counts)-1]-counts[0] {
			return false
		}
	}
	return true
}

// rateOf returns the number of objects that each loop leaves, for the whole run
// and for each interval between two marks, and the total numbers of added
// objects and of loops.
func rateOf(o Observation, p *Place) (all *big.Rat, intervals []*big.Rat, added, loops int64) {
	at := o.Processes[0].Heap.Exposure
	counts := make([]int64, len(at))
	if p != nil {
		counts = p.Counts
	}
	for i := 1; i < len(at); i++ {
		intervals = append(intervals, big.NewRat(counts[i]-counts[i-1], int64(at[i]-at[i-1])))
	}
	added, loops = counts[len(at)-1]-counts[0], int64(at[len(at)-1]-at[0])
	return big.NewRat(added, loops), intervals, added, loops
}

func growsByTheDocs(base []Observation, head Observation, p *Place) bool {
	most, script := new(big.Rat), true
	var first *big.Rat
	var added, loops int64
	for _, b := range base {
		rate, intervals, n, l := rateOf(b, in(b, p.Key))
		added, loops = added+n, loops+l
		if rate.Cmp(most) > 0 {
			most = rate
		}
		for _, r := range intervals {
			if first == nil {
				first = r
			}
			script = script && r.Cmp(first) == 0
		}
	}
	// For growth from zero, even a small number of base runs is enough.
	if script && first.Sign() == 0 && head.Unit == UnitLoop && risesAtEveryMark(p.Counts, head.Processes[0].Heap) {
		return true
	}
	if len(base) < 3 || !enoughDumps(head.Processes[0].Heap) {
		return false
	}
	rate, intervals, n, l := rateOf(head, p)
	// This is the rate without the interval that added the most objects per
	// loop.
	at := head.Processes[0].Heap.Exposure
	drop := 0
	for i, r := range intervals {
		if r.Cmp(intervals[drop]) > 0 {
			drop = i
		}
	}
	rest := big.NewRat(n-(p.Counts[drop+1]-p.Counts[drop]), l-int64(at[drop+1]-at[drop]))
	above := func(r *big.Rat, num, den int64) bool { return r.Cmp(new(big.Rat).Add(most, big.NewRat(num, den))) > 0 }
	atLeast := rate.Cmp(new(big.Rat).Add(most, big.NewRat(1, 2))) >= 0
	if script && head.Unit == UnitLoop && atLeast && above(rest, 1, 4) {
		return true
	}
	if !above(rest, 0, 1) || rate.Cmp(new(big.Rat).Mul(most, big.NewRat(5, 4))) <= 0 {
		return false
	}
	return tail(n, n+added, l, loops).Cmp(big.NewRat(1, 1000*int64(len(head.Processes[0].Places)))) < 0
}

// tail returns the probability that at least k of n objects fall into l of
// l+rest loops by chance.
func tail(k, n, l, rest int64) *big.Rat {
	sum := new(big.Int)
	power := func(base, exponent int64) *big.Int {
		return new(big.Int).Exp(big.NewInt(base), big.NewInt(exponent), nil)
	}
	for i := k; i <= n; i++ {
		term := new(big.Int).Binomial(n, i)
		sum.Add(sum, term.Mul(term, power(l, i)).Mul(term, power(rest, n-i)))
	}
	return new(big.Rat).SetFrac(sum, power(l+rest, n))
}

// heavierByTheDocs compares the memory that one object retains after the same
// number of loops in all runs.
func heavierByTheDocs(with []Observation, head Observation, p *Place) bool {
	if len(with) < 3 {
		return false
	}
	shared := head.Processes[0].Heap.exposure()
	for _, b := range with {
		shared = min(shared, b.Processes[0].Heap.exposure())
	}
	each := func(o Observation, p *Place) *big.Rat {
		at := o.Processes[0].Heap.Exposure
		for i := len(at) - 1; i >= 0; i-- {
			if at[i]-at[0] <= shared && p.Counts[i] > 0 {
				return big.NewRat(p.Bytes[i], p.Counts[i])
			}
		}
		return nil
	}
	now := each(head, p)
	if now == nil {
		return false
	}
	sized := 0
	for _, b := range with {
		before := each(b, in(b, p.Key))
		if before == nil {
			continue
		}
		sized++
		more := new(big.Rat).Mul(new(big.Rat).Sub(now, before), big.NewRat(p.Counts[len(p.Counts)-1], 1))
		if now.Cmp(new(big.Rat).Mul(before, big.NewRat(5, 4))) <= 0 || more.Cmp(big.NewRat(512<<10, 1)) < 0 {
			return false
		}
	}
	return sized >= 3
}
