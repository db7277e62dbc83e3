package analysis

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/sharktest"
)

// Taken together, Shark's answers to all cases include each inspector, kind of
// root, kind of reference and known leak.
func TestSharkCoverage(t *testing.T) {
	seen := sightings{}
	leaks, traces, empty := 0, 0, 0
	for _, c := range askShark(t).cases {
		for i := range c.answers {
			a := &c.answers[i].Answer
			if len(a.Leaks) == 0 {
				empty++
			}
			checkCase(t, c.name, &c.answers[i])
			seen.answer(a)
			leaks += len(a.Leaks)
			for _, l := range a.Leaks {
				traces += len(l.Traces)
			}
		}
	}
	t.Logf("%d answers without a leak; %d leaks, %d traces", empty, leaks, traces)
	for what, wanted := range wantedOfShark {
		for _, w := range wanted {
			if !seen.has(what, w) {
				t.Errorf("no Shark answer has the %s %q", what, w)
			}
		}
	}
	for _, what := range []string{"root", "reference", "status", "type", "known"} {
		t.Logf("%s: %s", what, strings.Join(slices.Sorted(maps.Keys(seen[what])), ", "))
	}
}

// checkCase checks that the traces in an answer match the name of the case, and
// that collections are shown without their internals.
func checkCase(t *testing.T, name string, a *sharkAnswer) {
	t.Helper()
	kind, shape, _ := strings.Cut(name, "/")
	switch kind {
	case "leak":
		if len(traces(&a.Answer,
			func(tr *sharktest.Trace) bool { return lastStep(tr) == "com.example.Controller[callback]" })) == 0 {
			t.Errorf("%s: no path leads from the controller to a leak", name)
		}
	case "holder", "harmony":
		to := traces(&a.Answer, func(tr *sharktest.Trace) bool { return tr.Leaking.Class == plainLeak })
		asked := a.kind == "filter" && !slices.Contains(leakingShapes(), shape) || a.class == plainLeak
		if asked && len(to) == 0 && !slices.Contains(notHolding, shape) {
			t.Errorf("%s: no path to the leak for %v", name, a)
		}
		want := flattened[name]
		if want == "" {
			want = flattened["holder/"+shape]
		}
		for _, tr := range to {
			if want != "" && lastStep(tr) != want {
				t.Errorf("%s: the last step is %s, want %s", name, lastStep(tr), want)
			}
		}
	}
}

// plainLeak is the class of the leaking object that other objects hold.
const plainLeak = "com.example.LeakedActivity"

func traces(a *sharktest.Answer, is func(*sharktest.Trace) bool) (out []*sharktest.Trace) {
	for _, l := range a.Leaks {
		for i := range l.Traces {
			if is(&l.Traces[i]) {
				out = append(out, &l.Traces[i])
			}
		}
	}
	return out
}

// lastStep returns the last reference of a path, without object numbers.
func lastStep(tr *sharktest.Trace) string {
	if len(tr.Path) == 0 {
		return ""
	}
	p := tr.Path[len(tr.Path)-1]
	name, _, _ := strings.Cut(p.Name, "@")
	return p.Owner + "[" + name + "]"
}

// notHolding lists the shapes whose references do not hold a leak.
var notHolding = []string{"weak reference", "soft reference", "phantom reference", "WeakHashMap key"}

