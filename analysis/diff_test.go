package analysis

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// many is larger than the number of entries in the diff of any test.
const many = 1 << 20

func summarized(t testing.TB, file []byte) *Summary {
	t.Helper()
	s, err := Summarize(t.Context(), bytes.NewReader(file), int64(len(file)), Options{SizeModel: "ahat"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// checkDiff checks the properties that the diff of any two dumps must have.
func checkDiff(t *testing.T, base, head *Summary) *Diff {
	t.Helper()
	d := Compare(base, head, many)
	checkTotals(t, d)
	checkMirror(t, d, Compare(head, base, many))
	for _, s := range []*Summary{base, head} {
		checkEqual(t, Compare(s, s, many))
	}
	return d
}

// checkTotals checks that the changes of all classes add up to the totals.
func checkTotals(t *testing.T, d *Diff) {
	t.Helper()
	var shallow, instances int64
	for _, c := range d.Classes {
		shallow += c.ShallowBytes.Delta
		instances += c.Instances.Delta
		if c.Status == statusKnown {
			t.Errorf("unchanged class is listed: %+v", c)
		}
	}
	if shallow != d.ShallowBytes.Delta || instances != d.Objects.Delta || d.ClassesChanged != len(d.Classes) {
		t.Errorf("classes add up to %d bytes and %d objects; the totals are %+v and %+v", shallow, instances,
			d.ShallowBytes, d.Objects)
	}
	for _, list := range [][]PathChange{d.Growth, d.Shrinkage} {
		for _, p := range list {
			if len(p.Steps) == 0 || p.Steps[len(p.Steps)-1].RetainedBytes != p.Change {
				t.Errorf("%+v", p)
			}
		}
	}
}

// checkEqual checks a diff of a dump with itself, in which nothing changed.
func checkEqual(t *testing.T, d *Diff) {
	t.Helper()
	changed := slices.ContainsFunc(d.Leaks,
		func(l LeakChange) bool { return l.Status != statusKnown || l.RetainedBytes.Delta != 0 })
	zero := d.Objects.Delta == 0 && d.ShallowBytes.Delta == 0 && d.ReachableBytes.Delta == 0 &&
		d.ReachableNative.Delta == 0
	if len(d.Classes)+len(d.Growth)+len(d.Shrinkage) != 0 || changed || !zero || !d.Comparable {
		t.Errorf("a dump differs from itself: %+v", d)
	}
}

// checkMirror checks that two diffs are the reverse of each other.
func checkMirror(t *testing.T, d, m *Diff) {
	t.Helper()
	turned := map[string]string{
		statusNew: statusGone, statusGone: statusNew, statusGrown: statusShrunk, statusShrunk: statusGrown,
		statusMoved: statusMoved, statusKnown: statusKnown, statusUnpaired: statusUnpaired,
	}
	turn := func(c *Change) { *c = Change{c.Head, c.Base, -c.Delta} }
	for _, c := range []*Change{&m.Objects, &m.ShallowBytes, &m.ReachableBytes, &m.ReachableNative} {
		turn(c)
	}
	for i := range m.Classes {
		c := &m.Classes[i]
		c.Status = turned[c.Status]
		for _, x := range []*Change{&c.Instances, &c.ShallowBytes, &c.RetainedBytes, &c.RetainedNative} {
			turn(x)
		}
	}
	for _, list := range [][]PathChange{m.Growth, m.Shrinkage} {
		for i := range list {
			turn(&list[i].Change)
			for _, s := range [][]PathStep{list[i].Steps, list[i].Below} {
				for j := range s {
					turn(&s[j].Objects)
					turn(&s[j].RetainedBytes)
				}
			}
		}
	}
	m.Growth, m.Shrinkage = m.Shrinkage, m.Growth
	for i := range m.Leaks {
		l := &m.Leaks[i]
		l.Status, l.BaseFingerprints, l.HeadFingerprints = turned[l.Status], l.HeadFingerprints, l.BaseFingerprints
		if l.Status == statusMoved {
			l.Key, l.MovedFrom, l.KeyText, l.BaseKeyText = l.MovedFrom, l.Key, l.BaseKeyText, l.KeyText
		}
		for _, x := range []*Change{&l.Instances, &l.RetainedBytes, &l.RetainedNative} {
			turn(x)
		}
		for j := range l.Classes {
			turn(&l.Classes[j].Instances)
		}
	}
	for _, list := range [][]LeakChange{d.Leaks, m.Leaks} {
		for i := range list {
			slices.SortFunc(list[i].Classes, func(a, b LeakClassChange) int { return cmp.Compare(a.Class, b.Class) })
		}
	}
	byKey := func(a, b LeakChange) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Instances.Base, b.Instances.Base))
	}
	leaks := slices.Clone(d.Leaks)
	slices.SortFunc(leaks, byKey)
	slices.SortFunc(m.Leaks, byKey)
	for name, pair := range map[string][2]any{
		"totals": {
			[]Change{d.Objects, d.ShallowBytes, d.ReachableBytes, d.ReachableNative},
			[]Change{m.Objects, m.ShallowBytes, m.ReachableBytes, m.ReachableNative},
		},
		"classes": {d.Classes, m.Classes}, "growth": {d.Growth, m.Growth}, "shrinkage": {d.Shrinkage, m.Shrinkage},
		"leaks": {leaks, m.Leaks},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: the reversed comparison is different:\n%+v\n%+v", name, pair[0], pair[1])
		}
	}
}

