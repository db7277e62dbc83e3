package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/adbd"
)

// typed is one command line as a user types it, with an environment.
func typed(t *testing.T, env map[string]string, args ...string) (code int, out, errOut string) {
	t.Helper()
	return attached{env: env}.typed(t, args...)
}

// attached are phones in memory, for bubbles, and the environment beside them.
type attached struct {
	dial func(context.Context) (net.Conn, error)
	env  map[string]string
}

// attach puts phones behind an adb server in memory.
func attach(t *testing.T, phones ...adbd.Phone) attached {
	t.Helper()
	server := adbd.NewServer(phones...)
	t.Cleanup(func() { server.Close() })
	return attached{server.Dial, map[string]string{}}
}

// typed runs a command line.
func (a attached) typed(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = call(args, console{in: strings.NewReader(""), out: &o, err: &e, dial: a.dial, getenv: func(name string) (string, bool) {
		v, ok := a.env[name]
		return v, ok
	}})
	return code, o.String(), e.String()
}

func TestUsageErrorsSayWhatToWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(file, []byte("version: 1\napp: { package: com.x }\nworklod: none\nduration: soon\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"no verb":            {nil, []string{"usage: leakgate VERB", "demo"}},
		"verb with a slip":   {[]string{"wach"}, []string{`unknown verb "wach"`, "did you mean watch?"}},
		"verb of nowhere":    {[]string{"frobnicate"}, []string{`unknown verb "frobnicate"`, "leakgate help"}},
		"flag with a slip":   {[]string{"watch", "--procss", "com.x"}, []string{"unknown flag --procss", "did you mean --process?"}},
		"watch what":         {[]string{"watch"}, []string{"--process NAME"}},
		"watch a bare name":  {[]string{"watch", "com.x"}, []string{"--process com.x"}},
		"hostile name":       {[]string{"watch", "--process", "$(reboot)"}, []string{"cannot stand in a process name"}},
		"a time without end": {[]string{"watch", "--process", "com.x", "--for", "forever"}, []string{"--for", "90s, 30m or 2h"}},
		"watch by no rules":  {[]string{"watch", "--process", "com.x", "--policy", "robst\x1b[2J"}, []string{"--policy", `"robst\x1b[2J"`, "known policies"}},
		"no number":          {[]string{"analyze", "x.hprof", "--top", "many\x1b[2J"}, []string{"--top", `"many\x1b[2J"`, "write a whole number"}},
		"no number that is":  {[]string{"analyze", "x.hprof", "--top", "99999999999999999999"}, []string{"--top", "write a whole number"}},
		"no boolean":         {[]string{"analyze", "x.hprof", "--partial=perhaps"}, []string{"--partial", "write true or false"}},
		"run what":           {[]string{"run"}, []string{"want one file"}},
		"run a missing file": {[]string{"run", "no-such.yaml"}, []string{"no-such.yaml"}},
		"run a bad file":     {[]string{"run", file}, []string{":3:1", "workload", ":4:11"}},
		"mark what":          {[]string{"mark", "text"}, []string{"--run DIR"}},
		"mark nowhere":       {[]string{"mark", "--run", filepath.Dir(file), "text"}, []string{"no run goes on there"}},
		"demo with a word":   {[]string{"demo", "now"}, []string{`unexpected "now"`}},
	} {
		code, out, errOut := typed(t, nil, c.args...)
		if code != exitUsage || out != "" {
			t.Errorf("%s: exit %d, stdout %q", name, code, out)
		}
		for _, want := range c.want {
			if !strings.Contains(errOut, want) {
				t.Errorf("%s: no %q in %q", name, want, errOut)
			}
		}
	}
}

func TestEveryVerbHasHelpWithAnExample(t *testing.T) {
	for _, v := range verbs() {
		code, out, errOut := typed(t, nil, v.name, "--help")
		if code != exitOK || errOut != "" || !strings.Contains(out[strings.LastIndex(out, "example:"):], "leakgate "+v.name) || !strings.Contains(out, "usage: leakgate "+v.name) {
			t.Errorf("%s: exit %d, %q, %q", v.name, code, out, errOut)
		}
	}
}

func TestFlagIsStrongerThanEnvironment(t *testing.T) {
	env := map[string]string{"LEAKGATE_FOR": "nonsense", "LEAKGATE_RUN": "/nowhere"}
	if code, _, errOut := typed(t, env, "watch", "--process", "com.x"); code != exitUsage || !strings.Contains(errOut, "LEAKGATE_FOR") {
		t.Errorf("a wrong variable: exit %d, %q", code, errOut)
	}
	if _, _, errOut := typed(t, env, "mark", "text"); !strings.Contains(errOut, "/nowhere") {
		t.Errorf("the variable is not taken: %q", errOut)
	}
	dir := t.TempDir()
	if _, _, errOut := typed(t, env, "mark", "text", "--run", dir); !strings.Contains(errOut, dir) {
		t.Errorf("the flag does not win: %q", errOut)
	}
}

