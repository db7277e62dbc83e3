package main

//unit:listen the address of a server comes from the environment

import (
	"fmt"
	plans "github.com/leakgate/leakgate/internal/harness/plan"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/harness/config"
	"github.com/leakgate/leakgate/reporters/record"
)

// shop returns a simulated phone with the app com.shop, 400 times faster than a
// real one.
func shop(serial string, models ...androidsim.Model) *androidsim.Phone {
	models = append([]androidsim.Model{androidsim.Typical(), androidsim.Noise(2, 0.3)}, models...)
	return androidsim.New(androidsim.Options{
		Serial: serial, Model: "Sim " + serial, Scale: 400, Seed: 5, Root: true, BuildType: "userdebug",
		Apps: []androidsim.App{
			{Package: "com.shop", Processes: []androidsim.ProcessSpec{{Name: "com.shop", Models: models}}},
		},
	})
}

// serve returns an environment in which the given phones are attached.
func serve(t *testing.T, phones ...adbd.Phone) map[string]string {
	t.Helper()
	server, err := adbd.Listen(phones...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	_, port, err := net.SplitHostPort(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"ANDROID_ADB_SERVER_PORT": port, config.StandInVariable: "1"}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Two phones in one file run the same app: every output distinguishes them.
func TestRunTwoDevicesOfOneFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phones := attach(t, shop("phone-a", androidsim.Leak(androidsim.Native, 600, 0)), shop("phone-b"))
		config := write(t,
			"version: 1\napp: { package: com.shop }\ndevices: { serials: [phone-a, phone-b], require: 2 }\nworkload: "+
				"none\nduration: 45m\n")
		dir := filepath.Join(t.TempDir(), "run")
		code, out, errOut := phones.typed(t, "run", config, "--out", dir)
		if code != 1 {
			t.Fatalf("exit %d\n%s%s", code, out, errOut)
		}
		for _, want := range []string{
			"com.shop on phone-a: LEAK (native leak)", "com.shop on phone-b: PASS", "device phone-a (Sim phone-a",
			"device phone-b (Sim phone-b",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
		for line := range strings.Lines(errOut) {
			if strings.Contains(line, "com.shop") && !strings.Contains(line, "phone-a build: ") &&
				!strings.Contains(line, "phone-b build: ") && !strings.Contains(line, "phone-a com.shop") &&
				!strings.Contains(line, "phone-b com.shop") &&
				!strings.HasSuffix(line, ": com.shop on phone-a leaks\n") {
				t.Errorf("a line does not name its device: %q", line)
			}
		}
		run, err := record.ReadRun(dir)
		if err != nil {
			t.Fatal(err)
		}
		gates := map[string]string{}
		for _, p := range run.Processes {
			gates[p.Device+" "+p.Process] = string(p.Gate)
		}
		if len(gates) != 2 || gates["phone-a com.shop"] != "leak" || gates["phone-b com.shop"] != "pass" {
			t.Errorf("gates %v", gates)
		}
		f, err := os.Open(filepath.Join(dir, "samples.ndjson"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		samples := map[string]int{}
		var header record.Header
		warnings, err := record.ReadSamples(f, record.Lines{
			Header: func(h record.Header) error { header = h; return nil },
			Sample: func(s record.Sample) error { samples[s.Device]++; return nil },
		})
		if err != nil || len(warnings) > 0 || len(header.Devices) != 2 || samples["phone-a"] < 50 ||
			samples["phone-b"] < 50 || len(samples) != 2 {
			t.Errorf("%+v, %v samples, %v, %v", header, samples, warnings, err)
		}
	})
}

// watch needs neither a file nor any flag other than --process.
func TestWatchNeedsNothingButTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Chdir(t.TempDir())
		// so that it ends
		code, out, errOut := attach(t, shop("phone-a")).typed(t, "watch", "--process", "com.shop", "--for", "3m")
		if code != record.ExitInconclusive || !strings.Contains(out, "com.shop: INCONCLUSIVE") {
			t.Errorf("exit %d\n%s%s", code, out, errOut)
		}
		runs, err := filepath.Glob("leakgate-runs/*-watch/run.json")
		if err != nil || len(runs) != 1 {
			t.Errorf("runs %v, %v", runs, err)
		}
	})
}

