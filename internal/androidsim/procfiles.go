package androidsim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ticksOf converts device time to clock ticks of 1/100 s (USER_HZ).
func ticksOf(d time.Duration) int64 { return int64(d / (10 * time.Millisecond)) }

// cpu returns the user and system time that a process has used, in ticks. An
// app uses 4 % of a core; system_server uses 6 % plus the cost of dumpsys.
func (v view) cpu() (user, system int64) {
	share := int64(4)
	switch {
	case v.name == systemServer:
		share = 6
	case v.kernel || v.native || v.shell:
		share = 1
	}
	all := ticksOf(v.age)*share/100 + v.extraTicks
	return all * 2 / 3, all - all*2/3
}

// statText returns /proc/PID/stat (fs/proc/array.c, do_task_stat); tid and name
// identify the thread.
func (v view) statText(tid int, name string, m memory) string {
	user, system := v.cpu()
	if tid != v.pid {
		user, system = user/8, system/8
	}
	mapped := m.mapped()
	faults := mapped.rss() / 4 * 3
	return fmt.Sprintf("%d (%s) S %d %d 0 0 -1 1077952832 %d 0 %d 0 %d %d 0 0 20 0 %d 0 %d %d %d "+
		"18446744073709551615 0 0 0 0 0 0 4612 1 1073775864 0 0 0 17 %d 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		tid, name, v.ppid, v.ppid, faults, mapped.privateClean/16, user, system, m.threads, ticksOf(v.start),
		v.virtual(m)<<10, mapped.rss()/4, tid%8)
}

// statusText returns /proc/PID/status. Kernels before 4.5 do not split the Rss.
func (v view) statusText(m memory, api int) string {
	var b strings.Builder
	line := func(name string, format string, args ...any) {
		fmt.Fprintf(&b, name+":\t"+format+"\n", args...)
	}
	kb := func(name string, n int64) { line(name, "%8d kB", n) }
	line("Name", "%s", v.comm())
	if api >= 28 {
		line("Umask", "0077")
	}
	line("State", "S (sleeping)")
	line("Tgid", "%d", v.pid)
	if api >= 26 {
		line("Ngid", "0")
	}
	line("Pid", "%d", v.pid)
	line("PPid", "%d", v.ppid)
	line("TracerPid", "0")
	line("Uid", "%d\t%d\t%d\t%d", v.uid, v.uid, v.uid, v.uid)
	line("Gid", "%d\t%d\t%d\t%d", v.uid, v.uid, v.uid, v.uid)
	line("FDSize", "%d", fdSize(m.files))
	line("Groups", "%d ", 50000+v.uid%perUser)
	if !v.kernel {
		u := m.mapped()
		anonymous, file, shmem := m.resident()
		kb("VmPeak", v.virtual(m)+1024)
		kb("VmSize", v.virtual(m))
		kb("VmLck", 0)
		kb("VmPin", 0)
		kb("VmHWM", u.rss()+512)
		kb("VmRSS", u.rss())
		if api >= 26 {
			kb("RssAnon", anonymous)
			kb("RssFile", file)
			kb("RssShmem", shmem)
		}
		kb("VmData", anonymous+u.swap+512<<10)
		kb("VmStk", 8192)
		kb("VmExe", 28)
		kb("VmLib", file)
		kb("VmPTE", u.rss()/512+4)
		kb("VmSwap", u.swap)
	}
	line("Threads", "%d", m.threads)
	line("SigQ", "0/%d", maxTasks/2)
	line("SigPnd", "%016x", 0)
	// ART blocks QUIT, USR1 and PIPE in every thread (art/runtime/runtime.cc,
	// BlockSignals).
	blocked := uint64(0x80001204)
	if v.native || v.shell {
		blocked = 0
	}
	line("SigBlk", "%016x", blocked)
	line("SigIgn", "%016x", 1)
	line("SigCgt", "%016x", 0x6e400084f8)
	line("CapEff", "%016x", 0)
	line("Seccomp", "2")
	line("Cpus_allowed", "ff")
	line("Cpus_allowed_list", "0-7")
	line("voluntary_ctxt_switches", "%d", int64(v.age/time.Millisecond)/9)
	line("nonvoluntary_ctxt_switches", "%d", int64(v.age/time.Millisecond)/70)
	return b.String()
}

// statmText returns /proc/PID/statm, in pages.
func (v view) statmText(m memory) string {
	u := m.mapped()
	_, file, shmem := m.resident()
	return fmt.Sprintf("%d %d %d 7 0 %d 0\n", v.virtual(m)/4, u.rss()/4, (file+shmem)/4, (u.rss()+512<<10)/4)
}

// cmdline returns the name, padded to the length of zygote's command line.
func (v view) cmdline() string {
	if v.kernel {
		return ""
	}
	if v.shell || v.native {
		return v.name + "\x00"
	}
	return v.name + strings.Repeat("\x00", max(1, 64-len(v.name)))
}

// oomScoreAdj returns 0 in the foreground, 200 for other processes of an app,
// 700 if its screens are hidden, 900 if it is frozen or has no open screen, and
// less than 0 for the system (com.android.server.am.ProcessList).
func (v view) oomScoreAdj() int {
	switch {
	case v.shell:
		return -950
	case v.native || v.kernel || v.name == "zygote64" || v.name == "zygote":
		return -1000
	case v.name == systemServer:
		return -900
	case v.frozen, v.background() && len(v.stack.open) == 0:
		return 900
	case v.background():
		return 700
	case v.app != nil && v.name != v.app.Package:
		return 200
	}
	return 0
}

