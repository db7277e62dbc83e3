package surface

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Package is the exported API of one package.
type Package struct {
	// Folder is its path relative to the module, with slashes.
	Folder string
	// Lines holds one line for each exported name, method and field, sorted.
	Lines []string
	// Names is the number of exported package-level names and methods.
	Names int
	// Types holds the exported type names that are not aliases, sorted.
	Types []string
}

// Public reports whether other modules may import a package of the module.
func Public(folder string) bool {
	for part := range strings.SplitSeq(folder, "/") {
		if part == "internal" || part == "cmd" || part == "tools" || part == "examples" {
			return false
		}
	}
	return true
}

// Read returns all packages of a module except programs, sorted by directory.
func Read(root fs.FS, module string) ([]Package, error) {
	r := reader{root: root, module: module, files: token.NewFileSet(), folders: map[string]*folder{}}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		hidden := name != "." && (base[0] == '.' || base[0] == '_')
		switch {
		case entry.IsDir() && (hidden || base == "testdata"):
			return fs.SkipDir
		case entry.IsDir() || hidden || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		return r.add(name)
	})
	if err != nil {
		return nil, fmt.Errorf("read the tree: %w", err)
	}
	var packages []Package
	for _, at := range slices.Sorted(maps.Keys(r.folders)) {
		if f := r.folders[at]; f.name != "main" {
			packages = append(packages, r.list(f))
		}
	}
	return packages, nil
}

// folder is the syntax of a package, indexed by exported name.
type folder struct {
	at, name string
	values   []*ast.GenDecl
	types    map[string]*ast.TypeSpec
	imports  map[*ast.TypeSpec]map[string]string // maps the local name of an import to its path, for aliases
	funcs    []*ast.FuncDecl
}

type reader struct {
	root    fs.FS
	module  string
	files   *token.FileSet
	folders map[string]*folder
}

func (r *reader) add(name string) error {
	text, err := fs.ReadFile(r.root, name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(r.files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	f := r.folders[path.Dir(name)]
	if f == nil {
		f = &folder{
			at: path.Dir(name), name: file.Name.Name, types: map[string]*ast.TypeSpec{},
			imports: map[*ast.TypeSpec]map[string]string{},
		}
		r.folders[f.at] = f
	}
	imports := importNames(file)
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Name.IsExported() {
				f.funcs = append(f.funcs, decl)
			}
		case *ast.GenDecl:
			f.values = append(f.values, decl)
			for _, spec := range decl.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok && t.Name.IsExported() {
					f.types[t.Name.Name] = t
					f.imports[t] = imports
				}
			}
		}
	}
	return nil
}

func importNames(file *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range file.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = imported
	}
	return names
}

func (r *reader) list(f *folder) Package {
	p := Package{Folder: f.at}
	for _, decl := range f.values {
		r.listValues(&p, decl)
	}
	for _, name := range slices.Sorted(maps.Keys(f.types)) {
		if !f.types[name].Assign.IsValid() {
			p.Types = append(p.Types, name)
		}
		r.listType(&p, f, name)
	}
	for _, fn := range f.funcs {
		if fn.Recv == nil {
			p.add("func " + fn.Name.Name + r.signature(fn.Type))
		}
	}
	slices.Sort(p.Lines)
	return p
}

// add adds a name or a method to the list.
func (p *Package) add(line string) {
	if p.member(line) {
		p.Names++
	}
}

// member adds a field, or a method of an interface, to the list. It reports
// whether the line is new: files for several systems may declare the same name.
func (p *Package) member(line string) bool {
	line = "pkg " + p.Folder + ", " + line
	if slices.Contains(p.Lines, line) {
		return false
	}
	p.Lines = append(p.Lines, line)
	return true
}

func (r *reader) listValues(p *Package, decl *ast.GenDecl) {
	var inherited ast.Expr // the type of constants that repeat the previous expression
	for _, spec := range decl.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		if v.Type != nil || v.Values != nil {
			inherited = v.Type
		}
		for i, name := range v.Names {
			if !name.IsExported() {
				continue
			}
			line := decl.Tok.String() + " " + name.Name
			if inherited != nil {
				line += " " + r.text(inherited)
			}
			if i < len(v.Values) && decl.Tok == token.CONST {
				if literal, ok := v.Values[i].(*ast.BasicLit); ok {
					line += " = " + literal.Value
				}
			}
			p.add(line)
		}
	}
}

