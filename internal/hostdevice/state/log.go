package state

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
)

// logLimit bounds the log, in bytes. New entries that do not fit are dropped,
// whereas a phone drops the oldest.
const logLimit = 4 << 20

func (d Dir) logFile() string { return filepath.Join(d.Log(), "logcat") }

// MakeLog creates an empty log that every user may write and clear.
func (d Dir) MakeLog() error {
	if err := os.WriteFile(d.logFile(), nil, 0o666); err != nil {
		return fmt.Errorf("make log: %w", err)
	}
	if err := os.Chmod(d.logFile(), 0o666); err != nil {
		return fmt.Errorf("make log: %w", err)
	}
	return nil
}

// AppendLog adds one log entry for each line of a string.
func (d Dir) AppendLog(e androidtext.LogEntry) error {
	f, err := os.OpenFile(d.logFile(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("append to log: %w", err)
	}
	var b strings.Builder
	for line := range strings.SplitSeq(e.Text, "\n") {
		fmt.Fprintf(&b, "%d\t%s\t%d\t%d\t%c\t%s\t%s\n", e.Time.UnixMilli(), e.Buffer, e.PID, e.TID, e.Priority,
			strings.ReplaceAll(e.Tag, "\t", " "), line)
	}
	info, err := f.Stat()
	if err == nil && info.Size()+int64(b.Len()) <= logLimit {
		_, err = io.WriteString(f, b.String()) // in one write, which keeps concurrent entries apart
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("append to log: %w", err)
	}
	return nil
}

// ClearLog removes all entries.
func (d Dir) ClearLog() error {
	if err := os.Truncate(d.logFile(), 0); err != nil {
		return fmt.Errorf("clear log: %w", err)
	}
	return nil
}

// ReadLog returns the entries after an offset in the file, and the offset after
// these entries. If the log was cleared in the meantime, it is read from the
// beginning.
func (d Dir) ReadLog(from int64) (list []androidtext.LogEntry, next int64, err error) {
	f, err := os.Open(d.logFile())
	if err != nil {
		return nil, from, fmt.Errorf("read log: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, from, fmt.Errorf("read log: %w", err)
	}
	if info.Size() < from {
		from = 0
	}
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, from, fmt.Errorf("read log: %w", err)
	}
	for in := bufio.NewReader(f); ; {
		line, err := in.ReadString('\n')
		if err != nil { // a line without a newline is still being written
			return list, from, ignoreEnd(err)
		}
		from += int64(len(line))
		if e, ok := parseEntry(strings.TrimSuffix(line, "\n")); ok {
			list = append(list, e)
		}
	}
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("read log: %w", err)
}

func parseEntry(line string) (androidtext.LogEntry, bool) {
	f := strings.SplitN(line, "\t", 7)
	if len(f) != 7 || len(f[4]) != 1 || !strings.Contains("VDIWEF", f[4]) {
		return androidtext.LogEntry{}, false
	}
	ms, err := strconv.ParseInt(f[0], 10, 64)
	pid, errPID := strconv.Atoi(f[2])
	tid, errTID := strconv.Atoi(f[3])
	if errors.Join(err, errPID, errTID) != nil {
		return androidtext.LogEntry{}, false
	}
	return androidtext.LogEntry{
		Time: time.UnixMilli(ms), Buffer: f[1], PID: pid, TID: tid, Priority: f[4][0], Tag: f[5], Text: f[6],
	}, true
}
