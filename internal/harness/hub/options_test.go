package hub

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/leakgate/leakgate/internal/harness/config"
)

func env(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := values[name]
		return v, ok
	}
}

// The precedence, from highest to lowest, is: flag, environment, YAML file,
// code.
func TestPrecedence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leakgate.yaml")
	const basis = "version: 1\napp: { processes: [com.yaml] }\nworkload: none\nduration: 1h\n"
	for name, c := range map[string]struct {
		yaml            string
		env, flags      map[string]string
		strict          bool
		process, serial string
	}{
		"code": {"", nil, nil, true, "com.code", "code"},
		"YAML": {
			"strict: false\ndevices: { serials: [yaml] }\n", nil, nil, false, "com.yaml", "yaml",
		},
		"YAML without values": {"#\n", nil, nil, true, "com.yaml", "code"},
		"environment before YAML": {
			"strict: true\ndevices: { serials: [yaml] }\n",
			map[string]string{"LEAKGATE_STRICT": "false", "LEAKGATE_DEVICES_SERIALS": "env"}, nil, false, "com.yaml",
			"env",
		},
		"environment before code": {
			"", map[string]string{"LEAKGATE_STRICT": "false", "LEAKGATE_DEVICES_SERIALS": "env"}, nil, false,
			"com.code", "env",
		},
		"flag before environment": {
			"", map[string]string{"LEAKGATE_STRICT": "true", "LEAKGATE_DEVICES_SERIALS": "env"},
			map[string]string{"strict": "false", "devices.serials": "flag"}, false, "com.code", "flag",
		},
		"flag before all": {
			"strict: true\ndevices: { serials: [yaml] }\n",
			map[string]string{"LEAKGATE_STRICT": "true", "LEAKGATE_DEVICES_SERIALS": "env"},
			map[string]string{"strict": "false", "devices.serials": "flag"}, false, "com.yaml", "flag",
		},
		"process patterns from the environment": {
			"", map[string]string{"LEAKGATE_APP_PROCESSES": "com.env"}, nil, true, "com.env", "code",
		},
	} {
		o := Options{
			Processes: []string{"com.code"}, Devices: []string{"code"}, Strict: true, Flags: map[string][]string{},
			Getenv: env(c.env),
		}
		if c.yaml != "" {
			if err := os.WriteFile(file, []byte(basis+c.yaml), 0o600); err != nil {
				t.Fatal(err)
			}
			o.Config = file
		}
		for key, value := range c.flags {
			o.Flags[key] = []string{value}
		}
		s, err := o.settle()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s.config.Strict != c.strict || !slices.Equal(s.config.App.Processes, []string{c.process}) ||
			!slices.Equal(s.choice.Serials, []string{c.serial}) || s.run.Workload != nil || s.run.Duration != 0 {
			t.Errorf("%s: strict %v, processes %q, devices %q", name, s.config.Strict, s.config.App.Processes,
				s.choice.Serials)
		}
	}
}

func TestResolve(t *testing.T) {
	o := Options{
		Config: "code", Artifacts: "code", Wait: true,
		Getenv: env(map[string]string{
			ConfigVariable: "env", ArtifactsVariable: "", AcceptedVariable: "list", ObserveVariable: "1",
			WaitVariable: "false",
		}),
	}
	if err := o.Resolve(); err != nil || o.Config != "env" || o.Artifacts != "code" || o.Accepted != "list" ||
		!o.Observe || o.Wait {
		t.Errorf("%+v, %v", o, err)
	}
	o.Getenv = env(map[string]string{ObserveVariable: "perhaps"})
	if err := o.Resolve(); err == nil ||
		err.Error() != `environment LEAKGATE_OBSERVE: invalid value "perhaps": want true or false` {
		t.Error(err)
	}
}

