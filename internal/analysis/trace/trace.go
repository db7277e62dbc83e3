package trace

import (
	"context"
	"fmt"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Trace is a leak trace: a path with the statuses and descriptions of its
// objects.
type Trace struct {
	Root Root
	// Elements lists the objects from the root to the leaking object, which is
	// the last element.
	Elements []Element
	// Matcher is the matcher of the first known leak on the path, or nil if the
	// leak is the app's own.
	Matcher *Matcher
}

// Element is an object of a trace together with its reference to the next
// object; the last element has no reference.
type Element struct {
	Object heap.Object
	// Class is the name of the object's class; for a class object, it is the
	// name of the class that the object represents.
	Class string
	// Super is the nearest superclass that has a name in the source, or "" if
	// that is java.lang.Object.
	Super string
	// Type is "instance", "array" or "class".
	Type   string
	Status Status
	Reason string
	Labels []string
	// Kind, Owner and Field describe the reference: Owner is the class that
	// declares the field or holds the element; Field is the name of the field,
	// "[x]" for elements or "<Java Local>" for local variables.
	Kind  EdgeKind
	Owner string
	Field string
	// Shown is Field, including the index or the key of an element.
	Shown string
	// Suspect references are those between the last needed object and the first
	// leaking one.
	Suspect bool
	// Repeat is the number of further objects of the same class that follow,
	// each referenced by the same field of the previous one; Omitted is the
	// number of elements that are omitted after them.
	Repeat, Omitted int
	// Parts is the number of following elements that are parts of the
	// collection itself: tables and nodes.
	Parts int
}

// Leaking returns the leaking object, which is the last element.
func (t *Trace) Leaking() *Element { return &t.Elements[len(t.Elements)-1] }

// Describe provides the descriptions of objects in traces.
type Describe struct {
	// Inspect inspects an object and returns its labels and the reasons why it
	// is leaking or needed.
	Inspect func(heap.Object) Inspection
	// Plain quickly reports whether the status of an object is unknown; if it
	// is nil, Inspect is called instead.
	Plain func(heap.Object) bool
	// Text returns the contents of a string. It returns false for other
	// objects, and if the contents cannot be read.
	Text func(heap.Object) (string, bool)
	// Prepare is called once with the keys of maps before Text is called for
	// them; it may be nil.
	Prepare func(context.Context, []heap.Object) error
}

func (d *Describe) prepare(ctx context.Context, edges map[heap.Object]Edge) error {
	if d.Prepare == nil {
		return nil
	}
	var keys []heap.Object
	for _, e := range edges {
		if e.HasKey {
			keys = append(keys, e.Key)
		}
	}
	return d.Prepare(ctx, keys)
}

// Traces returns the traces of reached objects.
func (s *Search) Traces(ctx context.Context, objects []heap.Object, d Describe) ([]Trace, error) {
	x, err := s.forms(ctx, objects, d, manner{folding: true})
	if err != nil {
		return nil, err
	}
	traces := make([]Trace, 0, len(objects))
	for _, o := range objects {
		if s.reached(o) {
			traces = append(traces, s.reader.trace(x.path(o), x.describe))
		}
	}
	return traces, nil
}

func (r *Reader) trace(p Path, d Describe) Trace {
	t := Trace{Root: p.Root, Matcher: p.Root.Matcher}
	inspections := make([]Inspection, 0, len(p.Steps)+1)
	for _, s := range p.Steps {
		t.Elements = append(t.Elements, r.element(s, d))
		inspection := d.Inspect(s.Object)
		if m := s.Edge.Matcher; m != nil {
			// Labels of the matcher are added before the object's own, as in
			// Shark.
			inspection.Labels = append([]string{"Library leak match: " + m.String()}, inspection.Labels...)
			if t.Matcher == nil {
				t.Matcher = m
			}
		}
		inspections = append(inspections, inspection)
	}
	t.Elements = append(t.Elements, r.object(p.Leak))
	r.findParts(t.Elements)
	inspections = append(inspections, d.Inspect(p.Leak))
	t.resolve(inspections)
	return t
}

func (r *Reader) object(o heap.Object) Element {
	e := r.typed(o)
	if e.Type == "instance" && r.compiled(o, e.Class) {
		e.Super = r.super(o)
	}
	return e
}

// typed returns an element with only the object, its class and its type, which
// are cheap to determine.
func (r *Reader) typed(o heap.Object) Element {
	e := Element{Object: o, Class: r.name(o), Type: "instance"}
	switch {
	case r.graph.IsClass(o):
		e.Type = "class"
	case strings.HasSuffix(e.Class, "[]"):
		e.Type = "array"
	}
	return e
}

// super returns the nearest superclass with a name chosen by a programmer.
func (r *Reader) super(o heap.Object) string {
	for i, name := range r.graph.Hierarchy(r.graph.ClassNumber(o)) {
		if i > 0 && name != "java.lang.Object" && !isCompiled(name) {
			return name
		}
	}
	return ""
}

func (r *Reader) element(s PathNode, d Describe) Element {
	e := r.object(s.Object)
	e.Kind, e.Owner, e.Field = s.Edge.Kind, r.Owner(s.Object, s.Edge), r.Field(s.Object, s.Edge)
	e.Shown, e.Repeat, e.Omitted = e.Field, s.Repeat, s.Omitted
	switch s.Edge.Kind {
	case ElementEdge, ItemEdge:
		e.Shown = fmt.Sprintf("[%d]", s.Edge.Place)
	case NamedEdge:
		e.Shown = "[" + s.Edge.Name + "]"
	case ValueEdge:
		e.Shown = "[" + r.key(s.Edge, d) + "]"
	}
	return e
}

// key returns the key of a map as shown in a trace.
func (r *Reader) key(e Edge, d Describe) string {
	if !e.HasKey {
		return "null"
	}
	if d.Text != nil {
		if text, ok := d.Text(e.Key); ok {
			return `"` + text + `"`
		}
	}
	return r.object(e.Key).Type + " of " + r.name(e.Key)
}

// resolve sets the statuses of the elements (Shark, RealLeakTracerFactory,
// computeLeakStatuses): every object on the path before a needed object is
// needed, and every object after a leaking object is leaking.
func (t *Trace) resolve(inspections []Inspection) {
	last := len(t.Elements) - 1
	needed, leaking := -1, last
	for i := range t.Elements {
		e := &t.Elements[i]
		e.Labels = inspections[i].Labels
		e.Status, e.Reason = inspections[i].status(i == last)
		switch {
		case e.Status == NotLeaking:
			needed, leaking = i, last
		case e.Status == Leaking && leaking == last:
			leaking = i
		}
	}
	t.resolveNeeded(needed)
	t.resolveLeaking(leaking)
	for i := range t.Elements[:last] {
		t.Elements[i].Suspect = t.suspect(i)
	}
}

// resolveNeeded marks the objects before the last needed object as needed, with
// the reasons.
func (t *Trace) resolveNeeded(needed int) {
	if needed < 0 {
		return
	}
	next := simple(t.Elements[needed].Class)
	for i := needed - 1; i >= 0; i-- {
		e := &t.Elements[i]
		status, reason := e.Status, e.Reason
		e.Status, e.Reason = NotLeaking, next+"↓ is not leaking"
		switch status {
		case NotLeaking:
			e.Reason += " and " + reason
			next = simple(e.Class)
		case Leaking:
			e.Reason += ". Conflicts with " + reason
		}
	}
}

// resolveLeaking marks the objects after the first leaking object as leaking,
// with the reasons.
func (t *Trace) resolveLeaking(leaking int) {
	last := len(t.Elements) - 1
	previous := simple(t.Elements[leaking].Class)
	for i := leaking + 1; i < last; i++ {
		e := &t.Elements[i]
		status, reason := e.Status, e.Reason
		e.Status, e.Reason = Leaking, previous+"↑ is leaking"
		if status == Leaking {
			e.Reason += " and " + reason
			previous = simple(e.Class)
		}
	}
}

func (t *Trace) suspect(i int) bool {
	switch t.Elements[i].Status {
	case Unknown:
		return true
	case NotLeaking:
		return t.Elements[i+1].Status != NotLeaking
	}
	return false
}

// status returns the status that follows from the reasons of an inspection. If
// they conflict, the object is needed, unless it is at the end of the path.
func (n *Inspection) status(last bool) (Status, string) {
	leaking, needed := strings.Join(n.Leaking, " and "), strings.Join(n.NotLeaking, " and ")
	switch {
	case last && len(n.Leaking) == 0 && len(n.NotLeaking) == 0:
		return Leaking, "This is the leaking object"
	case last && len(n.Leaking) == 0:
		return Leaking, "This is the leaking object. Conflicts with " + needed
	case len(n.Leaking) == 0 && len(n.NotLeaking) == 0:
		return Unknown, ""
	case len(n.NotLeaking) == 0:
		return Leaking, leaking
	case last:
		return Leaking, leaking + ". Conflicts with " + needed
	case len(n.Leaking) == 0:
		return NotLeaking, needed
	}
	return NotLeaking, needed + ". Conflicts with " + leaking
}

// simple returns a class name without its package.
func simple(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }

// rootWords holds Shark's descriptions (LeakTrace.GcRootType).
var rootWords = map[hprof.SubTag]string{
	hprof.SubRootJNIGlobal: "Global variable in native code", hprof.SubRootJNILocal: "Local variable in native code",
	hprof.SubRootJavaFrame:   "Java local variable",
	hprof.SubRootNativeStack: "Input or output parameters in native code",
	hprof.SubRootStickyClass: "System class", hprof.SubRootThreadBlock: "Thread block",
	hprof.SubRootMonitorUsed: "Monitor (anything that called the wait() or notify() methods, " +
		"or that is synchronized.)",
	hprof.SubRootThreadObject: "Thread object", hprof.SubRootJNIMonitor: "Root JNI monitor",
}

// Description returns the description of a kind of root, as shown in leak
// traces. Shark does not describe the virtual machine's own roots.
func (r Root) Description() string {
	if words, ok := rootWords[r.Kind]; ok {
		return words
	}
	return "Root of the virtual machine (" + r.Kind.String() + ")"
}
