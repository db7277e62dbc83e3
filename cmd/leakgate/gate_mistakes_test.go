package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/reporters/comparison"
)

// These are command lines of somebody who does not know the commands yet. Each
// command line results in an error with advice, not in a verdict.
func TestGateRejectsWrongCommandLines(t *testing.T) {
	dir := inFolder(t)
	dumps := looped(t, dir, "a", true, map[string]int{"CartActivity": 1, "WishActivity": 2})
	files := map[string]string{
		"other/gate.json": `{"schema":"leakgate.gate/2"}`, "later/run.json": `{"schema":"leakgate.run/9"}`,
		"killed/samples.ndjson": "{}\n",
		"list.yaml":             "x\n", "file": "", "baseline/x": "",
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, errOut := typed(t, nil, "gate", "--dump", dumps, "--out", "result"); code != 1 {
		t.Fatal(errOut)
	}
	c, err := readComparison("result")
	if err != nil {
		t.Fatal(err)
	}
	key := c.Leaks[0].Key
	accept := func(args ...string) []string {
		return append(append([]string{"accept"}, args...), "--reason", "r", "--owner", "o", "--until", "2999-01-01")
	}
	for _, m := range []struct {
		args []string
		code int
		want string
	}{
		{
			[]string{"gate", "result"}, 2,
			"unexpected argument \"result\": name a run directory with --run result\nUsage:",
		},
		{[]string{"gate", "--rum", "x"}, 2, "did you mean --run?"},
		{
			[]string{"gate", "--run", "a-1.hprof"}, 2,
			"a-1.hprof is a file, not a run directory; give heap dumps with --dump PROCESS=FILE,FILE,FILE",
		},
		{[]string{"gate", "--run", "result"}, 2, "name a directory written by `leakgate run`, `watch` or a suite"},
		{[]string{"gate", "--run", "killed"}, 2, "`leakgate report killed` finishes a run that was killed"},
		{[]string{"gate", "--run", "later"}, 2, `schema is "leakgate.run/9"`},
		{[]string{"gate", "--run", "a", "--run", "b", "--run", "c"}, 2, "got 3 runs"},
		{[]string{"gate", "--run", "a", "--mapping", "none.txt"}, 2, "are only for --dump"},
		{[]string{"gate", "--run", "a", "--in-use"}, 2, "are only for --dump"},
		{[]string{"baseline", "update", "--run", "a", "--variant", "x"}, 2, "are only for --dump"},
		{[]string{"gate", "--dump", dumps, "--out", "file"}, 2, "write gate.json"},
		{[]string{"gate", "--dump", dumps, "--sarif", "none/x.sarif"}, 2, "none/x.sarif"},
		{[]string{"gate", "--dump", dumps, "--code-quality", "baseline"}, 2, "write report"},
		{[]string{"gate", "--dump", dumps, "--mapping", "none.txt"}, 2, "none.txt"},
		{
			[]string{"gate", "--dump", dumps, "--accepted", "list.yaml"}, 2,
			"list.yaml:1:1: want keys and values: version, accepted\n    1 | x\n      | ^\n",
		},
		{[]string{"gate", "--dump", dumps, "--config", "list.yaml"}, 2, "the file must be a mapping"},
		{[]string{"gate", "--dump", dumps, "--profile", "pr"}, 2, "--profile needs --config"},
		{[]string{"gate", "--dump", dumps, "--baseline", "fil:x.json"}, 2, `write "file:x.json"`},
		{[]string{"gate", "--dump", dumps, "--baseline", "file:baseline"}, 2, "not a regular file"},
		{[]string{"gate", "--dump", dumps, "--baseline", "artifact:x"}, 2, "not a GitHub Actions workflow"},
		{[]string{"gate", "--leakcanary", "none.txt"}, 2, "none.txt"},
		{[]string{"baseline", "updat"}, 2, "did you mean update?"},
		{[]string{"baseline", "update", "result"}, 2, "name a run directory with --run result"},
		{[]string{"baseline", "update", "--run", "a", "--run", "b"}, 2, "add one run at a time"},
		{[]string{"baseline", "show", "x"}, 2, "unexpected argument"},
		{[]string{"baseline", "pin"}, 2, "want one release name"},
		{[]string{"comment"}, 2, "add --run DIR"},
		{[]string{"comment", "result"}, 2, "name a run directory with --run result"},
		{[]string{"comment", "--run", "killed"}, 2, "`leakgate gate --run killed` writes it"},
		{[]string{"comment", "--run", "other"}, 2, "use the leakgate version that wrote it"},
		{[]string{"comment", "--run", "result", "--when", "sometimes"}, 2, "want always, changed, failed"},
		{[]string{"comment", "--run", "result", "--dry-run", "--config", "list.yaml"}, 2, "\n    1 | x\n      | ^\n"},
		{[]string{"show"}, 2, "want a run directory and the key of a leak, such as leakgate-runs/pr d97295ca"},
		{[]string{"show", "result", " "}, 2, "want a run directory and the key of a leak"},
		{
			[]string{"show", "result", "ffffffff"}, 2, "the run has no leak \"ffffffff\"; it has\n  " + key[:8] + "  " +
				c.Leaks[0].Class + "\n",
		},
		{[]string{"show", "result", ""}, 2, "argument 2 is empty"},
		{[]string{"show", "other", key}, 2, "use the leakgate version that wrote it"},
		{[]string{"show", "killed", key}, 2, "finishes a run that was killed"},
		{[]string{"accept", key}, 2, "needs --reason, --owner and --until"},
		{accept(strings.ToUpper(key)), 2, "hexadecimal digits in lower case"},
		{accept(key, key), 2, "want one leak key, got 2"},
		{accept(key, "--accepted", "list.yaml"), 2, "list.yaml:1:1"},
		{accept(key, "--current", "--run", "x"), 2, "remove the KEY"},
		{accept("--current"), 2, "add --run DIR"},
		{accept("--current", "--run", "killed"), 2, "finishes a run that was killed"},
		{accept(key, "--run", "x"), 2, "--run needs --current"},
	} {
		code, out, errOut := typed(t, nil, m.args...)
		if code != m.code || !strings.Contains(errOut, m.want) || strings.Contains(errOut, "?\n") &&
			!strings.Contains(m.want, "?") {
			t.Errorf("leakgate %s: exit %d, want %d with %q\n%s%s", strings.Join(m.args, " "), code, m.code, m.want,
				out, errOut)
		}
	}
	for _, name := range []string{acceptedName, baselineName, filepath.Join("file", comparison.FileName)} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	// A leak is accepted once, by its key or a prefix.
	for _, again := range []struct {
		key  string
		code int
	}{{key[:8], 0}, {key, 2}, {key[:8], 2}} {
		if code, _, errOut := typed(t, nil, accept(again.key)...); code != again.code {
			t.Errorf("accept %s: exit %d, want %d\n%s", again.key, code, again.code, errOut)
		}
	}
}
