package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/leakgate/leakgate/internal/capture/diagnose"
)

// The page about the file shows commands and their output: running each command
// prints the output shown.
func TestErrorsShownOnConfigPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/formats/config.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../../internal/harness/config/testdata/mistakes")
	shown := regexp.MustCompile("(?s)```text\n\\$ ([^\n]*)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	for _, m := range shown {
		// These variables are set on the page before the command.
		env := map[string]string{}
		words := strings.Fields(m[1])
		for ; strings.Contains(words[0], "="); words = words[1:] {
			name, value, _ := strings.Cut(words[0], "=")
			env[name] = value
		}
		code, out, errOut := typed(t, env, words[1:]...)
		if code != exitUsage || out != "" || errOut != m[2] {
			t.Errorf("$ %s\nexit %d, stdout %q, stderr\n%s\nthe page shows\n%s", m[1], code, out, errOut, m[2])
		}
	}
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(shown) != len(files) || len(files) < 20 {
		t.Errorf("the page shows %d mistakes, want %d: %v", len(shown), len(files), err)
	}
}

func TestConfigInitVerifyPrint(t *testing.T) {
	t.Chdir(t.TempDir())
	code, out, errOut := typed(t, nil, "config", "init", "--package", "com.shop")
	if code != exitOK || errOut != "" || !strings.Contains(out, "leakgate config verify leakgate.yaml\n") ||
		!strings.Contains(out, "leakgate run leakgate.yaml") {
		t.Fatalf("init: exit %d\n%s%s", code, out, errOut)
	}
	first, err := os.ReadFile("leakgate.yaml")
	if err != nil || !strings.HasPrefix(string(first), "# yaml-language-server: $schema=https://") {
		t.Fatalf("leakgate.yaml does not begin with the schema comment: %.80q, %v", first, err)
	}
	if code, out, errOut := typed(t, nil, "config", "verify", "leakgate.yaml"); code != exitOK ||
		out != "leakgate.yaml: ok, also with its profiles pr, nightly\n" || errOut != "" {
		t.Errorf("verify: exit %d\n%s%s", code, out, errOut)
	}
	// config init never overwrites a file.
	code, out, errOut = typed(t, nil, "config", "init", "--package", "com.other")
	if again, _ := os.ReadFile("leakgate.yaml"); code != exitUsage || out != "" ||
		!strings.Contains(errOut, `"leakgate.yaml" exists`) || string(again) != string(first) {
		t.Errorf("init again: exit %d\n%s%s", code, out, errOut)
	}
	if code, _, errOut := typed(t, nil, "config", "init", filepath.Join("no", "dir.yaml")); code != exitUsage ||
		!strings.Contains(errOut, "create ") {
		t.Errorf("init in a missing directory: exit %d, %s", code, errOut)
	}
	if code, _, errOut := typed(t, nil, "config", "init", "x.yaml", "--package", "com.x;reboot"); code != exitUsage ||
		!strings.Contains(errOut, "--package: ") {
		t.Errorf("init for an invalid package: exit %d, %s", code, errOut)
	}
	if _, err := os.Stat("x.yaml"); err == nil {
		t.Error("a file was written for an invalid package")
	}
	// The printed form is a valid file with the same values.
	code, printed, errOut := typed(t,
		map[string]string{"LEAKGATE_SAMPLE_NORMAL": "7s"}, "config", "print", "leakgate.yaml",
		"--profile", "pr", "--device", "a", "--for", "2h")
	if code != exitOK || errOut != "" {
		t.Fatalf("print: exit %d, %s", code, errOut)
	}
	for _, want := range []string{
		`normal: 7s +# LEAKGATE_SAMPLE_NORMAL`, `duration: 2h +# --for`, `serials: \[a\] +# --device`,
		`package: com.shop +# leakgate.yaml:\d+`, `detail: 30s +# default`,
	} {
		if !regexp.MustCompile("(?m)" + want + "$").MatchString(printed) {
			t.Errorf("no %s in\n%s", want, printed)
		}
	}
	if err := os.WriteFile("printed.yaml", []byte(printed), 0o600); err != nil {
		t.Fatal(err)
	}
	_, bare, _ := typed(t,
		map[string]string{
			"LEAKGATE_SAMPLE_NORMAL": "7s", "LEAKGATE_PROFILE": "pr", "LEAKGATE_DEVICES_SERIALS": "a",
			"LEAKGATE_DURATION": "2h",
		}, "config", "print", "leakgate.yaml", "--origin=false")
	if code, again, errOut := typed(t, nil, "config", "print", "printed.yaml", "--origin=false"); code != exitOK ||
		again != bare {
		t.Errorf("exit %d, %s, got\n%s\nwant\n%s", code, errOut, again, bare)
	}
}

type configJSON struct {
	Schema string
	Files  []struct {
		File     string
		OK       bool
		Problems []struct {
			Line, Column                     int
			Path, Message, Suggestion, Place string
		}
		Profiles []string
		Profile  string
		Values   map[string]struct {
			Value  any
			Origin struct {
				Layer, File, Name string
				Line, Column      int
				Variables         []string
			}
		}
	}
}

