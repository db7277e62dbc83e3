package heap

import (
	"fmt"
	"syscall"
)

// mapPages asks for zeroed pages, large ones where there are: most of the time of
// a graph algorithm is spent in missing the caches, the one of addresses included.
// Pages that are not touched cost nothing.
func mapPages(size int64) ([]byte, error) {
	b, err := syscall.Mmap(-1, 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("ask the system for %d bytes: %w", size, err)
	}
	// Without large pages it works as well, only slower.
	_ = syscall.Madvise(b, syscall.MADV_HUGEPAGE)
	return b, nil
}

func unmapPages(b []byte) { _ = syscall.Munmap(b) }
