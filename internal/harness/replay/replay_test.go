package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/reporters/record"
)

var article = Options{Policy: detector.ArticlePolicy()}

// said returns what replay prints for one input.
func said(t *testing.T, text string, o Options) (record.Replay, error) {
	t.Helper()
	o.Stdin = strings.NewReader(text)
	return Run(t.Context(), []string{"-"}, o)
}

func mustSay(t *testing.T, text string, o Options) record.Replay {
	t.Helper()
	r, err := said(t, text, o)
	if err != nil {
		t.Fatalf("%v in %.200q", err, text)
	}
	return r
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// fed returns, as text, what the detectors of a table received. The text can be
// compared with the table by eye.
func fed(t *testing.T, text string, o Options) []string {
	t.Helper()
	var out []string
	for _, p := range mustSay(t, text, o).Processes {
		line := fmt.Sprintf("%s: %d samples, %d breakdowns, %d restarts, %d gaps, %d marks, %gs", p.Process.Process,
			p.Samples, p.Details, p.Restarts, p.Gaps, p.Marks, p.Duration)
		if p.LastMB != nil {
			line += fmt.Sprintf(", last %g MB by %s", *p.LastMB, p.Source)
		}
		out = append(append(out, line), p.Warnings[:len(p.Warnings):len(p.Warnings)]...)
	}
	return out
}

func TestTables(t *testing.T) {
	silent := article
	silent.Policy = detector.RobustPolicy()
	column := func(name string) Options {
		o := silent
		o.Column = name
		return o
	}
	for name, c := range map[string]struct {
		text string
		o    Options
		want []string
	}{
		"one process": {
			"t_s,pss_kb\n0,1024\n30,2048\n", silent,
			[]string{"app: 2 samples, 0 breakdowns, 0 restarts, 0 gaps, 0 marks, 30s, last 2 MB by pss_kb"},
		},
		"spreadsheet export": {
			"\xef\xbb\xbfT_S; Process ;pss_kb\r\n0;\"a;b\";1024\r\n\r\n30.5;\"a;b\";3072\r\n", silent,
			[]string{"a;b: 2 samples, 0 breakdowns, 0 restarts, 0 gaps, 0 marks, 30.5s, last 3 MB by pss_kb"}},
		"swap included": {"t_s\tpss_kb\tswap_pss_kb\n0\t1024\t1024\n30\t1024\t\n60\t1024\t3072", silent,
			[]string{"app: 3 samples, 0 breakdowns, 0 restarts, 0 gaps, 0 marks, 60s, last 4 MB by pss_kb"}},
		"other column, with swap": {"t_s,used,swap_pss_kb\n0,1024,1024\n", column("used"),
			[]string{"app: 1 samples, 0 breakdowns, 0 restarts, 0 gaps, 0 marks, 0s, last 2 MB by used"}},
		"part of the memory": {
			"t_s,pss_kb,swap_pss_kb,java_heap_kb\n0,1024,1024,512\n", column("java_heap_kb"),
			[]string{"app: 1 samples, 0 breakdowns, 0 restarts, 0 gaps, 0 marks, 0s, last 0.5 MB by java_heap_kb"}},
		"dumpsys alone: driver memory is not in the sample": {
			"t_s,total_pss_kb,egl_mtrack_kb,swap_pss_kb\n0,4096,1024,7\n30,4096,,7\n", silent,
			[]string{"app: 2 samples, 2 breakdowns, 0 restarts, 0 gaps, 0 marks, 30s, last 4 MB by total_pss_kb"}},
		"alternating samples and breakdowns": {
			"t_s,pss_kb,total_pss_kb,native_heap_kb\n0,1024,,\n0,,2048,100\n30,1024,,\n30,,2048,100\n", silent,
			[]string{"app: 2 samples, 2 breakdowns, 0 restarts, 0 gaps, 0 marks, 30s, last 1 MB by pss_kb"}},
		"restarts by pid and start time": {
			"t_s,process,pid,start,pss_kb\n0,a,1,5,1024\n30,a,1,5,1024\n60,a,2,9,1024\n" +
				"90,a,2,10,1024\n120,a,,,1024\n150,a,2,10,1024\n", silent,
			[]string{"a: 6 samples, 0 breakdowns, 2 restarts, 0 gaps, 0 marks, 150s, last 1 MB by pss_kb"}},
		"two processes with one name, interleaved": {
			"t_s,process,pid,pss_kb\n0,a,1,1024\n0,a,2,2048\n30,a,1,1024\n30,a,2,2048\n60,a,1,1024\n", silent,
			[]string{
				"a: 3 samples, 0 breakdowns, 0 restarts, 0 gaps, 0 marks, 60s, last 1 MB by pss_kb",
				"a: 2 samples, 0 breakdowns, 0 restarts, 0 gaps, 0 marks, 30s, last 2 MB by pss_kb",
			}},
		"two processes with one name, one after the other": {
			"t_s,process,pid,pss_kb\n0,a,1,1024\n30,a,1,1024\n0,a,2,2048\n30,a,2,2048\n", silent,
			[]string{
				"a: 2 samples, 0 breakdowns, 0 restarts, 0 gaps, 0 marks, 30s, last 1 MB by pss_kb",
				"a: 2 samples, 0 breakdowns, 0 restarts, 0 gaps, 0 marks, 30s, last 2 MB by pss_kb",
			}},
		"gap": {"t_s,pss_kb\n0,1024\n60,1024\n120,1024\n180,1024\n240,1024\n421,1024\n481,1024\n", silent,
			[]string{"app: 7 samples, 0 breakdowns, 0 restarts, 1 gaps, 0 marks, 481s, last 1 MB by pss_kb"}},
		"just below a gap": {"t_s,pss_kb\n0,1024\n60,1024\n120,1024\n180,1024\n240,1024\n420,1024\n", silent,
			[]string{"app: 6 samples, 0 breakdowns, 0 restarts, 0 gaps, 0 marks, 420s, last 1 MB by pss_kb"}},
		"marks": {"t_s,pss_kb,mark\n0,1024,loop 1\n15,,gc\n30,1024,\n60,1024,loop 2\n", silent,
			[]string{"app: 3 samples, 0 breakdowns, 0 restarts, 0 gaps, 3 marks, 60s, last 1 MB by pss_kb"}},
		"unusable values": {
			"t_s,pss_kb,code_kb\n0,1024\n30,\n60,NaN\n90,-1\n120,x\n150,1e18\n" +
				"180,inf\n-1,5\nnoon,5\n1e12,5\n0,5\n210,0\n240,5,6,7\n270,\"5\"6\n300,1024,x\n", silent, []string{
				"app: 2 samples, 0 breakdowns, 0 restarts, 0 gaps, 0 marks, 300s, last 1 MB by pss_kb",
				`line 3: no value in "pss_kb"`, `line 4: no value in "pss_kb"`,
				`line 5: "pss_kb": "-1" is negative; the row is skipped`,
				`line 6: "pss_kb": "x" is not a number; the row is skipped`,
				`line 7: "pss_kb": "1e18" kB is more than any process has; the row is skipped`,
				`line 8: "pss_kb": "inf" kB is more than any process has; the row is skipped`,
				`line 12: t_s 0 is not after 0; the row is skipped`,
				`line 13: "pss_kb": 0 kB is not plausible for a running process; the row is skipped`,
				`line 16: code_kb: "x" is not a number`,
			}},
	} {
		if got := fed(t, c.text, c.o); !slices.Equal(onlyOurs(got), c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	r := mustSay(t, "t_s,process,pss_kb\n0,a,5\n1,,5\n2,a,5,5\n3,a,\"5\"6\n-1,a,5\nnoon,a,5\n1e12,a,5\n", silent)
	if want := []string{
		`-: line 3: no name in column process; the row is skipped`,
		`-: line 4: 4 cells, but 3 in the header; the row is skipped`,
		`-: line 5: extraneous or missing " in quoted-field; the row is skipped`,
		`-: line 6: t_s: "-1" is negative; the row is skipped`,
		`-: line 7: t_s: "noon" is not a number; the row is skipped`,
		`-: line 8: t_s: "1e12" is too large; are these seconds?; the row is skipped`,
	}; !slices.Equal(r.Warnings, want) {
		t.Errorf("warnings %q", r.Warnings)
	}
}

// onlyOurs returns the lines without the warnings of the detector.
func onlyOurs(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
		return !strings.HasPrefix(l, "line ") && !strings.Contains(l, " samples, ")
	})
}

func TestErrors(t *testing.T) {
	robust := Options{Policy: detector.RobustPolicy()}
	header := lineHeader
	named := robust
	named.Column = "pss"
	for name, c := range map[string]struct {
		text string
		o    Options
		want []string
	}{
		"nothing":     {"", robust, []string{"read -", "is empty", "t_s,pss_kb"}},
		"blank lines": {"\n\n", robust, []string{"header", "t_s,pss_kb"}},
		"no time": {
			"time,pss_kb\n1,2\n", robust, []string{"line 1", "no column t_s", `"time", "pss_kb"`},
		},
		"no value": {
			"t_s,app\n1,2\n", robust, []string{"no column pss_kb or total_pss_kb", "--column", `"app"`},
		},
		"no such column":   {"t_s,pss_kb\n1,2\n", named, []string{`no column "pss"`, `"pss_kb"`}},
		"duplicate column": {"t_s,pss_kb,pss_kb\n1,2,3\n", robust, []string{"duplicate column"}},
		"only a header":    {"t_s,pss_kb\n", robust, []string{"no usable number", "no row below the header"}},
		"no number": {
			"t_s,pss_kb\n0,x\n30,\n", robust,
			[]string{"no usable number", "of 2 rows", `line 2: "pss_kb": "x" is not a number`, "--column"},
		},
		"endless row": {
			"t_s,pss_kb\n0,5\n30," + strings.Repeat("1", 66<<20), robust, []string{"line 3", "longer than"},
		},
		"gzip":   {"\x1f\x8b\x08", robust, []string{"gunzip -c - | leakgate replay -"}},
		"UTF-16": {"\xff\xfet\x00", robust, []string{"UTF-8"}},
		"other JSON": {
			`{"schema":"leakgate.run/1"}` + "\n", robust, []string{"it is run.json", "leakgate report"},
		},
		"half a header":       {header[:40], robust, []string{"read samples header", "samples.ndjson"}},
		"run without samples": {header, robust, []string{"no usable number: no line holds a sample"}},
		"endless line": {
			header + strings.Repeat(" ", 1<<20), robust, []string{"line 2 of samples.ndjson is truncated"},
		},
	} {
		_, err := said(t, c.text, c.o)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: no %q in %v", name, want, err)
			}
		}
	}
	against := article
	against.Bases = []string{"base.csv"}
	if _, err := said(t, "t_s,pss_kb\n0,1\n", against); err == nil || !strings.Contains(err.Error(), `"robust"`) {
		t.Errorf("got error %v for a base with policy article, want one that names policy robust", err)
	}
	if _, err := Run(t.Context(), []string{"-", "-"}, robust); err == nil ||
		!strings.Contains(err.Error(), "only one recording") {
		t.Errorf("standard input twice: %v", err)
	}
	if _, err := Run(t.Context(), []string{t.TempDir()}, robust); err == nil ||
		!strings.Contains(err.Error(), "is not a run directory: it has no samples.ndjson") {
		t.Errorf("an empty directory: %v", err)
	}
}