// threadNames lists the threads that every app has besides its main thread.
var threadNames = []string{
	"Signal Catcher", "perfetto_hprof_", "ADB-JDWP Connec", "Jit thread pool", "HeapTaskDaemon", "ReferenceQueueD",
	"FinalizerDaemon",
	"FinalizerWatchd", "Profile Saver", "RenderThread", "hwuiTask0", "hwuiTask1", "GPU completion", "queued-work-loo",
}

// threadName returns the comm of thread number i of a process; thread 0 is the
// main thread. Leaked threads are named like threads of a pool.
func (v view) threadName(i int) string {
	base := threadsOf(v)
	switch {
	case i == 0 || v.kernel || v.native || v.shell:
		return v.comm()
	case i <= len(threadNames):
		return threadNames[i-1]
	case i < base:
		return fmt.Sprintf("Binder:%d_%X", v.pid, i-len(threadNames))
	}
	return clipComm(v.poolThread(i))
}

// poolThread returns the Java name of a leaked thread.
func (v view) poolThread(i int) string { return fmt.Sprintf("pool-3-thread-%d", i-threadsOf(v)+1) }

// clipComm truncates the name of a thread as the kernel does.
func clipComm(name string) string { return name[:min(len(name), 15)] }

// procNames contains the files in /proc/PID that the shell may see; the value
// is true if reading the file requires ptrace access.
var procNames = map[string]bool{
	"cmdline": false, "comm": false, "limits": false, "oom_score_adj": false, "stat": false, "statm": false,
	"status": false,
	"maps":   true, "smaps": true, "smaps_rollup": true,
}

func (p *Phone) procText(v view, name string) string {
	switch name {
	case "cmdline":
		return v.cmdline()
	case "comm":
		return v.comm() + "\n"
	case "limits":
		return v.limitsText(p.opt.API)
	case "oom_score_adj":
		return strconv.Itoa(v.oomScoreAdj()) + "\n"
	}
	m := v.memory()
	switch name {
	case "stat":
		return v.statText(v.pid, v.comm(), m)
	case "statm":
		return v.statmText(m)
	case "status":
		return v.statusText(m, p.opt.API)
	case "maps":
		return m.mapsText(v, p.opt.API)
	case "smaps":
		return m.smapsText(v, p.opt.API)
	case "smaps_rollup":
		return m.rollupText(v, p.opt.API)
	}
	return ""
}

// globalFiles maps the files in /proc outside /proc/PID to their contents.
var globalFiles = map[string]func(*Phone) string{
	"uptime": func(p *Phone) string {
		up := p.Uptime()
		cs := int64(up / (10 * time.Millisecond))
		idle := cs * 7
		return fmt.Sprintf("%d.%02d %d.%02d\n", cs/100, cs%100, idle/100, idle%100)
	},
	"meminfo": func(p *Phone) string {
		used := p.usedKB()
		const total = 7680 << 10
		free := max(total-used-1<<20, 64<<10)
		return fmt.Sprintf("MemTotal:       %8d kB\nMemFree:        %8d kB\nMemAvailable:   %8d kB\nBuffers:        "+
			"%8d kB\nCached:         %8d kB\nSwapTotal:      %8d kB\nSwapFree:       %8d kB\n",
			total, free/4, free, 4096, free/2, 4<<20, 3<<20)
	},
	"version": func(p *Phone) string {
		return "Linux version " + kernelRelease(p.opt.API) + " (build@simulated) #1 SMP PREEMPT\n"
	},
	"sys/kernel/random/boot_id": func(p *Phone) string { return p.bootID() + "\n" },
	"sys/kernel/random/uuid":    func(p *Phone) string { return p.randomUUID() + "\n" },
	"sys/kernel/pid_max":        func(*Phone) string { return fmt.Sprintf("%d\n", lastPID+1) },
	"sys/kernel/threads-max":    func(*Phone) string { return fmt.Sprintf("%d\n", maxTasks) },
	"loadavg":                   func(*Phone) string { return "1.20 1.14 1.09 2/1480 20001\n" },
	"filesystems": func(*Phone) string {
		return "nodev\tsysfs\nnodev\ttmpfs\nnodev\tproc\n\text4\n\tf2fs\n"
	},
}

// bootID returns the random UUID of the current boot (drivers/char/random.c,
// proc_do_uuid).
func (p *Phone) bootID() string {
	p.mu.Lock()
	boot := uint64(p.boots)
	p.mu.Unlock()
	return p.uuid("boot_id", boot)
}

func (p *Phone) randomUUID() string { return p.uuid("uuid", p.uuids.Add(1)) }

// uuid returns the n-th random UUID of a stream.
func (p *Phone) uuid(name string, n uint64) string {
	stream := mix(p.opt.Seed, hashText(name, p.opt.Serial))
	a, b := mix(stream, 2*n), mix(stream, 2*n+1)
	const version, variant = 4, 2
	a, b = a&^(0xf<<12)|version<<12, b&^(3<<62)|variant<<62
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", a>>32, a>>16&0xffff, a&0xffff, b>>48, b&(1<<48-1))
}

func kernelRelease(api int) string {
	switch {
	case api >= 36:
		return "6.6.77-android15-8"
	case api >= 34:
		return "6.1.57-android14-11"
	case api >= 31:
		return "5.10.66-android12-9"
	case api >= 29:
		return "4.14.180-perf"
	case api >= 26:
		return "4.9.96-perf"
	case api >= 23:
		return "3.10.84-perf"
	}
	return "3.4.0-perf"
}

// usedKB returns the memory of all processes in kB.
func (p *Phone) usedKB() int64 {
	var sum int64
	for _, v := range p.views() {
		if !v.kernel {
			sum += v.memory().sum().pss()
		}
	}
	return sum
}
