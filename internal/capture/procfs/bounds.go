package procfs

// MaxKB is the most memory of a device that is believed, and so of its processes where that is not
// known: 1 TiB. Phones have up to 24 GB; an emulator has no more than its host.
const MaxKB = 1 << 30

// swapPerMemory bounds the swapped memory of a process in multiples of its device's memory: zram keeps
// it compressed in that memory, to a third or a half, and swap files of phones are up to twice as large
// as it. SwapTotal is no bound: init may enable swap when the device has already been asked
// (swapon_all at sys.boot_completed).
const swapPerMemory = 4

// Bounds returns the most Pss or RssAnon, and the most SwapPss or VmSwap, that a process can have on a
// device with so much memory, all in kB; 0 is unknown memory. A page that is counted is there: a larger
// value was not read right.
func Bounds(memTotalKB int64) (memory, swap int64) {
	if memTotalKB <= 0 || memTotalKB > MaxKB {
		return MaxKB, MaxKB
	}
	return memTotalKB, min(MaxKB, swapPerMemory*memTotalKB)
}
