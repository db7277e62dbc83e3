package main

//unit:listen the port of a server is taken

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/reporters/record"
)

// Flags that have no effect together, and values out of range, are rejected
// with advice.
func TestDemoServeRejectsFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	for want, args := range map[string][]string{
		"--port needs --serve: write --serve --port 5099\n":                    {"--port", "5099"},
		"--speed needs --serve: write --serve --speed 10\n":                    {"--speed", "10"},
		"--out has no effect with --serve, which does not run a test":          {"--serve", "--out", "x"},
		"--wait has no effect with --serve, which does not run a test":         {"--serve", "--wait"},
		`--port: invalid value "0": want an integer from 1 to 65535`:           {"--serve", "--port", "0"},
		`--port: invalid value "65536": want an integer from 1 to 65535`:       {"--serve", "--port", "65536"},
		`--speed: invalid value "401": want an integer from 1 to 400, such as`: {"--serve", "--speed", "401"},
		`--speed: invalid value "fast": want an integer from 1 to 400`:         {"--serve", "--speed", "fast"},
		`unexpected argument "now"`:                                            {"--serve", "now"},
	} {
		code, out, errOut := typed(t, nil, append([]string{"demo"}, args...)...)
		if code != exitUsage || out != "" || !strings.Contains(errOut, want) {
			t.Errorf("%q: exit %d, %q, %q", args, code, out, errOut)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestDemoServeReportsPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	code, out, errOut := typed(t, nil, "demo", "--serve", "--port", port)
	if want := "leakgate demo: port " + port +
		" of 127.0.0.1 is in use: choose another --port, or omit it for a free one\n"; code != record.ExitNoDevice ||
		out != "" || errOut != want {
		t.Errorf("exit %d, %q, %q", code, out, errOut)
	}
}

// The printed lines unset variables that would select another server.
func TestDemoServeExports(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{nil, "ANDROID_ADB_SERVER_PORT"},
		{
			map[string]string{"ADB_SERVER_SOCKET": "tcp:1", "ANDROID_SERIAL": "x"},
			"ADB_SERVER_SOCKET ANDROID_SERIAL ANDROID_ADB_SERVER_PORT",
		},
		{
			map[string]string{"ANDROID_ADB_SERVER_ADDRESS": "h", "ANDROID_ADB_SERVER_PORT": "1"},
			"ANDROID_ADB_SERVER_ADDRESS ANDROID_ADB_SERVER_PORT",
		},
	} {
		lines := exports(environment(c.env, nil, nil), "127.0.0.1:5099")
		last := lines[len(lines)-1]
		for _, name := range strings.Fields(c.want) {
			if len(lines) == 0 || !strings.Contains(lines[0], name) {
				t.Fatalf("%v: no %s in %q", c.env, name, lines)
			}
			lines = lines[1:]
		}
		if len(lines) != 0 || !strings.Contains(last, "5099") {
			t.Errorf("%v: %q, %q", c.env, last, lines)
		}
	}
}

// The printed adb commands work on the phone and end with a screen that leaks.
func TestDemoServePrintsCommandsThatWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phone := androidsim.ServedDemo(60, 1)
		var text, out bytes.Buffer
		if err := (&serving{speed: 60}).announce(environment(nil, &text, nil), "127.0.0.1:5099", phone,
			false); err != nil {
			t.Fatal(err)
		}
		asked := 0
		for line := range strings.Lines(text.String()) {
			command, ok := strings.CutPrefix(strings.TrimSpace(line), "adb shell ")
			if !ok {
				continue
			}
			asked++
			out.Reset()
			if exit := phone.Shell(t.Context(), command, nil, &out, &out); exit != 0 ||
				strings.Contains(out.String(), "Error") {
				t.Errorf("%s: exit %d, %s", command, exit, &out)
			}
		}
		out.Reset()
		phone.Shell(t.Context(), "dumpsys meminfo com.cart", nil, &out, nil)
		if asked != 3 || !regexp.MustCompile(`ViewRootImpl: +0\n.* Activities: +1\n`).MatchString(out.String()) {
			t.Errorf("after %d commands, want 3, dumpsys prints %s\n%s", asked, &out, &text)
		}
	})
}

// The page lists the screens and tests of the phone.
func TestDemoPageListsScreensAndTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats/demo.md")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		phone := androidsim.ServedDemo(60, 1)
		for _, tests := range phone.Instrumentations() {
			var out bytes.Buffer
			phone.Shell(t.Context(), "am instrument -w -r -e log true "+tests, nil, &out, nil)
			class := ""
			for line := range strings.Lines(out.String()) {
				line = strings.TrimSpace(line)
				if name, ok := strings.CutPrefix(line, "INSTRUMENTATION_STATUS: class="); ok {
					class = name
				}
				if method, ok := strings.CutPrefix(line, "INSTRUMENTATION_STATUS: test="); ok &&
					!strings.Contains(string(page), "\n| "+class+"#"+method+" | ") {
					t.Errorf("the page does not mention the test %s#%s", class, method)
				}
			}
			if class == "" {
				t.Errorf("%s has no tests: %s", tests, &out)
			}
		}
		for _, screen := range []string{
			"MainActivity", "CartActivity", "ProductActivity", "CheckoutActivity", "LegacyActivity", "SearchActivity",
		} {
			if exit := phone.Shell(t.Context(), "am start -n com.cart/."+screen, nil, nil, nil); exit != 0 ||
				!strings.Contains(string(page), screen) {
				t.Errorf("screen %s: exit code %d, want 0 and a description on the page", screen, exit)
			}
		}
	})
}

// The page names every field of the JSON form.
func TestDemoPageNamesEveryField(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats/demo.md")
	if err != nil {
		t.Fatal(err)
	}
	for f := range reflect.TypeFor[served]().Fields() {
		if name := f.Tag.Get("json"); !strings.Contains(string(page), "\n| `"+name+"` | ") {
			t.Errorf("the page does not mention %s", name)
		}
	}
}

// Dumps at marks between the tests of the served phone show the objects left by
// the leaking test, and none before that test.
func TestDumpsAtMarksFindLeakOfATest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := write(t, `version: 1
app: { package: com.shop }
workload:
  device_command: "am instrument -w -r -e class com.shop.CartTest -e delay_msec 120000 com.shop.test | while read line; do case $line in *_STATUS_CODE:?0) echo leakgate:mark tested;; esac; done"
duration: 1h
diagnose: { dump: at_marks }
`)
		dir := filepath.Join(t.TempDir(), "run")
		code, out, errOut := attach(t, androidsim.ServedDemo(60, 1)).typed(t, "run", config, "--out", dir)
		run, err := record.ReadRun(dir)
		if err != nil {
			t.Fatalf("exit %d, %v\n%s%s", code, err, out, errOut)
		}
		var leaks []string
		for _, d := range run.Diagnoses {
			if d.Trigger != record.TriggerMark {
				continue
			}
			found := "none"
			for _, f := range d.Findings {
				if f.Type == "leak" {
					found = f.Name
				}
			}
			leaks = append(leaks, found)
		}
		if len(leaks) != 2 || leaks[0] != "none" || !strings.Contains(leaks[1], "3 x CheckoutActivity") {
			t.Errorf("exit %d, %q\n%s%s", code, leaks, out, errOut)
		}
	})
}
