package heap

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// slot is the number of a class as stored with objects. Slots are numbered in
// this order: class objects, arrays of each primitive type, then the classes of
// the dump in the order in which they are found.
type slot uint32

const (
	classSlot slot = 0
	// primitives is the slot of primitive type 0: arrays of type t have slot
	// primitives+t.
	primitives slot = 1
	named      slot = 16
)

// class is the class that a slot represents.
type class struct {
	id hprof.ID
	// dump is the class's CLASS_DUMP record, or nil if there is none.
	dump *hprof.Class
	// at is the offset of that record in the file.
	at int64
	// arrays is true if object arrays of this class were found.
	arrays bool
	name   string
	// super is the slot of the superclass, or 0 if there is none.
	super slot
	// size is the number of bytes of an instance, or of an array of this class
	// without its elements, as declared in the dump.
	size uint32
	// offsets are the positions of the references in an instance's bytes.
	offsets []uint32
	// referent is the position of the referent field of a
	// java.lang.ref.Reference if that field holds its object more weakly than
	// other fields do; otherwise it is -1. offsets does not include the
	// referent.
	referent int32
	strength Reachability
	// part and parts describe the class's role in native memory (native.go).
	part  part
	parts []partField
	// link is the number of the class object that objects of this class
	// reference in addition to their fields, or none. recorded is true if the
	// class object also references the objects that its class record names.
	link     uint32
	recorded bool
	// leaf is true if no object of this class has references.
	leaf bool
	// row is the index of the class's row in the sums by name.
	row uint32
}

// Names translates the names of a minified build to those of the source code.
type Names interface {
	// Class translates the name of a class, or of an array of a class, in
	// Java's notation.
	Class(name string) string
	// Field translates the name of a field. class is the translated name of the
	// class that declares the field.
	Field(class, name string, t hprof.Type) string
	// Frame translates a frame of a stack trace. It returns inlined frames
	// first.
	Frame(StackFrame) []StackFrame
}

// registry assigns slots to classes. It is safe for concurrent use.
type registry struct {
	// rename is nil if names are not translated.
	rename Names
	mu     sync.Mutex
	slots  map[hprof.ID]slot
	list   []class
	// count is the length of list, readable without the lock.
	count atomic.Int64
}

func newRegistry(rename Names) *registry {
	r := &registry{rename: rename, slots: map[hprof.ID]slot{}, list: make([]class, named)}
	return r
}

// of returns the slot of the class with the given ID.
func (r *registry) of(id hprof.ID) slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.locked(id)
}

func (r *registry) locked(id hprof.ID) slot {
	if s, ok := r.slots[id]; ok {
		return s
	}
	s := slot(len(r.list))
	r.slots[id] = s
	r.list = append(r.list, class{id: id})
	r.count.Store(int64(len(r.list)))
	return s
}

