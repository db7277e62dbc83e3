package monitor

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/reporters/record"
)

// flooding is a phone on which the command "flood" prints one line over and
// over, as fast as its output is read.
type flooding struct {
	*simulated
	line    string
	printed int // lines
}

func (f *flooding) Shell(ctx context.Context, command string, out, errOut io.Writer) (int, error) {
	if command != "flood" {
		return f.simulated.Shell(ctx, command, out, errOut)
	}
	const lines = 300
	chunk := []byte(strings.Repeat(f.line+"\n", lines))
	for ctx.Err() == nil {
		if _, err := out.Write(chunk); err != nil {
			return -1, err
		}
		f.printed += lines
		time.Sleep(time.Microsecond) // cost of writing: the fake clock advances only while all goroutines block
	}
	return -1, ctx.Err()
}

// flood runs a workload that prints one line repeatedly for a minute.
func flood(t *testing.T, line string, change func(*Options)) (result, *flooding) {
	p := &flooding{simulated: phone("S1", rooted(), healthy("com.shop")), line: line}
	o := options(t, p.simulated)
	o.Devices[0].Device = p
	o.Duration = time.Minute
	o.Policy.NormalInterval = time.Second
	o.Workload = DeviceCommand{Command: "flood"}
	change(&o)
	r := perform(t, t.Context(), o)
	info, err := os.Stat(filepath.Join(o.Dir, record.SamplesName))
	if err != nil || info.Size() > 1<<20 {
		t.Errorf("%s has %d bytes, %v", record.SamplesName, info.Size(), err)
	}
	if got, most := p.printed*(len(line)+1), paceBurst+61*paceRate; got > most {
		t.Errorf("read %d bytes of output, want at most %d", got, most)
	}
	return r, p
}

// skippedIn returns how many marks or events were skipped according to the
// lines of a run, and the number of these lines.
func (r result) skippedIn(event string) (n, lines int) {
	for _, e := range r.eventsOf(event, "") {
		n += int(e.Count)
		lines++
	}
	return n, lines
}

// A workload that prints marks as fast as it can neither fills the record nor
// delays the samples. Every mark is counted.
func TestRunBoundsMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := flood(t, "leakgate:mark "+strings.Repeat("x", 200), func(*Options) {})
		marks := len(r.eventsOf("mark", ""))
		if marks < 590 || marks > 620 {
			t.Errorf("got %d marks in a minute, want 590 to 620", marks)
		}
		skipped, lines := r.skippedIn("marks_skipped")
		if lines < 2 || lines > 3 || marks+skipped != p.printed {
			t.Errorf("got %d marks and %d skipped (in %d lines), want %d together", marks, skipped, lines, p.printed)
		}
		if d := r.Devices[0]; d.Marks != p.printed || d.MarksSkipped != skipped {
			t.Errorf("%d marks, %d skipped", d.Marks, d.MarksSkipped)
		}
		if x := r.process(t, "S1", "com.shop"); x.Gaps+x.Missed > 0 || x.Samples < 40 {
			t.Errorf("%d samples, %d gaps, %d missed", x.Samples, x.Gaps, x.Missed)
		}
		if !strings.Contains(strings.Join(r.Warnings, "\n"), "marks were skipped because they came too fast") {
			t.Errorf("warnings %q", r.Warnings)
		}
		// For the other marks, the position in the loop is unknown.
		if n := len(r.eventsOf("collected", "")); n > 1 {
			t.Errorf("got %d collections at marks of a flood, want at most 1", n)
		}
	})
}

// No heap is dumped at a mark if marks before it were skipped. The run reports
// this once.
func TestNoDumpsAtFloodOfMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := flood(t, "leakgate:mark "+strings.Repeat("x", 200), func(o *Options) {
			o.Respond, o.AllowUnjudged = &response.Options{Dump: AtMarks}, false
		})
		missing := r.eventsOf("missing", "")
		if len(missing) > 20 || len(r.MissingEvidence) == 0 || r.ExitCode != record.ExitInconclusive {
			t.Errorf("got %d missing events, %d missing heap dumps in the record, exit code %d", len(missing),
				len(r.MissingEvidence),
				r.ExitCode)
		}
	})
}

// Crashes and ANRs that monkey reports are limited in the same way as marks.
func TestRunBoundsEventsOfTheWorkload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := flood(t, "// NOT RESPONDING: com.shop (pid 123)"+strings.Repeat(" ", 200), func(o *Options) {
			o.Workload = flooded{Monkey{Package: "com.shop", Events: 100}}
		})
		faults := len(r.eventsOf("fault", ""))
		skipped, _ := r.skippedIn("events_skipped")
		if faults < 590 || faults > 620 || faults+skipped != p.printed {
			t.Errorf("got %d faults and %d skipped, want %d together", faults, skipped, p.printed)
		}
		if !strings.Contains(strings.Join(r.Warnings, "\n"), "events of the workload were skipped") {
			t.Errorf("warnings %q", r.Warnings)
		}
	})
}

