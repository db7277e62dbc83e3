package monitor

import (
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/detail"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/reporters/record"
)

// overhead measures the cost of watching one device.
type overhead struct {
	*port
	fast, detail channelCost
	server       meter
	// due is the time of the next usage event on the session's clock.
	due time.Duration

	breakdowns *breakdowns
}

// countRound and countBreakdown count a request as failed if err is not nil.
func (u *overhead) countRound(err error)     { u.fast.count(err) }
func (u *overhead) countBreakdown(err error) { u.detail.count(err) }

// addRound adds the cost of one round.
func (u *overhead) addRound(r capture.Round) {
	u.fast.add(r.Took)
	u.server.read(r.Up, r.SystemServer)
}

// addBreakdown adds the cost of one breakdown.
func (u *overhead) addBreakdown(d detail.Detail) {
	u.detail.add(d.Took)
	u.server.dump(d.SystemServer, d.Spent)
}

// latestBreakdown returns the CPU time that system_server used for the latest
// breakdown.
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

// meter measures the CPU time of one process relative to device time, in total
// and while dumpsys runs.
type meter struct {
	// at and used are the latest reading. total is the sum of CPU time between
	// readings and over is the sum of device time between readings, both over
	// all lives.
	at          time.Duration
	used        known.Duration
	total, over time.Duration
	// spent is the CPU time used during the dumps, and during is the total
	// duration of the dumps.
	spent, during time.Duration
	dumps         int
	// latest is the cost of the latest dump, and recent is the moving average.
	latest, recent time.Duration
}

// read adds a reading of the CPU time at the given time of the device's clock.
// A time or CPU time below that of the previous reading means that the process
// has changed.
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

// dump adds the CPU time used during one dump.
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

// idle returns the load while dumpsys is not running, as a fraction of one
// core.
func (m *meter) idle() float64 {
	if quiet := m.over - m.during; quiet > 0 && m.total > m.spent {
		return float64(m.total-m.spent) / float64(quiet)
	}
	return 0
}

// cost returns the CPU time caused by the dumps: the time used during the
// dumps, minus the time that would have been used without them.
func (m *meter) cost() time.Duration {
	return max(0, m.spent-time.Duration(m.idle()*float64(m.during)))
}

// percent returns the CPU time per device time, in percent of one core, or nil
// if nothing was measured.
func percent(spent, over time.Duration) *float64 {
	if over <= 0 {
		return nil
	}
	return new(record.Round(float64(spent)/float64(over)*100, 2))
}

// share returns the total load of a process and the load caused by dumps, in
// percent of one core.
func (m *meter) share() (all, cost *float64) {
	all = percent(m.total, m.over)
	if m.dumps > 0 {
		// The cost may exceed the total, because some dumps may not have run
		// between two readings.
		cost = percent(min(m.cost(), m.total), m.over)
	}
	return all, cost
}

// maxAppUsage bounds the number of processes in a usage event.
const maxAppUsage = 500

// usage returns the cost so far.
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

// nextWake returns the device time of the next usage event.
func (u *overhead) nextWake() time.Duration { return u.due }

// recordDue records a usage event every usageEvery.
func (u *overhead) recordDue(now time.Duration) {
	if now >= u.due {
		u.due = align(now, usageEvery)
		u.record()
	}
}

// record records a usage event.
func (u *overhead) record() {
	u.recordEvent(record.Event{Event: "usage", Usage: new(u.usage()), Overhead: u.run.overhead.record()})
}
