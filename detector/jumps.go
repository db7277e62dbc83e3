package detector

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// jumps finds sudden rises. They are told at once; alone they are no leak, whatever
// their size: what came once does not come again by itself.
type jumps struct {
	list []Jump
	// floor is the level of the last 5 min in MB, limit how far above it a jump begins.
	floor, limit float64
	known        bool
	// slot and bin are what floor and limit were made of.
	slot, bin int
	// open says that the level of the latest jump has not been seen for jumpStays;
	// level is the floor before it.
	open  bool
	level float64
}

const (
	// leastJump in MB is what is told as a jump; article 5.4 has 200 MB and half of the
	// floor, but a constant part of memory must not change the answer.
	leastJump = 150.0
	// jumpSigmas is how many standard deviations of the last hour a jump is above the
	// floor, so that noise is none.
	jumpSigmas = 6.0
	// jumpStays is after how long a level counts as one that stayed.
	jumpStays = 30 * time.Minute
	// maxJumps bounds the list: the latest are kept.
	maxJumps = 16
	// jumpPause is how often the floor is taken, in slots.
	jumpPause = 4
	// jumpRhythm is how often the noise is measured, in slots.
	jumpRhythm = 120
	// normalMAD makes a standard deviation of a median deviation of normal noise.
	normalMAD = 1.4826
	// jumpMemory is the hour that tells the noise, in slots.
	jumpMemory = 120
)

func (j *jumps) breakOff() { *j = jumps{list: j.list} }

// raise moves the levels with the track.
func (j *jumps) raise(bytes float64) {
	j.floor += bytes / MB
	j.level += bytes / MB
}

// hear takes one value in bytes and gives the jump that it is.
func (j *jumps) hear(m *robustMachine, at time.Duration, bytes float64) (Transition, bool) {
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
	j.level, j.open = j.floor, true
	if len(j.list) == maxJumps {
		j.list = slices.Delete(j.list, 0, 1)
	}
	j.list = append(j.list, Jump{At: at, Bytes: int64(height * MB)})
	return Transition{At: at, From: m.state, To: m.state, Rule: "jump", Because: fmt.Sprintf(
		"memory jumped %s MB above %s MB, its floor of the last 5 min", number(height), number(j.floor+t.base/MB))}, true
}

// rising says whether a value may still belong to the latest jump: its level becomes
// the floor within 5 min.
func (j *jumps) rising(at time.Duration) bool {
	return len(j.list) > 0 && j.open && at-j.list[len(j.list)-1].At < 2*firstBin*slotTime
}

// settle says after half an hour whether the latest jump stayed.
func (j *jumps) settle(at time.Duration) {
	if !j.open || at-j.list[len(j.list)-1].At < jumpStays {
		return
	}
	last := &j.list[len(j.list)-1]
	last.Stayed = (j.floor-j.level)*MB >= float64(last.Bytes)/2
	j.open = false
}

// update takes the floor of the last 5 min, and once in 5 min the noise of the hour.
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
	// The median deviation, because a jump must not raise the limit for the next one.
	values = t.recent(scratch[:0], m.axis.closed, jumpMemory)
	level := middle(values)
	for i, v := range values {
		values[i] = math.Abs(v - level)
	}
	j.limit = max(leastJump, jumpSigmas*normalMAD*middle(values))
}

// stayed is the sum of the jumps that stayed, in bytes.
func (j *jumps) stayed() (bytes int64, count int) {
	for _, x := range j.list {
		if x.Stayed {
			bytes += x.Bytes
			count++
		}
	}
	return bytes, count
}
