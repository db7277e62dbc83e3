package replay

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// track is one process of a table, as its reader knows it. What it finds goes to
// the track's judge, which another goroutine runs.
type track struct {
	judge  *judge
	worker *worker
	// pid and former are its present and its last pid, start its start time; 0 for
	// unknown.
	pid, former, start uint64
	// last is the time of the latest sample, detailed of the latest breakdown; both
	// are unknown until there is one.
	last, detailed   time.Duration
	begun, wasDetail bool
	rhythm           rhythm
	gaps             int
	absent           time.Duration
	doubts           doubts
}

// rhythm is the usual time between two samples: the median of the latest ones.
type rhythm struct {
	recent [15]time.Duration
	n      int
	usual  time.Duration
}

// longestInterval is the longest time between two samples that a policy asks for: a
// run slows down to it by itself.
const longestInterval = time.Minute

// hole tells whether a time between two samples is a hole in the recording.
func (r *rhythm) hole(step time.Duration) bool {
	return r.n >= 3 && step > 3*max(r.usual, longestInterval)
}

func (r *rhythm) add(step time.Duration) {
	r.recent[r.n%len(r.recent)] = step
	r.n++
	// The median of a steady recording needs no sorting for each row.
	if r.n < len(r.recent) || r.n%len(r.recent) == 0 {
		known := r.recent
		sorted := known[:min(r.n, len(known))]
		slices.Sort(sorted)
		r.usual = sorted[len(sorted)/2]
	}
}

// family is the processes of one name; more than one where several of them run at
// the same time under pids of their own.
type family struct {
	tracks []*track
	// byPID has the present pids and, with nil, the former ones.
	byPID map[uint64]*track
}

// find gives the track of a row, nil if none is there yet. A pid that was not seen
// before is the latest process started anew, unless that one was still there at
// this time.
func (f *family) find(pid uint64, at time.Duration) *track {
	if pid == 0 {
		return f.latest()
	}
	t, known := f.byPID[pid]
	if known {
		return t
	}
	if t = f.latest(); t == nil || t.pid == 0 || !t.begun || t.last < at {
		return t
	}
	return nil
}

func (f *family) latest() *track {
	if len(f.tracks) == 0 {
		return nil
	}
	return f.tracks[len(f.tracks)-1]
}

// take gives a track a pid.
func (f *family) take(t *track, pid uint64) {
	if pid == 0 || pid == t.pid {
		return
	}
	if f.byPID == nil {
		f.byPID = map[uint64]*track{}
	}
	if t.former != 0 && f.byPID[t.former] == nil {
		delete(f.byPID, t.former)
	}
	if t.pid != 0 {
		f.byPID[t.pid] = nil
	}
	t.former, t.pid = t.pid, pid
	f.byPID[pid] = t
}

// judge is the detector of one track and what it has said.
type judge struct {
	name, source string
	detector     *detector.Detector
	track        *track

	first, last                   time.Duration
	lastBytes                     int64
	samples, details, marks       int
	restarts                      int
	firstSuspicious, firstLeaking *float64
	transitions                   []record.Transition
	dropped                       int
	looks                         looks
}

// maxTransitions bounds the steps that are kept of one process: the latest ones.
const maxTransitions = 1000

func newJudge(name, source string, o Options, explained bool) *judge {
	j := &judge{name: name, source: source, detector: detector.New(o.Policy)}
	if explained {
		j.detector.Explain(func(l detector.Look) { j.looks.add(j.seconds(l.At), l) })
	}
	return j
}

func (j *judge) seconds(at time.Duration) float64 { return round((at - j.first).Seconds(), 3) }

// hear takes one input.
func (j *judge) hear(in *input) {
	switch in.kind {
	case isSample:
		if j.samples == 0 {
			j.first = in.at
		}
		j.samples++
		j.last, j.lastBytes = in.at, in.bytes
		j.keep(j.detector.AddSample(detector.Sample{At: in.at, Bytes: in.bytes}))
	case isBreakdown:
		j.details++
		j.keep(j.detector.AddBreakdown(in.breakdown))
	case isRestart:
		j.restarts++
		j.keep(j.detector.Restart(in.at))
	case isGap:
		j.keep(j.detector.Gap(in.at))
	case isMark:
		j.marks++
		j.detector.AddMark(detector.Mark{At: in.at, Text: in.text})
	}
}

// keep keeps the steps; one that leads nowhere tells a jump, which the verdict has.
func (j *judge) keep(steps []detector.Transition) {
	for _, t := range steps {
		if t.From == t.To {
			continue
		}
		at := j.seconds(t.At)
		switch {
		case t.To == detector.Suspicious && j.firstSuspicious == nil:
			j.firstSuspicious = new(at)
		case t.To == detector.Leaking && j.firstLeaking == nil:
			j.firstLeaking = new(at)
		}
		if len(j.transitions) == maxTransitions {
			j.transitions = append(j.transitions[:0], j.transitions[1:]...)
			j.dropped++
		}
		j.transitions = append(j.transitions, record.Transition{
			T: at, From: t.From.String(), To: t.To.String(), Kind: t.Kind.String(), Because: t.Because,
		})
	}
}

// The methods of subject.

func (j *judge) judgedBy() *detector.Detector { return j.detector }

func (j *judge) key() key { return key{process: j.name} }

func (j *judge) heard() int { return j.samples }

func (j *judge) record(processes int) Process {
	t := j.track
	p := Process{Marks: j.marks, Process: record.Process{
		Process: j.name, PID: int(min(t.pid, math.MaxInt32)), Source: j.source, Reasons: []string{},
		Restarts: j.restarts, Samples: j.samples, Details: j.details,
		Gaps: t.gaps, Absent: round(t.absent.Seconds(), 3), Duration: j.seconds(j.last),
		FirstSuspicious: j.firstSuspicious, FirstLeaking: j.firstLeaking,
		Headroom: []record.Standing{}, HeadroomReasons: []string{}, Limits: []record.LimitWarning{},
		Transitions: append([]record.Transition{}, j.transitions...), Warnings: append([]string{}, t.doubts.list()...),
	}}
	if j.samples > 0 {
		p.LastMB = new(round(mb(j.lastBytes), 2))
	}
	j.detector.Among(processes)
	judged(&p.Process, j.detector.Verdict(), j.first)
	if p.Gate == string(detector.Pass) && p.Absent > p.Duration/2 {
		p.Gate = string(detector.Inconclusive)
		p.Because = fmt.Sprintf("no samples for %s of %s: %s", text.Span(p.Absent), text.Span(p.Duration), p.Because)
	}
	if j.dropped > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%d earlier steps are left out", j.dropped))
	}
	p.Looks = j.looks.kept // a verdict may look once more
	p.Warnings = append(p.Warnings, j.looks.leftOut()...)
	return p
}
