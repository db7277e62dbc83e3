package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/harness/fleet"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/trip"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// Hub owns the run and the devices of a suite. Its methods may be called
// concurrently.
type Hub struct {
	options Options
	turns   turns

	// starting is a semaphore for starting or ending the run. Starting may wait
	// for a device for hours.
	starting chan struct{}

	mu     sync.Mutex
	fleet  *fleet.Fleet
	run    *monitor.LiveRun
	stop   context.CancelFunc
	dir    string
	failed error
	plan   settings
	// accepted are the leaks that are accepted for the whole suite.
	accepted []monitor.Exception
	// known lists the exceptions that specs have named.
	known    []monitor.Exception
	checks   map[int]*monitor.OpenCheck
	numbers  int
	finished bool
	// tests forwards the checks of the tests that instrumentations run; deaths
	// holds the reasons why processes ended.
	tests  followers
	deaths trip.Deaths
}

// Happened implements monitor.Observer.
func (h *Hub) Happened(e record.Event) {
	h.tests.happened(e)
	h.deaths.Happened(e)
}

// Changed implements monitor.Observer.
func (h *Hub) Changed(string, func() []monitor.Row) {}

// Death waits until it is known why the process with the given pid ended, and
// returns the reason. It returns "" if the reason is unknown.
func (h *Hub) Death(ctx context.Context, pid int) (string, error) {
	return h.deaths.Reason(ctx, pid), nil
}

// New returns a hub that has not started. It does not access a device.
func New(o Options) *Hub {
	return &Hub{options: o, turns: newTurns(), starting: make(chan struct{}, 1), checks: map[int]*monitor.OpenCheck{}}
}

func (h *Hub) log(format string, args ...any) {
	if h.options.Log != nil {
		h.options.Log(text.Printable(fmt.Sprintf(format, args...)))
	}
}

// Start chooses and locks the devices and starts the run, unless the run has
// already started. Specs that need the run also call Start. After a failed
// start, Start returns the same error again, so a suite without a device fails
// immediately. If again is set, Start retries.
func (h *Hub) Start(ctx context.Context, again bool) error {
	select {
	case h.starting <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("start the watch: %w", context.Cause(ctx))
	}
	defer func() { <-h.starting }()
	h.mu.Lock()
	running, failed, finished := h.run != nil, h.failed, h.finished
	h.mu.Unlock()
	switch {
	case finished:
		return errors.New("start the watch: the suite has ended")
	case running:
		return nil
	case failed != nil && !again:
		return failed
	}
	err := h.start(ctx)
	if err != nil {
		err = fmt.Errorf("start the watch: %w", err)
	}
	if ctx.Err() == nil {
		h.mu.Lock()
		h.failed = err
		h.mu.Unlock()
	}
	return err
}

func (h *Hub) start(ctx context.Context) error {
	set, err := h.options.settle()
	if err != nil {
		return err
	}
	accepted, err := readAccepted(h.options.Accepted)
	if err != nil {
		return err
	}
	phones, err := fleet.Open(ctx, set.choice)
	if err != nil {
		return err
	}
	for _, line := range phones.Skipped() {
		h.log("%s; skipped", line)
	}
	dir := h.options.directory()
	if err := phones.Hold(ctx, dir, "suite "+h.options.Suite, h.waiting()); err != nil {
		return advise(err)
	}
	o := set.run
	o.Dir, o.Devices, o.Observer = dir, phones.Devices(), h
	set.run = o
	// The run outlives the spec that starts it, and ends with the suite.
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	run, err := monitor.Start(alive, o)
	if err != nil {
		stop()
		return errors.Join(err, phones.Close())
	}
	serials := make([]string, len(o.Devices))
	for i, d := range o.Devices {
		serials[i] = d.Serial()
	}
	h.mu.Lock()
	h.fleet, h.run, h.stop, h.dir, h.plan, h.accepted = phones, run, stop, dir, set, accepted
	h.mu.Unlock()
	h.turns.open(serials)
	h.log("watching %s; the run is in %s", words(o.Patterns), dir)
	return nil
}

// waiting returns a function that logs who holds the devices, or nil if the
// suite does not wait for devices.
func (h *Hub) waiting() func(fleet.InUseError) {
	if !h.options.Wait {
		return nil
	}
	return func(e fleet.InUseError) { h.log("%v; waiting for it to end", e) }
}

// advise adds advice to an error about a resource that is in use.
func advise(err error) error {
	if e, ok := errors.AsType[fleet.InUseError](err); ok && !e.Directory {
		return fmt.Errorf("%w; wait with %s=true, or name another device", err, WaitVariable)
	}
	return err
}

func words(patterns []capture.Pattern) string {
	out := ""
	for i, p := range patterns {
		if i > 0 {
			out += " and "
		}
		out += text.Head(string(p), 100)
	}
	return out
}

// Dir returns the run directory, or "" before the run has started.
func (h *Hub) Dir() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dir
}

