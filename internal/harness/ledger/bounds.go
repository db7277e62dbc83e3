package ledger

import (
	"fmt"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/reporters/record"
)

// bounds holds the largest plausible values for any process on one device, in
// kB. Larger and negative values are impossible and count as missing, because a
// process cannot use more memory than the device has.
type bounds struct {
	memory, swap int64
}

// boundsOf returns the maximum plausible memory and swap of a device, derived
// from its total memory.
func boundsOf(d record.HeaderDevice) bounds {
	memory, swap := procfs.Bounds(d.MemTotal)
	return bounds{memory, swap}
}

// within converts a value from kB to bytes. The result is unknown if the value
// is unknown or impossible.
func within(kb *int64, most int64) known.Int {
	if kb == nil || *kb < 0 || *kb > most {
		return known.Int{}
	}
	return known.Of(*kb << 10)
}

// valuesOf returns the judged values in a line of the fast channel: Pss and
// SwapPss, or RssAnon and VmSwap if Pss cannot be read.
func valuesOf(s record.Sample) (value, swap *int64) {
	switch capture.Source(s.Source) {
	case capture.Dumpsys:
		return nil, nil
	case capture.Status:
		return s.RSSAnon, s.Swap
	}
	return s.PSS, s.SwapPSS
}

// bytesOf returns the sum of the judged values in a line of the fast channel,
// in bytes. The sum is unknown if a value is impossible, or if the sum is 0,
// because every living process uses memory. A kernel without swap accounting
// does not report SwapPss, which then counts as 0.
func (b bounds) bytesOf(s record.Sample) known.Int {
	value, swap := valuesOf(s)
	sum, swapped := within(value, b.memory), within(swap, b.swap)
	if swap != nil && !swapped.Known || sum.N+swapped.N == 0 {
		return known.Int{}
	}
	sum.N += swapped.N
	return sum
}

// check returns an error if a line of the fast channel contains an impossible
// value.
func (b bounds) check(s record.Sample) error {
	value, swap := valuesOf(s)
	for _, v := range []struct {
		kb   *int64
		most int64
	}{{value, b.memory}, {swap, b.swap}} {
		if v.kb != nil && !within(v.kb, v.most).Known {
			return fmt.Errorf("process %q has %d kB: want 0 to %d", s.Process, *v.kb, v.most)
		}
	}
	return nil
}
