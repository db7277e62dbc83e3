package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// elsewhere lists the files of serial packages that do start goroutines, each
// with the package whose tests run the file with the race detector.
var elsewhere = map[string]string{"analysis/leaks.go": "./cmd/leakgate", "analysis/finding.go": "./cmd/leakgate"}

// TestSerialPackages checks that the packages that the Makefile tests without
// the race detector start no goroutines: only code that runs in a single
// goroutine may be excluded.
func TestSerialPackages(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root(t), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^TEXTS := (.+)\nSERIAL := \$\(TEXTS\) (.+)$`).FindSubmatch(makefile)
	if list == nil {
		t.Fatal("the Makefile does not define SERIAL")
	}
	serial := append(strings.Fields(string(list[1])), strings.Fields(string(list[2]))...)
	tree := os.DirFS(root(t))
	for _, p := range serial {
		folder, _ := strings.CutSuffix(strings.TrimPrefix(p, "./"), "/...")
		files, err := fs.Glob(tree, folder+"/*.go")
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no files: %v", p, err)
		}
		for _, file := range files {
			text, err := fs.ReadFile(tree, file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") || elsewhere[file] != "" {
				continue
			}
			if starts(t, file, text) {
				t.Errorf("%s starts a goroutine: remove %s from SERIAL", file, p)
			}
		}
	}
	for _, by := range elsewhere {
		for _, p := range serial {
			if p == by {
				t.Errorf("%s runs files of other packages: remove it from SERIAL", by)
			}
		}
	}
	if !starts(t, "a.go", []byte("package a\nfunc f() { go f() }")) ||
		!starts(t, "a.go", []byte("package a\nfunc f() { w.Go(f) }")) ||
		starts(t, "a.go", []byte("package a\nfunc f() { f() }")) {
		t.Error("goroutines are not recognized")
	}
}

// TestAgain checks that each test that depends on the race detector also runs
// without it.
func TestAgain(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root(t), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^AGAIN := \^Test\((.+)\)\$\$$`).FindSubmatch(makefile)
	if list == nil {
		t.Fatal("the Makefile does not define AGAIN")
	}
	folders := regexp.MustCompile(`(?m) -run '\$\(AGAIN\)' (.+)$`).FindSubmatch(makefile)
	if folders == nil {
		t.Fatal("the Makefile does not use AGAIN")
	}
	again := strings.Split(string(list[1]), "|")
	asking := 0
	for _, folder := range foldersThatAsk(t) {
		if !slices.Contains(strings.Fields(string(folders[1])), "./"+folder) {
			t.Errorf("some tests of %s check for the race detector, but do not run without it", folder)
		}
		for name := range asksForRaces(t, filepath.Join(root(t), filepath.FromSlash(folder))) {
			asking++
			if !slices.Contains(again, strings.TrimPrefix(name, "Test")) {
				t.Errorf("%s of %s checks for the race detector: add it to AGAIN", name, folder)
			}
		}
	}
	if asking < 10 {
		t.Errorf("found only %d tests that check for the race detector", asking)
	}
}

// foldersThatAsk returns the directories with a file that is built only with
// the race detector.
func foldersThatAsk(t *testing.T) []string {
	t.Helper()
	var out []string
	err := fs.WalkDir(os.DirFS(root(t)), ".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, "/norace_test.go") {
			out = append(out, strings.TrimSuffix(path, "/norace_test.go"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// asksForRaces returns the tests of a package that use the constant racing.
func asksForRaces(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && id.Name == "racing" {
					found[f.Name.Name] = true
				}
				return true
			})
		}
	}
	return found
}

// starts reports whether a file contains a go statement, or calls a method
// named Go, such as WaitGroup.Go.
func starts(t *testing.T, name string, text []byte) (found bool) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.SelectorExpr:
			found = found || n.Sel.Name == "Go"
		}
		return true
	})
	return found
}
