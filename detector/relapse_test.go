package detector_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
)

// relapses simulates a process that dies repeatedly: each life lasts a few
// minutes, with a sample every 30 s. Every fourth sample comes with a
// breakdown.
type relapses struct {
	d     *detector.Detector
	at    time.Duration
	lives int
	steps []detector.Transition
	// diagnose is the duration of a diagnosis; 0 means that there is none.
	diagnose time.Duration
	asked    []time.Duration
}

func newRelapses() *relapses {
	return &relapses{d: detector.New(detector.RobustPolicy()), at: bootTime}
}

// live adds one life of the given number of minutes, and its end. The level in
// MB is a function of the age in minutes.
func (r *relapses) live(minutes int, cause detector.Cause, level func(age float64) float64) {
	begin := r.at
	for i := 0; r.at < begin+time.Duration(minutes)*time.Minute; i++ {
		age := (r.at - begin).Minutes()
		mb := level(age) + rippled(r.lives, age)
		r.keep(r.d.AddSample(detector.Sample{At: r.at, Bytes: int64(mb * detector.MB)}))
		if i%4 == 3 {
			r.keep(r.d.AddBreakdown(wholeReading(r.at+time.Second, int64(mb))))
		}
		if r.diagnose > 0 && r.d.Demand().Diagnose != detector.None {
			r.asked = append(r.asked, r.at)
			r.keep(r.d.DiagnosisFinished(r.at + r.diagnose))
		}
		r.at += 30 * time.Second
	}
	r.lives++
	ended := r.at - 30*time.Second
	r.at += 20 * time.Second
	r.keep(r.d.Restart(r.at))
	r.d.AddDeath(ended, cause)
}

func (r *relapses) keep(steps []detector.Transition) { r.steps = append(r.steps, steps...) }

// alarms returns the transitions to LEAKING.
func (r *relapses) alarms() []detector.Transition {
	return slices.DeleteFunc(slices.Clone(r.steps),
		func(s detector.Transition) bool { return s.To != detector.Leaking || s.From == detector.Leaking })
}

// TestRelapse counts the alarms of processes that ran out of memory, and of
// other processes.
func TestRelapse(t *testing.T) {
	line := func(age float64) float64 { return 200 + 20*age }
	flat := func(float64) float64 { return 200 }
	low := func(age float64) float64 { return 200 + 10*age }
	type life struct {
		minutes int
		cause   detector.Cause
		level   func(float64) float64
	}
	again := func(n int, l life) []life { return slices.Repeat([]life{l}, n) }
	dies := life{10, detector.OutOfMemory, line}
	for name, c := range map[string]struct {
		lives []life
		want  int
	}{
		"four":                {again(4, dies), 1},
		"three":               {again(3, dies), 0},
		"six":                 {again(6, dies), 3},
		"crashes":             {again(6, life{10, detector.Crash, line}), 0},
		"growing, low memory": {again(6, life{10, detector.LowMemory, line}), 3},
		"flat, low memory":    {again(6, life{10, detector.LowMemory, flat}), 0},
		"flat, out of memory": {again(6, life{10, detector.OutOfMemory, flat}), 0},
		"lower afterwards":    {append(again(3, dies), again(4, life{10, detector.Crash, low})...), 0},
		"as high afterwards, then higher": {
			append(again(3, dies), life{8, detector.Crash, line}, life{9, detector.Crash, line}), 2,
		},
		"two other exits in between": {
			append(again(2, dies), life{10, detector.Killed, line}, life{10, detector.Exited, line}, dies, dies), 1,
		},
		"within a minute": {again(6, life{1, detector.OutOfMemory, line}), 0},
	} {
		r := newRelapses()
		for _, l := range c.lives {
			r.live(l.minutes, l.cause, l.level)
		}
		got := r.alarms()
		if len(got) != c.want {
			t.Errorf("%s: %d alarms, want %d: %+v", name, len(got), c.want, got)
		}
		state := detector.Normal
		for _, s := range r.steps {
			if err := arrowFault(s, state); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			state = s.To
		}
		if v := r.d.Verdict(); (v.Worst == detector.Leaking) != (c.want > 0) || v.FirstLeaking.Known &&
			v.FirstSuspicious.N > v.FirstLeaking.N {
			t.Errorf("%s: worst %v, %+v", name, v.Worst, v.FirstLeaking)
		}
	}
}

// TestRelapseText checks the time and the message of the alarm, and that later
// looks do not clear the alarm.
func TestRelapseText(t *testing.T) {
	r := newRelapses()
	for range 3 {
		r.live(20, detector.OutOfMemory, func(age float64) float64 { return 200 + 10*age })
	}
	begin := r.at
	// Memory rises until a minute before the age at which the other lives died,
	// and stays at that level for an hour.
	r.live(60, detector.Exited, func(age float64) float64 { return 200 + 10*min(age, 18) })
	got := r.alarms()
	if len(got) != 1 || got[0].Rule != "relapse" {
		t.Fatalf("%+v", r.steps)
	}
	// The alarm comes three quarters of the way from 229 to 432 MB. The levels
	// of 229 and 432 MB include the graphics memory of the breakdowns.
	if age := (got[0].At - begin).Minutes(); age < 13.5 || age > 15.5 {
		t.Errorf("at %.1f min", age)
	}
	for _, words := range []string{
		"3 out-of-memory deaths, and memory is back at 383 MB: " +
			"the processes that died had started at about 229 MB and ended at about 432; growth: ",
	} {
		if !strings.Contains(got[0].Because, words) {
			t.Errorf("no %q in %q", words, got[0].Because)
		}
	}
	if last := r.steps[len(r.steps)-1]; last.From != detector.Leaking || last.Rule != "break" {
		t.Errorf("cleared: %+v", r.steps)
	}
	if v := r.d.Verdict(); v.Gate != detector.Leak {
		t.Errorf("%v: %s", v.Gate, v.Because)
	}
}

// TestRelapseIsDiagnosed checks that the fourth life demands a diagnosis, that
// the fifth life does too if the first diagnosis did not finish, and that no
// diagnosis is demanded during the cooldown.
func TestRelapseIsDiagnosed(t *testing.T) {
	line := func(age float64) float64 { return 200 + 20*age }
	r := newRelapses()
	for range 5 {
		r.live(10, detector.OutOfMemory, line) // no diagnosis finishes
	}
	if n := len(r.alarms()); n != 2 {
		t.Errorf("%d alarms without a diagnosis, want 2", n)
	}
	if want := r.d.Demand().Diagnose; want != detector.None {
		t.Errorf("demands %v right after a restart, want none", want)
	}
	r.diagnose = time.Minute
	from := r.at
	for range 8 {
		r.live(10, detector.OutOfMemory, line)
	}
	var lives []string
	for _, at := range r.asked {
		lives = append(lives, fmt.Sprintf("%.0f", float64(at-from)/float64(10*time.Minute+20*time.Second)))
	}
	// Each alarm comes about 7.5 min after its life began, so the cooldown of
	// 30 min ends in the third life after that.
	if got := strings.Join(lives, " "); got != "1 4 7" {
		t.Errorf("diagnosed in lives %s, want 1 4 7", got)
	}
}
