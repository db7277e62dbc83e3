package footprint

import (
	"bytes"

	"github.com/leakgate/leakgate/internal/known"
)

const (
	// maxRows is the maximum number of names in one map; an Android app has
	// about a thousand.
	maxRows = 20_000
	// maxAdded is the maximum number of mappings that are added up. The kernel
	// allows 65,530 (vm.max_map_count).
	maxAdded = 1 << 21
)

// Usage is the memory of mappings. Unknown numbers count as 0; the Warnings of
// a MapGrowth report unknown values of PSS and SwapPSS.
type Usage struct {
	PSS, SwapPSS known.Int
	// Size is the total length of the mappings. PrivateDirty is the memory that
	// no other process shares, without swap.
	Size, PrivateDirty known.Int
}

// Mapping is one mapping of smaps, or one row of showmap.
type Mapping struct {
	// Name is the kernel's name. Add does not keep a reference to it.
	Name []byte
	// Start and End are 0 if they are unknown: showmap combines mappings by
	// name.
	Start, End uint64
	Perms      [4]byte
	// Mappings is the number of mappings in the row; 0 means one.
	Mappings int64
	Usage
}

// Map is the memory map of a process at one point in time, with its mappings
// added up by name. Its size in memory is bounded by the number of different
// names.
type Map struct {
	most    int
	rows    map[mapKey]*mapSums
	scratch []byte
	last    lastMapping
	sum     Sum
	flaws   mapFlaws
}

// mapKey identifies a row. from is the original name of a .bss that was
// assigned to a file.
type mapKey struct {
	name string
	kind Kind
	from string
}

type mapSums struct {
	// file is the mapped file, or "" for other memory.
	file string
	// example is one of the original names. It is the first in alphabetical
	// order, so it does not depend on the order of the mappings.
	example []byte
	sum     Sum
}

// lastMapping is the mapping that was added last; .bss after it may belong to
// it.
type lastMapping struct {
	end     uint64
	file    string
	library bool
}

type mapFlaws struct {
	added, pss, swap, left int64
	full, addresses        bool
}

// NewMap returns an empty map.
func NewMap() *Map { return &Map{most: maxRows, rows: map[mapKey]*mapSums{}} }

// total returns the sum of all mappings.
func (m *Map) total() Sum { return m.sum }

// Add counts a mapping. Mappings with addresses must be added in the order of
// their addresses, as in smaps, because .bss belongs to the file just before
// it. Add allocates memory only for new names.
func (m *Map) Add(x Mapping) {
	name := trim(x.Name[:min(len(x.Name), maxRaw)])
	sum := m.measure(x)
	m.sum.add(sum)
	k, r := m.row(name, x)
	if r == nil {
		k, r = m.make(k)
	}
	r.sum.add(sum)
	if raw := x.Name[:min(len(x.Name), maxMapping)]; k.name != othersName &&
		(r.example == nil || bytes.Compare(raw, r.example) < 0) {
		r.example = append(r.example[:0], raw...)
	}
	m.last = lastMapping{end: x.End, file: r.file, library: r.file != "" && isLibrary(name)}
}

// row finds the row of a mapping. If there is no row yet, the returned key has
// its own copy of the names.
func (m *Map) row(name []byte, x Mapping) (mapKey, *mapSums) {
	if from := m.bss(name, x); from != "" {
		m.scratch = append(append(m.scratch[:0], m.last.file...), bss...)
		return m.find(File, from)
	}
	kind := kindOf(name)
	if kind == Anonymous {
		name = []byte(noName)
	}
	m.scratch = simplifyMapping(append(m.scratch[:0], name...))
	return m.find(kind, "")
}

func (m *Map) find(kind Kind, from string) (mapKey, *mapSums) {
	if r := m.rows[mapKey{string(m.scratch), kind, from}]; r != nil {
		return mapKey{kind: kind, from: from}, r
	}
	return mapKey{string(m.scratch), kind, from}, nil
}

// make creates a row. Beyond the cap, all names of one kind are combined in one
// row.
func (m *Map) make(k mapKey) (mapKey, *mapSums) {
	r := new(mapSums)
	if k.kind == File {
		r.file = fileOf(k.name)
	}
	if len(m.rows) >= m.most {
		m.flaws.full = true
		k, r = mapKey{othersName, k.kind, ""}, new(mapSums)
		if have := m.rows[k]; have != nil {
			return k, have
		}
	}
	m.rows[k] = r
	return k, r
}

// bss returns the name of a mapping's memory if it belongs to the file before
// the mapping, or "". Android assigns unnamed memory to the library that ends
// where the memory begins, and does not handle [anon:.bss], the linker's name
// for it (bionic linker_phdr.cpp). In leakgate, only the first writable unnamed
// mapping is a .bss, so growth in many mappings is not attributed to a library.
func (m *Map) bss(name []byte, x Mapping) string {
	if m.last.file == "" || x.Start == 0 || x.Start != m.last.end {
		return ""
	}
	switch {
	case string(name) == bssName:
		return bssName
	case len(name) == 0 && m.last.library && string(x.Perms[:]) == "rw-p":
		return noName
	}
	return ""
}

// measure returns the memory that a mapping adds.
func (m *Map) measure(x Mapping) (s Sum) {
	m.flaws.addresses = m.flaws.addresses || x.End > x.Start
	s.Mappings = min(max(x.Mappings, 1), maxKB)
	if m.flaws.added++; m.flaws.added > maxAdded {
		m.flaws.left++
		return Sum{}
	}
	pss, swap := sane(x.PSS, maxKB), sane(x.SwapPSS, maxKB)
	s.PSS, s.SwapPSS = pss.N, swap.N
	s.Size, s.PrivateDirty = sane(x.Size, maxKB).N, sane(x.PrivateDirty, maxKB).N
	if !pss.Known {
		m.flaws.pss++
	}
	if !swap.Known {
		m.flaws.swap++
	}
	return s
}
