package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Package is a directory with Go files.
type Package struct {
	// Folder is its path relative to the module, with slashes.
	Folder string
	// Name is the name in its package clauses, without the suffix _test.
	Name string
	// Doc is the package comment, from the file that contains it.
	Doc string
	// Imports and TestImports hold the import paths of the package's files and
	// of its test files, each with one of the files that import it.
	Imports, TestImports map[string]string
}

// onlyTests reports whether a package contains only tests, in which case it
// cannot be imported.
func (p Package) onlyTests() bool { return p.Imports == nil }

// ReadTree reads every Go file below the root of a module, for every system and
// build tag. It skips what the go command skips: testdata, and names that begin
// with a dot or an underscore.
func ReadTree(root fs.FS) (map[string]*Package, error) {
	packages := map[string]*Package{}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		hidden := name != "." && (base[0] == '.' || base[0] == '_')
		switch {
		case entry.IsDir() && (hidden || base == "testdata" || base == "vendor"):
			return fs.SkipDir
		case entry.IsDir() || hidden || path.Ext(name) != ".go":
			return nil
		}
		return addFile(root, name, packages)
	})
	if err != nil {
		return nil, fmt.Errorf("read the tree: %w", err)
	}
	return packages, nil
}

func addFile(root fs.FS, name string, packages map[string]*Package) error {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}
	p := packages[path.Dir(name)]
	if p == nil {
		p = &Package{Folder: path.Dir(name), TestImports: map[string]string{}}
		packages[p.Folder] = p
	}
	imports := p.TestImports
	if !strings.HasSuffix(name, "_test.go") {
		if p.onlyTests() {
			p.Imports = map[string]string{}
		}
		imports = p.Imports
		p.Doc += file.Doc.Text()
	}
	p.Name = strings.TrimSuffix(file.Name.Name, "_test")
	return addImports(file, name, imports)
}

func addImports(file *ast.File, name string, imports map[string]string) error {
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		imports[imported] = name
	}
	return nil
}
