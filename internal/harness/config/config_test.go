package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/harness/gate"
)

// full uses every existing key.
const full = `version: 1
x-quick: &quick
  normal: 10s
  suspicious: 5s
app:
  package: com.shop
  processes: ["com.shop", "com.shop:*", /system/bin/surfaceflinger]
  mapping: build/mapping.txt
  variant: freeDebug
devices:
  serials: [emulator-5554, "192.168.1.7:5555", 0123456789, "adb-R58M (2)._adb-tls-connect._tcp"]
  min_api: 26
  require: 2
workload:
  monkey: { events: 200_000, throttle: 1.5s, seed: 7 }
duration: 1d12h
sample:
  <<: *quick
  leaking: 1m
  detail: 90s
  max_system_server: 12.5
  max_app: 1000%
detect:
  policy: article
  assert: live
diagnose:
  dump: at_marks
  cooldown: 1h30m
  keep: none
  collect: at_marks
  logcat: all
  texts: shown
  steps:
    native:
      - { name: unreachable, command: "dumpsys meminfo --unreachable {pid}", limit: 20s }
      - name: gwp-asan
        command: "getprop | awk '{{print $1}' && ls /data/user/{user}/{package}\n"
    thread: []
    all: [{ name: 0battery_1, command: dumpsys battery }]
gate:
  informational: true
  confirm: 1
  accepted: leaks-accepted.yaml
  process.gate: ["!= leak", '!=  settled']
  process.deaths: [memory == 0, "crash==0"]
  process.slope_mb_h: lower95 < 20 MB/h
  leak.per_loop: ["new == 0", bytes < 512KB]
  leak.heavier: []
  native.per_loop: grown == 0
  leak.creep: == 0
baseline:
  store: git:origin/leaks#a b/baseline.json
  window: 20
  match: [model, variant]
report: { junit: false }
github:
  comment: { key: shop.debug_1-a, when: "failed" }
  check: true
  sarif: true
  summary: false
strict: true
allow_unjudged: true
`

func mustParse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("run.yaml", []byte(text), environment)
	if err != nil {
		t.Fatal(err)
	}
	checkConfig(t, c)
	return c
}