// judgedAlike reports whether two processes got the same verdict, regardless of
// where they were recorded.
func judgedAlike(a, b record.ReplayProcess) bool {
	for _, p := range []*record.ReplayProcess{&a, &b} {
		p.File, p.Device, p.Source, p.PID = "", "", "", 0
		p.Process.Process, p.Base, p.Bases = "", nil, nil
		p.Alive = 0 // a run records when the process was found; a table does not
	}
	return reflect.DeepEqual(a, b)
}

// rowsOf generates a leak with noise, a restart, a gap and marks, both as rows
// of a table and as lines of a run whose clock began at another time.
func rowsOf(r *rand.Rand, process string, pid int) (table, ndjson []string) {
	line := func(format string, args ...any) { ndjson = append(ndjson, fmt.Sprintf(format, args...)) }
	name := fmt.Sprintf(`"device":"S1","user":0,"process":%q`, process)
	line(`{"t_s":5,"up_s":105,%s,"pid":%d,"start":1,"source":"smaps_rollup","event":"found"}`, name, pid)
	slope := r.IntN(800)
	for i := range 400 {
		at := float64(i)*30 + float64(i%3)/4
		if i > 250 {
			at += 4000
		}
		kb, swap, native := 100_000+i*slope+r.IntN(3000), r.IntN(500), 30_000+i*slope+r.IntN(1000)
		t, up := at+12.5, at+112.5
		switch i {
		case 120:
			pid += 10_000
			line(`{"t_s":%g,"up_s":%g,%s,"pid":%d,"start":2,"source":"smaps_rollup","event":"restart"}`, t, up, name,
				pid)
		case 251:
			line(`{"t_s":%g,"up_s":%g,%s,"event":"gap","duration_s":4030.25}`, t, up, name)
		}
		detail := ","
		if i%4 == 0 {
			line(`{"t_s":%g,"up_s":%g,%s,"pid":%d,"start":2,"source":"dumpsys","breakdown":{"native_heap_kb":%d,"egl_mtrack_kb":%d}}`, t, up, name, pid, native, native/10)
			detail = fmt.Sprintf("%d,%d", native, native/10)
		}
		line(`{"t_s":%g,"up_s":%g,%s,"pid":%d,"start":2,"source":"smaps_rollup","pss_kb":%d,"swap_pss_kb":%d,"rss_anon_kb":7,"swap_kb":null,"threads":3,"cost_ms":1.5}`, t, up, name, pid, kb, swap)
		table = append(table, fmt.Sprintf("%g,%s,%d,%d,%d,%s", up, process, pid, kb, swap, detail))
	}
	return table, ndjson
}

