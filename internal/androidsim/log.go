package androidsim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// logLine is an entry of the log.
type logLine struct {
	at            time.Time
	buffer        string
	pid, tid, uid int
	priority      byte
	tag, text     string
	// by is who must live until then, in an incarnation, for the entry to be made.
	by       *process
	instance int
}

// life is an incarnation of a process of Java, whose collections are in the log.
type life struct {
	proc *process
	view view
	// until is its end, never for the latest one of the process.
	until time.Duration
}

// Bounds of the log, as a phone's ring buffers have.
const (
	maxLogLines = 4096
	maxLives    = 256
	// maxCollections are those that are shown of one life.
	maxCollections = 240
	// collects is about the time between two collections of a life.
	collects = time.Minute
)

// lmkdPID is where lmkd would run.
const lmkdPID, uidLMKD = 479, 1069

// add puts an entry into the log. The caller holds the lock.
func (p *Phone) add(l logLine) {
	if len(p.lines) >= maxLogLines {
		p.lines = slices.Delete(p.lines, 0, len(p.lines)-maxLogLines+1)
	}
	p.lines = append(p.lines, l)
}

// logf is add with what most entries have. The caller holds the lock.
func (p *Phone) logf(at time.Time, buffer string, v view, tid int, priority byte, tag, format string, args ...any) {
	p.add(logLine{at: at, buffer: buffer, pid: v.pid, tid: tid, uid: v.uid, priority: priority, tag: tag, text: fmt.Sprintf(format, args...)})
}

// begin notes a new incarnation. The caller holds the lock.
func (p *Phone) begin(proc *process) {
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

// artTag is under which name ART logs: its own until Android 7, that of the zygote
// in Android 8 and that of the process since (art/runtime, InitLogging).
func (v view) artTag() string {
	switch {
	case v.api < 26:
		return "art"
	case v.api < 28 && v.bits32:
		return "zygote"
	case v.api < 28:
		return "zygote64"
	}
	return v.comm()
}

// logDeath logs the end of an app's process. The caller holds the lock.
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
	case javaCrash:
		p.logCrash(at, v, m, server, why)
	case notResponding:
		p.logANR(at, v, server, why)
	case crashNative:
		// bionic linker/debuggerd_handler.cpp, log_signal_summary
		p.logf(at, "crash", v, v.pid, 'F', "libc", "Fatal signal %d (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x0 in tid %d (%s), pid %d (%s)", why.status, v.pid, v.comm(), v.pid, v.comm())
	case lowMemoryKill:
		p.logLowMemory(at, v, m, adj)
	case otherKill, overMemory:
		p.logf(at, "system", server, server.pid+11, 'I', "ActivityManager", "Killing %d:%s/%s (adj %d): %s", v.pid, v.name, userName(v.uid), adj, why.description)
		p.logf(at, "events", server, server.pid+11, 'I', "am_kill", "[%d,%d,%s,%d,%s]", v.uid/perUser, v.pid, v.name, adj, why.description)
	case userRequested:
		if _, reason, stopped := strings.Cut(why.description, stopReason); stopped {
			p.logf(at, "system", server, server.pid+11, 'I', "ActivityManager", "Force stopping %s appid=%d user=%d: %s", v.pkg(), v.uid%perUser, v.uid/perUser, reason)
		}
		p.logf(at, "system", server, server.pid+11, 'I', "ActivityManager", "Killing %d:%s/%s (adj %d): %s", v.pid, v.name, userName(v.uid), adj, why.description)
		p.logf(at, "events", server, server.pid+11, 'I', "am_kill", "[%d,%d,%s,%d,%s]", v.uid/perUser, v.pid, v.name, adj, why.description)
	}
	signal := why.status
	if signal == 0 {
		signal = sigKill
	}
	after := at.Add(9 * time.Millisecond)
	if v.api >= 28 {
		p.logf(after, "main", zygote, zygote.pid, 'I', "Zygote", "Process %d exited due to signal %d %s", v.pid, signal, exitWords[signal])
	} else {
		p.logf(after, "main", zygote, zygote.pid, 'I', "Zygote", "Process %d exited due to signal (%d)", v.pid, signal)
	}
	if slices.Contains([]int{userRequested, notResponding, otherKill, overMemory}, why.reason) {
		return // the system does not wonder at what it did itself
	}
	state := ""
	if v.api >= 26 {
		state = ": " + procState(v)
	}
	p.logf(after, "system", server, server.pid+23, 'I', "ActivityManager", "Process %s (pid %d) has died%s", v.name, v.pid, state)
	p.logf(after, "events", server, server.pid+23, 'I', "am_proc_died", "[%d,%d,%s]", v.uid/perUser, v.pid, v.name)
}

// exitWords are bionic's strsignal.
var exitWords = map[int]string{1: "(Hangup)", 6: "(Aborted)", sigKill: "(Killed)", 11: "(Segmentation fault)", sigTerm: "(Terminated)"}

