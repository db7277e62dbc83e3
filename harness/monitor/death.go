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
	// deathDelay is the device time between the end of a process and the question for its
	// reason: system_server writes exit info once it has cleaned up.
	deathDelay = 2 * time.Second
	// maxUnread bounds the ends whose reasons wait to be read.
	maxUnread = 20
	// askDeath is the real time that a device has to say how a process ended.
	askDeath = 20 * time.Second
	// exitInfoAPI is the first API level that keeps exit info (Android 11).
	exitInfoAPI = 30
	// deathSlack is how far the time of an exit record may lie outside of the time in which the
	// process was last seen and missed.
	deathSlack = time.Minute
	// maxPast bounds the incarnations that have ended and of which lines of the log are kept.
	maxPast = 100
	// maxDeathLines bounds the lines of a log that show an end.
	maxDeathLines = 6
)

// readDeath asks how a process has ended that was last seen so long ago, in device time: its
// exit info, from Android 11 on, and the log. Exit info is kept over a reboot, and comes first:
// an app may have crashed just before.
func readDeath(ctx context.Context, dev Device, e lostProcess, since time.Duration) (record.Death, error) {
	p, m := e.process, shell.NewMarker()
	parts := []shell.Part{{"up", "cat /proc/uptime"}, {"date", "date '+%Y-%m-%d %H:%M:%S'"}}
	if dev.Facts.API >= exitInfoAPI {
		parts = append(parts, shell.Part{"exits", "dumpsys activity exit-info " + text.ShellQuote(p.Package()) + " </dev/null 2>&1"})
	}
	buffers := " -b main -b system -b crash"
	if dev.Facts.API < 21 {
		buffers = ""
	}
	parts = append(parts, shell.Part{"log", "logcat -d -v threadtime -t 2000" + buffers + " </dev/null 2>&1"})
	a, err := shell.Ask(ctx, dev, askDeath, m.Join(parts))
	if err != nil {
		return record.Death{}, fmt.Errorf("read why it ended: %w", err)
	}
	answers, _ := m.Split(a.Stdout) // what is there counts
	now, _ := time.Parse(exitTime, strings.TrimSpace(string(answers["date"])))
	exit := exitOf(answers["exits"], p, now, since+deathSlack)
	if exit == nil && (e.rebooted || restartedSince(answers["up"], e.up, since)) {
		return rebooted, nil
	}
	log, _ := dumpsys.ScanLogcat(bytes.NewReader(answers["log"]), int64(p.PID), p.Name) // without a log nothing is in it
	d := reasonOf(exit, log)
	if d.Reason == "unknown" && exit == nil {
		if of, ok := reasonOfName(answers, p, now, since); ok {
			return of, nil
		}
	}
	return d, nil
}

