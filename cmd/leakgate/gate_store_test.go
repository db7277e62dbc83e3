package main

//unit:program git keeps one of the baselines

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leakgate/leakgate/internal/harness/gate"
	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
)

// commandLine runs a command, as a job or a person does.
type commandLine func(args ...string) (code int, out, errOut string)

// stored is a store with a command line that uses it.
type stored struct {
	address string
	// name is the name of the store in messages.
	name  string
	typed commandLine
	// other is a second user of the store; if it is nil, the first user acts
	// again.
	other commandLine
	// published is called after an update, for stores in which another step
	// publishes it.
	published func()
	// replace replaces the baseline. If content is nil, the store becomes
	// unreachable.
	replace func(content []byte)
	// If slow is set, most tests that all stores have in common are skipped.
	slow bool
}

// heaps are the heap dumps of a base run, of a run without a difference and of
// a run with a new leak.
type heaps struct{ base, same, worse string }

// heapFiles are the files of the heap dumps. They are created once, because
// creating them is expensive under the race detector.
var heapFiles map[string][]byte

func heapsOf(t *testing.T, dir string) heaps {
	t.Helper()
	if heapFiles == nil {
		from, files := t.TempDir(), map[string][]byte{}
		for name, perLoop := range map[string]map[string]int{
			"base": {"CartActivity": 2}, "same": {"CartActivity": 2}, "worse": {"CartActivity": 2, "WishActivity": 1},
		} {
			_, list, _ := strings.Cut(looped(t, from, name, true, perLoop), "=")
			for path := range strings.SplitSeq(list, ",") {
				content, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				files[filepath.Base(path)] = content
			}
		}
		heapFiles = files
	}
	for name, content := range heapFiles {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	of := func(name string) string {
		path := filepath.Join(dir, name)
		return fmt.Sprintf("com.shop=%[1]s-1.hprof,%[1]s-2.hprof,%[1]s-3.hprof", path)
	}
	return heaps{of("base"), of("same"), of("worse")}
}

// assertKept checks a store from its first use: with an empty store the verdict
// is neutral, the other user finds a run that was added, and nothing passes
// with an unreadable baseline.
func (s stored) assertKept(t *testing.T, h heaps) {
	t.Helper()
	expect := func(by commandLine, code int, want string, args ...string) string {
		t.Helper()
		got, out, errOut := by(append(args, "--baseline", s.address)...)
		if got != code || !strings.Contains(out+errOut, want) {
			t.Errorf("%s: exit %d, want %d with %q\n%s%s", strings.Join(args[:2], " "), got, code, want, out, errOut)
		}
		return out
	}
	assertVerdict := func(by commandLine, dump string, code int, want comparison.Result, runs int) {
		t.Helper()
		var c comparison.Comparison
		if out := expect(by, code, "", "gate", "--dump", dump, "--json"); json.Unmarshal([]byte(out), &c) != nil ||
			c.Verdict != want || c.Base.Runs != runs {
			t.Errorf("verdict %s with %d base runs, want %s with %d: %s", c.Verdict, c.Base.Runs, want, runs, c.Text)
		}
	}
	// This is the first use of the store.
	assertVerdict(s.typed, h.worse, 0, comparison.Neutral, 0)
	expect(s.typed, 0, ": 0 runs\nadd one with `leakgate baseline update --run DIR`", "baseline", "show")
	expect(s.typed, 2, "no good run to pin", "baseline", "pin", "4.1")

	expect(s.typed, 0, "has 1 run", "baseline", "update", "--dump", h.base)
	s.published()
	users := []commandLine{s.typed}
	if s.other != nil {
		users = append(users, s.other)
	}
	other := users[len(users)-1]
	for _, by := range users {
		expect(by, 0, "com.shop.CartActivity, held by CartBus.listeners: 2, 4, 6", "baseline", "show")
		assertVerdict(by, h.same, 0, comparison.Pass, 1)
		assertVerdict(by, h.worse, 1, comparison.Fail, 1)
	}
	// The other user adds a run as well, and the first user finds it.
	expect(other, 0, "has 2 runs", "baseline", "update", "--dump", h.same)
	s.published()
	out := expect(s.typed, 0, "", "baseline", "show", "--json")
	b, err := gate.ReadBaseline([]byte(out))
	if err != nil || len(b.Runs) != 2 {
		t.Errorf("%v\n%s", err, out)
	}
	expect(s.typed, 0, "pinned 2 runs as 4.1", "baseline", "pin", "4.1")
	s.published()
	expect(other, 0, "pinned as 4.1: 2 runs", "baseline", "show")

	reading := [][]string{{"gate", "--dump", h.same, "--allow-unjudged"}, {"baseline", "update", "--dump", h.same}}
	others := [][]string{{"baseline", "show"}, {"baseline", "pin", "5"}}
	broken := []struct{ name, content string }{
		{"corrupt", out[:len(out)/2]}, {"unreachable", ""}, {"foreign", `{"schema":"leakgate.gate/1"}`},
		{"later format", `{"schema":"leakgate.baseline/2"}`}, {"not JSON", "<html>sign in</html>"},
	}
	if s.slow {
		broken = broken[:2]
	}
	for i, is := range broken {
		s.replace([]byte(is.content))
		verbs := slices.Clone(others)
		switch {
		case s.slow:
			verbs = reading[:1]
		case i < 1:
			verbs = append(verbs, reading...)
		}
		for _, args := range verbs {
			code, out, errOut := s.typed(append(args, "--baseline", s.address)...)
			if code != 2 || out != "" || strings.Count(errOut, s.name) != 1 {
				t.Errorf("%s, %s: exit %d, want 2 and one mention of the store\n%s%s", is.name, args[0], code, out,
					errOut)
			}
		}
	}
}

func TestGateStoreFile(t *testing.T) {
	dir := inFolder(t)
	h := heapsOf(t, dir)
	here := func(args ...string) (int, string, string) { return typed(t, nil, args...) }
	file := filepath.Join("kept", "shop.json")
	if err := os.Mkdir("kept", 0o700); err != nil {
		t.Fatal(err)
	}
	stored{
		address: "file:kept/shop.json", name: "file:kept/shop.json", typed: here, published: func() {},
		replace: func(content []byte) {
			err := os.RemoveAll(file)
			if len(content) == 0 && err == nil {
				err = os.Mkdir(file, 0o700)
			} else if err == nil {
				err = os.WriteFile(file, content, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}}.assertKept(t, h)
}

// git runs git in a directory, with an author and without the user's settings.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git",
		append([]string{"-c", "user.name=kim", "-c", "user.email=kim@shop.test", "-c", "init.defaultBranch=main"},
			args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Two clones of a bare repository on disk share a baseline on a branch.
func TestGateStoreGit(t *testing.T) {
	dir := inFolder(t)
	h := heapsOf(t, dir)
	remote := filepath.Join(dir, "remote.git")
	git(t, dir, "init", "--bare", remote)
	in := func(name string) commandLine {
		git(t, dir, "clone", remote, name)
		return func(args ...string) (int, string, string) {
			t.Chdir(filepath.Join(dir, name))
			return typed(t, nil, args...)
		}
	}
	stored{
		address: "git:leak-baseline#shop.json", name: "git:origin/leak-baseline#shop.json", slow: true, typed: in("a"),
		other: in("b"), published: func() {}, replace: func(content []byte) {
			if len(content) == 0 {
				if err := os.Rename(remote, remote+".moved"); err != nil {
					t.Fatal(err)
				}
				return
			}
			if _, err := os.Stat(remote); err != nil {
				if err := os.Rename(remote+".moved", remote); err != nil {
					t.Fatal(err)
				}
			}
			work := t.TempDir()
			git(t, dir, "clone", "-b", "leak-baseline", remote, work)
			if err := os.WriteFile(filepath.Join(work, "shop.json"), content, 0o600); err != nil {
				t.Fatal(err)
			}
			git(t, work, "commit", "-am", "something else")
			git(t, work, "push", "origin", "leak-baseline")
		}}.assertKept(t, h)
	for _, clone := range []string{"a", "b"} {
		if out := git(t, filepath.Join(dir, clone), "status", "--porcelain"); out != "" {
			t.Errorf("the work tree of %s has changed:\n%s", clone, out)
		}
	}
}

// keeper is a custom store: it rejects a baseline that was made from an
// outdated version.
const keeper = `set -eu
[ ! -e down ] || { echo "the server is down" >&2; exit 1; }
case "$1" in
get) [ -e kept.json ] || exit 3; cat kept.json ;;
put)
  had=
  [ ! -e kept.json ] || had=$(sha256sum kept.json | cut -d' ' -f1)
  [ "$had" = "$LEAKGATE_BASELINE_SHA256" ] || exit 4
  cat >new.json && mv new.json kept.json ;;
esac
`

func TestGateStoreCommand(t *testing.T) {
	if _, err := exec.LookPath("sha256sum"); err != nil {
		recorded.Missing(t, "%v", err)
	}
	dir := inFolder(t)
	h := heapsOf(t, dir)
	if err := os.WriteFile("keeper.sh", []byte(keeper), 0o600); err != nil {
		t.Fatal(err)
	}
	here := func(args ...string) (int, string, string) { return typed(t, nil, args...) }
	stored{
		address: "command:sh keeper.sh", name: "command:sh ...", slow: true, typed: here, published: func() {},
		replace: func(content []byte) {
			err := os.RemoveAll("down")
			if len(content) == 0 {
				err = os.WriteFile("down", nil, 0o600)
			} else if err == nil {
				err = os.WriteFile("kept.json", content, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}}.assertKept(t, h)
}

// Artifacts of the base branch are the baseline; artifacts that forks and pull
// requests upload under its name are not.
func TestGateStoreArtifact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := inFolder(t)
		h := heapsOf(t, dir)
		hub := newHub(t)
		push, pull := hub.pushed(hub.pull.baseSHA), hub.pulled()
		own := hubArtifact{
			name: "leakgate-baseline", branch: "main", event: "push", sha: hub.pull.baseSHA, repository: hubRepository,
		}
		uploaded := filepath.Join("leak-baseline", "leak-baseline.json")
		byRuns := stored{
			address: "artifact:leakgate-baseline", name: "artifact:leakgate-baseline", slow: true,
			typed: func(args ...string) (int, string, string) { return hub.typed(push, args...) },
		}
		byRuns.published = func() {
			content, err := os.ReadFile(uploaded)
			if err != nil {
				t.Fatal(err)
			}
			hub.upload(own, "leak-baseline.json", content)
			if err := os.RemoveAll("leak-baseline"); err != nil { // of the next job
				t.Fatal(err)
			}
			for _, strange := range []hubArtifact{
				{branch: "main", event: "pull_request", repository: hubFork},
				{branch: "wish", event: "push", repository: hubRepository},
				{branch: "main", event: "pull_request", repository: hubRepository},
			} {
				strange.name, strange.sha = own.name, own.sha
				hub.upload(strange, "leak-baseline.json", []byte(`{"schema":"leakgate.baseline/1","runs":[]} trap`))
			}
		}
		byRuns.replace = func(content []byte) {
			if hub.down = len(content) == 0; !hub.down {
				hub.upload(own, "leak-baseline.json", content)
			}
		}
		byRuns.assertKept(t, h)

		// These artifacts have other faults.
		hub.down = false
		good := hub.artifacts[0]
		for name, a := range map[string]hubArtifact{
			"not a zip file":   {zip: []byte("PK\x03\x04")},
			"zip bomb":         {zip: bomb(t)},
			"no baseline file": {zip: hub.zipped("gate.json", []byte("{}"))},
		} {
			own.zip = a.zip
			hub.artifacts = []hubArtifact{good, own}
			want := 2
			if name == "no baseline file" { // it is skipped, because another artifact is a baseline
				want = 0
			}
			code, out, errOut := hub.typed(pull, "gate", "--dump", h.same, "--baseline", "artifact:leakgate-baseline")
			if code != want || (out == "") != (want == 2) {
				t.Errorf("%s: exit %d\n%s%s", name, code, out, errOut)
			}
			hub.artifacts = []hubArtifact{own}
			if code, out, errOut = hub.typed(pull, "gate", "--dump", h.same, "--baseline",
				"artifact:leakgate-baseline"); code != 2 {
				t.Errorf("%s as the only artifact: exit %d, want 2\n%s%s", name, code, out, errOut)
			}
		}
		// A workflow without a setting for the baseline uses the artifact;
		// without a token it has no baseline.
		hub.artifacts = []hubArtifact{good}
		if code, out, errOut := hub.typed(pull, "gate", "--dump", h.worse); code != 1 ||
			!strings.Contains(out, "1 new leak") {
			t.Errorf("exit %d\n%s%s", code, out, errOut)
		}
		if code, out, errOut := hub.typed(pull, "baseline", "update", "--dump", h.same, "--baseline",
			"artifact:leakgate-baseline"); code != 2 || !strings.Contains(errOut, "tests pull request 7") {
			t.Errorf("exit %d\n%s%s", code, out, errOut)
		}
		delete(pull, "GITHUB_TOKEN")
		if code, out, errOut := hub.typed(pull, "gate", "--dump", h.same, "--baseline",
			"artifact:leakgate-baseline"); code != 2 || !strings.Contains(errOut, "set GITHUB_TOKEN") {
			t.Errorf("exit %d\n%s%s", code, out, errOut)
		}
	})
}

// bomb returns a zip file with a baseline that exceeds the limit.
func bomb(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	if _, err := z.CreateRaw(&zip.FileHeader{Name: "leak-baseline.json", UncompressedSize64: 17 << 20}); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
