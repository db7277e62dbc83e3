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

// flooding is a phone on which the command "flood" prints one line as fast as it is taken.
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
		time.Sleep(time.Microsecond) // what writing costs; a bubble whose goroutines never wait has no time
	}
	return -1, ctx.Err()
}

// flood runs a workload that prints nothing but a line for a minute.
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
		t.Errorf("%d bytes of output were taken, more than %d", got, most)
	}
	return r, p
}

// skippedIn are the marks, or events, that the lines of a run say were skipped.
func (r result) skippedIn(event string) (n, lines int) {
	for _, e := range r.eventsOf(event, "") {
		n += int(e.Count)
		lines++
	}
	return n, lines
}

// A workload that prints marks as fast as it can neither fills the record nor holds up the
// samples, and no mark is lost from the count.
func TestRunBoundsMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := flood(t, "leakgate:mark "+strings.Repeat("x", 200), func(*Options) {})
		marks := len(r.eventsOf("mark", ""))
		if marks < 590 || marks > 620 {
			t.Errorf("%d marks in a minute", marks)
		}
		skipped, lines := r.skippedIn("marks_skipped")
		if lines < 2 || lines > 3 || marks+skipped != p.printed {
			t.Errorf("%d marks and %d skipped, in %d lines, of %d", marks, skipped, lines, p.printed)
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
		// Nobody knows where in a loop the others stand.
		if n := len(r.eventsOf("collected", "")); n > 1 {
			t.Errorf("%d collections at marks of a flood", n)
		}
	})
}

// At marks of which some were skipped no heap is dumped, and the run says so once.
func TestRunDumpsNoHeapAtMarksOfAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := flood(t, "leakgate:mark "+strings.Repeat("x", 200), func(o *Options) {
			o.Respond, o.AllowUnjudged = &response.Options{Dump: AtMarks}, false
		})
		missing := r.eventsOf("missing", "")
		if len(missing) > 20 || len(r.MissingEvidence) == 0 || r.ExitCode != record.ExitInconclusive {
			t.Errorf("%d heap dumps are missing, %d in the record, exit code %d", len(missing), len(r.MissingEvidence), r.ExitCode)
		}
	})
}

// So may monkey's reports of crashes.
func TestRunBoundsEventsOfTheWorkload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := flood(t, "// NOT RESPONDING: com.shop (pid 123)"+strings.Repeat(" ", 200), func(o *Options) {
			o.Workload = flooded{Monkey{Package: "com.shop", Events: 100}}
		})
		faults := len(r.eventsOf("fault", ""))
		skipped, _ := r.skippedIn("events_skipped")
		if faults < 590 || faults > 620 || faults+skipped != p.printed {
			t.Errorf("%d faults and %d skipped of %d", faults, skipped, p.printed)
		}
		if !strings.Contains(strings.Join(r.Warnings, "\n"), "events of the workload were skipped") {
			t.Errorf("warnings %q", r.Warnings)
		}
	})
}

// flooded is monkey on a phone that floods.
type flooded struct{ Monkey }

func (f flooded) Run(ctx context.Context, st Stage) (record.Workload, error) {
	out := &listener{out: st.Output, heard: reporting(st.Devices[0], st, func(string) {})}
	_, err := st.Devices[0].Shell(ctx, "flood", out, io.Discard)
	_ = err
	return f.Describe(), nil
}

// A suite that marks each second is recorded to its end, also beyond the marks that may come fast.
func TestFloodLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		count := func(l *floodLimit, every, over time.Duration) (n int) {
			for end := time.Now().Add(over); time.Now().Before(end); time.Sleep(every) {
				if l.admit() {
					n++
				}
			}
			return n
		}
		l := newFloodLimit()
		if n := count(l, time.Second, 8*time.Hour); n != 8*3600 || l.skipped.Load() > 0 {
			t.Errorf("%d of %d marks, one a second", n, 8*3600)
		}
		l = newFloodLimit()
		if n := count(l, 10*time.Millisecond, time.Hour); n < fastEvents+2500 || n > fastEvents+2700 {
			t.Errorf("%d marks in an hour", n)
		}
	})
}

// Marks that are not one after the other are neither counted nor dumped, and those that follow are.
func TestRunCountsAgainAfterABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := phone("S1", rooted(), healthy("com.shop"))
		o := options(t, p)
		o.Duration = 20 * time.Minute
		o.Workload = script(func(ctx context.Context, st Stage) {
			for i := range 10 {
				_ = nap(ctx, time.Minute)
				for range map[bool]int{true: 30, false: 1}[i == 4] {
					st.Mark("", fmt.Sprintf("loop %d", i))
				}
			}
			<-ctx.Done()
		})
		r := perform(t, t.Context(), o)
		skipped, lines := r.skippedIn("marks_skipped")
		if skipped != 20 || lines != 1 || r.Devices[0].Marks != 39 || r.Devices[0].MarksSkipped != 20 {
			t.Errorf("%d skipped in %d lines: %+v", skipped, lines, r.Devices[0])
		}
		at := map[string]bool{}
		for _, e := range append(r.eventsOf("collected", ""), r.eventsOf("not_collected", "")...) {
			at[e.Mark] = true
		}
		if at["loop 5"] || !at["loop 6"] || !at["loop 9"] {
			t.Errorf("counted at %v", at)
		}
	})
}

// script is a workload that is a function.
type script func(ctx context.Context, st Stage)

func (s script) Describe() record.Workload { return record.Workload{Kind: "script"} }
func (s script) Run(ctx context.Context, st Stage) (record.Workload, error) {
	s(ctx, st)
	return s.Describe(), nil
}

// A mark without a text says nothing: the first one is an error, the others are ignored.
func TestRunIgnoresMarksWithoutText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &flooding{simulated: phone("S1", rooted(), healthy("com.shop"))}
		o := options(t, p.simulated)
		o.Duration = 5 * time.Minute
		o.Workload = DeviceCommand{Command: "echo 'leakgate:mark '; echo leakgate:mark; echo 'leakgate:mark   '; echo leakgate:markers; sleep 1000"}
		r := perform(t, t.Context(), o)
		if n := len(r.eventsOf("mark", "")); n > 0 {
			t.Errorf("%d empty marks", n)
		}
		if e := r.eventsOf("error", ""); len(e) != 1 || !strings.Contains(e[0].Text, "mark without a text") {
			t.Errorf("%+v", e)
		}
	})
}

// A line of a flood costs no memory.
func TestSkippedMarksAllocateNothing(t *testing.T) {
	st := Stage{Output: nopCloser{io.Discard}, Mark: func(string, string) { t.Error("a mark came through") }, skips: func(string) bool { return true }}
	l := st.marking("", nil)
	chunk := bytes.Repeat([]byte("leakgate:mark x\nother\n"), 1000)
	if n := testing.AllocsPerRun(10, func() { _, _ = l.Write(chunk) }); n > 0 {
		t.Errorf("%.0f allocations in 2000 lines", n)
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// Output that comes for long is taken at a pace, a burst at once.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &paced{w: io.Discard}
		began, chunk := time.Now(), make([]byte, 32<<10)
		write := func(n int) time.Duration {
			for ; n > 0; n -= len(chunk) {
				_, _ = w.Write(chunk)
			}
			return time.Since(began)
		}
		if took := write(paceBurst); took > 0 {
			t.Errorf("a burst took %v", took)
		}
		if took := write(10 * paceRate); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("ten seconds of output took %v", took)
		}
		time.Sleep(time.Hour)
		began = time.Now()
		if took := write(paceBurst); took > 0 {
			t.Errorf("a burst after an hour took %v", took)
		}
	})
}
