package ksh

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// randomPattern returns a pattern of package regexp over a few letters; a line
// of these letters often matches it.
func randomPattern(r *rand.Rand, depth int) string {
	if depth == 0 {
		return []string{
			"a", "b", "ab", ".", "[ab]", "[^a]", "[0-9]", `\.`, " ", "^", "$", "", "(?i:B)", "é",
		}[r.IntN(14)]
	}
	sub := func() string { return randomPattern(r, depth-1) }
	switch r.IntN(7) {
	case 0:
		return sub() + "|" + sub()
	case 1:
		return "(?:" + sub() + ")*"
	case 2:
		return "(" + sub() + ")+"
	case 3:
		return "(?:" + sub() + ")?"
	case 4:
		return "(?:" + sub() + "){1,2}"
	case 5:
		return "(?:" + sub() + "|" + sub() + ")"
	}
	return sub() + sub()
}

func randomLine(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(7) {
		b.WriteString([]string{"a", "b", "B", "1", ".", " ", "\n", "\x00", "é", "\xff"}[r.IntN(10)])
	}
	return b.String()
}

// The automaton and package regexp must agree on every ASCII line, and the
// automaton must report other lines as unknown.
func TestAutomatonIsTheRegexp(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	patterns := []string{
		`^(Pss|SwapPss|Threads|RssAnon|VmSwap):|^[0-9]+ [(]|[)] [A-Za-z] -?[0-9]+ |^[0-9.]+ [0-9.]+$`,
		"^$", "$^", "", "a^b", "a$b", "(^|a)b($|a)", "(?i:k)", "[^a]$",
	}
	for range 4000 {
		patterns = append(patterns, randomPattern(r, r.IntN(4)))
	}
	made, found, missed := 0, 0, 0
	for _, pattern := range patterns {
		a, re := newAutomaton(pattern), regexp.MustCompile(pattern)
		if a == nil {
			continue
		}
		made++
		lines := []string{
			"", "a", "ab", "Pss:  12 kB", "SwapPss: 0 kB", "Size: 4 kB", "12 (com.x) S 1 0", "1.2 3.4", "1.2 3.4x", "K",
			"\u212a",
		}
		for range 40 {
			lines = append(lines, randomLine(r))
		}
		for _, line := range lines {
			got, known := a.matches(line)
			want := re.MatchString(line)
			if known && got != want {
				t.Fatalf("%q in %q: got %v, want %v as in package regexp", pattern, line, got, want)
			}
			if ascii := !strings.ContainsFunc(line, func(c rune) bool { return c > 127 }); ascii && !known {
				t.Fatalf("%q in %q: the automaton does not know the result", pattern, line)
			}
			if want {
				found++
			} else {
				missed++
			}
		}
	}
	if made < len(patterns)*9/10 || found < 10000 || missed < 10000 {
		t.Errorf("too few cases: %d automatons for %d patterns, %d matching lines, %d other lines", made,
			len(patterns), found, missed)
	}
}

// Patterns for which there is no automaton must be matched by package regexp.
func TestPatternsWithoutAnAutomaton(t *testing.T) {
	for _, pattern := range []string{
		`\bab\b`, `(?m)^b`, "(?:a|b)*a" + strings.Repeat("[ab]", 9), strings.Repeat("ab", maxInstructions),
	} {
		if newAutomaton(pattern) != nil {
			t.Errorf("%.40q has an automaton", pattern)
		}
		p := linePattern{regexp.MustCompile(pattern), newAutomaton(pattern)}
		if !p.in("x ab\nb"+strings.Repeat("ab", maxInstructions)) && !p.in("x ab") {
			t.Errorf("%.40q does not match", pattern)
		}
	}
}

// A phone caches a limited number of patterns, each together with its options.
func TestPatternsAreKept(t *testing.T) {
	var k linePatterns
	same := func(w grepKey) bool {
		a, err := k.get(w)
		if err != nil {
			t.Fatal(err)
		}
		b, err := k.get(w)
		return err == nil && a == b
	}
	if !same(grepKey{patterns: "a.b"}) || !same(grepKey{patterns: "a.b", fixed: true}) ||
		same(grepKey{patterns: strings.Repeat("a", maxKept+1)}) {
		t.Error("the cache returned a different pattern, or stored one that is too long")
	}
	plain, _ := k.get(grepKey{patterns: "a.b"})
	fixed, _ := k.get(grepKey{patterns: "a.b", fixed: true})
	if !plain.in("axb") || fixed.in("axb") || !fixed.in("a.b") {
		t.Error("a pattern was cached without its options")
	}
	for i := range 3 * maxPatterns {
		if !same(grepKey{patterns: strings.Repeat("a", i)}) || len(k.made) > maxPatterns {
			t.Fatalf("%d patterns are cached", len(k.made))
		}
	}
	if _, err := k.get(grepKey{patterns: "(", extended: true}); err == nil {
		t.Error("no error")
	}
}
