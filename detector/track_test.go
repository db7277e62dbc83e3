package detector

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"
)

// diary is a track that keeps the mean of every slot, in bytes, and computes
// each floor from these means on demand.
type diary struct {
	slots []float64
	sum   float64
	n     int
	base  float64
	begun bool
}

func (h *diary) add(bytes float64) {
	if !h.begun {
		h.base, h.begun = bytes, true
	}
	h.sum += bytes
	h.n++
}

func (h *diary) raise(bytes float64) {
	h.sum += bytes * float64(h.n)
	for i := range h.slots {
		h.slots[i] += bytes
	}
}

func (h *diary) clear() {
	for i := range h.slots {
		h.slots[i] = math.NaN()
	}
	h.sum, h.n, h.begun = 0, 0, false
}

func (h *diary) close() {
	h.slots = append(h.slots, h.sum/float64(h.n)) // 0/0 is NaN
	h.sum, h.n = 0, 0
}

// sizeAt returns the length of a floor that ends with the given slot: 5 min in
// the first 48 hours, then 10 min for the next 48, and so on up to 80 min.
func sizeAt(end int) int {
	size := firstBin
	for size < largestBin && end > maxBins*size {
		size *= 2
	}
	return size
}

// floor returns the level of the given slots in MB above the base: the midmean
// of all their values if the floor was computed directly, otherwise the mean of
// its halves.
func (h *diary) floor(from, to int) float64 {
	if to-from <= sizeAt(to) {
		return (midmean(h.slots[from:to]) - h.base) / MB
	}
	a, b := h.floor(from, (from+to)/2), h.floor((from+to)/2, to)
	switch {
	case math.IsNaN(a):
		return b
	case math.IsNaN(b):
		return a
	}
	return (a + b) / 2
}

// midmean returns the mean of the sorted values between the lowest quarter and
// the highest.
func midmean(values []float64) float64 {
	var real []float64
	for _, v := range values {
		if !math.IsNaN(v) {
			real = append(real, v)
		}
	}
	slices.Sort(real)
	quarter := len(real) / 4
	sum := 0.0
	for _, v := range real[quarter : len(real)-quarter] {
		sum += v
	}
	return sum / float64(len(real)-2*quarter)
}

// tape is a machine that never looks for a trend, which lets a month be
// processed quickly, together with the expected contents of its total.
type tape struct {
	m *robustMachine
	h diary
	// gone is the number of slots that the axis has dropped.
	gone int
}

func newTape() *tape {
	m := newRobustMachine(RobustPolicy())
	m.axis, m.started = newAxis(0), true
	return &tape{m: m}
}

func (p *tape) total() *track { return p.m.tracks[totalTrack] }

func (p *tape) add(bytes float64) {
	p.total().add(bytes)
	p.h.add(bytes)
}

// close is closeSlot without loops and looks.
func (p *tape) close() {
	m := p.m
	m.axis.closed++
	if p.total().values > 0 {
		p.total().closeSlot(m.axis.closed - 1)
	}
	p.h.close()
	if m.axis.closed%m.axis.binSlots != 0 {
		return
	}
	for _, t := range m.tracks {
		t.closeBin(m.axis.closed, m.axis.binSlots)
	}
	m.axis.binned++
	before := m.axis.closed
	m.compact()
	p.gone += before - m.axis.closed
}

// same reports whether two levels in MB are equal: a float32 keeps seven digits
// of the sum that a test computes.
func same(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= 0.01
}

func (p *tape) check(t *testing.T, r *rand.Rand) {
	t.Helper()
	m, size := p.m, p.m.axis.binSlots
	if m.axis.closed+p.gone != len(p.h.slots) || m.axis.binned != m.axis.closed/size || m.axis.binned >= maxBins {
		t.Fatalf("after %d slots: %d closed, %d dropped, %d floors of %d slots", len(p.h.slots), m.axis.closed, p.gone,
			m.axis.binned, size)
	}
	if want := time.Duration(len(p.h.slots)) * slotTime; m.axis.at() != want {
		t.Fatalf("the axis is at %v, want %v", m.axis.at(), want)
	}
	if len(p.total().bins) != m.axis.binned {
		t.Fatalf("%d floors, want %d", len(p.total().bins), m.axis.binned)
	}
	for i, got := range p.total().bins {
		if want := p.h.floor(p.gone+i*size, p.gone+(i+1)*size); !same(float64(got), want) {
			t.Fatalf("floor %d, of %d slots, after %d slots: %v, want %v", i, size, len(p.h.slots), got, want)
		}
	}
	p.checkRecent(t, 1+r.IntN(ringSlots))
	for range 4 {
		p.checkLevels(t, r)
	}
	if n := m.axis.binned; n > 1 {
		p.checkRise(t, 2+r.IntN(n-1))
	}
}

