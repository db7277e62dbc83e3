package detector

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/detector/trend"
)

// largestT is the largest t that is reported. The t of a perfect line is
// infinite, which JSON cannot represent and which means nothing to a tester.
const largestT = 9999

// finite returns t limited to largestT.
func finite(t float64) float64 { return max(-largestT, min(largestT, t)) }

// perHour converts a rate per second to one per hour.
func perHour(slope float64) float64 { return slope * 3600 }

// number formats a number with one decimal place, or with none if it is at
// least 9.95.
func number(v float64) string {
	if math.Abs(v) < 0.05 {
		v = 0 // not -0.0
	}
	if math.Abs(v) >= 9.95 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

func mbText(bytes float64) string { return number(bytes/MB) + " MB" }

func rateText(slope float64) string { return number(perHour(slope)/MB) + " MB/h" }

func tText(t float64) string {
	if math.Abs(t) > largestT {
		return fmt.Sprintf("over %d", largestT)
	}
	return fmt.Sprintf("%.1f", t)
}

// minutesText formats a time for testers: "45 s", "9 min", "2.5 h".
func minutesText(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return number(d.Minutes()) + " min"
	}
	return number(d.Hours()) + " h"
}

// seconds converts seconds of a series to a duration.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// trendText returns, for example, "memory rises 312 MB/h (t 9.1, R2 0.82) over
// 9 min".
func trendText(what string, l trend.Line) string {
	verb := "rises"
	if l.Slope < 0 {
		verb = "falls"
	}
	return fmt.Sprintf("%s %s %s (t %s, R2 %.2f) over %s",
		what, verb, rateText(math.Abs(l.Slope)), tText(l.T), l.R2, minutesText(seconds(l.Span)))
}

func windowsText(n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(" in %d windows in a row", n)
}

func floorsText(floors []trend.Floor) string {
	words := make([]string, len(floors))
	for i, f := range floors {
		words[i] = number(f.Value / MB)
	}
	return strings.Join(words, ", ") + " MB"
}

func spikeText(s spike, a *articleRules) string {
	return fmt.Sprintf("memory is %s above %s, its floor (P25) of the last %s; a spike is more than %s",
		mbText(s.above), mbText(s.floor), minutesText(a.segment), mbText(s.limit))
}

func gpuText(what string, rise trend.Line, other string, flat trend.Line) string {
	return fmt.Sprintf("gpu_leak: %s, %s in all, without a rise of %s (t %s)",
		trendText(what, rise), mbText(rise.Growth()), other, tText(flat.T))
}

// refusalText returns a message that says what CONFIRMING lacked.
func (d *articleMachine) refusalText() string {
	switch grown := d.grown(); {
	case d.look.fresh < d.a.extraBreakdowns:
		return fmt.Sprintf("only %d of %d extra breakdowns arrived", d.look.fresh, d.a.extraBreakdowns)
	case grown <= float64(d.a.minGrowth):
		return fmt.Sprintf("memory grew %s since it became SUSPICIOUS, and must grow more than %s",
			mbText(grown), mbText(float64(d.a.minGrowth)))
	}
	return "no dimension of the breakdowns rises significantly"
}
