package android_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// app is the heap of an app with one live and one destroyed activity.
type app struct {
	*hproftest.Heap
	here, gone hproftest.Activity
}

func newApp() *app {
	h := hproftest.Android(hproftest.Phone{Process: "com.shop"})
	return &app{h, h.Activity("com.shop.Here", hproftest.Attached), h.Activity("com.shop.Gone", hproftest.Destroyed)}
}

// of declares a class with the given members and creates an object of the
// class.
func (a *app) of(class, super string, f hproftest.Fields, members ...string) hproftest.Ref {
	var base *hproftest.Class
	if super != "" {
		base = a.Class(super)
	}
	return a.New(a.Declare(class, base, members...), f)
}

// wrap creates a context that wraps another one.
func (a *app) wrap(base hproftest.Ref) hproftest.Ref {
	return a.of("com.shop.Themed", "android.content.ContextWrapper", hproftest.Fields{"mBase": base})
}

// view creates a text view with a parent; the parent is 0 if there is none.
func (a *app) view(context, parent hproftest.Ref, f hproftest.Fields) hproftest.Ref {
	all := hproftest.Fields{"mContext": context, "mParent": parent, "mID": -1, "mWindowAttachCount": 1}
	for name, v := range f {
		all[name] = v
	}
	return a.New(a.Class("android.widget.TextView"), all)
}

func (a *app) attached() hproftest.Ref { return a.New(a.Class("android.view.View$AttachInfo"), nil) }

func (a *app) detachedDecor() hproftest.Ref {
	return a.New(a.Class("com.android.internal.policy.DecorView"),
		hproftest.Fields{"mContext": a.Application(), "mID": -1, "mWindowAttachCount": 1})
}

// root creates a ViewRootImpl.
func (a *app) root(context, view hproftest.Ref, title any, kind int) hproftest.Ref {
	params := a.New(a.Class("android.view.WindowManager$LayoutParams"), hproftest.Fields{"type": kind, "mTitle": title})
	return a.New(a.Class("android.view.ViewRootImpl"),
		hproftest.Fields{"mContext": context, "mView": view, "mWindowAttributes": params})
}

func (a *app) toast(shown, over bool) hproftest.Ref {
	tn := hproftest.Fields{}
	if shown {
		tn["mWM"] = a.Application()
	}
	if !over {
		tn["mView"] = a.view(a.Application(), 0, nil)
	}
	return a.of("android.widget.Toast", "",
		hproftest.Fields{"mTN": a.of("android.widget.Toast$TN", "", tn, "object mWM", "object mView")}, "object mTN")
}

// queue creates a MessageQueue with a message for a handler of the main thread.
func (a *app) queue(quits bool) hproftest.Ref {
	looper := a.New(a.Class("android.os.Looper"), hproftest.Fields{"mThread": a.Main().Ref})
	message := a.New(a.Class("android.os.Message"),
		hproftest.Fields{"target": a.New(a.Class("android.os.Handler"), hproftest.Fields{"mLooper": looper})})
	return a.New(a.Class("android.os.MessageQueue"), hproftest.Fields{"mQuitting": quits, "mMessages": message})
}

// arrayMap creates an ArrayMap of alternating keys and values.
func (a *app) arrayMap(pairs ...hproftest.Ref) hproftest.Ref {
	return a.New(a.Class("android.util.ArrayMap"),
		hproftest.Fields{"mArray": a.Objects(a.Class("java.lang.Object"), pairs...)})
}

func (a *app) animator(class string, f hproftest.Fields) hproftest.Ref {
	base := a.Declare("android.animation.Animator", nil, "object mListeners")
	value := a.Declare("android.animation.ValueAnimator", base, "boolean mInitialized", "boolean mStarted",
		"boolean mRunning", "boolean mAnimationEndRequested",
		"long mDuration", "long mStartDelay", "int mRepeatCount", "int mRepeatMode")
	a.Declare("android.animation.ObjectAnimator", value, "object mPropertyName", "object mProperty")
	return a.New(a.Class(class), f)
}

const (
	notInWindow = "=View not part of a window view hierarchy; "
	inWindow    = "=View is part of a window view hierarchy; "
	isDetached  = "=View.mAttachInfo is null (view detached); "
	isAttached  = "=View.mAttachInfo is not null (view attached); "
	attachedAt1 = "=View.mWindowAttachCount = 1"
	ofApp       = "; =mContext instance of com.shop.App"
	ofHere      = "; =mContext instance of com.shop.Here with mDestroyed = false"
	ofGone      = "; =mContext instance of com.shop.Gone with mDestroyed = true"
)

