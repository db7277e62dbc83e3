package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// As a user would, the test requests each object for which AOSP's ahat computed
// values, and compares these values.
func TestObjectsAgainstAhat(t *testing.T) {
	tables, err := filepath.Glob(filepath.Join(recorded.Path(t, "hprof"), "oracle-ahat-*.tsv"))
	if err != nil || len(tables) < 5 {
		t.Fatalf("got %d files with expected values, want at least 5: %v", len(tables), err)
	}
	for _, table := range tables {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(table), "oracle-ahat-"), ".tsv")
		file := name + ".hprof"
		if name == "hprof-64" {
			file = name + ".bin"
		}
		// id, class, kind, heap, shallow_java, native, retained_total,
		// reachability, idom, roots
		var rows [][]string
		var ids []string
		for line := range strings.Lines(string(recorded.Read(t, "hprof", filepath.Base(table)))) {
			if c := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); strings.HasPrefix(c[0], "0x") {
				rows, ids = append(rows, c), append(ids, c[0])
			}
		}
		list := lookedUp(t, append([]string{recorded.Path(t, "hprof", file), "--size-model", "ahat"}, ids...)...)
		if len(list.Objects) != len(rows) || len(rows) < 1000 {
			t.Fatalf("%s: %d of %d objects", name, len(list.Objects), len(rows))
		}
		for i, c := range rows {
			if got, want := asRow(&list.Objects[i], c[3]), expectedRow(c); got != want {
				t.Errorf("%s\n got %s\nwant %s", name, got, want)
			}
		}
	}
}

func asRow(o *analysis.Object, heap string) string {
	if heap != "default" {
		heap = o.Heap
	}
	return fmt.Sprint(o.Object, " ", o.Class, " ", heap, " ", o.ShallowBytes, " ", o.NativeBytes, " ", o.RetainedBytes,
		" ", o.Reachability, " ", o.Reachable, " ", o.Dominator)
}

// expectedRow returns the expected values of one object. By our definition, an
// object that is not reachable retains nothing.
func expectedRow(c []string) string {
	class, retained, dominator, reachable := c[1], c[6], strings.TrimPrefix(c[8], "-"), c[7] == "strong" ||
		c[7] == "soft"
	if c[2] == "class" {
		class = "class " + class
	}
	if !reachable {
		retained = "0"
	}
	return strings.Join([]string{
		c[0], class, c[3], c[4], c[5], retained, c[7], strconv.FormatBool(reachable), dominator,
	}, " ")
}

func TestObjectsKeys(t *testing.T) {
	var list map[string]any
	answered(t, &list, "objects", "--json", recorded.Path(t, "hprof", "hprof-32.bin"), "0x5000002d")
	checkKeys(t, list, "", map[string]string{"schema": "string", "objects": "array", "warnings": "array"})
	if list["schema"] != "leakgate.objects/1" {
		t.Errorf("schema %v", list["schema"])
	}
	for _, o := range list["objects"].([]any) {
		checkKeys(t, o, "objects[].", map[string]string{
			"object": "string", "class": "string", "heap": "string", "shallow_bytes": "number",
			"native_bytes": "number", "retained_bytes": "number", "reachable": "bool", "dominator": "string",
		})
	}
}

