package hproftest

import "fmt"

// leakShape creates an object whose status depends on its class, or to which
// special rules of leak traces apply. The object holds another object, which
// may be null.
type leakShape struct {
	name string
	// leaks is true if the object itself should no longer exist.
	leaks bool
	make  func(s *scene, held Ref) Ref
}

// leakShapes returns the shapes of all the groups below.
func leakShapes() []leakShape {
	var all []leakShape
	for _, more := range [][]leakShape{
		plainShapes, collectionShapes, contextShapes, fragmentShapes, viewShapes, windowShapes, loopShapes,
		composeShapes, otherShapes, knownShapes,
	} {
		all = append(all, more...)
	}
	return all
}

// plainShapes are objects of the app that no inspector treats specially.
var plainShapes = []leakShape{
	{"field", false, func(s *scene, held Ref) Ref { return s.node("com.example.Controller", "callback", held) }},
	{"field of a superclass", false, func(s *scene, held Ref) Ref {
		s.class("com.example.BaseController", "", "object listener")
		return s.New(s.class("com.example.DetailController", "com.example.BaseController", "object unused"),
			Fields{"listener": held})
	}},
	{"hidden field", false, func(s *scene, held Ref) Ref {
		base := s.class("com.example.BaseScreen", "", "object target")
		r := s.New(s.class("com.example.DetailScreen", "com.example.BaseScreen", "object target", "int count"), nil)
		s.SetIn(r, base, "target", held)
		return r
	}},
	{"two fields", false, func(s *scene, held Ref) Ref {
		return s.New(s.class("com.example.Pair", "", "object zulu", "object alpha", "object mike"),
			Fields{"zulu": held, "mike": held})
	}},
	{"array", false, func(s *scene, held Ref) Ref {
		return s.Objects(s.Class(objectClass), 0, s.String("first"), held)
	}},
	{"array of a class", false, func(s *scene, held Ref) Ref {
		c := s.class("com.example.Controller", "", "object callback")
		return s.Objects(c, 0, s.New(c, Fields{"callback": held}))
	}},
	{"array of arrays", false, func(s *scene, held Ref) Ref {
		return s.Objects(s.Array(s.Class(objectClass)), s.Objects(s.Class(objectClass)),
			s.Objects(s.Class(objectClass), held))
	}},
	{"class", false, func(s *scene, held Ref) Ref {
		c := s.Declare("com.example.Holder", nil, "static object sHeld", "static int sCount")
		s.SetStatic(c, "sHeld", held)
		return s.New(s.class("com.example.Reflection", "", "object type"), Fields{"type": c})
	}},
	{"class loader", false, func(s *scene, held Ref) Ref {
		return s.New(s.Class("dalvik.system.PathClassLoader"), Fields{"pathList": held, "parent": s.loader})
	}},
	{"anonymous class", false, func(s *scene, held Ref) Ref {
		return s.New(s.class("com.example.Screen$1", "", "object this$0"), Fields{"this$0": held})
	}},
	{"anonymous subclass", false, func(s *scene, held Ref) Ref {
		s.class("com.example.Callback", "", "object owner")
		return s.New(s.class("com.example.Screen$2", "com.example.Callback", "object this$0"), Fields{"this$0": held})
	}},
	{"lambda", false, func(s *scene, held Ref) Ref {
		return s.New(s.class("com.example.Screen$$ExternalSyntheticLambda0", "", "object f$0"), Fields{"f$0": held})
	}},
	{"weak reference", false, func(s *scene, held Ref) Ref { return s.Weak(held) }},
	{"soft reference", false, func(s *scene, held Ref) Ref { return s.Soft(held) }},
	{"phantom reference", false, func(s *scene, held Ref) Ref { return s.Phantom(held) }},
	{"subclass of a weak reference", false, func(s *scene, held Ref) Ref {
		c := s.class("com.example.Tagged", "java.lang.ref.WeakReference", "object tag")
		return s.New(c, Fields{"referent": held, "tag": s.node("com.example.Controller", "callback", held)})
	}},
	{"finalizer reference", false, func(s *scene, held Ref) Ref {
		return s.New(s.Class("java.lang.ref.FinalizerReference"),
			Fields{"referent": held, "next": s.leak(), "prev": s.leak()})
	}},
	{"cleaner", false, func(s *scene, held Ref) Ref {
		return s.New(s.Class("sun.misc.Cleaner"), Fields{"thunk": held, "next": s.leak(), "referent": s.leak()})
	}},
	{"wrappers", false, func(s *scene, held Ref) Ref {
		numbers := s.Objects(s.Class("java.lang.Integer"), s.Integer(1), s.Integer(2))
		return s.New(s.class("com.example.Numbers", "", "object numbers", "object one", "object held"),
			Fields{"numbers": numbers, "one": s.Integer(1), "held": held})
	}},
}

