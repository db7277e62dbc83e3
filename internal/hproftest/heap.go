package hproftest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Ref identifies an object of a Heap. The zero Ref is null.
type Ref uint32

// Fields holds the values of an instance by field name. Heap.Set lists the
// permitted types.
type Fields map[string]any

// Space is the part of ART's memory that contains an object; it is also the
// object's heap in the dump. HotSpot has only one space.
type Space uint8

// App is where apps allocate. Image contains the boot image. Zygote contains
// the objects that the zygote allocated before it forked.
const (
	App Space = iota
	Image
	Zygote
)

// Heap is the description of a heap. The first error, such as a field that the
// class does not have, is recorded and returned when the heap is written.
type Heap struct {
	sdk  int
	seed uint64
	// harmony selects the collections of Apache Harmony.
	harmony bool
	// objects contains the null object at index 0.
	objects []object
	classes []*Class
	byName  map[string]*Class
	roots   []root
	threads []thread
	interns map[string]Ref
	space   Space
	// loader is the class loader of the app; the caches are the DexCaches of
	// the boot class loader's classes and of the app's classes.
	loader, bootCache, appCache Ref
	// ifTable is the interface table of classes without interfaces.
	ifTable Ref
	// loaded is the list of the app's classes, through which HotSpot's loader
	// holds its classes.
	loaded  List
	java    javaState
	android androidState
	ballast Ballast
	err     error
}

// shape is the form in which an object is stored.
type shape uint8

const (
	ofFields shape = iota
	ofClass
	ofRefs
	ofData
	ofText
	ofFiller
	// ofCount is the shape of an array for which only the number of elements is
	// stored; ofNothing is the shape of an object that is not in the dump.
	ofCount
	ofNothing
)

// object is an object of any shape.
type object struct {
	shape shape
	space Space
	// element is the element type of a primitive array.
	element hprof.Type
	// class is the class of the object; for a class object, it is the class
	// that the object represents.
	class *Class
	// slots holds the values of an instance's fields, those of the superclass
	// first.
	slots []uint64
	refs  []Ref
	// data holds the elements of a primitive array, in big-endian order.
	data []byte
	text []uint16
	// count is the number of elements of a filler array, or of an array without
	// data.
	count uint32
	// only is the runtime to which the object is limited; 0 means that all
	// runtimes have the object.
	only Runtime
}

// Class is a class of a Heap.
type Class struct {
	ref   Ref
	name  string
	super *Class
	// fields holds the declared fields; first is the slot number of the first
	// field.
	fields  []field
	first   int
	statics []static
	// component is the element class of an array class; primitive is the type
	// that a class such as int.class represents.
	component *Class
	primitive hprof.Type
	loader    Ref
	// bare classes have no instances: abstract classes, interfaces, primitives.
	bare bool
	// only is the runtime to which the class is limited; 0 means that all
	// runtimes have the class.
	only Runtime
	// methods is the length of the class's virtual method table.
	methods int
}

type field struct {
	name string
	kind hprof.Type
	// only is the runtime to which the field is limited; 0 means that all
	// runtimes have the field.
	only Runtime
}

type static struct {
	name  string
	kind  hprof.Type
	value uint64
}

// root is a root of the heap; until the root is written, its object is a Ref.
type root struct {
	kind   hprof.SubTag
	object Ref
	thread uint32
	frame  int32
}

// thread is a thread of the heap.
type thread struct {
	Thread
	frames []string
}

// Ref returns the class object.
func (c *Class) Ref() Ref { return c.ref }

// Name returns the name of the class as in Java source code, such as int[] or
// a.B$C.
func (c *Class) Name() string { return c.name }

func (h *Heap) fail(format string, args ...any) {
	if h.err == nil {
		h.err = fmt.Errorf("describe the heap: "+format, args...)
	}
}

// Err returns the first error that occurred while the heap was described.
func (h *Heap) Err() error { return h.err }

func (h *Heap) add(o object) Ref {
	if o.shape != ofClass {
		o.space = h.space
	}
	h.objects = append(h.objects, o)
	return Ref(len(h.objects) - 1)
}

func (h *Heap) object(r Ref) *object {
	if int(r) >= len(h.objects) {
		h.fail("no object %d", r)
		r = 0
	}
	return &h.objects[r]
}

// In calls a function, and assigns the objects that it creates to the given
// space.
func (h *Heap) In(s Space, do func()) {
	before := h.space
	h.space = s
	do()
	h.space = before
}

