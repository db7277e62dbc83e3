package main

//unit:sleep two files differ in their times

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/reporters/record"
)

// The report command prints the same report again for a run that has ended.
func TestReportOfCompleteRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phones := attach(t, shop("phone-a"))
		dir := filepath.Join(t.TempDir(), "run")
		code, out, errOut := phones.typed(t, "watch", "--process", "com.shop", "--for", "20m", "--out", dir)
		if code != record.ExitInconclusive {
			t.Fatalf("exit %d\n%s%s", code, out, errOut)
		}
		if err := os.Remove(filepath.Join(dir, "run.json")); err != nil {
			t.Fatal(err)
		}
		code, again, errOut := phones.typed(t, "report", dir)
		if code != 0 || again != out || errOut != "" {
			t.Errorf("exit %d, got the report\n%s\nwant\n%s\nstderr:\n%s", code, again, out, errOut)
		}
		if run, err := record.ReadRun(dir); err != nil || run.Stopped != "duration" {
			t.Errorf("%+v, %v", run, err)
		}
	})
}

// killedRun returns the directory of a run that was killed, and its two heap
// dumps: one that was collected but not yet analyzed, and one that was still
// being pulled.
func killedRun(t *testing.T, keep string) (dir string, dumps []string) {
	t.Helper()
	h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
	h.Hold("com.shop.Registry", "all", h.ArrayList(h.Activity("com.shop.CartActivity", hproftest.Destroyed).Ref).Ref)
	h.Hold("com.shop.Login", "token", h.String("correct horse"))
	dump, _, err := h.Dump(hproftest.Form{})
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "run")
	d := record.Diagnosis{
		Device: "S1", Process: "com.shop", PID: 7, T: 3, Trigger: "leak", Kind: detector.Java, Recipe: "java",
		Folder:  "artifacts/com.shop/done",
		Outcome: record.DiagnosisComplete, Keep: keep,
		Steps:    []record.Collected{{Step: "heap", Outcome: "complete", File: "heap.hprof", Bytes: int64(len(dump))}},
		Findings: []record.Finding{}, Summary: []string{}, Warnings: []string{},
	}
	for _, folder := range []string{d.Folder, "artifacts/com.shop/untold"} {
		path := filepath.Join(dir, folder)
		dumps = append(dumps, filepath.Join(path, "heap.hprof"))
		err := errors.Join(os.MkdirAll(path, 0o755), os.WriteFile(filepath.Join(path, "heap.hprof"), dump, 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	plan := &record.Plan{Assert: record.AssertEnd, Processes: []string{"com.shop"}}
	plan.SetPolicy(detector.RobustPolicy())
	r, err := record.CreateRecorder(dir,
		record.Header{
			Started: time.Now(), Devices: []record.HeaderDevice{{Device: "S1", StartedUp: 1, TimeScale: 1}}, Plan: plan,
		})
	if err != nil {
		t.Fatal(err)
	}
	pss := int64(4000)
	err = errors.Join(
		r.AppendEvent(record.Event{
			T: 1, Up: 2, Device: "S1", Event: "found", User: new(0), Process: "com.shop", PID: 7, Start: 5,
			Source: "smaps",
		}),
		r.AppendSample(record.Sample{
			T: 2, Up: 3, Device: "S1", Process: "com.shop", PID: 7, Start: 5, Source: "smaps", PSS: &pss,
		}),
		r.AppendEvent(record.Event{
			T: 4, Up: 5, Device: "S1", Event: "diagnose", User: new(0), Process: "com.shop", PID: 7, Diagnosis: &d,
		}),
		r.Close())
	if err != nil {
		t.Fatal(err)
	}
	return dir, dumps
}

// Every report of a killed run contains the same findings as the first report,
// even if the dump has changed since. A dump that no line mentions is stripped
// too.
func TestReportTwiceOfAKilledRun(t *testing.T) {
	for _, keep := range []string{"stripped", "raw", "none"} {
		dir, dumps := killedRun(t, keep)
		env := map[string]string{}
		var before map[string][]byte
		for i := range 3 {
			code, out, errOut := typed(t, env, "report", dir)
			if code != 0 || !strings.Contains(out, "CartActivity, held by Registry.all") {
				t.Errorf("%s, report %d: exit %d\n%s%s", keep, i+1, code, out, errOut)
			}
			if !strings.Contains(errOut,
				"artifacts/com.shop/untold belongs to an incomplete diagnosis; heap.hprof.zst: the "+
					"contents of primitive arrays are zeroed") {
				t.Errorf("%s: %s", keep, errOut)
			}
			files := map[string][]byte{}
			for _, name := range []string{"run.json", "leaks.csv", "artifacts/com.shop/done/diagnosis.json"} {
				text, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				files[name] = text
			}
			if i > 0 && !reflect.DeepEqual(files, before) {
				t.Errorf("%s: report %d wrote\n%s\nwant\n%s", keep, i+1, files["run.json"],
					before["run.json"])
			}
			before = files
		}
		for i, dump := range dumps {
			if _, err := os.Stat(dump); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: the uncompressed dump was not removed: %v", keep, err)
			}
			if _, err := os.Stat(dump + ".zst"); i == 0 && keep == "none" {
				if !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the dump was kept despite keep=none: %v", err)
				}
				continue
			}
			if kept := keptDump(t, dump+".zst"); bytes.Contains(kept, []byte("correct horse")) != (i == 0 &&
				keep == "raw") {
				t.Errorf("keep=%s: the dump of %d bytes is stripped but should be raw, or the reverse", keep, len(kept))
			}
		}
	}
}