// live returns the run, which must have started.
func (h *Hub) live() (*monitor.LiveRun, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.run != nil:
		return h.run, nil
	case h.failed != nil:
		return nil, h.failed
	}
	return nil, errors.New("the watch has not started; a checked spec or Start starts it")
}

// OpenRequest contains the parameters of a check to open.
type OpenRequest struct {
	Name, Location, Device string
	Patterns               []capture.Pattern
}

// Opened is an open check. Strict reports whether missing evidence fails the
// spec.
type Opened struct {
	Check  int
	Strict bool
}

// Open starts the run if necessary, and opens a check. Call Recount before the
// body of the spec, to count the objects.
func (h *Hub) Open(ctx context.Context, r OpenRequest) (Opened, error) {
	if err := h.Start(ctx, false); err != nil {
		return Opened{}, err
	}
	run, err := h.live()
	if err != nil {
		return Opened{}, err
	}
	c, err := run.Check(ctx, monitor.CheckOptions{
		Name: r.Name, Type: record.CheckSpec, Location: r.Location, Device: h.deviceOf(r.Device),
		Patterns: r.Patterns, DeferCounts: true,
	})
	if err != nil {
		return Opened{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.numbers++
	h.checks[h.numbers] = c
	return Opened{h.numbers, h.plan.config.Strict}, nil
}

// deviceOf returns the device of a spec. If the spec took its turn before the
// run had devices, deviceOf returns the only device of the run, or "" if there
// are several.
func (h *Hub) deviceOf(device string) string {
	if device != "" {
		return device
	}
	return h.turns.first()
}

func (h *Hub) check(number int) (*monitor.OpenCheck, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.checks[number]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("there is no open check %d", number)
}

// Recount counts the objects of all processes before the body of a spec.
func (h *Hub) Recount(ctx context.Context, number int) error {
	c, err := h.check(number)
	if err != nil {
		return err
	}
	return c.Recount(ctx)
}

// CollectRequest selects what a check examines after the body of its spec.
type CollectRequest struct {
	Check             int
	Location          string
	Patterns          []capture.Pattern
	Heap, Trend, Live bool
	Known             []monitor.Exception
}

// Collect reads the processes after the body of a spec.
func (h *Hub) Collect(ctx context.Context, r CollectRequest) error {
	c, err := h.check(r.Check)
	if err != nil {
		return err
	}
	h.mu.Lock()
	for _, e := range r.Known {
		if !slices.Contains(h.known, e) {
			h.known = append(h.known, e)
		}
	}
	known := append(slices.Clone(r.Known), h.accepted...)
	h.mu.Unlock()
	c.Amend(monitor.CheckOptions{
		Location: r.Location, Patterns: r.Patterns, Heap: r.Heap, Trend: r.Trend, Live: r.Live, Known: known,
	})
	return c.Collect(ctx)
}

// CloseRequest ends a check with the outcome of its spec. Skipped is the reason
// why the spec is not judged. Drop discards a check that is not needed.
type CloseRequest struct {
	Check          int
	Outcome, Stack string
	Skipped        string
	Drop           bool
}

// Close ends a check and returns its result.
func (h *Hub) Close(ctx context.Context, r CloseRequest) (record.Check, error) {
	c, err := h.check(r.Check)
	if err != nil {
		return record.Check{}, err
	}
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.checks, r.Check)
	}()
	if r.Drop {
		return record.Check{}, c.Drop()
	}
	if r.Skipped != "" {
		c.Skip(r.Skipped)
	}
	return c.Close(ctx, r.Outcome, r.Stack)
}

// Now returns the current states of the processes that match a name or pattern.
func (h *Hub) Now(_ context.Context, process string) ([]Standing, error) {
	run, err := h.live()
	if err != nil {
		return nil, err
	}
	out := []Standing{}
	for _, r := range run.Now(process) {
		out = append(out, standingOf(r, h.plan.run.Policy.NormalInterval))
	}
	return out, nil
}

// Discover scans for processes now. It starts the run if necessary.
func (h *Hub) Discover(ctx context.Context) error {
	_, err := h.look(ctx)
	return err
}

// ProcessRequest names a process on a device; the device may be "" if there is
// only one.
type ProcessRequest struct{ Device, Process, Recipe string }

// Snapshot counts the resources that a process uses now, Settle waits until the
// process has finished its work in progress, and Dump analyzes its heap. These
// methods start the run if necessary, and scan for a process that has just
// started.
func (h *Hub) Snapshot(ctx context.Context, r ProcessRequest) (monitor.ProcessSnapshot, error) {
	run, err := h.look(ctx)
	if err != nil {
		return monitor.ProcessSnapshot{}, err
	}
	return run.Snapshot(ctx, h.deviceOf(r.Device), r.Process)
}

