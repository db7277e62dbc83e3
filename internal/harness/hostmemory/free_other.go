//go:build !linux

package hostmemory

// Free returns 0: the free memory is unknown on this system.
func Free() int64 { return 0 }

// Peak returns 0: the peak is unknown on this system.
func Peak() int64 { return 0 }
