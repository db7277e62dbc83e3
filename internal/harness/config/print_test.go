package config

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// This is the complete written form, with origins of every kind.
func TestWrittenForm(t *testing.T) {
	const text = `version: 1
app: { package: "${SHOP}.${N:-x}", processes: [com.shop, "true", "com.shop:*", "a$$b", "${SHOP}${N:-x}"] }
devices: { min_api: 26 }
workload: { command: [./gradlew, "-Pa=b c", "$${X}", "", "\e[0m\n", "it's", "\"q\"", "null", "日本"] }
sample: { normal: 90s }
detect: { assert: live }
profiles: { pr: { sample: { normal: 2s, leaking: 1h30m5s, max_app: 12.5 }, detect: { policy: article } } }
`
	c, err := Parse("a\nb.yaml", []byte(text),
		set("SHOP", "com.shop", "LEAKGATE_SAMPLE_DETAIL", "1d", "LEAKGATE_SAMPLE_NORMAL", "10s"),
		WithProfile("pr"), WithFlag("--device", "devices.serials", "emulator-5554", "[::1]:5555"))
	if err != nil {
		t.Fatal(err)
	}
	checkConfig(t, c)
	golden(t, "testdata/written.golden", string(c.YAML(true)))
	if got := string(c.YAML(false)); strings.Contains(got, " # ") && !strings.Contains(got, "# duration is not set") {
		t.Errorf("YAML(false) returned origins:\n%s", got)
	}
}

func TestSettingsAsJSON(t *testing.T) {
	c := mustParse(t,
		"version: 1\napp: { processes: [surfaceflinger] }\nworkload: { device_command: input }\ndevices: { serials: "+
			"[a] }\n")
	var b strings.Builder
	for _, s := range c.Settings() {
		text, err := json.Marshal(s.Value)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(s.Path + "=" + string(text) + " " + s.Origin.Layer.String() + "\n")
	}
	const want = `version=1 file
app.package=null default
app.processes=["surfaceflinger"] file
app.mapping=null default
app.variant=null default
devices.serials=["a"] file
devices.min_api=21 default
devices.require=1 default
devices.stand_in=false default
workload.device_command="input" file
duration=null default
sample.normal="30s" default
sample.suspicious="15s" default
sample.leaking="1m" default
sample.detail="30s" default
sample.max_system_server="25%" default
sample.max_app="5%" default
detect.policy="robust" default
detect.assert="end" default
detect.must_see=null default
strict=false default
allow_unjudged=false default
diagnose.dump="on_leak" default
diagnose.cooldown="30m" default
diagnose.keep="stripped" default
diagnose.collect="auto" default
diagnose.logcat="app" default
diagnose.texts="hidden" default
diagnose.steps={} default
gate=null default
baseline=null default
report.junit="auto" default
github.comment.key=null default
github.comment.when="changed || failed" default
github.check=false default
github.sarif=false default
github.summary=true default
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	// The written form contains every value and nothing else.
	if lines := len(regexp.MustCompile(`  # (default|run\.yaml:\d+)\n`).
		FindAllString(string(c.YAML(true)), -1)); lines != strings.Count(want, "\n") {
		t.Errorf("got %d origins in\n%s", lines, c.YAML(true))
	}
}

// Numbers with the maximum number of digits are written in a form that can be
// parsed.
func TestLongNumbersAreWritten(t *testing.T) {
	for _, n := range []string{
		"0." + strings.Repeat("0", 37) + "1", "." + strings.Repeat("0", 36) + "123", "999.99999999999999999999", "0.1",
		"1000",
	} {
		mustParse(t, "version: 1\napp: { package: a.b }\nworkload: none\nduration: 1h\nsample: { max_app: "+n+" }\n")
	}
	for _, d := range []string{"1ns", "106751d", "1h1s", "1m0.5s", "36h", "9223372036854775807ns", "10m", "100ms"} {
		mustParse(t, "version: 1\napp: { package: a.b }\nworkload: none\nduration: "+d+"\n")
	}
}