// MAT's DominatorTreeTest states what the object R dominates, and what it
// retains.
func TestObjectsOfMATsDominatorTest(t *testing.T) {
	const prefix = "org.eclipse.mat.tests.CreateSampleDump$DominatorTestData$"
	graph, err := hproftest.ReadGraph(recorded.Read(t, "hprof", "mat-sun_jdk6_32bit.hprof"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	var ids []string
	for _, n := range graph.Nodes {
		if name, ok := strings.CutPrefix(strings.ReplaceAll(n.Class, "/", "."), prefix); ok &&
			n.Kind == hprof.SubInstance {
			names[analysis.Hex(n.ID)] = name
			ids = append(ids, analysis.Hex(n.ID))
		}
	}
	list := lookedUp(t, append([]string{recorded.Path(t, "hprof", "mat-sun_jdk6_32bit.hprof")}, ids...)...)
	below := map[string][]string{}
	shallow := int64(0)
	for _, o := range list.Objects {
		below[names[o.Dominator]] = append(below[names[o.Dominator]], names[o.Object])
		shallow += o.ShallowBytes
		if names[o.Object] == "R" && (o.Object != "0x22e5cd28" || o.RetainedBytes != 84) {
			t.Errorf("R is %+v", o)
		}
	}
	if len(list.Objects) != 13 || shallow != 84 {
		t.Errorf("got %d objects with %d bytes, want 13 with 84", len(list.Objects), shallow)
	}
	for name, want := range map[string]string{
		"R": "ABCDEHIK", "C": "FG", "D": "L", "G": "J", "A": "", "B": "", "L": "",
	} {
		slices.Sort(below[name])
		if got := strings.Join(below[name], ""); got != want {
			t.Errorf("%s dominates %s, want %s", name, got, want)
		}
	}
}

// The MANIFEST states these values for single objects: the size that they
// retain, how much of this size is native memory, and what dominates them.
func TestObjectsOfTheManifest(t *testing.T) {
	type fact struct {
		object           string
		retained, native int64
		reachability     string
		dominator        string
	}
	for file, facts := range map[string][]fact{
		"ahat-O.hprof": {
			{"0x12c04d58", 50008, 50000, "strong", "0x12c04c28"},
			{"0x12c04fb8", 8, 0, "soft", "0x12c04f98"},
			{"0x12c052a0", 16, 0, "strong", "0x12c05280"},
			{"0x12c93ca0", 120000, 0, "strong", "0x12c04c28"},
			{"0x12c93cb0", 120000, 0, "strong", "0x12c04c28"},
		},
		"leak_service_binder.hprof": {
			{"0xb0fa7cb0", 378, 0, "strong", "0xb0fa7de0"},
			{"0xb0f83300", 378, 0, "strong", "0xb0f838c0"},
		},
	} {
		args := []string{recorded.Path(t, "hprof", file)}
		for _, f := range facts {
			args = append(args, f.object)
		}
		for i, o := range lookedUp(t, args...).Objects {
			if got := (fact{
				o.Object, o.RetainedBytes, o.RetainedNative, o.Reachability, o.Dominator,
			}); got != facts[i] {
				t.Errorf("%+v, want %+v", got, facts[i])
			}
		}
	}
}

// For each object, the tree in the output of analyze agrees with the output of
// `leakgate objects`. The tree contains the children that retain the most
// bytes, and the total bytes of the other children.
func TestTreeAgreesWithObjects(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{SDK: 34})
	var pictures []hproftest.Ref
	for i := range 200 {
		pictures = append(pictures, h.Bitmap(hproftest.Picture{Width: 100 + i, Height: 100, Content: uint64(i % 50)}))
	}
	h.Hold("com.shop.Gallery", "all", h.ArrayList(pictures...).Ref)
	object := h.Class("java.lang.Object")
	h.Hold("com.shop.Names", "all",
		h.Objects(object, h.String("a"), h.Ints(1, 2, 3), h.Bytes(nil),
			h.Objects(object, h.Longs(1, 2), h.Longs(), h.Integer(5000))))
	native, _, err := h.Dump(hproftest.Form{})
	if err != nil {
		t.Fatal(err)
	}
	for name, dump := range map[string][]byte{
		"made": native, "jdk6": recorded.Read(t, "hprof", "mat-sun_jdk6_32bit.hprof"),
		"binder": recorded.Read(t, "hprof", "leak_service_binder.hprof"),
	} {
		t.Run(name, func(t *testing.T) {
			_, records, err := hproftest.Parse(dump)
			if err != nil {
				t.Fatal(err)
			}
			path := dumpFile(t, dump)
			var ids []string
			for _, r := range records {
				if r.Sub != 0 && !r.Sub.IsRoot() {
					if id := max(r.Object, r.Dump.ID); id != 0 {
						ids = append(ids, analysis.Hex(id))
					}
				}
			}
			below := map[string][]analysis.Object{}
			// A command line has a maximum length.
			for some := range slices.Chunk(ids, 20_000) {
				for _, o := range lookedUp(t, append([]string{path}, some...)...).Objects {
					if o.Reachable {
						below[o.Dominator] = append(below[o.Dominator], o)
					}
				}
			}
			for _, list := range below {
				slices.SortFunc(list, func(a, b analysis.Object) int {
					return cmp.Or(cmp.Compare(b.RetainedBytes, a.RetainedBytes),
						cmp.Compare(len(a.Object), len(b.Object)), cmp.Compare(a.Object, b.Object))
				})
			}
			r := analyzed(t, path, "--top", "50")
			// The app heap comes first where the dump distinguishes heaps.
			if !slices.ContainsFunc(r.Dump.Heaps, func(h analysis.Heap) bool { return h.Name == "app" }) {
				checkBranch(t, below, below[""][:50], r.Dominators)
			}
			for _, d := range r.Dominators {
				checkBelow(t, below, &d, max(d.RetainedBytes/20, 1), 6)
			}
		})
	}
}

func checkBelow(t *testing.T, below map[string][]analysis.Object, d *analysis.Dominator, least int64, levels int) {
	t.Helper()
	if levels == 0 {
		if d.Children != nil || d.Omitted != 0 || d.OmittedBytes != 0 {
			t.Errorf("the last level has children: %+v", d)
		}
		return
	}
	all := below[d.Object]
	n := 0
	rest := d.RetainedBytes - d.ShallowBytes
	for n < min(len(all), 5) && all[n].RetainedBytes >= least {
		rest -= all[n].RetainedBytes
		n++
	}
	checkBranch(t, below, all[:n], d.Children)
	// Registered native memory is attributed to the object for which it is
	// registered.
	for _, o := range all[n:] {
		rest -= o.RetainedBytes
	}
	if native := d.RetainedNative; rest < 0 || rest > native {
		t.Errorf("%s: %d bytes do not belong to any child, want 0 to %d, the native memory", d.Object, rest, native)
	}
	sum := int64(0)
	for _, o := range all[n:] {
		sum += o.RetainedBytes
	}
	if d.OmittedBytes != sum || d.Omitted > int64(len(all)-n) || d.Omitted == 0 && sum >= least {
		t.Errorf("%s: %d children with %d bytes omitted, want %d with %d", d.Object, d.Omitted, d.OmittedBytes,
			len(all)-n, sum)
	}
	for i := range d.Children {
		checkBelow(t, below, &d.Children[i], least, levels-1)
	}
}

func checkBranch(t *testing.T, below map[string][]analysis.Object, want []analysis.Object, got []analysis.Dominator) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("got %d dominators, want %d: %+v\n%+v", len(got), len(want), got, want)
		return
	}
	for i, d := range got {
		if o := want[i]; d.Object != o.Object || d.Class != o.Class || d.ShallowBytes != o.ShallowBytes ||
			d.RetainedBytes != o.RetainedBytes || d.RetainedNative != o.RetainedNative {
			t.Errorf("%+v\nwant %+v", d, o)
		}
	}
}

