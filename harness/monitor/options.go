package monitor

import (
	"errors"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/reporters/record"
)

// Options say what to watch, how to judge and where to write.
type Options struct {
	// Devices to watch, each as it described itself.
	Devices []Device
	// Patterns choose the processes.
	Patterns []capture.Pattern
	// Policy judges; its intervals drive the fast channel.
	Policy detector.Policy
	// Duration ends the run after that much device time; 0 for no end.
	Duration time.Duration
	// LongestDuration, if it is longer than Duration, extends a run up to it as long as a process
	// looks like a leak and is not decided. A workload that ends meanwhile is repeated.
	LongestDuration time.Duration
	// Workload stresses the app; the run ends with it. Nil for none.
	Workload Workload
	// Dir is the run directory.
	Dir string
	// Observer is told what happens; nil for nobody.
	Observer Observer
	// Respond says what is collected of a leak; nil for nothing.
	Respond *Response
	// Hurry, when closed after the context has ended, gives a workload no time to
	// end by itself. Nil to give it.
	Hurry <-chan struct{}
	// JUnit is whether junit.xml is written; nil for where the run has checks.
	JUnit *bool
	// Build is the source and variant of what is tested; nil where nobody knows.
	Build *record.Revision
	// Tool is the program's name and version, for run.json.
	Tool string
	Sampling
	ExitRules
}

// Sampling says how the devices are read beside the fast channel, whose intervals are the policy's.
type Sampling struct {
	// Detail is the period of the rotation of breakdowns in device time; 30 s if zero.
	Detail time.Duration
	// MaxSystemServer and MaxApp are how much CPU breakdowns may cost, in percent of one core, before
	// they are thinned: what dumpsys makes system_server spend (the article, section 2.2, wants it
	// below 25 %), and each process under watch. 0 is no bound.
	MaxSystemServer, MaxApp float64
	// Headroom is the device time between two looks at what processes have left until
	// their limits; 0 for none.
	Headroom time.Duration
	// Collect says at which marks garbage collections are forced; CollectAuto if empty.
	Collect Collect
	// Patience is the real time that a device may be away before its part of the run ends, 5 min if
	// zero: a phone that reboots and asks its owner nothing is back in two minutes.
	Patience time.Duration
}

// DefaultSampling is what the verbs use where nobody asks for something else.
var DefaultSampling = Sampling{
	Detail: 30 * time.Second, MaxSystemServer: 25, MaxApp: 5, Headroom: 2 * time.Minute, Patience: 5 * time.Minute,
}

// ExitRules say what fails a run.
type ExitRules struct {
	// Assert is end or live: whether the gate word at the end fails the run, or
	// any process that ever reached LEAKING.
	Assert record.Assert
	// Strict makes a run fail with exit code 5 where any process is inconclusive.
	Strict bool
	// AllowUnjudged makes a run that could judge nothing, or that lacks a heap dump it was
	// asked for, end with 0 instead of 5.
	AllowUnjudged bool
	// MustSee is the slowest leak in bytes per hour that a pass must rule out: a process that could
	// hide one is inconclusive. 0 for any.
	MustSee float64
}

// What is collected of a leak, and what stays of it.
type (
	Response = response.Options
	Step     = response.Step
	Dump     = response.Dump
	Keep     = response.Keep
	Logcat   = response.Logcat
)

// When heaps are dumped: OnLeak as part of the response to a leak, AtEnd and AtMarks
// also of every process when the run ends, or at each mark.
const (
	OnLeak  = response.OnLeak
	AtEnd   = response.AtEnd
	AtMarks = response.AtMarks
)

// What stays of a heap dump after its analysis: the dump with the contents of its
// primitive arrays zeroed, all of it, or nothing.
const (
	Stripped = response.Stripped
	Raw      = response.Raw
	Nothing  = response.Nothing
)

// What is kept of the device's log: the lines of the app and those of the system about it, all
// lines, which are of every app, or nothing.
const (
	LogcatApp  = response.LogcatApp
	LogcatAll  = response.LogcatAll
	LogcatNone = response.LogcatNone
)

// NewStep returns a step for Response.Steps, which keeps what a command prints on the
// device as artifact name. In the command {pid}, {process}, {package} and {user} stand
// for those of the process; limit is the real time that it may take.
func NewStep(name, command string, limit time.Duration) (Step, error) {
	return response.NewStep(name, command, limit)
}

// Device is a device with what it said about itself.
type Device struct {
	capture.Device
	Facts capture.Facts
}

// Observer is told of a run while it goes on. Its methods are called by several
// goroutines and must return at once.
type Observer interface {
	// Happened tells an event as it is recorded.
	Happened(record.Event)
	// Changed tells that processes of one device may stand otherwise. rows, which may
	// only be called before Changed returns, judges each of them anew: that costs
	// more than all else, so a caller who shows nothing should not ask.
	Changed(device string, rows func() []Row)
}

// Row is one process as a table shows it.
type Row struct {
	Device, Process string
	// Name is that of the process, to which Process adds a user other than the first.
	Name      string
	User, PID int
	// Start is when the process started, in clock ticks of the device: with the pid it
	// identifies the process.
	Start   uint64
	Present bool
	Source  capture.Source
	Verdict detector.Verdict
	// MB is the latest value of the series, in MB of 1,048,576 bytes.
	MB float64
	// Threads is the latest count; -1 if unknown.
	Threads int64
	// Age is the device time since the latest reading, -1 where there is none. Answers reports
	// whether the device answers: a row of one that does not is of what was.
	Age     time.Duration
	Answers bool
	// Next is the device time until the next sample.
	Next time.Duration
	// CostMS is the cost of the latest sample in real milliseconds.
	CostMS float64
}

type nobody struct{}

func (nobody) Happened(record.Event)        {}
func (nobody) Changed(string, func() []Row) {}

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
	if o.Patience <= 0 {
		o.Patience = DefaultSampling.Patience
	}
	if o.Observer == nil {
		o.Observer = nobody{}
	}
	if o.Assert == "" {
		o.Assert = record.AssertEnd
	}
	return nil
}
