package hproftest

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// forms lists all forms in which a heap can be written.
var forms = []Form{
	{}, {IDSize: 8}, {Converted: true}, {Shuffle: true}, {HeapFirst: true, NoEnd: true},
	{Segments: &Segmentation{Single: true}, Format: hprof.Format101},
	{Runtime: HotSpot}, {Runtime: HotSpot, IDSize: 4, Format: hprof.Format101}, {Runtime: HotSpot, Shuffle: true},
	{Runtime: HotSpot, HeapFirst: true},
	{Runtime: HotSpot, Segments: &Segmentation{Single: true}},
}

// write writes a heap and reads the dump as a graph.
func write(t *testing.T, h *Heap, f Form) (*Graph, IDs, []byte) {
	t.Helper()
	data, ids, err := h.Dump(f)
	if err != nil {
		t.Fatal(err)
	}
	g, err := ReadGraph(data)
	if err != nil {
		t.Fatalf("%+v: %v", f, err)
	}
	return g, ids, data
}

// verify checks that the dump contains each object of the heap as described,
// and that all other objects are ones that the runtime adds.
func verify(t *testing.T, h *Heap, f Form, g *Graph, ids IDs) {
	t.Helper()
	f = f.withDefaults()
	v := verifier{t, h, f, g, ids, map[hprof.ID]bool{}}
	for r := Ref(1); int(r) < len(h.objects); r++ {
		v.object(r)
	}
	for id, n := range g.Nodes {
		if !v.known[id] && !v.made(n) {
			t.Errorf("%+v: the dump has a %s 0x%x that was not described", f, n.Class, uint64(id))
		}
	}
}

type verifier struct {
	*testing.T
	h     *Heap
	f     Form
	g     *Graph
	ids   IDs
	known map[hprof.ID]bool
}

// made reports whether ART itself adds the object: a method table, or an object
// that a class loader holds.
func (v *verifier) made(n *Node) bool {
	if v.f.Runtime != ART {
		return false
	}
	if n.ID&1 == 1 {
		return v.g.Nodes[n.ID-1] != nil && v.g.Nodes[n.ID-1].Kind == hprof.SubClassDump && n.Class == "byte[]"
	}
	owner := v.g.Nodes[n.ID-4]
	return owner != nil && owner.Refs["java.lang.ClassLoader.runtimeInternalObjects"]+
		owner.Refs["java.lang.DexCache.runtimeInternalObjects"] == n.ID
}

func (v *verifier) has(o *object) bool {
	for _, only := range []Runtime{o.only, o.class.only} {
		if only != 0 && only != v.f.Runtime {
			return false
		}
	}
	return true
}

// javaName converts class names from the JVM's form to Java's.
func javaName(s string) string {
	depth := 0
	for depth < len(s) && s[depth] == '[' {
		depth++
	}
	if depth > 0 {
		s = s[depth:]
		if i := strings.IndexByte("ZCFDBSIJ", s[0]); len(s) == 1 && i >= 0 {
			s = []string{"boolean", "char", "float", "double", "byte", "short", "int", "long"}[i]
		} else {
			s = s[1 : len(s)-1]
		}
	}
	return strings.ReplaceAll(s, "/", ".") + strings.Repeat("[]", depth)
}

