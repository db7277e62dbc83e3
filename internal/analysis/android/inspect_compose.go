package android

import "github.com/leakgate/leakgate/internal/analysis/heap"

// inspectRecomposer implements Shark's inspector RECOMPOSER.
func (i *Inspector) inspectRecomposer(o heap.Object, r *report) {
	flow, ok := i.ref(o, recomposerState)
	if !ok {
		return
	}
	state, ok := i.ref(flow, flowState)
	if !ok && !i.old {
		// The field was renamed in kotlinx.coroutines 1.9.
		state, ok = i.ref(flow, flowVolatileState)
	}
	if !ok {
		return
	}
	name, ok := i.textOf(state, enumName)
	if !ok {
		name, _ = i.constant(state, recomposerStates)
	}
	const format = "Recomposer is in state %s"
	switch name {
	case "ShutDown", "ShuttingDown":
		r.leaking(format, name)
	case "Inactive", "InactivePendingWork":
		r.label(format, name)
	case "PendingWork", "Idle":
		r.notLeaking(format, name)
	}
}

// recomposerStates are the constants of
// androidx.compose.runtime.Recomposer.State, in their order (Recomposer.kt).
var recomposerStates = []string{"ShutDown", "ShuttingDown", "Inactive", "InactivePendingWork", "Idle", "PendingWork"}

// inspectComposition implements Shark's inspector COMPOSITION_IMPL.
func (i *Inspector) inspectComposition(o heap.Object, r *report) {
	disposed, known := i.flag(o, compositionDisposed)
	switch {
	case known && disposed:
		r.leaking("Composition disposed")
	case known:
		r.notLeaking("Composition not disposed")
	case !i.old:
		i.inspectCompositionState(o, r)
	}
}

// inspectCompositionState evaluates the number in which newer versions of
// Compose store the state.
func (i *Inspector) inspectCompositionState(o heap.Object, r *report) {
	state, known := i.number(o, compositionState)
	if !known {
		r.label("Composition disposal state unknown (no disposed or state field)")
		return
	}
	switch state {
	case 0:
		r.notLeaking("Composition running")
	case 1:
		r.label("Composition deactivated")
	case 2:
		r.label("Composition inconsistent")
	case 3:
		r.leaking("Composition disposed")
	default:
		r.label("Composition state: %d", state)
	}
}
