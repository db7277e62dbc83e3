package android

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Strings describes the java.lang.String objects, reachable or not.
type Strings struct {
	Count int64 `json:"count"`
	// Compared reports whether the contents of the Strings were compared; if it
	// is false, the following fields are absent.
	Compared bool `json:"compared"`
	// Distinct is the number of different contents. WithoutText is the number
	// of Strings without contents, or with contents that could not be compared.
	Distinct    int64 `json:"distinct,omitempty"`
	WithoutText int64 `json:"without_text,omitempty"`
	// WastedBytes is the number of bytes that would be saved if equal Strings
	// were stored only once.
	WastedBytes int64 `json:"wasted_bytes,omitempty"`
	// Repeated lists the contents that occur in the most Strings; Wasteful
	// lists the contents that waste the most bytes.
	Repeated []RepeatedString `json:"repeated,omitempty"`
	Wasteful []RepeatedString `json:"wasteful,omitempty"`
	// Omitted is the number of repeated contents that are not listed.
	Omitted  int64   `json:"omitted,omitempty"`
	Warnings []error `json:"-"`
}

// RepeatedString describes several Strings with the same contents. Value is
// truncated after 256 characters; Length is the length of the whole contents.
type RepeatedString struct {
	Value       string `json:"value"`
	Length      int64  `json:"length"`
	Count       int64  `json:"count"`
	WastedBytes int64  `json:"wasted_bytes"`
	// Object is one of the Strings.
	Object hprof.ID `json:"object"`
}

const (
	// mostStrings is the maximum number of strings that are compared by
	// default; apps have fewer. On a JVM, the maximum is mostJVMStrings,
	// because comparing the strings of a server takes seconds.
	mostStrings    = 1 << 20
	mostJVMStrings = 1 << 17
	// mostOpen is the maximum number of strings that may be hashed only in part
	// at the same time.
	mostOpen = 1 << 10
	// eager is the number of bytes that may be compared per byte of heap; an
	// array that several Strings share is counted once for each of them. In a
	// dump that is crafted to exceed this limit, not all strings are compared.
	eager = 8
)

// entry describes one String that is compared. It takes 24 bytes.
type entry struct {
	array  heap.Object
	object heap.Object
	first  uint32
	// length is the length of the string in elements, combined with a bit that
	// is set for wide strings.
	length uint32
	// hash is the hash of the contents, or 0 if unknown.
	hash uint64
}

const wideBit = 1 << 31

func (e *entry) span() span {
	return span{e.array, e.first, e.length &^ wideBit, e.length&wideBit != 0}
}

// stringsTopic compares strings by 64-bit hashes with a random seed, so a dump
// cannot be crafted to cause collisions.
type stringsTopic struct {
	Strings

	// most is the maximum number of Strings that are compared.
	most    int
	family  heap.Family
	layout  *layout
	entries []entry
	// order holds the entries, sorted by array and, within an array, by the
	// start of the string.
	order []uint32
	seed  maphash.Seed
	level int
	// budget is the number of bytes that may still be compared; unread is the
	// number of Strings that were not compared because they would have exceeded
	// the budget or mostOpen.
	budget, unread int64
	// open holds the strings that continue in the next piece of their array.
	open map[uint32]*maphash.Hash
	// blank is the number of strings that consist only of NULs or question
	// marks, as strippers write them; worded is the number of all strings that
	// are not empty.
	blank, worded     int64
	repeated, wasting best[stringGroup]
	// texts holds, for each group, the number of the request for its contents.
	texts map[heap.Object]int
}

// stringGroup represents all Strings with the same contents, and holds the
// first of them.
type stringGroup struct {
	entry
	count, wasted int64
}

const (
	askEntry uint8 = iota
	askValue
)

func newStringsTopic(o Options) *stringsTopic {
	if o.AllStrings {
		return &stringsTopic{most: math.MaxInt - 1}
	}
	return &stringsTopic{most: mostStrings}
}

