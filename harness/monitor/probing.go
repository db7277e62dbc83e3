package monitor

import (
	"context"
	"slices"

	"github.com/leakgate/leakgate/capture"
)

// probing determines how processes can be read.
type probing struct {
	*port
	call   call[probed]
	levels *capture.Levels
	// queue lists the processes to be probed; current lists those in the
	// request in flight.
	queue, current []capture.Process
	// forget holds the processes whose level may be wrong. renewed is set if
	// this applies to every process, because the shell runs as another user.
	forget  []capture.Process
	renewed bool
}

// busy reports whether a request is in flight.
func (q *probing) busy() bool { return q.call.inFlight }

// reprobe makes the next scan probe a process again.
func (q *probing) reprobe(p capture.Process) { q.forget = append(q.forget, p) }

// dropQueue removes the processes that have not been probed yet.
func (q *probing) dropQueue() { q.queue = nil }

// restarted discards the queue from before the reboot.
func (q *probing) restarted() { q.queue, q.forget = nil, nil }

// awaitAnswer waits for the request in flight and discards its result.
func (q *probing) awaitAnswer() {
	if q.call.inFlight {
		<-q.call.done
		q.call.inFlight, q.current = false, nil
	}
}

// userChanged makes the next scan probe every process again, because the shell
// now runs as another user.
func (q *probing) userChanged() {
	q.levels, q.renewed = capture.NewLevels(q.dev, q.dev.Facts), true
}

// probed is the result of one request.
type probed struct {
	processes []capture.Process
	probes    []capture.Probe
}

// queueFound queues the processes that a scan found: first new processes, up to
// the maximum, then those for which another probe may return a different
// result.
func (q *probing) queueFound(processes []capture.Process) {
	var others []capture.Process
	free := maxSubjects - len(q.subjects.order)
	for _, p := range processes {
		switch {
		case slices.Contains(q.current, p) || slices.Contains(q.queue, p):
		case q.subjects.watched(p):
			if q.renewed || q.inDoubt(p) {
				others = append(others, p)
			}
		case q.subjects.byKey[p.Key()] != nil:
			q.queue = append(q.queue, p)
		case free > 0:
			free--
			q.queue = append(q.queue, p)
		}
	}
	q.queue, q.renewed = append(q.queue, others...), false
}

// inDoubt reports whether a watched process may have to be read in another way,
// because its level failed or a source did not respond when the process was
// probed.
func (q *probing) inDoubt(p capture.Process) bool {
	return slices.Contains(q.forget, p) ||
		slices.ContainsFunc(q.subjects.byKey[p.Key()].probe.Findings, func(f capture.ProbeResult) bool {
			return f.Answer == capture.Unclear
		})
}

// missing returns how many processes found by a scan should be watched but have
// not been probed yet.
func (q *probing) missing(l *openScan) (n int) {
	waits := func(p capture.Process) bool {
		_, ok := l.probes[p]
		return !ok && !q.subjects.watched(p)
	}
	for _, p := range q.current {
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

// provisionalProbe returns the probe result used for a process until the device
// has responded: the shell may read a process's status file on every build.
func provisionalProbe() capture.Probe {
	return capture.Probe{
		Level:    capture.Level{Source: capture.Status},
		Findings: []capture.ProbeResult{{Source: capture.SmapsRollup, Reason: "the device has not responded yet"}},
	}
}

// send probes the next processes of the queue.
func (q *probing) send(ctx context.Context) {
	if q.call.inFlight || len(q.queue) == 0 {
		return
	}
	n := min(len(q.queue), probesPerRequest)
	forget, levels := q.forget, q.levels
	q.current, q.queue, q.forget = q.queue[:n:n], q.queue[n:], nil
	asking := q.current
	send(q.port, &q.call, func() (probed, error) {
		for _, p := range forget {
			levels.Forget(p)
		}
		probes, err := levels.ProbeAll(ctx, asking)
		return probed{asking, probes}, err
	})
}

func (q *probing) take(ctx context.Context, a answer[probed]) {
	q.call.inFlight, q.current = false, nil
	if !stale(q.port, a) && a.err != nil {
		q.queue = nil // the next scan probes them again
		q.silence.requestFailed(ctx, requestScan, a.err)
	}
}