// The paths in a report are relative to the run directory, which the last line
// names: either the given directory or a newly created one. The JSON on stdout
// does not contain the directory.
func TestWatchNamesItsDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Chdir(t.TempDir())
		phones := attach(t, shop("phone-a"))
		for _, args := range [][]string{{"--out", "tonight"}, {"--json"}} {
			code, out, errOut := phones.typed(t,
				append([]string{"watch", "--process", "com.shop", "--for", "2m"}, args...)...)
			at := strings.LastIndex(strings.TrimSpace(errOut), "\n") + 1
			dir, told := strings.CutPrefix(strings.TrimSpace(errOut[at:]), "leakgate watch: the run is in ")
			dir, again, _ := strings.Cut(dir, "; show it again with ")
			told = told && again == "`leakgate report "+dir+"`" &&
				strings.Contains(errOut, "\nleakgate watch: inconclusive (exit code 5): no verdict on com.shop\n")
			if args[0] == "--out" && dir != "tonight" || args[0] == "--json" &&
				!strings.HasPrefix(dir, "leakgate-runs"+string(filepath.Separator)) {
				t.Errorf("%q", dir)
			}
			if _, err := record.ReadRun(dir); code != record.ExitInconclusive || !told || err != nil ||
				strings.Contains(out, dir) {
				t.Errorf("exit %d, %v\n%s%s", code, err, out, errOut)
			}
		}
		// For a run that has not started, no directory is printed.
		code, _, errOut := phones.typed(t, "watch", "--process", "com.shop", "--for", "2m", "--out", "tonight")
		if code != exitUsage || strings.Contains(errOut, "the run is in") ||
			!strings.Contains(errOut, "already holds a run; choose another --out") {
			t.Errorf("exit %d, %s", code, errOut)
		}
	})
}

// For a directory that cannot be created, the error says what to do.
func TestRunDirectoryCannotBeCreated(t *testing.T) {
	t.Chdir(t.TempDir())
	env := serve(t, shop("phone-a"))
	for _, name := range []string{"leakgate-runs", "taken"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"default directory":      {nil, "; name a writable directory with --out DIR"},
		"a file":                 {[]string{"--out", "taken"}, "; choose a writable directory with --out"},
		"directory below a file": {[]string{"--out", "taken/run"}, "; choose a writable directory with --out"},
	} {
		code, out, errOut := typed(t,
			env, append([]string{"watch", "--process", "com.shop", "--for", "2m"}, c.args...)...)
		if code != exitUsage || out != "" || !strings.HasSuffix(errOut, c.want+"\n") {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errOut)
		}
	}
}

func TestWatchStrictAndJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Chdir(t.TempDir())
		phones := attach(t, shop("phone-a"))
		code, out, _ := phones.typed(t,
			"watch", "--process", "com.shop", "--for", "2m", "--dump", "at_marks", "--strict",
			"--json")
		if code != 5 || !strings.HasPrefix(out, "{") || !strings.Contains(out, `"schema": "leakgate.run/1"`) {
			t.Errorf("exit %d\n%s", code, out)
		}
	})
}

// A watch that a CI job starts alongside a test suite records the build of that
// job.
func TestWatchInCI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		t.Chdir(t.TempDir())
		phones := attach(t, shop("phone-a"))
		phones.env["GITHUB_ACTIONS"], phones.env["GITHUB_SHA"], phones.env["GITHUB_REF_NAME"] = "true", "8c1d0fe",
			"main"
		phones.typed(t, "watch", "--process", "com.shop", "--for", "2m", "--out", "tonight")
		r, err := record.ReadRun("tonight")
		if want := (record.Revision{Commit: "8c1d0fe", Branch: "main"}); err != nil || r.Build == nil ||
			*r.Build != want {
			t.Errorf("%+v, %v", r.Build, err)
		}
	})
}

