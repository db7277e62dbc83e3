package gatecalibrate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/harness/gate"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
)

// pair is a run and the runs that it is compared with.
type pair struct {
	head *trial
	base []*trial

	failed bool
	// reported means that the change has the expected status and the pair
	// fails.
	reported bool
	// rejected means that the rejected rule fails the pair.
	rejected bool
	text     string
}

// wanted maps each change to the status that it must have.
var wanted = map[change]comparison.Status{
	newLeak: comparison.New, oneMore: comparison.Grown, tripled: comparison.Grown, heavier: comparison.Heavier,
}

// changedClass returns the class whose leak a build changes.
func changedClass(r *trial) string {
	switch {
	case r.change == newLeak:
		return "WishScreen"
	case r.program == phone:
		return "CartScreen"
	}
	return javaPrograms[r.program].class
}

// judge compares the head of the pair with its base.
func (p *pair) judge() {
	in := gate.Input{
		Configured: true, Heads: []gate.Observation{p.head.at(1000)}, Match: gate.MatchAll(),
		Rules: gate.DefaultRules(), Now: time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC),
	}
	for i, b := range p.base {
		in.Base = append(in.Base, b.at(i))
	}
	c := gate.Compare(in)
	p.failed = c.Verdict == comparison.Fail
	var text []string
	for _, r := range c.Leaks {
		if r.Fails || r.Status != comparison.Known {
			text = append(text, fmt.Sprintf("%s %s %v: %s", r.Status, simple(r.Class), r.Counts, r.StatusReason))
		}
		if r.Fails && r.Status == wanted[p.head.change] && simple(r.Class) == changedClass(p.head) {
			p.reported = true
		}
	}
	for _, r := range c.Reasons {
		text = append(text, "fails by "+r.Rule)
	}
	p.rejected = rejects(in.Base, in.Heads[0])
	p.text = strings.Join(text, "; ")
}

func simple(class string) string { return class[strings.LastIndexAny(class, ".$")+1:] }

// name returns what is needed to repeat the pair.
func (p *pair) name() string {
	var seeds []string
	for _, b := range p.base {
		seeds = append(seeds, fmt.Sprint(b.seed))
	}
	return fmt.Sprintf("%s; base seeds %s", p.head.name(), strings.Join(seeds, " "))
}

// row returns the pair as a line of tab-separated values.
func (p *pair) row() string {
	h := p.head
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%d\t%d\t%t\t%t\t%t\t%s\n", h.program, h.workload(), h.dumps(),
		builds[h.change], h.moments(h.long), h.seed, len(p.base), p.failed, p.reported, p.rejected, p.text)
}

const rowHead = "program\tworkload\tdumped\tbuild\tdumps\tseed\tbase_runs\tfailed\t" +
	"reported\trejected_rule_failed\ttext\n"

// The rejected rule compares the bytes of each leak with the median of the base
// runs; a new leak counts if it has at least 1 MB.
const (
	rejectedFloor  = 512 << 10
	rejectedFactor = 0.1
	rejectedMADs   = 3.5
	rejectedNew    = 1 << 20
)

// rejects reports whether the rejected rule fails a run.
func rejects(base []gate.Observation, head gate.Observation) bool {
	for _, place := range head.Processes[0].Places {
		if place.Type != gate.TypeLeak || place.Library {
			continue
		}
		var values []float64
		known := false
		for _, b := range base {
			bytes, ok := last(b, place.Key)
			values, known = append(values, bytes), known || ok
		}
		bytes, _ := last(head, place.Key)
		middle := median(values)
		var off []float64
		for _, v := range values {
			off = append(off, math.Abs(v-middle))
		}
		limit := max(rejectedFloor, rejectedFactor*middle, rejectedMADs*median(off))
		if known && bytes > middle+limit || !known && bytes > rejectedNew {
			return true
		}
	}
	return false
}

// last returns how much memory a leak retains at the end of a run.
func last(o gate.Observation, key string) (bytes float64, ok bool) {
	for _, p := range o.Processes[0].Places {
		if p.Type == gate.TypeLeak && p.Key == key {
			return float64(p.Bytes[len(p.Bytes)-1]), true
		}
	}
	return 0, false
}

func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}
