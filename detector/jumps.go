package detector

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// jumps finds sudden rises, which are reported immediately. A jump alone is not
// a leak, whatever its size, because nothing shows that it will happen again.
type jumps struct {
	list []Jump
	// floor is the level of the last 5 min in MB; a jump is more than limit MB
	// above it.
	floor, limit float64
	known        bool
	// slot is the slot for which floor was computed; bin is the slot for which
	// limit was computed, divided by jumpRhythm.
	slot, bin int
	// settled is the number of jumps for which Stayed is known. levels are the
	// floors before each jump, in MB.
	settled int
	levels  []float64
}

const (
	// leastJump is the size of the smallest reported jump in MB. Section 5.4 of
	// the article (docs/article.md) requires at least 200 MB and at least half
	// of the floor. The floor is not considered here, because a constant part
	// of memory must not change the verdict.
	leastJump = 150.0
	// jumpSigmas is the minimum height of a jump, as a multiple of the standard
	// deviation of the noise in the last hour. Lower rises may be noise.
	jumpSigmas = 6.0
	// A jump has stayed if at least half of its height remains after jumpStays.
	jumpStays = 30 * time.Minute
	// maxJumps bounds the list; the latest jumps are kept.
	maxJumps = 16
	// jumpPause is the time between two computations of the floor, in slots.
	jumpPause = 4
	// jumpRhythm is the time between two measurements of the noise, in slots.
	jumpRhythm = 10
	// normalMAD is the standard deviation of normally distributed noise divided
	// by its median absolute deviation.
	normalMAD = 1.4826
	// The noise is measured over the last hour: jumpMemory slots.
	jumpMemory = 120
)

func (j *jumps) endStretch() { *j = jumps{list: j.list, levels: j.levels, settled: len(j.list)} }

// raise adds the given number of bytes to all stored levels.
func (j *jumps) raise(bytes float64) {
	j.floor += bytes / MB
	for i := range j.levels {
		j.levels[i] += bytes / MB
	}
}

// add adds a value in bytes and returns the jump that it reveals, if any.
func (j *jumps) add(m *robustMachine, at time.Duration, bytes float64) (Transition, bool) {
	t := m.tracks[totalTrack]
	if m.axis.closed >= j.slot+jumpPause || m.axis.closed < j.slot {
		j.update(m, t)
	}
	value := (bytes - t.base) / MB
	j.settle(at)
	if !j.known || value < j.floor+j.limit || j.rising(at) {
		return Transition{}, false
	}
	height := value - j.floor
	if len(j.list) == maxJumps {
		j.list = slices.Delete(j.list, 0, 1)
		j.levels = slices.Delete(j.levels, 0, 1)
		j.settled--
	}
	j.list = append(j.list, Jump{At: at, Bytes: int64(height * MB)})
	j.levels = append(j.levels, j.floor)
	return Transition{At: at, From: m.state, To: m.state, Rule: "jump", Because: fmt.Sprintf(
			"memory jumped %s MB above %s MB, its floor of the last 5 min", number(height), number(j.floor+t.base/MB))},
		true
}

// rising reports whether a value at the given time may still belong to the
// latest jump. A value may belong to a jump for 10 min after the jump, which is
// twice the time until the new level becomes the floor.
func (j *jumps) rising(at time.Duration) bool {
	return len(j.list) > j.settled && at-j.list[len(j.list)-1].At < 2*firstBin*slotTime
}

// settle decides, for each jump that is half an hour old, whether it has
// stayed.
func (j *jumps) settle(at time.Duration) {
	for i := range j.list {
		if x := &j.list[i]; i >= j.settled && at-x.At >= jumpStays {
			x.Stayed = (j.floor-j.levels[i])*MB >= float64(x.Bytes)/2
			j.settled = i + 1
		}
	}
}

// update recomputes the floor of the last 5 min and, less often, the noise of
// the last hour.
func (j *jumps) update(m *robustMachine, t *track) {
	var scratch [jumpMemory]float64
	j.slot = m.axis.closed
	values := t.recent(scratch[:0], m.axis.closed, firstBin)
	if len(values) < firstBin/2 {
		j.known = false
		return
	}
	j.floor, _ = levelOf(values)
	if j.bin == m.axis.closed/jumpRhythm && j.known {
		return
	}
	j.bin, j.known = m.axis.closed/jumpRhythm, true
	// The noise is derived from the median difference of values that are 10 min
	// apart, or closer if there are too few values. Each jump is part of only a
	// few of these differences, so it does not raise the limit for the next
	// one.
	values = t.recent(scratch[:0], m.axis.closed, jumpMemory)
	if len(values) < firstBin {
		j.known = false
		return
	}
	lag := min(2*firstBin, len(values)/2)
	n := len(values) - lag
	for i := range n {
		values[i] = math.Abs(values[i+lag] - values[i])
	}
	j.limit = max(leastJump, jumpSigmas*normalMAD/math.Sqrt2*middle(values[:n])*(1+10/float64(n)))
}

// lasting returns the index of the largest jump in this stretch that still has
// at least half of its height, or -1. Jumps are not added up, because memory
// that oscillates jumps in each period.
func (j *jumps) lasting(m *robustMachine) int {
	best := -1
	if !j.known {
		return best
	}
	for i, x := range j.list {
		there := x.At >= m.axis.origin && (j.floor-j.levels[i])*MB >= float64(x.Bytes)/2
		if there && (best < 0 || x.Bytes > j.list[best].Bytes) {
			best = i
		}
	}
	return best
}
