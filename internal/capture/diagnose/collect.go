package diagnose

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/capture/shell"
)

// CollectResult is the result of a forced garbage collection in one process.
type CollectResult struct {
	capture.Process
	// Refused is the reason why no collection was forced, or "" on success.
	Refused string
}

// The words that the command prints about each process; any other text is an
// error message of kill.
const (
	collectSent   = "sent"
	collectGone   = "gone"
	collectNative = "native"
)

// CollectGarbage forces a garbage collection in several processes, in one round
// trip, and returns the device's clock after the last signal. SIGUSR1 makes the
// runtime collect garbage, on every release from the first Dalvik to the
// current ART, without clearing soft references; since Android 8 it also saves
// profiles (art/runtime/signal_catcher.cc, HandleSigUsr1: "SIGUSR1 forcing GC
// (no HPROF) and profile save"). The signal kills any other program. It is
// therefore sent by the same command line that checks three conditions: the
// process has the expected start time, it is a child of a zygote, and it blocks
// or catches the signal. CollectGarbage returns an error if the device did not
// respond.
func CollectGarbage(ctx context.Context, dev shell.Runner, uid int, targets []capture.Target,
	deadline time.Duration) (up time.Duration, out []CollectResult, err error) {
	m := shell.NewMarker()
	var parts []shell.Part
	out = make([]CollectResult, len(targets))
	for i, t := range targets {
		out[i].Process = t.Process
		prefix, refused := collectPrefix(uid, t)
		if out[i].Refused = refused; refused == "" {
			parts = append(parts, shell.Part{collectLabel(i), collectCommand(t.Process, prefix)})
		}
	}
	parts = append(parts, shell.Part{"up", "cat /proc/uptime"})
	a, err := shell.Ask(ctx, dev, deadline, m.Join(parts))
	if err != nil {
		return 0, nil, fmt.Errorf("force garbage collection: %w", err)
	}
	said, whole := m.Split(a.Stdout)
	if !whole {
		return 0, nil, fmt.Errorf("force garbage collection: %w: truncated answer", shell.ErrDevice)
	}
	if up, err = procfs.ParseUptime(said["up"]); err != nil {
		return 0, nil, fmt.Errorf("force garbage collection: %w", err)
	}
	for i := range out {
		if out[i].Refused == "" {
			out[i].Refused = collectAnswer(said[collectLabel(i)])
		}
	}
	return up, out, nil
}

func collectLabel(i int) string { return fmt.Sprintf("gc%d", i) }

// collectPrefix returns the prefix for sending the signal. A root shell needs
// no prefix. Any other shell uses the prefix with which the process is read or,
// if that is empty, run-as, which requires a debuggable package.
func collectPrefix(uid int, t capture.Target) (prefix shell.Prefix, refused string) {
	switch {
	case uid == 0:
		return shell.Prefix{}, ""
	case !t.Level.Prefix.IsZero():
		return t.Level.Prefix, ""
	case t.Isolated():
		return shell.Prefix{}, "an isolated process has a uid of its own"
	case !t.Installed():
		return shell.Prefix{}, "not a process of an installed app"
	}
	return shell.RunAs(t.Package(), t.User), ""
}

// collectCommand returns the command that prints one word about a process:
// whether the signal was sent, or why it was not.
//
// In /proc/PID/stat, 18 numbers are between the state and the start time
// (proc(5), fields 4 to 22). SIGUSR1 is bit 9 of SigBlk and SigCgt: it is set
// if the third hexadecimal digit from the right is 2, 3, 6, 7, a, b, e or f. A
// program that an app starts inherits the blocked signals, but its parent is
// not a zygote (zygote, zygote64, webview_zygote or PACKAGE_zygote).
func collectCommand(p capture.Process, prefix shell.Prefix) string {
	dir := fmt.Sprintf("/proc/%d", p.PID)
	return strings.Join([]string{
		fmt.Sprintf(`if ! grep -q -E '^%d \(.*\) [A-Za-z] ([-0-9]+ ){18}%d ' %s/stat 2>/dev/null; then echo %s`, p.PID,
			p.Start, dir, collectGone),
		fmt.Sprintf(`elif ! grep -q -E '^Sig(Blk|Cgt):.*[2367abefABEF]..$' %s/status 2>/dev/null; then echo %s`, dir,
			collectNative),
		fmt.Sprintf(`elif ! p=$(grep '^PPid:' %s/status 2>/dev/null) || ! grep -q -E '(^|_)zygote' /proc/${p##*[!0-9]}/cmdline 2>/dev/null; then echo %s`, dir, collectNative),
		fmt.Sprintf(`elif %s </dev/null 2>&1; then echo %s; fi`,
			prefix.Wrap(fmt.Sprintf("kill -%d %d", sigUSR1, p.PID)), collectSent),
	}, "; ")
}

// collectAnswer returns the reason why no collection was forced, or "" on
// success.
func collectAnswer(said []byte) string {
	word := strings.TrimSpace(string(said))
	if strings.HasSuffix("\n"+word, "\n"+collectSent) { // a linker or su may print text before this word
		return ""
	}
	switch word {
	case collectGone:
		return "the process has ended"
	case collectNative:
		return "not a process of the Android runtime"
	case "":
		return "the device reported no reason"
	default:
		return shell.Clip(word)
	}
}
