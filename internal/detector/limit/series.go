package limit

import (
	"slices"
	"time"
)

// series holds the last readings of one resource, stored as the minimum of each
// block of time, because use that rises and falls within a block is not growth.
type series struct {
	blocks []block
	// crest is the highest value of the blocks that are no longer kept.
	crest int64
	open  block
	climb climb
}

// climb describes the rise since the use last fell: base is the first reading
// after the fall, and before is the latest one.
type climb struct {
	base, before int64
	seen         bool
}

// add adds a reading and reports whether the value fell.
func (c *climb) add(used int64) (fell bool) {
	fell = c.seen && used < c.before
	if fell || !c.seen {
		c.base = used
	}
	c.before, c.seen = used, true
	return fell
}

// steady reports whether, since its use last fell, a Java heap has grown by
// more than the garbage that it can contain. Collections may have taken place,
// but each freed less than was allocated between two readings.
func (c *climb) steady(garbage int64) bool { return c.before-c.base > garbage }

// block summarizes consecutive readings.
type block struct {
	from time.Duration
	// least is the lowest reading, with its time.
	least int64
	at    time.Duration
	n     int
	// fell reports whether some reading was below the one before it, which
	// means that the Java heap was collected.
	fell bool
}

// shape describes how the readings of a resource are divided into blocks.
type shape struct {
	length time.Duration // minimum length of a block
	n      int           // minimum number of readings of a block
	falls  bool          // also a fall, or a climb so steep that there must have been a fall
	window time.Duration // time over which growth is measured
	// garbage is the largest amount that a collection could free, in bytes.
	garbage int64
}

const (
	// maxBlocks bounds the number of blocks; an hour of counts has 30.
	maxBlocks = 40
	// A rate needs leastSpan of time. Reliable growth needs growthSpan, because
	// temporary growth slows down within that time.
	leastSpan  = 10 * time.Minute
	growthSpan = 20 * time.Minute
)

// mostGarbage is the maximum amount of garbage in a Java heap between two
// collections on the largest phones: heapmaxfree, 32 MB (frameworks/native
// build/phone-xhdpi-6144-dalvik-heap.mk), tripled for a process in the
// foreground (art/runtime/gc/heap.cc, GrowForUtilization;
// art/runtime/runtime.cc, kExtraDefaultHeapGrowthMultiplier).
const mostGarbage = 96 << 20

// garbage returns the largest amount that a collection could free.
func (u Use) garbage() int64 {
	if u.Garbage > 0 {
		return u.Garbage
	}
	return mostGarbage
}

func shapeOf(r Resource, u Use) shape {
	if r == JavaHeap {
		// The floor is visible only in the few readings that come soon after a
		// collection.
		return shape{length: 5 * time.Minute, n: 4, falls: true, window: 4 * time.Hour, garbage: u.garbage()}
	}
	if r == AnonymousMemory {
		// Anonymous memory rises and falls with the Java heap, and is read as
		// often as the process is sampled.
		return shape{length: 5 * time.Minute, n: 4, window: 2 * time.Hour}
	}
	return shape{length: 2 * time.Minute, n: 1, window: time.Hour}
}

// climbOf returns the shape for a Java heap including its garbage. The growth
// of the heap minus all possible garbage is permanent, so a steep leak is
// detected before the floors show it.
func climbOf(u Use) shape {
	return shape{length: 2 * time.Minute, n: 1, window: time.Hour, garbage: u.garbage()}
}

// add adds a reading; closed reports whether the reading completed a block.
func (s *series) add(sh shape, at time.Duration, used int64) (closed bool) {
	fell := s.climb.add(used)
	if o := s.open; o.n >= sh.n && at-o.from >= sh.length && (o.fell || !sh.falls || s.climb.steady(sh.garbage)) {
		s.keep(o, at-sh.window)
		s.open, closed = block{}, true
	}
	if s.open.n == 0 {
		s.open = block{from: at, least: used, at: at}
	}
	if used < s.open.least {
		s.open.least, s.open.at = used, at
	}
	s.open.n++
	s.open.fell = s.open.fell || fell
	return closed
}

