package replay

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/reporters/record"
)

// late returns a table of eight hours, with a row every 30 s, of a process that
// never leaks or that leaks 65 MB/h after the first 3.5 h.
func late(leaks bool) []string {
	r := rand.New(rand.NewPCG(5, 5))
	rows := []string{"t_s,process,pid,pss_kb"}
	for i := range 960 {
		kb := 1024 * (200 + 2*r.NormFloat64())
		if leaks {
			kb += 1024 * 65 * max(0, float64(i)-420) / 120
		}
		rows = append(rows, fmt.Sprintf("%d,com.shop,7,%.0f", i*30, kb))
	}
	return rows
}

// If a table is damaged, only the damaged rows are lost. They are counted, and
// the table does not pass if there is a leak after them.
func TestDamagedTables(t *testing.T) {
	// each returns a function that replaces the rows with the given numbers by
	// the results of f.
	each := func(f func(row string) string, numbers ...int) func([]string) string {
		return func(rows []string) string {
			for _, n := range numbers {
				rows[n] = f(rows[n])
			}
			return strings.Join(rows, "\n") + "\n"
		}
	}
	value := func(v string) func(string) string {
		return func(row string) string { return row[:strings.LastIndex(row, ",")+1] + v }
	}
	var third, half, tail []int
	for n := 1; n <= 960; n++ {
		if n%3 == 0 {
			third = append(third, n)
		}
		if n%2 == 0 {
			half = append(half, n)
		}
		if n > 420 {
			tail = append(tail, n)
		}
	}
	for name, c := range map[string]struct {
		damage func(rows []string) string
		// lost is the number of lost rows, and samples the number of samples
		// that were judged.
		lost, samples int
		leak, clean   detector.Gate
	}{
		"none": {each(nil), 0, 960, detector.Leak, detector.Pass},
		"a quote at the start": {
			each(func(r string) string { return `"` + r }, 411), 1, 959, detector.Leak, detector.Pass,
		},
		"a quote within a field": {
			each(func(r string) string { return strings.Replace(r, "shop", `sh"op`, 1) }, 411), 1, 959, detector.Leak,
			detector.Pass,
		},
		"a quote at the end": {
			each(func(r string) string { return r + `"` }, 411), 1, 959, detector.Leak, detector.Pass,
		},
		"a quote that opens the last cell": {
			each(func(r string) string { return value(`"5`)(r) }, 411), 1, 959, detector.Leak, detector.Pass,
		},
		"two quotes, far apart": {
			each(func(r string) string { return `"` + r }, 300, 700), 2, 958, detector.Leak, detector.Pass,
		},
		"a name over two lines": {
			each(func(r string) string { return strings.Replace(r, "com.shop", "\"com.\nshop\"", 1) }, 411), 2, 959,
			detector.Leak, detector.Pass,
		},
		"a quoted name": {
			each(func(r string) string { return strings.Replace(r, "com.shop", `"com.shop"`, 1) }, 411), 0, 960,
			detector.Leak, detector.Pass,
		},
		"zeros": {
			each(func(string) string { return strings.Repeat("\x00", 5000) }, 411), 1, 959, detector.Leak,
			detector.Pass,
		},
		"a NUL in the name": {
			each(func(r string) string { return strings.Replace(r, "shop", "sh\x00p", 1) }, 411), 1, 959, detector.Leak,
			detector.Pass,
		},
		"a line of 2 MB": {
			each(func(string) string { return strings.Repeat("9", 2<<20) }, 411), 1, 959, detector.Leak, detector.Pass,
		},
		"repeated header": {
			each(func(string) string { return "t_s,process,pid,pss_kb" }, 411), 1, 959, detector.Leak, detector.Pass,
		},
		"CRLF": {
			func(rows []string) string { return strings.Join(rows, "\r\n") + "\r\n" }, 0, 960, detector.Leak,
			detector.Pass,
		},
		"a byte order mark": {
			func(rows []string) string { return "\xef\xbb\xbf" + strings.Join(rows, "\n") }, 0, 960, detector.Leak,
			detector.Pass,
		},
		"semicolons": {
			func(rows []string) string { return strings.ReplaceAll(strings.Join(rows, "\n"), ",", ";") }, 0, 960,
			detector.Leak, detector.Pass,
		},
		"tabs": {
			func(rows []string) string { return strings.ReplaceAll(strings.Join(rows, "\n"), ",", "\t") }, 0, 960,
			detector.Leak, detector.Pass,
		},
		"rows of a spreadsheet": {
			func(rows []string) string { return strings.Join(rows, "\n") + strings.Repeat("\n,,,", 400) }, 0, 960,
			detector.Leak, detector.Pass,
		},
		"truncated within the last name": {
			func(rows []string) string { return strings.Join(rows[:960], "\n") + "\n28770,com" }, 1, 959, detector.Leak,
			detector.Pass,
		},
		"a sudden petabyte":    {each(value("1099511627776"), 411), 1, 959, detector.Leak, detector.Pass},
		"2 to the power of 54": {each(value("18014398509481984"), 411), 1, 959, detector.Leak, detector.Pass},
		"18 digits":            {each(value("999999999999999999"), 411), 1, 959, detector.Leak, detector.Pass},
		"1e300":                {each(value("1e300"), 411), 1, 959, detector.Leak, detector.Pass},
		"below zero":           {each(value("-5"), 411), 1, 959, detector.Leak, detector.Pass},
		"NaN":                  {each(value("NaN"), 411), 0, 959, detector.Leak, detector.Pass},
		"every third value impossible": {
			each(value("1e300"), third...), 320, 640, detector.Leak, detector.Inconclusive,
		},
		"every other value a petabyte": {
			each(value("1099511627776"), half...), 480, 480, detector.Leak, detector.Inconclusive,
		},
		"every other value NaN": {each(value("NaN"), half...), 0, 480, detector.Leak, detector.Inconclusive},
		"impossible values at the end": {
			each(value("1e300"), tail...), 540, 420, detector.Inconclusive, detector.Inconclusive,
		},
		"NaN at the end": {each(value("NaN"), tail...), 0, 420, detector.Inconclusive, detector.Inconclusive},
		"no commas at the end": {
			each(func(r string) string { return strings.ReplaceAll(r, ",", "") }, tail...), 540, 420,
			detector.Inconclusive, detector.Inconclusive,
		},
		"the file twice": {
			func(rows []string) string { return strings.Repeat(strings.Join(rows, "\n")+"\n", 2) }, 961, 960,
			detector.Leak, detector.Inconclusive,
		},
		"other file first": {
			func(rows []string) string { return strings.Join(append(late(false), rows...), "\n") }, 961, 960,
			detector.Inconclusive, detector.Inconclusive,
		},
	} {
		for leaks, want := range map[bool]detector.Gate{true: c.leak, false: c.clean} {
			r, err := said(t, c.damage(late(leaks)), robust)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if len(r.Processes) != 1 {
				t.Errorf("%s: %d processes", name, len(r.Processes))
				continue
			}
			p := r.Processes[0]
			if p.Gate != want || p.Samples != c.samples {
				t.Errorf("%s, leak %t: %s from %d samples, want %s from %d: %s\n%q %q", name, leaks, p.Gate, p.Samples,
					want, c.samples, p.Reason, p.Warnings, r.Warnings)
			}
			if lost := lostRows(t, r); lost != c.lost {
				t.Errorf("%s: %d rows skipped, want %d: %q %q", name, lost, c.lost, p.Warnings, r.Warnings)
			}
		}
	}
}

