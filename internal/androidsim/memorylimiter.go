package androidsim

import (
	"fmt"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
)

// MemoryLimiter holds the limits in MB on the anonymous memory and the swap of
// an app's process. Half a minute after memory and swap together exceed the sum
// of both limits, the phone kills the process. Visible applies to processes
// that the user sees, and NotVisible applies to processes in the background.
type MemoryLimiter struct {
	Visible, VisibleSwap       int
	NotVisible, NotVisibleSwap int
	// OldReason makes the limiter kill with REASON_OTHER, as before API 37.2.
	OldReason bool
	// Silent means that am has no memory-limiter command.
	Silent bool
}

const (
	memoryLimiterAPI = 37
	// limiterPeriod is the time between two checks of a process; limiterDelay
	// is the time between exceeding the limit and the kill, in which a profiler
	// can run (MemoryLimiter.java, KILL_DELAY_MS).
	limiterPeriod = 5 * time.Second
	limiterDelay  = 30 * time.Second
)

func (p *Phone) limits(proc *process) bool {
	return p.opt.MemoryLimiter != nil && p.opt.API >= memoryLimiterAPI && proc.app != nil && !proc.native &&
		proc.fixed == 0
}

// limit returns the limits of a process in its current state, in kB; ok is
// false if the process has no limits (MemoryLimiter.java,
// initializeMemoryLimits).
func (l *MemoryLimiter) limit(adj int) (memory, swap int64, ok bool) {
	switch {
	case adj < 0 || adj >= 900:
		return 0, 0, false
	case adj >= 200:
		return int64(l.NotVisible) << 10, int64(l.NotVisibleSwap) << 10, true
	}
	return int64(l.Visible) << 10, int64(l.VisibleSwap) << 10, true
}

// limitMemory checks a process, and kills it half a minute after it has
// exceeded its limit. The caller must hold the lock.
func (p *Phone) limitMemory(proc *process, at time.Duration) {
	if proc.overLimit != never && at >= proc.overLimit+limiterDelay {
		why := cause{reason: androidtext.MemoryLimiter, description: "MemoryLimiter:AnonSwap"}
		if p.opt.MemoryLimiter.OldReason {
			why.reason = androidtext.OtherKill
		}
		p.end(proc, at, proc.backAfter(), why)
		return
	}
	proc.limited = at + limiterPeriod
	if proc.overLimit != never {
		return
	}
	v := p.view(proc, at)
	memory, swap, ok := p.opt.MemoryLimiter.limit(v.oomScoreAdj())
	m := v.memory()
	anonymous, _, _ := m.resident()
	if !ok || anonymous+m.mapped().swap <= memory+swap {
		return
	}
	proc.overLimit = at
	server := p.view(p.processNamed(systemServer), at)
	p.logf(p.wallAt(at), "system", server, server.pid+11, 'I', "MemoryLimiter",
		"onLimitExceeded: pid=%d uid=%d type=anon+swap memHigh=%d swapHigh=%d pkg=%s",
		v.pid, v.uid, memory<<10, swap<<10, v.pkg())
}

// memoryLimiter implements am memory-limiter (MemoryLimiter.java, dump).
func (c *call) memoryLimiter(args []string) int {
	l := c.phone.opt.MemoryLimiter
	if c.phone.opt.API < memoryLimiterAPI || l != nil && l.Silent || len(args) != 1 || args[0] != "status" {
		fmt.Fprintf(c.Errs, "Unknown command: memory-limiter\n")
		return 255
	}
	c.Printf("Memory limiter\n")
	if l == nil {
		c.Printf("  disabled\n")
		return 0
	}
	c.Printf("  %-24s %-24s %-24s %-24s %s\n", "enabled", "limits=true", "monitoring=true", "killing=true",
		"ignored=none")
	c.Printf("  %-24s %-24s %-24s %s\n", fmt.Sprintf("visibleMem=%dMB", l.Visible),
		fmt.Sprintf("visibleSwap=%dMB", l.VisibleSwap),
		fmt.Sprintf("notVisibleMem=%dMB", l.NotVisible), fmt.Sprintf("notVisibleSwap=%dMB", l.NotVisibleSwap))
	c.Printf("  %-24s %-24s %-24s %s\n", "started=36", "watched=36", "watch-failed=0", "events=0")
	return 0
}
