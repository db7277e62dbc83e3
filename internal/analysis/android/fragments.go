package android

import "github.com/leakgate/leakgate/internal/analysis/heap"

// fragmentClasses are the base classes of the fragments of the platform, of the
// support library and of AndroidX.
var fragmentClasses = [3]string{"android.app.Fragment", "android.support.v4.app.Fragment", androidxFragment}

const androidxFragment = "androidx.fragment.app.Fragment"

// fragmentFields are the fields that determine the state of a fragment.
type fragmentFields struct {
	manager, called [3]*heap.Field
	// maxState has existed since androidx.fragment 1.1; registry references the
	// object that holds the state.
	maxState, registry *heap.Field
	// The state field was renamed when LifecycleRegistry was rewritten in
	// Kotlin.
	state   [2]*heap.Field
	ordinal *heap.Field
}

func newFragmentFields(g *heap.Graph) (f fragmentFields) {
	for i, class := range fragmentClasses {
		f.manager[i], f.called[i] = g.Field(class, "mFragmentManager"), g.Field(class, "mCalled")
	}
	f.maxState, f.registry = g.Field(androidxFragment, "mMaxState"), g.Field(androidxFragment, "mLifecycleRegistry")
	f.state = [2]*heap.Field{
		g.Field("androidx.lifecycle.LifecycleRegistry", "state"),
		g.Field("androidx.lifecycle.LifecycleRegistry", "mState"),
	}
	f.ordinal = g.Field("java.lang.Enum", "ordinal")
	return f
}

// The ordinals of androidx.lifecycle.Lifecycle.State plus 1, so that 0 means
// unknown.
const (
	lifecycleDestroyed = iota + 1
	lifecycleInitialized
)

// fragment holds the fields of one fragment that determine its state.
type fragment struct {
	// managed reports whether the fragment has a manager, and called reports
	// whether its life cycle has begun; either may be unknown.
	managed, knowsManaged bool
	called, knowsCalled   bool
	androidx, hasMaxState bool
	// lifecycle is the ordinal of the state in the fragment's
	// LifecycleRegistry, plus 1, or 0 if it is unknown.
	lifecycle int64
}

// state returns the state of a fragment by LeakCanary's rules
// (AndroidObjectInspectors.kt, FRAGMENT, SUPPORT_FRAGMENT, ANDROIDX_FRAGMENT).
// A fragment without a manager whose callbacks never ran is new, not destroyed,
// even if the lifecycle is unknown.
func (f fragment) state() string {
	if f.androidx && f.lifecycle != 0 {
		switch {
		case f.lifecycle == lifecycleDestroyed:
			return Destroyed
		case f.lifecycle != lifecycleInitialized || !f.hasMaxState:
			return Alive
		}
	}
	switch {
	case !f.knowsManaged || f.androidx && f.lifecycle == 0:
		return Unknown
	case f.managed:
		return Alive
	case f.knowsCalled && !f.called:
		return NotAttached
	case f.androidx && !f.knowsCalled:
		return Unknown
	}
	return Destroyed
}

// visitFragment reads the record of a fragment, and the records of the objects
// that hold its state.
func (t *componentsTopic) visitFragment(p *plan, r *heap.Record, tag uint8, number uint32) {
	f, last := &t.fragment, len(fragmentClasses)-1
	switch tag {
	case askLifecycle:
		for _, state := range f.state {
			if o, ok := r.RefOf(state); ok {
				p.ask(o, askState, int(number))
				return
			}
		}
	case askState:
		if n, ok := r.IntOf(f.ordinal); ok && n >= 0 && n < 16 {
			t.states.fragments[last][number].lifecycle = n + 1
		}
	default:
		i := int(tag - askFragment)
		x := &t.states.fragments[i][number]
		null, ok := r.IsNull(f.manager[i])
		x.managed, x.knowsManaged = ok && !null, ok
		x.called, x.knowsCalled = r.BoolOf(f.called[i])
		if i == last {
			x.androidx, x.hasMaxState = true, f.maxState.Declared()
			if o, ok := r.RefOf(f.registry); ok {
				p.ask(o, askLifecycle, int(number))
			}
		}
	}
}
