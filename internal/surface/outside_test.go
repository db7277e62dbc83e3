package surface

//unit:program the go command compiles a module

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestOutside builds examples/embed as a separate module. This checks that
// other modules can import everything that the example uses; the compiler
// rejects internal packages.
func TestOutside(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "examples", "embed"))); err != nil {
		t.Fatal(err)
	}
	// The tests of the example use the simulated phone, which is internal.
	tests, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		if err := os.Remove(test); err != nil {
			t.Fatal(err)
		}
	}
	outside(t, dir, "go", "mod", "init", "example.com/embed")
	outside(t, dir, "go", "work", "init", dir, root)
	outside(t, dir, "go", "vet", ".")
	source, err := os.ReadFile(filepath.Join(dir, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	packages, err := Read(os.DirFS(root), module)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		// examples/leakcheck is a test suite and uses the API for suites.
		if p.Folder != "harness" && Public(p.Folder) && !strings.Contains(string(source), `"`+module+"/"+p.Folder+`"`) {
			t.Errorf("examples/embed does not use %s", p.Folder)
		}
	}
}

func outside(t *testing.T, dir string, argv ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK="+filepath.Join(dir, "go.work"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
}

// TestExamplesOfTheHarness checks that each function and method that a suite
// may call occurs in the example of a suite, which runs on the served phone, or
// in an example of the package.
func TestExamplesOfTheHarness(t *testing.T) {
	root := filepath.Join("..", "..")
	var examples strings.Builder
	for _, pattern := range []string{"examples/leakcheck/*_test.go", "harness/example_test.go"} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			examples.Write(text)
		}
	}
	packages, err := Read(os.DirFS(root), module)
	if err != nil {
		t.Fatal(err)
	}
	callable := regexp.MustCompile(`^pkg harness, (?:func|method \(\*(?:Leaks|Background)\)) (\w+)\(`)
	seen := 0
	for _, p := range packages {
		for _, line := range p.Lines {
			m := callable.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			seen++
			if !regexp.MustCompile(`\.` + m[1] + `\(`).MatchString(examples.String()) {
				t.Errorf("no example calls %s", m[1])
			}
		}
	}
	if seen < 40 {
		t.Errorf("found only %d names of package harness", seen)
	}
}