func TestUnusableDevices(t *testing.T) {
	t.Chdir(t.TempDir())
	two := serve(t, shop("phone-a"), shop("phone-b"))
	old := androidsim.New(androidsim.Options{Serial: "old", API: 19, Scale: 400})
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		want []string
	}{
		"several": {two, []string{"watch", "--process", "com.shop"}, []string{"phone-a", "phone-b", "--device"}},
		"device not connected": {
			two, []string{"watch", "--process", "com.shop", "--device", "phone-c"},
			[]string{"phone-c", "not connected"},
		},
		"too few devices": {
			two,
			[]string{
				"run",
				write(t,
					"version: 1\napp: { package: com.shop }\ndevices: { require: 3 }\nworkload: none\nduration: 30m\n"),
			}, []string{"needs 3 devices", "has 2"},
		},
		"device too old": {
			serve(t, old),
			[]string{"run", write(t, "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 30m\n")},
			[]string{"min_api is 21", "old has API 19"},
		},
		"none": {serve(t), []string{"watch", "--process", "com.shop"}, []string{"no device is connected"}},
		"server not running": {
			map[string]string{"ANDROID_ADB_SERVER_PORT": deadPort(t), "PATH": "/nonexistent"},
			[]string{"watch", "--process", "com.shop"}, []string{"no adb server"},
		},
		"ANDROID_SERIAL": {
			map[string]string{"ANDROID_ADB_SERVER_PORT": two["ANDROID_ADB_SERVER_PORT"], "ANDROID_SERIAL": "phone-d"},
			[]string{"watch", "--process", "com.shop"}, []string{"phone-d"},
		},
	} {
		if name == "server not running" {
			t.Setenv("PATH", "/nonexistent")
		}
		code, out, errOut := typed(t, c.env, c.args...)
		if code != 3 || out != "" {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errOut)
		}
		for _, want := range c.want {
			if !strings.Contains(errOut, want) {
				t.Errorf("%s: no %q in %q", name, want, errOut)
			}
		}
	}
	if left, err := filepath.Glob("leakgate-runs/*"); err != nil || len(left) > 0 {
		t.Errorf("a run that could not start created %v, %v", left, err)
	}
}

func deadPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

// The intervals of the file apply with both policies, and run.json and the
// header name the policy.
func TestPolicyOfTheFile(t *testing.T) {
	const head = "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 30m\nsample: { normal: 7s, " +
		"suspicious: 5s, leaking: 3s }\n"
	for name, c := range map[string]struct{ text, want string }{
		"by default": {head, "robust"}, "robust": {head + "detect: { policy: robust }\n", "robust"},
		"article": {head + "detect: { policy: article }\n", "article"},
	} {
		cfg, err := config.Parse("run.yaml", []byte(c.text), nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plans.DetectorPolicy(cfg)
		if err != nil || p.Name != c.want {
			t.Errorf("%s: %q, %v", name, p.Name, err)
		}
		if p.NormalInterval != 7*time.Second || p.SuspiciousInterval != 5*time.Second ||
			p.LeakingInterval != 3*time.Second {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// Phones before Android 7 do not have the shell protocol: stdout and stderr are
// mixed, line endings are those of a terminal and the exit code comes after a
// marker.
func TestRunOnPhonesWithoutTheShellProtocol(t *testing.T) {
	for api, source := range map[int]string{19: "dumpsys", 23: "dumpsys"} {
		synctest.Test(t, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			phone := androidsim.New(
				androidsim.Options{
					Serial: fmt.Sprint("old-", api), API: api, Scale: 400, Seed: 5, Apps: []androidsim.App{{
						Package: "com.shop",
						Processes: []androidsim.ProcessSpec{
							{
								Name: "com.shop",
								Models: []androidsim.Model{
									androidsim.Typical(), androidsim.Leak(androidsim.Native, 600, 0),
								},
							},
						},
					}}})
			code, out, errOut := attach(t,
				phone).
				typed(t, "watch", "--process", "com.shop", "--for", "45m", "--json", "--out", dir)
			run, err := record.ReadRun(dir)
			if err != nil {
				t.Fatal(err, errOut)
			}
			if code != 1 || len(run.Processes) != 1 || run.Processes[0].Gate != "leak" ||
				run.Processes[0].Source != source {
				t.Errorf("exit %d\n%s%s", code, out, errOut)
			}
		})
	}
}

// The nightly example runs on a simulated phone, with monkey; a variable of the
// example selects the app.
func TestNightlyExampleWithMonkey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, err := filepath.Abs("../../examples/nightly/phone.yaml")
		if err != nil {
			t.Fatal(err)
		}
		t.Chdir(t.TempDir())
		phones := attach(t, shop("phone-a"))
		phones.env["APP"] = "com.shop"
		code, out, errOut := phones.typed(t, "run", config, "--for", "5m", "--out", "run")
		if code != record.ExitInconclusive || !strings.Contains(out, "com.shop: INCONCLUSIVE") ||
			!strings.Contains(out, "workload monkey, 200000 events with seed ") {
			t.Fatalf("exit %d\n%s%s", code, out, errOut)
		}
		log, err := os.ReadFile("run/workload.log")
		if err != nil || !strings.Contains(string(log), ":Monkey: seed=") ||
			!strings.Contains(string(log), "com.shop") {
			t.Errorf("workload.log: %.300q, %v", log, err)
		}
		run, err := record.ReadRun("run")
		if err != nil || run.Stopped != "duration" || run.Workload == nil || run.Workload.Seed == nil ||
			run.Workload.Error != "" {
			t.Errorf("%+v, %v", run, err)
		}
	})
}

