package hproftest

import (
	"cmp"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Phone describes the phone and the process of an Android heap. Zero values
// select a Pixel with Android 14 that runs com.example.
type Phone struct {
	// SDK is the API level, at least 23. Below 26, strings are stored in char[]
	// and bitmaps are in the Java heap.
	SDK                          int
	Seed                         uint64
	Process, Manufacturer, Model string
	// Width and Height are the size of the screen in pixels.
	Width, Height int
	// Harmony selects the collections of Apache Harmony, which Android used
	// before version 7.
	Harmony bool
}

const defaultSDK = 34

// androidState is the state that is shared by the methods that create Android
// objects.
type androidState struct {
	on bool
	// thread is the ActivityThread.
	thread, application, apk, resources, looper Ref
	// queue is the MessageQueue of the main thread; last is the Message at its
	// end.
	queue, last           Ref
	activities, services  *arrayMap
	views, roots, watched List
	bitmaps               []Ref
	pictures              map[Ref]Picture
}

// Android creates the heap of an app: the classes of Java, the framework's main
// singletons, and the threads of every app.
func Android(p Phone) *Heap {
	p.SDK = max(cmp.Or(p.SDK, defaultSDK), 23)
	p.Process = cmp.Or(p.Process, "com.example")
	p.Manufacturer = cmp.Or(p.Manufacturer, "Google")
	p.Model = cmp.Or(p.Model, "Pixel 7")
	p.Width, p.Height = cmp.Or(p.Width, 1080), cmp.Or(p.Height, 2400)
	h := newHeap(p.SDK, p.Seed, p.Harmony)
	h.android.on = true
	h.android.pictures = map[Ref]Picture{}
	h.framework()
	h.build(p)
	h.screen(p)
	h.application(p)
	for _, name := range []string{
		"Signal Catcher", "HeapTaskDaemon", "ReferenceQueueDaemon", "FinalizerDaemon", "FinalizerWatchdogDaemon",
		"binder:1_1", "RenderThread",
	} {
		h.Thread(name)
	}
	return h
}

// framework declares the classes of the package android and its subpackages.
func (h *Heap) framework() {
	context := h.Declare("android.content.Context", nil, "abstract")
	wrapper := h.Declare("android.content.ContextWrapper", context, "object mBase")
	themed := h.Declare("android.view.ContextThemeWrapper", wrapper, "int mThemeResource", "object mTheme",
		"object mInflater", "object mResources")
	h.Declare("android.app.ContextImpl", context, "object mMainThread", "object mPackageInfo", "object mOuterContext",
		"object mResources", "object mClassLoader", "object mBasePackageName", "int mFlags")
	h.Declare("android.app.Activity", themed, "object mApplication", "object mWindow", "object mDecor",
		"object mMainThread", "object mFragments", "object mIntent", "object mToken", "object mTitle",
		"object mUiThread",
		"boolean mCalled", "boolean mResumed", "boolean mStopped", "boolean mFinished", "boolean mDestroyed",
		"int mIdent", "int mResultCode")
	h.Declare("android.app.Application", wrapper, "object mLoadedApk", "object mActivityLifecycleCallbacks")
	h.Declare("android.app.Service", wrapper, "object mThread", "object mClassName", "object mToken",
		"object mApplication", "object mActivityManager")
	h.Declare("android.app.ActivityThread", nil, "object mActivities", "object mServices", "object mBoundApplication",
		"object mInitialApplication", "object mLooper", "object mNewActivities", "static object sCurrentActivityThread")
	h.Declare("android.app.ActivityThread$AppBindData", nil, "object processName", "object appInfo", "object info")
	h.Declare("android.app.ActivityThread$ActivityClientRecord", nil, "object token", "object activity",
		"object window", "object intent", "boolean paused", "boolean stopped")
	item := h.Declare("android.content.pm.PackageItemInfo", nil, "object packageName", "object name", "int labelRes")
	h.Declare("android.content.pm.ApplicationInfo", item, "object processName", "object className", "object sourceDir",
		"int flags", "int uid", "int targetSdkVersion")
	h.Declare("android.app.LoadedApk", nil, "object mApplication", "object mClassLoader", "object mApplicationInfo",
		"object mPackageName", "object mResources", "object mReceivers")
	h.Declare("android.util.ArrayMap", nil, "object mArray", "object mHashes", "int mSize")
	h.Declare("android.util.ArraySet", nil, "object mArray", "object mHashes", "int mSize")
	h.Declare("android.os.Binder", nil, "object mDescriptor", "object mOwner", "long mObject")
	h.Declare("android.os.Build", nil, "static object MANUFACTURER", "static object MODEL", "static object BRAND",
		"static object ID", "static object FINGERPRINT")
	h.Declare("android.os.Build$VERSION", nil, "static int SDK_INT", "static object RELEASE",
		"static object INCREMENTAL")
	h.Declare("android.os.Looper", nil, "object mQueue", "object mThread", "static object sMainLooper")
	h.Declare("android.os.MessageQueue", nil, "object mMessages", "boolean mQuitting", "boolean mBlocked", "long mPtr",
		"object mIdleHandlers")
	h.Declare("android.os.Message", nil, "int what", "int arg1", "object obj", "object target", "object callback",
		"object next", "long when", "int flags", "static object sPool")
	h.Declare("android.os.Handler", nil, "object mLooper", "object mQueue", "object mCallback", "boolean mAsynchronous")
	h.Declare("android.util.DisplayMetrics", nil, "int widthPixels", "int heightPixels", "int densityDpi",
		"float density", "float scaledDensity", "float xdpi", "float ydpi")
	h.Declare("android.content.res.ResourcesImpl", nil, "object mMetrics", "object mConfiguration", "object mAssets",
		"object mAppContext")
	h.Declare("android.content.res.Resources", nil, "object mResourcesImpl", "object mClassLoader",
		"object mDrawableInflater", "static object mSystem")
	view := h.Declare("android.view.View", nil, "object mContext", "object mParent", "object mAttachInfo",
		"object mResources", "object mListenerInfo", "object mLayoutParams", "object mTag", "object mBackground",
		"int mID", "int mWindowAttachCount", "int mPrivateFlags", "int mViewFlags", "int mLeft", "int mTop",
		"int mRight", "int mBottom", "long mNativePtr")
	group := h.Declare("android.view.ViewGroup", view, "abstract", "object mChildren", "int mChildrenCount",
		"object mOnHierarchyChangeListener")
	frame := h.Declare("android.widget.FrameLayout", group, "boolean mMeasureAllChildren")
	h.Declare("android.widget.LinearLayout", group, "int mOrientation")
	h.Declare("android.widget.TextView", view, "object mText", "object mEditor", "object mLayout")
	h.Declare("android.widget.ImageView", view, "object mDrawable")
	h.Declare("android.graphics.drawable.BitmapDrawable", nil, "object mBitmapState")
	h.Declare("android.graphics.drawable.BitmapDrawable$BitmapState", nil, "object mBitmap")
	h.Declare("com.android.internal.policy.DecorView", frame, "object mWindow", "object mContentRoot")
	h.Declare("com.android.internal.policy.DecorContext", themed, "object mPhoneWindow")
	window := h.Declare("android.view.Window", nil, "abstract", "object mContext", "object mCallback",
		"object mAppToken", "object mWindowManager", "boolean mDestroyed")
	h.Declare("com.android.internal.policy.PhoneWindow", window, "object mDecor", "object mContentParent",
		"object mLayoutInflater")
	h.Declare("android.view.ViewRootImpl", nil, "object mContext", "object mView", "object mAttachInfo",
		"object mThread", "object mWindowAttributes", "boolean mAdded", "boolean mRemoved")
	h.Declare("android.view.View$AttachInfo", nil, "object mRootView", "object mViewRootImpl", "object mHandler")
	h.Declare("android.view.WindowManager$LayoutParams", nil, "int type", "int flags", "object mTitle", "object token")
	h.Declare("android.view.WindowManagerGlobal", nil, "object mLock", "object mViews", "object mRoots",
		"object mParams", "object mDyingViews", "static object sDefaultWindowManager")
	h.nativeClasses()
	h.bitmapClass()
}

// build sets the fields of android.os.Build.
func (h *Heap) build(p Phone) {
	build, version := h.Class("android.os.Build"), h.Class("android.os.Build$VERSION")
	h.SetStatic(build, "MANUFACTURER", h.Intern(p.Manufacturer))
	h.SetStatic(build, "MODEL", h.Intern(p.Model))
	h.SetStatic(build, "BRAND", h.Intern(p.Manufacturer))
	h.SetStatic(build, "ID", h.Intern("UP1A.231005.007"))
	h.SetStatic(version, "SDK_INT", p.SDK)
	h.SetStatic(version, "RELEASE", h.Intern(map[bool]string{true: "14", false: "7.1.1"}[p.SDK >= 26]))
}

// screen creates the system resources, with the size of the screen.
func (h *Heap) screen(p Phone) {
	h.In(Zygote, func() {
		metrics := h.New(h.Class("android.util.DisplayMetrics"),
			Fields{
				"widthPixels": p.Width, "heightPixels": p.Height, "densityDpi": 420, "density": 2.625,
				"scaledDensity": 2.625, "xdpi": 420.0, "ydpi": 420.0,
			})
		impl := h.New(h.Class("android.content.res.ResourcesImpl"), Fields{"mMetrics": metrics})
		h.android.resources = h.New(h.Class("android.content.res.Resources"), Fields{"mResourcesImpl": impl})
	})
	h.SetStatic(h.Class("android.content.res.Resources"), "mSystem", h.android.resources)
}

// application creates the ActivityThread and the objects that it references.
func (h *Heap) application(p Phone) {
	a := &h.android
	queue := h.New(h.Class("android.os.MessageQueue"), Fields{"mPtr": 0x7a1000, "mIdleHandlers": h.ArrayList().Ref})
	a.queue = queue
	a.looper = h.New(h.Class("android.os.Looper"), Fields{"mQueue": queue, "mThread": h.Main().Ref})
	h.SetStatic(h.Class("android.os.Looper"), "sMainLooper", a.looper)

	info := h.New(h.Class("android.content.pm.ApplicationInfo"),
		Fields{
			"processName": p.Process, "packageName": packageOf(p.Process), "sourceDir": "/data/app/base.apk",
			"flags": 2, "targetSdkVersion": p.SDK,
		})
	a.apk = h.New(h.Class("android.app.LoadedApk"),
		Fields{
			"mClassLoader": h.loader, "mApplicationInfo": info, "mPackageName": packageOf(p.Process),
			"mResources": a.resources,
		})
	a.activities, a.services = h.arrayMap(), h.arrayMap()
	bind := h.New(h.Class("android.app.ActivityThread$AppBindData"),
		Fields{"processName": p.Process, "appInfo": info, "info": a.apk})
	a.thread = h.New(h.Class("android.app.ActivityThread"),
		Fields{
			"mActivities": a.activities.ref, "mServices": a.services.ref, "mBoundApplication": bind,
			"mLooper": a.looper,
		})
	h.SetStatic(h.Class("android.app.ActivityThread"), "sCurrentActivityThread", a.thread)

	app := h.Declare(packageOf(p.Process)+".App", h.Class("android.app.Application"))
	a.application = h.New(app, Fields{"mLoadedApk": a.apk})
	h.Set(a.application, "mBase", h.contextImpl(a.application))
	h.Set(a.apk, "mApplication", a.application)
	h.Set(a.thread, "mInitialApplication", a.application)
	h.Root(hprof.SubRootJNIGlobal, a.thread)

	a.views, a.roots = h.ArrayList(), h.ArrayList()
	global := h.New(h.Class("android.view.WindowManagerGlobal"),
		Fields{"mViews": a.views.Ref, "mRoots": a.roots.Ref, "mParams": h.ArrayList().Ref})
	h.SetStatic(h.Class("android.view.WindowManagerGlobal"), "sDefaultWindowManager", global)
}

// packageOf returns the package of a process name such as com.shop:push.
func packageOf(process string) string {
	for i, c := range process {
		if c == ':' {
			return process[:i]
		}
	}
	return process
}

// Application returns the android.app.Application of the process.
func (h *Heap) Application() Ref { return h.android.application }

// contextImpl creates the ContextImpl of a component.
func (h *Heap) contextImpl(outer Ref) Ref {
	return h.New(h.Class("android.app.ContextImpl"), Fields{
		"mMainThread": h.android.thread, "mPackageInfo": h.android.apk, "mOuterContext": outer,
		"mResources":   h.android.resources,
		"mClassLoader": h.loader, "mBasePackageName": h.get(h.android.apk, "mPackageName"),
	})
}

// arrayMap creates an android.util.ArrayMap that can grow: keys and values
// alternate.
type arrayMap struct {
	heap       *Heap
	ref, array Ref
	size       int
}

func (h *Heap) arrayMap() *arrayMap {
	m := &arrayMap{heap: h, array: h.Objects(h.Class(objectClass), make([]Ref, 8)...)}
	m.ref = h.New(h.Class("android.util.ArrayMap"), Fields{"mArray": m.array, "mHashes": h.Ints(make([]int32, 4)...)})
	return m
}

func (m *arrayMap) put(key, value Ref) {
	m.heap.SetElement(m.array, 2*m.size, key)
	m.heap.SetElement(m.array, 2*m.size+1, value)
	m.size++
	m.heap.Set(m.ref, "mSize", m.size)
}

// State is the lifecycle state of an Android component.
type State uint8

// These are the states of activities, fragments and services. A component in
// state Attached is alive; a component in state NotYet has not been created
// yet.
const (
	Attached State = iota
	Destroyed
	NotYet
)

// Activity is an activity with the objects that belong to it.
type Activity struct {
	Ref
	// Context is the activity's ContextImpl, Decor is the root of its views,
	// and Content is the layout in Decor.
	Context, Window, Decor, Content Ref
}

// Activity creates an activity of a class that extends android.app.Activity;
// the class is declared if necessary. The framework does not reference a
// destroyed activity, so only references added later hold it.
func (h *Heap) Activity(class string, s State) Activity {
	c := h.byName[class]
	if c == nil {
		c = h.Declare(class, h.Class("android.app.Activity"))
	}
	destroyed := s == Destroyed
	a := Activity{Ref: h.New(c, Fields{
		"mApplication": h.android.application, "mMainThread": h.android.thread, "mUiThread": h.Main().Ref,
		"mCalled": true, "mResumed": s == Attached, "mFinished": destroyed, "mDestroyed": destroyed,
		"mStopped": destroyed,
	})}
	a.Context = h.contextImpl(a.Ref)
	h.Set(a.Ref, "mBase", a.Context)
	a.Window = h.New(h.Class("com.android.internal.policy.PhoneWindow"),
		Fields{"mContext": a.Ref, "mCallback": a.Ref, "mDestroyed": destroyed})
	h.Set(a.Ref, "mWindow", a.Window)
	a.Decor, a.Content = h.decor(a, destroyed)
	if !destroyed {
		h.show(a)
	}
	return a
}

// decor creates the views of an activity: the decor, a layout and a TextView.
func (h *Heap) decor(a Activity, detached bool) (decor, content Ref) {
	context := h.New(h.Class("com.android.internal.policy.DecorContext"),
		Fields{"mPhoneWindow": a.Window, "mBase": h.android.application})
	decor = h.New(h.Class("com.android.internal.policy.DecorView"),
		Fields{"mContext": context, "mWindow": a.Window, "mWindowAttachCount": 1, "mID": -1})
	content = h.New(h.Class("android.widget.LinearLayout"),
		Fields{"mContext": a.Ref, "mWindowAttachCount": 1, "mID": 0x7f080001})
	text := h.New(h.Class("android.widget.TextView"),
		Fields{"mContext": a.Ref, "mWindowAttachCount": 1, "mID": 0x7f080002, "mText": "Hello"})
	h.AddView(decor, content)
	h.AddView(content, text)
	h.Set(a.Window, "mDecor", decor)
	h.Set(a.Window, "mContentParent", content)
	if !detached {
		h.Set(a.Ref, "mDecor", decor)
	}
	return decor, content
}

// AddView adds a view to a ViewGroup.
func (h *Heap) AddView(group, child Ref) {
	children := h.get(group, "mChildren")
	if children == 0 {
		children = h.Objects(h.Class("android.view.View"), make([]Ref, 12)...)
		h.Set(group, "mChildren", children)
	}
	refs := h.objects[children].refs
	n := 0
	for n < len(refs) && refs[n] != 0 {
		n++
	}
	h.SetElement(children, n, child)
	h.Set(group, "mChildrenCount", n+1)
	h.Set(child, "mParent", group)
	h.Set(child, "mAttachInfo", h.get(group, "mAttachInfo"))
}

// show attaches the window of a live activity.
func (h *Heap) show(a Activity) {
	params := h.New(h.Class("android.view.WindowManager$LayoutParams"),
		Fields{"type": 1, "mTitle": h.objects[a.Ref].class.name})
	root := h.New(h.Class("android.view.ViewRootImpl"),
		Fields{
			"mContext": a.Ref, "mView": a.Decor, "mThread": h.Main().Ref, "mWindowAttributes": params, "mAdded": true,
		})
	info := h.New(h.Class("android.view.View$AttachInfo"), Fields{"mRootView": a.Decor, "mViewRootImpl": root})
	h.Set(root, "mAttachInfo", info)
	h.Set(a.Decor, "mParent", root)
	h.attach(a.Decor, info)
	h.android.views.Add(a.Decor)
	h.android.roots.Add(root)
	token := h.New(h.Class("android.os.Binder"), nil)
	record := h.New(h.Class("android.app.ActivityThread$ActivityClientRecord"),
		Fields{"token": token, "activity": a.Ref, "window": a.Window})
	h.android.activities.put(token, record)
}

func (h *Heap) attach(view, info Ref) {
	h.Set(view, "mAttachInfo", info)
	if !h.objects[view].class.extends(h.Class("android.view.ViewGroup")) {
		return
	}
	for _, child := range h.objects[h.get(view, "mChildren")].refs {
		if child != 0 {
			h.attach(child, info)
		}
	}
}

// Post appends a Runnable to the main thread's queue, like Handler.postDelayed.
// The Runnable runs at the given uptime in milliseconds.
func (h *Heap) Post(runnable Ref, when int64) {
	a := &h.android
	handler := h.New(h.Class("android.os.Handler"), Fields{"mLooper": a.looper, "mQueue": a.queue})
	message := h.New(h.Class("android.os.Message"),
		Fields{"callback": runnable, "target": handler, "when": when, "flags": 1})
	if a.last == 0 {
		h.Set(a.queue, "mMessages", message)
	} else {
		h.Set(a.last, "next", message)
	}
	a.last = message
}

// Service creates an android.app.Service. The ActivityThread does not reference
// a destroyed service.
func (h *Heap) Service(class string, s State) Ref {
	c := h.byName[class]
	if c == nil {
		c = h.Declare(class, h.Class("android.app.Service"))
	}
	service := h.New(c, Fields{"mThread": h.android.thread, "mClassName": class, "mApplication": h.android.application})
	h.Set(service, "mBase", h.contextImpl(service))
	if s != Destroyed {
		h.android.services.put(h.New(h.Class("android.os.Binder"), nil), service)
	}
	return service
}

// Hold creates a class with a static field that holds an object, which is the
// simplest leak.
func (h *Heap) Hold(class, field string, object Ref) *Class {
	c := h.Declare(class, nil, "static object "+field)
	h.SetStatic(c, field, object)
	return c
}
