package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// TestTextOfRoots checks how the report describes objects that GC roots hold,
// and lists other classes in the same place.
func TestTextOfRoots(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{SDK: 34})
	upload := h.Declare("com.shop.Upload", nil, "object data", "object text")
	item, photo := h.Declare("com.shop.Item", nil, "object data"), h.Declare("com.shop.Photo", nil, "object data")
	list := h.ArrayList()
	for i := range 2000 {
		h.Root(hprof.SubRootJNIGlobal,
			h.New(upload, hproftest.Fields{"data": h.Padding(600), "text": h.Filler(hprof.Char, 200)}))
		list.Add(h.New(item, hproftest.Fields{"data": h.Padding(600)}))
		if i%2 == 0 {
			list.Add(h.New(photo, hproftest.Fields{"data": h.Padding(900)}))
		}
	}
	h.Hold("com.shop.Items", "sAll", list.Ref)
	data, _, err := h.Dump(hproftest.Form{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "shop.hprof")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := ran(t, "analyze", path, "--top", "5")
	if code != exitOK || errOut != "" {
		t.Fatalf("exit %d, %s", code, errOut)
	}
	for _, want := range []string{
		"MEMORY ACCUMULATES in 2 places;",
		"\n2 000 x Upload, 48.5% of what is reachable, each held by a GC root: Global variable in native code\n",
		"\n│ GC Root: Global variable in native code\n│\n╰→ com.shop.Upload instance\n" +
			"      is the largest of 2 000 objects of com.shop.Upload: 1.9 MB, each held by a GC root of its own\n" +
			"      which hold 2 000 objects of byte[]: 1.1 MB\n" +
			"      and 2 000 objects of char[]: 781.2 kB\n" +
			"      Retaining 1 016 bytes\n",
		"      holds 2 000 objects of com.shop.Item: 1.2 MB\n" +
			"      and 1 000 objects of com.shop.Photo: 890.6 kB\n" +
			"      which hold 2 000 objects of byte[]: 1.1 MB\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the text does not contain %q", want)
		}
	}
	if t.Failed() {
		_, out, _ = strings.Cut(out, "MEMORY PILES")
		t.Log(out[:min(len(out), 2000)])
	}
}
