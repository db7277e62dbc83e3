package analysis

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/trace"
)

// sharkDifference is one intentional difference from Shark 2.14.
type sharkDifference struct {
	name string
	// dump names a dump in which the difference changes the result; change is
	// the kind of that change, as returned by changes.
	dump, change string
	// on enables the difference.
	on func(*rules)
}

// sharkDifferences are all intentional differences, in the order in which they
// are enabled: first those in the search for paths, then those in the known
// leaks and the inspectors, then those in the rules for where a path ends.
// docs/rationale.md lists the reasons, in the same order.
var sharkDifferences = []sharkDifference{
	{"values of a WeakHashMap are its elements", "holder/WeakHashMap", "fingerprint",
		func(r *rules) { r.weakMaps = true }},
	{"known leaks that Shark defines and never adds", "special/WebView", "library",
		func(r *rules) { r.patterns = append(r.patterns, neverAdded...) }},
	{"known leaks whose patterns match nothing, or end too early", "special/handler of a connectivity manager",
		"library", func(r *rules) { r.patterns = append(r.patterns, fixedPatterns...) }},
	{"a binder that native code holds is needed", "special/binders", "statuses",
		judged(func(s *scale, o heap.Object) bool {
			return s.graph.InstanceOf(o, "android.os.Binder") && s.globals[o]
		})},
	{"a cleared ViewModel leaks", "special/ViewModels", "a target", judged(instances("androidx.lifecycle.ViewModel"))},
	{"a reset fragment of AndroidX is judged by its manager", "special/reset fragments", "a target",
		judged(instances("androidx.fragment.app.Fragment"))},
	{"an old fragment that was never attached does not leak", "special/fragments that were never attached", "no target",
		judged(instances("android.app.Fragment", "android.support.v4.app.Fragment"))},
	{"a PackageManager is judged by its context", "special/package managers", "a target",
		judged(instances("android.app.ApplicationPackageManager"))},
	{"the state of a Recomposer is read from newer coroutines", "special/recomposers of newer coroutines",
		"fingerprint", judged(instances("androidx.compose.runtime.Recomposer"))},
	{"an object that is watched and not yet retained does not leak, whatever requested the dump",
		"special/watched at an unknown time", "no target",
		judged(func(s *scale, o heap.Object) bool { return s.watched[o] })},
	{"the context of a DecorContext is unwrapped completely", "special/window with a theme of its own", "a target",
		judged((*scale).decorated)},
	{"a leaking object ends a path", "special/leaks around a live object", "not behind another leak",
		func(r *rules) { r.ends = true }},
}

// neverAdded are patterns for which Shark creates matchers that it does not add
// to its list. fixedPatterns are Shark's patterns that do not name an existing
// class or field, or that omit new versions, together with our replacements.
var (
	neverAdded = []string{
		"static field org.chromium.android_webview.AwContents#A0", "instance field WV.R9#e", "instance field WV.a6#c",
		"instance field WV.H5#c", "instance field WV.Y9#e", "instance field WV.U4#c",
		"native global variable referencing android.app.job.JobService$1",
		"native global variable referencing android.service.dreams.DreamService$1",
	}
	fixedPatterns = []string{
		"static field android.net.ConnectivityManager#sInstance",
		"instance field android.net.ConnectivityManager#sInstance",
		"instance field android.net.ConnectivityManager$CallbackHandler#this$0",
		"instance field ConnectivityManager$CallbackHandler#this$0",
		"instance field android.view.inputmethod.InputMethodManager#mNextServedView",
	}
)

// rules are the rules of Shark 2.14, changed by some of the differences.
type rules struct {
	weakMaps, ends bool
	// without lists the collections that are read like any other object.
	without []string
	// patterns are those of the known leaks that come from our list instead of
	// Shark's.
	patterns []string
	// judges selects the objects that are judged by our inspectors instead of
	// Shark's.
	judges []func(*scale, heap.Object) bool
}

func judged(judge func(*scale, heap.Object) bool) func(*rules) {
	return func(r *rules) { r.judges = append(r.judges, judge) }
}

func instances(classes ...string) func(*scale, heap.Object) bool {
	return func(s *scale, o heap.Object) bool {
		return slices.ContainsFunc(classes, func(class string) bool { return s.graph.InstanceOf(o, class) })
	}
}

// scale holds a dump with two searches and the objects that leak according to
// each: theirs follows Shark's rules, ours follows the rules of leakgate.
type scale struct {
	*subject
	// theirs and ours read the same references from the dump.
	theirs, ours     *tracing
	theirList        []heap.Object
	ourList          []heap.Object
	globals, watched map[heap.Object]bool
}