const rowHeader = "t_s,process,pid,pss_kb,swap_pss_kb,native_heap_kb,egl_mtrack_kb\n"

const lineHeader = `{"schema":"leakgate.samples/1","started":"2026-01-02T03:04:05Z","devices":[{"device":"S1","model":"m","api":34,"started_up_s":100,"time_scale":1}],` + articlePlan + "}\n"

const articlePlan = `"plan":{"tool":"t","policy":"article","revision":1,"intervals":{"normal_s":30,"suspicious_s":15,"leaking_s":60},"cooldown_s":1800,"max_gap_s":1800,"assert":"end","strict":false,"processes":["*"],"workload":null}`

// Under each policy, the same recording gets the same verdicts, whether it is
// one long table, several tables, or a run.
func TestLongTableSeparateTablesAndRunAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	var tables, lines [][]string
	for i := range 5 {
		table, ndjson := rowsOf(r, fmt.Sprintf("com.shop:p%d", i), 100+i)
		tables, lines = append(tables, table), append(lines, ndjson)
	}
	var files []string
	for i, rows := range tables {
		files = append(files, write(t, fmt.Sprintf("p%d.csv", i), rowHeader+strings.Join(rows, "\n")))
	}
	long := rowHeader + strings.Join(merged(r, tables), "\n") + "\n"
	run := lineHeader + strings.Join(merged(r, lines), "\n") + "\n"
	for _, policy := range []detector.Policy{detector.ArticlePolicy(), detector.RobustPolicy()} {
		o, steps := Options{Policy: policy}, 0
		want, err := Run(t.Context(), files, o)
		if err != nil {
			t.Fatal(err)
		}
		byName := map[string]record.ReplayProcess{}
		for _, p := range want.Processes {
			byName[p.Process.Process] = p
			steps += len(p.Transitions)
		}
		if steps == 0 {
			t.Errorf("%s: no transition, so the test compares nothing", policy.Name)
		}
		for form, text := range map[string]string{"long table": long, "run": run} {
			got := mustSay(t, text, o)
			if len(got.Processes) != len(tables) || len(got.Warnings) > 0 {
				t.Fatalf("%s: %d processes, %q", form, len(got.Processes), got.Warnings)
			}
			for _, p := range got.Processes {
				if p.Samples != 400 || p.Restarts != 1 || p.Gaps != 1 || p.Details != 100 {
					t.Errorf("%s: %+v", form, p)
				}
				if !judgedAlike(p, byName[p.Process.Process]) {
					t.Errorf("%s, %s:\n%.600s\nalone\n%.600s", policy.Name, form, fmt.Sprintf("%+v", p),
						fmt.Sprintf("%+v", byName[p.Process.Process]))
				}
			}
		}
	}
}

