package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLayers checks the tests against the layers in CONTRIBUTING.md.
func TestLayers(t *testing.T) {
	files, err := ReadTestFiles(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range CheckLayers(files) {
		t.Error(v)
	}
}

func TestCheckLayers(t *testing.T) {
	const body = "package a\n%simport (\"time\"; \"net\"; \"testing\")\nfunc TestA(t *testing.T) { %s }\n"
	for name, c := range map[string]struct{ head, imports, does, says string }{
		"pure":                        {"", "", "t.Log(time.Now())", ""},
		"sleeps":                      {"", "", "time.Sleep(1)", "//unit:sleep REASON"},
		"sleeps in a synctest bubble": {"", "import _ \"testing/synctest\"\n", "time.Sleep(1)", ""},
		"listens in a bubble": {
			"", "import _ \"testing/synctest\"\n", "net.Listen(\"tcp\", \"\")", "a_test.go:4:28 net.Listen",
		},
		"starts a program": {"", "", "exec.CommandContext(nil, \"\")", "//unit:program"},
		"excused": {
			"", "//unit:listen the socket is what is tested\n", "net.Listen(\"tcp\", \"\")", "",
		},
		"excused without a reason": {
			"", "//unit:listen because\n", "net.Listen(\"tcp\", \"\")", "a unit test must be pure",
		},
		"excused unnecessarily": {"", "//unit:listen the socket is what is tested\n", "", "no call needs"},
		"real":                  {"//go:build linux && realtime\n\n", "", "time.Sleep(1)", ""},
		"e2e":                   {"//go:build realtime && e2e\n\n", "", "time.Sleep(1)", ""},
		"linux or realtime":     {"//go:build linux || realtime\n\n", "", "time.Sleep(1)", "a unit test must be pure"},
		"another tag":           {"//go:build unix\n\n", "", "time.Sleep(1)", "a unit test must be pure"},
	} {
		f, err := readTestFile("a_test.go", []byte(c.head+fmt.Sprintf(body, c.imports, c.does)))
		if err != nil {
			t.Fatal(err)
		}
		found := fmt.Sprint(CheckLayers([]TestFile{f}))
		if c.says == "" && found != "[]" || !strings.Contains(found, c.says) {
			t.Errorf("%s: %s", name, found)
		}
	}
	many := TestFile{Layer: layerReal, Tests: make([]string, maxReal+1)}
	if found := CheckLayers([]TestFile{many}); len(found) != 1 ||
		!strings.Contains(found[0].Text, fmt.Sprintf("%d tests depend on real time", maxReal+1)) {
		t.Errorf("%v", found)
	}
}

// TestFoldersOfCI checks that the directories that the Makefile tests, and
// those with a CPU time budget in CONTRIBUTING.md, exist.
func TestFoldersOfCI(t *testing.T) {
	for name, pattern := range map[string]string{
		"Makefile": `(?m)\s\./([a-z][a-z0-9/]+)`, "CONTRIBUTING.md": `(?m)^([a-z/]+): \d+$`,
	} {
		text, err := os.ReadFile(filepath.Join(root(t), name))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(pattern).FindAllSubmatch(text, -1)
		if len(found) < 5 {
			t.Errorf("%s names %d folders", name, len(found))
		}
		for _, m := range found {
			folder := string(m[1])
			_, err := os.Stat(filepath.Join(root(t), folder))
			if _, ofTools := os.Stat(filepath.Join(root(t), "tools", folder)); err != nil && ofTools != nil {
				t.Errorf("%s names %s, which does not exist", name, folder)
			}
		}
	}
}
