package jvmtest

import (
	"bufio"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// names is a mapping in ProGuard's form: "original -> new:" for a class,
// followed by " type original -> new" for each field.
type names struct {
	classes map[string]string
	fields  map[[2]string]string
}

func readNames(t *testing.T, path string) names {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := names{map[string]string{}, map[[2]string]string{}}
	class := ""
	scanner := bufio.NewScanner(f)
	for scanner.Scan() {
		original, renamed, ok := strings.Cut(strings.TrimSuffix(scanner.Text(), ":"), " -> ")
		words := strings.Fields(original)
		switch {
		case !ok || len(words) == 0:
		case len(words) == 1:
			class = words[0]
			n.classes[class] = renamed
		case !strings.Contains(words[1], "("):
			n.fields[[2]string{class, words[1]}] = renamed
		}
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

// of returns the names of a class and a field in a renamed program; Java's own
// classes keep their names.
func (n names) of(class, field string) (string, string) {
	renamed, ok := n.classes[class]
	if !ok {
		return class, field
	}
	return renamed, n.fields[[2]string{class, field}]
}

// traits are the properties in which variants may differ.
type traits struct {
	// holders lists the classes that reference leaking objects, in order, by
	// the name of the leaking class in the source.
	holders map[string][]string
	// classes holds the names of the leaking classes; addresses holds the
	// addresses of the leaking objects.
	classes   []string
	addresses []hprof.ID
	// order lists the leaking classes in the order in which their first objects
	// were created. The main thread creates the objects of all classes but one,
	// and the serial collector keeps their order.
	order []string
}

// address matches the address in the name of a lambda class, which differs
// between runs.
var address = regexp.MustCompile(`[+/]0x[0-9a-f]+$`)

func observe(t *testing.T, g *heap.Graph, named func(string, string) (string, string)) traits {
	t.Helper()
	seen := traits{holders: map[string][]string{}}
	leaking := map[heap.Object]string{}
	for _, leak := range MallLeaks() {
		class, _ := named(leak.Class, "")
		seen.classes = append(seen.classes, class)
		for _, o := range g.Exactly(class) {
			leaking[o] = leak.Class
			seen.addresses = append(seen.addresses, g.ID(o))
		}
	}
	for _, o := range slices.Sorted(maps.Keys(leaking)) {
		class := leaking[o]
		if class != mall+"ProductScreen" && class != mall+"DraftScreen" && !slices.Contains(seen.order, class) {
			seen.order = append(seen.order, class)
		}
	}
	for o, targets := range references(t, g, g.InstancesOf("java.lang.Object")) {
		for _, target := range targets {
			if class, ok := leaking[target]; ok {
				seen.holders[class] = append(seen.holders[class], address.ReplaceAllString(g.Class(o), ""))
			}
		}
	}
	for class, holders := range seen.holders {
		slices.Sort(holders)
		seen.holders[class] = slices.Compact(holders)
	}
	return seen
}

func TestVariants(t *testing.T) {
	t.Parallel()
	variants := New(t).Variants(t)
	list := plans()
	if len(variants) != 20 || len(list) != 20 {
		t.Fatalf("%d variants, %d plans, want 20", len(variants), len(list))
	}
	seen := make([]traits, len(list))
	for i, v := range variants {
		if v.Name != list[i].name || len(v.Leaking) < 12 || (v.Mapping != "") != (list[i].rules != nil) {
			t.Errorf("variant %d: %+v", i, v)
		}
		named := asWritten
		if v.Mapping != "" {
			named = readNames(t, v.Mapping).of
		}
		g := load(t, v.Dump)
		t.Run(v.Name, func(t *testing.T) {
			checkLeaks(t, g, MallLeaks(), v.Iterations, named)
			seen[i] = observe(t, g, named)
		})
	}
	first := seen[0]
	var rebuilt, reordered, renamed []traits
	for i, p := range list {
		if p.source != 0 {
			rebuilt = append(rebuilt, seen[i])
		}
		if p.seed != list[0].seed {
			reordered = append(reordered, seen[i])
		}
		if p.rules != nil {
			renamed = append(renamed, seen[i])
		} else if !reflect.DeepEqual(unnumbered(seen[i]), unnumbered(first)) {
			t.Errorf("the leaks of %s differ from those of the first variant: %v", p.name, seen[i].holders)
		}
	}
	t.Run("rebuilt", func(t *testing.T) { checkRebuilt(t, first, rebuilt[:len(rebuilt)-2]) })
	t.Run("reordered", func(t *testing.T) { checkReordered(t, first, reordered) })
	t.Run("renamed", func(t *testing.T) { checkRenamed(t, first, renamed) })
}

// number matches a number that javac or the JVM assigns to anonymous and local
// classes, and to lambdas.
var number = regexp.MustCompile(`\$\d+`)

// unnumbered returns the holders without their numbers.
func unnumbered(s traits) map[string][]string {
	m := map[string][]string{}
	for class, holders := range s.holders {
		for _, holder := range holders {
			m[class] = append(m[class], number.ReplaceAllString(holder, "$$N"))
		}
	}
	return m
}

// checkRebuilt checks that the numbers of lambdas and anonymous classes differ
// in the rebuilt variants. Each variant must have at least three holders with
// different names. Across the variants, a holder that may be declared after
// inserted code must have at least two new names.
func checkRebuilt(t *testing.T, first traits, variants []traits) {
	other := map[string]map[string]bool{}
	for i, v := range variants {
		changed := 0
		for class, holders := range v.holders {
			if reflect.DeepEqual(holders, first.holders[class]) {
				continue
			}
			changed++
			if other[class] == nil {
				other[class] = map[string]bool{}
			}
			other[class][holders[0]] = true
		}
		// Since JDK 21, the names of lambdas do not contain numbers.
		if changed < 3 {
			t.Errorf("rebuilt %d: only %d holders have a different name", i+1, changed)
		}
	}
	for _, class := range []string{
		"PriceScreen", "SearchScreen", "DealScreen", "CartScreen", "SyncScreen", "EditorScreen", "SettingsScreen",
	} {
		holders := first.holders[mall+class]
		if len(holders) != 1 {
			t.Fatalf("%s is held by %q, want one holder", class, holders)
		}
		if strings.HasSuffix(holders[0], "$$Lambda") {
			continue
		}
		if n := len(other[mall+class]); n < 2 {
			t.Errorf("the holder of %s has only %d name", class, n)
		}
	}
}

// checkReordered checks that objects have different addresses, in a different
// order.
func checkReordered(t *testing.T, first traits, variants []traits) {
	all := append([]traits{first}, variants...)
	for i, a := range all {
		for k, b := range all[:i] {
			if a.order == nil || b.order == nil {
				t.Fatal("nothing leaks")
			}
			if slices.Equal(a.addresses, b.addresses) {
				t.Errorf("reordered %d and %d: addresses are equal", k, i)
			}
			if slices.Equal(a.order, b.order) {
				t.Errorf("reordered %d and %d: order is equal", k, i)
			}
		}
	}
}

// checkRenamed checks that names are unrelated, and that the same name stands
// for different classes in different builds.
func checkRenamed(t *testing.T, first traits, variants []traits) {
	meanings := map[string]map[string]bool{}
	for i, v := range variants {
		for k, class := range v.classes {
			if class == "" || class == first.classes[k] {
				t.Errorf("renamed %d: %s is called %q", i+1, first.classes[k], class)
			}
			if meanings[class] == nil {
				meanings[class] = map[string]bool{}
			}
			meanings[class][first.classes[k]] = true
		}
		for k, other := range variants[:i] {
			if slices.Equal(v.classes, other.classes) {
				t.Errorf("renamed %d and %d: names are equal", k+1, i+1)
			}
		}
	}
	ambiguous := 0
	for _, classes := range meanings {
		if len(classes) > 1 {
			ambiguous++
		}
	}
	if ambiguous < 5 {
		t.Errorf("only %d names stand for more than one class", ambiguous)
	}
}
