package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// project writes a module with one package and makes its directory the current
// one.
func project(t *testing.T, test string) {
	t.Helper()
	t.Chdir(t.TempDir())
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")
	for name, text := range map[string]string{
		"go.mod": "module github.com/leakgate/leakgate/x\n\ngo 1.26\n",
		"p/p_test.go": "package p\n\nimport (\n\t\"os\"\n\t\"testing\"\n\t\"time\"\n)\n\nvar _, _ = os.Args, " +
			"time.Now\n\n" + test,
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRun(t *testing.T) {
	// flaky is a test that fails the first time it runs.
	const flaky = "func TestFlaky(t *testing.T) {\n\tif os.WriteFile(\"ran\", nil, 0o600); len(os.Args) > 0 " +
		"{\n\t\tif _, err := os.Stat(\"before\"); err != nil {\n\t\t\tos.WriteFile(\"before\", nil, " +
		"0o600)\n\t\t\tt.Error(\"too late\")\n\t\t}\n\t}\n}\n"
	for title, c := range map[string]struct {
		test, retry string
		ok          bool
		want        []string
		absent      string
	}{
		"passes": {
			"func TestA(t *testing.T) { t.Log(\"quiet\") }\nfunc TestB(t *testing.T) { t.Skip() }", "", true,
			[]string{"ok  \tgithub.com/leakgate/leakgate/x/p", "DONE 2 tests, 1 skipped, 0 failed"}, "quiet",
		},
		"fails": {
			"func TestA(t *testing.T) { t.Run(\"sub\", func(t *testing.T) { t.Error(\"reason\") }) }", "", false,
			[]string{"reason", "--- FAIL: TestA/sub", "FAIL\tgithub.com/leakgate/leakgate/x/p", "1 failed"}, "FLAKY",
		},
		"panics": {
			"func TestA(t *testing.T) { panic(\"reason\") }", "flakes.txt", false, []string{"panic: reason"}, "FLAKY",
		},
		"does not compile": {
			"func TestA(t *testing.T) { none() }", "flakes.txt", false, []string{"undefined: none", "build failed"},
			"FLAKY",
		},
		"flaky": {
			flaky, "flakes.txt", true,
			[]string{"too late", "FLAKY x/p TestFlaky, first failure: p_test.go:15: too late"}, "budget",
		},
		"flaky without retries": {flaky, "", false, []string{"too late"}, "FLAKY"},
		"fails again": {
			"func TestA(t *testing.T) { t.Error(\"reason\") }", "flakes.txt", false, []string{"reason"}, "FLAKY",
		},
	} {
		t.Run(title, func(t *testing.T) {
			project(t, c.test)
			var out strings.Builder
			ok, err := run(&out, options{retry: c.retry}, []string{"-run", "^Test", "./..."})
			if ok != c.ok || err != nil {
				t.Errorf("%v, %v", ok, err)
			}
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in\n%s", want, out.String())
				}
			}
			if strings.Contains(out.String(), c.absent) {
				t.Errorf("%q in\n%s", c.absent, out.String())
			}
			if log, _ := os.ReadFile("flakes.txt"); (len(log) > 0) != (title == "flaky") {
				t.Errorf("recorded: %q", log)
			}
		})
	}
}

// The run must fail if packages take too long or if a flag is invalid.
func TestSeconds(t *testing.T) {
	project(t, "func TestA(t *testing.T) { time.Sleep(200 * time.Millisecond) }")
	for seconds, want := range map[string]bool{"100": true, "0.05": false} {
		o, args, err := flags([]string{"-seconds", seconds, "-count=1", "./..."})
		var out strings.Builder
		ok, rerr := run(&out, o, args)
		if err != nil || rerr != nil || ok != want || strings.Contains(out.String(), "FAIL") == want {
			t.Errorf("-seconds %s: %v, %v, %v\n%s", seconds, ok, err, rerr, out.String())
		}
	}
	for _, bad := range []string{"0", "-1", "x", ""} {
		if _, _, err := flags([]string{"-seconds", bad, "./..."}); err == nil {
			t.Errorf("-seconds %q: accepted, want an error", bad)
		}
	}
}

func TestBudgets(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"a", "b"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	page := func(block string) budgets {
		t.Helper()
		if err := os.WriteFile("page.md", []byte("# Page\n\n```budgets\n"+block+"\n```\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := readBudgets("page.md")
		if (err != nil) != (b == nil) {
			t.Error(err)
		}
		return b
	}
	b := page("a: 30\nb: 20.5")
	for folder, c := range map[string]struct {
		seconds float64
		ok      bool
	}{"a": {59, true}, "b": {42, false}, "c": {41, false}, "d": {39, true}} {
		var out strings.Builder
		if ok := b.check(&out, usage{folder: c.seconds}); ok != c.ok || !strings.Contains(out.String(), folder) {
			t.Errorf("%s: %v, %s", folder, ok, out.String())
		}
	}
	for _, bad := range []string{"a: 3", "a", "c: 30", "a: 30\na: 31", "a: much"} {
		if b := page(bad); b != nil {
			t.Errorf("%q: parsed as %v, want an error", bad, b)
		}
	}
	if !budgets(nil).check(nil, usage{"a": 1000}) {
		t.Error("check fails a package although no budgets are set")
	}
}

// The CPU time of a test binary must be counted for its package, even if its
// tests change the directory.
func TestWatch(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc")
	}
	project(t,
		"func TestA(t *testing.T) {\n\tt.Chdir(t.TempDir())\n\tfor i := range 2_000_000_000 {\n\t\tn += "+
			"i\n\t}\n}\n\nvar n int\n")
	var out strings.Builder
	_, cpu, ok, err := goTest(&out, []string{"./..."})
	if !ok || err != nil || len(cpu) != 1 || cpu["p"] <= 0 || cpu["p"] > time.Minute.Seconds() {
		t.Errorf("%v, %v, %v\n%s", cpu, ok, err, out.String())
	}
}
