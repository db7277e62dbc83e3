package main

//unit:sleep polls for what comes at once; its deadline is a hang

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/recorded"
)

// actVariable is the environment variable that turns this test binary into a
// program to measure; its value selects what the program does.
const actVariable = "LEAKGATE_HEAPBENCH_ACT"

// grownBytes is the amount of memory that the act "grow" uses.
const grownBytes = 128 << 20

func TestMain(m *testing.M) {
	if act := os.Getenv(actVariable); act != "" {
		os.Exit(perform(act))
	}
	os.Exit(m.Run())
}

// perform replaces the program that is measured: it does what the value of
// actVariable specifies.
func perform(act string) int {
	switch act {
	case "leakgate":
		return analyze(os.Args[1:])
	case "grow":
		b := make([]byte, grownBytes)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		return int(b[4096]) - 1
	case "fail":
		fmt.Fprint(os.Stderr, "first line\nread dump: it is | broken\n\n")
		return 6
	case "hang":
		if err := os.WriteFile(os.Getenv("STARTED"), nil, 0o600); err != nil {
			return 1
		}
		time.Sleep(time.Hour)
	}
	return 0
}

// analyze replaces `leakgate analyze`, and is as strict about its arguments as
// the interface requires.
func analyze(args []string) int {
	rest := len(args) - 2
	if rest < 3 || args[0] != "analyze" || args[2] != "--json" || args[rest] != phasesFlag {
		return 2
	}
	phases := args[rest+1]
	args = args[:rest]
	if len(args) > 3 && strings.Join(args[3:], " ") != strings.Join(readingAlone, " ") {
		return 2
	}
	if _, err := os.Stat(args[1]); err != nil {
		return 6
	}
	fmt.Fprintln(os.Stdout, `{"schema":"leakgate.analysis/1"}`)
	data := []byte(`{"objects":7,"edges":2500000,"phases":[{"name":"read","seconds":0.25,"rss_bytes":3000000}]}`)
	if os.WriteFile(phases, data, 0o600) != nil {
		return 1
	}
	return 0
}

