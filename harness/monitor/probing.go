package monitor

import (
	"context"
	"slices"

	"github.com/leakgate/leakgate/capture"
)

// probing asks how processes can be read.
type probing struct {
	*port
	call   call[probed]
	levels *capture.Levels
	// queue are processes to be probed, asking those of the request under way.
	queue, asking []capture.Process
	// forget are those whose level is in doubt; renewed: all are, because the shell is another user.
	forget  []capture.Process
	renewed bool
}

// busy reports whether an answer is on its way.
func (q *probing) busy() bool { return q.call.inFlight }

// again has a process asked again.
func (q *probing) again(p capture.Process) { q.forget = append(q.forget, p) }

// dropQueue forgets the processes that were not asked yet.
func (q *probing) dropQueue() { q.queue = nil }

// restarted forgets what was to be asked before the device restarted.
func (q *probing) restarted() { q.queue, q.forget = nil, nil }

// end waits for the answer that is on its way, and drops it.
func (q *probing) end() {
	if q.call.inFlight {
		<-q.call.done
		q.call.inFlight, q.asking = false, nil
	}
}

// userChanged has every process asked again, by the shell of another user.
func (q *probing) userChanged() {
	q.levels, q.renewed = capture.NewLevels(q.dev, q.dev.Facts), true
}

// probed is the answer to one trip of probes.
type probed struct {
	processes []capture.Process
	probes    []capture.Probe
}

// queueFound queues the processes of a look: first those that are not watched yet, as many as
// will be, then those whose answers may have changed.
func (q *probing) queueFound(processes []capture.Process) {
	var others []capture.Process
	room := maxSubjects - len(q.subjects.order)
	for _, p := range processes {
		switch {
		case slices.Contains(q.asking, p) || slices.Contains(q.queue, p):
		case q.subjects.watched(p):
			if q.renewed || q.inDoubt(p) {
				others = append(others, p)
			}
		case q.subjects.byKey[p.Key()] != nil:
			q.queue = append(q.queue, p)
		case room > 0:
			room--
			q.queue = append(q.queue, p)
		}
	}
	q.queue, q.renewed = append(q.queue, others...), false
}

// inDoubt reports whether a process that is watched may have to be read in another way: its level
// failed, or something did not answer when it was looked for.
func (q *probing) inDoubt(p capture.Process) bool {
	return slices.Contains(q.forget, p) || slices.ContainsFunc(q.subjects.byKey[p.Key()].probe.Findings, func(f capture.Finding) bool {
		return f.Answer == capture.Unclear
	})
}

// missing counts the processes of a look that are to be watched and whose probe is missing.
func (q *probing) missing(l *openLook) (n int) {
	waits := func(p capture.Process) bool {
		_, ok := l.probes[p]
		return !ok && !q.subjects.watched(p)
	}
	for _, p := range q.asking {
		if waits(p) {
			n++
		}
	}
	for _, p := range q.queue {
		if waits(p) {
			n++
		}
	}
	return n
}

// provisionalProbe is the probe of a process of which the device has not said yet how it can be
// read: every build lets the shell read its status.
func provisionalProbe() capture.Probe {
	return capture.Probe{
		Level:    capture.Level{Source: capture.Status},
		Findings: []capture.Finding{{Source: capture.SmapsRollup, Reason: "the device has not answered yet"}},
	}
}

// send asks how the next processes of the queue can be read.
func (q *probing) send(ctx context.Context) {
	if q.call.inFlight || len(q.queue) == 0 {
		return
	}
	n := min(len(q.queue), probesPerTrip)
	forget, levels := q.forget, q.levels
	q.asking, q.queue, q.forget = q.queue[:n:n], q.queue[n:], nil
	asking := q.asking
	send(q.port, &q.call, func() (probed, error) {
		for _, p := range forget {
			levels.Forget(p)
		}
		probes, err := levels.ProbeAll(ctx, asking)
		return probed{asking, probes}, err
	})
}

func (q *probing) take(ctx context.Context, a answer[probed]) {
	q.call.inFlight, q.asking = false, nil
	if !stale(q.port, a) && a.err != nil {
		q.queue = nil // the next look asks again
		q.silence.requestFailed(ctx, requestLook, a.err)
	}
}