// TestDiffOfRecordedDumps compares each recorded dump with every other one.
func TestDiffOfRecordedDumps(t *testing.T) {
	var all []*Summary
	for _, file := range []string{
		"ahat-O.hprof", "ahat-RI.hprof", "leak_service_binder.hprof", "hprof-32.bin", "hprof-64.bin",
		"pyhprof-example-java.hprof",
	} {
		all = append(all, summarized(t, recorded.Read(t, "hprof", file)))
	}
	for i, base := range all {
		for j, head := range all {
			d := checkDiff(t, base, head)
			same := base.dump.IDSize == head.dump.IDSize && (base.dump.Android == nil) == (head.dump.Android == nil)
			if obfuscated := base.dump.Names.unknown() ||
				head.dump.Names.unknown(); d.Comparable != (same && !obfuscated || i == j) {
				t.Errorf("%d and %d: comparable %t: %q", i, j, d.Comparable, d.Mismatches)
			}
		}
	}
}

// randomHeap returns a dump of random objects that is small enough to be
// counted by brute force.
func randomHeap(t testing.TB, seed uint64) []byte {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 21))
	h := hproftest.Java(1)
	var classes []*hproftest.Class
	for i := range 4 {
		classes = append(classes, h.Declare(fmt.Sprintf("com.shop.C%d", i), nil, "object a", "object b"))
	}
	// A lambda has a different number in each dump.
	classes = append(classes, h.Declare(fmt.Sprintf("com.shop.Job$$Lambda$%d", 10+seed), nil, "object a", "object b"))
	objects := make([]hproftest.Ref, 1, 80)
	for range 20 + r.IntN(40) {
		switch r.IntN(5) {
		case 0:
			objects = append(objects, h.Padding(uint32(r.IntN(500))))
		case 1:
			objects = append(objects, h.ArrayList(objects[r.IntN(len(objects))], objects[r.IntN(len(objects))]).Ref)
		default:
			objects = append(objects,
				h.New(classes[r.IntN(len(classes))],
					hproftest.Fields{
						"a": objects[max(len(objects)-1-r.IntN(3), 0)], "b": objects[r.IntN(len(objects))],
					}))
		}
	}
	h.Hold("com.shop.Holder", "sAll", objects[len(objects)-1])
	for range r.IntN(6) {
		if o := objects[r.IntN(len(objects))]; o != 0 {
			h.Root(hprof.SubRootJNIGlobal, o)
		}
	}
	dump, _, err := h.Dump(hproftest.Form{Runtime: hproftest.HotSpot})
	if err != nil {
		t.Fatal(err)
	}
	return dump
}

// counted holds the classes and the paths of a small dump, counted by brute
// force.
type counted struct {
	classes map[string]classSum
	// ways holds the merged paths down the dominator tree, as names joined by
	// ">".
	ways map[string]Change
}

