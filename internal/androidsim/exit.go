package androidsim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The reasons of android.app.ApplicationExitInfo that this phone has.
const (
	signaled      = 2
	lowMemoryKill = 3
	javaCrash     = 4
	crashNative   = 5
	notResponding = 6
	userRequested = 10
	otherKill     = 13
	overMemory    = 17
)

var exitReasons = map[int]string{signaled: "SIGNALED", lowMemoryKill: "LOW_MEMORY", javaCrash: "APP CRASH(EXCEPTION)", crashNative: "APP CRASH(NATIVE)", notResponding: "ANR", userRequested: "USER REQUESTED", otherKill: "OTHER KILLS BY SYSTEM", overMemory: "MEMORY LIMITER"}

var exitSubreasons = map[int]string{0: "UNKNOWN", 21: "FORCE STOP", 24: "KILL BACKGROUND"}

// cause is why a process ended.
type cause struct {
	reason, subreason int
	// status is the signal where there was one.
	status      int
	description string
	// class is in which screen it was, "" for none; exhausted is a Java heap that was full.
	class     string
	exhausted bool
}

var (
	crashed     = cause{reason: javaCrash, description: "crash"}
	nativeCrash = cause{reason: crashNative, status: sigSegv, description: "crash"}
	lowMemory   = cause{reason: lowMemoryKill}
)

// killed is the end by a signal.
func killed(signal int) cause { return cause{reason: signaled, status: signal} }

// exit is the end of one incarnation, as Android keeps it over reboots.
type exit struct {
	cause
	at         time.Time
	pkg, name  string
	pid, uid   int
	importance int
	pss, rss   int64
}

const (
	// maxExits is how many ends are kept of one package (config_app_exit_info_history_list_size).
	maxExits = 16
	// exitInfo is the version that keeps them at all.
	exitInfo = 30
)

// bury notes the end of an app's process, which must still run. The caller holds
// the lock.
func (p *Phone) bury(proc *process, at time.Duration, why cause) {
	if proc.app == nil || proc.native || proc.isZygote() || !proc.alive() {
		return
	}
	if why.reason == javaCrash || why.reason == crashNative {
		proc.crashed, proc.crashedAt, proc.crashedPID = proc.crashed+1, at, proc.pid
	}
	v := p.view(proc, at)
	m := v.memory()
	e := exit{cause: why, at: p.wallAt(at), pkg: proc.app.Package, name: v.name, pid: v.pid, uid: v.uid, importance: v.importance(), pss: m.sum().pss(), rss: m.mapped().rss()}
	if p.opt.API >= 34 {
		// The system no longer samples the Pss of its own accord (AppProfiler).
		e.pss = 0
	}
	p.exits = append(p.exits, e)
	if len(p.exits) > maxExits*(len(p.opt.Apps)+len(systemPackages)+1) {
		p.exits = p.exits[1:]
	}
	p.logDeath(v, m, why, at)
}

// importance is that of ActivityManager.RunningAppProcessInfo.
func (v view) importance() int {
	switch adj := v.oomScoreAdj(); {
	case adj >= 700:
		return 400
	case adj > 0:
		return 230
	}
	return 100
}

// wallAt is the wall clock at an uptime. The caller holds the lock.
func (p *Phone) wallAt(up time.Duration) time.Time { return p.wall().Add(up - p.clock.up()) }

const exitTime = "2006-01-02 15:04:05.000"

// exitInfoText is dumpsys activity exit-info: of one package, or of all. The newest
// of a uid comes first (AppExitInfoTracker.dumpHistoryProcessExitInfo).
func (p *Phone) exitInfoText(pkg string) string {
	p.mu.Lock()
	p.advance(p.clock.up())
	exits := slices.Clone(p.exits)
	p.mu.Unlock()
	slices.Reverse(exits)
	var b strings.Builder
	b.WriteString("ACTIVITY MANAGER PROCESS EXIT INFO (dumpsys activity exit-info)\n")
	fmt.Fprintf(&b, "Last Timestamp of Persistence Into Persistent Storage: %s\n", p.born.UTC().Format(exitTime))
	var names []string
	for _, e := range exits {
		if (pkg == "" || e.pkg == pkg) && !slices.Contains(names, e.pkg) {
			names = append(names, e.pkg)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "  package: %s\n", name)
		p.exitsOf(&b, slices.DeleteFunc(slices.Clone(exits), func(e exit) bool { return e.pkg != name }))
	}
	return b.String()
}

