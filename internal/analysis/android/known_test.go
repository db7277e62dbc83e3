package android_test

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/sharktest"
)

//go:embed testdata/KnownReferences.java
var knownReferences string

// builds returns builds with all API levels, all manufacturers that matchers
// name, some manufacturers that no matcher names, and an ID that a matcher
// names.
func builds() []trace.Build {
	manufacturers := []string{
		"HMD Global", "HUAWEI", "INFINIX", "LENOVO", "LGE", "Meizu", "motorola", "NVIDIA", "OnePlus", "Razer", "realme",
		"samsung", "SHARP", "TES", "vivo", "Xiaomi",
		"Google", "SAMSUNG", "unknown", "",
	}
	var all []trace.Build
	for sdk := 1; sdk <= 40; sdk++ {
		for _, m := range manufacturers {
			for _, id := range []string{"TPP2.220218.008", "TPP2.220218", ""} {
				all = append(all, trace.Build{SDK: sdk, Manufacturer: m, ID: id})
			}
		}
	}
	return all
}

// TestKnownReferencesAsShark compares our matchers with those of Shark 2.14
// that apply to each build.
func TestKnownReferencesAsShark(t *testing.T) {
	all := builds()
	var lines strings.Builder
	for _, b := range all {
		fmt.Fprintf(&lines, "%d\t%s\t%s\n", b.SDK, b.Manufacturer, b.ID)
	}
	file := filepath.Join(t.TempDir(), "builds")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out := string(sharktest.New(t).Compile(t, "KnownReferences", knownReferences).Run(t, file))
	parts := strings.Split(strings.TrimSpace(strings.ReplaceAll(out, "\r\n", "\n")), "\n\n")
	if len(parts) != 3 {
		t.Fatalf("Shark's output has %d parts, want 3: %.200s", len(parts), out)
	}
	shark, jvm, rows := strings.Split(parts[0], "\n"), strings.Split(parts[1], "\n"), strings.Split(parts[2], "\n")
	if got := lineOf(android.JVMMatchers()); !slices.Equal(got, jvm) {
		t.Errorf("for a JVM: got %q, but Shark has %q", got, jvm)
	}
	if len(rows) != len(all) {
		t.Fatalf("%d results for %d builds", len(rows), len(all))
	}
	for i, row := range rows {
		if len(row) != len(shark) {
			t.Fatalf("%d results for %d matchers", len(row), len(shark))
		}
		var want []string
		for n, applies := range row {
			if applies == '1' {
				want = append(want, shark[n])
			}
		}
		if got := lineOf(android.MatchersOf(android.Shark214, all[i])); !slices.Equal(got, want) {
			t.Fatalf("%+v: missing %q, unexpected %q, or wrong order", all[i], without(want, got), without(got, want))
		}
	}
}

// lineOf formats matchers like KnownReferences.java.
func lineOf(matchers []trace.Matcher) []string {
	var lines []string
	for _, m := range matchers {
		kind := "leak "
		if m.Ignored {
			kind = "ignored "
		}
		lines = append(lines, kind+m.String())
	}
	return lines
}

func without(list, others []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(others, s) })
}

var (
	className = regexp.MustCompile(`^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+((\$|\$\$)\w+)*$`)
	fieldName = regexp.MustCompile(`^[a-zA-Z]\w*(\$\w+)?$`)
	origin    = regexp.MustCompile(`^(https://\S+|LeakCanary (Android|Jdk)ReferenceMatchers\.kt [A-Z_]+)$`)
)

// TestKnownReferencesAreWhole checks that each matcher has a description and a
// source, that its names can occur in a dump, and that no two matchers for one
// build have the same pattern.
func TestKnownReferencesAreWhole(t *testing.T) {
	checked := map[string]bool{}
	for _, b := range builds() {
		patterns := map[trace.Pattern]bool{}
		for _, m := range android.Matchers(b) {
			if patterns[m.Pattern] {
				t.Fatalf("%+v has %s twice", b, m)
			}
			patterns[m.Pattern] = true
			if !checked[m.String()] {
				checked[m.String()] = true
				checkKnown(t, &m)
			}
		}
	}
	if len(checked) == 0 {
		t.Error("no description was checked")
	}
}