func (p *tape) checkRecent(t *testing.T, n int) {
	t.Helper()
	last := p.h.slots[max(0, len(p.h.slots)-n):]
	var want []float64
	for _, v := range last {
		if !math.IsNaN(v) {
			want = append(want, (v-p.h.base)/MB)
		}
	}
	got := p.total().recent(nil, p.m.axis.closed, n)
	if !slices.EqualFunc(got, want, same) {
		t.Fatalf("the last %d of %d slots: %v, want %v", n, len(p.h.slots), got, want)
	}
}

// checkLevels compares the levels of a random stretch, divided into a random
// number of blocks, with the expected levels.
func (p *tape) checkLevels(t *testing.T, r *rand.Rand) {
	t.Helper()
	m := p.m
	end, kept := m.axis.binned, m.axis.binned
	floors := r.IntN(2) == 0
	if !floors {
		end, kept = m.axis.closed, min(m.axis.closed, ringSlots)
	}
	if kept < 8 {
		return
	}
	length := 8 + r.IntN(kept-7)
	n := 8 + r.IntN(min(maxLevels, length)-7)
	s := stretch{from: end - length, to: end, floors: floors}

	values := columnOf(length, func(i int) float64 {
		if floors {
			size := m.axis.binSlots
			return p.h.floor(p.gone+(s.from+i)*size, p.gone+(s.from+i+1)*size)
		}
		return (p.h.slots[p.gone+s.from+i] - p.h.base) / MB
	})
	want := make([]float64, n)
	empty := 0
	for b := range want {
		want[b] = midmean(values[b*length/n : (b+1)*length/n])
		if math.IsNaN(want[b]) {
			empty++
		}
	}
	got, ok := p.total().levels(make([]float64, maxLevels), s, n)
	if ok != (empty <= n/4) {
		t.Fatalf("%d levels of %+v with %d gaps: ok is %v", n, s, empty, ok)
	}
	if want = bridged(want); ok && !slices.EqualFunc(got, want, same) {
		t.Fatalf("%d levels of %+v: %v, want %v", n, s, got, want)
	}
}

func columnOf(n int, f func(i int) float64) []float64 {
	c := make([]float64, n)
	for i := range c {
		c[i] = f(i)
	}
	return c
}

// bridged returns the expected result of bridge: it finds the neighbors of each
// gap.
func bridged(v []float64) []float64 {
	seek := func(i, step int) int {
		for ; i >= 0 && i < len(v); i += step {
			if !math.IsNaN(v[i]) {
				return i
			}
		}
		return -1
	}
	return columnOf(len(v), func(i int) float64 {
		a, b := seek(i, -1), seek(i, 1)
		switch {
		case a < 0 && b < 0:
			return math.NaN()
		case a < 0:
			return v[b]
		case b < 0 || a == b:
			return v[a]
		}
		part := float64(i-a) / float64(b-a)
		return (1-part)*v[a] + part*v[b]
	})
}

func (p *tape) checkRise(t *testing.T, n int) {
	t.Helper()
	size := p.m.axis.binSlots
	at := func(i int) float64 { return p.h.floor(p.gone+i*size, p.gone+(i+1)*size) }
	k := max(1, n/4)
	sum := 0.0
	for i := range k {
		sum += at(p.m.axis.binned-1-i) - at(p.m.axis.binned-n+i)
	}
	want := sum / float64(k)
	if got := p.total().rise(n); !same(got, want) && !(math.IsNaN(want) && math.IsInf(got, 1)) {
		t.Fatalf("rise of the last %d floors: %v, want %v", n, got, want)
	}
}

