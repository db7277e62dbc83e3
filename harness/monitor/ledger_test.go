package monitor

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters"
)

// heard is what a ledger must make of lines: the detector's own calls.
type heard struct {
	*detector.Detector
	// deaf to one sort of line, so that a test shows that the sort counts.
	deaf string
}

func (h heard) hear(sort string, call func(*detector.Detector)) {
	if sort != h.deaf {
		call(h.Detector)
	}
}

// saga is a life of one process as lines and as calls, from one seed: eight hours with
// a leak, loops, holes, changes of how it is read and restarts.
func saga(seed uint64, l *ledger, to []heard) {
	r := rand.New(rand.NewPCG(seed, 1))
	p := capture.Process{Name: "com.x", PID: 7, Start: 8}
	line := func(e reporters.Event, up time.Duration) {
		e.Up, e.T = up.Seconds(), l.seconds(up)
		if e.Event != "mark" {
			e.User, e.Process, e.PID, e.Start, e.Source = new(0), p.Name, p.PID, p.Start, "smaps_rollup"
		}
		l.event(e)
	}
	all := func(sort string, call func(*detector.Detector)) {
		for _, h := range to {
			h.hear(sort, call)
		}
	}
	up, loops, level := 100*time.Second, 0, 0.0
	line(reporters.Event{Event: "found"}, up)
	for range 960 {
		up += 30 * time.Second
		switch n := r.IntN(500); {
		case n < 25:
			loops++
			text := fmt.Sprintf("loop %d", loops)
			line(reporters.Event{Event: "mark", Text: text}, up)
			all("mark", func(d *detector.Detector) { d.AddMark(detector.Mark{At: up, Text: text}) })
		case n == 25:
			up += time.Duration(r.IntN(3600)) * time.Second
			line(reporters.Event{Event: "gap"}, up)
			all("gap", func(d *detector.Detector) { d.Gap(up) })
		case n == 26:
			line(reporters.Event{Event: "level"}, up)
			all("level", func(d *detector.Detector) { d.Change(up) })
			level -= 100
		case n == 27:
			p.PID++
			line(reporters.Event{Event: "restart"}, up)
			all("restart", func(d *detector.Detector) { d.Restart(up) })
			level = 0
		}
		level += 0.3 + float64(r.IntN(3)) // MB
		kb := 300<<10 + int64(level*1024)
		l.sample(reporters.Sample{
			T: l.seconds(up), Up: up.Seconds(), User: 0, Process: p.Name, PID: p.PID, Start: p.Start,
			Source: "smaps_rollup", PSS: &kb,
		})
		all("sample", func(d *detector.Detector) { d.AddSample(detector.Sample{At: up, Bytes: kb << 10}) })
	}
}

// A ledger is the detector fed with its lines: marks, gaps, changes and restarts
// reach it as such, and each of them counts.
func TestLedgerFeedsTheDetector(t *testing.T) {
	for _, policy := range []detector.Policy{detector.RobustPolicy(), detector.ArticlePolicy()} {
		without := map[string]int{}
		for seed := range uint64(20) {
			l := newLedger(policy, reporters.HeaderDevice{Device: "S1", StartedUp: 100})
			to := []heard{{detector.New(policy), ""}}
			for _, sort := range []string{"mark", "gap", "level", "restart"} {
				to = append(to, heard{detector.New(policy), sort})
			}
			saga(seed, l, to)
			got := l.order[0].detector.Verdict()
			if want := to[0].Verdict(); !reflect.DeepEqual(got, want) {
				t.Errorf("%s, seed %d:\ngot  %+v\nwant %+v", policy.Name, seed, got, want)
			}
			for _, h := range to[1:] {
				if !reflect.DeepEqual(got, h.Verdict()) {
					without[h.deaf]++
				}
			}
		}
		t.Logf("%s: another verdict without %v", policy.Name, without)
	}
}

// A run from before there was another policy is judged by the article, whatever the
// default is now; a new one by what its header names.
func TestPolicyOfTheHeader(t *testing.T) {
	const article = `{"Name":"article","Article":{"TMin":3}}`
	changed := detector.RobustPolicy()
	changed.Robust.MaxGap = time.Hour
	own, err := json.Marshal(changed)
	if err != nil {
		t.Fatal(err)
	}
	withTMin := detector.ArticlePolicy()
	withTMin.Article.TMin = 3
	for name, c := range map[string]struct {
		plan *reporters.Plan
		want detector.Policy
	}{
		"no plan":                 {nil, detector.ArticlePolicy()},
		"a plan without a policy": {&reporters.Plan{}, detector.ArticlePolicy()},
		"the article alone":       {&reporters.Plan{Policy: json.RawMessage(article)}, withTMin},
		"its own":                 {&reporters.Plan{Policy: own}, changed},
	} {
		if got, err := policyOf(reporters.Header{Plan: c.plan}); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