// name returns the name of an object's class on a path. Lambdas that differ
// only in their number get the same name.
func name(n *hproftest.Node) string {
	text := heap.NormalName(n.Class)
	if n.Kind == hprof.SubClassDump {
		text = "class " + text
	}
	return unnumbered(text)
}

func unnumbered(name string) string {
	if before, _, ok := strings.Cut(name, "$$Lambda$"); ok {
		return before + "$$Lambda"
	}
	return name
}

func countByHand(t testing.TB, dump []byte) counted {
	t.Helper()
	g, err := hproftest.ReadGraph(dump)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range g.Nodes {
		// In a HotSpot dump, no field references the class of an object, and
		// ahat does not count the class as referenced by its instances.
		if n.Kind != hprof.SubClassDump {
			delete(n.Refs, "<class>")
		}
	}
	there := g.Reachable()
	lost := map[hprof.ID]map[hprof.ID]bool{}
	for id := range there {
		left := g.Reachable(id)
		lost[id] = map[hprof.ID]bool{}
		for other := range there {
			if !left[other] {
				lost[id][other] = true
			}
		}
	}
	c := counted{map[string]classSum{}, map[string]Change{}}
	unions := map[string]map[hprof.ID]bool{}
	for id, n := range g.Nodes {
		class := name(n)
		if n.Kind == hprof.SubClassDump {
			class = "java.lang.Class"
		}
		sum := c.classes[class]
		sum.add(classSum{instances: 1, shallow: n.Size})
		c.classes[class] = sum
		if unions[class] == nil {
			unions[class] = map[hprof.ID]bool{}
		}
		maps.Copy(unions[class], lost[id])
	}
	for class, ids := range unions {
		sum := c.classes[class]
		for id := range ids {
			sum.retained.Java += g.Nodes[id].Size
		}
		c.classes[class] = sum
	}
	for id := range there {
		c.addToPath(g, id, lost)
	}
	return c
}

// addToPath adds an object to its path. The path consists of the objects whose
// removal would free the object, starting with the one that would free the
// most.
func (c *counted) addToPath(g *hproftest.Graph, id hprof.ID, lost map[hprof.ID]map[hprof.ID]bool) {
	var above []hprof.ID
	for other := range lost {
		if lost[other][id] {
			above = append(above, other)
		}
	}
	slices.SortFunc(above, func(a, b hprof.ID) int { return cmp.Compare(len(lost[b]), len(lost[a])) })
	way, last := "", ""
	for _, o := range above {
		if n := name(g.Nodes[o]); n != last {
			way, last = way+">"+n, n
		}
	}
	w := c.ways[way]
	w.Base++
	if len(above) < 2 || name(g.Nodes[above[len(above)-2]]) != last {
		for o := range lost[id] {
			w.Head += g.Nodes[o].Size
		}
	}
	c.ways[way] = w
}

// TestDiffByBruteForce compares the changes of each class, and of each step of
// each path, with those of a second implementation on random graphs.
func TestDiffByBruteForce(t *testing.T) {
	paths := 0
	for seed := range uint64(60) {
		files := [2][]byte{randomHeap(t, 2*seed), randomHeap(t, 2*seed+1)}
		base, head := countByHand(t, files[0]), countByHand(t, files[1])
		d := checkDiff(t, summarized(t, files[0]), summarized(t, files[1]))
		got := map[string]classSum{}
		for _, c := range d.Classes {
			sum := classSum{instances: c.Instances.Delta, shallow: c.ShallowBytes.Delta}
			sum.retained.Java = c.RetainedBytes.Delta
			got[unnumbered(c.Class)] = sum
		}
		want := map[string]classSum{}
		for class := range names(base.classes, head.classes) {
			b, h := base.classes[class], head.classes[class]
			sum := classSum{instances: h.instances - b.instances, shallow: h.shallow - b.shallow}
			sum.retained.Java = h.retained.Java - b.retained.Java
			if sum != (classSum{}) {
				want[class] = sum
			}
		}
		if !maps.Equal(got, want) {
			t.Fatalf("seed %d: classes\n got %v\nwant %v", seed, got, want)
		}
		paths += len(d.Growth) + len(d.Shrinkage)
		for _, p := range append(d.Growth, d.Shrinkage...) {
			checkPath(t, p, &base, &head)
		}
		checkMostGrown(t, d, &base, &head)
	}
	if paths < 100 {
		t.Errorf("%d paths", paths)
	}
}

