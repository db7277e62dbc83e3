package analysis

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

// held returns a leak of count objects of one class, with a key of the given
// lines.
func held(class string, count int, lines ...string) Leak {
	key := fmt.Sprint(lines)
	return Leak{Key: key, KeyText: lines, Class: class, Instances: count, RetainedBytes: int64(count) * 100}
}

// TestMoved checks which leaks are paired as one leak that something else holds
// in head, and which are reported as two leaks.
func TestMoved(t *testing.T) {
	loaded := loadedClasses{base: map[string]bool{"Wish": true}, head: map[string]bool{"List": true}}
	for name, c := range map[string]struct {
		base, head []Leak
		want       map[string]string // maps the key of head to the key of base, or to "" for a new leak
	}{
		"different collection": {
			[]Leak{held("Screen", 12, "Bus.listeners", "java.util.ArrayList")},
			[]Leak{held("Screen", 12, "Bus.listeners", "java.util.LinkedList")},
			map[string]string{"[Bus.listeners java.util.LinkedList]": "[Bus.listeners java.util.ArrayList]"},
		},
		"different path, same class": {
			[]Leak{held("Screen", 12, "Bus.listeners")},
			[]Leak{held("Screen", 10, "Registry.INSTANCE", "Registry.map")},
			map[string]string{"[Registry.INSTANCE Registry.map]": "[Bus.listeners]"},
		},
		"leaking class and one line renamed": {
			[]Leak{held("Cart", 8, "Bus.listeners", "Cart$$Lambda.<captured>")},
			[]Leak{held("Basket", 8, "Bus.listeners", "Basket$$Lambda.<captured>")},
			map[string]string{"[Bus.listeners Basket$$Lambda.<captured>]": "[Bus.listeners Cart$$Lambda.<captured>]"},
		},
		"renumbered anonymous class": {
			[]Leak{held("Cart$1", 8, "A.a")}, []Leak{held("Cart$2", 8, "B.b")}, map[string]string{"[B.b]": "[A.a]"},
		},
		"different class on a different path": {
			[]Leak{held("Cart", 8, "A.a", "B.b")}, []Leak{held("Wish", 8, "A.c", "B.d")},
			map[string]string{"[A.c B.d]": ""},
		},
		"different class with a path of one line": {
			[]Leak{held("Cart", 8, "A.a")}, []Leak{held("Wish", 8, "A.b")}, map[string]string{"[A.b]": ""},
		},
		"five times as many": {
			[]Leak{held("Cart", 8, "A.a")}, []Leak{held("Cart", 40, "A.b")}, map[string]string{"[A.b]": ""},
		},
		"two instead of one": {
			[]Leak{held("Cart", 1, "A.a")}, []Leak{held("Cart", 2, "A.b")}, map[string]string{"[A.b]": "[A.a]"},
		},
		"a third more": {
			[]Leak{held("Cart", 9, "A.a")}, []Leak{held("Cart", 12, "A.b")}, map[string]string{"[A.b]": "[A.a]"},
		},
		"more than a third more": {
			[]Leak{held("Cart", 8, "A.a")}, []Leak{held("Cart", 11, "A.b")}, map[string]string{"[A.b]": ""},
		},
		"old leak still present": {
			[]Leak{held("Cart", 8, "A.a")}, []Leak{held("Cart", 8, "A.a"), held("Cart", 8, "A.b")},
			map[string]string{"[A.b]": ""},
		},
		"closest of two": {
			[]Leak{held("Cart", 8, "A.a", "X.x"), held("Cart", 8, "B.b", "Y.y")}, []Leak{held("Cart", 8, "B.b", "Z.z")},
			map[string]string{"[B.b Z.z]": "[B.b Y.y]"},
		},
		"different class on a similar path, loaded in base too": {
			[]Leak{held("Cart", 8, "A.a", "Cart$$Lambda.<captured>")},
			[]Leak{held("Wish", 8, "A.a", "Wish$$Lambda.<captured>")},
			map[string]string{"[A.a Wish$$Lambda.<captured>]": ""},
		},
		"different class on a similar path, both loaded in head": {
			[]Leak{held("List", 8, "A.a", "List$$Lambda.<captured>")},
			[]Leak{held("Grid", 8, "A.a", "Grid$$Lambda.<captured>")},
			map[string]string{"[A.a Grid$$Lambda.<captured>]": ""},
		},
		"different platform class on a similar path": {
			[]Leak{held("android.os.Binder", 8, "A.a", "B.b")}, []Leak{held("android.view.View", 8, "A.a", "B.c")},
			map[string]string{"[A.a B.c]": ""},
		},
		"platform": {
			[]Leak{{Key: "k1", Class: "Cart", Instances: 1, Library: true}},
			[]Leak{{Key: "k2", Class: "Cart", Instances: 1, Library: true}}, map[string]string{"k2": ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for _, l := range compareLeaks(sumLeaks(c.base), sumLeaks(c.head), loaded) {
				if l.Status == statusNew || l.Status == statusMoved {
					got[l.Key] = l.MovedFrom
				}
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// moved returns the only stable set of pairs. In a stable set, no two leaks
// prefer each other to their partners, and no two leaks without a partner could
// be paired.
func TestMovedByBruteForce(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	some := func(n int) (list []*leakSum) {
		for i := range random.IntN(n + 1) {
			l := &leakSum{
				key: fmt.Sprintf("%c%d", 'a'+rune(n%7), i), instances: 1 + random.Int64N(6), bytes: random.Int64N(3),
			}
			l.classes = map[string]int64{fmt.Sprint("C", random.IntN(3)): l.instances}
			for range 1 + random.IntN(3) {
				l.text = append(l.text, fmt.Sprint("f", random.IntN(3)))
			}
			if random.IntN(8) == 0 {
				l.fingerprints = []string{"f"}
			}
			list = append(list, l)
		}
		return list
	}
	pairs := 0
	for range 3000 {
		gone, added := some(4), some(5)
		classes := loadedClasses{map[string]bool{"C0": random.IntN(2) == 0}, map[string]bool{"C1": random.IntN(2) == 0}}
		of := moved(gone, added, classes)
		var stable []map[*leakSum]*leakSum
		matchings(gone, added, classes, map[*leakSum]*leakSum{}, func(m map[*leakSum]*leakSum) {
			if isStable(gone, added, classes, m) {
				stable = append(stable, maps.Clone(m))
			}
		})
		if len(stable) != 1 || !maps.Equal(stable[0], of) {
			t.Fatalf("got %d stable matchings, %v, want only %v", len(stable), stable, of)
		}
		pairs += len(of)
	}
	if pairs < 1000 {
		t.Errorf("got %d pairs, want at least 1000", pairs)
	}
}

// matchings calls f with each possible set of pairs, including the empty one.
func matchings(gone, added []*leakSum, classes loadedClasses, m map[*leakSum]*leakSum, f func(map[*leakSum]*leakSum)) {
	if len(added) == 0 {
		f(m)
		return
	}
	matchings(gone, added[1:], classes, m, f)
	for i, b := range gone {
		if _, ok := paired(b, added[0], classes); ok {
			m[added[0]] = b
			matchings(slices.Delete(slices.Clone(gone), i, i+1), added[1:], classes, m, f)
			delete(m, added[0])
		}
	}
}

func isStable(gone, added []*leakSum, classes loadedClasses, m map[*leakSum]*leakSum) bool {
	of := map[*leakSum]*leakSum{}
	for h, b := range m {
		of[b] = h
	}
	rather := func(p pairing, have *leakSum, other func() pairing) bool {
		return have == nil || p.compare(other()) < 0
	}
	for _, h := range added {
		for _, b := range gone {
			p, ok := paired(b, h, classes)
			if !ok || m[h] == b {
				continue
			}
			head := rather(p, m[h], func() pairing { q, _ := paired(m[h], h, classes); return q })
			base := rather(p, of[b], func() pairing { q, _ := paired(b, of[b], classes); return q })
			if head && base {
				return false
			}
		}
	}
	return true
}

// Of more than mostMoved leaks, only those that retain the most bytes are
// compared, and the diff contains a warning.
func TestMovedOfMany(t *testing.T) {
	var base, head []Leak
	for i := range mostMoved + 1 {
		b, h := held(fmt.Sprint("C", i), 1, "A.a", fmt.Sprint("B", i)),
			held(fmt.Sprint("C", i), 1, "A.b", fmt.Sprint("B", i))
		b.RetainedBytes, h.RetainedBytes = int64(i), int64(i)
		base, head = append(base, b), append(head, h)
	}
	list := compareLeaks(sumLeaks(base), sumLeaks(head), loadedClasses{})
	count := map[string]int{}
	for _, l := range list {
		count[l.Status]++
		if l.Status != statusMoved && l.Class != "C0" {
			t.Errorf("%+v", l)
		}
	}
	if count[statusMoved] != mostMoved || count[statusNew] != 1 || count[statusGone] != 1 {
		t.Error(count)
	}
	if warnings := movedWarnings(list); len(warnings) != 1 {
		t.Errorf("%q", warnings)
	}
	if warnings := movedWarnings(compareLeaks(sumLeaks(base[1:]), sumLeaks(head[1:]), loadedClasses{})); len(
		warnings) != 0 {
		t.Errorf("got warnings %q, want none", warnings)
	}
}

// Obfuscated names refer to the same things only in dumps from one build.
func TestNameMismatches(t *testing.T) {
	dump := func(of, digest string, shapes map[string]uint64) *Summary {
		s := &Summary{
			dump: Dump{Names: Naming{Origin: of}}, shapes: shapes, tree: newClassTree([]heap.ClassNode{{}}, 1),
		}
		if digest != "" {
			s.dump.Names.Mapping = &UsedMapping{SHA256: digest}
		}
		s.leaks = sumLeaks([]Leak{held("a", 2, "a.a"), {Key: "k", Class: "P", Instances: 1, Library: true}})
		return s
	}
	one, more, other := map[string]uint64{"a": 1, "b": 2, "c": 3}, map[string]uint64{"a": 1, "b": 2, "d": 4, "e": 5},
		map[string]uint64{"a": 1, "b": 3, "c": 3}
	foreign := map[string]uint64{"a": 1, "x": 1, "y": 1, "z": 1}
	for name, c := range map[string]struct {
		base, head *Summary
		want       []string // words that the mismatches must contain
	}{
		"unobfuscated":              {dump("source", "", nil), dump("source", "", nil), nil},
		"each with its own mapping": {dump("mapping", "m1", nil), dump("mapping", "m2", nil), nil},
		"one obfuscated dump": {
			dump("obfuscated", "", one), dump("mapping", "m2", nil), []string{"of base are obfuscated"},
		},
		"two obfuscated dumps of one build": {dump("obfuscated", "", one), dump("obfuscated", "", more), nil},
		"two obfuscated dumps of two builds": {
			dump("obfuscated", "", one), dump("obfuscated", "", other),
			[]string{"of base are obfuscated", "of head are obfuscated"},
		},
		"two obfuscated dumps with hardly any classes in common": {
			dump("obfuscated", "", one), dump("obfuscated", "", foreign), []string{"of base", "of head"},
		},
		"mapping of head for both": {
			dump("other_mapping", "m2", one), dump("mapping", "m2", nil),
			[]string{"the mapping of base belongs to another build"},
		},
		"wrong mapping for two dumps of one build": {
			dump("other_mapping", "m2", one), dump("other_mapping", "m2", more), nil,
		},
		"two wrong mappings for dumps of one build": {
			dump("other_mapping", "m1", one), dump("other_mapping", "m2", more), []string{"of base", "of head"},
		},
	} {
		d := Compare(c.base, c.head, 10)
		var statuses []string
		for _, l := range d.Leaks {
			statuses = append(statuses, l.Status)
		}
		want := []string{"known", "known"}
		if c.want != nil {
			want = []string{"unpaired", "unpaired", "known"}
		}
		ok := len(d.Mismatches) == len(c.want) && d.Comparable == (len(c.want) == 0) && slices.Equal(statuses, want)
		for i := range c.want {
			ok = ok && strings.Contains(d.Mismatches[i], c.want[i])
		}
		if !ok {
			t.Errorf("%s: %q, leaks %q", name, d.Mismatches, statuses)
		}
	}
}

// TestMatchMoved checks that MatchMoved pairs the same leaks as compareLeaks.
func TestMatchMoved(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	pairs := 0
	for range 300 {
		var sides [2][]Leak
		for side := range sides {
			for i := range 1 + random.IntN(4) {
				sides[side] = append(sides[side],
					held(fmt.Sprint("C", random.IntN(3)), 1+random.IntN(6), fmt.Sprint("side", side, i),
						fmt.Sprint("f", random.IntN(2))))
			}
		}
		loads := loadedClasses{map[string]bool{"C0": random.IntN(2) == 0}, map[string]bool{"C1": random.IntN(2) == 0}}
		base, head := &Summary{leaks: sumLeaks(sides[0])}, &Summary{leaks: sumLeaks(sides[1])}
		want := map[string]string{}
		for _, c := range compareLeaks(base.leaks, head.leaks, loads) {
			if c.Status == statusMoved {
				want[c.Key] = c.MovedFrom
			}
		}
		got := map[string]string{}
		gone, added := base.Leaks(), head.Leaks()
		for h, b := range MatchMoved(gone, added, func(c string) bool { return loads.base[c] },
			func(c string) bool { return loads.head[c] }) {
			got[added[h].Key] = gone[b].Key
		}
		if !maps.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		pairs += len(got)
	}
	if pairs < 100 {
		t.Errorf("got %d pairs, want at least 100", pairs)
	}
}
