package heap_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/recorded"
)

// plain is the heap of a JVM as written in its dump, with every reference that
// any tool may follow. A textbook algorithm computes its dominator trees under
// the rules of different tools.
type plain struct {
	idSize  int
	numbers map[hprof.ID]int32
	objects []plainObject
	edges   [][]plainEdge
	classes map[hprof.ID]*hprof.Class
	// written holds the class names as in the dump; names holds the same names
	// in Java's notation.
	written, names map[hprof.ID]string
	roots          []hprof.Root
	// threads maps serial numbers to thread objects.
	threads map[uint32]hprof.ID
}

type plainObject struct {
	id   hprof.ID
	kind hprof.SubTag
	// class is the class of an instance or an object array.
	class hprof.ID
	// element is the element type of a primitive array; count is the length of
	// any array.
	element hprof.Type
	count   int64
}

// plainEdge is a reference to an object by its number.
type plainEdge struct {
	to   int32
	kind edgeKind
}

// edgeKind says where in a dump a reference is recorded.
type edgeKind uint8

const (
	// byField stands for a field, a static field, an element, the class of an
	// object, or the superclass or loader of a class. All tools follow these
	// references.
	byField edgeKind = iota
	// byReferent stands for the referent of a weak, phantom or final reference.
	byReferent
	// byRecord stands for the signers and the protection domain of a class.
	byRecord
	// byFrame stands for a reference from a thread to an object that one of its
	// frames holds.
	byFrame
)

// rules are the points on which the tools differ.
type rules struct {
	// If layout is true, sizes are those of HotSpot's layout, with headers and
	// padding, as computed by Eclipse MAT. Otherwise sizes are as declared in
	// the dump.
	layout bool
	// If referents is true, references of the kind byReferent are followed; if
	// records is true, those of the kind byRecord.
	referents, records bool
	// If frames is true, an object that a frame holds is referenced by its
	// thread. Otherwise it is a GC root.
	frames bool
	// If sticky is true, a class of the boot class loader is a GC root only if
	// the dump declares it as one.
	sticky bool
}

var engineRules = rules{records: true}

// readPlain reads a dump.
func readPlain(tb testing.TB, dump []byte) *plain {
	tb.Helper()
	f, err := hprof.Open(context.Background(), bytes.NewReader(dump), int64(len(dump)))
	if err != nil {
		tb.Fatal(err)
	}
	p := &plain{
		idSize: f.IDSize, numbers: map[hprof.ID]int32{}, classes: map[hprof.ID]*hprof.Class{},
		written: map[hprof.ID]string{}, names: map[hprof.ID]string{}, threads: map[uint32]hprof.ID{},
	}
	for _, c := range f.Classes {
		if text, ok := f.Strings.Get(c.Name); ok && p.names[c.Class] == "" {
			p.written[c.Class], p.names[c.Class] = text, heap.NormalName(text)
		}
	}
	// References can be read only after all objects and classes are known.
	for _, visit := range []func(*hprof.Scanner){p.readObject, p.referenceReader(f.Strings)} {
		s := f.Scanner(f.Snapshots[len(f.Snapshots)-1].Segments)
		for s.Next() {
			visit(s)
		}
		if s.Err() != nil {
			tb.Fatal(s.Err())
		}
	}
	for _, r := range p.roots {
		if thread, ok := p.numbers[p.threads[r.Thread]]; ok && ofFrame(r.Kind) {
			p.add(thread, r.Object, byFrame)
		}
	}
	return p
}

// ofFrame reports whether a root is an object that a frame of a thread holds.
func ofFrame(kind hprof.SubTag) bool {
	switch kind {
	case hprof.SubRootJNILocal, hprof.SubRootJavaFrame, hprof.SubRootJNIMonitor, hprof.SubRootNativeStack,
		hprof.SubRootThreadBlock:
		return true
	}
	return false
}

