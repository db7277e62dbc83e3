package monitor

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// deathDelay is the device time to wait after the end of a process before
	// its reason is read: system_server writes exit info after it has cleaned
	// up.
	deathDelay = 2 * time.Second
	// maxUnread bounds the number of ended processes whose reasons are still to
	// be read.
	maxUnread = 20
	// deathTimeout is the wall-clock time within which a device must report how
	// a process ended.
	deathTimeout = 20 * time.Second
	// exitInfoAPI is the first API level that keeps exit info (Android 11).
	exitInfoAPI = 30
	// deathSlack is the time by which an exit record may precede the last
	// reading of its process.
	deathSlack = time.Minute
	// maxPast bounds the number of ended lives for which log lines are kept.
	maxPast = 100
	// maxDeathLines bounds the log lines recorded for a death.
	maxDeathLines = 6
)

// readDeath reads how a process ended, from exit info (Android 11 and later)
// and from the log. since is the device time since the process was last seen.
// Exit info survives a reboot and takes precedence, because an app may have
// crashed just before the reboot.
func readDeath(ctx context.Context, dev Device, e endedProcess, since time.Duration) (record.Death, error) {
	p, m := e.process, shell.NewMarker()
	parts := []shell.Part{{"up", "cat /proc/uptime"}, {"date", "date '+%Y-%m-%d %H:%M:%S'"}}
	if dev.Facts.API >= exitInfoAPI {
		parts = append(parts,
			shell.Part{"exits", "dumpsys activity exit-info " + text.ShellQuote(p.Package()) + " </dev/null 2>&1"})
	}
	buffers := " -b main -b system -b crash"
	if dev.Facts.API < 21 {
		buffers = ""
	}
	parts = append(parts, shell.Part{"log", "logcat -d -v threadtime -t 2000" + buffers + " </dev/null 2>&1"})
	a, err := shell.Ask(ctx, dev, deathTimeout, m.Join(parts))
	if err != nil {
		return record.Death{}, fmt.Errorf("read reason of death: %w", err)
	}
	answers, _ := m.Split(a.Stdout) // truncated output is used as well
	now, _ := time.Parse(exitTime, strings.TrimSpace(string(answers["date"])))
	exit := exitOf(answers["exits"], p, now, since+deathSlack)
	if exit == nil && (e.rebooted || restartedSince(answers["up"], e.up, since)) {
		return rebooted, nil
	}
	// an unreadable log counts as empty
	log, _ := dumpsys.ScanLogcat(bytes.NewReader(answers["log"]), int64(p.PID), p.Name)
	d := reasonOf(exit, log)
	if d.Reason == "unknown" && exit == nil {
		if of, ok := reasonOfName(answers, p, now, since); ok {
			return of, nil
		}
	}
	return d, nil
}

// reasonOfName returns the reason for the latest death of any process with the
// same name since the process was last seen. A process that ends every few
// seconds may have died several times.
func reasonOfName(answers map[string][]byte, p capture.Process, now time.Time, since time.Duration) (record.Death,
	bool) {
	if now.IsZero() {
		return record.Death{}, false
	}
	var exit *dumpsys.Exit
	info, _ := dumpsys.ParseExitInfo(answers["exits"]) // without exit info, the log may contain the reason
	for _, e := range info.Exits {
		at, err := time.Parse(exitTime, string(e.Timestamp))
		if err == nil && now.Sub(at) <= since && string(e.Process) == p.Name &&
			(!e.User.Known || e.User.N == int64(p.User)) {
			exit = &e
			break // the latest death comes first
		}
	}
	pid := int64(0)
	if exit != nil && exit.PID.Known {
		pid = exit.PID.N
	}
	log, _ := dumpsys.ScanLogcat(bytes.NewReader(logSince(answers["log"], now.Add(-since))), pid, p.Name)
	d := reasonOf(exit, log)
	if d.Reason == "unknown" {
		return d, false
	}
	d.Text = "from another death of a process with this name at that time: " + d.Text
	return d, true
}

// exitTime is the layout of times in exit info; fractions of a second may
// follow.
const exitTime = "2006-01-02 15:04:05"

