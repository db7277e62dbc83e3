package replay

import (
	"slices"
	"time"

	"github.com/leakgate/leakgate/internal/harness/ledger"
)

// track is the state of one process of a table.
type track struct {
	*subject
	part *ledger.Part
	// pid and former are the current and the previous pid of the process; start
	// is its start time. 0 means unknown.
	pid, former, start uint64
	// last is the time of the latest sample; detailed is the time of the latest
	// breakdown. Each is unknown before the first one.
	last, detailed   time.Duration
	begun, wasDetail bool
	// lacking is the time of the latest row that should have contained a value.
	lacking time.Duration
	// dead reports whether the process ended with the latest row.
	dead    bool
	spacing spacing
}

// lack records a row that should have contained a value: the series has a gap
// there.
func (x *track) lack(at time.Duration) { x.lacking = max(x.lacking, at) }

// skip records that a row is skipped because its value is impossible.
func (x *track) skip(at time.Duration, line int, format string, args ...any) {
	x.problems.skip(line, format, args...)
	x.lack(at)
}

// spacing tracks the usual time between two samples: the median of the latest
// intervals.
type spacing struct {
	recent [15]time.Duration
	n      int
	usual  time.Duration
}

// longestInterval is the longest sampling interval that a policy requests; a
// run may slow down to this interval.
const longestInterval = time.Minute

// gap reports whether an interval between two samples is so long that it is a
// gap in the recording.
func (r *spacing) gap(step time.Duration) bool {
	return r.n >= 3 && step > 3*max(r.usual, longestInterval)
}

func (r *spacing) add(step time.Duration) {
	r.recent[r.n%len(r.recent)] = step
	r.n++
	// If the intervals of a recording are regular, the median is found without
	// sorting the intervals at each row.
	if r.n < len(r.recent) || r.n%len(r.recent) == 0 {
		known := r.recent
		sorted := known[:min(r.n, len(known))]
		slices.Sort(sorted)
		r.usual = sorted[len(sorted)/2]
	}
}

// family holds the tracks of all processes with one name. A family has more
// than one track if several processes with its name run at the same time under
// different pids.
type family struct {
	tracks []*track
	// byPID holds the tracks of the current pids; for former pids it holds nil.
	byPID map[uint64]*track
}

// find returns the track of a row, or nil before the first row of its process.
// A pid that was not seen before means that the latest process restarted,
// unless that process was still running at this time.
func (f *family) find(pid uint64, at time.Duration) *track {
	if pid == 0 {
		return f.latest()
	}
	t, known := f.byPID[pid]
	if known {
		return t
	}
	if t = f.latest(); t == nil || t.pid == 0 || !t.begun || t.last < at {
		return t
	}
	return nil
}

func (f *family) latest() *track {
	if len(f.tracks) == 0 {
		return nil
	}
	return f.tracks[len(f.tracks)-1]
}

// take assigns a pid to a track.
func (f *family) take(t *track, pid uint64) {
	if pid == 0 || pid == t.pid {
		return
	}
	if f.byPID == nil {
		f.byPID = map[uint64]*track{}
	}
	if t.former != 0 && f.byPID[t.former] == nil {
		delete(f.byPID, t.former)
	}
	if t.pid != 0 {
		f.byPID[t.pid] = nil
	}
	t.former, t.pid = t.pid, pid
	f.byPID[pid] = t
}