func readConfigJSON(t *testing.T, text string) configJSON {
	t.Helper()
	var v configJSON
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil || v.Schema != "leakgate.config/1" {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// All errors of all files are reported, as text and as JSON.
func TestConfigVerifyManyFiles(t *testing.T) {
	t.Chdir("testdata/config")
	files := []string{"good.yaml", "bad.yaml", "profile.yaml", "none.yaml"}
	env := map[string]string{"LEAKGATE_DEVICES_MIN_API": "x"}
	code, out, errOut := typed(t, nil, append([]string{"config", "verify"}, files...)...)
	if code != exitUsage || out != "good.yaml: ok\n" {
		t.Errorf("exit %d, %q", code, out)
	}
	const want = `bad.yaml:2:18: app.package: "shop" is not a package name`
	for _, want := range []string{
		want, "bad.yaml:4:1: unknown key \"duraton\"; did you mean duration?",
		"profile.yaml:6:9: profiles.pr: unknown key",
		"none.yaml: cannot read the file: ", "      | "} {
		if !strings.Contains(errOut, want) {
			t.Errorf("no %q in\n%s", want, errOut)
		}
	}
	code, out, errOut = typed(t, env, append([]string{"config", "verify", "--json"}, files...)...)
	v := readConfigJSON(t, out)
	if code != exitUsage || errOut != "" || len(v.Files) != len(files) {
		t.Fatalf("exit %d, %d files, %s", code, len(v.Files), errOut)
	}
	for i, file := range v.Files {
		if file.File != files[i] || file.OK || len(file.Problems) == 0 || file.Values != nil {
			t.Errorf("%+v", file)
		}
	}
	if p := v.Files[0].Problems[0]; p.Place != "environment LEAKGATE_DEVICES_MIN_API" || p.Line != 0 ||
		p.Path != "devices.min_api" {
		t.Errorf("%+v", p)
	}
	if p := v.Files[1].Problems[len(v.Files[1].Problems)-1]; p.Line != 4 || p.Column != 1 ||
		p.Suggestion != "duration" || p.Message == "" || p.Place != "" {
		t.Errorf("%+v", p)
	}
	_, out, _ = typed(t, nil, "config", "verify", "good.yaml", "--json")
	if v := readConfigJSON(t, out); !v.Files[0].OK || !strings.Contains(out, `"problems": []`) {
		t.Errorf("%s", out)
	}
}

func TestConfigPrintJSON(t *testing.T) {
	t.Chdir("testdata/config")
	code, out, errOut := typed(t,
		map[string]string{"LEAKGATE_SAMPLE_NORMAL": "10s"}, "config", "print", "full.yaml",
		"--profile", "pr", "--json", "--for", "1h")
	v := readConfigJSON(t, out)
	if code != exitOK || errOut != "" || !v.Files[0].OK || v.Files[0].Profile != "pr" ||
		!slices.Equal(v.Files[0].Profiles, []string{"pr"}) {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	values := v.Files[0].Values
	for path, want := range map[string]struct {
		value       any
		layer, name string
	}{
		"app.package":                  {"${APP:-com.shop}", "file", ""},
		"app.processes":                {[]any{"${APP:-com.shop}", "${APP:-com.shop}:*"}, "default", ""},
		"duration":                     {"1h", "flag", "--for"},
		"sample.normal":                {"10s", "environment", "LEAKGATE_SAMPLE_NORMAL"},
		"sample.leaking":               {"2m", "profile", "pr"},
		"devices.min_api":              {float64(21), "default", ""},
		"workload.monkey.events":       {float64(10), "file", ""},
		"detect.policy":                {"article", "file", ""},
		"diagnose.keep":                {"stripped", "default", ""},
		"diagnose.steps.java[0].name":  {"battery", "file", ""},
		"diagnose.steps.java[0].limit": {"30s", "default", ""},
	} {
		got := values[path]
		text, err := json.Marshal(got.Value)
		if err != nil {
			t.Fatal(err)
		}
		wanted, err := json.Marshal(want.value)
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != string(wanted) || got.Origin.Layer != want.layer || got.Origin.Name != want.name {
			t.Errorf("%s is %s from %+v", path, text, got.Origin)
		}
	}
	if o := values["app.package"].Origin; o.File != "full.yaml" || o.Line != 2 || o.Column != 17 ||
		!slices.Equal(o.Variables, []string{"APP"}) {
		t.Errorf("%+v", o)
	}
	code, out, errOut = typed(t, nil, "config", "print", "bad.yaml", "--json")
	if v := readConfigJSON(t, out); code != exitUsage || errOut != "" || v.Files[0].OK || len(v.Files[0].Problems) < 2 {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}

func TestConfigUsage(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"nothing": {[]string{"config"}, []string{"want init, print, schema or verify"}},
		"misspelled subcommand": {
			[]string{"config", "verfy", "x"}, []string{`unknown command "verfy"`, "did you mean verify?"},
		},
		"misspelled command before flags": {
			[]string{"config", "verfy", "x", "--json"}, []string{`unknown command "verfy"`, "did you mean verify?"},
		},
		"unknown command": {
			[]string{"config", "frobnicate"},
			[]string{`unknown command "frobnicate": want init, print, schema or verify`},
		},
		"verify without a file": {
			[]string{"config", "verify"}, []string{"leakgate config verify: no file to verify"},
		},
		"print with two files": {[]string{"config", "print", "a", "b"}, []string{"want one YAML file, got 2"}},
		"init with two files":  {[]string{"config", "init", "a", "b"}, []string{"want one YAML file, got 2"}},
		"schema with a file":   {[]string{"config", "schema", "a"}, []string{`unexpected argument "a"`}},
		"flag of another command": {
			[]string{"config", "init", "--json"}, []string{"leakgate config init: unknown flag --json"},
		},
		"flag that no command has": {
			[]string{"config", "schema", "--json"}, []string{"leakgate config schema: unknown flag --json"},
		},
		"misspelled flag": {
			[]string{"config", "print", "a", "--profil", "x"},
			[]string{"unknown flag --profil", "did you mean --profile?"},
		},
		"hostile file name": {
			[]string{"config", "verify", "a\x1b[2J\u202e.yaml"}, []string{`a\x1b[2J\u202e.yaml: cannot read the file`},
		},
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
		if strings.ContainsFunc(errOut, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("%s: %q", name, errOut)
		}
	}
}

func TestConfigSchemaIsThePublishedOne(t *testing.T) {
	want, err := os.ReadFile("../../docs/formats/leakgate.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if code, out, _ := typed(t, nil, "config", "schema"); code != exitOK ||
		out != strings.ReplaceAll(string(want), "\r\n", "\n") {
		t.Errorf("exit %d, %d bytes", code, len(out))
	}
}

func TestSuggestsMisspelledVariables(t *testing.T) {
	code, out, errOut := typed(t,
		map[string]string{"LEAKGATE_SAMPEL_NORMAL": "1s"}, "config", "print",
		"testdata/config/good.yaml")
	if code != exitOK || !strings.HasPrefix(out, "version: 1") ||
		!strings.Contains(errOut, "did you mean LEAKGATE_SAMPLE_NORMAL?") {
		t.Errorf("exit %d, %s", code, errOut)
	}
}

// The file name contains characters that a terminal or a shell would interpret.
func TestConfigWithHostileFileName(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not allow this file name")
	}
	t.Chdir(t.TempDir())
	const name = "a b\x1b[2J\nduration: 1ns #\u202e$(id).yaml"
	code, out, errOut := typed(t, nil, "config", "init", name)
	if code != exitOK || errOut != "" || !strings.Contains(out, "leakgate run 'a b") {
		t.Errorf("init: exit %d, %q, %q", code, out, errOut)
	}
	unseen := func(text string) bool {
		return strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) })
	}
	for _, args := range [][]string{
		{"verify"}, {"verify", "--json"}, {"print"}, {"print", "--json"}, {"print", "--profile", "\x1b[2J"}, {"init"},
	} {
		_, more, moreErr := typed(t, nil, append([]string{"config", args[0], name}, args[1:]...)...)
		if unseen(out+more) || unseen(moreErr) || strings.Contains(more, "\nduration: 1ns") {
			t.Errorf("%q: %q, %q", args, more, moreErr)
		}
	}
}

