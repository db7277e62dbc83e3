package response

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/text"
)

// readLogcat reports what happened to the process, beginning with whether it
// crashed or was killed.
func readLogcat(c *Case, _ *MemorySnapshot, text []byte) ([]string, error) {
	nothing := []string{"logcat: nothing about the process"}
	if len(bytes.TrimSpace(text)) == 0 {
		return nothing, nil
	}
	l, err := dumpsys.ScanLogcat(bytes.NewReader(text), int64(c.Process.PID), c.Process.Name)
	if err != nil {
		return nil, err
	}
	if l.Entries == 0 {
		return nothing, nil
	}
	lines := []string{"logcat: " + ending(l) + collections(l)}
	for _, kind := range dumpsys.LogKinds() {
		m := l.Mentions[kind]
		if m.Count == 0 || kind == dumpsys.LogGC {
			continue
		}
		lines = append(lines,
			fmt.Sprintf("  %s, %d lines, the last at %s: %s", strings.ReplaceAll(string(kind), "_", " "), m.Count,
				m.Last, m.Line))
	}
	return append(lines, fmt.Sprintf("  %d entries, from %s to %s", l.Entries, l.First, l.Last)), nil
}

// ending distinguishes a crash from a kill.
func ending(l dumpsys.Logcat) string {
	switch {
	case l.Exception != "":
		return "CRASHED with " + string(l.Exception)
	case l.Signal != "":
		return "CRASHED by " + string(l.Signal)
	case l.Crash():
		return "CRASHED"
	case l.KillReason != "":
		return "KILLED by the system: " + string(l.KillReason)
	case l.Kill():
		return "KILLED by the system"
	case l.Mentions[dumpsys.LogOutOfMemory].Count > 0:
		return "an OutOfMemoryError was thrown"
	}
	return "no crash, no kill"
}

func collections(l dumpsys.Logcat) string {
	n := l.Mentions[dumpsys.LogGC].Count
	if n == 0 {
		return ""
	}
	line := "; " + text.Count(int(n), "garbage collection", "garbage collections")
	if l.GC.HeapUsed.Known && l.GC.HeapTotal.Known {
		line += fmt.Sprintf(", after the last %s of %s Java heap", text.KB(l.GC.HeapUsed.N), text.KB(l.GC.HeapTotal.N))
	}
	return line
}

// readExitInfo reports how earlier processes with the same name and user ended.
func readExitInfo(c *Case, _ *MemorySnapshot, text []byte) ([]string, error) {
	info, err := dumpsys.ParseExitInfo(text)
	if err != nil {
		return nil, err
	}
	var own []dumpsys.Exit
	for _, e := range info.Exits {
		if string(e.Process) == c.Process.Name && (!e.User.Known || e.User.N == int64(c.Process.User)) {
			own = append(own, e)
		}
	}
	// The device groups the exits by uid; a reinstalled app has a different
	// uid.
	slices.SortStableFunc(own, func(a, b dumpsys.Exit) int { return endedAt(b).Compare(endedAt(a)) })
	if len(own) == 0 {
		return []string{"exit info: no recorded exit of a process with this name"}, nil
	}
	ended := "1 earlier exit of a process with this name: "
	if len(own) > 1 {
		ended = fmt.Sprintf("%d earlier exits of processes with this name, the last: ", len(own))
	}
	lines := []string{"exit info: " + ended + exitText(own[0])}
	for _, e := range own[:min(len(own), toldRows)] {
		lines = append(lines, "  "+exitText(e))
	}
	return lines, nil
}

// endedAt returns when a process ended, according to the device's clock, or the
// zero time if the timestamp is invalid.
func endedAt(e dumpsys.Exit) time.Time {
	at, _ := time.Parse("2006-01-02 15:04:05", string(e.Timestamp)) // also accepts fractions
	return at
}

func exitText(e dumpsys.Exit) string {
	line := fmt.Sprintf("%s at %s", e.ReasonName, e.Timestamp)
	if e.Pss.Known {
		line += fmt.Sprintf(", Pss %s", text.KB(e.Pss.N))
	}
	if e.Description != "" {
		line += ", " + string(e.Description)
	}
	return line
}
