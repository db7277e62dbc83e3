package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// heldShop writes the dump of a shop whose sessions are held by a map of its
// own class, by listeners and by a linked list, and returns its path.
func heldShop(t testing.TB) string {
	t.Helper()
	h := hproftest.Android(hproftest.Phone{SDK: 34})
	type f = hproftest.Fields
	session := h.Declare("com.shop.Session", nil, "object data")
	listener, link := h.Declare("com.shop.Cart$1", nil, "object this$0"),
		h.Declare("com.shop.Link", nil, "object next", "object session")
	node := h.Class("java.util.HashMap$Node")
	var nodes, listeners []hproftest.Ref
	last := hproftest.Ref(0)
	for i := range 5 {
		nodes = append(nodes,
			h.New(node, f{"key": h.String(fmt.Sprint(i)), "value": h.New(session, f{"data": h.Padding(100)})}))
		last = h.New(link, f{"next": last, "session": h.New(session, nil)})
	}
	for range 2 {
		listeners = append(listeners, h.New(listener, f{"this$0": h.New(session, nil)}))
	}
	h.Hold("com.shop.Store", "sAll",
		h.New(h.Declare("com.shop.Sessions", h.Class("java.util.HashMap")), f{"table": h.Objects(node, nodes...)}))
	h.Hold("com.shop.Bus", "sListeners", h.CopyOnWriteArrayList(listeners...))
	h.Hold("com.shop.Journal", "sLast", last)
	h.New(session, nil)
	h.New(h.Declare("com.shop.Lost", nil), nil)
	dump, _, err := h.Dump(hproftest.Form{})
	if err != nil {
		t.Fatal(err)
	}
	return dumpFile(t, dump)
}

// The golden files contain the text output; -update rewrites them.
func TestPathsText(t *testing.T) {
	path := heldShop(t)
	for name, args := range map[string][]string{
		"class":  {"com.shop.Session"},
		"object": {firstOf(t, path, "com.shop.Session")},
		"cut":    {"com/shop/Session", "--top", "3"},
		"none":   {"com.shop.Session", "--top", "0"},
		"lost":   {"com.shop.Lost"},
	} {
		code, out, errOut := ran(t, append([]string{"paths", path}, args...)...)
		if code != exitOK || errOut != "" {
			t.Errorf("%s: exit %d, %s", name, code, errOut)
		}
		checkLines(t, name, out)
		golden(t, filepath.Join("testdata", "paths", name+".txt"), out)
	}
}

// firstOf returns the ID of a held object of a class.
func firstOf(t testing.TB, path, class string) string {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := analysis.Analyze(t.Context(),
		strings.NewReader(string(file)), int64(len(file)),
		analysis.Options{LeakingClasses: []string{class}})
	if err != nil {
		t.Fatal(err)
	}
	return r.Leaks[0].Objects[0]
}

func TestPathsJSON(t *testing.T) {
	path := heldShop(t)
	var p analysis.Paths
	answered(t, &p, "paths", "--json", path, "com.shop.Session")
	if p.Schema != "leakgate.paths/1" || p.Class != "com.shop.Session" || p.Object != "" || p.Instances != 13 ||
		p.Reached != 12 || len(p.Branches) != 1 || p.Branches[0].Instances != 12 {
		t.Errorf("%+v", p)
	}
	var one analysis.Paths
	answered(t, &one, "paths", path, strings.ToUpper(firstOf(t, path, "com.shop.Session")), "--json")
	if one.Object == "" || one.Instances != 1 || one.Reached != 1 {
		t.Errorf("%+v", one)
	}
	// A word that begins with a digit cannot be a class: it is an ID without
	// 0x.
	var bare analysis.Paths
	if answered(t, &bare, "paths", path, one.Object[2:], "--json"); bare.Object != one.Object {
		t.Errorf("%+v, want %s", bare, one.Object)
	}
}

// The page about the format names every field.
func TestPathsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats/paths.md")
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]bool{}
	collectFields(reflect.TypeOf(analysis.Paths{}), fields)
	for name := range fields {
		if !strings.Contains(string(page), "`"+name+"`") && !strings.Contains(string(page), "`"+name+"[]`") {
			t.Errorf("no field %s", name)
		}
	}
	if len(fields) < 15 {
		t.Errorf("%d fields", len(fields))
	}
}

func TestPathsRejectsWrongInput(t *testing.T) {
	path, folder := recorded.Path(t, "hprof", "leak_service_binder.hprof"), t.TempDir()
	missing, empty := filepath.Join(folder, "none.hprof"), dumpFile(t, nil)
	for _, c := range []struct {
		code  int
		args  []string
		words []string
	}{
		{exitUsage, nil, []string{"want a heap dump and a class"}},
		{exitUsage, []string{path}, []string{"want a heap dump and a class"}},
		{exitUsage, []string{path, ""}, []string{"argument 2 is empty"}},
		{exitUsage, []string{path, "a.B", "a.C"}, []string{"got 3", "one class or ID"}},
		{
			exitUsage, []string{"java.util.HashMap", path},
			[]string{"java.util.HashMap does not exist", "the file " + path + " does", "name the heap dump first"},
		},
		{exitUsage, []string{missing, "java.util.HashMap"}, []string{missing, "does not exist"}},
		{exitUsage, []string{missing, folder}, []string{missing, "does not exist"}},
		{exitUsage, []string{path, "java.util.HashMap", "--top", "-1"}, []string{"--top", "at least 0"}},
		{exitUsage, []string{path, "0xzz"}, []string{`"0xzz" is not an object ID`}},
		{exitUsage, []string{path, "2bitmap"}, []string{`"2bitmap" is not an object ID`}},
		{
			exitUsage, []string{path, "2968897416"},
			[]string{"there is no object 0x2968897416", "decimal 2968897416 is 0xb0f5c788"},
		},
		{exitUsage, []string{path, "0x1"}, []string{"there is no object 0x1 in the dump\n"}},
		{exitUsage, []string{path, "1"}, []string{"there is no object 0x1 in the dump\n"}},
		{
			exitUsage, []string{path, "b0f5c788"},
			[]string{"there is no class b0f5c788", "write the ID of an object as 0xb0f5c788"},
		},
		{exitUsage, []string{path, "LeakyService"}, []string{"did you mean com.example.leakcanary.LeakyService?"}},
		{exitUsage, []string{path, "a\x1b[2Jb"}, []string{"there is no class a?[2Jb"}},
		{exitUnread, []string{empty, "0x1"}, []string{empty + ": the file is empty; copy it again"}},
		{exitUsage, []string{folder, "0x1"}, []string{folder, "is a folder"}},
	} {
		refused(t, c.code, append([]string{"paths"}, c.args...), c.words...)
	}
	if code, out, errOut := fed(t, strings.NewReader(""), "paths", "-", "a.B"); code != exitUnread || out != "" ||
		!strings.Contains(errOut, "standard input") {
		t.Errorf("empty stdin: exit %d, %q, %q", code, out, errOut)
	}
}
