package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/reporters"
)

func row(device, process string, state detector.State) monitor.Row {
	v := detector.Verdict{State: state, RateKnown: true, Rate: 300 * detector.MB, Because: "memory rises"}
	if state == detector.Leaking {
		v.Kind = detector.Java
	}
	return monitor.Row{Device: device, Process: process, Present: true, MB: 123.4, Threads: 30, Next: 15 * time.Second, CostMS: 4, Verdict: v}
}

// Without a terminal there is one line an event, and a table now and then.
func TestScreenOfALog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := newScreen(&out, monitor.Options{})
		s.Happened(reporters.Event{T: 61, Event: "state", Process: "com.x", From: "NORMAL", To: "SUSPICIOUS", Text: "rises\x1b[2J"})
		for range 25 {
			s.Changed("S1", []monitor.Row{row("S1", "com.x", detector.Normal)})
			time.Sleep(time.Minute)
		}
		s.close()
		text := out.String()
		if !strings.HasPrefix(text, "    1m1s com.x NORMAL -> SUSPICIOUS: rises?[2J\n") {
			t.Errorf("%q", text)
		}
		if n := strings.Count(text, "PROCESS"); n != 2 || strings.Contains(text, "\x1b") {
			t.Errorf("%d tables in 25 min, or a terminal command in %q", n, text)
		}
	})
}

// On a terminal the table is drawn again in place: each time as many lines are
// taken back as were drawn, and no line is wider than the terminal.
func TestScreenOfATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := newScreen(&out, monitor.Options{Devices: make([]monitor.Device, 2)})
		s.width = func() int { return 90 }
		for i := range 10 {
			s.Changed("S1", []monitor.Row{row("S1", "com.x", detector.Leaking), row("S1", strings.Repeat("ü", 60), detector.Normal)})
			time.Sleep(100 * time.Millisecond)
			if i == 5 {
				s.Happened(reporters.Event{Device: "S1", Event: "mark", Text: "loop 2"})
			}
		}
		s.close()
		screen := replay(t, out.String())
		want := []string{"S1 mark: loop 2", "PROCESS", "com.x @S1", "ü"}
		if len(screen) != len(want) {
			t.Fatalf("%d lines stand: %q", len(screen), screen)
		}
		for i, line := range screen {
			if !strings.Contains(line, want[i]) || len([]rune(line)) >= 90 {
				t.Errorf("line %d: %q", i, line)
			}
		}
		if !strings.Contains(screen[2], "LEAKING? java_leak") {
			t.Errorf("LEAKING is not told as provisional: %q", screen[2])
		}
	})
}

// replay is a terminal that knows the two commands that the screen uses.
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
				t.Fatalf("up by %q of %d lines", digits, len(lines))
			}
			lines, text = lines[:len(lines)-up], rest
			continue
		}
		line, rest, ok := strings.Cut(text, "\n")
		if !ok {
			t.Fatalf("a line without an end: %q", text)
		}
		lines, text = append(lines, line), rest
	}
	return lines
}