// merged interleaves lists at random, but preserves the order within each list.
func merged(r *rand.Rand, lists [][]string) []string {
	left := slices.Clone(lists)
	var out []string
	for len(left) > 0 {
		i := r.IntN(len(left))
		n := min(len(left[i]), 1+r.IntN(5))
		out = append(out, left[i][:n]...)
		if left[i] = left[i][n:]; len(left[i]) == 0 {
			left = slices.Delete(left, i, i+1)
		}
	}
	return out
}

// A killed run has an incomplete last line. A bad line in the middle is skipped
// and reported.
func TestRunWithBadLines(t *testing.T) {
	_, lines := rowsOf(rand.New(rand.NewPCG(1, 1)), "a", 7)
	text := lineHeader + strings.Join(lines[:50], "\n") + "\nnonsense\n" +
		strings.Replace(lines[50], `"S1"`, `"S2"`, 1) + "\n\n" + strings.Join(lines[51:], "\n") + "\n" + lines[60] +
		"\n" + lines[0][:30]
	r := mustSay(t, text, article)
	want := []string{
		"-: line 52 of samples.ndjson cannot be read: invalid character 'o' in literal null (expecting 'u'); " +
			"skipped, and no trend crosses it",
		`-: line 53 of samples.ndjson cannot be read: device "S2" is not in the header; skipped, and no trend crosses it`,
		fmt.Sprintf("-: line %d of samples.ndjson is truncated, skipped", len(lines)+5),
	}
	if !slices.Equal(r.Warnings, want) || len(r.Processes) != 1 || r.Processes[0].Samples != 400 {
		t.Errorf("%q, %+v", r.Warnings, r.Processes)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, record.SamplesName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := Run(t.Context(), []string{dir}, article)
	if err != nil || !judgedAlike(again.Processes[0], r.Processes[0]) {
		t.Errorf("as a directory: %v %+v", err, again.Processes)
	}
}

// The constants of a run's policy are used if that policy was requested.
func TestPolicyOfTheRun(t *testing.T) {
	_, lines := rowsOf(rand.New(rand.NewPCG(1, 1)), "a", 7)
	plain := lineHeader + strings.Join(lines, "\n") + "\n"
	robust := Options{Policy: detector.RobustPolicy()}
	// With this max_gap_s, the gap of 4000 s causes no warning.
	crossed := strings.NewReplacer(`"article"`, `"robust"`, `"max_gap_s":1800`, `"max_gap_s":7200`).Replace(plain)
	const gap = "nothing was measured for more than"
	if a, b := mustSay(t, plain, robust),
		mustSay(t, crossed, robust); !strings.Contains(strings.Join(a.Processes[0].Warnings, "\n"), gap) ||
		strings.Contains(strings.Join(b.Processes[0].Warnings, "\n"), gap) {
		t.Errorf("got warnings %q, want a gap; got warnings %q with the longer max_gap_s, want no gap",
			a.Processes[0].Warnings, b.Processes[0].Warnings)
	}
	unknown := strings.Replace(plain, `"article"`, `"later"`, 1)
	if r := mustSay(t, unknown, article); len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], `policy "later"`) ||
		!strings.HasSuffix(r.Warnings[0], "judged with the defaults of policy article") {
		t.Errorf("%q", r.Warnings)
	}
}

