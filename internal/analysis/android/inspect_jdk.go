package android

import "github.com/leakgate/leakgate/internal/analysis/heap"

// watch is a KeyedWeakReference with which LeakCanary watches an object.
type watch struct {
	reference heap.Object
	legacy    bool
	retained  bool
}

var (
	referenceClasses = []string{referenceClass, legacyClass}
	referenceTexts   = []field{watchKey, watchDescription, watchName, legacyKey, legacyDescription, legacyName}
)

// notRetained is the retained time of a reference if LeakCanary does not
// consider its object retained yet.
const notRetained = -1

// readUptime reads the time of the dump. The time is 0 if LeakCanary did not
// request the dump.
func (i *Inspector) readUptime() {
	i.uptime, i.knowsUptime = i.graph.StaticInt(referenceClass, "heapDumpUptimeMillis")
	if !i.old && i.uptime == 0 {
		i.knowsUptime = false
	}
}

// readWatch records which object a LeakCanary reference watches. A reference of
// LeakCanary 1 does not contain times.
func (i *Inspector) readWatch(reference heap.Object) {
	object, ok := i.ref(reference, referent)
	if !ok {
		return
	}
	w := watch{reference: reference, legacy: i.graph.Class(reference) == legacyClass}
	at, known := i.number(reference, retainedAt)
	w.retained = !known || at != notRetained || i.old && !i.knowsUptime
	i.watches[object] = append(i.watches[object], w)
}

// inspectWatches adds to the report what LeakCanary recorded about an object.
// It implements Shark's inspector KEYED_WEAK_REFERENCE.
func (i *Inspector) inspectWatches(o heap.Object, r *report) {
	watches := i.watches[o]
	for _, w := range watches[:min(len(watches), mostRemarks)] {
		i.inspectWatch(w, r)
	}
}

func (i *Inspector) inspectWatch(w watch, r *report) {
	key, fields := watchKey, []field{watchDescription, watchName}
	if w.legacy {
		key, fields = legacyKey, []field{legacyDescription, legacyName}
	}
	description := "Unknown (legacy)"
	for _, f := range fields {
		if text, ok := i.textOf(w.reference, f); ok {
			description = text
			break
		}
		if i.taken(w.reference, f) {
			description = ""
			break
		}
	}
	if description == "" {
		r.leaking("ObjectWatcher was watching this")
	} else {
		r.leaking("ObjectWatcher was watching this because %s", i.hide.reason(description))
	}
	if text, ok := i.textOf(w.reference, key); ok {
		r.label("key = %s", i.hide.watchKey(text))
	}
	if !i.knowsUptime {
		return
	}
	if at, ok := i.number(w.reference, watchedAt); ok {
		r.label("watchDurationMillis = %d", i.uptime-at)
	}
	if at, ok := i.number(w.reference, retainedAt); ok {
		if at != notRetained {
			at = i.uptime - at
		}
		r.label("retainedDurationMillis = %d", at)
	}
}

// inspectLoader implements Shark's inspector CLASSLOADER.
func (i *Inspector) inspectLoader(_ heap.Object, r *report) {
	r.notLeaking("A ClassLoader is never leaking")
}

// inspectAnonymous implements Shark's inspector ANONYMOUS_CLASS. If an
// anonymous class extends Object, the dump does not record the interface that
// it implements.
func (i *Inspector) inspectAnonymous(o heap.Object, r *report) {
	if !anonymous.MatchString(i.graph.Class(o)) {
		return
	}
	names := i.graph.Hierarchy(i.graph.ClassNumber(o))
	if len(names) > 1 && names[1] != "java.lang.Object" {
		r.label("Anonymous subclass of %s", names[1])
	}
}

// inspectThread implements Shark's inspector THREAD. In a JDK before 8, the
// name of a thread is a char[].
func (i *Inspector) inspectThread(o heap.Object, r *report) {
	if name, ok := i.ref(o, threadName); ok && i.old && i.graph.Class(name) != "java.lang.String" {
		r.label("Thread name: 'null'")
		return
	}
	if name, ok := i.textOrNull(o, threadName); ok {
		r.label("Thread name: '%s'", i.hide.Thread(name))
	}
}

// inspectMainThread implements Shark's inspector MAIN_THREAD. Android's main
// thread never ends.
func (i *Inspector) inspectMainThread(o heap.Object, r *report) {
	if name, ok := i.textOf(o, threadName); ok && name == mainThread {
		r.notLeaking("the main thread always runs")
	}
}
