package hproftest

import (
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// specialLeak is a heap whose leak traces depend on a single rule.
type specialLeak struct {
	name  string
	phone Phone
	make  func(s *scene)
}

var specialLeaks = []specialLeak{
	{"nothing leaks", Phone{}, func(s *scene) { s.hold(s.here().Ref) }},
	{"nothing is reachable", Phone{}, func(s *scene) {
		s.hold(s.Weak(s.leak()))
		s.leak()
		s.fragment(Fragment{State: Destroyed}, 0)
	}},
	{"many objects of one leak", Phone{},
		func(s *scene) { s.hold(s.ArrayList(s.leak(), s.leak(), s.leak(), s.leak()).Ref) }},
	{"leaks of two classes on one path", Phone{}, func(s *scene) {
		s.hold(s.ArrayList(s.leak(), s.fragment(Fragment{State: Destroyed}, 0), s.view(0, s.gone().Ref, 0)).Ref)
	}},
	{"one suspect path, two roots", Phone{}, func(s *scene) {
		for range 3 {
			s.Root(hprof.SubRootJNIGlobal, s.node("com.example.Controller", "callback", s.leak()))
		}
		s.Root(hprof.SubRootJNILocal, s.node("com.example.Controller", "callback", s.leak()))
	}},
	{"leak behind another leak", Phone{}, func(s *scene) {
		s.hold(s.scene(s.leak(), s.scene(s.leak(), s.leak())))
	}},
	{"leak behind and beside another leak", Phone{}, func(s *scene) {
		inner := s.leak()
		s.hold(s.node("com.example.Controller", "callback", s.node("com.example.Key", "name", inner)))
		s.hold(s.scene(s.leak(), inner))
	}},
	{"leaks that reference each other", Phone{}, func(s *scene) {
		a, b := s.listActivity(0), s.listActivity(0)
		s.Set(a, "presenter", b)
		s.Set(b, "presenter", a)
		s.hold(s.ArrayList(s.node("com.example.Controller", "callback", a), b).Ref)
	}},
	{"equal paths by fields", Phone{}, func(s *scene) {
		leak := s.leak()
		c := s.class("com.example.Fork", "", "object right", "object left")
		s.hold(s.New(c,
			Fields{
				"right": s.node("com.example.Alpha", "next", leak), "left": s.node("com.example.Beta", "next", leak),
			}))
	}},
	{"equal paths by inherited fields", Phone{}, func(s *scene) {
		leak := s.leak()
		s.class("com.example.Fork", "", "object mike", "object zulu")
		c := s.class("com.example.LongFork", "com.example.Fork", "object november", "object alpha")
		s.hold(s.New(c,
			Fields{
				"zulu": s.node("com.example.Alpha", "next", leak), "november": s.node("com.example.Beta", "next", leak),
				"mike": s.node("com.example.Gamma", "next", leak),
			}))
	}},
	{"equal paths by elements", Phone{}, func(s *scene) {
		leak := s.leak()
		s.hold(s.Objects(s.Class(objectClass), s.node("com.example.Beta", "next", leak),
			s.node("com.example.Alpha", "next", leak)))
	}},
	{"equal paths by static fields", Phone{}, func(s *scene) {
		leak := s.leak()
		c := s.class("com.example.Statics", "", "static object zulu", "static object alpha")
		s.SetStatic(c, "zulu", s.node("com.example.Beta", "next", leak))
		s.SetStatic(c, "alpha", s.node("com.example.Alpha", "next", leak))
	}},
	{"equal paths by classes of roots", Phone{}, func(s *scene) {
		leak := s.leak()
		s.Root(hprof.SubRootJNIGlobal, s.node("com.example.Beta", "next", leak))
		s.Root(hprof.SubRootJNIGlobal, s.node("com.example.Alpha", "next", leak))
	}},
	{"equal paths by kinds of roots", Phone{}, func(s *scene) {
		leak := s.leak()
		for _, kind := range []hprof.SubTag{
			hprof.SubRootJNILocal, hprof.SubRootMonitorUsed, hprof.SubRootJNIGlobal, hprof.SubRootNativeStack,
			hprof.SubRootThreadBlock, hprof.SubRootJNIMonitor,
		} {
			s.Root(kind, s.node("com.example.Root"+kind.String(), "next", leak))
		}
	}},
	{"equal paths by threads", Phone{}, func(s *scene) {
		leak := s.leak()
		for _, name := range []string{"b", "a"} {
			s.thread(s.class("com.example.Worker", "java.lang.Thread", "object task"), name,
				Fields{"task": s.node("com.example.Task"+name, "next", leak)})
		}
	}},
	{"one object, many roots", Phone{}, func(s *scene) {
		held := s.node("com.example.Controller", "callback", s.leak())
		for _, kind := range []hprof.SubTag{
			hprof.SubRootNativeStack, hprof.SubRootJNIGlobal, hprof.SubRootStickyClass, hprof.SubRootJNILocal,
			hprof.SubRootJavaFrame,
		} {
			s.Root(kind, held)
		}
	}},
	{"leak that is a root", Phone{}, func(s *scene) { s.Root(hprof.SubRootJNIGlobal, s.leak()) }},
	{"local and a longer path", Phone{}, func(s *scene) {
		leak := s.leak()
		s.local("pool-5", leak)
		s.hold(s.node("com.example.Controller", "callback",
			s.node("com.example.Key", "name",
				s.node("com.example.Consumer", "view", s.node("com.example.Last", "next", leak)))))
	}},
	{"local and a longer path in the middle", Phone{}, func(s *scene) {
		between := s.node("com.example.Between", "next", s.node("com.example.Between", "next", s.leak()))
		s.local("pool-5", between)
		s.hold(s.node("com.example.Controller", "callback", s.node("com.example.Key", "name", between)))
	}},
	{"locals of several threads", Phone{}, func(s *scene) {
		for _, name := range []string{"one", "two", "three"} {
			s.local(name, s.node("com.example.Controller", "callback", s.leak()))
		}
	}},
	{"target of an animator and a longer path", Phone{}, func(s *scene) {
		leak := s.leak()
		s.hold(s.New(s.Class("android.animation.ObjectAnimator"), Fields{"mTarget": s.Weak(leak), "mRepeatMode": 1}))
		s.hold(s.node("com.example.Controller", "callback",
			s.node("com.example.Key", "name", s.node("com.example.Consumer", "view", leak))))
	}},
	{"shared by two leaks", Phone{}, func(s *scene) {
		shared := s.payload()
		s.hold(s.listActivity(s.ArrayList(shared, s.payload()).Ref))
		s.hold(s.listActivity(s.ArrayList(s.payload(), shared).Ref))
	}},
	{"shared with a live object", Phone{}, func(s *scene) {
		shared := s.payload()
		s.hold(s.listActivity(s.ArrayList(shared, s.payload()).Ref))
		s.hold(shared)
	}},
	{"diamonds below a leak", Phone{}, func(s *scene) {
		below := s.payload()
		for range 5 {
			below = s.ArrayList(s.node("com.example.Left", "next", below), s.node("com.example.Right", "next", below)).
				Ref
		}
		s.hold(s.listActivity(below))
	}},
	{"long list to a leak", Phone{}, func(s *scene) { s.hold(s.chain(600, s.leak())) }},
	{"long list below a leak", Phone{}, func(s *scene) { s.hold(s.listActivity(s.chain(1200, s.payload()))) }},
	{"long java.util.LinkedList", Phone{}, func(s *scene) {
		var all []Ref
		for range 300 {
			all = append(all, s.node("com.example.Item", "next", 0))
		}
		s.hold(s.LinkedList(append(all, s.leak())...))
	}},
	{"tree", Phone{}, func(s *scene) { s.hold(s.tree(6, s.leak())) }},
	{"native memory", Phone{SDK: 30}, func(s *scene) {
		bitmap := s.Bitmap(Picture{Width: 64, Height: 64})
		s.hold(s.listActivity(s.ArrayList(bitmap, s.Bitmap(Picture{Width: 8, Height: 8, Recycled: true})).Ref))
		s.hold(s.Bitmap(Picture{Width: 2000, Height: 2600}))
	}},
	{"bitmaps of old versions", Phone{SDK: 24},
		func(s *scene) { s.hold(s.listActivity(s.Bitmap(Picture{Width: 30, Height: 20}))) }},
	{"long text", Phone{SDK: 25}, func(s *scene) {
		s.hold(s.HashMap(s.String("Schlüssel \"ä\" 鍵\n"), s.listActivity(s.String("Wert"))))
	}},
	{"text in bytes and chars", Phone{}, func(s *scene) {
		s.hold(s.HashMap(s.String("Grüße an ASCII"), s.leak()))
		s.hold(s.HashMap(s.String("鍵"), s.listActivity(s.String("値"))))
		s.hold(s.HashMap(s.String(""), s.leak()))
	}},
	{"live application, then a leak, then the application", Phone{}, func(s *scene) {
		other := s.New(s.class("com.example.OtherApplication", "android.app.Application", "object graph"),
			Fields{"graph": s.leak()})
		s.hold(s.listActivity(other))
	}},
	{"leaks around a live object", Phone{}, func(s *scene) {
		attached := s.view(s.here().Content, s.here().Ref, s.node("com.example.Controller", "callback", s.leak()))
		s.hold(s.listActivity(s.node("com.example.Key", "name", attached)))
	}},
	{"watched", Phone{}, func(s *scene) {
		held := s.New(s.class("com.example.Suspect", "", "object extra"), Fields{"extra": s.payload()})
		s.watch(held, "com.example.Suspect received Presenter#onDestroy() callback", true)
		s.hold(held)
		fresh := s.New(s.class("com.example.Suspect", ""), nil)
		s.watch(fresh, "not yet retained", false)
		s.hold(fresh)
	}},
	{"watched twice", Phone{}, func(s *scene) {
		held := s.leak()
		s.watch(held, "first", true)
		s.watch(held, "", true)
		s.watch(held, "later", false)
		s.hold(held)
	}},
	{"watched and alive", Phone{}, func(s *scene) {
		s.watch(s.here().Ref, "MainActivity received Activity#onDestroy() callback", true)
		s.watch(s.application(), "", true)
	}},
	{"watched and cleared", Phone{}, func(s *scene) {
		s.watch(0, "gone", true)
		s.watch(0, "gone", false)
		s.watch(s.node("com.example.Suspect", "extra", 0), "only weakly held", true)
		s.hold(s.leak())
	}},
	{"watched by LeakCanary 1", Phone{SDK: 23}, func(s *scene) {
		s.legacy = true
		held := s.node("com.example.Suspect", "extra", 0)
		s.watch(held, "suspect", false)
		s.hold(s.node("com.example.Controller", "callback", held))
		s.watch(s.listActivity(0), "", true)
		s.hold(s.New(s.Class("android.os.Message"), Fields{"what": 2, "when": 99, "callback": s.leak()}))
	}},
	{"names of resources", Phone{}, func(s *scene) {
		const name = "shark.AndroidResourceIdNames"
		c := s.class(name, "", "object resourceIds", "object names", "static object holderField")
		names := s.Objects(s.Class(stringClass), s.String("title"), s.String("text"))
		s.SetStatic(c, "holderField", s.New(c, Fields{"resourceIds": s.Ints(0x7f080001, 0x7f080002), "names": names}))
		known, unknown, none := s.view(0, s.gone().Ref, 0), s.view(0, s.gone().Ref, 0), s.view(0, s.gone().Ref, 0)
		s.Set(unknown, "mID", 0x7f080009)
		s.Set(none, "mID", -1)
		s.hold(s.ArrayList(known, unknown, none, s.editor(known, 0)).Ref)
	}},
	{"resources without names", Phone{}, func(s *scene) {
		s.class("shark.AndroidResourceIdNames", "", "object resourceIds", "object names", "static object holderField")
		s.hold(s.view(0, s.gone().Ref, 0))
	}},
	{"lifecycle in Kotlin", Phone{}, func(s *scene) {
		s.Lifecycle("STARTED")
		s.rename("androidx.lifecycle.LifecycleRegistry", "mState", "state")
		c := s.Class("androidx.lifecycle.LifecycleRegistry")
		states := s.enum("androidx.lifecycle.Lifecycle$State")
		s.fragmentClass(Fragment{})
		for _, state := range []string{"DESTROYED", "RESUMED"} {
			f := s.New(s.class("com.example.KotlinFragment", "androidx.fragment.app.Fragment"), nil)
			s.Set(f, "mLifecycleRegistry", s.New(c, Fields{"state": states[state], "mObserverMap": s.leak()}))
			s.hold(f)
		}
	}},
	{"fragments of androidx 1.0.0", Phone{}, func(s *scene) {
		s.hold(s.fragment(Fragment{State: Destroyed, NoMaxState: true}, s.leak()))
		s.hold(s.fragment(Fragment{State: NotYet, NoMaxState: true}, s.leak()))
	}},
	{"queue with the old name", Phone{SDK: 23}, func(s *scene) {
		s.rename("android.os.MessageQueue", "mQuitting", "mQuiting")
		s.hold(s.New(s.Class("android.os.MessageQueue"),
			Fields{"mQuiting": true, "mMessages": s.message(0, s.leak(), 0)}))
	}},
	{"maps of Android 7", Phone{SDK: 24}, func(s *scene) {
		s.hold(s.HashMap(s.String("key"), s.leak()))
		s.hold(s.LinkedHashMap(s.String("key"), s.leak()))
		s.hold(s.HashSet(s.node("com.example.Controller", "callback", s.leak())))
		s.rename("java.util.HashMap$Node", "", "java.util.HashMap$HashMapEntry")
		s.rename("java.util.LinkedHashMap$Entry", "", "java.util.LinkedHashMap$LinkedHashMapEntry")
	}},
	{"maps of Java 7", Phone{SDK: 24}, func(s *scene) {
		s.hold(s.HashMap(s.String("key"), s.leak()))
		s.hold(s.LinkedHashSet(s.node("com.example.Controller", "callback", s.leak())))
		s.rename("java.util.HashMap$Node", "", "java.util.HashMap$Entry")
	}},
	{"CopyOnWriteArrayList of the JDK", Phone{}, func(s *scene) {
		s.hold(s.CopyOnWriteArrayList(0, s.leak()))
		s.rename("java.util.concurrent.CopyOnWriteArrayList", "elements", "array")
	}},
	{"sets without a map", Phone{}, func(s *scene) {
		s.hold(s.New(s.Class("java.util.HashSet"), nil))
		s.hold(s.New(s.Class("java.util.HashMap"), nil))
		s.hold(s.leak())
	}},
	{"list that is shorter than its array", Phone{}, func(s *scene) {
		l := s.ArrayList(s.leak(), s.leak())
		s.Set(l.Ref, "size", 1)
		s.hold(l.Ref)
	}},
	{"ring", Phone{}, func(s *scene) {
		first := s.node("com.example.Ring", "next", 0)
		at := first
		for range 4 {
			at = s.node("com.example.Ring", "next", at)
		}
		s.Set(first, "next", at)
		s.hold(first)
		s.hold(s.node("com.example.Ring", "next", s.listActivity(at)))
	}},
	{"databases and version", Phone{}, func(s *scene) {
		config := s.class("android.database.sqlite.SQLiteDatabaseConfiguration", "", "object label")
		db := s.class("android.database.sqlite.SQLiteDatabase", "", "object mConfigurationLocked",
			"object mConnectionPoolLocked")
		s.hold(s.New(db,
			Fields{
				"mConfigurationLocked":  s.New(config, Fields{"label": "/data/a.db"}),
				"mConnectionPoolLocked": s.payload(),
			}))
		s.hold(s.New(db, Fields{"mConfigurationLocked": s.New(config, Fields{"label": "/data/b.db"})}))
		s.SetStatic(s.class("leakcanary.internal.InternalLeakCanary", "", "static object version"), "version", "2.14")
		s.hold(s.leak())
	}},
	// In the cases below, Shark 2.14 returns a wrong result, or does not
	// support later versions of libraries.
	{"old connectivity manager", Phone{SDK: 23}, func(s *scene) {
		c := s.class("android.net.ConnectivityManager", "", "object mContext", "static object sInstance")
		s.SetStatic(c, "sInstance", s.New(c, Fields{"mContext": s.leak()}))
	}},
	{"handler of a connectivity manager", Phone{SDK: 33}, func(s *scene) {
		c := s.class("android.net.ConnectivityManager", "", "object mContext")
		s.class("android.net.ConnectivityManager$CallbackHandler", "android.os.Handler", "object this$0")
		handler := s.New(s.Class("android.net.ConnectivityManager$CallbackHandler"),
			Fields{"this$0": s.New(c, Fields{"mContext": s.leak()})})
		s.Hold("android.net.ConnectivityManagers", "sCallbackHandler", handler)
	}},
	{"WebView", Phone{}, func(s *scene) {
		s.hold(s.New(s.class("WV.R9", "", "object e"), Fields{"e": s.leak()}))
		s.hold(s.New(s.class("WV.U4", "", "object c"),
			Fields{"c": s.node("com.example.Controller", "callback", s.leak())}))
		s.Hold("org.chromium.android_webview.AwContents", "A0", s.HashMap(s.String("window"), s.leak()))
	}},
	{"stubs of services that native code holds", Phone{}, func(s *scene) {
		stub := s.class("android.service.dreams.DreamService$1", "android.os.Binder", "object this$0")
		s.Root(hprof.SubRootJNIGlobal, s.New(stub, Fields{"this$0": s.leak()}))
	}},
	{"binders", Phone{}, func(s *scene) {
		stub := s.class("com.example.SyncService$Stub", "android.os.Binder", "object this$0")
		s.Root(hprof.SubRootJNIGlobal, s.New(stub, Fields{"this$0": s.leak()}))
		s.hold(s.New(stub, Fields{"this$0": s.node("com.example.Controller", "callback", s.leak())}))
	}},
	{"ViewModels", Phone{}, func(s *scene) {
		model := s.class("com.example.ListModel", "androidx.lifecycle.ViewModel", "object state")
		s.hold(s.New(model, Fields{"mCleared": true, "state": s.payload()}))
		s.hold(s.New(model, Fields{"mCleared": false, "state": s.node("com.example.Controller", "callback", s.leak())}))
	}},
	{"package managers", Phone{}, func(s *scene) {
		manager := s.Class("android.app.ApplicationPackageManager")
		s.hold(s.New(manager, Fields{"mContext": s.here().Context, "mUserManager": s.leak()}))
		s.hold(s.New(manager, Fields{"mContext": s.gone().Context}))
	}},
	{"recomposers of newer coroutines", Phone{}, func(s *scene) {
		for _, state := range []string{"ShutDown", "Inactive", "Idle"} {
			r := s.Recomposer(state)
			s.Set(r, "knownCompositions", s.leak())
			s.hold(r)
		}
		s.rename("kotlinx.coroutines.flow.StateFlowImpl", "_state", "_state$volatile")
	}},
	{"reset fragments", Phone{}, func(s *scene) {
		s.hold(s.fragment(Fragment{State: Destroyed, Lifecycle: "INITIALIZED"}, s.payload()))
		s.hold(s.fragment(Fragment{State: NotYet}, s.leak()))
		s.hold(s.fragment(Fragment{State: Attached, Lifecycle: "INITIALIZED"}, s.leak()))
	}},
	{"fragments that were never attached", Phone{}, func(s *scene) {
		s.hold(s.fragment(Fragment{Kind: Support, State: NotYet}, s.payload()))
		s.hold(s.fragment(Fragment{Kind: Framework, State: NotYet}, s.leak()))
	}},
	{"window with a theme of its own", Phone{}, func(s *scene) {
		window := s.window(s.wrapper(s.gone().Ref, 0), false, 0)
		decor := s.New(s.Class("com.android.internal.policy.DecorContext"),
			Fields{"mPhoneWindow": window, "mBase": s.application()})
		s.hold(s.node("com.example.Controller", "callback", decor))
		s.hold(s.view(0, decor, 0))
	}},
	{"watched at an unknown time", Phone{}, func(s *scene) {
		held := s.node("com.example.Suspect", "extra", s.payload())
		s.watch(held, "not yet retained", false)
		s.hold(held)
		late := s.node("com.example.Suspect", "extra", s.payload())
		s.watch(late, "retained", true)
		s.hold(late)
		c := s.Class("leakcanary.KeyedWeakReference")
		c.statics = slices.DeleteFunc(c.statics, func(f static) bool { return f.name == "heapDumpUptimeMillis" })
	}},
}

// scene creates a leaking screen that holds two objects.
func (s *scene) scene(a, b Ref) Ref {
	return s.listActivity(s.ArrayList(a, b).Ref)
}

// listActivity creates a destroyed activity that holds an object.
func (s *scene) listActivity(held Ref) Ref {
	r := s.New(s.class("com.example.ListActivity", "android.app.Activity", "object presenter"),
		Fields{"presenter": held, "mDestroyed": true})
	s.Set(r, "mBase", s.application())
	return r
}

// chain creates a long path with an object at its end.
func (s *scene) chain(n int, end Ref) Ref {
	for range n {
		end = s.node("com.example.Link", "next", end)
	}
	return end
}

// tree creates a tree in which one leaf holds a leak.
func (s *scene) tree(depth int, leaf Ref) Ref {
	c := s.class("com.example.Tree", "", "object right", "object left")
	if depth == 0 {
		return s.New(c, Fields{"left": leaf})
	}
	return s.New(c, Fields{"left": s.tree(depth-1, 0), "right": s.tree(depth-1, leaf)})
}