func TestBounds(t *testing.T) {
	var b strings.Builder
	b.WriteString("t_s,process,pss_kb\n")
	for i := range ledger.MaxProcesses + 30 {
		fmt.Fprintf(&b, "1,p%d,5\n2,p0,x\n", i)
	}
	r := mustSay(t, b.String(), article)
	if len(r.Processes) != ledger.MaxProcesses || len(r.Warnings) != maxProblems+1 ||
		!strings.HasSuffix(r.Warnings[maxProblems], ": 10 more rows are skipped") {
		t.Errorf("%d processes, %d warnings %q", len(r.Processes), len(r.Warnings), r.Warnings[len(r.Warnings)-1])
	}
	p := r.Processes[0]
	if ours := onlyOurs(p.Warnings); len(ours) != maxProblems ||
		!slices.Contains(p.Warnings, "10010 more rows are skipped") {
		t.Errorf("%d warnings", len(ours))
	}
	b.Reset()
	b.WriteString(lineHeader)
	for i := range ledger.MaxProcesses + 30 {
		fmt.Fprintf(&b, `{"t_s":1,"up_s":2,"device":"S1","process":"p%d","source":"smaps","pss_kb":5}`+"\n", i)
	}
	want := fmt.Sprintf("-: more than %d processes: 30 lines of the remaining processes are skipped",
		ledger.MaxProcesses)
	if r := mustSay(t, b.String(), article); len(r.Processes) != ledger.MaxProcesses || len(r.Warnings) != 1 ||
		r.Warnings[0] != want {
		t.Errorf("a run: %d processes, %q", len(r.Processes), r.Warnings)
	}
}

// A base is matched by the name of the process; a process that is not in the
// base is judged alone.
func TestBase(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	a, _ := rowsOf(r, "a", 1)
	b, _ := rowsOf(r, "b", 2)
	old, _ := rowsOf(r, "a", 50)
	base := write(t, "base.csv", rowHeader+strings.Join(old, "\n"))
	o := Options{Policy: detector.RobustPolicy(), Bases: []string{base}}
	got := mustSay(t, rowHeader+strings.Join(a, "\n")+"\n"+strings.Join(b, "\n")+"\n", o)
	if got.Base != base || len(got.Processes) != 2 {
		t.Fatalf("%+v", got)
	}
	if p := got.Processes[0]; p.Base == nil || *p.Base != base {
		t.Errorf("a: %+v", p)
	}
	if p := got.Processes[1]; p.Base != nil ||
		!slices.Contains(p.Warnings, base+" does not have a process of this name; no comparison was made") {
		t.Errorf("b: %+v", p)
	}
}

// If there are several bases, only the bases that contain the process are used.
func TestBases(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	file := func(name string, processes ...string) string {
		text := rowHeader
		for i, p := range processes {
			rows, _ := rowsOf(r, p, 50+i)
			text += strings.Join(rows, "\n") + "\n"
		}
		return write(t, name, text)
	}
	first, second, third := file("1.csv", "a", "b"), file("2.csv", "a"), file("3.csv", "a", "b")
	head := file("head.csv", "a", "b", "c")
	got, err := Run(t.Context(), []string{head},
		Options{Policy: detector.RobustPolicy(), Bases: []string{first, second, third}})
	if err != nil {
		t.Fatal(err)
	}
	if got.Base != "" || !slices.Equal(got.Bases, []string{first, second, third}) {
		t.Errorf("base %q of %q", got.Base, got.Bases)
	}
	for i, want := range []struct {
		bases   []string
		warning string
	}{
		{[]string{first, second, third}, ""},
		{
			[]string{first, third},
			second + " does not have a process of this name; the comparison ignores this recording",
		},
		{nil, "none of 3 base recordings has a process of this name; no comparison was made"},
	} {
		p := got.Processes[i]
		if p.Base != nil || !slices.Equal(p.Bases, want.bases) || want.warning != "" &&
			!slices.Contains(p.Warnings, want.warning) {
			t.Errorf("%s: %v %q %q", p.Process.Process, p.Base, p.Bases, p.Warnings)
		}
	}
	if _, err := Run(t.Context(), []string{head},
		Options{Policy: detector.RobustPolicy(), Bases: []string{"-", "-"}}); err == nil ||
		!strings.Contains(err.Error(), "only one recording") {
		t.Errorf("standard input twice: %v", err)
	}
	if _, err := Run(t.Context(), []string{head},
		Options{Policy: detector.RobustPolicy(), Bases: []string{first, head + ".none"}}); err == nil {
		t.Error("a missing base recording is accepted")
	}
}