func (v *verifier) object(r Ref) {
	v.Helper()
	o, id := &v.h.objects[r], v.ids.Of(r)
	n := v.g.Nodes[id]
	v.known[id] = true
	switch {
	case o.shape == ofNothing:
		if id == 0 || n != nil {
			v.Errorf("%+v: object %d must not exist, but is at 0x%x", v.f, r, uint64(id))
		}
		return
	case !v.has(o):
		if id != 0 {
			v.Errorf("%+v: %s does not belong to this runtime but exists at 0x%x", v.f, o.class.name, uint64(id))
		}
		return
	case n == nil:
		v.Fatalf("%+v: object %d of %s is missing", v.f, r, o.class.name)
	case o.shape != ofClass && javaName(n.Class) != o.class.name:
		v.Errorf("%+v: object %d is a %s, want %s", v.f, r, n.Class, o.class.name)
	}
	if want := v.heap(o); n.Heap != want {
		v.Errorf("%+v: object %d of %s is in heap %q, want %q", v.f, r, o.class.name, n.Heap, want)
	}
	switch o.shape {
	case ofClass:
		v.class(o.class, n)
	case ofFields:
		for c := o.class; c != nil; c = c.super {
			for i, f := range c.fields {
				v.value(n, v.name(c)+"."+f.name, f.kind, o.slots[c.first+i], f.only)
			}
		}
	case ofRefs:
		if len(n.Elements) != len(o.refs) {
			v.Fatalf("%+v: %d elements, want %d", v.f, len(n.Elements), len(o.refs))
		}
		for i, e := range o.refs {
			if n.Elements[i] != v.ids.Of(e) {
				v.Errorf("%+v: element %d is 0x%x, want 0x%x", v.f, i, uint64(n.Elements[i]), uint64(v.ids.Of(e)))
			}
		}
	case ofText:
		v.text(r, o, n)
	case ofData:
		if !bytes.Equal(n.Data, o.data) {
			v.Errorf("%+v: %s has unexpected elements", v.f, n.Class)
		}
	case ofFiller, ofCount:
		if n.Size != int64(o.count)*int64(o.element.Size(4)) ||
			(len(n.Data) > 0) != (o.shape == ofFiller && o.count > 0) {
			v.Errorf("%+v: %s has %d bytes for %d elements", v.f, n.Class, n.Size, o.count)
		}
	}
}

func (v *verifier) name(c *Class) string {
	if v.f.Runtime == HotSpot {
		return strings.ReplaceAll(c.name, ".", "/")
	}
	return c.name
}

func (v *verifier) heap(o *object) string {
	if v.f.Runtime == HotSpot || v.f.Converted {
		return ""
	}
	return map[Space]string{App: "app", Image: "image", Zygote: "zygote"}[o.space]
}

func (v *verifier) value(n *Node, name string, t hprof.Type, want uint64, only Runtime) {
	v.Helper()
	got, ok := n.Fields[name]
	if t == hprof.Object {
		want = uint64(v.ids.Of(Ref(want)))
		if n.Refs["<class>"] == v.ids.Of(v.h.byName["ballast.Registry"]) && name == "ballast.Registry.first" {
			want = got
		}
	}
	if exists := only == 0 || only == v.f.Runtime; ok != exists || exists && got != want {
		v.Errorf("%+v: %s.%s is 0x%x (%v), want 0x%x", v.f, n.Class, name, got, ok, want)
	}
}

func (v *verifier) class(c *Class, n *Node) {
	v.Helper()
	if javaName(n.Class) != c.name || n.super != v.ids.Of(Ref(0)) && c.super == nil || c.super != nil &&
		n.super != v.ids.Of(c.super) || n.Refs["<loader>"] != v.ids.Of(c.loader) {
		v.Errorf("%+v: class %q, super 0x%x, want %q", v.f, n.Class, uint64(n.super), c.name)
	}
	own := 2 // the references to superclass and loader, which Graph adds
	for _, s := range c.statics {
		v.value(n, s.name, s.kind, s.value, 0)
		own++
	}
	for name := range n.Fields {
		if v.f.Runtime == ART && (strings.HasPrefix(name, "$class") || name == staticOverhead) {
			own++
		}
	}
	if len(n.Fields) != own {
		v.Errorf("%+v: %s has %d static fields, want %d", v.f, c.name, len(n.Fields), own)
	}
}

