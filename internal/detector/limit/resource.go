package limit

import "fmt"

// Resource is something that a process can run out of.
type Resource uint8

// The resources. Heap, address space and anonymous memory are in bytes; the
// others are counts.
const (
	// JavaHeap is what the runtime has allocated, garbage included.
	JavaHeap Resource = iota
	FileDescriptors
	Threads
	// AddressSpace is the virtual memory of a 32-bit process.
	AddressSpace
	// AnonymousMemory is memory that is not backed by a file, whether resident
	// or swapped.
	AnonymousMemory
	NumResources
)

// words holds the name of a resource and the effect of reaching its limit.
type words struct{ key, name, end string }

// The messages of the runtime are in art/runtime/thread.cc
// (Thread::CreateNativeThread) and art/runtime/gc/heap.cc
// (ThrowOutOfMemoryError). The memory limiter is implemented in frameworks/base
// services/core java/com/android/server/am/MemoryLimiter.java.
var resources = [NumResources]words{
	{"java_heap", "Java heap", "reaching it causes an OutOfMemoryError: Failed to allocate"},
	{"file_descriptors", "file descriptors",
		"reaching it causes an IOException or OutOfMemoryError: Too many open files"},
	{"threads", "threads", "reaching it causes an OutOfMemoryError: pthread_create failed"},
	{"address_space", "address space", "reaching it causes an OutOfMemoryError or a native crash: mmap failed"},
	{"anonymous_memory", "anonymous memory and swap", "the memory limiter kills a process that exceeds it"},
}

// String returns java_heap, file_descriptors, threads, address_space or
// anonymous_memory.
func (r Resource) String() string {
	if r < NumResources {
		return resources[r].key
	}
	return "unknown"
}

// ParseResource is the inverse of String.
func ParseResource(text string) (Resource, error) {
	for r := range NumResources {
		if resources[r].key == text {
			return r, nil
		}
	}
	return 0, fmt.Errorf("invalid resource %q", text)
}

// inBytes reports whether the resource is memory.
func (r Resource) inBytes() bool { return r == JavaHeap || r == AddressSpace || r == AnonymousMemory }