func actor(t *testing.T, act string) string {
	t.Helper()
	t.Setenv(actVariable, act)
	// A program built with the race detector sleeps for a second before it
	// exits.
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// bench runs the program and returns its exit code and output.
func bench(t *testing.T, ctx context.Context, args ...string) (code int, out, log string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(ctx, args, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// android creates a directory of recorded data with two Android dumps and two
// other files.
func android(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "hprof"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"phone.hprof": androidMagic + "...", "tablet.hprof": androidMagic, "jvm.hprof": "JAVA PROFILE 1.0.2\x00",
		"short.hprof": "JAVA PRO", "phone.txt": androidMagic,
	} {
		if err := os.WriteFile(filepath.Join(dir, "hprof", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestSmoke generates the small dumps in a real virtual machine and measures a
// replacement program on them. `make bench-heap` measures leakgate and its
// peers on all dumps.
func TestSmoke(t *testing.T) {
	for _, program := range []string{"java", "javac", "jcmd"} {
		if _, err := find(program); err != nil {
			recorded.Missing(t, "generating the dumps requires a JDK: %v", err)
		}
	}
	exe, dir := actor(t, "leakgate"), t.TempDir()
	args := []string{
		"-sizes", "small", "-peers", "none", "-rounds", "2", "-cache", dir, "-testdata", android(t), "-leakgate", exe,
	}
	code, out, log := bench(t, t.Context(), args...)
	if code != 0 {
		t.Fatalf("exit code %d:\n%s", code, log)
	}
	for _, want := range []string{
		`(?m)^\| 0\.35M \| leakgate \| 2 \| [0-9.]+ \| [0-9.]+ \| [0-9.]+ \| [0-9?]+ \| [0-9?]+ \|$`,
		`(?m)^\| 0\.35M \| leakgate, reading alone \| 2 \|`,
		`(?m)^\| phone \| leakgate \| 10 \|`,
		`(?m)^\| tablet \| leakgate \| 10 \|`,
		`(?m)^\| 0\.35M \| hprof-analyzer 0\.3\.2 \| - \|`,
		`(?m)^\| 0\.35M \| leakgate \| 2\.50 \| read \| 0\.25 \| 3 \|$`,
		`(?m)^\| 0\.1M \| 0\.11 \| `,
		`(?m)^\* phone, Shark 2\.14: skipped by -peers none$`,
		`(?m)^\| mid: time at most .* \| not measured \| open \|$`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no %s in:\n%s", want, out)
		}
	}
	if strings.Contains(out, "jvm") || strings.Contains(out, "short") {
		t.Errorf("the output lists dumps that are not from Android:\n%s", out)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "scratch")); err != nil || len(left) > 0 {
		t.Errorf("left in scratch: %v, %v", left, err)
	}

	// The real leakgate must accept the options that the benchmark passes.
	code, out, log = bench(t, t.Context(), "-sizes", "small", "-peers", "none", "-rounds", "1", "-cache", dir,
		"-testdata",
		android(t), "-only", "^0.35M leakgate")
	for _, row := range []string{ours, reading, tracing, growing} {
		if want := regexp.MustCompile(`(?m)^\| 0\.35M \| ` + row + ` \| 1 \| [0-9.]+ \|`); code != 0 ||
			!want.MatchString(out) {
			t.Errorf("exit code %d, no %s in:\n%s\n%s", code, want, out, log)
		}
	}

	large := made(t, dir, "0.35M")
	if each := float64(large.Bytes) / float64(large.Objects); large.Objects < 350_000 || large.Objects > 380_000 ||
		each < 48 || each > 60 {
		t.Errorf("got %d objects of %.1f bytes, want about 365,000 of 48 to 60 bytes", large.Objects, each)
	}
	again(t, dir, exe)
	remake(t, dir)
}

// made returns the manifest of a dump in the cache.
func made(t *testing.T, dir, name string) manifest {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "dumps", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// again checks that a second run generates nothing.
func again(t *testing.T, dir, exe string) {
	t.Helper()
	code, out, log := bench(t, t.Context(), "-sizes", "small", "-peers", "none", "-rounds", "1", "-only",
		"^0.1M leakgate$",
		"-cache", dir, "-leakgate", exe)
	if code != 0 || strings.Contains(log, "generating") || !strings.Contains(out, "| 0.1M | leakgate | 1 |") ||
		strings.Contains(out, "| 0.35M |") {
		t.Errorf("exit code %d, printed:\n%s%s", code, out, log)
	}
}

// remake checks that a dump whose size differs from the manifest is generated
// again, and is then identical.
func remake(t *testing.T, dir string) {
	t.Helper()
	before := made(t, dir, "0.1M")
	path := filepath.Join(dir, "dumps", "0.1M.hprof")
	if err := os.Truncate(path, before.Bytes-1); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	d := &dump{name: "0.1M", asked: 100_000}
	if err := d.get(t.Context(), cache(dir), &log); err != nil ||
		!strings.Contains(log.String(), "generating dump 0.1M") {
		t.Fatalf("%v, printed %q", err, log.String())
	}
	// jcmd runs inside the virtual machine and leaves some objects of its own.
	after := made(t, dir, "0.1M")
	if off := after.Objects - before.Objects; off < -200 || off > 200 {
		t.Errorf("%d objects before, %d after", before.Objects, after.Objects)
	}
	if off := after.Bytes - before.Bytes; off < -20_000 || off > 20_000 {
		t.Errorf("%d bytes before, %d after", before.Bytes, after.Bytes)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != after.Bytes {
		t.Errorf("the size in the manifest, %d bytes, is not that of the file: %v, %v", after.Bytes, info, err)
	}
}

// TestCheck checks the result if a measured program fails: the page contains
// the error, and the exit code is 1 with -check and 0 without.
func TestCheck(t *testing.T) {
	exe := actor(t, "fail")
	args := []string{"-only", "^phone leakgate$", "-cache", t.TempDir(), "-testdata", android(t), "-leakgate", exe}
	code, out, log := bench(t, t.Context(), args...)
	want := "| phone: less than 0.200 s | leakgate: exit status 6: read dump: it is   broken | missed |"
	if code != 0 || !strings.Contains(out, want) {
		t.Errorf("exit code %d:\n%s%s", code, out, log)
	}
	code, _, log = bench(t, t.Context(), append(args, "-check")...)
	if code != 1 || !strings.Contains(log, "missed  phone: less than") ||
		!strings.Contains(log, "0 met, 1 missed, 9 open") {
		t.Errorf("exit code %d:\n%s", code, log)
	}
}

// TestWrite checks that only the part between the markers of a page is written.
func TestWrite(t *testing.T) {
	exe, dir := actor(t, "leakgate"), t.TempDir()
	page := filepath.Join(dir, "page.md")
	if err := os.WriteFile(page, []byte("before\n"+fromMarker+"old\n"+toMarker+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := parse([]string{"-only", "leakgate$", "-cache", dir, "-testdata", android(t), "-leakgate", exe},
		io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	p := newPlan(o)
	text := p.markdown("here")
	if err := writePage(page, text); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if want := "before\n" + fromMarker + text + toMarker + "\nafter\n"; err != nil || string(got) != want {
		t.Errorf("%v, page:\n%s", err, got)
	}
}

// TestInterrupt checks that an interrupted run stops the processes that it
// started and removes the files that it created.
func TestInterrupt(t *testing.T) {
	exe, dir := actor(t, "hang"), t.TempDir()
	started := filepath.Join(dir, "started")
	t.Setenv("STARTED", started)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for {
			if _, err := os.Stat(started); err == nil || ctx.Err() != nil {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	code, out, log := bench(t, ctx, "-only", "^phone leakgate$", "-cache", dir, "-testdata", android(t), "-leakgate",
		exe)
	if code != 130 || out != "" || !strings.Contains(log, "interrupted") {
		t.Errorf("exit code %d:\n%s%s", code, out, log)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "scratch")); err != nil || len(left) > 0 {
		t.Errorf("left in scratch: %v, %v", left, err)
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"-rounds", "0"}, "-rounds"},
		{[]string{"-sizes", "huge"}, "-sizes"},
		{[]string{"-only", "("}, "-only"},
		{[]string{"more"}, `"more"`},
		{[]string{"-write", "p.md", "-only", "mid"}, "-write"},
		{[]string{"-write", "p.md", "-sizes", "small"}, "-write"},
		{[]string{"-write", "p.md", "-peers", "none"}, "-write"},
		{[]string{"-only", "no such row", "-testdata", t.TempDir()}, "no such row"},
		{[]string{"-what"}, "-what"},
	} {
		code, out, log := bench(t, t.Context(), c.args...)
		if code != 2 || out != "" || !strings.Contains(log, c.says) {
			t.Errorf("%q: exit code %d: %s", c.args, code, log)
		}
	}
	if code, _, log := bench(t, t.Context(), "-h"); code != 0 || !strings.Contains(log, "-rounds") {
		t.Errorf("-h: exit code %d: %s", code, log)
	}
}

// TestNoTestdata checks that the Android bars are open if there are no recorded
// dumps.
func TestNoTestdata(t *testing.T) {
	p := newPlan(options{rounds: 1, testdata: t.TempDir()})
	v := p.verdicts()
	if last := v[len(v)-1]; last.state != open || !strings.Contains(last.bar, "each Android dump") ||
		!strings.Contains(last.measured, "-testdata") {
		t.Errorf("%+v", last)
	}
}
