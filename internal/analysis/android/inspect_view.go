package android

import (
	"encoding/binary"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// inspectView implements Shark's inspector VIEW.
func (i *Inspector) inspectView(o heap.Object, r *report) {
	top := i.topOf(o)
	part := top.hasParent || top.hasView && i.graph.Class(top.view) == decorViewClass
	count, counted := i.number(o, viewAttachCount)
	detached, known := i.isNull(o, viewAttachInfo)
	switch {
	case i.wrapsDestroyed(o, viewContext):
		r.leaking("View.mContext references a destroyed activity")
	case !part || count <= 0 || !known:
	case detached:
		r.leaking("View detached yet still part of window view hierarchy")
	default:
		i.inspectAttached(top, r)
	}
	if part {
		r.label("View is part of a window view hierarchy")
	} else {
		r.label("View not part of a window view hierarchy")
	}
	switch {
	case !known:
	case detached:
		r.label("View.mAttachInfo is null (view detached)")
	default:
		r.label("View.mAttachInfo is not null (view attached)")
	}
	i.inspectViewID(o, r)
	if counted {
		r.label("View.mWindowAttachCount = %d", count)
	}
}

func (i *Inspector) inspectAttached(top top, r *report) {
	if top.hasView {
		if detached, _ := i.isNull(top.view, viewAttachInfo); detached {
			r.leaking("View attached but root view %s detached (attach disorder)", i.graph.Class(top.view))
			return
		}
	}
	r.notLeaking("View attached")
}

// top describes the view hierarchy above a view.
type top struct {
	// view is the root of the hierarchy, unless the inspected view is itself
	// the root; hasParent reports whether the root has a parent, which is not a
	// view.
	view               heap.Object
	hasView, hasParent bool
}

// highestView is the maximum number of nested views that are followed; this
// limit breaks cycles.
const highestView = 1 << 12

func (i *Inspector) topOf(o heap.Object) (t top) {
	at := o
	for range highestView {
		parent, ok := i.ref(at, viewParent)
		if !ok {
			return t
		}
		if !i.is(parent, kinView) {
			t.hasParent = true
			return t
		}
		t.view, t.hasView, at = parent, true, parent
	}
	return t
}

func (i *Inspector) inspectViewID(o heap.Object, r *report) {
	const noID = -1
	id, ok := i.number(o, viewID)
	if !ok || id == noID {
		return
	}
	name, found, there := i.resourceName(id)
	switch {
	case !there:
	case found:
		r.label("View.mID = R.id.%s", name)
	case i.old:
		r.label("View.mID = R.id.null")
	default:
		r.label("View.mID = 0x%x", uint32(id))
	}
}

// viewLeaks checks only the highest view of each hierarchy, which is enough to
// find a leak.
func (i *Inspector) viewLeaks(o heap.Object) bool {
	null, known := i.isNull(o, viewParent)
	parent, hasParent := i.ref(o, viewParent)
	if !known || !null && (!hasParent || i.is(parent, kinView)) {
		return false
	}
	if i.wrapsDestroyed(o, viewContext) {
		return true
	}
	// An app may keep detached views for later use, except for the root of a
	// window.
	detached, _ := i.isNull(o, viewAttachInfo)
	count, _ := i.number(o, viewAttachCount)
	return detached && count > 0 && (hasParent || i.graph.Class(o) == decorViewClass)
}

// inspectEditor implements Shark's inspector EDITOR: it inspects the editor's
// view.
func (i *Inspector) inspectEditor(o heap.Object, r *report) {
	view, ok := i.ref(o, editorView)
	if !ok || !i.is(view, kinView) {
		return
	}
	var of report
	i.inspectView(view, &of)
	const prefix = "Editor#mTextView: %s"
	for _, text := range of.Leaking {
		r.leaking(prefix, text)
	}
	for _, text := range of.NotLeaking {
		r.notLeaking(prefix, text)
	}
	for _, text := range of.Labels {
		r.label(prefix, text)
	}
}

func (i *Inspector) editorLeaks(o heap.Object) bool {
	view, ok := i.ref(o, editorView)
	return ok && i.is(view, kinView) && i.viewLeaks(view)
}

// inspectDialog implements Shark's inspector DIALOG. A dialog without views was
// never shown, or was dismissed.
func (i *Inspector) inspectDialog(o heap.Object, r *report) {
	if null, known := i.isNull(o, dialogDecor); known {
		format, args := described(dialogDecor, nullity(null))
		r.label(format, args...)
	}
}

// inspectViewRoot implements Shark's inspector VIEW_ROOT_IMPL.
func (i *Inspector) inspectViewRoot(o heap.Object, r *report) {
	if null, known := i.isNull(o, rootView); known {
		format, args := described(rootView, nullity(null))
		if null {
			r.leaking(format, args...)
		} else {
			if i.wrapsDestroyed(o, rootContext) {
				r.leaking("ViewRootImpl.mContext references a destroyed activity, " +
					"did you forget to cancel toasts or dismiss dialogs?")
			}
			r.label(format, args...)
		}
	}
	attributes, ok := i.ref(o, rootAttributes)
	if !ok {
		return
	}
	if null, known := i.isNull(attributes, attributesTitle); known && null {
		r.label("mWindowAttributes.mTitle is null")
	} else if title, ok := i.textOf(attributes, attributesTitle); ok {
		r.label(`mWindowAttributes.mTitle = "%s"`, i.hide.component(title))
	}
	// AOSP WindowManager.LayoutParams.TYPE_TOAST.
	const toast = 2005
	switch kind, ok := i.number(attributes, attributesType); {
	case !ok:
	case kind == toast:
		r.label("mWindowAttributes.type = %d (Toast)", kind)
	default:
		r.label("mWindowAttributes.type = %d", kind)
	}
}

func (i *Inspector) viewRootLeaks(o heap.Object) bool {
	null, known := i.isNull(o, rootView)
	return known && (null || i.wrapsDestroyed(o, rootContext))
}

// inspectWindow implements Shark's inspector WINDOW. The window of a dialog is
// never marked as destroyed.
func (i *Inspector) inspectWindow(o heap.Object, r *report) {
	destroyed, known := i.flag(o, windowDestroyed)
	if !known {
		return
	}
	format, args := described(windowDestroyed, destroyed)
	if destroyed {
		r.leaking(format, args...)
	} else {
		r.label(format, args...)
	}
}

func (i *Inspector) windowLeaks(o heap.Object) bool {
	destroyed, _ := i.flag(o, windowDestroyed)
	return destroyed
}

// inspectToast implements Shark's inspector TOAST. mWM is set when the toast is
// shown, and mView is null after the toast has ended.
func (i *Inspector) inspectToast(o heap.Object, r *report) {
	shown, over := i.toast(o)
	switch {
	case shown && over:
		r.leaking("This toast is done showing (Toast.mTN.mWM != null && Toast.mTN.mView == null)")
	case shown:
		r.notLeaking("This toast is showing (Toast.mTN.mWM != null && Toast.mTN.mView != null)")
	}
}

func (i *Inspector) toastLeaks(o heap.Object) bool {
	shown, over := i.toast(o)
	return shown && over
}

func (i *Inspector) toast(o heap.Object) (shown, over bool) {
	tn, ok := i.ref(o, toastTN)
	if !ok {
		return false, false
	}
	noManager, known := i.isNull(tn, tnManager)
	noView, knowsView := i.isNull(tn, tnView)
	return known && knowsView && !noManager, noView
}

// resourceNames holds the names of an app's resource IDs, which LeakCanary
// saves before a dump (AndroidResourceIdNames.kt).
type resourceNames struct {
	ids   []int32
	names heap.Object
}

// mostResources is the maximum number of resource names that are read.
const mostResources = largestArray / 8

// resourceName returns the name of a resource ID, whether the dump contains
// this name, and whether it contains any resource names.
func (i *Inspector) resourceName(id int64) (name string, found, there bool) {
	if i.resources == nil {
		i.resources = &resourceNames{names: noArray}
		i.readResources()
	}
	if i.resources.names == noArray {
		return "", false, false
	}
	n, found := slices.BinarySearch(i.resources.ids, int32(id))
	if !found {
		return "", false, true
	}
	r, ok := i.array(i.resources.names)
	if !ok {
		return "", false, true
	}
	text, ok := r.Element(n)
	if !ok {
		return "", false, true
	}
	name, found = i.text(text)
	return name, found, true
}

func (i *Inspector) readResources() {
	holder, ok := i.graph.Static(resourceClass, "holderField")
	if !ok {
		return
	}
	ids, ok := i.ref(holder, resourceIDs)
	names, there := i.ref(holder, resourceTexts)
	if !ok || !there {
		return
	}
	r, ok := i.read(ids, 4*mostResources)
	if !ok || r.Kind != hprof.SubPrimitiveArray || r.Type != hprof.Int {
		return
	}
	for b := r.Body; len(b) >= 4; b = b[4:] {
		i.resources.ids = append(i.resources.ids, int32(binary.BigEndian.Uint32(b)))
	}
	i.resources.names = names
}
