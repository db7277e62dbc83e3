package hproftest

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/recorded"
)

// TestLikeART checks that generated dumps have the properties that were
// measured on a dump of Android 8.
func TestLikeART(t *testing.T) {
	h := everything(Phone{SDK: 30})
	h.Fill(Ballast{Bytes: 3 << 20})
	made, _, err := h.Dump(Form{})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("generated", func(t *testing.T) { likeART(t, made) })
	t.Run("recorded", func(t *testing.T) { likeART(t, recorded.Read(t, "hprof", "ahat-O.hprof")) })
}

// everything returns a heap with all shapes that exist in every version.
func everything(p Phone) *Heap {
	h := Android(p)
	a, b := h.Activity("com.example.Main", Attached), h.Activity("com.example.Detail", Destroyed)
	h.Hold("com.example.Leak", "sActivities", h.ArrayList(b.Ref).Ref)
	fragments := h.ArrayList()
	for _, kind := range []FragmentKind{AndroidX, Support, Framework} {
		fragments.Add(h.Fragment("com.example."+[]string{"New", "Old", "Oldest"}[kind],
			Fragment{Kind: kind, State: Destroyed, Tag: "t"}))
	}
	h.Hold("com.example.Fragments", "all", fragments.Ref)
	r := h.Recomposer("ShutDown")
	h.Hold("com.example.Compose", "c", h.Composition(r, true))
	h.Hold("com.example.Picture", "b", h.Bitmap(Picture{Width: 8, Height: 9}))
	h.Hold("com.example.Words", "w", h.Duplicates("r\u00e9p\u00e9t\u00e9", 5).Ref)
	h.Hold("com.example.Text", "t", h.String(""))
	h.Watch(b.Ref, Watched{Key: "k", RetainedAt: 5})
	h.Finalizable(a.Ref)
	h.Finalizable(b.Ref)
	h.Hold("com.example.Map", "m", h.WeakHashMap(a.Ref, h.Integer(3)))
	h.RootOf(h.Main(), hprof.SubRootJavaFrame, a.Ref, 1)
	h.RootOf(h.Main(), hprof.SubRootJNILocal, a.Window, 1)
	h.Root(hprof.SubRootDebugger, h.Class("com.example.Leak"))
	h.Hold("com.example.Large", "l", h.Filler(hprof.Byte, 100_000))
	return h
}

func likeART(t *testing.T, data []byte) {
	header, records, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if header.Format != hprof.Format103 || header.IDSize != 4 {
		t.Errorf("%+v", header)
	}
	s := &artShape{
		T: t, records: records, names: map[hprof.ID]string{}, loaded: map[hprof.ID]string{}, vm: map[hprof.ID]bool{},
		classes: map[hprof.ID]*hprof.Class{},
	}
	s.tables()
	s.segments()
	s.heap()
	if s.seen[classOverhead] == 0 || s.seen["value"] < 50 || s.seen["loader"] == 0 || s.seen["image"] == 0 {
		t.Errorf("too few cases: %v", s.seen)
	}
}

// artShape checks the records of a dump written by ART.
type artShape struct {
	*testing.T
	records []Record
	names   map[hprof.ID]string
	loaded  map[hprof.ID]string
	vm      map[hprof.ID]bool
	classes map[hprof.ID]*hprof.Class
	seen    map[string]int
	// head is the number of bytes of a segment that do not count toward its
	// limit.
	head int
}

