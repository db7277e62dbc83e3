package hproftest

import "github.com/leakgate/leakgate/internal/analysis/hprof"

// knownLeak is a leak that is known to Shark's AndroidReferenceMatchers, on a
// phone that has this leak, or a similar leak on a phone that does not.
type knownLeak struct {
	name  string
	phone Phone
	make  func(s *scene)
}

// onPhone creates a phone with the properties that the matchers check.
func onPhone(sdk int, manufacturer string) Phone { return Phone{SDK: sdk, Manufacturer: manufacturer} }

var knownLeaks = []knownLeak{
	{"message obj", onPhone(30, ""),
		func(s *scene) { s.hold(s.New(s.Class("android.os.Message"), Fields{"obj": s.leak()})) }},
	{"message obj of a subclass", onPhone(28, ""), func(s *scene) {
		s.hold(s.New(s.class("com.example.LongMessage", "android.os.Message", "object more"),
			Fields{"obj": s.leak(), "more": s.payload()}))
	}},
	{"message obj, fixed", onPhone(31, ""),
		func(s *scene) { s.hold(s.New(s.Class("android.os.Message"), Fields{"obj": s.leak()})) }},
	{"message obj in a queue", onPhone(30, ""), func(s *scene) {
		s.hold(s.queueOf(false, s.New(s.Class("android.os.Message"), Fields{"obj": s.leak(), "target": s.handler(0)})))
	}},
	{"served view", onPhone(26, ""), func(s *scene) { s.inputMethod("mServedView", s.leak()) }},
	{"next served view", onPhone(33, ""), func(s *scene) { s.inputMethod("mNextServedView", s.leak()) }},
	{"next served view, fixed", onPhone(34, ""), func(s *scene) { s.inputMethod("mNextServedView", s.leak()) }},
	{"root view", onPhone(28, ""), func(s *scene) { s.inputMethod("mCurRootView", s.view(0, s.gone().Ref, 0)) }},
	{"insets consumer", onPhone(34, ""),
		func(s *scene) { s.inputMethod("mImeInsetsConsumer", s.node("com.example.Consumer", "view", s.leak())) }},
	{"last served view of Huawei", onPhone(27, "HUAWEI"), func(s *scene) { s.inputMethod("mLastSrvView", s.leak()) }},
	{"last served view of another manufacturer", onPhone(27, "Google"),
		func(s *scene) { s.inputMethod("mLastSrvView", s.leak()) }},
	{"last focused view of LG", onPhone(29, "LGE"), func(s *scene) { s.inputMethod("mLastFocusView", s.leak()) }},
	{"input connection of Samsung", onPhone(29, "samsung"),
		func(s *scene) { s.inputMethod("mCurrentInputConnection", s.leak()) }},
	{"finish callback", onPhone(29, ""), func(s *scene) {
		s.Root(hprof.SubRootJNIGlobal,
			s.New(s.class("android.app.Activity$1", "android.os.Binder", "object this$0"), Fields{"this$0": s.leak()}))
	}},
	{"context of a manager", onPhone(33, ""), func(s *scene) {
		s.hold(s.New(s.class("android.permission.PermissionControllerManager", "", "object mContext"),
			Fields{"mContext": s.leak()}))
	}},
	{"user manager", onPhone(25, ""), func(s *scene) {
		s.Hold("android.os.UserManagers", "sInstance",
			s.New(s.class("android.os.UserManager", "", "object mContext"),
				Fields{"mContext": s.contextOf(s.leak(), 0)}))
	}},
	{"tooltip", onPhone(33, ""), func(s *scene) {
		s.hold(s.New(s.class("android.view.View$$ExternalSyntheticLambda3", "", "object f$0"),
			Fields{"f$0": s.view(0, s.gone().Ref, 0)}))
	}},
	{"hovered view of Samsung", onPhone(28, "samsung"), func(s *scene) {
		s.member(s.Class("android.widget.TextView"), "static object mLastHoveredView")
		s.SetStatic(s.Class("android.widget.TextView"), "mLastHoveredView", s.view(0, s.gone().Ref, 0))
	}},
	{"resources of Xiaomi", onPhone(31, "Xiaomi"), func(s *scene) {
		s.member(s.Class("android.content.res.ResourcesImpl"), "static object mAppContext")
		s.SetStatic(s.Class("android.content.res.ResourcesImpl"), "mAppContext", s.leak())
	}},
	{"gesture boost of Huawei", onPhone(25, "HUAWEI"),
		func(s *scene) { s.Hold("android.gestureboost.GestureBoostManager", "mContext", s.leak()) }},
	{"gesture boost of another manufacturer", onPhone(25, "samsung"),
		func(s *scene) { s.Hold("android.gestureboost.GestureBoostManager", "mContext", s.leak()) }},
	{"Flipper", onPhone(34, ""), func(s *scene) {
		s.Hold("com.facebook.flipper.plugins.inspector.descriptors.ApplicationDescriptor", "editedDelegates",
			s.ArrayList(s.view(0, s.gone().Ref, 0), s.leak()).Ref)
	}},
	{"clipboard of old Samsung", onPhone(23, "samsung"), func(s *scene) {
		s.SetStatic(s.Class("android.os.Build$VERSION"), "SDK_INT", 19)
		s.Hold("com.samsung.android.smartclip.SpenGestureManager", "mContext", s.leak())
		s.hold(s.New(s.class("android.sec.clipboard.ClipboardUIManager", "", "object mContext"),
			Fields{"mContext": s.leak()}))
	}},
	{"build of a preview", onPhone(32, ""), func(s *scene) {
		s.SetStatic(s.Class("android.os.Build"), "ID", s.Intern("TPP2.220218.008"))
		s.hold(s.New(s.class("android.window.WindowOnBackInvokedDispatcher$OnBackInvokedCallbackWrapper", "",
			"object mCallback"), Fields{"mCallback": s.leak()}))
	}},
	{"build that is not a preview", onPhone(32, ""), func(s *scene) {
		s.hold(s.New(s.class("android.window.WindowOnBackInvokedDispatcher$OnBackInvokedCallbackWrapper", "",
			"object mCallback"), Fields{"mCallback": s.leak()}))
	}},
	{"native toast", onPhone(34, ""), func(s *scene) {
		s.Root(hprof.SubRootJNIGlobal,
			s.New(s.Class("android.widget.Toast$TN"), Fields{"mView": s.view(0, s.gone().Ref, 0)}))
	}},
	{"native input connection", onPhone(34, ""), func(s *scene) {
		s.nativeKnown("android.view.inputmethod.InputMethodManager$ControlledInputConnectionWrapper")
	}},
	{"native account manager", onPhone(34, ""),
		func(s *scene) { s.nativeKnown("android.accounts.AccountManager$AmsTask$Response") }},
	{"native animator", onPhone(32, ""),
		func(s *scene) { s.nativeKnown("android.graphics.animation.RenderNodeAnimator") }},
	{"native animator, fixed", onPhone(33, ""),
		func(s *scene) { s.nativeKnown("android.graphics.animation.RenderNodeAnimator") }},
	{"native job service", onPhone(23, ""), func(s *scene) { s.nativeKnown("android.app.job.JobService$1") }},
	{"native class", onPhone(34, ""), func(s *scene) {
		c := s.class("android.view.inputmethod.InputMethodManager$ControlledInputConnectionWrapper", "",
			"static object sLast")
		s.SetStatic(c, "sLast", s.leak())
		s.Root(hprof.SubRootJNIGlobal, c)
	}},
	{"new activities", onPhone(34, ""), func(s *scene) { s.newActivities() }},
	{"new activities as a field", onPhone(33, ""), func(s *scene) {
		s.rename("android.app.ActivityThread$ActivityClientRecord", "nextIdle", "nextToIdle")
		s.newActivities()
	}},
	{"two known leaks at once", onPhone(30, ""), func(s *scene) {
		s.inputMethod("mNextServedView", s.New(s.Class("android.os.Message"), Fields{"obj": s.leak()}))
	}},
	{"two known leaks of one kind", onPhone(30, ""), func(s *scene) {
		s.hold(s.New(s.Class("android.os.Message"), Fields{"obj": s.leak()}))
		s.hold(s.node("com.example.Controller", "callback",
			s.New(s.Class("android.os.Message"), Fields{"obj": s.leak()})))
		s.hold(s.leak())
	}},
	{"known leak and a longer path", onPhone(30, ""), func(s *scene) {
		leak := s.leak()
		s.hold(s.New(s.Class("android.os.Message"), Fields{"obj": leak}))
		s.hold(s.node("com.example.Controller", "callback",
			s.node("com.example.Key", "name", s.node("com.example.Consumer", "view", leak))))
	}},
	{"known leak at the start of a longer path", onPhone(30, ""), func(s *scene) {
		leak := s.leak()
		between := s.node("com.example.Between", "next", leak)
		s.hold(s.New(s.Class("android.os.Message"), Fields{"obj": between}))
		s.hold(s.node("com.example.Controller", "callback",
			s.node("com.example.Key", "name", s.node("com.example.Consumer", "view", between))))
	}},
	{"known leak below another one", onPhone(30, ""), func(s *scene) {
		below := s.node("com.example.Between", "next", s.leak())
		s.hold(s.New(s.Class("android.os.Message"),
			Fields{"obj": s.node("com.example.Controller", "callback", below), "callback": s.Weak(below)}))
		s.local("pool-7", below)
	}},
}

// inputMethod stores an object in a field of the InputMethodManager singleton.
func (s *scene) inputMethod(field string, held Ref) {
	c := s.Class("android.view.inputmethod.InputMethodManager")
	s.SetStatic(c, "sInstance", s.New(c, Fields{field: held}))
}

// nativeKnown makes native code hold an object that holds a leak; the object is
// of the given class.
func (s *scene) nativeKnown(class string) {
	s.Root(hprof.SubRootJNIGlobal, s.New(s.class(class, "", "object this$0"), Fields{"this$0": s.leak()}))
	s.hold(s.leak())
}

// newActivities makes the ActivityThread hold a chain of new activities, some
// of which are destroyed.
func (s *scene) newActivities() {
	record := s.Class("android.app.ActivityThread$ActivityClientRecord")
	next := "nextIdle"
	if record.fields[len(record.fields)-1].name != next {
		next = "nextToIdle"
	}
	last := s.New(record, Fields{"activity": s.leak()})
	live := s.New(record, Fields{"activity": s.here().Ref, next: last})
	first := s.New(record, Fields{"activity": s.leak(), next: live})
	s.Set(s.android.thread, "mNewActivities", first)
}