// A value that comes from a variable is told with the variable, whatever verb refuses it:
// nobody finds it on the command line. One on the command line is not.
func TestVariableIsTold(t *testing.T) {
	file := write(t, "version: 1\napp: { package: com.x }\nworkload: none\nduration: 30m\n")
	for name, c := range map[string]struct {
		variable, value string
		args            []string
	}{
		"a kind":              {"LEAKGATE_KIND", "foo", []string{"diagnose", "--process", "com.x"}},
		"what is kept":        {"LEAKGATE_KEEP", "all", []string{"watch", "--process", "com.x"}},
		"when to dump":        {"LEAKGATE_DUMP", "never", []string{"watch", "--process", "com.x"}},
		"a policy":            {"LEAKGATE_POLICY", "robst", []string{"watch", "--process", "com.x"}},
		"a policy for replay": {"LEAKGATE_POLICY", "robst", []string{"replay", "x.csv"}},
		"a process":           {"LEAKGATE_PROCESS", "$(reboot)", []string{"diagnose"}},
		"a number":            {"LEAKGATE_TOP", "-1", []string{"analyze", "x.hprof"}},
		"a time":              {"LEAKGATE_FOR", "forever", []string{"watch", "--process", "com.x"}},
		"of a file":           {"LEAKGATE_DUMP", "never", []string{"run", file}},
		"what a run keeps":    {"LEAKGATE_KEEP", "all", []string{"run", file}},
		"a mapping":           {"LEAKGATE_MAPPING", "/no/mapping.txt", []string{"diff", file, file}},
	} {
		code, out, errOut := typed(t, map[string]string{c.variable: c.value}, c.args...)
		if code != exitUsage || out != "" || !strings.Contains(errOut, c.variable) {
			t.Errorf("%s: exit %d, %q", name, code, errOut)
		}
		flagName := "--" + strings.ToLower(strings.TrimPrefix(c.variable, "LEAKGATE_"))
		code, _, errOut = typed(t, map[string]string{c.variable: "x"}, append(c.args, flagName, c.value)...)
		if code != exitUsage || strings.Contains(errOut, c.variable) {
			t.Errorf("%s, as a flag: exit %d, %q", name, code, errOut)
		}
	}
}

// A flag that takes one value and has two is refused, wherever the two stand; lists and
// switches are not.
func TestFlagGivenTwice(t *testing.T) {
	for name, args := range map[string][]string{
		"a text":     {"diagnose", "--process", "com.a", "--process", "com.b"},
		"in between": {"diff", "--process=com.a", "x.hprof", "y.hprof", "-process", "com.b"},
	} {
		code, out, errOut := typed(t, nil, args...)
		if code != exitUsage || out != "" || !strings.Contains(errOut, `--process is given twice, as "com.a" and as "com.b"; it takes one value`) {
			t.Errorf("%s: exit %d, %q", name, code, errOut)
		}
	}
	for name, args := range map[string][]string{
		"a number": {"analyze", "x.hprof", "--top", "1", "--top", "2"},
		"a time":   {"watch", "--process", "com.a", "--for", "1m", "--for", "2m"},
		"a size":   {"analyze", "x.hprof", "--memory", "1GB", "--memory", "1GB"},
	} {
		if code, _, errOut := typed(t, nil, args...); code != exitUsage || !strings.Contains(errOut, "is given twice") {
			t.Errorf("%s: exit %d, %q", name, code, errOut)
		}
	}
	for name, args := range map[string][]string{
		"a list":                 {"watch", "--process", "com.a", "--process", "b c"},
		"a switch":               {"analyze", "no.hprof", "--json", "--json"},
		"a variable and a flag":  {"analyze", "no.hprof", "--top", "2"},
		"a flag and a bad value": {"analyze", "no.hprof", "--memory", "1GB", "--top", "x"},
	} {
		if code, _, errOut := typed(t, map[string]string{"LEAKGATE_TOP": "1"}, args...); code != exitUsage || strings.Contains(errOut, "twice") {
			t.Errorf("%s: exit %d, %q", name, code, errOut)
		}
	}
}

func TestVersion(t *testing.T) {
	if code, out, _ := typed(t, nil, "version"); code != exitOK || !strings.HasPrefix(out, "leakgate ") || !strings.HasSuffix(out, ", policy robust\n") {
		t.Errorf("exit %d, %q", code, out)
	}
	if code, out, _ := typed(t, nil, "version", "--json"); code != exitOK || !strings.Contains(out, `"leakgate.run/1"`) {
		t.Errorf("exit %d, %q", code, out)
	}
}
