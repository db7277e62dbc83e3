package heap_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// answer holds the results of naive algorithms for a world: each algorithm
// removes something and checks which objects remain reachable.
type answer struct {
	*world
	edges [][]edge
	// starts holds the objects that are GC roots.
	starts []int
	sizes  []heap.Size
	reach  []heap.Reachability
	// lost holds, for each object, the objects that become unreachable when it
	// is removed, the object itself first; nil if the object is not in the
	// dominator tree.
	lost [][]int
	// dominators holds the immediate dominators; -1 means none.
	dominators           []int
	references, dangling int64
}

// edge is a reference to an object of the world.
type edge struct {
	to       int
	strength heap.Reachability
}

// solve computes the complete answer. The world must be written first, because
// writing numbers the objects.
func (w *world) solve() *answer {
	a := w.read()
	a.dominate()
	return a
}

// read computes the answer without the lost objects and the dominators.
func (w *world) read() *answer {
	a := &answer{world: w}
	for _, o := range w.objects {
		a.edges = append(a.edges, a.follow(o))
		a.sizes = append(a.sizes, heap.Size{Java: w.shallow(o)})
	}
	a.addNative()
	for _, r := range w.roots {
		if r.kind != hprof.SubRootUnreachable && w.has(r.object) {
			a.starts = append(a.starts, r.object.n)
		}
	}
	if w.model == heap.Leakgate && len(a.starts) > 0 {
		for _, o := range w.objects {
			if o.kind == hprof.SubClassDump && o.class.loader == nil && !w.declaredRoot(o) {
				a.starts = append(a.starts, o.n)
			}
		}
	}
	a.strengths()
	return a
}

// follow returns the references of an object, and adds them to the counts.
func (a *answer) follow(o *object) (list []edge) {
	add := func(to *object, strength heap.Reachability) {
		switch {
		case to == nil:
		case a.has(to):
			list = append(list, edge{to.n, strength})
			if strength <= heap.Soft {
				a.references++
			}
		case strength == heap.Strong:
			a.dangling++
		}
	}
	for _, to := range a.record(o) {
		add(to, heap.Strong)
	}
	switch o.kind {
	case hprof.SubObjectArray:
		for _, e := range o.elements {
			add(e, heap.Strong)
		}
	case hprof.SubClassDump:
		for _, s := range o.class.statics {
			if s.kind == hprof.Object {
				add(s.value.object, heap.Strong)
			}
		}
	case hprof.SubInstance:
		for i, f := range a.known(o.class) {
			if f.kind == hprof.Object && !a.implied(o.class, f) {
				add(o.values[i].object, strengthOf(o.class, f))
			}
		}
	}
	return list
}

// record returns the references from an object to its class, or from a class to
// its loader, signers, domain and superclass, as far as the size model counts
// them.
func (a *answer) record(o *object) (list []*object) {
	if a.model != heap.Leakgate {
		return nil
	}
	switch o.kind {
	case hprof.SubInstance, hprof.SubObjectArray:
		boot := a.boot(o.class) || a.declaredRoot(o.class.object)
		hidden := slices.ContainsFunc(a.known(o.class),
			func(f placed) bool { return f.name == "shadow$_klass_" && f.owner.super == nil })
		if !boot && !hidden {
			list = append(list, o.class.object)
		}
	case hprof.SubClassDump:
		list = append(list, o.class.loader, o.class.signers, o.class.domain)
		if o.class.super != nil {
			list = append(list, o.class.super.object)
		}
	}
	return slices.DeleteFunc(list, func(o *object) bool { return !a.has(o) })
}

// boot reports whether a class was loaded by the boot class loader and the
// model treats such classes as roots.
func (a *answer) boot(c *class) bool {
	return a.model == heap.Leakgate && c.loader == nil &&
		slices.ContainsFunc(a.roots, func(r root) bool { return r.kind != hprof.SubRootUnreachable && a.has(r.object) })
}

// declaredRoot reports whether the dump says that an object is a root.
func (w *world) declaredRoot(o *object) bool {
	return slices.ContainsFunc(w.roots,
		func(r root) bool { return r.object == o && r.kind != hprof.SubRootUnreachable })
}

// known returns the layout of a class as far as it can be read from the dump:
// the fields of missing classes, and those of the superclasses of missing
// classes, are unknown.
func (a *answer) known(c *class) []placed {
	list := c.layout()
	for k := c; k != nil; k = k.super {
		if !a.has(k.object) {
			return list[:len(list)-len(k.layout())]
		}
	}
	return list
}

