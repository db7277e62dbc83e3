package release

//unit:program actionlint and shellcheck are what lints

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/leakgate/leakgate/internal/recorded"
)

// tool finds a program that the tests need: the version that the Makefile
// installs, or otherwise the one in PATH.
func tool(t *testing.T, name string) string {
	t.Helper()
	cache := os.Getenv("XDG_CACHE_HOME")
	if home, err := os.UserHomeDir(); cache == "" && err == nil {
		cache = filepath.Join(home, ".cache")
	}
	for _, path := range []string{filepath.Join(cache, "leakgate", "bin", name), name} {
		if path, err := exec.LookPath(path); err == nil {
			return path
		}
	}
	recorded.Missing(t, "%s is needed: run make tools packages", name)
	return ""
}

// lint runs actionlint in a repository that contains these workflow files.
func lint(t *testing.T, files map[string][]byte) (string, error) {
	t.Helper()
	dir := t.TempDir()
	workflows := filepath.Join(dir, ".github", "workflows")
	for _, folder := range []string{filepath.Join(dir, ".git"), workflows} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(workflows, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := "self-hosted-runner:\n  labels: [android-phone]\nconfig-variables: null\n"
	if err := os.WriteFile(filepath.Join(dir, ".github", "actionlint.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), tool(t, "actionlint"), "-no-color", "-pyflakes=",
		"-shellcheck="+tool(t, "shellcheck"))
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestWorkflowsLint(t *testing.T) {
	files := map[string][]byte{}
	for _, path := range workflowFiles(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		if strings.Contains(path, "nightly") {
			name = "nightly.yml"
		}
		files[name] = text
	}
	if out, err := lint(t, files); err != nil {
		t.Errorf("actionlint: %v\n%s", err, out)
	}
}

// actionlint does not check actions, so the steps of our action are converted
// to a workflow that is called with the same inputs.
func TestActionLint(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := lint(t, map[string][]byte{"action.yml": asWorkflow(t, text)}); err != nil {
		t.Errorf("actionlint: %v\n%s", err, out)
	}
	broken := strings.Replace(string(text), "leakgate \"${args[@]}\" || code=$?", "leakgate ${args[@]} || code=$?", 1)
	broken = strings.Replace(broken, "steps.record.outputs.artifact }}", "steps.recorded.outputs.artifact }}", 1)
	out, err := lint(t, map[string][]byte{"action.yml": asWorkflow(t, []byte(broken))})
	if err == nil || !strings.Contains(out, "SC2068") || !strings.Contains(out, `"recorded" is not defined`) {
		t.Errorf("actionlint does not report the mistakes: %v\n%s", err, out)
	}
}

func asWorkflow(t *testing.T, action []byte) []byte {
	t.Helper()
	var a struct {
		Inputs map[string]any `yaml:"inputs"`
		Runs   struct {
			Steps []yaml.Node `yaml:"steps"`
		} `yaml:"runs"`
	}
	if err := yaml.Unmarshal(action, &a); err != nil {
		t.Fatal(err)
	}
	inputs := map[string]any{}
	for name := range a.Inputs {
		inputs[name] = map[string]any{"type": "string", "required": false}
	}
	text, err := yaml.Marshal(map[string]any{
		"name":        "action",
		"on":          map[string]any{"workflow_call": map[string]any{"inputs": inputs}},
		"permissions": map[string]string{},
		"jobs":        map[string]any{"action": map[string]any{"runs-on": "ubuntu-latest", "steps": a.Runs.Steps}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}
