package growth

import "github.com/leakgate/leakgate/internal/analysis/trace"

// Ignored lists references of the runtime, a platform or a test library below
// which objects accumulate without being a leak in the app. Each entry applies
// only to builds that have the reference. These references are ignored in
// addition to those that never explain what holds an object.
func Ignored(b trace.Build) (list []trace.Matcher) {
	for _, m := range ignored {
		if m.Applies(b) {
			list = append(list, m)
		}
	}
	return list
}

const cleanerLink = "The list of all cleaners is in order of creation; it does not show what keeps a cleaner in use."

var ignored = []trace.Matcher{
	ignore(trace.InstanceField, "java.lang.ClassLoader", "parallelLockMap",
		"This map has a lock for each class that was ever requested, whether or not it was found.",
		"LeakCanary JvmObjectGrowthReferenceMatchers.kt PARALLEL_LOCK_MAP"),
	ignore(trace.InstanceField, "jdk.internal.ref.PhantomCleanable", "prev", cleanerLink,
		"OpenJDK PhantomCleanable.java"),
	ignore(trace.InstanceField, "jdk.internal.ref.PhantomCleanable", "next", cleanerLink,
		"OpenJDK PhantomCleanable.java"),
	ignore(trace.StaticField, "android.os.StrictMode", "sLastVmViolationTime",
		"This map has the time of each kind of violation that occurred.",
		"LeakCanary AndroidObjectGrowthReferenceMatchers.kt STRICT_MODE_VIOLATION_TIME"),
	ignore(trace.InstanceField, "androidx.compose.ui.test.TestContext", "states",
		"The list of a test's states grows without bound.",
		"LeakCanary AndroidObjectGrowthReferenceMatchers.kt COMPOSE_TEST_CONTEXT_STATES"),
	ignore(trace.InstanceField, "android.content.res.Resources", "mThemeRefs",
		"These weak references to themes are removed only when there are many.",
		"LeakCanary AndroidObjectGrowthReferenceMatchers.kt RESOURCES_THEME_REFS"),
	ignore(trace.InstanceField, "android.view.ViewRootImpl$W", "mViewAncestor",
		"The system server holds this stub until its own garbage collector runs.",
		"LeakCanary AndroidObjectGrowthReferenceMatchers.kt VIEW_ROOT_IMPL_W_VIEW_ANCESTOR"),
	ignore(trace.StaticField, "android.os.BinderProxy", "sProxyMap",
		"Since Android 14, this table of weak references is cleaned up at random times.",
		"LeakCanary AndroidObjectGrowthReferenceMatchers.kt BINDER_PROXY",
		trace.Condition{MinSDK: 34}),
}

func ignore(kind trace.PatternKind, class, field, why, source string, where ...trace.Condition) trace.Matcher {
	return trace.Matcher{
		Pattern: trace.Pattern{Kind: kind, Class: class, Name: field}, Ignored: true, Description: why, Source: source,
		Where: where,
	}
}