// form is an object with the remarks that are expected from each set of rules.
type form struct {
	name string
	make func(a *app) any
	want string
}

// The forms of objects that both sets of rules judge in the same way. The names
// of leaking forms begin with +.
var forms = []form{
	{"class", func(a *app) any { return a.Class("java.lang.Integer") }, "-a class is never leaking"},
	{"class loader", func(a *app) any { return a.Loader() }, "-A ClassLoader is never leaking"},
	{"anonymous class", func(a *app) any { return a.of("com.shop.Screen$1", "java.lang.Number", nil) },
		"=Anonymous subclass of java.lang.Number"},
	{"anonymous class of an interface", func(a *app) any { return a.of("com.shop.Screen$12", "", nil) }, ""},
	{"inner class", func(a *app) any { return a.of("com.shop.Screen$State1", "java.lang.Number", nil) }, ""},
	{"main thread", func(a *app) any { return a.Main() }, "-the main thread always runs; =Thread name: 'main'"},
	{"thread", func(a *app) any { return a.Thread("pool-1") }, "=Thread name: 'pool-1'"},
	{"array", func(a *app) any { return a.Objects(a.Class("android.app.Activity"), a.gone.Ref) }, ""},

	{"+view of a destroyed activity", func(a *app) any { return a.view(a.gone.Ref, 0, nil) },
		"+View.mContext references a destroyed activity; " + notInWindow + isDetached + attachedAt1 + ofGone},
	{"view of a destroyed activity in another activity",
		func(a *app) any { return a.view(a.gone.Ref, a.gone.Content, nil) },
		"+View.mContext references a destroyed activity; " + inWindow + isDetached + attachedAt1 + ofGone},
	{"attached view", func(a *app) any {
		return a.view(a.here.Ref, a.here.Content, hproftest.Fields{"mAttachInfo": a.attached()})
	}, "-View attached; " + inWindow + isAttached + attachedAt1 + ofHere},
	{"detached view in a window", func(a *app) any { return a.view(a.here.Ref, a.here.Content, nil) },
		"+View detached yet still part of window view hierarchy; " + inWindow + isDetached + attachedAt1 + ofHere},
	{"attached view in a detached window", func(a *app) any {
		return a.view(a.here.Ref, a.detachedDecor(), hproftest.Fields{"mAttachInfo": a.attached()})
	}, "+View attached but root view com.android.internal.policy.DecorView detached (attach disorder); " + inWindow +
		isAttached + attachedAt1 + ofHere},
	{"view that was never attached", func(a *app) any {
		return a.view(a.here.Ref, a.here.Content, hproftest.Fields{"mWindowAttachCount": 0})
	}, inWindow + isDetached + "=View.mWindowAttachCount = 0" + ofHere},
	{"view without a window", func(a *app) any { return a.view(a.Application(), 0, nil) }, notInWindow + isDetached +
		attachedAt1 +
		ofApp},
	{"+detached DecorView", func(a *app) any { return a.detachedDecor() }, notInWindow + isDetached + attachedAt1 +
		ofApp},
	{"+detached root of a window", func(a *app) any {
		return a.view(a.Application(), a.root(a.Application(), 0, nil, 2), nil)
	}, "+View detached yet still part of window view hierarchy; " + inWindow + isDetached + attachedAt1 + ofApp},
	{"+editor", func(a *app) any {
		return a.of("android.widget.Editor", "", hproftest.Fields{"mTextView": a.view(a.gone.Ref, 0, nil)},
			"object mTextView")
	},
		"+Editor#mTextView: View.mContext references a destroyed activity; =Editor#mTextView: View not part of a " +
			"window view hierarchy; =Editor#mTextView: View.mAttachInfo is null (view detached); " +
			"=Editor#mTextView: View.mWindowAttachCount = 1"},
	{"editor without a view", func(a *app) any { return a.of("android.widget.Editor", "", nil, "object mTextView") },
		""},

	{"wrapper of an activity", func(a *app) any { return a.wrap(a.here.Ref) },
		"=mBase instance of com.shop.Here with mDestroyed = false; =Themed wraps an Activity with " +
			"Activity.mDestroyed false"},
	{"+wrapper of a wrapper of a destroyed activity", func(a *app) any { return a.wrap(a.wrap(a.gone.Ref)) },
		"+Themed wraps an Activity with Activity.mDestroyed true; =mBase instance of com.shop.Themed, wrapping " +
			"activity com.shop.Gone with mDestroyed = true"},
	{"wrapper of the application", func(a *app) any { return a.wrap(a.Application()) },
		"=mBase instance of com.shop.App; =Themed wraps an Application context"},
	{"wrapper of a wrapper of a service",
		func(a *app) any { return a.wrap(a.wrap(a.Service("com.shop.Sync", hproftest.Attached))) },
		"=mBase instance of com.shop.Themed, wrapping com.shop.Sync; =Themed wraps a Service context"},
	{"wrapper of a ContextImpl", func(a *app) any { return a.wrap(a.here.Context) },
		"=mBase instance of android.app.ContextImpl; =Themed does not wrap a known Android context"},
	{"wrapper without a base", func(a *app) any { return a.wrap(0) }, "=Themed does not wrap a known Android context"},
	{"ContextImpl of an activity", func(a *app) any { return a.here.Context },
		"-ContextImpl.mOuterContext is an instance of com.shop.Here with Activity.mDestroyed false; =mOuterContext " +
			"instance of com.shop.Here with mDestroyed = false"},
	{"+ContextImpl of a destroyed activity", func(a *app) any { return a.gone.Context },
		"+ContextImpl.mOuterContext is an instance of com.shop.Gone with Activity.mDestroyed true; =mOuterContext " +
			"instance of com.shop.Gone with mDestroyed = true"},
	{"ContextImpl of a service", func(a *app) any {
		return a.New(a.Class("android.app.ContextImpl"),
			hproftest.Fields{"mOuterContext": a.Service("com.shop.Sync", hproftest.Attached)})
	}, "=mOuterContext instance of com.shop.Sync; =ContextImpl.mOuterContext is an instance of com.shop.Sync"},
	{"ContextImpl of the application", func(a *app) any {
		return a.New(a.Class("android.app.ContextImpl"), hproftest.Fields{"mOuterContext": a.Application()})
	},
		"-ContextImpl.mOuterContext is an instance of com.shop.App which extends android.app.Application; " +
			"=mOuterContext instance of com.shop.App"},
	{"ContextImpl of itself", func(a *app) any {
		r := a.New(a.Class("android.app.ContextImpl"), nil)
		a.Set(r, "mOuterContext", r)
		return r
	},
		"=mOuterContext instance of android.app.ContextImpl; =ContextImpl.mOuterContext == ContextImpl.this: not " +
			"tied to any particular lifecycle"},

	{"activity", func(a *app) any { return a.here.Ref },
		"-Activity#mDestroyed is false; =mApplication instance of com.shop.App; =mBase instance of " +
			"android.app.ContextImpl"},
	{"+destroyed activity", func(a *app) any { return a.gone.Ref },
		"+Activity#mDestroyed is true; =mApplication instance of com.shop.App; =mBase instance of " +
			"android.app.ContextImpl"},
	{"service", func(a *app) any { return a.Service("com.shop.Sync", hproftest.Attached) },
		"-Service held by ActivityThread; =mApplication instance of com.shop.App; =mBase instance of " +
			"android.app.ContextImpl"},
	{"+destroyed service", func(a *app) any { return a.Service("com.shop.Sync", hproftest.Destroyed) },
		"+Service not held by ActivityThread; =mApplication instance of com.shop.App; =mBase instance of " +
			"android.app.ContextImpl"},
	{"application", func(a *app) any { return a.Application() },
		"-Application is a singleton; =mBase instance of android.app.ContextImpl"},
	{"ActivityThread", func(a *app) any { return a.New(a.Class("android.app.ActivityThread"), nil) },
		"-ActivityThread is a singleton"},
	{"InputMethodManager", func(a *app) any { return a.of("android.view.inputmethod.InputMethodManager", "", nil) },
		"-InputMethodManager is a singleton"},
	{"receivers", func(a *app) any {
		receiver := a.of("com.shop.Receiver", "", nil)
		empty := a.New(a.Class("android.util.ArrayMap"), nil)
		return a.New(a.Class("android.app.LoadedApk"),
			hproftest.Fields{
				"mReceivers": a.arrayMap(a.here.Ref, a.arrayMap(receiver, 0, 0, 0), 0, receiver, a.Application(),
					empty),
			})
	}, "=Receivers; =..Here@ID; =....Receiver@ID; =..App@ID"},
	{"no receivers", func(a *app) any {
		return a.New(a.Class("android.app.LoadedApk"), hproftest.Fields{"mReceivers": a.arrayMap()})
	}, ""},

	{"dialog", func(a *app) any {
		return a.of("android.app.Dialog", "", hproftest.Fields{"mDecor": a.detachedDecor()}, "object mDecor")
	}, "=Dialog#mDecor is not null"},
	{"dialog that is not shown", func(a *app) any { return a.of("android.app.Dialog", "", nil, "object mDecor") },
		"=Dialog#mDecor is null"},
	{"ViewRootImpl", func(a *app) any { return a.root(a.here.Ref, a.here.Decor, "com.shop/Here", 1) },
		"=mContext instance of com.shop.Here with mDestroyed = false; =ViewRootImpl#mView is not null; " +
			"=mWindowAttributes.mTitle = \"com.shop/Here\"; =mWindowAttributes.type = 1"},
	{"+ViewRootImpl without a view", func(a *app) any { return a.root(a.Application(), 0, nil, 2005) },
		"+ViewRootImpl#mView is null; =mContext instance of com.shop.App; =mWindowAttributes.mTitle is null; " +
			"=mWindowAttributes.type = 2005 (Toast)"},
	{"+ViewRootImpl of a destroyed activity", func(a *app) any { return a.root(a.gone.Ref, a.gone.Decor, "x", 2) },
		"+ViewRootImpl.mContext references a destroyed activity, did you forget to cancel toasts or dismiss " +
			"dialogs?; =mContext instance of com.shop.Gone with mDestroyed = true; " +
			"=ViewRootImpl#mView is not null; =mWindowAttributes.mTitle = \"x\"; =mWindowAttributes.type = 2"},
	{"window", func(a *app) any { return a.here.Window },
		"=mCallback instance of com.shop.Here with mDestroyed = false; =mContext instance of com.shop.Here with " +
			"mDestroyed = false; =Window#mDestroyed is false"},
	{"+destroyed window", func(a *app) any { return a.gone.Window },
		"+Window#mDestroyed is true; =mCallback instance of com.shop.Gone with mDestroyed = true; =mContext instance " +
			"of com.shop.Gone with mDestroyed = true"},
	{"toast", func(a *app) any { return a.toast(true, false) },
		"-This toast is showing (Toast.mTN.mWM != null && Toast.mTN.mView != null)"},
	{"+toast that is no longer shown", func(a *app) any { return a.toast(true, true) },
		"+This toast is done showing (Toast.mTN.mWM != null && Toast.mTN.mView == null)"},
	{"toast that was never shown", func(a *app) any { return a.toast(false, true) }, ""},

	{"+quitting queue", func(a *app) any { return a.queue(true) },
		"+MessageQueue#mQuitting is true; =HandlerThread: \"main\""},
	{"queue", func(a *app) any { return a.queue(false) }, "-MessageQueue#mQuitting is false; =HandlerThread: \"main\""},
	{"+old queue", func(a *app) any {
		return a.of("android.os.MessageQueue", "", hproftest.Fields{"mQuiting": true}, "boolean mQuiting",
			"object mMessages")
	}, "+MessageQueue#mQuiting is true"},
	{"message with an array", func(a *app) any {
		return a.New(a.Class("android.os.Message"),
			hproftest.Fields{
				"what": -1, "when": 77, "obj": a.Ints(1), "callback": a.Objects(a.Class("java.lang.Object")),
				"target": a.Class("java.lang.Integer"),
			})
	},
		"=Message.what = -1; =Message.when = 77; =Message.obj = primitive array @ID of int[]; =Message.callback = " +
			"object array @ID of java.lang.Object[]; =Message.target = class java.lang.Integer"},
	{"message", func(a *app) any {
		a.Watch(a.Integer(1), hproftest.Watched{})
		return a.New(a.Class("android.os.Message"), hproftest.Fields{"when": 3_599_990, "obj": a.Integer(1)})
	},
		"=Message.what = 0; =Message.when = 3599990 (10 ms before heap dump); =Message.obj = instance @ID of " +
			"java.lang.Integer; =Message.callback = null; =Message.target = null"},

	{"recomposer", func(a *app) any { return a.Recomposer("Idle") }, "-Recomposer is in state Idle"},
	{"inactive recomposer", func(a *app) any { return a.Recomposer("InactivePendingWork") },
		"=Recomposer is in state InactivePendingWork"},
	{"recomposer that is shutting down", func(a *app) any { return a.Recomposer("ShuttingDown") },
		"+Recomposer is in state ShuttingDown"},
	{"composition", func(a *app) any { return a.Composition(0, false) }, "-Composition not disposed"},
	{"disposed composition", func(a *app) any { return a.Composition(0, true) }, "+Composition disposed"},
	{"lifecycle", func(a *app) any { return a.Lifecycle("STARTED") }, "-state is STARTED"},
	{"destroyed lifecycle", func(a *app) any { return a.Lifecycle("DESTROYED") }, "=state = DESTROYED"},
	{"animator", func(a *app) any {
		return a.animator("android.animation.ValueAnimator", hproftest.Fields{"mListeners": a.ArrayList().Ref})
	}, "=mListeners is empty"},
	{"object animator", func(a *app) any {
		property := a.of("android.util.Property", "",
			hproftest.Fields{"mName": "alpha", "mType": a.Class("java.lang.Integer")}, "object mName", "object mType")
		return a.animator("android.animation.ObjectAnimator",
			hproftest.Fields{
				"mProperty": property, "mRepeatCount": -1, "mRepeatMode": 1, "mDuration": 300, "mStarted": true,
			})
	},
		"=mListeners = null; =mPropertyName = null; =mProperty.mName = alpha; =mProperty.mType = java.lang.Integer; " +
			"=mInitialized = false; =mStarted = true; =mRunning = false; " +
			"=mAnimationEndRequested = false; =mDuration = 300; =mStartDelay = 0; =mRepeatCount = INFINITE (-1); " +
			"=mRepeatMode = RESTART (1)"},
	{"object animator of a named property", func(a *app) any {
		return a.animator("android.animation.ObjectAnimator",
			hproftest.Fields{
				"mPropertyName": "x", "mRepeatCount": 3, "mRepeatMode": 2, "mRunning": true, "mStartDelay": 16,
			})
	},
		"=mListeners = null; =mPropertyName = x; =mProperty = null; =mInitialized = false; =mStarted = false; " +
			"=mRunning = true; =mAnimationEndRequested = false; =mDuration = 0; " +
			"=mStartDelay = 16; =mRepeatCount = 3; =mRepeatMode = REVERSE (2)"},

	{"presenter", func(a *app) any {
		return a.of("mortar.Presenter", "", hproftest.Fields{"view": a.Integer(1)}, "object view")
	}, "=Presenter#view is not null"},
	{"presenter without a view", func(a *app) any { return a.of("mortar.Presenter", "", nil, "object view") },
		"=Presenter#view is null"},
	{"+dead scope", func(a *app) any {
		return a.of("mortar.MortarScope", "", hproftest.Fields{"dead": true, "name": "cart"}, "object name",
			"boolean dead")
	}, "+mortar.MortarScope.dead is true for scope cart"},
	{"scope", func(a *app) any { return a.of("mortar.MortarScope", "", nil, "object name", "boolean dead") },
		"-mortar.MortarScope.dead is false for scope null"},
	{"coordinator", func(a *app) any {
		return a.of("com.squareup.coordinators.Coordinator", "", hproftest.Fields{"attached": true}, "boolean attached")
	}, "=Coordinator#attached is true"},
}

// anyID matches the IDs in remarks.
var anyID = regexp.MustCompile(`@[0-9]+`)

// TestForms checks the remarks about each object for which there is a rule, in
// each of its forms.
func TestForms(t *testing.T) {
	for _, f := range forms {
		a := newApp()
		r := f.make(a)
		j := judge(t, a.Heap, hproftest.Form{})
		name, leaks := strings.CutPrefix(f.name, "+")
		for _, i := range []*android.Inspector{j.now, j.old} {
			got := anyID.ReplaceAllString(lineOfInspection(i.Inspect(j.object(t, r))), "@ID")
			if want := strings.ReplaceAll(f.want, "; ", "\t"); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		j.leaks(t, name, r, leaks, leaks)
	}
}
