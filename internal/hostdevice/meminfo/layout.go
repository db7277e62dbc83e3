package meminfo

import (
	"bytes"
	"fmt"
	"io"
	"sort"

	"github.com/leakgate/leakgate/internal/capture/procfs"
)

// Layout is where the memory of one process is.
type Layout struct {
	// Rows are the sums by row; JIT is the part of Dalvik Other that is code.
	Rows [NumRows]Memory
	JIT  Memory
	// Objects are the sums by name, as showmap prints them.
	Objects []Object
	// Areas are the mappings one by one, in the order of the kernel.
	Areas []Area
}

// Area is one mapping.
type Area struct {
	Start, End uint64
	// Perms are its rights as the kernel prints them, such as rw-p.
	Perms [4]byte
	Object
}

// Object is one line of showmap.
type Object struct {
	Name string
	Memory
}

// Total is the sum of all rows.
func (l *Layout) Total() Memory {
	var t Memory
	for _, m := range l.Rows {
		t.add(m)
	}
	return t
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
	s := sorter{layout: l, heapBytes: heapBytes, objects: map[string]*Memory{}}
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
	l.Objects = make([]Object, 0, len(s.objects))
	for name, m := range s.objects {
		l.Objects = append(l.Objects, Object{name, *m})
	}
	sort.Slice(l.Objects, func(i, j int) bool { return l.Objects[i].Name < l.Objects[j].Name })
	return l, nil
}

// sorter puts one mapping after the other into its row.
type sorter struct {
	layout    *Layout
	heapBytes uint64
	objects   map[string]*Memory

	heapStart, heapEnd uint64
	// guardEnd is the end of the mapping before if that was a guard, guardSize
	// its length.
	guardEnd, guardSize uint64
}

func (s *sorter) mapping(m *procfs.Mapping) error {
	row, name := s.place(m)
	mem := memoryOf(m)
	s.layout.Rows[row].add(mem)
	if row == DalvikOther {
		s.layout.JIT.add(mem)
	}
	s.layout.Areas = append(s.layout.Areas, Area{m.Start, m.End, m.Perms, Object{string(name), mem}})
	s.object(name, mem)
	s.guardEnd, s.guardSize = 0, 0
	if len(m.Name) == 0 && m.Perms == [4]byte{'-', '-', '-', 'p'} && m.End-m.Start <= maxGuard {
		s.guardEnd, s.guardSize = m.End, m.End-m.Start
	}
	return nil
}

// place gives the row of a mapping and its name as Android would show it.
func (s *sorter) place(m *procfs.Mapping) (Row, []byte) {
	switch {
	case bytes.Equal(m.Name, []byte("[heap]")):
		return NativeHeap, []byte("[anon:libc_malloc]")
	case bytes.HasPrefix(m.Name, []byte("[stack")):
		return Stack, m.Name
	case len(m.Name) > 0 && !isAnonymous(m.Name):
		return s.named(m)
	case s.inHeap(m):
		return DalvikHeap, []byte("[anon:dalvik-main space]")
	case s.isStack(m):
		return Stack, []byte("[anon:stack_and_tls]")
	case m.Perms[2] == 'x':
		return DalvikOther, []byte("[anon:dalvik-jit-code-cache]")
	case m.Perms[3] == 's':
		return Ashmem, []byte("[anon:shared]")
	}
	return NativeHeap, []byte("[anon:libc_malloc]")
}

func (s *sorter) named(m *procfs.Mapping) (Row, []byte) {
	if m.Name[0] == '[' && !bytes.HasPrefix(m.Name, []byte("[anon_shmem:")) {
		return Unknown, m.Name
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

func (s *sorter) object(name []byte, mem Memory) {
	if o := s.objects[string(name)]; o != nil {
		o.add(mem)
		return
	}
	o := mem
	s.objects[string(name)] = &o
}
