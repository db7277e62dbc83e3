package detector

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/detector/trend"
	"github.com/leakgate/leakgate/internal/text"
)

// shares lists the dimensions that grew over a window, the one with the largest
// growth first.
type shares struct {
	list []Share
	// certainty is the probability that the first dimension really grew more
	// than the second.
	certainty float64
	// graphicsT is the slope of Graphics divided by its standard error.
	graphicsT float64
	// readings is the number of breakdowns in the window.
	readings int
	// excess is the fraction of the window that lies before the beginning of
	// the stretch, where nothing was measured.
	excess float64
}

// measured returns the dimensions with their growth in the measured part of the
// window.
func (s shares) measured() []Share {
	list := slices.Clone(s.list)
	for i := range list {
		list[i].Growth -= int64(float64(list[i].Growth) * s.excess)
	}
	return list
}

const (
	// shareP is the probability that at least one dimension that does not grow
	// is mistaken for a growing one. This probability is divided among the
	// tested dimensions (Bonferroni).
	shareP = 0.05
	// A dimension with leadingShare of the growth determines the kind; if none
	// has that much, several dimensions leak at once.
	leadingShare = 0.6
	// graphicsCertainty is the certainty that a leak of graphics memory
	// requires. graphicsErrors is the number of standard errors that its growth
	// must reach. Both limits are strict because a diagnosis of graphics memory
	// does not cover other memory.
	graphicsCertainty, graphicsErrors = 0.99, 6.0
	// graphicsGrowth is the minimum growth of graphics memory in MB.
	graphicsGrowth = 2 * leastGrowth
	// leastReadings is the minimum number of readings of a dimension for
	// fitting a line.
	leastReadings = 4
	// smallShare is the growth in MB below which a dimension is not reported.
	smallShare = 2.0
)

// sharesOver returns the shares of the dimensions over a window that ends now.
func (m *robustMachine) sharesOver(window time.Duration) shares {
	// The first look was 10 min ago, and its window began before that time. A
	// process that is read every 10 min has few readings in less than half an
	// hour.
	window = max(window+10*time.Minute, 40*time.Minute)
	out := shares{excess: max(0, 1-m.axis.length().Hours()/window.Hours())}
	var best, second, bestSE, secondSE float64
	for i := javaTrack; i < wholeTrack; i++ {
		slope, se, n := m.lineOf(m.tracks[i], window)
		out.readings = max(out.readings, n)
		if n < leastReadings {
			continue
		}
		if growth := slope * window.Hours(); growth > best {
			best, second, bestSE, secondSE = growth, best, se*window.Hours(), bestSE
		} else if growth > second {
			second, secondSE = growth, se*window.Hours()
		}
		if i == graphicsTrack {
			out.graphicsT = slope / max(se, 1e-9)
		}
		crit := m.student.share[min(n, maxLevels)]
		if growth := slope * window.Hours(); slope > crit*se && growth >= smallShare {
			out.list = append(out.list,
				Share{Dimension: trackDimensions[i], Growth: int64(growth * MB), Rate: slope * MB})
		}
	}
	out.finish()
	if both := math.Hypot(bestSE, secondSE); both > 0 {
		out.certainty = trend.NormalCDF((best - second) / both)
	} else if best > second {
		out.certainty = 1
	}
	return out
}

func (s *shares) finish() {
	sum := 0.0
	for _, x := range s.list {
		sum += float64(x.Growth)
	}
	for i := range s.list {
		s.list[i].Share = float64(s.list[i].Growth) / sum
	}
	slices.SortFunc(s.list, func(a, b Share) int { return cmp.Compare(b.Growth, a.Growth) })
}

// lineOf returns the slope of a track in MB/h over a window that ends now, its
// standard error (corrected for the correlation of neighbors), and the number
// of readings.
func (m *robustMachine) lineOf(t *track, window time.Duration) (slope, se float64, n int) {
	var xs, ys [maxBins]float64
	x, y := xs[:0], ys[:0]
	if slots := int(window / slotTime); slots <= ringSlots {
		for i := max(0, m.axis.closed-slots); i < m.axis.closed; i++ {
			if v := t.ring[i%ringSlots]; v == v {
				x, y = append(x, float64(i)*slotTime.Hours()), append(y, float64(v))
			}
		}
	} else {
		each := slotTime.Hours() * float64(m.axis.binSlots)
		for i := max(0, len(t.bins)-slots/m.axis.binSlots); i < len(t.bins); i++ {
			if v := t.bins[i]; v == v {
				x, y = append(x, float64(i)*each), append(y, float64(v))
			}
		}
	}
	l := trend.Fit(x, y)
	if !l.Fitted() {
		return 0, 0, len(x)
	}
	return l.Slope, l.SE * math.Sqrt(spreadBy(x, y, l)), len(x)
}

// spreadBy returns the factor by which the correlation of neighbors raises the
// variance of a slope: (1+a)/(1-a) for an autocorrelation a (Bartlett).
func spreadBy(x, y []float64, l trend.Line) float64 {
	var cross, square float64
	before := 0.0
	for i := range x {
		e := y[i] - l.Intercept - l.Slope*x[i]
		cross += e * before
		square += e * e
		before = e
	}
	if square <= 0 {
		return 1
	}
	a := min(0.9, max(0, cross/square))
	return (1 + a) / (1 - a)
}

func (s shares) kind() LeakKind {
	if len(s.list) == 0 || s.list[0].Share < leadingShare {
		return Unknown
	}
	top := s.list[0]
	if top.Dimension == Graphics &&
		(top.Growth < graphicsGrowth*MB || s.certainty < graphicsCertainty || s.graphicsT < graphicsErrors) {
		return Unknown
	}
	return kindOf(top.Dimension)
}

func (s shares) text() string {
	if s.readings < leastReadings {
		return fmt.Sprintf("cannot determine from %s which memory grows",
			text.Plural(s.readings, "breakdown", "breakdowns"))
	}
	if len(s.list) == 0 {
		return "no single dimension of the breakdowns grows"
	}
	var parts []string
	for _, x := range s.list {
		if x.Share >= 0.05 {
			parts = append(parts, fmt.Sprintf("%v %.0f %%", x.Dimension, 100*x.Share))
		}
	}
	text := "growth: " + strings.Join(parts, ", ")
	switch {
	case s.list[0].Share < leadingShare:
		text += ": several grow at once"
	case s.certainty < 0.98:
		text += fmt.Sprintf(" (%.0f %% certain after %d breakdowns)", 100*min(s.certainty, 0.99), s.readings)
	}
	return text
}