// dumped records the CLASS_DUMP found at the given offset of the file. If a
// class has several such records, the last one is used.
func (r *registry) dumped(c *hprof.Class, at int64) {
	kept := *c
	kept.Statics = append([]hprof.Static(nil), c.Statics...)
	kept.Fields = append([]hprof.Field(nil), c.Fields...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := &r.list[r.locked(c.ID)]; k.dump == nil || k.at < at {
		k.dump, k.at = &kept, at
	}
}

// arrayed records that the dump has object arrays whose class has the given
// slot.
func (r *registry) arrayed(s slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list[s].arrays = true
}

// lookup is a goroutine's own copy of the registry's map. It uses open
// addressing; nearly all objects need one probe.
type lookup struct {
	shared *registry
	keys   []uint64
	slots  []slot
	used   int
	arrays map[slot]bool
}

func newLookup(r *registry) *lookup {
	return &lookup{shared: r, keys: make([]uint64, 1<<10), slots: make([]slot, 1<<10), arrays: map[slot]bool{}}
}

func (l *lookup) of(id hprof.ID) slot {
	mask := uint64(len(l.keys) - 1)
	for i := hash(uint64(id)) & mask; ; i = (i + 1) & mask {
		if l.keys[i] == uint64(id) && l.slots[i] != 0 {
			return l.slots[i]
		}
		if l.slots[i] == 0 {
			s := l.shared.of(id)
			l.add(uint64(id), s)
			return s
		}
	}
}

func (l *lookup) add(id uint64, s slot) {
	if l.used*2 >= len(l.keys) {
		keys, slots := l.keys, l.slots
		l.keys, l.slots, l.used = make([]uint64, 2*len(keys)), make([]slot, 2*len(keys)), 0
		for i, s := range slots {
			if s != 0 {
				l.add(keys[i], s)
			}
		}
	}
	mask := uint64(len(l.keys) - 1)
	i := hash(id) & mask
	for l.slots[i] != 0 {
		i = (i + 1) & mask
	}
	l.keys[i], l.slots[i] = id, s
	l.used++
}

// array returns the slot of a class of object arrays, and records that the dump
// has such arrays.
func (l *lookup) array(id hprof.ID) slot {
	s := l.of(id)
	if !l.arrays[s] {
		l.arrays[s] = true
		l.shared.arrayed(s)
	}
	return s
}

func hash(x uint64) uint64 { return x * 0x9e3779b97f4a7c15 >> 20 }

// primitiveNames holds the names of the classes of primitive arrays, in Java's
// notation.
var primitiveNames = [...]string{
	hprof.Boolean: "boolean[]", hprof.Char: "char[]", hprof.Float: "float[]", hprof.Double: "double[]",
	hprof.Byte: "byte[]", hprof.Short: "short[]", hprof.Int: "int[]", hprof.Long: "long[]"}

// resolve sets the names, sizes and layouts of the classes.
func (r *registry) resolve(f *hprof.File, links classLinks) error {
	names := map[hprof.ID]string{}
	for _, c := range f.Classes {
		if _, ok := names[c.Class]; !ok {
			if text, ok := f.Strings.Get(c.Name); ok {
				names[c.Class] = r.className(text)
			}
		}
	}
	byName := map[string]slot{}
	for i := range r.list {
		c := &r.list[i]
		c.referent, c.link = -1, none
		if slot(i) >= named {
			c.name = names[c.id]
			if c.dump != nil {
				c.size = c.dump.InstanceSize
				c.super = r.slots[c.dump.Super]
			}
			if _, ok := byName[c.name]; !ok || c.dump != nil {
				byName[c.name] = slot(i)
			}
		}
	}
	r.list[classSlot].name = "java.lang.Class"
	r.list[classSlot].size = r.list[byName["java.lang.Class"]].size
	for t, name := range primitiveNames {
		if name == "" {
			continue
		}
		c := &r.list[primitives+slot(t)]
		c.name, c.leaf = name, true
		if s, ok := byName[name]; ok {
			c.size, c.id = r.list[s].size, r.list[s].id
		}
	}
	l := layouts{registry: r, names: f.Strings, idSize: f.IDSize, links: links}
	for i := named; i < slot(len(r.list)); i++ {
		if err := l.lay(i); err != nil {
			return err
		}
		l.findParts(i)
	}
	l.unify()
	return nil
}

// className returns the source name of a class.
func (r *registry) className(text string) string {
	name := NormalName(text)
	if r.rename != nil {
		return r.rename.Class(name)
	}
	return name
}

// fieldName returns the source name of a field that a class declares.
func (r *registry) fieldName(names *hprof.Strings, owner *class, id hprof.ID, t hprof.Type) (string, bool) {
	text, ok := names.Get(id)
	if ok && r.rename != nil {
		text = r.rename.Field(owner.name, text, t)
	}
	return text, ok
}

// layouts finds the positions of references in the instances of each class.
type layouts struct {
	*registry
	names  *hprof.Strings
	idSize int
	links  classLinks
	// places counts the fields of all classes, including inherited ones.
	places int
}

const (
	// longestChain bounds the number of superclasses of a class: without it, a
	// cycle in a damaged dump would cause an endless loop.
	longestChain = 1 << 10
	// mostPlaces bounds the number of fields of all classes. Inherited fields
	// count for each subclass; in a large app, a few hundred thousand of these
	// fields are references.
	mostPlaces = 1 << 24
)

func (l *layouts) lay(s slot) error {
	c := &l.list[s]
	at, strength := uint32(0), Strong
	// An ART dump lists the hidden field through which every object references
	// its class. If the class is a root anyway, that reference is not needed.
	rooted, hidden := l.links.rooted(c.id), false
	k := s
	for range longestChain {
		owner := &l.list[k]
		if owner.dump == nil {
			break
		}
		if strength == Strong {
			strength = strengths[owner.name]
		}
		for _, f := range owner.dump.Fields {
			klass := f.Type == hprof.Object && owner.super == 0 && l.named(owner, f, "shadow$_klass_")
			hidden = hidden || klass
			if f.Type == hprof.Object && !(rooted && klass) {
				if owner.name == "java.lang.ref.Reference" && strength != Strong && l.named(owner, f, "referent") {
					c.referent, c.strength = int32(at), strength
				} else {
					c.offsets = append(c.offsets, at)
				}
			}
			at += uint32(f.Type.Size(l.idSize))
		}
		if l.places += len(owner.dump.Fields); l.places > mostPlaces {
			return &hprof.DamageError{
				Offset: owner.at, Record: hprof.SubClassDump.String(),
				Reason: "the classes up to here declare more fields than any app has; superclasses may form a cycle",
			}
		}
		if owner.super == 0 || owner.super == s {
			break
		}
		k = owner.super
	}
	c.link, c.recorded = l.links.ofInstance(c, hidden), l.recorded(c)
	c.leaf = len(c.offsets) == 0 && c.referent < 0 && !c.arrays && c.link == none
	return nil
}

// unify ensures that classes with the same name are either all leaves or all
// non-leaves. A class may be loaded several times, and totals by class name
// count leaves separately.
func (l *layouts) unify() {
	inner := map[string]bool{}
	for i := range l.list {
		if !l.list[i].leaf {
			inner[l.list[i].name] = true
		}
	}
	for i := named; i < slot(len(l.list)); i++ {
		l.list[i].leaf = l.list[i].leaf && !inner[l.list[i].name]
	}
}

func (l *layouts) named(owner *class, f hprof.Field, name string) bool {
	text, ok := l.fieldName(l.names, owner, f.Name, f.Type)
	return ok && text == name
}

// strengths holds the strength of the referent field for each class whose
// referent field is weaker than a normal reference (AOSP ahat, AhatClassObj;
// java.lang.ref).
var strengths = map[string]Reachability{
	"java.lang.ref.SoftReference":      Soft,
	"java.lang.ref.WeakReference":      Weak,
	"java.lang.ref.PhantomReference":   Phantom,
	"java.lang.ref.FinalizerReference": Finalizer,
	"java.lang.ref.Finalizer":          Finalizer,
}

// NormalName returns a class name in Java's notation, whichever runtime wrote
// it: HotSpot's "[Ljava/lang/String;" and ART's "java.lang.String[]" are the
// same.
func NormalName(name string) string {
	depth := 0
	for depth < len(name) && name[depth] == '[' {
		depth++
	}
	if depth == 0 {
		return strings.ReplaceAll(name, "/", ".")
	}
	element := name[depth:]
	if t, ok := strings.CutPrefix(element, "L"); ok {
		element = strings.TrimSuffix(t, ";")
	} else if t := letters[element]; t != "" {
		element = t
	}
	return strings.ReplaceAll(element, "/", ".") + strings.Repeat("[]", depth)
}

var letters = map[string]string{
	"Z": "boolean", "C": "char", "F": "float", "D": "double", "B": "byte", "S": "short", "I": "int", "J": "long",
}
