package android

import (
	"fmt"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// inspectQueue implements Shark's inspector MESSAGE_QUEUE. The field was named
// mQuiting up to Android 4.2.
func (i *Inspector) inspectQueue(o heap.Object, r *report) {
	if quitting, f, known := i.quitting(o); known {
		format, args := described(f, quitting)
		if quitting {
			r.leaking(format, args...)
		} else {
			r.notLeaking(format, args...)
		}
	}
	at := o
	for _, f := range []field{queueMessages, messageTarget, handlerLooper, looperThread} {
		next, ok := i.ref(at, f)
		if !ok {
			return
		}
		at = next
	}
	if name, ok := i.textOrNull(at, threadName); ok {
		r.label(`HandlerThread: "%s"`, i.hide.Thread(name))
	}
}

func (i *Inspector) queueLeaks(o heap.Object) bool {
	quitting, _, _ := i.quitting(o)
	return quitting
}

func (i *Inspector) quitting(o heap.Object) (quitting bool, f field, known bool) {
	for _, f := range []field{queueQuitting, queueQuiting} {
		if quitting, known := i.flag(o, f); known {
			return quitting, f, true
		}
	}
	return false, 0, false
}

// inspectMessage implements Shark's inspector MESSAGE.
func (i *Inspector) inspectMessage(o heap.Object, r *report) {
	if what, ok := i.number(o, messageWhat); ok {
		r.label("Message.what = %d", what)
	}
	if when, ok := i.number(o, messageWhen); ok {
		r.label("Message.when = %d%s", when, i.relative(when))
	}
	for _, f := range []field{messageObject, messageCallback, messageTarget} {
		name := fieldPlaces[f].name
		if null, known := i.isNull(o, f); known && null {
			r.label("Message.%s = null", name)
		} else if to, ok := i.ref(o, f); ok {
			r.label("Message.%s = %s", name, i.object(to))
		}
	}
}

// relative formats the difference between a time and the time of the dump; it
// returns "" if the latter is unknown.
func (i *Inspector) relative(when int64) string {
	switch {
	case !i.knowsUptime:
		return ""
	case when > i.uptime:
		return fmt.Sprintf(" (%d ms after heap dump)", uint64(when)-uint64(i.uptime))
	}
	return fmt.Sprintf(" (%d ms before heap dump)", uint64(i.uptime)-uint64(when))
}

// object formats an object with its class (HeapObject.kt, toString).
func (i *Inspector) object(o heap.Object) string {
	id, class := uint64(i.graph.ID(o)), i.className(o)
	switch {
	case i.graph.IsClass(o):
		return "class " + class
	case isPrimitiveArray(class):
		return fmt.Sprintf("primitive array @%d of %s", id, class)
	case isArray(class):
		return fmt.Sprintf("object array @%d of %s", id, class)
	}
	return fmt.Sprintf("instance @%d of %s", id, class)
}