// Class returns the most recently declared class with the given name.
func (h *Heap) Class(name string) *Class {
	if c := h.byName[name]; c != nil {
		return c
	}
	if element, ok := strings.CutSuffix(name, "[]"); ok {
		return h.Array(h.Class(element))
	}
	h.fail("no class %q", name)
	return h.byName[objectClass]
}

const (
	objectClass = "java.lang.Object"
	classClass  = "java.lang.Class"
	stringClass = "java.lang.String"
)

// Declare declares a class; without a superclass it extends java.lang.Object.
// Members are fields such as "int mCount" or "static object sInstance", whose
// type is a primitive type or object. A leading "art" or "jvm" declares an
// instance field that only ART or only HotSpot has. "abstract" alone means that
// the class has no instances; "art" alone means that HotSpot does not have the
// class. Each call declares a new class, even if a class with the name exists.
// Classes of Java and Android are in the boot image; all other classes belong
// to the app's class loader.
func (h *Heap) Declare(name string, super *Class, members ...string) *Class {
	if super == nil && name != objectClass {
		super = h.byName[objectClass]
	}
	c := &Class{name: name, super: super, methods: 2 + len(name)%7}
	space := App
	if ofBoot(name) {
		space = Image
	} else {
		c.loader = h.loader
	}
	if super != nil {
		c.first = super.first + len(super.fields)
		c.methods += super.methods
	}
	for _, m := range members {
		h.member(c, m)
	}
	h.enter(c, space)
	return c
}

// enter creates the class object of a class.
func (h *Heap) enter(c *Class, space Space) {
	c.ref = h.add(object{shape: ofClass, space: space, class: c})
	if c.loader != 0 {
		h.loaded.Add(c.ref)
	}
	h.classes = append(h.classes, c)
	h.byName[c.name] = c
}

// ofBoot reports whether the class belongs to the boot class loader.
func ofBoot(name string) bool {
	for _, p := range []string{"java.", "javax.", "android.", "dalvik.", "libcore.", "sun.", "jdk.", "com.android."} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return typeNamed(name) != 0
}

func (h *Heap) member(c *Class, text string) {
	words := strings.Fields(text)
	if len(words) == 1 {
		switch words[0] {
		case "abstract":
			c.bare = true
			return
		case "art":
			c.only = ART
			return
		}
	}
	f, isStatic := field{}, false
	for len(words) > 2 {
		switch words[0] {
		case "static":
			isStatic = true
		case "art":
			f.only = ART
		case "jvm":
			f.only = HotSpot
		default:
			h.fail("%s: cannot read %q in %q", c.name, words[0], text)
		}
		words = words[1:]
	}
	if len(words) == 2 {
		f.kind, f.name = typeNamed(words[0]), words[1]
	}
	switch {
	case f.kind == 0:
		h.fail("%s: %q is not a type and a name", c.name, text)
	case isStatic:
		c.statics = append(c.statics, static{name: f.name, kind: f.kind})
	default:
		c.fields = append(c.fields, f)
	}
}

// types lists the types that fields may have.
var types = []hprof.Type{
	hprof.Object, hprof.Boolean, hprof.Char, hprof.Float, hprof.Double, hprof.Byte, hprof.Short, hprof.Int, hprof.Long,
}

func typeNamed(name string) hprof.Type {
	for _, t := range types {
		if t.String() == name {
			return t
		}
	}
	return 0
}

// Array returns the class of arrays with element class c.
func (h *Heap) Array(c *Class) *Class {
	name := c.name + "[]"
	if array := h.byName[name]; array != nil && array.component == c {
		return array
	}
	array := &Class{
		name: name, super: h.byName[objectClass], component: c, loader: c.loader,
		methods: h.byName[objectClass].methods,
	}
	h.enter(array, h.objects[c.ref].space)
	return array
}

// New creates an instance.
func (h *Heap) New(c *Class, f Fields) Ref {
	r := h.add(object{shape: ofFields, class: c, slots: make([]uint64, c.first+len(c.fields))})
	h.objects[r].slots[0] = uint64(c.ref)
	// Fields are set in sorted order, because a value may create a string and
	// the dump must be reproducible.
	for _, name := range slices.Sorted(maps.Keys(f)) {
		h.Set(r, name, f[name])
	}
	return r
}

// Set sets a field of an instance; if several classes declare the name, the
// field of the most derived class is set. The value of an object field is nil,
// a Ref, a *Class, or a string, which creates a new java.lang.String. The value
// of any other field is a bool, int, int64 or float64; an int may be negative,
// or hold the bits of the field as an unsigned number.
func (h *Heap) Set(r Ref, name string, v any) {
	o := h.object(r)
	if o.shape != ofFields {
		h.fail("object %d has no fields, so no %q", r, name)
		return
	}
	for c := o.class; c != nil; c = c.super {
		for i, f := range c.fields {
			if f.name == name {
				h.setSlot(r, c.first+i, f.kind, c, v)
				return
			}
		}
	}
	h.fail("%s has no field %q", o.class.name, name)
}