// collectionShapes are the collections; Shark shows most of them without their
// internals.
var collectionShapes = []leakShape{
	{"ArrayList", false, func(s *scene, held Ref) Ref { return s.ArrayList(s.String("x"), 0, held).Ref }},
	{"empty ArrayList", false, func(s *scene, held Ref) Ref {
		l := s.ArrayList()
		s.SetElement(l.Array(), 3, held)
		return l.Ref
	}},
	{"subclass of ArrayList", false, func(s *scene, held Ref) Ref {
		l := s.ArrayList(held)
		field := "elementData"
		if s.harmony {
			field = "array"
		}
		return s.New(s.class("com.example.Items", "java.util.ArrayList"), Fields{field: l.Array(), "size": 1})
	}},
	{"LinkedList", false, func(s *scene, held Ref) Ref { return s.LinkedList(s.String("x"), s.String("y"), held) }},
	{"CopyOnWriteArrayList", false,
		func(s *scene, held Ref) Ref { return s.CopyOnWriteArrayList(s.String("x"), held) }},
	{"HashMap", false, func(s *scene, held Ref) Ref {
		return s.HashMap(s.String("first"), s.String("x"), s.String("key"), held)
	}},
	{"HashMap key", false, func(s *scene, held Ref) Ref { return s.HashMap(held, s.String("value")) }},
	{"HashMap by object", false,
		func(s *scene, held Ref) Ref { return s.HashMap(s.node("com.example.Key", "name", 0), held) }},
	{"HashMap by class", false, func(s *scene, held Ref) Ref { return s.HashMap(s.Class(objectClass).Ref(), held) }},
	{"HashMap by null", false, func(s *scene, held Ref) Ref { return s.HashMap(0, held, s.String("a"), 0) }},
	{"HashMap by number", false, func(s *scene, held Ref) Ref { return s.HashMap(s.Integer(5), held) }},
	{"large HashMap", false, func(s *scene, held Ref) Ref {
		var pairs []Ref
		for i := range 40 {
			pairs = append(pairs, s.String(fmt.Sprint("key ", i)), s.Integer(i))
		}
		return s.HashMap(append(pairs, s.String("last"), held)...)
	}},
	{"LinkedHashMap", false, func(s *scene, held Ref) Ref {
		return s.LinkedHashMap(s.String("b"), s.String("x"), s.String("a"), held, s.String("c"), s.String("y"))
	}},
	{"HashSet", false, func(s *scene, held Ref) Ref { return s.HashSet(s.String("x"), held) }},
	{"LinkedHashSet", false, func(s *scene, held Ref) Ref { return s.LinkedHashSet(s.String("x"), held) }},
	{"ConcurrentHashMap", false, func(s *scene, held Ref) Ref { return s.ConcurrentHashMap(s.String("key"), held) }},
	{"ConcurrentHashMap key", false,
		func(s *scene, held Ref) Ref { return s.ConcurrentHashMap(held, s.String("value")) }},
	{"WeakHashMap", false, func(s *scene, held Ref) Ref { return s.WeakHashMap(s.String("key"), held) }},
	{"WeakHashMap key", false, func(s *scene, held Ref) Ref { return s.WeakHashMap(held, s.String("value")) }},
	{"TreeMap", false, func(s *scene, held Ref) Ref {
		entry := s.New(s.Class("java.util.TreeMap$TreeMapEntry"), Fields{"key": "key", "value": held})
		return s.New(s.Class("java.util.TreeMap"), Fields{"root": entry, "size": 1})
	}},
	{"ArrayMap", false, func(s *scene, held Ref) Ref {
		m := s.arrayMap()
		m.put(s.String("key"), held)
		return m.ref
	}},
	{"ArrayMap key", false, func(s *scene, held Ref) Ref {
		m := s.arrayMap()
		m.put(held, s.String("value"))
		return m.ref
	}},
	{"ArraySet", false, func(s *scene, held Ref) Ref {
		array := s.Objects(s.Class(objectClass), 0, held, s.String("x"), 0)
		return s.New(s.Class("android.util.ArraySet"),
			Fields{"mArray": array, "mHashes": s.Ints(1, 2, 3, 0), "mSize": 2})
	}},
	{"SafeIterableMap", false,
		func(s *scene, held Ref) Ref { return s.iterableMap("SafeIterableMap", s.String("key"), held) }},
	{"SafeIterableMap key", false, func(s *scene, held Ref) Ref {
		return s.iterableMap("SafeIterableMap", s.orString(held), s.String("value"))
	}},
	{"SafeIterableMap by object", false, func(s *scene, held Ref) Ref {
		return s.iterableMap("SafeIterableMap", s.node("com.example.Key", "name", 0), held)
	}},
	{"FastSafeIterableMap", false,
		func(s *scene, held Ref) Ref { return s.iterableMap("FastSafeIterableMap", s.String("key"), held) }},
}

