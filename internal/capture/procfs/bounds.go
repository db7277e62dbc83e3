package procfs

// MaxKB is the maximum plausible memory of a device: 1 TiB. If the memory of a
// device is unknown, MaxKB is also the maximum for a process. Phones have up to
// 24 GB; an emulator does not have more memory than its host.
const MaxKB = 1 << 30

// swapPerMemory is the maximum swapped memory of a process, as a multiple of
// its device's memory. zram stores swapped memory in RAM, compressed to a third
// or a half, and swap files of phones are up to twice as large as RAM.
// SwapTotal cannot be used as the maximum, because init may enable swap after
// SwapTotal was read (swapon_all at sys.boot_completed).
const swapPerMemory = 4

// Bounds returns the maximum Pss or RssAnon, and the maximum SwapPss or VmSwap,
// of a process on a device with this much memory, all in kB; a memory of 0 is
// unknown. Only existing pages are counted, so a larger value can only be a
// damaged reading.
func Bounds(memTotalKB int64) (memory, swap int64) {
	if memTotalKB <= 0 || memTotalKB > MaxKB {
		return MaxKB, MaxKB
	}
	return memTotalKB, min(MaxKB, swapPerMemory*memTotalKB)
}