func (v *verifier) text(r Ref, o *object, n *Node) {
	v.Helper()
	array := v.g.Nodes[v.ids.Value(r)]
	if array == nil || v.g.Path(n.ID, "value") != array.ID {
		v.Fatalf("%+v: string %d has no array of characters", v.f, r)
	}
	v.known[array.ID] = true
	var units []uint16
	wide := array.Type == hprof.Char
	if coder, ok := v.g.Field(n.ID, "coder"); ok {
		wide = coder == 1
	}
	for i := 0; i < len(array.Data); i++ {
		u := uint16(array.Data[i])
		if wide && v.f.Runtime == ART {
			u = u<<8 | uint16(array.Data[i+1])
			i++
		} else if wide {
			u |= uint16(array.Data[i+1]) << 8
			i++
		}
		units = append(units, u)
	}
	if !slices.Equal(units, o.text) {
		v.Errorf("%+v: %q, want %q", v.f, string(utf16.Decode(units)), string(utf16.Decode(o.text)))
	}
	if count, ok := v.g.Field(n.ID, "count"); v.f.Runtime == ART && (!ok || count != uint64(len(o.text))) {
		v.Errorf("%+v: string of %d characters has count %d", v.f, len(o.text), count)
	}
}

// describe creates a heap from the bytes of a script.
func describe(script []byte) *Heap {
	next := func() int {
		if len(script) == 0 {
			return 0
		}
		b := script[0]
		script = script[1:]
		return int(b)
	}
	seed := uint64(next())
	h := Java(seed)
	if next()%2 == 1 {
		h = Android(Phone{Seed: seed, SDK: 23 + next()%14})
	}
	classes := []*Class{h.Class("java.lang.Object"), h.Class("java.util.ArrayList")}
	refs := []Ref{0, h.Loader(), h.Main().Ref}
	pick := func() Ref { return refs[next()%len(refs)] }
	kind := func() hprof.Type { return types[1:][next()%8] }
	for n := 0; len(script) > 0 && n < 400; n++ {
		r := Ref(0)
		switch next() % 16 {
		case 0, 1:
			members := []string{}
			for i := range next() % 6 {
				m := fmt.Sprintf("%v f%d", types[next()%len(types)], i)
				members = append(members, []string{m, m, "static " + m, "art " + m, "jvm " + m}[next()%5])
			}
			// Two classes may have the same name, unless one extends the other.
			name, super := fmt.Sprintf("%s.C%d", []string{"com.app", "java.x"}[next()%2], n),
				classes[next()%len(classes)]
			if super == classes[0] {
				name = "com.app.Twice"
			}
			c := h.Declare(name, super, members...)
			classes = append(classes, c)
			r = c.Ref()
		case 2, 3, 4:
			h.In(Space(next()%3), func() { r = h.New(classes[next()%len(classes)], nil) })
		case 5:
			r = h.Objects(classes[next()%len(classes)], pick(), pick(), pick())
		case 6:
			t := kind()
			r = h.Primitives(t, bytes.Repeat([]byte{byte(next())}, next()*t.Size(8)))
		case 7:
			r = h.String(string([]rune{'a', 'b', rune(next()), rune(next() * 257), 0x1f600}[:next()%6]))
		case 8:
			r = h.Intern(string(rune(next())))
		case 9:
			r = h.Filler(kind(), uint32(next()*next()))
		case 10:
			r = h.NoData(kind(), uint32(next()))
		case 11:
			r = h.Missing()
		case 12:
			h.Root([]hprof.SubTag{0xff, 1, 2, 3, 4, 5, 6, 7, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x8e, 0x90}[next()%15],
				pick())
		case 13:
			r = h.Thread(string(rune('a'+next()%26)), "a.B.c(D.java:7)").Ref
		case 14:
			r = [](func(...Ref) Ref){
				h.HashMap, h.LinkedList, h.HashSet, h.WeakHashMap, h.ConcurrentHashMap, h.LinkedHashMap,
			}[next()%6](pick(), pick(), pick(), pick())
		case 15:
			r = []func(Ref) Ref{h.Weak, h.Soft, h.Phantom}[next()%3](pick())
		}
		if r != 0 {
			refs = append(refs, r)
		}
		h.assign(pick(), next, pick)
	}
	return h
}