// The starter file is valid for every package, its first line names the schema,
// and every commented-out key in it is valid too.
func TestStarter(t *testing.T) {
	text, err := Starter("com.shop")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(text), "# yaml-language-server: $schema="+SchemaURL+"\n") {
		t.Errorf("got the first line %q, want the address of the schema", strings.SplitN(string(text), "\n", 2)[0])
	}
	c := mustParse(t, string(text))
	if c.App.Package != "com.shop" || c.Workload.Monkey == nil || len(c.Profiles()) != 2 {
		t.Errorf("%+v", c)
	}
	for _, profile := range c.Profiles() {
		if _, err := Parse("run.yaml", text, nil, WithProfile(profile)); err != nil {
			t.Error(err)
		}
	}
	lines := strings.Split(string(text), "\n")
	tried := 0
	for i, line := range lines {
		key, _, ok := strings.Cut(strings.TrimLeft(strings.TrimSpace(line), "# "), ":")
		if !ok || !strings.Contains(line, "# "+key+": ") || strings.Contains(key, " ") || strings.Contains(key, "-") {
			continue
		}
		tried++
		changed := append([]string{}, lines...)
		changed[i] = strings.Replace(line, "# "+key, key, 1)
		if key == "command" || key == "device_command" || key == "instrument" {
			changed = append(changed[:0:0], strings.Replace(strings.Join(changed, "\n"), "  monkey:", "  # monkey:", 1))
		}
		mustParse(t, strings.Join(changed, "\n"))
	}
	if tried < 5 {
		t.Errorf("only %d comments contain keys, want at least 5", tried)
	}
	for _, bad := range []string{
		"", "shop", "com.x;reboot", "com.shop\nduration: 3h", "\x1b", "com.shop: {", "\u202e",
	} {
		if _, err := Starter(bad); err == nil || unseen(err.Error()) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Each value of a step is written with its origin. The origins are also correct
// for a profile that replaces the steps of one kind and removes the steps of
// another kind.
func TestStepsAreWritten(t *testing.T) {
	const text = `version: 1
app: { package: com.shop }
workload: none
duration: 1h
diagnose:
  cooldown: 0
  steps:
    java: [{ name: limits, command: "cat /proc/{pid}/limits" }]
    gpu: [{ name: a, command: b }]
    all: [{ name: battery, command: "dumpsys ${WHAT:-battery}", limit: 90s }]
profiles:
  pr:
    diagnose:
      keep: none
      steps:
        java: [{ name: x, command: "echo '}' '{{'" }, { command: "a: b", name: "1" }]
        gpu: []
`
	for profile, want := range map[string]string{
		"": `diagnose:
  dump: on_leak                              # default
  cooldown: 0s                               # run.yaml:6
  keep: stripped                             # default
  collect: auto                              # default
  logcat: app                                # default
  texts: hidden                              # default
  steps:
    java:
      - name: limits                         # run.yaml:8
        command: "cat /proc/{pid}/limits"    # run.yaml:8
        limit: 30s                           # default
    gpu:
      - name: a                              # run.yaml:9
        command: b                           # run.yaml:9
        limit: 30s                           # default
    all:
      - name: battery                        # run.yaml:10
        command: "dumpsys battery"           # run.yaml:10, from ${WHAT}
        limit: 1m30s                         # run.yaml:10
# gate is not set: no rules are applied      # default
`,
		"pr": `diagnose:
  dump: on_leak                              # default
  cooldown: 0s                               # run.yaml:6
  keep: none                                 # profile pr, run.yaml:14
  collect: auto                              # default
  logcat: app                                # default
  texts: hidden                              # default
  steps:
    java:
      - name: x                              # profile pr, run.yaml:16
        command: "echo '}' '{{'"             # profile pr, run.yaml:16
        limit: 30s                           # default
      - name: "1"                            # profile pr, run.yaml:16
        command: "a: b"                      # profile pr, run.yaml:16
        limit: 30s                           # default
    all:
      - name: battery                        # run.yaml:10
        command: "dumpsys battery"           # run.yaml:10, from ${WHAT}
        limit: 1m30s                         # run.yaml:10
# gate is not set: no rules are applied      # default
`,
	} {
		c, err := Parse("run.yaml", []byte(text), nil, WithProfile(profile))
		if err != nil {
			t.Fatal(err)
		}
		checkConfig(t, c)
		_, got, _ := strings.Cut(string(c.YAML(true)), "\ndiagnose:\n")
		got, _, _ = strings.Cut(got, "# baseline ")
		if got = "diagnose:\n" + got; got != want {
			t.Errorf("profile %q:\n%s\nwant\n%s", profile, got, want)
		}
	}
}
