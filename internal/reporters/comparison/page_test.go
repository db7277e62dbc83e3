package comparison

import (
	"fmt"
	"html"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/leakgate/leakgate/internal/text"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	gmtext "github.com/yuin/goldmark/text"
)

// parsed is a page parsed by goldmark, an independent parser.
type parsed struct {
	source []byte
	root   ast.Node
}

func parse(page string) parsed {
	source := []byte(page)
	md := goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList))
	return parsed{source, md.Parser().Parse(gmtext.NewReader(source))}
}

// mentions matches text that GitHub or GitLab would not show unchanged on a
// page unless it is code.
var mentions = regexp.MustCompile(
	`@|#\d|(^|\W)GH-\d|\b[A-Z]+-\d|GHSA-|://|www\.|:\w+:|\$|\[\^|~|!\d|\b[0-9a-fA-F]{7,}\b|<!--|\]\(|^/\w`)

var (
	allowedTag = regexp.MustCompile(
		`^<(details|details open|summary|sub|br|b|code|/details|/summary|/sub|/b|/code)>$`)
	markerTag    = regexp.MustCompile(`^<!-- leakgate:comment key=([0-9A-Za-z._~%]|-[0-9A-Za-z._~% ])* ?v=1 -->$`)
	anyTag       = regexp.MustCompile(`<[^>]*>?`)
	codeElement  = regexp.MustCompile(`<code>[^<]*</code>`)
	delimiterRow = regexp.MustCompile(`(?m)^\|(---\|)+$`)
)

// checkPage checks the properties that the function Markdown guarantees for a
// page.
func checkPage(t *testing.T, page string, o MarkdownOptions) parsed {
	t.Helper()
	limit := max(o.Limit, minLimit)
	if o.Limit == 0 {
		limit = defaultLimit
	}
	if len(page) > limit {
		t.Errorf("%d bytes, limit %d", len(page), limit)
	}
	lines := strings.Split(page, "\n")
	if !utf8.ValidString(page) || lines[0] != CommentMarker(o.Key) || !markerTag.MatchString(lines[0]) ||
		!strings.HasPrefix(lines[1], "### ") {
		t.Errorf("first lines %q", lines[:2])
	}
	for _, line := range lines {
		if line = strings.ReplaceAll(line, "⚠️", ""); text.Printable(line) != line {
			t.Errorf("not printable: %q", line)
		}
	}
	p := parse(page)
	p.checkNodes(t, o)
	p.checkTables(t)
	return p
}

func (p parsed) checkNodes(t *testing.T, o MarkdownOptions) {
	t.Helper()
	headings, open := 0, 0
	p.walk(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.Heading:
			headings++
			if n.Level != 3 {
				t.Errorf("heading of level %d", n.Level)
			}
		case *ast.Link:
			to := string(n.Destination)
			if to != o.RunURL && !strings.HasPrefix(to, o.RepoURL+"/blob/"+o.HeadSHA+"/") ||
				slices.Contains(strings.Split(to, "/"), "..") {
				t.Errorf("link to %q", to)
			}
		case *ast.RawHTML:
			p.checkHTML(t, string(n.Segments.Value(p.source)))
		case *ast.HTMLBlock:
			block := string(n.Lines().Value(p.source))
			if n.HasClosure() {
				block += string(n.ClosureLine.Value(p.source))
			}
			p.checkHTML(t, block)
			open += strings.Count(block, "<details") - strings.Count(block, "</details>")
		case *ast.Emphasis:
			if n.Level != 2 {
				t.Errorf("emphasis in %q", p.text(n.Parent()))
			}
		case *ast.AutoLink, *ast.Image, *ast.Blockquote, *ast.ThematicBreak, *extast.Strikethrough,
			*extast.TaskCheckBox, *extast.FootnoteLink, *extast.FootnoteList, *extast.DefinitionList, *ast.CodeBlock:
			t.Errorf("unexpected %s: %q", n.Kind(), p.text(n.Parent()))
		case *ast.List:
			if n.IsOrdered() || n.Parent().Kind() == ast.KindListItem {
				t.Errorf("unexpected list: %q", p.text(n))
			}
		case *ast.Paragraph, *ast.TextBlock, *extast.TableCell:
			if got := p.text(n); mentions.MatchString(got) {
				t.Errorf("text %q has %q", got, mentions.FindString(got))
			}
		}
	})
	if headings != 1 || open != 0 {
		t.Errorf("got %d headings and %d unclosed sections, want 1 and none", headings, open)
	}
}