func (p *plain) readObject(s *hprof.Scanner) {
	switch {
	case s.Kind.IsRoot():
		r := s.Root()
		if r.Kind == hprof.SubRootThreadObject {
			p.threads[r.Thread] = r.Object
		}
		p.roots = append(p.roots, r)
	case s.Kind != hprof.SubHeapInfo && !s.Piece:
		if s.Kind == hprof.SubClassDump {
			c := new(hprof.Class)
			s.ReadClass(c)
			p.classes[c.ID] = c
		}
		p.numbers[s.Object] = int32(len(p.objects))
		p.objects = append(p.objects, plainObject{s.Object, s.Kind, s.Class, s.Type, int64(s.Count)})
		p.edges = append(p.edges, nil)
	}
}

// add adds a reference, unless it is null or its target is missing from the
// dump.
func (p *plain) add(from int32, to hprof.ID, kind edgeKind) {
	if n, ok := p.numbers[to]; ok && to != 0 {
		p.edges[from] = append(p.edges[from], plainEdge{n, kind})
	}
}

// referenceReader returns a function that reads the references of a record.
func (p *plain) referenceReader(names *hprof.Strings) func(*hprof.Scanner) {
	layouts := map[hprof.ID][]plainField{}
	return func(s *hprof.Scanner) {
		from := p.numbers[s.Object]
		switch s.Kind {
		case hprof.SubInstance:
			p.add(from, s.Class, byField)
			if _, known := layouts[s.Class]; !known {
				layouts[s.Class] = p.layoutOf(s.Class, names)
			}
			for _, f := range layouts[s.Class] {
				if f.at+p.idSize <= len(s.Body) {
					p.add(from, p.id(s.Body[f.at:]), f.kind)
				}
			}
		case hprof.SubObjectArray:
			if !s.Piece {
				p.add(from, s.Class, byField)
			}
			for body := s.Body; len(body) > 0; body = body[p.idSize:] {
				p.add(from, p.id(body), byField)
			}
		case hprof.SubClassDump:
			p.readClass(from, p.classes[s.Object])
		}
	}
}

func (p *plain) readClass(from int32, c *hprof.Class) {
	p.add(from, c.Super, byField)
	p.add(from, c.Loader, byField)
	p.add(from, c.Signers, byRecord)
	p.add(from, c.Domain, byRecord)
	for _, f := range c.Statics {
		if f.Type == hprof.Object {
			p.add(from, hprof.ID(f.Value), byField)
		}
	}
}

func (p *plain) id(body []byte) hprof.ID {
	if p.idSize == 8 {
		return hprof.ID(binary.BigEndian.Uint64(body))
	}
	return hprof.ID(binary.BigEndian.Uint32(body))
}

// plainField is a field that holds a reference, and its position in an
// instance.
type plainField struct {
	at   int
	kind edgeKind
}

// layoutOf lists the references of the instances of a class, then those of its
// superclasses.
func (p *plain) layoutOf(id hprof.ID, names *hprof.Strings) (list []plainField) {
	at, referent := 0, byField
	for c := p.classes[id]; c != nil; c = p.classes[c.Super] {
		switch p.names[c.ID] {
		case "java.lang.ref.WeakReference", "java.lang.ref.PhantomReference", "java.lang.ref.Finalizer":
			referent = byReferent
		}
		for _, f := range c.Fields {
			if f.Type == hprof.Object {
				kind := byField
				if name, _ := names.Get(f.Name); name == "referent" && p.names[c.ID] == "java.lang.ref.Reference" {
					kind = referent
				}
				list = append(list, plainField{at, kind})
			}
			at += f.Type.Size(p.idSize)
		}
	}
	return list
}

// className returns the name of an object's class.
func (p *plain) className(o plainObject) string {
	switch o.kind {
	case hprof.SubClassDump:
		return "java.lang.Class"
	case hprof.SubPrimitiveArray:
		return o.element.String() + "[]"
	}
	return p.names[o.class]
}

// These constants stand for the dominator of an object that only the roots
// together dominate, or that is unreachable.
const (
	topLevel  = int32(-1)
	unreached = int32(-2)
)

