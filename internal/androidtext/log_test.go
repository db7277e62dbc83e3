package androidtext_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
)

// entry is a log entry whose timestamp has its own time zone.
var entry = androidtext.LogEntry{
	Time: time.Date(2026, 3, 4, 5, 6, 7, 89012345, time.FixedZone("x", 3600)), Buffer: "main", PID: 77, TID: 1078,
	Priority: 'W', Tag: "shop", Text: "low: 1",
}

func parseLogcat(t *testing.T, api int, line string) androidtext.LogQuery {
	t.Helper()
	q, problem := androidtext.ParseLogcat(api, strings.Fields(line), entry.Time)
	if problem != "" {
		t.Fatalf("API %d: %s: %s", api, line, problem)
	}
	return q
}

func TestLogFormats(t *testing.T) {
	for api := oldest; api <= newest; api++ {
		formats := map[string]string{
			"brief": "W/shop    (   77): low: 1\n", "process": "W(   77) low: 1  (shop)\n",
			"tag":    "W/shop    : low: 1\n",
			"thread": "W(   77: 1078) low: 1\n", "raw": "low: 1\n",
			"time":       "03-04 05:06:07.089 W/shop    (   77): low: 1\n",
			"threadtime": "03-04 05:06:07.089    77  1078 W shop    : low: 1\n",
			"long":       "[ 03-04 05:06:07.089    77: 1078 W/shop     ]\nlow: 1\n\n",
		}
		later := map[string]string{
			"epoch":     "         1772597167.089    77  1078 W shop    : low: 1\n",
			"year,usec": "2026-03-04 05:06:07.089012    77  1078 W shop    : low: 1\n",
			"zone,time": "03-04 05:06:07.089 +0100 W/shop    (   77): low: 1\n",
			"UTC":       "03-04 04:06:07.089 +0000    77  1078 W shop    : low: 1\n",
			"monotonic": "    61.089    77  1078 W shop    : low: 1\n",
			"color":     "03-04 05:06:07.089    77  1078 W shop    : low: 1\n",
		}
		for format, want := range later {
			if api >= androidtext.LogcatLists {
				formats[format] = want
			} else if _,
				problem := androidtext.ParseLogcat(api, []string{"-v", format},
				entry.Time); problem != "Invalid parameter to -v\n" {
				t.Errorf("API %d: -v %s: %q", api, format, problem)
			}
		}
		for format, want := range formats {
			p := androidtext.LogPrinter{
				Query: parseLogcat(t, api, "-b main -v "+format), Boot: entry.Time.Add(-61089012345),
			}
			if api >= 30 {
				want = "--------- beginning of main\n" + want
			}
			if got := p.Text(&entry); got != want {
				t.Errorf("API %d: -v %s: %q, want %q", api, format, got, want)
			}
			if again := p.Text(&entry); strings.Contains(again, "beginning") {
				t.Errorf("API %d: %q", api, again)
			}
		}
	}
}

// TestLogcatSelects checks which entries a query selects.
func TestLogcatSelects(t *testing.T) {
	for api := oldest; api <= newest; api++ {
		for line, want := range map[string]bool{
			"": true, "-b system": false, "-b main": true, "*:W": true, "*:e": false, "shop:E *:V": false, "-s": false,
			"-s shop:I": true,
			"-s shop":   true, "*:S shop:*": true, "shop:S": false, "-b all": true, "-b system -b main": true,
		} {
			if q := parseLogcat(t, api, line); q.Shows(&entry) != want {
				t.Errorf("API %d: %q: %t", api, line, !want)
			}
		}
		if api < androidtext.LogcatLists {
			continue
		}
		for line, want := range map[string]bool{
			"-b system,crash": false, "--buffer=radio,main": true, "--pid=77": true, "--pid 78": false,
			"-e lo.*1": true, "--regex=high": false,
			"-T 1772597167.05": true, "-t 1772597167.1": false,
		} {
			if q := parseLogcat(t, api, line); q.Shows(&entry) != want {
				t.Errorf("API %d: %q: %t", api, line, !want)
			}
		}
	}
}

func TestParseLogcat(t *testing.T) {
	for api := oldest; api <= newest; api++ {
		now := entry.Time
		for _, args := range [][]string{
			{"-T", "03-04 05:06:07.089"}, {"-T", "2026-03-04 05:06:07.089"}, {"-T1772597167.089"},
		} {
			q, problem := androidtext.ParseLogcat(api, args, now)
			if old := api < androidtext.LogcatLists && args[0] != "-T" || api < androidtext.LogcatLists &&
				len(args[1]) > 18; old {
				if !strings.Contains(problem, "not in time format") {
					t.Errorf("API %d: %q: %q", api, args, problem)
				}
			} else if !q.From.Equal(now.Truncate(time.Millisecond)) || q.Dump {
				t.Errorf("API %d: %q: %v", api, args, q.From)
			}
		}
		if q := parseLogcat(t, api, "-t 5 -g -c"); !q.Dump || q.Newest != 5 || !q.Sizes || !q.Clear || q.Most != -1 {
			t.Errorf("API %d: %+v", api, q)
		}
		if q := parseLogcat(t, api, "-d"); !slices.Equal(q.Buffers, []string{"main", "system", "crash"}) {
			t.Errorf("API %d: %+v", api, q)
		}
		for _, bad := range []string{
			"-v", "-v nice", "-b", "-b nosuch", "-t then", "-q", ":W", "a:b:c", "--nosuch", "--pid=x", "--pid=-1",
			"-P 7", "-e (", "-m x",
		} {
			if q, problem := androidtext.ParseLogcat(api, strings.Fields(bad), now); !strings.HasSuffix(problem, "\n") {
				t.Errorf("API %d: %q: %+v", api, bad, q)
			}
		}
	}
}

