package android

import (
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

const (
	jobClass = "kotlinx.coroutines.JobSupport"
	// deepestContext bounds the elements of a coroutine context that are
	// searched.
	deepestContext = 16
)

// inspectJob labels a coroutine, or another job, that has ended. Nothing needs
// it then, but a list of old jobs is small, and its result may still be read:
// so this is a label, not a reason to leak.
func (i *Inspector) inspectJob(o heap.Object, r *report) {
	if state := i.jobState(o); state != "" {
		r.label("Job %s, still held", state)
	}
}

// inspectCoroutineScope does the same for the job of a scope, such as that of a
// ViewModel, which is cancelled when the ViewModel is cleared.
func (i *Inspector) inspectCoroutineScope(o heap.Object, r *report) {
	for _, f := range []field{scopeContext, viewModelScopeContext, oldViewModelScopeContext} {
		context, ok := i.ref(o, f)
		if !ok {
			continue
		}
		if job, ok := i.jobOf(context); ok {
			if state := i.jobState(job); state != "" {
				r.label("its Job %s, still held", state)
			}
		}
	}
}

// jobOf finds the job of a coroutine context: a list of elements, built from
// the left (CoroutineContextImpl.kt, CombinedContext).
func (i *Inspector) jobOf(context heap.Object) (heap.Object, bool) {
	for range deepestContext {
		if i.graph.InstanceOf(context, jobClass) {
			return context, true
		}
		if element, ok := i.ref(context, contextElement); ok && i.graph.InstanceOf(element, jobClass) {
			return element, true
		}
		left, ok := i.ref(context, contextLeft)
		if !ok {
			return 0, false
		}
		context = left
	}
	return 0, false
}

// jobState returns how a job has ended, "" for a running one and if unknown.
// The field is whatever the coroutine returned, or a CompletedExceptionally, in
// the final state (JobSupport.kt, "Internal states"). Before that it is an
// Incomplete: an interface, which a dump does not have. So only unambiguous
// states are reported.
func (i *Inspector) jobState(o heap.Object) string {
	state, ok := i.atomic(o, jobVolatileState, jobPlainState)
	switch {
	case !ok:
		return ""
	case i.graph.InstanceOf(state, "kotlinx.coroutines.CompletedExceptionally"):
		cause, known := i.ref(state, completedCause)
		if !known {
			return "is cancelled or failed"
		}
		return i.ended("is cancelled", "failed", cause)
	case i.graph.Class(state) == "kotlin.Unit":
		return "is completed"
	}
	if cause, ok := i.atomic(state, finishingVolatileCause, finishingCause, finishingPlainCause); ok {
		return i.ended("is being cancelled", "is failing", cause)
	}
	return ""
}

// ended returns what an exception means for a job.
func (i *Inspector) ended(cancelled, failed string, cause heap.Object) string {
	if i.graph.InstanceOf(cause, "java.util.concurrent.CancellationException") {
		return cancelled
	}
	return failed + " with " + simple(i.graph.Class(cause))
}

// atomic returns what a field of atomicfu references, under all names that it
// has had. The compiler's plugin replaces an AtomicRef by a volatile field,
// whose name ends with $volatile since kotlinx.coroutines 1.9; builds without
// the plugin keep the AtomicRef.
func (i *Inspector) atomic(o heap.Object, fields ...field) (heap.Object, bool) {
	at := slices.IndexFunc(fields, func(f field) bool { return i.field(f).Declared() })
	if at < 0 {
		return 0, false
	}
	to, ok := i.ref(o, fields[at])
	if ok && i.graph.Class(to) == "kotlinx.atomicfu.AtomicRef" {
		return i.ref(to, atomicValue)
	}
	return to, ok
}
