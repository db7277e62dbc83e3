package detector

import (
	"math"
	"time"

	"github.com/leakgate/leakgate/internal/detector/trend"
)

// series is the data of one process since the process started or since the last
// gap. Values are bytes as float64, exact below 2^53; times are seconds of the
// device's clock.
type series struct {
	// samples is the window of the fast channel. total is the column with the
	// values: the samples plus the driver memory.
	samples *trend.Window
	total   *trend.Column
	// breakdowns is the window of the detail channel: first the dimensions in
	// their order, then graphics and rest, which split a breakdown into GPU
	// memory and everything else.
	breakdowns     *trend.Window
	graphics, rest *trend.Column
	driver         driverMemory
	// start is the time of the first sample; count is the number of samples.
	start float64
	count int
}

// The columns of the breakdowns after the dimensions.
const (
	graphicsColumn   = int(NumDimensions)
	restColumn       = graphicsColumn + 1
	breakdownColumns = restColumn + 1
)

func newSeries(a *articleRules) *series {
	s := &series{
		samples:    trend.NewWindow(a.highWindow, 1),
		breakdowns: trend.NewWindow(a.lowWindow, breakdownColumns),
	}
	s.total = s.samples.Column(0)
	s.graphics, s.rest = s.breakdowns.Column(graphicsColumn), s.breakdowns.Column(restColumn)
	return s
}

// dim returns the window of one dimension.
func (s *series) dim(d Dimension) *trend.Column { return s.breakdowns.Column(int(d)) }

// reset clears everything except the driver memory, which is the same after a
// gap.
func (s *series) reset() {
	s.samples.Reset()
	s.breakdowns.Reset()
	s.start, s.count = 0, 0
}

func (s *series) addSample(v Sample) {
	x, y := v.At.Seconds(), float64(v.Bytes)
	if s.count == 0 {
		s.start = x
	}
	s.count++
	s.samples.Push(x, y+s.driver.offset)
}

// addBreakdown adds a breakdown and returns the number of bytes by which it
// raised the earlier samples. The first known driver memory is applied to the
// time before it as well; otherwise its arrival would look like a sudden rise
// in the memory of the process.
func (s *series) addBreakdown(b Breakdown) (raised float64) {
	raised = s.driver.add(b)
	if raised != 0 {
		s.total.Raise(raised)
	}
	var values [breakdownColumns]float64
	for d, v := range b.Dim {
		values[d] = valueOf(v)
	}
	values[graphicsColumn], values[restColumn] = s.split(b)
	s.breakdowns.Push(b.At.Seconds(), values[:]...)
	return raised
}

// valueOf converts an amount for a window: NaN if unknown.
func valueOf(a Amount) float64 {
	if !a.Known {
		return math.NaN()
	}
	return float64(a.N)
}

// split divides TOTAL into graphics memory and the rest. Graphics memory is the
// sum of the graphics rows, or the App Summary's Graphics if no such row was
// ever seen. One series never mixes these two sources.
func (s *series) split(b Breakdown) (graphics, rest float64) {
	if !b.Dim[Total].Known {
		return math.NaN(), math.NaN()
	}
	graphics, rest, known := s.driver.split(b)
	if !known {
		return math.NaN(), math.NaN()
	}
	if s.driver.sourceChanged {
		s.driver.sourceChanged = false
		s.graphics.Reset()
		s.rest.Reset()
	}
	return graphics, rest
}

// current returns the newest total in bytes.
func (s *series) current() float64 {
	y := s.total.Y()
	if len(y) == 0 {
		return 0
	}
	return y[len(y)-1]
}

// last returns the time of the newest sample, in seconds.
func (s *series) last() float64 {
	x := s.total.X()
	if len(x) == 0 {
		return 0
	}
	return x[len(x)-1]
}

// recentFloor returns the P25 of the samples that are less than a segment old,
// and the number of these samples.
func (s *series) recentFloor(segment time.Duration) (floor float64, n int) {
	_, y := s.total.From(math.Nextafter(s.last()-segment.Seconds(), math.Inf(1)))
	floor, _ = trend.P25(y)
	return floor, len(y)
}

// driverMemory is the memory that smaps does not include, as reported by the
// breakdowns.
type driverMemory struct {
	egl, gl, other, gfxDev component
	// offset is the difference between a sample and the total, in bytes.
	offset float64
	known  bool
	// rows reports whether a row of graphics memory was seen; sourceChanged
	// reports whether the latest breakdown was the first one with such a row.
	rows, sourceChanged bool
}

// component is one row of graphics or driver memory in a breakdown, such as EGL
// mtrack. dumpsys omits rows of zeros (AOSP ActivityThread dumpMemInfoTable),
// and a row may fail to parse. If a row is absent, its previous value is kept.
type component struct{ bytes float64 }

func (c *component) add(a Amount) bool {
	if a.Known {
		c.bytes = float64(a.N)
	}
	return a.Known
}

// add adds the rows of a breakdown and returns the number of bytes to add to
// the samples before it.
func (m *driverMemory) add(b Breakdown) (raised float64) {
	egl, gl := m.egl.add(b.EGL), m.gl.add(b.GL)
	gfx, other := m.gfxDev.add(b.GfxDev), m.other.add(b.OtherMtrack)
	summary := b.Dim[Graphics]
	if summary.Known && summary.N == 0 && !egl && !gl && !gfx {
		m.egl, m.gl, m.gfxDev = component{}, component{}, component{}
	}
	if (egl || gl || gfx) && !m.rows {
		m.rows, m.sourceChanged = true, true
	}

	seen := egl || gl || other || summary.Known && summary.N == 0
	if !seen {
		return 0
	}
	offset := m.egl.bytes + m.gl.bytes + m.other.bytes
	if !m.known {
		raised = offset - m.offset
	}
	m.known, m.offset = true, offset
	return raised
}

// split divides the TOTAL of a breakdown into graphics memory and the rest.
func (m *driverMemory) split(b Breakdown) (graphics, rest float64, known bool) {
	total := float64(b.Dim[Total].N)
	if m.rows {
		graphics = m.egl.bytes + m.gl.bytes + m.gfxDev.bytes
		return graphics, total - graphics - m.other.bytes, true
	}
	if !b.Dim[Graphics].Known {
		return 0, 0, false
	}
	graphics = float64(b.Dim[Graphics].N)
	return graphics, total - graphics, true
}
