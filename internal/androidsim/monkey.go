package androidsim

import (
	"fmt"
	"slices"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
	"github.com/leakgate/leakgate/internal/ksh"
)

// eventTime is the device time that an event takes without a throttle.
const eventTime = time.Millisecond

func monkey(c *call) int {
	seed := int64(mix(c.phone.opt.Seed, uint64(c.phone.Uptime())) >> 20)
	m, problem := androidtext.ParseMonkey(c.Args[1:], seed)
	if problem != "" {
		fmt.Fprint(c.Errs, problem)
		return 255
	}
	if c.phone.server() == 0 {
		fmt.Fprintln(c.Errs, "** Error: Unable to connect to activity manager; is the system running?")
		return 253
	}
	c.Printf("%s", m.Begin(c.phone.opt.API, c.Args[1:]))
	found := len(m.Packages) == 0
	for _, p := range m.Packages {
		ok, _ := c.phone.startProcesses(p)
		if ok {
			c.phone.toFront(p)
		}
		found = found || ok
	}
	if !found {
		c.Printf("%s", androidtext.MonkeyNoActivities)
		return 252
	}
	return c.runMonkey(m)
}

// deaths returns how often processes of the packages have died so far, how
// often they crashed, and the process that crashed last. Monkey reports only
// crashes.
func (c *call) deaths(packages []string) (n, crashes int, last *process) {
	p := c.phone
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance(p.clock.up())
	for _, proc := range p.procs {
		if proc.app != nil && slices.Contains(packages, proc.app.Package) {
			n, crashes = n+proc.deaths, crashes+proc.crashed
			if proc.crashed > 0 && (last == nil || proc.crashedAt > last.crashedAt) {
				last = proc
			}
		}
	}
	return n, crashes, last
}

func (c *call) runMonkey(m androidtext.Monkey) int {
	clock := c.phone.now()
	began := clock.up()
	each := max(m.Throttle, eventTime)
	before, crashesBefore, _ := c.deaths(m.Packages)
	done := 0
	for done < m.Events {
		// The clock determines the number of events, so the run takes the
		// specified time even if the host wakes up late.
		next := min(m.Events, done-done%androidtext.MonkeyChunk+androidtext.MonkeyChunk)
		c.Out.Flush()
		if clock.wait(c.Ctx, began+time.Duration(next)*each-clock.up()) != nil {
			return ksh.Status(c.Ctx)
		}
		done = next
		c.Printf("%s", m.Progress(done))
		now, crashes, last := c.deaths(m.Packages)
		if now == before {
			continue
		}
		crash := crashes > crashesBefore
		before, crashesBefore = now, crashes
		if crash {
			c.Printf("%s", androidtext.MonkeyCrash(last.spec.Name, last.crashedPID))
		}
		if crash && !m.IgnoreCrashes {
			out, errs := m.Aborted(done)
			c.Printf("%s", out)
			c.Out.Flush()
			fmt.Fprint(c.Errs, errs)
			return max(done&255, 1)
		}
		// Some of monkey's events start activities.
		for _, p := range m.Packages {
			c.phone.startProcesses(p)
			c.phone.toFront(p)
		}
	}
	c.Printf("%s", m.End(clock.up()-began))
	return 0
}