// TestTrackAgainstDiary adds random values, gaps, raises and changes of the
// quantity until floors of each length have occurred and floors have been
// dropped.
func TestTrackAgainstDiary(t *testing.T) {
	lengths := map[int]bool{}
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(41, seed))
		p := newTape()
		slots := []int{700, 7000, 25000, 140000}[seed]
		level := 300.0 * MB
		gap, next := 0, 0
		for i := range slots {
			level = max(MB, level+2*MB*r.NormFloat64())
			if gap--; gap < 0 {
				for range r.IntN(3) {
					p.add(level + 20*MB*r.NormFloat64())
				}
			}
			switch r.IntN(slots / 6) {
			case 0:
				gap = r.IntN(400)
			case 1:
				by := float64(r.IntN(300)-100) * MB
				p.total().raise(by)
				p.h.raise(by)
				level += by
			case 2:
				p.total().clear()
				p.h.clear()
				level = 300 * MB
			}
			p.close()
			if i == next {
				p.check(t, r)
				next += 1 + r.IntN(1+slots/100)
			}
			lengths[p.m.axis.binSlots] = true
		}
		p.check(t, r)
		if seed == 3 && p.gone == 0 {
			t.Error("nothing was dropped")
		}
	}
	for _, size := range []int{10, 20, 40, 80, 160} {
		if !lengths[size] {
			t.Errorf("floors never had %d slots", size)
		}
	}
}

func TestEmptyTrack(t *testing.T) {
	p := newTape()
	for range 50 {
		p.close()
	}
	if got := p.total().recent(nil, 50, 20); len(got) != 0 {
		t.Errorf("empty track has recent values %v", got)
	}
	if _, ok := p.total().levels(make([]float64, 8), stretch{to: 40}, 8); ok {
		t.Error("empty track has levels")
	}
	if !math.IsInf(p.total().rise(4), 1) {
		t.Errorf("empty track has a rise of %v", p.total().rise(4))
	}
	if got := p.total().slots(0, 20); len(got) != 0 {
		t.Errorf("empty track has slots %v", got)
	}
	var two [2]float64
	if levels, ok := p.total().levels(two[:], stretch{to: 0}, 0); len(levels) != 0 || !ok {
		t.Errorf("zero levels: got %v, %v", levels, ok)
	}
}

func TestLevelOf(t *testing.T) {
	tests := []struct {
		values []float64
		want   float64
	}{
		{[]float64{7}, 7},
		{[]float64{1, 4}, 2.5},
		{[]float64{9, 1, 2}, 4},
		{[]float64{9, 1, 2, 4}, 3},
		{[]float64{100, 1, 2, 3, 4, 5, 6, -50}, 3.5},
	}
	for _, tt := range tests {
		if got, ok := levelOf(slices.Clone(tt.values)); !ok || got != tt.want {
			t.Errorf("level of %v: %v, %v, want %v", tt.values, got, ok, tt.want)
		}
	}
	if _, ok := levelOf(nil); ok {
		t.Error("levelOf(nil) reports a level")
	}
	r := rand.New(rand.NewPCG(41, 5))
	for range 2000 {
		v := columnOf(1+r.IntN(200), func(int) float64 { return float64(r.IntN(50)) })
		want := midmean(v)
		if got, ok := levelOf(v); !ok || math.Abs(got-want) > 1e-9 {
			t.Fatalf("level %v, want %v", got, want)
		}
	}
}

// TestLevelIgnoresPeaks checks that load that lasts for less than a quarter of
// the time does not move a level, however high it is.
func TestLevelIgnoresPeaks(t *testing.T) {
	for n := 4; n <= largestBin; n++ {
		for _, high := range []float64{1e3, 1e9} {
			v := columnOf(n, func(i int) float64 {
				if i < n/4 {
					return high
				}
				return 5
			})
			if got, _ := levelOf(v); got != 5 {
				t.Fatalf("%d of %d values are %v: level %v, want 5", n/4, n, high, got)
			}
		}
	}
}

func TestBridge(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 6))
	for range 2000 {
		v := columnOf(r.IntN(30), func(int) float64 {
			if r.IntN(3) == 0 {
				return math.NaN()
			}
			return float64(r.IntN(100))
		})
		want := bridged(v)
		got := slices.Clone(v)
		if bridge(got); !slices.EqualFunc(got, want, same) {
			t.Fatalf("bridge of %v: %v, want %v", v, got, want)
		}
	}
}

func TestMedianAndQuarters(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 7))
	for range 2000 {
		v := columnOf(1+r.IntN(maxLevels), func(int) float64 { return float64(r.IntN(40)) })
		kept := slices.Clone(v)
		sortedMedian := func(v []float64) float64 {
			v = slices.Clone(v)
			slices.Sort(v)
			if len(v)%2 == 1 {
				return v[len(v)/2]
			}
			return (v[len(v)/2-1] + v[len(v)/2]) / 2
		}
		if got := median(v); got != sortedMedian(v) {
			t.Fatalf("median of %v: %v", v, got)
		}
		if n := len(v); n >= 4 {
			if first, last := quarters(v); first != sortedMedian(v[:n/4]) || last != sortedMedian(v[n-n/4:]) {
				t.Fatalf("quarters of %v: %v, %v", v, first, last)
			}
		}
		if !slices.Equal(v, kept) {
			t.Fatal("the values were reordered")
		}
	}
	if !math.IsNaN(median(nil)) {
		t.Errorf("median of no values: %v", median(nil))
	}
}

