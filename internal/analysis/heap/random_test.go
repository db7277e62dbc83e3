package heap_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// dice generates a world from a seed.
type dice struct {
	*rand.Rand
	*world
	// own holds the classes of instances; arrays holds the array classes.
	own, arrays []*class
	// gone holds missing objects, the targets of dangling references.
	gone []*object
	// instances holds the objects of each class.
	instances map[string][]*object
}

func newDice(seed uint64) *dice {
	d := &dice{Rand: rand.New(rand.NewPCG(seed, 7)), world: &world{idSize: 4}}
	if d.one(2) {
		d.idSize = 8
	}
	d.jvm = d.one(4)
	return d
}

// one returns true with probability 1/n.
func (d *dice) one(n int) bool { return d.IntN(n) == 0 }

// randomWorld generates a heap of up to n objects in addition to its classes.
func randomWorld(seed uint64, n int) (*dice, *world) {
	d := newDice(seed)
	d.declareRuntime()
	d.declareOwn()
	d.gone = append(d.gone, &object{n: math.MaxInt}, &object{n: math.MaxInt})
	for range n {
		d.make()
	}
	d.wire()
	d.place()
	d.rootSome()
	d.load(seed)
	return d, d.world
}

// declareRuntime declares the classes that the runtime treats specially.
func (d *dice) declareRuntime() {
	var hidden []field
	if !d.jvm {
		hidden = []field{{"shadow$_klass_", hprof.Object}, {"shadow$_monitor_", hprof.Int}}
	}
	object := d.class("java.lang.Object", nil, 8, hidden...)
	class := d.class("java.lang.Class", object, uint32(d.IntN(3)*56))
	d.own = append(d.own, object)
	if d.one(2) {
		d.class("byte[]", object, uint32(d.IntN(2)*12))
	}
	d.arrays = append(d.arrays, d.class("java.lang.Object[]", object, uint32(d.IntN(2)*12)))
	if d.one(8) {
		d.leave(class.object)
	}
	if d.one(2) {
		d.declareReferences(object)
	}
}

func (d *dice) declareReferences(object *class) {
	of := func(names ...string) (list []field) {
		for _, name := range names {
			list = append(list, field{name, hprof.Object})
		}
		return list
	}
	ref := d.class("java.lang.ref.Reference", object, 24, of("queue", "referent")...)
	soft := d.class("java.lang.ref.SoftReference", ref, 40, field{"timestamp", hprof.Long})
	weak := d.class("java.lang.ref.WeakReference", ref, 24)
	phantom := d.class("java.lang.ref.PhantomReference", ref, 24)
	finalizer := d.class("java.lang.ref.FinalizerReference", ref, 36, of("next", "prev", "zombie")...)
	keyed := d.class("leakcanary.KeyedWeakReference", weak, 40, of("key", "name")...)
	// A field with the same name in a subclass is an ordinary strong reference.
	traitor := d.class("com.example.Shadowing", soft, 44, of("referent")...)
	// A class with two special superclasses is treated like the nearer one.
	both := d.class("java.lang.ref.Finalizer", weak, 24)
	cleaner := d.class("sun.misc.Cleaner", phantom, 36, of("next", "prev", "thunk")...)
	thunk := d.class("libcore.util.NativeAllocationRegistry$CleanerThunk", object, 20, field{"nativePtr", hprof.Long},
		field{"this$0", hprof.Object})
	registry := d.class("libcore.util.NativeAllocationRegistry", object, 32, field{"classLoader", hprof.Object},
		field{"size", hprof.Long})
	all := []*class{ref, soft, weak, phantom, finalizer, keyed, traitor, both}
	for range 2 {
		d.own = append(d.own, all[d.IntN(len(all))], weak, soft)
	}
	if d.one(2) {
		d.own = append(d.own, cleaner, thunk, registry, cleaner, thunk)
	}
}

// declareOwn declares the classes of an app: leaves and others, with static
// fields. Some names are declared twice, and some classes are not in the dump.
func (d *dice) declareOwn() {
	types := []hprof.Type{hprof.Object, hprof.Object, hprof.Object, hprof.Boolean, hprof.Int, hprof.Long, hprof.Short}
	for i := range 1 + d.IntN(6) {
		super := d.classes[0]
		if i > 0 && d.one(3) {
			super = d.own[d.IntN(len(d.own))]
		}
		var fields []field
		for f := range d.IntN(5) {
			fields = append(fields, field{fmt.Sprintf("f%d", f), types[d.IntN(len(types))]})
		}
		name := fmt.Sprintf("com.example.C%d", i)
		if i > 0 && d.one(12) {
			name = fmt.Sprintf("com.example.C%d", i-1)
		}
		c := d.class(name, super, uint32(d.IntN(64)), fields...)
		for f := range d.IntN(3) {
			c.statics = append(c.statics, static{field: field{fmt.Sprintf("s%d", f), types[d.IntN(len(types))]}})
		}
		if d.one(12) {
			d.leave(c.object)
			c.nameless = d.one(2)
		}
		d.own = append(d.own, c)
		if d.one(3) {
			d.arrays = append(d.arrays, d.class(name+"[]", d.classes[0], 0))
		}
	}
}

