package monitor

import (
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/detail"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/reporters/record"
)

// overhead is what watching one device costs.
type overhead struct {
	*port
	fast, detail channelCost
	server       meter
	// due is when the next line is due that tells the costs, on the session's clock.
	due time.Duration

	breakdowns *breakdowns
}

// countRound and countBreakdown note requests that ended, some with an error.
func (u *overhead) countRound(err error)     { u.fast.count(err) }
func (u *overhead) countBreakdown(err error) { u.detail.count(err) }

// addRound notes what a round has cost.
func (u *overhead) addRound(r capture.Round) {
	u.fast.add(r.Took)
	u.server.read(r.Up, r.SystemServer)
}

// addBreakdown notes what a breakdown has cost.
func (u *overhead) addBreakdown(d detail.Detail) {
	u.detail.add(d.Took)
	u.server.dump(d.SystemServer, d.Spent)
}

// latestBreakdown is the CPU time that the latest breakdown has cost system_server.
func (u *overhead) latestBreakdown() time.Duration { return u.server.latest }

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

// usage is what the session has cost until now.
func (u *overhead) usage() record.Usage {
	out := record.Usage{
		Fast: u.fast.record(), Detail: u.detail.record(),
		DetailPeriod: u.breakdowns.period().Seconds(), Thinned: u.breakdowns.thinned(),
		DetailSystemServer: percent(u.server.spent, u.server.during),
	}
	out.SystemServer, out.CostSystemServer = u.server.share()
	for _, x := range u.subjects.order[:min(len(u.subjects.order), maxAppUsage)] {
		app := record.AppUsage{Process: x.Key().Name, User: x.User}
		app.CPU, app.Cost = x.cpu.share()
		out.Apps = append(out.Apps, app)
	}
	return out
}

// nextWake is the device time at which the next line is due.
func (u *overhead) nextWake() time.Duration { return u.due }

// recordDue records once every usageEvery what watching has cost.
func (u *overhead) recordDue(now time.Duration) {
	if now >= u.due {
		u.due = align(now, usageEvery)
		u.record()
	}
}

// record records what watching has cost until now.
func (u *overhead) record() {
	u.event(record.Event{Event: "usage", Usage: new(u.usage()), Overhead: u.run.own.record()})
}
