package monitor

import (
	"fmt"
	"time"

	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// weighed is the least number of dumps between two changes of the period: CPU
	// time comes in ticks of 10 ms, and one dump may meet a busy moment. Where there
	// are more processes each has had its turn, because their dumps differ.
	weighed = 4
	// smoothing is the weight of the latest dump in the mean of the latest ones.
	smoothing = 0.3
	// thickenBelow is the part of the budget below which a longer period is halved
	// again: halving doubles the cost, and half the budget would swing.
	thickenBelow = 1.0 / 3
	// maxThinning bounds the period, in times of the one asked for.
	maxThinning = 16
)

// governor keeps the detail channel within a budget: it doubles the period while
// a dump costs more than the period allows, and halves it when it costs little.
type governor struct {
	factor  int // of the period asked for; 0 stands for 1
	thinned int
	// dumps were weighed since the latest look; server is what they cost system_server.
	dumps  int
	server time.Duration
}

// load is the process of the largest cost against its budget.
type load struct {
	who             string
	percent, budget float64
}

func (l load) ratio() float64 { return l.percent / l.budget }

// weigh gives what dumps cost at the present period, per device for system_server
// and per round for each process; zero where there is no budget.
func (b *breakdowns) weigh() load {
	worst := load{budget: 1}
	consider := func(who string, cost, every time.Duration, budget float64) {
		if budget <= 0 || every <= 0 {
			return
		}
		l := load{who, float64(cost) / float64(every) * 100, budget}
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

// govern weighs the dumps after one more of them and changes the period.
func (b *breakdowns) govern(now time.Duration) {
	g := &b.governor
	if g.factor == 0 {
		g.factor = 1
	}
	g.dumps++
	g.server += b.overhead.latestBreakdown()
	if g.dumps < max(weighed, b.rotation.Len()) {
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
	text := fmt.Sprintf("breakdowns cost little again: one each %v", period)
	if factor > g.factor {
		text = fmt.Sprintf("breakdowns cost %s %.1f %% of a core, the budget is %.1f %%: one each %v from now on", l.who, l.percent, l.budget, period)
	}
	g.factor = factor
	b.rotation.SetPeriod(period, now)
	b.event(record.Event{Event: "thinned", Text: text})
}
