package hostdevice

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/leakgate/leakgate/internal/hostdevice/state"
)

// cause is why a process has ended, in the words of ApplicationExitInfo.java.
type cause struct {
	reason, subreason         int
	reasonName, subreasonName string
	status                    int
	description               string
	words                     string // of the exception; empty: what the process said last
}

var (
	exitedItself = cause{reason: 1, reasonName: "EXIT_SELF", subreasonName: "UNKNOWN", description: "null"}
	signalled    = cause{reason: 2, reasonName: "SIGNALED", subreasonName: "UNKNOWN", description: "null"}
	crashed      = cause{reason: 4, reasonName: "APP CRASH(EXCEPTION)", subreasonName: "UNKNOWN", description: "crash"}
	byShell      = cause{reason: 4, reasonName: "APP CRASH(EXCEPTION)", subreasonName: "UNKNOWN", description: "crash", words: "android.app.RemoteServiceException$CrashedByAdbException: shell-induced crash"}
	byUser       = cause{reason: 10, reasonName: "USER REQUESTED", subreason: 21, subreasonName: "FORCE STOP"}
	inBackground = cause{reason: 10, reasonName: "USER REQUESTED", subreason: 24, subreasonName: "KILL BACKGROUND", description: "kill background"}
)

func forceStopped(pkg string) cause {
	c := byUser
	c.description = fmt.Sprintf("stop %s due to from pid %d", pkg, os.Getpid())
	return c
}

// outOfMemory is the exit code of a Java virtual machine that ended so
// (ExitOnOutOfMemoryError); an app of Android crashes.
const outOfMemory = 3

// causeOf tells what the kernel says of the end of a process.
func causeOf(state *os.ProcessState) cause {
	status, ok := state.Sys().(syscall.WaitStatus)
	switch {
	case ok && status.Signaled():
		c := signalled
		c.status = int(status.Signal())
		return c
	case state.ExitCode() == outOfMemory:
		return crashed
	}
	c := exitedItself
	c.status = state.ExitCode()
	return c
}

// exit is one process that has ended.
type exit struct {
	at   time.Time
	pid  int
	name string
	cause
}

// maxExits is how many of them a phone remembers
// (AppExitInfoTracker.APP_EXIT_INFO_HISTORY_LIST_SIZE).
const maxExits = 16

// bury notes the end of a process in the log and for `dumpsys activity exit-info`.
func (a *app) bury(p *appProcess, cmd *exec.Cmd) {
	a.mu.Lock()
	why := causeOf(cmd.ProcessState)
	if p.cause != nil {
		why = *p.cause
	}
	if a.processes[p.name] == p {
		delete(a.processes, p.name)
	}
	pid, uid := os.Getpid(), a.device.options.AppUID
	a.exits = append(a.exits, exit{time.Now(), p.pid, p.name, why})
	a.exits = a.exits[max(0, len(a.exits)-maxExits):]
	a.mu.Unlock()
	log := a.device.log
	switch {
	case why.reason == crashed.reason:
		words := cmp.Or(why.words, exceptionOf(p.lastWords()))
		log(p.pid, 'E', "AndroidRuntime", fmt.Sprintf("FATAL EXCEPTION: main\nProcess: %s, PID: %d\n%s", p.name, p.pid, words))
	case why.reason == byUser.reason:
		log(pid, 'I', "ActivityManager", fmt.Sprintf("Killing %d:%s/%s (adj 0): %s", p.pid, p.name, appUser(uid), why.description))
	case why.reason == signalled.reason:
		log(1, 'I', "Zygote", fmt.Sprintf("Process %d exited due to signal %d (%s)", p.pid, why.status, signalName(why.status)))
	}
	log(pid, 'I', "ActivityManager", fmt.Sprintf("Process %s (pid %d) has died: fg  TOP ", p.name, p.pid))
}

// exceptionOf is the exception by which a Java virtual machine says that it ends, as ART prints it after
// FATAL EXCEPTION: class and message (RuntimeInit.java, logUncaught). ExitOnOutOfMemoryError has HotSpot
// say "Terminating due to java.lang.OutOfMemoryError: Java heap space" (debug.cpp, report_java_out_of_memory).
func exceptionOf(words string) string { return strings.TrimPrefix(words, "Terminating due to ") }

// appUser names the user of an app as the activity manager does.
func appUser(uid int) string {
	if uid < firstApp {
		return strconv.Itoa(uid)
	}
	return fmt.Sprintf("u0a%d", uid-firstApp)
}

func signalName(n int) string {
	name := syscall.Signal(n).String()
	return strings.ToUpper(name[:1]) + name[1:]
}

// log adds to the log of the system. One that cannot be written to is none of the
// caller's business.
func (d *Device) log(pid int, priority byte, tag, text string) {
	_ = d.dir.AppendLog(state.Entry{Time: time.Now(), PID: pid, TID: pid, Priority: priority, Tag: tag, Text: text})
}

// exitInfo is `dumpsys activity exit-info [PACKAGE]`
// (AppExitInfoTracker.dumpHistoryProcessExitInfo); it came with Android 11.
func (c *call) exitInfo() int {
	const form = "2006-01-02 15:04:05.000"
	d := c.device
	c.print("ACTIVITY MANAGER PROCESS EXIT INFO (dumpsys activity exit-info)\nLast Timestamp of Persistence Into Persistent Storage: %s\n", time.Now().Format(form))
	d.app.mu.Lock()
	exits := slices.Clone(d.app.exits)
	d.app.mu.Unlock()
	if pkg := c.next(); len(exits) == 0 || pkg != "" && pkg != d.options.Package {
		return 0
	}
	uid := d.options.AppUID
	c.print("  package: %s\n    Historical Process Exit for uid=%d\n", d.options.Package, uid)
	slices.Reverse(exits) // the latest first
	for i, e := range exits {
		c.print("        ApplicationExitInfo #%d:\n", i)
		c.print("          timestamp=%s pid=%d realUid=%d packageUid=%[3]d definingUid=%[3]d user=%d\n", e.at.Format(form), e.pid, uid, uid/100000)
		c.print("          process=%s reason=%d (%s) subreason=%d (%s) status=%d\n", e.name, e.reason, e.reasonName, e.subreason, e.subreasonName, e.status)
		c.print("          importance=100 pss=0.00 rss=0.00 description=%s state=empty trace=null\n", e.description)
	}
	return 0
}
