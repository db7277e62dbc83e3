package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leakgate/leakgate/internal/text"

	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/reporters/record"
)

// recording returns a table of one process that grows by the given number of kB
// per sample; if detail is true, its native memory grows as well.
func recording(t *testing.T, name string, samples, growth int, detail bool) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("t_s,process,pss_kb,native_heap_kb\n")
	for i := range samples {
		native := ""
		if detail {
			native = fmt.Sprint(20_000 + i*growth)
		}
		fmt.Fprintf(&b, "%d,com.shop,%d,%s\n", i*30, 200_000+i*growth+i%7*100, native)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The program itself exits with the documented exit codes, with both policies.
func TestReplayExitCodes(t *testing.T) {
	leak, flat, short := recording(t, "leak.csv", 200, 4000, true), recording(t, "flat.csv", 200, 0, true),
		recording(t, "short.csv", 3, 0, true)
	for _, c := range []struct {
		args string
		want int
		says string
	}{
		{flat, 0, "judged by policy robust"},
		{flat + " --policy article --explain", 0, "--explain is for policy robust"},
		{flat + " --policy article --gate --strict", 0, "judged by policy article"},
		{leak + " --policy article --gate", 1, "com.shop: LEAK (native leak)"},
		{short + " --policy article --gate --strict", 5, "INCONCLUSIVE"},
		{flat, 0, "com.shop: PASS"},
		{flat + " --gate --strict", 0, "com.shop: PASS"},
		{leak, 0, "com.shop: LEAK (native leak)"},
		{leak + " --gate", 1, "native_leak"},
		{short + " " + leak + " --gate --strict", 1, "com.shop in " + leak},
		{short + " --gate", 5, "INCONCLUSIVE"},
		{short + " --gate --allow-unjudged", 0, "INCONCLUSIVE"},
		{short + " --gate --strict --allow-unjudged", 5, "INCONCLUSIVE"},
		{short + " " + flat + " --gate", 5, "not judged: com.shop was watched for only 1 min"},
		{short + " " + flat + " --gate --allow-unjudged", 0, "INCONCLUSIVE"},
		{short + " " + flat + " --gate --strict", 5, "INCONCLUSIVE"},
		{short + " --gate --strict", 5, "INCONCLUSIVE"},
		{short + " --strict", 0, "INCONCLUSIVE"},
		{flat + " --base " + leak, 0, "as the difference from " + leak},
		{"", 2, "no file to judge"},
		{"no-such.csv", 2, "no-such.csv"},
		{".", 2, "is not a run directory: it has no samples.ndjson"},
		{flat + " --policy robst", 2, `"robst"`},
		{flat + " --policy article --base " + leak, 2, `use "robust"`},
		{flat + " --column rss_kb", 2, `no column "rss_kb"`},
	} {
		cmd := program(t, t.Context(), nil, append([]string{"replay"}, strings.Fields(c.args)...)...)
		out, _ := cmd.CombinedOutput() // the exit code reports the error
		if code := cmd.ProcessState.ExitCode(); code != c.want || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: exit %d, want %d and %q\n%s", c.args, code, c.want, c.says, out)
		}
	}
}

// Ctrl-C stops a replay that is waiting for its input.
func TestReplayInterrupted(t *testing.T) {
	ctx := minute(t)
	cmd := program(t, ctx, nil, "replay", "-", "--json")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The data exceeds the capacity of a pipe: once it is written, the program
	// is reading.
	if _, err := in.Write([]byte("t_s,pss_kb\n" + strings.Repeat("1,2\n", 1<<18))); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Skipf("signals: %v", err) // Windows has none
	}
	_ = cmd.Wait() // the exit code reports the error
	if code := cmd.ProcessState.ExitCode(); code != 130 || out.String() != "" ||
		!strings.Contains(errOut.String(), "interrupted") {
		t.Errorf("exit %d, %q, %q", code, out.String(), errOut.String())
	}
}

// A run is replayed with its original policy: the verdict equals that of its
// report, whether it is read from the directory, from its file or from standard
// input.
func TestReplayOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phones := attach(t, shop("phone-a"))
		dir := filepath.Join(t.TempDir(), "run")
		if code, out, errOut := phones.typed(t, "watch", "--process", "com.shop", "--for", "20m", "--out",
			dir); code != record.ExitInconclusive {
			t.Fatalf("exit %d\n%s%s", code, out, errOut)
		}
		run, err := record.ReadRun(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{dir, filepath.Join(dir, record.SamplesName)} {
			code, out, errOut := typed(t, nil, "replay", path, "--json", "--policy", run.Policy)
			if code != 0 || errOut != "" {
				t.Fatalf("%s: exit %d, %s", path, code, errOut)
			}
			p := replayed(t, out)
			want := run.Processes[0]
			if p["device"] != want.Device || p["gate"] != string(want.Gate) || p["state"] != want.State.String() ||
				p["samples"] != float64(want.Samples) || p["reason"] != want.Reason || p["file"] != path {
				t.Errorf("%s: %v\nwant %+v", path, p, want)
			}
		}
	})
}

// replayed returns the only process of a JSON result and requires every
// documented key.
func replayed(t *testing.T, out string) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatalf("%v in %.200s", err, out)
	}
	list, ok := doc["processes"].([]any)
	if doc["schema"] != "leakgate.replay/1" || !ok || len(list) != 1 {
		t.Fatalf("%.300s", out)
	}
	p := list[0].(map[string]any)
	for _, name := range strings.Fields(`device process samples duration_s state worst gate kind first_suspicious_s first_leaking_s rate_mb_per_h
		rate_interval_mb_per_h min_detectable_mb_per_h growth_mb transitions warnings reason shares jumps marks restarts file base`) {
		if _, ok := p[name]; !ok {
			t.Errorf("no %s in %v", name, p)
		}
	}
	return p
}