// implied reports whether a field is the hidden reference from an object to its
// class and this class is a root: such references are omitted, because they
// keep nothing alive.
func (a *answer) implied(c *class, f placed) bool {
	if f.name != "shadow$_klass_" || f.owner.super != nil {
		return false
	}
	return a.declaredRoot(c.object) || a.boot(c)
}

// strengthOf returns the strength of a field's reference.
func strengthOf(c *class, f placed) heap.Reachability {
	if f.owner.name != "java.lang.ref.Reference" || f.name != "referent" {
		return heap.Strong
	}
	for k := c; k != nil; k = k.super {
		switch k.name {
		case "java.lang.ref.SoftReference":
			return heap.Soft
		case "java.lang.ref.WeakReference":
			return heap.Weak
		case "java.lang.ref.PhantomReference":
			return heap.Phantom
		case "java.lang.ref.FinalizerReference", "java.lang.ref.Finalizer":
			return heap.Finalizer
		}
	}
	return heap.Strong
}

// shallow returns an object's own size.
func (w *world) shallow(o *object) int64 {
	switch o.kind {
	case hprof.SubInstance:
		return w.declared(o.class)
	case hprof.SubObjectArray:
		return w.declared(o.class) + int64(len(o.elements))*int64(w.idSize)
	case hprof.SubClassDump:
		n := w.declared(w.named("java.lang.Class"))
		for _, s := range o.class.statics {
			n += int64(s.kind.Size(w.idSize))
		}
		return n
	}
	return w.declared(w.named(o.element.String()+"[]")) + int64(o.count)*int64(o.element.Size(w.idSize))
}

// declared returns the declared instance size of a class, or 0 if the class is
// not in the dump.
func (w *world) declared(c *class) int64 {
	if c == nil || !w.has(c.object) {
		return 0
	}
	return int64(c.size)
}

func (w *world) named(name string) *class {
	for _, c := range w.classes {
		if c.name == name {
			return c
		}
	}
	return nil
}

// className returns the name of an object's class.
func (w *world) className(o *object) string {
	switch o.kind {
	case hprof.SubClassDump:
		return "java.lang.Class"
	case hprof.SubPrimitiveArray, hprof.SubPrimitiveArrayNoData:
		return o.element.String() + "[]"
	}
	if o.class.nameless {
		return "unknown class 0x" + strconv.FormatUint(uint64(o.class.object.id), 16)
	}
	return o.class.name
}

// addNative adds to each referent the native bytes recorded in its cleaners'
// registries.
func (a *answer) addNative() {
	for _, o := range a.objects {
		if o.kind != hprof.SubInstance || o.class.name != "sun.misc.Cleaner" {
			continue
		}
		referent, thunk := a.fieldOf(o, "referent").object, a.fieldOf(o, "thunk").object
		if !a.has(referent) || !a.has(thunk) || thunk.class == nil ||
			thunk.class.name != "libcore.util.NativeAllocationRegistry$CleanerThunk" {
			continue
		}
		registry := a.fieldOf(thunk, "this$0").object
		if !a.has(registry) || registry.class == nil || registry.class.name != "libcore.util.NativeAllocationRegistry" {
			continue
		}
		if size := int64(a.fieldOf(registry, "size").bits &^ 1); size > 0 && size <= 1<<40 {
			a.sizes[referent.n].Native += size
		}
	}
}

// fieldOf returns a field's value. If several fields have the name, the one
// declared nearest to the object's class counts.
func (a *answer) fieldOf(o *object, name string) value {
	if o.kind != hprof.SubInstance {
		return value{}
	}
	for i, f := range a.known(o.class) {
		if f.name == name {
			return o.values[i]
		}
	}
	return value{}
}

// strengths finds the strength of the strongest path to each object: a path is
// only as strong as its weakest reference.
func (a *answer) strengths() {
	a.reach = make([]heap.Reachability, len(a.objects))
	for i := range a.reach {
		a.reach[i] = heap.Unreachable
	}
	for r := heap.Phantom; ; r-- {
		for i, there := range a.reached(r, nil) {
			if there {
				a.reach[i] = r
			}
		}
		if r == heap.Strong {
			return
		}
	}
}

