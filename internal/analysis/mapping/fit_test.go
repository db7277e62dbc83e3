package mapping

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/recorded"
)

// app returns a mapping of an app and the classes of a dump of the app.
func app(seed, classes int) (text string, dump []string) {
	var b strings.Builder
	fmt.Fprintf(&b,
		"# compiler: R8\n# pg_map_id: %07d\ncom.shop.MainActivity -> com.shop.MainActivity:\nandroid.app.Shim -> "+
			"android.app.Shim:\n", seed)
	for i := range classes {
		renamed := letters(i)
		if i%3 == 0 {
			renamed = "com.shop." + renamed
		}
		fmt.Fprintf(&b, "com.shop.feature.Thing%d -> %s:\n    int one -> a\n    int two%d -> %s\n", i*seed, renamed,
			seed, letters(i*seed%26+1))
		if i%4 == 0 {
			dump = append(dump, renamed, renamed+"[]", renamed+"[][]")
		}
	}
	return b.String(),
		append(dump, "com.shop.MainActivity", "android.app.Activity", "java.lang.String", "int[]",
			"androidx.core.view.ViewCompat", "WV.a6", "com.google.android.gms.internal.zzb")
}

func TestFit(t *testing.T) {
	text, dump := app(1, 200)
	m := mustRead(t, text)
	fit := m.Fit(dump)
	if fit.Renamed != 200 || fit.Found != 50 || fit.Short != 50 || fit.Unknown != 0 || fit.Mismatch() != nil {
		t.Errorf("%+v: %v", fit, fit.Mismatch())
	}
	other, _ := app(1, 20)
	plain := []string{"com.shop.MainActivity", "com.shop.feature.Thing1", "com.shop.feature.Thing2", "java.lang.String"}
	for _, c := range []struct {
		name  string
		m     *Mapping
		dump  []string
		doubt string
	}{
		{
			"dump of a larger build", mustRead(t, other), dump,
			"the mapping 0000001 belongs to another build or another app: it lacks 45 of the 50 classes with short " +
				"names in the dump (u, ac, ag, ao, as)",
		},
		{"dump of an unobfuscated build", m, plain, "it renames 200 classes, none of which are in the dump"},
		{"mapping without names", mustRead(t, "# compiler: R8\n"), plain, ""},
		{"mapping without names, obfuscated dump", mustRead(t, "# compiler: R8\n"), dump, "lacks 50"},
		{"a few classes that are not the app's", m, []string{"b", "zx", "zy", "zz"}, ""},
		{
			"additional obfuscated libraries", m,
			append(slices.Clone(dump), "x.y.zz", "x.y.za0", "qq.ab", "qq.b"), "",
		},
	} {
		err := c.m.Fit(c.dump).Mismatch()
		if (err == nil) != (c.doubt == "") || err != nil && !strings.Contains(err.Error(), c.doubt) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestFitFields distinguishes two builds of one app whose classes have the same
// names.
func TestFitFields(t *testing.T) {
	text, dump := app(1, 200)
	other, _ := app(2, 200)
	right, wrong := mustRead(t, text), mustRead(t, other)
	fits := map[*Mapping]Fit{right: right.Fit(dump), wrong: wrong.Fit(dump)}
	for m, fit := range fits {
		if fit.Mismatch() != nil {
			t.Errorf("%s: %v", m.ID, fit.Mismatch())
		}
		for i := range 200 {
			name := letters(i)
			if i%3 == 0 {
				name = "com.shop." + name
			}
			fit.AddFields(m, name, []string{"a", letters(i%26 + 1), "own"})
		}
		err := fit.Mismatch()
		if (err == nil) != (m == right) || err != nil &&
			!strings.Contains(err.Error(), "the mapping 0000002 belongs to another build: ") {
			t.Errorf("%s: %+v %v", m.ID, fit, err)
		}
	}
}

func TestBelongs(t *testing.T) {
	m := mustRead(t, "# pg_map_id: 7fe8b95\n# pg_map_hash: SHA-256 7fe8b95ae71f\n")
	for source, want := range map[string]bool{
		"r8-map-id-7fe8b95": true, "r8-map-id-7fe8b95ae71f": true, "SourceFile": true, "": true,
		"r8-map-id-127b14c": false,
	} {
		if err := m.Belongs(source); (err == nil) != want {
			t.Errorf("%q: %v", source, err)
		}
	}
	if err := mustRead(t, "A -> a:\n").Belongs("r8-map-id-1"); err != nil {
		t.Error(err)
	}
}

func TestShort(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "A": true, "a0": true, "ab": true, "a.a.b": true, "a.b.c$d": true, "com.shop.a0": true, "abc": true,
		"aB": true, "R9": true,
		"": false, "R": false, "com.shop.R$id": false, "Id": false, "UI": false, "abcd": false, "Main": false,
		"a.Main": false, "a.-$$Lambda$x": false, "0a": false, "a$": true,
	} {
		if short(name) != want {
			t.Errorf("%q: %t", name, !want)
		}
	}
}

// TestObfuscatedDumps checks the class names in the recorded dumps, one of
// which is from an obfuscated build.
func TestObfuscatedDumps(t *testing.T) {
	files, err := os.ReadDir(recorded.Path(t, "hprof"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		name := file.Name()
		if !strings.Contains(name, ".hprof") && filepath.Ext(name) != ".bin" {
			continue
		}
		data := recorded.Read(t, "hprof", name)
		f, err := hprof.Open(t.Context(), bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		var classes []string
		for _, c := range f.Classes {
			text, _ := f.Strings.Get(c.Name)
			classes = append(classes, strings.ReplaceAll(text, "/", "."))
		}
		err = Obfuscated(classes)
		if (err != nil) != (name == "ahat-O.hprof") {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "7 of 11 classes of the app have names like a, b, c, d, e") {
			t.Error(err)
		}
		seen++
	}
	if seen < 10 {
		t.Errorf("%d dumps", seen)
	}
}

func TestObfuscated(t *testing.T) {
	debug := []string{"com.shop.MainActivity", "com.shop.R", "com.shop.R$id", "com.shop.ui.UI", "okio.Okio", "io.a"}
	for i := range 100 {
		debug = append(debug, fmt.Sprintf("com.shop.Thing%d", i),
			fmt.Sprintf("com.google.android.gms.internal.ads.zz%c", 'a'+rune(i%26)))
	}
	_, release := app(1, 200)
	flat := []string{"com.shop.MainActivity", "a0", "a1", "b0", "ab", "ab[]"}
	for name, c := range map[string]struct {
		classes []string
		want    bool
	}{"none": {nil, false}, "debug": {debug, false}, "release": {release, true}, "flat": {flat, true},
		"framework": {[]string{"java.a", "android.b", "sun.c", "dalvik.d"}, false},
		"androidx":  {[]string{"androidx.a.a", "androidx.b0", "kotlin.c", "kotlinx.d"}, true}} {
		if err := Obfuscated(c.classes); (err != nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