// assign sets the fields of an object to random values.
func (h *Heap) assign(r Ref, next func() int, pick func() Ref) {
	o := &h.objects[r]
	set := func(t hprof.Type) any {
		switch t {
		case hprof.Object:
			return pick()
		case hprof.Boolean:
			return next()%2 == 1
		case hprof.Float, hprof.Double:
			return float64(next()) / 3
		}
		return next() - 128
	}
	switch {
	case r == 0:
	case o.shape == ofFields:
		for c := o.class; c.super != nil; c = c.super {
			for _, f := range c.fields {
				h.SetIn(r, c, f.name, set(f.kind))
			}
		}
	case o.shape == ofClass && o.class.only == 0:
		for _, s := range o.class.statics {
			h.SetStatic(o.class, s.name, set(s.kind))
		}
	case o.shape == ofRefs:
		h.SetElement(r, next()%4, pick())
	}
}

func FuzzHeap(f *testing.F) {
	for n := range 24 {
		script := []byte{}
		for i := range 150 + 20*n {
			script = append(script, byte(mix(uint64(n), uint64(i))))
		}
		f.Add(byte(n), script)
	}
	f.Fuzz(func(t *testing.T, how byte, script []byte) {
		if len(script) > 1<<11 {
			return
		}
		h := describe(script)
		if h.Err() != nil {
			t.Fatal(h.Err())
		}
		form := forms[int(how)%len(forms)]
		g, ids, data := write(t, h, form)
		verify(t, h, form, g, ids)
		checkRecords(t, form, g, data)
		again, err := io.ReadAll(iotest.HalfReader(describe(script).Reader(form)))
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("%+v: the second dump differs: %v", form, err)
		}
	})
}

// checkRecords checks rules that the records of every dump must follow: one
// record per object, a LOAD_CLASS and a name per class, a name per field, and
// an end record.
func checkRecords(t *testing.T, f Form, g *Graph, data []byte) {
	t.Helper()
	_, records, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	seen, serials := map[hprof.ID]bool{}, map[uint32]bool{}
	for _, r := range records {
		switch {
		case r.Tag == hprof.TagLoadClass:
			serial := uint32(r.Body[0])<<24 | uint32(r.Body[1])<<16 | uint32(r.Body[2])<<8 | uint32(r.Body[3])
			if serials[serial] || serial == 0 {
				t.Errorf("%+v: duplicate class serial number %d", f, serial)
			}
			serials[serial] = true
		case r.Sub == 0 || r.Sub.IsRoot() || r.Sub == hprof.SubHeapInfo:
		case seen[r.Object]:
			t.Errorf("%+v: duplicate object 0x%x", f, uint64(r.Object))
		default:
			seen[r.Object] = true
		}
		if r.Sub == hprof.SubClassDump {
			if g.Loaded[r.Object] == "" {
				t.Errorf("%+v: class 0x%x has no name", f, uint64(r.Object))
			}
			for _, field := range r.Dump.Fields {
				if g.Strings[field.Name] == "" {
					t.Errorf("%+v: field of %s has no name", f, g.Loaded[r.Object])
				}
			}
		}
	}
	if last := records[len(records)-1]; (last.Tag == hprof.TagHeapDumpEnd) == f.NoEnd {
		t.Errorf("%+v: last record has tag %d", f, last.Tag)
	}
	if first := records[0]; (first.Sub == 0 && first.Tag != hprof.TagString) != f.HeapFirst {
		t.Errorf("%+v: first record has tag %d", f, first.Tag)
	}
}

// TestSameHeapInEachForm checks that the reachable graph is the same in all
// forms.
func TestSameHeapInEachForm(t *testing.T) {
	for seed := range uint64(4) {
		script := []byte{byte(seed), 1}
		for i := range 600 {
			script = append(script, byte(mix(seed, uint64(i))))
		}
		var first []byte
		for _, f := range forms {
			h := describe(script)
			g, ids, data := write(t, h, f)
			verify(t, h, f, g, ids)
			if first == nil {
				first = data
			} else if bytes.Equal(first, data) {
				t.Errorf("%+v does not change the dump", f)
			}
		}
	}
}