// lostRows returns the number of lost rows that the warnings report.
func lostRows(t *testing.T, r record.Replay) int {
	t.Helper()
	n := 0
	for _, w := range slices.Concat(r.Warnings, r.Processes[0].Warnings) {
		var more int
		w = strings.TrimPrefix(w, "-: ")
		if _, err := fmt.Sscanf(w, "%d more rows are skipped", &more); err == nil {
			n += more
		} else if strings.Contains(w, "row is skipped") {
			n++
		}
	}
	return n
}

// A row that is truncated within its last number contains a wrong value. A
// single wrong value does not decide the verdict.
func TestTableTruncatedInLastNumber(t *testing.T) {
	text := strings.Join(late(true), "\n")
	for cut := 1; cut < 7; cut++ {
		if p := mustSay(t, text[:len(text)-cut], robust).Processes[0]; p.Gate != detector.Leak {
			t.Errorf("truncated by %d bytes: %s: %s", cut, p.Gate, p.Reason)
		}
	}
}

// If a file is not a table, the error says what it is.
func TestFilesThatAreNotTables(t *testing.T) {
	good := strings.Join(late(true), "\n")
	for name, c := range map[string]struct{ text, want string }{
		"CR alone":              {strings.ReplaceAll(good, "\n", "\r"), "lines end in CR alone; save it with LF"},
		"UTF-16":                {"\xff\xfet\x00_\x00", "it is UTF-16; save it as UTF-8"},
		"UTF-16 without a BOM":  {"t\x00_\x00s\x00,\x00", "it is UTF-16; save it as UTF-8"},
		"a quote in the header": {`"` + good, `line 1: extraneous or missing "`},
		"endless header":        {strings.Repeat("t_s,", 1<<19), "line 1: "},
		"only damaged rows":     {"t_s,pss_kb\n\"0,5\n\"30,5\n", "no usable number"},
	} {
		if _, err := said(t, c.text, robust); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.200v, want %q", name, err, c.want)
		}
	}
}

// A death in a damaged row is not silently ignored: the rows after it are not
// compared with the rows before it, because a table may have no pid.
func TestDamagedDeathOfATable(t *testing.T) {
	rows := strings.Split(strings.ReplaceAll(strings.Join(late(false), "\n"), ",7,", ",,"), "\n")
	rows[480] = `"` + rows[480]
	p := mustSay(t, strings.Join(rows, "\n"), robust).Processes[0]
	if p.Gate != detector.Pass || p.LongestStretch > 4.1*3600 || p.Gaps != 1 {
		t.Errorf("got %s with a longest stretch of %gs and %d gaps, want pass with at most 14760s and 1", p.Gate,
			p.LongestStretch, p.Gaps)
	}
}

