package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/leakgate/leakgate/internal/recorded"
)

// fakeLeakgate replaces the program of a release. It prints its arguments and
// writes the files that the real commands write.
const fakeLeakgate = `#!/usr/bin/env bash
echo "CALL $*"
echo "ENV token=${LEAKGATE_GITHUB_TOKEN:-none} mapping=${LEAKGATE_APP_MAPPING:-} accepted=${LEAKGATE_GATE_ACCEPTED:-} store=${LEAKGATE_BASELINE_STORE:-}"
verb=$1
dir=
while [ $# -gt 0 ]; do
  case $1 in --out | --run) dir=$2 ;; esac
  shift
done
case $verb in
run | gate)
  [ -z "${FAKE_VERDICT:-}" ] && exit "${FAKE_EXIT:-0}"
  mkdir -p "$dir/artifacts/com.shop/dump"
  echo "{\"schema\":\"leakgate.gate/1\",\"verdict\":\"$FAKE_VERDICT\",\"reasons\":[{\"text\":\"\\\"verdict\\\":\\\"pass\\\"\"}]}" >"$dir/gate.json"
  echo "### report" >"$dir/comment.md"
  touch "$dir/run.json" "$dir/artifacts/com.shop/dump/heap.hprof.zst" "$dir/artifacts/com.shop/dump/x.hprof" "$dir/artifacts/com.shop/dump/analysis.json"
  exit "${FAKE_EXIT:-0}"
  ;;
comment)
  echo "### posted" >>"$GITHUB_STEP_SUMMARY"
  exit "${FAKE_COMMENT_EXIT:-0}"
  ;;
baseline)
  mkdir -p leak-baseline && echo '{}' >leak-baseline/leak-baseline.json
  ;;
esac
`

// fakeReleases serves a releases page as GitHub does: the existing versions,
// and the latest version.
type fakeReleases struct {
	mu       sync.Mutex
	latest   string
	versions []string
	program  []byte                      // in the archive
	archive  []byte                      // created the first time it is requested
	damage   func(archive []byte) []byte // returns the response to a download
	sums     func(sums string) string
	asked    []string
}

// requests returns the requested paths.
func (f *fakeReleases) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

func (f *fakeReleases) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r.URL.Path)
	if f.archive == nil {
		f.archive = programArchive(f.program)
	}
	archive := f.archive
	sums := fmt.Sprintf("%x  leakgate_darwin_arm64.tar.gz\n%x  leakgate_linux_amd64.tar.gz\n", sha256.Sum256(nil),
		sha256.Sum256(archive))
	version, file, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/leakgate/releases/download/"), "/")
	switch {
	case r.URL.Path == "/leakgate/releases/latest":
		http.Redirect(w, r, "/leakgate/releases/tag/"+f.latest, http.StatusFound)
	case r.URL.Path == "/leakgate/info/refs":
		for i, v := range f.versions {
			_, _ = fmt.Fprintf(w, "%040x\trefs/tags/%s\n", i+1, v)
		}
	case !slices.Contains(f.versions, version):
		http.NotFound(w, r)
	case file == "checksums.txt":
		if f.sums != nil {
			sums = f.sums(sums)
		}
		_, _ = fmt.Fprint(w, sums)
	case file == "leakgate_linux_amd64.tar.gz":
		if f.damage != nil {
			archive = f.damage(archive)
		}
		_, _ = w.Write(archive)
	default:
		http.NotFound(w, r)
	}
}

// programArchive returns an archive with the layout of goreleaser's archives.
func programArchive(program []byte) []byte {
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	archive := tar.NewWriter(z)
	_ = archive.WriteHeader(&tar.Header{
		Name: "leakgate", Mode: 0o755, Size: int64(len(program)), Typeflag: tar.TypeReg,
	})
	_, _ = archive.Write(program)
	_ = archive.Close()
	_ = z.Close()
	return packed.Bytes()
}

