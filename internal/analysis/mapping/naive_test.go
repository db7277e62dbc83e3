package mapping

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// naive is a second reader of mappings, with regular expressions and maps.
type naive struct {
	classes map[string]string
	fields  map[string]map[string]bool // keyed by class in the source and field in the build
	methods map[string][]string        // keyed by class and method in the build
	counts  [3]int
}

var (
	classLine  = regexp.MustCompile(`^\s*(\S+)\s*->\s*(\S+)\s*:\s*$`)
	fieldLine  = regexp.MustCompile(`^\s*(\S+)\s+(\S+)\s*->\s*(\S+)\s*$`)
	methodLine = regexp.MustCompile(
		`^\s*(?:(\d+):(\d+):)?(\S+)\s+([^\s(]+)\(([^)]*)\)(?::(\d+)(?::(\d+))?)?\s*->\s*(\S+)\s*$`)
)

func readNaively(text string) *naive {
	n := &naive{classes: map[string]string{}, fields: map[string]map[string]bool{}, methods: map[string][]string{}}
	original, renamed := "", ""
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		if g := classLine.FindStringSubmatch(line); g != nil {
			n.counts[0]++
			original, renamed = g[1], g[2]
			n.classes[renamed] = original
		} else if g := methodLine.FindStringSubmatch(line); g != nil {
			n.counts[2]++
			key := renamed + " " + g[8]
			n.methods[key] = append(n.methods[key], fmt.Sprintf("%s %s %s", span(g[1], g[2]), g[4], span(g[6], g[7])))
		} else if g := fieldLine.FindStringSubmatch(line); g != nil {
			n.counts[1]++
			key := original + " " + g[3]
			if n.fields[key] == nil {
				n.fields[key] = map[string]bool{}
			}
			n.fields[key][g[2][strings.LastIndex(g[2], ".")+1:]] = true
		}
	}
	return n
}

// span returns a range of lines, lower end first.
func span(from, to string) string {
	if from == "" {
		return "none"
	}
	a, _ := strconv.Atoi(from)
	b, err := strconv.Atoi(to)
	if err != nil {
		b = a
	}
	return fmt.Sprintf("%d-%d", min(a, b), max(a, b))
}

func (l lines) String() string {
	if !l.known {
		return "none"
	}
	return fmt.Sprintf("%d-%d", l.from, l.to)
}

func checkNaive(t *testing.T, m *Mapping, text string) {
	t.Helper()
	n := readNaively(text)
	if got := [3]int{m.Classes, m.Fields, m.Methods}; got != n.counts {
		t.Errorf("got %d classes, fields and methods, want %d", got, n.counts)
	}
	for renamed, original := range n.classes {
		if got := m.Class(renamed); got != original {
			t.Errorf("class %s: %s, want %s", renamed, got, original)
		}
		if got := m.Class(renamed + "[][]"); got != original+"[][]" {
			t.Errorf("class %s[][]: %s", renamed, got)
		}
	}
	for key, originals := range n.fields {
		class, renamed, _ := strings.Cut(key, " ")
		want := renamed
		for original := range originals {
			if len(originals) == 1 {
				want = original
			}
		}
		if got := m.Field(class, renamed); got != want {
			t.Errorf("field %s.%s: %s, want %s", class, renamed, got, want)
		}
	}
	for key, want := range n.methods {
		class, name, _ := strings.Cut(key, " ")
		var got []string
		for _, e := range m.methods(m.renamed(class), name) {
			original := m.names.name(e.name)
			if e.holder != 0 {
				original = m.names.name(e.holder) + "." + original
			}
			got = append(got, fmt.Sprintf("%v %s %v", e.obfuscated, original, e.original))
		}
		if !slices.Equal(got, want) {
			t.Errorf("method %s of %s:\n got %q\nwant %q", name, class, got, want)
		}
	}
}

// TestNaive reads random, irregular mappings with both readers and compares the
// results.
func TestNaive(t *testing.T) {
	for seed := range uint64(300) {
		text := wild(seed)
		checkNaive(t, mustRead(t, text), text)
	}
}

// model is a mapping before it is written, with everything that a compiler
// knows.
type model struct {
	*rand.Rand
	text    strings.Builder
	classes map[string]string
	fields  map[[2]string]string
	frames  map[string]string // request to result
	sources map[string]string
	ending  string
}

func newModel(seed uint64) *model {
	m := &model{
		Rand: rand.New(rand.NewPCG(seed, 2)), classes: map[string]string{}, fields: map[[2]string]string{},
		frames: map[string]string{}, sources: map[string]string{}, ending: "\n",
	}
	if seed%3 == 0 {
		m.ending = "\r\n"
	}
	if seed%5 == 0 {
		m.text.WriteString("\xef\xbb\xbf")
	}
	m.line("# compiler: R8")
	m.line("# compiler_version: 8.5.%d", seed)
	m.line(`# {"id":"com.android.tools.r8.mapping","version":"2.2"}`)
	m.line("# pg_map_id: %07x", seed)
	m.line("# pg_map_hash: SHA-256 %064x", seed)
	names := m.Perm(400)
	for i := range 1 + m.IntN(30) {
		m.class(i, letters(names[i]))
	}
	return m
}