func TestMistakes(t *testing.T) {
	for says, do := range map[string]func(h *Heap){
		`no class "x.Y"`: func(h *Heap) { h.New(h.Class("x.Y"), nil) },
		`has no field "nope"`: func(h *Heap) {
			h.New(h.Class("java.util.ArrayList"), Fields{"nope": 1})
		},
		`has no static field "nope"`: func(h *Heap) {
			h.SetStatic(h.Class("java.util.ArrayList"), "nope", 1)
		},
		"3000000000 of type int64 is not a value of type short": func(h *Heap) {
			h.Set(h.New(h.Declare("a.B", nil, "short s"), nil), "s", 3_000_000_000)
		},
		"x of type string is not a value of type int":   func(h *Heap) { h.Set(h.ArrayList().Ref, "size", "x") },
		"1 of type int64 is not a value of type object": func(h *Heap) { h.Set(h.ArrayList().Ref, "elementData", 1) },
		"true of type bool is not a value of type int":  func(h *Heap) { h.Set(h.ArrayList().Ref, "size", true) },
		"{} of type struct {} is not an object": func(h *Heap) {
			h.Set(h.ArrayList().Ref, "elementData", struct{}{})
		},
		"no object 4000000": func(h *Heap) { h.Objects(h.Class(objectClass), 4_000_000) },
		"3 bytes are not a whole number of int elements": func(h *Heap) { h.Primitives(hprof.Int, make([]byte, 3)) },
		"primitive arrays of object are not supported":   func(h *Heap) { h.Filler(hprof.Object, 3) },
		"primitive arrays of type 77 are not supported":  func(h *Heap) { h.NoData(77, 3) },
		`cannot read "final"`:                            func(h *Heap) { h.Declare("a.B", nil, "final int x") },
		`"whatever" is not a type and a name`:            func(h *Heap) { h.Declare("a.B", nil, "whatever") },
		`"void x" is not a type and a name`:              func(h *Heap) { h.Declare("a.B", nil, "void x") },
		"INSTANCE_DUMP is not a GC root":                 func(h *Heap) { h.Root(hprof.SubInstance, h.Main().Ref) },
		"has no fields":                                  func(h *Heap) { h.Set(h.String("x"), "count", 1) },
		"has no element 1":                               func(h *Heap) { h.SetElement(h.String("x"), 1, 0) },
		`has no field "size" declared by java.util.HashMap`: func(h *Heap) {
			h.SetIn(h.ArrayList().Ref, h.Class("java.util.HashMap"), "size", 1)
		},
		`a lifecycle has no state "BORED"`:  func(h *Heap) { h.Lifecycle("BORED") },
		`a recomposer has no state "Bored"`: func(h *Heap) { h.Recomposer("Bored") },
		"requires SDK 35, this is 34":       func(h *Heap) { h.DumpBitmaps() },
	} {
		h := Android(Phone{})
		if h.Err() != nil {
			t.Fatal(h.Err())
		}
		do(h)
		_, _, err := h.Dump(Form{})
		if _, rerr := io.ReadAll(h.Reader(Form{})); rerr != err {
			t.Errorf("read the dump: %v", rerr)
		}
		if err == nil || !strings.Contains(err.Error(), says) || err != h.Err() {
			t.Errorf("%v, want %q", err, says)
		}
	}
	for _, f := range []Form{{Runtime: 7}, {IDSize: 3}, {Format: "JAVA PROFILE 2"}} {
		if _, _, err := Java(0).Dump(f); err == nil {
			t.Errorf("an invalid form %+v was written", f)
		}
	}
}

