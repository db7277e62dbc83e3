package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/reporters/record"
)

// gated returns the configuration of a run with the given rules and a baseline.
// The run opens the screens listed in a file on the device; marks end the
// loops.
func gated(more string) string {
	return fmt.Sprintf(`version: 1
app: { package: com.cart, processes: [com.cart] }
workload:
  device_command: "for i in 1 2 3 4 5; do for s in $(cat /data/local/tmp/screens); do am start -W -n com.cart/.$s; input keyevent BACK; done; sleep 100; echo leakgate:mark loop $i; sleep 100; done"
diagnose: { dump: at_marks, keep: none }
baseline: { store: "file:leak-baseline.json" }
gate: { %s }
`, more)
}

// The verdict of a run follows the rules in its file: a leak that the base runs
// have too does not fail the run; a new leak does. LEAKGATE_E2E=long tests more
// rules.
func TestRunGated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inFolder(t)
		run := func(name, screens, more string) (int, string) {
			t.Helper()
			file := name + ".yaml"
			if err := os.WriteFile(file, []byte(gated(more)), 0o600); err != nil {
				t.Fatal(err)
			}
			phone := attach(t, androidsim.ServedDemo(60, 1))
			push(t, phone, screens, "/data/local/tmp/screens")
			code, out, errOut := phone.typed(t, "run", file, "--out", name)
			return code, out + errOut
		}
		// When a baseline is used for the first time, leaks are reported, but
		// do not fail the run.
		code, out := run("first", "CheckoutActivity CartActivity", "")
		if code != 0 || !strings.Contains(out, "there is no base run to compare with yet; 1 leak grows in this run") {
			t.Fatalf("exit %d\n%s", code, out)
		}
		if code, out, errOut := typed(t, nil, "baseline", "update", "--run", "first"); code != 0 {
			t.Fatalf("exit %d\n%s%s", code, out, errOut)
		}
		code, out = run("same", "CheckoutActivity CartActivity", "")
		if code != 0 || !strings.Contains(out, "nothing is worse than in 1 base run; 1 leak is known") {
			t.Errorf("exit %d\n%s", code, out)
		}
		if r, err := record.ReadRun("same"); err != nil || r.ExitCode != record.ExitLeak {
			t.Errorf("got exit code %d in run.json, want %d: %v", r.ExitCode, record.ExitLeak, err)
		}
		code, out = run("worse", "CheckoutActivity LegacyActivity", "confirm: 1")
		if code != 1 || !strings.Contains(out, "1 new leak, in two runs") || !strings.Contains(out, "LegacyActivity") {
			t.Errorf("exit %d\n%s", code, out)
		}
		for _, name := range []string{
			"worse/gate.json", "worse/comment.md", "worse-confirm/gate.json", "worse-confirm/comment.md",
		} {
			if _, err := os.Stat(filepath.FromSlash(name)); err != nil {
				t.Error(err)
			}
		}
		if os.Getenv("LEAKGATE_E2E") != "long" {
			return
		}
		code, out = run("reported", "CheckoutActivity LegacyActivity", "informational: true")
		if code != 0 || !strings.Contains(out, "1 new leak; the rules are informational") {
			t.Errorf("exit %d\n%s", code, out)
		}
		if code, out, errOut := typed(t, nil, "baseline", "update", "--run", "worse"); code != 0 ||
			!strings.Contains(errOut, "kept as observed") {
			t.Errorf("exit %d\n%s%s", code, out, errOut)
		}
		code, out = run("excused", "CheckoutActivity LegacyActivity", "")
		if code != 0 || !strings.Contains(out, "2 leaks are known") {
			t.Errorf("exit %d\n%s", code, out)
		}
	})
}

// A run that may end early ends at the dump that proves the leak, with the same
// verdict as a run that did not end early.
func TestRunAbortsOnFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inFolder(t)
		text := strings.ReplaceAll(gated("abort_on_fail: true"), "1 2 3 4 5", "1 2 3 4 5 6 7 8 9 10 11 12")
		text = strings.Replace(text, "baseline: { store: \"file:leak-baseline.json\" }\n", "", 1)
		if err := os.WriteFile("run.yaml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		phone := attach(t, androidsim.ServedDemo(60, 1))
		push(t, phone, "CheckoutActivity", "/data/local/tmp/screens")
		code, out, errOut := phone.typed(t, "run", "run.yaml", "--out", "run")
		run, err := record.ReadRun("run")
		if err != nil || code != 1 || run.Stopped != record.StoppedFinished || run.StopReason != "gate: 1 leak" {
			t.Fatalf("exit %d, %v, %s because %q\n%s%s", code, err, run.Stopped, run.StopReason, out, errOut)
		}
		if n := run.Devices[0].Marks; n < 5 || n > 6 {
			t.Errorf("%d marks\n%s%s", n, out, errOut)
		}
	})
}

// push writes a file to a phone.
func push(t *testing.T, phone attached, content, path string) {
	t.Helper()
	client, err := adb.NewClient(adb.Options{Dial: phone.dial})
	if err != nil {
		t.Fatal(err)
	}
	device, err := client.Select(t.Context(), "")
	if err == nil {
		err = device.Push(t.Context(), strings.NewReader(content), path, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Errors in the baseline or the accepted leaks are reported before the run
// starts.
func TestRunGatedRejectsBadBaseline(t *testing.T) {
	inFolder(t)
	if err := os.WriteFile("leak-baseline.json", []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, more := range map[string]string{"read baseline": "", "missing.yaml": "accepted: missing.yaml"} {
		if err := os.WriteFile("run.yaml", []byte(gated(more)), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errOut := typed(t, nil, "run", "run.yaml", "--out", "dir")
		if _, err := os.Stat("dir"); code != 2 || !strings.Contains(errOut, want) || err == nil {
			t.Errorf("exit %d, want %q\n%s%s", code, want, out, errOut)
		}
	}
}