// orString returns the given object, or a string if the object is null.
func (s *scene) orString(r Ref) Ref {
	if r == 0 {
		return s.String("none")
	}
	return r
}

// iterableMap creates a map of the package androidx.arch with two entries.
func (s *scene) iterableMap(class string, key, value Ref) Ref {
	const prefix = "androidx.arch.core.internal."
	entry := s.Class(prefix + "SafeIterableMap$Entry")
	first := s.New(entry, Fields{"mKey": "first", "mValue": s.String("x")})
	last := s.New(entry, Fields{"mKey": key, "mValue": s.orString(value), "mPrevious": first})
	s.Set(first, "mNext", last)
	return s.New(s.Class(prefix+class), Fields{"mStart": first, "mEnd": last, "mSize": 2})
}

// contextShapes are the components of apps and the wrappers of these
// components.
var contextShapes = []leakShape{
	{"activity", false, func(s *scene, held Ref) Ref {
		r := s.New(s.class("com.example.ListActivity", "android.app.Activity", "object presenter"),
			Fields{"presenter": held})
		s.Set(r, "mBase", s.contextImpl(r))
		return r
	}},
	{"destroyed activity", true, func(s *scene, held Ref) Ref {
		r := s.New(s.class("com.example.ListActivity", "android.app.Activity", "object presenter"),
			Fields{"presenter": held, "mDestroyed": true})
		s.Set(r, "mBase", s.contextImpl(r))
		return r
	}},
	{"activity with its window", false, func(s *scene, held Ref) Ref {
		a := s.Activity("com.example.ShownActivity", Attached)
		s.Set(a.Content, "mTag", held)
		return a.Ref
	}},
	{"destroyed activity with its window", true, func(s *scene, held Ref) Ref {
		a := s.Activity("com.example.ShownActivity", Destroyed)
		s.Set(a.Content, "mTag", held)
		return a.Ref
	}},
	{"service", false, func(s *scene, held Ref) Ref { return s.service(Attached, held) }},
	{"destroyed service", true, func(s *scene, held Ref) Ref { return s.service(Destroyed, held) }},
	{"application", false, func(s *scene, held Ref) Ref {
		return s.New(s.class("com.example.OtherApplication", "android.app.Application", "object graph"),
			Fields{"graph": held, "mBase": s.get(s.application(), "mBase")})
	}},
	{"wrapper of the application", false, func(s *scene, held Ref) Ref { return s.wrapper(s.application(), held) }},
	{"wrapper of an activity", false, func(s *scene, held Ref) Ref { return s.wrapper(s.here().Ref, held) }},
	{"wrapper of a destroyed activity", true, func(s *scene, held Ref) Ref { return s.wrapper(s.gone().Ref, held) }},
	{"wrapper of a wrapper of a destroyed activity", true,
		func(s *scene, held Ref) Ref { return s.wrapper(s.wrapper(s.gone().Ref, 0), held) }},
	{"wrapper of a service", false, func(s *scene, held Ref) Ref { return s.wrapper(s.service(Attached, 0), held) }},
	{"wrapper of a ContextImpl", false, func(s *scene, held Ref) Ref { return s.wrapper(s.here().Context, held) }},
	{"wrapper without a base", false, func(s *scene, held Ref) Ref { return s.wrapper(0, held) }},
	{"wrapper with itself as base", false, func(s *scene, held Ref) Ref {
		r := s.wrapper(0, held)
		s.Set(r, "mBase", r)
		return r
	}},
	{"ContextImpl of an activity", false, func(s *scene, held Ref) Ref { return s.contextOf(s.here().Ref, held) }},
	{"ContextImpl of a destroyed activity", true,
		func(s *scene, held Ref) Ref { return s.contextOf(s.gone().Ref, held) }},
	{"ContextImpl of the application", false,
		func(s *scene, held Ref) Ref { return s.contextOf(s.application(), held) }},
	{"ContextImpl of a service", false,
		func(s *scene, held Ref) Ref { return s.contextOf(s.service(Attached, 0), held) }},
	{"ContextImpl with itself as outer context", false, func(s *scene, held Ref) Ref {
		r := s.contextOf(0, held)
		s.Set(r, "mOuterContext", r)
		return r
	}},
	{"DecorContext of an activity", false, func(s *scene, held Ref) Ref { return s.decorContext(s.here(), held) }},
	{"DecorContext of a destroyed activity", true,
		func(s *scene, held Ref) Ref { return s.decorContext(s.gone(), held) }},
	{"context fields", false, func(s *scene, held Ref) Ref {
		c := s.class("com.example.Contexts", "", "object activity", "object application", "object wrapper",
			"object service", "object impl", "object nothing", "object held", "object gone")
		return s.New(c, Fields{
			"activity": s.here().Ref, "application": s.application(), "wrapper": s.wrapper(s.here().Ref, 0),
			"service": s.service(Attached, 0),
			"impl":    s.here().Context, "nothing": s.wrapper(0, 0), "gone": s.wrapper(s.gone().Ref, 0), "held": held,
		})
	}},
	{"package manager", false, func(s *scene, held Ref) Ref {
		return s.New(s.Class("android.app.ApplicationPackageManager"),
			Fields{"mContext": s.gone().Context, "mUserManager": held})
	}},
	{"LoadedApk", false, func(s *scene, held Ref) Ref {
		m, receivers := s.arrayMap(), s.arrayMap()
		receivers.put(s.node("com.example.Receiver", "context", 0), s.node("com.example.Dispatcher", "receiver", held))
		m.put(s.here().Ref, receivers.ref)
		m.put(s.application(), s.arrayMap().ref)
		return s.New(s.Class("android.app.LoadedApk"), Fields{"mReceivers": m.ref, "mPackageName": "com.example"})
	}},
	{"ActivityThread", false, func(s *scene, held Ref) Ref {
		return s.New(s.Class("android.app.ActivityThread"), Fields{"mLooper": held})
	}},
}

