package procfs

import (
	"bytes"
	"encoding/json"
	"math"
	"time"

	"github.com/leakgate/leakgate/internal/capture/field"
	"github.com/leakgate/leakgate/internal/known"
)

// Stat holds the fields of /proc/PID/stat (proc(5)) that identify a process and
// describe its usage. The shell may read the file on every build of Android.
type Stat struct {
	PID  int64  `json:"pid"`
	Comm string `json:"comm"` // name of the main thread, at most 64 bytes
	// State is R, S, D, Z, T, ...; 0 if unknown.
	State   RunState  `json:"state"`
	PPID    known.Int `json:"ppid"`
	Utime   known.Int `json:"utime_ticks"` // clock ticks, 100 a second on Android
	Stime   known.Int `json:"stime_ticks"`
	Threads known.Int `json:"threads"`
	// StartTicks is the time at which the process started, in clock ticks since
	// boot. Together with the pid, it identifies a process: a pid may be
	// reused, but not with the same start time.
	StartTicks known.Int `json:"start_ticks"`
	// Truncated reports whether the input ends before StartTicks.
	Truncated bool    `json:"-"`
	Warnings  []error `json:"-"`
}

const (
	// tick is the unit of a process's CPU time: USER_HZ is 100 on every Android
	// kernel, so a tick is 10 ms.
	tick = 10 * time.Millisecond
	// maxTicks is 292 years, in clock ticks.
	maxTicks = math.MaxInt64 / int64(tick)
)

// CPU returns the CPU time of the process in user and kernel mode together.
func (s Stat) CPU() known.Duration {
	ticks := s.Utime.N + s.Stime.N
	if !s.Utime.Known || !s.Stime.Known || ticks > maxTicks {
		return known.Duration{}
	}
	return known.OfDuration(time.Duration(ticks) * tick)
}

// RunState is the letter of a process's state.
type RunState byte

// MarshalJSON writes the letter, or null if unknown.
func (s RunState) MarshalJSON() ([]byte, error) {
	if s == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(string(rune(s)))
}

const maxStat = 16 << 10

// ParseStat parses /proc/PID/stat. A name may contain spaces, parentheses and
// line ends; it ends at the LAST closing parenthesis of the file, because no
// later field can contain one.
func ParseStat(text []byte) (Stat, error) {
	all := text[:min(len(text), maxStat)]
	open := bytes.IndexByte(all, '(')
	end := bytes.LastIndexByte(all, ')')
	if open < 0 || end < open {
		return Stat{}, formatError("stat", text)
	}
	pid, ok := number(bytes.TrimSpace(all[:open]))
	if !ok {
		return Stat{}, formatError("stat", text)
	}
	s := Stat{PID: pid, Comm: string(all[open+1 : min(end, open+65)])}
	var d field.Warnings
	rest := all[end+1:]
	for n := 3; n <= 22; n++ {
		w, after, closed := word(rest)
		if !closed {
			s.Truncated = true
			d.Add(1, statField(n), w, "cut")
			break
		}
		rest = after
		s.set(n, w, &d)
	}
	s.Warnings = d.All()
	return s, nil
}

func (s *Stat) set(n int, w []byte, d *field.Warnings) {
	if n == 3 {
		if len(w) != 1 {
			d.Add(1, statField(n), w, "not one letter")
			return
		}
		s.State = RunState(w[0])
		return
	}
	to := s.slot(n)
	if to == nil {
		return
	}
	v, ok := number(w)
	if !ok {
		d.Add(1, statField(n), w, "not a number")
		return
	}
	*to = known.Of(v)
}

func (s *Stat) slot(n int) *known.Int {
	switch n {
	case 4:
		return &s.PPID
	case 14:
		return &s.Utime
	case 15:
		return &s.Stime
	case 20:
		return &s.Threads
	case 22:
		return &s.StartTicks
	}
	return nil
}

// statField returns the name that proc(5) uses for a field.
func statField(n int) string {
	names := [...]string{3: "state", "ppid", "pgrp", "session", "tty_nr", "tpgid", "flags", "minflt", "cminflt",
		"majflt", "cmajflt", "utime", "stime", "cutime", "cstime", "priority", "nice", "num_threads", "itrealvalue",
		"starttime"}
	return names[n]
}
