package analysis_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// A stripped dump contains no string contents: comparing a field with a string
// returns a warning, not an empty list.
func TestLookupOfStrippedTexts(t *testing.T) {
	for names, want := range map[int]string{
		1: "1 string value is not in the dump; objects with such a string match neither = nor !=",
		3: "3 string values are not in the dump; objects with such a string match neither = nor !=",
	} {
		h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
		order, list := h.Declare("com.shop.Order", nil, "object name"), h.ArrayList()
		for range names {
			list.Add(h.New(order, hproftest.Fields{"name": h.String("OPEN")}))
		}
		h.Hold("com.shop.Orders", "all", list.Ref)
		var whole, stripped bytes.Buffer
		if _, err := whole.ReadFrom(h.Reader(hproftest.Form{})); err != nil {
			t.Fatal(err)
		}
		_, err := hprof.Strip(t.Context(), &stripped, bytes.NewReader(whole.Bytes()), int64(whole.Len()))
		if err != nil {
			t.Fatal(err)
		}
		for name, dump := range map[string][]byte{"whole": whole.Bytes(), "stripped": stripped.Bytes()} {
			found, err := analysis.Lookup(t.Context(), bytes.NewReader(dump), int64(len(dump)), nil, "com.shop.Order",
				[]string{"name=OPEN"}, analysis.Options{Top: 10})
			if err != nil {
				t.Fatal(err)
			}
			if has := slices.Contains(found.Warnings, want); has != (name == "stripped") ||
				len(found.Objects) != map[bool]int{true: 0, false: names}[has] {
				t.Errorf("%s: %d objects, %q", name, len(found.Objects), found.Warnings)
			}
		}
	}
}