// The verdict is about the difference between the runs. A cache that fills in
// both runs is not a leak. A leak that only one run has is found, even if that
// run alone would not show the leak.
func TestBaseDecides(t *testing.T) {
	series := func(seed uint64, cache, leak float64) string {
		r := rand.New(rand.NewPCG(seed, 2))
		var b strings.Builder
		b.WriteString("t_s,process,pss_kb\n")
		for i := range 361 {
			hours := float64(i) / 120
			fmt.Fprintf(&b, "%d,a,%.0f\n", i*30, 1024*(200+cache*min(1, hours/2.5)+leak*hours+4*r.NormFloat64()))
		}
		return b.String()
	}
	base := write(t, "base.csv", series(1, 150, 0))
	for name, c := range map[string]struct {
		cache, leak float64
		gate        string
	}{"same cache": {150, 0, "pass"}, "same cache and a leak": {150, 60, "leak"}, "no cache": {0, 0, "pass"}} {
		text := series(2, c.cache, c.leak)
		alone := mustSay(t, text, Options{Policy: detector.RobustPolicy()}).Processes[0]
		p := mustSay(t, text, Options{Policy: detector.RobustPolicy(), Bases: []string{base}}).Processes[0]
		if string(p.Gate) != c.gate || p.Base == nil || *p.Base != base || p.Reason == alone.Reason ||
			p.State != alone.State || p.Worst != alone.Worst {
			t.Errorf("%s: %s, %s; alone %s, %s", name, p.Gate, p.Reason, alone.Gate, alone.Reason)
		}
		if want := c.leak + (c.cache-150)/3; p.Rate == nil || math.Abs(*p.Rate-want) > 15 {
			t.Errorf("%s: %v MB/h more than the base, want about %g", name, *p.Rate, want)
		}
	}
}