func checkKnown(t *testing.T, m *trace.Matcher) {
	t.Helper()
	if len(m.Description) < 20 || len(m.Description) > 400 || !strings.HasSuffix(m.Description, ".") ||
		strings.ContainsAny(m.Description, "\n\t") || strings.Contains(m.Description, "  ") {
		t.Errorf("%s: description %q", m, m.Description)
	}
	if !origin.MatchString(m.Source) {
		t.Errorf("%s: source %q", m, m.Source)
	}
	// Patterns of threads do not name a class, and patterns of JNI globals do
	// not name a field.
	class, name := className.MatchString(m.Class), fieldName.MatchString(m.Name)
	switch m.Kind {
	case trace.JavaLocal:
		class, name = m.Class == "", m.Name != ""
	case trace.NativeGlobal:
		name = m.Name == ""
	}
	if !class || !name {
		t.Errorf("%s: class %q, name %q", m, m.Class, m.Name)
	}
	if m.Ignored && len(m.Where) > 0 {
		t.Errorf("matcher %s is ignored only in some builds, want all", m)
	}
}

// TestShark3FixesShark214 checks every difference between the matchers of Shark
// 3 and those of Shark 2.14, each on a build to which it applies and on a build
// to which it does not apply.
func TestShark3FixesShark214(t *testing.T) {
	const imm = "leak instance field android.view.inputmethod.InputMethodManager#mNextServedView"
	webView := []string{
		"leak static field org.chromium.android_webview.AwContents#A0",
		"leak instance field WV.R9#e", "leak instance field WV.a6#c", "leak instance field WV.H5#c",
		"leak instance field WV.Y9#e", "leak instance field WV.U4#c",
	}
	dream := "leak native global variable referencing android.service.dreams.DreamService$1"
	for _, c := range []struct {
		sdk         int
		added, gone []string
	}{
		{
			23,
			[]string{
				"leak static field android.net.ConnectivityManager#sInstance",
				"leak native global variable referencing android.app.job.JobService$1",
			},
			[]string{"leak instance field android.net.ConnectivityManager#sInstance"}},
		{24, nil, nil},
		{32, nil, nil},
		{
			33, []string{"leak instance field android.net.ConnectivityManager$CallbackHandler#this$0", dream},
			[]string{"leak instance field ConnectivityManager$CallbackHandler#this$0"},
		},
		{34, []string{imm, dream}, nil},
		{35, []string{imm, dream}, nil},
		{36, []string{dream}, nil},
	} {
		b := trace.Build{SDK: c.sdk, Manufacturer: "Google"}
		now, was := lineOf(android.Matchers(b)), lineOf(android.MatchersOf(android.Shark214, b))
		want := append(slices.Clone(webView), c.added...)
		slices.Sort(want)
		if added := without(now, was); !slices.Equal(slices.Sorted(slices.Values(added)), want) {
			t.Errorf("SDK %d: added %q, want %q", c.sdk, added, want)
		}
		if gone := without(was, now); !slices.Equal(gone, c.gone) {
			t.Errorf("SDK %d: removed %q, want %q", c.sdk, gone, c.gone)
		}
	}
}

// TestUnknownBuild checks that only matchers that apply to every build are used
// for an unknown build; in particular, none that apply only to the oldest
// builds are used.
func TestUnknownBuild(t *testing.T) {
	got := android.Matchers(trace.Build{})
	for _, m := range got {
		if len(m.Where) > 0 {
			t.Errorf("%s is limited to %+v", m, m.Where)
		}
	}
	lines := lineOf(got)
	for _, s := range append(lineOf(android.JVMMatchers()), "ignored local variable on thread main",
		"leak native global variable referencing android.widget.Toast$TN") {
		if !slices.Contains(lines, s) {
			t.Errorf("%s is missing", s)
		}
	}
	if m := android.Matchers(trace.Build{SDK: 33, ID: "TPP2.220218.008"}); len(m) <= len(got) {
		t.Errorf("got %d matchers for Android 13, want more than the %d for an unknown version", len(m), len(got))
	}
}

// TestMatchersAreTheCallersOwn checks that modifying a returned list does not
// change the next one.
func TestMatchersAreTheCallersOwn(t *testing.T) {
	for name, ask := range map[string]func() []trace.Matcher{
		"Android": func() []trace.Matcher { return android.Matchers(trace.Build{SDK: 30}) },
		"JVM":     android.JVMMatchers,
	} {
		first, before := ask(), lineOf(ask())
		clear(first)
		if after := lineOf(ask()); !slices.Equal(after, before) {
			t.Errorf("%s: %q, before %q", name, after, before)
		}
	}
}
