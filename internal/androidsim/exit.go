package androidsim

import (
	"slices"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
)

type cause struct {
	reason, subreason int
	// status is the signal, or 0.
	status      int
	description string
	// class is the class of the screen in which the process ended, or "";
	// exhausted means that the Java heap was full.
	class     string
	exhausted bool
}

var (
	crashed     = cause{reason: androidtext.Crash, description: "crash"}
	nativeCrash = cause{reason: androidtext.CrashNative, status: sigSegv, description: "crash"}
	lowMemory   = cause{reason: androidtext.LowMemory}
)

// killed returns the cause recorded for a process killed by a signal.
func killed(signal int) cause { return cause{reason: androidtext.Signaled, status: signal} }

// exitInfo is the first API level that records how processes ended.
const exitInfo = androidtext.ExitInfoSince

// recordExit records the end of an app's process, which must still be running.
// The caller must hold the lock.
func (p *Phone) recordExit(proc *process, at time.Duration, why cause) {
	if proc.app == nil || proc.native || proc.isZygote() || !proc.alive() {
		return
	}
	if why.reason == androidtext.Crash || why.reason == androidtext.CrashNative {
		proc.crashed, proc.crashedAt, proc.crashedPID = proc.crashed+1, at, proc.pid
	}
	v := p.view(proc, at)
	m := v.memory()
	e := androidtext.Exit{
		Time: p.wallAt(at).UTC(), Package: proc.app.Package, Process: v.name, PID: v.pid, UID: v.uid,
		Reason: why.reason, Subreason: why.subreason, Status: why.status, Description: why.description,
		Importance: v.importance(), PssKB: m.sum().pss(), RssKB: m.mapped().rss(),
	}
	if p.opt.API >= 34 {
		// Since Android 14, the system no longer samples the Pss periodically
		// (AppProfiler).
		e.PssKB = 0
	}
	p.exits = append(p.exits, e)
	if len(p.exits) > androidtext.MaxExits*(len(p.opt.Apps)+len(systemPackages)+1) {
		p.exits = p.exits[1:]
	}
	p.logDeath(v, m, why, at)
}

// importance returns ActivityManager.RunningAppProcessInfo.importance.
func (v view) importance() int {
	switch adj := v.oomScoreAdj(); {
	case adj >= 700:
		return 400
	case adj > 0:
		return 230
	}
	return 100
}

// wallAt converts an uptime to wall clock time. The caller must hold the lock.
func (p *Phone) wallAt(up time.Duration) time.Time { return p.wall().Add(up - p.clock.up()) }

// exitInfoText returns the output of dumpsys activity exit-info for the given
// package, or for all packages if pkg is empty.
func (p *Phone) exitInfoText(pkg string) string {
	p.mu.Lock()
	p.advance(p.clock.up())
	exits := slices.Clone(p.exits)
	p.mu.Unlock()
	return androidtext.ExitInfo(p.opt.API, p.born.UTC(), exits, pkg)
}

func dumpActivity(d *dump, args []string) {
	if !d.work(false) {
		return
	}
	api := d.phone.opt.API
	switch pkg := ""; {
	case len(args) == 0:
		d.Printf("ACTIVITY MANAGER RUNNING PROCESSES (dumpsys activity processes)\n")
		for _, v := range d.phone.views() {
			if v.app != nil {
				d.Printf("  *APP* UID %d ProcessRecord{%x %d:%s/%s}\n", v.uid, hashText(v.name)&0xfffffff, v.pid,
					v.name, androidtext.ShortUser(v.uid))
			}
		}
	case args[0] == "exit-info" && api >= exitInfo:
		if len(args) > 1 {
			pkg = args[1]
		}
		d.Printf("%s", d.phone.exitInfoText(pkg))
	default:
		d.Printf("%s", androidtext.BadActivityCommand(api, args[0]))
	}
}
