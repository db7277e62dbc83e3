package comparison

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/text"
	extast "github.com/yuin/goldmark/extension/ast"

	"github.com/yuin/goldmark/ast"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// scenarios lists the comparisons that have a golden comment, and the numbers
// of tables and folded sections in that comment; -1 means any number.
var scenarios = []struct {
	name             string
	comparison       func() *Comparison
	tables, sections int
}{
	{"clean", clean, 1, 0},
	{"one", one, 2, 1},
	{"worse", worse, 8, 9},
	{"many-50", func() *Comparison { return many(50, 5) }, 8, 11},
	{"many-5000", func() *Comparison { return many(5000, 40) }, -1, -1},
	{"first-day", firstDay, 2, 1},
	{"informational", informational, 8, 9},
	{"not-judged", notJudged, 1, 0},
	{"fixed", fixed, 2, 1},
	{"hostile", hostile, -1, -1},
	{"nightly", nightly, 3, 3},
	{"no-match", noMatch, 2, 1},
	{"few-runs", fewRuns, 1, 0},
	{"two-phones", twoPhones, 8, 9},
	{"leakcanary", ofLeakCanary, 2, 1},
	{"trip", trip, 3, 3},
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run go test -update and review the difference", file)
	}
}

func TestGoldenComments(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			c := s.comparison()
			page := Markdown(c, options())
			p := checkPage(t, page, options())
			tables, sections := 0, 0
			p.walk(func(n ast.Node) {
				switch n := n.(type) {
				case *extast.Table:
					tables++
				case *ast.HTMLBlock:
					sections += strings.Count(string(n.Lines().Value(p.source)), "<details")
				}
			})
			if s.tables >= 0 && (tables != s.tables || sections != s.sections) {
				t.Errorf("%d tables, %d sections, want %d, %d", tables, sections, s.tables, s.sections)
			}
			golden(t, s.name+".md", []byte(page))
			if s.name == "many-5000" {
				return // the same reasons as many-50, with more lines
			}
			var out bytes.Buffer
			if err := WriteText(&out, c); err != nil {
				t.Fatal(err)
			}
			golden(t, s.name+".txt", out.Bytes())
		})
	}
}

// TestTruncation checks that the parts that must never be dropped are kept, for
// any number of leaks and any limit.
func TestTruncation(t *testing.T) {
	for _, n := range []struct {
		leaks, fails, limit int
	}{{5000, 5000, 0}, {500, 500, 20_000}, {200, 100, 1}, {2000, 40, 0}, {500, 0, 0}} {
		c := many(n.leaks, n.fails)
		o := options()
		o.Limit = n.limit
		page := Markdown(c, o)
		checkPage(t, page, o)
		want := []string{
			"### ❌ leakgate `com.shop`: ", "leakgate show leakgate-shop", "commit the file that this changes",
			"against 10 runs", "Not shown here: ", o.RunURL,
		}
		if n.fails > 0 {
			want = append(want, "Every 100 loops retain")
		} else {
			want = []string{
				"### ❌ leakgate `com.shop`: ", "against 10 runs", "known leaks</summary>", "more, in `gate.json`",
			}
		}
		for _, part := range want {
			if !strings.Contains(page, part) {
				t.Errorf("%+v: %q is missing", n, part)
			}
		}
		lines := strings.Count(page, " Rule: `leak.per_loop: new == 0`.\n")
		if n.fails <= 40 && lines != n.fails {
			t.Errorf("%+v: %d lines of reasons", n, lines)
		}
		if left := n.fails - lines; left > 0 && !strings.Contains(page, text.Grouped(int64(left))+" more reasons") {
			t.Errorf("%+v: %d reasons are missing without a note", n, left)
		}
		if n.fails > 0 && lines == 0 {
			t.Errorf("%+v: reasons are missing", n)
		}
	}
}

// TestHostileComparisons checks that the page is correct if each field contains
// a different hostile string. FuzzMarkdown uses the same string in all fields.
func TestHostileComparisons(t *testing.T) {
	for i := range hostileTexts {
		c, n := worse(), i
		fill(c, func() string { n++; return hostileTexts[n%len(hostileTexts)] })
		checkPage(t, Markdown(c, options()), options())
	}
	o := options()
	o.RepoURL, o.RunURL = "javascript:alert(1)", "https://evil.example/)<x>"
	page := Markdown(worse(), o)
	if strings.Contains(page, "](") {
		t.Error("a link has an invalid address")
	}
}

