package mapping

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// TestDoubts checks that lines that cannot be parsed are counted and that
// reading continues.
func TestDoubts(t *testing.T) {
	m := mustRead(t, strings.Join([]string{
		"    void orphan() -> a",
		"com.A -> a:",
		"    void good() -> a",
		"    1:void oneNumber() -> a",
		"    what is this",
		"    99999999999:2:void large():1:1 -> a",
		"# {\"id\":\"com.android.tools.r8.mapping\",\"version\":\"7.1\"}",
		"# {\"id\":",
		"com.B b:",
		"    void notOfA() -> a",
		"com.C -> a:",
		"    void second() -> a",
		"    int \xff -> a",
		strings.Repeat("x", maxLine+1),
		"com.D -> d:",
	}, "\n"))
	want := []string{
		`line 4: cannot parse "1:void oneNumber() -> a", and 4 more such lines`,
		"line 14: too long, skipped",
		`line 1: "void orphan() -> a" is outside a class, and 1 more such lines`,
		`1 class repeats the name of an earlier class, first "a"; the first definition is used`,
		`line 8: invalid metadata "{\"id\":"`,
		"line 7: the version 7.1 of the mapping is newer than 2.2: its additions are ignored",
	}
	if got := fmt.Sprint(m.Warnings); got != fmt.Sprint(errorsOf(want)) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if m.Class("a") != "com.A" || m.Class("d") != "com.D" || m.Classes != 3 || m.Methods != 2 {
		t.Errorf("%s %s %d %d", m.Class("a"), m.Class("d"), m.Classes, m.Methods)
	}
	if got := printed(m.Frame("a", "a", 3)); got != "com.A,good,A.java,3" {
		t.Error(got)
	}
}

func errorsOf(texts []string) (errs []error) {
	for _, text := range texts {
		errs = append(errs, errors.New(text))
	}
	return errs
}

func TestNoMapping(t *testing.T) {
	for text, want := range map[string]string{
		"": "read mapping: the input is empty",
		"PK\x03\x04 and so on\nmore": `read mapping: not a ProGuard or R8 mapping: line 1: cannot parse ` +
			`"PK\x03\x04 and so on", and 1 more such lines`,
		"    void a() -> b\n": `read mapping: not a ProGuard or R8 mapping: line 1: "void a() -> b" ` +
			`is outside a class`,
		"# a remark\n": "read mapping: not a ProGuard or R8 mapping: only comments",
	} {
		if m, err := Read(strings.NewReader(text)); m != nil || err == nil || err.Error() != want {
			t.Errorf("%q: %v, %v", text, m, err)
		}
	}
	// The mapping of a build that renames nothing has a header and no class.
	m := mustRead(t, "# compiler: R8\n# pg_map_hash: SHA-256 abc\n")
	if m.ID != "abc" || m.Class("a.B") != "a.B" || m.Field("a.B", "c") != "c" ||
		printed(m.Frame("a.B", "c", -3)) != "a.B,c,,-3" {
		t.Errorf("%+v", m)
	}
}

