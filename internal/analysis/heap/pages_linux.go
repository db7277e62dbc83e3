package heap

import (
	"fmt"
	"syscall"
)

// mapPages requests zeroed memory pages, huge ones if available, because a
// graph algorithm spends most of its time in cache misses, including those of
// the TLB. Untouched pages use no memory.
func mapPages(size int64) ([]byte, error) {
	b, err := syscall.Mmap(-1, 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("request %d bytes of memory: %w", size, err)
	}
	// The program also works without huge pages, only more slowly.
	_ = syscall.Madvise(b, syscall.MADV_HUGEPAGE)
	return b, nil
}

func unmapPages(b []byte) { _ = syscall.Munmap(b) }
