package detector

import (
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/detector/trend"
)

// rise is the line fitted to one dimension of the breakdowns.
type rise struct {
	line        trend.Line
	significant bool
}

// rises holds the lines of all dimensions.
type rises [NumDimensions]rise

// any reports whether at least one dimension, including TOTAL, rises (5.5).
func (r rises) any() bool {
	return slices.ContainsFunc(r[:], func(v rise) bool { return v.significant })
}

// decides reports whether a dimension can be the source of a leak. TOTAL, the
// sum of all dimensions, and System, the rest of Pss including SwapPss, cannot
// be the source.
func (d Dimension) decides() bool { return d != Total && d != System }

// kindOf returns the kind of leak that a dimension indicates (5.6). Code and
// Private Other have no kind of their own.
func kindOf(d Dimension) LeakKind {
	switch d {
	case JavaHeap:
		return Java
	case NativeHeap:
		return Native
	case Stack:
		return Thread
	case Graphics:
		return GPU
	}
	return Unknown
}

// kind returns the kind of leak with the reason in words. The dimension with
// more than half of all significant growth determines the kind. The chart in
// 5.6 selects the dimension with the largest t, but even a stack that grows by
// 1 MB can have the largest t if it has little noise.
func (r rises) kind() (LeakKind, string) {
	source, share, count := r.source()
	if count == 0 {
		return Unknown, "only " + r.others() + " significantly"
	}
	l := r[source].line
	text := fmt.Sprintf("%v rises %s (t %s)", source, rateText(l.Slope), tText(l.T))
	if count > 1 {
		text += fmt.Sprintf(", %.0f %% of the growth of %d dimensions", 100*share, count)
	}
	if !(share > 0.5) {
		return Unknown, text + ": no dimension has more than half"
	}
	return kindOf(source), text
}

// source returns the significant dimension with the largest growth and its
// share of the growth of all significant dimensions; only dimensions that can
// decide are considered.
func (r rises) source() (source Dimension, share float64, count int) {
	var sum float64
	for i, v := range r {
		d := Dimension(i)
		if !v.significant || !d.decides() {
			continue
		}
		count++
		sum += v.line.Growth()
		if count == 1 || v.line.Growth() > r[source].line.Growth() {
			source = d
		}
	}
	if sum > 0 {
		share = r[source].line.Growth() / sum
	}
	return source, share, count
}

// others returns a phrase that names TOTAL, System or both, whichever rise
// significantly; these two cannot decide the kind.
func (r rises) others() string {
	switch {
	case r[Total].significant && r[System].significant:
		return "TOTAL and System rise"
	case r[System].significant:
		return "System rises"
	}
	return "TOTAL rises"
}

// The names of evidence are built once, because every detector that has found a
// leak keeps some of them.
var rateNames, tNames = dimensionsWith("rate"), dimensionsWith("t")

func dimensionsWith(word string) (names [NumDimensions]string) {
	for d, name := range dimensionNames {
		names[d] = name + " " + word
	}
	return names
}

// evidence returns the rate and the t of each dimension that has a line.
func (r rises) evidence() []Evidence {
	var list []Evidence
	for i, v := range r {
		if !v.line.Fitted() {
			continue
		}
		list = append(list,
			Evidence{Name: rateNames[i], Value: perHour(v.line.Slope) / MB, Unit: "MB/h"},
			Evidence{Name: tNames[i], Value: finite(v.line.T)})
	}
	return list
}

func gpuEvidence(rise, flat trend.Line) []Evidence {
	return []Evidence{
		{Name: "GPU path rate", Value: perHour(rise.Slope) / MB, Unit: "MB/h"},
		{Name: "GPU path t", Value: finite(rise.T)},
		{Name: "GPU path R2", Value: rise.R2},
		{Name: "GPU path flat t", Value: finite(flat.T)},
	}
}
