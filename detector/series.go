package detector

import (
	"math"
	"time"

	"github.com/leakgate/leakgate/internal/detector/trend"
)

// series is what one process has shown since it began or since the last gap. Values
// are bytes as float64, exact below 2^53; times are seconds of the device's clock.
type series struct {
	// samples is the window of the fast channel, and total its samples with the
	// driver memory known at their time.
	samples *trend.Window
	total   *trend.Column
	// breakdowns is the window of the detail channel: the dimensions in their order,
	// then graphics and rest, which split a breakdown into GPU memory and everything
	// else.
	breakdowns     *trend.Window
	graphics, rest *trend.Column
	driver         driverMemory
	// start is the time of the first sample, count the number of samples.
	start float64
	count int
}

// The columns of the breakdowns behind the dimensions.
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

// dim is the window of one dimension.
func (s *series) dim(d Dimension) *trend.Column { return s.breakdowns.Column(int(d)) }

// reset forgets everything but the driver memory: that is still the same after a gap.
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

// addBreakdown takes a breakdown and says by how much it raised the samples that are
// already there: the first driver memory that is known counts for the time before it
// as well, or its arrival would look like a jump of the process.
func (s *series) addBreakdown(b Breakdown) (raised float64) {
	raised = s.driver.hear(b)
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

// valueOf is an amount as a window takes it: NaN where it is not known.
func valueOf(a Amount) float64 {
	if !a.Known {
		return math.NaN()
	}
	return float64(a.N)
}

// split parts a breakdown by its rows, or by the App Summary's Graphics where no row
// was ever seen. One series never mixes the two.
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

// current is the newest total in bytes.
func (s *series) current() float64 {
	y := s.total.Y()
	if len(y) == 0 {
		return 0
	}
	return y[len(y)-1]
}

// last is the time of the newest sample in seconds.
func (s *series) last() float64 {
	x := s.total.X()
	if len(x) == 0 {
		return 0
	}
	return x[len(x)-1]
}

// recentFloor is the P25 of the samples less than a segment old, with their number.
func (s *series) recentFloor(segment time.Duration) (floor float64, n int) {
	_, y := s.total.From(math.Nextafter(s.last()-segment.Seconds(), math.Inf(1)))
	floor, _ = trend.P25(y)
	return floor, len(y)
}

// driverMemory is the memory outside smaps as the breakdowns tell it.
type driverMemory struct {
	egl, gl, other, gfxDev component
	// offset is what a sample lacks to the total, in bytes.
	offset float64
	known  bool
	// rows says that a row of graphics memory was seen, sourceChanged that this is new.
	rows, sourceChanged bool
}

// component is one row. dumpsys leaves rows of zeros out (AOSP ActivityThread
// dumpMemInfoTable) and a row may fail to parse: one that is absent keeps its value.
type component struct{ bytes float64 }

func (c *component) hear(a Amount) bool {
	if a.Known {
		c.bytes = float64(a.N)
	}
	return a.Known
}

// hear takes the rows of a breakdown and says by how much earlier samples rise.
func (m *driverMemory) hear(b Breakdown) (raised float64) {
	egl, gl := m.egl.hear(b.EGL), m.gl.hear(b.GL)
	gfx, other := m.gfxDev.hear(b.GfxDev), m.other.hear(b.OtherMtrack)
	summary := b.Dim[Graphics]
	if summary.Known && summary.N == 0 && !egl && !gl && !gfx {
		m.egl, m.gl, m.gfxDev = component{}, component{}, component{}
	}
	if (egl || gl || gfx) && !m.rows {
		m.rows, m.sourceChanged = true, true
	}

	heard := egl || gl || other || summary.Known && summary.N == 0
	if !heard {
		return 0
	}
	offset := m.egl.bytes + m.gl.bytes + m.other.bytes
	if !m.known {
		raised = offset - m.offset
	}
	m.known, m.offset = true, offset
	return raised
}

// split parts the TOTAL of a breakdown into graphics memory and the rest.
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
