package archtest

//unit:program go list is the second implementation

import (
	"bytes"
	"errors"
	"go/build"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "github.com/leakgate/leakgate"

// root returns the directory of go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || !strings.HasPrefix(string(text), "module "+module+"\n") {
		t.Fatalf("find the module in %s: %v", dir, err)
	}
	return dir
}

// TestLaw checks the project against docs/architecture.md. If the test fails,
// either the tree or the page is wrong: decide which, and state the reason in
// the commit message.
func TestLaw(t *testing.T) {
	dir := root(t)
	page, err := os.ReadFile(filepath.Join(dir, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	law, err := ReadLaw(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	tree, err := ReadTree(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range Check(module, law, tree) {
		t.Error(v)
	}
}

// TestTreeAgainstBuild compares ReadTree with the go command's own parser for
// this system; ReadTree may find more imports, but must find all that the go
// command finds.
func TestTreeAgainstBuild(t *testing.T) {
	dir := root(t)
	tree, err := ReadTree(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	for folder, p := range tree {
		built, err := build.ImportDir(filepath.Join(dir, filepath.FromSlash(folder)), 0)
		if _, none := errors.AsType[*build.NoGoError](err); none {
			continue // all of the package's files are for other systems
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range built.Imports {
			if _, ok := p.Imports[imported]; !ok {
				t.Errorf("%s imports %s, which ReadTree did not find", folder, imported)
			}
		}
		for _, imported := range append(built.TestImports, built.XTestImports...) {
			if _, ok := p.TestImports[imported]; !ok {
				t.Errorf("tests of %s import %s, which ReadTree did not find", folder, imported)
			}
		}
	}
	listed, err := exec.Command("go", "list", "-e", module+"/...").Output()
	if err != nil {
		t.Fatalf("run go list: %v", err)
	}
	for _, path := range strings.Fields(string(listed)) {
		if folder := strings.TrimPrefix(path, module+"/"); tree[folder] == nil {
			t.Errorf("ReadTree did not find package %s", path)
		}
	}
}

const goodPage = "# Page\n```imports\n" + `
# core
detector: detector/trend   # fits
detector/trend:
capture: detector internal/capture/procfs
capture/diagnose: capture
internal/capture/procfs: detector
leaf internal/text:
reporters:
harness/config:
harness/monitor: detector capture
cmd/tool: harness/monitor harness/config internal/sim
internal/sim: capture
internal/sim/simtest: internal/sim
internal/sim/cmd/sim: internal/sim
gopkg.in/yaml.v3 @ harness/config
` + "```\nEnd.\n"

// goodTree returns a small project that follows the rules of goodPage.
func goodTree() map[string]string {
	return map[string]string{
		"detector/detector.go": "// Package detector judges.\npackage detector\nimport (\"fmt\"; _ \"" +
			module + "/detector/trend\")\n",
		"detector/trend/trend.go": "// Package trend fits.\npackage trend\nimport _ \"" + module +
			"/internal/text\"\n",
		"capture/capture.go": "// Package capture reads.\npackage capture\nimport (_ \"" + module +
			"/detector\"; _ \"" + module + "/internal/capture/procfs\")\n",
		"capture/capture_test.go": "package capture_test\nimport (\"" + module + "/capture\"; \"" + module +
			"/internal/sim\"; \"" + module + "/internal/sim/simtest\")\n",
		"capture/diagnose/diagnose.go": "// Package diagnose collects.\npackage diagnose\nimport _ \"" + module +
			"/capture\"\n",
		"internal/capture/procfs/stat.go": "// Package procfs parses.\npackage procfs\nimport (_ \"" + module +
			"/detector\"; _ \"" + module + "/internal/text\")\n",
		"internal/text/text.go":  "// Package text prints.\npackage text\n",
		"reporters/reporters.go": "// Package reporters reports.\npackage reporters\n",
		"harness/config/config.go": "// Package config reads YAML.\npackage config\nimport _ " +
			"\"gopkg.in/yaml.v3\"\n",
		"harness/monitor/doc.go":        "// Package monitor watches.\npackage monitor\n",
		"harness/monitor/on_windows.go": "package monitor\nimport _ \"" + module + "/detector\"\n",
		"harness/monitor/tagged.go":     "//go:build never\n\npackage monitor\nimport _ \"" + module + "/capture\"\n",
		"cmd/tool/main.go": "// Command tool runs.\npackage main\nimport (_ \"" + module +
			"/harness/monitor\"; _ \"" + module + "/harness/config\"; _ \"" + module + "/internal/sim\")\n",
		"internal/sim/sim.go": "// Package sim simulates a phone.\npackage sim\nimport _ \"" + module +
			"/capture\"\n",
		"internal/sim/simtest/simtest.go": "// Package simtest starts a sim.\npackage simtest\nimport _ \"" + module +
			"/internal/sim\"\n",
		"internal/sim/cmd/sim/main.go": "// Command sim serves.\npackage main\nimport _ \"" + module +
			"/internal/sim\"\n",
		"detector/testdata/bad.go": "package util\nimport _ \"evil.example/x\"\n",
		".hidden/x.go":             "package util\n",
		"detector/_draft.go":       "package other\n",
	}
}

func check(t *testing.T, page string, files map[string]string) []Violation {
	t.Helper()
	law, err := ReadLaw(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	// The tree is written to disk, like the real tree.
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := ReadTree(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	return Check(module, law, tree)
}

func TestGoodTreePasses(t *testing.T) {
	if found := check(t, goodPage, goodTree()); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// TestEachRuleCanFail breaks one rule at a time in the good tree.
func TestEachRuleCanFail(t *testing.T) {
	allow := func(line, with string) func(string) string {
		return func(page string) string { return strings.Replace(page, line, with, 1) }
	}
	keep := func(page string) string { return page }
	imports := func(pkg, target string) string {
		if !strings.Contains(target, ".") {
			target = module + "/" + target
		}
		return "package " + pkg + "\nimport _ \"" + target + "\"\n"
	}
	for _, c := range []struct {
		name       string
		page       func(string) string
		file, text string // added to the tree; if text is empty, the file is removed
		rule, says string
	}{
		{
			"a package without a line", keep, "capture/adb/adb.go", "// Package adb talks.\npackage adb\n", "listed",
			"package capture/adb is not on the page",
		},
		{
			"a line without a package", allow("reporters:", "reporters:\nreporters/html:"), "", "", "listed",
			"reporters/html, which does not exist",
		},
		{
			"an import without permission", keep, "reporters/x.go", imports("reporters", "detector"), "allowed",
			"does not let reporters do so",
		},
		{
			"an import for another system", keep, "reporters/x_windows.go", imports("reporters", "detector"), "allowed",
			"reporters/x_windows.go imports detector",
		},
		{
			"a permission without an import", allow("reporters:", "reporters: detector"), "", "", "used",
			"lets reporters import detector",
		},
		{
			"a home without an import", allow("gopkg", "golang.org/x/term @ cmd/tool\ngopkg"), "", "", "used",
			"home for golang.org/x/term",
		},
		{
			"a child and its parent import each other", allow("detector/trend:\n", "detector/trend: detector\n"),
			"detector/trend/up.go", imports("trend", "detector"), "parent",
			"detector/trend/up.go imports its parent detector",
		},
		{
			"a child and its parent import each other through another package",
			allow("procfs: detector", "procfs: detector capture/diagnose"), "internal/capture/procfs/up.go",
			imports("procfs", "capture/diagnose"), "parent", "capture/diagnose/diagnose.go imports its parent capture",
		},
		{
			"a leaf that imports the project", keep, "internal/text/x.go", imports("text", "detector"), "leaf",
			"internal/text/x.go imports detector",
		},
		{
			"a leaf outside internal", allow("reporters:", "leaf reporters:"), "", "", "leaf",
			"reporters is a leaf, but not in internal",
		},
		{
			"a line that permits the import of a leaf", allow("reporters:", "reporters: internal/text"), "", "", "leaf",
			"remove it from the line",
		},
		{
			"core imports an instrument that imports nothing", allow("detector: ", "detector: internal/play "),
			"detector/x.go", imports("detector", "internal/play"), "layer",
			"nothing in detector may import from internal",
		},
		{
			"core imports an internal package of an edge", allow("detector: ", "detector: internal/capture/procfs "),
			"detector/x.go", imports("detector", "internal/capture/procfs"), "layer",
			"nothing in detector may import from capture",
		},
		{
			"an internal package of an edge imports harness",
			allow("procfs: detector", "procfs: detector harness/config"), "internal/capture/procfs/x.go",
			imports("procfs", "harness/config"), "layer", "nothing in capture may import from harness",
		},
		{
			"a test imports an internal package of a higher layer", keep, "detector/x_test.go",
			imports("detector", "internal/capture/procfs"), "layer", "nothing in detector may import from capture",
		},
		{
			"a tool imports the product", allow("reporters:", "reporters:\ntools/bench: detector"), "tools/bench/x.go",
			"// Command bench measures.\npackage main\nimport _ \"" + module + "/detector\"\n", "layer",
			"nothing in tools may import from detector",
		},
		{
			"core imports an edge", allow("detector: ", "detector: capture "), "detector/x.go",
			imports("detector", "capture"), "layer", "nothing in detector may import from capture",
		},
		{
			"an edge imports an edge", allow("reporters:", "reporters: capture"), "reporters/x.go",
			imports("reporters", "capture"), "layer", "nothing in reporters may import from capture",
		},
		{
			"an edge imports harness", allow("capture: ", "capture: harness/config "), "capture/x.go",
			imports("capture", "harness/config"), "layer", "nothing in capture may import from harness",
		},
		{
			"harness imports internal", allow("harness/monitor: ", "harness/monitor: internal/sim "),
			"harness/monitor/x.go", imports("monitor", "internal/sim"), "layer",
			"nothing in harness may import from internal",
		},
		{
			"internal imports harness", allow("internal/sim: ", "internal/sim: harness/config "), "internal/sim/x.go",
			imports("sim", "harness/config"), "layer", "nothing in internal may import from harness",
		},
		{
			"a test of an edge imports harness", keep, "capture/x_test.go", imports("capture", "harness/config"),
			"layer", "nothing in capture may import from harness",
		},
		{
			"a test of the core imports cmd", keep, "detector/x_test.go", imports("detector_test", "cmd/tool"), "layer",
			"nothing in detector may import from cmd",
		},
		{
			"a directory outside the layers", allow("reporters:", "reporters:\nextras:"), "extras/x.go",
			"// Package extras is.\npackage extras\n", "layer", "extras does not belong to any layer",
		},
		{
			"the root directory of the module", allow("reporters:", "reporters:\n.:"), "x.go",
			"// Package leakgate is.\npackage leakgate\n", "layer", "package . does not belong to any layer",
		},
		{
			"product code imports test support", allow("cmd/tool: ", "cmd/tool: internal/sim/simtest "),
			"cmd/tool/x.go",
			imports("main", "internal/sim/simtest"), "test support", "is only for tests",
		},
		{
			"a third-party package outside its home", keep, "reporters/x.go", imports("reporters", "gopkg.in/yaml.v3"),
			"home",
			"whose home is harness/config",
		},
		{
			"a third-party package in a test outside its home", keep, "reporters/x_test.go",
			imports("reporters", "gopkg.in/yaml.v3"), "home", "whose home is harness/config",
		},
		{
			"a third-party package without a home in an example", keep, "examples/x/x.go",
			imports("x", "example.com/left/pad"),
			"home", "has no home",
		},
		{
			"a third-party package without a home", keep, "reporters/x.go",
			imports("reporters", "example.com/left/pad"),
			"home", "has no home",
		},
		{
			"a package named util", allow("reporters:", "reporters:\nreporters/util:"), "reporters/util/x.go",
			"// Package util is.\npackage util\n", "name", `"util" does not describe`,
		},
		{
			"a package clause with the name common", allow("reporters:", "reporters:\nreporters/html:"),
			"reporters/html/x.go", "// Package common is.\npackage common\n", "name", `"common" does not describe`,
		},
		{
			"no package comment", keep, "detector/trend/trend.go", "package trend\n", "comment",
			"detector/trend has no package comment",
		},
		{
			"an empty package comment", keep, "detector/trend/trend.go", "// TREND\npackage trend\n", "comment",
			`begins with "Package trend "`,
		},
		{
			"a program without a comment", keep, "internal/sim/cmd/sim/main.go", imports("main", "internal/sim"),
			"comment", `begins with "Command sim "`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := goodTree()
			if c.file != "" {
				files[c.file] = c.text
			}
			page := c.page(goodPage)
			if page == goodPage && c.file == "" {
				t.Fatal("the case changes nothing")
			}
			found := check(t, page, files)
			if len(found) == 0 {
				t.Fatal("no violation was found")
			}
			hit := slices.ContainsFunc(found, func(v Violation) bool {
				return v.Rule == c.rule && strings.Contains(v.Text, c.says)
			})
			if !hit {
				t.Errorf("want %s: ...%s..., found %v", c.rule, c.says, found)
			}
		})
	}
}

func TestReadLaw(t *testing.T) {
	law, err := ReadLaw(strings.NewReader(goodPage))
	if err != nil {
		t.Fatal(err)
	}
	if got := law.Allowed["cmd/tool"]; !slices.Equal(got,
		[]string{"harness/monitor", "harness/config", "internal/sim"}) {
		t.Errorf("got permission for cmd/tool to import %q, want harness/monitor, harness/config and internal/sim", got)
	}
	if got := slices.Collect(maps.Values(law.Homes)); len(law.Allowed) != 13 ||
		!slices.Equal(got, []string{"harness/config"}) {
		t.Errorf("got %d packages and homes %q, want 13 and harness/config", len(law.Allowed), got)
	}
	for name, page := range map[string]string{
		"no block":                  "# Page\n",
		"block without a language":  "```\ndetector:\n```\n",
		"two blocks":                "```imports\na:\n```\n```imports\nb:\n```\n",
		"block that does not end":   "```imports\na:\n",
		"line in an unknown format": "```imports\ndetector may import nothing\n```\n",
		"a package twice":           "```imports\na:\na: b\n```\n",
		"a leaf that imports":       "```imports\na:\nleaf b: a\n```\n",
		"two homes":                 "```imports\nx.y/z @ a\nx.y/z @ b\n```\n",
	} {
		if law, err := ReadLaw(strings.NewReader(page)); err == nil {
			t.Errorf("%s: accepted as %v", name, law)
		}
	}
}

func TestReadTreeRefusesWhatIsNoGo(t *testing.T) {
	for name, text := range map[string]string{
		"no package": "import \"fmt\"\n", "a bad import": "package a\nimport 3\n",
	} {
		if _, err := ReadTree(fstest.MapFS{"a/a.go": {Data: []byte(text)}}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
