package androidsim

import (
	"slices"

	"github.com/leakgate/leakgate/internal/hproftest"
)

type staticField struct{ class, name string }

// holders contains, for one heap dump, the classes of an app's Activities and
// of the objects that hold them, and the lists in the static fields of these
// classes.
type holders struct {
	heap    *hproftest.Heap
	classes map[string]*hproftest.Class
	lists   map[staticField]*hproftest.List
}

// list returns the list in a static field; it creates the list on first use.
func (h *holders) list(f staticField) *hproftest.List {
	if h.lists[f] == nil {
		list := h.heap.ArrayList()
		h.lists[f] = &list
		h.heap.SetStatic(h.classes[f.class], f.name, list.Ref)
	}
	return h.lists[f]
}

type declarations struct {
	order   []string
	members map[string][]string
}

// activityMember is a field that only Activity classes declare.
const activityMember = "object mPhotos"

func (d *declarations) add(class string, members ...string) {
	if _, ok := d.members[class]; !ok {
		d.order = append(d.order, class)
	}
	for _, m := range members {
		if !slices.Contains(d.members[class], m) {
			d.members[class] = append(d.members[class], m)
		}
	}
}

func (d *declarations) field(f staticField) { d.add(f.class, "static object "+f.name) }

// declare declares the classes of Activities and of their holders. modelled
// means that a model has leaked some Activities.
func (v view) declare(h *hproftest.Heap, modelled bool) *holders {
	d := &declarations{members: map[string][]string{}}
	for _, l := range v.held {
		d.add(l.Class, activityMember, "static object sInstances")
	}
	d.add(v.leakClass(), activityMember)
	for n, s := range v.screens {
		d.add(v.app.class(s.Class), activityMember)
		if s.Leaks {
			d.field(v.field(n))
		} else if s.JavaKB > 0 {
			d.field(v.keeper(n))
		}
		if s.Lingers > 0 {
			d.add(v.task(n), "object this$0")
		}
	}
	if modelled {
		d.field(v.usualField())
	}
	out := &holders{heap: h, classes: map[string]*hproftest.Class{}, lists: map[staticField]*hproftest.List{}}
	for _, class := range d.order {
		var super *hproftest.Class
		if slices.Contains(d.members[class], activityMember) {
			super = h.Class("android.app.Activity")
		}
		out.classes[class] = h.Declare(class, super, d.members[class]...)
	}
	return out
}

// field returns the static field that holds the leaked instances of a screen;
// usualField returns the field for the leaks of a model, and keeper returns the
// field for the memory that screens without leaks retain.
func (v view) field(screen int) staticField {
	class, name := v.app.holder(v.screens[screen])
	return staticField{class, name}
}

func (v view) keeper(screen int) staticField {
	return staticField{v.app.class(v.screens[screen].Class), "sPages"}
}

// task returns the class of the delayed task that holds an instance for a
// while: an anonymous Runnable.
func (v view) task(screen int) string { return v.app.class(v.screens[screen].Class) + "$1" }

func (v view) usualField() staticField {
	class, name := App{Package: v.pkg()}.holder(Screen{})
	return staticField{class, name}
}

// heldBytes returns how many bytes leaked screens and leaks of tests retain.
func (v view) heldBytes() int64 {
	sum := int64(activitiesIn(v.held)) * bytesPerActivity
	for n, times := range v.stack.leaked {
		sum += int64(times) * v.screens[n].instanceKB() << 10
	}
	return sum
}

// dumpScreens adds the instances of screens to a heap: open instances, leaked
// instances, instances that a delayed task holds, and, unless garbage was
// collected before the dump, unreachable instances.
func (v view) dumpScreens(h *hproftest.Heap, held *holders, collected bool) {
	instance := func(n int, s hproftest.State) hproftest.Activity {
		screen := v.screens[n]
		return page(h, held.classes[v.app.class(screen.Class)], s, screen.views(), screen.instanceKB()<<10)
	}
	for at, n := range v.stack.open {
		a := instance(n, hproftest.Attached)
		if v.stack.stopped || at < len(v.stack.open)-1 {
			h.Set(a.Ref, "mResumed", false)
			h.Set(a.Ref, "mStopped", true)
		}
	}
	for n, times := range v.stack.leaked {
		for range times {
			held.list(v.field(n)).Add(instance(n, hproftest.Destroyed).Ref)
		}
	}
	for _, c := range v.stack.closed {
		if c.until > v.up {
			a := instance(c.screen, hproftest.Destroyed)
			h.Post(h.New(held.classes[v.task(c.screen)], hproftest.Fields{"this$0": a.Ref}), c.until.Milliseconds())
		}
	}
	v.dumpKept(h, held)
	if collected {
		return
	}
	forced := never
	if v.gc != never {
		forced = v.start + v.gc
	}
	for _, n := range v.stack.garbage(v.up, forced) {
		instance(n, hproftest.Destroyed)
	}
}

// dumpKept adds the memory that screens without leaks retain each time they are
// opened.
func (v view) dumpKept(h *hproftest.Heap, held *holders) {
	for n, times := range v.stack.openings {
		if s := v.screens[n]; !s.Leaks && s.JavaKB > 0 {
			for range times {
				held.list(v.keeper(n)).Add(h.Padding(uint32(min(s.JavaKB<<10, maxShown))))
			}
		}
	}
}
