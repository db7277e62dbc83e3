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

func TestSimplifyLayer(t *testing.T) {
	for layer, want := range map[string]string{
		"VRI[MainActivity]#0(BLAST Consumer)0":             "VRI[MainActivity]#*(BLAST Consumer)*",
		"SurfaceView[com.shop/com.shop.Main]@0#123":        "SurfaceView[com.shop/com.shop.Main]@*#*",
		"ActivityRecord{1a2b3c4 u0 com.shop/.Main t12}#34": "ActivityRecord{* u0 com.shop/.Main t12}#*",
		"ImageReader-1440x2560f4m3-20602-0":                "ImageReader-1440x2560f4m3-*-*",
		"allocator@0x7fa0b0":                               "allocator@*",
		"NavigationBar0":                                   "NavigationBar0",
		"facade 0x zz":                                     "facade 0x zz",
		"":                                                 noLayer,
		" \x00":                                            "?",
		"a\x1b[2Jb\u202e\xff":                              "a?[2Jb??",
		strings.Repeat("é", 200):                           strings.Repeat("é", 127) + "…",
	} {
		if got := simplifyLayer(layer); got != want {
			t.Errorf("%q becomes %q, want %q", layer, got, want)
		}
	}
}

// graphicsOf returns a reading in which all values are known.
func graphicsOf(n int64, buffers ...Buffer) GraphicsReading {
	return GraphicsReading{
		EGLMtrackKB: known.Of(n), GLMtrackKB: known.Of(n), OtherMtrackKB: known.Of(n), GfxDevKB: known.Of(n),
		CacheBytes: known.Of(n * 1024), GrallocKB: known.Of(n), AllocatorKB: known.Of(n),
		Views: known.Of(n), ViewRoots: known.Of(1), GPUBytes: known.Of(n * 1024), Buffers: buffers, BuffersRead: true,
	}
}

