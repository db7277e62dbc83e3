package main

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

func row(device, process string, state detector.State) monitor.Row {
	v := detector.Verdict{State: state, RateKnown: true, Rate: 300 * detector.MB, Because: "memory rises"}
	if state == detector.Leaking {
		v.Kind = detector.Java
	}
	return monitor.Row{
		Device: device, Process: process, Present: true, MB: 123.4, Threads: 30, Next: 15 * time.Second, CostMS: 4,
		Verdict: v,
	}
}

// Without a terminal each event is one line, and the table is printed from time
// to time.
func TestScreenOfALog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := newScreen(console{err: &out, noColor: true}, monitor.Options{})
		s.Happened(record.Event{
			T: 61, Event: "state", Process: "com.x", From: new(detector.Normal), To: new(detector.Suspicious),
			Text: "rises\x1b[2J",
		})
		for range 25 {
			s.Changed("S1", func() []monitor.Row { return []monitor.Row{row("S1", "com.x", detector.Normal)} })
			time.Sleep(time.Minute)
		}
		s.close()
		text := out.String()
		if !strings.HasPrefix(text, "    1m1s com.x NORMAL -> SUSPICIOUS: rises?[2J\n") {
			t.Errorf("%q", text)
		}
		if n := strings.Count(text, "PROCESS"); n != 2 || strings.Contains(text, "\x1b") {
			t.Errorf("got %d tables in 25 min, want 2 and no control sequence in %q", n, text)
		}
	})
}

// On a terminal the table is redrawn in place: as many lines are removed as
// were drawn, and no line is wider than the terminal.
func TestScreenOfATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := newScreen(console{err: newSanitizer(&out), noColor: true},
			monitor.Options{Devices: make([]monitor.Device, 2), Policy: detector.RobustPolicy()})
		s.width = func() int { return 90 }
		for i := range 10 {
			s.Changed("S1", func() []monitor.Row {
				return []monitor.Row{
					row("S1", "com.x", detector.Leaking), row("S1", strings.Repeat("ü", 60), detector.Normal),
				}
			})
			time.Sleep(100 * time.Millisecond)
			if i == 5 {
				s.Happened(record.Event{Device: "S1", Event: "mark", Text: "loop 2"})
			}
		}
		s.close()
		screen := replay(t, out.String())
		want := []string{"S1 mark: loop 2", "PROCESS", "com.x @S1", "ü"}
		if len(screen) != len(want) {
			t.Fatalf("got %d lines on the screen, want %d: %q", len(screen), len(want), screen)
		}
		for i, line := range screen {
			if !strings.Contains(line, want[i]) || text.Columns(line) >= 90 {
				t.Errorf("line %d: %q", i, line)
			}
		}
		if !strings.Contains(screen[2], "LEAKING (provisional)") {
			t.Errorf("LEAKING is not shown as provisional: %q", screen[2])
		}
	})
}

// Wide characters take two columns: a row is truncated before it wraps, and the
// columns after a wide name are aligned with those after a narrow one.
func TestScreenOfWideNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := newScreen(console{err: &out, noColor: true}, monitor.Options{})
		s.width = func() int { return 81 }
		time.Sleep(time.Second)
		s.Changed("S1", func() []monitor.Row {
			return []monitor.Row{
				row("S1", strings.Repeat("中", 60), detector.Normal), row("S1", "com.x", detector.Normal),
				row("S1", "한e\u0301", detector.Normal),
			}
		})
		s.close()
		var at []int
		for _, line := range replay(t, out.String()) {
			if n := text.Columns(line); n > 80 {
				t.Errorf("%d columns: %q", n, line)
			}
			if name, _, ok := strings.Cut(line, " NORMAL "); ok {
				at = append(at, text.Columns(name))
			}
		}
		if want := []int{32, 32, 32}; !slices.Equal(at, want) {
			t.Errorf("the states start in columns %v, want %v", at, want)
		}
	})
}

// Only redrawn lines must fit into one row. The table is truncated to the width
// of the terminal. The event above the table is not redrawn, so it is printed
// in full, up to a limit.
func TestScreenTruncatesOnlyTheTable(t *testing.T) {
	for _, width := range []int{1, 2, 38, 80} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			s := newScreen(console{err: &out, noColor: true}, monitor.Options{})
			s.width = func() int { return width }
			s.Changed("S1", func() []monitor.Row { return []monitor.Row{row("S1", "com.x", detector.Normal)} })
			time.Sleep(time.Second)
			mark := strings.Repeat("memory rises, ", 20) + "to the end"
			s.Happened(record.Event{Event: "mark", Text: mark})
			s.Happened(record.Event{Event: "mark", Text: strings.Repeat("日本語", 1000)})
			s.close()
			screen := replay(t, out.String())
			if len(screen) != 4 || !strings.HasSuffix(screen[0], mark) || text.Columns(screen[1]) >= maxLogLine ||
				text.Columns(screen[1]) < maxLogLine-2 {
				t.Fatalf("%d columns: %q", width, screen)
			}
			for _, line := range screen[2:] {
				if text.Columns(line) >= width {
					t.Errorf("%d columns: %q", width, line)
				}
			}
		})
	}
}

