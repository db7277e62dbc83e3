package ledger

import (
	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// fewestReadings is the number of readings without SwapPss after which the
// kernel is assumed not to support it. SwapPss was added in Linux 4.3; a single
// reading may lack the line for other reasons.
const fewestReadings = 3

// swapless determines whether the readings of a process exclude swapped memory.
type swapless struct {
	// readings is the number of readings without SwapPss; with is true once a
	// reading has contained SwapPss.
	readings int
	with     bool
	// lacking means that the total printed by dumpsys does not include swapped
	// memory.
	lacking bool
}

// addSwap updates, from a sample, whether the device swaps and whether the
// readings of this process include swapped memory.
func (a *Account) addSwap(s record.Sample) {
	switch b := s.Breakdown; {
	case b != nil:
		a.part.swaps = a.part.swaps || positive(b.SwapPSS)
		a.swap.lacking = b.SwapInTotal != nil && !*b.SwapInTotal
	case s.PSS == nil:
		a.part.swaps = a.part.swaps || positive(s.Swap)
	case s.SwapPSS != nil:
		a.part.swaps = a.part.swaps || *s.SwapPSS > 0
		a.swap.with = true
	default:
		a.swap.readings++
	}
	a.setQuantity()
}

func positive(kb *int64) bool { return kb != nil && *kb > 0 }

// quantity returns what the samples of the process measure. If the device has
// never swapped, the samples measure the whole memory.
func (a *Account) quantity() detector.Quantity {
	switch {
	case a.source == capture.Status:
		return detector.Anonymous
	case !a.part.swaps:
		return detector.WholeMemory
	case a.source == capture.Dumpsys && a.swap.lacking, a.source != capture.Dumpsys && !a.swap.with &&
		a.swap.readings >= fewestReadings:
		return detector.WithoutSwap
	}
	return detector.WholeMemory
}

// setQuantity sets the detector's quantity if it has changed.
func (a *Account) setQuantity() {
	if q := a.quantity(); q != a.measured {
		a.measured = q
		a.Detector.SetQuantity(q)
	}
}