// If Ctrl-C interrupts a report, artifacts that are not analyzed yet are kept,
// and the next report analyzes them.
func TestReportInterrupted(t *testing.T) {
	for _, keep := range []string{"stripped", "raw", "none"} {
		dir, dumps := killedRun(t, keep)
		var out, errs bytes.Buffer
		c := environment(nil, &out, &errs)
		c.verb = "report"
		interrupted := func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return ctx, cancel
		}
		if code := report(c, []string{dir}, false, interrupted); code != 130 || out.Len() > 0 ||
			!strings.Contains(errs.String(), "leakgate report: interrupted") {
			t.Errorf("%s: exit %d\n%s%s", keep, code, &out, &errs)
		}
		if _, err := os.Stat(dumps[0]); err != nil {
			t.Error(keep, err)
		}
		if code, text, errOut := typed(t, nil, "report", dir); code != 0 ||
			!strings.Contains(text, "CartActivity, held by Registry.all") {
			t.Errorf("%s: exit %d\n%s%s", keep, code, text, errOut)
		}
		// Artifacts that are already analyzed are not analyzed again.
		if code := report(c, []string{dir}, false, interrupted); code != 0 {
			t.Errorf("%s: exit %d\n%s%s", keep, code, &out, &errs)
		}
	}
}

func TestReportWrongInput(t *testing.T) {
	empty, foreign, file := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "file")
	for _, path := range []string{filepath.Join(foreign, record.SamplesName), file} {
		if err := os.WriteFile(path, []byte("not a run\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nothing":                {nil, "want one run directory, got 0"},
		"two":                    {[]string{empty, foreign}, "want one run directory, got 2"},
		"empty directory":        {[]string{empty}, "is not a run directory: it has no samples.ndjson"},
		"missing directory":      {[]string{filepath.Join(empty, "none")}, "is not a run directory"},
		"a file":                 {[]string{file}, "file"},
		"file in another format": {[]string{foreign}, "read samples header"},
	} {
		code, out, errOut := typed(t, nil, append([]string{"report"}, c.args...)...)
		if code != 2 || out != "" || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: exit %d\n%s%s", name, code, out, errOut)
		}
	}
}

// A second run on a device either waits or is rejected with an error that names
// the first.
func TestSecondRunOnADevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phones := attach(t, shop("phone-a"), shop("phone-b"))
		dir := t.TempDir()
		var first sync.WaitGroup
		first.Go(func() {
			// 20 minutes of device time take three seconds.
			code, out, errOut := phones.typed(t,
				"watch", "--process", "com.shop", "--device", "phone-a", "--for", "20m",
				"--out", filepath.Join(dir, "first"))
			if code != record.ExitInconclusive {
				t.Errorf("first run: exit %d\n%s%s", code, out, errOut)
			}
		})
		for range 200 {
			if _, err := os.Stat(filepath.Join(dir, "first", record.SamplesName)); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		second := []string{"watch", "--process", "com.shop", "--device", "phone-a", "--for", "2m"}
		code, _, errOut := phones.typed(t, append(second, "--out", filepath.Join(dir, "second"))...)
		if code != 3 || !strings.Contains(errOut, "phone-a") || !strings.Contains(errOut, "leakgate watch (pid ") ||
			!strings.Contains(errOut, "--wait") {
			t.Errorf("second run: exit %d\n%s", code, errOut)
		}
		if _, err := os.Stat(filepath.Join(dir, "second")); err == nil {
			t.Error("the second run created its directory")
		}
		code, _, errOut = phones.typed(t, append(second, "--out", filepath.Join(dir, "first"))...)
		if code != 2 && code != 3 || !strings.Contains(errOut, "is in use by leakgate watch") {
			t.Errorf("run in the same directory: exit %d\n%s", code, errOut)
		}
		code, _, errOut = phones.typed(t, "watch", "--process", "com.shop", "--device", "phone-b", "--for", "1m",
			"--out",
			filepath.Join(dir, "other"))
		if code != record.ExitInconclusive {
			t.Errorf("run on another device: exit %d, want %d\n%s", code, record.ExitInconclusive, errOut)
		}
		code, _, errOut = phones.typed(t, append(second, "--wait", "--out", filepath.Join(dir, "third"))...)
		if code != record.ExitInconclusive || strings.Count(errOut, "waiting for it to end") != 1 {
			t.Errorf("third run: exit %d\n%s", code, errOut)
		}
		first.Wait()
		run, err := record.ReadRun(filepath.Join(dir, "third"))
		if err != nil || run.Devices[0].Duration > 200 {
			t.Errorf("the duration of the third run includes its wait: %+v, %v", run.Devices, err)
		}
	})
}