// checkOthers checks all outputs of a comparison except Markdown.
func checkOthers(t *testing.T, c *Comparison) {
	t.Helper()
	var out bytes.Buffer
	if err := WriteText(&out, c); err != nil {
		t.Fatal(err)
	}
	for i := range c.Leaks {
		if err := WriteRow(&out, &c.Leaks[i]); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.SplitSeq(out.String(), "\n") {
		if text.Printable(line) != line {
			t.Errorf("not printable: %q", line)
		}
	}
	checkSARIF(t, c)
	checkCodeQuality(t, c)
	for _, a := range Annotations(c) {
		if repositoryPath(a.Path) == "" || a.Line < 1 || text.Printable(a.Title+a.Message) != a.Title+a.Message {
			t.Errorf("annotation %+v", a)
		}
	}
}

func TestCost(t *testing.T) {
	row := func(status Status, unit string, left, each Sides) Row {
		return Row{
			Class: "a.B", Process: "p", Type: "leak", Status: status, Unit: unit, PerLoop: left, BytesEach: each,
			Fails: true, Counts: []int64{1, 2, 3},
		}
	}
	trend := func(status Status, growth Sides) Row {
		return Row{Process: "p", Type: "trend", Status: status, Unit: "hour", PerLoop: growth, Fails: true}
	}
	counted := func(r Row, counts ...int64) Row { r.Counts = counts; return r }
	measured := func(r Row) Row { r.Type = "measure"; return r }
	const mb = 1 << 20
	for _, test := range []struct {
		rows []Row
		want string
	}{
		{nil, ""},
		{
			[]Row{row(New, "loop", sides(0, 1), Sides{Head: new(float64(mb))})},
			"Every 100 loops retain 100.0 MB more than on main: B, 1 per loop at 1.0 MB each.",
		},
		{[]Row{row(New, "loop", Sides{Head: new(1.0)}, Sides{})}, ""},
		{[]Row{row(New, "run", Sides{Head: new(1.0)}, sides(1, 1))}, ""},
		{
			[]Row{row(Heavier, "loop", sides(2, 2), sides(mb, 3*mb))},
			"Every 100 loops retain 400.0 MB more than on main: B, 2 per loop, each 2.0 MB larger.",
		},
		{
			[]Row{row(Grown, "loop", sides(2, 3), sides(mb, mb))},
			"Every 100 loops retain 100.0 MB more than on main: B, 1 more per loop at 1.0 MB each.",
		},
		{
			[]Row{row(Grown, "loop", sides(2, 3), sides(mb, 2*mb))},
			"Every 100 loops retain 400.0 MB more than on main: B, 3 per loop at 2.0 MB each, previously 2 at 1.0 MB.",
		},
		{
			[]Row{
				row(New, "loop", sides(0, 1), Sides{Head: new(float64(mb))}),
				row(New, "loop", sides(0, 2), Sides{Head: new(float64(mb))}),
			},
			"Every 100 loops retain at least 200.0 MB more than on main: B alone, 2 per loop at 1.0 MB each. " +
				"The memory retained by several leaks can overlap, so it is not added up."},
		{
			[]Row{row(New, "event", sides(0, 0.002), Sides{Head: new(float64(mb))})},
			"Every 10 000 events retain 20.0 MB more than on main: B, 2 per 1 000 events at 1.0 MB each.",
		},
		{[]Row{counted(row(New, "loop", sides(0, 0.5), Sides{Head: new(float64(mb))}), 1, 2, 2, 2)}, ""},
		{[]Row{counted(row(New, "loop", sides(0, 0.5), Sides{Head: new(float64(mb))}), 4, 3, 5)}, ""},
		{
			[]Row{
				counted(row(New, "loop", sides(0, 9), Sides{Head: new(float64(mb))}), 1),
				row(New, "loop", sides(0, 1), Sides{Head: new(float64(mb))}),
			}, "Every 100 loops retain 100.0 MB more than on main: B, 1 per loop at 1.0 MB each.",
		},
		{
			[]Row{counted(measured(row(New, "loop", sides(0, 1), Sides{Head: new(float64(mb))})))},
			"Every 100 loops retain 100.0 MB more than on main: a.B, 1 per loop at 1.0 MB each.",
		},
		{[]Row{trend(New, Sides{Head: new(35.2)})}, "p grows by 35.2 MB per hour."},
		{[]Row{trend(Grown, sides(4, 35.2))}, "p grows by 35.2 MB per hour, compared with 4 MB on main."},
	} {
		c := clean()
		c.Leaks = test.rows
		if got := c.cost(onTerminal); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
	alone := clean()
	alone.Base, alone.Leaks = Base{}, []Row{row(Present, "loop", Sides{Head: new(1.0)}, Sides{Head: new(float64(mb))})}
	if got := alone.cost(onTerminal); got != "Every 100 loops retain 100.0 MB: B, 1 per loop at 1.0 MB each." {
		t.Error(got)
	}
	// The bytes of different leaks may overlap and are never summed: the
	// sentence contains only the bytes of the largest leak.
	c := many(30, 30)
	if got := c.cost(onTerminal); strings.Count(got, "at least 52.3 MB") != 1 {
		t.Error(got)
	}
}

func TestFigures(t *testing.T) {
	for _, test := range []struct {
		s     Sides
		about bool
		want  figure
	}{
		{Sides{}, true, figure{}},
		{sides(2, 2), true, figure{"", "2"}},
		{sides(2, 2.2), false, figure{"", "2.2"}},
		{sides(2, 2.2), true, figure{"2", "2.2"}},
		{sides(2, 3), false, figure{"2", "3"}},
		{sides(0, 1), false, figure{"0", "1"}},
		{sides(3, 0), false, figure{"3", "0"}},
		{Sides{Head: new(1.0)}, true, figure{"", "1"}},
	} {
		if got := figureOf(test.s, test.about, number); got != test.want {
			t.Errorf("%v: %v, want %v", test.s, got, test.want)
		}
	}
	for x, want := range map[float64]string{
		0: "0", 1: "1", 0.5: "0.5", 2.25: "2.25", 1.0 / 3: "0.333", 12345: "12 345", -12345.6: "-12 346", 99.99: "100",
		0.0004: "< 0.001", 1e300: "4 611 686 018 427 387 904", 162.4: "162",
	} {
		if got := number(x); got != want {
			t.Errorf("number(%g) = %q, want %q", x, got, want)
		}
	}
	for want, values := range map[string][]int64{
		"": {5}, "▅▅▅": {100, 101, 100}, "▁▄█": {0, 50, 100}, "▁█": {1, 2}, "▅▅": {0, 0},
	} {
		if got := spark(values); got != want {
			t.Errorf("spark(%v) = %q, want %q", values, got, want)
		}
	}
	if got := []rune(spark(make([]int64, 1000))); len(got) != maxSpark {
		t.Errorf("%d columns", len(got))
	}
}

// TestUntouched checks the sentence for a pull request that changes no file on
// the path of the leak, and its explanation.
func TestUntouched(t *testing.T) {
	c := one()
	s := &c.Leaks[0].Suspects[0]
	s.Changed, s.Added = new(false), new(false)
	page := Markdown(c, options())
	for _, want := range []string{
		"No file that declares a reference on its path is changed by this pull request. Rule: ",
		"in a commit that the base runs do not contain (they are 2 commits behind the merge base)",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
	s.Changed = nil
	if page = Markdown(c, options()); strings.Contains(page, "changed by") ||
		!strings.Contains(page, "Declared in [`WishScreen.java:12`]") {
		t.Error("an unknown value is shown")
	}
	s.File = "../../etc/passwd"
	if page = Markdown(c, options()); strings.Contains(page, "passwd") {
		t.Error("a path outside the repository is shown")
	}
}

// TestQuestions compares testdata/questions.md with the golden comment: each
// answer quotes a line of the comment.
func TestQuestions(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("testdata", "worse.md"))
	if err != nil {
		t.Fatal(err)
	}
	questions, err := os.ReadFile(filepath.Join("testdata", "questions.md"))
	if err != nil {
		t.Fatal(err)
	}
	asked := strings.Split(string(questions), "\n## ")[1:]
	if len(asked) != 10 {
		t.Errorf("%d questions", len(asked))
	}
	lines := strings.Split(string(page), "\n")
	for _, q := range asked {
		quotes := 0
		for line := range strings.SplitSeq(q, "\n") {
			quote, ok := strings.CutPrefix(line, "    ")
			if !ok {
				continue
			}
			quotes++
			found := false
			for _, l := range lines {
				found = found || strings.Contains(l, quote)
			}
			if !found {
				t.Errorf("%.40q quotes %q, which is not in the comment", q, quote)
			}
		}
		if quotes == 0 {
			t.Errorf("%.40q: no answer", q)
		}
	}
}

func TestWriteRow(t *testing.T) {
	var out bytes.Buffer
	for _, r := range []Row{wishScreen(), cartScreen(), listScreen(1, Accepted), nightly().Leaks[1]} {
		if out.Len() > 0 {
			fmt.Fprintln(&out)
		}
		if err := WriteRow(&out, &r); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "rows.txt", out.Bytes())
	for _, line := range wishScreen().Trace {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("trace line %q is missing", line)
		}
	}
}

// TestColumns checks that lines of text wrap at 100 columns unless a single
// word is longer.
func TestColumns(t *testing.T) {
	c := worse()
	c.Leaks[0].HeldBy = strings.Repeat("x", 150)
	var out bytes.Buffer
	if err := WriteText(&out, c); err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(out.String(), "\n") {
		if text.Columns(line) > terminalColumns && len(strings.Fields(line)) > 2 {
			t.Errorf("%d columns: %q", text.Columns(line), line)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for i, s := range hostileTexts {
		f.Add(s, hostileTexts[(i+7)%len(hostileTexts)])
	}
	makers := []func() *Comparison{worse, firstDay, notJudged, nightly, fixed, informational}
	f.Fuzz(func(t *testing.T, a, b string) {
		n := len(a)
		c := makers[(len(a)+len(b))%len(makers)]()
		fill(c, func() string {
			if n++; n%2 == 0 {
				return a
			}
			return b
		})
		o := options()
		o.Key, o.Download, o.RunDir, o.Tool = a, b, a, b
		checkPage(t, Markdown(c, o), o)
		checkOthers(t, c)
	})
}