// reached returns the objects that the roots reach through references of at
// least a given strength, after some objects are removed.
func (a *answer) reached(r heap.Reachability, removed func(int) bool) []bool {
	there := make([]bool, len(a.objects))
	var pending []int
	visit := func(i int) {
		if !there[i] && (removed == nil || !removed(i)) {
			there[i] = true
			pending = append(pending, i)
		}
	}
	for _, i := range a.starts {
		visit(i)
	}
	for len(pending) > 0 {
		i := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		for _, e := range a.edges[i] {
			if e.strength <= r {
				visit(e.to)
			}
		}
	}
	return there
}

// without returns the objects that become unreachable when some objects are
// removed.
func (a *answer) without(removed func(int) bool) (lost []int) {
	there := a.reached(heap.Soft, removed)
	for i, r := range a.reach {
		if r <= heap.Soft && !there[i] {
			lost = append(lost, i)
		}
	}
	return lost
}

// dominate finds the immediate dominators by removing each object in turn. The
// immediate dominator of an object is found among the objects whose removal
// makes it unreachable: the one whose removal loses the fewest objects.
func (a *answer) dominate() {
	a.lost = make([][]int, len(a.objects))
	a.dominators = make([]int, len(a.objects))
	for x := range a.objects {
		a.dominators[x] = -1
		if a.reach[x] <= heap.Soft {
			a.lost[x] = a.without(func(i int) bool { return i == x })
		}
	}
	for x, lost := range a.lost {
		for _, y := range lost {
			if d := a.dominators[y]; y != x && (d < 0 || len(lost) < len(a.lost[d])) {
				a.dominators[y] = x
			}
		}
	}
}

// sum adds up the sizes of objects, in total and per heap.
func (a *answer) sum(list []int) (s heap.Size, in map[string]int64) {
	in = map[string]int64{}
	for _, i := range list {
		s.Java += a.sizes[i].Java
		s.Native += a.sizes[i].Native
		in[heapNames[a.objects[i].heap]] += a.sizes[i].Java
	}
	return s, in
}

// rows computes the histogram.
func (a *answer) rows() map[string]*heap.Row {
	rows := map[string]*heap.Row{}
	row := func(name string) *heap.Row {
		if rows[name] == nil {
			rows[name] = &heap.Row{Class: name}
		}
		return rows[name]
	}
	for i, o := range a.objects {
		r := row(a.className(o))
		r.Instances++
		r.Shallow.Java += a.sizes[i].Java
		r.Shallow.Native += a.sizes[i].Native
		if a.reach[i] <= heap.Soft {
			r.Reachable++
		}
		if o.kind == hprof.SubClassDump {
			row(a.className(&object{kind: hprof.SubInstance, class: o.class})).Classes++
		}
	}
	for name, r := range rows {
		r.Retained, _ = a.sum(a.lostClass(name))
	}
	return rows
}

// lostClass returns the objects that become unreachable when a single instance
// of a class is removed, for all instances together.
func (a *answer) lostClass(name string) (list []int) {
	met := map[int]bool{}
	for i, o := range a.objects {
		if a.className(o) != name {
			continue
		}
		for _, y := range a.lost[i] {
			if !met[y] {
				met[y] = true
				list = append(list, y)
			}
		}
	}
	return list
}

// check compares a graph with the naive results.
func (a *answer) check(t testing.TB, g *heap.Graph) {
	t.Helper()
	if err := a.differs(g); err != nil {
		t.Fatal(err)
	}
	if err := broken(g); err != nil {
		t.Fatal(err)
	}
}

// differs returns the first difference between a graph and the naive results.
func (a *answer) differs(g *heap.Graph) error {
	if g.Objects != int64(len(a.objects)) {
		return fmt.Errorf("%d objects, want %d", g.Objects, len(a.objects))
	}
	if err := a.differsCounts(g); err != nil {
		return err
	}
	for i := range a.objects {
		if err := a.differsAt(g, i); err != nil {
			return fmt.Errorf("object %#x (%s): %w", a.objects[i].id, a.className(a.objects[i]), err)
		}
	}
	return a.differsRows(g)
}

