package detector

import (
	"math"
	"slices"
	"time"
)

const (
	// slotTime is the time resolution of a judgement. Samples come every 15 to
	// 60 s, and noise on a shorter scale carries no information about a leak.
	slotTime = 30 * time.Second
	// The last ringSlots slots, two hours, are kept individually; older data is
	// kept as floors.
	ringSlots = 240
	// firstBin is the initial length of a floor in slots: 5 min, as in section
	// 5.3 of the article.
	firstBin = 10
	// maxBins is the maximum number of floors: 48 hours of floors of 5 min.
	// When it is reached, adjacent floors are merged in pairs.
	maxBins = 576
	// largestBin is the maximum length of a floor in slots: 80 min, which fits
	// in the ring. maxBins floors of this length cover more than 32 days.
	largestBin = 160
)

// axis is the time axis that all tracks of a process share: slots of 30 s since
// the process was first seen, and floors of binSlots slots each.
type axis struct {
	// origin is the time on the device's clock at the start of slot 0.
	origin time.Duration
	// closed is the number of complete slots; binned is the number of floors.
	closed, binned int
	binSlots       int
}

func newAxis(origin time.Duration) axis { return axis{origin: origin, binSlots: firstBin} }

// slot returns the number of the slot that contains the given time.
func (a *axis) slot(at time.Duration) int { return int((at - a.origin) / slotTime) }

// at returns the time on the device's clock at the end of the closed slots.
func (a *axis) at() time.Duration { return a.origin + time.Duration(a.closed)*slotTime }

// length returns the time that the closed slots cover.
func (a *axis) length() time.Duration { return time.Duration(a.closed) * slotTime }

// track is one series on the axis, in MB relative to its first value, so that a
// constant part does not reduce the precision or change a judgement. NaN means
// missing.
type track struct {
	base  float64
	known bool
	// sum and n are the sum and the number of the values in the open slot.
	sum float64
	n   int
	// ring contains each of the last slots twice, so that any sequence of slots
	// is contiguous.
	ring [2 * ringSlots]float32
	bins []float32
	// values counts the values added.
	values int
}

func newTrack() *track {
	t := &track{bins: make([]float32, 0, maxBins)} // allocated once, so that it never grows
	t.reset()
	return t
}

func (t *track) reset() {
	*t = track{bins: t.bins[:0]}
	for i := range t.ring {
		t.ring[i] = nan32
	}
}

// clear removes the values but keeps the axis, because values of another
// quantity follow.
func (t *track) clear() {
	for i := range t.ring {
		t.ring[i] = nan32
	}
	for i := range t.bins {
		t.bins[i] = nan32
	}
	t.sum, t.n, t.known = 0, 0, false
}

var nan32 = float32(math.NaN())

// add adds a value to the open slot, in bytes.
func (t *track) add(bytes float64) {
	if !t.known {
		t.base, t.known = bytes, true
	}
	t.sum += (bytes - t.base) / MB
	t.n++
	t.values++
}

// raise adds the given number of bytes to all known values.
func (t *track) raise(bytes float64) {
	by := float32(bytes / MB)
	t.sum += bytes / MB * float64(t.n)
	for i := range t.ring {
		t.ring[i] += by
	}
	for i := range t.bins {
		t.bins[i] += by
	}
}

// closeSlot ends the open slot, which has number i.
func (t *track) closeSlot(i int) {
	v := nan32
	if t.n > 0 {
		v = float32(t.sum / float64(t.n))
	}
	t.ring[i%ringSlots], t.ring[i%ringSlots+ringSlots] = v, v
	t.sum, t.n = 0, 0
}

// closeBin adds a floor that covers the given number of slots before the given
// end slot.
func (t *track) closeBin(end, slots int) {
	var scratch [largestBin]float64
	if t.values == 0 {
		t.bins = append(t.bins, nan32)
		return
	}
	v, ok := levelOf(t.recent(scratch[:0], end, slots))
	if !ok {
		v = math.NaN()
	}
	t.bins = append(t.bins, float32(v))
}

// slots returns the last n slots before the given end slot, with NaN for gaps.
func (t *track) slots(end, n int) []float32 {
	n = min(n, end, ringSlots)
	to := (end-1)%ringSlots + 1 + ringSlots
	return t.ring[to-n : to]
}

// recent appends the known values of the last n slots before the given end
// slot.
func (t *track) recent(dst []float64, end, n int) []float64 {
	return appendKnown(dst, t.slots(end, n))
}

// appendKnown appends the values that are known.
func appendKnown(dst []float64, values []float32) []float64 {
	for _, v := range values {
		if v == v {
			dst = append(dst, float64(v))
		}
	}
	return dst
}

// pair merges adjacent floors in pairs.
func (t *track) pair() {
	for i := range len(t.bins) / 2 {
		a, b := t.bins[2*i], t.bins[2*i+1]
		switch {
		case a != a:
			a = b
		case b == b:
			a = (a + b) / 2
		}
		t.bins[i] = a
	}
	t.bins = t.bins[:len(t.bins)/2]
}

// forget drops the older half of the floors.
func (t *track) forget() {
	t.bins = slices.Delete(t.bins, 0, len(t.bins)/2)
}