func (s *scene) service(state State, held Ref) Ref {
	s.class("com.example.SyncService", "android.app.Service", "object worker")
	r := s.Service("com.example.SyncService", state)
	s.Set(r, "worker", held)
	return r
}

func (s *scene) wrapper(base, held Ref) Ref {
	return s.New(s.class("com.example.ThemedContext", "android.content.ContextWrapper", "object extra"),
		Fields{"mBase": base, "extra": held})
}

func (s *scene) contextOf(outer, held Ref) Ref {
	r := s.contextImpl(outer)
	s.Set(r, "mResources", held)
	return r
}

func (s *scene) decorContext(a Activity, held Ref) Ref {
	return s.New(s.Class("com.android.internal.policy.DecorContext"),
		Fields{"mPhoneWindow": a.Window, "mBase": s.application(), "mTheme": held})
}

// fragmentShapes are fragments of all kinds in all states.
var fragmentShapes = []leakShape{
	{"android fragment", false,
		func(s *scene, held Ref) Ref { return s.fragment(Fragment{Kind: Framework, Tag: "main"}, held) }},
	{"destroyed android fragment", true,
		func(s *scene, held Ref) Ref { return s.fragment(Fragment{Kind: Framework, State: Destroyed}, held) }},
	{"support fragment", false,
		func(s *scene, held Ref) Ref { return s.fragment(Fragment{Kind: Support, Tag: "list"}, held) }},
	{"destroyed support fragment", true, func(s *scene, held Ref) Ref {
		return s.fragment(Fragment{Kind: Support, State: Destroyed, Tag: "list"}, held)
	}},
	{"androidx fragment", false, func(s *scene, held Ref) Ref { return s.fragment(Fragment{Tag: "detail"}, held) }},
	{"destroyed androidx fragment", true,
		func(s *scene, held Ref) Ref { return s.fragment(Fragment{State: Destroyed}, held) }},
	{"androidx fragment that was reset", false, func(s *scene, held Ref) Ref {
		return s.fragment(Fragment{State: Destroyed, Lifecycle: "INITIALIZED"}, held)
	}},
	{"androidx fragment that is not yet attached", false,
		func(s *scene, held Ref) Ref { return s.fragment(Fragment{State: NotYet}, held) }},
	{"androidx fragment without a lifecycle", false, func(s *scene, held Ref) Ref {
		r := s.fragment(Fragment{}, held)
		s.Set(r, "mLifecycleRegistry", nil)
		return r
	}},
	{"LifecycleRegistry", false, func(s *scene, held Ref) Ref { return s.lifecycle("STARTED", held) }},
	{"destroyed LifecycleRegistry", false, func(s *scene, held Ref) Ref { return s.lifecycle("DESTROYED", held) }},
}

