package heap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// SizeModel selects how retained sizes are computed. In every model, objects
// have the sizes that AOSP's ahat counts: for an instance the bytes that its
// class declares, for an array its elements, for a class object the bytes of
// java.lang.Class and of its static fields. Sizes of different models must not
// be compared.
type SizeModel string

const (
	// Leakgate also counts references that a JVM, and ART up to Android 6,
	// write only into class records: from an instance or an object array to its
	// class, and from a class to its superclass, loader, signers and protection
	// domain. The boot class loader's classes are never unloaded, so they are
	// roots, declared or not (Eclipse MAT, HprofParserHandlerImpl.java).
	Leakgate SizeModel = "leakgate"
	// Ahat counts only the references of fields and elements.
	Ahat SizeModel = "ahat"
)

// Options configure how a dump is loaded.
type Options struct {
	// Snapshot is the index of the heap to load from a file with several heaps;
	// -1 selects the last one.
	Snapshot int
	// Workers is the number of goroutines that read the dump; 0 means one per
	// core.
	Workers int
	// Limit bounds the memory, in bytes; 0 means no limit. Loading a dump that
	// needs more memory returns a *MemoryError.
	Limit int64
	// Model is the size model; "" selects Ahat.
	Model SizeModel
	// Names translates class and field names to those of the source code; nil
	// keeps the names of the dump.
	Names Names
	// Inbound keeps the references to each object, which AddAncestors, AddHeld,
	// Costs, Shares and GroupCosts need; it takes about 6 bytes per object.
	Inbound bool
	// Partial loads the readable parts of a damaged dump.
	Partial bool
	// Phase is called with the name of each phase when the phase begins.
	// Progress is called, from several goroutines, with the number of bytes
	// read so far and the total, for both passes together.
	Phase    func(name string)
	Progress func(done, total int64)
}

// MemoryError reports that a dump is too large for the available memory.
type MemoryError = hprof.MemoryError

// Heap is one of the heaps of an Android app, or the only heap of any other
// dump.
type Heap struct {
	// ID is the heap ID that ART writes: 0 default, 'A' app, 'I' image, 'Z'
	// zygote.
	ID   uint32
	Name string
	// Objects and Bytes count all objects in the dump, reachable or not.
	Objects, Bytes int64
}

// Graph is the heap of one dump.
type Graph struct {
	hprof.Header
	// Truncated is the offset of the incomplete record at the end of the file
	// (inside a segment, the offset of the inner record); -1 if the file ends
	// after a complete record.
	Truncated int64
	// Damage lists the damage that was skipped because Options.Partial is set.
	Damage []error
	// Objects, Instances, ObjectArrays, PrimitiveArrays and Classes are the
	// numbers of these objects in the dump, reachable or not.
	Objects, Instances, ObjectArrays, PrimitiveArrays, Classes int64
	// Duplicates is the number of objects whose ID had already occurred;
	// Dangling is the number of references to objects that are not in the dump.
	Duplicates, Dangling int64
	// Model is the size model of the graph.
	Model SizeModel
	// ReferenceCount is the number of references, excluding null and dangling
	// ones.
	ReferenceCount int64
	// RootCounts is the number of GC roots of each kind, including the roots of
	// objects that are not in the dump.
	RootCounts map[hprof.SubTag]int64
	Heaps      []Heap

	arena   arena
	file    *hprof.File
	workers int
	// stretches holds the positions of the objects in the file, for Read.
	stretches []stretch
	// twice holds, for each object that has several records, the position of
	// the last one.
	twice    map[uint32]int64
	fields   map[fieldKey]fieldPlace
	ids      *ids
	registry *registry
	slots    slotArray
	sizes    sizeArray
	heapOf   []uint8
	// roots holds the GC roots of existing objects. The implied roots at the
	// end are classes of the boot class loader that the dump does not declare
	// as roots.
	roots   []hprof.Root
	implied int
	links   links
	tree    tree
	inbound inbound
	weaker  weaker
	native  map[uint32]int64
	rows    []Row
	empty   []string
}

// mostClasses is the number of different values that three bytes can hold.
const mostClasses = 1 << 24

// slotArray holds the slot of each object, in two bytes, or in three if a dump
// has more than 65536 classes.
type slotArray struct {
	low  []uint16
	high []uint8
}

