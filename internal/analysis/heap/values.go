package heap

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// FieldValue is the value of a field or of an array element.
type FieldValue struct {
	// Class is the class that declares the field; it is "" for an element. Name
	// is the field's name, or "[3]" for an element.
	Class, Name string
	Type        hprof.Type
	// ID is the ID of the referenced object, 0 for null. If InDump is true, the
	// dump contains the object, and Object is its number.
	ID     hprof.ID
	Object Object
	InDump bool
	// Text is a value of any other type, in Java's notation.
	Text string
}

// Values returns the fields of an instance, starting with those of the most
// derived class, or the elements of an array; most is the maximum number of
// values.
func (r *Record) Values(most int) (list []FieldValue) {
	g := r.graph
	switch r.Kind {
	case hprof.SubInstance:
		return r.instanceValues(most)
	case hprof.SubObjectArray:
		for i := 0; i < r.Elements() && i < most; i++ {
			v := FieldValue{Name: elementName(int(r.First) + i), Type: hprof.Object}
			v.set(g, r.Body[i*g.IDSize:])
			list = append(list, v)
		}
	case hprof.SubPrimitiveArray:
		size := r.Type.Size(g.IDSize)
		for i := 0; size > 0 && (i+1)*size <= len(r.Body) && i < most; i++ {
			v := FieldValue{Name: elementName(int(r.First) + i), Type: r.Type}
			v.set(g, r.Body[i*size:])
			list = append(list, v)
		}
	}
	return list
}

// Value returns the value of an instance's field. If several fields have this
// name, Value uses the field of the most derived class.
func (r *Record) Value(field string) (v FieldValue, ok bool) {
	b, t, ok := r.bytes(field)
	if !ok {
		return v, false
	}
	v = FieldValue{Name: field, Type: t}
	v.set(r.graph, b)
	return v, true
}

func elementName(i int) string { return "[" + strconv.Itoa(i) + "]" }

func (r *Record) instanceValues(most int) (list []FieldValue) {
	g, at, s := r.graph, 0, r.slot
	for range longestChain {
		c := &g.registry.list[s]
		if c.dump == nil {
			return list
		}
		for _, f := range c.dump.Fields {
			size := f.Type.Size(g.IDSize)
			if at+size > len(r.Body) || len(list) >= most {
				return list
			}
			name, _ := g.fieldName(c, f.Name, f.Type)
			v := FieldValue{Class: c.name, Name: name, Type: f.Type}
			v.set(g, r.Body[at:])
			list = append(list, v)
			at += size
		}
		if c.super == 0 || c.super == s {
			return list
		}
		s = c.super
	}
	return list
}

// StaticValues returns the first static fields of a class object; most is the
// maximum number of fields.
func (g *Graph) StaticValues(class Object, most int) (list []FieldValue) {
	c := &g.registry.list[g.registry.slots[g.ID(class)]]
	if c.dump == nil {
		return nil
	}
	for _, f := range c.dump.Statics[:min(most, len(c.dump.Statics))] {
		name, _ := g.fieldName(c, f.Name, f.Type)
		v := FieldValue{Class: c.name, Name: name, Type: f.Type}
		size := f.Type.Size(g.IDSize)
		var all [8]byte
		binary.BigEndian.PutUint64(all[:], f.Value)
		v.set(g, all[8-size:])
		list = append(list, v)
	}
	return list
}

// set decodes the value from bytes.
func (v *FieldValue) set(g *Graph, b []byte) {
	switch v.Type {
	case hprof.Object:
		v.ID = readID(b, g.IDSize)
		v.Object, v.InDump = g.find(v.ID)
	case hprof.Boolean:
		v.Text = strconv.FormatBool(b[0] != 0)
	case hprof.Char:
		v.Text = strconv.QuoteRune(rune(binary.BigEndian.Uint16(b)))
	case hprof.Float:
		v.Text = strconv.FormatFloat(float64(math.Float32frombits(binary.BigEndian.Uint32(b))), 'g', -1, 32)
	case hprof.Double:
		v.Text = strconv.FormatFloat(math.Float64frombits(binary.BigEndian.Uint64(b)), 'g', -1, 64)
	default:
		n, _ := integer(b, v.Type)
		v.Text = strconv.FormatInt(n, 10)
	}
}

// Holders returns objects that reference the given object strongly or softly,
// by fields, elements or class records. It returns at most the given number of
// these objects, and their total number. A GC root may have no holders. Holders
// requires Options.Inbound.
func (g *Graph) Holders(o Object, most int) (list []Object, count int, err error) {
	if g.inbound.place == nil {
		return nil, 0, errNoInbound
	}
	if v := g.tree.vertices[o]; v == 0 {
		return nil, 0, nil
	} else if !g.ownVertex(uint32(o)) {
		// The leaf shares the vertex of the one object that references it.
		return []Object{Object(g.tree.objects[v])}, 1, nil
	}
	b := &g.inbound
	var all []uint32
	for _, d := range g.seeds([]Object{o}) {
		if p := b.parent(d); p != 0 {
			all = append(all, g.tree.objects[b.place[p]])
		}
		for _, p := range b.of(d) {
			if p != 0 {
				all = append(all, g.tree.objects[b.place[p]])
			}
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for _, x := range all[:min(most, len(all))] {
		list = append(list, Object(x))
	}
	return list, len(all), nil
}
