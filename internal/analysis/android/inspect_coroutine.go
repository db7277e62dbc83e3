package android

import (
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

const (
	jobClass = "kotlinx.coroutines.JobSupport"
	// deepestContext is the maximum number of elements of a coroutine context
	// that are searched.
	deepestContext = 16
)

// inspectJob labels a coroutine or other job that has ended. Such a job is no
// longer needed, but finished jobs are small, and their results may still be
// read. Therefore inspectJob adds a label, not a reason for a leak.
func (i *Inspector) inspectJob(o heap.Object, r *report) {
	if state := i.jobState(o); state != "" {
		r.label("Job %s, still held", state)
	}
}

// inspectCoroutineScope labels a scope whose job has ended, such as the scope
// of a ViewModel, which is cancelled when the ViewModel is cleared.
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

// jobOf finds the job in a coroutine context, which is a linked list that
// begins with the last element (CoroutineContextImpl.kt, CombinedContext).
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

// jobState describes the state of a job that has ended or is about to end, such
// as "is cancelled". It returns "" if the job is running or its state is
// unknown. In the final state, the field holds whatever the coroutine returned,
// or a CompletedExceptionally (JobSupport.kt, "Internal states"). Before that,
// it holds an Incomplete; this is an interface, and dumps do not record which
// classes implement an interface. Therefore only unambiguous states are
// reported.
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

// ended describes how a job has ended, given its exception.
func (i *Inspector) ended(cancelled, failed string, cause heap.Object) string {
	if i.graph.InstanceOf(cause, "java.util.concurrent.CancellationException") {
		return cancelled
	}
	return failed + " with " + simple(i.graph.Class(cause))
}

// atomic returns the object that a field of atomicfu references. It supports
// all names that the field has had: the compiler's plugin replaces an AtomicRef
// with a volatile field, whose name has ended with $volatile since
// kotlinx.coroutines 1.9; builds without the plugin keep the AtomicRef.
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