// listType adds a type with its fields and methods to the list. An alias of a
// type of the module is listed with the fields and methods of its target,
// because users see them under the alias.
func (r *reader) listType(p *Package, f *folder, name string) {
	spec := f.types[name]
	line := "type " + name
	if spec.TypeParams != nil {
		line += "[" + r.fieldList(spec.TypeParams) + "]"
	}
	if spec.Assign.IsValid() {
		p.add(line + " = " + r.text(spec.Type))
		if home, target := r.target(f, spec); home != nil && !Public(home.at) {
			r.listMembers(p, "type "+name, home.types[target].Type)
			r.listMethods(p, home, target, name)
		}
		return
	}
	switch spec.Type.(type) {
	case *ast.StructType:
		p.add(line + " struct")
	case *ast.InterfaceType:
		p.add(line + " interface")
	default:
		p.add(line + " " + r.text(spec.Type))
	}
	r.listMembers(p, "type "+name, spec.Type)
	r.listMethods(p, f, name, name)
}

// target returns the folder and the name of the type that an alias denotes.
func (r *reader) target(f *folder, spec *ast.TypeSpec) (*folder, string) {
	selector, ok := spec.Type.(*ast.SelectorExpr)
	if !ok {
		return nil, ""
	}
	pkg, ok := selector.X.(*ast.Ident)
	if !ok {
		return nil, ""
	}
	at, own := strings.CutPrefix(f.imports[spec][pkg.Name], r.module+"/")
	if !own || r.folders[at] == nil || r.folders[at].types[selector.Sel.Name] == nil {
		return nil, ""
	}
	return r.folders[at], selector.Sel.Name
}

func (r *reader) listMembers(p *Package, of string, t ast.Expr) {
	switch t := t.(type) {
	case *ast.StructType:
		for _, field := range t.Fields.List {
			if field.Names == nil {
				p.member(of + " struct, embedded " + r.text(field.Type))
			}
			for _, name := range field.Names {
				if name.IsExported() {
					p.member(of + " struct, " + name.Name + " " + r.text(field.Type) + tag(field))
				}
			}
		}
	case *ast.InterfaceType:
		for _, method := range t.Methods.List {
			if method.Names == nil {
				p.member(of + " interface, " + r.text(method.Type))
			}
			for _, name := range method.Names {
				if fn, ok := method.Type.(*ast.FuncType); ok {
					p.member(of + " interface, " + name.Name + r.signature(fn))
				}
			}
		}
	}
}

// tag returns the tag of a field, because JSON keys are part of the API too.
func tag(field *ast.Field) string {
	if field.Tag == nil {
		return ""
	}
	return " " + field.Tag.Value
}

func (r *reader) listMethods(p *Package, f *folder, of, as string) {
	for _, fn := range f.funcs {
		if fn.Recv == nil || receiver(fn) != of {
			continue
		}
		star := ""
		if _, pointer := fn.Recv.List[0].Type.(*ast.StarExpr); pointer {
			star = "*"
		}
		p.add("method (" + star + as + ") " + fn.Name.Name + r.signature(fn.Type))
	}
}

func receiver(fn *ast.FuncDecl) string {
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	name, _ := t.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name
}

func (r *reader) signature(fn *ast.FuncType) string {
	generic := ""
	if fn.TypeParams != nil {
		generic = "[" + r.fieldList(fn.TypeParams) + "]"
	}
	return generic + strings.TrimPrefix(r.text(&ast.FuncType{Params: fn.Params, Results: fn.Results}), "func")
}

func (r *reader) fieldList(list *ast.FieldList) string {
	return strings.TrimSuffix(strings.TrimPrefix(r.text(&ast.FuncType{Params: list}), "func("), ")")
}

// text returns an expression on one line.
func (r *reader) text(e ast.Expr) string {
	var b strings.Builder
	if err := printer.Fprint(&b, r.files, e); err != nil {
		return err.Error() // occurs only for a node that the parser never produces
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