// While a run is in progress, every output marks a leak as provisional and
// shows its kind. With the article policy, which never withdraws the verdict on
// a leak, a leak is not provisional. A jump is an event like any other.
func TestScreenOfALeak(t *testing.T) {
	rises := record.Event{
		T: 10, Event: "state", Process: "com.x", From: new(detector.Confirming), To: new(detector.Leaking),
		Text: "rises",
	}
	done := record.Event{
		T: 10, Event: "state", Process: "com.x", From: new(detector.Leaking), To: new(detector.Normal), Text: "done",
	}
	jump := record.Event{T: 10, Event: "jump", Process: "com.x", Text: "+250 MB"}
	for policy, state := range map[string]string{
		detector.PolicyRobust: "LEAKING (provisional)", detector.PolicyArticle: "LEAKING",
	} {
		s := newScreen(console{err: io.Discard, noColor: true}, monitor.Options{Policy: detector.Policy{Name: policy}})
		s.close()
		say := s.textContext
		if line := say.row(row("S1", "com.x", detector.Leaking)); !strings.Contains(line, " "+state+"  ") ||
			!strings.Contains(line, "java leak: ") {
			t.Errorf("%s: %q", policy, line)
		}
		for want, e := range map[string]record.Event{
			"     10s com.x CONFIRMING -> " + state + ": rises": rises, "     10s com.x " + state +
				" -> NORMAL: done": done, "     10s com.x jump: +250 MB": jump,
		} {
			if got := say.event(e); got != want {
				t.Errorf("%s: %q, want %q", policy, got, want)
			}
		}
	}
}

func FuzzScreenLines(f *testing.F) {
	for _, text := range []string{
		"com.x;reboot", "$(id)", "\x1b[2J\x1b]0;x\x07", "\u202e", "a\nb", "中文\u0301", "\U0001f600\u200d", "\xff",
		"duration: 8h", strings.Repeat("x", 5000),
	} {
		f.Add(text, 80)
	}
	f.Fuzz(func(t *testing.T, s string, terminal int) {
		terminal = 1 + max(0, terminal%240)
		name := text.Cell(s, nameColumns)
		if text.Columns(name) != nameColumns {
			t.Errorf("%q takes %d columns", name, text.Columns(name))
		}
		say := textContext{detector.PolicyRobust, true}
		lines := []string{
			say.event(record.Event{Device: s, Process: s, Event: s, Text: s}),
			say.event(record.Event{Device: s, Process: s, Event: "state", Text: s}),
			say.row(monitor.Row{Device: s, Process: s, Verdict: detector.Verdict{Because: s}}),
		}
		for _, line := range lines {
			if text.Printable(line) != line {
				t.Errorf("%q", line)
			}
			if row := text.Row(line, terminal); text.Columns(row) >= terminal {
				t.Errorf("%q at %d columns", row, terminal)
			}
		}
		if head, _, ok := strings.Cut(lines[1], " -> "); ok && len(s) > 500 && !strings.Contains(s, "->") &&
			text.Columns(head) > text.Columns(text.Printable(s))+2*maxName+20 {
			t.Errorf("the names in %q are not truncated", head)
		}
	})
}

// The process name is not printed in front of an event whose message begins
// with it.
func TestEventNameIsPrintedOnce(t *testing.T) {
	say := textContext{detector.PolicyRobust, false}
	for want, e := range map[string]record.Event{
		"waiting for com.shop to start": {Event: "waiting", Text: "waiting for com.shop to start"},
		"end: duration is over":         {Event: "end", Text: "duration is over"},
		"death: pid 7, CRASH":           {Event: "death", PID: 7, Text: "CRASH"},
		"death: CRASH":                  {Event: "death", Text: "CRASH"},
		"wait: waiting":                 {Event: "wait", Text: "waiting"},
	} {
		if got := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(say.event(e)), "0s")); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// replay returns the lines that a terminal shows after this output. replay
// supports the two control sequences that the screen uses.
func replay(t *testing.T, text string) []string {
	t.Helper()
	var lines []string
	for text != "" {
		if rest, ok := strings.CutPrefix(text, "\x1b["); ok {
			digits, rest, ok := strings.Cut(rest, "F\x1b[J")
			up := 0
			for _, c := range digits {
				up = up*10 + int(c-'0')
			}
			if !ok || up > len(lines) {
				t.Fatalf("the cursor moves up %q of %d lines", digits, len(lines))
			}
			lines, text = lines[:len(lines)-up], rest
			continue
		}
		line, rest, ok := strings.Cut(text, "\n")
		if !ok {
			t.Fatalf("the last line has no newline: %q", text)
		}
		lines, text = append(lines, line), rest
	}
	return lines
}

// On a terminal a suspicious state has a color, unless the user wants none.
func TestScreenColors(t *testing.T) {
	for name, c := range map[string]struct {
		noColor bool
		env     map[string]string
		want    bool
	}{
		"by default":     {false, nil, true},
		"--no-color":     {true, nil, false},
		"NO_COLOR":       {false, map[string]string{"NO_COLOR": "1"}, false},
		"empty NO_COLOR": {false, map[string]string{"NO_COLOR": ""}, true},
		"dumb":           {false, map[string]string{"TERM": "dumb"}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			at := environment(c.env, nil, &out)
			at.noColor = c.noColor
			s := newScreen(at, monitor.Options{})
			s.width = func() int { return 80 }
			time.Sleep(time.Second)
			s.Changed("S1", func() []monitor.Row {
				return []monitor.Row{
					row("S1", "com.a", detector.Normal), row("S1", "com.b", detector.Suspicious),
					row("S1", "com.c", detector.Leaking),
				}
			})
			s.close()
			for process, code := range map[string]string{"com.b": "\x1b[33m", "com.c": "\x1b[31m"} {
				if strings.Contains(out.String(), code+process) != c.want || strings.Contains(out.String(), "mcom.a") {
					t.Errorf("%s: %q", name, out.String())
				}
			}
		})
	}
}
