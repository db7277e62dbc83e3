package limit

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// text returns a warning in one line: "threads: 870 of 1000 (87 %), +120 per
// hour, limit reached within 1 h; reaching it causes an OutOfMemoryError:
// pthread_create failed".
func (w Warning) text() string {
	name := resources[w.Resource]
	held := ""
	if w.Resource == JavaHeap {
		held = " after collections"
	}
	most := amount(w.Resource, float64(w.Limit))
	if w.Assumed {
		most = "an assumed " + most
	}
	s := fmt.Sprintf("%s: %s of %s%s (%.0f %%)", name.name, amount(w.Resource, float64(w.Used)), most, held,
		math.Floor(100*share(w.Used, w.Limit)))
	if w.TimeKnown {
		// The time left is computed from a cautious estimate of the growth,
		// which never exceeds the growth shown.
		s += fmt.Sprintf(", +%s per hour, limit reached within %s", amount(w.Resource, w.Rate.PerHour),
			about(w.TimeLeft))
	}
	return s + "; " + name.end
}

// amount formats a count, or whole megabytes.
func amount(r Resource, n float64) string {
	if r.inBytes() {
		return strconv.FormatFloat(n/(1<<20), 'f', 0, 64) + " MB"
	}
	return strconv.FormatFloat(n, 'f', 0, 64)
}

// about formats a time without false precision: "25 min", "1 h", "2 h 30 min".
func about(d time.Duration) string {
	minutes := int64(d.Round(time.Minute) / time.Minute)
	if minutes >= 20 {
		minutes = (minutes + 2) / 5 * 5
	}
	hours, minutes := minutes/60, minutes%60
	switch {
	case hours == 0:
		return fmt.Sprintf("%d min", max(1, minutes))
	case minutes == 0:
		return fmt.Sprintf("%d h", hours)
	}
	return fmt.Sprintf("%d h %d min", hours, minutes)
}