// IDs may be in upper or lower case, with or without 0x; the output is in the
// order of the request.
func TestObjectsIDs(t *testing.T) {
	path := recorded.Path(t, "hprof", "leak_service_binder.hprof")
	list := lookedUp(t, path, "0XB0F5C788", "b0fa7cb0", "0x00000000b0f5c788", "0x1", "0x0")
	var got []string
	for _, o := range list.Objects {
		got = append(got, o.Object)
	}
	if !slices.Equal(got, []string{"0xb0f5c788", "0xb0fa7cb0", "0xb0f5c788"}) ||
		!slices.Equal(list.Warnings,
			[]string{"there is no object 0x1 in the dump", "there is no object 0x0 in the dump"}) {
		t.Errorf("%q, %q", got, list.Warnings)
	}
	// Some programs print IDs in decimal.
	list = lookedUp(t, path, "2968897416", "0xb0f5c788", "1")
	if want := []string{
		"there is no object 0x2968897416 in the dump", "there is no object 0x1 in the dump",
		"IDs are hexadecimal; decimal 2968897416 is 0xb0f5c788",
	}; !slices.Equal(list.Warnings, want) {
		t.Errorf("%q, want %q", list.Warnings, want)
	}
	// None of these IDs exists: nothing is printed.
	refused(t, exitUsage, []string{"objects", "--json", path, "0x1"}, "there is no object 0x1 in the dump")
	refused(t, exitUsage, []string{"objects", path, "2968897416", "0x1"}, "no object 0x2968897416", "no object 0x1",
		"decimal 2968897416 is 0xb0f5c788")
}

