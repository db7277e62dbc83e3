package detector

import (
	"math"
	"time"

	"github.com/leakgate/leakgate/detector/trend"
)

// series is what one process has shown since it began or since the last gap. Values
// are bytes as float64, exact below 2^53; times are seconds of the device's clock.
type series struct {
	rule TotalRule
	// raw is the samples as they came, total the same samples with the driver memory
	// known at their time.
	raw, total *trend.Window
	dims       [NumDimensions]*trend.Window
	// graphics and rest split the breakdowns into GPU memory and everything else.
	graphics, rest *trend.Window
	driver         driverMemory
	// start is the time of the first sample, samples their number.
	start   float64
	samples int
	scratch []float64
	floors  []trend.Floor
}

func newSeries(a Article) *series {
	s := &series{
		rule:     a.Total,
		raw:      trend.NewWindow(a.HighWindow),
		total:    trend.NewWindow(a.HighWindow),
		graphics: trend.NewWindow(a.LowWindow),
		rest:     trend.NewWindow(a.LowWindow),
		scratch:  make([]float64, 0, a.HighWindow),
		floors:   make([]trend.Floor, 0, a.HighWindow),
	}
	for d := range s.dims {
		s.dims[d] = trend.NewWindow(a.LowWindow)
	}
	return s
}

// reset forgets everything but the driver memory: that is still the same after a gap.
func (s *series) reset() {
	s.raw.Reset()
	s.total.Reset()
	s.graphics.Reset()
	s.rest.Reset()
	for _, w := range s.dims {
		w.Reset()
	}
	s.start, s.samples = 0, 0
}

func (s *series) addSample(v Sample) {
	x, y := v.At.Seconds(), float64(v.Bytes)
	if s.samples == 0 {
		s.start = x
	}
	s.samples++
	s.raw.Push(x, y)
	s.total.Push(x, y+s.driver.offset)
}

// addBreakdown takes a breakdown and says by how much it raised the samples that are
// already there: the first driver memory that is known counts for the time before it
// as well, or its arrival would look like a jump of the process.
func (s *series) addBreakdown(b Breakdown) (raised float64) {
	x := b.At.Seconds()
	for d, v := range b.Dim {
		if v.Known {
			s.dims[d].Push(x, float64(v.Bytes))
		}
	}
	raised = s.driver.hear(b, s.rule)
	if raised != 0 {
		s.total.Raise(raised)
	}
	s.addGraphics(x, b)
	return raised
}

// addGraphics splits a breakdown by its rows, or by the App Summary's Graphics where
// no row was ever seen. One series never mixes the two.
func (s *series) addGraphics(x float64, b Breakdown) {
	if !b.Dim[Total].Known {
		return
	}
	graphics, rest, known := s.driver.split(b)
	if !known {
		return
	}
	if s.driver.sourceChanged {
		s.driver.sourceChanged = false
		s.graphics.Reset()
		s.rest.Reset()
	}
	s.graphics.Push(x, graphics)
	s.rest.Push(x, rest)
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
	x := s.raw.X()
	if len(x) == 0 {
		return 0
	}
	return x[len(x)-1]
}

// recentFloor is the P25 of the samples less than a segment old, with their number.
func (s *series) recentFloor(segment time.Duration) (floor float64, n int) {
	_, y := s.total.From(math.Nextafter(s.last()-segment.Seconds(), math.Inf(1)))
	floor, _ = trend.P25(y, s.scratch)
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
		c.bytes = float64(a.Bytes)
	}
	return a.Known
}

// hear takes the rows of a breakdown and says by how much earlier samples rise.
func (m *driverMemory) hear(b Breakdown, rule TotalRule) (raised float64) {
	egl, gl := m.egl.hear(b.EGL), m.gl.hear(b.GL)
	gfx, other := m.gfxDev.hear(b.GfxDev), m.other.hear(b.OtherMtrack)
	summary := b.Dim[Graphics]
	if summary.Known && summary.Bytes == 0 && !egl && !gl && !gfx {
		m.egl, m.gl, m.gfxDev = component{}, component{}, component{}
	}
	if (egl || gl || gfx) && !m.rows {
		m.rows, m.sourceChanged = true, true
	}

	heard := egl || gl || other || summary.Known && summary.Bytes == 0
	offset := m.egl.bytes + m.gl.bytes + m.other.bytes
	if rule == TotalGraphics {
		heard, offset = summary.Known, float64(summary.Bytes)
	}
	if !heard {
		return 0
	}
	if !m.known {
		raised = offset - m.offset
	}
	m.known, m.offset = true, offset
	return raised
}

// split parts the TOTAL of a breakdown into graphics memory and the rest.
func (m *driverMemory) split(b Breakdown) (graphics, rest float64, known bool) {
	total := float64(b.Dim[Total].Bytes)
	if m.rows {
		graphics = m.egl.bytes + m.gl.bytes + m.gfxDev.bytes
		return graphics, total - graphics - m.other.bytes, true
	}
	if !b.Dim[Graphics].Known {
		return 0, 0, false
	}
	graphics = float64(b.Dim[Graphics].Bytes)
	return graphics, total - graphics, true
}
