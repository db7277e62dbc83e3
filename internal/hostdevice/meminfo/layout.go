package meminfo

import (
	"bytes"
	"fmt"
	"io"

	"github.com/leakgate/leakgate/internal/androidtext"
	"github.com/leakgate/leakgate/internal/capture/procfs"
)

// Layout holds the memory of a process by row and by mapping.
type Layout struct {
	// Rows holds the sums by row; JIT is the part of Dalvik Other that is code.
	Rows androidtext.Rows
	JIT  androidtext.Memory
	// Mappings are sorted by address and have the names that Android would
	// show.
	Mappings []androidtext.Mapping
}

// Meminfo returns the values that `dumpsys meminfo` prints for the process.
// javaUsed is the size of the objects in the Java heap, including garbage, in
// kB; if it is 0, all resident memory of the heap counts as used.
//
// Values that Android reads from inside a process, such as counts of framework
// objects, are zero.
func (l *Layout) Meminfo(api, pid int, name string, javaUsed int64) *androidtext.Meminfo {
	heap := func(r androidtext.Row, used int64) androidtext.Heap {
		m := l.Rows[r]
		if used == 0 {
			used = m.Rss
		}
		used = min(used, m.Size)
		return androidtext.Heap{Size: m.Size, Alloc: used, Free: m.Size - used}
	}
	return &androidtext.Meminfo{
		API: api, PID: pid, Name: name, Rows: l.Rows, JIT: l.JIT,
		NativeHeap: heap(androidtext.NativeHeap, 0), JavaHeap: heap(androidtext.DalvikHeap, javaUsed),
		Details: []androidtext.Detail{
			{Name: ".Heap", Memory: l.Rows[androidtext.DalvikHeap]}, {Name: ".AppJIT", Memory: l.JIT},
		},
	}
}

const (
	// heapLimit is the end of the address range of a heap with compressed
	// pointers: 32 GiB, because a 32-bit reference counts units of eight bytes.
	heapLimit = 32 << 30
	// stackSize is the size of a thread's stack: 1 MiB, HotSpot's default on
	// 64-bit Linux.
	stackSize = 1 << 20
	// maxGuard is the maximum size of the guard pages below a stack.
	maxGuard = 64 << 10
)

// Read sorts the mappings of a process into rows. heapBytes is the reserved
// size of the Java heap (-Xmx), or 0 for a process without a Java heap.
//
// The Java heap is recognized by HotSpot's layout: if its reserved size is less
// than 32 GiB, it is one range without gaps below the address 32 GiB. A
// position-independent program has no other mappings there. The stack of a
// thread is a block of about 1 MiB directly after an inaccessible guard of at
// most 64 KiB. All other mappings without a file belong to the Native Heap.
func Read(smaps io.Reader, heapBytes uint64) (*Layout, error) {
	l := new(Layout)
	s := sorter{layout: l, heapBytes: heapBytes}
	sum, err := procfs.ScanSmaps(smaps, s.mapping)
	if err != nil {
		return nil, fmt.Errorf("read mappings: %w", err)
	}
	if sum.Truncated {
		return nil, fmt.Errorf("read mappings: %w", io.ErrUnexpectedEOF)
	}
	if sum.Mappings.N == 0 {
		return nil, fmt.Errorf("read mappings: %w: no mappings", procfs.ErrFormat)
	}
	return l, nil
}

// sorter sorts mappings into their rows one by one.
type sorter struct {
	layout    *Layout
	heapBytes uint64

	heapStart, heapEnd uint64
	// guardEnd is the end of the previous mapping if that was a guard;
	// guardSize is its length.
	guardEnd, guardSize uint64
}

func (s *sorter) mapping(m *procfs.Mapping) error {
	row, name := s.place(m)
	mem := memoryOf(m)
	s.layout.Rows[row] = s.layout.Rows[row].Plus(mem)
	if row == androidtext.DalvikOther {
		s.layout.JIT = s.layout.JIT.Plus(mem)
	}
	s.layout.Mappings = append(s.layout.Mappings, androidtext.Mapping{
		Start: m.Start, End: m.End, Perms: string(m.Perms[:]), Name: string(name), Memory: mem,
	})
	s.guardEnd, s.guardSize = 0, 0
	if len(m.Name) == 0 && m.Perms == [4]byte{'-', '-', '-', 'p'} && m.End-m.Start <= maxGuard {
		s.guardEnd, s.guardSize = m.End, m.End-m.Start
	}
	return nil
}

// place returns the row of a mapping and the name that Android would show.
func (s *sorter) place(m *procfs.Mapping) (androidtext.Row, []byte) {
	switch {
	case bytes.Equal(m.Name, []byte("[heap]")):
		return androidtext.NativeHeap, []byte("[anon:libc_malloc]")
	case bytes.HasPrefix(m.Name, []byte("[stack")):
		return androidtext.Stack, m.Name
	case len(m.Name) > 0 && !isAnonymous(m.Name):
		return s.named(m)
	case s.inHeap(m):
		return androidtext.DalvikHeap, []byte("[anon:dalvik-main space]")
	case s.isStack(m):
		return androidtext.Stack, []byte("[anon:stack_and_tls]")
	case m.Perms[2] == 'x':
		return androidtext.DalvikOther, []byte("[anon:dalvik-jit-code-cache]")
	case m.Perms[3] == 's':
		return androidtext.Ashmem, []byte("[anon:shared]")
	}
	return androidtext.NativeHeap, []byte("[anon:libc_malloc]")
}

func (s *sorter) named(m *procfs.Mapping) (androidtext.Row, []byte) {
	if m.Name[0] == '[' && !bytes.HasPrefix(m.Name, []byte("[anon_shmem:")) {
		return androidtext.Unknown, m.Name
	}
	return fileRow(m.Name), m.Name
}

// isAnonymous reports whether the name was given to private anonymous memory
// (PR_SET_VMA_ANON_NAME), as glibc does for its heaps.
func isAnonymous(name []byte) bool { return bytes.HasPrefix(name, []byte("[anon:")) }

func (s *sorter) inHeap(m *procfs.Mapping) bool {
	if s.heapBytes == 0 || m.Start >= heapLimit {
		return false
	}
	if s.heapEnd == 0 {
		s.heapStart, s.heapEnd = m.Start, m.Start
	}
	// The heap is one contiguous range of at most the reserved size. Mappings
	// beyond that size, such as the class space of newer releases, do not
	// belong to the heap.
	if m.Start != s.heapEnd || m.End > s.heapStart+s.heapBytes {
		return false
	}
	s.heapEnd = m.End
	return true
}

func (s *sorter) isStack(m *procfs.Mapping) bool {
	if m.Start != s.guardEnd || s.guardEnd == 0 || m.Perms != [4]byte{'r', 'w', '-', 'p'} {
		return false
	}
	// glibc adds its guard to the requested size; HotSpot's guard is part of
	// the requested size.
	length := m.End - m.Start
	return length == stackSize || length+s.guardSize == stackSize
}
