package reporters

import (
	"strings"
	"testing"

	"github.com/leakgate/leakgate/analysis"
)

// What is left out of a list is counted: one in the singular.
func TestLeftOut(t *testing.T) {
	for n, want := range map[int][2]string{
		0:    {"", ""},
		1:    {"Also retains 1 more leaking object\n", "  and objects of 1 more class\n"},
		2:    {"Also retains 2 more leaking objects\n", "  and objects of 2 more classes\n"},
		1200: {"Also retains 1 200 more leaking objects\n", "  and objects of 1 200 more classes\n"},
	} {
		var also, garbage page
		also.related(make([]analysis.Related, shownLines+n))
		garbage.garbage(make([]analysis.Garbage, shownLines+n))
		for i, text := range []string{also.text.String(), garbage.text.String()} {
			if strings.Contains(text, " more ") != (want[i] != "") || !strings.HasSuffix(text, want[i]) {
				t.Errorf("%d: %q", n, text)
			}
		}
	}
}

// A place whose objects a leak tells already is not told again; one that holds others as
// well is.
func TestUnexplained(t *testing.T) {
	leak := leakOf()
	leak.Instances = 100
	for i := range leak.Trace {
		leak.Trace[i].Object = []string{"0x1", "0x2", "0x3"}[i]
	}
	pile := pileOf()
	pile.Trace[0].Object = "0x9"
	for name, c := range map[string]struct {
		class string
		count int64
		// holder is the object before the place, of is the class of the place.
		holder, place, of string
		told              bool
	}{
		"the leak's":              {"com.shop.CartActivity", 100, "0x8", "0x2", "java.util.ArrayList", false},
		"a few more":              {"com.shop.CartActivity", 111, "0x8", "0x2", "java.util.ArrayList", false},
		"many more":               {"com.shop.CartActivity", 5000, "0x8", "0x2", "java.util.ArrayList", true},
		"of another class":        {"com.shop.Page", 100, "0x8", "0x2", "java.util.ArrayList", true},
		"in another place":        {"com.shop.CartActivity", 100, "0x8", "0x9", "java.util.ArrayList", true},
		"nodes that hold it":      {"java.util.HashMap$Node", 100, "0x8", "0x2", "java.util.ArrayList", false},
		"the array of the list":   {"com.shop.CartActivity", 100, "0x2", "0x9", "java.lang.Object[]", false},
		"another field of holder": {"com.shop.CartActivity", 100, "0x2", "0x9", "com.shop.Cart", true},
	} {
		pile.Accumulates = &analysis.Accumulation{Class: c.class, Count: c.count}
		if strings.HasPrefix(c.class, "java.") {
			pile.Accumulates.Holds, pile.Accumulates.Held = "com.shop.CartActivity", c.count
		}
		pile.Trace[0].Object, pile.Trace[1].Object, pile.Trace[1].Class = c.holder, c.place, c.of
		var out page
		out.suspects([]analysis.Leak{pile}, []analysis.Leak{leak})
		if got := out.text.Len() > 0; got != c.told {
			t.Errorf("%s: told %t", name, got)
		}
	}
}