// load sets the loaders of some classes, and the other references of their
// class records.
func (d *dice) load(seed uint64) {
	own := &dice{Rand: rand.New(rand.NewPCG(seed, 9)), world: d.world, gone: d.gone}
	some := func() *object {
		switch own.IntN(8) {
		case 0:
			return own.gone[own.IntN(len(own.gone))]
		case 1, 2, 3:
			return nil
		}
		return own.objects[own.IntN(len(own.objects))]
	}
	for _, c := range d.classes {
		if own.one(3) {
			continue
		}
		c.loader = some()
		if own.one(4) {
			c.signers, c.domain = some(), some()
		}
	}
}

// leave removes an object from the world.
func (d *dice) leave(o *object) {
	for i := range d.objects {
		if d.objects[i] == o {
			d.objects = append(d.objects[:i], d.objects[i+1:]...)
			o.n = math.MaxInt
			d.gone = append(d.gone, o)
			return
		}
	}
}

// make creates an object without references.
func (d *dice) make() *object {
	switch d.IntN(8) {
	case 0:
		return d.primitives([]hprof.Type{hprof.Byte, hprof.Char, hprof.Long}[d.IntN(3)], uint32(d.IntN(40)))
	case 1:
		return d.noData(hprof.Byte, uint32(d.IntN(1<<17)))
	case 2:
		return d.array(d.arrays[d.IntN(len(d.arrays))], make([]*object, d.IntN(6))...)
	}
	return d.instance(d.own[d.IntN(len(d.own))])
}

// wire sets the targets of all references. Most targets are nearby objects,
// which creates lists and trees. The other targets are arbitrary objects, null,
// the object itself, a previous target, or a missing object.
func (d *dice) wire() {
	d.number()
	d.instances = map[string][]*object{}
	for _, o := range d.objects {
		if o.kind == hprof.SubInstance {
			d.instances[o.class.name] = append(d.instances[o.class.name], o)
		}
	}
	for _, o := range d.objects {
		d.rewire(o)
	}
}

// rewire sets the targets of the references of one object.
func (d *dice) rewire(o *object) {
	var last *object
	end := func() *object {
		switch d.IntN(16) {
		case 0, 1, 2:
			last = nil
		case 3:
			last = o
		case 4, 5:
		case 6:
			if d.one(4) {
				return d.gone[d.IntN(len(d.gone))]
			}
		case 7, 8, 9:
			last = d.objects[d.IntN(len(d.objects))]
		default:
			last = d.objects[min(max(o.n+d.IntN(9)-2, 0), len(d.objects)-1)]
		}
		return last
	}
	d.wireObject(o, end)
}

func (d *dice) wireObject(o *object, end func() *object) {
	for i := range o.elements {
		o.elements[i] = end()
	}
	if o.kind == hprof.SubInstance {
		for i, f := range o.class.layout() {
			o.values[i] = d.value(o, f, end)
		}
	}
	if o.kind == hprof.SubClassDump {
		for i, s := range o.class.statics {
			o.class.statics[i].value = d.value(o, placed{s.field, o.class}, end)
		}
	}
}

func (d *dice) value(o *object, f placed, end func() *object) value {
	switch {
	case f.kind != hprof.Object:
		if f.name == "size" && !d.one(4) {
			return value{bits: uint64(d.IntN(1 << 20))}
		}
		return value{bits: d.Uint64() >> (64 - 8*f.kind.Size(4))}
	case f.name == "shadow$_klass_":
		return value{object: o.class.object}
	case f.name == "thunk" && !d.one(8):
		return value{object: d.any("libcore.util.NativeAllocationRegistry$CleanerThunk")}
	case f.name == "this$0" && !d.one(8):
		return value{object: d.any("libcore.util.NativeAllocationRegistry")}
	case f.name == "referent":
		// The referent is never an object that is missing from the dump,
		// because such a referent is not counted anywhere.
		for {
			if e := end(); e == nil || d.has(e) {
				return value{object: e}
			}
		}
	}
	return value{object: end()}
}

// any returns an instance of a class, or nil if there is none.
func (d *dice) any(name string) *object {
	if all := d.instances[name]; len(all) > 0 {
		return all[d.IntN(len(all))]
	}
	return nil
}