// The test covers the file of accepted leaks, and errors in it.
func TestAccepted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "accepted.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("version: 1\naccepted:\n  - { key: 32554831, reason: SHOP-1, owner: anna, until: 2027-03-31 }\n  - { held: " +
		"ScreenTracker.sScreens, reason: SHOP-2, owner: ben, until: 2027-03-31 }\n")
	list, err := readAccepted(file)
	if err != nil || len(list) != 2 || list[0].Key != "32554831" || list[1].Held != "ScreenTracker.sScreens" {
		t.Errorf("%+v, %v", list, err)
	}
	if list, err := readAccepted(""); err != nil || list != nil {
		t.Errorf("%+v, %v", list, err)
	}
	for text, want := range map[string]string{
		"version: 1\naccepted:\n  - { key: abc, reason: SHOP-1, owner: anna, until: 2027-03-31 }\n":            "8",
		"version: 1\naccepted:\n  - { reason: SHOP-1, owner: anna, until: 2027-03-31 }\n":                      "key",
		"version: 1\naccepted:\n  - { class: A, held: B.c, reason: SHOP-1, owner: anna, until: 2027-03-31 }\n": "class",
	} {
		write(text)
		if _, err := readAccepted(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// For any names of processes and devices in the code, the generated YAML file
// contains the same names, or they are rejected. A name never becomes another
// key or another name.
func FuzzOptionsText(f *testing.F) {
	f.Add("com.shop", "emulator-5554", true)
	f.Add("${HOME}$x\"'\n: - [", "a, b", false)
	f.Add("\x00\x07\x7f\u0085\u2028\ufeff\U0001f600", "# x", false)
	f.Add("\xff\xfe", "\\", true)
	f.Add("!!binary x", "*a &b", true)
	f.Fuzz(func(t *testing.T, process, device string, strict bool) {
		o := Options{
			Processes: []string{process, "com.other"}, Devices: []string{device}, Strict: strict,
			Getenv: env(map[string]string{"x": "expanded", "HOME": "expanded"}),
		}
		cfg, _, err := o.load()
		if err != nil {
			if wrong := new(config.Errors); !errors.As(err, wrong) {
				t.Errorf("%q: %v", process, err)
			}
			if plainName(process) && plainName(device) {
				t.Errorf("plain names %q and %q are rejected: %v", process, device, err)
			}
			return
		}
		if !slices.Equal(cfg.App.Processes, o.Processes) || !slices.Equal(cfg.Devices.Serials, o.Devices) ||
			cfg.Strict != strict {
			t.Errorf("%q and %q became %q and %q", process, device, cfg.App.Processes, cfg.Devices.Serials)
		}
	})
}

// plainName reports whether a name is valid on every phone.
func plainName(s string) bool {
	ok := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' }
	return len(s) > 1 && len(s) < 60 && s[0] >= 'a' && s[0] <= 'z' &&
		!strings.ContainsFunc(s, func(r rune) bool { return !ok(r) }) && !strings.Contains(s, "..") &&
		!strings.HasSuffix(s, ".")
}

// For any name of a suite, the run directory is a single path component with a
// short name of letters, digits and hyphens.
func FuzzSlug(f *testing.F) {
	f.Add("Shop suite")
	f.Add("../../etc/passwd\x00 Ünïcode " + strings.Repeat("x", 100))
	f.Fuzz(func(t *testing.T, name string) {
		o := Options{Suite: name, Artifacts: "runs"}
		dir := o.directory()
		base := filepath.Base(dir)
		if filepath.Dir(dir) != "runs" || len(base) > 80 || !utf8.ValidString(base) ||
			strings.ContainsFunc(base[20:], func(r rune) bool {
				return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-')
			}) || strings.HasSuffix(base, "-") {
			t.Errorf("%q becomes %q", name, dir)
		}
	})
}

// A file for suites needs neither a workload nor a duration nor the processes
// that the code names.
func TestConfigOfASuite(t *testing.T) {
	for text, want := range map[string]string{
		"version: 1\nsample: { normal: 10s }\n":                                                        "com.code",
		"version: 1\napp: { package: com.file }\n":                                                     "com.file",
		"version: 1\napp: { package: com.file }\nworkload: { monkey: { events: 9 } }\nduration: 12m\n": "com.file",
	} {
		path := filepath.Join(t.TempDir(), "leaks.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		o := Options{
			Config: path, Processes: []string{"com.code"}, Getenv: func(string) (string, bool) { return "", false },
		}
		set, err := o.settle()
		if err != nil || string(set.run.Patterns[0]) != want || set.run.Workload != nil || set.run.Duration != 0 {
			t.Errorf("%q: %v, %v", text, set.run.Patterns, err)
		}
	}
}