func (p parsed) walk(visit func(ast.Node)) {
	err := ast.Walk(p.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			visit(n)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		panic(err)
	}
}

// text returns the text of a node; code and tags in it are each replaced by a
// NUL.
func (p parsed) text(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			b.Write(c.Segment.Value(p.source))
			if c.SoftLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.CodeSpan, *ast.RawHTML:
			b.WriteByte(0)
		default:
			b.WriteString(p.text(c))
		}
	}
	return html.UnescapeString(b.String())
}

func (p parsed) checkHTML(t *testing.T, block string) {
	t.Helper()
	for _, tag := range anyTag.FindAllString(block, -1) {
		if !allowedTag.MatchString(tag) && !markerTag.MatchString(tag) {
			t.Errorf("HTML %q in %q", tag, block)
		}
	}
	if strings.HasPrefix(block, "<!--") {
		return
	}
	if rest := html.UnescapeString(
		anyTag.ReplaceAllString(codeElement.ReplaceAllString(block, "\x00"), "\x00")); mentions.MatchString(rest) {
		t.Errorf("HTML block has %q: %q", mentions.FindString(rest), rest)
	}
}

// checkTables counts the cells of every row itself, because goldmark adds
// missing cells and drops extra ones.
func (p parsed) checkTables(t *testing.T) {
	t.Helper()
	tables := 0
	p.walk(func(n ast.Node) {
		table, ok := n.(*extast.Table)
		if !ok {
			return
		}
		tables++
		columns := len(table.Alignments)
		for row := table.FirstChild(); row != nil; row = row.NextSibling() {
			line := p.line(row.Pos())
			if cells(line) != columns || row.ChildCount() != columns {
				t.Errorf("got %d cells, header has %d: %q", cells(line), columns, line)
			}
		}
	})
	if want := len(delimiterRow.FindAll(p.source, -1)); tables != want {
		t.Errorf("%d tables, want %d", tables, want)
	}
}

// line returns the line of the source that contains the byte at an offset.
func (p parsed) line(at int) string {
	from := strings.LastIndexByte(string(p.source[:at]), '\n') + 1
	line, _, _ := strings.Cut(string(p.source[from:]), "\n")
	return line
}

// cells counts the cells of a row; an escaped pipe does not separate cells.
func cells(line string) int {
	n := -1
	for i := range len(line) {
		if line[i] == '|' && (i == 0 || line[i-1] != '\\') {
			n++
		}
	}
	return n
}

// codes returns the contents of the code spans of a page.
func (p parsed) codes() []string {
	var out []string
	p.walk(func(n ast.Node) {
		if n.Kind() != ast.KindCodeSpan {
			return
		}
		var b strings.Builder
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			if leaf, ok := c.(*ast.Text); ok {
				b.Write(leaf.Segment.Value(p.source))
			}
		}
		out = append(out, b.String())
	})
	return out
}

// words returns the words of a paragraph, code and text alike.
func (p parsed) words(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			b.Write(c.Segment.Value(p.source))
		default:
			b.WriteString(p.words(c))
		}
	}
	return b.String()
}

func normal(s string, n int) string { return strings.Join(strings.Fields(text.Head(s, n)), " ") }

