package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section returns the text of a page below a heading, up to the next heading of
// the same level.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, after, ok := strings.Cut(page, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("the page has no section %q", heading)
	}
	text, _, _ := strings.Cut(after, "\n## ")
	return text
}

// foldersOf parses a drawing of a tree: each line names directories that end
// with a slash and is indented by two more spaces than the line of the parent.
func foldersOf(picture string) map[string]bool {
	folders := map[string]bool{}
	var above []string
	named := regexp.MustCompile(`^( +)((?:[a-z0-9]+/ *)+)`)
	for line := range strings.Lines(picture) {
		m := named.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		depth := len(m[1])/2 - 2
		above = append(above[:max(0, min(depth, len(above)))], "")
		for name := range strings.FieldsSeq(m[2]) {
			above[len(above)-1] = name
			folders[strings.TrimSuffix(strings.Join(above, ""), "/")] = true
		}
	}
	return folders
}

// TestTreePicture checks that the drawing of the tree contains every package,
// and no directory that does not exist.
func TestTreePicture(t *testing.T) {
	page := readPage(t)
	law, err := ReadLaw(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	drawn := foldersOf(section(t, page, "Tree"))
	for _, folder := range sortedKeys(law.Allowed) {
		if !drawn[folder] {
			t.Errorf("the drawing of the tree does not contain %s", folder)
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(drawn)) {
		if info, err := os.Stat(filepath.Join(root(t), filepath.FromSlash(folder))); err != nil || !info.IsDir() {
			t.Errorf("the drawing of the tree contains %s, which does not exist", folder)
		}
	}
}

// TestWalks checks that each function that the page names in a walk, as
// `folder/file.go: Type.Method` or `folder/file.go: function`, exists.
func TestWalks(t *testing.T) {
	stops := regexp.MustCompile("`([a-z0-9_/]+\\.go): ([A-Za-z.]+)`").FindAllStringSubmatch(readPage(t), -1)
	if len(stops) < 12 {
		t.Errorf("the page names only %d functions, want at least 12", len(stops))
	}
	for _, s := range stops {
		if !declares(t, os.DirFS(root(t)), s[1], s[2]) {
			t.Errorf("the page names %s in %s, which does not exist", s[2], s[1])
		}
	}
}

func declares(t *testing.T, tree fs.FS, name, function string) bool {
	t.Helper()
	text, err := fs.ReadFile(tree, name)
	if err != nil {
		return false
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(file.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && qualified(f) == function
	})
}

// qualified returns the name of a function, preceded by the type of its
// receiver.
func qualified(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	name, _ := of.(*ast.Ident)
	if name == nil {
		return f.Name.Name
	}
	return name.Name + "." + f.Name.Name
}

func TestFoldersOf(t *testing.T) {
	got := slices.Sorted(maps.Keys(
		foldersOf("\n    capture/      EDGE\n      adb/        client of the server/\n      procfs/  dumpsys/   " +
			"parsers\n    internal/\n      capture/\n        field/\n      text/\n    docs\n")))
	want := []string{
		"capture", "capture/adb", "capture/dumpsys", "capture/procfs", "internal", "internal/capture",
		"internal/capture/field", "internal/text",
	}
	if !slices.Equal(got, want) {
		t.Errorf("reads %q, want %q", got, want)
	}
}