// flooded is a monkey workload whose phone prints a flood of lines.
type flooded struct{ Monkey }

func (f flooded) Run(ctx context.Context, st Env) (record.Workload, error) {
	out := &lineReader{out: st.Output, onLine: recordFaults(st.Devices[0], st, func(string) {})}
	_, err := st.Devices[0].Shell(ctx, "flood", out, io.Discard)
	_ = err
	return f.Describe(), nil
}

// If a suite sets a mark every second, all marks are recorded, even those
// beyond the event quota.
func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count := func(l *rateLimit, every, over time.Duration) (n int) {
			for end := time.Now().Add(over); time.Now().Before(end); time.Sleep(every) {
				if l.allow() {
					n++
				}
			}
			return n
		}
		l := newRateLimit()
		if n := count(l, time.Second, 8*time.Hour); n != 8*3600 || l.skipped.Load() > 0 {
			t.Errorf("got %d marks at one per second, want %d", n, 8*3600)
		}
		l = newRateLimit()
		if n := count(l, 10*time.Millisecond, time.Hour); n < eventQuota+2500 || n > eventQuota+2700 {
			t.Errorf("got %d marks in an hour, want about 2600 more than the quota", n)
		}
	})
}

// Objects are counted and dumped only at consecutive marks. After a burst in
// which marks were skipped, counting and dumping resume at the next consecutive
// mark.
func TestCountsResumeAfterBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := phone("S1", rooted(), healthy("com.shop"))
		o := options(t, p)
		o.Duration = 20 * time.Minute
		o.Workload = script(func(ctx context.Context, st Env) {
			for i := range 10 {
				_ = sleep(ctx, time.Minute)
				for range map[bool]int{true: 30, false: 1}[i == 4] {
					st.Mark("", fmt.Sprintf("loop %d", i))
				}
			}
			<-ctx.Done()
		})
		r := perform(t, t.Context(), o)
		skipped, lines := r.skippedIn("marks_skipped")
		if skipped != 20 || lines != 1 || r.Devices[0].Marks != 39 || r.Devices[0].MarksSkipped != 20 {
			t.Errorf("got %d skipped marks in %d lines: %+v", skipped, lines, r.Devices[0])
		}
		at := map[string]bool{}
		for _, e := range append(r.eventsOf("collected", ""), r.eventsOf("not_collected", "")...) {
			at[e.Mark] = true
		}
		if at["loop 5"] || !at["loop 6"] || !at["loop 9"] {
			t.Errorf("objects were counted at marks %v, want loops 6 and 9 without loop 5", at)
		}
	})
}

// script is a workload implemented by a function.
type script func(ctx context.Context, st Env)

func (s script) Describe() record.Workload { return record.Workload{Kind: "script"} }
func (s script) Run(ctx context.Context, st Env) (record.Workload, error) {
	s(ctx, st)
	return s.Describe(), nil
}

// A mark without a name is meaningless. The first such mark is reported as an
// error, and further ones are ignored.
func TestRunIgnoresMarksWithoutText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &flooding{simulated: phone("S1", rooted(), healthy("com.shop"))}
		o := options(t, p.simulated)
		o.Duration = 5 * time.Minute
		o.Workload = DeviceCommand{
			Command: "echo 'leakgate:mark '; echo leakgate:mark; " +
				"echo 'leakgate:mark   '; echo leakgate:markers; sleep 1000",
		}
		r := perform(t, t.Context(), o)
		if n := len(r.eventsOf("mark", "")); n > 0 {
			t.Errorf("got %d empty marks, want none", n)
		}
		if e := r.eventsOf("error", ""); len(e) != 1 || !strings.Contains(e[0].Text, "marks without text") {
			t.Errorf("%+v", e)
		}
	})
}

// Reading a line of a flood allocates no memory.
func TestSkippedMarksAllocateNothing(t *testing.T) {
	st := Env{
		Output: nopCloser{io.Discard}, Mark: func(string, string) { t.Error("a mark was recorded") },
		skipMark: func(string) bool { return true },
	}
	l := st.newLineReader("", nil)
	chunk := bytes.Repeat([]byte("leakgate:mark x\nother\n"), 1000)
	if n := testing.AllocsPerRun(10, func() { _, _ = l.Write(chunk) }); n > 0 {
		t.Errorf("%.0f allocations in 2000 lines", n)
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// Sustained output is read at a limited rate; a burst is read immediately.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &pacedWriter{w: io.Discard}
		began, chunk := time.Now(), make([]byte, 32<<10)
		write := func(n int) time.Duration {
			for ; n > 0; n -= len(chunk) {
				_, _ = w.Write(chunk)
			}
			return time.Since(began)
		}
		if took := write(paceBurst); took > 0 {
			t.Errorf("a burst took %v, want 0", took)
		}
		if took := write(10 * paceRate); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("output of ten seconds took %v, want about 10 s", took)
		}
		time.Sleep(time.Hour)
		began = time.Now()
		if took := write(paceBurst); took > 0 {
			t.Errorf("a burst after an hour took %v, want 0", took)
		}
	})
}
