package androidtext

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ShortUser returns the activity manager's name for the user of a process, such
// as u0a123 (ProcessRecord.toShortString).
func ShortUser(uid int) string {
	const firstApp, firstIsolated = 10000, 99000
	switch app := uid % PerUser; {
	case app >= firstIsolated:
		return fmt.Sprintf("u%di%d", uid/PerUser, app-firstIsolated)
	case app >= firstApp:
		return fmt.Sprintf("u%da%d", uid/PerUser, app-firstApp)
	}
	return strconv.Itoa(uid)
}

// Killing returns the log entry, with priority I, that the activity manager
// writes before it kills a process (ProcessRecord.killLocked).
func Killing(pid int, process string, uid, adj int, why string) string {
	return fmt.Sprintf("Killing %d:%s/%s (adj %d): %s", pid, process, ShortUser(uid), adj, why)
}

// KillEvent returns the am_kill entry of the event log. An am_anr entry has the
// same format, with the app's flags instead of adj.
func KillEvent(pid int, process string, uid, adj int, why string) string {
	return fmt.Sprintf("[%d,%d,%s,%d,%s]", uid/PerUser, pid, process, adj, why)
}

// Died returns the activity manager's log entry for a process that has died
// (ActivityManagerService.appDiedLocked).
func Died(api, pid int, process string, adj int) string {
	state := ""
	if api >= 26 {
		state = ": " + procState(api, adj)
	}
	return fmt.Sprintf("Process %s (pid %d) has died%s", process, pid, state)
}

// procState returns the abbreviation for the state of a process
// (ProcessList.makeOomAdjString and makeProcStateString).
func procState(api, adj int) string {
	switch {
	case adj >= 900:
		return "cch+5 CEM "
	case adj >= 700:
		return "prev LAST"
	case adj > 0:
		return "prcp FGS "
	case api < 29:
		return "fore TOP "
	}
	return "fg  TOP "
}

// signalNames holds the names that bionic's strsignal returns.
var signalNames = map[int]string{
	1: "Hangup", 2: "Interrupt", 3: "Quit", 4: "Illegal instruction", 5: "Trap", 6: "Aborted", 7: "Bus error",
	8: "Floating point exception", 9: "Killed", 10: "User signal 1", 11: "Segmentation fault", 12: "User signal 2",
	13: "Broken pipe", 14: "Alarm clock", 15: "Terminated",
}

// ZygoteExit returns the zygote's log entry for a child that a signal killed
// (com_android_internal_os_Zygote.cpp, SigChldHandler).
func ZygoteExit(api, pid, signal int) string {
	if api < 28 {
		return fmt.Sprintf("Process %d exited due to signal (%d)", pid, signal)
	}
	name := signalNames[signal]
	if name == "" {
		name = fmt.Sprintf("Unknown signal %d", signal)
	}
	return fmt.Sprintf("Process %d exited due to signal %d (%s)", pid, signal, name)
}

// FatalException returns the lines that an app logs for an uncaught exception,
// without its stack (com.android.internal.os.RuntimeInit).
func FatalException(pid int, process, exception string) []string {
	return []string{"FATAL EXCEPTION: main", fmt.Sprintf("Process: %s, PID: %d", process, pid), exception}
}

// FatalSignal returns the line that the linker logs for a process that read
// address 0 (bionic linker/debuggerd_handler.cpp, log_signal_summary).
func FatalSignal(pid int, comm string, signal int) string {
	return fmt.Sprintf("Fatal signal %d (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x0 in tid %d (%s), pid %d (%s)",
		signal, pid, comm, pid, comm)
}

// LowMemoryKill returns the log lines of the low memory killer. Before Android
// 9, they are in the kernel's own log buffer; later, lmkd writes them
// (system/memory/lmkd/lmkd.cpp, kill_one_process).
func LowMemoryKill(api, pid int, process, comm string, uid, adj int, rssKB, swapKB int64) []string {
	switch {
	case api < 28:
		return []string{
			fmt.Sprintf("Killing '%s' (%d), adj %d,", comm, pid, adj),
			fmt.Sprintf("   to free %dkB on behalf of 'kswapd0' (83) because", rssKB),
		}
	case api < 30:
		return []string{fmt.Sprintf("Kill '%s' (%d), uid %d, oom_adj %d to free %dkB", process, pid, uid, adj, rssKB)}
	}
	return []string{fmt.Sprintf("Kill '%s' (%d), uid %d, oom_score_adj %d to free %dkB rss, %dkB swap; "+
		"reason: min watermark is breached even after kill", process, pid, uid, adj, rssKB, swapKB)}
}

// Comm returns the kernel's name for an app's process: the last 15 bytes of its
// name.
func Comm(process string) string { return process[max(0, len(process)-15):] }

