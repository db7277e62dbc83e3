package config

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// mutations returns variants of a valid file with typical mistakes. Some of the
// variants are still valid.
func mutations(good string, n int) []string {
	rng := rand.New(rand.NewPCG(5, 6))
	lines := strings.Split(strings.TrimSuffix(good, "\n"), "\n")
	var out []string
	for i := range n {
		mutated := slices.Clone(lines)
		for range 1 + rng.IntN(3) {
			k := rng.IntN(len(mutated))
			mutated = kinds[(i+rng.IntN(2)*rng.IntN(len(kinds)))%len(kinds)](rng, mutated, k)
		}
		out = append(out, strings.Join(mutated, "\n")+"\n")
	}
	return out
}

// kinds lists the kinds of mutations, each of which changes line k.
var kinds = []func(rng *rand.Rand, lines []string, k int) []string{
	func(_ *rand.Rand, l []string, k int) []string { // drop
		if len(l) == 1 {
			return l
		}
		return slices.Delete(l, k, k+1)
	},
	func(_ *rand.Rand, l []string, k int) []string { return slices.Insert(l, k, l[k]) }, // double
	func(rng *rand.Rand, l []string, k int) []string { // rename
		if i := strings.Index(l[k], ":"); i > 0 {
			j := rng.IntN(i)
			l[k] = l[k][:j] + string(rune('a'+rng.IntN(26))) + l[k][j+rng.IntN(2):]
		}
		return l
	},
	func(rng *rand.Rand, l []string, k int) []string { // another value
		if key, _, ok := strings.Cut(l[k], ":"); ok {
			values := []string{
				"", "x", "0", "-1", "[a, b]", "{ a: b }", "1e400", "~", "''", "\"${UNSET}\"", "${", "*a", "&a",
				"!!int 3", "true", "99999999999999999999", "0x10", "|", "> x", "- y", "<<",
			}
			l[k] = key + ": " + values[rng.IntN(len(values))]
		}
		return l
	},
	func(rng *rand.Rand, l []string, k int) []string { // indent
		l[k] = strings.Repeat(" ", 1+rng.IntN(3)) + l[k]
		return l
	},
	func(_ *rand.Rand, l []string, k int) []string { l[k] = strings.TrimPrefix(l[k], " "); return l },
	func(_ *rand.Rand, l []string, k int) []string { l[k] = "\t" + l[k]; return l },
	func(rng *rand.Rand, l []string, k int) []string { // drop a character
		if l[k] == "" {
			return l
		}
		i := rng.IntN(len(l[k]))
		l[k] = l[k][:i] + l[k][i+1:]
		return l
	},
	func(rng *rand.Rand, l []string, k int) []string { // add a character
		marks := "{}[]:,'\"&*!|>%@`#-? \t\x00\x1b\x7f\xff"
		i, m := rng.IntN(len(l[k])+1), rng.IntN(len(marks))
		l[k] = l[k][:i] + marks[m:m+1] + l[k][i:]
		return l
	},
	func(rng *rand.Rand, l []string, k int) []string { // swap two lines
		j := rng.IntN(len(l))
		l[k], l[j] = l[j], l[k]
		return l
	},
	func(rng *rand.Rand, l []string, k int) []string { // truncate
		i := rng.IntN(len(l[k]) + 1)
		return append(l[:k], l[k][:i])
	},
	func(_ *rand.Rand, l []string, k int) []string { return slices.Insert(l, k, "---") },
	func(_ *rand.Rand, l []string, k int) []string { return slices.Insert(l, k, "gate: { }") },
}

func TestMutatedFiles(t *testing.T) {
	refused := 0
	for i, text := range mutations(full, 300) {
		c, err := Parse("run.yaml", []byte(text), environment)
		if err == nil {
			checkConfig(t, c)
			continue
		}
		refused++
		checkErrors(t, []byte(text), err)
		if t.Failed() {
			t.Fatalf("file %d:\n%s\n%v", i, text, err)
		}
	}
	if refused < 200 {
		t.Errorf("only %d files are invalid, want at least 200", refused)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("version: 1\napp: { package: com.shop }\nworkload: { instrument: { component: a.b/.C, class: " +
		"[a.B#c], arguments: { size: small }, delay_after_test: 3s } }\nprofiles: { p: { workload: { device_command: " +
		"x, windows: " +
		"{ begin: 'b(?P<name>.*)', end: e } } } }\n"))
	for _, text := range mutations(full, 60) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		start := time.Now()
		defer func() {
			if d := time.Since(start); d > 30*time.Second {
				t.Errorf("%d bytes took %v", len(text), d)
			}
		}()
		c, err := Parse("run.yaml", text, environment)
		if (c == nil) == (err == nil) {
			t.Fatalf("got %v, %v, want either a Config or an error", c, err)
		}
		if err != nil {
			checkErrors(t, text, err)
			return
		}
		checkConfig(t, c)
	})
}