func (t *stringsTopic) families() []*heap.Family {
	// The limit is one more than the number of Strings that may be compared, to
	// detect whether there are more.
	t.family = heap.Family{Class: "java.lang.String", Limit: t.most + 1}
	return []*heap.Family{&t.family}
}

func (t *stringsTopic) begin(p *plan) {
	t.Count = t.family.Count
	if runtime(p.graph) == RuntimeJVM && !p.options.AllStrings {
		t.most = min(t.most, mostJVMStrings)
	}
	if t.Count > int64(t.most) {
		t.family.Objects = nil
		t.warn("%d are not compared: more than the default limit of %d", t.Count, t.most)
		return
	}
	t.Compared = true
	t.layout, t.seed, t.open, t.texts = newLayout(p.graph), maphash.MakeSeed(), map[uint32]*maphash.Hash{},
		map[heap.Object]int{}
	for _, h := range p.graph.Heaps {
		t.budget = sum(t.budget, h.Bytes)
	}
	t.budget = max(min(t.budget, largest/eager)*eager, 1<<20)
	t.entries = make([]entry, len(t.family.Objects))
	for i, o := range t.family.Objects {
		t.entries[i] = entry{object: o, array: noArray}
		p.ask(o, askEntry, i)
	}
	t.family.Objects = nil
}

func (t *stringsTopic) warn(format string, args ...any) {
	t.Warnings = append(t.Warnings, fmt.Errorf("strings: "+format, args...))
}

func (t *stringsTopic) visit(_ *plan, r *heap.Record, tag uint8, number uint32) {
	if tag == askValue {
		t.piece(r, number)
		return
	}
	e := &t.entries[number]
	s, ok := t.layout.span(r)
	switch {
	case !ok:
	case s.length == 0:
		e.hash = t.hash(nil, hprof.Byte)
	default:
		e.array, e.first, e.length = s.array, s.first, min(s.length, wideBit-1)
		if s.wide {
			e.length |= wideBit
		}
	}
}

// hash returns the hash of a string's contents, which is never 0. Runtimes
// store a string in bytes whenever they can, so strings of different types
// cannot be equal; only the empty string can have either type.
func (t *stringsTopic) hash(b []byte, kind hprof.Type) uint64 {
	return t.typed(maphash.Bytes(t.seed, b), kind, len(b))
}

func (t *stringsTopic) typed(h uint64, kind hprof.Type, n int) uint64 {
	if kind == hprof.Char && n > 0 {
		h = ^h
	}
	return max(h, 1)
}

// piece hashes the strings, or parts of strings, in one piece of an array.
// number is the index of the array's first entry in the field order.
func (t *stringsTopic) piece(r *heap.Record, number uint32) {
	if r.Kind != hprof.SubPrimitiveArray || (r.Type != hprof.Byte && r.Type != hprof.Char) {
		return
	}
	order := t.order[number:]
	if r.First > 0 {
		t.goOn(r)
		i, _ := slices.BinarySearchFunc(order, r.First, func(i, first uint32) int {
			return cmp.Or(cmp.Compare(t.entries[i].array, r.Object), cmp.Compare(t.entries[i].first, first))
		})
		order = order[i:]
	}
	end := uint64(r.First) + uint64(len(r.Body)/r.Type.Size(8))
	for _, i := range order {
		if e := &t.entries[i]; e.array != r.Object || uint64(e.first) >= end && end < uint64(r.Count) {
			return
		}
		t.begins(r, i, end)
	}
}

// begins hashes the first part of a string that begins in a piece of its array;
// end is the index of the first element after the piece.
func (t *stringsTopic) begins(r *heap.Record, number uint32, end uint64) {
	e := &t.entries[number]
	first, count, size := uint64(e.first), uint64(r.Count), uint64(r.Type.Size(8))
	if first > count {
		return
	}
	length := min(uint64(e.length&^wideBit), count-first)
	e.length = e.length&wideBit | uint32(length)
	text := r.Body[(first-uint64(r.First))*size : (min(first+length, end)-uint64(r.First))*size]
	if !t.afford(len(text)) {
		return
	}
	if first+length <= end {
		e.hash = t.hash(text, r.Type)
		t.look(text, r.Type)
		return
	}
	if len(t.open) >= mostOpen {
		t.unread++
		return
	}
	h := &maphash.Hash{}
	h.SetSeed(t.seed)
	_, _ = h.Write(text) // a Hash never fails
	t.open[number] = h
}

