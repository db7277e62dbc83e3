package ledger

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// A jump is reported in any state and is not a transition. Jumps do not
// displace transitions from the list.
func TestJumpIsNotATransition(t *testing.T) {
	l := partOf(t, detector.ArticlePolicy(), record.HeaderDevice{Device: "S1", StartedUp: 100})
	a := l.Open(capture.Process{Name: "com.x", PID: 7, Start: 8})
	for _, state := range []detector.State{
		detector.Normal, detector.Suspicious, detector.Confirming, detector.Leaking,
	} {
		out := l.entries(a,
			[]detector.Transition{{At: 160 * time.Second, From: state, To: state, Rule: "jump", Because: "+250 MB"}})
		if len(out) != 1 || !out[0].Jump() || out[0].T != 60 || out[0].Reason != "+250 MB" {
			t.Errorf("%v: %+v", state, out)
		}
	}
	if len(a.transitions) > 0 || a.firstSuspicious != nil || a.firstLeaking != nil || len(a.jumps) != 4 {
		t.Errorf("a jump was counted as a transition: %+v", a)
	}
	out := l.entries(a, []detector.Transition{{At: 170 * time.Second, From: detector.Normal, To: detector.Suspicious}})
	if len(out) != 1 || out[0].Jump() || len(a.transitions) != 1 || a.firstSuspicious == nil ||
		*a.firstSuspicious != 70 || len(a.jumps) != 4 {
		t.Errorf("transition after jumps: got %+v in the account %+v", out, a)
	}
}

// The jumps of a verdict are on the time axis of the run, including those from
// before a reboot. However many jumps were reported, the times of the latest
// ones are correct.
func TestJumpsAcrossReboot(t *testing.T) {
	for reported := range 40 {
		l := partOf(t, detector.ArticlePolicy(), record.HeaderDevice{Device: "S1", StartedUp: 5000})
		a := l.Open(capture.Process{Name: "com.x", PID: 7, Start: 8})
		var jumps []detector.Jump
		var want []record.Jump
		for i := range reported {
			if i == 20 {
				// This is 20 s after the boot and 3000 s after the beginning of
				// the run.
				l.AddEvent(record.Event{Event: "reboot", T: 3000, Up: 20})
			}
			at := time.Duration(5000+100*i) * time.Second
			if i >= 20 {
				at = time.Duration(20+100*i-2000) * time.Second
			}
			l.entries(a, []detector.Transition{{At: at, Rule: "jump"}})
			jumps = append(jumps, detector.Jump{At: at, Bytes: int64(i+1) * detector.MB, Stayed: i%2 == 0})
			second := float64(100 * i)
			if i >= 20 {
				second += 1000 // the reboot came at 3000 and not at 2000
			}
			want = append(want, record.Jump{T: second, Size: float64(i + 1), Sustained: i%2 == 0})
		}
		from := max(0, reported-maxJumps)
		got := a.jumpsOf(jumps[from:])
		if len(got) != len(want[from:]) || len(got) > 0 && !reflect.DeepEqual(got, want[from:]) {
			t.Fatalf("%d jumps: %+v\nwant %+v", reported, got, want[from:])
		}
	}
}

// When a run is rebuilt, the lines that report transitions and jumps are
// ignored, because they follow from the samples.
func TestRebuildIgnoresJumpLines(t *testing.T) {
	const header = headerLine
	const found = `{"t_s":1,"up_s":2,"device":"S1","event":"found","user":0,"process":"x","pid":1,"start":2,"source":"smaps_rollup"}` + "\n"
	var lines [2]strings.Builder
	for i := range 50 {
		for n := range lines {
			fmt.Fprintf(&lines[n],
				`{"t_s":%d,"up_s":%d,"device":"S1","user":0,"process":"x","pid":1,"start":2,"source":"smaps_rollup","pss_kb":%d}`+"\n", 30*i+1, 30*i+2, 100_000+i%3)
		}
		fmt.Fprintf(&lines[1],
			`{"t_s":%d,"up_s":%d,"device":"S1","event":"jump","user":0,"process":"x","pid":1,"text":"+250 MB"}`+"\n",
			30*i+1, 30*i+2)
	}
	var runs [2]string
	for n := range lines {
		run, warnings, err := rebuildOf(t, []byte(header+found+lines[n].String()))
		if err != nil || len(warnings) > 0 {
			t.Fatal(err, warnings)
		}
		text, err := json.Marshal(run)
		if err != nil {
			t.Fatal(err)
		}
		runs[n] = string(text)
	}
	if runs[0] != runs[1] {
		t.Errorf("lines that report jumps change the run:\n%s\n%s", runs[0], runs[1])
	}
	if !strings.Contains(runs[0], `"jumps":[]`) || !strings.Contains(runs[0], `"shares":[]`) {
		t.Errorf("jumps or shares is not an empty list: %s", runs[0])
	}
}
