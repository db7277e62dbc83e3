package android

import (
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/trace"
)

// Edition selects a list of known references.
type Edition uint8

const (
	// Shark3 is the list of Shark 3 with corrections of obvious mistakes: it
	// includes the matchers that Shark creates but does not add, and corrects
	// two patterns that match nothing. See changes214.
	Shark3 Edition = iota
	// Shark214 is the unchanged list of Shark 2.14, for comparisons with it.
	Shark214
)

// matchersOf returns two kinds of references: those known to leak in the
// platform, in manufacturers' versions of it and in a few libraries, and those
// that never explain what holds an object. The result contains the references
// of an edition that apply to a build, in Shark's order: if two references have
// the same pattern, the later one applies. If the build is unknown, the result
// contains the references that apply to every build. Conditions are shared and
// must not be changed.
func matchersOf(e Edition, b trace.Build) []trace.Matcher {
	return e.matchers(func(m *trace.Matcher) bool { return m.Applies(b) })
}

// tables holds all matchers, in Shark's order.
var tables = [][]trace.Matcher{platformLeaks, samsungLeaks, vendorLeaks, ignoredByJDK, ignoredByAndroid}

// matchers returns an edition's matchers for which applies returns true.
func (e Edition) matchers(applies func(*trace.Matcher) bool) (all []trace.Matcher) {
	for _, table := range tables {
		for _, m := range table {
			m, there := e.edit(m)
			if there && applies(&m) {
				all = append(all, m)
			}
		}
	}
	return all
}

// namedBuilds lists the manufacturers and IDs of builds that matchers name.
func namedBuilds() (makers, ids []string) {
	for _, table := range tables {
		for _, m := range table {
			for _, c := range m.Where {
				makers, ids = append(makers, c.Manufacturers...), append(ids, c.IDs...)
			}
		}
	}
	return distinct(makers), distinct(ids)
}

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// inAOSP lists patterns of manufacturers' leaks whose fields also exist in
// AOSP, and therefore do not identify the manufacturer.
var inAOSP = map[trace.Pattern]bool{
	// The WebView of Android 4.4 (AwResource.java).
	staticField("com.android.org.chromium.android_webview.AwResource", "sResources"): true,
}

// JVMMatchers returns the references that never explain what holds an object in
// the dump of a JVM. No leaks of the JVM's libraries are known.
func JVMMatchers() []trace.Matcher { return slices.Clone(ignoredByJDK) }

// edit returns the replacement of a matcher in an edition, and reports whether
// the edition contains the matcher.
func (e Edition) edit(m trace.Matcher) (trace.Matcher, bool) {
	if e != Shark214 {
		return m, true
	}
	old, changed := changes214[m.Pattern]
	if !changed {
		return m, true
	}
	if old == nil {
		return trace.Matcher{}, false
	}
	m.Pattern, m.Where = old.Pattern, old.Where
	return m, true
}

// changes214 maps patterns of the tables to the matchers that Shark 2.14 uses
// instead; nil means that Shark 2.14 has no such matcher. Shark 3 has the same
// faults as Shark 2.14, except in the entry for mNextServedView.
var changes214 = map[trace.Pattern]*trace.Matcher{
	instanceField(inputMethodManager, "mNextServedView"): was(instanceField(inputMethodManager, "mNextServedView"),
		between(15, 33)),
	// The field is static, but an instance pattern does not match a static
	// field.
	staticField(connectivityManager, "sInstance"): was(instanceField(connectivityManager, "sInstance"), until(23)),
	// Shark's pattern lacks the package and therefore matches no class.
	instanceField(connectivityManager+"$CallbackHandler",
		"this$0"): was(instanceField("ConnectivityManager$CallbackHandler", "this$0"), at(33)),
	// Shark creates these matchers but does not add them to the list:
	// "references +=" is missing.
	staticField(awContents, "A0"): nil,
	instanceField("WV.R9", "e"):   nil,
	instanceField("WV.a6", "c"):   nil,
	instanceField("WV.H5", "c"):   nil,
	instanceField("WV.Y9", "e"):   nil,
	instanceField("WV.U4", "c"):   nil,
	jniGlobal(jobServiceStub):     nil,
	jniGlobal(dreamServiceStub):   nil,
}

// sharkFile is the start of Source if the only source of a matcher is an enum
// entry of Shark.
const sharkFile = "LeakCanary AndroidReferenceMatchers.kt "

// The following functions are used in the tables to define matchers.

func leak(p trace.Pattern, description, source string, where ...trace.Condition) trace.Matcher {
	return trace.Matcher{Pattern: p, Description: description, Source: source, Where: where}
}

func ignore(p trace.Pattern, description, source string) trace.Matcher {
	return trace.Matcher{Pattern: p, Ignored: true, Description: description, Source: source}
}

func instanceField(class, name string) trace.Pattern {
	return trace.Pattern{Kind: trace.InstanceField, Class: class, Name: name}
}

func staticField(class, name string) trace.Pattern {
	return trace.Pattern{Kind: trace.StaticField, Class: class, Name: name}
}

func jniGlobal(class string) trace.Pattern {
	return trace.Pattern{Kind: trace.NativeGlobal, Class: class}
}

func threadLocals(thread string) trace.Pattern {
	return trace.Pattern{Kind: trace.JavaLocal, Name: thread}
}

func was(p trace.Pattern, where ...trace.Condition) *trace.Matcher {
	return &trace.Matcher{Pattern: p, Where: where}
}

func between(first, last int) trace.Condition {
	return trace.Condition{MinSDK: first, MaxSDK: last}
}

func at(sdk int) trace.Condition { return between(sdk, sdk) }

func from(sdk int) trace.Condition { return trace.Condition{MinSDK: sdk} }

// until restricts builds to those up to an API level. The range begins with
// level 1, because 0 means that the level is unknown.
func until(sdk int) trace.Condition { return between(1, sdk) }

// by restricts builds to those of the given manufacturers, as in
// android.os.Build.MANUFACTURER.
func by(c trace.Condition, manufacturers ...string) trace.Condition {
	c.Manufacturers = manufacturers
	return c
}
