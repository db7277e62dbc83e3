package analysis_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/mapping"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/jvmtest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// With few iterations, the leaking objects can be counted. With many
// iterations, each leak that accumulates in one place holds more than a
// megabyte.
const (
	few  = 5
	many = 4500
)

// jvmDump holds a dump of a JVM, and a function that reads the dump
// independently.
type jvmDump struct {
	data  []byte
	graph func() (*hproftest.Graph, error)
}

func readJVM(t *testing.T, path string) jvmDump {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return jvmDump{data, sync.OnceValues(func() (*hproftest.Graph, error) { return hproftest.ReadGraph(data) })}
}

// analyze reports what holds the objects of the given classes or, without
// classes, what accumulates.
func (d jvmDump) analyze(t *testing.T, m *analysis.Mapping, classes ...string) *analysis.Report {
	t.Helper()
	r, err := analysis.Analyze(t.Context(), bytes.NewReader(d.data), int64(len(d.data)),
		analysis.Options{Top: 1 << 16, Mapping: m, LeakingClasses: classes})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// run runs a program for a number of iterations and returns a dump of it.
func run(t *testing.T, j *jvmtest.JDK, jar, main string, iterations int, args ...string) jvmDump {
	t.Helper()
	p := j.Start(t, jar, main, args...)
	p.Do(t, iterations)
	path := p.Dump(t)
	p.Stop(t)
	return readJVM(t, path)
}

func classesOf(leaks []jvmtest.Leak) (classes []string) {
	for _, l := range leaks {
		classes = append(classes, l.Class)
	}
	return classes
}

// byKey checks the leaks that were found against the known ones, and returns
// the key of each leaking class.
func byKey(t *testing.T, found []analysis.Leak, known []jvmtest.Leak, iterations int) map[string]string {
	t.Helper()
	keys, objects := map[string]string{}, map[string]map[string]bool{}
	for i := range found {
		l := &found[i]
		if key := keys[l.Class]; key != "" && key != l.Key {
			t.Errorf("%s has a different key: %q", l.Class, l.KeyText)
		}
		keys[l.Class] = l.Key
		if objects[l.Class] == nil {
			objects[l.Class] = map[string]bool{}
		}
		for _, o := range l.Objects {
			objects[l.Class][o] = true
		}
		if l.Instances != len(l.Objects) || l.Library || len(l.Consequences) > 0 || l.RetainedBytes <= 0 {
			t.Errorf("%s: got %d instances, %d objects, library %t, consequences %v, %d bytes", l.Class, l.Instances,
				len(l.Objects), l.Library, l.Consequences, l.RetainedBytes)
		}
		at := slices.IndexFunc(known, func(k jvmtest.Leak) bool { return k.Class == l.Class })
		if at < 0 {
			t.Errorf("%s leaks", l.Class)
			continue
		}
		if !suspected(l, known[at]) {
			t.Errorf("%s: %s.%s is not a suspect in %q", l.Class, known[at].Owner, known[at].Field, l.KeyText)
		}
	}
	seen := map[string]string{}
	for _, k := range known {
		if n := len(objects[k.Class]); n != k.Objects(iterations) {
			t.Errorf("%d objects of %s leak, want %d", n, k.Class, k.Objects(iterations))
		}
		if other := seen[keys[k.Class]]; other != "" {
			t.Errorf("%s and %s have the same key", k.Class, other)
		}
		seen[keys[k.Class]] = k.Class
	}
	return keys
}

// suspected reports whether the faulty reference is among the suspects.
func suspected(l *analysis.Leak, k jvmtest.Leak) bool {
	return slices.ContainsFunc(l.Trace,
		func(e analysis.TraceElement) bool { return e.Suspect && e.Owner == k.Owner && e.Reference == k.Field })
}

// checkRoots checks traces against a second reader of the dump: each trace must
// begin at a root of the expected kind, and each field on it must contain the
// expected reference.
func (d jvmDump) checkRoots(t *testing.T, leaks []analysis.Leak) {
	t.Helper()
	g, err := d.graph()
	if err != nil {
		t.Fatal(err)
	}
	for i := range leaks {
		l := &leaks[i]
		first := objectID(t, l.Trace[0].Object)
		if !slices.ContainsFunc(g.Roots,
			func(r hprof.Root) bool { return r.Object == first && r.Kind.String() == l.GCRoot }) {
			t.Errorf("%s: %s is not a root of kind %s", l.Class, l.Trace[0].Object, l.GCRoot)
		}
		for n, e := range l.Trace[:len(l.Trace)-1] {
			next := l.Trace[n+1].Object
			if from := g.Nodes[objectID(t, e.Object)]; from == nil || !references(from, e, objectID(t, next)) {
				t.Errorf("%s: %s %s.%s does not refer to %s", l.Class, e.Kind, e.Owner, e.Reference, next)
			}
		}
	}
}

// references reports whether an object has the reference that an element of a
// trace names. For an array, it reports whether any element is the reference;
// for an entry of a collection, it returns true without a check.
func references(from *hproftest.Node, e analysis.TraceElement, to hprof.ID) bool {
	switch {
	case e.Kind == "static_field":
		return from.Refs[e.Reference] == to
	case e.Kind == "instance_field":
		// In the dump, names of classes have the form that a JVM uses
		// internally, with slashes.
		return from.Refs[strings.ReplaceAll(e.Owner, ".", "/")+"."+e.Reference] == to
	case e.Type == "array":
		return slices.Contains(from.Elements, to)
	}
	return e.Kind == "array_entry"
}

func objectID(t *testing.T, text string) hprof.ID {
	t.Helper()
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	return hprof.ID(n)
}

func TestJVMLeaks(t *testing.T) {
	t.Parallel()
	j := jvmtest.New(t)
	jar := j.Compile(t, jvmtest.Shop())
	known := jvmtest.ShopLeaks()
	var names []string
	for _, k := range known {
		names = append(names, k.Name)
	}
	all := run(t, j, jar, jvmtest.ShopMain, few, names...)
	r := all.analyze(t, nil, classesOf(known)...)
	all.checkRoots(t, r.Leaks)
	checkNoWarning(t, r)
	together := byKey(t, r.Leaks, known, few)
	for _, k := range known {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			iterations := many / k.Each
			if isThreadLeak(k) {
				iterations = few
			}
			d := run(t, j, jar, jvmtest.ShopMain, iterations, k.Name)
			r := d.analyze(t, nil, k.Class)
			d.checkRoots(t, r.Leaks)
			checkNoWarning(t, r)
			if keys := byKey(t, r.Leaks, []jvmtest.Leak{k}, iterations); keys[k.Class] != together[k.Class] {
				t.Errorf("got key %s, but %s in a dump with other leaks", keys[k.Class], together[k.Class])
			}
			if !isThreadLeak(k) {
				d.checkAccumulation(t, k, iterations)
			}
		})
	}
	t.Run("steady", func(t *testing.T) {
		t.Parallel()
		r := run(t, j, jar, jvmtest.SteadyMain, 500).analyze(t, nil)
		checkNoWarning(t, r)
		if len(r.Leaks)+len(r.Suspects) > 0 {
			t.Errorf("leaks %+v, suspects %+v", r.Leaks, r.Suspects)
		}
	})
}