// tables checks the order of strings and classes, the stack traces, the
// segments and the end.
func (s *artShape) tables() {
	s.seen = map[string]int{}
	order := []hprof.Tag{
		hprof.TagString, hprof.TagLoadClass, hprof.TagStackTrace, hprof.TagHeapDumpSegment, hprof.TagHeapDumpEnd,
	}
	at, text, class := 0, []byte(nil), []byte(nil)
	for i := range s.records {
		r := &s.records[i]
		tag := r.Tag
		if tag == hprof.TagStackFrame {
			tag = hprof.TagStackTrace
		}
		for at < len(order)-1 && order[at] != tag {
			at++
		}
		if order[at] != tag {
			s.Fatalf("record %d at %d is in the wrong place", r.Tag, r.Offset)
		}
		switch {
		case r.Tag == hprof.TagString:
			if text != nil && bytes.Compare(text, r.Body[4:]) >= 0 {
				s.Errorf("%q comes before %q", text, r.Body[4:])
			}
			text = r.Body[4:]
			s.names[id4(r.Body)] = string(text)
		case r.Tag == hprof.TagLoadClass:
			if class != nil && bytes.Compare(class, r.Body[4:8]) >= 0 {
				s.Errorf("class %x comes before %x", class, r.Body[4:8])
			}
			class = r.Body[4:8]
			s.loaded[id4(class)] = s.names[id4(r.Body[12:])]
		case r.Sub == hprof.SubClassDump:
			s.classes[r.Object] = &r.Dump
		}
	}
}

func id4(b []byte) hprof.ID {
	return hprof.ID(b[0])<<24 | hprof.ID(b[1])<<16 | hprof.ID(b[2])<<8 | hprof.ID(b[3])
}

// segments checks that each segment ends after 128 objects or 4 KiB, and not
// earlier. A root counts as an object; the additional array of a class, string
// or loader does not.
func (s *artShape) segments() {
	for i := 0; i < len(s.records); i++ {
		head := s.records[i]
		if head.Tag != hprof.TagHeapDumpSegment {
			continue
		}
		objects, roots, last, table := 0, 0, head.Offset, 0
		info := false
		for i+1 < len(s.records) && s.records[i+1].Sub != 0 {
			i++
			r := s.records[i]
			if r.Sub == hprof.SubHeapInfo {
				info = true
			} else if !r.Sub.IsRoot() && !info {
				s.Fatalf("object 0x%x is not in any heap", uint64(r.Object))
			}
			if r.Object&1 == 1 && r.Sub == hprof.SubPrimitiveArray {
				table = r.Offset
			}
			if r.Sub == hprof.SubHeapInfo || s.belongs(i) {
				continue
			}
			objects++
			if r.Sub.IsRoot() {
				roots++
			}
			// A class starts with the array of its method table.
			if last = r.Offset; r.Sub == hprof.SubClassDump && table > 0 {
				last = table
			}
			table = 0
		}
		end := head.Offset + 9 + head.Length
		final := i+1 == len(s.records)-1
		if objects > 128 || last-head.Offset-s.head >= 4096 {
			s.Fatalf("segment at %d continues after %d objects, %d bytes", head.Offset, objects, last-head.Offset)
		}
		// A root that has already been written counts without being written
		// again.
		if objects+roots < 128 && end-head.Offset-s.head < 4096 && !final && roots < objects {
			s.Fatalf("segment at %d ends after %d objects, %d bytes", head.Offset, objects, end-head.Offset)
		}
		s.seen["segments"]++
	}
}

// belongs reports whether record i is an array that ART wrote as part of
// another object.
func (s *artShape) belongs(i int) bool {
	r := s.records[i]
	switch {
	case r.Sub == hprof.SubPrimitiveArray && r.Object&1 == 1:
		return true
	case r.Sub == hprof.SubObjectArray && r.Object&7 == 4:
		return true
	case r.Sub != hprof.SubPrimitiveArray:
		return false
	}
	before := s.records[i-1]
	return before.Sub == hprof.SubInstance && s.loaded[before.Class] == stringClass && r.Object-before.Object <= 16
}

