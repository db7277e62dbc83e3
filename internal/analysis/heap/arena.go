package heap

import (
	"sync"
	"unsafe"
)

// arena allocates arrays outside the garbage collector's heap, so their memory
// is returned to the system as soon as it is released. It is safe for
// concurrent use.
type arena struct {
	mu     sync.Mutex
	blocks map[unsafe.Pointer][]byte
	// held is the number of bytes allocated.
	held int64
}

// number is the element type of the arrays.
type number interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int64 | edge | cell
}

// smallest is the minimum size, in bytes, of an array that gets its own pages
// from the system.
const smallest = 1 << 20

// array returns an array of n zeros.
func array[T number](a *arena, n int64) ([]T, error) {
	var zero T
	size := n * int64(unsafe.Sizeof(zero))
	if size < smallest {
		return make([]T, n), nil
	}
	b, err := mapPages(size)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.blocks == nil {
		a.blocks = map[unsafe.Pointer][]byte{}
	}
	a.blocks[unsafe.Pointer(&b[0])] = b
	a.held += size
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n), nil
}

// drop releases an array and sets it to nil.
func drop[T number](a *arena, p *[]T) {
	s := *p
	*p = nil
	if cap(s) == 0 {
		return
	}
	at := unsafe.Pointer(unsafe.SliceData(s))
	a.mu.Lock()
	defer a.mu.Unlock()
	if b, ok := a.blocks[at]; ok {
		delete(a.blocks, at)
		a.held -= int64(len(b))
		unmapPages(b)
	}
}

// close releases all arrays.
func (a *arena) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range a.blocks {
		unmapPages(b)
	}
	a.blocks, a.held = nil, 0
}