func names[V any](a, b map[string]V) map[string]bool {
	all := map[string]bool{}
	for name := range a {
		all[name] = true
	}
	for name := range b {
		all[name] = true
	}
	return all
}

func checkPath(t *testing.T, p PathChange, base, head *counted) {
	t.Helper()
	way := ""
	check := func(way string, s PathStep) {
		b, h := base.ways[way], head.ways[way]
		if want := (PathStep{s.Class, change(b.Base, h.Base), change(b.Head, h.Head)}); s != want {
			t.Errorf("%s: %+v, want %+v", way, s, want)
		}
	}
	for _, s := range p.Steps {
		way += ">" + unnumbered(s.Class)
		check(way, s)
	}
	for _, s := range p.Below {
		check(way+">"+unnumbered(s.Class), s)
	}
}

// checkMostGrown checks that the largest growth is on a reported path. A diff
// may report no growth if the largest growth is less than 2*noise bytes.
func checkMostGrown(t *testing.T, d *Diff, base, head *counted) {
	t.Helper()
	most := int64(0)
	for way := range names(base.ways, head.ways) {
		// The growth may be spread over many small parts.
		most = max(most, head.ways[way].Head-base.ways[way].Head)
	}
	told := int64(0)
	for _, p := range d.Growth {
		for _, s := range p.Steps {
			told = max(told, s.RetainedBytes.Delta)
		}
	}
	if told != most && (told != 0 || most >= 2*noise) {
		t.Errorf("largest reported growth is %d bytes, want %d", told, most)
	}
}

// TestDiffPaths checks the paths that are found in given trees.
func TestDiffPaths(t *testing.T) {
	// Each line is a step, indented by its depth: its class, objects and bytes.
	tree := func(text string) classTree {
		nodes := []heap.ClassNode{{Parent: -1}}
		above := []int{0}
		for line := range strings.Lines(text) {
			n := heap.ClassNode{}
			name := strings.TrimLeft(line, " ")
			if _, err := fmt.Sscanf(name, "%s %d %d", &n.Class, &n.Count, &n.Size.Java); err != nil {
				t.Fatal(err)
			}
			depth := len(line) - len(name)
			n.Parent = above[depth]
			above = append(above[:depth+1], len(nodes))
			nodes = append(nodes, n)
		}
		return newClassTree(nodes, 1)
	}
	tests := []struct{ name, base, head, want string }{
		{"one path", "A 1 100\n B 1 90\n  C 1 80\n", "A 1 300\n B 1 290\n  C 3 280\n", "A>B>C +200 of 1"},
		{"growth spread over many objects", "A 1 100\n B 1 30\n", "A 1 300\n B 1 45\n", "A +200 of 1, B"},
		{"two paths", "A 1 100\nB 1 100\n", "A 1 300\nB 1 200\n", "A +200 of 1; B +100 of 1"},
		{"half of the growth deeper", "A 1 100\n B 1 50\n", "A 1 300\n B 1 150\n", "A +200 of 1, B; A>B +100 of 1"},
		{"growth and shrinkage", "A 1 300\n B 1 100\n", "A 1 300\n C 1 100\n", "A>C +100 of 0"},
		{
			"renumbered lambda", "A 1 100\n X$$Lambda$1 1 100\n", "A 1 200\n X$$Lambda$2 2 200\n",
			"A>X$$Lambda +100 of 1",
		},
		{
			"several lambdas, one gone", "X$$Lambda$1 1 100\n Y 1 90\nX$$Lambda$2 1 100\n",
			"X$$Lambda$3 1 300\n Y 2 280\n", "X$$Lambda>Y +190 of 1",
		},
		{"noise", "A 1 100\n", "A 1 109\n", ""},
		{"less", "A 1 100\n", "A 1 50\n", ""},
	}
	for _, test := range tests {
		base, head := tree(test.base), tree(test.head)
		var got []string
		for _, p := range (&trees{base: &base, head: &head}).paths(1, many) {
			var way []string
			for _, s := range p.Steps {
				way = append(way, s.Class)
			}
			line := fmt.Sprintf("%s %+d of %d", strings.Join(way, ">"), p.Delta, p.Steps[len(way)-1].Objects.Base)
			for _, s := range p.Below {
				line += ", " + s.Class
			}
			got = append(got, line)
		}
		if text := strings.Join(got, "; "); text != test.want {
			t.Errorf("%s: got %q, want %q", test.name, text, test.want)
		}
	}
}

