package config

import (
	"encoding/json"
	"strings"
	"testing"
)

// secretEnv returns an environment that contains secrets.
func secretEnv(name string) (string, bool) {
	v, ok := map[string]string{
		"TOKEN": "ghp_SECRET", "SPAN": "45m", "APP": "com.secretapp", "SHORT": "x1", "SERIAL": "emulator-5554",
		"CLASSES": "a.SecretTest", "STORE": "file:/srv/secretdir/b.json",
	}[name]
	return v, ok
}

const secretFile = `version: 1
app: { package: "${APP}", variant: "${FLAVOR:-free}" }
devices: { serials: ["${SERIAL}", plain] }
workload: { command: [run, "--t=${TOKEN}x", "$${NOT}", "${SHORT}"] }
duration: ${SPAN}
baseline: { store: "${STORE}" }
diagnose:
  steps:
    java:
      - { name: mine, command: "curl -H ${TOKEN}", limit: "${SPAN:-10s}" }
`

// A printed configuration contains references to variables and not their
// values, unless the values are requested. The printed configuration has the
// same meaning when it is parsed again.
func TestMaskedConfigShowsReferences(t *testing.T) {
	file := strings.Replace(secretFile, "${SPAN:-10s}", "${LIMIT:-10s}", 1)
	c, err := Parse("run.yaml", []byte(file), secretEnv)
	if err != nil {
		t.Fatal(err)
	}
	masked := c.Masked()
	out := string(masked.YAML(true))
	settings, err := json.Marshal(masked.Settings())
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"ghp_SECRET", "secretapp", "emulator-5554", "45m", "secretdir"} {
		if strings.Contains(out, value) || strings.Contains(string(settings), value) {
			t.Errorf("%q is in\n%s\n%s", value, out, settings)
		}
		if !strings.Contains(string(c.YAML(true)), value) {
			t.Errorf("%q is missing", value)
		}
	}
	for _, line := range []string{
		`package: "${APP}"`, `processes: ["${APP}", "${APP}:*"]`, `variant: "${FLAVOR:-free}"`,
		`serials: ["${SERIAL}", plain]`,
		`command: [run, "--t=${TOKEN}x", "$${NOT}", "${SHORT}"]`, `duration: "${SPAN}"`, `store: "${STORE}"`,
		`command: "curl -H ${TOKEN}"`, `limit: "${LIMIT:-10s}"`,
	} {
		if !strings.Contains(out, line) {
			t.Errorf("no %s in\n%s", line, out)
		}
	}
	again, err := Parse("again.yaml", []byte(out), secretEnv)
	if err != nil || string(again.YAML(false)) != string(c.YAML(false)) {
		t.Errorf("parsed again: error %v, got\n%s\nwant\n%s", err, again.YAML(false), c.YAML(false))
	}
	const redacted = "start ${TOKEN}x: /srv/secretdir is gone, emulator-5554 x1"
	if got := c.Redact("start ghp_SECRETx: /srv/secretdir is gone, emulator-5554 x1"); got != redacted {
		t.Error(got)
	}
	if p := c.Problem("workload.command", "ghp_SECRET is not a program"); p.Message != "${TOKEN} is not a program" {
		t.Error(p.Message)
	}
}

// An error about a value from a variable names the variable, the length of the
// value and the allowed values.
func TestErrorsHideTheValuesOfVariables(t *testing.T) {
	const from = "invalid value from ${TOKEN} (10 characters)"
	for file, want := range map[string]string{
		"duration: ${TOKEN}": "duration: invalid value from " +
			"${TOKEN} (10 characters): want a duration over 0, or a range such as 12m..30m, such as 8h",
		"duration: 1${SHORT}${TOKEN}": "duration: invalid value from " +
			"${SHORT} (2 characters) and ${TOKEN} (10 characters): want",
		"duration: ${UNSET:-soon}": `"soon"`,
		"app: { processes: [\"${TOKEN}(\"] }": "app.processes[0]: invalid value " +
			"from ${TOKEN} (10 characters): want the name of a process",
		"devices: { serials: [\"${SERIAL}\", \"${SERIAL}\"] }": `"${SERIAL}" is in the list twice`,

		"devices: { min_api: \"${TOKEN}\" }":           "devices.min_api: " + from + ": want",
		"detect: { policy: \"${TOKEN}\" }":             "detect.policy: " + from + ": want",
		"workload: ${TOKEN}":                           "workload: " + from,
		"gate: { leak.per_loop: [\"${TOKEN}\"] }":      "gate.leak.per_loop[0]: " + from,
		"baseline: { store: \"${TOKEN}\" }":            "baseline.store: " + from + ": want",
		"strict: ${TOKEN}":                             "strict: " + from + ": want true or false, such as true",
		"profiles: { pr: { duration: \"${TOKEN}\" } }": "profiles.pr.duration: " + from + ": want",

		"diagnose: { steps: { java: [ { name: \"${TOKEN}!\", command: x } ] } }":                   from,
		"workload: { instrument: { component: a.b/C, arguments: { \"size\": \"${TOKEN}\\0\" } } }": from,
	} {
		name, _, _ := strings.Cut(file, ":")
		whole := "version: 1\n" + file + "\n"
		for key, line := range map[string]string{
			"app": "app: { package: com.shop }\n", "workload": "workload: none\n", "duration": "duration: 45m\n",
		} {
			if key != name {
				whole += line
			}
		}
		c, err := Parse("run.yaml", []byte(whole), secretEnv)
		if err == nil {
			t.Errorf("%s: taken: %+v", file, c.Workload)
			continue
		}
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "ghp_") ||
			strings.Contains(err.Error(), "emulator-5554") {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
}