// reasonOfName is the reason of the latest death of the same name since the process was last seen,
// under another pid: a process that ends every few seconds may have had several since then.
func reasonOfName(answers map[string][]byte, p capture.Process, now time.Time, since time.Duration) (record.Death, bool) {
	if now.IsZero() {
		return record.Death{}, false
	}
	var exit *dumpsys.Exit
	info, _ := dumpsys.ParseExitInfo(answers["exits"]) // without exit info the log may say it
	for _, e := range info.Exits {
		at, err := time.Parse(exitTime, string(e.Timestamp))
		if err == nil && now.Sub(at) <= since && string(e.Process) == p.Name && (!e.User.Known || e.User.N == int64(p.User)) {
			exit = &e
			break // the latest is the first
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
	d.Text = "by another death of this name at that time: " + d.Text
	return d, true
}

// exitTime is the form of times of exit info; fractions of a second may follow.
const exitTime = "2006-01-02 15:04:05"

// logSince returns the lines of a log in the format threadtime that are not earlier than a moment of
// the device's wall clock. Their times have no year.
func logSince(log []byte, from time.Time) []byte {
	var out []byte
	for line := range bytes.Lines(log) {
		if len(line) < len("01-02 15:04:05") {
			continue
		}
		at, err := time.Parse(exitTime, fmt.Sprintf("%04d-%s", from.Year(), line[:len("01-02 15:04:05")]))
		if err == nil && at.Month() < from.Month() { // a new year has begun
			at = at.AddDate(1, 0, 0)
		}
		if err == nil && !at.Before(from.Truncate(time.Second)) {
			out = append(out, line...)
		}
	}
	return out
}

// rebooted is the end of every process of a device that starts again.
var rebooted = record.Death{Reason: "reboot", Text: "the device has started again"}

// restartSlack is by how much a device may have been up before a process of it was seen: no
// app runs that soon.
const restartSlack = 5 * time.Second

// restartedSince reports whether a device that shows this /proc/uptime has started after a
// moment so long ago, at which it had been up for some time. Either may show it alone: a
// device that started twice within minutes is up for longer than it was then.
func restartedSince(uptime []byte, then, ago time.Duration) bool {
	up, _, _ := strings.Cut(string(uptime), " ")
	seconds, err := strconv.ParseFloat(up, 64)
	return err == nil && seconds >= 0 && (seconds < then.Seconds() || seconds < (ago+restartSlack).Seconds())
}

// exitOf returns the exit record of a process: of its pid and name, and not of an earlier one
// that had the same; nil where there is none. Times are those of the device's wall clock.
func exitOf(answer []byte, p capture.Process, now time.Time, within time.Duration) *dumpsys.Exit {
	info, err := dumpsys.ParseExitInfo(answer)
	if err != nil {
		return nil
	}
	for _, e := range info.Exits {
		at, err := time.Parse(exitTime, string(e.Timestamp))
		old := err == nil && !now.IsZero() && now.Sub(at) > within
		if e.PID.Known && e.PID.N == int64(p.PID) && string(e.Process) == p.Name && (!e.User.Known || e.User.N == int64(p.User)) && !old {
			return &e
		}
	}
	return nil
}

// exitWords are the reasons of exit info (ApplicationExitInfo.java) by what they mean to an
// app; the others are kills by the system.
var exitWords = map[string]string{
	"EXIT_SELF": "exit", "LOW_MEMORY": "low_memory", "CRASH": "crash", "CRASH_NATIVE": "native_crash", "ANR": "anr",
	"INITIALIZATION_FAILURE": "crash", "UNKNOWN": "",
}

// reasonOf decides why a process has ended: by its exit record first, which names the cause,
// then by the log.
func reasonOf(exit *dumpsys.Exit, log dumpsys.Logcat) record.Death {
	d := record.Death{Reason: reasonOfLog(log), Lines: linesOf(log)}
	if exit == nil {
		if d.Reason == "low_memory" && log.KillAdj.Known && log.KillAdj.N >= cachedAdj {
			d.Reason, d.Text = "kill", cachedText+text.Printable(string(log.KillReason))
			return d
		}
		d.Text = cmp.Or(textOfLog(log), "neither exit info nor the log says why")
		if d.Reason == "unknown" && log.Mentions[dumpsys.LogDied].Count > 0 {
			d.Text = "the log says that it died, and not why"
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

// Android keeps cached processes while there is memory, and kills them routinely: such a kill is no evidence
// about the memory of the process itself.
const (
	cachedText = "killed while cached, to free memory: "
	// cachedImportance is ActivityManager.RunningAppProcessInfo.IMPORTANCE_CACHED, which home and the
	// previous app have as well (procStateToImportance); cachedAdj is their lowest oom_score_adj
	// (ProcessList.HOME_APP_ADJ).
	cachedImportance, cachedAdj = 400, 600
)

// cached reports whether a process was cached when lmkd killed it.
func cached(exit *dumpsys.Exit, log dumpsys.Logcat) bool {
	if exit.Importance.Known && exit.Importance.N > 0 {
		return exit.Importance.N >= cachedImportance
	}
	return log.KillAdj.Known && log.KillAdj.N >= cachedAdj
}

// wordOf is the word of the reason of an exit record; byLog is that of the log.
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
		// Where lmkd cannot report to system_server, its kill is a signal 9.
		return "kill"
	case exit.ReasonName == "SIGNALED":
		return byLog
	case known:
		return cmp.Or(word, byLog)
	}
	return "kill"
}

// withLimit is the text of a death, with the limit that the process had by the latest reading where the
// memory limiter killed it and the log does not say it.
func withLimit(d record.Death, room capture.Headroom) string {
	rest, ok := strings.CutPrefix(d.Text, limiterName)
	if d.Reason != "memory_limiter" || !ok || strings.HasPrefix(rest, ", limit") || !room.AnonymousLimit.Known {
		return d.Text
	}
	limit := fmt.Sprintf("limit %d MB", room.AnonymousLimit.N>>20)
	if room.AnonymousAssumed {
		limit = "assumed " + limit
	}
	return limiterName + ", " + limit + rest
}

const limiterName = "memory limiter"

// limiterText names the memory limiter, with its limit where the log says it.
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

// textOfLog is the cause by the log, "" where it names none. The message of an exception may
// be about people: its class alone is kept.
func textOfLog(l dumpsys.Logcat) string {
	if l.MemoryLimiter() {
		return limiterText(l)
	}
	return text.Printable(cmp.Or(string(l.Exception), string(l.Signal), string(l.KillReason)))
}

// linesOf are the lines of the system that show the end, the last of each kind; what the app
// itself has logged is not among them.
func linesOf(l dumpsys.Logcat) []string {
	var out []string
	for _, kind := range []dumpsys.LogKind{dumpsys.LogANR, dumpsys.LogLowMemoryKill, dumpsys.LogKill, dumpsys.LogDied} {
		if m := l.Mentions[kind]; m.Count > 0 && len(out) < maxDeathLines {
			out = append(out, m.Line)
		}
	}
	return out
}
