package android

import (
	"regexp"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// rule describes how the instances of a class and of its subclasses are
// inspected.
type rule struct {
	// class is "" if the rule applies to the instances of all classes.
	class   string
	inspect func(*Inspector, heap.Object, *report)
	// leaks reports whether an object has certainly leaked; if leaks is nil,
	// the rule never finds a leak.
	leaks func(*Inspector, heap.Object) bool
	// jvm reports whether the rule applies to the dumps of all runtimes; later
	// reports whether Shark 2.14 lacks the rule.
	jvm, later bool
}

// rules lists the rules in Shark's order, followed by the rules for classes
// that Shark does not know.
var rules = []rule{
	{class: "java.lang.ClassLoader", inspect: (*Inspector).inspectLoader, jvm: true},
	{inspect: (*Inspector).inspectAnonymous, jvm: true},
	{class: threadClass, inspect: (*Inspector).inspectThread, jvm: true},
	{class: viewClass, inspect: (*Inspector).inspectView, leaks: (*Inspector).viewLeaks},
	{class: "android.widget.Editor", inspect: (*Inspector).inspectEditor, leaks: (*Inspector).editorLeaks},
	{class: activityClass, inspect: (*Inspector).inspectActivity, leaks: (*Inspector).activityLeaks},
	{class: serviceClass, inspect: (*Inspector).inspectService, leaks: (*Inspector).serviceLeaks},
	{inspect: (*Inspector).inspectContextFields},
	{class: wrapperClass, inspect: (*Inspector).inspectWrapper, leaks: (*Inspector).wrapperLeaks},
	{class: "android.app.ApplicationPackageManager", inspect: (*Inspector).inspectPackageManager,
		leaks: (*Inspector).packageManagerLeaks, later: true},
	{class: "android.app.ContextImpl", inspect: (*Inspector).inspectContextImpl, leaks: (*Inspector).contextImplLeaks},
	{class: "android.app.Dialog", inspect: (*Inspector).inspectDialog},
	{class: "android.app.ActivityThread", inspect: alive("ActivityThread is a singleton")},
	{class: applicationClass, inspect: alive("Application is a singleton")},
	{class: "android.view.inputmethod.InputMethodManager", inspect: alive("InputMethodManager is a singleton")},
	{class: fragmentClasses[0], inspect: inspectOldFragment(0), leaks: oldFragmentLeaks(0)},
	{class: fragmentClasses[1], inspect: inspectOldFragment(1), leaks: oldFragmentLeaks(1)},
	{class: androidxFragment, inspect: (*Inspector).inspectFragment, leaks: (*Inspector).fragmentLeaks},
	{class: "android.os.MessageQueue", inspect: (*Inspector).inspectQueue, leaks: (*Inspector).queueLeaks},
	{class: "android.app.LoadedApk", inspect: (*Inspector).inspectLoadedApk},
	{class: "mortar.Presenter", inspect: (*Inspector).inspectPresenter},
	{class: "mortar.MortarScope", inspect: (*Inspector).inspectScope, leaks: (*Inspector).scopeLeaks},
	{class: "com.squareup.coordinators.Coordinator", inspect: (*Inspector).inspectCoordinator},
	{class: threadClass, inspect: (*Inspector).inspectMainThread},
	{class: "android.view.ViewRootImpl", inspect: (*Inspector).inspectViewRoot, leaks: (*Inspector).viewRootLeaks},
	{class: "android.view.Window", inspect: (*Inspector).inspectWindow, leaks: (*Inspector).windowLeaks},
	{class: "android.os.Message", inspect: (*Inspector).inspectMessage},
	{class: "android.widget.Toast", inspect: (*Inspector).inspectToast, leaks: (*Inspector).toastLeaks},
	{class: "androidx.compose.runtime.Recomposer", inspect: (*Inspector).inspectRecomposer},
	{class: "androidx.compose.runtime.CompositionImpl", inspect: (*Inspector).inspectComposition},
	{class: "android.animation.Animator", inspect: (*Inspector).inspectAnimator},
	{class: "android.animation.ObjectAnimator", inspect: (*Inspector).inspectObjectAnimator},
	{class: "androidx.lifecycle.LifecycleRegistry", inspect: (*Inspector).inspectRegistry},
	{class: "android.os.Binder", inspect: (*Inspector).inspectBinder, later: true},
	{class: threadLocalEntry, inspect: (*Inspector).inspectThreadLocal, jvm: true, later: true},
	{class: jobClass, inspect: (*Inspector).inspectJob, later: true},
	{class: scopeClass, inspect: (*Inspector).inspectCoroutineScope, later: true},
	{class: viewModelScope, inspect: (*Inspector).inspectCoroutineScope, later: true},
	{class: oldViewModelScope, inspect: (*Inspector).inspectCoroutineScope, later: true},
	{class: "androidx.lifecycle.ViewModel", inspect: (*Inspector).inspectViewModel, leaks: (*Inspector).viewModelLeaks,
		later: true},
}

// alive returns an inspection that marks every object as needed, for the given
// reason.
func alive(reason string) func(*Inspector, heap.Object, *report) {
	return func(_ *Inspector, _ heap.Object, r *report) { r.notLeaking(reason) }
}

const (
	threadClass      = "java.lang.Thread"
	viewClass        = "android.view.View"
	decorViewClass   = "com.android.internal.policy.DecorView"
	decorClass       = "com.android.internal.policy.DecorContext"
	contextClass     = "android.content.Context"
	wrapperClass     = "android.content.ContextWrapper"
	activityClass    = "android.app.Activity"
	applicationClass = "android.app.Application"
	serviceClass     = "android.app.Service"
	listClass        = "java.util.ArrayList"
)

// kin is a bit set of well-known classes: those that a class is or extends.
type kin uint16

const (
	kinView kin = 1 << iota
	kinDecor
	kinContext
	kinWrapper
	kinActivity
	kinApplication
	kinService
	kinList
)

var kinClasses = map[string]kin{
	viewClass: kinView, decorClass: kinDecor, contextClass: kinContext, wrapperClass: kinWrapper,
	activityClass: kinActivity, applicationClass: kinApplication, serviceClass: kinService, listClass: kinList,
}

// component is the set of context classes at which unwrapping ends.
const component = kinActivity | kinApplication | kinService

// classFacts holds what can be determined about a class from its name and the
// names of its superclasses.
type classFacts struct {
	known bool
	kin   kin
	// rules is a bit set of the rules that apply to the class; leaking is the
	// subset of the rules that find leaking objects.
	rules, leaking uint64
	// judged reports whether at least one of the rules is specific to certain
	// classes; it is valid if judgedKnown is true.
	judgedKnown, judged bool
}

// facts returns the facts about an object's class.
func (i *Inspector) facts(o heap.Object) *classFacts {
	n := i.graph.ClassNumber(o)
	f := &i.classes[n]
	if !f.known {
		*f = i.learn(i.graph.Hierarchy(n))
	}
	return f
}

func (i *Inspector) learn(hierarchy []string) classFacts {
	f := classFacts{known: true}
	if len(hierarchy) == 0 || isArray(hierarchy[0]) {
		return f
	}
	own := map[string]bool{"": true}
	for _, name := range hierarchy {
		own[name] = true
		f.kin |= kinClasses[name]
	}
	for n := range i.rules {
		r := &i.rules[n]
		if !own[r.class] || r.later && i.old || !r.jvm && !i.android {
			continue
		}
		f.rules |= 1 << n
		if r.leaks != nil {
			f.leaking |= 1 << n
		}
	}
	return f
}

// is reports whether an object is an instance of one of the given classes, or
// of a subclass.
func (i *Inspector) is(o heap.Object, k kin) bool { return i.facts(o).kin&k != 0 }

// anonymous matches the name of an anonymous class as generated by javac and
// kotlinc.
var anonymous = regexp.MustCompile(`^.+\$\d+$`)