func (a *slotArray) at(i uint32) slot {
	s := slot(a.low[i])
	if a.high != nil {
		s |= slot(a.high[i]) << 16
	}
	return s
}

func (a *slotArray) set(i uint32, s slot) {
	a.low[i] = uint16(s)
	if a.high != nil {
		a.high[i] = uint8(s >> 16)
	}
}

// sizeArray holds the size of each object in bytes, as two-byte numbers; the
// few larger sizes are stored separately.
type sizeArray struct {
	small []uint16
	mu    sync.Mutex
	large map[uint32]int64
}

const largeSize = 1<<16 - 1

func (a *sizeArray) at(i uint32) int64 {
	if n := a.small[i]; n != largeSize {
		return int64(n)
	}
	return a.large[i]
}

func (a *sizeArray) set(i uint32, n int64) {
	if n < largeSize {
		a.small[i] = uint16(n)
		return
	}
	a.small[i] = largeSize
	a.mu.Lock()
	defer a.mu.Unlock()
	a.large[i] = n
}

var errNoHeap = errors.New("load the heap: the file has none")

// Load builds the graph of one snapshot of a dump. The graph reads the file
// again when details are requested. The caller must call Close on the graph.
func Load(ctx context.Context, f *hprof.File, o Options) (*Graph, error) {
	l, err := newLoader(f, o, 2)
	if err != nil {
		return nil, err
	}
	if err := l.load(ctx); err != nil {
		l.Close()
		return nil, err
	}
	return l.Graph, nil
}

// newLoader returns a loader that reads the file the given number of times.
func newLoader(f *hprof.File, o Options, passes int64) (*loader, error) {
	if len(f.Snapshots) == 0 {
		return nil, errNoHeap
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Phase == nil {
		o.Phase = func(string) {}
	}
	if o.Snapshot < 0 {
		o.Snapshot = len(f.Snapshots) - 1
	}
	if o.Snapshot >= len(f.Snapshots) {
		return nil, fmt.Errorf("load heap %d: the number of heaps in the file is %d", o.Snapshot, len(f.Snapshots))
	}
	g := &Graph{
		Model: cmp.Or(o.Model, Ahat), Header: f.Header, Truncated: f.Truncated, RootCounts: map[hprof.SubTag]int64{},
		Heaps: []Heap{{Name: "default"}},
		file:  f, workers: o.Workers, registry: newRegistry(o.Names),
	}
	l := &loader{Graph: g, file: f, options: o, passes: passes}
	l.cut(f.Snapshots[o.Snapshot])
	return l, nil
}

func (l *loader) load(ctx context.Context) error {
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"read objects", l.first},
		{"number objects", l.number},
		{"read references", l.second},
		{"search", l.search},
		{"dominators", l.dominate},
		{"sizes", l.sum},
	}
	for _, s := range steps {
		l.options.Phase(s.name)
		if err := s.do(ctx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Memory returns the number of bytes that the graph uses outside the garbage
// collector's heap.
func (g *Graph) Memory() int64 {
	g.arena.mu.Lock()
	defer g.arena.mu.Unlock()
	return g.arena.held
}

// Close releases the graph's memory. The graph must not be used afterwards.
func (g *Graph) Close() { g.arena.close() }

// fits returns a *MemoryError if a dump of at least n objects needs more memory
// than Options.Limit.
func (l *loader) fits(n int64) error {
	need := n * l.bytesPerObject()
	if l.options.Limit <= 0 || need <= l.options.Limit {
		return nil
	}
	if done := l.done.Load(); done > 0 && done < l.total {
		need = int64(float64(need) / float64(done) * float64(l.total))
	}
	return &MemoryError{Need: need, Limit: l.options.Limit}
}

// bytesOfObject is the maximum size of the tables per object if objects have
// 1.5 references on average; bytesOfInbound is the size that Options.Inbound
// adds (docs/performance.md).
const (
	bytesOfObject     = 18
	bytesOfInbound    = 6
	bytesPerReference = 4
)

func (l *loader) bytesPerObject() int64 {
	if l.options.Inbound {
		return bytesOfObject + bytesOfInbound
	}
	return bytesOfObject
}
