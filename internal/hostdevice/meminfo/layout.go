package meminfo

import (
	"bytes"
	"fmt"
	"io"

	"github.com/leakgate/leakgate/internal/androidtext"
	"github.com/leakgate/leakgate/internal/capture/procfs"
)

// Layout is where the memory of one process is.
type Layout struct {
	// Rows are the sums by row; JIT is the part of Dalvik Other that is code.
	Rows androidtext.Rows
	JIT  androidtext.Memory
	// Mappings are in the order of their addresses, with names as Android has them.
	Mappings []androidtext.Mapping
}

// Meminfo returns what `dumpsys meminfo` prints of the process. javaUsed is what
// the objects in the Java heap take, garbage included, in kB; 0 where the process
// does not tell: then all of the heap that is real memory counts as used.
//
// What Android learns from inside a process, such as the framework's objects, is
// zero.
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
	// heapLimit bounds where a heap with compressed pointers can lie: 32 GiB, as
	// eight-byte objects are numbered in 32 bits.
	heapLimit = 32 << 30
	// stackSize is the stack of a thread: 1 MiB, the default of HotSpot on 64-bit
	// Linux.
	stackSize = 1 << 20
	// maxGuard bounds the guard pages below a stack.
	maxGuard = 64 << 10
)

// Read sorts the mappings of a process. heapBytes is the reserved size of the
// Java heap (-Xmx), 0 for a process without one.
//
// The Java heap is found as HotSpot lays it out: with a reserved size below 32
// GiB it lies below the address 32 GiB, where nothing else of a
// position-independent program is, and it is one gapless run. A thread's stack
// is a block of about 1 MiB right behind a guard of at most 64 KiB that nobody
// may touch. Everything else without a file is Native Heap.
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
		return nil, fmt.Errorf("read mappings: %w: there is none", procfs.ErrFormat)
	}
	return l, nil
}

// sorter puts one mapping after the other into its row.
type sorter struct {
	layout    *Layout
	heapBytes uint64

	heapStart, heapEnd uint64
	// guardEnd is the end of the mapping before if that was a guard, guardSize
	// its length.
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

// place gives the row of a mapping and its name as Android would show it.
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

// isAnonymous tells names that were given to private anonymous memory
// (PR_SET_VMA_ANON_NAME), as glibc does for its heaps.
func isAnonymous(name []byte) bool { return bytes.HasPrefix(name, []byte("[anon:")) }

func (s *sorter) inHeap(m *procfs.Mapping) bool {
	if s.heapBytes == 0 || m.Start >= heapLimit {
		return false
	}
	if s.heapEnd == 0 {
		s.heapStart, s.heapEnd = m.Start, m.Start
	}
	// One gapless run of at most the reserved size: what lies behind it, such as
	// the class space of newer releases, is not heap.
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
	// glibc adds its guard to the size asked for, HotSpot takes its own from it.
	length := m.End - m.Start
	return length == stackSize || length+s.guardSize == stackSize
}