// served returns a runner that downloads from a local server.
func served(t *testing.T, f *fakeReleases, inputs map[string]string) *runner {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the release that this test installs is a shell script")
	}
	tool(t, "curl")
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	t.Setenv("no_proxy", "127.0.0.1")
	r := newRunner(t, inputs)
	r.inputs["releases"] = server.URL + "/leakgate/releases"
	return r
}

func v1() *fakeReleases {
	return &fakeReleases{
		program: []byte(fakeLeakgate), latest: "v1.10.0",
		versions: []string{"v1.2.0", "v1.9.0", "v1.10.0", "v1.11.0-rc.1"},
	}
}

// calls returns the command lines of the program, in which TEMP replaces the
// runner's directory.
func (r *runner) calls() []string {
	var out []string
	for line := range strings.Lines(r.log.String()) {
		if call, ok := strings.CutPrefix(strings.TrimSpace(line), "CALL "); ok {
			out = append(out, tempName.ReplaceAllString(call, "TEMP/run"))
		}
	}
	return out
}

// Each kind of input results in the right command line.
func TestActionCommands(t *testing.T) {
	for name, c := range map[string]struct {
		inputs map[string]string
		files  []string
		want   string
		env    string
	}{
		"a run": {
			map[string]string{
				"config": "leakgate.yaml", "profile": "pr", "mapping": "build/mapping.txt", "baseline": "git:b#x.json",
				"accepted": "a.yaml",
			}, nil,
			"run leakgate.yaml --out TEMP/run --profile pr",
			"mapping=WORKSPACE/build/mapping.txt accepted=WORKSPACE/a.yaml store=git:b#x.json"},
		"a run with a config file in a directory": {
			map[string]string{
				"config": "ci/leakgate.yaml", "mapping": "/build/mapping.txt", "baseline": "file:base.json",
				"accepted": "/a.yaml",
			}, nil,
			"run ci/leakgate.yaml --out TEMP/run",
			"mapping=/build/mapping.txt accepted=/a.yaml store=file:WORKSPACE/base.json"},
		"dumps": {
			map[string]string{
				"dumps": "com.shop=d/**/a-*.hprof\n\n  com.shop:push=1.hprof,my dump.hprof \n", "mapping": "m.txt",
			}, []string{"d/x/y/a-02.hprof", "d/x/y/a-01.hprof", "d/a-03 b.hprof"},
			"gate --dump com.shop=d/a-03 b.hprof,d/x/y/a-01.hprof,d/x/y/a-02.hprof --dump com.shop:push=1.hprof,my " +
				"dump.hprof --mapping m.txt --out TEMP/run", ""},
		"an earlier run": {
			map[string]string{
				"run": "leakgate-run", "config": "leakgate.yaml", "profile": "pr", "baseline": "file:b.json",
				"accepted": "a.yaml",
			}, nil,
			"gate --run leakgate-run --config leakgate.yaml --profile pr --baseline file:b.json --accepted a.yaml", ""},
		"LeakCanary": {
			map[string]string{"leakcanary": "logcat.txt"}, nil, "gate --leakcanary logcat.txt --out TEMP/run", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("FAKE_VERDICT", "pass")
			r := served(t, v1(), c.inputs)
			for _, file := range c.files {
				path := filepath.Join(r.workspace, filepath.FromSlash(file))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if !r.run() {
				t.Fatalf("failed:\n%s", r.log.String())
			}
			if calls := r.calls(); len(calls) == 0 || calls[0] != c.want {
				t.Errorf("called %q, want %q", calls, c.want)
			}
			if env := strings.ReplaceAll(c.env, "WORKSPACE", r.workspace); !strings.Contains(r.log.String(), env) {
				t.Errorf("no %q in:\n%s", env, r.log.String())
			}
		})
	}
}

