package monitor

import (
	"sync"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/harness/ledger"
)

// port is what the parts of a session share with its loop: the record, the device and its clock, the
// processes that are watched, and whether the device responds. Only the goroutine of the loop uses it;
// requests run beside the loop and hand their answers back (see [send]).
type port struct {
	*journal
	run   *run
	dev   Device
	clock clock
	// boots counts the reboots of the device.
	boots    int
	subjects *subjects
	silence  *silence
	loop     loop
	// calls are the requests that run beside the loop.
	calls sync.WaitGroup
	// notes are what other goroutines leave for the loop.
	notes mailbox
}

// loop is what a part may have the loop of its session do to the other parts.
type loop interface {
	// sampled does what follows from a sample: what the detector demands, and warnings.
	sampled(x *subject)
	// transitioned does what follows from a transition of a detector.
	transitioned(t ledger.Entry)
	// lookBy has the processes listed by a time of the session's clock.
	lookBy(at time.Duration)
	// reprobe has the device asked again how a process can be read.
	reprobe(p capture.Process)
	// restarted begins the device's new clock after a reboot.
	restarted(up time.Duration)
	// userChanged forgets what the shell of another user was allowed.
	userChanged()
}

func newPort(r *run, d Device, l loop) *port {
	c := clock{started: time.Now(), scale: d.Facts.TimeScale}
	p := &port{run: r, dev: d, clock: c, loop: l, notes: newMailbox()}
	p.journal = &journal{run: r, device: d.Serial(), clock: c, part: r.ledger.Part(d.Serial()), loop: l, faults: map[requestKind]string{}}
	p.subjects = &subjects{port: p, byKey: map[capture.Key]*subject{}}
	p.silence = newSilence(p)
	return p
}

// stale reports whether the device has rebooted since a request began.
func stale[T any](p *port, a answer[T]) bool { return a.boot != p.boots }
