package release

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// root is the directory of the module, as seen from this package.
const root = "../.."

// workflow holds the fields of a workflow file that the tests read.
type workflow struct {
	file        string
	On          yaml.Node        `yaml:"on"`
	Permissions yaml.Node        `yaml:"permissions"`
	Concurrency yaml.Node        `yaml:"concurrency"`
	Jobs        map[string]ciJob `yaml:"jobs"`
}

type ciJob struct {
	If          string    `yaml:"if"`
	Uses        string    `yaml:"uses"`
	Permissions yaml.Node `yaml:"permissions"`
	Timeout     int       `yaml:"timeout-minutes"`
	Steps       []ciStep  `yaml:"steps"`
}

// ciStep is a step of a job or of the action.
type ciStep struct {
	Name  string            `yaml:"name"`
	ID    string            `yaml:"id"`
	If    string            `yaml:"if"`
	Uses  string            `yaml:"uses"`
	Shell string            `yaml:"shell"`
	Run   string            `yaml:"run"`
	Env   map[string]string `yaml:"env"`
	With  map[string]string `yaml:"with"`
}

// scripts returns the parts of a step that a shell executes.
func (s ciStep) scripts() []string {
	return slices.DeleteFunc([]string{s.Run, s.With["script"]}, func(text string) bool { return text == "" })
}

// actionFile holds the fields of action.yml that the tests read.
type actionFile struct {
	Inputs map[string]struct {
		Description string `yaml:"description"`
		Default     string `yaml:"default"`
	} `yaml:"inputs"`
	Outputs map[string]struct {
		Value string `yaml:"value"`
	} `yaml:"outputs"`
	Runs struct {
		Steps []ciStep `yaml:"steps"`
	} `yaml:"runs"`
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
}

func readAction(t *testing.T) actionFile {
	t.Helper()
	var a actionFile
	readYAML(t, filepath.Join(root, "action.yml"), &a)
	if len(a.Runs.Steps) == 0 {
		t.Fatal("action.yml has no steps")
	}
	return a
}

// workflowFiles returns the paths of the workflows that users copy.
func workflowFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "examples", "prgate", "workflows", "*.yml"))
	if err != nil || len(files) < 6 {
		t.Fatalf("found %d workflows: %v", len(files), err)
	}
	return append(files, filepath.Join(root, "examples", "nightly", "workflow.yml"))
}

func readWorkflows(t *testing.T) []workflow {
	t.Helper()
	var out []workflow
	for _, file := range workflowFiles(t) {
		w := workflow{file: filepath.Base(file)}
		readYAML(t, file, &w)
		out = append(out, w)
	}
	return out
}

// triggers returns the events that start a workflow.
func (w workflow) triggers() []string {
	var names []string
	switch w.On.Kind {
	case yaml.ScalarNode:
		names = []string{w.On.Value}
	case yaml.SequenceNode:
		for _, n := range w.On.Content {
			names = append(names, n.Value)
		}
	case yaml.MappingNode:
		for i := 0; i < len(w.On.Content); i += 2 {
			names = append(names, w.On.Content[i].Value)
		}
	}
	return names
}

// granted returns the permissions of a workflow, which apply to each of its
// jobs.
func (w workflow) granted() map[string]string {
	out := map[string]string{}
	_ = w.Permissions.Decode(&out)
	return out
}

// actionlint does not check these rules.
func TestWorkflowRules(t *testing.T) {
	action := readAction(t)
	for _, w := range readWorkflows(t) {
		if w.Permissions.Kind != yaml.MappingNode {
			t.Errorf("%s has no permissions", w.file)
		}
		if w.Concurrency.IsZero() {
			t.Errorf("%s has no concurrency", w.file)
		}
		if slices.Contains(w.triggers(), "pull_request_target") {
			t.Errorf("%s runs on pull_request_target: its token can write, and it checks out other people's code",
				w.file)
		}
		for name, job := range w.Jobs {
			if job.Timeout == 0 && job.Uses == "" {
				t.Errorf("%s: job %s has no timeout", w.file, name)
			}
			if !job.Permissions.IsZero() {
				t.Errorf("%s: job %s sets its own permissions", w.file, name)
			}
			for _, s := range job.Steps {
				checkStep(t, w, action, s)
			}
		}
	}
}

func checkStep(t *testing.T, w workflow, action actionFile, s ciStep) {
	t.Helper()
	for _, script := range s.scripts() {
		if strings.Contains(script, "${{") {
			t.Errorf("%s: step %q has an expression in its script: pass it in an environment variable", w.file, s.Name)
		}
	}
	if s.Uses == "" {
		return
	}
	_, version, ok := strings.Cut(s.Uses, "@")
	if !ok || !majorVersion(version) {
		t.Errorf("%s: %s: want a major version", w.file, s.Uses)
	}
	privileged := slices.Contains(w.triggers(), "workflow_run")
	switch name, _, _ := strings.Cut(s.Uses, "@"); name {
	case "actions/checkout":
		if privileged {
			t.Errorf("%s has a token that can write, but checks out code", w.file)
		}
		if s.With["persist-credentials"] != "false" {
			t.Errorf("%s: the checkout exposes its token to the code of the pull request", w.file)
		}
	case "leakgate/leakgate":
		for input := range s.With {
			if _, ok := action.Inputs[input]; !ok {
				t.Errorf("%s: leakgate has no input %s", w.file, input)
			}
		}
		if comments := s.With["comment"] != "false" && s.With["install-only"] != "true"; comments &&
			slices.Contains(w.triggers(), "pull_request") && w.granted()["pull-requests"] != "write" {
			t.Errorf("%s may not write comments: set comment: false", w.file)
		}
	}
}

func majorVersion(version string) bool {
	return len(version) > 1 && version[0] == 'v' && strings.Trim(version[1:], "0123456789") == ""
}

// A workflow that runs the code of forks must not have a write permission other
// than id-token.
func TestWritePermissions(t *testing.T) {
	for _, w := range readWorkflows(t) {
		for scope, level := range w.granted() {
			if level != "write" || scope == "id-token" {
				continue
			}
			forks := slices.Contains(w.triggers(), "workflow_call")
			for _, job := range w.Jobs {
				own := strings.Contains(job.If, "head.repo.full_name == github.repository")
				forks = forks || slices.Contains(w.triggers(), "pull_request") && !own
			}
			if forks {
				t.Errorf("%s runs the code of forks with the permission %s: write", w.file, scope)
			}
		}
	}
}

// No script of the action contains an expression, and every script is a bash
// script.
func TestActionScripts(t *testing.T) {
	action := readAction(t)
	for _, s := range action.Runs.Steps {
		if s.Run == "" {
			continue
		}
		if strings.Contains(s.Run, "${{") {
			t.Errorf("step %q has an expression in its script: pass it in an environment variable", s.Name)
		}
		if s.Shell != "bash" {
			t.Errorf("step %q: shell %q, want bash", s.Name, s.Shell)
		}
	}
	for name, input := range action.Inputs {
		used := slices.ContainsFunc(action.Runs.Steps, func(s ciStep) bool {
			texts := []string{s.If}
			for _, m := range []map[string]string{s.Env, s.With} {
				for _, v := range m {
					texts = append(texts, v)
				}
			}
			return strings.Contains(strings.Join(texts, "\n"), "inputs."+name)
		})
		if !used || input.Description == "" {
			t.Errorf("input %s: used %v, description %q", name, used, input.Description)
		}
	}
}

// touchTree makes the result of a test depend on the source files that other
// programs read, because go test does not track them.
func touchTree(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == root:
			return nil
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "leakgate-runs"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		_, err = os.Stat(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
