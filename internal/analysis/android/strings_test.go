package android_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// plainText reads a String in a dump that was parsed by the plain reader.
func plainText(g *hproftest.Graph, n *hproftest.Node) (units string, array hprof.ID, ok bool) {
	array = hprof.ID(n.Fields[n.Class+".value"])
	v := g.Nodes[array]
	count, counted := n.Fields[n.Class+".count"]
	offset, hasOffset := n.Fields[n.Class+".offset"]
	if v == nil {
		return "", 0, array != 0 && counted && count == 0
	}
	var list []uint16
	for i := 0; i < len(v.Data); i++ {
		switch {
		case v.Type == hprof.Char:
			list = append(list, uint16(v.Data[i])<<8|uint16(v.Data[i+1]))
			i++
		case n.Fields[n.Class+".coder"] == 1:
			list = append(list, uint16(v.Data[i])|uint16(v.Data[i+1])<<8)
			i++
		default:
			list = append(list, uint16(v.Data[i]))
		}
	}
	if hasOffset {
		list = list[offset : offset+count]
	}
	return string(utf16.Decode(list)), array, true
}

// checkPlainStrings compares the counts of strings with those of an
// implementation that uses maps.
func checkPlainStrings(t *testing.T, name string, plain *hproftest.Graph, got *android.Strings) {
	t.Helper()
	type use struct {
		count  int64
		arrays map[hprof.ID]bool
	}
	uses := map[string]*use{}
	count, without := int64(0), int64(0)
	stringSize := int64(0)
	for _, n := range plain.Nodes {
		if n.Kind != hprof.SubInstance || strings.ReplaceAll(n.Class, "/", ".") != "java.lang.String" {
			continue
		}
		count++
		stringSize = n.Size
		s, array, ok := plainText(plain, n)
		if !ok {
			without++
			continue
		}
		if uses[s] == nil {
			uses[s] = &use{arrays: map[hprof.ID]bool{}}
		}
		uses[s].count++
		if array != 0 && s != "" {
			uses[s].arrays[array] = true
		}
	}
	if got.Count != count || got.WithoutText != without || got.Distinct != int64(len(uses)) || !got.Compared ||
		len(got.Warnings) > 0 {
		t.Errorf("got %d strings, %d without text, %d distinct, %v; want %d, %d, %d", got.Count, got.WithoutText,
			got.Distinct, got.Warnings, count, without, len(uses))
	}
	repeated, unlike := 0, 0
	for s, u := range uses {
		if u.count < 2 {
			continue
		}
		repeated++
		i := slices.IndexFunc(got.Repeated, func(r android.RepeatedString) bool {
			return r.Length == int64(len(utf16.Encode([]rune(s)))) && r.Count == u.count && shown(s) == r.Value
		})
		if i < 0 {
			t.Errorf("%d copies of %.60q are not reported", u.count, s)
			continue
		}
		// Wasted bytes are checked only in Android dumps, in which the size of
		// an array excludes its header.
		if r := got.Repeated[i]; strings.HasPrefix(name, "leak") && r.WastedBytes != (u.count-1)*stringSize+
			int64(max(len(u.arrays)-1, 0))*2*r.Length {
			unlike++
		}
	}
	if repeated != len(got.Repeated) || got.Omitted != 0 || unlike > 0 {
		t.Errorf("%d strings are repeated, but %d are reported, %d of them with a wrong number of wasted bytes",
			repeated, len(got.Repeated), unlike)
	}
	if !slices.IsSortedFunc(got.Repeated,
		func(a, b android.RepeatedString) int { return cmp.Compare(b.Count, a.Count) }) ||
		!slices.IsSortedFunc(got.Wasteful,
			func(a, b android.RepeatedString) int { return cmp.Compare(b.WastedBytes, a.WastedBytes) }) {
		t.Error("the lists are not sorted")
	}
}

// shown is a second implementation of the function that formats a string for
// reports.
func shown(s string) string {
	units := utf16.Encode([]rune(s))
	whole := len(units) <= 256
	s = string(utf16.Decode(units[:min(len(units), 256)]))
	s = strings.Map(func(r rune) rune {
		if !strings.ContainsRune(" ", r) && fmt.Sprintf("%q", string(r)) != `"`+string(r)+`"` && r != '"' && r != '\\' {
			return '\uFFFD'
		}
		return r
	}, s)
	if !whole {
		s += "…"
	}
	return s
}