// isThreadLeak reports whether the leaking objects are threads. Each thread is
// a GC root by itself, so the threads do not accumulate in one place.
func isThreadLeak(k jvmtest.Leak) bool { return strings.HasPrefix(k.Name, "running-") }

// checkAccumulation checks that a leak is found even if nothing identifies its
// objects as leaking.
func (d jvmDump) checkAccumulation(t *testing.T, k jvmtest.Leak, iterations int) {
	t.Helper()
	r := d.analyze(t, nil)
	if len(r.Leaks) > 0 || len(r.Suspects) != 1 {
		t.Fatalf("%d leaks, %d suspects", len(r.Leaks), len(r.Suspects))
	}
	d.checkRoots(t, r.Suspects)
	s := &r.Suspects[0]
	a, n := s.Accumulates, int64(k.Objects(iterations))
	if !suspected(s, k) || s.RetainedBytes < 1<<20 || a.Bytes > s.RetainedBytes || a.Share <= 0.05 || a.Share >= 1 {
		t.Errorf("%d bytes retained by %q: %+v", s.RetainedBytes, s.KeyText, a)
	}
	switch {
	case a.Class == k.Class:
		if a.Count != n {
			t.Errorf("got %+v, want %d objects", a, n)
		}
	case a.Holds != k.Class || a.Held != n || a.Count != n:
		t.Errorf("got %+v, want %d objects of %s", a, n, k.Class)
	}
}

// checkNoWarning checks that there is no warning, except for one that is
// allowed: the live objects that a JVM dumps may reference archived objects,
// which the JVM omits.
func checkNoWarning(t *testing.T, r *analysis.Report) {
	t.Helper()
	for _, w := range r.Warnings {
		if !strings.HasSuffix(w, "references point to objects that are not in the dump") {
			t.Error(w)
		}
	}
}

// build holds a variant of a program, its dump and its leaks.
type build struct {
	jvmtest.Variant
	jvmDump
	mapping *analysis.Mapping
	// All maps are keyed by class: keys holds the keys of the leaks, texts
	// holds the lines from which the keys are computed, and fingerprints holds
	// Shark's fingerprints.
	keys         map[string]string
	texts        map[string][]string
	fingerprints map[string][]string
}

