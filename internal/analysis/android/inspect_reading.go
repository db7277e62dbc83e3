package android

import (
	"context"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

const (
	// largestInstance is the maximum number of bytes of an instance that are
	// read, and largestArray is the maximum for an array. keptArray is the
	// maximum number of bytes of an array that are kept for a dump of a JVM.
	largestInstance = 1 << 16
	largestArray    = 1 << 18
	keptArray       = 1 << 12
	// mostWatched is the maximum number of LeakCanary's references that are
	// read.
	mostWatched = 1 << 20
)

// gather finds LeakCanary's references and, in a dump of a JVM, the threads.
func (i *Inspector) gather() (references, threads []heap.Object) {
	watching := make([]*heap.Family, len(referenceClasses))
	families := []*heap.Family{{Class: threadClass}}
	if !i.android {
		families[0].Limit = mostThreads
	}
	for n, class := range referenceClasses {
		watching[n] = &heap.Family{Class: class, Limit: mostWatched}
	}
	if i.names != nil && !i.android {
		families[0].Limit = 0
	}
	i.graph.Gather(append(families, watching...)...)
	for _, f := range watching {
		for _, o := range f.Objects {
			if i.graph.Class(o) == f.Class {
				references = append(references, o)
			}
		}
	}
	return references, families[0].Objects
}

// open makes all records of an Android dump readable, because such a dump is
// never large. In a dump of a JVM, only the records of LeakCanary's references
// and of threads are made readable, with their strings.
func (i *Inspector) open(ctx context.Context, references, threads []heap.Object) (err error) {
	if i.android {
		i.located, err = i.graph.Locate(ctx, func(heap.Object) bool { return true })
		return err
	}
	i.kept = map[heap.Object]heap.Record{}
	level := append(references[:len(references):len(references)], threads...)
	for _, next := range []func(heap.Object) []heap.Object{i.textsOf, i.charsOf, nil} {
		if err := i.keep(ctx, level); err != nil {
			return err
		}
		if next == nil {
			break
		}
		var found []heap.Object
		for _, o := range level {
			found = append(found, next(o)...)
		}
		level = found
	}
	return ctx.Err()
}

// keep reads the records of objects and stores them in kept. Only the beginning
// of each array is stored.
func (i *Inspector) keep(ctx context.Context, objects []heap.Object) error {
	return i.graph.Read(ctx, objects, func(r *heap.Record) error {
		if r.First != 0 {
			return nil
		}
		copied := *r
		copied.Body = append([]byte(nil), r.Body[:min(len(r.Body), keptArray)]...)
		i.kept[r.Object] = copied
		return nil
	})
}

// textsOf returns the Strings that a thread or one of LeakCanary's references
// holds.
func (i *Inspector) textsOf(o heap.Object) (list []heap.Object) {
	fields := append([]field{threadName}, referenceTexts...)
	for _, f := range fields {
		if to, ok := i.ref(o, f); ok {
			list = append(list, to)
		}
	}
	return list
}

// charsOf returns the array that holds the characters of a String, or nil if
// the dump contains none.
func (i *Inspector) charsOf(o heap.Object) []heap.Object {
	r, ok := i.record(o)
	if !ok {
		return nil
	}
	s, ok := i.layout.span(r)
	if !ok || s.array == noArray {
		return nil
	}
	return []heap.Object{s.array}
}

// record returns the record of an object, which is valid until the next record
// is read.
func (i *Inspector) record(o heap.Object) (*heap.Record, bool) {
	if i.holds && i.current.Object == o {
		return &i.current, true
	}
	return i.read(o, largestInstance)
}

// read returns the record of an object, truncated to a given number of bytes.
func (i *Inspector) read(o heap.Object, most int) (*heap.Record, bool) {
	if i.located == nil {
		r, ok := i.kept[o]
		return &r, ok
	}
	r, ok := i.located.Record(o, most)
	// A truncated record must not be reused for the next caller.
	i.current, i.holds = r, ok && r.Kind == hprof.SubInstance
	return &i.current, ok
}

// array reads the beginning of an array of objects.
func (i *Inspector) array(o heap.Object) (*heap.Record, bool) {
	r, ok := i.read(o, largestArray)
	return r, ok && r.Kind == hprof.SubObjectArray
}

// element is an element of an array or a list, with its index.
type element struct {
	index  int
	object heap.Object
}

// elements calls visit with each object that an array references, in the order
// of the indexes. It skips null and objects that are not in the dump, and stops
// when visit returns false.
func (i *Inspector) elements(o heap.Object, visit func(index int, to heap.Object) bool) {
	r, ok := i.array(o)
	if !ok {
		return
	}
	// visit may read other objects, which overwrites the record.
	var list []element
	for n := range r.Elements() {
		if to, ok := r.Element(n); ok {
			list = append(list, element{n, to})
		}
	}
	for _, e := range list {
		if !visit(e.index, e.object) {
			return
		}
	}
}

// ref returns the object that a field references. It returns false if the field
// does not exist, is null, or references an object that is not in the dump.
func (i *Inspector) ref(o heap.Object, f field) (heap.Object, bool) {
	r, ok := i.record(o)
	if !ok {
		return 0, false
	}
	return r.RefOf(i.field(f))
}

// isNull reports whether a field is null; known reports whether the field
// exists.
func (i *Inspector) isNull(o heap.Object, f field) (null, known bool) {
	r, ok := i.record(o)
	if !ok {
		return false, false
	}
	return r.IsNull(i.field(f))
}

// number returns the value of an integer field, or 0 or 1 for a boolean field;
// known reports whether the field exists.
func (i *Inspector) number(o heap.Object, f field) (n int64, known bool) {
	r, ok := i.record(o)
	if !ok {
		return 0, false
	}
	return r.IntOf(i.field(f))
}

// flag returns the value of a boolean field; known reports whether the field
// exists.
func (i *Inspector) flag(o heap.Object, f field) (value, known bool) {
	n, known := i.number(o, f)
	return n != 0, known
}

// text returns the contents of a String, truncated. It returns false for a
// stripped string.
func (i *Inspector) text(o heap.Object) (string, bool) {
	x, ok := i.characters(o)
	if !ok || !i.old && x.blank() {
		return "", false
	}
	all := texts{list: []characters{x}}
	return all.at(0), x.known
}

// characters reads the characters of a String.
func (i *Inspector) characters(o heap.Object) (x characters, ok bool) {
	r, ok := i.record(o)
	if !ok {
		return x, false
	}
	x.span = span{array: o, length: 1<<32 - 1}
	if r.Kind == hprof.SubInstance {
		if x.span, ok = i.layout.span(r); !ok {
			return x, false
		}
	}
	if x.length == 0 || x.array == noArray {
		x.known = true
		return x, true
	}
	if r, ok = i.read(x.array, min(2*(int(x.first)+longestText)+2, largestArray)); !ok {
		return x, false
	}
	x.take(r)
	return x, true
}

// textOf returns the contents of the String that a field references. If the
// field is the name of a thread and the name was stripped, textOf returns the
// name that threadNamed infers, if any.
func (i *Inspector) textOf(o heap.Object, f field) (string, bool) {
	if name, ok := i.names[o]; ok && f == threadName {
		return name, true
	}
	to, ok := i.ref(o, f)
	if !ok {
		return "", false
	}
	text, ok := i.text(to)
	if !ok && f == threadName {
		return i.threadNamed(o)
	}
	return text, ok
}

// textOrNull returns the contents of the String that a field references, or
// "null" if the field is null.
func (i *Inspector) textOrNull(o heap.Object, f field) (string, bool) {
	if null, known := i.isNull(o, f); known && null {
		return "null", true
	}
	return i.textOf(o, f)
}

// className returns the name of an object's class, or, if the object is itself
// a class, the name of that class.
func (i *Inspector) className(o heap.Object) string {
	if i.graph.IsClass(o) {
		return i.graph.ClassName(o)
	}
	return i.graph.Class(o)
}

func isArray(class string) bool { return strings.HasSuffix(class, "[]") }

func isPrimitiveArray(class string) bool {
	switch class {
	case "boolean[]", "char[]", "float[]", "double[]", "byte[]", "short[]", "int[]", "long[]":
		return true
	}
	return false
}

// findGlobals finds the Binder objects that native code holds.
func (i *Inspector) findGlobals() map[heap.Object]bool {
	found := map[heap.Object]bool{}
	i.graph.Roots(func(r hprof.Root, o heap.Object) {
		if r.Kind == hprof.SubRootJNIGlobal && i.graph.InstanceOf(o, "android.os.Binder") {
			found[o] = true
		}
	})
	return found
}
