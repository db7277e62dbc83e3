package analysis

import (
	"strings"
	"testing"
)

// A leak explains an accumulation if the leaking objects are those that
// accumulate in the place, but not if many other objects accumulate there as
// well.
func TestExplainedBy(t *testing.T) {
	leak := Leak{
		Key: "k", Class: "com.shop.CartActivity", Instances: 100,
		Trace: []TraceElement{{Object: "0x1"}, {Object: "0x2"}, {Object: "0x3"}},
	}
	suspect := Leak{Trace: make([]TraceElement, 2)}
	for name, c := range map[string]struct {
		class string
		count int64
		// holder is the object that precedes the place in the trace; of is the
		// class of the object at the place.
		holder, place, of string
		told              bool
	}{
		"objects of the leak":         {"com.shop.CartActivity", 100, "0x8", "0x2", "java.util.ArrayList", false},
		"slightly more objects":       {"com.shop.CartActivity", 111, "0x8", "0x2", "java.util.ArrayList", false},
		"many more objects":           {"com.shop.CartActivity", 5000, "0x8", "0x2", "java.util.ArrayList", true},
		"other class":                 {"com.shop.Page", 100, "0x8", "0x2", "java.util.ArrayList", true},
		"other place":                 {"com.shop.CartActivity", 100, "0x8", "0x9", "java.util.ArrayList", true},
		"nodes that hold the objects": {"java.util.HashMap$Node", 100, "0x8", "0x2", "java.util.ArrayList", false},
		"array of the list":           {"com.shop.CartActivity", 100, "0x2", "0x9", "java.lang.Object[]", false},
		"other field of the holder":   {"com.shop.CartActivity", 100, "0x2", "0x9", "com.shop.Cart", true},
	} {
		suspect.Accumulates = &Accumulation{Class: c.class, Count: c.count}
		if strings.HasPrefix(c.class, "java.") {
			suspect.Accumulates.Holds, suspect.Accumulates.Held = "com.shop.CartActivity", c.count
		}
		suspect.Trace[0].Object, suspect.Trace[1].Object, suspect.Trace[1].Class = c.holder, c.place, c.of
		if got := explainedBy(&suspect, []Leak{leak}) == ""; got != c.told {
			t.Errorf("%s: reported %t", name, got)
		}
	}
}