// heap checks each object of the heap.
func (s *artShape) heap() {
	last, objects, kinds := 0, false, map[hprof.SubTag]bool{}
	for i, r := range s.records {
		if r.Sub.IsRoot() {
			if r.Sub == hprof.SubRootVMInternal {
				s.vm[r.Object] = true
			} else if !kinds[r.Sub] && !objects {
				if kinds[r.Sub] = true; rank(r.Sub) < last {
					s.Errorf("%v follows records that must come later", r.Sub)
				}
				last = rank(r.Sub)
			}
			if r.Sub == hprof.SubRootThreadObject && r.Root.Trace != 0xffffffff || r.Sub == hprof.SubRootJavaFrame &&
				r.Root.Frame != -1 {
				s.Errorf("%+v", r.Root)
			}
			continue
		}
		if r.Sub == 0 || r.Sub == hprof.SubHeapInfo {
			continue
		}
		objects = true
		name := s.names[r.Name]
		if want := map[uint32]string{'A': "app", 'I': "image", 'Z': "zygote"}[r.Heap]; name != want || want == "" {
			s.Fatalf("heap %d is %q", r.Heap, name)
		}
		if name != "app" && !s.belongs(i) {
			s.seen["image"]++
			if !s.vm[r.Object] {
				s.Errorf("0x%x of the image is not a root", uint64(r.Object))
			}
		}
		switch r.Sub {
		case hprof.SubClassDump:
			s.class(i)
		case hprof.SubInstance:
			s.instance(i)
		}
	}
}

func (s *artShape) class(i int) {
	c := &s.records[i].Dump
	name := s.loaded[c.ID]
	values := map[string]uint64{}
	for _, v := range c.Statics {
		values[s.names[v.Name]] = v.Value
	}
	statics := c.Statics
	used := 0
	for len(statics) > 0 && strings.HasPrefix(s.names[statics[0].Name], classOverhead) {
		used += statics[0].Type.Size(4)
		statics = statics[1:]
	}
	want := append(slices.Clone(artClassFields), "object shadow$_klass_", "int shadow$_monitor_")
	if len(statics) < len(want) {
		s.Fatalf("%s has %d static fields", name, len(statics))
	}
	for j, w := range want {
		if got := statics[j].Type.String() + " " +
			s.names[statics[j].Name]; got != strings.Replace(w, " ", " "+classPrefix, 1) {
			s.Fatalf("%s: static field %d is %q, want %q", name, j, got, w)
		}
	}
	// The method table is in a field, or in an array before the class.
	overhead := int(values[classPrefix+"classSize"]) - classHeader
	for _, v := range statics[len(want):] {
		overhead -= v.Type.Size(4)
	}
	if overhead > 4 {
		array := s.records[i-1]
		s.seen[classOverhead]++
		if array.Object != c.ID|1 || int(array.Count) != overhead-4 || values[classOverhead] != uint64(c.ID|1) {
			s.Errorf("%s: overhead of %d bytes, but array 0x%x has %d", name, overhead, uint64(array.Object),
				array.Count)
		}
	} else if used != overhead {
		s.Errorf("%s: uses %d bytes, but has an overhead of %d", name, used, overhead)
	}
	size := values[classPrefix+"objectSize"]
	switch {
	case name == stringClass:
		size = 16
	case name == classClass || strings.HasSuffix(name, "[]") || typeNamed(name) != 0:
		size = 0
	case size == 0:
		return // an interface or abstract class
	}
	if uint64(c.InstanceSize) != size {
		s.Errorf("%s: instances have %d bytes, want %d", name, c.InstanceSize, size)
	}
	if class := s.loaded[hprof.ID(values[classPrefix+"shadow$_klass_"])]; class != classClass {
		s.Errorf("%s is a %q", name, class)
	}
}

func (s *artShape) instance(i int) {
	r := s.records[i]
	class := s.loaded[r.Class]
	// The last fields are those of java.lang.Object: the class and the lock
	// word.
	if got := id4(r.Data[len(r.Data)-8:]); got != r.Class {
		s.Errorf("the class field of %s contains 0x%x", class, uint64(got))
	}
	if class == stringClass {
		s.string(r, s.records[i+1])
		return
	}
	for c := s.classes[r.Class]; c != nil; c = s.classes[c.Super] {
		if name := s.loaded[c.ID]; name != "java.lang.ClassLoader" && name != "java.lang.DexCache" {
			continue
		}
		s.seen["loader"]++
		last := c.Fields[len(c.Fields)-1]
		if array := s.records[i+1]; s.names[last.Name] != runtimeObjects || array.Object != r.Object+4 ||
			array.Sub != hprof.SubObjectArray || s.loaded[array.Class] != objectClass+"[]" {
			s.Errorf("a %s with %q, then 0x%x", class, s.names[last.Name], uint64(array.Object))
		}
	}
}