// The action fails if inputs contradict each other or if there is nothing to
// judge.
func TestActionRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		inputs map[string]string
		says   string
	}{
		"nothing to judge":     {map[string]string{}, "nothing to judge"},
		"two sources to judge": {map[string]string{"run": "a", "leakcanary": "b"}, "write one of"},
		"a pattern that matches nothing": {
			map[string]string{"dumps": "com.shop=none/*.hprof"}, "no file for com.shop=none/*.hprof",
		},
		"a version that is a path": {map[string]string{"version": "../../x", "run": "a"}, "invalid version"},
		"a missing version": {
			map[string]string{"version": "v1.3.0", "run": "a"}, "cannot download checksums.txt of v1.3.0",
		},
		"a script instead of a version": {
			map[string]string{"version": "$(touch pwned)", "run": "a"}, "invalid version",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := served(t, v1(), c.inputs)
			if r.run() || r.exitCode != 2 || !strings.Contains(r.log.String(), "::error title=leakgate::") ||
				!strings.Contains(r.log.String(), c.says) {
				t.Errorf("exit code %d:\n%s", r.exitCode, r.log.String())
			}
			if calls := r.calls(); len(calls) > 0 {
				t.Errorf("called %q", calls)
			}
			if left, err := os.ReadDir(r.workspace); err != nil || len(left) > 0 {
				t.Errorf("the workspace contains %v, %v", left, err)
			}
		})
	}
}

// Inputs are treated as data, whatever they contain.
func TestActionInputsAreData(t *testing.T) {
	t.Setenv("FAKE_VERDICT", "pass")
	evil := "$(touch pwned)`touch pwned`;touch pwned \"'"
	for _, input := range []string{"run", "leakcanary", "config", "profile", "mapping", "baseline"} {
		inputs := map[string]string{"config": "leakgate.yaml"}
		inputs[input] = evil
		r := served(t, v1(), inputs)
		r.run()
		if len(r.calls()) == 0 {
			t.Errorf("%s: leakgate was not called:\n%s", input, r.log.String())
		}
		if _, err := os.Stat(filepath.Join(r.workspace, "pwned")); err == nil {
			t.Errorf("the input %s was executed as a script", input)
		}
	}
}

func TestActionReports(t *testing.T) {
	push := map[string]string{
		"event_name": "push", "ref": "refs/heads/main", "event.pull_request.head.repo.full_name": "",
	}
	branch := map[string]string{
		"event_name": "push", "ref": "refs/heads/other", "event.pull_request.head.repo.full_name": "",
	}
	fork := map[string]string{"event.pull_request.head.repo.full_name": "mallory/shop"}
	const comment, update = "comment --run TEMP/run --config leakgate.yaml",
		"baseline update --run TEMP/run --config leakgate.yaml"
	for name, c := range map[string]struct {
		github   map[string]string
		inputs   map[string]string
		verdict  string
		stale    bool // the verdict is not from this run
		exit     string
		calls    []string // without the first call
		summary  string
		baseline string // name of the artifact for the baseline
	}{
		"a pull request that fails": {
			verdict: "fail", exit: "1", calls: []string{comment}, summary: "### posted",
		},
		"a pull request that passes": {
			verdict: "pass", exit: "0", calls: []string{comment}, summary: "### posted",
		},
		"checks and alerts": {
			inputs: map[string]string{"check": "true", "sarif": "true"}, verdict: "pass", exit: "0",
			calls: []string{comment + " --check --sarif"}, summary: "### posted",
		},
		"comments disabled": {
			inputs: map[string]string{"comment": "false"}, verdict: "fail", exit: "1", summary: "### report",
		},
		"a fork":                     {github: fork, verdict: "fail", exit: "1", summary: "### report"},
		"no verdict":                 {exit: "5"},
		"files of an earlier step":   {stale: true, verdict: "fail", exit: "2"},
		"a dump that cannot be read": {stale: true, verdict: "fail", exit: "6"},
		"the workload failed":        {github: push, verdict: "fail", exit: "4", summary: "### report"},
		"a push to main": {
			github: push, verdict: "pass", exit: "0", calls: []string{update}, summary: "### report",
			baseline: "leakgate-baseline",
		},
		"a failed push to main is recorded": {
			github: push, verdict: "fail", exit: "1", calls: []string{update}, summary: "### report",
			baseline: "leakgate-baseline",
		},
		"a baseline with another name": {
			github: push, inputs: map[string]string{"baseline": "artifact:mine"}, verdict: "pass", exit: "0",
			calls: []string{update + " --baseline artifact:mine"}, summary: "### report", baseline: "mine",
		},
		"a push with record: false": {
			github: push, inputs: map[string]string{"record": "false"}, verdict: "pass", exit: "0",
			summary: "### report",
		},
		"a push to another branch": {github: branch, verdict: "pass", exit: "0", summary: "### report"},
		"another branch with record: true": {
			github: branch, inputs: map[string]string{"record": "true"}, verdict: "pass", exit: "0",
			calls: []string{update}, summary: "### report", baseline: "leakgate-baseline",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("FAKE_VERDICT", c.verdict)
			t.Setenv("FAKE_EXIT", c.exit)
			inputs := map[string]string{"config": "leakgate.yaml"}
			for k, v := range c.inputs {
				inputs[k] = v
			}
			r := served(t, v1(), inputs)
			for k, v := range c.github {
				r.github[k] = v
			}
			ok := r.run()
			if ok != (c.exit == "0") || !ok && fmt.Sprint(r.exitCode) != c.exit {
				t.Errorf("got success %t, exit code %d, want exit code %s\n%s", ok, r.exitCode, c.exit, r.log.String())
			}
			if calls := r.calls(); len(calls) == 0 || !slices.Equal(calls[1:], c.calls) {
				t.Errorf("called %q, want %q", calls, c.calls)
			}
			if r.summary != c.summary {
				t.Errorf("summary %q, want %q", r.summary, c.summary)
			}
			if got := r.text(r.action.Outputs["verdict"].Value); (got != c.verdict) != c.stale {
				t.Errorf("verdict %q, want %q", got, c.verdict)
			}
			r.checkArtifacts(c.verdict, c.baseline)
		})
	}
}