// TestLogReadsBack checks that the parser for real phones finds the logged
// events.
func TestLogReadsBack(t *testing.T) {
	for api := oldest; api <= newest; api++ {
		gc := androidtext.Collection{
			Explicit: true, Objects: 5, Freed: 20 << 20, LargeObjects: 2, LargeFreed: 96 << 10, Used: 29 << 20,
			Size:   45 << 20,
			Paused: []time.Duration{187 * time.Microsecond, 1034 * time.Microsecond}, Took: 160028 * time.Microsecond,
		}
		p := androidtext.LogPrinter{Query: parseLogcat(t, api, "-b all -v threadtime")}
		var b strings.Builder
		add := func(buffer string, pid int, tag string, lines ...string) {
			for _, line := range lines {
				b.WriteString(p.Text(
					&androidtext.LogEntry{
						Time: entry.Time, Buffer: buffer, PID: pid, TID: pid, Priority: 'I', Tag: tag, Text: line,
					}))
			}
		}
		add("main", 77, androidtext.RuntimeTag(api, "com.shop:push", false), gc.Text(api))
		add("crash", 77, "AndroidRuntime",
			androidtext.FatalException(77, "com.shop:push", "java.lang.OutOfMemoryError: full")...)
		add("system", 900, "ActivityManager", androidtext.Killing(77, "com.shop:push", 10123, 900, "empty"),
			androidtext.Died(api, 77, "com.shop:push", 900))
		add("main", 400, "Zygote", androidtext.ZygoteExit(api, 77, 9))
		add("main", 300, "lowmemorykiller",
			androidtext.LowMemoryKill(api, 77, "com.shop:push", androidtext.Comm("com.shop:push"), 10123, 900, 4096,
				5)...)
		log, err := dumpsys.ScanLogcat(strings.NewReader(b.String()), 77, "com.shop:push")
		if err != nil || len(log.Warnings) > 0 || log.Exception != "java.lang.OutOfMemoryError" ||
			log.KillAdj.N != 900 {
			t.Errorf("API %d: %v %+v\n%s", api, err, log, b.String())
		}
		if log.GC.HeapUsed.N != 29<<10 || log.GC.HeapTotal.N != 45<<10 || log.GC.LongestPause.N != 1034 ||
			log.GC.Causes["Explicit"] != 1 {
			t.Errorf("API %d: %+v\n%s", api, log.GC, b.String())
		}
		for _, kind := range []dumpsys.LogKind{
			dumpsys.LogGC, dumpsys.LogCrash, dumpsys.LogKill, dumpsys.LogDied, dumpsys.LogLowMemoryKill,
		} {
			if log.Mentions[kind].Count == 0 {
				t.Errorf("API %d: no %s in\n%s", api, kind, b.String())
			}
		}
	}
}

func TestShortUser(t *testing.T) {
	for uid, want := range map[int]string{0: "0", 1000: "1000", 10123: "u0a123", 1010005: "u10a5", 99007: "u0i7"} {
		if got := androidtext.ShortUser(uid); got != want {
			t.Errorf("%d: %s, want %s", uid, got, want)
		}
	}
}

// FuzzParseLogcat checks that a valid query selects an entry if and only if its
// filters for time, process and text match the entry and the rest of the query
// selects it, and that the printed entry contains its text.
func FuzzParseLogcat(f *testing.F) {
	for _, seed := range []string{
		"-d", "-v brief -b main,system -s a:W *:E", "-t 5 --pid=7", "-T 12.5 -e x", "-v epoch,usec -m 3",
		"--format=long x:", "-b all -D",
	} {
		f.Add(uint8(34), seed, "tag", "text", byte('W'))
	}
	f.Fuzz(func(t *testing.T, level uint8, line, tag, text string, priority byte) {
		api := oldest + int(level)%(newest-oldest+1)
		q, problem := androidtext.ParseLogcat(api, strings.Fields(line), entry.Time)
		if problem != "" {
			if !strings.HasSuffix(problem, "\n") {
				t.Errorf("%q: %q", line, problem)
			}
			return
		}
		if len(q.Buffers) == 0 || q.Format.Verb == "" || q.PID < 0 || q.Most < -1 || q.Newest == 0 || q.Newest < -1 {
			t.Fatalf("%q: %+v", line, q)
		}
		e := entry
		e.Tag, e.Text, e.Priority = tag, text, "VDIWEF"[priority%6]
		plain := q
		plain.From, plain.PID, plain.Pattern = time.Time{}, 0, nil
		want := plain.Shows(&e) && !e.Time.Before(q.From) && (q.PID == 0 || q.PID == e.PID) &&
			(q.Pattern == nil || q.Pattern.MatchString(text))
		if q.Shows(&e) != want {
			t.Errorf("%q: %+v: %t", line, e, !want)
		}
		p := androidtext.LogPrinter{Query: q}
		if out := p.Text(&e); !strings.Contains(out, text) || !strings.HasSuffix(out, "\n") {
			t.Errorf("%q: %q", line, out)
		}
	})
}

