package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"sort"
	"strings"
	"unicode/utf8"
)

// The names of the rules about columns. A tab counts as four columns.
const (
	ruleColumns  = "line over 120 columns"
	ruleComment  = "comment over 80 columns"
	ruleMarkdown = "Markdown line over 120 columns"
)

const tabWidth = 4

// finding is a violation of a rule, with its position.
type finding struct {
	file   string
	line   int
	phrase string
	text   string
}

// passage is a part of a file that people read, such as a comment, and the line
// on which it begins.
type passage struct {
	line int
	text string
}

// check reads the files and returns the violations of the rules, in the order
// of the files and lines.
func check(root fs.FS, files []string, r *rules) ([]finding, error) {
	var found []finding
	for _, file := range files {
		if !written(file) {
			continue
		}
		text, err := fs.ReadFile(root, file)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		here, err := r.file(file, text)
		if err != nil {
			return nil, err
		}
		sort.SliceStable(here, func(i, k int) bool { return here[i].line < here[k].line })
		found = append(found, here...)
	}
	return found, nil
}

// written reports whether the file is written by the project's authors.
// Recorded data, generated lists and licenses are excluded.
func written(file string) bool {
	switch {
	case strings.Contains(file, "testdata/") && !strings.HasSuffix(file, ".go"),
		file == "LICENSE", file == "docs/api.txt", file == "tools/wordcheck/phrases.txt",
		file == "tools/wordcheck/exceptions.txt":
		return false
	}
	switch path.Ext(file) {
	case ".go", ".md", ".yml", ".yaml", ".java", ".kt", ".sh":
		return true
	case "":
		return path.Base(file) != ".gitignore" && path.Base(file) != ".gitattributes"
	}
	return false
}

func (r *rules) file(file string, text []byte) ([]finding, error) {
	switch path.Ext(file) {
	case ".go":
		return r.goFile(file, text)
	case ".md":
		return r.markdown(file, string(text)), nil
	}
	return r.phrasesIn(file, hashComments(string(text))), nil
}

func (r *rules) goFile(file string, text []byte) ([]finding, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", file, err)
	}
	if ast.IsGenerated(f) {
		return nil, nil
	}
	found := r.phrasesIn(file, goPassages(fset, f))
	return append(found, goColumns(file, fset, f, string(text))...), nil
}

// directive matches a comment that is addressed to a tool.
var directive = regexp.MustCompile(`^//([a-z0-9]+:|nolint)`)

// goPassages returns the comments and string literals of a file. It skips
// directives, except for an explanation after //.
func goPassages(fset *token.FileSet, f *ast.File) []passage {
	var out []passage
	for _, g := range f.Comments {
		var b strings.Builder
		for _, c := range g.List {
			if directive.MatchString(c.Text) {
				if _, reason, ok := strings.Cut(c.Text[2:], "//"); ok {
					out = append(out, passage{fset.Position(c.Pos()).Line, reason})
				}
				b.WriteByte('\n')
				continue
			}
			b.WriteString(strings.TrimPrefix(c.Text, "//"))
			b.WriteByte('\n')
		}
		out = append(out, passage{fset.Position(g.Pos()).Line, b.String()})
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if x.Kind == token.STRING {
				out = append(out, passage{fset.Position(x.Pos()).Line, x.Value})
			}
		}
		return true
	})
	return out
}

// output matches the beginning of the comment that contains the output of an
// example.
var output = regexp.MustCompile(`(?i)^(unordered )?output:`)

// goColumns finds long lines: code over 120 columns, comments over 80. It skips
// what cannot be wrapped: a raw string, the output of an example, a directive,
// and a comment of one word (a URL).
func goColumns(file string, fset *token.FileSet, f *ast.File, text string) []finding {
	raw := map[int]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if x, ok := n.(*ast.BasicLit); ok && x.Kind == token.STRING && x.Value[0] == '`' {
			for l := fset.Position(x.Pos()).Line; l <= fset.Position(x.End()).Line; l++ {
				raw[l] = true
			}
		}
		return true
	})
	for _, g := range f.Comments {
		if output.MatchString(g.Text()) {
			for l := fset.Position(g.Pos()).Line; l <= fset.Position(g.End()).Line; l++ {
				raw[l] = true
			}
		}
	}
	var found []finding
	for i, line := range strings.Split(text, "\n") {
		n := columns(line)
		trimmed := strings.TrimSpace(line)
		switch {
		case n <= 80 || raw[i+1] || directive.MatchString(trimmed):
		case strings.HasPrefix(trimmed, "//") && !strings.HasPrefix(trimmed, "//\t") &&
			!strings.HasPrefix(trimmed, "//  "):
			if len(strings.Fields(trimmed)) > 2 &&
				n > max(80, columns(line[:len(line)-len(strings.TrimLeft(line, "\t"))])+44) {
				found = append(found,
					finding{file, i + 1, ruleComment, fmt.Sprintf("comment of %d columns: wrap it at 80", n)})
			}
		case n > 120 && !strings.HasPrefix(trimmed, "//"):
			found = append(found,
				finding{file, i + 1, ruleColumns, fmt.Sprintf("line of %d columns: break it at 120", n)})
		}
	}
	return found
}

func columns(line string) int {
	return utf8.RuneCountInString(line) + (tabWidth-1)*strings.Count(line, "\t")
}

// code matches Markdown text between backquotes, and the targets of links.
var code = regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)")

// markdown finds phrases outside code, and long lines outside code, tables and
// links.
func (r *rules) markdown(file, text string) []finding {
	var found []finding
	var passages []passage
	fenced := false
	begin, paragraph := 0, []string{}
	flush := func() {
		if len(paragraph) > 0 {
			passages = append(passages, passage{begin, strings.Join(paragraph, "\n")})
		}
		paragraph = paragraph[:0]
	}
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			fenced = !fenced
			flush()
			continue
		case fenced || strings.HasPrefix(line, "    ") && len(paragraph) == 0 || strings.HasPrefix(line, "\t"):
			continue
		case trimmed == "":
			flush()
			continue
		}
		if len(paragraph) == 0 {
			begin = i + 1
		}
		paragraph = append(paragraph, code.ReplaceAllString(line, "``"))
		if columns(line) > 120 && !strings.HasPrefix(trimmed, "|") && !strings.Contains(line, "](") &&
			!strings.HasPrefix(trimmed, "<") {
			found = append(found,
				finding{file, i + 1, ruleMarkdown, fmt.Sprintf("line of %d columns: wrap it at 120", columns(line))})
		}
	}
	flush()
	return append(found, r.phrasesIn(file, passages)...)
}

// hashComments returns the comments of a shell, YAML, make or Java file.
func hashComments(text string) []passage {
	var out []passage
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		for _, mark := range []string{"# ", "// ", "* ", "description: "} {
			if rest, ok := strings.CutPrefix(trimmed, mark); ok {
				out = append(out, passage{i + 1, rest})
				break
			}
		}
	}
	return out
}

func (r *rules) phrasesIn(file string, passages []passage) []finding {
	var found []finding
	for _, p := range passages {
		for _, rule := range r.phrases {
			for _, at := range rule.pattern.FindAllStringIndex(p.text, -1) {
				found = append(found, finding{
					file: file, line: p.line + strings.Count(p.text[:at[0]], "\n"), phrase: rule.name,
					text: fmt.Sprintf("%q: write %s", strings.Join(strings.Fields(p.text[at[0]:at[1]]), " "),
						rule.better),
				})
			}
		}
	}
	return found
}