// TestBlocksFitTheirBuffers checks that the values of every block of the end
// verdict or of a look fit in the buffer on the stack.
func TestBlocksFitTheirBuffers(t *testing.T) {
	m := newRobustMachine(RobustPolicy())
	check := func(what string, s stretch, n int) {
		if n >= 8 && s.from >= 0 && (s.to-s.from+n-1)/n > largestBlock {
			t.Errorf("%s: %d values in %d blocks, but a block holds at most %d", what, s.to-s.from, n, largestBlock)
		}
	}
	for m.axis.binSlots = firstBin; m.axis.binSlots <= largestBin; m.axis.binSlots *= 2 {
		for m.axis.binned = range maxBins {
			m.axis.closed = m.axis.binned * m.axis.binSlots
			for from := 0; from <= m.axis.closed; from += m.axis.closed/50 + 1 {
				s, n, _ := m.cut(from, m.axis.closed, endBlocks)
				check("end", s, n)
			}
			for _, w := range lookWindows {
				for _, floors := range []bool{false, true} {
					s, n := m.ending(2*w.minutes, w.blocks, floors)
					check("look", s, n)
				}
			}
		}
	}
}

// TestLongRun checks that five weeks of data lead to the same verdict as an
// hour of data. The floors grow from 5 to 80 min, and the oldest floors are
// dropped.
func TestLongRun(t *testing.T) {
	d := New(RobustPolicy())
	defer func() {
		if r := recover(); r != nil {
			t.Fatalf("after %v: %v", d.machine.(*robustMachine).axis.length(), r)
		}
	}()
	r := rand.New(rand.NewPCG(41, 8))
	sizes := map[int]bool{}
	for at := time.Duration(0); at < 35*24*time.Hour; at += time.Minute {
		d.AddSample(Sample{At: at, Bytes: int64((300 + 5*r.NormFloat64()) * MB)})
		sizes[d.machine.(*robustMachine).axis.binSlots] = true
	}
	if v := d.Verdict(); v.Gate != Pass || v.State != Normal {
		t.Errorf("%v in %v: %s", v.Gate, v.State, v.Because)
	}
	if len(sizes) != 5 || !sizes[largestBin] {
		t.Errorf("floors had sizes %v", sizes)
	}
}

// TestLateLeak checks that a leak is found as fast on the fifth day as on the
// first.
func TestLateLeak(t *testing.T) {
	found := func(start time.Duration) (at time.Duration) {
		defer func() {
			if r := recover(); r != nil {
				t.Fatalf("panic for a leak that starts at %v: %v", start, r)
			}
		}()
		d := New(RobustPolicy())
		r := rand.New(rand.NewPCG(41, 9))
		for at := time.Duration(0); at < start+4*time.Hour; at += 30 * time.Second {
			mb := 300 + 300*max(0, at-start).Hours() + 3*r.NormFloat64()
			for _, step := range d.AddSample(Sample{At: at, Bytes: int64(mb * MB)}) {
				if step.To == Leaking && at > start {
					return at - start
				}
			}
		}
		return 24 * time.Hour
	}
	early := found(2 * time.Hour)
	for _, start := range []time.Duration{12 * time.Hour, 60 * time.Hour, 110 * time.Hour} {
		if late := found(start); late > early+time.Hour {
			t.Errorf("300 MB/h from %v on: LEAKING after %v, but after %v if it starts at 2 h", start, late, early)
		}
	}
}

// TestTrackMemory checks that a track has the same size for any input.
func TestTrackMemory(t *testing.T) {
	p := newTape()
	for i := range 2 * maxBins * largestBin {
		p.add(float64(300+i%50) * MB)
		p.close()
		if n := cap(p.total().bins); n > 2*maxBins {
			t.Fatalf("capacity for %d floors after %d slots, want at most %d", n, i, 2*maxBins)
		}
	}
	const most = 8 << 10
	if got := int(unsafe.Sizeof(*p.total())) + 4*cap(p.total().bins); got > most {
		t.Errorf("%d bytes per track, want at most %d", got, most)
	}
}
