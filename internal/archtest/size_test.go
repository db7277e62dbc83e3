package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// sizeLimits holds the limits for the types of packages in which a single type
// used to do everything: a type above the limit has more than one purpose.
var sizeLimits = []struct {
	folder          string
	methods, fields int
}{
	{"harness/monitor", 25, 15},
}

func TestTypeSizes(t *testing.T) {
	for _, limit := range sizeLimits {
		sizes, err := typeSizes(os.DirFS(root(t)), limit.folder)
		if err != nil {
			t.Fatal(err)
		}
		if len(sizes) == 0 {
			t.Errorf("%s has no types", limit.folder)
		}
		for _, problem := range oversized(sizes, limit.methods, limit.fields) {
			t.Errorf("%s: %s", limit.folder, problem)
		}
	}
}

// typeSize is the number of methods and the number of struct fields of a type.
type typeSize struct{ methods, fields int }

// oversized returns a line for each type above a limit.
func oversized(sizes map[string]typeSize, methods, fields int) []string {
	var problems []string
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		if s := sizes[name]; s.methods > methods || s.fields > fields {
			problems = append(problems, fmt.Sprintf("%s has %d methods and %d fields: want at most %d and %d",
				name, s.methods, s.fields, methods, fields))
		}
	}
	return problems
}

// typeSizes returns the sizes of the types of a package, without its tests.
// Files for different systems are counted separately: if several of them
// declare the same type, the largest size is used.
func typeSizes(tree fs.FS, folder string) (map[string]typeSize, error) {
	names, err := fs.Glob(tree, path.Join(folder, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", folder, err)
	}
	sizes := map[string]typeSize{}
	methods := map[string]map[string]bool{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", name, err)
		}
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if of := receiver(decl); of != "" {
					if methods[of] == nil {
						methods[of] = map[string]bool{}
					}
					methods[of][decl.Name.Name] = true
				}
			case *ast.GenDecl:
				addFields(sizes, decl)
			}
		}
	}
	for of, names := range methods {
		s := sizes[of]
		s.methods = len(names)
		sizes[of] = s
	}
	return sizes, nil
}

// addFields adds the types of a declaration and counts the fields of structs.
// An embedded field counts as one field.
func addFields(sizes map[string]typeSize, decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		of, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		s := sizes[of.Name.Name]
		if body, ok := of.Type.(*ast.StructType); ok {
			fields := 0
			for _, f := range body.Fields.List {
				fields += max(1, len(f.Names))
			}
			s.fields = max(s.fields, fields)
		}
		sizes[of.Name.Name] = s
	}
}

// receiver returns the name of the receiver's type of a method, or "" for a
// function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	name, _ := of.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name
}

// TestTypeSizesFails checks that a type above a limit is found and that a type
// at the limit is not.
func TestTypeSizesFails(t *testing.T) {
	tree := fstest.MapFS{
		"p/a.go": {Data: []byte(`package p

type big struct {
	embedded
	a, b int
	c    string
}

type full struct{ a, b, c int }

type embedded struct{}

func (big) one() {}
`)},
		"p/b.go": {Data: []byte(`package p

func (b *big) two()   {}
func (l list[T]) one() {}
func (l *list[T]) two() {}
func (l *list[T]) three() {}

type list[T any] []T
`)},
		"p/c_test.go": {
			Data: []byte("package p\n\nfunc (full) one() {}\n\nfunc (full) two() {}\n\nfunc (full) three() {}\n"),
		},
	}
	sizes, err := typeSizes(tree, "p")
	if err != nil {
		t.Fatal(err)
	}
	got := oversized(sizes, 2, 3)
	want := []string{
		"big has 2 methods and 4 fields: want at most 2 and 3",
		"list has 3 methods and 0 fields: want at most 2 and 3",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := oversized(sizes, 3, 4); len(got) > 0 {
		t.Errorf("got %q for types within the limits, want none", got)
	}
}
