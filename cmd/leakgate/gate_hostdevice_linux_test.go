//go:build realtime && e2e

package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/hostdevicetest"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
)

// judging is the configuration of a run with three loops that ends with the
// verdict of the gate. In each loop the app opens and closes ten screens.
const judging = `version: 1
app: { package: PACKAGE, processes: ["PACKAGE:*"] }
devices: { serials: ["${LEAKGATE_HOSTDEVICE}"] }
workload:
  command:
    - sh
    - -c
    - |
      ` + awaiting + `
      await found 1
      pid=$(adb -s "$ANDROID_SERIAL" shell pidof PACKAGE:kept)
      for i in 1 2 3; do adb -s "$ANDROID_SERIAL" shell kill -28 $pid; LEAKGATE mark --run "$LEAKGATE_RUN" --wait loop $i; done
diagnose: { dump: at_marks, keep: raw }
baseline: { store: "file:leak-baseline.json" }
gate: {}
`

// The head build adds this code to the app: in each loop two screens of the
// checkout stay in a static list, each with its own picture of 48 KiB.
const (
	addedPerLoop = 2
	addedPicture = 48 << 10
	addedClasses = `package com.example.leaky;

import android.app.Activity;
import java.util.ArrayList;
import java.util.List;

final class Basket {
  static final List<Activity> OPEN = new ArrayList<>();

  static void visit() {
    Checkout screen = new Checkout();
    screen.destroy();
    OPEN.add(screen);
  }
}

final class Checkout extends Activity {
  final byte[] picture = new byte[48 << 10];
}
`
	keptLine  = "KEPT.add(screen);"
	addedLine = keptLine + " Basket.visit(); Basket.visit();"
)

// In the size model, a screen retains the bytes of its array, the header of the
// array and the screen itself. The latter two take about 50 bytes, whatever the
// width of a reference.
const (
	screenPixels = 8 << 10 // SESSION_BYTES of Leaky.java
	mostOfObject = 96
)