// logSince returns the lines of a log in threadtime format that are not earlier
// than the given time of the device's wall clock. The timestamps in the log
// contain no year.
func logSince(log []byte, from time.Time) []byte {
	var out []byte
	for line := range bytes.Lines(log) {
		if len(line) < len("01-02 15:04:05") {
			continue
		}
		at, err := time.Parse(exitTime, fmt.Sprintf("%04d-%s", from.Year(), line[:len("01-02 15:04:05")]))
		if err == nil && at.Month() < from.Month() { // the line is from the new year
			at = at.AddDate(1, 0, 0)
		}
		if err == nil && !at.Before(from.Truncate(time.Second)) {
			out = append(out, line...)
		}
	}
	return out
}

// rebooted is the death recorded for every process of a device that reboots.
var rebooted = record.Death{Reason: "reboot", Text: "device rebooted"}

// restartSlack is the minimum time after boot at which a watched process can be
// seen: no app starts earlier.
const restartSlack = 5 * time.Second

// restartedSince reports whether the device has rebooted within a period that
// ends now. uptime is the current content of /proc/uptime, ago is the length of
// the period, and then is the uptime at its beginning. Both comparisons are
// needed, because after two reboots within minutes the present uptime may
// exceed the earlier one.
func restartedSince(uptime []byte, then, ago time.Duration) bool {
	up, _, _ := strings.Cut(string(uptime), " ")
	seconds, err := strconv.ParseFloat(up, 64)
	return err == nil && seconds >= 0 && (seconds < then.Seconds() || seconds < (ago+restartSlack).Seconds())
}

// exitOf returns the exit record of a process, or nil if there is none. It
// compares times, because an earlier process may have had the same pid and
// name. All times are readings of the device's wall clock.
func exitOf(answer []byte, p capture.Process, now time.Time, within time.Duration) *dumpsys.Exit {
	info, err := dumpsys.ParseExitInfo(answer)
	if err != nil {
		return nil
	}
	for _, e := range info.Exits {
		at, err := time.Parse(exitTime, string(e.Timestamp))
		old := err == nil && !now.IsZero() && now.Sub(at) > within
		if e.PID.Known && e.PID.N == int64(p.PID) && string(e.Process) == p.Name &&
			(!e.User.Known || e.User.N == int64(p.User)) && !old {
			return &e
		}
	}
	return nil
}

// exitWords translates the reasons in exit info (ApplicationExitInfo.java). All
// other reasons mean that the system killed the process.
var exitWords = map[string]string{
	"EXIT_SELF": "exit", "LOW_MEMORY": "low_memory", "CRASH": "crash", "CRASH_NATIVE": "native_crash", "ANR": "anr",
	"INITIALIZATION_FAILURE": "crash", "UNKNOWN": "",
}

// reasonOf determines why a process ended: from its exit record, which names
// the cause, or from the log.
func reasonOf(exit *dumpsys.Exit, log dumpsys.Logcat) record.Death {
	d := record.Death{Reason: reasonOfLog(log), Lines: linesOf(log)}
	if exit == nil {
		if d.Reason == "low_memory" && log.KillAdj.Known && log.KillAdj.N >= cachedAdj {
			d.Reason, d.Text = "kill", cachedText+text.Printable(string(log.KillReason))
			return d
		}
		d.Text = cmp.Or(textOfLog(log), "neither exit info nor the log contains a reason")
		if d.Reason == "unknown" && log.Mentions[dumpsys.LogDied].Count > 0 {
			d.Text = "the log reports the death without a reason"
		}
		return d
	}
	d.Reason = wordOf(exit, log, d.Reason)
	words := []string{string(exit.ReasonName)}
	if d.Reason == "low_memory" && cached(exit, log) {
		d.Reason, words[0] = "kill", cachedText+words[0]
	}
	if sub := string(exit.SubreasonName); sub != "" && sub != "UNKNOWN" {
		words = append(words, sub)
	}
	if exit.Status.Known && exit.Status.N != 0 {
		words = append(words, fmt.Sprintf("status %d", exit.Status.N))
	}
	if log.Exception != "" && (d.Reason == "crash" || d.Reason == "out_of_memory") {
		words = append(words, string(log.Exception))
	}
	if d.Reason == "memory_limiter" {
		words = append([]string{limiterText(log)}, words...)
	}
	if exit.Rss.Known {
		words = append(words, "RSS "+text.KB(exit.Rss.N))
	}
	d.Text = text.Printable(strings.Join(words, ", "))
	return d
}