// procState is what ActivityManager says of a process's place
// (ProcessList.makeOomAdjString and makeProcStateString).
func procState(v view) string {
	switch adj := v.oomScoreAdj(); {
	case adj >= 900:
		return "cch+5 CEM"
	case adj >= 700:
		return "prev LAST"
	case adj > 0:
		return "prcp FGS"
	case v.api < 29:
		return "fore TOP"
	}
	return "fg  TOP"
}

// logCrash is what an exception that nobody caught leaves (com.android.internal.os.
// RuntimeInit).
func (p *Phone) logCrash(at time.Time, v view, m memory, server view, why cause) {
	class := cmp.Or(why.class, v.leakClass())
	file := class[strings.LastIndexByte(class, '.')+1:] + ".java"
	thrown, message := "java.lang.IllegalStateException", "simulated crash"
	if why.exhausted || why.class == "" && m.leaked > 0 {
		limit := p.heapLimit(v)
		thrown, message = "java.lang.OutOfMemoryError", fmt.Sprintf("Failed to allocate a 262160 byte allocation with %d free bytes and %dKB until OOM, target footprint %d, growth limit %d", 98<<10, 96, limit<<20, limit<<20)
	}
	for _, line := range []string{
		"FATAL EXCEPTION: main", fmt.Sprintf("Process: %s, PID: %d", v.name, v.pid), thrown + ": " + message,
		fmt.Sprintf("\tat %s.onCreate(%s:57)", class, file), "\tat android.app.Activity.performCreate(Activity.java:8051)",
		"\tat android.app.ActivityThread.main(ActivityThread.java:7839)",
	} {
		p.logf(at, "crash", v, v.pid, 'E', "AndroidRuntime", "%s", line)
	}
	p.logf(at, "events", server, server.pid+31, 'I', "am_crash", "[%d,%d,%s,%d,%s,%s,%s,57]", v.pid, v.uid/perUser, v.name, 948452934, thrown, message, file)
	p.logf(at.Add(3*time.Millisecond), "main", v, v.pid, 'I', "Process", "Sending signal. PID: %d SIG: 9", v.pid)
}

// logANR is what an app leaves that does not respond and is killed for it (com.android.server.am.
// ProcessErrorStateRecord.appNotResponding).
func (p *Phone) logANR(at time.Time, v, server view, why cause) {
	_, reason, _ := strings.Cut(why.description, ": ")
	thread := server.pid + 37
	p.logf(at, "events", server, thread, 'I', "am_anr", "[%d,%d,%s,%d,%s]", v.uid/perUser, v.pid, v.name, 948452934, reason)
	for _, line := range []string{
		fmt.Sprintf("ANR in %s (%s)", v.name, shortComponent(v.pkg(), why.class)), fmt.Sprintf("PID: %d", v.pid), "Reason: " + reason, "Load: 0.5 / 0.3 / 0.2",
	} {
		p.logf(at, "system", server, thread, 'E', "ActivityManager", "%s", line)
	}
	adj := v.oomScoreAdj()
	p.logf(at, "system", server, thread, 'I', "ActivityManager", "Killing %d:%s/%s (adj %d): %s", v.pid, v.name, userName(v.uid), adj, why.description)
	p.logf(at, "events", server, thread, 'I', "am_kill", "[%d,%d,%s,%d,%s]", v.uid/perUser, v.pid, v.name, adj, why.description)
}

// logLowMemory is the killer's line: of the kernel before Android 9, of lmkd since
// (system/memory/lmkd/lmkd.cpp, kill_one_process).
func (p *Phone) logLowMemory(at time.Time, v view, m memory, adj int) {
	lmkd := view{pid: lmkdPID, uid: uidLMKD}
	rss, swap := m.mapped().rss(), m.mapped().swap
	switch {
	case v.api < 28:
		p.logf(at, "kernel", view{}, 0, 'W', "lowmemorykiller", "Killing '%s' (%d), adj %d,", v.comm(), v.pid, adj)
		p.logf(at, "kernel", view{}, 0, 'W', "lowmemorykiller", "   to free %dkB on behalf of 'kswapd0' (83) because", rss)
	case v.api < 30:
		p.logf(at, "main", lmkd, lmkd.pid, 'I', "lowmemorykiller", "Kill '%s' (%d), uid %d, oom_adj %d to free %dkB", v.name, v.pid, v.uid, adj, rss)
	default:
		p.logf(at, "main", lmkd, lmkd.pid, 'I', "lowmemorykiller", "Kill '%s' (%d), uid %d, oom_score_adj %d to free %dkB rss, %dkB swap; reason: min watermark is breached even after kill", v.name, v.pid, v.uid, adj, rss, swap)
	}
}

// log returns the entries of this boot that are still there, in the order of time: those from a
// moment on, and maybe some before it.
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
		// What a process that has ended had logged by then is not later than this.
		out = p.collections(out, l.view, age-now.Sub(from), age)
	}
	out = slices.DeleteFunc(out, func(l logLine) bool { return l.at.Before(p.cleared) || l.at.After(now) || p.unmade(l) })
	slices.SortStableFunc(out, func(a, b logLine) int { return a.at.Compare(b.at) })
	return out[max(0, len(out)-maxLogLines):]
}

