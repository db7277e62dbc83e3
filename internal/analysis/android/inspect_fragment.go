package android

import "github.com/leakgate/leakgate/internal/analysis/heap"

// oldFragmentFields are the fields of fragments without a lifecycle.
var oldFragmentFields = [2]struct{ manager, called, tag field }{
	{frameworkManager, frameworkCalled, frameworkTag},
	{supportManager, supportCalled, supportTag},
}

// inspectOldFragment returns Shark's inspector FRAGMENT or SUPPORT_FRAGMENT.
func inspectOldFragment(n int) func(*Inspector, heap.Object, *report) {
	fields := oldFragmentFields[n]
	return func(i *Inspector, o heap.Object, r *report) {
		f := i.oldFragment(o, n)
		if f.knowsManaged {
			format, args := described(fields.manager, nullity(!f.managed))
			switch state := f.state(); {
			case f.managed:
				r.notLeaking(format, args...)
			case state == Destroyed || i.old:
				r.leaking(format, args...)
			default:
				r.label(format, args...)
			}
		}
		i.tag(o, fields.tag, "Fragment.mTag=%s", r)
	}
}

func oldFragmentLeaks(n int) func(*Inspector, heap.Object) bool {
	return func(i *Inspector, o heap.Object) bool {
		f := i.oldFragment(o, n)
		return f.state() == Destroyed || i.old && f.knowsManaged && !f.managed
	}
}

func (i *Inspector) oldFragment(o heap.Object, n int) (f fragment) {
	fields := oldFragmentFields[n]
	null, known := i.isNull(o, fields.manager)
	f.managed, f.knowsManaged = known && !null, known
	f.called, f.knowsCalled = i.flag(o, fields.called)
	return f
}

func (i *Inspector) tag(o heap.Object, f field, format string, r *report) {
	if tag, ok := i.textOf(o, f); ok && tag != "" {
		r.label(format, i.hide.Redact(tag))
	}
}

// inspectFragment implements Shark's inspector ANDROIDX_FRAGMENT.
func (i *Inspector) inspectFragment(o heap.Object, r *report) {
	f, registered := i.fragment(o)
	switch {
	case !registered:
		if null, known := i.isNull(o, androidxRegistry); known && null || !known && !i.old {
			r.label("Fragment.mLifecycleRegistry = null")
		}
	case i.old:
		f.remarkOld(r)
	default:
		f.remark(r)
	}
	i.tag(o, androidxTag, "Fragment.mTag = %s", r)
}

func (i *Inspector) fragmentLeaks(o heap.Object) bool {
	f, _ := i.fragment(o)
	if i.old {
		return f.lifecycle == lifecycleDestroyed
	}
	return f.leaks()
}

// fragment reads a fragment of AndroidX; registered reports whether it has a
// lifecycle.
func (i *Inspector) fragment(o heap.Object) (f fragment, registered bool) {
	f.androidx = true
	null, known := i.isNull(o, androidxManager)
	f.managed, f.knowsManaged = known && !null, known
	f.called, f.knowsCalled = i.flag(o, androidxCalled)
	_, f.hasMaxState = i.isNull(o, androidxMaxState)
	registry, registered := i.ref(o, androidxRegistry)
	if registered {
		f.lifecycle = i.lifecycle(registry)
	}
	return f, registered
}

// ambiguous reports whether the lifecycle alone does not determine the state of
// a fragment: in androidx.fragment 1.1 and later, the lifecycle of a destroyed
// fragment is reset to INITIALIZED (AndroidXFragmentLifecycle.kt).
func (f fragment) ambiguous() bool { return f.lifecycle == lifecycleInitialized && f.hasMaxState }

// leaks reports whether a fragment of AndroidX was destroyed.
func (f fragment) leaks() bool {
	return f.lifecycle == lifecycleDestroyed || f.ambiguous() && !f.managed && f.called
}

