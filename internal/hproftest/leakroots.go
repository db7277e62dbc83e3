package hproftest

import "github.com/leakgate/leakgate/internal/analysis/hprof"

// leakRoot makes an object reachable from a root, or makes it look reachable
// although it is not.
type leakRoot struct {
	name string
	make func(s *scene, held Ref)
}

// leakRoots lists all ways in which a path can begin, including those that
// Shark ignores.
var leakRoots = func() []leakRoot {
	all := []leakRoot{
		{"static field of the app", (*scene).hold},
		{"static field of Android", func(s *scene, held Ref) { s.Hold("android.example.Registry", "sHeld", held) }},
		{"running thread", func(s *scene, held Ref) {
			s.thread(s.class("com.example.Worker", "java.lang.Thread", "object task"), "pool-1", Fields{"task": held})
		}},
		{
			"local of a thread",
			func(s *scene, held Ref) { s.RootOf(s.Thread("pool-2"), hprof.SubRootJavaFrame, held, 0) },
		},
		{"locals of a thread", func(s *scene, held Ref) {
			t := s.thread(s.class("com.example.Worker", "java.lang.Thread", "object task"), "pool-3", nil)
			s.RootOf(t, hprof.SubRootJavaFrame, s.String("x"), 1)
			s.RootOf(t, hprof.SubRootJavaFrame, s.node("com.example.Controller", "callback", held), 0)
		}},
		{"local of the thread main", func(s *scene, held Ref) { s.RootOf(s.Main(), hprof.SubRootJavaFrame, held, 0) }},
		{"local of FinalizerWatchdogDaemon", func(s *scene, held Ref) { s.local("FinalizerWatchdogDaemon", held) }},
		{"local of LeakCanary", func(s *scene, held Ref) { s.local("LeakCanary-Heap-Dump", held) }},
		{
			"local of a missing thread",
			func(s *scene, held Ref) { s.rootIn(hprof.SubRootJavaFrame, held, 999, -1) },
		},
		{"finalizer", (*scene).finalizable},
		{"native reference to a toast", func(s *scene, held Ref) {
			s.Root(hprof.SubRootJNIGlobal, s.New(s.Class("android.widget.Toast$TN"), Fields{"mNextView": held}))
		}},
		{"native reference to a connection", func(s *scene, held Ref) {
			c := s.class("android.view.inputmethod.InputMethodManager$ControlledInputConnectionWrapper", "",
				"object this$0")
			s.Root(hprof.SubRootJNIGlobal, s.New(c, Fields{"this$0": held}))
		}},
		{"native reference to a class", func(s *scene, held Ref) {
			s.Root(hprof.SubRootJNIGlobal, s.Hold("com.example.Bridge", "sInstance", held))
		}},
		{
			"native reference to an array",
			func(s *scene, held Ref) { s.Root(hprof.SubRootJNIGlobal, s.Objects(s.Class(objectClass), held)) },
		},
		{"ignored field", func(s *scene, held Ref) {
			queue := s.queueOf(false, s.message(0, held, 0))
			s.hold(s.New(s.Class("android.view.Choreographer$FrameDisplayEventReceiver"),
				Fields{"mMessageQueue": queue}))
		}},
		{"fields of LeakCanary", func(s *scene, held Ref) {
			c := s.class("leakcanary.internal.InternalLeakCanary", "", "object resumedActivity", "object application",
				"static object INSTANCE")
			s.SetStatic(c, "INSTANCE", s.New(c, Fields{"resumedActivity": held, "application": held}))
		}},
	}
	kinds := []hprof.SubTag{
		hprof.SubRootJNIGlobal, hprof.SubRootJNILocal, hprof.SubRootNativeStack, hprof.SubRootStickyClass,
		hprof.SubRootThreadBlock, hprof.SubRootMonitorUsed, hprof.SubRootJNIMonitor,
		// Shark does not read the roots below.
		hprof.SubRootUnknown, hprof.SubRootInternedString, hprof.SubRootFinalizing, hprof.SubRootDebugger,
		hprof.SubRootReferenceCleanup, hprof.SubRootVMInternal, hprof.SubRootUnreachable,
	}
	for _, kind := range kinds {
		all = append(all, leakRoot{kind.String(), func(s *scene, held Ref) { s.Root(kind, held) }})
	}
	return all
}()

// local makes an object a local variable of a thread with the given name.
func (s *scene) local(thread string, held Ref) {
	for _, t := range s.threads {
		if s.threadName(t.Ref) == thread {
			s.RootOf(t.Thread, hprof.SubRootJavaFrame, held, 0)
			return
		}
	}
	s.RootOf(s.Thread(thread), hprof.SubRootJavaFrame, held, 0)
}

func (s *scene) threadName(t Ref) string {
	name := s.object(s.get(t, "name"))
	var text []rune
	for _, u := range name.text {
		text = append(text, rune(u))
	}
	return string(text)
}

// finalizable adds a finalizer to an object.
func (s *scene) finalizable(held Ref) {
	if held != 0 {
		s.Finalizable(held)
	}
}
