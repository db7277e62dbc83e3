//go:build !linux

package hostmemory

// Free is unknown on this system: 0.
func Free() int64 { return 0 }

// Peak is unknown on this system: 0.
func Peak() int64 { return 0 }
