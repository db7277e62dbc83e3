package monitor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

// timedWork is a workload that takes some time, and fails in one of its
// repetitions.
type timedWork struct {
	takes  time.Duration
	failAt int
	passes int
}

func (s *timedWork) Describe() record.Workload { return record.Workload{Kind: "command"} }

func (s *timedWork) Run(ctx context.Context, _ Env) (record.Workload, error) {
	s.passes++
	if sleep(ctx, s.takes) != nil {
		return s.Describe(), nil
	}
	if s.passes == s.failAt {
		return s.Describe(), errors.New("exit 1")
	}
	return s.Describe(), nil
}

// In a run with a range of durations, a suspicion extends the run until it is
// decided, at most to the end of the range. Without a suspicion, the run is not
// extended. A workload is repeated if it ends before the run does.
func TestSuspicionExtendsTheRun(t *testing.T) {
	const minute = 60.0
	for name, c := range map[string]struct {
		app         androidsim.ProcessSpec
		least, most time.Duration
		work        *timedWork
		from, to    float64 // when the run ends
		gate        detector.Gate
		exit        int
		stopped     string
		extended    bool
		passes      [2]int // minimum and maximum number
	}{
		"no suspicion": {
			healthy("com.shop"), 12 * time.Minute, 30 * time.Minute, nil, 12 * minute, 12 * minute, "inconclusive", 5,
			"duration", false, [2]int{},
		},
		"leak proved at the end": {
			leaky("com.shop", androidsim.Java, 1200), 12 * time.Minute, 40 * time.Minute, nil, 29 * minute, 35 * minute,
			"leak", 1, "duration", true, [2]int{},
		},
		"never decided": {
			leaky("com.shop", androidsim.Java, 1200), 12 * time.Minute, 20 * time.Minute, nil, 20 * minute, 20 * minute,
			"inconclusive", 5, "duration", true, [2]int{},
		},
		"leak proved before the minimum duration": {
			leaky("com.shop", androidsim.Java, 1200), 45 * time.Minute, 2 * time.Hour, nil, 45 * minute, 45 * minute,
			"leak", 1, "duration", false, [2]int{},
		},
		"slower leak proved during the extension": {
			leaky("com.shop", androidsim.Java, 150), 35 * time.Minute, 8 * time.Hour, nil, 40 * minute, 120 * minute,
			"leak", 1, "duration", true, [2]int{},
		},
		"no maximum duration": {
			leaky("com.shop", androidsim.Java, 1200), 12 * time.Minute, 0, nil, 12 * minute, 12 * minute,
			"inconclusive", 5, "duration", false, [2]int{},
		},
		"workload ends first, no suspicion": {
			healthy("com.shop"), 12 * time.Minute, 30 * time.Minute, &timedWork{takes: 8 * time.Minute}, 8 * minute,
			8 * minute, "inconclusive", 5, "workload", false, [2]int{1, 1},
		},
		"workload ends first and is repeated": {
			leaky("com.shop", androidsim.Java, 1200), 12 * time.Minute, 40 * time.Minute,
			&timedWork{takes: 8 * time.Minute}, 29 * minute, 35 * minute, "leak", 1, "", true, [2]int{4, 5},
		},
		"repeated workload fails": {
			leaky("com.shop", androidsim.Java, 1200), 12 * time.Minute, 40 * time.Minute,
			&timedWork{takes: 8 * time.Minute, failAt: 2}, 16 * minute, 16 * minute, "inconclusive", 4, "workload",
			true, [2]int{2, 2},
		},
		"workload ends immediately": {
			leaky("com.shop", androidsim.Java, 1200), 12 * time.Minute, 40 * time.Minute,
			&timedWork{takes: time.Millisecond}, 0, 1, "inconclusive", 5, "workload", false, [2]int{1, 1},
		},
		"workload exceeds the maximum duration": {
			leaky("com.shop", androidsim.Java, 1200), 12 * time.Minute, 20 * time.Minute, &timedWork{takes: time.Hour},
			20 * minute, 20 * minute, "inconclusive", 5, "duration", true, [2]int{1, 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := options(t, phone("S1", rooted(), c.app))
				o.Policy, o.Duration, o.LongestDuration, o.AllowUnjudged = detector.RobustPolicy(), c.least, c.most,
					false
				if c.work != nil {
					o.Workload = c.work
				}
				r := perform(t, t.Context(), o)
				x, lasted := r.process(t, "S1", "com.shop"), r.Devices[0].Duration
				if lasted < c.from || lasted > c.to+1 || x.Gate != c.gate || r.ExitCode != c.exit || c.stopped != "" &&
					r.Stopped != c.stopped {
					t.Errorf("stopped by %s at %.1f min, exit %d, %s: %s", r.Stopped, lasted/60, r.ExitCode, x.Gate,
						x.Reason)
				}
				if (r.Extended > 0) != c.extended || (r.ExtendedReason != "") != c.extended || c.extended &&
					!strings.HasPrefix(r.ExtendedReason, "com.shop ") {
					t.Errorf("extended by %v s: %q", r.Extended, r.ExtendedReason)
				}
				if c.work != nil &&
					(c.work.passes < c.passes[0] || c.work.passes > c.passes[1] ||
						r.Workload.Repeats != c.work.passes-1) {
					t.Errorf("%d passes, %+v", c.work.passes, r.Workload)
				}
				var out strings.Builder
				if err := reporters.WriteRun(&out, r.Run); err != nil ||
					strings.Contains(out.String(), "extended by ") != c.extended {
					t.Errorf("%v\n%s", err, &out)
				}
			})
		})
	}
}

// A repetition of monkey uses a different seed.
func TestMonkeyRepeatsWithAnotherSeed(t *testing.T) {
	if m, ok := repetition(Monkey{Package: "com.shop", Seed: 7, Events: 9}, 2).(Monkey); !ok || m.Seed != 9 ||
		m.Events != 9 {
		t.Errorf("%+v", m)
	}
	if c, ok := repetition(DeviceCommand{Command: "x"}, 2).(DeviceCommand); !ok || c.Command != "x" {
		t.Errorf("%+v", c)
	}
}
