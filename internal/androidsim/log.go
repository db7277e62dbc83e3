package androidsim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
	"github.com/leakgate/leakgate/internal/ksh"
)

type logLine struct {
	androidtext.LogEntry
	uid int
	// by is the process that logs the entry, and instance is the number of its
	// life. The entry exists only if that life lasts until the time of the
	// entry.
	by       *process
	instance int
}

// life is one life of a Java process; the garbage collections in it are logged.
type life struct {
	proc *process
	view view
	// until is the time at which the life ended, or never for the current life.
	until time.Duration
}

// Limits on the size of the log, similar to those of a phone's ring buffers.
const (
	maxLogLines = 4096
	maxLives    = 256
	// maxCollections bounds the collections logged for one life.
	maxCollections = 240
	// collectionInterval is the approximate time between two collections.
	collectionInterval = time.Minute
)

// lmkdPID and uidLMKD are the pid and the uid of lmkd.
const lmkdPID, uidLMKD = 479, 1069

// add appends an entry to the log and removes the oldest entries if the log is
// full. The caller must hold the lock.
func (p *Phone) add(l logLine) {
	if len(p.lines) >= maxLogLines {
		p.lines = slices.Delete(p.lines, 0, len(p.lines)-maxLogLines+1)
	}
	p.lines = append(p.lines, l)
}

// logf formats a log entry of a process and adds it to the log. The caller must
// hold the lock.
func (p *Phone) logf(at time.Time, buffer string, v view, tid int, priority byte, tag, format string, args ...any) {
	p.add(logLine{uid: v.uid, LogEntry: androidtext.LogEntry{
		Time: at.UTC(), Buffer: buffer, PID: v.pid, TID: tid, Priority: priority, Tag: tag,
		Text: fmt.Sprintf(format, args...),
	}})
}

// startLife records the start of a process whose garbage collections are
// logged. The caller must hold the lock.
func (p *Phone) startLife(proc *process) {
	if proc.native || proc.kernel || proc.isZygote() {
		return
	}
	for i := range p.lives {
		if l := &p.lives[i]; l.proc == proc && l.until == never {
			l.until = proc.died
		}
	}
	if len(p.lives) >= maxLives {
		p.lives = slices.Delete(p.lives, 0, 1)
	}
	p.lives = append(p.lives, life{proc: proc, view: p.view(proc, proc.start), until: never})
}

func (v view) artTag() string { return androidtext.RuntimeTag(v.api, v.name, v.bits32) }

// logDeath logs the end of an app's process. The caller must hold the lock.
func (p *Phone) logDeath(v view, m memory, why cause, up time.Duration) {
	at := p.wallAt(up)
	system := p.processNamed(systemServer)
	server := p.view(system, up)
	zygote := p.view(p.zygote, up)
	if v.bits32 {
		zygote = p.view(p.zygote32, up)
	}
	adj := v.oomScoreAdj()
	switch why.reason {
	case androidtext.Crash:
		p.logCrash(at, v, m, server, why)
	case androidtext.ANR:
		p.logANR(at, v, server, why)
	case androidtext.CrashNative:
		p.logf(at, "crash", v, v.pid, 'F', "libc", "%s", androidtext.FatalSignal(v.pid, v.comm(), why.status))
	case androidtext.LowMemory:
		p.logLowMemory(at, v, m, adj)
	case androidtext.OtherKill, androidtext.MemoryLimiter:
		p.logKill(at, v, server, server.pid+11, why)
	case androidtext.UserRequested:
		if _, reason, stopped := strings.Cut(why.description, stopReason); stopped {
			p.logf(at, "system", server, server.pid+11, 'I', "ActivityManager",
				"Force stopping %s appid=%d user=%d: %s", v.pkg(), v.uid%perUser, v.uid/perUser, reason)
		}
		p.logKill(at, v, server, server.pid+11, why)
	}
	signal := why.status
	if signal == 0 {
		signal = sigKill
	}
	after := at.Add(9 * time.Millisecond)
	p.logf(after, "main", zygote, zygote.pid, 'I', "Zygote", "%s", androidtext.ZygoteExit(v.api, v.pid, signal))
	if slices.Contains([]int{
		androidtext.UserRequested, androidtext.ANR, androidtext.OtherKill, androidtext.MemoryLimiter,
	}, why.reason) {
		return // the system does not log its own actions
	}
	p.logf(after, "system", server, server.pid+23, 'I', "ActivityManager", "%s",
		androidtext.Died(v.api, v.pid, v.name, adj))
	p.logf(after, "events", server, server.pid+23, 'I', "am_proc_died", "[%d,%d,%s]", v.uid/perUser, v.pid, v.name)
}

