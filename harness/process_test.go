package harness

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/reporters/record"
)

// A decoded analysis of a dump equals the encoded one, including leaks and
// bitmaps.
func TestReadReport(t *testing.T) {
	heap := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
	screen := heap.Activity("com.shop.DetailActivity", hproftest.Destroyed)
	heap.Hold("com.shop.ScreenTracker", "sScreens", heap.ArrayList(screen.Ref).Ref)
	heap.Hold("com.shop.Images", "sImages", heap.ArrayList(heap.Bitmap(hproftest.Picture{Width: 64, Height: 64})).Ref)
	path := filepath.Join(t.TempDir(), "x.hprof")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := io.Copy(f, heap.Reader(hproftest.Form{}))
	if err != nil {
		t.Fatal(err)
	}
	report, err := analysis.Analyze(t.Context(), f, size, analysis.Options{Top: 10})
	if err != nil || len(report.Leaks) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := readReport(path)
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	if twice, err := json.Marshal(again); err != nil || json.Unmarshal(twice, &got) != nil ||
		json.Unmarshal(text, &want) != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read back: %s, %v\nwritten: %s", twice, err, text)
	}
	if _, err := readReport(path + ".none"); err == nil {
		t.Error("a missing analysis causes no error")
	}
	if err := os.WriteFile(path, []byte(`{"leaks": 3}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readReport(path); err == nil {
		t.Error("a file that is not a report causes no error")
	}
}

// If a diagnosis has no heap dump, the error quotes the reason that the device
// reported, if any.
func TestNoHeap(t *testing.T) {
	step := func(name string, reasons ...string) record.Diagnosis {
		return record.Diagnosis{Steps: []record.Collected{{Step: name, Reasons: reasons}}}
	}
	warned := step("smaps", "other")
	warned.Warnings = []string{"it was gone"}
	for want, d := range map[string]record.Diagnosis{
		"com.shop is not debuggable": step("heap", "com.shop is not debuggable"), "it was gone": warned,
		"the device returned no heap dump": step("heap"),
	} {
		if got := noHeap(d).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
