package ledger

import (
	"fmt"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/reporters/record"
)

// bounds are the largest plausible values of a process of one device, in kB. A
// larger or negative value is impossible and counts as missing: a process
// cannot use more memory than the device has.
type bounds struct {
	memory, swap int64
}

// boundsOf returns the bounds of a device.
func boundsOf(d record.HeaderDevice) bounds {
	memory, swap := procfs.Bounds(d.MemTotal)
	return bounds{memory, swap}
}

// within returns a value in kB as bytes; unknown if it is unknown or
// impossible.
func within(kb *int64, most int64) known.Int {
	if kb == nil || *kb < 0 || *kb > most {
		return known.Int{}
	}
	return known.Of(*kb << 10)
}

// valuesOf returns the values of the judged series in a line of the fast
// channel: Pss and SwapPss, or RssAnon and VmSwap if the kernel shows no more.
func valuesOf(s record.Sample) (value, swap *int64) {
	switch capture.Source(s.Source) {
	case capture.Dumpsys:
		return nil, nil
	case capture.Status:
		return s.RSSAnon, s.Swap
	}
	return s.PSS, s.SwapPSS
}

// bytesOf returns the value of the judged series in a line of the fast channel.
// It is unknown if a part is impossible or if it is 0, because no living
// process has no memory. A kernel without swap accounting has no SwapPss, which
// then counts as 0.
func (b bounds) bytesOf(s record.Sample) known.Int {
	value, swap := valuesOf(s)
	sum, swapped := within(value, b.memory), within(swap, b.swap)
	if swap != nil && !swapped.Known || sum.N+swapped.N == 0 {
		return known.Int{}
	}
	sum.N += swapped.N
	return sum
}

// check returns an error for a line of the fast channel with an impossible
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