func TestStringsSharedArray(t *testing.T) {
	// The strings are in an array with more elements than are read at a time.
	// They are in the middle of a piece, across pieces, the whole array, empty,
	// or outside of the array.
	for _, size := range []int{100, 700_000} {
		w := newWorld()
		array := make([]uint16, size)
		for i := range array {
			array[i] = uint16('a' + i%7)
		}
		chars := w.chars(array)
		type part struct{ offset, count int }
		parts := []part{
			{0, size}, {0, 0}, {size, 0}, {0, 7}, {7, 7}, {14, 7}, {1, 7}, {size / 2, 30}, {size - 1, 5}, {size + 1, 3},
			{3, size - 10}, {10, size - 10},
		}
		for i := range 40 {
			parts = append(parts, part{i * size / 40, size / 40})
		}
		want := map[string]int64{}
		without := int64(0)
		for _, p := range parts {
			w.dalvikString(chars, int32(p.offset), int32(p.count))
			if p.offset > size {
				without++
				continue
			}
			want[string(utf16.Decode(array[p.offset:min(p.offset+p.count, size)]))]++
		}
		w.dalvikString(chars, -1, 3)
		w.dalvikString(chars, 3, -1)
		w.dalvikString(0, 0, 0)
		without += 3
		got, err := android.ReadStrings(context.Background(), load(t, w.dump(t)), android.Options{Top: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if got.Distinct != int64(len(want)) || got.WithoutText != without || got.Count != int64(len(parts))+3 {
			t.Errorf("size %d: got %+v, want %d distinct, %d without", size, got, len(want), without)
		}
		for _, r := range got.Repeated {
			found := false
			for s, n := range want {
				found = found || n == r.Count && int64(len(s)) == r.Length && shown(s) == r.Value
			}
			if !found {
				t.Errorf("size %d: unexpected %d copies of %q with length %d", size, r.Count, r.Value, r.Length)
			}
		}
	}
}

func TestStringsBudget(t *testing.T) {
	// There are very many strings, each of which consists of the whole of one
	// large array.
	w := newWorld()
	chars := w.chars(make([]uint16, 1<<20))
	for range 2000 {
		w.dalvikString(chars, 0, 1<<20)
	}
	got, err := android.ReadStrings(context.Background(), load(t, w.dump(t)), android.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Warnings) == 0 {
		t.Errorf("no warning that only some strings were compared: %+v", got)
	}
}

func TestStringsStripped(t *testing.T) {
	for _, filler := range []uint16{0, '?'} {
		w := newWorld()
		for i := range 100 {
			text := make([]uint16, 1+i%5)
			for k := range text {
				text[k] = filler
			}
			w.dalvikString(w.chars(text), 0, int32(len(text)))
		}
		got, err := android.ReadStrings(context.Background(), load(t, w.dump(t)), android.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Compared || got.Distinct != 0 || got.Count != 100 || len(got.Repeated) != 0 || len(got.Warnings) != 1 {
			t.Errorf("%q: %+v", rune(filler), got)
		}
	}
}

func TestStringsLayouts(t *testing.T) {
	for _, form := range []hproftest.Form{
		{}, {IDSize: 8}, {Runtime: hproftest.HotSpot}, {Runtime: hproftest.HotSpot, IDSize: 4}, {Shuffle: true},
		{Converted: true}, {HeapFirst: true},
	} {
		for _, sdk := range []int{23, 34} {
			h := hproftest.Android(hproftest.Phone{SDK: sdk})
			texts := []string{
				"plain", "", "größer", "日本語", "emoji 😀 pair", "nul\x00inside", "esc\x1b[31m",
				strings.Repeat("long ", 100),
			}
			for i, s := range texts {
				h.Hold("com.shop.Keep"+string(rune('A'+i)), "sList", h.Duplicates(s, 100+i).Ref)
			}
			s, _ := made(t, h, form, android.Options{})
			for i, want := range texts {
				k := slices.IndexFunc(s.Strings.Repeated, func(r android.RepeatedString) bool {
					return r.Count == int64(100+i) && r.Value == shown(want) &&
						r.Length == int64(len(utf16.Encode([]rune(want))))
				})
				if k < 0 {
					t.Errorf("form %+v, SDK %d: %q not found in %s", form, sdk, want,
						text(t, s.Strings.Repeated[:min(10, len(s.Strings.Repeated))]))
				}
			}
		}
	}
}