// RuntimeTag returns the tag of the runtime's log entries: the runtime's own
// tag until Android 7, the zygote's in Android 8, and the process name since
// Android 9 (art/runtime, InitLogging).
func RuntimeTag(api int, process string, bits32 bool) string {
	switch {
	case api < 21:
		return "dalvikvm"
	case api < 26:
		return "art"
	case api < 28 && bits32:
		return "zygote"
	case api < 28:
		return "zygote64"
	}
	return Comm(process)
}

// CollectionPriority returns the log priority of Collection.Text.
func CollectionPriority(api int) byte {
	if api < 21 {
		return 'D'
	}
	return 'I'
}

// Collection is a garbage collection as logged by the runtime. Sizes are in
// bytes.
type Collection struct {
	// Explicit means that a program requested the collection; otherwise it ran
	// in the background.
	Explicit                 bool
	Objects, Freed           int64
	LargeObjects, LargeFreed int64
	// Used and Size are the used and the total size of the heap after the
	// collection.
	Used, Size int64
	Paused     []time.Duration
	Took       time.Duration
}

// Text returns the line that Dalvik (vm/alloc/Heap.cpp) or ART
// (runtime/gc/heap.cc, Heap::LogGC) logs.
func (c Collection) Text(api int) string {
	free := 100 * (c.Size - c.Used) / max(1, c.Size)
	var pauses []string
	for _, p := range c.Paused {
		pauses = append(pauses, artDuration(p))
	}
	if api < 21 {
		return fmt.Sprintf("GC_CONCURRENT freed %dK, %d%% free %dK/%dK, paused %s, total %s",
			c.Freed>>10, free, c.Used>>10, c.Size>>10, strings.Join(pauses, "+"), artDuration(c.Took))
	}
	why, kind := "Background", "concurrent copying"
	if c.Explicit {
		why = "Explicit"
	}
	switch {
	case api < 26 && c.Explicit:
		kind = "concurrent mark sweep"
	case api < 26:
		kind = "partial concurrent mark sweep"
	case api >= 35:
		kind = "concurrent mark compact"
	}
	freed := fmt.Sprintf("%d(%s) AllocSpace objects", c.Objects, artSize(c.Freed))
	if api >= 34 {
		freed = artSize(c.Freed) + " AllocSpace bytes"
	}
	return fmt.Sprintf("%s %s GC freed %s, %d(%s) LOS objects, %d%% free, %s/%s, paused %s total %s", why, kind, freed,
		c.LargeObjects, artSize(c.LargeFreed), free, artSize(c.Used), artSize(c.Size), strings.Join(pauses, ","),
		artDuration(c.Took))
}

// artSize implements ART's PrettySize (libartbase/base/utils.cc).
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

// artDuration implements ART's PrettyDuration (libartbase/base/time_utils.cc).
func artDuration(d time.Duration) string {
	for _, u := range []struct {
		name string
		size time.Duration
	}{{"s", time.Second}, {"ms", time.Millisecond}, {"us", time.Microsecond}} {
		if d < u.size {
			continue
		}
		if fraction := d % u.size * 1000 / u.size; fraction > 0 {
			return fmt.Sprintf("%d.%03d%s", d/u.size, fraction, u.name)
		}
		return fmt.Sprintf("%d%s", d/u.size, u.name)
	}
	return fmt.Sprintf("%dns", d)
}

// SignalCollects returns the line that the runtime has logged for SIGUSR1 since
// Android 5.
func SignalCollects(api int) string {
	text := "SIGUSR1 forcing GC (no HPROF)"
	if api >= 26 {
		text += " and profile save"
	}
	return text
}

// DumpBegins returns the line that the runtime logs before a heap dump
// (art/runtime/hprof/hprof.cc).
func DumpBegins(api int, file string) string {
	if api < 21 {
		return fmt.Sprintf("hprof: dumping heap strings to \"%s\".", file)
	}
	return fmt.Sprintf("hprof: heap dump \"%s\" starting...", file)
}

// DumpEnds returns the line that the runtime logs after a heap dump of the
// given size; objects is 0 if unknown.
func DumpEnds(bytes int64, took time.Duration, objects int64) string {
	text := fmt.Sprintf("hprof: heap dump completed (%s) in %s", artSize((bytes+1023)&^1023), artDuration(took))
	if objects > 0 {
		text += fmt.Sprintf(" objects %d objects with stack traces 0", objects)
	}
	return text
}

// DumpFails returns the line that the runtime logs, with priority E, if it
// could not write a dump.
func DumpFails(file, reason string) string {
	return fmt.Sprintf("Couldn't dump heap; writing \"%s\" failed: %s", file, reason)
}