func newScale(t *testing.T, data []byte) *scale {
	t.Helper()
	ctx := context.Background()
	s := &scale{subject: load(t, data, Options{}), globals: map[heap.Object]bool{}, watched: map[heap.Object]bool{}}
	outbound, err := s.graph.Outbound(ctx)
	if err != nil {
		t.Fatal(err)
	}
	side := func(o Options) (*tracing, []heap.Object) {
		search, err := s.inspect(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		search.inspector.Follow(outbound)
		list, err := search.targets(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range search.inspector.Watched() {
			s.watched[o] = true
		}
		search.outbound = outbound
		return search, list
	}
	s.theirs, s.theirList = side(Options{shark214: true})
	s.ours, s.ourList = side(Options{})
	s.graph.Roots(func(r hprof.Root, o heap.Object) {
		if r.Kind == hprof.SubRootJNIGlobal {
			s.globals[o] = true
		}
	})
	return s
}

func (s *scale) close() {
	s.theirs.inspector.Close()
	s.ours.close()
	s.graph.Close()
}

// decorated reports whether an object is or references a DecorContext, directly
// or through contexts that wrap each other.
func (s *scale) decorated(o heap.Object) bool {
	near := []heap.Object{o}
	for i := 0; i < len(near) && i < 200; i++ {
		if s.graph.InstanceOf(near[i], "com.android.internal.policy.DecorContext") {
			return true
		}
		// Further steps lead only through contexts and views, such as the view
		// of an editor or the context of a view root.
		if i > 0 && !s.graph.InstanceOf(near[i], "android.content.ContextWrapper") &&
			!s.graph.InstanceOf(near[i], "android.view.View") {
			continue
		}
		for f := s.ours.outbound.Of(near[i]); f.Next(); {
			if !slices.Contains(near, f.To) {
				near = append(near, f.To)
			}
		}
	}
	return false
}

// judge reports whether our inspectors judge an object.
func (r *rules) judge(s *scale, o heap.Object) bool {
	return slices.ContainsFunc(r.judges, func(judge func(*scale, heap.Object) bool) bool { return judge(s, o) })
}

// targets returns the leaking objects. With a class, these are all its
// instances. Otherwise our inspectors decide about the objects that judge
// selects, and Shark's decide about all others.
func (r *rules) targets(s *scale, class string) (list []heap.Object) {
	if class != "" {
		return s.graph.Exactly(class)
	}
	for _, o := range s.theirList {
		if !r.judge(s, o) {
			list = append(list, o)
		}
	}
	for _, o := range s.ourList {
		if r.judge(s, o) {
			list = append(list, o)
		}
	}
	slices.Sort(list)
	return list
}

// matchers returns Shark's matchers, with those whose pattern is in r.patterns
// replaced by ours.
func (r *rules) matchers(theirs, ours []trace.Matcher) []trace.Matcher {
	mine := func(m trace.Matcher) bool { return slices.Contains(r.patterns, m.Pattern.String()) }
	list := slices.DeleteFunc(slices.Clone(theirs), mine)
	for _, m := range ours {
		if mine(m) {
			list = append(list, m)
		}
	}
	return list
}

// find searches by these rules for the objects of a class or, without a class,
// for the objects that the inspectors find.
func (r *rules) find(t *testing.T, s *scale, class string) *found {
	t.Helper()
	ctx := context.Background()
	old, now := s.theirs.rules(s.metadata, Options{shark214: true}), s.ours.rules(s.metadata, Options{})
	now.Matchers = r.matchers(old.Matchers, now.Matchers)
	if !r.weakMaps {
		now.Without = slices.Concat(old.Without, r.without)
	}
	search, err := trace.Find(ctx, trace.NewReader(s.graph, s.ours.outbound, now), r.targets(s, class),
		trace.Options{Through: !r.ends || class != ""})
	if err != nil {
		t.Fatal(err)
	}
	defer search.Close()
	d := s.ours.describe()
	ours := d.Inspect
	d.Inspect = func(o heap.Object) trace.Inspection {
		if r.judge(s, o) {
			return ours(o)
		}
		return s.theirs.inspector.Inspect(o)
	}
	result, err := search.Leaks(ctx, d)
	if err != nil {
		t.Fatal(err)
	}
	return &found{result, s.graph}
}

// fate is the verdict on one target.
type fate struct{ how, library, fingerprint, statuses, path string }

// fates returns the verdicts of a result on its targets, without descriptions
// and sizes.
func (f *found) fates() map[heap.Object]fate {
	all := map[heap.Object]fate{}
	for i := range f.Leaks {
		l := &f.Leaks[i]
		for _, o := range l.Also {
			all[o] = fate{how: "behind another leak"}
		}
	}
	for i := range f.Leaks {
		l := &f.Leaks[i]
		for j := range l.Traces {
			x := &l.Traces[j]
			is := fate{how: "leak", fingerprint: l.Fingerprint(), path: x.Root.Kind.String()}
			if m := l.Library(); m != nil {
				is.library = m.String()
			}
			for k := range x.Elements {
				e := &x.Elements[k]
				is.statuses += " " + e.Status.String()
				is.path += fmt.Sprintf(" %#x.%s", f.graph.ID(e.Object), e.Field)
			}
			all[x.Leaking().Object] = is
		}
	}
	for _, o := range f.Unreachable {
		all[o] = fate{how: "unreachable"}
	}
	return all
}

// changes returns the kinds of changes between two results.
func changes(before, after map[heap.Object]fate) map[string]int {
	n := map[string]int{}
	for o, was := range before {
		is, still := after[o]
		switch {
		case !still:
			n["no target"]++
		case was == is:
		case was.how == "behind another leak":
			n["not behind another leak"]++
		case was.how != is.how:
			n[is.how]++
		case was.library != is.library:
			n["library"]++
		case was.fingerprint != is.fingerprint:
			n["fingerprint"]++
		case was.path != is.path:
			n["path"]++
		default:
			n["statuses"]++
		}
	}
	for o := range after {
		if _, was := before[o]; !was {
			n["a target"]++
		}
	}
	return n
}

// differenceCount holds the number of answers that a difference changes, by
// kind of change.
type differenceCount struct {
	dumps   int
	changes map[string]int
	// shown holds the changes in sharkDifference.dump.
	shown map[string]int
}

// TestSharkDifferences enables our differences from Shark 2.14, one after the
// other, on every generated dump. With no difference enabled, the answers are
// those of mode shark214, which TestSharkGenerated compares with Shark's; with
// all enabled, they are those of reports. The test shows that every change is
// due to one of these differences.
func TestSharkDifferences(t *testing.T) {
	counts := make([]differenceCount, len(sharkDifferences))
	differ, all := 0, 0
	for _, c := range askShark(t).cases {
		for i := range c.answers {
			a := &c.answers[i]
			if a.kind == "keyed" {
				continue
			}
			all++
			changed, err := attribute(t, &c, a, counts)
			if err != nil {
				t.Errorf("%s, %v: %v", c.name, a, err)
			}
			if changed {
				differ++
			}
		}
	}
	t.Logf("%d of %d answers differ", differ, all)
	for i, d := range sharkDifferences {
		t.Logf("%s: %d answers, %v; %s: %v", d.name, counts[i].dumps, counts[i].changes, d.dump, counts[i].shown)
		if counts[i].shown[d.change] == 0 {
			t.Errorf("%s: %s has no change of kind %q, only %v", d.name, d.dump, d.change, counts[i].shown)
		}
	}
	if len(sharkDifferences) > 13 {
		t.Errorf("%d differences", len(sharkDifferences))
	}
}

// attribute adds to counts the differences that change the answer of one
// search, and reports whether the answer changes.
func attribute(t *testing.T, c *sharkCase, a *sharkAnswer, counts []differenceCount) (changed bool, err error) {
	t.Helper()
	f := find(t, c.data, a.options(false))
	theirs, ours := a.ask(t, c.data).fates, f.fates()
	f.graph.Close()
	if len(changes(theirs, ours)) == 0 {
		return false, nil
	}
	s := newScale(t, c.data)
	defer s.close()
	r := &rules{}
	before := r.find(t, s, a.class).fates()
	if more := changes(theirs, before); len(more) > 0 {
		return true, fmt.Errorf("the answers differ although all differences are disabled: %v", more)
	}
	for i, d := range sharkDifferences {
		d.on(r)
		after := r.find(t, s, a.class).fates()
		if more := changes(before, after); len(more) > 0 {
			counts[i].add(more, c.name == d.dump)
		}
		before = after
	}
	if more := changes(before, ours); len(more) > 0 {
		return true, fmt.Errorf("unexplained changes: %v", more)
	}
	return true, nil
}

func (c *differenceCount) add(changes map[string]int, shown bool) {
	if c.changes == nil {
		c.changes, c.shown = map[string]int{}, map[string]int{}
	}
	c.dumps++
	for what, n := range changes {
		c.changes[what] += n
	}
	if shown {
		for what, n := range changes {
			c.shown[what] += n
		}
	}
}