// SetIn is like Set, but sets the field that the given class declares, even if
// a subclass declares a field with the same name.
func (h *Heap) SetIn(r Ref, c *Class, name string, v any) {
	for i, f := range c.fields {
		if f.name == name && h.object(r).shape == ofFields && h.object(r).class.extends(c) {
			h.setSlot(r, c.first+i, f.kind, c, v)
			return
		}
	}
	h.fail("object %d has no field %q declared by %s", r, name, c.name)
}

func (c *Class) extends(super *Class) bool {
	for ; c != nil; c = c.super {
		if c == super {
			return true
		}
	}
	return false
}

func (h *Heap) setSlot(r Ref, slot int, kind hprof.Type, c *Class, v any) {
	bits := h.bits(kind, c.name, v)
	h.objects[r].slots[slot] = bits
}

// SetStatic sets a static field of a class.
func (h *Heap) SetStatic(c *Class, name string, v any) {
	for i, s := range c.statics {
		if s.name == name {
			c.statics[i].value = h.bits(s.kind, c.name, v)
			return
		}
	}
	h.fail("%s has no static field %q", c.name, name)
}

// bits returns the bits of a value; for an object, the bits are its Ref.
func (h *Heap) bits(kind hprof.Type, where string, v any) uint64 {
	size := 8 * kind.Size(8)
	low := uint64(math.MaxUint64) >> (64 - size)
	switch v := v.(type) {
	case nil:
		return 0
	case bool:
		if kind == hprof.Boolean {
			return map[bool]uint64{true: 1}[v]
		}
	case int:
		return h.bits(kind, where, int64(v))
	case int64:
		fits := size == 64 || v >= -1<<(size-1) && v <= int64(low)
		if kind != hprof.Object && kind != hprof.Float && kind != hprof.Double && kind != hprof.Boolean && fits {
			return uint64(v) & low
		}
	case float64:
		switch kind {
		case hprof.Float:
			return uint64(math.Float32bits(float32(v)))
		case hprof.Double:
			return math.Float64bits(v)
		}
	default:
		if kind == hprof.Object {
			return uint64(h.reference(v))
		}
	}
	h.fail("%s: %v of type %T is not a value of type %v", where, v, v, kind)
	return 0
}

// reference converts a value that denotes an object to a Ref.
func (h *Heap) reference(v any) Ref {
	switch v := v.(type) {
	case Ref:
		h.object(v)
		return v
	case *Class:
		if v != nil {
			return v.ref
		}
		return 0
	case string:
		return h.String(v)
	}
	h.fail("%v of type %T is not an object", v, v)
	return 0
}

// Objects creates an array of objects with the given element class.
func (h *Heap) Objects(element *Class, elements ...Ref) Ref {
	for _, e := range elements {
		h.object(e)
	}
	return h.add(object{shape: ofRefs, class: h.Array(element), refs: append([]Ref{}, elements...)})
}

// SetElement sets an element of an array of objects. An index past the end
// extends the array.
func (h *Heap) SetElement(array Ref, i int, v Ref) {
	o := h.object(array)
	if o.shape != ofRefs || i < 0 || i > 1<<24 {
		h.fail("object %d has no element %d", array, i)
		return
	}
	for len(o.refs) <= i {
		o.refs = append(o.refs, 0)
	}
	o.refs[i] = v
}

// Primitives creates a primitive array from elements in big-endian order.
func (h *Heap) Primitives(t hprof.Type, elements []byte) Ref {
	if size := t.Size(8); t == hprof.Object || size == 0 || len(elements)%size != 0 {
		h.fail("%d bytes are not a whole number of %v elements", len(elements), t)
		t = hprof.Byte
	}
	return h.add(object{shape: ofData, element: t, class: h.Array(h.Class(t.String())), data: elements})
}

// Bytes creates a byte[].
func (h *Heap) Bytes(b []byte) Ref { return h.Primitives(hprof.Byte, b) }

// Chars creates a char[] that contains a string in UTF-16.
func (h *Heap) Chars(s string) Ref {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.BigEndian.AppendUint16(b, u)
	}
	return h.Primitives(hprof.Char, b)
}