// TestReaders uses readers that return the input in pieces or fail.
func TestReaders(t *testing.T) {
	text := wild(3)
	m, err := Read(iotest.OneByteReader(strings.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	checkNaive(t, m, text)
	broken := errors.New("broken")
	_, err = Read(io.MultiReader(strings.NewReader("com.A -> a:\n"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || err.Error() != "read mapping: line 2: broken" {
		t.Error(err)
	}
}

// TestCaps checks the limits on everything that a hostile input could contain
// in unlimited numbers.
func TestCaps(t *testing.T) {
	most := caps{line: 64, text: 1000, classes: 3, names: 9}
	for text, want := range map[string]string{
		"A -> a:\nB -> b:\nC -> c:\n":                                               "",
		"A -> a:\nB -> b:\nC -> c:\nD -> d:\nE -> e:\n":                             "more than",
		"A -> a:\n    int f -> g\n    int h -> i\n    int j -> k\n    int l -> m\n": "more than 9 names",
		"A -> a:\n" + strings.Repeat("x", 2000):                                     "longer than 1000 bytes",
		strings.Repeat("# x\n", 300):                                                "longer than 1000 bytes",
	} {
		_, err := read(strings.NewReader(text), most)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
	// An endless line is refused at the size limit, and takes no memory.
	_, err := read(io.MultiReader(strings.NewReader("A -> a:\n"), endless{}),
		caps{line: maxLine, text: 64 << 20, classes: 9, names: 99})
	if err == nil || !strings.Contains(err.Error(), "line 2: the input is longer") {
		t.Error(err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestManyAnswers checks the limit on the results of a hostile request.
func TestManyAnswers(t *testing.T) {
	var text strings.Builder
	text.WriteString("A -> a:\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "    void m%d():1:60 -> a\n    7:7:void n%d() -> b\n", i, i)
	}
	text.WriteString("    void far():1:2000000000 -> c\n    void near() -> c\n")
	m := mustRead(t, text.String())
	for _, name := range []string{"a", "b", "c"} {
		for _, line := range []int32{-3, 0, 7} {
			if n := len(m.Frame("a", name, line)); n > maxFrames || name != "b" && n == 0 {
				t.Errorf("%s:%d: %d frames", name, line, n)
			}
		}
	}
}

// TestFieldOfType checks that fields with the same name are distinguished by
// their types in a dump.
func TestFieldOfType(t *testing.T) {
	m := mustRead(t, `# {"id":"com.android.tools.r8.mapping","version":"2.2"}
A -> a:
    int count -> a
    java.lang.String text -> a
    long wide -> b
    com.Enum state -> b
# {"id":"com.android.tools.r8.residualsignature","signature":"I"}
    com.Other other -> b
    int[] numbers -> c
    B.inherited -> d
    B B.inherited -> d
A -> a2:
    int late -> e
`)
	for _, c := range []struct{ name, kind, want string }{
		{"a", "int", "count"}, {"a", "object", "text"}, {"a", "long", "a"}, {"b", "long", "wide"},
		{"b", "int", "state"}, {"b", "object", "other"},
		{"c", "object", "numbers"}, {"d", "object", "inherited"}, {"e", "int", "late"}, {"z", "int", "z"},
	} {
		if got := m.FieldOfType("A", c.name, c.kind); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.kind, c.name, got, c.want)
		}
	}
	for name, want := range map[string]string{"a": "a", "b": "b", "c": "numbers", "d": "inherited", "e": "late"} {
		if got := m.Field("A", name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := m.Field("a", "c"); got != "c" {
		t.Errorf("field looked up by the obfuscated class name: got %s, want c", got)
	}
}

// TestVersions checks that metadata is ignored if the version that the mapping
// declares does not include it.
func TestVersions(t *testing.T) {
	for version, want := range map[string]bool{
		"": false, "none": false, "experimental": false, "0.9": false, "1.0": true, "2.2": true, "99.9": true,
		"-1.0": false, "x.y": false,
	} {
		head := ""
		if version != "" {
			head = fmt.Sprintf("# { id: 'com.android.tools.r8.mapping', version: '%s' }\n", version)
		}
		m := mustRead(t,
			head+
				"A -> a:\n# {\"id\":\"com.android.tools.r8.synthesized\"}\n# "+
				"{\"fileName\":\"\\u0041\\/.kt\",\"id\":\"sourceFile\"}\n")
		if m.Synthesized("A") != want || m.Synthesized("a") || m.Synthesized("B") {
			t.Errorf("%q: %t", version, m.Synthesized("A"))
		}
		if got := m.Frame("a", "b", 1)[0].Source; got != "A/.kt" {
			t.Error(got)
		}
	}
}

// bulk writes the mapping of an app of a given size, as R8 would write it.
func bulk(size int) string {
	var b strings.Builder
	b.Grow(size + 1<<10)
	b.WriteString("# compiler: R8\n# {\"id\":\"com.android.tools.r8.mapping\",\"version\":\"2.2\"}\n")
	for i := 0; b.Len() < size; i++ {
		class := fmt.Sprintf("com.company.product.feature%d.screens.SomeScreenPresenter%d", i%500, i)
		fmt.Fprintf(&b, "%s -> %s.%s:\n# {\"id\":\"sourceFile\",\"fileName\":\"SomeScreenPresenter%d.kt\"}\n", class,
			letters(i%300), letters(i), i)
		for j := range 6 {
			fmt.Fprintf(&b, "    com.company.product.model.Entity%d repositoryOfThings%d -> %s\n", i%90, j+i%50,
				letters(j))
		}
		for j := range 20 {
			name := fmt.Sprintf("computeSomething%d", (i*7+j)%5000)
			fmt.Fprintf(&b,
				"    %d:%d:java.lang.Object kotlin.collections.CollectionsKt.first(java.util.List):%d:%d -> %s\n",
				4*j+1, 4*j+3, 200+j, 202+j, letters(j))
			fmt.Fprintf(&b, "    %d:%d:void %s(com.company.product.model.Entity%d,int):%d -> %s\n", 4*j+1, 4*j+3, name,
				i%90, 40+j, letters(j))
			fmt.Fprintf(&b, "    %d:%d:void %s(com.company.product.model.Entity%d,int):%d:%d -> %s\n", 4*j+4, 4*j+4,
				name, i%90, 41+j, 41+j, letters(j))
		}
	}
	return b.String()
}

// TestMemory checks that a mapping takes less memory than the size of its file,
// and that hostile inputs with many classes and names take at most a bounded
// multiple of their size.
func TestMemory(t *testing.T) {
	var classes, names strings.Builder
	for i := range 300_000 {
		fmt.Fprintf(&classes, "%s->%s:\n", letters(i), letters(i))
	}
	names.WriteString("A->a:\n")
	for i := range 300_000 {
		fmt.Fprintf(&names, "int %s->a\n", letters(i))
	}
	for name, c := range map[string]struct {
		text string
		most float64
	}{"app": {bulk(16 << 20), 0.3}, "classes": {classes.String(), 12}, "names": {names.String(), 4}} {
		before := live()
		m := mustRead(t, c.text)
		if share := float64(live()-before) / float64(len(c.text)); share > c.most {
			t.Errorf("%s: %.2f bytes per byte of text, want at most %.1f", name, share, c.most)
		} else {
			t.Logf("%s: %.2f bytes per byte of text", name, share)
		}
		runtime.KeepAlive(m)
		runtime.KeepAlive(c)
	}
}

func live() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// TestAllocations checks that reading a hundred times as many lines of methods
// causes at most 40 more allocations, which growing arrays need.
func TestAllocations(t *testing.T) {
	count := func(lines int) float64 {
		text := "A -> a:\n" + strings.Repeat("    1:3:void com.B.name(int,java.lang.String):5:7 -> b\n", lines)
		return testing.AllocsPerRun(3, func() {
			if _, err := Read(strings.NewReader(text)); err != nil {
				t.Fatal(err)
			}
		})
	}
	few, many := count(1000), count(100_000)
	if many > few+40 {
		t.Errorf("got %.0f allocations for 1000 lines and %.0f for 100,000, want at most 40 more", few, many)
	}
}

func BenchmarkRead(b *testing.B) {
	text := bulk(50 << 20)
	lines := strings.Count(text, "\n")
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var m *Mapping
	before := live()
	for b.Loop() {
		var err error
		if m, err = Read(strings.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(live()-before)/float64(lines), "kept-B/line")
	b.ReportMetric(float64(lines), "lines")
	runtime.KeepAlive(m)
	runtime.KeepAlive(text)
}

func BenchmarkFrame(b *testing.B) {
	m := mustRead(b, bulk(1<<20))
	renamed := m.names.name(m.classes[100].renamed)
	b.ReportAllocs()
	for b.Loop() {
		if len(m.Frame(renamed, "k", 42)) == 0 {
			b.Fatal("no frame")
		}
	}
}
