package monitor

import (
	"errors"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/reporters/record"
)

// Options define what to watch, how to judge and where to write.
type Options struct {
	// Devices are the devices to watch.
	Devices []Device
	// Patterns select the processes to watch.
	Patterns []capture.Pattern
	// Policy judges the processes; its intervals drive the fast channel.
	Policy detector.Policy
	// Duration is the device time after which the run ends; 0 means no limit.
	Duration time.Duration
	// LongestDuration is the maximum device time of a run that is extended
	// because a process appears to leak but its verdict is still open. It has
	// no effect unless it exceeds Duration. A workload that ends earlier is
	// repeated.
	LongestDuration time.Duration
	// Workload exercises the app. The run ends when the workload ends. It may
	// be nil.
	Workload Workload
	// Dir is the run directory.
	Dir string
	// Observer is notified of events. It may be nil.
	Observer Observer
	// Respond defines what is collected about a leak. If it is nil, nothing is
	// collected.
	Respond *Response
	// ForceStop may be closed after the context is done. The workload then gets
	// no grace period. It may be nil.
	ForceStop <-chan struct{}
	// JUnit controls whether junit.xml is written. If nil, it is written for a
	// run with checks.
	JUnit *bool
	// Build is the source and variant of the app under test, or nil if unknown.
	Build *record.Revision
	// Tool is the name and version of the program, for run.json.
	Tool string
	Sampling
	ExitRules
}

// Sampling defines how often the devices are read, in addition to the fast
// channel, whose intervals come from the policy.
type Sampling struct {
	// Detail is the device time between two breakdowns; each reads a different
	// process. If it is zero, it defaults to 30 s.
	Detail time.Duration
	// MaxSystemServer and MaxApp limit the CPU load of breakdowns in
	// system_server and in each watched process, in percent of one core.
	// Section 2.2 of the article requires less than 25 % for system_server.
	// Above the limit, breakdowns become less frequent. 0 means no limit.
	MaxSystemServer, MaxApp float64
	// Headroom is the device time between two readings of how close processes
	// are to their limits. 0 disables these readings.
	Headroom time.Duration
	// Collect defines the marks at which garbage collections are forced. If it
	// is empty, CollectAuto is used.
	Collect Collect
	// DeviceTimeout is the wall-clock time for which a device may be
	// disconnected before its part of the run ends. If it is zero, it defaults
	// to 5 min. A phone without a lock screen needs two minutes to reboot.
	DeviceTimeout time.Duration
}

// DefaultSampling is the Sampling that the commands use by default.
var DefaultSampling = Sampling{
	Detail: 30 * time.Second, MaxSystemServer: 25, MaxApp: 5, Headroom: 2 * time.Minute, DeviceTimeout: 5 * time.Minute,
}

// ExitRules define when a run fails.
type ExitRules struct {
	// Assert is "end" or "live". With "end", a run fails if the gate reports a
	// leak when the run ends. With "live", it fails if a process ever reached
	// LEAKING.
	Assert record.Assert
	// Strict makes a run fail with exit code 5 if any process is inconclusive.
	Strict bool
	// AllowUnjudged makes a run exit with code 0 instead of 5 if it has no
	// verdict, or if a requested heap dump is missing.
	AllowUnjudged bool
	// MustSee is the rate, in bytes per hour, of the slowest leak that a pass
	// must rule out. A process that could hide such a leak is inconclusive. If
	// it is 0, no leak has to be ruled out.
	MustSee float64
}

// These values select what is collected about a leak, and how much is kept.
type (
	Response = response.Options
	Step     = response.Step
	Dump     = response.Dump
	Keep     = response.Keep
	Logcat   = response.Logcat
)

// These values select when heaps are dumped: OnLeak in response to a leak;
// AtEnd and AtMarks also dump every process at the end of the run or at each
// mark, respectively.
const (
	OnLeak  = response.OnLeak
	AtEnd   = response.AtEnd
	AtMarks = response.AtMarks
)

// These values select which part of a heap dump is kept after its analysis: the
// dump with the contents of its primitive arrays zeroed, the entire dump, or
// nothing.
const (
	Stripped = response.Stripped
	Raw      = response.Raw
	Nothing  = response.Nothing
)

// These values select which part of the device's log is kept: the lines of the
// app and the system's lines about it, all lines (including those of other
// apps), or nothing.
const (
	LogcatApp  = response.LogcatApp
	LogcatAll  = response.LogcatAll
	LogcatNone = response.LogcatNone
)

// NewStep returns a step for Response.Steps that saves the output of a command
// on the device as the artifact with the given name. In the command, {pid},
// {process}, {package} and {user} are replaced with the values of the process.
// limit bounds the wall-clock time of the command.
func NewStep(name, command string, limit time.Duration) (Step, error) {
	return response.NewStep(name, command, limit)
}

// Device is a device and its properties.
type Device struct {
	capture.Device
	Facts capture.Facts
}

// Observer is notified of a run's progress. Its methods are called concurrently
// and must return immediately.
type Observer interface {
	// Happened is called for each recorded event.
	Happened(record.Event)
	// Changed is called when processes of a device may have changed. Observers
	// may call rows only before Changed returns. rows judges each process
	// again, which is expensive, so an observer that displays nothing should
	// not call it.
	Changed(device string, rows func() []Row)
}

// Row is one process as a row of a table.
type Row struct {
	Device, Process string
	// Name is the process name. Process is the name, followed by the user
	// unless it is the first user.
	Name      string
	User, PID int
	// Start is the start time of the process in clock ticks of the device.
	// Together with the pid it identifies the process.
	Start   uint64
	Present bool
	Source  capture.Source
	Verdict detector.Verdict
	// MB is the latest value of the series, in MB of 1,048,576 bytes.
	MB float64
	// Threads is the latest number of threads; -1 if unknown.
	Threads int64
	// Age is the device time since the latest reading; -1 if there is none.
	// Answers reports whether the device responds. If the device does not
	// respond, the row is outdated.
	Age     time.Duration
	Answers bool
	// Next is the device time until the next sample.
	Next time.Duration
	// CostMS is the wall-clock time that the latest sample took, in
	// milliseconds.
	CostMS float64
}

type noObserver struct{}

func (noObserver) Happened(record.Event)        {}
func (noObserver) Changed(string, func() []Row) {}

func (o *Options) complete() error {
	if len(o.Devices) == 0 {
		return errors.New("start run: no device to watch")
	}
	if len(o.Patterns) == 0 {
		return errors.New("start run: no process to watch")
	}
	if o.Detail <= 0 {
		o.Detail = DefaultSampling.Detail
	}
	if o.DeviceTimeout <= 0 {
		o.DeviceTimeout = DefaultSampling.DeviceTimeout
	}
	if o.Observer == nil {
		o.Observer = noObserver{}
	}
	if o.Assert == "" {
		o.Assert = record.AssertEnd
	}
	return nil
}
