package replay

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/reporters/record"
)

var updateTraces = flag.Bool("update", false, "write the results into docs/detector.md")

// trace is a row of the list that comes with the recorded traces. The list
// records what a careful reader concluded from the floors of each trace before
// any policy judged it.
type trace struct{ file, what, length, label, server string }

var traceRow = regexp.MustCompile(
	`(?m)^\| (android_monkey_\d+\.csv|llm\w+\.csv) \| ([^|]*) \| ([^|,]*)[^|]*\|[^|]*\| ([^|]*) \| ([^|]*) \|`)

func traces(t *testing.T) []trace {
	var out []trace
	for _, m := range traceRow.FindAllStringSubmatch(string(recorded.Read(t, "traces", "MANIFEST.md")), -1) {
		out = append(out, trace{m[1], m[2], m[3], strings.TrimSpace(m[4]), strings.TrimSpace(m[5])})
	}
	if len(out) < 30 {
		t.Fatalf("%d traces", len(out))
	}
	return out
}

func judgedTrace(t *testing.T, file, column string, policy detector.Policy) record.ReplayProcess {
	t.Helper()
	r, err := Run(t.Context(), []string{recorded.Path(t, "traces", file)}, Options{Policy: policy, Column: column})
	if err != nil || len(r.Processes) != 1 {
		t.Fatalf("%s: %d processes, %v", file, len(r.Processes), err)
	}
	return r.Processes[0]
}

// TestTraceVerdicts checks that a leak is reported for each trace that must
// have one, that none is reported for a trace without sustained growth, and
// that docs/detector.md contains the results.
func TestTraceVerdicts(t *testing.T) {
	var table strings.Builder
	table.WriteString("| run | length | by its floors | `robust` | rate, MB/h | detectable | `article` | " +
		"system_server, `robust` |\n|---|---|---|---|---|---|---|---|\n")
	falls := map[string]int{}
	for _, x := range traces(t) {
		android := strings.HasPrefix(x.file, "android")
		column := "used_mem_kb"
		if android {
			column = "app_pss_kb"
		}
		p := judgedTrace(t, x.file, column, detector.RobustPolicy())
		a := judgedTrace(t, x.file, column, detector.ArticlePolicy())
		sustained := x.label == "sustained growth"
		if p.Gate == "leak" && !sustained {
			t.Errorf("%s (%s) is a leak: %s", x.file, x.label, p.Reason)
		}
		if must := x.file == "android_monkey_44.csv" || !android && sustained; must && p.Gate != "leak" {
			t.Errorf("%s is %s: %s", x.file, p.Gate, p.Reason)
		}
		if !sustained {
			falls[string(p.Gate)]++
			falls["article "+string(a.Gate)]++
		}
		server := ""
		if android {
			s := judgedTrace(t, x.file, "system_server_pss_kb", detector.RobustPolicy())
			if s.Gate == "leak" || s.Worst == detector.Leaking {
				t.Errorf("system_server of %s: %s, %s", x.file, s.Gate, s.Worst)
			}
			server = string(s.Gate)
		}
		said := string(p.Gate)
		if p.Worst != detector.Normal {
			said += ", was " + p.Worst.String()
		}
		if n := len(p.Jumps); n > 0 {
			said += fmt.Sprintf(", jumps: %d", n)
		}
		what := strings.TrimSpace(strings.Trim(strings.TrimSuffix(x.what, ", whole-machine used memory"), "? "))
		fmt.Fprintf(&table, "| %s %s | %s | %s | %s | %.1f (%.1f to %.1f) | %.0f | %s | %s |\n",
			strings.TrimSuffix(x.file, ".csv"), what, x.length, x.label, said,
			*p.Rate, p.RateInterval[0], p.RateInterval[1], *p.MinDetectable, a.Gate, server)
	}
	fmt.Fprintf(&table, "\nOf the %d runs without sustained growth, `article` reports %d as leaks, and `robust` %d.\n",
		falls["article leak"]+falls["article pass"]+falls["article settled"]+falls["article inconclusive"],
		falls["article leak"], falls["leak"])
	table.WriteString("\n" + telescope(t))
	comparePage(t, table.String())
}

// telescope judges the processes of a telescope's control system, which have
// large steps and plateaus within minutes but do not leak.
func telescope(t *testing.T) string {
	const file = "eso_tdcstst.csv"
	r, err := Run(t.Context(), []string{recorded.Path(t, "traces", file)},
		Options{Policy: detector.RobustPolicy(), Column: "vsz_kb"})
	if err != nil {
		t.Fatal(err)
	}
	gates, longest := map[string]int{}, 0.0
	for _, p := range r.Processes {
		gates[string(p.Gate)]++
		longest = max(longest, p.Duration)
		if p.Gate == "leak" || p.Worst == detector.Leaking {
			t.Errorf("%s of %s: %s, %s", p.Process.Process, file, p.Gate, p.Reason)
		}
	}
	return fmt.Sprintf("%s, %d processes of a telescope's control system during tests of at most %.1f h:\n`pass` %d, "+
		"`settled` %d, `inconclusive` %d, `leak` %d.\n",
		strings.TrimSuffix(file, ".csv"), len(r.Processes), longest/3600, gates["pass"], gates["settled"],
		gates["inconclusive"], gates["leak"])
}

func comparePage(t *testing.T, table string) {
	const path = "../../../docs/detector.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), "<!-- traces -->\n")
	_, tail, ok2 := strings.Cut(rest, "<!-- /traces -->")
	if !ok || !ok2 {
		t.Fatal("docs/detector.md has no markers for the table of traces")
	}
	want := head + "<!-- traces -->\n" + table + "<!-- /traces -->" + tail
	if want == string(page) {
		return
	}
	if !*updateTraces {
		t.Fatalf("docs/detector.md has a different table of the traces: go test ./internal/harness/replay -run "+
			"TestTraceVerdicts -update writes\n%s", table)
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
