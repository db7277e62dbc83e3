package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/internal/capture/detail"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/known"
)

// maxProcesses is the maximum number of packages, and the maximum number of
// processes, that are examined on one device.
const maxProcesses = 20

// processes examines the processes that match the patterns or, by default, the
// processes of running user-installed apps.
func (n *inspection) processes(ctx context.Context, dev *adb.Device, facts capture.Facts) {
	patterns, named := n.exam.opt.Patterns, true
	if len(patterns) == 0 {
		if patterns, named = n.apps(ctx, dev), false; len(patterns) == 0 {
			return
		}
	}
	found, err := capture.FindProcesses(ctx, dev, patterns)
	if err != nil {
		n.book.note("processes", Unknown, n.describe(ctx, err), "")
		return
	}
	if len(found.Processes) == 0 {
		n.book.note("processes", Warn, "no process running that matches "+words(patterns),
			"start the app, or check the name with `adb shell ps -A`; a run waits for it")
		return
	}
	n.siblings(ctx, dev, found.Processes, patterns)
	if more := len(found.Processes) - maxProcesses; more > 0 {
		n.book.note("processes", Unknown, fmt.Sprintf("%d more processes were not checked", more),
			"choose processes with --process")
		found.Processes = found.Processes[:maxProcesses]
	}
	levels := capture.NewLevels(dev, facts)
	for i, p := range found.Processes {
		if ctx.Err() != nil {
			return
		}
		n.exam.opt.Progress(n.device.Serial + " " + p.Key().String())
		n.process(ctx, dev, facts, levels, p, found.SystemServer, named || i == 0)
	}
}