func TestStableKeys(t *testing.T) {
	t.Parallel()
	known := jvmtest.MallLeaks()
	var builds []*build
	variants := jvmtest.New(t).SomeVariants
	if recorded.Long() {
		variants = jvmtest.New(t).Variants
	}
	for _, v := range variants(t) {
		builds = append(builds, &build{Variant: v, jvmDump: readJVM(t, v.Dump), mapping: readMapping(t, v.Mapping)})
	}
	t.Run("keys", func(t *testing.T) {
		for _, b := range builds {
			t.Run(b.Name, func(t *testing.T) {
				t.Parallel()
				b.identify(t, known)
			})
		}
	})
	first := builds[0]
	for _, b := range builds {
		for _, class := range first.Leaking {
			if b.keys[class] != first.keys[class] {
				t.Errorf("%s, %s: got key text %q, but %q in the first build", b.Name, class, b.texts[class],
					first.texts[class])
			}
		}
	}
	compareFingerprints(t, builds)
	t.Run("names", func(t *testing.T) {
		last := builds[len(builds)-1]
		for i, b := range builds[:len(builds)-1] {
			if b.mapping == nil {
				continue
			}
			t.Run(b.Name, func(t *testing.T) {
				t.Parallel()
				b.checkNameWarning(t, builds[i+1].mapping, "the mapping", "belongs to another build")
			})
		}
		last.checkNameWarning(t, nil, "names are obfuscated", "--mapping")
		first.checkNameWarning(t, last.mapping, "the mapping", "unobfuscated")
	})
}

func readMapping(t *testing.T, path string) *analysis.Mapping {
	t.Helper()
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	names, err := mapping.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range names.Warnings {
		t.Errorf("%s: %v", path, w)
	}
	m, err := analysis.ReadMapping(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// identify finds the leaks of a build by their source names.
func (b *build) identify(t *testing.T, known []jvmtest.Leak) {
	r := b.analyze(t, b.mapping, b.Leaking...)
	checkNoWarning(t, r)
	b.keys = byKey(t, r.Leaks, known, b.Iterations)
	b.texts, b.fingerprints = map[string][]string{}, map[string][]string{}
	for i := range r.Leaks {
		l := &r.Leaks[i]
		if trace.KeyOf(strings.Join(l.KeyText, "\n")+"\n") != l.Key {
			t.Errorf("%s: the key does not match the key text %q", l.Class, l.KeyText)
		}
		b.texts[l.Class] = l.KeyText
		b.fingerprints[l.Class] = append(b.fingerprints[l.Class], l.Fingerprint)
	}
	for _, list := range b.fingerprints {
		slices.Sort(list)
	}
}

// compareFingerprints counts how often Shark's fingerprints differ from those
// of the first build. The fingerprints are equal if no build changes the path
// or a name on the path.
func compareFingerprints(t *testing.T, builds []*build) {
	changed := map[string]int{}
	for _, b := range builds[1:] {
		for class, list := range b.fingerprints {
			if !slices.Equal(slices.Compact(slices.Clone(list)),
				slices.Compact(slices.Clone(builds[0].fingerprints[class]))) {
				changed[class]++
			}
		}
	}
	for _, class := range slices.SortedFunc(maps.Keys(changed),
		func(a, b string) int { return cmp.Or(changed[b]-changed[a], strings.Compare(a, b)) }) {
		t.Logf("Shark's fingerprint of %s differs in %d of %d builds", class, changed[class], len(builds)-1)
	}
	// The JVM puts the address of a lambda class into its name.
	for class, want := range map[string]bool{
		"CartScreen": true, "SettingsScreen": true, "ProductScreen": false, "DraftScreen": false,
	} {
		if got := changed["com.example.mall."+class] > 0; got != want {
			t.Errorf("%s: fingerprint changes: got %t, want %t", class, got, want)
		}
	}
}

// checkNameWarning checks that there is exactly one warning about names and
// that it contains the given words.
func (b *build) checkNameWarning(t *testing.T, m *analysis.Mapping, words ...string) {
	t.Helper()
	r, err := analysis.Lookup(t.Context(), bytes.NewReader(b.data), int64(len(b.data)), nil, "", nil,
		analysis.Options{Mapping: m})
	if err != nil {
		t.Fatal(err)
	}
	found := slices.DeleteFunc(r.Warnings, func(w string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(w, word) })
	})
	if len(found) != 1 {
		t.Errorf("%s: warnings %s", b.Name, fmt.Sprint(r.Warnings))
	}
}
