package hproftest

import (
	"cmp"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// artState is the state of ART while it writes a dump (runtime/hprof/hprof.cc).
type artState struct {
	// objects is the number of objects in the open segment, including roots.
	objects int
	// heap is the heap of the latest HEAP_DUMP_INFO in the open segment.
	heap uint32
	// simple holds those roots already written that have no thread.
	simple map[hprof.Root]bool
}

const (
	artObjects = 128
	artBytes   = 4096
	// ART invents these field names, which no class declares; classPrefix is
	// the beginning of several names.
	classOverhead  = "$classOverhead"
	staticOverhead = "$staticOverhead"
	classPrefix    = "$class$"
	runtimeObjects = "runtimeInternalObjects"
)

// artClassFields lists the fields of java.lang.Class on Android 8 to 15, in
// their order.
var artClassFields = []string{
	"int accessFlags", "int classFlags", "object classLoader", "int classSize", "int clinitThreadId",
	"object componentType",
	"short copiedMethodsOffset", "object dexCache", "int dexClassDefIndex", "int dexTypeIndex", "object extData",
	"long iFields",
	"object ifTable", "long methods", "object name", "int numReferenceInstanceFields", "int numReferenceStaticFields",
	"int objectSize",
	"int objectSizeAllocFastPath", "int primitiveType", "int referenceInstanceOffsets", "long sFields", "int status",
	"object superClass",
	"short virtualMethodsOffset", "object vtable",
}

// artHead writes names, classes and the single empty stack trace.
func (d *dump) artHead() {
	// The tables are sorted C++ maps: strings by value, classes by address.
	slices.SortFunc(d.used, func(a, b *Class) int { return cmp.Compare(d.of(a.ref), d.of(b.ref)) })
	slices.Sort(d.listed)
	for _, s := range d.listed {
		d.w.String(d.names[s], s)
	}
	for _, c := range d.used {
		d.w.LoadClass(hprof.LoadedClass{Serial: d.serials[c], Class: d.of(c.ref), Name: d.names[d.className(c)]})
	}
	d.w.Trace(hprof.Trace{})
}

func (d *dump) artBody() []step {
	roots := d.artRoots()
	// Ballast is in the app's space, which ART writes first.
	app := slices.IndexFunc(d.order, func(r Ref) bool { return d.objects[r].space != App })
	if app < 0 || d.Shuffle {
		app = len(d.order)
	}
	return []step{
		once(d.nextSegment),
		each(len(roots), func(i int) { d.artRoot(roots[i]) }),
		each(app, func(i int) { d.artObject(d.order[i]) }),
		d.ballast.write(d),
		each(len(d.order)-app, func(i int) { d.artObject(d.order[app+i]) }),
	}
}

// nextSegment begins a segment, which does not belong to a heap yet.
func (d *dump) nextSegment() {
	if d.Segments != nil {
		return
	}
	d.w.EndSegment()
	d.w.BeginSegment()
	d.art.objects, d.art.heap = 0, 0
}

// constrain corresponds to CheckHeapSegmentConstraints.
func (d *dump) constrain() {
	if d.art.objects >= artObjects || d.w.SegmentBytes() >= artBytes {
		d.nextSegment()
	}
}

// enter writes a HEAP_DUMP_INFO if the next object belongs to a different heap
// than the previous one.
func (d *dump) enter(s Space) {
	d.constrain()
	heap, name := uint32('A'), "app"
	switch s {
	case Image:
		heap, name = 'I', "image"
	case Zygote:
		heap, name = 'Z', "zygote"
	}
	if heap == d.art.heap || d.Converted {
		return
	}
	d.art.heap = heap
	d.w.HeapInfo(heap, d.name(name))
}

// artRoots returns all roots except those of the image, in the order in which
// the runtime visits them: threads, JNI, the runtime's own, primitive classes,
// interned strings, classes of the boot class loader, other roots.
func (d *dump) artRoots() []hprof.Root {
	var all []hprof.Root
	for _, t := range d.threads {
		all = append(all,
			hprof.Root{Kind: hprof.SubRootThreadObject, Object: d.of(t.Ref), Thread: t.Serial, Trace: 0xffffffff})
	}
	for _, r := range d.roots {
		all = append(all, hprof.Root{Kind: r.kind, Object: d.of(r.object), Thread: r.thread, Frame: -1})
	}
	for _, c := range d.classes {
		switch {
		case c.primitive != 0:
			all = append(all, hprof.Root{Kind: hprof.SubRootUnknown, Object: d.of(c.ref)})
		case c.loader == 0:
			all = append(all, hprof.Root{Kind: hprof.SubRootStickyClass, Object: d.of(c.ref)})
		}
	}
	slices.SortStableFunc(all, func(a, b hprof.Root) int {
		if byRank := cmp.Compare(rank(a.Kind), rank(b.Kind)); byRank != 0 || rank(a.Kind) > 0 {
			return byRank
		}
		return cmp.Or(cmp.Compare(a.Thread, b.Thread), cmp.Compare(withinThread(a.Kind), withinThread(b.Kind)))
	})
	return all
}

func rank(kind hprof.SubTag) int {
	if withinThread(kind) >= 0 {
		return 0
	}
	order := []hprof.SubTag{
		0, hprof.SubRootJNIGlobal, hprof.SubRootVMInternal, hprof.SubRootUnknown, hprof.SubRootInternedString,
		hprof.SubRootStickyClass, hprof.SubRootDebugger,
	}
	if i := slices.Index(order, kind); i > 0 {
		return i
	}
	return len(order)
}

func withinThread(kind hprof.SubTag) int {
	return slices.Index([]hprof.SubTag{
		hprof.SubRootThreadObject, hprof.SubRootJNILocal, hprof.SubRootNativeStack, hprof.SubRootThreadBlock,
		hprof.SubRootJavaFrame,
	}, kind)
}

// artRoot corresponds to MarkRootObject.
func (d *dump) artRoot(r hprof.Root) {
	d.constrain()
	d.art.objects++
	simple := hprof.Root{Kind: r.Kind, Object: r.Object}
	switch r.Kind {
	case hprof.SubRootUnknown, hprof.SubRootStickyClass, hprof.SubRootMonitorUsed, hprof.SubRootInternedString,
		hprof.SubRootDebugger, hprof.SubRootVMInternal:
		if d.art.simple[simple] {
			return
		}
		d.art.simple[simple] = true
	}
	if d.Converted && r.Kind > hprof.SubRootThreadObject {
		r = hprof.Root{Kind: hprof.SubRootUnknown, Object: r.Object}
	}
	d.w.Root(r)
}

// artObject corresponds to DumpHeapObject.
func (d *dump) artObject(r Ref) {
	o := &d.objects[r]
	if o.space != App {
		d.artRoot(hprof.Root{Kind: hprof.SubRootVMInternal, Object: d.of(r)})
	}
	d.enter(o.space)
	switch o.shape {
	case ofClass:
		d.artClass(o.class)
	case ofText:
		d.artString(r, o)
	case ofFields:
		d.instance(r, o)
		if d.hasRuntimeObjects(o.class) {
			d.w.ObjectArray(d.of(r)+align/2, 0, d.class(d.byName[objectClass+"[]"]), d.runtimeObjects(r))
		}
	default:
		d.class(o.class)
		d.plain(r, o)
	}
	d.art.objects++
}

// artString writes a String, followed by its characters as a separate array.
func (d *dump) artString(r Ref, o *object) {
	value := d.values[r]
	d.stringFields(d.of(r), o.class, uint32(len(o.text)), javaHash(o.text), value)
	kind := hprof.Char
	d.buf = d.buf[:0]
	if d.compressed(o.text) {
		kind = hprof.Byte
	}
	for _, u := range o.text {
		d.buf = d.value(d.buf, kind, uint64(u))
	}
	d.w.PrimitiveArray(value, 0, kind, d.buf)
}

// stringFields writes the fields of the String itself: count, hash, the
// characters, and the fields that every object has.
func (d *dump) stringFields(id hprof.ID, c *Class, count, hash uint32, value hprof.ID) {
	d.buf = d.value(d.buf[:0], hprof.Int, uint64(count))
	d.buf = d.value(d.buf, hprof.Int, uint64(hash))
	d.buf = d.value(d.buf, hprof.Object, uint64(value))
	d.buf = d.value(d.buf, hprof.Object, uint64(d.class(c)))
	d.buf = d.value(d.buf, hprof.Int, 0)
	d.w.Instance(id, 0, d.of(c.ref), d.buf)
}

// javaHash corresponds to String.hashCode.
func javaHash(text []uint16) (h uint32) {
	for _, u := range text {
		h = 31*h + uint32(u)
	}
	return h
}

// hasRuntimeObjects reports whether a class or one of its superclasses has the
// field that ART adds in AddRuntimeInternalObjectsField.
func (d *dump) hasRuntimeObjects(c *Class) bool {
	for ; c != nil; c = c.super {
		if c.addsRuntimeObjects() {
			return true
		}
	}
	return false
}

func (c *Class) addsRuntimeObjects() bool {
	return c.name == "java.lang.DexCache" || c.name == "java.lang.ClassLoader"
}

// runtimeObjects returns the objects that the runtime keeps alive for a class
// loader: its classes.
func (d *dump) runtimeObjects(loader Ref) []hprof.ID {
	d.elements = d.elements[:0]
	for _, c := range d.classes {
		if c.loader == loader {
			d.elements = append(d.elements, d.of(c.ref))
		}
	}
	slices.Sort(d.elements)
	return d.elements
}

// artClass corresponds to DumpHeapClass.
func (d *dump) artClass(c *Class) {
	id := d.of(c.ref)
	d.statics, d.fields = d.statics[:0], d.fields[:0]
	d.artOverhead(c, id)
	if d.sdk >= 26 {
		d.classStatics(c)
	}
	for _, s := range c.statics {
		v := s.value
		if s.kind == hprof.Object {
			v = uint64(d.of(Ref(v)))
		}
		d.statics = append(d.statics, hprof.Static{Name: d.name(s.name), Type: s.kind, Value: v})
	}
	for _, i := range d.fieldOrder(c) {
		d.fields = append(d.fields, hprof.Field{Name: d.name(c.fields[i].name), Type: c.fields[i].kind})
	}
	switch {
	case c.name == stringClass:
		d.fields = append(d.fields, hprof.Field{Name: d.name("value"), Type: hprof.Object})
	case c.addsRuntimeObjects():
		d.fields = append(d.fields, hprof.Field{Name: d.name(runtimeObjects), Type: hprof.Object})
	}
	d.class(c)
	d.class(c.super)
	dump := hprof.Class{
		ID: id, Loader: d.of(c.loader), InstanceSize: d.artInstanceSize(c), Statics: d.statics, Fields: d.fields,
	}
	if c.super != nil {
		dump.Super = d.of(c.super.ref)
	}
	d.w.Class(&dump)
}

func (d *dump) artInstanceSize(c *Class) uint32 {
	switch {
	case c.name == stringClass:
		return stringHeader
	case c.name == classClass && d.sdk >= 26, c.component != nil, c.primitive != 0:
		return 0
	}
	return uint32(c.artSize())
}

// artOverhead writes the method table of a class as a separate array, if it is
// longer than 4 bytes. Before Android 8, this array contained the memory of the
// static fields.
func (d *dump) artOverhead(c *Class, id hprof.ID) {
	name, n := classOverhead, c.overhead()
	if d.sdk < 26 {
		if name, n = staticOverhead, c.artClassSize()-classHeader; len(c.statics) == 0 {
			return
		}
	}
	field := func(name string, t hprof.Type, v uint64) {
		d.statics = append(d.statics, hprof.Static{Name: d.name(name), Type: t, Value: v})
	}
	switch {
	case n > 4:
		d.buf = append(d.buf[:0], make([]byte, n-4)...)
		d.w.PrimitiveArray(id|1, 0, hprof.Byte, d.buf)
		field(name, hprof.Object, uint64(id|1))
	case n == 4:
		field(name, hprof.Int, 0)
	case n == 3:
		field(name, hprof.Short, 0)
		field(name+"2", hprof.Byte, 0)
	case n == 2:
		field(name, hprof.Short, 0)
	case n == 1:
		field(name, hprof.Byte, 0)
	}
}

// classStatics writes the fields of the class object as static fields.
func (d *dump) classStatics(c *Class) {
	values := d.classValues(c)
	for _, f := range d.byName[classClass].fields {
		d.statics = append(d.statics,
			hprof.Static{Name: d.name(classPrefix + f.name), Type: f.kind, Value: values[f.name]})
	}
	for _, f := range d.byName[objectClass].fields {
		d.statics = append(d.statics,
			hprof.Static{Name: d.name(classPrefix + f.name), Type: f.kind, Value: values[f.name]})
	}
}

// classValues returns the nonzero fields of a class object.
func (d *dump) classValues(c *Class) map[string]uint64 {
	cache := d.appCache
	if c.loader == 0 {
		cache = d.bootCache
	}
	if c.component != nil || c.primitive != 0 {
		cache = 0
	}
	v := map[string]uint64{
		"accessFlags": 0x80001, "classLoader": uint64(d.of(c.loader)), "classSize": uint64(c.artClassSize()),
		"copiedMethodsOffset": uint64(c.methods),
		"dexCache":            uint64(d.of(cache)), "dexClassDefIndex": uint64(c.ref), "dexTypeIndex": uint64(c.ref) +
			9, "ifTable": uint64(d.of(d.ifTable)),
		"methods": 0x7f0000000000 + uint64(c.ref)*640, "primitiveType": 0x20000, "status": 11,
		"shadow$_klass_":       uint64(d.of(d.byName[classClass].ref)),
		"virtualMethodsOffset": uint64(c.methods / 2),
	}
	if c.super != nil {
		v["superClass"] = uint64(d.of(c.super.ref))
	}
	if c.component != nil {
		v["componentType"] = uint64(d.of(c.component.ref))
	}
	if c.component == nil && c.primitive == 0 && !c.bare {
		v["objectSize"] = uint64(c.artSize())
		v["objectSizeAllocFastPath"] = uint64(aligned(int64(c.artSize())))
	}
	for _, f := range c.fields {
		if f.kind == hprof.Object && f.only != HotSpot {
			v["numReferenceInstanceFields"]++
		}
	}
	for _, s := range c.statics {
		if s.kind == hprof.Object {
			v["numReferenceStaticFields"]++
		}
	}
	return v
}
