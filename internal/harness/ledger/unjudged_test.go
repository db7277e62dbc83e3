package ledger

import (
	"strings"
	"testing"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// A process that was present for a long time and has no verdict is reported,
// together with what is needed for a verdict. Other processes are not reported.
func TestUnjudged(t *testing.T) {
	const night, hour, minute = 8 * 3600, 3600, 60
	short := func(p record.Process) record.Process {
		p.Process, p.Gate = "com.shop", detector.Inconclusive
		return p
	}
	restarted := record.Process{Samples: 900, Restarts: 47, Alive: night, LongestStretch: 9 * minute}
	series := func(s record.MarkSeries) []record.MarkSeries { return []record.MarkSeries{s} }
	for name, c := range map[string]struct {
		process record.Process
		seconds float64
		want    string // parts, with * between
	}{
		"many restarts": {
			short(restarted), night,
			"com.shop restarted 47 times, longest life 9 min; a trend needs 30 min without a restart: dump heaps at " +
				"marks (`diagnose.dump: at_marks`), or keep the process alive for that long",
		},
		"killed after each sample": {
			short(record.Process{Samples: 900, Restarts: 900, Alive: night}), night,
			"com.shop restarted 900 times, no life long enough for two samples; a trend needs 30 min without a restart",
		},
		"a short run": {
			short(record.Process{Samples: 24, Alive: 12 * minute, LongestStretch: 11.5 * minute}), 12 * minute,
			"com.shop was watched for only 12 min; a trend needs 30 min: run for 30m or longer, or dump heaps at marks",
		},
		"early end of the process": {
			short(record.Process{Samples: 24, Alive: 12 * minute, LongestStretch: 11.5 * minute}), night,
			"com.shop was running for only 12 min of 8.0 h; a trend needs 30 min",
		},
		"gaps": {
			short(record.Process{Samples: 300, Gaps: 7, Missing: 5 * hour, Alive: night, LongestStretch: 24 * minute}),
			night, "com.shop could not be read for 5.0 h of 8.0 h, longest stretch 24 min; a trend needs 30 min",
		},
		"no readings": {
			short(record.Process{Alive: night}), night,
			"com.shop was running for 8.0 h and could not be read: `leakgate doctor`",
		},
		"too few dumps": {
			short(record.Process{
				Samples: 24, Alive: 12 * minute, LongestStretch: 11 * minute,
				AtMarks: series(
					record.MarkSeries{Gate: "inconclusive", Reason: "2 heap dumps at marks; a verdict needs 3"}),
			}), 12 * minute,
			"com.shop was watched for only 11 min; 2 heap dumps at marks; a verdict needs 3: set more marks"},
		"verdict from dumps": {
			short(record.Process{
				Samples: 24, Alive: 12 * minute, LongestStretch: 11 * minute,
				AtMarks: series(record.MarkSeries{Gate: "pass"}),
			}), 12 * minute, "",
		},
		"verdict from pooled lives": {
			record.Process{Gate: "pass", Restarts: 47, Alive: night, LongestStretch: 9 * minute}, night, "",
		},
		"a leak": {
			record.Process{Gate: "leak", Restarts: 47, Alive: night, LongestStretch: 9 * minute}, night, "",
		},
		"long enough, but undecided": {
			short(record.Process{Samples: 900, Alive: night, LongestStretch: night}), night, "",
		},
		"30 min, without the first round": {
			short(record.Process{Samples: 60, Alive: 1800, LongestStretch: 1740}), 1800, "",
		},
		"20 s of 8 h":  {short(record.Process{Samples: 1, Alive: 20, LongestStretch: 20}), night, ""},
		"5 min of 8 h": {short(record.Process{Samples: 9, Alive: 300, LongestStretch: 270}), night, ""},
		"more than 5 min of 8 h": {
			short(record.Process{Samples: 9, Alive: 301, LongestStretch: 270}), night,
			"com.shop was running for only 5 min of 8.0 h",
		},
		"1 min of 10 min": {short(record.Process{Samples: 2, Alive: 60, LongestStretch: 30}), 600, ""},
		"more than 1 min of 10 min": {
			short(record.Process{Samples: 2, Alive: 61, LongestStretch: 30}), 600, "com.shop was watched for only 30 s",
		},
	} {
		got := Unjudged(c.process, c.seconds)
		if c.want == "" && got != "" || c.want != "" && !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The exit code is 5 if a process that was present for a long time, or a
// device, has no verdict, even if others pass. A verdict on the process from a
// check or a window also counts.
func TestUnjudgedIsNotGreen(t *testing.T) {
	pass := record.Process{Device: "A", Process: "system_server", Gate: "pass", Alive: 28800, LongestStretch: 28800}
	crashing := record.Process{
		Device: "A", Process: "com.shop", Gate: "inconclusive", Restarts: 47, Samples: 900, Alive: 28000,
		LongestStretch: 540,
	}
	undecided := record.Process{
		Device: "B", Process: "com.shop", Gate: "inconclusive", Reason: "grew 90 MB", Samples: 900, Alive: 28000,
		LongestStretch: 28000,
	}
	one, two := []record.Device{{Device: "A", Duration: 28800}},
		[]record.Device{{Device: "A", Duration: 28800}, {Device: "B", Duration: 28800}}
	lost := []record.Device{{Device: "A", Duration: 28800}, {Device: "B", Duration: 100, Error: "gone"}}
	check := func(device string, v record.CheckVerdict) []record.Check {
		return []record.Check{
			{Device: device, Verdict: v, Processes: []record.CheckedProcess{{Process: "com.shop", Verdict: v}}},
		}
	}
	window := func(g detector.Gate) []record.JudgedWindow {
		return []record.JudgedWindow{{Device: "A", Processes: []record.WindowProcess{{Process: "com.shop", Gate: g}}}}
	}
	for name, c := range map[string]struct {
		run  record.Run
		text string // prefix of the text in Run.Unjudged; "" if that is empty
		exit int
	}{
		"a process that crashes repeatedly": {
			record.Run{Devices: one, Processes: []record.Process{pass, crashing}}, "com.shop restarted 47 times",
			record.ExitInconclusive,
		},
		"verdict from a check": {
			record.Run{Devices: one, Processes: []record.Process{pass, crashing}, Checks: check("A", "pass")}, "",
			record.ExitClean,
		},
		"a check without a verdict": {
			record.Run{Devices: one, Processes: []record.Process{pass, crashing}, Checks: check("A", "inconclusive")},
			"com.shop restarted", record.ExitInconclusive,
		},
		"a check on another device": {
			record.Run{Devices: one, Processes: []record.Process{pass, crashing}, Checks: check("B", "pass")},
			"com.shop restarted", record.ExitInconclusive,
		},
		"verdict from a window": {
			record.Run{Devices: one, Processes: []record.Process{pass, crashing}, Windows: window("pass")}, "",
			record.ExitClean,
		},
		"a window without a verdict": {
			record.Run{Devices: one, Processes: []record.Process{pass, crashing}, Windows: window("inconclusive")},
			"com.shop restarted", record.ExitInconclusive,
		},
		"a leak takes precedence": {
			record.Run{Devices: one, Processes: []record.Process{{Gate: "leak"}, crashing}}, "com.shop restarted",
			record.ExitLeak,
		},
		"a device without a process": {
			record.Run{Devices: two, Processes: []record.Process{pass}}, "no process of the app was seen in 8.0 h",
			record.ExitInconclusive,
		},
		"a device without a verdict": {
			record.Run{Devices: two, Processes: []record.Process{pass, undecided}},
			"no process has a verdict; com.shop: grew 90 MB", record.ExitInconclusive,
		},
		"device verdict from a check": {
			record.Run{Devices: two, Processes: []record.Process{pass, undecided}, Checks: check("B", "pass")}, "",
			record.ExitClean,
		},
		"lost device with its own exit code": {
			record.Run{Devices: lost, Processes: []record.Process{pass}}, "", record.ExitNoDevice,
		},
		"no process on any device": {record.Run{Devices: two}, "", record.ExitNoDevice},
		"one undecided and one passed process": {
			record.Run{
				Devices: one,
				Processes: []record.Process{
					pass, {Device: "A", Process: "com.shop", Gate: "inconclusive", Alive: 28800, LongestStretch: 28800},
				},
			}, "", record.ExitClean,
		},
	} {
		c.run.Unjudged = unjudged(c.run)
		text := ""
		if len(c.run.Unjudged) > 0 {
			text = c.run.Unjudged[0].Text
		}
		if len(c.run.Unjudged) > 1 || !strings.HasPrefix(text, c.text) || c.text == "" && text != "" {
			t.Errorf("%s: unjudged %+v", name, c.run.Unjudged)
		}
		if got := ExitCode(c.run, record.Plan{}); got != c.exit {
			t.Errorf("%s: exit %d, want %d", name, got, c.exit)
		}
		allowed := c.exit
		if allowed == record.ExitInconclusive {
			allowed = record.ExitClean
		}
		if got := ExitCode(c.run, record.Plan{AllowUnjudged: true}); got != allowed {
			t.Errorf("%s, with allow_unjudged: exit %d, want %d", name, got, allowed)
		}
	}
}

// The time for which a process was present, and its longest stretch, are
// computed from the lines.
func TestLives(t *testing.T) {
	l := partOf(t, detector.RobustPolicy(), record.HeaderDevice{Device: "S1", StartedUp: 100})
	event := func(at float64, word string, pid int) {
		l.AddEvent(record.Event{
			T: at, Up: at + 100, Event: word, User: new(0), Process: "com.x", PID: pid, Start: 1,
			Source: "smaps_rollup",
		})
	}
	samples := func(from, to float64, pid int) {
		for at := from; at <= to; at += 30 {
			kb := int64(100 << 10)
			l.AddSample(record.Sample{
				T: at, Up: at + 100, Process: "com.x", PID: pid, Start: 1, Source: "smaps_rollup", PSS: &kb,
			})
		}
	}
	event(10, "found", 1)
	samples(30, 600, 1)
	event(630, "gone", 1)
	event(700, "restart", 2)
	samples(720, 1500, 2)
	event(1510, "restart", 3)
	event(1520, "level", 3)
	samples(1530, 1560, 3)
	samples(5000, 5030, 3) // after a gap that no trend spans
	event(5050, "gone", 3)
	event(5100, "back", 3)
	samples(5130, 5160, 3)
	p := l.accounts[0].Record(1)
	if want := 620.0 + 810 + 3540 + 60; p.Alive != want || p.LongestStretch != 780 {
		t.Errorf("alive %v s, want %v; longest stretch %v s, want 780", p.Alive, want, p.LongestStretch)
	}
	if want := "restarted 2 times; longest life 13 min, a trend needs 30 min"; !strings.HasPrefix(p.Reason, want) {
		t.Errorf("because: %s", p.Reason)
	}
}