// afford deducts n bytes, plus 8 for the String itself, from the budget and
// reports whether the budget was sufficient. If not, it counts the String as
// unread.
func (t *stringsTopic) afford(n int) bool {
	if t.budget -= int64(n) + 8; t.budget < 0 {
		t.unread++
		return false
	}
	return true
}

// goOn continues to hash the strings that began in an earlier piece of the
// array.
func (t *stringsTopic) goOn(r *heap.Record) {
	size := uint64(r.Type.Size(8))
	end := uint64(r.First) + uint64(len(r.Body))/size
	for number, h := range t.open {
		e := &t.entries[number]
		if e.array != r.Object {
			continue
		}
		last := uint64(e.first) + uint64(e.length&^wideBit)
		n := (min(last, end) - uint64(r.First)) * size
		if !t.afford(int(n)) {
			delete(t.open, number)
			continue
		}
		_, _ = h.Write(r.Body[:n])
		if last <= end {
			e.hash = t.typed(h.Sum64(), r.Type, 1)
			t.worded++
			delete(t.open, number)
		}
	}
}

// look counts a string unless it is empty, and also counts it as blank if its
// contents were stripped.
func (t *stringsTopic) look(b []byte, kind hprof.Type) {
	if len(b) == 0 {
		return
	}
	t.worded++
	if stripped(b, kind) {
		t.blank++
	}
}

// stripped reports whether the contents consist only of the filler that
// strippers write: NULs, or question marks (LeakCanary,
// HprofPrimitiveArrayStripper).
func stripped(b []byte, kind hprof.Type) bool {
	if kind == hprof.Char && b[0] == 0 && len(b) > 1 && b[1] == '?' {
		for i, c := range b {
			if c != "\x00?"[i&1] {
				return false
			}
		}
		return true
	}
	if b[0] != 0 && b[0] != '?' {
		return false
	}
	return bytes.Count(b, b[:1]) == len(b)
}

func (t *stringsTopic) advance(p *plan) {
	if !t.Compared {
		return
	}
	switch t.level++; t.level {
	case 1:
		if t.askArrays(p) {
			return
		}
		t.level++
		t.group(p)
	case 2:
		t.group(p)
	}
}

// askArrays requests the arrays of all strings, and reports whether there are
// any.
func (t *stringsTopic) askArrays(p *plan) bool {
	keys := make([]uint64, 0, len(t.entries))
	for i, e := range t.entries {
		if e.array != noArray {
			keys = append(keys, uint64(e.array)<<32|uint64(i))
		}
	}
	slices.Sort(keys)
	t.order = make([]uint32, len(keys))
	for i, k := range keys {
		t.order[i] = uint32(k)
	}
	for i := 0; i < len(keys); {
		array := heap.Object(keys[i] >> 32)
		p.ask(array, askValue, i)
		end := i + 1
		for end < len(keys) && heap.Object(keys[end]>>32) == array {
			end++
		}
		if end > i+1 {
			slices.SortFunc(t.order[i:end], func(a, b uint32) int {
				return cmp.Or(cmp.Compare(t.entries[a].first, t.entries[b].first), cmp.Compare(a, b))
			})
		}
		i = end
	}
	return len(keys) > 0
}

