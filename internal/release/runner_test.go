package release

//unit:program the steps of the action are bash scripts

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// runner executes the steps of the action as the runner of GitHub Actions does.
type runner struct {
	t         *testing.T
	action    actionFile
	inputs    map[string]string
	github    map[string]string // the github context, by key
	workspace string
	temp      string
	env       []string // further variables
	outputs   map[string]map[string]string
	path      []string
	failed    bool
	// The observable results.
	log      strings.Builder
	summary  string
	ran      []string // names of steps
	uploads  []upload
	exitCode int // exit code of the last step that failed
}

// upload is an artifact that a step stored.
type upload struct {
	name  string
	files []string
}

func newRunner(t *testing.T, inputs map[string]string) *runner {
	t.Helper()
	tool(t, "bash")
	return &runner{
		t: t, action: readAction(t), inputs: inputs, workspace: t.TempDir(), temp: t.TempDir(),
		outputs: map[string]map[string]string{},
		github: map[string]string{
			"event_name": "pull_request", "repository": "acme/shop", "ref": "refs/pull/7/merge", "token": "ghs_secret",
			"action_ref": "v1", "action_path": root, "event.repository.default_branch": "main",
			"event.pull_request.head.repo.full_name": "acme/shop"},
	}
}

// run executes the action and returns whether it succeeded.
func (r *runner) run() bool {
	r.t.Helper()
	for _, step := range r.action.Runs.Steps {
		if !truth(r.value(r.condition(step.If))) {
			continue
		}
		r.ran = append(r.ran, step.Name)
		if step.Uses != "" {
			r.use(step)
			continue
		}
		if code := r.script(step); code != 0 {
			r.failed, r.exitCode = true, code
		}
	}
	return !r.failed
}

// condition adds success() to a condition that does not use the state of the
// job, as GitHub does.
func (r *runner) condition(text string) string {
	if m := inTemplate.FindStringSubmatch(text); m != nil {
		text = m[1]
	}
	for _, state := range []string{"always()", "cancelled()", "failure()", "success()"} {
		if strings.Contains(text, state) {
			return text
		}
	}
	if text == "" {
		return "success()"
	}
	return "success() && (" + text + ")"
}

func (r *runner) value(text string) string {
	r.t.Helper()
	value, err := evaluate(text, r.lookup)
	if err != nil {
		r.t.Fatalf("evaluate %q: %v", text, err)
	}
	return value
}

func (r *runner) text(text string) string {
	r.t.Helper()
	value, err := expand(text, r.lookup)
	if err != nil {
		r.t.Fatalf("expand %q: %v", text, err)
	}
	return value
}

func (r *runner) lookup(name string) (string, error) {
	switch name {
	case "always()":
		return "true", nil
	case "cancelled()":
		return "false", nil
	case "success()":
		return asText(!r.failed), nil
	case "failure()":
		return asText(r.failed), nil
	}
	if input, ok := strings.CutPrefix(name, "inputs."); ok {
		if value, given := r.inputs[input]; given {
			return value, nil
		}
		declared, ok := r.action.Inputs[input]
		if !ok {
			return "", fmt.Errorf("unknown input %s", input)
		}
		return expand(declared.Default, r.lookup)
	}
	if key, ok := strings.CutPrefix(name, "github."); ok {
		value, known := r.github[key]
		if !known {
			return "", fmt.Errorf("unknown key %s in the github context", key)
		}
		return value, nil
	}
	if rest, ok := strings.CutPrefix(name, "steps."); ok {
		id, output, _ := strings.Cut(rest, ".outputs.")
		if !slices.ContainsFunc(r.action.Runs.Steps, func(s ciStep) bool { return s.ID == id }) {
			return "", fmt.Errorf("unknown step %s", id)
		}
		return r.outputs[id][output], nil
	}
	return "", fmt.Errorf("unknown name %s", name)
}

// script runs a step as GitHub documents it for `shell: bash`, and returns the
// exit code.
func (r *runner) script(step ciStep) int {
	r.t.Helper()
	files := r.t.TempDir()
	file := func(name string) string {
		path := filepath.Join(files, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			r.t.Fatal(err)
		}
		return path
	}
	script, outputs, paths, summary := file("script.sh"), file("output"), file("path"), file("summary")
	if err := os.WriteFile(script, []byte(step.Run), 0o600); err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.CommandContext(r.t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", script)
	cmd.Dir = r.workspace
	cmd.Env = append(os.Environ(), "GITHUB_OUTPUT="+outputs, "GITHUB_PATH="+paths, "GITHUB_STEP_SUMMARY="+summary,
		"RUNNER_TEMP="+r.temp,
		"RUNNER_OS=Linux", "RUNNER_ARCH=X64", "GITHUB_EVENT_NAME="+r.github["event_name"],
		"GITHUB_REF="+r.github["ref"],
		"GITHUB_REPOSITORY="+r.github["repository"],
		"PATH="+strings.Join(append(slices.Clone(r.path), os.Getenv("PATH")), ":"))
	cmd.Env = append(cmd.Env, r.env...)
	for name, value := range step.Env {
		cmd.Env = append(cmd.Env, name+"="+r.text(value))
	}
	out, err := cmd.CombinedOutput()
	r.log.Write(out)
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		r.t.Fatal(err)
	} else if ok {
		r.log.WriteString("exit code " + strconv.Itoa(exit.ExitCode()) + "\n")
	}
	r.outputs[step.ID] = readOutputs(r.t, outputs)
	r.path = append(readLines(r.t, paths), r.path...)
	r.summary += strings.Join(readLines(r.t, summary), "\n")
	return cmd.ProcessState.ExitCode()
}

func readLines(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func readOutputs(t *testing.T, path string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, line := range readLines(t, path) {
		if name, value, ok := strings.Cut(line, "="); ok {
			out[name] = value
		}
	}
	return out
}

// use imitates actions/upload-artifact, the only action that our action uses.
func (r *runner) use(step ciStep) {
	r.t.Helper()
	if !strings.HasPrefix(step.Uses, "actions/upload-artifact@") {
		r.t.Fatalf("unexpected action %s", step.Uses)
	}
	patterns := strings.Fields(r.text(step.With["path"]))
	var stored []string
	base := patterns[0]
	if !filepath.IsAbs(base) {
		base = filepath.Join(r.workspace, base)
	}
	err := filepath.WalkDir(base, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !excluded(patterns[1:], patterns[0], d.Name()) {
			rel, _ := filepath.Rel(base, path)
			stored = append(stored, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil && step.With["if-no-files-found"] == "error" {
		r.failed = true
	}
	r.uploads = append(r.uploads, upload{r.text(step.With["name"]), stored})
}

// excluded reports whether a pattern of the form !BASE/**/NAME matches a file.
func excluded(patterns []string, base, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		p, negated := strings.CutPrefix(p, "!"+base+"/**/")
		matched, _ := filepath.Match(p, name)
		return negated && matched
	})
}

// artifacts returns the stored artifacts by name.
func (r *runner) artifacts() map[string][]string {
	out := map[string][]string{}
	for _, u := range r.uploads {
		out[u.name] = u.files
	}
	return maps.Clone(out)
}
