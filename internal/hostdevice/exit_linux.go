package hostdevice

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
)

// cause is the reason why a process ended.
type cause struct {
	reason, subreason, status int
	description               string
	exception                 string // of the exception; if empty, the last line that the process printed is used
}

var (
	exitedItself = cause{reason: androidtext.ExitSelf}
	signalled    = cause{reason: androidtext.Signaled}
	crashed      = cause{reason: androidtext.Crash, description: "crash"}
	byShell      = cause{
		reason: androidtext.Crash, description: "crash",
		exception: "android.app.RemoteServiceException$CrashedByAdbException: shell-induced crash",
	}
	inBackground = cause{
		reason: androidtext.UserRequested, subreason: androidtext.KillBackground, description: "kill background",
	}
)

func forceStopped(pkg string) cause {
	return cause{
		reason: androidtext.UserRequested, subreason: androidtext.ForceStop,
		description: fmt.Sprintf("stop %s due to from pid %d", pkg, os.Getpid()),
	}
}

// outOfMemory is the exit code of a Java virtual machine after an
// OutOfMemoryError (ExitOnOutOfMemoryError). An Android app would crash
// instead.
const outOfMemory = 3

// causeOf derives the cause from the kernel's exit status.
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

// recordExit records the exit of a process in the log and for `dumpsys activity
// exit-info`.
func (a *app) recordExit(p *appProcess, cmd *exec.Cmd) {
	a.mu.Lock()
	why := causeOf(cmd.ProcessState)
	if p.cause != nil {
		why = *p.cause
	}
	if a.processes[p.name] == p {
		delete(a.processes, p.name)
	}
	pid, uid, api := os.Getpid(), a.device.options.AppUID, a.device.options.API
	a.exits = append(a.exits, androidtext.Exit{
		Time: time.Now(), Package: a.device.options.Package, Process: p.name, PID: p.pid, UID: uid, Importance: 100,
		Reason: why.reason, Subreason: why.subreason, Status: why.status, Description: why.description,
	})
	a.exits = a.exits[max(0, len(a.exits)-androidtext.MaxExits):]
	a.mu.Unlock()
	log := a.device.log
	switch why.reason {
	case androidtext.Crash:
		words := cmp.Or(why.exception, exceptionOf(p.lastOutput()))
		log(p.pid, 'E', "AndroidRuntime", strings.Join(androidtext.FatalException(p.pid, p.name, words), "\n"))
	case androidtext.UserRequested:
		log(pid, 'I', "ActivityManager", androidtext.Killing(p.pid, p.name, uid, 0, why.description))
	case androidtext.Signaled:
		log(1, 'I', "Zygote", androidtext.ZygoteExit(api, p.pid, why.status))
	}
	log(pid, 'I', "ActivityManager", androidtext.Died(api, p.pid, p.name, 0))
}

// exceptionOf extracts the exception from the last line printed by a Java
// virtual machine, in the form that ART prints after FATAL EXCEPTION: class and
// message (RuntimeInit.java, logUncaught). With ExitOnOutOfMemoryError, HotSpot
// prints "Terminating due to java.lang.OutOfMemoryError: Java heap space"
// (debug.cpp, report_java_out_of_memory).
func exceptionOf(words string) string { return strings.TrimPrefix(words, "Terminating due to ") }

// log adds an entry to the system's log. Errors are ignored, because the caller
// cannot handle them.
func (d *Device) log(pid int, priority byte, tag, text string) {
	buffer := "main"
	switch tag {
	case "AndroidRuntime":
		buffer = "crash"
	case "ActivityManager":
		buffer = "system"
	}
	_ = d.dir.AppendLog(androidtext.LogEntry{
		Time: time.Now(), Buffer: buffer, PID: pid, TID: pid, Priority: priority, Tag: tag, Text: text,
	})
}

// exitInfo implements `dumpsys activity exit-info [PACKAGE]`.
func (c *call) exitInfo() int {
	a := c.device.app
	a.mu.Lock()
	exits := slices.Clone(a.exits)
	a.mu.Unlock()
	c.print("%s", androidtext.ExitInfo(c.device.options.API, time.Now(), exits, c.next()))
	return 0
}
