package monitor

import (
	"fmt"
	"time"

	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/reporters/record"
)

// usage is what watching one device costs.
type usage struct {
	fast, detail channelCost
	server       meter
	governor     governor
}

type channelCost struct {
	rounds, failed int
	sum, most      time.Duration
}

func (c *channelCost) count(err error) {
	if err != nil {
		c.failed++
	}
}

func (c *channelCost) add(took time.Duration) {
	c.rounds++
	c.sum += took
	c.most = max(c.most, took)
}

func (c channelCost) record() record.Cost {
	out := record.Cost{Rounds: c.rounds, Failed: c.failed, MaxMS: ms(c.most)}
	if c.rounds > 0 {
		out.MeanMS = ms(c.sum / time.Duration(c.rounds))
	}
	return out
}

func ms(d time.Duration) float64 { return record.Round(d.Seconds()*1000, 3) }

// meter measures the CPU time of one process: all of it, and what it spent while
// dumpsys ran. Each is over device time.
type meter struct {
	// at and used are the latest reading; total and over sum up what the
	// incarnations of the process have used between their readings.
	at          time.Duration
	used        known.Duration
	total, over time.Duration
	// spent is what was used during the dumps, which took during.
	spent, during time.Duration
	dumps         int
	// latest is the cost of the latest dump, recent the mean of the latest ones.
	latest, recent time.Duration
}

// read notes the CPU time so far at one moment of the device's clock. A count or a
// clock that falls is another process.
func (m *meter) read(up time.Duration, cpu known.Duration) {
	if !cpu.Known {
		return
	}
	if m.used.Known && cpu.N >= m.used.N && up > m.at {
		m.total += cpu.N - m.used.N
		m.over += up - m.at
	}
	m.at, m.used = up, cpu
}

// dump notes what was used during one dump.
func (m *meter) dump(cpu known.Duration, took time.Duration) {
	m.latest = 0
	if !cpu.Known || took <= 0 {
		return
	}
	m.spent += cpu.N
	m.during += took
	m.dumps++
	m.latest = max(0, cpu.N-time.Duration(m.idle()*float64(took)))
	if m.dumps == 1 {
		m.recent = m.latest
	}
	m.recent += time.Duration(smoothing * float64(m.latest-m.recent))
}

// idle is how busy the process is while no dump runs, as a share of one core.
func (m *meter) idle() float64 {
	if quiet := m.over - m.during; quiet > 0 && m.total > m.spent {
		return float64(m.total-m.spent) / float64(quiet)
	}
	return 0
}

// cost is the CPU time that is there because of the dumps: what was used while
// they ran, less what would have been used anyway.
func (m *meter) cost() time.Duration {
	return max(0, m.spent-time.Duration(m.idle()*float64(m.during)))
}

// percent is CPU time over device time in percent of one core; nil if nothing was
// measured.
func percent(spent, over time.Duration) *float64 {
	if over <= 0 {
		return nil
	}
	return new(record.Round(float64(spent)/float64(over)*100, 2))
}

// share is the whole use of a process and what the dumps cost it, in percent of
// one core.
func (m *meter) share() (all, cost *float64) {
	all = percent(m.total, m.over)
	if m.dumps > 0 {
		// Dumps may have run while no reading bracketed them.
		cost = percent(min(m.cost(), m.total), m.over)
	}
	return all, cost
}

// maxAppUsage bounds the processes of one line that tells costs.
const maxAppUsage = 500

// usageNow is what the session has cost until now.
func (s *session) usageNow() record.Usage {
	u := &s.usage
	out := record.Usage{
		Fast: u.fast.record(), Detail: u.detail.record(),
		DetailPeriod: s.rotation.Period().Seconds(), Thinned: u.governor.thinned,
		DetailSystemServer: percent(u.server.spent, u.server.during),
	}
	out.SystemServer, out.CostSystemServer = u.server.share()
	for _, x := range s.order[:min(len(s.order), maxAppUsage)] {
		app := record.AppUsage{Process: x.Key().Name, User: x.User}
		app.CPU, app.Cost = x.cpu.share()
		out.Apps = append(out.Apps, app)
	}
	return out
}

// Budget is how much CPU breakdowns may cost, in percent of one core: beyond it
// they are thinned. Zero is no budget.
type Budget struct {
	// SystemServer is for what dumpsys makes system_server spend (the article,
	// section 2.2, wants it below 25 %).
	SystemServer float64
	// App is for what dumpsys makes each process under watch spend.
	App float64
}

// DefaultBudget is the budget where nobody asks for another.
var DefaultBudget = Budget{SystemServer: 25, App: 5}

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
func (s *session) weigh() load {
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
	g := s.usage.governor
	consider("system_server", g.server/time.Duration(g.dumps), s.rotation.Period(), s.run.Budget.SystemServer)
	for _, x := range s.order {
		if x.present {
			consider(x.Key().String(), x.cpu.recent, s.rotation.Round(), s.run.Budget.App)
		}
	}
	return worst
}

// govern weighs the dumps after one more of them and changes the period.
func (s *session) govern(now time.Duration) {
	g := &s.usage.governor
	if g.factor == 0 {
		g.factor = 1
	}
	g.dumps++
	g.server += s.usage.server.latest
	if g.dumps < max(weighed, s.rotation.Len()) {
		return
	}
	l := s.weigh()
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
	period := time.Duration(factor) * s.run.Detail
	text := fmt.Sprintf("breakdowns cost little again: one each %v", period)
	if factor > g.factor {
		text = fmt.Sprintf("breakdowns cost %s %.1f %% of a core, the budget is %.1f %%: one each %v from now on", l.who, l.percent, l.budget, period)
	}
	g.factor = factor
	s.rotation.SetPeriod(period, now)
	s.event(record.Event{Event: "thinned", Text: text})
}