// flattened maps a case to the expected last step of its path through a
// collection.
var flattened = map[string]string{
	"holder/ArrayList": "java.util.ArrayList[2]", "holder/LinkedList": "java.util.LinkedList[2]",
	"harmony/LinkedList":     "java.util.LinkedList[3]",
	"holder/empty ArrayList": "java.lang.Object[][0]", "holder/subclass of ArrayList": "java.lang.Object[][0]",
	"holder/CopyOnWriteArrayList": "java.util.concurrent.CopyOnWriteArrayList[1]",
	"holder/HashMap":              `java.util.HashMap["key"]`, "holder/HashMap key": "java.util.HashMap[key()]",
	"holder/HashMap by object": "java.util.HashMap[instance ]",
	"holder/HashMap by class":  "java.util.HashMap[class java.lang.Object]",
	"holder/HashMap by null":   "java.util.HashMap[null]",
	"harmony/HashMap by null":  "java.util.HashMap$HashMapEntry[value]",
	"holder/large HashMap":     `java.util.HashMap["last"]`, "holder/LinkedHashMap": `java.util.LinkedHashMap["a"]`,
	"holder/HashSet": "java.util.HashSet[element()]", "holder/LinkedHashSet": "java.util.LinkedHashSet[element()]",
	"holder/ConcurrentHashMap":     `java.util.concurrent.ConcurrentHashMap["key"]`,
	"holder/ConcurrentHashMap key": "java.util.concurrent.ConcurrentHashMap[key()]",
	"holder/WeakHashMap":           "java.util.WeakHashMap$Entry[value]",
	"holder/TreeMap":               "java.util.TreeMap$TreeMapEntry[value]", "holder/ArrayMap": "java.lang.Object[][1]",
	"holder/ArrayMap key":              "java.lang.Object[][0]",
	"holder/ArraySet":                  "android.util.ArraySet[element()]",
	"holder/SafeIterableMap":           `androidx.arch.core.internal.SafeIterableMap["key"]`,
	"holder/SafeIterableMap key":       "androidx.arch.core.internal.SafeIterableMap[key()]",
	"holder/SafeIterableMap by object": "androidx.arch.core.internal.SafeIterableMap[instance ]",
	"holder/FastSafeIterableMap":       `androidx.arch.core.internal.FastSafeIterableMap["key"]`,
}

// sightings holds the strings found in answers, by kind.
type sightings map[string]map[string]bool

func (s sightings) add(what, text string) {
	if s[what] == nil {
		s[what] = map[string]bool{}
	}
	s[what][text] = true
}

// has reports whether a string of the given kind equals part or, for kinds
// whose strings are sentences, contains it.
func (s sightings) has(what, part string) bool {
	if what == "reason" || what == "label" || what == "collection" {
		for text := range s[what] {
			if strings.Contains(text, part) {
				return true
			}
		}
		return false
	}
	return s[what][part]
}

func (s sightings) answer(a *sharktest.Answer) {
	for _, l := range a.Leaks {
		s.add("type", l.Type)
		if l.Pattern != "" {
			s.add("known", l.Pattern)
			words := strings.Fields(l.Pattern)
			s.add("pattern", strings.Join(words[:2], " "))
		}
		for _, trace := range l.Traces {
			s.add("root", trace.Root)
			for _, p := range trace.Path {
				s.add("reference", p.Kind)
				if p.Kind == "ARRAY_ENTRY" {
					s.add("collection", p.Owner+"["+p.Name+"]")
				}
				s.object(&p.Origin)
			}
			s.object(&trace.Leaking)
		}
	}
	for _, u := range a.Unreachable {
		s.add("type", "unreachable")
		s.object(&u)
	}
}

func (s sightings) object(o *sharktest.Object) {
	s.add("status", o.Status)
	s.add("reason", o.Status+": "+o.Reason)
	for _, l := range o.Labels {
		s.add("label", l)
	}
}