// This test runs end to end with real processes and real heap dumps: three base
// runs with a known leak; a head build with an additional leak, which fails and
// names the leak, and passes once the leak is accepted; and a build without the
// additional leak, which passes. The same dumps without their runs yield the
// same verdicts.
func TestGateOnTheHostDevice(t *testing.T) {
	hostdevicetest.RequireJava(t)
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	g := &judged{running: hostdevicetest.StartRooted(t, hostdevice.Options{Scale: 20}), folder: t.TempDir()}
	config := strings.NewReplacer("PACKAGE", g.running.Package(), "LEAKGATE", path).Replace(judging)
	// LEAKGATE is also a part of variable names, in which it must not be
	// replaced.
	config = strings.NewReplacer(path+"_RUN", "LEAKGATE_RUN", path+"_HOSTDEVICE", "LEAKGATE_HOSTDEVICE").Replace(config)
	if err := os.WriteFile(filepath.Join(g.folder, "run.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, base := range []string{"base1", "base2", "base3"} {
		g.run(t, base)
		g.typed(t, 0, "baseline", "update", "--run", base, "--config", "run.yaml")
		g.typed(t, 0, "baseline", "update", "--dump", g.dumps(t, base), "--baseline", "file:dumps.json")
	}
	g.build(t, addedLine, addedClasses)
	if code, out := g.run(t, "head"); code != 1 || !strings.Contains(out, "1 new leak") {
		t.Errorf("head build: exit %d\n%s", code, out)
	}
	fails := g.comparison(t, "head")
	g.assertAdded(t, fails)
	// The heap dumps without their run yield the same verdict.
	g.typed(t, 1, "gate", "--dump", g.dumps(t, "head"), "--baseline", "file:dumps.json", "--out", "dumped")
	assertSameVerdict(t, fails, g.comparison(t, "dumped"))

	key := rowOfClass(t, fails, "com.example.leaky.Checkout").Key
	if out := g.typed(t, 0, "show", "head", key[:8]); !strings.Contains(out, "Basket.OPEN") {
		t.Errorf("show:\n%s", out)
	}
	g.typed(t, 0, "accept", key[:8], "--reason", "SHOP-1", "--owner", "kim", "--until", "2999-01-01")
	if out := g.typed(t, 0, "gate", "--run", "head", "--config", "run.yaml", "--out",
		"accepted"); !strings.Contains(out, "accepted") {
		t.Errorf("accepted:\n%s", out)
	}
	g.typed(t, 0, "gate", "--dump", g.dumps(t, "head"), "--baseline", "file:dumps.json", "--out", "accepted-dumped")
	assertSameVerdict(t, g.comparison(t, "accepted"), g.comparison(t, "accepted-dumped"))
	if err := os.Remove(filepath.Join(g.folder, acceptedName)); err != nil {
		t.Fatal(err)
	}

	g.build(t, keptLine, "")
	if code, out := g.run(t, "same"); code != 0 || !strings.Contains(out, "nothing is worse than in 3 base runs") {
		t.Errorf("without the added leak: exit %d, want 0\n%s", code, out)
	}
	g.typed(t, 0, "gate", "--dump", g.dumps(t, "same"), "--baseline", "file:dumps.json", "--out", "same-dumped")
	assertSameVerdict(t, g.comparison(t, "same"), g.comparison(t, "same-dumped"))
	assertNothingLeft(t, g.running)
}

// judged holds the runs of one app on one host device, in one directory.
type judged struct {
	running *hostdevicetest.Running
	folder  string
}

// run executes `leakgate run` on a newly started process.
func (g *judged) run(t *testing.T, name string) (code int, out string) {
	t.Helper()
	g.running.Must(t, "shell", "am force-stop "+g.running.Package()+"; am start -n "+g.running.Package()+"/.Kept")
	return g.start(t, 2*time.Minute, "run", "run.yaml", "--out", name)
}

// typed executes another command and checks its exit code.
func (g *judged) typed(t *testing.T, want int, args ...string) string {
	t.Helper()
	code, out := g.start(t, time.Minute, args...)
	if code != want {
		t.Fatalf("leakgate %q: exit %d, want %d\n%s", args, code, want, out)
	}
	return out
}

func (g *judged) start(t *testing.T, within time.Duration, args ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd := onHostDevice(t, ctx, g.running, args...)
	cmd.Dir = g.folder
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// build compiles another build of the app over the installed one.
func (g *judged) build(t *testing.T, line, more string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "internal", "hostdevice", "app", "Leaky.java"))
	if err != nil || strings.Count(string(text), keptLine) != 1 {
		t.Fatalf("the app must have exactly one line to replace: %v", err)
	}
	dir := t.TempDir()
	files := map[string]string{"Leaky.java": strings.Replace(string(text), keptLine, line, 1), "Basket.java": more}
	classes := filepath.Join(g.running.Dir(), "app")
	args := []string{"-J-XX:-UsePerfData", "-XDignore.symbol.file", "-g", "-cp", classes, "-d", classes}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	if out, err := exec.Command("javac", args...).CombinedOutput(); err != nil {
		t.Fatalf("compile the app: %v\n%s", err, out)
	}
}

// dumps returns the value of --dump for the heap dumps that a run has kept.
func (g *judged) dumps(t *testing.T, run string) string {
	t.Helper()
	w := watched{dir: filepath.Join(g.folder, run)}
	w.read(t)
	var files []string
	for _, d := range w.diagnosesOf("kept", "mark") {
		files = append(files, w.in(d, "heap.hprof.zst"))
	}
	if len(files) != 3 {
		t.Fatalf("%s has %d heap dumps, want one for each of three marks", run, len(files))
	}
	return g.running.Package() + ":kept=" + strings.Join(files, ",")
}