// fragment creates a fragment whose mHost is the given object.
func (s *scene) fragment(f Fragment, held Ref) Ref {
	class := map[FragmentKind]string{
		AndroidX: "com.example.DetailFragment", Support: "com.example.ListFragment",
		Framework: "com.example.OldFragment",
	}[f.Kind]
	r := s.Fragment(class, f)
	s.Set(r, "mHost", held)
	return r
}

func (s *scene) lifecycle(state string, held Ref) Ref {
	r := s.Lifecycle(state)
	s.Set(r, "mObserverMap", held)
	return r
}

// viewShapes are views in different states.
var viewShapes = []leakShape{
	{"attached view", false, func(s *scene, held Ref) Ref { return s.view(s.here().Content, s.here().Ref, held) }},
	{"view of a destroyed activity", false,
		func(s *scene, held Ref) Ref { return s.view(s.gone().Content, s.gone().Ref, held) }},
	{"root view of a destroyed activity", true, func(s *scene, held Ref) Ref { return s.view(0, s.gone().Ref, held) }},
	{"root view of a wrapped destroyed activity", true,
		func(s *scene, held Ref) Ref { return s.view(0, s.wrapper(s.gone().Ref, 0), held) }},
	{"view without a parent", false, func(s *scene, held Ref) Ref { return s.view(0, s.application(), held) }},
	{"detached view in a window", false, func(s *scene, held Ref) Ref {
		r := s.view(s.here().Content, s.here().Ref, held)
		s.Set(r, "mAttachInfo", nil)
		return r
	}},
	{"view that was never attached", false, func(s *scene, held Ref) Ref {
		r := s.view(s.here().Content, s.here().Ref, held)
		s.Set(r, "mAttachInfo", nil)
		s.Set(r, "mWindowAttachCount", 0)
		return r
	}},
	{"attached view whose root is detached", false, func(s *scene, held Ref) Ref {
		decor := s.New(s.Class("com.android.internal.policy.DecorView"),
			Fields{"mContext": s.application(), "mWindowAttachCount": 1, "mID": -1})
		r := s.view(decor, s.application(), held)
		s.Set(r, "mAttachInfo", s.get(s.here().Decor, "mAttachInfo"))
		return r
	}},
	{"detached DecorView", true, func(s *scene, held Ref) Ref {
		return s.New(s.Class("com.android.internal.policy.DecorView"),
			Fields{"mContext": s.application(), "mWindowAttachCount": 2, "mTag": held, "mID": 17})
	}},
	{"DecorView that was never attached", false, func(s *scene, held Ref) Ref {
		return s.New(s.Class("com.android.internal.policy.DecorView"),
			Fields{"mContext": s.application(), "mTag": held, "mID": -1})
	}},
	{"detached root of a window", true, func(s *scene, held Ref) Ref {
		r := s.view(0, s.application(), held)
		s.Set(r, "mParent", s.viewRoot(s.application(), r, "popup", 1000))
		return r
	}},
	{"attached root of a window", false, func(s *scene, held Ref) Ref {
		r := s.view(0, s.application(), held)
		root := s.viewRoot(s.application(), r, "popup", 1000)
		s.Set(r, "mParent", root)
		s.Set(r, "mAttachInfo",
			s.New(s.Class("android.view.View$AttachInfo"), Fields{"mRootView": r, "mViewRootImpl": root}))
		return r
	}},
	{"view in a layout alone", false, func(s *scene, held Ref) Ref {
		layout := s.New(s.Class("android.widget.LinearLayout"), Fields{"mContext": s.application(), "mID": 5})
		return s.view(layout, s.application(), held)
	}},
	{"view group", false, func(s *scene, held Ref) Ref {
		layout := s.New(s.Class("android.widget.LinearLayout"),
			Fields{"mContext": s.here().Ref, "mWindowAttachCount": 1, "mID": 0x7f080001})
		s.view(layout, s.here().Ref, held)
		return layout
	}},
	{"editor of a view of a destroyed activity", true,
		func(s *scene, held Ref) Ref { return s.editor(s.view(0, s.gone().Ref, 0), held) }},
	{"editor of an attached view", false,
		func(s *scene, held Ref) Ref { return s.editor(s.view(s.here().Content, s.here().Ref, 0), held) }},
	{"editor without a view", false, func(s *scene, held Ref) Ref { return s.editor(0, held) }},
}