// Android routinely kills cached processes when it needs memory. Such a kill is
// not evidence about the memory of the process itself.
const (
	cachedText = "killed while cached, to free memory: "
	// cachedImportance is
	// ActivityManager.RunningAppProcessInfo.IMPORTANCE_CACHED, which the home
	// app and the previous app also have (procStateToImportance). cachedAdj is
	// the lowest oom_score_adj of these processes (ProcessList.HOME_APP_ADJ).
	cachedImportance, cachedAdj = 400, 600
)

// cached reports whether a process was cached when lmkd killed it.
func cached(exit *dumpsys.Exit, log dumpsys.Logcat) bool {
	if exit.Importance.Known && exit.Importance.N > 0 {
		return exit.Importance.N >= cachedImportance
	}
	return log.KillAdj.Known && log.KillAdj.N >= cachedAdj
}

// wordOf returns the reason to record for an exit record; byLog is the reason
// found in the log.
func wordOf(exit *dumpsys.Exit, log dumpsys.Logcat, byLog string) string {
	word, known := exitWords[string(exit.ReasonName)]
	switch {
	case exit.MemoryLimiter():
		return "memory_limiter"
	case exit.MemoryAnomaly():
		return "anomaly"
	case word == "crash" && (log.OutOfMemory() || strings.Contains(string(exit.Description), "OutOfMemoryError")):
		return "out_of_memory"
	case exit.ReasonName == "SIGNALED" && exit.Crash():
		return "native_crash"
	case exit.ReasonName == "SIGNALED" && byLog == "unknown":
		// If lmkd cannot report to system_server, its kill appears as signal 9.
		return "kill"
	case exit.ReasonName == "SIGNALED":
		return byLog
	case known:
		return cmp.Or(word, byLog)
	}
	return "kill"
}

// withLimit returns the description of a death. If the memory limiter killed
// the process and the log does not contain the limit, withLimit adds the limit
// from the latest reading.
func withLimit(d record.Death, headroom capture.Headroom) string {
	rest, ok := strings.CutPrefix(d.Text, limiterName)
	if d.Reason != "memory_limiter" || !ok || strings.HasPrefix(rest, ", limit") || !headroom.AnonymousLimit.Known {
		return d.Text
	}
	limit := fmt.Sprintf("limit %d MB", headroom.AnonymousLimit.N>>20)
	if headroom.AnonymousAssumed {
		limit = "assumed " + limit
	}
	return limiterName + ", " + limit + rest
}

const limiterName = "memory limiter"

// limiterText describes a kill by the memory limiter, with the limit if the log
// contains it.
func limiterText(l dumpsys.Logcat) string {
	if !l.MemoryLimit.Known {
		return limiterName
	}
	return fmt.Sprintf(limiterName+", limit %d MB", l.MemoryLimit.N>>20)
}

func reasonOfLog(l dumpsys.Logcat) string {
	switch {
	case l.MemoryLimiter():
		return "memory_limiter"
	case l.OutOfMemory():
		return "out_of_memory"
	case l.Mentions[dumpsys.LogANR].Count > 0 && l.Kill():
		return "anr"
	case l.Mentions[dumpsys.LogCrash].Count > 0:
		return "crash"
	case l.Mentions[dumpsys.LogNativeCrash].Count > 0:
		return "native_crash"
	case l.Mentions[dumpsys.LogLowMemoryKill].Count > 0:
		return "low_memory"
	case l.Kill():
		return "kill"
	}
	return "unknown"
}

// textOfLog returns the cause found in the log, or "" if there is none. The
// message of an exception may contain personal data, so only its class is kept.
func textOfLog(l dumpsys.Logcat) string {
	if l.MemoryLimiter() {
		return limiterText(l)
	}
	return text.Printable(cmp.Or(string(l.Exception), string(l.Signal), string(l.KillReason)))
}

// linesOf returns the system's log lines about the death, the last line of each
// kind. It omits lines that the app itself logged.
func linesOf(l dumpsys.Logcat) []string {
	var out []string
	for _, kind := range []dumpsys.LogKind{dumpsys.LogANR, dumpsys.LogLowMemoryKill, dumpsys.LogKill, dumpsys.LogDied} {
		if m := l.Mentions[kind]; m.Count > 0 && len(out) < maxDeathLines {
			out = append(out, m.Line)
		}
	}
	return out
}