// ruledTree is the dominator tree under a set of rules.
type ruledTree struct {
	*plain
	rules
	// dominators holds the immediate dominators. order lists the reached
	// objects, each after its dominator.
	dominators, order []int32
	sizes, retained   []int64
}

func (p *plain) tree(r rules) *ruledTree {
	t := &ruledTree{plain: p, rules: r}
	t.dominate()
	t.measure()
	return t
}

// follows reports whether the rules follow references of a kind.
func (t *ruledTree) follows(kind edgeKind) bool {
	switch kind {
	case byReferent:
		return t.referents
	case byRecord:
		return t.records
	case byFrame:
		return t.frames
	}
	return true
}

// starts returns the GC roots.
func (t *ruledTree) starts() (list []int32) {
	add := func(id hprof.ID) {
		if n, ok := t.numbers[id]; ok {
			list = append(list, n)
		}
	}
	declared := false
	for _, r := range t.roots {
		declared = declared || r.Kind == hprof.SubRootStickyClass
		if !t.frames || !ofFrame(r.Kind) {
			add(r.Object)
		}
	}
	for id, c := range t.classes {
		if c.Loader == 0 && (!t.sticky || t.implied(id, declared)) {
			add(id)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// implied reports whether MAT treats a class of the boot class loader as a root
// although the dump does not declare it: always for arrays of primitives, for
// other classes if the dump declares no such roots
// (HprofParserHandlerImpl.fillIn).
func (t *ruledTree) implied(class hprof.ID, declared bool) bool {
	return t.primitiveArray(class) || !declared && !strings.HasPrefix(t.written[class], "[")
}

// primitiveArray reports whether the instances of a class are arrays of a
// primitive type.
func (p *plain) primitiveArray(class hprof.ID) bool {
	name := p.written[class]
	return len(name) == 2 && name[0] == '['
}

// dominate finds the immediate dominators (Cooper, Harvey, Kennedy: A Simple,
// Fast Dominance Algorithm).
func (t *ruledTree) dominate() {
	n := int32(len(t.objects))
	starts := t.starts()
	t.order = t.search(starts)
	// order numbers the vertices from 1; 0 represents all roots together.
	vertices := make([]int32, n)
	for i, o := range t.order {
		vertices[o] = int32(i) + 1
	}
	from := make([][]int32, len(t.order)+1)
	for _, o := range starts {
		from[vertices[o]] = append(from[vertices[o]], 0)
	}
	for _, o := range t.order {
		for _, e := range t.edges[o] {
			if t.follows(e.kind) {
				from[vertices[e.to]] = append(from[vertices[e.to]], vertices[o])
			}
		}
	}
	up := settle(from)
	t.dominators = slices.Repeat([]int32{unreached}, int(n))
	for i, o := range t.order {
		t.dominators[o] = topLevel
		if d := up[i+1]; d > 0 {
			t.dominators[o] = t.order[d-1]
		}
	}
}

// search lists the objects that the roots reach, in reverse postorder.
func (t *ruledTree) search(starts []int32) (order []int32) {
	met := make([]bool, len(t.objects))
	type step struct {
		object int32
		next   int
	}
	for _, start := range starts {
		if met[start] {
			continue
		}
		met[start] = true
		for path := []step{{object: start}}; len(path) > 0; {
			top := &path[len(path)-1]
			if top.next == len(t.edges[top.object]) {
				order = append(order, top.object)
				path = path[:len(path)-1]
				continue
			}
			e := t.edges[top.object][top.next]
			top.next++
			if t.follows(e.kind) && !met[e.to] {
				met[e.to] = true
				path = append(path, step{object: e.to})
			}
		}
	}
	slices.Reverse(order)
	return order
}

// settle returns the immediate dominator of each vertex, given the references.
// Vertices are in reverse postorder, and the root is 0.
func settle(from [][]int32) []int32 {
	up := slices.Repeat([]int32{-1}, len(from))
	up[0] = 0
	for changed := true; changed; {
		changed = false
		for v := 1; v < len(from); v++ {
			common := int32(-1)
			for _, w := range from[v] {
				switch {
				case up[w] < 0 || common == 0:
				case common < 0:
					common = w
				default:
					for a := w; a != common; {
						if a > common {
							a = up[a]
						} else {
							common = up[common]
						}
					}
				}
			}
			if up[v] != common {
				up[v], changed = common, true
			}
		}
	}
	return up
}

// measure sums up the retained sizes.
func (t *ruledTree) measure() {
	t.sizes = t.declaredSizes()
	if t.layout {
		t.sizes = t.layoutSizes()
	}
	t.retained = make([]int64, len(t.objects))
	for _, o := range slices.Backward(t.order) {
		t.retained[o] += t.sizes[o]
		if d := t.dominators[o]; d >= 0 {
			t.retained[d] += t.retained[o]
		}
	}
}

// declaredSizes returns the sizes described in docs/formats/analysis.md, "How
// bytes are counted".
func (t *ruledTree) declaredSizes() (sizes []int64) {
	instance := map[string]int64{}
	for id, c := range t.classes {
		instance[t.names[id]] = int64(c.InstanceSize)
	}
	for _, o := range t.objects {
		size := int64(0)
		if c := t.classes[o.class]; c != nil {
			size = int64(c.InstanceSize)
		}
		switch o.kind {
		case hprof.SubObjectArray:
			size += o.count * int64(t.idSize)
		case hprof.SubPrimitiveArray:
			size = instance[t.className(o)] + o.count*int64(o.element.Size(t.idSize))
		case hprof.SubClassDump:
			size = instance["java.lang.Class"]
			for _, f := range t.classes[o.id].Statics {
				size += int64(f.Type.Size(t.idSize))
			}
		}
		sizes = append(sizes, size)
	}
	return sizes
}

// layoutSizes returns the sizes that Eclipse MAT computes
// (HprofParserHandlerImpl.calculateSizeRecursive, ClassImpl.setUsedHeapSize),
// for a JVM whose references take 4 or 8 bytes.
func (t *ruledTree) layoutSizes() (sizes []int64) {
	reference := t.referenceSize()
	header := int64(t.idSize) + reference
	for _, o := range t.objects {
		size := int64(0)
		switch o.kind {
		case hprof.SubInstance:
			size = t.instanceSize(o.class, reference)
		case hprof.SubObjectArray:
			size = header + 4 + o.count*reference
		case hprof.SubPrimitiveArray:
			size = align(header+4, reference) + o.count*int64(o.element.Size(t.idSize))
		case hprof.SubClassDump:
			for _, f := range t.classes[o.id].Statics {
				size += int64(f.Type.Size(int(reference)))
			}
		}
		sizes = append(sizes, align(size, 8))
	}
	return sizes
}

// instanceSize returns the size of an instance of a class, before it is padded
// to 8 bytes.
func (p *plain) instanceSize(class hprof.ID, reference int64) int64 {
	c := p.classes[class]
	if c == nil || c.Super == 0 {
		return int64(p.idSize) + reference
	}
	size := p.instanceSize(c.Super, reference)
	for _, f := range c.Fields {
		size += int64(f.Type.Size(int(reference)))
	}
	return align(size, reference)
}

func align(n, to int64) int64 { return (n + to - 1) / to * to }

// referenceSize returns the size of a reference in the JVM. The size is 4 bytes
// if IDs have 4 bytes, or if some array is too close to the next one for
// elements of 8 bytes.
func (p *plain) referenceSize() int64 {
	if p.idSize == 4 {
		return 4
	}
	var arrays []plainObject
	for _, o := range p.objects {
		if o.kind == hprof.SubObjectArray {
			arrays = append(arrays, o)
		}
	}
	slices.SortFunc(arrays, func(a, b plainObject) int { return cmp.Compare(a.id, b.id) })
	for i := 1; i < len(arrays); i++ {
		if arrays[i].id < arrays[i-1].id+hprof.ID(16+8*arrays[i-1].count) {
			return 4
		}
	}
	return 8
}

// jvmDumps are the recorded dumps of JVMs, the smallest first.
var jvmDumps = []string{
	"hprof-32.bin", "mat-sun_jdk6_30_x64_compressedOops.hprof", "ahat-RI.hprof", "mat-sun_jdk6_32bit.hprof",
	"mat-sun_jdk6_18_x32.hprof",
	"hprof-64.bin", "pyhprof-example-java.hprof", "mat-openjdk_jdk11_04_x64.hprof.gz",
}

// TestPlain compares the engine's tree with a textbook one, for the dumps of
// JVMs.
func TestPlain(t *testing.T) {
	for _, name := range jvmDumps {
		if !recorded.Long() && strings.HasSuffix(name, ".gz") {
			continue // takes longer than all other dumps
		}
		t.Run(name, func(t *testing.T) {
			dump := recorded.Read(t, "hprof", name)
			checkEngine(t, readPlain(t, dump).tree(engineRules), load(t, dump, heap.Options{Model: heap.Leakgate}))
		})
	}
}

// checkEngine compares each object and each row of the histogram with the
// engine's results. Heap dumps of JVMs do not contain native memory.
func checkEngine(t *testing.T, want *ruledTree, g *heap.Graph) {
	t.Helper()
	if g.Objects != int64(len(want.objects)) {
		t.Fatalf("%d objects, want %d", g.Objects, len(want.objects))
	}
	for i, o := range want.objects {
		n, ok := g.Find(o.id)
		if !ok {
			t.Fatalf("%#x not found", o.id)
		}
		dominator := unreached
		if inTree(g, n) {
			dominator = topLevel
			if d, ok := g.Dominator(n); ok {
				dominator = want.numbers[g.ID(d)]
			}
		}
		retained := want.retained[i]
		if got := g.Retained(n).Java; dominator != want.dominators[i] || got != retained ||
			g.Shallow(n).Java != want.sizes[i] {
			t.Fatalf("%#x (%s): dominator %d, %d bytes, retains %d; want %d, %d, %d", o.id, want.className(o),
				dominator, g.Shallow(n).Java, got, want.dominators[i], want.sizes[i], retained)
		}
	}
	rows := want.byName()
	for _, r := range g.Histogram() {
		if r.Retained.Java != rows[r.Class] {
			t.Errorf("%s retains %d, want %d", r.Class, r.Retained.Java, rows[r.Class])
		}
		delete(rows, r.Class)
	}
	if len(rows) > 0 {
		t.Errorf("%d rows are missing: %v", len(rows), rows)
	}
	t.Logf("%d objects and %d classes agree with the engine", len(want.objects), len(g.Histogram()))
}

// byName adds up the objects of all classes with the same name: an object below
// another object whose class has that name is counted with that object.
func (t *ruledTree) byName() map[string]int64 {
	rows, above := map[string]int64{}, map[string]int{}
	for _, o := range t.objects {
		rows[t.className(o)] = 0
	}
	t.walk(func(o int32) {
		name := t.className(t.objects[o])
		if above[name] == 0 {
			rows[name] += t.retained[o]
		}
		above[name]++
	}, func(o int32) { above[t.className(t.objects[o])]-- })
	return rows
}

// walk visits the tree depth first.
func (t *ruledTree) walk(enter, leave func(int32)) {
	below := make([][]int32, len(t.objects))
	var pending []int32
	for _, o := range t.order {
		if d := t.dominators[o]; d >= 0 {
			below[d] = append(below[d], o)
		} else {
			pending = append(pending, o)
		}
	}
	// Inverting the bits marks an entry whose children were visited.
	for len(pending) > 0 {
		o := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if o < 0 {
			leave(^o)
			continue
		}
		enter(o)
		pending = append(append(pending, ^o), below[o]...)
	}
}