func TestValues(t *testing.T) {
	h := Java(0)
	c := h.Declare("a.B", nil, "boolean z", "byte b", "short s", "char c", "int i", "long j", "float f", "double d",
		"object o", "object p", "object q")
	r := h.New(c,
		Fields{
			"z": true, "b": -1, "s": -2, "c": 0xfffd, "i": 0xffffffff, "j": int64(math.MinInt64), "f": 1.5, "d": -0.5,
			"o": "text", "p": c, "q": nil,
		})
	sub := h.Declare("a.C", c, "int i")
	hiding := h.New(sub, Fields{"i": 7})
	h.SetIn(hiding, c, "i", 8)
	for _, f := range forms {
		g, ids, _ := write(t, h, f)
		n := g.Nodes[ids.Of(r)]
		name := "a.B."
		if f.Runtime == HotSpot {
			name = "a/B."
		}
		for field, want := range map[string]uint64{
			"z": 1, "b": 0xff, "s": 0xfffe, "c": 0xfffd, "i": 0xffffffff, "j": 1 << 63,
			"f": uint64(math.Float32bits(1.5)), "d": math.Float64bits(-0.5), "p": uint64(ids.Of(c)), "q": 0,
		} {
			if got, ok := n.Fields[name+field]; !ok || got != want {
				t.Errorf("%+v: %s is 0x%x, want 0x%x", f, field, got, want)
			}
		}
		if got := g.Text(g.Path(ids.Of(r), "o")); got != "text" {
			t.Errorf("%q", got)
		}
		outer, _ := g.Field(ids.Of(hiding), "i")
		if inner := g.Nodes[ids.Of(hiding)].Fields[name+"i"]; outer != 7 || inner != 8 {
			t.Errorf("%+v: hidden field = %d, want 8; hiding field = %d, want 7", f, inner, outer)
		}
	}
}

// TestShallow checks that sizes match those in the dump.
func TestShallow(t *testing.T) {
	for _, sdk := range []int{25, 30} {
		h := Android(Phone{SDK: sdk})
		mark := h.Len()
		refs := []Ref{
			h.New(h.Class("java.util.HashMap"), nil), h.String("text"), h.String("\u20ac"), h.String(""),
			h.Objects(h.Class(objectClass), 0, 0, 0), h.Longs(1, 2), h.Filler(hprof.Short, 33), h.NoData(hprof.Int, 5),
		}
		l := lookAt(t, h)
		want := int64(0)
		for _, r := range refs {
			want += l.Nodes[l.Of(r)].Size
			if v := l.Nodes[l.Value(r)]; v != nil {
				want += v.Size
			}
		}
		if got := h.Shallow(mark); got != want || h.Len() != mark+len(refs) {
			t.Errorf("SDK %d: %d bytes, want %d", sdk, got, want)
		}
	}
}

// TestTwoInOne writes several heaps with the same IDs to one file.
func TestTwoInOne(t *testing.T) {
	one, two := Java(1), Java(1)
	one.Hold("a.B", "x", one.String("one"))
	two.Hold("a.B", "x", two.String("two"))
	for _, f := range []Form{{}, {Runtime: HotSpot, Segments: &Segmentation{Single: true}}} {
		var out bytes.Buffer
		ids, err := Write(&out, f, one, two)
		if err != nil || len(ids) != 2 {
			t.Fatal(err)
		}
		first, _, err := one.Dump(f)
		if err != nil || !bytes.HasPrefix(out.Bytes(), first) {
			t.Errorf("%+v: dump does not begin with the first heap: %v", f, err)
		}
		_, records, err := Parse(out.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		ends := 0
		for _, r := range records {
			if r.Tag == hprof.TagHeapDumpEnd {
				ends++
			}
		}
		if ends != 2 {
			t.Errorf("%+v: %d end records", f, ends)
		}
		g, err := ReadGraph(out.Bytes())
		if err != nil || g.Text(g.Path(ids[1].Of(two.Class("a.B")), "x")) != "two" {
			t.Errorf("%+v: the second heap is missing: %v", f, err)
		}
	}
	broken := Java(1)
	broken.Class("none")
	if _, err := Write(&bytes.Buffer{}, Form{}, one, broken); err == nil {
		t.Error("an invalid heap was written")
	}
}