// Unknown values are null, lists are never null, and times are relative to the
// first sample.
func TestReplayJSON(t *testing.T) {
	code, out, errOut := typed(t,
		nil, "replay", recording(t, "short.csv", 3, 0, false), "--policy", "article", "--json")
	if code != 0 || errOut != "" {
		t.Fatalf("exit %d, %s", code, errOut)
	}
	p := replayed(t, out)
	for _, name := range []string{"first_suspicious_s", "first_leaking_s", "rate_interval_mb_per_h", "base"} {
		if p[name] != nil {
			t.Errorf("%s is %v", name, p[name])
		}
	}
	for _, name := range []string{"transitions", "warnings", "shares", "jumps"} {
		if _, ok := p[name].([]any); !ok {
			t.Errorf("%s is %v", name, p[name])
		}
	}
	_, out, _ = typed(t, nil, "replay", recording(t, "leak.csv", 200, 4000, true), "--policy", "article", "--json")
	p = replayed(t, out)
	steps := p["transitions"].([]any)
	first := steps[0].(map[string]any)
	if first["from"] != "NORMAL" || first["to"] != "SUSPICIOUS" || first["t_s"] != 300.0 ||
		p["first_suspicious_s"] != 300.0 || p["kind"] != "native_leak" || p["duration_s"] != 199*30.0 {
		t.Errorf("%v", p)
	}
}

// Control sequences in a file do not reach the terminal.
func TestReplayOfAHostileTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.csv")
	text := "t_s,process,pss_kb,mark\n0,\x1b[2Jshop\u202e,100,\x1b]0;x\x07\n" +
		"30,\x1b[2Jshop\u202e,\x1b[31m,\n60,\xff\xfe,5,\n90,\"a\tb\",7,\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := typed(t, nil, "replay", path)
	if code != 0 || strings.ContainsAny(out, "\x1b\x07\u202e") || !strings.Contains(out, "?[2Jshop?") ||
		!strings.Contains(out, "a?b") {
		t.Errorf("exit %d\n%q\n%q", code, out, errOut)
	}
}

// The text output for the traces contains one row and one line of evidence for
// each process. If several processes had the same name at the same time, the
// output also contains a row for all of them together.
func TestReplayText(t *testing.T) {
	code, out, errOut := typed(t, nil, "replay", recorded.Path(t, "traces", "eso_tdcstst.csv"), "--column", "vsz_kb")
	if code != 0 || errOut != "" {
		t.Fatalf("exit %d, %s", code, errOut)
	}
	lines := strings.Split(out, "\n")
	if !strings.HasPrefix(lines[0], "PROCESS") {
		t.Errorf("heading %q", lines[0])
	}
	const processes, together = 38, 2
	verdicts := regexp.MustCompile(`(?m)^\S.*: (LEAK|PASS|SETTLED|INCONCLUSIVE)`)
	for i := range processes + together {
		if text.Columns(lines[1+i]) < text.Columns(lines[0]) {
			t.Errorf("row %q", lines[1+i])
		}
	}
	if lines[1+processes+together] != "" || len(verdicts.FindAllString(out, -1)) != processes ||
		strings.Count(out, "\ntdcsimControl (all processes)") != 2 ||
		!strings.Contains(out, "\ntdcsimControl (pid 547363): ") {
		t.Errorf("%q...", out[:2000])
	}
}

// --base may be repeated: in JSON, a single base is a string and several are a
// list.
func TestReplayBases(t *testing.T) {
	head, a, b := recording(t, "head.csv", 200, 100, true), recording(t, "a.csv", 200, 100, true),
		recording(t, "b.csv", 200, 100, true)
	for _, bases := range [][]string{nil, {a}, {a, b}} {
		args := []string{"replay", head, "--json"}
		for _, base := range bases {
			args = append(args, "--base", base)
		}
		code, out, errOut := typed(t, nil, args...)
		var got struct {
			Base      *string
			Bases     []string
			Processes []struct {
				Base  *string
				Bases []string
			}
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || errOut != "" {
			t.Fatalf("exit %d, %v, %s", code, err, errOut)
		}
		one := got.Base != nil && got.Processes[0].Base != nil && *got.Base == a
		if !slices.Equal(got.Bases, bases) || !slices.Equal(got.Processes[0].Bases, bases) || one != (len(bases) == 1) {
			t.Errorf("%q: %+v", bases, got)
		}
	}
}

// With --explain, the lines of the text output are derived from the looks in
// the JSON output.
func TestReplayExplains(t *testing.T) {
	leak := recording(t, "leak.csv", 200, 4000, true)
	code, out, errOut := typed(t, nil, "replay", leak, "--explain", "--json")
	if code != 0 || errOut != "" {
		t.Fatalf("exit %d, %s", code, errOut)
	}
	all, fired := 0, 0
	for _, l := range replayed(t, out)["looks"].([]any) {
		if look := l.(map[string]any); look["series"] == "memory" {
			all++
			if look["fired"] == true {
				fired++
			}
		}
	}
	code, out, errOut = typed(t, nil, "replay", leak, "--explain")
	if want := fmt.Sprintf("  looks    memory: %d, %d fire", all, fired); fired < 3 || code != 0 || errOut != "" ||
		!strings.Contains(out, want) {
		t.Errorf("exit %d, no %q in\n%s%s", code, want, out, errOut)
	}
}