// keep adds a block and drops those that are older than the window.
func (s *series) keep(b block, since time.Duration) {
	drop := max(0, len(s.blocks)+1-maxBlocks)
	for drop < len(s.blocks) && s.blocks[drop].at < since {
		drop++
	}
	for _, old := range s.blocks[:drop] {
		s.crest = max(s.crest, old.least)
	}
	s.blocks = append(s.blocks[:0], s.blocks[drop:]...)
	s.blocks = append(s.blocks, b)
}

// outlook is the prediction made from a series.
type outlook struct {
	rate Rate
	// pace is a cautious estimate of the growth in units per second; 0 if the
	// growth is not reliable.
	pace float64
	// level is the amount that is certainly in use in the last block; it is
	// valid only if pace is positive.
	level int64
}

func (s *series) outlook(sh shape) outlook {
	n := len(s.blocks)
	if n < leastPoints {
		return outlook{}
	}
	first, last := s.blocks[0], s.blocks[n-1]
	span := last.at - first.at
	if span < leastSpan {
		return outlook{}
	}
	x, y := make([]float64, n), make([]float64, n)
	for i, b := range s.blocks {
		x[i], y[i] = (b.at - first.at).Seconds(), float64(b.least)
	}
	o := outlook{rate: sen(x, y)}
	// If the use has fallen from such a level before, the growth is not
	// unlimited.
	if span < growthSpan || !(o.rate.Low > 0) || last.least <= s.crest || !lasting(x, y) {
		return o
	}
	pace := o.rate.PerHour / 3600
	if late := sen(x[n/2:], y[n/2:]); late.Known {
		pace = min(pace, late.PerHour/3600)
	}
	o.level = last.least
	if s.withGarbage(sh) {
		kept := last.least - first.least - sh.garbage
		if kept < sh.garbage {
			return o
		}
		// At least this much of the memory is permanent.
		pace = min(pace, float64(kept)/span.Seconds())
		if !sh.falls || !last.fell {
			o.level -= sh.garbage
		}
	}
	o.pace = max(0, pace)
	return o
}

// withGarbage reports whether the blocks may contain garbage that a collection
// would free.
func (s *series) withGarbage(sh shape) bool {
	return sh.garbage > 0 && (!sh.falls || slices.ContainsFunc(s.blocks, func(b block) bool { return !b.fell }))
}

// recent holds the last readings of one resource, stored as the minimum of each
// minute.
type recent struct {
	list  [floorMinutes]minute
	n     int
	climb climb
}

type minute struct {
	from time.Duration
	used int64
	// fell reports whether a reading was below the one before it.
	fell bool
}

// The floor of a Java heap is its minimum over floorMinutes minutes, or over
// floorMinutes readings if they are more than a minute apart. The highest
// sawtooth that occurs lies between 70 and 95 % of the limit. The probability
// that 20 of its readings in a row are all above 80 % is 1 in 27,000.
const floorMinutes = 20

func (r *recent) add(sh shape, at time.Duration, used int64) {
	fell := r.climb.add(used)
	if last := r.n - 1; sh.falls && r.n > 0 && at-r.list[last].from < time.Minute {
		r.list[last].used = min(r.list[last].used, used)
		r.list[last].fell = r.list[last].fell || fell
		return
	}
	if r.n == len(r.list) {
		copy(r.list[:], r.list[1:])
		r.n--
	}
	r.list[r.n] = minute{at, used, fell}
	r.n++
}

// least returns the lowest of the last n readings, or 0 if there are fewer than
// n readings.
func (r *recent) least(n int) int64 {
	if r.n < n {
		return 0
	}
	used := r.list[r.n-1].used
	for _, x := range r.list[r.n-n : r.n] {
		used = min(used, x.used)
	}
	return used
}

// level returns the amount that is certainly in use: for counts the lower of
// two readings, for the Java heap the floor, which is known only after a
// collection.
func (r *recent) level(sh shape) (used int64, ok bool) {
	least := 2
	if sh.falls {
		least = floorMinutes
	}
	if r.n < least {
		return 0, false
	}
	last := r.list[r.n-least : r.n]
	return r.least(least), !sh.falls || slices.ContainsFunc(last, func(x minute) bool { return x.fell })
}