func (a *answer) differsCounts(g *heap.Graph) error {
	if g.Duplicates != int64(len(a.older)) {
		return fmt.Errorf("%d duplicates, want %d", g.Duplicates, len(a.older))
	}
	kinds, roots := map[hprof.SubTag]int64{}, map[hprof.SubTag]int64{}
	for _, r := range a.roots {
		roots[r.kind]++
	}
	for _, o := range a.objects {
		if o.kind == hprof.SubPrimitiveArrayNoData {
			kinds[hprof.SubPrimitiveArray]++
		} else {
			kinds[o.kind]++
		}
	}
	if !maps.Equal(roots, g.RootCounts) {
		return fmt.Errorf("roots %v, want %v", g.RootCounts, roots)
	}
	got := map[hprof.SubTag]int64{
		hprof.SubInstance: g.Instances, hprof.SubObjectArray: g.ObjectArrays,
		hprof.SubPrimitiveArray: g.PrimitiveArrays, hprof.SubClassDump: g.Classes,
	}
	for kind, n := range got {
		if n != kinds[kind] {
			return fmt.Errorf("%d of %v, want %d", n, kind, kinds[kind])
		}
	}
	// The references of an object that occurs twice are counted twice.
	if len(a.older) == 0 && (g.ReferenceCount != a.references || g.Dangling != a.dangling) {
		return fmt.Errorf("got %d references, %d of them dangling, want %d and %d", g.ReferenceCount, g.Dangling,
			a.references,
			a.dangling)
	}
	return nil
}

func (a *answer) differsAt(g *heap.Graph, i int) error {
	o, ok := g.Find(a.objects[i].id)
	if !ok || g.ID(o) != a.objects[i].id {
		return fmt.Errorf("Find returned %d (%t), which has a different ID", o, ok)
	}
	if got := g.Class(o); got != a.className(a.objects[i]) {
		return fmt.Errorf("got class %q", got)
	}
	if got := g.IsClass(o); got != (a.objects[i].kind == hprof.SubClassDump) {
		return fmt.Errorf("got a class: %t", got)
	}
	if got := g.Shallow(o); got != a.sizes[i] {
		return fmt.Errorf("got size %v, want %v", got, a.sizes[i])
	}
	if got := g.Reachability(o); got != a.reach[i] {
		return fmt.Errorf("got %v reachable, want %v", got, a.reach[i])
	}
	want, in := a.sum(a.lost[i])
	if got := g.Retained(o); got != want {
		return fmt.Errorf("retains %v, want %v", got, want)
	}
	for h, heap := range g.Heaps {
		if got := g.RetainedIn(o, h); got != in[heap.Name] {
			return fmt.Errorf("retains %d in %s, want %d", got, heap.Name, in[heap.Name])
		}
	}
	if got := g.Heaps[g.HeapOf(o)].Name; got != heapNames[a.objects[i].heap] {
		return fmt.Errorf("got heap %q", got)
	}
	wanted, got := hprof.ID(0), hprof.ID(0)
	if d := a.dominators[i]; d >= 0 {
		wanted = a.objects[d].id
	}
	if d, ok := g.Dominator(o); ok {
		got = g.ID(d)
	}
	if got != wanted {
		return fmt.Errorf("dominated by %#x, want %#x", got, wanted)
	}
	return nil
}

func (a *answer) differsRows(g *heap.Graph) error {
	rows := a.rows()
	empty := map[string]bool{}
	// Classes without objects have no row.
	maps.DeleteFunc(rows, func(name string, r *heap.Row) bool {
		empty[name] = r.Instances == 0 && r.Classes > 0
		return r.Instances == 0
	})
	maps.DeleteFunc(empty, func(_ string, is bool) bool { return !is })
	if got := slices.Sorted(slices.Values(g.Empty())); !slices.Equal(got, slices.Sorted(maps.Keys(empty))) {
		return fmt.Errorf("the classes without objects are %q, want %v", got, empty)
	}
	for _, got := range g.Histogram() {
		want := rows[got.Class]
		if want == nil {
			want = &heap.Row{Class: got.Class}
		}
		delete(rows, got.Class)
		all, _ := a.sum(a.without(func(i int) bool { return a.className(a.objects[i]) == got.Class }))
		if got.Retained.Java > all.Java {
			return fmt.Errorf("%s retains %v, but only %v becomes unreachable without it", got.Class, got.Retained, all)
		}
		if got.RetainedIn != nil {
			_, in := a.sum(a.lostClass(got.Class))
			for h, heap := range g.Heaps {
				if got.RetainedIn[h] != in[heap.Name] {
					return fmt.Errorf("%s retains %v by heap, want %v", got.Class, got.RetainedIn, in)
				}
			}
		}
		got.RetainedIn = nil
		if fmt.Sprint(got) != fmt.Sprint(*want) {
			return fmt.Errorf("row\n got %+v\nwant %+v", got, *want)
		}
	}
	if len(rows) > 0 {
		return fmt.Errorf("%d rows are missing: %v", len(rows), rows)
	}
	return nil
}
