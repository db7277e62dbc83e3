package jvmtest

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

func TestRebuilt(t *testing.T) {
	written := Mall()
	made := map[string]bool{}
	for seed := range uint64(20) {
		rebuilt := written.Rebuilt(seed)
		if !reflect.DeepEqual(rebuilt, written.Rebuilt(seed)) {
			t.Fatalf("seed %d creates a different program each time", seed)
		}
		if rebuilt["Console.java"] != written["Console.java"] {
			t.Errorf("seed %d changes a program without marks", seed)
		}
		text := rebuilt["Mall.java"]
		made[text] = true
		want, got := lines(written["Mall.java"]), lines(text)
		for line, n := range want {
			if strings.Contains(line, "//@") {
				n = 0
			}
			if got[line] < n {
				t.Errorf("seed %d removes %q", seed, line)
			}
			delete(got, line)
		}
		for line := range got {
			if !strings.Contains(line, "more") && line != "new Object() {}.hashCode();\n" {
				t.Errorf("seed %d adds %q", seed, line)
			}
		}
		if strings.Contains(text, "//@") {
			t.Errorf("seed %d does not replace a mark", seed)
		}
	}
	if len(made) != 20 {
		t.Errorf("20 seeds create only %d different programs", len(made))
	}
}

func lines(text string) map[string]int {
	m := map[string]int{}
	for line := range strings.Lines(text) {
		m[line]++
	}
	return m
}

func TestLeaksAreDistinct(t *testing.T) {
	for _, list := range [][]Leak{ShopLeaks(), MallLeaks()} {
		classes := map[string]bool{}
		for _, leak := range list {
			if classes[leak.Class] {
				t.Errorf("%s leaks twice", leak.Class)
			}
			classes[leak.Class] = true
		}
	}
	want := fmt.Sprintf("SCREENS = %d;", len(MallLeaks()))
	if !strings.Contains(Mall()["Mall.java"], want) {
		t.Errorf("Mall.java does not contain %s", want)
	}
}

func TestCompileOnce(t *testing.T) {
	t.Parallel()
	j := New(t)
	s := Files{"A.java": "final class A {}\n"}
	first, err := os.ReadFile(j.Compile(t, s))
	if err != nil {
		t.Fatal(err)
	}
	// If a program contains errors, Compile must return javac's output.
	path := filepath.Join(t.TempDir(), "again.jar")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.compile(ctx, s, path); err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(path); err != nil || string(again) != string(first) {
		t.Errorf("the same program was compiled again: %v", err)
	}
	if err := j.compile(ctx, Files{"A.java": "class A {}\n"}, path); err == nil {
		t.Error("a different program was not compiled")
	}
}

// A program must be the same whether it is compiled alone or together with
// others.
func TestCompileTogether(t *testing.T) {
	t.Parallel()
	j := New(t)
	a, b := Files{"A.java": "class A { int a; }\n"}, Files{"A.java": "class A { int b; }\n", "B.java": "class B {}\n"}
	together, err := j.jars(t.Context(), []Files{a, b}, "")
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range []Files{a, b} {
		alone, err := j.jars(t.Context(), []Files{s}, "")
		if err != nil {
			t.Fatal(err)
		}
		got, want := classes(t, together[i]), classes(t, alone[0])
		if len(want) != len(s) || !reflect.DeepEqual(got, want) {
			t.Errorf("program %d: %q, want %q", i, got, want)
		}
	}
	if err := j.compileTogether(t.Context(), []Files{a, {"A.java": "class A { Nothing field; }\n"}}); err == nil {
		t.Error("a program with errors was compiled")
	}
}

// classes returns the contents of the files in a jar, by name.
func classes(t *testing.T, jar []byte) map[string]string {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(jar), int64(len(jar)))
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]string{}
	for _, f := range z.File {
		data, err := fs.ReadFile(z, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		m[f.Name] = string(data)
	}
	return m
}

func TestCompileSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	j := New(t)
	s := Files{"A.java": "class A { Nothing field; }\n"}
	for range 2 {
		if err := j.compile(t.Context(), s, t.TempDir()+"/a.jar"); err == nil ||
			!strings.Contains(err.Error(), "cannot find symbol") {
			t.Errorf("error %v", err)
		}
	}
}

// A failure must not be kept, because the next test may have more time. Results
// must be kept, so that other processes can use them.
func TestBuiltKeepsNoFailure(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	fails := func() ([]byte, error) { return []byte("half"), context.Canceled }
	if data, err := built(t.Name(), fails); err == nil || data != nil {
		t.Errorf("%q, %v", data, err)
	}
	if data, err := built(t.Name(), func() ([]byte, error) { return []byte("whole"), nil }); err != nil ||
		string(data) != "whole" {
		t.Errorf("%q, %v", data, err)
	}
	for range 2 {
		if data, err := built(t.Name(), fails); err != nil || string(data) != "whole" || !known(t.Name()) {
			t.Errorf("%q, %v", data, err)
		}
		builds.Delete(t.Name())
	}
}

func TestClassName(t *testing.T) {
	for path, want := range map[string]string{
		"BCDEFG/java.base/java/lang/Runnable.sig":    "java/lang/Runnable.class",
		"9AB/java.base/java/util/Map$Entry.sig":      "java/util/Map$Entry.class",
		"8/java.base/java/lang/Runnable.sig":         "",
		"CDEFG/java.base/java/lang/Runnable.sig":     "",
		"BC/java.desktop/java/awt/Button.sig":        "",
		"BC/java.base/module-info.sig":               "",
		"B/system-modules":                           "",
		"B-modules/java.base/java/lang/Runnable.txt": "",
		"": "",
	} {
		if name, ok := className(path); ok != (want != "") || ok && name != want {
			t.Errorf("%s: %q, %v", path, name, ok)
		}
	}
}

// ending is a test that records how it ended.
type ending struct {
	testing.TB
	how string
}

func (e *ending) Helper() {}

func (e *ending) Fatalf(format string, args ...any) { e.end("failed: ", format, args) }
func (e *ending) Skipf(format string, args ...any)  { e.end("skipped: ", format, args) }

func (e *ending) end(how, format string, args []any) {
	e.how = how + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestMissingToolsSkipOrFail(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, c := range []struct{ require, program, how string }{
		{"", "javac", "skipped: javac is needed"},
		{"all", "javac", "failed: javac is needed"},
		{"", "proguard", "skipped: proguard is needed"},
		{"all", "proguard", "failed: proguard is needed"},
	} {
		t.Setenv("LEAKGATE_REQUIRE", c.require)
		e := &ending{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if c.program == "javac" {
				New(e)
			} else {
				new(JDK).Variants(e)
			}
		}()
		<-done
		if !strings.HasPrefix(e.how, c.how) {
			t.Errorf("%s, LEAKGATE_REQUIRE=%q: %q", c.program, c.require, e.how)
		}
	}
}