// logKill logs that the system kills a process. The caller must hold the lock.
func (p *Phone) logKill(at time.Time, v, server view, thread int, why cause) {
	adj := v.oomScoreAdj()
	p.logf(at, "system", server, thread, 'I', "ActivityManager", "%s",
		androidtext.Killing(v.pid, v.name, v.uid, adj, why.description))
	p.logf(at, "events", server, thread, 'I', "am_kill", "%s",
		androidtext.KillEvent(v.pid, v.name, v.uid, adj, why.description))
}

// logCrash logs an uncaught exception (com.android.internal.os.RuntimeInit).
func (p *Phone) logCrash(at time.Time, v view, m memory, server view, why cause) {
	class := cmp.Or(why.class, v.leakClass())
	file := class[strings.LastIndexByte(class, '.')+1:] + ".java"
	thrown, message := "java.lang.IllegalStateException", "simulated crash"
	if why.exhausted || why.class == "" && m.leaked > 0 {
		limit := p.heapLimit(v)
		thrown, message = "java.lang.OutOfMemoryError",
			fmt.Sprintf("Failed to allocate a 262160 byte allocation with %d free bytes and %dKB until OOM, target "+
				"footprint %d, growth limit %d", 98<<10, 96, limit<<20, limit<<20)
	}
	for _, line := range append(androidtext.FatalException(v.pid, v.name, thrown+": "+message),
		fmt.Sprintf("\tat %s.onCreate(%s:57)", class, file),
		"\tat android.app.Activity.performCreate(Activity.java:8051)",
		"\tat android.app.ActivityThread.main(ActivityThread.java:7839)",
	) {
		p.logf(at, "crash", v, v.pid, 'E', "AndroidRuntime", "%s", line)
	}
	p.logf(at, "events", server, server.pid+31, 'I', "am_crash", "[%d,%d,%s,%d,%s,%s,%s,57]", v.pid, v.uid/perUser,
		v.name, 948452934, thrown, message, file)
	p.logf(at.Add(3*time.Millisecond), "main", v, v.pid, 'I', "Process", "Sending signal. PID: %d SIG: 9", v.pid)
}

// logANR logs that an app does not respond and is killed for this reason
// (com.android.server.am.ProcessErrorStateRecord.appNotResponding).
func (p *Phone) logANR(at time.Time, v, server view, why cause) {
	_, reason, _ := strings.Cut(why.description, ": ")
	thread := server.pid + 37
	p.logf(at, "events", server, thread, 'I', "am_anr", "%s",
		androidtext.KillEvent(v.pid, v.name, v.uid, 948452934, reason))
	for _, line := range []string{
		fmt.Sprintf("ANR in %s (%s)", v.name, shortComponent(v.pkg(), why.class)), fmt.Sprintf("PID: %d", v.pid),
		"Reason: " + reason, "Load: 0.5 / 0.3 / 0.2",
	} {
		p.logf(at, "system", server, thread, 'E', "ActivityManager", "%s", line)
	}
	p.logKill(at, v, server, thread, why)
}

// logLowMemory logs a kill by the kernel's low memory killer (before Android 9)
// or by lmkd.
func (p *Phone) logLowMemory(at time.Time, v view, m memory, adj int) {
	from, buffer, priority := view{pid: lmkdPID, uid: uidLMKD}, "main", byte('I')
	if v.api < 28 {
		from, buffer, priority = view{}, "kernel", 'W'
	}
	rss, swap := m.mapped().rss(), m.mapped().swap
	for _, line := range androidtext.LowMemoryKill(v.api, v.pid, v.name, v.comm(), v.uid, adj, rss, swap) {
		p.logf(at, buffer, from, from.pid, priority, "lowmemorykiller", "%s", line)
	}
}

// log returns the entries of this boot that are still stored, sorted by time.
// It omits no entry since the time from, but may include earlier ones.
func (p *Phone) log(from time.Time) []logLine {
	p.mu.Lock()
	defer p.mu.Unlock()
	up := p.clock.up()
	p.advance(up)
	out, now := slices.Clone(p.lines), p.wallAt(up)
	for _, l := range p.lives {
		until := l.until
		switch {
		case until != never:
		case l.proc.alive():
			until = l.proc.start + l.proc.age(up)
		default:
			until = l.proc.died
		}
		age := until - l.view.start
		// Beyond this age, the process logs nothing.
		out = p.collections(out, l.view, age-now.Sub(from), age)
	}
	out = slices.DeleteFunc(out,
		func(l logLine) bool { return l.Time.Before(p.cleared) || l.Time.After(now) || p.neverLogged(l) })
	slices.SortStableFunc(out, func(a, b logLine) int { return a.Time.Compare(b.Time) })
	return out[max(0, len(out)-maxLogLines):]
}

