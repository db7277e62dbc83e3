package android

import (
	"fmt"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// inspectAnimator implements Shark's inspector ANIMATOR.
func (i *Inspector) inspectAnimator(o heap.Object, r *report) {
	if null, known := i.isNull(o, animatorListeners); known && null {
		r.label("mListeners = null")
		return
	}
	list, ok := i.ref(o, animatorListeners)
	if !ok {
		return
	}
	listeners, known := i.listed(list)
	if i.old && i.graph.Class(list) != listClass || known && len(listeners) == 0 {
		r.label("mListeners is empty")
		return
	}
	for _, l := range listeners {
		r.label("mListeners[%d] = %s", l.index, i.className(l.object))
	}
}

// listed returns the elements of a java.util.ArrayList, as implemented by
// OpenJDK or Apache Harmony.
func (i *Inspector) listed(list heap.Object) (elements []element, known bool) {
	size, known := i.number(list, listSize)
	if !known || !i.is(list, kinList) {
		return nil, false
	}
	array, ok := i.ref(list, listElements)
	if !ok {
		array, ok = i.ref(list, listArray)
	}
	if !ok {
		return nil, true
	}
	i.elements(array, func(n int, to heap.Object) bool {
		if int64(n) >= size || len(elements) == mostRemarks {
			return false
		}
		elements = append(elements, element{n, to})
		return true
	})
	return elements, true
}

// inspectObjectAnimator implements Shark's inspector OBJECT_ANIMATOR.
func (i *Inspector) inspectObjectAnimator(o heap.Object, r *report) {
	if name, ok := i.textOrNull(o, animatorPropertyName); ok {
		r.label("mPropertyName = %s", i.hide.identifier(name))
	}
	i.inspectProperty(o, r)
	for _, f := range []field{animatorInitialized, animatorStarted, animatorRunning, animatorEndRequested} {
		if value, ok := i.flag(o, f); ok {
			r.label("%s = %v", fieldPlaces[f].name, value)
		}
	}
	for _, f := range []field{animatorDuration, animatorStartDelay} {
		if value, ok := i.number(o, f); ok {
			r.label("%s = %d", fieldPlaces[f].name, value)
		}
	}
	if n, ok := i.number(o, animatorRepeatCount); ok {
		r.label("mRepeatCount = %s", repeatCount(n))
	}
	if n, ok := i.number(o, animatorRepeatMode); ok {
		r.label("mRepeatMode = %s", repeatMode(n))
	}
}

func (i *Inspector) inspectProperty(o heap.Object, r *report) {
	if null, known := i.isNull(o, animatorProperty); known && null {
		r.label("mProperty = null")
		return
	}
	property, ok := i.ref(o, animatorProperty)
	if !ok {
		return
	}
	if name, ok := i.textOrNull(property, propertyName); ok {
		r.label("mProperty.mName = %s", i.hide.identifier(name))
	}
	class := "null"
	if of, ok := i.ref(property, propertyType); ok && i.graph.IsClass(of) {
		class = i.graph.ClassName(of)
	}
	r.label("mProperty.mType = %s", class)
}

// The constants of android.animation.ValueAnimator.

func repeatCount(n int64) string {
	if n == -1 {
		return "INFINITE (-1)"
	}
	return fmt.Sprint(n)
}

func repeatMode(n int64) string {
	switch n {
	case 1:
		return "RESTART (1)"
	case 2:
		return "REVERSE (2)"
	}
	return fmt.Sprintf("Unknown (%d)", n)
}