// mustRules parses rules, each given by its path and its text.
func mustRules(t *testing.T, pairs ...string) []gate.Rule {
	t.Helper()
	var out []gate.Rule
	for i := 0; i < len(pairs); i += 2 {
		r, err := gate.ParseRule(pairs[i], pairs[i+1])
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// values returns a copy of the Config without origins.
func values(c *Config) Config {
	v := *c
	v.source, v.origins, v.profile, v.profiles, v.secrets = source{}, nil, "", nil, nil
	return v
}

func TestFullFile(t *testing.T) {
	seven := int64(7)
	want := Config{
		App: App{
			"com.shop", []string{"com.shop", "com.shop:*", "/system/bin/surfaceflinger"}, "build/mapping.txt",
			"freeDebug",
		},
		Devices: Devices{
			Serials: []string{"emulator-5554", "192.168.1.7:5555", "0123456789", "adb-R58M (2)._adb-tls-connect._tcp"},
			MinAPI:  26, Require: 2,
		},
		Workload: Workload{Monkey: &Monkey{200000, 1500 * time.Millisecond, &seven}},
		Duration: 36 * time.Hour,
		Sample:   Sample{10 * time.Second, 5 * time.Second, time.Minute, 90 * time.Second, 12.5, 1000},
		Detect:   Detect{"article", "live", 0},
		Diagnose: Diagnose{"at_marks", 90 * time.Minute, "none", "at_marks", "all", "shown", map[string][]Step{
			"native": {
				{"unreachable", "dumpsys meminfo --unreachable {pid}", 20 * time.Second},
				{"gwp-asan", "getprop | awk '{{print $1}' && ls /data/user/{user}/{package}\n", DefaultLimit},
			},
			"all": {{"0battery_1", "dumpsys battery", DefaultLimit}},
		}},
		Gate: Requirements{Informational: true, Confirm: 1, Accepted: "leaks-accepted.yaml", Rules: mustRules(t,
			"process.gate", "!= leak", "process.gate", "!= settled", "process.deaths", "memory == 0", "process.deaths",
			"crash==0",
			"process.slope_mb_h", "lower95 < 20 MB/h", "leak.per_loop", "new == 0", "leak.per_loop", "bytes < 512KB",
			"leak.wider", "== 0", "native.per_loop", "grown == 0", "leak.creep", "== 0")},
		Baseline: BaselineSource{"git:origin/leaks#a b/baseline.json", 20, []string{"model", "variant"}},
		Report:   Report{new(false)},
		GitHub:   GitHub{"shop.debug_1-a", "failed", true, true, false},
		Strict:   true, AllowUnjudged: true, gated: true,
	}
	for name, text := range map[string]string{
		"unchanged":            full,
		"Windows line endings": strings.ReplaceAll(full, "\n", "\r\n"),
		"a byte order mark":    byteOrderMark + full,
		"a document's start":   "---\n" + full + "...\n",
		"remarks":              "# a\n" + strings.ReplaceAll(full, "\n", " # b\n"),
	} {
		if got := values(mustParse(t, text)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, want)
		}
	}
}

func TestDefaults(t *testing.T) {
	c := mustParse(t, "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 8h\n")
	want := *defaults()
	want.App = App{Package: "com.shop", Processes: []string{"com.shop", "com.shop:*"}}
	want.Duration = 8 * time.Hour
	if got := values(c); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if !c.Workload.None() {
		t.Error("the workload is not none")
	}
	// The defaults are those in the documentation.
	written := mustParse(t, `version: 1
app: { package: com.shop, processes: ["com.shop", "com.shop:*"] }
devices: { serials: [], min_api: 21, require: 1 }
workload: none
duration: 8h
sample: { normal: 30s, suspicious: 15s, leaking: 60s, detail: 30s }
detect: { policy: robust, assert: end }
diagnose: { dump: on_leak, cooldown: 30m, keep: stripped, collect: auto, logcat: app, texts: hidden, steps: {} }
github: { comment: { when: changed || failed }, check: false, sarif: false, summary: true }
`)
	written.Devices.Serials = nil
	if got := values(written); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestWorkloads(t *testing.T) {
	const head = "version: 1\napp: { package: com.shop }\nworkload: "
	for text, want := range map[string]Workload{
		"{ monkey: { events: 5 } }": {
			Monkey: &Monkey{Events: 5, Throttle: DefaultThrottle},
		},
		"{ monkey: { events: 5, seed: auto } }": {
			Monkey: &Monkey{Events: 5, Throttle: DefaultThrottle},
		},
		"{ monkey: { events: 5, throttle: 0 } }": {Monkey: &Monkey{Events: 5}},
		`{ command: [./gradlew, "", true, 1.50, a b] }`: {
			Command: []string{"./gradlew", "", "true", "1.50", "a b"},
		},
		"\n  device_command: |\n    for i in 1 2; do\n      input tap $i $i\n    done\n": {
			DeviceCommand: "for i in 1 2; do\n  input tap $i $i\ndone\n",
		},
		"\n  device_command: >-\n    input\n    tap 1 1\n": {DeviceCommand: "input tap 1 1"},
	} {
		if got := mustParse(t, head+text).Workload; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
}

func TestVariables(t *testing.T) {
	c := mustParse(t, `version: "${VERSION:-1}"
app: { package: "${SHOP}", processes: ["${SHOP}:push", "${EMPTY:-com.x}", "${NO:-}com.y"] }
workload:
  command: ["$$", "$${SHOP}", "${DOLLAR}", $HOME, "a$", "$", "${NO:-a:-b?c}", "${SHOP:?never}${WORD}", "$$$${SHOP}", "${EMPTY}"]
duration: ${LENGTH}
devices: { require: "${N:-3}" }
`)
	want := []string{"$", "${SHOP}", "${SHOP} $$", "$HOME", "a$", "$", "a:-b?c", "com.shopmany", "$${SHOP}", ""}
	if !reflect.DeepEqual(c.Workload.Command, want) {
		t.Errorf("got  %q\nwant %q", c.Workload.Command, want)
	}
	if got := c.App.Processes; !reflect.DeepEqual(got, []string{"com.shop:push", "com.x", "com.y"}) ||
		c.App.Package != "com.shop" {
		t.Errorf("app %+v", c.App)
	}
	if c.Duration != 48*time.Hour || c.Devices.Require != 3 {
		t.Errorf("duration %v, require %d", c.Duration, c.Devices.Require)
	}
	if o := c.Origin("workload.command[7]"); !reflect.DeepEqual(o.Variables, []string{"SHOP", "WORD"}) {
		t.Errorf("variables of a value: %+v", o)
	}
}

// A variable can supply a value, but never YAML.
func TestVariablesAddNoKeys(t *testing.T) {
	hostile := func(name string) (string, bool) { return "com.shop\nduration: 3h, x: {", name == "X" }
	_, err := Parse("run.yaml", []byte("version: 1\napp: { package: \"${X}\" }\nworkload: none\nduration: 1h\n"),
		hostile)
	problems, _ := errors.AsType[Errors](err)
	if len(problems) != 1 || problems[0].Path != "app.package" || strings.Contains(problems[0].Message, "\n") {
		t.Errorf("got %q", err)
	}
}

func TestOrigins(t *testing.T) {
	c := mustParse(t, full)
	for path, want := range map[string]string{
		"app.package":                      "run.yaml:6:12",
		"app.processes":                    "run.yaml:7:14",
		"app.processes[1]":                 "run.yaml:7:27",
		"sample.normal":                    "run.yaml:3:11", // where the file defines the anchor
		"sample.detail":                    "run.yaml:20:11",
		"workload.monkey.seed":             "run.yaml:15:52",
		"detect.assert":                    "run.yaml:25:11",
		"app.mapping":                      "run.yaml:8:12",
		"diagnose.keep":                    "run.yaml:29:9",
		"diagnose.steps.native":            "run.yaml:35:7",
		"diagnose.steps.native[1].command": "run.yaml:37:18",
		"diagnose.steps.native[1].limit":   "default",
		"diagnose.steps.all[0].name":       "run.yaml:39:19",
		"gate.process.gate[1]":             "run.yaml:44:29",
		"gate.process.slope_mb_h":          "run.yaml:46:23",
		"gate.leak.heavier":                "run.yaml:48:17",
		"gate.leak.wider":                  "default",
		"baseline.match[1]":                "run.yaml:54:18",
		"github.comment.key":               "run.yaml:57:19",
	} {
		if got := c.Origin(path).String(); got != want {
			t.Errorf("%s comes from %s, want %s", path, got, want)
		}
	}
	if got := mustParse(t, "version: 1\napp: { package: a.b }\nworkload: none\nduration: 1s\n").
		Origin("sample.normal"); got.Layer != Default {
		t.Errorf("a default has the origin %v, want layer %v", got, Default)
	}
}

// Callers use the format of this package to report problems that only they can
// detect.
func TestProblemOfCaller(t *testing.T) {
	c := mustParse(t, full)
	p := c.Problem("diagnose.steps.native", `a step is named twice`)
	p.Suggestion = "gwp"
	const want = `run.yaml:35:7: diagnose.steps.native: a step is named twice; did you mean gwp?
   35 |       - { name: unreachable, command: "dumpsys meminfo --unreachable {pid}", limit: 20s }
      |       ^`
	if got := p.Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := c.Problem("detect.x", "is wrong").Error(); got != "run.yaml: detect.x: is wrong" {
		t.Errorf("got %s", got)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "nightly.yaml")
	if err := os.WriteFile(good, []byte(full), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(good, environment)
	if err != nil || c.Origin("app.package").File != good {
		t.Fatalf("load: %v", err)
	}
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, []byte(strings.Repeat("# remark\n", 200_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	type want struct{ message, suggestion string }
	cases := map[string]want{
		filepath.Join(dir, "nihtly.yml"):     {"cannot read the file: ", good},
		filepath.Join(dir, "other.yaml"):     {"cannot read the file: ", ""},
		filepath.Join(dir, "no", "run.yaml"): {"cannot read the file: there is no directory", ""},
		large:                                {"the file has more than 1048576 bytes", ""},
	}
	if runtime.GOOS != "windows" { // Windows cannot even open a directory
		cases[dir] = want{"cannot read the file: is a directory", ""}
	}
	for path, w := range cases {
		_, err := Load(path, nil)
		problems, _ := errors.AsType[Errors](err)
		if len(problems) != 1 || !strings.HasPrefix(problems[0].Message, w.message) ||
			problems[0].Suggestion != w.suggestion || problems[0].File != path {
			t.Errorf("%s: %+v", path, problems)
		}
	}
}

// The examples, which are starting points for new users, must be valid.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../../examples/nightly/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("find the examples: %d, %v", len(files), err)
	}
	for _, file := range files {
		c, err := Load(file, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		checkConfig(t, c)
	}
}

// If a small file expands enormously, the processing time and the number of
// messages stay bounded.
func TestHostileFiles(t *testing.T) {
	bomb := "version: 1\nx-0: &x0 { a: 1, b: 2 }\n"
	for i := 1; i < 30; i++ {
		bomb += fmt.Sprintf("x-%d: &x%d { <<: [*x%d, *x%d, *x%d] }\n", i, i, i-1, i-1, i-1)
	}
	lists := "version: 1\nx-0: &x0 [a, b]\n"
	for i := 1; i < 30; i++ {
		lists += fmt.Sprintf("x-%d: &x%d [*x%d, *x%d]\n", i, i, i-1, i-1)
	}
	var unknown strings.Builder
	for i := range 90_000 {
		fmt.Fprintf(&unknown, "k%d: 1\n", i)
	}
	profiles, bombs := "profiles:\n", "profiles:\n"
	for i := range mostProfiles {
		profiles += fmt.Sprintf("  p%d: { sample: { normal: 1 } }\n", i)
		bombs += fmt.Sprintf("  p%d: *x29\n", i)
	}
	for name, text := range map[string]string{
		"profiles with merges": bomb + "app: { package: a.b }\nworkload: none\nduration: 1h\n" + bombs,
		"profiles, large file": unknown.String() + profiles,
		"profiles, large list": "version: 1\nworkload: { command: [" + strings.Repeat("\"${X:-a}\", ", 990) +
			"] }\n" + profiles,
		"profiles, many ignored keys": "version: 1\n" +
			strings.ReplaceAll(unknown.String()[:strings.Index(unknown.String(), "k80000")], "k", "x-") + profiles,
		"cycle of profiles": "version: 1\nprofiles: &a { p: *a, q: { <<: *a } }\n",
		"merges":            bomb + "app: *x29\nworkload: none\nduration: 1h\n",
		"lists":             lists + "app: { processes: *x29 }\nworkload: none\nduration: 1h\n",
		"a cycle":           "version: 1\nx-a: &a [*a]\napp: { processes: *a }\nworkload: { command: *a }\n",
		"a merge cycle":     "version: 1\nx-a: &a { b: &b { <<: *a } , <<: *b }\napp: *b\nworkload: *a\n",
		"many brackets":     strings.Repeat("[", 500_000),
		"many braces":       strings.Repeat("{a: ", 200_000),
		"many keys":         "version: 1\n" + strings.Repeat("k: 1\n", 150_000),
		"unknown keys":      unknown.String(),
		"one line":          "{version: 1, " + strings.Repeat("k: 1, ", 150_000) + "}",
		"many dashes":       strings.Repeat("- ", 500_000),
		"many remarks":      strings.Repeat("# r\n", 250_000) + "- x",
		"open quote":        "version: 1\napp: \"" + strings.Repeat("x y\n", 200_000),
		"open bracket":      "version: 1\napp: [" + strings.Repeat("x,\n", 15_000),
		"invalid end":       "version: 1\n" + strings.Repeat("x-k: [a, b]\n", 4_000) + "app: ]",
		"long list": "version: 1\napp: { processes: [" + strings.Repeat("a.b, ", 5_000) +
			"] }\nworkload: none\nduration: 1h\n",
		"anchors":        "version: 1\nx: [" + strings.Repeat("&a a, ", 100_000) + "]",
		"question marks": strings.Repeat("? ", 300_000),
		"long key":       "version: 1\n" + strings.Repeat("k", 900_000) + ": 1\n",
		"many profiles":  "version: 1\nprofiles: {" + strings.Repeat("k: \"${X}\", ", 80_000) + "}\n",
		"many variables": "version: 1\napp: { package: a.b, processes: [" + strings.Repeat("\"${X}\", ", 990) +
			"] }\nworkload: none\nduration: 1h\n",
		"NUL":               "version: 1\x00\n",
		"a surrogate":       "version: 1 \xed\xa0\x80\n",
		"UTF-16":            "\xff\xfev\x00e\x00",
		"a carriage return": "version: 1\rapp: x\n",
		"a next line":       "version: 1\u0085\n",
		"a directive":       "%YAML 9.9\n---\nversion: 1\n",
		"an unknown tag":    "%TAG ! !!\n---\n!x version: 1\n",
		"only a document":   "---\n...\n---\n",
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			c, err := Parse("run.yaml", []byte(text), environment)
			if err == nil {
				t.Fatalf("accepted: %+v", c)
			}
			checkErrors(t, []byte(text), err)
			if d := time.Since(start); d > 30*time.Second {
				t.Errorf("took %v", d)
			} else if d > time.Second/2 {
				t.Logf("took %v", d)
			}
			problems, _ := errors.AsType[Errors](err)
			if len(problems) > mostProblems+1 || len(err.Error()) > 200_000 {
				t.Errorf("%d problems in %d bytes", len(problems), len(err.Error()))
			}
			t.Logf("%.300s", err)
		})
	}
}

// The line of a mistake is reported for a file of any length, its column only
// for a short file.
func TestPlaceOfSyntaxErrors(t *testing.T) {
	for _, lines := range []int{0, 1, 100, 10_000} {
		filler := strings.Repeat("x-k: [a, b] # remark\n", lines)
		for bad, column := range map[string]int{
			"app: { package: `x` }\n": 17,
			"app: \"x\n":              6,
			"app: [a, b\n":            6,
			"app: a: b\n":             6,
			"app: ]\n":                6,
		} {
			text := filler + bad
			_, err := Parse("run.yaml", []byte(text), environment)
			problems, _ := errors.AsType[Errors](err)
			if len(problems) != 1 || problems[0].Line != lines+1 || lines <= 100 && problems[0].Column != column {
				t.Errorf("after %d lines, %q: want column %d, got %.200v", lines, bad, column, err)
			}
		}
	}
}