func (r *runner) checkArtifacts(verdict, baseline string) {
	r.t.Helper()
	stored := r.artifacts()
	files, ok := stored["leakgate"]
	if !ok {
		r.t.Errorf("got artifacts %v, want one with the run", stored)
	}
	for _, f := range files {
		if strings.Contains(f, "hprof") {
			r.t.Errorf("a heap dump was stored: %s", f)
		}
	}
	if verdict != "" && !slices.Contains(files, "artifacts/com.shop/dump/analysis.json") {
		r.t.Errorf("got files %v, want analysis.json among them", files)
	}
	want := 1
	if baseline != "" {
		want = 2
	}
	if _, there := stored[baseline]; len(stored) != want || baseline != "" && !there {
		r.t.Errorf("got artifacts %v, want %d, including the baseline %q", stored, want, baseline)
	}
	if strings.Contains(r.log.String(), "\x00") || strings.Count(r.log.String(), "token=ghs_secret") != len(r.calls()) {
		r.t.Errorf("the log contains NUL, or not every call had the token:\n%s", r.log.String())
	}
}

// If a comment cannot be posted, the action prints a warning and the verdict
// does not change.
func TestActionCommentFails(t *testing.T) {
	t.Setenv("FAKE_VERDICT", "pass")
	t.Setenv("FAKE_COMMENT_EXIT", "2")
	r := served(t, v1(), map[string]string{"config": "leakgate.yaml"})
	if !r.run() || !strings.Contains(r.log.String(), "::warning title=leakgate::The comment was not posted") {
		t.Errorf("exit code %d:\n%s", r.exitCode, r.log.String())
	}
}

