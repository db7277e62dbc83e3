package monitor

import (
	"sync"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/harness/ledger"
)

// port is the state that the parts of a session share: the record, the device
// and its clock, the watched processes, and whether the device responds. Only
// the session's goroutine uses it. Requests run in separate goroutines and
// return their results to the session's goroutine (see [send]).
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
	// calls waits for the goroutines of the requests in flight.
	calls sync.WaitGroup
	// mailbox holds the messages from other goroutines.
	mailbox mailbox
}

// loop is the interface through which one part of a session affects the others.
type loop interface {
	// sampled does what the detector demands after a sample, and records limit
	// warnings.
	sampled(x *subject)
	// transitioned handles a transition of a detector.
	transitioned(t ledger.Entry)
	// scanBy schedules a scan for processes no later than the given time on the
	// session's clock.
	scanBy(at time.Duration)
	// reprobe determines again how a process can be read.
	reprobe(p capture.Process)
	// restarted handles a reboot, after which the device's clock starts from
	// zero again.
	restarted(up time.Duration)
	// userChanged discards the state that depends on the user that the shell
	// runs as.
	userChanged()
}

func newPort(r *run, d Device, l loop) *port {
	c := clock{started: time.Now(), scale: d.Facts.TimeScale}
	p := &port{run: r, dev: d, clock: c, loop: l, mailbox: newMailbox()}
	p.journal = &journal{
		run: r, device: d.Serial(), clock: c, part: r.ledger.Part(d.Serial()), loop: l,
		faults: map[requestKind]string{},
	}
	p.subjects = &subjects{port: p, byKey: map[capture.Key]*subject{}}
	p.silence = newSilence(p)
	return p
}

// stale reports whether the device has rebooted since the request was sent.
func stale[T any](p *port, a answer[T]) bool { return a.boot != p.boots }
