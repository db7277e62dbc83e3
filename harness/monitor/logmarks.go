package monitor

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// logTag is the tag under which a test on the device logs marks. Only lines with it are
	// read, so that following the log costs the device next to nothing.
	logTag = "leakgate"
	// logTimeAPI is the first API level whose logcat begins at a time (logcat -T, Android 5).
	logTimeAPI = 21
	// logAgain is the real time between two attempts to follow the log of a device that was
	// away.
	logAgain = 3 * time.Second
	// stampLength is that of "01-02 03:04:05.678", which begins a line of the format threadtime.
	stampLength = 18
)

// followMarks puts the marks that a test logs on the device on its time axis, until ctx ends: a
// test that runs on the device has no other way to set one. Lines that were logged before the
// run are no marks of it.
func (s *session) followMarks(ctx context.Context) {
	if !s.run.atMarks() || s.dev.Facts.API < logTimeAPI {
		return
	}
	s.calls.Go(func() {
		from, resumed := "", false
		for ctx.Err() == nil {
			if from == "" {
				from = deviceTime(ctx, s.dev)
			}
			if from != "" {
				from, resumed = s.readMarks(ctx, from, resumed), true
			}
			_ = nap(ctx, logAgain) // ends early with ctx
		}
	})
}

// deviceTime is the device's wall clock as its log has it, "" where it does not answer.
func deviceTime(ctx context.Context, dev Device) string {
	a, err := shell.Ask(ctx, dev, askDeadline, "date '+%m-%d %H:%M:%S.000'")
	stamp := strings.TrimSpace(string(a.Stdout))
	if _, perr := time.Parse("01-02 15:04:05.000", stamp); err != nil || perr != nil {
		return ""
	}
	return stamp
}

// readMarks follows the log from a moment on, until the device goes away or ctx ends, and
// returns the moment of the last mark: where it is resumed there, nothing until then is read
// again.
func (s *session) readMarks(ctx context.Context, from string, resumed bool) string {
	last := from
	out := &listener{out: &paced{w: io.Discard}, heard: func(line string) {
		stamp, mark, ok := markOfLog(line)
		if !ok || resumed && stamp <= from {
			return
		}
		last = stamp
		s.notes.put(letter{Event: record.Event{Event: "mark", Text: mark}})
	}}
	// The exit status says nothing: it ends with ctx or with the device.
	_, _ = s.dev.Shell(ctx, "exec logcat -v threadtime -b main -T "+text.ShellQuote(from)+" -s "+logTag+":I </dev/null 2>/dev/null", out, io.Discard)
	return last
}

// markOfLog reads "01-02 03:04:05.678  1234  1240 I leakgate: mark checkout", with the time of
// the line. The message may also begin as in the output of a workload, leakgate:mark.
func markOfLog(line string) (stamp, mark string, ok bool) {
	if len(line) < stampLength {
		return "", "", false
	}
	stamp = line[:stampLength]
	if _, err := time.Parse("01-02 15:04:05.000", stamp); err != nil {
		return "", "", false
	}
	_, message, ok := strings.Cut(line[stampLength:], " I "+logTag)
	if !ok {
		return "", "", false
	}
	_, message, ok = strings.Cut(message, ": ") // the tag is padded
	if !ok {
		return "", "", false
	}
	mark, ok = strings.CutPrefix(strings.TrimPrefix(message, "leakgate:"), "mark ")
	if mark = cleanMark(mark); !ok || mark == "" {
		return "", "", false
	}
	return stamp, mark, true
}