// checkCode checks that a name becomes one code span with exactly its
// characters, in a line and in a cell.
func checkCode(t *testing.T, s string) {
	t.Helper()
	want := []string{normal(s, 200)}
	if want[0] == "" {
		want = nil
	}
	if got := parse("x " + inLine.code(s, 200) + " y\n").codes(); !slices.Equal(got, want) {
		t.Errorf("code(%q) is %q in a line", s, got)
	}
	table := parse("| a | b |\n|---|---|\n| " + inCell.code(s, 200) + " | z |\n")
	if got := table.codes(); !slices.Equal(got, want) {
		t.Errorf("code(%q) is %q in a cell", s, got)
	}
	table.checkTables(t)
	if got := html.UnescapeString(anyTag.ReplaceAllString(inHTML.code(s, 200), "")); want != nil && got != want[0] {
		t.Errorf("code(%q) is %q in HTML", s, got)
	}
}

// checkProse checks that the words of a message are kept and that none becomes
// markup.
func checkProse(t *testing.T, s string) {
	t.Helper()
	want := normal(s, 300)
	p := parse("- x " + inLine.prose(s, 300) + "\n")
	if got := p.words(p.root.FirstChild().FirstChild().FirstChild()); got != strings.TrimRight("x "+want, " ") {
		t.Errorf("prose(%q) reads %q", s, got)
	}
	p.walk(func(n ast.Node) {
		if n.Kind() == ast.KindTextBlock && mentions.MatchString(p.text(n)) {
			t.Errorf("prose(%q) has %q", s, mentions.FindString(p.text(n)))
		}
	})
	// Only list markup may precede the heading.
	if p := parse(inLine.prose(s, 300) + "\n"); want != "" &&
		(p.root.ChildCount() != 1 || p.root.FirstChild().Kind() != ast.KindParagraph) {
		t.Errorf("prose(%q) is not a single paragraph", s)
	}
	if got := html.UnescapeString(anyTag.ReplaceAllString(inHTML.prose(s, 300), "")); got != want {
		t.Errorf("prose(%q) is %q in HTML", s, got)
	}
}

func TestHostileTexts(t *testing.T) {
	for _, s := range hostileTexts {
		checkCode(t, s)
		checkProse(t, s)
	}
}

func FuzzEscape(f *testing.F) {
	for _, s := range hostileTexts {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		checkCode(t, s)
		checkProse(t, s)
		if m := CommentMarker(s); !markerTag.MatchString(m) || strings.Count(m, "--") != 2 {
			t.Errorf("CommentMarker(%q) = %q", s, m)
		}
		if w := shellWord(s, "KEY"); strings.HasPrefix(w, "-") || w == "" {
			t.Errorf("shellWord(%q) = %q", s, w)
		}
		if to := fileAddress("https://github.com/acme/shop", sha, s, 3); to != "" &&
			!regexp.MustCompile(`^https://github.com/acme/shop/blob/`+sha+`/[A-Za-z0-9._~%/-]+#L3$`).MatchString(to) {
			t.Errorf("fileAddress(%q) = %q", s, to)
		}
	})
}

// fill replaces every string of a comparison, except the words that Read
// checks.
func fill(c *Comparison, next func() string) {
	fillValue(reflect.ValueOf(c).Elem(), "", next)
}

func fillValue(v reflect.Value, name string, next func() string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type() != timeType {
				fillValue(v.Field(i), jsonName(v.Type().Field(i)), next)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			fillValue(v.Elem(), name, next)
		}
	case reflect.Slice:
		for i := range v.Len() {
			fillValue(v.Index(i), name, next)
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]int{next(): 1, next(): 2}))
	case reflect.String:
		if !slices.Contains([]string{"schema", "verdict", "status", "unit", "type"}, name) {
			v.SetString(next())
		}
	}
}

