package android

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// unwrapped returns the activity, application or service that a context is or
// wraps (AndroidObjectInspectors.kt, unwrapComponentContext).
func (i *Inspector) unwrapped(o heap.Object) (heap.Object, bool) {
	found := noArray
	var path []heap.Object
	for at := o; ; {
		if known, ok := i.components[at]; ok {
			found = known
			break
		}
		if i.is(at, component) {
			found = at
			break
		}
		if !i.is(at, kinWrapper) {
			break
		}
		// While a context is being unwrapped, it is recorded as wrapping
		// nothing, which breaks cycles.
		i.components[at] = noArray
		path = append(path, at)
		next, end, ok := i.unwrap(at)
		if end {
			found = next
		}
		if end || !ok {
			break
		}
		at = next
	}
	for _, p := range path {
		i.components[p] = found
	}
	return found, found != noArray
}

// unwrap returns the context that a wrapper wraps. end reports whether the
// result is final.
func (i *Inspector) unwrap(o heap.Object) (next heap.Object, end, ok bool) {
	base, ok := i.ref(o, wrapperBase)
	if !ok || !i.is(o, kinDecor) || i.is(base, kinActivity) {
		return base, false, ok
	}
	// The base of a DecorContext is the application, because a reference to the
	// activity would keep the activity alive.
	window, there := i.ref(o, decorWindow)
	if !there {
		return base, false, true
	}
	outer, there := i.ref(window, windowContext)
	if !there || !i.old && !i.is(outer, kinWrapper) {
		return base, false, true
	}
	return outer, i.old && i.is(base, kinApplication|kinService), true
}

// destroyed reports whether an activity has been destroyed.
func (i *Inspector) destroyed(activity heap.Object) (destroyed, known bool) {
	return i.flag(activity, activityDestroyed)
}

// activityOf returns the activity that a context is or wraps.
func (i *Inspector) activityOf(context heap.Object) (heap.Object, bool) {
	o, ok := i.unwrapped(context)
	return o, ok && i.is(o, kinActivity)
}

// wrapsDestroyed reports whether the context in a field is or wraps a destroyed
// activity.
func (i *Inspector) wrapsDestroyed(o heap.Object, f field) bool {
	context, ok := i.ref(o, f)
	return ok && i.wrapperLeaks(context)
}

// inspectContextFields implements Shark's inspector CONTEXT_FIELD.
func (i *Inspector) inspectContextFields(o heap.Object, r *report) {
	if i.outbound == nil {
		return
	}
	for _, f := range i.contextFields(o) {
		r.label("%s instance of %s%s", f.Name, i.graph.Class(f.to), i.contextDetails(f.to))
	}
}

// contextField is a field that holds a context.
type contextField struct {
	heap.Place
	to heap.Object
}

// contextFields returns the fields that hold contexts: those of the object's
// class first, then those of its superclasses.
func (i *Inspector) contextFields(o heap.Object) (list []contextField) {
	places := i.outbound.Places(o)
	for r := i.outbound.Of(o); r.Next(); {
		if int(r.Place) < len(places) && i.is(r.To, kinContext) {
			list = append(list, contextField{places[r.Place], r.To})
		}
	}
	if len(list) > 1 {
		depth := map[string]int{}
		for n, class := range i.graph.Hierarchy(i.graph.ClassNumber(o)) {
			depth[class] = n
		}
		slices.SortStableFunc(list, func(a, b contextField) int { return cmp.Compare(depth[a.Class], depth[b.Class]) })
	}
	return list
}

func (i *Inspector) contextDetails(context heap.Object) string {
	found, ok := i.unwrapped(context)
	switch {
	case !ok:
		return ""
	case i.is(found, kinActivity):
		state := "UNKNOWN"
		if destroyed, known := i.destroyed(found); known {
			state = strconv.FormatBool(destroyed)
		}
		if found == context {
			return " with mDestroyed = " + state
		}
		return ", wrapping activity " + i.graph.Class(found) + " with mDestroyed = " + state
	case found == context:
		// Developers recognize their own applications and services by name.
		return ""
	}
	return ", wrapping " + i.graph.Class(found)
}

// inspectWrapper implements Shark's inspector CONTEXT_WRAPPER, for wrappers
// that are not components.
func (i *Inspector) inspectWrapper(o heap.Object, r *report) {
	if i.is(o, component) {
		return
	}
	name := simple(i.graph.Class(o))
	found, ok := i.unwrapped(o)
	switch {
	case !ok:
		r.label("%s does not wrap a known Android context", name)
	case i.is(found, kinActivity):
		destroyed, known := i.destroyed(found)
		switch {
		case destroyed:
			r.leaking("%s wraps an Activity with Activity.mDestroyed true", name)
		case known:
			// The wrapper may have a shorter life than the activity.
			r.label("%s wraps an Activity with Activity.mDestroyed false", name)
		}
	case i.is(found, kinApplication):
		r.label("%s wraps an Application context", name)
	default:
		r.label("%s wraps a Service context", name)
	}
}

func (i *Inspector) wrapperLeaks(o heap.Object) bool {
	activity, ok := i.activityOf(o)
	if !ok {
		return false
	}
	destroyed, _ := i.destroyed(activity)
	return destroyed
}

// inspectContextImpl implements Shark's inspector CONTEXT_IMPL.
func (i *Inspector) inspectContextImpl(o heap.Object, r *report) {
	i.inspectOuterContext(o, "ContextImpl", r)
}

// inspectPackageManager implements Shark's inspector
// APPLICATION_PACKAGE_MANAGER as it was intended; Shark itself looks for
// android.app.ApplicationContextManager by mistake.
func (i *Inspector) inspectPackageManager(o heap.Object, r *report) {
	if impl, ok := i.ref(o, managerContext); ok {
		i.inspectOuterContext(impl, "ApplicationPackageManager.mContext", r)
	}
}

func (i *Inspector) inspectOuterContext(impl heap.Object, prefix string, r *report) {
	outer, ok := i.ref(impl, outerContext)
	if !ok {
		return
	}
	class := i.graph.Class(outer)
	destroyed, known := i.destroyed(outer)
	switch {
	case i.is(outer, kinActivity) && destroyed:
		r.leaking("%s.mOuterContext is an instance of %s with Activity.mDestroyed true", prefix, class)
	case i.is(outer, kinActivity) && known:
		r.notLeaking("%s.mOuterContext is an instance of %s with Activity.mDestroyed false", prefix, class)
	case i.is(outer, kinApplication):
		r.notLeaking("%s.mOuterContext is an instance of %s which extends android.app.Application", prefix, class)
	case outer == impl:
		r.label("%s.mOuterContext == ContextImpl.this: not tied to any particular lifecycle", prefix)
	default:
		r.label("%s.mOuterContext is an instance of %s", prefix, class)
	}
}

func (i *Inspector) contextImplLeaks(o heap.Object) bool {
	outer, ok := i.ref(o, outerContext)
	if !ok || !i.is(outer, kinActivity) {
		return false
	}
	destroyed, _ := i.destroyed(outer)
	return destroyed
}

func (i *Inspector) packageManagerLeaks(o heap.Object) bool {
	impl, ok := i.ref(o, managerContext)
	return ok && i.contextImplLeaks(impl)
}