func (g *judged) comparison(t *testing.T, dir string) *comparison.Comparison {
	t.Helper()
	c, err := readComparison(filepath.Join(g.folder, dir))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// assertAdded compares the report of the gate about the added leak with the
// code that causes it.
func (g *judged) assertAdded(t *testing.T, c *comparison.Comparison) {
	t.Helper()
	added, kept := rowOfClass(t, c, "com.example.leaky.Checkout"), rowOfClass(t, c, "com.example.leaky.Leaky$Screen")
	if c.Verdict != comparison.Fail || len(c.Reasons) != 1 || c.Reasons[0].Key != added.Key {
		t.Errorf("got verdict %s and reasons %+v, want %s for the added leak", c.Verdict, c.Reasons, comparison.Fail)
	}
	if added.Status != comparison.New || !added.Fails || added.HeldBy != "Basket.OPEN" || added.Unit != "loop" ||
		!slices.Equal(added.Counts, []int64{2, 4, 6}) {
		t.Errorf("added leak: %+v", added)
	}
	if kept.Status != comparison.Known || kept.Fails || kept.HeldBy != "Leaky.KEPT" ||
		!slices.Equal(kept.Counts, []int64{1, 2, 3}) {
		t.Errorf("known leak: %+v", kept)
	}
	assertWithin(t, "added objects per loop", added.PerLoop.Head, addedPerLoop, 0)
	assertWithin(t, "bytes per added object", added.BytesEach.Head, addedPicture, mostOfObject)
	assertWithin(t, "bytes of all added objects", new(float64(added.HeadBytes)), 3*addedPerLoop*addedPicture,
		3*addedPerLoop*mostOfObject)
	assertWithin(t, "known objects per loop", kept.PerLoop.Head, 1, 0)
	assertWithin(t, "bytes per known object", kept.BytesEach.Head, screenPixels, mostOfObject)
	assertWithin(t, "bytes per object in the base", kept.BytesEach.Base, screenPixels, mostOfObject)

	comment, err := os.ReadFile(filepath.Join(g.folder, "head", commentName))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"❌ leakgate", "1 new leak", "**9.4 MB more**", "2 per loop at 48.0 kB each",
		"| ❌ new | `Checkout` | `Basket.OPEN` | 0 → **2** | 48.0 kB | 288", "static Basket.OPEN", "leakgate accept " +
			added.Key[:8],
		"| `Leaky$Screen` | `Leaky.KEPT` | `" + kept.Key[:8] + "` | 1 | 24."} {
		if !strings.Contains(string(comment), want) {
			t.Errorf("the comment does not contain %q:\n%s", want, comment)
		}
	}
}

// assertWithin expects a number between least and least plus more.
func assertWithin(t *testing.T, what string, got *float64, least, more float64) {
	t.Helper()
	if got == nil || *got < least || *got > least+more {
		text, _ := json.Marshal(got)
		t.Errorf("%s: got %s, want %v to %v", what, text, least, least+more)
	}
}

func rowOfClass(t *testing.T, c *comparison.Comparison, class string) *comparison.Row {
	t.Helper()
	at := slices.IndexFunc(c.Leaks, func(r comparison.Row) bool { return r.Class == class })
	if at < 0 {
		t.Fatalf("no leak of %s: %+v", class, c.Leaks)
	}
	return &c.Leaks[at]
}

// assertSameVerdict checks that a run and its heap dumps alone yield the same
// leaks.
func assertSameVerdict(t *testing.T, run, dumps *comparison.Comparison) {
	t.Helper()
	type said struct {
		status         comparison.Status
		fails          bool
		key, held      string
		perLoop, bytes float64
	}
	of := func(c *comparison.Comparison) (out []said) {
		for _, r := range c.Leaks {
			if r.Type == "leak" && r.PerLoop.Head != nil && r.BytesEach.Head != nil {
				out = append(out, said{r.Status, r.Fails, r.Key, r.HeldBy, *r.PerLoop.Head, *r.BytesEach.Head})
			}
		}
		return out
	}
	if run.Verdict != dumps.Verdict || run.ExitCode != dumps.ExitCode || len(of(run)) == 0 ||
		!slices.Equal(of(run), of(dumps)) {
		t.Errorf("verdict of the run: %s\n%+v\nverdict of its dumps: %s\n%+v", run.Verdict, of(run), dumps.Verdict,
			of(dumps))
	}
}
