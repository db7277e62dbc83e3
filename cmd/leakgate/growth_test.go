package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// growingShop returns the heap of an app after a number of repetitions of a
// scenario: a list of listeners that are never removed, a linked list, threads
// that do not end, JNI globals, and a full cache.
func growingShop(t testing.TB, loops int) []byte {
	t.Helper()
	h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
	screen, listener := h.Declare("com.shop.CartScreen", nil, "object picture"),
		h.Declare("com.shop.CartScreen$1", nil, "object this$0")
	page, upload := h.Declare("com.shop.Page", nil, "object next", "int number"),
		h.Declare("com.shop.Upload", h.Class("java.lang.Thread"))
	listeners, full, last := h.ArrayList(), h.ArrayList(), hproftest.Ref(0)
	for i := range 2 + loops {
		picture := h.Bytes(make([]byte, 2000))
		listeners.Add(h.New(listener, hproftest.Fields{"this$0": h.New(screen, hproftest.Fields{"picture": picture})}))
		last = h.New(page, hproftest.Fields{"next": last, "number": i})
		h.Root(hprof.SubRootJNIGlobal, h.New(upload, hproftest.Fields{"name": fmt.Sprintf("upload %d", i)}))
		if i < 4 {
			full.Add(h.Padding(500))
		}
	}
	h.Hold("com.shop.EventBus", "listeners", listeners.Ref)
	h.Hold("com.shop.Journal", "last", last)
	h.Hold("com.shop.Cache", "entries", full.Ref)
	dump, _, err := h.Dump(hproftest.Form{Time: time.Date(2026, 1, 2, 3, 4, loops, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	return dump
}

// series writes dumps of growingShop, and returns their directory and paths.
func series(t testing.TB, loops ...int) (dir string, paths []string) {
	t.Helper()
	dir = t.TempDir()
	for _, n := range loops {
		path := filepath.Join(dir, fmt.Sprintf("after%d.hprof", n))
		if err := os.WriteFile(path, growingShop(t, n), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return dir, paths
}

// The golden files contain the output as text and as JSON; -update rewrites
// them.
func TestGrowthText(t *testing.T) {
	dir, three := series(t, 5, 10, 15)
	for name, args := range map[string][]string{
		"three.txt":   append(slices.Clone(three), "--loops", "5"),
		"three.json":  append(slices.Clone(three), "--loops", "5", "--json"),
		"two.txt":     {three[0], three[1], "--top", "1"},
		"nothing.txt": append(slices.Clone(three), "--loops", "6"),
	} {
		code, out, errOut := ran(t, append([]string{"growth"}, args...)...)
		if code != exitOK || errOut != "" {
			t.Errorf("%s: exit %d, %s", name, code, errOut)
		}
		golden(t, filepath.Join("testdata", "growth", name),
			strings.ReplaceAll(out, dir+string(filepath.Separator), ""))
	}
}

// The expected numbers follow from how the dumps are built.
func TestGrowthCounts(t *testing.T) {
	_, paths := series(t, 5, 15, 25)
	var r analysis.Growth
	answered(t, &r, append([]string{"growth", "--json", "--loops", "10"}, paths...)...)
	if r.Schema != "leakgate.growth/1" || r.Loops != 10 || r.Found != 3 || len(r.Growth) != 3 || len(r.Dumps) != 3 ||
		len(r.Warnings) != 0 {
		t.Fatalf("%+v", r)
	}
	found := map[string][]int64{}
	for _, p := range r.Growth {
		if p.PerLoop != 1 || p.Delta != 20 {
			t.Errorf("%+v", p)
		}
		for _, c := range p.Children {
			found[c.Class] = c.Objects
		}
	}
	for _, class := range []string{"com.shop.CartScreen$1", "com.shop.Page", "com.shop.Upload"} {
		if got := fmt.Sprint(found[class]); got != "[7 17 27]" {
			t.Errorf("%s: %s", class, got)
		}
	}
	if d := r.Dumps[2]; d.Process != "com.shop" || d.Compared <= 0 || d.Compared > d.Objects || d.Paths <= 0 ||
		d.Time.Second() != 25 {
		t.Errorf("%+v", d)
	}
}

func TestGrowthRejectsWrongInput(t *testing.T) {
	dir, paths := series(t, 1, 2)
	broken := filepath.Join(dir, "broken.hprof")
	if err := os.WriteFile(broken, []byte("JAVA PROFILE 1.0.3\x00 and no more"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, exitUsage, []string{"growth"}, "name three or more in the order")
	refused(t, exitUsage, []string{"growth", paths[0]}, "one heap dump cannot show what grows")
	refused(t, exitUsage, []string{"growth", paths[0], paths[0]}, "named twice")
	refused(t, exitUsage, []string{"growth", paths[0], dir}, "is a directory")
	refused(t, exitUsage, []string{"growth", dir}, "is a directory", "name heap dumps")
	refused(t, exitUsage, []string{"growth", "-", "-"}, "standard input is one heap dump")
	link := filepath.Join(dir, "link.hprof")
	if err := os.Link(paths[1], link); err != nil {
		t.Fatal(err)
	}
	refused(t, exitUsage, []string{"growth", paths[0], paths[1], link}, paths[1]+" and "+link+" are the same file")
	refused(t, exitUsage, []string{"growth", paths[0], paths[1], "--loops", "0"}, "--loops")
	refused(t, exitUsage, []string{"growth", paths[0], paths[1], "--top", "-1"}, "--top")
	refused(t, exitUsage, []string{"growth", paths[0], filepath.Join(dir, "none.hprof")}, "none.hprof")
	refused(t, exitUnread, []string{"growth", paths[0], broken, paths[1]}, "broken.hprof")
	// A missing file is reported before others are read.
	refused(t, exitUsage, []string{"growth", broken, paths[1], filepath.Join(dir, "none.hprof")}, "none.hprof",
		"does not exist")
	refused(t, exitUnread, []string{"growth", paths[0], paths[1], "--memory", "10KB"}, "memory", "after1.hprof")
}

// One of the dumps may come from standard input, compressed or not.
func TestGrowthInputs(t *testing.T) {
	_, paths := series(t, 5, 10)
	_, want, _ := ran(t, "growth", "--json", paths[0], paths[1])
	code, out, errOut := fed(t,
		strings.NewReader(string(packed(t, growingShop(t, 10)))), "growth", "--json", paths[0], "-")
	if out = strings.ReplaceAll(out, `"name": "-"`, fmt.Sprintf(`"name": %q`, paths[1])); code != exitOK ||
		out != want || !strings.Contains(out, "com.shop.Page") {
		t.Errorf("exit %d, %s\n%.400s\nwant\n%.400s", code, errOut, out, want)
	}
}

// The page about the format names every field.
func TestGrowthPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats/growth.md")
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]bool{}
	collectFields(reflect.TypeOf(analysis.Growth{}), fields)
	for name := range fields {
		if !strings.Contains(string(page), "`"+name+"`") && !strings.Contains(string(page), "`"+name+"[]`") {
			t.Errorf("no field %s", name)
		}
	}
	if len(fields) < 25 {
		t.Errorf("%d fields", len(fields))
	}
}
