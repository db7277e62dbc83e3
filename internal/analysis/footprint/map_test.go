package footprint

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/leakgate/leakgate/internal/known"
)

func testMapping(name string, pss, swap int64) Mapping {
	return Mapping{Name: []byte(name), Usage: Usage{PSS: known.Of(pss), SwapPSS: known.Of(swap)}}
}

func mapOf(list ...Mapping) *Map {
	m := NewMap()
	for _, x := range list {
		m.Add(x)
	}
	return m
}

// inOrder places mappings one after the other, without gaps.
func inOrder(start uint64, list ...Mapping) []Mapping {
	for i := range list {
		list[i].Start, list[i].End = start, start+0x1000
		if list[i].Perms == [4]byte{} {
			list[i].Perms = [4]byte([]byte("rw-p"))
		}
		start += 0x1000
	}
	return list
}

// mapRows formats each row that is not empty as "kind name kB".
func mapRows(m *Map) string {
	g := CompareMaps(NewMap(), m)
	slices.SortFunc(g.Rows, func(a, b MapRow) int { return strings.Compare(a.Name, b.Name) })
	var b strings.Builder
	for _, r := range g.Rows {
		fmt.Fprintf(&b, "%s %s %d; ", r.Kind, r.Name, r.Delta)
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// This checks the kinds of the names known to AOSP (androidprocheaps.cpp) and
// of unknown names.
func TestMappingKinds(t *testing.T) {
	for kind, names := range map[Kind][]string{
		Heap: {
			"[heap]", "[anon:libc_malloc]", "[anon:scudo:primary]", "[anon:scudo:secondary]",
			"[anon:GWP-ASan Metadata]", "/dev/ashmem/libc malloc (deleted)",
		},
		Java: {
			"[anon:dalvik-main space (region space)]", "[anon:dalvik-/system/framework/boot.art]",
			"/dev/ashmem/dalvik-main space (deleted)",
			"/memfd:jit-cache (deleted)", "/memfd:/jit-cache (deleted)", "/memfd:jit-zygote-cache (deleted)",
			"/dev/ashmem/jit-zygote-cache (deleted)"},
		Stack:     {"[stack]", "[stack:123]", "[anon:stack_and_tls:main]", "[anon:stack_and_tls:25373]"},
		Anonymous: {"", "[anon]", "[unknown]", "  ", "/dev/zero (deleted)"},
		Named: {
			"[anon:partition_alloc]", "[anon:.bss]", "[vdso]", "[anon_shmem:x]", "/dev/ashmem/GFXStats-1521 (deleted)",
			"/memfd:buffer (deleted)",
			"socket:[4711]", "/SYSV00000000 (deleted)"},
		File: {
			"/system/lib64/libc.so", "/system/lib64/libc.so [bss]", "/data/app/a/base.apk", "/system/fonts/Roboto.ttf",
			"/x (deleted)",
			"/system/framework/boot.oat", "/system/framework/boot.art"},
		Device: {
			"/dev/kgsl-3d0", "/vendor/dev/kgsl-3d0", "/dev/mali0", "/dev/dri/renderD128", "/dmabuf:",
			"anon_inode:dmabuf", "/dev/binderfs/binder",
		},
	} {
		for _, name := range names {
			g := CompareMaps(NewMap(), mapOf(testMapping(name, 1, 0)))
			if len(g.Rows) != 1 || g.Rows[0].Kind != kind {
				t.Errorf("got %+[2]v for %[1]q, want kind %[3]s", name, g.Rows, kind)
			}
		}
	}
}

func TestMappingNames(t *testing.T) {
	for name, want := range map[string]string{
		"[anon:stack_and_tls:25373]": "[anon:stack_and_tls:*]",
		"[anon:stack_and_tls:main]":  "[anon:stack_and_tls:main]",
		"[stack:17]":                 "[stack:*]",
		"[anon:libc_malloc]":         "[anon:libc_malloc]",
		"[anon:arc4random data]":     "[anon:arc4random data]",
		"[anon:v8]":                  "[anon:v8]",
		"[anon:buffer12]":            "[anon:buffer*]",
		"[anon:dalvik-Jit thread pool worker thread 0]": "[anon:dalvik-Jit " +
			"thread pool worker thread *]",
		"/dev/ashmem/memory-lab-ashmem-17 (deleted)":                                     "/dev/ashmem/memory-lab-ashmem-*",
		"/dev/ashmem/gralloc-1332.5 (deleted)":                                           "/dev/ashmem/gralloc-*.*",
		"/dev/ashmem/f5dea93b-5e33-4f98-a7b7-affb9e08faa1":                               "/dev/ashmem/*",
		"/dev/ashmem/shared_memory/C0E1AF79B044AC22CD490D858A9E9507 (deleted) (deleted)": "/dev/ashmem/shared_memory/*",
		"/memfd:frame 12 (deleted)":                                                      "/memfd:frame *",
		"socket:[4711]":                                                                  "socket:[*]",
		"/dev/kgsl-3d0":                                                                  "/dev/kgsl-3d0",
		"/dev/dri/renderD128":                                                            "/dev/dri/renderD128",
		"/system/lib64/libcamera2.so":                                                    "/system/lib64/libcamera2.so",
		"/apex/com.android.i18n/etc/icu/icudt75l.dat":                                    "/apex/com.android.i18n/etc/icu/icudt75l.dat",
		"/data/user/0/a/cache/1690000000.tmp":                                            "/data/user/0/a/cache/*.tmp",
		"/data/data/a/BrowserMetrics-698D4820-507A.pma (deleted)":                        "/data/data/a/BrowserMetrics-*.pma",
		"/data/app/com.shop-1/lib/arm/libfoo.so":                                         "/data/app/com.shop/lib/arm/libfoo.so",
		"/data/app/com.shop-XMzARdgqY5fgZKs-ADNkGQ==/base.apk":                           "/data/app/com.shop/base.apk",
		"/data/app/~~42B35i/system/app/x-1/y":                                            "/data/app/~~42B35i/system/app/x-1/y",
		"/mnt/expand/1b2c3d4e-0000-0000-0000-000000000001/app/a-2/b.so":                  "/mnt/expand/*/app/a/b.so",
		"/system/app/Shop-1/Shop.apk":                                                    "/system/app/Shop-1/Shop.apk",
		"/data/app/~~XNE2QZ2lqS8WS__es9ixGg==/com.google.android.webview-5Ld8E9w9HwmKlrRxq1kQkQ==/lib/arm64/libfoo.so": "/data/app/com.google.android.webview/lib/arm64/libfoo.so",
		"[anon:dalvik-classes2.dex extracted in memory from " +
			"/data/app/~~-f==/a.b-2sB6VienT2XP9nnL4_ZFaw==/base.apk]": "[anon:dalvik-classes2.dex extracted " +
			"in memory from /data/app/a.b/base.apk]",
		"/a\x1b[2J\u202eb\xff\xfe\u00e9": "/a?[2J?b?é",
		"/" + strings.Repeat("ab/", 200) + "libgrowing.so": "/" + strings.Repeat("ab/", 41) + "ab…b" +
			strings.Repeat("/ab", 37) + "/libgrowing.so",
	} {
		if got := string(simplifyMapping([]byte(name))); got != want {
			t.Errorf("%q becomes\n%q, want\n%q", name, got, want)
		}
	}
}

// Memory directly after a library is attributed to its .bss, unless the growth
// is in many mappings.
func TestBss(t *testing.T) {
	m := func(name string) Mapping { return testMapping(name, 4, 0) }
	guard := m("")
	guard.Perms = [4]byte([]byte("---p"))
	far := inOrder(0x9000, m(bssName))
	tests := []struct {
		what, want string
		list       []Mapping
	}{
		{"named .bss", "file /a.so 8; file /a.so [bss] 4", inOrder(0x1000, m("/a.so"), m("/a.so"), m(bssName))},
		{
			"two mappings named .bss", "file /a.so 4; file /a.so [bss] 8",
			inOrder(0x1000, m("/a.so"), m(bssName), m(bssName)),
		},
		{
			"library in an APK", "file /data/app/x/base.apk 4; file /data/app/x/base.apk [bss] 4",
			inOrder(0x1000, m("/data/app/x-1/base.apk"), m(bssName)),
		},
		{
			"unnamed .bss", "anonymous (anonymous) 4; file /libc.so.6 4; file /libc.so.6 [bss] 4",
			inOrder(0x1000, m("/libc.so.6"), m(""), m("")),
		},
		{"after a file without .bss", "anonymous (anonymous) 4; file /x.apk 4", inOrder(0x1000, m("/x.apk"), m(""))},
		{"unwritable mapping", "anonymous (anonymous) 4; file /x.so 4", inOrder(0x1000, m("/x.so"), guard)},
		{"after a gap", "file /x.so 4; named [anon:.bss] 4", append(inOrder(0x1000, m("/x.so")), far...)},
		{"after other memory", "named [anon:.bss] 4; heap [heap] 4", inOrder(0x1000, m("[heap]"), m(bssName))},
		{
			"without addresses", "anonymous (anonymous) 4; file /x.so 4; named [anon:.bss] 4",
			[]Mapping{m("/x.so"), m(bssName), m("")},
		},
		{"format of an older showmap", "file /x.so 4; file /x.so [bss] 4", []Mapping{m("/x.so"), m("/x.so [bss]")}},
	}
	for _, c := range tests {
		if got := mapRows(mapOf(c.list...)); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
	g := CompareMaps(mapOf(inOrder(0x1000, m("/a.so"))...),
		mapOf(inOrder(0x1000, m("/a.so"), m("/a.so"), m(bssName))...))
	if len(g.Files) != 1 || g.Files[0].File != "/a.so" || g.Files[0].Delta != 8 {
		t.Errorf("got %+v, want one file with the .bss of its library", g.Files)
	}
}

// A snapshot with addresses and a snapshot without addresses are compared by
// the information that both contain.
func TestAddressesOnOneSide(t *testing.T) {
	list := []Mapping{testMapping("/a.so", 10, 0), testMapping(bssName, 5, 0)}
	with, without := mapOf(inOrder(0x1000, slices.Clone(list)...)...), mapOf(list...)
	for _, g := range []MapGrowth{CompareMaps(with, without), CompareMaps(without, with)} {
		if len(g.Rows) != 2 || g.Grew != 0 || g.Shrank != 0 || len(g.Warnings) != 1 || len(g.Files) != 1 ||
			g.Files[0].After.PSS != 10 {
			t.Errorf("%+v", g)
		}
	}
}

// mappingUnit is a sequence of mappings whose order matters.
type mappingUnit []Mapping

var mappingNames = []string{
	"", "[heap]", "[anon:libc_malloc]", "[anon:scudo:primary]", "[anon:stack_and_tls:%d]", "[anon:dalvik-main space]",
	"[anon:buf%d]",
	"/dev/ashmem/%d", "/dev/kgsl-3d0", "/memfd:x (deleted)", "/system/lib64/lib%d.so", "/data/app/a-%d/base.apk",
	"/dmabuf:", "\x1b%d",
}

// randomMappings creates a random memory map in which some libraries have a
// .bss.
func randomMappings(rng *rand.Rand) (units []mappingUnit) {
	for i := range 1 + rng.IntN(60) {
		name := mappingNames[rng.IntN(len(mappingNames))]
		if strings.Contains(name, "%d") {
			name = fmt.Sprintf(name, rng.IntN(5))
		}
		u := mappingUnit{randomMapping(rng, name)}
		if strings.HasSuffix(name, ".so") && rng.IntN(2) == 0 {
			u = append(u, randomMapping(rng, []string{bssName, ""}[rng.IntN(2)]))
		}
		units = append(units, inOrder(uint64(i+1)<<20, u...))
	}
	return units
}

func randomMapping(rng *rand.Rand, name string) Mapping {
	x := testMapping(name, rng.Int64N(5000), rng.Int64N(100))
	x.Size, x.PrivateDirty, x.Perms = known.Of(rng.Int64N(1<<20)), known.Of(rng.Int64N(5000)), [4]byte([]byte("rw-p"))
	switch rng.IntN(20) {
	case 0:
		x.PSS = known.Int{}
	case 1:
		x.SwapPSS = known.Int{N: 77}
	case 2:
		x.PSS = known.Of(-rng.Int64N(9) - 1)
	case 3:
		x.Mappings = rng.Int64N(9) - 2
	}
	return x
}

// testTotal adds up mappings in the simplest way.
func testTotal(units []mappingUnit) (s Sum) {
	for _, u := range units {
		for _, x := range u {
			part := []int64{max(x.Mappings, 1), 0, 0, 0, 0}
			for i, a := range []known.Int{x.PSS, x.SwapPSS, x.Size, x.PrivateDirty} {
				if a.Known && a.N >= 0 {
					part[i+1] = a.N
				}
			}
			s.add(Sum{part[0], part[1], part[2], part[3], part[4]})
		}
	}
	return s
}

func flatMap(units []mappingUnit) *Map { return mapOf(slices.Concat(units...)...) }

// The memory attributed to rows adds up to the measured memory, for any maps,
// in any order of their parts, and however the mappings are split.
func TestMapAttribution(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 2000 {
		before, after := randomMappings(rng), randomMappings(rng)
		a, b := flatMap(before), flatMap(after)
		if round%10 == 0 { // groups most names under (others)
			a.most, b.most = 3, 3
			a, b = refillMap(a, before), refillMap(b, after)
		}
		g := CompareMaps(a, b)
		if g.Total.Before != testTotal(before) || g.Total.After != testTotal(after) || a.total() != testTotal(before) {
			t.Fatalf("round %d: total %+v, want %+v and %+v", round, g.Total, testTotal(before), testTotal(after))
		}
		checkSums(t, g)
		if round%10 == 0 {
			continue
		}
		rng.Shuffle(len(after), func(i, j int) { after[i], after[j] = after[j], after[i] })
		if other := CompareMaps(a, flatMap(after)); !reflect.DeepEqual(g, other) {
			t.Fatalf("round %d: after shuffling: got\n%+v, want\n%+v", round, other, g)
		}
		if other := CompareMaps(a, flatMap(cutUnits(rng, after))); !reflect.DeepEqual(mapDeltas(g), mapDeltas(other)) {
			t.Fatalf("round %d: with split mappings: got\n%v, want\n%v", round, mapDeltas(other), mapDeltas(g))
		}
		if back := CompareMaps(b, a); back.Total.Delta != -g.Total.Delta || back.Grew != -g.Shrank ||
			len(back.Rows) != len(g.Rows) {
			t.Fatalf("round %d: reversed comparison: got %+v; original: %+v", round, back, g)
		}
	}
}

// refillMap adds all mappings to a map with a different cap.
func refillMap(small *Map, units []mappingUnit) *Map {
	m := NewMap()
	m.most = small.most
	for _, u := range units {
		for _, x := range u {
			m.Add(x)
		}
	}
	return m
}

// cutUnits splits one mapping into two adjacent ones.
func cutUnits(rng *rand.Rand, units []mappingUnit) []mappingUnit {
	i := rng.IntN(len(units))
	x := units[i][0]
	y := x
	y.Usage = Usage{PSS: known.Of(0), SwapPSS: known.Of(0)}
	if x.PSS.Known && x.PSS.N > 0 {
		y.PSS = known.Of(rng.Int64N(x.PSS.N))
		x.PSS.N -= y.PSS.N
	}
	out := slices.Clone(units)
	out[i] = append(mappingUnit{x, y}, units[i][1:]...)
	out[i][0].End = out[i][0].Start + 0x800
	out[i][1].Start = out[i][0].End
	return out
}

func mapDeltas(g MapGrowth) map[string]int64 {
	list := map[string]int64{}
	for _, r := range g.Rows {
		list[fmt.Sprint(r.Kind, r.Name)] = r.Delta
	}
	return list
}

func checkSums(t *testing.T, g MapGrowth) {
	t.Helper()
	var rows, kinds, files, own Change
	for i, r := range g.Rows {
		rows.add(r.Change)
		if r.File != "" {
			own.add(r.Change)
		}
		if i > 0 && r.Delta > g.Rows[i-1].Delta {
			t.Errorf("row %d of %v is out of order", i, g.Rows)
		}
		if r.Delta != r.After.Cost()-r.Before.Cost() {
			t.Errorf("wrong delta in %+v", r)
		}
	}
	for _, r := range g.Kinds {
		kinds.add(r.Change)
	}
	for _, r := range g.Files {
		files.add(r.Change)
	}
	if rows != g.Total || kinds != g.Total || files != own {
		t.Errorf("sums differ: rows %+v, kinds %+v, total %+v; files %+v, rows of files %+v", rows, kinds, g.Total,
			files, own)
	}
	if g.Total.Delta != g.Total.After.Cost()-g.Total.Before.Cost() || g.Grew+g.Shrank != g.Total.Delta {
		t.Errorf("total %+v grew %d shrank %d", g.Total, g.Grew, g.Shrank)
	}
	if share, ok := g.explained(len(g.Rows)); ok && share != 1 || ok != (g.Grew > 0) {
		t.Errorf("all rows account for a fraction %v of the growth (known: %t), want 1", share, ok)
	}
}

// Beyond the cap, the names of each kind are combined in one row, and the
// memory used stays bounded.
func TestOtherMappings(t *testing.T) {
	m := NewMap()
	for i := range maxRows + 500 {
		m.Add(testMapping(fmt.Sprintf("/lib%dx.so", i), 1, 0))
		m.Add(testMapping("[heap]", 1, 1))
	}
	m.Add(testMapping("[anon:late]", 7, 0))
	if len(m.rows) > maxRows+len(allKinds) {
		t.Errorf("%d rows", len(m.rows))
	}
	g := CompareMaps(NewMap(), m)
	checkSums(t, g)
	others := map[Kind]int64{}
	for _, r := range g.Rows {
		if r.Name == othersName {
			others[r.Kind] = r.Delta
		}
	}
	if !reflect.DeepEqual(others, map[Kind]int64{File: 501, Named: 7}) || len(g.Warnings) != 2 {
		t.Errorf("others %v, warnings %v", others, g.Warnings)
	}
}

// Impossible numbers are treated as unknown, and sums do not overflow.
func TestHostileNumbers(t *testing.T) {
	m := NewMap()
	huge := Mapping{
		Name: []byte("[heap]"), Start: 9, End: 1, Mappings: 1 << 62,
		Usage: Usage{
			PSS: known.Of(maxKB), SwapPSS: known.Of(maxKB), Size: known.Of(1 << 62), PrivateDirty: known.Of(-5),
		},
	}
	for range maxAdded + 3 {
		m.Add(huge)
	}
	g := CompareMaps(NewMap(), m)
	checkSums(t, g)
	if want := int64(maxAdded) * 2 * maxKB; g.Total.Delta != want || g.Total.After.Size != 0 ||
		g.Total.After.Mappings <= 0 {
		t.Errorf("%+v, want %d", g.Total, want)
	}
	if len(g.Warnings) != 2 || !strings.Contains(g.Warnings[1].Error(), "3 mappings beyond") {
		t.Errorf("warnings %v", g.Warnings)
	}
}

func FuzzMappingName(f *testing.F) {
	for _, name := range mappingNames {
		f.Add([]byte(name))
	}
	f.Add([]byte("/data/app/~~x==/~~y==/a-1-2-3/b (deleted) (deleted)/app/app/~~==/"))
	f.Add([]byte("/" + strings.Repeat("é", 300) + "12345678"))
	f.Add([]byte("[anon:0x12345678-1234-1234-beef99]"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := mapOf(Mapping{Name: raw, Usage: Usage{PSS: known.Of(3), SwapPSS: known.Of(4)}})
		g := CompareMaps(NewMap(), m)
		if len(g.Rows) != 1 || g.Total.Delta != 7 {
			t.Fatalf("%q: %+v", raw, g)
		}
		for _, text := range append(g.Lines(5), g.Rows[0].Name, g.Rows[0].Example, g.Rows[0].File) {
			if len(text) > 2*maxMapping || !utf8.ValidString(text) ||
				strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q is shown as %q", raw, text)
			}
		}
		name := g.Rows[0].Name
		if len(name) > maxMapping || name == "" {
			t.Errorf("%q becomes %q", raw, name)
		}
		if again := simplifyMapping([]byte(name)); string(again) != name {
			t.Errorf("%q becomes %q, then %q", raw, name, again)
		}
		if again := CompareMaps(NewMap(), mapOf(testMapping(name, 3, 4))).Rows[0]; again.Name != name {
			t.Errorf("the simplified name %q becomes %q, want no change", name, again.Name)
		}
	})
}

// BenchmarkAdd adds the mappings of an app to a map that already contains their
// names.
func BenchmarkAdd(b *testing.B) {
	list := recordedMappings(b, "api36-memorylab-smaps.txt.gz")
	m := mapOf(list...)
	m.flaws.added = -1 << 62 // no end address
	b.ReportAllocs()
	for b.Loop() {
		for _, x := range list {
			m.Add(x)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(list)), "ns/mapping")
}

// Adding a mapping with a known name does not allocate.
func TestAddAllocatesNothing(t *testing.T) {
	list := slices.Concat(randomMappings(rand.New(rand.NewPCG(3, 4)))...)
	m := mapOf(list...)
	if n := testing.AllocsPerRun(10, func() {
		for _, x := range list {
			m.Add(x)
		}
	}); n != 0 {
		t.Errorf("%v allocations for %d mappings", n, len(list))
	}
}
