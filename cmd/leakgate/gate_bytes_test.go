package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
)

// pictured writes three dumps. Each dump has two more closed screens than the
// previous dump, and each screen holds a picture of the given number of bytes.
// It returns the value of --dump.
func pictured(t *testing.T, dir, name string, picture int) string {
	t.Helper()
	var files []string
	takings++
	for loop := 1; loop <= 3; loop++ {
		h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
		h.Declare("com.shop.CartActivity", h.Class("android.app.Activity"), "object picture")
		var all []hproftest.Ref
		for range 2 * loop {
			a := h.Activity("com.shop.CartActivity", hproftest.Destroyed)
			if picture > 0 {
				h.Set(a.Ref, "picture", h.Bytes(make([]byte, picture)))
			}
			all = append(all, a.Ref)
		}
		h.Hold("com.shop.CartBus", "listeners", h.ArrayList(all...).Ref)
		dump, _, err := h.Dump(hproftest.Form{Time: time.Date(2026, 11, 1, takings, loop, 0, 0, time.UTC)})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, fmt.Sprintf("%s-%d.hprof", name, loop))
		if err := os.WriteFile(path, dump, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	return "com.shop=" + strings.Join(files, ",")
}

// The retained size of an object is compared in bytes of the size model: adding
// a picture adds exactly its bytes and the header of its array, at most 16
// bytes.
func TestGateBytesWithinSizeModel(t *testing.T) {
	dir := inFolder(t)
	const picture, header = 100 << 10, 16
	for _, name := range []string{"base1", "base2", "base3"} {
		if code, _, errOut := typed(t, nil, "baseline", "update", "--dump", pictured(t, dir, name, 0)); code != 0 {
			t.Fatal(errOut)
		}
	}
	judge := func(name string, picture, want int) *comparison.Row {
		t.Helper()
		code, out, errOut := typed(t, nil, "gate", "--dump", pictured(t, dir, name, picture), "--json")
		var c comparison.Comparison
		if err := json.Unmarshal([]byte(out), &c); err != nil || code != want || len(c.Leaks) != 1 ||
			c.Leaks[0].BytesEach.Base == nil || c.Leaks[0].BytesEach.Head == nil {
			t.Fatalf("exit %d, %v\n%s%s", code, err, out, errOut)
		}
		return &c.Leaks[0]
	}
	same := judge("same", 0, 0)
	if same.Status != comparison.Known || *same.BytesEach.Head != *same.BytesEach.Base ||
		same.HeadBytes != 6*int64(*same.BytesEach.Head) {
		t.Errorf("unchanged size: %+v", same)
	}
	heavier := judge("heavier", picture, 1)
	if heavier.Status != comparison.Heavier || *heavier.BytesEach.Base != *same.BytesEach.Base ||
		*heavier.PerLoop.Head != 2 {
		t.Errorf("heavier: %+v", heavier)
	}
	if more := *heavier.BytesEach.Head - *heavier.BytesEach.Base; more < picture || more > picture+header {
		t.Errorf("each object retains %v more bytes, want %d plus a header", more, picture)
	}
	if more := heavier.HeadBytes - same.HeadBytes; more < 6*picture || more > 6*(picture+header) {
		t.Errorf("all objects retain %d more bytes, want 6 x %d plus headers", more, picture)
	}
	// Growth by a factor of 1.25 is not reported if the total difference is
	// less than 512 KB.
	if light := judge("light", picture/2, 0); light.Status != comparison.Known ||
		*light.BytesEach.Head < 1.25**light.BytesEach.Base {
		t.Errorf("6 x 50 KB: %+v", light)
	}
}