// run uses the profile from its flag or its variable, and reports an unknown
// one.
func TestRunWithProfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, err := filepath.Abs("../../examples/nightly/phone.yaml")
		if err != nil {
			t.Fatal(err)
		}
		t.Chdir(t.TempDir())
		if code, _, errOut := typed(t, map[string]string{"LEAKGATE_PROFILE": "rp"}, "run", path); code != exitUsage ||
			!strings.Contains(errOut, `there is no profile "rp"`) || !strings.Contains(errOut, "did you mean pr?") {
			t.Errorf("exit %d, %s", code, errOut)
		}
		phones := attach(t, shop("phone-a"))
		phones.env["LEAKGATE_PROFILE"] = "pr"
		code, out, errOut := phones.typed(t, "run", path, "--for", "4m", "--device", "phone-a", "--out", "run")
		if code != 5 || !strings.Contains(out, "workload monkey, 9000 events with seed 1") {
			t.Errorf("exit %d\n%s%s", code, out, errOut)
		}
	})
}

// The page and the schema document the file name that a step actually uses.
func TestStepFilesAreDocumented(t *testing.T) {
	step, err := diagnose.CustomStep("name", "id", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"config.md", "leakgate.schema.json"} {
		text, err := os.ReadFile(filepath.Join("../../docs/formats", page))
		if want := "The output is written to " + strings.Replace(step.File, "name", "NAME", 1); err != nil ||
			!strings.Contains(string(text), want) {
			t.Errorf("%s: no %q, %v", page, want, err)
		}
	}
}
