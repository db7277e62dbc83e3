package android

import (
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/trace"
)

const (
	jdkFile     = "LeakCanary JdkReferenceMatchers.kt "
	referenceOf = "A reference object does not keep its referent in memory."
	linkOf      = "The list of all such objects does not show what keeps one of them in use."
)

// MainThread is the name of the thread that runs a program's main method.
const MainThread = mainThread

// NeverFollowed reports whether references that match a pattern must never be
// followed, because they do not keep their target alive, or because LeakCanary
// or the finalizer watchdog holds them.
func NeverFollowed(p trace.Pattern) bool {
	switch p.Kind {
	case trace.JavaLocal:
		return p.Name == watchdogThread || p.Name == leakCanaryThread
	case trace.InstanceField:
		return p.Name == "referent" || strings.HasPrefix(p.Class, "leakcanary.")
	}
	return false
}

// ignoredByJDK are the references that never explain what holds an object, on a
// JVM and on Android.
var ignoredByJDK = []trace.Matcher{
	ignore(instanceField("java.lang.ref.WeakReference", "referent"), referenceOf, jdkFile+"REFERENCES"),
	ignore(instanceField("leakcanary.KeyedWeakReference", "referent"),
		"LeakCanary's own reference does not keep the watched object in memory.", jdkFile+"REFERENCES"),
	ignore(instanceField("java.lang.ref.SoftReference", "referent"),
		referenceOf+" A soft reference is cleared before memory runs out.", jdkFile+"REFERENCES"),
	ignore(instanceField("java.lang.ref.PhantomReference", "referent"), referenceOf, jdkFile+"REFERENCES"),
	ignore(instanceField("java.lang.ref.Finalizer", "prev"), linkOf, jdkFile+"REFERENCES"),
	ignore(instanceField("java.lang.ref.Finalizer", "element"), linkOf, jdkFile+"REFERENCES"),
	ignore(instanceField("java.lang.ref.Finalizer", "next"), linkOf, jdkFile+"REFERENCES"),
	ignore(instanceField("java.lang.ref.FinalizerReference", "prev"), linkOf, jdkFile+"REFERENCES"),
	ignore(instanceField("java.lang.ref.FinalizerReference", "element"), linkOf, jdkFile+"REFERENCES"),
	ignore(instanceField("java.lang.ref.FinalizerReference", "next"), linkOf, jdkFile+"REFERENCES"),
	ignore(instanceField("sun.misc.Cleaner", "prev"), linkOf, jdkFile+"REFERENCES"),
	ignore(instanceField("sun.misc.Cleaner", "next"), linkOf, jdkFile+"REFERENCES"),
	ignore(threadLocals(watchdogThread),
		"The object that this thread holds is about to be collected: no other GC root has a shorter path to it.",
		jdkFile+"FINALIZER_WATCHDOG_DAEMON"),
	ignore(threadLocals(mainThread),
		"Local variables of the main thread change all the time. The relevant path is a different one.",
		jdkFile+"MAIN"),
}

// ignoredByAndroid are the references of Android, and of LeakCanary in the app,
// that never explain what holds an object.
var ignoredByAndroid = []trace.Matcher{
	ignore(threadLocals(leakCanaryThread), "The thread that wrote the dump.", sharkFile+"LEAK_CANARY_THREAD"),
	ignore(instanceField("leakcanary.internal.InternalLeakCanary", "resumedActivity"),
		"LeakCanary holds the resumed activity, which is never destroyed. Everything that activity holds has a "+
			"path without LeakCanary.", sharkFile+"LEAK_CANARY_HEAP_DUMPER"),
	ignore(instanceField("leakcanary.internal.InternalLeakCanary", "application"),
		"LeakCanary holds the application, which lives as long as the process anyway.",
		sharkFile+"LEAK_CANARY_INTERNAL"),
	ignore(instanceField("android.view.Choreographer$FrameDisplayEventReceiver", "mMessageQueue"),
		"Keeps the queue for its native peer. The main looper holds the queue too, and that is the path to show.",
		sharkFile+"EVENT_RECEIVER__MMESSAGE_QUEUE"),
}