// remark adds a remark about the state of an AndroidX fragment to the report.
func (f fragment) remark(r *report) {
	const state = "Fragment.mLifecycleRegistry.state "
	switch {
	case !f.ambiguous():
		f.remarkOld(r)
	case f.managed:
		r.notLeaking(state + "is INITIALIZED and Fragment.mFragmentManager is set")
	case !f.knowsCalled:
		r.label(state + "is INITIALIZED and the Fragment.mCalled field could not be found")
	case f.called:
		r.leaking(state + "was reset to INITIALIZED by Fragment#initState() after Fragment#onDestroy()")
	default:
		r.notLeaking(state + "is INITIALIZED and the fragment was never attached")
	}
}

// remarkOld adds a remark about the state of the lifecycle to the report,
// unless the state is unknown.
func (f fragment) remarkOld(r *report) {
	const format = "Fragment.mLifecycleRegistry.state is %s"
	switch name := lifecycleName(f.lifecycle); {
	case name == "":
	case f.lifecycle == lifecycleDestroyed:
		r.leaking(format, name)
	default:
		r.notLeaking(format, name)
	}
}

// lifecycleNames are the constants of androidx.lifecycle.Lifecycle.State.
var lifecycleNames = []string{"DESTROYED", "INITIALIZED", "CREATED", "STARTED", "RESUMED"}

// lifecycleName returns the name of a state, or "" if there is no such state.
// The state is given as its ordinal plus 1.
func lifecycleName(state int64) string {
	if state < lifecycleDestroyed || state > int64(len(lifecycleNames)) {
		return ""
	}
	return lifecycleNames[state-1]
}

// lifecycle returns the state of a LifecycleRegistry, as its ordinal plus 1, or
// 0 if it is unknown. A stripped dump contains the ordinal even if it does not
// contain the name.
func (i *Inspector) lifecycle(registry heap.Object) int64 {
	state, ok := i.ref(registry, registryState)
	if !ok {
		state, ok = i.ref(registry, registryOldState)
	}
	if !ok {
		return 0
	}
	n, ok := i.number(state, enumOrdinal)
	if !ok || n < 0 || n >= int64(len(lifecycleNames)) {
		return 0
	}
	return n + 1
}

// inspectRegistry implements Shark's inspector LIFECYCLE_REGISTRY. The registry
// of a fragment's views is destroyed together with the views, while the
// fragment itself stays alive.
func (i *Inspector) inspectRegistry(o heap.Object, r *report) {
	state := i.lifecycle(o)
	switch name := lifecycleName(state); {
	case name == "":
	case state == lifecycleDestroyed:
		r.label("state = %s", name)
	default:
		r.notLeaking("state is %s", name)
	}
}

// inspectViewModel reports a ViewModel that was cleared as leaking, and adds a
// label to one that was not. A ViewModel that was not cleared may still be
// unneeded, if it was never in a ViewModelStore.
func (i *Inspector) inspectViewModel(o heap.Object, r *report) {
	cleared, f, known := i.cleared(o)
	if !known {
		return
	}
	format, args := described(f, cleared)
	if cleared {
		r.leaking(format, args...)
	} else {
		r.label(format, args...)
	}
}

func (i *Inspector) viewModelLeaks(o heap.Object) bool {
	cleared, _, _ := i.cleared(o)
	return cleared
}

// cleared reports whether a ViewModel was cleared, and returns the field that
// records this: in androidx.lifecycle 2.8 and later, a ViewModel delegates to a
// ViewModelImpl (ViewModel.jvm.kt, ViewModelImpl.kt).
func (i *Inspector) cleared(o heap.Object) (cleared bool, f field, known bool) {
	if cleared, known = i.flag(o, viewModelCleared); known {
		return cleared, viewModelCleared, true
	}
	impl, ok := i.ref(o, viewModelImpl)
	if !ok {
		return false, 0, false
	}
	cleared, known = i.flag(impl, viewModelImplCleared)
	return cleared, viewModelImplCleared, known
}