// FuzzParseMonkey checks that a valid command line has a count, and that a
// command line built from the parsed values yields the same values.
func FuzzParseMonkey(f *testing.F) {
	for _, seed := range []string{
		"5", "-p a -p b -s 7 --throttle 300 -v -vv 1000", "--ignore-crashes --pct-touch 50 5", "-c x 1",
		"--throttle -5 1", "- 1", "-s",
	} {
		f.Add(seed, int64(3))
	}
	f.Fuzz(func(t *testing.T, line string, seed int64) {
		m, problem := androidtext.ParseMonkey(strings.Fields(line), seed)
		if problem != "" {
			if !strings.HasPrefix(problem, "** Error: ") || !strings.HasSuffix(problem, androidtext.MonkeyUsage) {
				t.Errorf("%q: %q", line, problem)
			}
			return
		}
		if m.Events < 0 || m.Throttle < 0 || m.Verbose < 0 {
			t.Fatalf("%q: %+v", line, m)
		}
		args := []string{"-s", fmt.Sprint(m.Seed), "--throttle", fmt.Sprint(m.Throttle.Milliseconds())}
		for _, p := range m.Packages {
			args = append(args, "-p", p)
		}
		if m.Verbose > 0 {
			args = append(args, "-"+strings.Repeat("v", m.Verbose))
		}
		if m.IgnoreCrashes {
			args = append(args, "--ignore-crashes")
		}
		again, problem := androidtext.ParseMonkey(append(args, fmt.Sprint(m.Events)), 0)
		if problem != "" || fmt.Sprint(again) != fmt.Sprint(m) {
			t.Errorf("%q: %+v, again %+v, %q", line, m, again, problem)
		}
		if end := m.End(time.Second); !strings.Contains(end, fmt.Sprintf("Events injected: %d\n", m.Events)) {
			t.Errorf("%q: %q", line, end)
		}
	})
}

// TestMonkey checks the verbose and the quiet output of a run.
func TestMonkey(t *testing.T) {
	args := strings.Fields("-p com.shop -s 42 --throttle 500 --pct-touch 50 --kill-process-after-error -c x -v 300")
	m, problem := androidtext.ParseMonkey(args, 1)
	if problem != "" || m.Seed != 42 || m.Throttle != 500*time.Millisecond || m.Events != 300 || m.Verbose != 1 {
		t.Fatalf("%+v %s", m, problem)
	}
	for api := oldest; api <= newest; api++ {
		want := ":Monkey: seed=42 count=300\n:AllowPackage: com.shop\n:IncludeCategory: " +
			"android.intent.category.LAUNCHER\n:IncludeCategory: android.intent.category.MONKEY\n"
		if api >= 26 {
			want = "  bash arg: " + strings.Join(args, "\n  bash arg: ") + "\n" + want
		}
		if got := m.Begin(api, args); got != want {
			t.Errorf("API %d: %s", api, got)
		}
	}
	var progress string
	for done := range m.Events + 1 {
		progress += m.Progress(done)
	}
	if progress != "    // Sending event #100\n    // Sending event #200\n" {
		t.Errorf("%q", progress)
	}
	const quiet = "Events injected: 300\n## Network stats: elapsed time=1500ms (0ms mobile, 0ms wifi, 1500ms not " +
		"connected)\n"
	if got := m.End(1500 * time.Millisecond); !strings.HasSuffix(got, "// Monkey finished\n") ||
		!strings.HasPrefix(got, "Events injected: 300\n:Sending rotation") {
		t.Errorf("%q", got)
	}
	m.Verbose = 0
	if got := m.End(1500*time.Millisecond) + m.Progress(100) + m.Begin(25, args); got != quiet {
		t.Errorf("%q", got)
	}
	out, errs := m.Aborted(200)
	if out != "** Monkey aborted due to error.\nEvents injected: 200\n" ||
		errs != "** System appears to have crashed at event 200 of 300 using seed 42\n" {
		t.Errorf("%q %q", out, errs)
	}
	for line, want := range map[string]string{
		"": "Count not specified", "-p": "-p needs a value", "-x 1 5": "Unknown option: -x",
		"x":      `Count is not a number: "x"`,
		"-s x 5": `-s: not a number: "x"`, "--throttle -5 5": "--throttle: -5 is out of range",
		"--pct-touch x 5": `--pct-touch: not a number: "x"`,
	} {
		if _, problem := androidtext.ParseMonkey(strings.Fields(line), 1); problem != "** Error: "+want+"\n"+
			androidtext.MonkeyUsage {
			t.Errorf("%q: %s", line, problem)
		}
	}
}