// view creates a TextView, in a group or without a parent.
func (s *scene) view(parent, context, held Ref) Ref {
	r := s.New(s.Class("android.widget.TextView"),
		Fields{"mContext": context, "mWindowAttachCount": 1, "mID": 0x7f080002, "mTag": held})
	if parent != 0 {
		s.AddView(parent, r)
	}
	return r
}

func (s *scene) editor(view, held Ref) Ref {
	return s.New(s.Class("android.widget.Editor"), Fields{"mTextView": view, "mUndoManager": held})
}

// windowShapes are windows, dialogs and toasts.
var windowShapes = []leakShape{
	{"window", false, func(s *scene, held Ref) Ref { return s.window(s.here().Ref, false, held) }},
	{"destroyed window", true, func(s *scene, held Ref) Ref { return s.window(s.application(), true, held) }},
	{"dialog", false,
		func(s *scene, held Ref) Ref { return s.dialog(s.here().Ref, s.view(0, s.application(), 0), held) }},
	{"dismissed dialog", false, func(s *scene, held Ref) Ref { return s.dialog(s.application(), 0, held) }},
	{"dialog of a destroyed activity", false, func(s *scene, held Ref) Ref { return s.dialog(s.gone().Ref, 0, held) }},
	{"ViewRootImpl", false, func(s *scene, held Ref) Ref {
		r := s.viewRoot(s.application(), s.view(0, s.application(), 0), "com.example/Main", 1)
		s.Set(r, "mAttachInfo", held)
		return r
	}},
	{"ViewRootImpl without a view", true, func(s *scene, held Ref) Ref {
		r := s.viewRoot(s.application(), 0, "", 2005)
		s.Set(r, "mAttachInfo", held)
		return r
	}},
	{"ViewRootImpl of a destroyed activity", true, func(s *scene, held Ref) Ref {
		r := s.viewRoot(s.gone().Ref, s.view(0, s.application(), 0), "Toast", 2005)
		s.Set(r, "mAttachInfo", held)
		return r
	}},
	{"toast", false, func(s *scene, held Ref) Ref { return s.toast(true, s.view(0, s.application(), 0), held) }},
	{"finished toast", true, func(s *scene, held Ref) Ref { return s.toast(true, 0, held) }},
	{"toast that was never shown", false, func(s *scene, held Ref) Ref { return s.toast(false, 0, held) }},
	{"InputMethodManager", false, func(s *scene, held Ref) Ref {
		return s.New(s.Class("android.view.inputmethod.InputMethodManager"), Fields{"mH": held})
	}},
}

func (s *scene) window(context Ref, destroyed bool, held Ref) Ref {
	return s.New(s.Class("com.android.internal.policy.PhoneWindow"),
		Fields{"mContext": context, "mDestroyed": destroyed, "mCallback": held})
}

func (s *scene) dialog(context, decor, held Ref) Ref {
	return s.New(s.class("com.example.ConfirmDialog", "android.app.Dialog"),
		Fields{"mContext": context, "mDecor": decor, "mOnDismissListener": held})
}

// viewRoot creates a ViewRootImpl. If title is "", the mTitle of the window
// stays null.
func (s *scene) viewRoot(context, view Ref, title string, kind int) Ref {
	params := s.New(s.Class("android.view.WindowManager$LayoutParams"), Fields{"type": kind})
	if title != "" {
		s.Set(params, "mTitle", title)
	}
	return s.New(s.Class("android.view.ViewRootImpl"),
		Fields{"mContext": context, "mView": view, "mWindowAttributes": params})
}

func (s *scene) toast(shown bool, view, held Ref) Ref {
	tn := s.New(s.Class("android.widget.Toast$TN"), Fields{"mView": view, "mNextView": held})
	if shown {
		s.Set(tn, "mWM", s.node("android.view.WindowManagerImpl", "mParentWindow", 0))
	}
	return s.New(s.Class("android.widget.Toast"), Fields{"mContext": s.application(), "mTN": tn})
}