// Every recorded trace is judged, and the number of its samples equals a manual
// count.
func TestTraces(t *testing.T) {
	entries, err := os.ReadDir(recorded.Path(t, "traces"))
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".csv") {
			continue
		}
		column, at := "app_pss_kb", 1
		switch {
		case strings.HasPrefix(name, "llm"):
			column = "used_mem_kb"
		case strings.HasPrefix(name, "eso"):
			column, at = "vsz_kb", 3
		}
		samples := 0
		for i, line := range strings.Split(strings.TrimSpace(string(recorded.Read(t, "traces", name))), "\n") {
			if i > 0 && strings.Split(strings.TrimSpace(line), ",")[at] != "0" {
				samples++
			}
		}
		for _, policy := range []detector.Policy{detector.ArticlePolicy(), detector.RobustPolicy()} {
			r, err := Run(t.Context(), []string{recorded.Path(t, "traces", name)},
				Options{Policy: policy, Column: column})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			used := 0
			for _, p := range r.Processes {
				used += p.Samples
			}
			if used != samples || len(r.Warnings) != 0 {
				t.Errorf("%s: used %d of %d samples, %q", name, used, samples, r.Warnings)
			}
		}
		files++
	}
	if files < 30 {
		t.Errorf("%d traces", files)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	endless := iotest.OneByteReader(
		io.MultiReader(strings.NewReader("t_s,pss_kb\n"), readFunc(func(p []byte) (int, error) {
			cancel()
			return copy(p, "1,2\n"), nil
		})))
	if _, err := Run(ctx, []string{"-"}, Options{Policy: detector.RobustPolicy(), Stdin: endless}); !errors.Is(err,
		context.Canceled) {
		t.Error(err)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// The number of looks is bounded, and the result reports how many were skipped.
func TestLooksAreBounded(t *testing.T) {
	var l looks
	for i := range maxLooks + 7 {
		l.add(float64(i), detector.Look{Series: "total", Window: 90 * time.Minute, Fired: i == 3, Text: "because"})
	}
	if want := (record.ReplayLook{T: 3, Series: "total", Window: 5400, Fired: true, Text: "because"}); len(
		l.kept) != maxLooks || l.kept[3] != want {
		t.Errorf("%d looks, %+v", len(l.kept), l.kept[3])
	}
	if got := l.skippedText(); !slices.Equal(got, []string{"7 later looks are skipped"}) {
		t.Errorf("%q", got)
	}
}

// Looks are kept only on request, with times relative to the start of the
// process. The request has no other effect.
func TestExplain(t *testing.T) {
	table, lines := rowsOf(rand.New(rand.NewPCG(4, 4)), "a", 7)
	for form, text := range map[string]string{
		"table": rowHeader + strings.Join(table, "\n"), "run": lineHeader + strings.Join(lines, "\n") + "\n",
	} {
		o := Options{Policy: detector.RobustPolicy()}
		plain := mustSay(t, text, o).Processes[0]
		o.Explain = true
		p := mustSay(t, text, o).Processes[0]
		last := 0.0
		if len(p.Looks) < 30 { // one every 5 min, in 3.3 hours with a break
			t.Errorf("%s: %d looks", form, len(p.Looks))
		}
		for _, l := range p.Looks {
			if l.T < last || l.T > p.Duration || l.Series == "" || l.Text == "" {
				t.Errorf("%s: %+v after %g s", form, l, last)
			}
			last = l.T
		}
		if p.Looks = nil; plain.Looks != nil || !judgedAlike(p, plain) {
			t.Errorf("%s: %+v, with --explain %+v", form, plain, p)
		}
	}
}

// The usual spacing is the median of the latest spacings.
func TestSpacing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h spacing
	var all []time.Duration
	for i := range 1000 {
		step := time.Duration(1+r.IntN(100)) * time.Second
		h.add(step)
		if all = append(all, step); i >= len(h.recent) && len(all)%len(h.recent) != 0 {
			continue // checked in blocks
		}
		latest := slices.Sorted(slices.Values(all[max(0, len(all)-len(h.recent)):]))
		if want := latest[len(latest)/2]; h.usual != want {
			t.Fatalf("after %d: %v, want %v", len(all), h.usual, want)
		}
	}
}

// For any table the result is an error, or verdicts of bounded size that JSON
// can represent. The result does not depend on the sizes of the pieces in which
// the table arrives.
func FuzzTable(f *testing.F) {
	for _, text := range []string{
		"t_s,pss_kb\n0,1024\n30,2048\n",
		"t_s,process,pid,start,pss_kb,swap_pss_kb,mark\n0,a,1,2,5,6,loop 1\n30,a,2,2,5,,\n30,b,2,2,5,,gc\n",
		"t_s;total_pss_kb;egl_mtrack_kb\r\n0;5;6\r\n30;\"7\";x\r\n",
		"t_s,pss_kb\n0,\"1024\n30,2048\n", "\xef\xbb\xbft_s,pss_kb\n1e9,NaN\n4e9,1e9\n",
	} {
		f.Add(text, uint8(3))
	}
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		if strings.HasPrefix(strings.TrimPrefix(text, "\xef\xbb\xbf"), "{") {
			return // not a table
		}
		r, failure := inPieces(t, text, size)
		samples := 0
		for _, p := range r.Processes {
			samples += p.Samples
			if len(p.Warnings) > maxProblems+20 || math.IsNaN(p.Duration) || p.Duration < 0 || p.LastMB != nil &&
				(*p.LastMB < 0 || *p.LastMB > 2<<30) {
				t.Errorf("%+v", p)
			}
		}
		if failure == "<nil>" && (samples == 0 || samples > strings.Count(text, "\n")+strings.Count(text, "\r")) ||
			len(r.Warnings) > maxProblems+1 {
			t.Errorf("%d samples, %d warnings", samples, len(r.Warnings))
		}
	})
}

// inPieces judges an input as a whole and in pieces, and checks that both
// results are equal. It returns the result.
func inPieces(t *testing.T, text string, size uint8) (record.Replay, string) {
	t.Helper()
	run := func(in io.Reader) (record.Replay, string) {
		r, err := Run(t.Context(), []string{"-"}, Options{Policy: detector.ArticlePolicy(), Stdin: in})
		return r, fmt.Sprint(err)
	}
	r, failure := run(strings.NewReader(text))
	again, also := run(&pieces{text: []byte(text), size: int(size) + 1})
	if failure != also || !reflect.DeepEqual(r, again) {
		t.Fatalf("read at once: %s\n%+v\nread in pieces: %s\n%+v", failure, r, also, again)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Fatal(err)
	}
	return r, failure
}