// The diagnosis settings of a file are applied: the custom steps, which dumps
// are kept, and the mapping to source names. Flags take precedence.
func TestRunDiagnoses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phones := attach(t, shop("phone-a", androidsim.Leak(androidsim.Java, 900, 0)))
		text := `version: 1
app: { package: com.shop, mapping: names/mapping.txt }
devices: { serials: [phone-a] }
workload: none
duration: 40m
diagnose:
  keep: raw
  steps:
    java: [{ name: who-am-i, command: "echo {{{process}} is {pid} of {package} in user {user}" }]
    native: [{ name: never, command: "echo never" }]
    all: [{ name: uptime, command: "cat /proc/uptime", limit: 5s }, { name: broken, command: "false" }]
`
		path := write(t, text)
		out := filepath.Join(t.TempDir(), "run")
		if code, _, errOut := phones.typed(t, "run", path, "--out", out); code != exitUsage ||
			!strings.Contains(errOut, "mapping") || !strings.Contains(errOut, "app.mapping") {
			t.Fatalf("without the mapping: exit %d, want %d: %s", code, exitUsage, errOut)
		}
		names := filepath.Join(filepath.Dir(path), "names")
		if err := os.Mkdir(names, 0o755); err != nil {
			t.Fatal(err)
		}
		mapping := "com.shop.source.OpenScreens -> com.shop.ScreenTracker:\n    java.util.List list -> sScreens\n"
		if err := os.WriteFile(filepath.Join(names, "mapping.txt"), []byte(mapping), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, errOut := phones.typed(t, "run", path, "--out", out, "--keep", "none")
		if code != record.ExitLeak {
			t.Fatalf("exit %d, %s", code, errOut)
		}
		run, err := record.ReadRun(out)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(run.Diagnoses, func(d record.Diagnosis) bool { return d.Trigger == "leak" })
		if at < 0 {
			t.Fatalf("no diagnosis found: %+v", run.Diagnoses)
		}
		d := run.Diagnoses[at]
		steps := map[string]record.Collected{}
		for _, s := range d.Steps {
			steps[s.Step] = s
		}
		said, err := os.ReadFile(filepath.Join(out, filepath.FromSlash(d.Folder), steps["who-am-i"].File))
		if want := fmt.Sprintf("{com.shop} is %d of com.shop in user 0", d.PID); err != nil ||
			strings.TrimSpace(string(said)) != want {
			t.Errorf("%q, %v; want %q", said, err, want)
		}
		if s := steps["uptime"]; s.Outcome != "complete" || s.Bytes == 0 {
			t.Errorf("%+v", s)
		}
		if s := steps["broken"]; s.Outcome != "failed" || len(s.Reasons) == 0 {
			t.Errorf("%+v", s)
		}
		if _, ok := steps["never"]; ok || d.Kind != detector.Java || d.Keep != "none" || steps["heap"].File != "" ||
			steps["heap"].Outcome != "complete" {
			t.Errorf("%+v", d)
		}
		if text := strings.Join(d.Summary, "\n"); !strings.Contains(text, "OpenScreens") &&
			!strings.Contains(text, "com.shop.source") {
			t.Errorf("the summary lacks the names from the source code:\n%s", text)
		}
	})
}
