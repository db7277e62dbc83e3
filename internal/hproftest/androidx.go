package hproftest

// enum returns the constants of an enum class. It declares the class if
// necessary.
func (h *Heap) enum(class string, names ...string) map[string]Ref {
	c := h.byName[class]
	if c == nil {
		members := make([]string, len(names))
		for i, n := range names {
			members[i] = "static object " + n
		}
		c = h.Declare(class, h.Class("java.lang.Enum"), members...)
		for i, n := range names {
			h.SetStatic(c, n, h.New(c, Fields{"name": n, "ordinal": i}))
		}
	}
	all := map[string]Ref{}
	for _, s := range c.statics {
		all[s.name] = Ref(s.value)
	}
	return all
}

// Lifecycle creates an androidx.lifecycle.LifecycleRegistry in the given state:
// DESTROYED, INITIALIZED, CREATED, STARTED or RESUMED.
func (h *Heap) Lifecycle(state string) Ref {
	states := h.enum("androidx.lifecycle.Lifecycle$State", "DESTROYED", "INITIALIZED", "CREATED", "STARTED", "RESUMED")
	if states[state] == 0 {
		h.fail("a lifecycle has no state %q", state)
	}
	c := h.byName["androidx.lifecycle.LifecycleRegistry"]
	if c == nil {
		c = h.Declare("androidx.lifecycle.LifecycleRegistry", nil, "object mState", "object mLifecycleOwner",
			"object mObserverMap", "int mAddingObserverCounter")
	}
	return h.New(c, Fields{"mState": states[state]})
}

// FragmentKind selects the library to which a fragment belongs.
type FragmentKind uint8

// AndroidX fragments have a lifecycle. Support fragments are those of
// android.support.v4, and Framework fragments extend android.app.Fragment.
const (
	AndroidX FragmentKind = iota
	Support
	Framework
)

// Fragment describes the properties of a fragment that an analysis reads.
type Fragment struct {
	Kind  FragmentKind
	State State
	Tag   string
	// Lifecycle is the state of an AndroidX fragment. If it is "", it is
	// derived from State: INITIALIZED for a fragment that was reset after it
	// was destroyed, or that is not attached yet; otherwise RESUMED.
	Lifecycle string
	// NoMaxState selects androidx.fragment 1.0.0, whose fragments do not have
	// the field mMaxState.
	NoMaxState bool
}

// Fragment creates a fragment of the given class, which is declared if
// necessary.
func (h *Heap) Fragment(class string, f Fragment) Ref {
	c := h.byName[class]
	if c == nil {
		c = h.Declare(class, h.fragmentClass(f))
	}
	r := h.New(c, Fields{"mCalled": f.State != NotYet, "mTag": f.Tag})
	if f.State == Attached {
		h.Set(r, "mFragmentManager", h.New(h.Class(fragmentNames[f.Kind]+"Manager"), nil))
	}
	if f.Kind != AndroidX {
		return r
	}
	state := f.Lifecycle
	if state == "" {
		state = map[State]string{Attached: "RESUMED", Destroyed: "DESTROYED", NotYet: "INITIALIZED"}[f.State]
	}
	registry := h.Lifecycle(state)
	h.Set(registry, "mLifecycleOwner", h.Weak(r))
	h.Set(r, "mLifecycleRegistry", registry)
	return r
}

var fragmentNames = map[FragmentKind]string{
	AndroidX: "androidx.fragment.app.Fragment", Support: "android.support.v4.app.Fragment",
	Framework: "android.app.Fragment",
}

func (h *Heap) fragmentClass(f Fragment) *Class {
	name := fragmentNames[f.Kind]
	if c := h.byName[name]; c != nil {
		return c
	}
	h.Declare(name+"Manager", nil, "object mFragmentStore")
	members := []string{
		"object mFragmentManager", "object mTag", "object mView", "object mHost", "object mParentFragment",
		"boolean mCalled", "int mState",
	}
	if f.Kind == AndroidX {
		members = append(members, "object mLifecycleRegistry")
		if !f.NoMaxState {
			members = append(members, "object mMaxState")
		}
	}
	return h.Declare(name, nil, members...)
}

// Recomposer creates an androidx.compose.runtime.Recomposer in the given state:
// ShutDown, ShuttingDown, Inactive, InactivePendingWork, Idle or PendingWork.
func (h *Heap) Recomposer(state string) Ref {
	states := h.enum("androidx.compose.runtime.Recomposer$State", "ShutDown", "ShuttingDown", "Inactive",
		"InactivePendingWork", "Idle", "PendingWork")
	if states[state] == 0 {
		h.fail("a recomposer has no state %q", state)
	}
	c := h.byName["androidx.compose.runtime.Recomposer"]
	if c == nil {
		h.Declare("kotlinx.coroutines.flow.StateFlowImpl", nil, "object _state", "int sequence")
		c = h.Declare("androidx.compose.runtime.Recomposer", nil, "object _state", "object knownCompositions",
			"object broadcastFrameClock")
	}
	flow := h.New(h.Class("kotlinx.coroutines.flow.StateFlowImpl"), Fields{"_state": states[state]})
	return h.New(c, Fields{"_state": flow})
}

// Composition creates an androidx.compose.runtime.CompositionImpl.
func (h *Heap) Composition(parent Ref, disposed bool) Ref {
	return h.composition(parent, "boolean disposed", disposed)
}

// CompositionState is like Composition, but for newer versions, in which the
// state is a number: 0 is running, 3 is disposed. A heap has only one of the
// two kinds of compositions.
func (h *Heap) CompositionState(parent Ref, state int) Ref {
	return h.composition(parent, "int state", state)
}

func (h *Heap) composition(parent Ref, member string, value any) Ref {
	c := h.byName["androidx.compose.runtime.CompositionImpl"]
	if c == nil {
		c = h.Declare("androidx.compose.runtime.CompositionImpl", nil, "object parent", "object slotTable", member)
	}
	name := "state"
	if member == "boolean disposed" {
		name = "disposed"
	}
	return h.New(c, Fields{"parent": parent, name: value})
}