// Ints creates an int[].
func (h *Heap) Ints(values ...int32) Ref {
	var b []byte
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, uint32(v))
	}
	return h.Primitives(hprof.Int, b)
}

// Longs creates a long[].
func (h *Heap) Longs(values ...int64) Ref {
	var b []byte
	for _, v := range values {
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	return h.Primitives(hprof.Long, b)
}

// Filler creates a primitive array whose elements are generated from the seed
// and not stored, so the array uses no memory until it is written.
func (h *Heap) Filler(t hprof.Type, count uint32) Ref {
	if t == hprof.Object || t.Size(8) == 0 {
		h.fail("primitive arrays of %v are not supported", t)
		t = hprof.Byte
	}
	return h.add(object{shape: ofFiller, element: t, class: h.Array(h.Class(t.String())), count: count})
}

// Padding returns a Filler of bytes.
func (h *Heap) Padding(n uint32) Ref { return h.Filler(hprof.Byte, n) }

// NoData creates a primitive array without elements, in the form in which old
// versions of Android dumped arrays.
func (h *Heap) NoData(t hprof.Type, count uint32) Ref {
	if t == hprof.Object || t.Size(8) == 0 {
		h.fail("primitive arrays of %v are not supported", t)
		t = hprof.Byte
	}
	return h.add(object{shape: ofCount, element: t, class: h.Array(h.Class(t.String())), count: count})
}

// Missing creates an object that has an ID but is not in the dump, so
// references to it dangle.
func (h *Heap) Missing() Ref {
	return h.add(object{shape: ofNothing, class: h.byName[objectClass]})
}

// String creates a new java.lang.String.
func (h *Heap) String(s string) Ref {
	return h.add(object{shape: ofText, class: h.byName[stringClass], text: utf16.Encode([]rune(s))})
}

// Intern returns the interned string with the given content. It is a root on
// ART.
func (h *Heap) Intern(s string) Ref {
	r, ok := h.interns[s]
	if !ok {
		h.In(Image, func() { r = h.String(s) })
		h.interns[s] = r
		h.roots = append(h.roots, root{kind: hprof.SubRootInternedString, object: r})
	}
	return r
}

// Len returns the number of described objects, which can later be passed to
// Shallow as a mark.
func (h *Heap) Len() int { return len(h.objects) }

// Shallow returns the total size in ART's dump of all objects added after a
// mark, including the characters of strings. Classes are not counted.
func (h *Heap) Shallow(mark int) (sum int64) {
	d := &dump{Heap: h}
	for i := max(mark, 1); i < len(h.objects); i++ {
		switch o := &h.objects[i]; o.shape {
		case ofFields:
			sum += int64(o.class.artSize())
		case ofText:
			sum += d.artSize(o)
		case ofRefs:
			sum += 4 * int64(len(o.refs))
		case ofData:
			sum += int64(len(o.data))
		case ofFiller, ofCount:
			sum += int64(o.count) * int64(o.element.Size(4))
		}
	}
	return sum
}

// Root makes an object a root. The object is a Ref or a *Class. A root of a
// kind that requires a thread belongs to the first thread; see RootOf. For
// HotSpot, the kinds of roots that only Android has are omitted.
func (h *Heap) Root(kind hprof.SubTag, object any) {
	h.rootIn(kind, object, 1, -1)
}

// RootOf makes an object a root of a thread. For a local variable, frame is the
// index of its frame, 0 for the innermost, or -1.
func (h *Heap) RootOf(t Thread, kind hprof.SubTag, object any, frame int32) {
	h.rootIn(kind, object, t.Serial, frame)
}

func (h *Heap) rootIn(kind hprof.SubTag, object any, thread uint32, frame int32) {
	if !kind.IsRoot() {
		h.fail("%v is not a GC root", kind)
		return
	}
	h.roots = append(h.roots, root{kind, h.reference(object), thread, frame})
}

// Thread is a thread with its serial number.
type Thread struct {
	Ref
	Serial uint32
}

// Thread creates a running java.lang.Thread. Frames are listed innermost first
// and have the form "com.shop.Sync.run(Sync.java:12)"; only HotSpot writes
// them.
func (h *Heap) Thread(name string, frames ...string) Thread {
	t := Thread{Serial: uint32(len(h.threads) + 1)}
	t.Ref = h.New(h.Class("java.lang.Thread"),
		Fields{"name": name, "tid": int(t.Serial), "priority": 5, "contextClassLoader": h.loader})
	h.threads = append(h.threads, thread{t, frames})
	return t
}

// mix is the finalizer of splitmix64, applied to a stream and an index.
func mix(stream, index uint64) uint64 {
	z := stream + (index+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