// loopShapes are threads, queues and messages.
var loopShapes = []leakShape{
	{"message queue", false, func(s *scene, held Ref) Ref { return s.queueOf(false, s.message(0, held, 0)) }},
	{"quitting message queue", true, func(s *scene, held Ref) Ref { return s.queueOf(true, s.message(0, held, 0)) }},
	{"message queue with handlers", false, func(s *scene, held Ref) Ref {
		return s.queueOf(false, s.message(s.handler(0), 0, s.message(s.handler(held), 0, s.message(0, 0, 0))))
	}},
	{"message queue of a thread", false, func(s *scene, held Ref) Ref {
		looper := s.New(s.Class("android.os.Looper"), Fields{"mThread": s.Thread("pool").Ref})
		return s.queueOf(false, s.message(s.New(s.Class("android.os.Handler"), Fields{"mLooper": looper}), held, 0))
	}},
	{"empty message queue", false, func(s *scene, held Ref) Ref {
		r := s.queueOf(false, 0)
		s.Set(r, "mIdleHandlers", s.ArrayList(held).Ref)
		return r
	}},
	{"message", false, func(s *scene, held Ref) Ref {
		return s.New(s.Class("android.os.Message"),
			Fields{"what": -3, "when": 3_600_500, "callback": held, "target": s.handler(0)})
	}},
	{"message of an old version", false, func(s *scene, held Ref) Ref {
		return s.New(s.Class("android.os.Message"), Fields{"what": 7, "when": 1000, "callback": held})
	}},
	{"message with an object", false, func(s *scene, held Ref) Ref {
		return s.New(s.Class("android.os.Message"), Fields{"obj": s.node("com.example.Controller", "callback", held)})
	}},
	{"handler", false, func(s *scene, held Ref) Ref { return s.handler(held) }},
	{"handler of the app", false, func(s *scene, held Ref) Ref {
		return s.New(s.class("com.example.Screen$Handler", "android.os.Handler", "object this$0"),
			Fields{"this$0": held, "mLooper": s.android.looper})
	}},
	{"idle thread", false, func(s *scene, held Ref) Ref {
		return s.New(s.class("com.example.Worker", "java.lang.Thread", "object task"),
			Fields{"name": "idle", "task": held})
	}},
	{"thread without a name", false, func(s *scene, held Ref) Ref {
		return s.New(s.class("com.example.Worker", "java.lang.Thread", "object task"), Fields{"task": held})
	}},
	{"running thread", false, func(s *scene, held Ref) Ref {
		return s.thread(s.class("com.example.Worker", "java.lang.Thread", "object task"), "worker",
			Fields{"task": held}).Ref
	}},
	{"other thread named main", false, func(s *scene, held Ref) Ref {
		return s.thread(s.class("com.example.Worker", "java.lang.Thread", "object task"), "main", Fields{"task": held}).
			Ref
	}},
	{"binder", false, func(s *scene, held Ref) Ref {
		return s.New(s.class("com.example.SyncService$Stub", "android.os.Binder", "object this$0"),
			Fields{"this$0": held})
	}},
}

func (s *scene) queueOf(quits bool, first Ref) Ref {
	return s.New(s.Class("android.os.MessageQueue"), Fields{"mQuitting": quits, "mMessages": first})
}

func (s *scene) message(target, callback, next Ref) Ref {
	return s.New(s.Class("android.os.Message"),
		Fields{"what": 1, "when": 3_599_000, "target": target, "callback": callback, "next": next})
}

func (s *scene) handler(held Ref) Ref {
	return s.New(s.Class("android.os.Handler"), Fields{"mCallback": held})
}

// composeShapes returns the shapes of Compose.
var composeShapes = func() []leakShape {
	var all []leakShape
	for _, state := range []string{
		"ShutDown", "ShuttingDown", "Inactive", "InactivePendingWork", "Idle", "PendingWork",
	} {
		all = append(all, leakShape{"recomposer " + state, false, func(s *scene, held Ref) Ref {
			r := s.Recomposer(state)
			s.Set(r, "knownCompositions", held)
			return r
		}})
	}
	composition := func(disposed bool) func(*scene, Ref) Ref {
		return func(s *scene, held Ref) Ref {
			r := s.Composition(0, disposed)
			s.Set(r, "slotTable", held)
			return r
		}
	}
	return append(all, leakShape{"composition", false, composition(false)},
		leakShape{"disposed composition", false, composition(true)})
}()