func (s *artShape) string(r, value Record) {
	s.seen["value"]++
	count, id := uint32(id4(r.Data)), id4(r.Data[8:])
	offset := hprof.ID(16)
	if count == 0 {
		offset = 8
	}
	wide := false
	for i := 0; i+1 < len(value.Data) && value.Type == hprof.Char; i += 2 {
		wide = wide || value.Data[i] != 0 || value.Data[i+1] > 0x7f || value.Data[i+1] == 0
	}
	if value.Sub != hprof.SubPrimitiveArray || value.Object != r.Object+offset || id != value.Object ||
		value.Count != count || len(r.Data) != 20 {
		s.Errorf("string 0x%x of %d characters at 0x%x, followed by %v 0x%x of %d", uint64(r.Object), count, uint64(id),
			value.Sub, uint64(value.Object), value.Count)
	}
	if value.Type != hprof.Byte && !wide && count > 0 {
		s.Errorf("string 0x%x stores ASCII characters in an array of %v, want byte", uint64(r.Object), value.Type)
	}
}

// TestARTSizes checks that the sizes computed from the fields match those in
// the dump.
func TestARTSizes(t *testing.T) {
	_, records, err := Parse(recorded.Read(t, "hprof", "ahat-O.hprof"))
	if err != nil {
		t.Fatal(err)
	}
	s := &artShape{
		T: t, records: records, names: map[hprof.ID]string{}, loaded: map[hprof.ID]string{},
		classes: map[hprof.ID]*hprof.Class{},
	}
	s.tables()
	h := Java(0)
	made := map[hprof.ID]*Class{0: nil}
	var declare func(id hprof.ID) *Class
	declare = func(id hprof.ID) *Class {
		c := s.classes[id]
		if k, ok := made[id]; ok {
			return k
		}
		if s.loaded[id] == objectClass {
			made[id] = h.Class(objectClass)
			return made[id]
		}
		var members []string
		for _, f := range c.Fields {
			if name := s.names[f.Name]; name != runtimeObjects && (name != "value" || s.loaded[id] != stringClass) {
				members = append(members, f.Type.String()+" f_"+name)
			}
		}
		for i, f := range c.Statics {
			if i > 0 && !strings.HasPrefix(s.names[f.Name], "$class") {
				members = append(members, "static "+f.Type.String()+" f_"+s.names[f.Name])
			}
		}
		made[id] = h.Declare(s.loaded[id], declare(c.Super), members...)
		return made[id]
	}
	checked := 0
	for id, c := range s.classes {
		k := declare(id)
		size, classSize, flags := uint64(0), 0, uint64(0)
		for _, v := range c.Statics {
			switch s.names[v.Name] {
			case classPrefix + "objectSize":
				size = v.Value
			case classPrefix + "classSize":
				classSize = int(v.Value)
			case classPrefix + "accessFlags":
				flags = v.Value
			}
		}
		if size != 0 && s.loaded[id] != classClass && k.name != stringClass {
			checked++
			if got := k.artSize(); uint64(got) != size {
				t.Errorf("%s: instances have %d bytes, want %d", k.name, got, size)
			}
		}
		// Interfaces and abstract classes have no method table, unless they are
		// arrays. The length of the table is not in the dump.
		k.bare = flags&0x600 != 0 && !strings.HasSuffix(k.name, "[]")
		for k.methods = 0; !k.bare && k.artClassSize()+8 <= classSize; {
			k.methods++
		}
		if k.super != nil && k.artClassSize() != classSize {
			t.Errorf("%s: the class has %d bytes, want %d", k.name, k.artClassSize(), classSize)
		}
	}
	if h.Err() != nil || checked < 1000 {
		t.Errorf("%d classes, %v", checked, h.Err())
	}
}