// siblings warns about processes of the app that a run would not watch.
func (n *inspection) siblings(ctx context.Context, dev *adb.Device, of []capture.Process, patterns []capture.Pattern) {
	found, err := capture.FindSiblings(ctx, dev, of, patterns)
	if err != nil {
		n.book.note("processes", Unknown, n.describe(ctx, err), "")
		return
	}
	var names []string
	for _, p := range found {
		names = append(names, clean(p.Name))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > 0 {
		n.book.note("processes", Warn,
			"with the user ID of the app, but not matched by a name: "+
				strings.Join(names[:min(len(names), maxProcesses)], ", "),
			"to watch them, add their names to app.processes or --process")
	}
}

func words(patterns []capture.Pattern) string {
	var names []string
	for _, p := range patterns {
		names = append(names, string(p))
	}
	return strings.Join(names, " or ")
}

// apps returns patterns that match the processes of the running apps.
func (n *inspection) apps(ctx context.Context, dev *adb.Device) (patterns []capture.Pattern) {
	packages, total, err := capture.RunningApps(ctx, dev, maxProcesses)
	if err != nil {
		n.book.note("processes", Unknown, n.describe(ctx, err), "name a process with --process")
		return nil
	}
	for _, pkg := range packages {
		for _, text := range []string{pkg, pkg + ":*"} {
			if p, err := capture.ParsePattern(text); err == nil {
				patterns = append(patterns, p)
			}
		}
	}
	switch {
	case total == 0:
		n.book.note("processes", Unknown, "no user-installed app is running, so no process was checked",
			"start the app, or name a process with --process")
	case total > len(packages):
		n.book.note("processes", Unknown, fmt.Sprintf("checked %d of %d running apps", len(packages), total),
			"name a process with --process")
	}
	return patterns
}

// process checks how the memory of a process can be read and whether its heap
// can be dumped. It reads dumpsys meminfo only on request, because that costs
// CPU time in the app and in system_server.
func (n *inspection) process(ctx context.Context, dev *adb.Device, facts capture.Facts, levels *capture.Levels,
	p capture.Process, systemServer int, meminfo bool) {
	out := Process{Process: clean(p.Name), User: p.User, PID: p.PID, Reasons: []Reason{}}
	book := checklist{scope: ScopeProcess, device: n.device.Serial, process: clean(p.Key().String())}
	probe, err := levels.Probe(ctx, p)
	if err != nil {
		book.note("memory", Unknown, n.describe(ctx, err), "")
	} else {
		out.Source, out.Reasons = string(probe.Level.Source), reasons(probe, p, facts)
		status, text := levelText(probe.Level.Source, p.PID)
		book.note("memory", status, text, best(status, out.Reasons))
		status, text, todo := heapDump(probe, p, facts)
		book.note("heap_dump", status, text, todo)
	}
	if meminfo && ctx.Err() == nil {
		out.Meminfo = n.meminfo(ctx, &book, dev, facts, p, systemServer)
	}
	n.device.Processes = append(n.device.Processes, out)
	n.book.checks = append(n.book.checks, book.checks...)
}

func (n *inspection) meminfo(ctx context.Context, book *checklist, dev *adb.Device, facts capture.Facts,
	p capture.Process, systemServer int) *Meminfo {
	d, err := detail.Read(ctx, dev, facts, p, systemServer)
	switch {
	case err == nil:
		took := fmt.Sprintf("%d kB in %.1f s%s", d.Block.TotalPss.N, d.Took.Seconds(), cost(d.SystemServer))
		if withoutGraphics(d.Block) {
			book.note("meminfo", Warn, "dumpsys meminfo works, but reports no graphics memory: "+took,
				"to find leaks of textures and graphics buffers, use a phone whose driver reports graphics memory")
		} else {
			book.note("meminfo", OK, "dumpsys meminfo works: "+took, "")
		}
		return &Meminfo{TotalKB: d.Block.TotalPss.N, Duration: seconds(d.Took)}
	case ctx.Err() != nil:
		book.note("meminfo", Unknown, n.describe(ctx, err), "")
	case errors.Is(err, capture.ErrGone):
		book.note("meminfo", Unknown, "the process ended in the meantime", "try again")
	case errors.Is(err, capture.ErrNoAnswer):
		book.note("meminfo", Warn, err.Error(),
			"bring the app to the foreground: Android freezes background apps, and a frozen or hung app does not "+
				"respond")
	default:
		book.note("meminfo", Warn, err.Error(), "without it the kind of a leak remains unknown")
	}
	return nil
}

func cost(cpu known.Duration) string {
	if !cpu.Known {
		return ""
	}
	return fmt.Sprintf(", %.2f s of system_server CPU", cpu.N.Seconds())
}

// levelText describes what a source measures.
func levelText(source capture.Source, pid int) (Status, string) {
	text := map[capture.Source]string{
		capture.SmapsRollup: "Pss and SwapPss from smaps_rollup (the best source)",
		capture.SU:          "Pss and SwapPss from smaps_rollup, through su",
		capture.RunAs:       "Pss and SwapPss from smaps_rollup, through run-as (the app is debuggable)",
		capture.Smaps:       "Pss and SwapPss from smaps: exact, but slower than smaps_rollup",
		capture.Status:      "RssAnon and VmSwap from status: no Pss, so shared and graphics memory are missing",
		capture.Dumpsys:     "only dumpsys meminfo, in rotation: fewer samples, and each costs the app CPU time",
	}[source]
	status := OK
	if source == capture.Status || source == capture.Dumpsys {
		status = Warn
	}
	return status, fmt.Sprintf("pid %d: %s", pid, text)
}

// withoutGraphics reports whether a process has windows, but no graphics
// memory. Drawing a window takes some, so the device does not report it.
func withoutGraphics(b dumpsys.Block) bool {
	for _, v := range []known.Int{b.EGLMtrack, b.GLMtrack, b.OtherMtrack, b.GfxDev, b.Graphics} {
		if v.N > 0 {
			return false
		}
	}
	return b.Objects["ViewRootImpl"] > 0
}

// heapDump reports whether am dumpheap accepts the process. On a user build,
// root access makes no difference (frameworks/base
// ActivityManagerService.dumpHeap checks the build and the app).
func heapDump(probe capture.Probe, p capture.Process, facts capture.Facts) (Status, string, string) {
	if facts.BuildType == "userdebug" || facts.BuildType == "eng" {
		return OK, fmt.Sprintf("possible: %s build allows it for every app", article(facts.BuildType)), ""
	}
	if probe.Level.Source == capture.RunAs {
		return OK, "possible: the app is debuggable", ""
	}
	for _, f := range probe.Findings {
		if f.Source == capture.RunAs && strings.Contains(f.Reason, "debuggable") {
			return Warn,
				"not possible: user build, and the app is not debuggable; a Java leak is detected but not traced",
				fmt.Sprintf("install a debuggable build of %s (its debug variant)", p.Package())
		}
	}
	return Unknown, "cannot determine whether the app is debuggable; run `leakgate diagnose` to try a heap dump", ""
}

func article(build string) string {
	if build == "eng" {
		return "an eng"
	}
	return "a " + build
}

// reasons returns, for each better source, the reason why it is not used. If a
// source was tried in several ways, a reason that the user can fix is
// preferred; otherwise the first reason is returned.
func reasons(probe capture.Probe, p capture.Process, facts capture.Facts) []Reason {
	out := []Reason{}
	at := map[capture.Source]int{}
	for _, f := range probe.Findings {
		if f.Answer == capture.Available {
			continue
		}
		r := Reason{
			Source: string(f.Source), Answer: f.Answer.String(), Text: clean(f.Reason), Action: remedy(f, p, facts),
		}
		i, seen := at[f.Source]
		switch {
		case !seen:
			at[f.Source] = len(out)
			out = append(out, r)
		case out[i].Answer != capture.Unclear.String() && f.Answer == capture.Unclear:
			out[i] = r
		}
	}
	return out
}

// remedy returns what the user can do to make a source available. The error
// messages come from the kernel, from run-as (system/core run-as/run-as.cpp),
// from mksh, and from package capture.
func remedy(f capture.ProbeResult, p capture.Process, facts capture.Facts) string {
	says := func(part string) bool { return strings.Contains(f.Reason, part) }
	switch {
	case f.Source == capture.SU && f.Answer == capture.Unclear && says("no answer"):
		return "unlock the device and grant the shell root in its root manager"
	case f.Answer == capture.Unclear:
		return "try again"
	case says("already"), f.Source == capture.Smaps && says("denied"):
		return "" // it is reported for the better source
	case f.Source == capture.SmapsRollup && says("No such file"):
		return "needs kernel 4.14 or later"
	case f.Source == capture.SmapsRollup:
		return rootWay(facts)
	case f.Source == capture.SU && (says("not found") || says("inaccessible") || says("No such file")):
		return "needs a rooted device"
	case f.Source == capture.SU:
		return "grant the shell root in the root manager of the device"
	case f.Source == capture.RunAs && says("debuggable"):
		return fmt.Sprintf("install a debuggable build of %s (its debug variant)", p.Package())
	case f.Source == capture.Status:
		return "needs kernel 4.5 or later"
	}
	return ""
}

// rootWay returns instructions for getting a root shell on this build.
func rootWay(facts capture.Facts) string {
	switch {
	case facts.UID == 0:
		return ""
	case facts.BuildType == "userdebug", facts.BuildType == "eng":
		return "run `adb root`"
	}
	return "needs a root shell: use `adb root` on an emulator image without Google Play or on a userdebug build"
}

// best returns the next step for a process that has a better source: first `adb
// root` if the build supports it, then what a tester of the app can do, then
// what only the owner of the device can do.
func best(status Status, reasons []Reason) string {
	if status == OK {
		return ""
	}
	for _, begins := range []string{"run ", "install ", "unlock ", "grant ", "try ", "needs "} {
		for _, r := range reasons {
			if strings.HasPrefix(r.Action, begins) {
				return strings.TrimPrefix(r.Action, "needs a root shell: ")
			}
		}
	}
	return ""
}