// exitsOf writes the ends of one package, for each uid apart.
func (p *Phone) exitsOf(b *strings.Builder, exits []exit) {
	var uids []int
	for _, e := range exits {
		if !slices.Contains(uids, e.uid) {
			uids = append(uids, e.uid)
		}
	}
	slices.Sort(uids)
	for _, uid := range uids {
		fmt.Fprintf(b, "    Historical Process Exit for uid=%d\n", uid)
		n := 0
		for _, e := range exits {
			if e.uid == uid && n < maxExits {
				e.dump(b, n, p.opt.API)
				n++
			}
		}
	}
}

// dump is ApplicationExitInfo.dump: a line for each value in Android 11, and since
// then several on a line.
func (e exit) dump(b *strings.Builder, n, api int) {
	const indent = "          "
	description, sub := e.description, exitSubreasons[e.subreason]
	if description == "" {
		description = "null"
	}
	if sub == "" {
		sub = exitSubreasons[0]
	}
	first := []string{
		"timestamp=" + e.at.UTC().Format(exitTime), fmt.Sprintf("pid=%d", e.pid), fmt.Sprintf("realUid=%d", e.uid), fmt.Sprintf("packageUid=%d", e.uid),
		fmt.Sprintf("definingUid=%d", e.uid), fmt.Sprintf("user=%d", e.uid/perUser),
	}
	second := []string{"process=" + e.name, fmt.Sprintf("reason=%d (%s)", e.reason, exitReasons[e.reason])}
	if api > exitInfo {
		second = append(second, fmt.Sprintf("subreason=%d (%s)", e.subreason, sub))
	}
	second = append(second, fmt.Sprintf("status=%d", e.status))
	third := []string{
		fmt.Sprintf("importance=%d", e.importance), "pss=" + debugSize(e.pss<<10), "rss=" + debugSize(e.rss<<10), "description=" + description,
		"state=empty", "trace=null",
	}
	fmt.Fprintf(b, "        ApplicationExitInfo #%d:\n", n)
	between := " "
	if api <= exitInfo {
		between = "\n" + indent
	}
	for _, line := range [][]string{first, second, third} {
		b.WriteString(indent + strings.Join(line, between) + "\n")
	}
}

// debugSize is android.util.DebugUtils.printSizeValue.
func debugSize(bytes int64) string {
	n, unit := float64(bytes), ""
	for _, next := range []string{"KB", "MB", "GB", "TB", "PB"} {
		if n <= 900 {
			break
		}
		n, unit = n/1024, next
	}
	switch {
	case n < 1:
		return strconv.FormatFloat(n, 'f', 2, 64) + unit
	case n < 10:
		return strconv.FormatFloat(n, 'f', 1, 64) + unit
	}
	return strconv.FormatFloat(n, 'f', 0, 64) + unit
}

// dumpActivity is dumpsys activity, as far as it tells how processes ended.
func dumpActivity(d *dump, args []string) {
	if !d.work(false) {
		return
	}
	api := d.phone.opt.API
	switch pkg := ""; {
	case len(args) == 0:
		d.printf("ACTIVITY MANAGER RUNNING PROCESSES (dumpsys activity processes)\n")
		for _, v := range d.phone.views() {
			if v.app != nil {
				d.printf("  *APP* UID %d ProcessRecord{%x %d:%s/%s}\n", v.uid, hashText(v.name)&0xfffffff, v.pid, v.name, userName(v.uid))
			}
		}
	case args[0] == "exit-info" && api >= exitInfo:
		if len(args) > 1 {
			pkg = args[1]
		}
		d.printf("%s", d.phone.exitInfoText(pkg))
	default:
		// Since Android 7 it is given to the shell command first.
		if api >= 24 {
			d.printf("Unknown command: %s\n", args[0])
		}
		d.printf("Bad activity command, or no activities match: %s\nUse -h for help.\n", args[0])
	}
}