// place assigns each object a heap, and an ID as one of several runtimes would
// assign it.
func (d *dice) place() {
	at, step := uint64(0x1000+d.IntN(1<<30)), uint64(8)
	switch d.IntN(6) {
	case 0:
		at, step = 1, 1
	case 1:
		step = 4
	case 2:
		step = 1 << (20 - bits.Len(uint(len(d.objects)/512)))
	}
	heaps := d.one(3)
	for _, i := range d.Perm(len(d.objects)) {
		o := d.objects[i]
		o.id = hprof.ID(at)
		at += step * uint64(1+d.IntN(4))
		if step == 8 && o.kind == hprof.SubPrimitiveArray && d.one(2) {
			o.id |= 1
		}
		if heaps {
			o.heap = []uint32{'A', 'A', 'I', 'Z', 0}[d.IntN(5)]
		}
	}
	if d.idSize == 8 && d.one(4) {
		for _, o := range d.objects {
			o.id = hprof.ID(d.Uint64())
		}
	}
	d.placeGone()
}

// placeGone assigns missing objects IDs that no object has; some lie between
// the IDs of objects.
func (d *dice) placeGone() {
	used := map[hprof.ID]bool{0: true}
	for _, o := range d.objects {
		used[o.id] = true
	}
	for _, o := range d.gone {
		for used[o.id] {
			o.id = d.objects[d.IntN(len(d.objects))].id + hprof.ID(d.IntN(64))
		}
		used[o.id] = true
	}
}

var rootKinds = []hprof.SubTag{
	hprof.SubRootUnknown, hprof.SubRootJNIGlobal, hprof.SubRootJNILocal, hprof.SubRootJavaFrame,
	hprof.SubRootNativeStack, hprof.SubRootStickyClass,
	hprof.SubRootThreadBlock, hprof.SubRootMonitorUsed, hprof.SubRootThreadObject, hprof.SubRootInternedString,
	hprof.SubRootFinalizing, hprof.SubRootDebugger,
	hprof.SubRootReferenceCleanup, hprof.SubRootVMInternal, hprof.SubRootJNIMonitor, hprof.SubRootUnreachable,
}

func (d *dice) rootSome() {
	for range d.IntN(5) + d.IntN(1+len(d.objects)/20) {
		d.root(rootKinds[d.IntN(len(rootKinds))], d.objects[d.IntN(len(d.objects))])
	}
	if d.one(3) {
		d.root(hprof.SubRootJNIGlobal, d.gone[d.IntN(len(d.gone))])
	}
	if d.one(2) {
		for _, c := range d.classes {
			if d.one(2) && d.has(c.object) {
				d.root(hprof.SubRootStickyClass, c.object)
			}
		}
	}
}

// form returns a form in which the parts of a dump whose order is arbitrary are
// shuffled.
func (d *dice) form() form {
	f := form{rootsAt: d.IntN(len(d.objects) + 2), namesLast: d.one(3)}
	switch d.IntN(3) {
	case 0:
		f.segments = hproftest.Segmentation{Single: true}
	case 1:
		f.segments = hproftest.Segmentation{Records: 1 + d.IntN(4)}
	}
	if !d.one(4) {
		f.order = d.Perm(len(d.objects))
	}
	return f
}

// TestRandomGraphs compares everything that a graph reports with brute force.
func TestRandomGraphs(t *testing.T) {
	graphs := uint64(10_000)
	if racing {
		graphs = 1_000
	}
	const shares = 4
	for share := range uint64(shares) {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			t.Parallel()
			for seed := share; seed < graphs && !t.Failed(); seed += shares {
				checkRandom(t, seed)
			}
		})
	}
}

func checkRandom(t *testing.T, seed uint64) {
	size := rand.New(rand.NewPCG(seed, 1)).Float64()
	d, w := randomWorld(seed, 1+int(size*size*size*size*300))
	dump := w.write(t, d.form()).dump
	workers := 1 + d.IntN(2)
	w.model = []heap.SizeModel{heap.Ahat, heap.Leakgate}[seed/4%2]
	checkModel(t, seed, w, dump, workers)
}

func checkModel(t *testing.T, seed uint64, w *world, dump []byte, workers int) {
	g, err := open(dump, heap.Options{Workers: workers, Model: w.model})
	if err != nil {
		t.Errorf("seed %d: %v", seed, err)
		return
	}
	defer g.Close()
	if err := w.solve().differs(g); err != nil {
		t.Errorf("seed %d: %v", seed, err)
		return
	}
	if err := broken(g); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
}

// open returns the graph of the last heap of a dump in memory.
func open(dump []byte, o heap.Options) (*heap.Graph, error) {
	f, err := hprof.Open(context.Background(), bytes.NewReader(dump), int64(len(dump)))
	if err != nil {
		return nil, err
	}
	o.Snapshot = -1
	return heap.Load(context.Background(), f, o)
}