func TestActionVersions(t *testing.T) {
	two := func() *fakeReleases {
		f := v1()
		f.latest, f.versions = "v2.0.0", append(f.versions, "v2.0.0")
		return f
	}
	for name, c := range map[string]struct {
		releases func() *fakeReleases
		ref      string
		version  string
		want     string
	}{
		"latest release":                         {v1, "v1", "", "v1.10.0"},
		"action from a branch":                   {two, "main", "", "v2.0.0"},
		"action from a release":                  {v1, "v1.9.0", "", "v1.9.0"},
		"requested version":                      {v1, "v1", "v1.2.0", "v1.2.0"},
		"newest release of an old major version": {two, "v1", "", "v1.10.0"},
		"requested pre-release":                  {v1, "v1", "v1.11.0-rc.1", "v1.11.0-rc.1"},
		"action without a ref":                   {v1, "", "", "v1.10.0"},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.releases()
			r := served(t, f, map[string]string{"install-only": "true", "version": c.version})
			r.github["action_ref"] = c.ref
			if !r.run() || !slices.Equal(r.ran, []string{"Install leakgate"}) {
				t.Fatalf("ran %q:\n%s", r.ran, r.log.String())
			}
			if !slices.Contains(f.requests(), "/leakgate/releases/download/"+c.want+"/leakgate_linux_amd64.tar.gz") {
				t.Errorf("requested %q, want %s", f.requests(), c.want)
			}
			if len(r.path) == 0 || !strings.HasPrefix(r.path[0], r.temp) {
				t.Errorf("PATH begins with %q", r.path)
			}
			// A second use of the action in the same job downloads nothing.
			before := len(f.requests())
			if again := r.run(); !again || len(f.requests()) != before {
				t.Errorf("requested %q again", f.requests()[before:])
			}
		})
	}
}

func TestActionWithoutRelease(t *testing.T) {
	none := v1()
	none.latest = ""
	r := served(t, none, map[string]string{"run": "a"})
	r.github["action_ref"] = "main"
	if r.run() || r.exitCode != 2 || !strings.Contains(r.log.String(), "found no release") {
		t.Errorf("exit code %d:\n%s", r.exitCode, r.log.String())
	}
}

// "version: source" builds the commit of the action; if the cache is empty,
// this takes half a minute.
func TestActionFromSource(t *testing.T) {
	if !recorded.Long() {
		t.Skip("this test runs in make e2e")
	}
	r := served(t, v1(), map[string]string{"version": "source", "install-only": "true"})
	source, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	r.github["action_path"] = source
	if !r.run() {
		t.Fatalf("failed:\n%s", r.log.String())
	}
	if installed, err := filepath.Glob(filepath.Join(r.path[0], "leakgate*")); err != nil || len(installed) != 1 {
		t.Errorf("installed %q in %q: %v", installed, r.path, err)
	}
}

// A file is run only if checksums.txt lists it.
func TestActionChecksums(t *testing.T) {
	for name, f := range map[string]func(*fakeReleases){
		"changed archive": func(f *fakeReleases) {
			f.damage = func(b []byte) []byte { return append(slices.Clone(b), 0) }
		},
		"truncated archive": func(f *fakeReleases) { f.damage = func(b []byte) []byte { return b[:len(b)-9] } },
		"archive not listed": func(f *fakeReleases) {
			f.sums = func(s string) string { return strings.ReplaceAll(s, "linux", "plan9") }
		},
		"empty list":           func(f *fakeReleases) { f.sums = func(string) string { return "" } },
		"archive listed twice": func(f *fakeReleases) { f.sums = func(s string) string { return s + s } },
		"HTML page of a proxy": func(f *fakeReleases) {
			f.sums = func(string) string { return "<html>sign in</html>\n" }
		},
	} {
		t.Run(name, func(t *testing.T) {
			releases := v1()
			f(releases)
			r := served(t, releases, map[string]string{"config": "leakgate.yaml"})
			if r.run() || r.exitCode != 2 || !strings.Contains(r.log.String(), "checksum") {
				t.Errorf("exit code %d:\n%s", r.exitCode, r.log.String())
			}
			if len(r.calls()) > 0 || len(r.path) > 0 && r.path[0] != "" {
				t.Errorf("called %q, PATH %q", r.calls(), r.path)
			}
			if found, _ := filepath.Glob(filepath.Join(r.temp, "leakgate-bin", "*", "leakgate")); len(found) > 0 {
				t.Errorf("unpacked %q", found)
			}
		})
	}
}

// tempName matches the directory that the action creates for a run.
var tempName = regexp.MustCompile(`\S*/leakgate-[A-Za-z0-9]{6}/run`)