func TestObjectsRejectsWrongUse(t *testing.T) {
	path := recorded.Path(t, "hprof", "hprof-32.bin")
	for _, c := range []struct {
		args  []string
		words []string
	}{
		{nil, []string{"want a heap dump and object IDs", "0x12c04948", "Usage: leakgate objects"}},
		{[]string{path}, []string{"want a heap dump and object IDs"}},
		{[]string{path, "java.lang.String"}, []string{`"java.lang.String" is not an object ID`, "0x12c04948"}},
		{[]string{path, "0x"}, []string{"is not an object ID"}},
		{[]string{path, "0x10000000000000000"}, []string{"is not an object ID"}},
		{[]string{path, "0x1\x1b[2J"}, []string{`0x1?[2J`, "is not an object ID"}},
		{[]string{path, "0x1", "--top", "3"}, []string{"--top limits the number of objects of a class", "--class"}},
		{[]string{path, "--where", "a=b"}, []string{"add --class"}},
		{[]string{path, "0x1", "--class", "a.B"}, []string{"cannot be used together"}},
		{[]string{"--class", "a.B"}, []string{"want a heap dump"}},
		{
			[]string{path, "--class", "java.lang.Strin"},
			[]string{"no class java.lang.Strin in the dump", "did you mean java.lang.String?"},
		},
		{
			[]string{path, "--class", "java.lang.String", "--where", "count"},
			[]string{`--where: invalid value "count": want FIELD=VALUE`},
		},
		{
			[]string{path, "--class", "java.lang.String", "--where", "coun=1"},
			[]string{"no field coun of java.lang.String in the dump", "its fields are ", "did you mean count?"},
		},
		{
			[]string{path, "--class", "java.lang.String", "--where", "count=many\x1b[2J"},
			[]string{
				`--where: compare field count of type int: invalid value "=many`, "want a whole number of 32 bits",
			},
		},
		{[]string{path, "--class", "byte[]", "--where", "length=1"}, []string{"its objects have no fields"}},
		{
			[]string{"0x1", path},
			[]string{"0x1 does not exist", "the file " + path + " does", "name the heap dump first, then the IDs"},
		},
	} {
		refused(t, exitUsage, append([]string{"objects"}, c.args...), c.words...)
	}
}

// cartDump writes a dump of carts, and of a subclass of the cart class. It
// returns the path of the dump, its IDs, and the carts followed by their two
// states.
func cartDump(t *testing.T) (string, hproftest.IDs, []hproftest.Ref) {
	t.Helper()
	h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
	type f = hproftest.Fields
	state := h.Declare("com.shop.State", nil)
	open, closed := h.New(state, nil), h.New(state, nil)
	item := h.Declare("com.shop.Item", nil, "int id", "boolean sold")
	cart := h.Declare("com.shop.Cart", item, "object owner", "object state", "double total", "object lines")
	big := h.Declare("com.shop.BigCart", cart)
	shared := h.Bytes(make([]byte, 5000))
	var carts []hproftest.Ref
	for i := range 40 {
		owner := []any{nil, h.String("alice@example.org"), h.String("bob@example.org")}[i%3]
		carts = append(carts,
			h.New(cart,
				f{
					"id": i, "sold": i%2 == 0, "owner": owner, "state": []hproftest.Ref{open, closed}[i%4/2],
					"total": float64(i) / 4, "lines": h.Bytes(make([]byte, 100*i)),
				}))
	}
	h.Set(carts[0], "lines", shared)
	h.Set(carts[1], "lines", shared)
	h.Hold("com.shop.Carts", "all", h.ArrayList(append(carts, h.New(big, f{"id": 3}))...).Ref)
	path, ids, _ := heapFile(t, h)
	return path, ids, append(carts, open, closed)
}