// Settle is documented at Snapshot.
func (h *Hub) Settle(ctx context.Context, r ProcessRequest) (bool, error) {
	run, err := h.look(ctx)
	if err != nil {
		return false, err
	}
	return run.Settle(ctx, h.deviceOf(r.Device), r.Process)
}

// Dump is documented at Snapshot.
func (h *Hub) Dump(ctx context.Context, r ProcessRequest) (record.Diagnosis, error) {
	run, err := h.look(ctx)
	if err != nil {
		return record.Diagnosis{}, err
	}
	return run.Diagnose(ctx, h.deviceOf(r.Device), r.Process, "dump")
}

func (h *Hub) look(ctx context.Context) (*monitor.LiveRun, error) {
	if err := h.Start(ctx, false); err != nil {
		return nil, err
	}
	run, err := h.live()
	if err != nil {
		return nil, err
	}
	return run, run.Discover(ctx)
}

// ExecRequest is a command for the shell of a device.
type ExecRequest struct{ Device, Command string }

// Executed is the result of a command: the output of both streams and the exit
// code.
type Executed struct {
	Output string
	Exit   int
}

// maxOutput is the maximum number of bytes that are kept of a command's output.
const maxOutput = 1 << 20

// Exec runs a command on a device and waits until the command ends.
func (h *Hub) Exec(ctx context.Context, r ExecRequest) (Executed, error) {
	if err := h.Start(ctx, false); err != nil {
		return Executed{}, err
	}
	h.mu.Lock()
	devices := h.plan.run.Devices
	h.mu.Unlock()
	serial := h.deviceOf(r.Device)
	i := slices.IndexFunc(devices, func(d monitor.Device) bool { return d.Serial() == serial })
	if i < 0 {
		return Executed{}, fmt.Errorf("run a command: no device of the run (%d in total) is assigned to the spec",
			len(devices))
	}
	var out bounded
	exit, err := devices[i].Shell(ctx, r.Command, &out, &out)
	if err != nil {
		return Executed{}, fmt.Errorf("run %s: %w", text.Quote(r.Command, 200), err)
	}
	return Executed{out.String(), exit}, nil
}

// bounded keeps the first maxOutput bytes written to it. Both streams of a
// command may write concurrently.
type bounded struct {
	mu sync.Mutex
	strings.Builder
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Builder.Write(p[:min(len(p), maxOutput-b.Len())])
	return len(p), nil
}

// StressRequest is a workload that runs during a spec. Exactly one of Monkey,
// Shell and Instrument is set.
type StressRequest struct {
	Device     string
	Monkey     *monitor.Monkey
	Shell      string
	Instrument *monitor.Instrument
}

// Stressed describes how a workload ended, and contains the checks of the tests
// that it ran.
type Stressed struct {
	Workload record.Workload
	Checks   []record.Check
	Error    string
}

// Stress runs a workload until the workload ends or ctx is done.
func (h *Hub) Stress(ctx context.Context, r StressRequest) (Stressed, error) {
	run, err := h.look(ctx)
	if err != nil {
		return Stressed{}, err
	}
	device := h.deviceOf(r.Device)
	var load monitor.Workload = monitor.DeviceCommand{Command: r.Shell}
	out := Stressed{}
	switch {
	case r.Monkey != nil:
		load = *r.Monkey
	case r.Instrument != nil:
		tests := *r.Instrument
		h.mu.Lock()
		tests.Options.Known = append(slices.Clone(tests.Options.Known), h.accepted...)
		h.mu.Unlock()
		load = tests
		defer h.tests.follow(device, func(c record.Check) { out.Checks = append(out.Checks, c) })()
	}
	out.Workload, err = run.RunWorkload(ctx, device, load)
	if err != nil {
		out.Error = err.Error()
	}
	return out, nil
}

// SuiteVerdict is the verdict on a suite at its end.
type SuiteVerdict struct {
	Run record.Run
	// Started reports whether the run was started.
	Started bool
	// Failures lists the reasons why the suite fails; Notes lists other
	// messages.
	Failures, Notes []string
}

// Finish ends the run and judges the suite. If interrupted is set, no final
// dumps are taken.
func (h *Hub) Finish(reason string, interrupted bool) (SuiteVerdict, error) {
	h.starting <- struct{}{}
	defer func() { <-h.starting }()
	h.mu.Lock()
	run, stop, phones, failed := h.run, h.stop, h.fleet, h.failed
	h.finished = true
	h.mu.Unlock()
	if run == nil {
		v := SuiteVerdict{}
		if failed != nil {
			v.Failures = append(v.Failures, failed.Error())
		}
		return v, nil
	}
	if interrupted {
		stop()
	}
	result, err := run.Stop(reason)
	stop()
	err = errors.Join(err, phones.Close())
	v := SuiteVerdict{Run: result, Started: true}
	h.judge(&v)
	return v, err
}

// today returns the date that determines whether exceptions have expired.
func today() time.Time { return time.Now() }