// For any lines of a run the result is an error, or verdicts that JSON can
// represent.
func FuzzRun(f *testing.F) {
	for _, lines := range []string{
		`{"t_s":1,"up_s":2,"device":"S1","user":0,"process":"x","pid":1,"start":2,"source":"smaps_rollup","pss_kb":5}` +
			"\n" + `{"event":"mark","device":"S1","text":"loop 1"}`,
		`{"t_s":1,"up_s":2,"device":"S1","event":"found","process":"x","source":"dumpsys"}` + "\n" +
			`{"t_s":1,"up_s":2,"device":"S1","process":"x","source":"dumpsys","breakdown":{"total_pss_kb":7}}`,
		`{"t_s":1,"up_s":1e300,"device":"S1","event":"reboot"}` + "\n" +
			`{"t_s":-5,"up_s":0,"device":"S1","event":"restart","process":"x"}`,
	} {
		f.Add(lines+"\n", uint8(9))
	}
	f.Fuzz(func(t *testing.T, lines string, size uint8) {
		r, failure := inPieces(t, lineHeader+lines, size)
		for _, p := range r.Processes {
			if p.Samples < 0 || p.Samples > strings.Count(lines, "\n") || math.IsNaN(p.Duration) {
				t.Errorf("%+v", p)
			}
		}
		if (failure == "<nil>") != (len(r.Processes) > 0) || len(r.Warnings) > maxProblems+2 {
			t.Errorf("%s: %+v", failure, r)
		}
	})
}

// pieces is a reader that returns a string in pieces of the given number of
// bytes.
type pieces struct {
	text []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.text) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.size)], p.text)
	p.text = p.text[n:]
	return n, nil
}

// A table may record why a process ended. The rows after the end belong to
// another life of the process, with or without a pid.
func TestDeathsOfTables(t *testing.T) {
	for name, c := range map[string]struct {
		text     string
		want     map[string]int
		restarts int
		warning  string
	}{
		"death in the last row of a process": {
			"t_s,pid,pss_kb,death\n0,1,1024,\n30,1,2048,out_of_memory\n60,2,1024,\n" +
				"90,2,1024,low memory\n120,3,1024,-\n", map[string]int{"out_of_memory": 1, "low_memory": 1}, 2, "",
		},
		"death in a separate row": {
			"t_s,pss_kb,death\n0,1024,\n30,1024,\n35,,CRASH\n60,1024,\n", map[string]int{"crash": 1}, 1, "",
		},
		"death at the time of the last row": {
			"t_s,pss_kb,death\n0,1024,\n30,1024,\n30,,anr\n60,1024,\n", map[string]int{"anr": 1}, 1, "",
		},
		"at the end": {
			"t_s,pss_kb,death\n0,1024,\n30,1024,memory_limiter\n", map[string]int{"memory_limiter": 1}, 0, "",
		},
		"without a pid": {
			"t_s,pss_kb,death\n0,1024,kill\n30,1024,kill\n60,1024,exit\n90,1024,\n",
			map[string]int{"kill": 2, "exit": 1}, 3, "",
		},
		"only breakdowns": {
			"t_s,total_pss_kb,death\n0,1024,crash\n30,1024,\n", map[string]int{"crash": 1}, 1, "",
		},
		"invalid reason": {
			"t_s,pss_kb,death\n0,1024,sadness\n30,1024,\n", map[string]int{"unknown": 1}, 1,
			`line 2: death: unknown reason "sadness", treated as unknown; write one of anomaly, anr, crash`,
		},
		"a death reported as unknown": {
			"t_s,pss_kb,death\n0,1024,unknown\n30,1024,\n", map[string]int{"unknown": 1}, 1, "",
		},
	} {
		p := mustSay(t, c.text, Options{Policy: detector.RobustPolicy()}).Processes[0]
		if !maps.Equal(p.DeathsByReason, c.want) || p.Restarts != c.restarts ||
			!strings.Contains(strings.Join(p.Warnings, "\n"), c.warning) {
			t.Errorf("%s: %v, %d restarts, %q", name, p.DeathsByReason, p.Restarts, p.Warnings)
		}
	}
}

// Deaths in the lines of a run are judged when it is replayed.
func TestDeathsOfLines(t *testing.T) {
	const lines = `{"schema":"leakgate.samples/1","started":"2026-01-02T03:04:05Z","devices":[{"device":"S","model":"","api":34,"started_up_s":100}]}
{"t_s":0,"up_s":100,"device":"S","event":"found","user":0,"process":"a","pid":1,"start":5,"source":"smaps_rollup"}
{"t_s":1,"up_s":101,"device":"S","user":0,"process":"a","pid":1,"start":5,"source":"smaps_rollup","pss_kb":1024,"swap_pss_kb":0}
{"t_s":9,"up_s":109,"device":"S","event":"restart","user":0,"process":"a","pid":2,"start":9,"source":"smaps_rollup"}
{"t_s":10,"up_s":110,"device":"S","event":"death","user":0,"process":"a","pid":1,"reason":"memory_limiter","ended_up_s":101}
{"t_s":11,"up_s":111,"device":"S","user":0,"process":"a","pid":2,"start":9,"source":"smaps_rollup","pss_kb":1024,"swap_pss_kb":0}
`
	p := mustSay(t, lines, Options{Policy: detector.RobustPolicy()}).Processes[0]
	if p.DeathsByReason["memory_limiter"] != 1 || len(p.Findings) != 1 || p.Findings[0].Kind != "memory_limiter" {
		t.Errorf("%v, %+v", p.DeathsByReason, p.Findings)
	}
}
