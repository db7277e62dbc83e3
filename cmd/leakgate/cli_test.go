package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/harness/lease"
)

// environment returns the console of a command with the given variables and no
// input. It uses separate leases for this test program, because phones of other
// programs have the same names.
func environment(env map[string]string, out, errOut io.Writer) console {
	c := console{in: strings.NewReader(""), out: out, err: errOut, getenv: func(name string) (string, bool) {
		v, ok := env[name]
		if !ok && name == lease.FolderVariable {
			return os.LookupEnv(name)
		}
		return v, ok
	}}
	for name, value := range env {
		c.environ = append(c.environ, name+"="+value)
	}
	return c
}

// callWith runs one command line with an input and an empty environment.
func callWith(in io.Reader, out, errOut io.Writer, args ...string) int {
	c := environment(nil, out, errOut)
	c.in = in
	return call(args, c)
}

// typed runs one command line with an environment.
func typed(t *testing.T, env map[string]string, args ...string) (code int, out, errOut string) {
	t.Helper()
	return attached{env: env}.typed(t, args...)
}

// attached holds the connection to an in-memory adb server with simulated
// phones, for synctest bubbles, and an environment.
type attached struct {
	dial func(context.Context) (net.Conn, error)
	env  map[string]string
}

// attach serves phones with an in-memory adb server.
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
	c := environment(a.env, &o, &e)
	c.dial = a.dial
	code = call(args, c)
	return code, o.String(), e.String()
}

func TestUsageErrorsSayWhatToWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(file, []byte("version: 1\napp: { package: com.x }\nworklod: none\nduration: soon\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"no command": {nil, []string{"Usage:\n  leakgate COMMAND", "demo"}},
		"misspelled command": {
			[]string{"wach"}, []string{`unknown command "wach"`, "did you mean watch?"},
		},
		"unknown command": {
			[]string{"frobnicate"}, []string{`unknown command "frobnicate"`, "leakgate help"},
		},
		"misspelled flag": {
			[]string{"watch", "--procss", "com.x"}, []string{"unknown flag --procss", "did you mean --process?"},
		},
		"watch without a process":          {[]string{"watch"}, []string{"--process NAME"}},
		"watch with a positional argument": {[]string{"watch", "com.x"}, []string{"--process com.x"}},
		"hostile name": {
			[]string{"watch", "--process", "$(reboot)"}, []string{"invalid character"},
		},
		"invalid duration": {
			[]string{"watch", "--process", "com.x", "--for", "forever"},
			[]string{"--for", `invalid value "forever"`, "90s, 30m or 2h"},
		},
		"unknown policy": {
			[]string{"watch", "--process", "com.x", "--policy", "robst\x1b[2J"},
			[]string{"--policy", `"robst\x1b[2J"`, "want robust or article"},
		},
		"not a number": {
			[]string{"analyze", "x.hprof", "--top", "many\x1b[2J"},
			[]string{"--top", `"many\x1b[2J"`, "want an integer"},
		},
		"number out of range": {
			[]string{"analyze", "x.hprof", "--top", "99999999999999999999"}, []string{"--top", "want an integer"},
		},
		"not a boolean": {
			[]string{"analyze", "x.hprof", "--partial=perhaps"}, []string{"--partial", "want true or false"},
		},
		"run without a file":  {[]string{"run"}, []string{"want one YAML file"}},
		"run a missing file":  {[]string{"run", "no-such.yaml"}, []string{"no-such.yaml"}},
		"run an invalid file": {[]string{"run", file}, []string{":3:1", "workload", ":4:11"}},
		"mark without a run":  {[]string{"mark", "text"}, []string{"--run DIR"}},
		"mark in a missing directory": {
			[]string{"mark", "--run", filepath.Dir(file), "text"}, []string{"no run in progress in that directory"},
		},
		"demo with an argument": {[]string{"demo", "now"}, []string{`unexpected argument "now"`}},
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

// Flags have no environment variables, because child processes inherit
// variables: a setting for a run would also affect the leakgate commands that
// its workload calls.
func TestFlagsHaveNoVariables(t *testing.T) {
	env := map[string]string{
		"LEAKGATE_JSON": "1", "LEAKGATE_FOR": "3h", "LEAKGATE_DUMP": "at_end", "LEAKGATE_ORIGIN": "false",
	}
	file := write(t, "version: 1\napp: { package: com.x }\nworkload: none\nduration: 30m\n")
	code, out, errOut := typed(t, env, "config", "print", file)
	if code != exitOK || !strings.HasPrefix(out, "version: 1") || !strings.Contains(out, "duration: 30m") ||
		!strings.Contains(out, "dump: on_leak") || !strings.Contains(out, "# default") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
	if want := "leakgate config print: warning: the variable LEAKGATE_DUMP has no effect; did you mean " +
		"LEAKGATE_DIAGNOSE_DUMP?\n"; errOut != want {
		t.Errorf("%q, want %q", errOut, want)
	}
}

// Each variable that replaces a flag has an effect, and an invalid value is an
// error.
func TestVariablesOfFlags(t *testing.T) {
	file := write(t,
		"version: 1\napp: { package: com.x }\nworkload: none\nduration: 30m\nprofiles: { pr: { duration: 45m } }\n")
	if code, out, _ := typed(t, map[string]string{profileVariable: "pr"}, "config", "print", file); code != exitOK ||
		!strings.Contains(out, "# profile pr,") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if code, _, errOut := typed(t, map[string]string{profileVariable: "rp"}, "config", "print",
		file); code != exitUsage ||
		!strings.Contains(errOut, `there is no profile "rp"`) || !strings.Contains(errOut, profileVariable) {
		t.Errorf("exit %d\n%s", code, errOut)
	}
	if code, _, errOut := typed(t, map[string]string{profileVariable: "rp"}, "config", "print", file, "--profile",
		"pr"); code != exitOK || errOut != "" {
		t.Errorf("exit %d\n%s", code, errOut)
	}
	t.Chdir(t.TempDir())
	env := serve(t, shop("phone-a"))
	env[waitVariable] = "perhaps"
	if code, _, errOut := typed(t, env, "watch", "--process", "com.shop"); code != exitUsage ||
		!strings.Contains(errOut, `environment LEAKGATE_WAIT: invalid value "perhaps": want true or false`) {
		t.Errorf("exit %d\n%s", code, errOut)
	}
	if wait, err := environment(map[string]string{waitVariable: "1"}, nil, nil).wantsToWait(false); !wait ||
		err != nil {
		t.Error(wait, err)
	}
}

// With --verbose, more is printed on stderr; with --quiet, only errors are
// printed. The verdict does not change.
func TestQuietAndVerbose(t *testing.T) {
	t.Chdir(t.TempDir())
	env := serve(t, shop("phone-a"))
	for _, c := range []struct {
		flag string
		want []string
		not  []string
	}{
		{"", []string{"writing to", "the run is in"}, []string{"device phone-a"}},
		{
			"-v",
			[]string{"adb server 127.0.0.1:", "device phone-a: ", "(API 34), userdebug build", "writing to", "took "},
			nil,
		},
		{"-q", nil, []string{"writing to", "com.shop"}},
	} {
		args := []string{"watch", "--process", "com.shop", "--for", "2m"}
		if c.flag != "" {
			args = append(args, c.flag)
		}
		code, out, errOut := typed(t, env, args...)
		if code != 5 || !strings.Contains(out, "com.shop: INCONCLUSIVE") {
			t.Errorf("%s: exit %d\n%s%s", c.flag, code, out, errOut)
		}
		for _, want := range c.want {
			if !strings.Contains(errOut, want) {
				t.Errorf("%s: no %q in\n%s", c.flag, want, errOut)
			}
		}
		for _, not := range c.not {
			if strings.Contains(errOut, not) {
				t.Errorf("%s: %q in\n%s", c.flag, not, errOut)
			}
		}
	}
	if code, _, errOut := typed(t, env, "-q", "watch"); code != exitUsage ||
		errOut != "leakgate watch: no process to watch: add --process NAME, such as --process com.shop\n" {
		t.Errorf("exit %d, %q", code, errOut)
	}
	if code, _, errOut := typed(t, nil, "version", "-qv"); code != exitUsage ||
		!strings.Contains(errOut, "--quiet and --verbose cannot be used together") {
		t.Errorf("exit %d, %q", code, errOut)
	}
}

// A flag that takes one value must not be given twice, at any position; lists
// and switches may be repeated.
func TestFlagGivenTwice(t *testing.T) {
	for name, args := range map[string][]string{
		"a string": {"diagnose", "--process", "com.a", "--process", "com.b"},
		"flag given before and after the arguments": {
			"diff", "--process=com.a", "x.hprof", "y.hprof", "--process", "com.b",
		},
	} {
		code, out, errOut := typed(t, nil, args...)
		if code != exitUsage || out != "" ||
			!strings.Contains(errOut, `--process: given twice, as "com.a" and as "com.b"; it takes one value`) {
			t.Errorf("%s: exit %d, %q", name, code, errOut)
		}
	}
	for name, args := range map[string][]string{
		"a number": {"analyze", "x.hprof", "--top", "1", "--top", "2"},
		"a time":   {"watch", "--process", "com.a", "--for", "1m", "--for", "2m"},
		"a size":   {"analyze", "x.hprof", "--memory", "1GB", "--memory", "1GB"},
	} {
		if code, _, errOut := typed(t, nil, args...); code != exitUsage || !strings.Contains(errOut, "given twice") {
			t.Errorf("%s: exit %d, %q", name, code, errOut)
		}
	}
	for name, args := range map[string][]string{
		"a list":                            {"watch", "--process", "com.a", "--process", "b;c"},
		"a switch":                          {"analyze", "no.hprof", "--json", "--json"},
		"another flag has an invalid value": {"analyze", "no.hprof", "--memory", "1GB", "--top", "x"},
	} {
		if code, _, errOut := typed(t, nil, args...); code != exitUsage || strings.Contains(errOut, "twice") {
			t.Errorf("%s: exit %d, %q", name, code, errOut)
		}
	}
}

func TestVersion(t *testing.T) {
	if code, out, _ := typed(t, nil, "version"); code != exitOK || !strings.HasPrefix(out, "leakgate ") ||
		!strings.HasSuffix(out, ", policy robust\n") {
		t.Errorf("exit %d, %q", code, out)
	}
	if code, out, _ := typed(t, nil, "version", "--json"); code != exitOK ||
		!strings.Contains(out, `"leakgate.run/1"`) {
		t.Errorf("exit %d, %q", code, out)
	}
}
