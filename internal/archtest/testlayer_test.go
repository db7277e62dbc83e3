package archtest

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The layers of tests, by the build constraint of their files.
const (
	layerUnit = "unit" // neither tag
	layerReal = "real" // realtime
	layerE2E  = "e2e"  // e2e
)

// maxReal is the maximum number of tests in CI that may depend on real time:
// each of them may fail by chance.
const maxReal = 27

// worldly lists the functions with which a test waits for the wall clock, opens
// a socket or starts a program.
var worldly = map[string]string{
	"time.Sleep": "sleep", "time.After": "sleep", "time.Tick": "sleep", "time.NewTimer": "sleep",
	"time.NewTicker": "sleep", "time.AfterFunc": "sleep",
	"net.Listen": "listen", "adbd.Listen": "listen", "adbtest.StartServer": "listen", "hostdevicetest.Start": "listen",
	"hostdevicetest.StartNested": "listen",
	"exec.Command":               "program", "exec.CommandContext": "program", "os.StartProcess": "program",
}

// excuse matches the comment line that allows a unit test file to call one kind
// of worldly function. The comment contains the reason, for example that the
// socket is under test, or that a program is an independent implementation to
// compare with.
var excuse = regexp.MustCompile(`^//unit:(sleep|listen|program) (.{10,})$`)

// TestFile describes a test file by its layer, its tests, and its calls that
// depend on the outside world.
type TestFile struct {
	Path  string
	Layer string
	Tests []string
	// Calls holds the kinds of worldly calls in the file, with one position of
	// each; Excused holds the kinds that the file's excuses allow.
	Calls   map[string]string
	Excused []string
	// Bubbles reports whether the file imports testing/synctest, in which case
	// its sleeps are assumed to be virtual.
	Bubbles bool
}

// ReadTestFiles reads all test files of a tree.
func ReadTestFiles(tree fs.FS) ([]TestFile, error) {
	var out []TestFile
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(base, ".") || base == "testdata"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		f, err := readTestFile(name, text)
		out = append(out, f)
		return err
	})
	return out, err
}

func readTestFile(name string, text []byte) (TestFile, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		return TestFile{}, fmt.Errorf("read test file: %w", err)
	}
	f := TestFile{Path: name, Layer: layerUnit, Calls: map[string]string{}}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if m := excuse.FindStringSubmatch(c.Text); m != nil {
				f.Excused = append(f.Excused, m[1])
			}
			if group.Pos() < file.Package && constraint.IsGoBuild(c.Text) {
				f.Layer = layerOfConstraint(c.Text)
			}
		}
	}
	for _, i := range file.Imports {
		f.Bubbles = f.Bubbles || i.Path.Value == `"testing/synctest"`
	}
	for _, d := range file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") &&
			fn.Name.Name != "TestMain" {
			f.Tests = append(f.Tests, fn.Name.Name)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				if kind := worldly[x.Name+"."+s.Sel.Name]; kind != "" {
					f.Calls[kind] = fset.Position(s.Pos()).String() + " " + x.Name + "." + s.Sel.Name
				}
			}
		}
		return true
	})
	return f, nil
}

// layerOfConstraint returns the layer whose tag is required to build the file.
func layerOfConstraint(line string) string {
	x, err := constraint.Parse(line)
	if err != nil {
		return layerUnit
	}
	without := func(tag string) bool { return x.Eval(func(t string) bool { return t != tag }) }
	switch {
	case !without("e2e"):
		return layerE2E
	case !without("realtime"):
		return layerReal
	}
	return layerUnit
}

// CheckLayers checks that test files follow the rules of their layers, and
// returns the violations.
func CheckLayers(files []TestFile) []Violation {
	var found []Violation
	add := func(format string, args ...any) {
		found = append(found, Violation{"test layer", fmt.Sprintf(format, args...)})
	}
	inReal := 0
	for _, f := range files {
		if f.Layer == layerReal {
			inReal += len(f.Tests)
		}
		if f.Layer != layerUnit {
			continue
		}
		for _, kind := range sortedKeys(f.Calls) {
			if kind == "sleep" && f.Bubbles || slices.Contains(f.Excused, kind) {
				continue
			}
			add("%s: a unit test must be pure or run in a bubble of testing/synctest: dial an in-memory server, or "+
				"build the file with the tag realtime or e2e; to allow the call, add //unit:%s REASON", f.Calls[kind],
				kind)
		}
		for _, kind := range f.Excused {
			if f.Calls[kind] == "" {
				add("%s: no call needs //unit:%s", f.Path, kind)
			}
		}
	}
	if inReal > maxReal {
		add("%d tests depend on real time, want at most %d: use bubbles or the tag e2e", inReal,
			maxReal)
	}
	return found
}