// wantedOfShark lists what must occur in Shark's answers, by kind.
var wantedOfShark = map[string][]string{
	"type":      {"application", "library", "unreachable"},
	"status":    {"LEAKING", "NOT_LEAKING", "UNKNOWN"},
	"reference": {"INSTANCE_FIELD", "STATIC_FIELD", "LOCAL", "ARRAY_ENTRY"},
	"root": {
		"JNI_GLOBAL", "JNI_LOCAL", "JAVA_FRAME", "NATIVE_STACK", "STICKY_CLASS", "THREAD_BLOCK", "MONITOR_USED",
		"THREAD_OBJECT", "JNI_MONITOR",
	},
	"pattern": {"instance field", "static field", "native global"},
	"known": {
		"instance field android.os.Message#obj", "instance field android.app.ActivityThread#mNewActivities",
		"instance field android.app.Activity$1#this$0",
		"instance field android.view.inputmethod.InputMethodManager#mNextServedView",
		"instance field android.view.inputmethod.InputMethodManager#mLastSrvView",
		"static field android.widget.TextView#mLastHoveredView",
		"static field android.content.res.ResourcesImpl#mAppContext",
		"static field android.gestureboost.GestureBoostManager#mContext",
		"static field com.samsung.android.smartclip.SpenGestureManager#mContext",
		"instance field android.window.WindowOnBackInvokedDispatcher$OnBackInvokedCallbackWrapper#mCallback",
		"native global variable referencing android.widget.Toast$TN",
		"native global variable referencing android.graphics.animation.RenderNodeAnimator",
		"native global variable referencing " +
			"android.view.inputmethod.InputMethodManager$ControlledInputConnectionWrapper",
	},
	"collection": {
		"java.util.ArrayList[2]", "java.util.LinkedList[2]", "java.util.LinkedList[3]",
		"java.util.concurrent.CopyOnWriteArrayList[1]", `java.util.HashMap["key"]`, "java.util.HashMap[key()]",
		"java.util.HashMap[null]", "java.util.HashMap[instance @", "java.util.HashMap[class java.lang.Object]",
		`java.util.LinkedHashMap["a"]`, "java.util.HashSet[element()]", "java.util.LinkedHashSet[element()]",
		`java.util.concurrent.ConcurrentHashMap["key"]`, "java.util.concurrent.ConcurrentHashMap[key()]",
		"java.util.WeakHashMap$Entry[][", "android.util.ArraySet[element()]",
		`androidx.arch.core.internal.SafeIterableMap["key"]`, "androidx.arch.core.internal.SafeIterableMap[key()]",
		`androidx.arch.core.internal.FastSafeIterableMap["key"]`,
		"android.os.MessageQueue[0]", "android.os.MessageQueue[1]",
		"android.app.ActivityThread$ActivityClientRecord[0]", "android.app.ActivityThread$ActivityClientRecord[2]",
		"java.lang.Object[][1]",
	},
	"reason": {
		"LEAKING: View.mContext references a destroyed activity",
		"LEAKING: View detached yet still part of window view hierarchy",
		"LEAKING: View attached but root view com.android.internal.policy.DecorView detached (attach disorder)",
		"NOT_LEAKING: View attached",
		"LEAKING: Editor#mTextView: View.mContext references a destroyed activity", "Editor#mTextView: View attached",
		"LEAKING: Activity#mDestroyed is true", "NOT_LEAKING: Activity#mDestroyed is false",
		"LEAKING: Service not held by ActivityThread", "NOT_LEAKING: Service held by ActivityThread",
		"LEAKING: ThemedContext wraps an Activity with Activity.mDestroyed true",
		"LEAKING: DecorContext wraps an Activity with Activity.mDestroyed true",
		"LEAKING: ContextImpl.mOuterContext is an instance of com.example.GoneActivity with Activity.mDestroyed true",
		"ContextImpl.mOuterContext is an instance of com.example.MainActivity with Activity.mDestroyed false",
		"which extends android.app.Application",
		"ActivityThread is a singleton", "Application is a singleton", "InputMethodManager is a singleton",
		"LEAKING: Fragment#mFragmentManager is null", "NOT_LEAKING: Fragment#mFragmentManager is not null",
		"LEAKING: Fragment.mLifecycleRegistry.state is DESTROYED",
		"NOT_LEAKING: Fragment.mLifecycleRegistry.state is INITIALIZED",
		"NOT_LEAKING: Fragment.mLifecycleRegistry.state is RESUMED",
		"LEAKING: MessageQueue#mQuitting is true", "LEAKING: MessageQueue#mQuiting is true",
		"NOT_LEAKING: MessageQueue#mQuitting is false",
		"LEAKING: mortar.MortarScope.dead is true for scope screen", "mortar.MortarScope.dead is false for scope root",
		"the main thread always runs",
		"LEAKING: ViewRootImpl#mView is null", "ViewRootImpl.mContext references a destroyed activity",
		"LEAKING: Window#mDestroyed is true",
		"LEAKING: This toast is done showing", "NOT_LEAKING: This toast is showing",
		"LEAKING: Recomposer is in state ShutDown", "LEAKING: Recomposer is in state ShuttingDown",
		"NOT_LEAKING: Recomposer is in state Idle", "NOT_LEAKING: Recomposer is in state PendingWork",
		"LEAKING: Composition disposed", "NOT_LEAKING: Composition not disposed",
		"NOT_LEAKING: state is STARTED", "A ClassLoader is never leaking", "a class is never leaking",
		"LEAKING: ObjectWatcher was watching this because", "LEAKING: ObjectWatcher was watching this and",
		"LEAKING: This is the leaking object",
		"is leaking and ", "is not leaking and ", ". Conflicts with ", "↑ is leaking", "↓ is not leaking",
		"This is the leaking object. Conflicts with ", "↓ is not leaking. Conflicts with ",
	},
	"label": {
		"View is part of a window view hierarchy", "View not part of a window view hierarchy",
		"View.mAttachInfo is null (view detached)", "View.mAttachInfo is not null (view attached)",
		"View.mID = R.id.text", "View.mID = R.id.null", "View.mWindowAttachCount = 1", "Editor#mTextView: View ",
		"wrapper instance of com.example.ThemedContext, wrapping activity com.example.MainActivity " +
			"with mDestroyed = false", "application instance of com.example.App", "with mDestroyed = true",
		"impl instance of android.app.ContextImpl", "service instance of com.example.SyncService",
		"nothing instance of com.example.ThemedContext", ", wrapping com.example.App",
		"ThemedContext wraps an Activity with Activity.mDestroyed false", "ThemedContext wraps an Application context",
		"ThemedContext wraps a Service context", "ThemedContext does not wrap a known Android context",
		"ContextImpl.mOuterContext == ContextImpl.this: not tied to any particular lifecycle",
		"ContextImpl.mOuterContext is an instance of com.example.SyncService",
		"Dialog#mDecor is null", "Dialog#mDecor is not null", "Fragment.mTag=main", "Fragment.mTag=list",
		"Fragment.mTag = detail", "Fragment.mLifecycleRegistry = null",
		"HandlerThread: \"pool\"", "Receivers", "..MainActivity@", "....Receiver@", "Presenter#view is null",
		"Presenter#view is not null", "Coordinator#attached is true", "Coordinator#attached is false",
		"ViewRootImpl#mView is not null", "mWindowAttributes.mTitle = \"Toast\"", "mWindowAttributes.mTitle is null",
		"mWindowAttributes.type = 2005 (Toast)", "mWindowAttributes.type = 1",
		"Window#mDestroyed is false", "Message.what = -3", "ms after heap dump)", "ms before heap dump)",
		"Message.when = 1000", "Message.obj = instance @", "Message.obj = null", "Message.callback = instance @",
		"Message.target = instance @",
		"Recomposer is in state Inactive", "Recomposer is in state InactivePendingWork",
		"mListeners[0] = com.example.Controller", "mListeners is empty", "mListeners = null",
		"mPropertyName = alpha", "mPropertyName = null", "mProperty = null", "mProperty.mName = translationX",
		"mProperty.mType = java.lang.Integer", "mProperty.mName = null", "mProperty.mType = null",
		"mRepeatCount = INFINITE (-1)", "mRepeatCount = 3", "mRepeatMode = RESTART (1)", "mRepeatMode = REVERSE (2)",
		"mRepeatMode = Unknown (9)", "mDuration = 300", "mStartDelay = 16",
		"state = DESTROYED", "key = key-1", "watchDurationMillis = ", "retainedDurationMillis = ",
		"Anonymous subclass of com.example.Callback", "Thread name: 'worker'", "Thread name: 'null'",
		"Library leak match: ",
	},
}