// unmade tells whether who was to make the entry died before. The caller holds the
// lock.
func (p *Phone) unmade(l logLine) bool {
	return l.by != nil && (!l.by.alive() || l.by.instance != l.instance) && p.wallAt(l.by.died).Before(l.at)
}

// collections adds what the collector logged from one age to another. The caller holds the
// lock.
func (p *Phone) collections(out []logLine, v view, from, age time.Duration) []logLine {
	stream := mix(v.stream, hashText("collections"))
	last := int64(age / collects)
	for k := max(0, last-maxCollections, int64(from/collects)-1); k <= last; k++ {
		jitter := time.Duration(uniform(stream, k) * float64(collects) * 0.8)
		then := v
		if then.age = time.Duration(k)*collects + jitter; then.age > age {
			break
		}
		out = append(out, logLine{
			at: p.wallAt(v.start + then.age), buffer: "main", pid: v.pid, tid: v.pid + heapTask, uid: v.uid, priority: gcPriority(v.api), tag: gcTag(v),
			text: then.collection("Background", mix(stream, uint64(k))),
		})
	}
	return out
}

// heapTask is the number of the thread HeapTaskDaemon.
const heapTask = 5

func gcPriority(api int) byte {
	if api < 21 {
		return 'D'
	}
	return 'I'
}

func gcTag(v view) string {
	if v.api < 21 {
		return "dalvikvm"
	}
	return v.artTag()
}

// collection is a line of the collector, of Dalvik (vm/alloc/Heap.cpp) or of ART
// (runtime/gc/heap.cc, Heap::LogGC).
func (v view) collection(why string, random uint64) string {
	heap := heap(v.memory().summarize(true).java)
	size, used := heap[0]<<10, heap[1]<<10
	freed := int64(2<<20 + random%(8<<20))
	free := 100 * (size - used) / size
	ms := func(n uint64) string { return fmt.Sprintf("%d.%03dms", n%150+20, n%1000) }
	if v.api < 21 {
		return fmt.Sprintf("GC_CONCURRENT freed %dK, %d%% free %dK/%dK, paused 2ms+3ms, total 34ms", freed>>10, free, used>>10, size>>10)
	}
	kind, paused := "concurrent copying", "paused 187us,53us"
	switch {
	case v.api < 26:
		kind, paused = "partial concurrent mark sweep", "paused 1.034ms"
		if why != "Background" {
			kind = "concurrent mark sweep"
		}
	case v.api < 31:
		paused = "paused 187us"
	case v.api >= 35:
		kind = "concurrent mark compact"
	}
	what := fmt.Sprintf("%d(%s) AllocSpace objects", freed/44, artSize(freed))
	if v.api >= 34 {
		what = artSize(freed) + " AllocSpace bytes"
	}
	return fmt.Sprintf("%s %s GC freed %s, %d(%s) LOS objects, %d%% free, %s/%s, %s total %s",
		why, kind, what, random%9, artSize(int64(random%9)*48<<10), free, artSize(used), artSize(size), paused, ms(random>>7))
}

// artSize is ART's PrettySize (libartbase/base/utils.cc).
func artSize(bytes int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}} {
		if bytes >= 10*u.size || u.size == 1<<10 && bytes >= u.size {
			return fmt.Sprintf("%d%s", bytes/u.size, u.name)
		}
	}
	return fmt.Sprintf("%dB", bytes)
}

// logCollection logs a collection that somebody asked for. The caller holds the lock.
func (p *Phone) logCollection(proc *process, up time.Duration, signal bool) {
	v := p.view(proc, up)
	at := p.wallAt(up)
	if signal && v.api >= 21 {
		p.logf(at, "main", v, v.pid+1, 'I', v.artTag(), "SIGUSR1 forcing GC (no HPROF)%s", map[bool]string{true: " and profile save"}[v.api >= 26])
	}
	p.logf(at.Add(time.Millisecond), "main", v, v.pid+1, gcPriority(v.api), gcTag(v), "%s", v.collection("Explicit", mix(v.stream, uint64(up))))
}

// logDump logs the begin of a heap dump, and its end or why it failed
// (art/runtime/hprof/hprof.cc).
func (p *Phone) logDump(v view, name string, size int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.wallAt(p.clock.up())
	if v.api < 21 {
		p.logf(at, "main", v, v.pid, 'I', "dalvikvm", "hprof: dumping heap strings to \"%s\".", name)
		return
	}
	p.logf(at, "main", v, v.pid, 'I', v.artTag(), "hprof: heap dump \"%s\" starting...", name)
	end := logLine{at: at.Add(dumpTakes), buffer: "main", pid: v.pid, tid: v.pid, uid: v.uid, priority: 'I', tag: v.artTag()}
	end.text = fmt.Sprintf("hprof: heap dump completed (%s) in %.2fs objects %d objects with stack traces 0", artSize(size), dumpTakes.Seconds(), size/60)
	if err != nil {
		end.priority, end.text = 'E', fmt.Sprintf("Couldn't dump heap; writing \"%s\" failed: %s", name, errorText(err))
	}
	for _, proc := range p.procs {
		if proc.pid == v.pid && proc.start == v.start {
			end.by, end.instance = proc, proc.instance
		}
	}
	p.add(end)
}