// otherShapes are animators and the shapes of libraries.
var otherShapes = []leakShape{
	{"presenter of Mortar", false, func(s *scene, held Ref) Ref {
		return s.New(s.class("com.example.ScreenPresenter", "mortar.Presenter"), Fields{"view": held})
	}},
	{"presenter of Mortar without a view", false,
		func(s *scene, held Ref) Ref { return s.New(s.Class("mortar.Presenter"), Fields{"delegate": held}) }},
	{"scope of Mortar", false, func(s *scene, held Ref) Ref {
		return s.New(s.Class("mortar.MortarScope"), Fields{"name": "root", "children": held})
	}},
	{"dead scope of Mortar", true, func(s *scene, held Ref) Ref {
		return s.New(s.Class("mortar.MortarScope"), Fields{"name": "screen", "children": held, "dead": true})
	}},
	{"attached coordinator", false, func(s *scene, held Ref) Ref {
		return s.New(s.Class("com.squareup.coordinators.Coordinator"), Fields{"attached": true, "binder": held})
	}},
	{"coordinator", false, func(s *scene, held Ref) Ref {
		return s.New(s.class("com.example.FormCoordinator", "com.squareup.coordinators.Coordinator"),
			Fields{"binder": held})
	}},
	{"animator", false, func(s *scene, held Ref) Ref {
		return s.New(s.Class("android.animation.ValueAnimator"),
			Fields{
				"mListeners":       s.ArrayList(s.node("com.example.Controller", "callback", 0), s.String("x")).Ref,
				"mUpdateListeners": held,
			})
	}},
	{"animator with an empty list", false, func(s *scene, held Ref) Ref {
		return s.New(s.Class("android.animation.ValueAnimator"),
			Fields{"mListeners": s.ArrayList().Ref, "mUpdateListeners": held})
	}},
	{"object animator", false, func(s *scene, held Ref) Ref {
		return s.New(s.Class("android.animation.ObjectAnimator"), Fields{
			"mTarget": s.Weak(held), "mPropertyName": "alpha", "mRepeatCount": -1, "mRepeatMode": 1, "mDuration": 300,
			"mStarted": true, "mRunning": true,
		})
	}},
	{"object animator with a property", false, func(s *scene, held Ref) Ref {
		property := s.New(s.Class("android.util.Property"),
			Fields{"mName": "translationX", "mType": s.Class("java.lang.Integer")})
		return s.New(s.Class("android.animation.ObjectAnimator"),
			Fields{
				"mProperty": property, "mRepeatCount": 3, "mRepeatMode": 2, "mStartDelay": 16, "mUpdateListeners": held,
				"mInitialized": true,
			})
	}},
	{"object animator with an invalid repeat mode", false, func(s *scene, held Ref) Ref {
		property := s.New(s.Class("android.util.Property"), nil)
		return s.New(s.Class("android.animation.ObjectAnimator"),
			Fields{"mTarget": held, "mProperty": property, "mRepeatMode": 9, "mAnimationEndRequested": true})
	}},
}

// knownShapes are shapes with a field by which Shark recognizes a library leak
// on some phones.
var knownShapes = []leakShape{
	{"served view", false, func(s *scene, held Ref) Ref {
		return s.New(s.Class("android.view.inputmethod.InputMethodManager"), Fields{"mNextServedView": held})
	}},
	{"last views of several manufacturers", false, func(s *scene, held Ref) Ref {
		return s.New(s.Class("android.view.inputmethod.InputMethodManager"),
			Fields{"mLastSrvView": held, "mLastFocusView": held})
	}},
	{"manager with a context", false, func(s *scene, held Ref) Ref {
		return s.New(s.class("android.permission.PermissionControllerManager", "", "object mContext",
			"object mHandler"), Fields{"mContext": held})
	}},
	{"message obj", false,
		func(s *scene, held Ref) Ref { return s.New(s.Class("android.os.Message"), Fields{"obj": held}) }},
	{"message obj and callback", false, func(s *scene, held Ref) Ref {
		return s.New(s.Class("android.os.Message"),
			Fields{"obj": held, "callback": s.node("com.example.Controller", "callback", held)})
	}},
	{"static field of Huawei", false, func(s *scene, held Ref) Ref {
		c := s.class("android.gestureboost.GestureBoostManager", "", "static object mContext")
		s.SetStatic(c, "mContext", held)
		return s.New(s.class("com.example.Reflection", "", "object type"), Fields{"type": c})
	}},
}
