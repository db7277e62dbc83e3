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
	// logTag is the tag with which a test on the device logs marks. Only lines
	// with this tag are read, so following the log costs the device almost
	// nothing.
	logTag = "leakgate"
	// logTimeAPI is the first API level whose logcat can start at a time
	// (logcat -T, Android 5).
	logTimeAPI = 21
	// followRetry is the wall-clock time between two attempts to follow the log
	// of a device that was disconnected.
	followRetry = 3 * time.Second
	// stampLength is the length of "01-02 03:04:05.678", the timestamp at the
	// beginning of a line in threadtime format.
	stampLength = 18
)

// followMarks sets the marks that a test on the device logs, until ctx is done.
// A test on the device has no other way to set a mark. Lines logged before the
// run are ignored.
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
			_ = sleep(ctx, followRetry) // returns early when ctx is done
		}
	})
}

// deviceTime returns the device's wall clock time in the format of its log, or
// "" if the device does not respond.
func deviceTime(ctx context.Context, dev Device) string {
	a, err := shell.Ask(ctx, dev, answerTimeout, "date '+%m-%d %H:%M:%S.000'")
	stamp := strings.TrimSpace(string(a.Stdout))
	if _, perr := time.Parse("01-02 15:04:05.000", stamp); err != nil || perr != nil {
		return ""
	}
	return stamp
}

// readMarks follows the log from the given time until the device disconnects or
// ctx is done. It returns the time of the last mark, or the given time if there
// was no mark. When reading resumes from the returned time, lines up to that
// time are skipped.
func (s *session) readMarks(ctx context.Context, from string, resumed bool) string {
	last := from
	out := &lineReader{out: &pacedWriter{w: io.Discard}, onLine: func(line string) {
		stamp, mark, ok := markOfLog(line)
		if !ok || resumed && stamp <= from {
			return
		}
		last = stamp
		s.mailbox.post(message{Event: record.Event{Event: "mark", Text: mark}})
	}}
	// The exit status is meaningless: the command ends when ctx is done or the
	// device disconnects.
	_, _ = s.dev.Shell(ctx, "exec logcat -v threadtime -b main -T "+text.ShellQuote(from)+" -s "+logTag+
		":I </dev/null 2>/dev/null", out, io.Discard)
	return last
}

// markOfLog parses "01-02 03:04:05.678 1234 1240 I leakgate: mark checkout"
// into the time and the mark. The message may also have the form leakgate:mark,
// as in the output of a workload.
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
