package footprint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/known"
)

func TestMapLines(t *testing.T) {
	before := mapOf(append(inOrder(0x1000, testMapping("/a/libx.so", 1000, 0)),
		testMapping("[anon:scudo:primary]", 20480, 100), testMapping("[anon:dalvik-main space]", 9000, 0),
		testMapping("", 50, 0))...)
	library := inOrder(0x1000, testMapping("/a/libx.so", 1000, 0), testMapping(bssName, 900, 0))
	after := mapOf(append(library, testMapping("[anon:scudo:primary]", 40960, 0),
		testMapping("[anon:scudo:primary]", 22528, 0),
		testMapping("[anon:dalvik-main space]", 8000, 0), testMapping("", 52, 0))...)
	after.Add(Mapping{Name: []byte("[anon:x]"), Usage: Usage{SwapPSS: known.Of(0)}})
	same := mapOf(testMapping("[heap]", 5, 0))
	tests := []struct {
		what          string
		before, after *Map
		top           int
		want          string
	}{
		{"growth", before, after, 5, `
Pss + SwapPss 29.9 MB -> 71.7 MB (+41.8 MB) in 4 -> 7 mappings: +42.8 MB grew, -1000 kB shrank
by kind: heap +41.9 MB, file +900 kB, java -1000 kB
native heap [anon:scudo:primary] +41.9 MB (98 % of +42.8 MB): 20.1 MB -> 62.0 MB, 1 -> 2 mappings
file /a/libx.so [bss] +900 kB (2 % of +42.8 MB): 0 kB -> 900 kB, 0 -> 1 mappings
the first 2 of 6 rows account for 100 % of the growth
warning: after: Pss of 1 mappings is unknown and counts as 0`},
		{"equal maps", same, same, 5, "\nPss + SwapPss 5 kB -> 5 kB (0 kB) in 1 -> 1 mappings\nno growth"},
		{"zero rows requested", mapOf(testMapping("[heap]", 5, 0)), mapOf(testMapping("[heap]", 50, 0)), -3, `
Pss + SwapPss 5 kB -> 50 kB (+45 kB) in 1 -> 1 mappings
by kind: heap +45 kB`},
		{"nothing", NewMap(), NewMap(), 5, `
Pss + SwapPss 0 kB -> 0 kB (0 kB) in 0 -> 0 mappings
no growth
warning: before: no mappings recorded
warning: after: no mappings recorded`},
	}
	for _, c := range tests {
		g := CompareMaps(c.before, c.after)
		if got := "\n" + strings.Join(g.Lines(c.top), "\n"); got != c.want {
			t.Errorf("%s:%s\nwant:%s", c.what, got, c.want)
		}
	}
}

// No summary has more than 12 lines.
func TestMapLinesAreFew(t *testing.T) {
	before, after := NewMap(), NewMap()
	for i := range 100 {
		after.Add(Mapping{Name: fmt.Appendf(nil, "/lib%dx.so", i), Usage: Usage{PSS: known.Of(int64(100 + i))}})
	}
	g := CompareMaps(before, after)
	g.Warnings = append(g.Warnings, g.Warnings...)
	g.Warnings = append(g.Warnings, g.Warnings...)
	lines := g.Lines(1000)
	if len(lines) != maxLines || !strings.Contains(lines[2], "/lib99x.so") {
		t.Errorf("%d lines: %s", len(lines), strings.Join(lines, "\n"))
	}
}
