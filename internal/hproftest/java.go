package hproftest

import (
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// javaState is the state shared by the methods that create objects of java.*.
type javaState struct {
	// finalizers is the head of the list of finalizer references; cleaners is
	// the head of the list of Cleaners.
	finalizers, cleaners Ref
	// registries holds the NativeAllocationRegistries by size.
	registries map[int64]Ref
	main       Thread
}

// Java creates a heap with the classes of the runtime, a class loader and the
// main thread. The seed determines all random choices in the heap.
func Java(seed uint64) *Heap {
	return newHeap(defaultSDK, seed, false)
}

func newHeap(sdk int, seed uint64, harmony bool) *Heap {
	h := &Heap{
		sdk: sdk, seed: seed, harmony: harmony, objects: make([]object, 1), byName: map[string]*Class{},
		interns: map[string]Ref{},
	}
	h.java.registries = map[int64]Ref{}
	h.foundation()
	h.library()
	h.loaders()
	main := []string{"java.lang.Object.wait(Native Method)", "java.lang.Thread.run(Thread.java:840)"}
	h.java.main = h.Thread("main", main...)
	return h
}

// Main returns the main thread.
func (h *Heap) Main() Thread { return h.java.main }

// foundation declares the classes that the language itself needs.
func (h *Heap) foundation() {
	object := h.Declare(objectClass, nil, "art object shadow$_klass_", "art int shadow$_monitor_")
	object.methods = 11
	var members []string
	for _, f := range artClassFields {
		members = append(members, "art "+f)
	}
	h.Declare(classClass, object, append(members, "static long serialVersionUID")...)
	h.Declare(stringClass, object, "jvm object value", "jvm byte coder", "int hash", "art int count",
		"static long serialVersionUID", "static object CASE_INSENSITIVE_ORDER")
	for _, t := range types[1:] {
		c := h.Declare(t.String(), object)
		c.super, c.primitive, c.bare, c.only = nil, t, true, ART
		h.Array(c)
	}
	for _, name := range []string{objectClass, classClass, stringClass} {
		h.Array(h.Class(name))
	}
	h.In(Image, func() { h.ifTable = h.Objects(object) })
}

// library declares the classes of java.* that heaps use, as in the JDK and in
// Android since 7.
func (h *Heap) library() {
	h.collections()
	number := h.Declare("java.lang.Number", nil, "abstract")
	h.Declare("java.lang.Integer", number, "int value", "static int MAX_VALUE")
	h.Declare("java.lang.Long", number, "long value")
	h.Declare("java.lang.Boolean", nil, "boolean value", "static object TRUE", "static object FALSE")
	h.Declare("java.lang.Enum", nil, "abstract", "object name", "int ordinal")
	h.Declare("java.lang.Thread", nil, "object name", "long tid", "int priority", "boolean daemon",
		"object contextClassLoader", "object threadLocals", "object target", "long nativePeer")
	reference := h.Declare("java.lang.ref.Reference", nil, "abstract", "object referent", "object queue",
		"jvm object next", "jvm object discovered", "art object pendingNext", "art object queueNext",
		"static boolean disableIntrinsic", "static boolean slowPathEnabled")
	for _, name := range []string{"Weak", "Soft", "Phantom"} {
		members := []string{}
		if name == "Soft" {
			members = []string{"long timestamp", "static long clock"}
		}
		h.Declare("java.lang.ref."+name+"Reference", reference, members...)
	}
	h.Declare("java.lang.ref.ReferenceQueue", nil, "object head", "object tail", "object lock")
	h.Declare("java.lang.ref.FinalizerReference", reference, "object next", "object prev", "object zombie",
		"static object head", "static object queue", "static object LIST_LOCK")
	h.Declare("java.lang.ref.Finalizer", reference, "object next", "object prev", "static object unfinalized",
		"static object queue")
	h.Declare("java.util.WeakHashMap$Entry", h.Class("java.lang.ref.WeakReference"), "object value", "int hash",
		"object next")
}

// collections declares the classes of java.util.
func (h *Heap) collections() {
	abstractList := h.Declare("java.util.AbstractList", nil, "abstract", "int modCount")
	abstractMap := h.Declare("java.util.AbstractMap", nil, "abstract", "object keySet", "object values")
	if h.harmony {
		h.harmonyCollections(abstractList, abstractMap)
	} else {
		h.jdkCollections(abstractList, abstractMap)
	}
	h.Declare("java.util.WeakHashMap", abstractMap, "object table", "int size", "int threshold", "float loadFactor",
		"object queue", "int modCount")
	h.Declare("java.util.concurrent.ConcurrentHashMap", abstractMap, "object table", "object nextTable",
		"long baseCount", "int sizeCtl", "int transferIndex", "object counterCells")
	h.Declare("java.util.concurrent.ConcurrentHashMap$Node", nil, "int hash", "object key", "object val", "object next")
	h.Declare("java.util.concurrent.CopyOnWriteArrayList", nil, "object lock", "object elements")
	h.Declare("java.util.TreeMap", abstractMap, "object comparator", "object root", "int size", "int modCount")
	h.Declare("java.util.TreeMap$TreeMapEntry", nil, "object key", "object value", "object left", "object right",
		"object parent", "boolean color")
}

// jdkCollections declares the collection classes of the JDK that differ from
// Harmony's.
func (h *Heap) jdkCollections(abstractList, abstractMap *Class) {
	h.Declare("java.util.ArrayList", abstractList, "object elementData", "int size", "static long serialVersionUID",
		"static object EMPTY_ELEMENTDATA")
	h.Declare("java.util.LinkedList", abstractList, "int size", "object first", "object last")
	h.Declare("java.util.LinkedList$Node", nil, "object item", "object next", "object prev")
	hashMap := h.Declare("java.util.HashMap", abstractMap, "object table", "object entrySet", "int size",
		"int modCount", "int threshold", "float loadFactor", "static int DEFAULT_INITIAL_CAPACITY")
	node := h.Declare("java.util.HashMap$Node", nil, "int hash", "object key", "object value", "object next")
	h.Declare("java.util.LinkedHashMap", hashMap, "object head", "object tail", "boolean accessOrder")
	h.Declare("java.util.LinkedHashMap$Entry", node, "object before", "object after")
	h.Declare("java.util.HashSet", nil, "object map", "static object PRESENT")
}

// loaders declares the class loader of the app. On ART, the runtime holds the
// loader's classes; on HotSpot, a list holds them.
func (h *Heap) loaders() {
	dexCache := h.Declare("java.lang.DexCache", nil, "art", "object location", "long dexFile", "int numStrings",
		"int numResolvedTypes", "long strings", "long resolvedTypes")
	loader := h.Declare("java.lang.ClassLoader", nil, "abstract", "object parent", "object packages",
		"art long allocator", "art long classTable", "jvm object classes")
	base := h.Declare("dalvik.system.BaseDexClassLoader", loader, "object pathList", "object sharedLibraryLoaders")
	path := h.Declare("dalvik.system.PathClassLoader", base)
	h.Declare("java.lang.BootClassLoader", loader, "static object instance")
	var boot Ref
	h.In(Image, func() {
		h.bootCache = h.New(dexCache, Fields{"location": "/system/framework/core-oj.jar"})
		boot = h.New(h.Class("java.lang.BootClassLoader"), nil)
	})
	h.SetStatic(h.Class("java.lang.BootClassLoader"), "instance", boot)
	h.loader = h.New(path, Fields{"parent": boot})
	h.appCache = h.New(dexCache, Fields{"location": "/data/app/base.apk"})
	h.loaded = h.ArrayList()
	for _, r := range []Ref{h.loaded.Ref, h.loaded.array} {
		h.objects[r].only = HotSpot
	}
	h.Set(h.loader, "classes", h.loaded.Ref)
	h.Root(hprof.SubRootVMInternal, h.loader)
}

// Loader returns the class loader of the app.
func (h *Heap) Loader() Ref { return h.loader }

// List is a java.util.ArrayList to which elements can be added.
type List struct {
	Ref
	heap  *Heap
	array Ref
	size  int
}

// ArrayList creates a java.util.ArrayList.
func (h *Heap) ArrayList(elements ...Ref) List {
	l := List{Ref: h.New(h.Class("java.util.ArrayList"), nil), heap: h}
	l.array = h.Objects(h.Class(objectClass))
	name := "elementData"
	if h.harmony {
		name = "array"
	}
	h.Set(l.Ref, name, l.array)
	for _, e := range elements {
		l.Add(e)
	}
	return l
}

// Add appends an element. The array grows by half, as in the JDK.
func (l *List) Add(e Ref) {
	if have := len(l.heap.objects[l.array].refs); l.size == have {
		l.heap.SetElement(l.array, max(9, have+have>>1-1), 0)
	}
	l.heap.SetElement(l.array, l.size, e)
	l.size++
	l.heap.Set(l.Ref, "size", l.size)
}

// Array returns the array of the list.
func (l *List) Array() Ref { return l.array }

// LinkedList creates a java.util.LinkedList.
func (h *Heap) LinkedList(elements ...Ref) Ref {
	if h.harmony {
		return h.harmonyLinkedList(elements)
	}
	list := h.New(h.Class("java.util.LinkedList"), Fields{"size": len(elements)})
	last := Ref(0)
	for _, e := range elements {
		node := h.New(h.Class("java.util.LinkedList$Node"), Fields{"item": e, "prev": last})
		if last == 0 {
			h.Set(list, "first", node)
		} else {
			h.Set(last, "next", node)
		}
		last = node
	}
	h.Set(list, "last", last)
	return list
}

// HashMap creates a java.util.HashMap from alternating keys and values.
func (h *Heap) HashMap(pairs ...Ref) Ref {
	if h.harmony {
		return h.harmonyHashMap("java.util.HashMap", "java.util.HashMap$HashMapEntry", pairs)
	}
	return h.hashMap("java.util.HashMap", "java.util.HashMap$Node", "value",
		Fields{"size": len(pairs) / 2, "loadFactor": 0.75}, pairs)
}

// ConcurrentHashMap creates a java.util.concurrent.ConcurrentHashMap.
func (h *Heap) ConcurrentHashMap(pairs ...Ref) Ref {
	return h.hashMap("java.util.concurrent.ConcurrentHashMap", "java.util.concurrent.ConcurrentHashMap$Node", "val",
		Fields{"baseCount": len(pairs) / 2}, pairs)
}

// LinkedHashMap creates a java.util.LinkedHashMap.
func (h *Heap) LinkedHashMap(pairs ...Ref) Ref {
	if h.harmony {
		return h.harmonyLinkedHashMap(pairs)
	}
	m := h.hashMap("java.util.LinkedHashMap", "java.util.LinkedHashMap$Entry", "value",
		Fields{"size": len(pairs) / 2, "loadFactor": 0.75}, pairs)
	last := Ref(0)
	for i := 0; i+1 < len(pairs); i += 2 {
		// The entries were created consecutively, just before the map.
		e := h.entryOf(m, pairs[i])
		h.Set(e, "before", last)
		if last == 0 {
			h.Set(m, "head", e)
		} else {
			h.Set(last, "after", e)
		}
		last = e
	}
	h.Set(m, "tail", last)
	return m
}

// HashSet creates a java.util.HashSet.
func (h *Heap) HashSet(elements ...Ref) Ref {
	present := h.New(h.Class(objectClass), nil)
	var pairs []Ref
	for _, e := range elements {
		pairs = append(pairs, e, present)
	}
	return h.New(h.Class("java.util.HashSet"), Fields{h.setField(): h.HashMap(pairs...)})
}

// LinkedHashSet creates a java.util.LinkedHashSet.
func (h *Heap) LinkedHashSet(elements ...Ref) Ref {
	present := h.New(h.Class(objectClass), nil)
	var pairs []Ref
	for _, e := range elements {
		pairs = append(pairs, e, present)
	}
	c := h.byName["java.util.LinkedHashSet"]
	if c == nil {
		c = h.Declare("java.util.LinkedHashSet", h.Class("java.util.HashSet"))
	}
	return h.New(c, Fields{h.setField(): h.LinkedHashMap(pairs...)})
}

// setField returns the field of a HashSet that holds its map.
func (h *Heap) setField() string {
	if h.harmony {
		return "backingMap"
	}
	return "map"
}

// CopyOnWriteArrayList creates a java.util.concurrent.CopyOnWriteArrayList.
func (h *Heap) CopyOnWriteArrayList(elements ...Ref) Ref {
	return h.New(h.Class("java.util.concurrent.CopyOnWriteArrayList"),
		Fields{"elements": h.Objects(h.Class(objectClass), elements...)})
}

// WeakHashMap creates a java.util.WeakHashMap.
func (h *Heap) WeakHashMap(pairs ...Ref) Ref {
	m := h.hashMap("java.util.WeakHashMap", "java.util.WeakHashMap$Entry", "value",
		Fields{"size": len(pairs) / 2, "loadFactor": 0.75}, pairs)
	h.Set(m, "queue", h.queue())
	return m
}

func (h *Heap) queue() Ref {
	return h.New(h.Class("java.lang.ref.ReferenceQueue"), Fields{"lock": h.New(h.Class(objectClass), nil)})
}

// hashMap creates any of the hash tables whose buckets are chains.
func (h *Heap) hashMap(class, node, value string, f Fields, pairs []Ref) Ref {
	m := h.New(h.Class(class), f)
	n := 16
	for n*3/4 < len(pairs)/2 {
		n *= 2
	}
	table := h.Objects(h.Class(node), make([]Ref, n)...)
	h.Set(m, "table", table)
	key := "key"
	if strings.HasPrefix(node, "java.util.WeakHashMap") {
		key = "referent"
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		hash := h.hash(pairs[i])
		bucket := int(hash) & (n - 1)
		e := h.New(h.Class(node),
			Fields{"hash": int64(hash), key: pairs[i], value: pairs[i+1], "next": h.objects[table].refs[bucket]})
		h.SetElement(table, bucket, e)
	}
	return m
}

// entryOf returns the entry of a key in a map.
func (h *Heap) entryOf(m, key Ref) Ref {
	for _, e := range h.objects[h.get(m, "table")].refs {
		for ; e != 0; e = h.get(e, "next") {
			if h.get(e, "key") == key {
				return e
			}
		}
	}
	return 0
}

// get reads an object field of an instance.
func (h *Heap) get(r Ref, name string) Ref {
	o := h.object(r)
	for c := o.class; c != nil && o.shape == ofFields; c = c.super {
		for i, f := range c.fields {
			if f.name == name {
				return Ref(o.slots[c.first+i])
			}
		}
	}
	h.fail("object %d has no field %q", r, name)
	return 0
}

// hash returns the spread hash code of a key. For a string, it is computed from
// the characters; for other objects, it is a generated number.
func (h *Heap) hash(key Ref) uint32 {
	if key == 0 {
		return 0
	}
	v := uint32(mix(h.seed, uint64(key)))
	if o := h.object(key); o.shape == ofText {
		v = javaHash(o.text)
	}
	return v ^ v>>16
}

// Integer creates a java.lang.Integer.
func (h *Heap) Integer(v int) Ref {
	return h.New(h.Class("java.lang.Integer"), Fields{"value": v})
}

// Weak creates a java.lang.ref.WeakReference.
func (h *Heap) Weak(referent Ref) Ref {
	return h.New(h.Class("java.lang.ref.WeakReference"), Fields{"referent": referent})
}

// Soft creates a java.lang.ref.SoftReference.
func (h *Heap) Soft(referent Ref) Ref {
	return h.New(h.Class("java.lang.ref.SoftReference"), Fields{"referent": referent})
}

// Phantom creates a java.lang.ref.PhantomReference.
func (h *Heap) Phantom(referent Ref) Ref {
	return h.New(h.Class("java.lang.ref.PhantomReference"), Fields{"referent": referent, "queue": h.queue()})
}

// Finalizable adds a finalizer to an object. The object is then held by a list
// of FinalizerReferences or, in a heap created by Java, by a list of
// Finalizers.
func (h *Heap) Finalizable(object Ref) {
	class, head := h.Class("java.lang.ref.Finalizer"), "unfinalized"
	if h.android.on {
		class, head = h.Class("java.lang.ref.FinalizerReference"), "head"
	}
	r := h.New(class, Fields{"referent": object, "next": h.java.finalizers})
	if h.java.finalizers != 0 {
		h.Set(h.java.finalizers, "prev", r)
	}
	h.java.finalizers = r
	h.SetStatic(class, head, r)
}