// neverLogged reports whether the process of an entry ended before it could log
// the entry. The caller must hold the lock.
func (p *Phone) neverLogged(l logLine) bool {
	return l.by != nil && (!l.by.alive() || l.by.instance != l.instance) && p.wallAt(l.by.died).Before(l.Time)
}

// collections adds the log entries for the garbage collections between two ages
// of a process. The caller must hold the lock.
func (p *Phone) collections(out []logLine, v view, from, age time.Duration) []logLine {
	stream := mix(v.stream, hashText("collections"))
	last := int64(age / collectionInterval)
	for k := max(0, last-maxCollections, int64(from/collectionInterval)-1); k <= last; k++ {
		jitter := time.Duration(uniform(stream, k) * float64(collectionInterval) * 0.8)
		then := v
		if then.age = time.Duration(k)*collectionInterval + jitter; then.age > age {
			break
		}
		out = append(out, logLine{uid: v.uid, LogEntry: androidtext.LogEntry{
			Time: p.wallAt(v.start + then.age).UTC(), Buffer: "main", PID: v.pid, TID: v.pid + heapTask,
			Priority: androidtext.CollectionPriority(v.api), Tag: v.artTag(),
			Text: then.collection(false, mix(stream, uint64(k))),
		}})
	}
	return out
}

// heapTask is the difference between the tid of HeapTaskDaemon and the pid.
const heapTask = 5

func (v view) collection(explicit bool, random uint64) string {
	java := heap(v.memory().summarize().JavaHeap)
	freed, large, n := int64(2<<20+random%(8<<20)), int64(random%9), random>>7
	c := androidtext.Collection{
		Explicit: explicit, Objects: freed / 44, Freed: freed, LargeObjects: large, LargeFreed: large * 48 << 10,
		Used: java.Alloc << 10, Size: java.Size << 10,
		Paused: []time.Duration{187 * time.Microsecond, 53 * time.Microsecond},
		Took:   time.Duration(n%150+20)*time.Millisecond + time.Duration(n%1000)*time.Microsecond,
	}
	switch {
	case v.api < 21:
		c.Paused, c.Took = []time.Duration{2 * time.Millisecond, 3 * time.Millisecond}, 34*time.Millisecond
	case v.api < 26:
		c.Paused = []time.Duration{1034 * time.Microsecond}
	case v.api < 31:
		c.Paused = c.Paused[:1]
	}
	return c.Text(v.api)
}

// logCollection logs an explicit collection. The caller must hold the lock.
func (p *Phone) logCollection(proc *process, up time.Duration, signal bool) {
	v := p.view(proc, up)
	at := p.wallAt(up)
	if signal && v.api >= 21 {
		p.logf(at, "main", v, v.pid+1, 'I', v.artTag(), "%s", androidtext.SignalCollects(v.api))
	}
	p.logf(at.Add(time.Millisecond), "main", v, v.pid+1, androidtext.CollectionPriority(v.api), v.artTag(), "%s",
		v.collection(true, mix(v.stream, uint64(up))))
}

// logDump logs the start of a heap dump, and its end or the reason for its
// failure (art/runtime/hprof/hprof.cc).
func (p *Phone) logDump(v view, name string, size int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.wallAt(p.clock.up())
	p.logf(at, "main", v, v.pid, 'I', v.artTag(), "%s", androidtext.DumpBegins(v.api, name))
	if v.api < 21 {
		return
	}
	end := logLine{uid: v.uid, LogEntry: androidtext.LogEntry{
		Time: at.Add(dumpTakes).UTC(), Buffer: "main", PID: v.pid, TID: v.pid, Priority: 'I', Tag: v.artTag(),
		Text: androidtext.DumpEnds(size, dumpTakes, size/60),
	}}
	if err != nil {
		end.Priority, end.Text = 'E', androidtext.DumpFails(name, ksh.ErrorText(err))
	}
	for _, proc := range p.procs {
		if proc.pid == v.pid && proc.start == v.start {
			end.by, end.instance = proc, proc.instance
		}
	}
	p.add(end)
}
