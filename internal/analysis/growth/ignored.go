package growth

import "github.com/leakgate/leakgate/internal/analysis/trace"

// Ignored are references of the runtime, a platform or a test library below
// which something grows that is not a leak of the app. Each applies only to
// builds that have it. They are ignored in addition to the references that
// never explain what holds an object.
func Ignored(b trace.Build) (list []trace.Matcher) {
	for _, m := range ignored {
		if m.Applies(b) {
			list = append(list, m)
		}
	}
	return list
}

const cleanerLink = "The link of a list through all cleaners, in order of creation, does not show what needs them."

var ignored = []trace.Matcher{
	ignore(trace.InstanceField, "java.lang.ClassLoader", "parallelLockMap",
		"A lock for each class that was ever requested, found or not.",
		"LeakCanary JvmObjectGrowthReferenceMatchers.kt PARALLEL_LOCK_MAP"),
	ignore(trace.InstanceField, "jdk.internal.ref.PhantomCleanable", "prev", cleanerLink,
		"OpenJDK PhantomCleanable.java"),
	ignore(trace.InstanceField, "jdk.internal.ref.PhantomCleanable", "next", cleanerLink,
		"OpenJDK PhantomCleanable.java"),
	ignore(trace.StaticField, "android.os.StrictMode", "sLastVmViolationTime",
		"The time of each kind of violation that occurred.",
		"LeakCanary AndroidObjectGrowthReferenceMatchers.kt STRICT_MODE_VIOLATION_TIME"),
	ignore(trace.InstanceField, "androidx.compose.ui.test.TestContext", "states",
		"The states of a test grow without bounds.",
		"LeakCanary AndroidObjectGrowthReferenceMatchers.kt COMPOSE_TEST_CONTEXT_STATES"),
	ignore(trace.InstanceField, "android.content.res.Resources", "mThemeRefs",
		"Weak references to themes, which are removed only when there are many.",
		"LeakCanary AndroidObjectGrowthReferenceMatchers.kt RESOURCES_THEME_REFS"),
	ignore(trace.InstanceField, "android.view.ViewRootImpl$W", "mViewAncestor",
		"The system server holds this stub until it has collected garbage itself.",
		"LeakCanary AndroidObjectGrowthReferenceMatchers.kt VIEW_ROOT_IMPL_W_VIEW_ANCESTOR"),
	ignore(trace.StaticField, "android.os.BinderProxy", "sProxyMap",
		"A table of weak references that is cleaned up at random, since Android 14.",
		"LeakCanary AndroidObjectGrowthReferenceMatchers.kt BINDER_PROXY",
		trace.Condition{MinSDK: 34}),
}

func ignore(kind trace.PatternKind, class, field, why, source string, where ...trace.Condition) trace.Matcher {
	return trace.Matcher{
		Pattern: trace.Pattern{Kind: kind, Class: class, Name: field}, Ignored: true, Description: why, Source: source,
		Where: where,
	}
}