// group finds equal strings.
func (t *stringsTopic) group(p *plan) {
	t.order = nil
	if t.worded >= 10 && t.blank >= t.worded/10*9 {
		t.Compared, t.entries = false, nil
		t.warn("the string contents were stripped from this dump; they are not compared")
		return
	}
	if t.unread > 0 {
		t.warn("%d strings are not compared: too many share large arrays", t.unread)
	}
	order := byHash(t.entries)
	rank := func(a, b int64, x, y heap.Object) int { return cmp.Or(cmp.Compare(b, a), cmp.Compare(x, y)) }
	t.repeated = best[stringGroup]{
		limit: p.options.Top, order: func(a, b stringGroup) int { return rank(a.count, b.count, a.object, b.object) },
	}
	t.wasting = best[stringGroup]{
		limit: p.options.Top, order: func(a, b stringGroup) int { return rank(a.wasted, b.wasted, a.object, b.object) },
	}
	for i := 0; i < len(order); {
		end := i + 1
		for end < len(order) && t.entries[order[end]].hash == t.entries[order[i]].hash {
			end++
		}
		t.take(p, order[i:end])
		i = end
	}
	t.Omitted = max(0, t.Omitted-int64(len(t.repeated.sorted())))
	for _, list := range [][]stringGroup{t.repeated.list, t.wasting.sorted()} {
		for _, g := range list {
			if _, asked := t.texts[g.object]; !asked && g.array != noArray {
				t.texts[g.object] = p.textOf(g.span())
			}
		}
	}
	t.entries = nil
}

// byHash sorts entries by hash; among equal hashes, the entries of one array
// are adjacent. Hashes are spread evenly, so nearly every hash has a bucket of
// its own.
func byHash(entries []entry) []uint32 {
	shift := 64 - bits.Len(uint(len(entries)))
	starts := make([]uint32, 1<<(64-shift)+1)
	for i := range entries {
		starts[entries[i].hash>>shift+1]++
	}
	for i := 1; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
	order, next := make([]uint32, len(entries)), slices.Clone(starts)
	for i := range entries {
		bucket := entries[i].hash >> shift
		order[next[bucket]] = uint32(i)
		next[bucket]++
	}
	for i := range len(starts) - 1 {
		if bucket := order[starts[i]:starts[i+1]]; len(bucket) > 1 {
			slices.SortFunc(bucket, func(a, b uint32) int {
				return cmp.Or(cmp.Compare(entries[a].hash, entries[b].hash),
					cmp.Compare(entries[a].array, entries[b].array), cmp.Compare(a, b))
			})
		}
	}
	return order
}

// take adds a group of Strings with the same contents to the totals and lists.
func (t *stringsTopic) take(p *plan, order []uint32) {
	first := t.entries[order[0]]
	if first.hash == 0 {
		t.WithoutText = int64(len(order))
		return
	}
	t.Distinct++
	if len(order) == 1 {
		return
	}
	g := stringGroup{entry: first, count: int64(len(order))}
	last := first.array
	for _, i := range order[1:] {
		e := t.entries[i]
		if e.object < g.object {
			g.entry = e
		}
		g.wasted = sum(g.wasted, p.graph.Shallow(e.object).Java)
		if e.array != last && e.array != noArray {
			g.wasted = sum(g.wasted, min(p.graph.Shallow(e.array).Java, 2*int64(e.length&^wideBit)))
		}
		last = e.array
	}
	t.WastedBytes = sum(t.WastedBytes, g.wasted)
	t.Omitted++
	t.repeated.add(g)
	t.wasting.add(g)
}

func (t *stringsTopic) finish(p *plan) {
	t.Repeated, t.Wasteful = t.show(p, t.repeated.list), t.show(p, t.wasting.list)
}

func (t *stringsTopic) show(p *plan, groups []stringGroup) (list []RepeatedString) {
	for _, g := range groups {
		r := RepeatedString{
			Length: int64(g.length &^ wideBit), Count: g.count, WastedBytes: g.wasted, Object: p.id(g.object),
		}
		if g.length&wideBit != 0 {
			r.Length /= 2
		}
		if n, ok := t.texts[g.object]; ok {
			r.Value = p.texts.at(n)
		}
		list = append(list, r)
	}
	return list
}