func TestCommentMarker(t *testing.T) {
	seen := map[string]string{}
	for _, key := range []string{
		"", "shop", "a--b", "a-b", "a-", "-a", "-->", "a b", "a%20b", "ä", strings.Repeat("k", 101),
		strings.Repeat("k", 102), "x\n",
	} {
		m := CommentMarker(key)
		if other, ok := seen[m]; ok {
			t.Errorf("%q and %q have the same marker", key, other)
		}
		seen[m] = key
		if !markerTag.MatchString(m) || len(m) > 400 {
			t.Errorf("%q: %q", key, m)
		}
	}
	if got := CommentMarker("shop"); got != "<!-- leakgate:comment key=shop v=1 -->" {
		t.Error(got)
	}
}

func TestAddresses(t *testing.T) {
	const repo = "https://github.com/acme/shop"
	for file, want := range map[string]string{
		"app/src/My Screen.kt": repo + "/blob/" + sha + "/app/src/My%20Screen.kt#L7", "a(b)[c].kt": repo + "/blob/" +
			sha + "/a%28b%29%5Bc%5D.kt#L7", "ü.kt": repo + "/blob/" + sha + "/%C3%BC.kt#L7",
		"../x": "", "a/../../x": "", "/etc/passwd": "", "a//b": "", `a\b`: "", "": "", "a/": "", "C:/x": "", ".": "",
		"..": "", "a\nb": "",
	} {
		if got := fileAddress(repo, sha, file, 7); got != want {
			t.Errorf("%q: %q, want %q", file, got, want)
		}
	}
	for _, bad := range []string{
		"", "javascript:alert(1)", "https://", "https://a b", "https://user:pw@host/x", "https://host/x)",
		"https://host/<x", "https://host/x\n", "//host/x", "https://host/" + strings.Repeat("x", 600),
	} {
		if got := address(bad); got != "" {
			t.Errorf("%q: %q", bad, got)
		}
		if got := fileAddress(bad, sha, "a.kt", 1); got != "" {
			t.Errorf("%q: %q", bad, got)
		}
	}
	if got := fileAddress(repo, "main", "a.kt", 1); got != "" {
		t.Error(got)
	}
	if got := fileAddress("http://localhost:8080/acme/shop/", sha, "a.kt",
		0); got != "http://localhost:8080/acme/shop/blob/"+sha+"/a.kt" {
		t.Error(got)
	}
}

func TestShellWord(t *testing.T) {
	for s, want := range map[string]string{
		"d97295ca": "d97295ca", "trend:java": "trend:java", "": "KEY", "-rf": "KEY",
		"threads:OkHttp *": "'threads:OkHttp *'", "a'b": `'a'\''b'`, "$(id)": "'$(id)'", "a;b": "'a;b'",
	} {
		if got := shellWord(s, "KEY"); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

func TestFenced(t *testing.T) {
	for _, lines := range [][]string{{"x"}, {"```", "````x", "~~~"}, {"</details>", "`a`"}, {strings.Repeat("`", 50)}} {
		p := parse(fenced("", slices.Clone(lines)) + "\nafter\n")
		block, ok := p.root.FirstChild().(*ast.FencedCodeBlock)
		if !ok || string(block.Lines().Value(p.source)) != strings.Join(lines, "\n")+"\n" || p.root.ChildCount() != 2 {
			t.Errorf("%q is not a single block", lines)
		}
	}
}

func TestShownTrace(t *testing.T) {
	var long []string
	for i := range 500 {
		long = append(long, fmt.Sprintf("│ line %d", i))
	}
	long[1] = "│ GC Root: Thread"
	long[250] = "│     ~~~~"
	got := shownTrace(long)
	if len(got) > maxTraceLines+5 || got[1] != long[1] || got[len(got)-1] != long[499] ||
		!slices.Contains(got, long[250]) || !slices.Contains(got, long[249]) {
		t.Errorf("%d lines: %q", len(got), got)
	}
	if got := shownTrace(long[:maxTraceLines]); !slices.Equal(got, long[:maxTraceLines]) {
		t.Errorf("a short trace is modified: %q", got)
	}
	for i := range long {
		long[i] = "~~~"
	}
	if got := shownTrace(long); len(got) > maxTraceLines+5 {
		t.Errorf("%d lines", len(got))
	}
}
