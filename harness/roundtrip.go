package harness

import (
	"context"
	"errors"
	"fmt"

	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/hub"
	"github.com/leakgate/leakgate/internal/harness/trip"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/onsi/ginkgo/v2"
)

// Trip is the result of a repeated scenario: it shows what each repetition adds
// to a process.
type Trip = record.Trip

// TripOption is an option of [Leaks.RoundTrip].
type TripOption func(*tripSettings)

// tripSettings are the options of one round trip.
type tripSettings struct{ trip.Options }

// Loops sets the maximum number of loops after the warm-up. The default is 10.
func Loops(n int) TripOption { return func(o *tripSettings) { o.Loops = n } }

// Warmup sets the number of loops before the first reading. The default is 2.
func Warmup(n int) TripOption { return func(o *tripSettings) { o.WarmUp = &n } }

// NoDumps judges by counts and memory only, without heap dumps.
func NoDumps() TripOption { return func(o *tripSettings) { o.NoDumps = true } }

// RoundTrip repeats a loop that should leave nothing behind, and returns what
// each repetition adds to a process: objects, threads, open files, memory by
// kind, and the places in heap dumps that grow. After a warm-up, the loop runs
// twice between readings: after every two runs, RoundTrip waits until the
// process has settled, and then reads its resources. The trip ends early when
// nothing grows any more.
//
// The process must live as long as the trip. If it restarts or ends, RoundTrip
// returns an error that contains the number of the loop and the reason. The
// result can be used with Gomega:
//
//	Expect(leaks.RoundTrip(ctx, "com.shop", loop)).NotTo(harness.HaveGrowingObjects())
func (l *Leaks) RoundTrip(ctx context.Context, process string, loop func(context.Context), opts ...TripOption) (*Trip,
	error) {
	h, err := l.watcher()
	if err == nil {
		err = h.Start(ctx, false)
	}
	if err != nil {
		return nil, err
	}
	o := tripSettings{trip.Options{Device: l.Device(), Process: process}}
	for _, opt := range opts {
		opt(&o)
	}
	o.Death = func(ctx context.Context, pid int) string {
		reason, err := h.Death(ctx, pid)
		if err != nil {
			return ""
		}
		return reason
	}
	live := &trip.Live{Run: remoteRun{ctx, h}, Device: o.Device, Process: process, Dir: h.Dir()}
	result, err := trip.Run(ctx, live, func(ctx context.Context) error { loop(ctx); return nil }, o.Options)
	if result.Schema == "" {
		return nil, err
	}
	if result.Verdict == record.VerdictPass {
		err = errors.Join(err, live.RemoveDumps())
	}
	if s := l.current(); s != nil && l.inGinkgo {
		ginkgo.AddReportEntry(entryName+" trip", tripEntry{result}, ginkgo.ReportEntryVisibilityFailureOrVerbose)
	}
	if err != nil {
		err = fmt.Errorf("round trip of %s: %w", process, err)
	}
	return &result, err
}

// tripEntry is the value of a report entry about a trip.
type tripEntry struct{ Trip }

// String returns the trip as it appears on the console.
func (t tripEntry) String() string { return tripText(&t.Trip) }

// remoteRun is the run of the suite, which may be in another process.
type remoteRun struct {
	ctx context.Context
	hub watcher
}

func (r remoteRun) Discover(ctx context.Context) error { return r.hub.Discover(ctx) }

func (r remoteRun) Now(process string) []monitor.Row {
	rows, err := r.hub.Now(r.ctx, process)
	if err != nil {
		return nil
	}
	out := make([]monitor.Row, len(rows))
	for i, s := range rows {
		out[i] = monitor.Row{
			Device: s.Device, Process: s.Process, Name: s.Process, PID: s.PID, Start: s.Start, Present: s.Present,
			Answers: s.Answers, MB: s.MB, Age: s.Age,
		}
	}
	return out
}

func (r remoteRun) Settle(ctx context.Context, device, process string) (bool, error) {
	return r.hub.Settle(ctx, hub.ProcessRequest{Device: device, Process: process})
}

func (r remoteRun) Snapshot(ctx context.Context, device, process string) (monitor.ProcessSnapshot, error) {
	return r.hub.Snapshot(ctx, hub.ProcessRequest{Device: device, Process: process})
}

func (r remoteRun) Diagnose(ctx context.Context, device, process, _ string) (record.Diagnosis, error) {
	return r.hub.Dump(ctx, hub.ProcessRequest{Device: device, Process: process})
}