// TestLikeDalvik checks that the segments and heaps are the same as in a dump
// of an old Android version.
func TestLikeDalvik(t *testing.T) {
	_, records, err := Parse(recorded.Read(t, "hprof", "leak_service_binder.hprof"))
	if err != nil {
		t.Fatal(err)
	}
	s := &artShape{
		T: t, records: records, names: map[hprof.ID]string{}, loaded: map[hprof.ID]string{},
		classes: map[hprof.ID]*hprof.Class{}, seen: map[string]int{}, head: 9,
	}
	s.segments()
	if s.seen["segments"] != 647 {
		t.Errorf("%d segments", s.seen["segments"])
	}
}

// TestLikeHotSpot checks that the order, names, sizes and fields match those in
// a dump of JDK 11.
func TestLikeHotSpot(t *testing.T) {
	h := everything(Phone{SDK: 30})
	made, _, err := h.Dump(Form{Runtime: HotSpot})
	if err != nil {
		t.Fatal(err)
	}
	real := recorded.Read(t, "hprof", "mat-openjdk_jdk11_04_x64.hprof.gz")
	classes := map[string][2]string{}
	for i, data := range [][]byte{made, real} {
		header, records, err := Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		if header.Format != hprof.Format102 || header.IDSize != 8 {
			t.Errorf("%+v", header)
		}
		for name, shape := range likeHotSpot(t, records) {
			both := classes[name]
			both[i] = shape
			classes[name] = both
		}
	}
	for _, name := range []string{
		"java/lang/Object", "java/lang/String", "java/util/ArrayList", "java/util/HashMap$Node", "java/util/HashMap",
		"java/util/LinkedList$Node", "java/lang/ref/Reference", "java/lang/ref/WeakReference", "java/util/AbstractList",
		"[I", "[Ljava/lang/String;",
	} {
		if both := classes[name]; both[0] != both[1] || both[0] == "" {
			t.Errorf("%s is %q, want %q", name, both[0], both[1])
		}
	}
}

// likeHotSpot checks the order of the records in a HotSpot dump and returns the
// dump's classes.
func likeHotSpot(t *testing.T, records []Record) map[string]string {
	t.Helper()
	names, loaded, shapes := map[hprof.ID]string{}, map[hprof.ID]string{}, map[string]string{}
	id := func(b []byte) hprof.ID { return id4(b)<<32 | id4(b[4:]) }
	// These are the parts of a dump, in order, and the current part.
	part, reached := 0, 0
	for _, r := range records {
		switch {
		case r.Tag == hprof.TagString:
			part = 1
			names[id(r.Body)] = string(r.Body[8:])
		case r.Tag == hprof.TagLoadClass:
			part = 2
			loaded[id(r.Body[4:])] = names[id(r.Body[16:])]
		case r.Tag == hprof.TagStackFrame || r.Tag == hprof.TagStackTrace:
			part = 3
		case r.Tag == hprof.TagHeapDumpEnd:
			part = 8
		case r.Sub == 0:
			continue
		case r.Sub == hprof.SubClassDump:
			part = 4
			text := ""
			for _, f := range r.Dump.Fields {
				text += f.Type.String() + " " + names[f.Name] + ","
			}
			shapes[loaded[r.Object]] = text + string(rune('0'+r.Dump.InstanceSize))
		case r.Sub == hprof.SubRootStickyClass:
			part = 7
		case r.Sub.IsRoot():
			part = 6
		default:
			part = 5
			if r.Trace != 1 {
				t.Errorf("object 0x%x has trace %d, want 1", uint64(r.Object), r.Trace)
			}
		}
		if part < reached {
			t.Fatalf("record of part %d follows part %d at offset %d", part, reached, r.Offset)
		}
		reached = part
	}
	return shapes
}
