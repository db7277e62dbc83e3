package surface

//unit:program the go command lists compiled packages

import (
	"bytes"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// exportData loads compiled packages of the module by their import paths.
func exportData(t *testing.T, folders []string) map[string]*types.Package {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}",
		module+"/...")
	list.Dir = filepath.Join("..", "..")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("run go list: %v", err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	load := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		data, err := os.ReadFile(files[path])
		return io.NopCloser(bytes.NewReader(data)), err
	})
	packages := map[string]*types.Package{}
	for _, folder := range folders {
		p, err := load.Import(module + "/" + folder)
		if err != nil {
			t.Fatal(err)
		}
		packages[folder] = p
	}
	return packages
}

// opaque lists the positions in the API whose types a user only passes on and
// does not have to name, each with the reason.
var opaque = map[string]string{
	"capture.Level.Prefix": "only package diagnose reads the prefix; other packages pass on the Level",
}

// TestPublicTypes checks that other modules can name every type in a signature
// or a field of a public package: the type is in a public package, or a public
// package has an alias for it.
func TestPublicTypes(t *testing.T) {
	packages, err := Read(os.DirFS(filepath.Join("..", "..")), module)
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, p := range packages {
		if Public(p.Folder) {
			folders = append(folders, p.Folder)
		}
	}
	s := search{named: map[*types.TypeName]bool{}, seen: map[types.Type]bool{}, found: map[string]string{}}
	loaded := exportData(t, folders)
	for _, folder := range folders {
		scope := loaded[folder].Scope()
		for _, name := range scope.Names() {
			if alias, ok := scope.Lookup(name).Type().(*types.Alias); ok && ast.IsExported(name) {
				if target, ok := types.Unalias(alias).(*types.Named); ok {
					s.named[target.Obj()] = true
				}
			}
		}
	}
	for _, folder := range folders {
		scope := loaded[folder].Scope()
		for _, name := range scope.Names() {
			if ast.IsExported(name) {
				s.walk(folder+"."+name, scope.Lookup(name).Type())
			}
		}
	}
	for _, at := range slices.Sorted(maps.Keys(s.found)) {
		if opaque[at] == "" {
			t.Errorf("%s has the type %s, which other modules cannot name", at, s.found[at])
		}
	}
	for at := range opaque {
		if s.found[at] == "" {
			t.Errorf("other modules can name the type of %s: remove its reason", at)
		}
	}
}

type search struct {
	named map[*types.TypeName]bool // types of internal packages with a public alias
	seen  map[types.Type]bool
	found map[string]string // the type at each position in the API
}

func (s *search) walk(at string, typ types.Type) {
	if s.seen[typ] {
		return
	}
	s.seen[typ] = true
	switch typ := typ.(type) {
	case *types.Alias:
		s.walk(at, types.Unalias(typ))
	case *types.Named:
		s.walkNamed(at, typ)
	case *types.Pointer:
		s.walk(at, typ.Elem())
	case *types.Slice:
		s.walk(at, typ.Elem())
	case *types.Array:
		s.walk(at, typ.Elem())
	case *types.Chan:
		s.walk(at, typ.Elem())
	case *types.Map:
		s.walk(at, typ.Key())
		s.walk(at, typ.Elem())
	case *types.Signature:
		for v := range typ.Params().Variables() {
			s.walk(at, v.Type())
		}
		for v := range typ.Results().Variables() {
			s.walk(at, v.Type())
		}
	case *types.Struct:
		for v := range typ.Fields() {
			if v.Exported() {
				s.walk(at+"."+v.Name(), v.Type())
			}
		}
	case *types.Interface:
		for m := range typ.Methods() {
			s.walk(at+"."+m.Name(), m.Type())
		}
	}
}

func (s *search) walkNamed(at string, typ *types.Named) {
	for arg := range typ.TypeArgs().Types() {
		s.walk(at, arg)
	}
	name := typ.Obj()
	if name.Pkg() == nil || !strings.HasPrefix(name.Pkg().Path(), module+"/") {
		return
	}
	folder := strings.TrimPrefix(name.Pkg().Path(), module+"/")
	if name.Exported() && !Public(folder) && !s.named[name] {
		s.found[at] = folder + "." + name.Name()
	}
	if !name.Exported() {
		return
	}
	at = folder + "." + name.Name()
	s.walk(at, typ.Underlying())
	for m := range typ.Methods() {
		if m.Exported() {
			s.walk(at+"."+m.Name(), m.Type())
		}
	}
}