// Replay and report treat the same samples.ndjson alike, however it is damaged:
// both judge the same lines and report the same problems, or both reject it.
func TestReplayAndReportReadAlike(t *testing.T) {
	_, lines := rowsOf(rand.New(rand.NewPCG(2, 2)), "a", 7)
	header := strings.Replace(strings.TrimSuffix(lineHeader, "\n"), `"article"`, `"robust"`, 1)
	whole := func() []string { return append([]string{header}, lines...) }
	text := func(lines []string) string { return strings.Join(lines, "\n") + "\n" }
	with := func(n int, line string) string {
		all := whole()
		all[n] = line
		return text(all)
	}
	sample := slices.IndexFunc(whole(), func(l string) bool { return strings.Contains(l, `"pss_kb"`) }) + 150
	for sample%2 == 0 || !strings.Contains(whole()[sample], `"pss_kb"`) {
		sample++
	}
	for name, c := range map[string]struct {
		text    string
		refused bool
		// gaps is the expected number of gaps, which is higher by one if a
		// sample is missing.
		gaps int
	}{
		"whole":                      {text(whole()), false, 1},
		"a byte order mark":          {"\xef\xbb\xbf" + text(whole()), false, 1},
		"a byte order mark and CRLF": {"\xef\xbb\xbf" + strings.ReplaceAll(text(whole()), "\n", "\r\n"), false, 1},
		"a byte order mark inside":   {with(sample, "\xef\xbb\xbf"+whole()[sample]), false, 2},
		"a line of 2 MB":             {with(sample, strings.Repeat("9", 2<<20)), false, 2},
		"a sample of 2 MB": {
			with(sample, whole()[sample][:len(whole()[sample])-1]+`,"x":"`+strings.Repeat("9", 2<<20)+`"}`), false, 2,
		},
		"2 MB after the header":  {with(1, strings.Repeat("9", 2<<20)), false, 1},
		"2 MB at the end":        {text(append(whole(), strings.Repeat("9", 2<<20))), false, 1},
		"2 MB without a newline": {text(whole()) + strings.Repeat("9", 2<<20), false, 1},
		"a header of 2 MB": {
			with(0, header[:len(header)-1]+`,"x":"`+strings.Repeat("9", 2<<20)+`"}`), true, 0,
		},
		"zeros":           {with(sample, strings.Repeat("\x00", 70_000)), false, 2},
		"blank lines":     {strings.ReplaceAll(text(whole()), "\n", "\n\n \n"), false, 1},
		"a line of 65 MB": {with(sample, strings.Repeat("9", 66<<20)), true, 0},
		"an impossible value": {
			with(sample, strings.Replace(whole()[sample], `"pss_kb":`, `"pss_kb":18014398509481984,"y":`, 1)), false, 2,
		},
		"a value beyond 64 bits": {
			with(sample, strings.Replace(whole()[sample], `"pss_kb":`, `"pss_kb":1e300,"y":`, 1)), false, 2,
		},
		"a value below 0": {
			with(sample, strings.Replace(whole()[sample], `"pss_kb":`, `"pss_kb":-`, 1)), false, 2,
		},
		"UTF-16": {
			"\xff\xfe" + strings.Join(strings.Split(text(whole()), ""), "\x00") + "\x00", true, 0,
		},
		"UTF-16 without a BOM":      {strings.Join(strings.Split(text(whole()), ""), "\x00") + "\x00", true, 0},
		"nothing":                   {"", true, 0},
		"only a byte order mark":    {"\xef\xbb\xbf", true, 0},
		"only a header, no newline": {header, true, 0},
		"the file twice":            {text(whole()) + text(whole()), false, 2},
		"an incomplete line":        {text(whole()) + `{"t_s":`, false, 1},
		"a truncated header":        {header[:50] + "\n", true, 0},
		"a blank line at the start": {"\n" + text(whole()), true, 0},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, record.SamplesName), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		run, warnings, reported := ledger.Rebuild(dir)
		r, replayed := Run(t.Context(), []string{dir}, robust)
		if (reported != nil) != c.refused || (replayed != nil) != c.refused {
			t.Errorf("%s: report: %.200v\nreplay: %.200v", name, reported, replayed)
		}
		if reported != nil || replayed != nil {
			continue
		}
		var said []string
		for _, w := range warnings {
			said = append(said, dir+": "+w.Error())
		}
		p, q := run.Processes[0], r.Processes[0]
		if len(r.Processes) != len(run.Processes) || p.Gate != q.Gate || p.Samples != q.Samples || p.Gaps != q.Gaps ||
			p.Reason != q.Reason || !slices.Equal(said, r.Warnings) {
			t.Errorf("%s: report: %s of %d samples, %d gaps, %.300q\nreplay: %s of %d, %d, %.300q", name, p.Gate,
				p.Samples, p.Gaps, said, q.Gate, q.Samples, q.Gaps, r.Warnings)
		}
		if p.Gaps != c.gaps {
			t.Errorf("%s: %d gaps, want %d", name, p.Gaps, c.gaps)
		}
	}
}
