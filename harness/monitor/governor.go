package monitor

import (
	"fmt"
	"time"

	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// minWeighed is the minimum number of readings between two changes of the
	// period. CPU time has a resolution of 10 ms, and other work may distort a
	// single reading. With more than minWeighed processes, every process must
	// have been read once, because the cost differs between processes.
	minWeighed = 4
	// smoothing is the weight of the latest reading in the moving average of
	// costs.
	smoothing = 0.3
	// thickenBelow is the share of the budget below which a lengthened period
	// is halved again. Halving the period doubles the cost, so a share of one
	// half would make the period oscillate.
	thickenBelow = 1.0 / 3
	// maxThinning bounds the period, as a multiple of the configured one.
	maxThinning = 16
)

// governor keeps the detail channel within a budget: it doubles the period
// while readings cost more than the budget allows, and halves it when they cost
// little.
type governor struct {
	factor  int // multiple of the configured period; 0 means 1
	thinned int
	// dumps is the number of readings since the latest change of the period;
	// server is the CPU time that these readings cost system_server.
	dumps  int
	server time.Duration
}

// dumpCost is the load that breakdowns cause in one process, and the budget of
// that process, both in percent of a core.
type dumpCost struct {
	who             string
	percent, budget float64
}

func (l dumpCost) ratio() float64 { return l.percent / l.budget }

// weigh returns the largest load at the present period, relative to its budget.
// It compares the cost in system_server per period and the cost in each process
// per round. It returns a load of zero if there is no budget.
func (b *breakdowns) weigh() dumpCost {
	worst := dumpCost{budget: 1}
	consider := func(who string, cost, every time.Duration, budget float64) {
		if budget <= 0 || every <= 0 {
			return
		}
		l := dumpCost{who, float64(cost) / float64(every) * 100, budget}
		if l.ratio() > worst.ratio() {
			worst = l
		}
	}
	g := b.governor
	consider("system_server", g.server/time.Duration(g.dumps), b.rotation.Period(), b.run.MaxSystemServer)
	for _, x := range b.subjects.order {
		if x.present {
			consider(x.Key().String(), x.cpu.recent, b.rotation.Round(), b.run.MaxApp)
		}
	}
	return worst
}

// govern adds the latest reading and changes the period if the cost requires
// it.
func (b *breakdowns) govern(now time.Duration) {
	g := &b.governor
	if g.factor == 0 {
		g.factor = 1
	}
	g.dumps++
	g.server += b.overhead.latestBreakdown()
	if g.dumps < max(minWeighed, b.rotation.Len()) {
		return
	}
	l := b.weigh()
	g.dumps, g.server = 0, 0
	factor := g.factor
	switch {
	case l.ratio() > 1 && factor < maxThinning:
		factor *= 2
		g.thinned++
	case l.ratio() < thickenBelow && factor > 1:
		factor /= 2
	default:
		return
	}
	period := time.Duration(factor) * b.run.Detail
	text := fmt.Sprintf("dumpsys meminfo is well within the CPU budget again: one reading every %v", period)
	if factor > g.factor {
		text = fmt.Sprintf("dumpsys meminfo costs %s %.1f %% of a core, the budget is %.1f %%: one reading every %v "+
			"from now on",
			l.who, l.percent, l.budget, period)
	}
	g.factor = factor
	b.rotation.SetPeriod(period, now)
	b.recordEvent(record.Event{Event: "thinned", Text: text})
}
