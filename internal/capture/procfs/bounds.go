package procfs

// MaxKB is the maximum plausible memory of a device, and so of its processes if
// the device's is unknown: 1 TiB. Phones have up to 24 GB; an emulator has no
// more than its host.
const MaxKB = 1 << 30

// swapPerMemory bounds the swapped memory of a process in multiples of its
// device's memory: zram compresses it in that memory, to a third or a half, and
// swap files of phones are up to twice as large as it. SwapTotal is not a
// bound: init may enable swap after it was read (swapon_all at
// sys.boot_completed).
const swapPerMemory = 4

// Bounds returns the maximum Pss or RssAnon, and the maximum SwapPss or VmSwap,
// of a process on a device with so much memory, all in kB; 0 is unknown memory.
// A counted page exists, so a larger value is a damaged reading.
func Bounds(memTotalKB int64) (memory, swap int64) {
	if memTotalKB <= 0 || memTotalKB > MaxKB {
		return MaxKB, MaxKB
	}
	return memTotalKB, min(MaxKB, swapPerMemory*memTotalKB)
}