func TestCompareGraphics(t *testing.T) {
	before := graphicsOf(1024, Buffer{"a#1", known.Of(100)}, Buffer{"a#2", known.Of(100)}, Buffer{"b", known.Of(7)})
	after := graphicsOf(1024, Buffer{"a#3", known.Of(100)}, Buffer{"c", known.Int{}})
	after.EGLMtrackKB, after.Views, after.CacheBytes = known.Of(60*1024), known.Of(4000), known.Of(100)
	after.GPUBytes, after.Why = known.Int{}, map[Channel]string{GPU: "not counted by this device\x1b"}
	before.GfxDevKB = known.Of(-1)
	after.GrallocKB = known.Of(1 << 60)
	g := CompareGraphics(before, after)
	var rows []string
	for _, r := range slices.Concat(g.Rows, g.Layers) {
		rows = append(rows,
			fmt.Sprintf("%s %s %d-%d %+d %d-%d", r.Name, r.Unit, r.Before.N, r.After.N, r.Delta, r.BuffersBefore,
				r.BuffersAfter))
	}
	want := []string{
		"EGL mtrack bytes 1048576-62914560 +61865984 0-0",
		"GL mtrack bytes 1048576-1048576 +0 0-0",
		"Other mtrack bytes 1048576-1048576 +0 0-0",
		"buffers allocated by the process bytes 1048576-1048576 +0 0-0",
		"caches of the renderer bytes 1048576-100 -1048476 0-0",
		"views count 1024-4000 +2976 0-0",
		"windows count 1-1 +0 0-0",
		"b bytes 7168-0 -7168 1-0",
		"a#* bytes 204800-102400 -102400 2-1",
		"c count 0-1 +1 0-1",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("rows %s", strings.Join(rows, "\n"))
	}
	unavailable := []Incomparable{
		{Meminfo, "Gfx dev", "unknown before"},
		{Gfxinfo, "buffers imported by gralloc", "unknown after"},
		{GPU, "GPU memory of the process", "unknown after: not counted by this device?"},
		{SurfaceFlinger, "buffers of the whole device", "unknown after"},
	}
	if !slices.Equal(g.Unavailable, unavailable) {
		t.Errorf("unavailable %+v", g.Unavailable)
	}
	lines := []string{
		"EGL mtrack (dumpsys meminfo) +59.0 MB: 1.0 MB -> 60.0 MB",
		"views (dumpsys gfxinfo) +2976: 1024 -> 4000",
		"layer c +1: 0 -> 1 buffers",
		"not available from dumpsys meminfo: Gfx dev (unknown before)",
		"not available from dumpsys gfxinfo: buffers imported by gralloc (unknown after)",
		"not available from dumpsys gpu: GPU memory of the process (unknown after: not counted by this device?)",
		"not available from dumpsys SurfaceFlinger: buffers of the whole device (unknown after)",
	}
	if got := g.Lines(5); !slices.Equal(got, lines) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

// Without any readings, all numbers are unavailable; none of them is reported
// as zero.
func TestNoGraphics(t *testing.T) {
	g := CompareGraphics(GraphicsReading{}, GraphicsReading{Why: map[Channel]string{Gfxinfo: "it draws nothing"}})
	older := len(slices.DeleteFunc(slices.Clone(quantities), func(q quantity) bool { return q.newer }))
	if len(g.Rows) != 0 || len(g.Layers) != 0 || len(g.Unavailable) != older {
		t.Errorf("%+v", g)
	}
	lines := g.Lines(3)
	if len(lines) != 5 || lines[0] != "no growth in the available numbers" ||
		lines[2] != "not available from dumpsys gfxinfo: caches of the renderer, buffers imported by gralloc, "+
			"buffers allocated by the process, views, windows (unknown: it draws nothing)" {
		t.Errorf("%s", strings.Join(lines, "\n"))
	}
}

// If apps allocate the buffers of windows, the list of imported buffers
// contains these buffers, and SurfaceFlinger itself has allocated only the
// buffers of the screen.
func TestImportedBuffers(t *testing.T) {
	const window = "VRI[Main]#0(BLAST Consumer)0"
	screen := slices.Repeat([]Buffer{{"FramebufferSurface", known.Of(10200)}}, 3)
	windows := func(n int) (list []Buffer) { return slices.Repeat([]Buffer{{window, known.Of(10240)}}, n) }
	reading := func(n int) GraphicsReading {
		return GraphicsReading{
			Buffers: screen, BuffersRead: true, Imported: slices.Concat(screen, windows(n)), ImportedRead: true,
		}
	}
	g := CompareGraphics(reading(4), reading(24))
	checkLayers(t, GraphicsGrowth{Rows: g.Rows[:1], Layers: g.Layers}, reading(4).Imported, reading(24).Imported)
	if len(g.Layers) != 2 || g.Layers[0].Name != simplifyLayer(window) || g.Layers[0].Delta != 200<<20 ||
		g.Layers[0].BuffersBefore != 4 || g.Layers[0].BuffersAfter != 24 {
		t.Errorf("%+v", g.Layers)
	}
	want := []string{
		"layer VRI[Main]#*(BLAST Consumer)* +200.0 MB: 4 -> 24 buffers, 40.0 MB -> 240.0 MB",
		"imported buffers of the whole device (dumpsys SurfaceFlinger) +200.0 MB: 69.9 MB -> 269.9 MB",
	}
	if lines := g.Lines(5); len(lines) < 2 || !slices.Equal(lines[:2], want) {
		t.Errorf("%s", strings.Join(lines, "\n"))
	}
	// If one snapshot lacks the list of imported buffers, that list is not
	// compared, because it contains more buffers than the list in the other
	// snapshot.
	for _, c := range [][2]bool{{true, false}, {false, true}} {
		before, after := reading(4), reading(24)
		before.ImportedRead, after.ImportedRead = c[0], c[1]
		g := CompareGraphics(before, after)
		if len(g.Layers) != 1 || g.Layers[0].Delta != 0 ||
			!slices.ContainsFunc(g.Unavailable, func(u Incomparable) bool { return u.Source == SurfaceFlinger }) {
			t.Errorf("%v: %+v, %+v", c, g.Layers, g.Unavailable)
		}
	}
}

func TestPackageOf(t *testing.T) {
	for layer, want := range map[string]string{
		"SurfaceView[com.shop/com.shop.Main]@*#*":       "com.shop",
		"SurfaceView[com.shop/.Main]#*(BLAST Consumer)": "com.shop",
		"ActivityRecord{* u0 com.shop/.Main t12}#*":     "com.shop",
		"com.my_shop.v2/com.my_shop.v2.MainActivity#*":  "com.my_shop.v2",
		"Surface(name=com.shop/com.shop.Main)/@*":       "com.shop",
		"a/b - com.shop/.Main":                          "com.shop",
		"écom.shop/.Main":                               "com.shop",
		"VRI[Main]#*(BLAST Consumer)*":                  "",
		"com.shop.Main#*":                               "",
		"com.shop/":                                     "",
		"com.shop/*":                                    "",
		"shop/.Main":                                    "",
		"10.0.0.1/x":                                    "",
		"com..shop/.Main":                               "",
		".shop/.Main":                                   "",
		"com.*.shop/.Main":                              "",
		"/":                                             "",
		"":                                              "",
	} {
		if got := packageOf(layer); got != want {
			t.Errorf("%q: %q, want %q", layer, got, want)
		}
	}
}

// Buffers that another app draws are not counted as growth of this process.
func TestForeign(t *testing.T) {
	buffers := func(own, other, nobody int) []Buffer {
		return slices.Concat(
			slices.Repeat([]Buffer{{"com.shop/com.shop.Main#0", known.Of(10200)}}, own),
			slices.Repeat([]Buffer{{"SurfaceView[com.other/.Player]#7", known.Of(10200)}}, other),
			slices.Repeat([]Buffer{{"VRI[Main]#0", known.Of(10200)}}, nobody))
	}
	for _, c := range []struct {
		process string
		foreign []string
	}{
		{"com.shop", []string{"com.other/.Player"}},
		{"com.other", []string{"com.shop/com.shop.Main"}},
		{"com.shop.push", []string{"com.other/.Player"}},
		{"com.sho", []string{"com.other/.Player", "com.shop/com.shop.Main"}},
		{"com", nil},
		{"surfaceflinger", nil},
		{"/vendor/bin/hw/composer", nil},
		{"", nil},
	} {
		before, after := graphicsOf(1, buffers(3, 10, 1)...), graphicsOf(1, buffers(4, 30, 2)...)
		after.Package = c.process
		g := CompareGraphics(before, after)
		checkLayers(t, g, before.Buffers, after.Buffers)
		var got []string
		for _, r := range g.Layers {
			if r.Foreign {
				got = append(got, packageOf(r.Name)+r.Name[strings.Index(r.Name, "/"):strings.IndexAny(r.Name, "]#")])
			}
		}
		if !slices.Equal(got, c.foreign) {
			t.Errorf("%s: %q", c.process, got)
		}
		for _, r := range g.Rows {
			if r.Foreign != (r.Source == SurfaceFlinger) {
				t.Errorf("%+v", r)
			}
		}
	}
	before, after := graphicsOf(1, buffers(0, 10, 0)...), graphicsOf(1, buffers(0, 30, 0)...)
	after.Package = "com.shop"
	g := CompareGraphics(before, after)
	want := []string{
		"no growth of the process in the available numbers",
		"buffers of the whole device (dumpsys SurfaceFlinger) +199.2 MB: 99.6 MB -> 298.8 MB",
		"layer of another app SurfaceView[com.other/.Player]#* +199.2 MB: 10 -> 30 buffers, 99.6 MB -> 298.8 MB",
	}
	if lines := g.Lines(5); !slices.Equal(lines, want) {
		t.Errorf("%s", strings.Join(lines, "\n"))
	}
	// Before Android 8, buffers do not name an owner: only the sum is known.
	nameless := CompareGraphics(graphicsOf(1, Buffer{"", known.Of(5)}), graphicsOf(1, Buffer{"", known.Of(9)}))
	if at := slices.IndexFunc(nameless.Rows, func(r GraphicsRow) bool { return r.Source == SurfaceFlinger }); at < 0 ||
		nameless.Rows[at].Foreign || nameless.Rows[at].Delta != 4096 {
		t.Errorf("%+v", nameless.Rows)
	}
}

// A window leak increases both the memory that dumpsys meminfo lists and the
// number of buffers of a layer; these numbers overlap.
func TestGraphicsLines(t *testing.T) {
	four := slices.Repeat([]Buffer{{"VRI[Main]#0(BLAST Consumer)0", known.Of(13500)}}, 4)
	before, after := graphicsOf(54000, four...), graphicsOf(108000, slices.Concat(four, four)...)
	g := CompareGraphics(before, after)
	lines := g.Lines(1)
	if len(lines) != 12 ||
		!slices.Contains(lines, "layer VRI[Main]#*(BLAST Consumer)* +52.7 MB: 4 -> 8 buffers, 52.7 MB -> 105.5 MB") ||
		!slices.Contains(lines, "these numbers overlap: do not add them up") {
		t.Errorf("%d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
}

var layerNames = []string{"a#%d", "VRI[Main]#%d(BLAST Consumer)%[1]d", "", "\x1b%d", "b", "x%d"}

func randomBuffers(rng *rand.Rand) (list []Buffer) {
	for range rng.IntN(40) {
		b := Buffer{layerNames[rng.IntN(len(layerNames))], known.Of(rng.Int64N(20000))}
		if strings.Contains(b.Layer, "%") {
			b.Layer = fmt.Sprintf(b.Layer, rng.IntN(9))
		}
		if rng.IntN(50) == 0 {
			b.KB = known.Int{}
		}
		list = append(list, b)
	}
	return list
}

// Each buffer is counted in exactly one layer, and the layers add up to the
// total.
func TestLayerAttribution(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 1))
	for round := range 2000 {
		before, after := graphicsOf(1, randomBuffers(rng)...), graphicsOf(2, randomBuffers(rng)...)
		g := CompareGraphics(before, after)
		checkLayers(t, g, before.Buffers, after.Buffers)
		rng.Shuffle(len(after.Buffers), reflect.Swapper(after.Buffers))
		if other := CompareGraphics(before, after); !reflect.DeepEqual(g, other) {
			t.Fatalf("round %d: after shuffling: got %+v, want %+v", round, other, g)
		}
	}
}

func checkLayers(t *testing.T, g GraphicsGrowth, before, after []Buffer) {
	t.Helper()
	var sum GraphicsRow
	known := true
	for i, r := range g.Layers {
		sum.BuffersBefore += r.BuffersBefore
		sum.BuffersAfter += r.BuffersAfter
		sum.Delta += r.Delta
		known = known && r.Unit == Bytes
		if i > 0 && r.Unit == g.Layers[i-1].Unit && r.Delta > g.Layers[i-1].Delta || r.Delta != r.After.N-r.Before.N {
			t.Errorf("row %d of %+v is out of order or has a wrong delta", i, g.Layers)
		}
	}
	if sum.BuffersBefore != int64(len(before)) || sum.BuffersAfter != int64(len(after)) {
		t.Errorf("got %+v, want %d and %d buffers", sum, len(before), len(after))
	}
	var delta int64
	all := true
	for sign, list := range map[int64][]Buffer{-1: before, 1: after} {
		for _, b := range list {
			delta += sign * b.KB.N * 1024
			all = all && b.KB.Known
		}
	}
	if all != known || all && delta != sum.Delta {
		t.Errorf("got all sizes known: %t, want %t; got delta %d, want %d", known, all, sum.Delta, delta)
	}
	at := slices.IndexFunc(g.Rows, func(r GraphicsRow) bool { return r.Source == SurfaceFlinger })
	if all != (at >= 0) || all && g.Rows[at].Delta != delta {
		t.Errorf("got rows %+v, want a buffer row with a delta of %d: %t", g.Rows, delta, all)
	}
}

// All layers beyond the cap are combined in one row.
func TestOtherLayers(t *testing.T) {
	var list []Buffer
	for i := range maxLayers + 50 {
		list = append(list, Buffer{fmt.Sprintf("x%dy", i), known.Of(1)})
	}
	g := CompareGraphics(graphicsOf(1), graphicsOf(1, list...))
	checkLayers(t, g, nil, list)
	if g.Layers[0].Name != othersName || g.Layers[0].BuffersAfter != 50 {
		t.Errorf("%+v", g.Layers[0])
	}
	huge := slices.Repeat([]Buffer{{"a", known.Of(1 << 40)}}, 10000)
	if g := CompareGraphics(graphicsOf(1), graphicsOf(1, huge...)); g.Layers[0].Unit != Count ||
		g.Layers[0].Delta != 10000 {
		t.Errorf("%+v", g.Layers)
	}
}

func FuzzLayerName(f *testing.F) {
	for _, n := range layerNames {
		f.Add(n)
	}
	f.Add(strings.Repeat("1a2b3c4 ", 40))
	f.Fuzz(func(t *testing.T, layer string) {
		g := CompareGraphics(graphicsOf(1), graphicsOf(1, Buffer{layer, known.Of(5)}))
		checkLayers(t, g, nil, []Buffer{{layer, known.Of(5)}})
		name := g.Layers[0].Name
		if utf8.RuneCountInString(name) > maxLayerName || name == "" || simplifyLayer(name) != name {
			t.Errorf("%q becomes %q, then %q", layer, name, simplifyLayer(name))
		}
		g.Unavailable = append(g.Unavailable, Incomparable{GPU, "x", because("unknown", layer)})
		for _, text := range append(g.Lines(3), name) {
			if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q is shown as %q", layer, text)
			}
		}
	})
}
