package surface

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

var update = flag.Bool("update", false, "write docs/api.txt")

const (
	module = "github.com/leakgate/leakgate"
	// mostNames is the maximum number of names that a user of the public
	// packages has to learn. These packages fall into four groups: the checks
	// of a suite, a run in progress, its record, and the individual engines.
	mostNames = 580
)

// TestAPI compares docs/api.txt with the public packages. Run the test with
// -update and review the difference: each line is a promise to other modules.
func TestAPI(t *testing.T) {
	root := filepath.Join("..", "..")
	packages, err := Read(os.DirFS(root), module)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	total := 0
	for _, p := range packages {
		if Public(p.Folder) {
			text.WriteString(strings.Join(p.Lines, "\n") + "\n")
			total += p.Names
			t.Logf("%4d %s", p.Names, p.Folder)
		}
	}
	t.Logf("%4d exported names and methods", total)
	if total > mostNames {
		t.Errorf("%d exported names and methods in public packages, want at most %d", total, mostNames)
	}
	page := filepath.Join(root, "docs", "api.txt")
	if *update {
		if err := os.WriteFile(page, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	reportChanges(t, strings.Split(string(kept), "\n"), strings.Split(text.String(), "\n"))
}

// TestTypeNames checks that a type name has one meaning in the whole product.
// Packages that only tests use are exempt: a fake may have the same type names
// as the package that it imitates.
func TestTypeNames(t *testing.T) {
	packages, err := Read(os.DirFS(filepath.Join("..", "..")), module)
	if err != nil {
		t.Fatal(err)
	}
	homes := map[string][]string{}
	for _, p := range packages {
		if Public(p.Folder) || strings.HasPrefix(p.Folder, "internal/detector/") ||
			strings.HasPrefix(p.Folder, "internal/analysis/") ||
			strings.HasPrefix(p.Folder, "internal/capture/") || strings.HasPrefix(p.Folder, "internal/harness/") {
			for _, name := range p.Types {
				homes[name] = append(homes[name], p.Folder)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(homes)) {
		if len(homes[name]) > 1 && sameName[name] == "" {
			t.Errorf("several packages have a type %s (%s): rename one, or add a reason", name,
				strings.Join(homes[name], ", "))
		}
	}
	for name := range sameName {
		if len(homes[name]) < 2 {
			t.Errorf("only one package has a type %s: remove its reason", name)
		}
	}
}

func reportChanges(t *testing.T, kept, now []string) {
	t.Helper()
	for _, line := range kept {
		if !slices.Contains(now, line) {
			t.Errorf("- %s", line)
		}
	}
	for _, line := range now {
		if !slices.Contains(kept, line) {
			t.Errorf("+ %s", line)
		}
	}
	if t.Failed() {
		t.Log("the API differs from docs/api.txt; update it with `go test ./internal/surface -update`")
	}
}

func TestRead(t *testing.T) {
	packages, err := Read(fstest.MapFS{
		"a/a.go": {Data: []byte(`package a
import "m/internal/b"
const (
	One Count = iota
	Two
	three
)
const Name, other = "x", 1
var Err, hidden = f(), 2
type Count int
func (c Count) String() string { return "" }
func (c *Count) set() {}
type Options struct {
	Top  int ` + "`json:\"top\"`" + `
	Done func(
		n int,
	) error
	none int
	Count
}
type Device interface { Exec(cmd string) error; hide(); Count }
type Damage = b.Damage
type Reader = other.Reader
type List[T any] []T
func (l List[T]) Len() int { return 0 }
func New[T any](o Options, more ...T) (*Count, error) { return nil, nil }
type low struct{}
func (low) High() {}
`)},
		"a/a_windows.go": {
			Data: []byte("package a\nfunc New[T any](o Options, more ...T) (*Count, error) { return nil, nil }\n"),
		},
		"a/a_test.go": {Data: []byte("package a\nfunc Test() {}\n")},
		"internal/b/b.go": {
			Data: []byte("package b\ntype Damage struct{ Offset int64 }\nfunc (d *Damage) Error() string { return " +
				"\"\" }\n"),
		},
		"cmd/c/c.go":      {Data: []byte("package main\nfunc Main() {}\n")},
		"a/testdata/d.go": {Data: []byte("not Go")},
	}, "m")
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) != 2 || packages[1].Folder != "internal/b" || Public("internal/b") || !Public("a") {
		t.Fatalf("read %v", packages)
	}
	want := []string{
		"const Name = \"x\"", "const One Count", "const Two Count",
		"func New[T any](o Options, more ...T) (*Count, error)",
		"method (*Damage) Error() string", "method (Count) String() string", "method (List) Len() int",
		"type Count int", "type Damage = b.Damage", "type Damage struct, Offset int64",
		"type Device interface", "type Device interface, Count", "type Device interface, Exec(cmd string) error",
		"type Device interface, hide()",
		"type List[T any] []T", "type Options struct", "type Options struct, Done func( n int, ) error",
		"type Options struct, Top int `json:\"top\"`", "type Options struct, embedded Count",
		"type Reader = other.Reader", "var Err",
	}
	for i := range want {
		want[i] = "pkg a, " + want[i]
	}
	slices.Sort(want)
	if !slices.Equal(packages[0].Lines, want) {
		t.Errorf("lists\n%s\nwant\n%s", strings.Join(packages[0].Lines, "\n"), strings.Join(want, "\n"))
	}
	if packages[0].Names != 14 || len(packages[0].Types) != 4 {
		t.Errorf("got %d names and types %q, want 14 names and 4 types", packages[0].Names, packages[0].Types)
	}
	if _, err := Read(fstest.MapFS{"a.go": {Data: []byte("package")}}, "m"); err == nil {
		t.Error("a file without a package was read")
	}
}
