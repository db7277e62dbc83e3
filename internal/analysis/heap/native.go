package heap

import (
	"encoding/binary"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// The native memory that Java objects own is found through the structures of
// AOSP's NativeAllocationRegistry: a sun.misc.Cleaner watches the referent; the
// Cleaner's thunk is a CleanerThunk, whose field this$0 is the registry, which
// contains the size.

// part is the role of an instance among the objects that describe native
// memory.
type part uint8

const (
	cleanerPart part = iota + 1
	thunkPart
	registryPart
	bufferPart
)

// partFields lists the classes and, for each, the fields to read.
var partFields = map[string]struct {
	part   part
	fields []string
}{
	"sun.misc.Cleaner": {cleanerPart, []string{"referent", "thunk"}},
	"libcore.util.NativeAllocationRegistry$CleanerThunk": {thunkPart, []string{"this$0"}},
	"libcore.util.NativeAllocationRegistry":              {registryPart, []string{"size"}},
	// A direct buffer of a JVM owns memory if it has a cleaner and is not
	// backed by a file (OpenJDK, Direct-X-Buffer.java.template).
	"java.nio.DirectByteBuffer": {bufferPart, []string{"capacity", "cleaner", "fd"}},
}

// mallocedFlag is the bit of NativeAllocationRegistry.size that is not part of
// the size: it is set if the memory was allocated by malloc (since Android 10,
// libcore NativeAllocationRegistry.java).
const mallocedFlag = 1

// mostNative is an upper bound on the bytes that an object can own: a larger
// size means that the dump is damaged.
const mostNative = 1 << 40

// nativeParts holds the instances that describe native memory: cleaners,
// thunks, registries and direct buffers.
type nativeParts struct {
	cleaners []cleaner
	// thunks maps each thunk to its registry; registries maps each registry to
	// its bytes.
	thunks     map[hprof.ID]hprof.ID
	registries map[hprof.ID]int64
	buffers    []buffer
}

type buffer struct {
	id   hprof.ID
	size int64
}

type cleaner struct {
	referent, thunk hprof.ID
}

func (p *nativeParts) clear() {
	p.cleaners, p.buffers = p.cleaners[:0], p.buffers[:0]
	clear(p.thunks)
	clear(p.registries)
}

func (p *nativeParts) add(o *nativeParts) {
	p.cleaners, p.buffers = append(p.cleaners, o.cleaners...), append(p.buffers, o.buffers...)
	for k, v := range o.thunks {
		p.thunk(k, v)
	}
	for k, v := range o.registries {
		p.registry(k, v)
	}
}

func (p *nativeParts) thunk(id, registry hprof.ID) {
	if p.thunks == nil {
		p.thunks = map[hprof.ID]hprof.ID{}
	}
	p.thunks[id] = registry
}

func (p *nativeParts) registry(id hprof.ID, size int64) {
	if p.registries == nil {
		p.registries = map[hprof.ID]int64{}
	}
	p.registries[id] = size
}

// part records the native memory that is described by an instance of a class in
// partFields.
func (w *linker) part(c *class, s *hprof.Scanner) {
	read := func(i int) (v uint64) {
		f := c.parts[i]
		if n := int(f.at) + f.size; f.size == 0 || n > len(s.Body) {
			return 0
		}
		b := s.Body[f.at:][:f.size]
		if f.size == 8 {
			return binary.BigEndian.Uint64(b)
		}
		return uint64(binary.BigEndian.Uint32(b))
	}
	switch c.part {
	case cleanerPart:
		w.native.cleaners = append(w.native.cleaners, cleaner{hprof.ID(read(0)), hprof.ID(read(1))})
	case thunkPart:
		w.native.thunk(s.Object, hprof.ID(read(0)))
	case bufferPart:
		if size := int64(int32(read(0))); w.Model == Leakgate && size > 0 && read(1) != 0 && read(2) == 0 {
			w.native.buffers = append(w.native.buffers, buffer{s.Object, size})
		}
	case registryPart:
		w.native.registry(s.Object, int64(read(0)&^mallocedFlag))
	}
}

// partField is the position of a field in an instance, and its size: 4 or 8
// bytes.
type partField struct {
	at   uint32
	size int
}

// findParts looks up the fields of the classes involved in native memory.
func (l *layouts) findParts(s slot) {
	c := &l.list[s]
	p, ok := partFields[c.name]
	if !ok {
		return
	}
	c.part = p.part
	for _, name := range p.fields {
		at, t, ok := l.field(s, name)
		f := partField{at, t.Size(l.idSize)}
		if !ok || f.size < 4 {
			f.size = 0
		}
		c.parts = append(c.parts, f)
	}
}

// field finds an instance field by name. If several fields have this name, the
// one of the most derived class is used.
func (l *layouts) field(s slot, name string) (at uint32, t hprof.Type, ok bool) {
	for range longestChain {
		c := &l.list[s]
		if c.dump == nil {
			return 0, 0, false
		}
		for _, f := range c.dump.Fields {
			if l.named(c, f, name) {
				return at, f.Type, true
			}
			at += uint32(f.Type.Size(l.idSize))
		}
		if c.super == 0 {
			return 0, 0, false
		}
		s = c.super
	}
	return 0, 0, false
}

// joinNative adds to each object the native bytes that its cleaners will free.
func (l *loader) joinNative() {
	for _, b := range l.parts.buffers {
		l.register(b.id, b.size)
	}
	for _, c := range l.parts.cleaners {
		size := l.parts.registries[l.parts.thunks[c.thunk]]
		if size <= 0 || size > mostNative {
			continue
		}
		l.register(c.referent, size)
	}
	l.parts = nativeParts{}
}

// register adds native bytes to an object.
func (l *loader) register(id hprof.ID, size int64) {
	n := l.ids.find(id)
	if n == none {
		return
	}
	if l.native == nil {
		l.native = map[uint32]int64{}
	}
	l.native[n] += size
}

// natives returns the numbers of the objects with native bytes, in ascending
// order.
func (g *Graph) natives() []uint32 {
	list := make([]uint32, 0, len(g.native))
	for n := range g.native {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}
