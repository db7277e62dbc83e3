//go:build !linux

package heap

// mapPages leaves it to the garbage collector.
func mapPages(size int64) ([]byte, error) { return make([]byte, size), nil }

func unmapPages([]byte) {}