func TestPairs(t *testing.T) {
	got := pairs([]string{"A", "B", "C$1", "D$1", "D$2", "E$7"}, []string{"B", "A", "C$2", "C$3", "D$1", "F$1", "F$2"})
	want := []pair{
		{"A", []string{"A"}, []string{"A"}}, {"B", []string{"B"}, []string{"B"}},
		{"C$#", []string{"C$1"}, []string{"C$2", "C$3"}},
		{"D$1", []string{"D$1"}, []string{"D$1"}}, {"D$2", []string{"D$2"}, nil}, {"E$7", []string{"E$7"}, nil},
		{"F$1", nil, []string{"F$1"}}, {"F$2", nil, []string{"F$2"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestDiffOfApp checks the typical result for an app with a list of sessions
// that has grown.
func TestDiffOfApp(t *testing.T) {
	app := func(n int, android bool) *Summary {
		h := hproftest.Android(hproftest.Phone{SDK: 34})
		next := session(h)
		list := h.ArrayList()
		for range n {
			list.Add(next())
		}
		h.Hold("com.shop.Sessions", "sAll", list.Ref)
		for i := range n / 100 {
			h.Hold("com.shop.Leaks", fmt.Sprint("s", i), h.Activity("com.shop.MainActivity", hproftest.Destroyed).Ref)
		}
		form := hproftest.Form{}
		if !android {
			form.IDSize = 8
		}
		file, _, err := h.Dump(form)
		if err != nil {
			t.Fatal(err)
		}
		return summarized(t, file)
	}
	d := checkDiff(t, app(100, true), app(400, true))
	if len(d.Growth) == 0 {
		t.Fatalf("no growth in %+v", d)
	}
	var way []string
	for _, s := range d.Growth[0].Steps {
		way = append(way, s.Class)
	}
	last := d.Growth[0].Steps[len(way)-1]
	if !slices.Contains(way, "class com.shop.Sessions") || last.Objects != change(100, 400) ||
		last.RetainedBytes.Delta < 300*500 {
		t.Errorf("%q: %+v", way, last)
	}
	text, err := json.Marshal(d)
	if err != nil || !bytes.Contains(text, []byte(`"schema":"leakgate.diff/1"`)) ||
		bytes.Contains(text, []byte("null")) {
		t.Errorf("%v: %s", err, text)
	}
	if d := Compare(app(100, true), app(100, false), 0); d.Comparable || len(d.Classes)+len(d.Growth) != 0 ||
		!strings.Contains(d.Mismatches[0], "4-byte IDs") {
		t.Errorf("%+v", d)
	}
}

// An incomplete dump may lack the data that identifies it as a dump of Android;
// this does not count as a difference.
func TestDiffOfIncompleteDumps(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{SDK: 34})
	file, _, err := h.Dump(hproftest.Form{})
	if err != nil {
		t.Fatal(err)
	}
	head := headOf(t, file)
	for _, d := range []*Diff{
		Compare(summarized(t, file), summarized(t, head), 0), Compare(summarized(t, head), summarized(t, file), 0),
	} {
		if !d.Comparable || len(d.Mismatches) > 0 ||
			!strings.HasPrefix(d.Warnings[0], "one dump is complete and the other is not") {
			t.Errorf("%q, %q", d.Mismatches, d.Warnings)
		}
	}
	jvm := Compare(summarized(t, file),
		summarized(t, grownHeap(t, 9, hproftest.Form{Runtime: hproftest.HotSpot, IDSize: 4})), 0)
	if jvm.Comparable || len(jvm.Mismatches) != 1 || !strings.Contains(jvm.Mismatches[0], "the other from a JVM") {
		t.Errorf("%q", jvm.Mismatches)
	}
}

// A fact about the apps is compared only if both dumps contain it.
func TestDiffWarnings(t *testing.T) {
	of := func(sdk int, app string) *Dump {
		return &Dump{Android: &android.Metadata{SDK: int64(sdk), Package: app}}
	}
	const versions,
		apps = "the dumps are from different versions of Android, SDK 30 and 34: the platform's own objects differ",
		"the dumps are from different apps, a and b"
	for _, c := range []struct {
		base, head *Dump
		want       []string
	}{
		{of(30, "a"), of(30, "a"), []string{}},
		{of(30, "a"), of(34, "b"), []string{versions, apps}},
		{of(30, "a"), of(34, ""), []string{versions}},
		{of(30, "a"), of(0, "b"), []string{apps}},
		{of(0, ""), of(34, "b"), []string{}},
		{of(30, "a"), &Dump{}, []string{}},
	} {
		if got := commonWarnings(c.base, c.head); !slices.Equal(got, c.want) {
			t.Errorf("%+v and %+v: %q, want %q", c.base.Android, c.head.Android, got, c.want)
		}
	}
}

func TestDiffLeaks(t *testing.T) {
	base := sumLeaks([]Leak{
		{Key: "k1", Fingerprint: "f1", Class: "A", Instances: 1, RetainedBytes: 100},
		{Key: "k2", Fingerprint: "f2", Class: "A", Instances: 2, RetainedBytes: 100},
		{Key: "k2", Fingerprint: "f3", Class: "A", Instances: 1, RetainedBytes: 50},
		{Key: "k3", Fingerprint: "f4", Class: "B", Instances: 1, RetainedBytes: 70},
		{Key: "k4", Fingerprint: "f5", Class: "C", Instances: 1, RetainedBytes: 10, Library: true},
		{Key: "k5", Fingerprint: "f6", Class: "D", Instances: 3, RetainedBytes: 10},
		{Key: "k6", Fingerprint: "f7", Class: "E", Instances: 1, RetainedBytes: 10},
		{Key: "k7", Fingerprint: "f10", Class: "G", Instances: 1, RetainedBytes: 60},
	})
	head := sumLeaks([]Leak{
		{Key: "k1", Fingerprint: "f1", Class: "A", Instances: 1, RetainedBytes: 100},
		{Key: "k2", Fingerprint: "f8", Class: "A", Instances: 4, RetainedBytes: 150},
		{Key: "k3b", Fingerprint: "f4", Class: "B", Instances: 1, RetainedBytes: 70},
		{Key: "k5", Fingerprint: "f6", Class: "D", Instances: 2, RetainedBytes: 20},
		{Key: "k6", Fingerprint: "f7", Class: "E", Instances: 1, RetainedBytes: 9},
		{Key: "k7b", Fingerprint: "f10", Class: "G", Instances: 30, RetainedBytes: 600},
		{Fingerprint: "f9", Class: "F", Instances: 1, RetainedBytes: 1000},
	})
	var got []string
	for _, c := range compareLeaks(base, head, loadedClasses{}) {
		got = append(got,
			fmt.Sprint(c.Key, " ", c.Status, " ", c.RetainedBytes.Delta, " ", c.Instances.Delta, " ",
				c.BaseFingerprints, c.HeadFingerprints, c.SameFingerprint, c.MovedFrom))
	}
	want := []string{
		"f9 new 1000 1 [] [f9]", "k7b new 600 30 [] [f10]k7", "k5 grown 10 -1 [f6] [f6]", "k2 grown 0 1 [f2 f3] [f8]",
		"k3b moved 0 0 [f4] [f4]k3", "k6 shrunk -1 0 [f7] [f7]",
		"k7 gone -60 -1 [f10] []k7b", "k1 known 0 0 [f1] [f1]", "k4 gone -10 -1 [f5] []",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