// levelOf returns the level of values: the mean of their middle half (Tukey's
// midmean). It sorts the values. The P25 of article 5.3 is intended as the
// level without the load, but a low quantile falls as the number of values and
// their spread grow, so each change of the sampling interval would look like a
// step. The midmean also ignores peaks that last for less than a quarter of the
// time, but depends neither on the number of values nor on their spread.
func levelOf(values []float64) (float64, bool) {
	n := len(values)
	switch n {
	case 0:
		return 0, false
	case 1:
		return values[0], true
	}
	cut := n / 4
	if cut > 0 {
		insertionSort(values)
	}
	return meanOf(values[cut : n-cut]), true
}

// levelOr returns the result of levelOf, or NaN for an empty list.
func levelOr(values []float64) float64 {
	if v, ok := levelOf(values); ok {
		return v
	}
	return math.NaN()
}

// insertionSort is faster than slices.Sort for the ten values of a floor.
func insertionSort(v []float64) {
	if len(v) > 24 {
		slices.Sort(v)
		return
	}
	for i := 1; i < len(v); i++ {
		x, j := v[i], i
		for j > 0 && v[j-1] > x {
			v[j] = v[j-1]
			j--
		}
		v[j] = x
	}
}

// stretch is a part of a track: the slots [from, to) of the ring, or the floors
// [from, to).
type stretch struct {
	from, to int
	floors   bool
}

// levels divides a stretch into n equal blocks and returns the level of each in
// MB. ok is false if more than a quarter of the blocks have no value.
// Otherwise, the levels of blocks without a value are interpolated.
func (t *track) levels(dst []float64, s stretch, n int) (levels []float64, ok bool) {
	dst = dst[:n]
	empty := t.cut(dst, s)
	if empty > n/4 {
		return dst, false
	}
	if empty > 0 {
		bridge(dst)
	}
	return dst, true
}

// largestBlock is the largest number of values of a block: maxBins divided by
// endBlocks, or an hour of slots divided by leastBlocks.
const largestBlock = 32

// cut returns the level of each block, NaN for blocks without a value, and the
// number of such blocks.
func (t *track) cut(dst []float64, s stretch) (empty int) {
	values := t.bins
	first := s.from
	if !s.floors {
		values = t.slots(s.to, s.to-s.from)
		first = 0
	}
	size, n := s.to-s.from, len(dst)
	var scratch [largestBlock]float64
	for b := range dst {
		block := values[first+b*size/n : first+(b+1)*size/n]
		if len(block) == 1 {
			dst[b] = float64(block[0])
		} else {
			dst[b] = levelOr(appendKnown(scratch[:0], block))
		}
		if dst[b] != dst[b] {
			empty++
		}
	}
	return empty
}

// rise returns how much higher the last quarter of the last n floors is than
// the first quarter. The result is infinite if a floor in one of these quarters
// has no value, or if n is less than 2.
func (t *track) rise(n int) float64 {
	if n < 2 {
		return math.Inf(1)
	}
	k := max(1, n/4)
	bins := t.bins[len(t.bins)-n:]
	var first, last float32
	for i := range k {
		first += bins[i]
		last += bins[n-1-i]
	}
	if rise := float64(last-first) / float64(k); rise == rise {
		return rise
	}
	return math.Inf(1)
}

// bridge replaces each NaN with a value interpolated between its neighbors, or
// with the nearest value at the ends.
func bridge(v []float64) {
	last := -1
	for i, x := range v {
		if x != x {
			continue
		}
		switch {
		case last < 0:
			for k := range i {
				v[k] = x
			}
		default:
			for k := last + 1; k < i; k++ {
				v[k] = v[last] + (x-v[last])*float64(k-last)/float64(i-last)
			}
		}
		last = i
	}
	for k := last + 1; k < len(v) && last >= 0; k++ {
		v[k] = v[last]
	}
}

// median returns the median of values without reordering them.
func median(values []float64) float64 {
	var scratch [maxLevels]float64
	return middle(append(scratch[:0], values...))
}

// middle returns the median and reorders the values.
func middle(v []float64) float64 {
	n := len(v)
	if n == 0 {
		return math.NaN()
	}
	if n <= 24 {
		insertionSort(v)
		return (v[(n-1)/2] + v[n/2]) / 2
	}
	k := n / 2
	upper := selected(v, k)
	if n%2 == 1 {
		return upper
	}
	return (slices.Max(v[:k]) + upper) / 2
}

// selected returns the k-th smallest value, counted from 0, by Hoare's
// selection. It reorders the values so that no value before index k is larger
// than the result and no value after index k is smaller.
func selected(v []float64, k int) float64 {
	low, high := 0, len(v)-1
	for low < high {
		pivot := v[low+(high-low)/2]
		i, j := low, high
		for i <= j {
			for v[i] < pivot {
				i++
			}
			for v[j] > pivot {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			high = j
		case k >= i:
			low = i
		default:
			return v[k]
		}
	}
	return v[k]
}

func meanOf(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// quarters returns the medians of the first and of the last quarter of the
// levels.
func quarters(y []float64) (first, last float64) {
	q := len(y) / 4
	return median(y[:q]), median(y[len(y)-q:])
}
