package doctor

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/capture/adb"
)

// Options determine what is examined.
type Options struct {
	// Device is the serial of the only device to examine; if it is empty, all
	// devices are examined.
	Device string
	// Patterns select the processes to examine; if there are none, all running
	// apps that a user installed are examined.
	Patterns []capture.Pattern
	// Dir is where run directories would be created.
	Dir string
	// Getenv returns the value of an environment variable.
	Getenv func(string) string
	// StandIn allows devices with a scaled clock, as fleet.DeviceChoice does.
	StandIn bool
	// Deadline is the maximum wall-clock time for each device; 0 means one
	// minute. Devices are examined concurrently.
	Deadline time.Duration
	// Progress, if not nil, is called with a description of the current step,
	// from several goroutines.
	Progress func(text string)

	limits limits
	// dial, if not nil, returns the connection to the adb server; otherwise,
	// the configured address is used.
	dial func(context.Context) (net.Conn, error)
}

// usualDeadline is long enough to examine twenty processes on a phone that is
// slow but does not hang.
const usualDeadline = time.Minute

// examination is one call of Examine.
type examination struct {
	opt    Options
	client *adb.Client
	report Report
	book   checklist
	// wanted is the serial number of the device that a run would use; it is
	// empty if no device is selected.
	wanted string
}

// Examine examines this host and its devices. It changes nothing and returns
// within its deadlines: about ten seconds for the host, and Options.Deadline
// plus a few seconds for the devices.
func Examine(ctx context.Context, opt Options) Report {
	if opt.Deadline <= 0 {
		opt.Deadline = usualDeadline
	}
	if opt.limits == (limits{}) {
		opt.limits = usualLimits
	}
	if opt.Progress == nil {
		opt.Progress = func(string) {}
	}
	e := &examination{opt: opt, report: Report{Schema: Schema, Devices: []Device{}}, book: checklist{scope: ScopeHost}}
	opt.Progress("host")
	list, settled := e.host(ctx)
	checks := e.devices(ctx, list)
	e.report.Checks = append(e.book.checks, checks...)
	e.conclude(ctx, settled)
	return e.report
}

// devices examines all devices of the list concurrently.
func (e *examination) devices(ctx context.Context, list []adb.DeviceInfo) (checks []Item) {
	inspections := make([]*inspection, len(list))
	var wg sync.WaitGroup
	for i, info := range list {
		inspections[i] = newInspection(e, info)
		wg.Go(func() { inspections[i].inspect(ctx) })
	}
	wg.Wait()
	for _, n := range inspections {
		e.report.Devices = append(e.report.Devices, n.device)
		checks = append(checks, n.book.checks...)
	}
	return checks
}

// conclude sets the outcome: one sentence and one next step.
func (e *examination) conclude(ctx context.Context, settled bool) {
	r := &e.report
	usable := e.usable()
	decisive, found := e.decisive()
	switch {
	case ctx.Err() != nil:
		r.Outcome, r.Text, r.Action = Interrupted, "interrupted before everything was checked", "run it again"
	case !settled:
		r.Outcome, r.Text, r.Action = Misconfigured, decisive.Text, decisive.Action
	case len(usable) > 0:
		r.Outcome, r.Text, r.Action = Usable, fmt.Sprintf("device %s is usable", usable[0]), ""
		if len(usable) > 1 {
			r.Text = fmt.Sprintf("%d devices are usable (%s)", len(usable),
				strings.Join(usable[:min(len(usable), maxNamed)], ", "))
			r.Action = "choose the one to watch with --device or ANDROID_SERIAL; `leakgate run` uses all that its " +
				"configuration names"
		}
	case found:
		text := decisive.Text
		if decisive.Device != "" {
			text = strings.Replace(text, "the device", "device "+decisive.Device, 1)
		}
		r.Outcome, r.Text, r.Action = NoDevice, text, decisive.Action
	default:
		r.Outcome, r.Text, r.Action = NoDevice, "no device can be used", "see the checks below"
	}
}

// usable returns the serials of the devices that a run could use.
func (e *examination) usable() (serials []string) {
	for _, d := range e.report.Devices {
		if d.Usable && (e.wanted == "" || d.Serial == clean(e.wanted)) {
			serials = append(serials, d.Serial)
		}
	}
	return serials
}

// decisive returns the check that would stop a run first: a bad check of the
// host, a server that does not respond, or a bad check of the device that a run
// would use.
func (e *examination) decisive() (Item, bool) {
	if c, ok := first(e.book.checks, Bad); ok {
		return c, true
	}
	if e.report.Host.Server.State != Answers {
		for _, c := range e.book.checks {
			if c.Name == "server" {
				return c, true
			}
		}
	}
	for _, c := range e.report.Checks {
		if c.Scope == ScopeDevice && c.Status == Bad && (e.wanted == "" || c.Device == clean(e.wanted)) {
			return c, true
		}
	}
	return Item{}, false
}
