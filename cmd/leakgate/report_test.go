package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leakgate/leakgate/reporters"
)

// report on a run that has come to its end gives the same words again.
func TestReportOfAWholeRun(t *testing.T) {
	env := serve(t, shop("phone-a"))
	dir := filepath.Join(t.TempDir(), "run")
	code, out, errOut := typed(t, env, "watch", "--process", "com.shop", "--for", "20m", "--out", dir)
	if code != 0 {
		t.Fatalf("exit %d\n%s%s", code, out, errOut)
	}
	if err := os.Remove(filepath.Join(dir, "run.json")); err != nil {
		t.Fatal(err)
	}
	code, again, errOut := typed(t, env, "report", dir)
	if code != 0 || again != out || errOut != "" {
		t.Errorf("exit %d\n%s\nand before\n%s\n%s", code, again, out, errOut)
	}
	if run, err := reporters.ReadRun(dir); err != nil || run.Stopped != "duration" {
		t.Errorf("%+v, %v", run, err)
	}
}

func TestReportWrongInput(t *testing.T) {
	empty, foreign, file := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "file")
	for _, path := range []string{filepath.Join(foreign, reporters.SamplesName), file} {
		if err := os.WriteFile(path, []byte("not a run\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nothing":             {nil, "want one run directory, got 0"},
		"two":                 {[]string{empty, foreign}, "want one run directory, got 2"},
		"an empty directory":  {[]string{empty}, "holds no run: there is no samples.ndjson in it"},
		"no directory":        {[]string{filepath.Join(empty, "none")}, "holds no run"},
		"a file":              {[]string{file}, "file"},
		"something different": {[]string{foreign}, "read samples header"},
	} {
		code, out, errOut := typed(t, nil, append([]string{"report"}, c.args...)...)
		if code != 2 || out != "" || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errOut)
		}
	}
}

// The second run on a device is refused with the name of the first, or waits.
func TestSecondRunOnADevice(t *testing.T) {
	env := serve(t, shop("phone-a"), shop("phone-b"))
	dir := t.TempDir()
	var first sync.WaitGroup
	first.Go(func() {
		// 20 minutes of the phone take three seconds.
		code, out, errOut := typed(t, maps.Clone(env), "watch", "--process", "com.shop", "--device", "phone-a", "--for", "20m", "--out", filepath.Join(dir, "first"))
		if code != 0 {
			t.Errorf("first: exit %d\n%s%s", code, out, errOut)
		}
	})
	for range 200 {
		if _, err := os.Stat(filepath.Join(dir, "first", reporters.SamplesName)); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	second := []string{"watch", "--process", "com.shop", "--device", "phone-a", "--for", "2m"}
	code, _, errOut := typed(t, maps.Clone(env), append(second, "--out", filepath.Join(dir, "second"))...)
	if code != 3 || !strings.Contains(errOut, "phone-a") || !strings.Contains(errOut, "leakgate watch (pid ") || !strings.Contains(errOut, "--wait") {
		t.Errorf("second: exit %d\n%s", code, errOut)
	}
	if _, err := os.Stat(filepath.Join(dir, "second")); err == nil {
		t.Error("the second has made its directory")
	}
	code, _, errOut = typed(t, maps.Clone(env), append(second, "--out", filepath.Join(dir, "first"))...)
	if code != 2 && code != 3 || !strings.Contains(errOut, "is in use by leakgate watch") {
		t.Errorf("same directory: exit %d\n%s", code, errOut)
	}
	code, _, errOut = typed(t, maps.Clone(env), "watch", "--process", "com.shop", "--device", "phone-b", "--for", "1m", "--out", filepath.Join(dir, "other"))
	if code != 0 {
		t.Errorf("another device: exit %d\n%s", code, errOut)
	}
	code, _, errOut = typed(t, maps.Clone(env), append(second, "--wait", "--out", filepath.Join(dir, "third"))...)
	if code != 0 || strings.Count(errOut, "waiting for its end") != 1 {
		t.Errorf("third: exit %d\n%s", code, errOut)
	}
	first.Wait()
	run, err := reporters.ReadRun(filepath.Join(dir, "third"))
	if err != nil || run.Devices[0].Duration > 200 {
		t.Errorf("the third counts from before its turn: %+v, %v", run.Devices, err)
	}
}