func (m *model) line(format string, args ...any) {
	fmt.Fprintf(&m.text, format+m.ending, args...)
	if m.IntN(40) == 0 {
		m.text.WriteString([]string{
			"", "   ", "# a remark", "# {\"id\":\"com.later.unknown\",\"deep\":{\"er\":[1,\"}\"]}}",
		}[m.IntN(4)] + m.ending)
	}
}

// letters returns names in R8's order: a to z, then aa.
func letters(i int) string {
	if i < 26 {
		return string(rune('a' + i))
	}
	return letters(i/26-1) + string(rune('a'+i%26))
}

func (m *model) class(i int, renamed string) {
	original := fmt.Sprintf("com.shop.part%d.Thing%d", m.IntN(3), i)
	source := fmt.Sprintf("Thing%d.java", i)
	if m.IntN(2) == 0 {
		original += "$Inner"
	}
	if m.IntN(4) == 0 {
		renamed = "com.shop." + renamed
	}
	m.line("%s -> %s:", original, renamed)
	if m.IntN(2) == 0 {
		source = fmt.Sprintf("File%d.kt", i)
		m.line(`# {"id":"sourceFile","fileName":"%s"}`, source)
	}
	m.classes[renamed], m.sources[original] = original, source
	for j := range m.IntN(8) {
		name := fmt.Sprintf("field%d", m.IntN(1000))
		m.fields[[2]string{original, letters(j)}] = name
		m.line("    %s %s -> %s", []string{"int", "java.lang.String[][]", original}[m.IntN(3)], name, letters(j))
	}
	for j := range m.IntN(8) {
		m.method(original, renamed, j)
	}
}

// method writes a method with several ranges, and other methods inlined into
// each range.
func (m *model) method(original, renamed string, j int) {
	line := 1
	for range 1 + m.IntN(4) {
		more := m.IntN(3)
		var answers []string
		inner := 100 + m.IntN(1000)
		depth := m.IntN(3)
		for d := range depth + 1 {
			name, holder, file := fmt.Sprintf("method%d", j), original, m.sources[original]
			if d < depth {
				name, holder = fmt.Sprintf("inlined%d", d), fmt.Sprintf("com.lib.UtilKt%d", d)
				file = holder[len("com.lib."):] + ".java"
			}
			qualified := name
			if holder != original {
				qualified = holder + "." + name
			}
			if d == 0 {
				m.line("    %d:%d:void %s(int,%s):%d:%d -> %s", line, line+more, qualified, original, inner, inner+more,
					letters(j))
				answers = append(answers, fmt.Sprintf("%s,%s,%s,%%d", holder, name, file))
				continue
			}
			at := m.IntN(500)
			m.line("    %d:%d:void %s(int,%s):%d -> %s", line, line+more, qualified, original, at, letters(j))
			answers = append(answers, fmt.Sprintf("%s,%s,%s,%d", holder, name, file, at))
		}
		for l := range more + 1 {
			m.frames[fmt.Sprintf("frame %s %s %d", renamed, letters(j), line+l)] = fmt.Sprintf(
				strings.Join(answers, " "), inner+l)
		}
		line += more + 1 + m.IntN(2)
	}
}

// TestRoundTrip writes a model and compares all results with it.
func TestRoundTrip(t *testing.T) {
	asked := 0
	for seed := range uint64(200) {
		model := newModel(seed)
		m := mustRead(t, model.text.String())
		if m.Compiler != "R8" || m.Version != fmt.Sprintf("8.5.%d", seed) || m.ID != fmt.Sprintf("%07x", seed) ||
			m.Hash != fmt.Sprintf("%064x", seed) || len(m.Warnings) > 0 {
			t.Errorf("%q %q %q %q %v", m.Compiler, m.Version, m.ID, m.Hash, m.Warnings)
		}
		for renamed, original := range model.classes {
			if got := m.Class(renamed); got != original {
				t.Errorf("class %s: %s, want %s", renamed, got, original)
			}
		}
		for key, want := range model.fields {
			if got := m.Field(key[0], key[1]); got != want {
				t.Errorf("field %s: %s, want %s", key, got, want)
			}
		}
		for question, want := range model.frames {
			if got := ask(t, m, question); got != want {
				t.Errorf("%s:\n got %s\nwant %s", question, got, want)
			}
			asked++
		}
		checkNaive(t, m, model.text.String())
	}
	if asked < 5000 {
		t.Errorf("only %d frames were requested, want at least 5000", asked)
	}
}

// TestSame reads a mapping twice and compares all results, from several
// goroutines. The hashes have different seeds each time, but the results must
// be the same.
func TestSame(t *testing.T) {
	for seed := range uint64(40) {
		a, b := mustRead(t, wild(seed)), mustRead(t, wild(seed))
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				for _, question := range wildQuestions() {
					if x, y := ask(t, a, question), ask(t, b, question); x != y {
						t.Errorf("seed %d, %s:\n%s\n%s", seed, question, x, y)
					}
				}
			})
		}
		all.Wait()
	}
}