// The golden files contain the objects of a class as text and as JSON; -update
// rewrites them.
func TestObjectsOfClass(t *testing.T) {
	t.Parallel()
	path, ids, refs := cartDump(t)
	closed := analysis.Hex(ids.Of(refs[41]))
	for name, args := range map[string][]string{
		"class":  {"--top", "2"},
		"text":   {"--where", "owner=alice@example.org", "--where", "id<5"},
		"shared": {"--where", "id<2", "--top", "1"},
		"shown":  {"--where", "owner=alice@example.org", "--where", "id<2", "--show-texts"},
		"closed": {"--where", "state=" + closed, "--where", "sold=true", "--where", "total>=9.5"},
		"none":   {"--where", "owner!=null", "--where", "id=-1"},
	} {
		for form, flags := range map[string][]string{"txt": nil, "json": {"--json"}} {
			code, out, errOut := ran(t,
				slices.Concat([]string{"objects", path, "--class", "com/shop/Cart"}, args, flags)...)
			if code != exitOK || errOut != "" {
				t.Errorf("%s: exit %d, %s", name, code, errOut)
			}
			if name != "shown" && strings.Contains(out, "@example") {
				t.Errorf("%s shows a hidden string:\n%s", name, out)
			}
			golden(t, filepath.Join("testdata", "objects", name+"."+form), out)
		}
	}
	// By default, 30 objects are printed, with fields but without holders.
	all := lookedUp(t, path, "--class", "com.shop.Cart")
	if len(all.Objects) != 30 || all.Selection.Instances != 40 || all.Selection.Matching != 40 ||
		len(all.Objects[29].Fields) < 6 || all.Objects[0].Holders != nil {
		t.Errorf("%d objects, %+v", len(all.Objects), all.Selection)
	}
}

// TestObjectsOfClassAgainstPlainReading compares the result for a recorded dump
// with that of the plain reader.
func TestObjectsOfClassAgainstPlainReading(t *testing.T) {
	t.Parallel()
	file := "mat-sun_jdk6_32bit.hprof"
	graph, err := hproftest.ReadGraph(recorded.Read(t, "hprof", file))
	if err != nil {
		t.Fatal(err)
	}
	value, queries := uint64(0), map[string]func(n *hproftest.Node) bool{
		"hash=0":     func(n *hproftest.Node) bool { return n.Fields["java/lang/String.hash"] == 0 },
		"count > 20": func(n *hproftest.Node) bool { return int32(n.Fields["java/lang/String.count"]) > 20 },
		"offset!=0":  func(n *hproftest.Node) bool { return n.Fields["java/lang/String.offset"] != 0 },
		"hash<-100000000": func(n *hproftest.Node) bool {
			return int32(n.Fields["java/lang/String.hash"]) < -100_000_000
		},
	}
	for _, n := range graph.Nodes {
		if n.Class == "java/lang/String" && n.Refs["java/lang/String.value"] != 0 {
			value = max(value, uint64(n.Refs["java/lang/String.value"]))
		}
	}
	queries[fmt.Sprintf("value=%#x", value)] = func(n *hproftest.Node) bool {
		return uint64(n.Refs["java/lang/String.value"]) == value
	}
	for text, passes := range queries {
		want := []string{}
		for _, n := range graph.Nodes {
			if n.Class == "java/lang/String" && n.Kind == hprof.SubInstance && passes(n) {
				want = append(want, analysis.Hex(n.ID))
			}
		}
		got := []string{}
		list := lookedUp(t, recorded.Path(t, "hprof", file), "--class", "java.lang.String", "--top", "100000",
			"--where", text)
		for _, o := range list.Objects {
			got = append(got, o.Object)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || len(want) == 0 || list.Selection.Matching != len(want) {
			t.Errorf("%s: got %d objects, want %d", text, len(got), len(want))
		}
	}
}
