package response

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/capture/diagnose"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// Responder collects and analyzes the artifacts of one run. Create one with
// New.
type Responder struct {
	dir     string
	options Options
	// token is part of the names of files on devices, and differs from run to
	// run.
	token string
	// hide is nil if strings of the app are shown.
	hide *android.Redactor

	mu sync.Mutex
	// series holds, for each process, the dumps that were taken at marks; grown
	// holds the results of the series that have ended.
	series map[place]*series
	grown  []record.Diagnosis
}

// place identifies one process on one device.
type place struct {
	device string
	key    capture.Key
}

// New returns the responder of a run whose directory is dir.
func New(dir string, o Options) *Responder {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	r := &Responder{dir: dir, options: o.withDefaults(), token: hex.EncodeToString(b[:]), series: map[place]*series{}}
	if !o.ShowTexts {
		r.hide = android.NewRandomRedactor()
	}
	return r
}

// Options returns the options of the run, with the defaults filled in.
func (r *Responder) Options() Options { return r.options }

// Order is a request for one diagnosis.
type Order struct {
	Process capture.Process
	Level   capture.Level
	// Findings are the results of the probe of the process.
	Findings []capture.ProbeResult
	// Recipe is java, native, gpu, thread, unknown, Snapshot or HeapOnly. Kind
	// is the kind of the leak as in verdicts, or empty.
	Recipe string
	Kind   detector.LeakKind
	// Trigger is the reason for the diagnosis, as in record.Diagnosis; Mark is
	// the text of the mark.
	Trigger, Mark string
	// T is the time in seconds since the start of the run; Marks, Age and
	// Memory are as in record.Diagnosis.
	T           float64
	Marks       int
	Age, Memory *float64
	// Settled reports whether the app is idle, with no requests in flight.
	Settled bool
	// Expect is the approximate size of a heap dump in bytes, 0 if unknown.
	Expect int64
	// Before is an earlier snapshot of the same life; nil if there is none.
	Before *MemorySnapshot
	// App lists other lives of processes of the app; their log lines are kept
	// too.
	App []diagnose.KnownProcess
	// Paused, if not nil, is called when the process is about to be stopped,
	// and again when it continues.
	Paused func(bool)
}

// Case holds what was collected for an order.
type Case struct {
	Order
	// Record is the entry in run.json; Analyze completes it.
	Record record.Diagnosis
	// Now is the snapshot for later comparison; nil if there is none.
	Now *MemorySnapshot
	// Ended is the device's clock at the end of the collection, as time since
	// boot; 0 if unknown.
	Ended time.Duration
	// Unread reports whether there is a heap dump that could not be analyzed.
	Unread bool
	// Left lists the paths of files that may still be on the device.
	Left []string

	// interrupted reports whether the analysis of a heap dump was interrupted.
	interrupted bool

	folder   folder
	headline string
	// hide removes the app's strings from what is written; if it is nil, they
	// are shown.
	hide *android.Redactor
}

// leastFree is the minimum free space on the host, in bytes, for a snapshot:
// each snapshot takes a few MB, and there may be many suspicions in one night.
const leastFree = 32 << 20

// Collect collects the artifacts of an order from the device. An error means
// that the device does not respond, that a folder cannot be written, or that
// ctx is done. Even then, the case contains what was collected before the
// error; it is nil only if the recipe is unknown, no folder could be created,
// or there is no space for a snapshot.
func (r *Responder) Collect(ctx context.Context, dev capture.Device, facts capture.Facts, o Order) (*Case, error) {
	recipe, ok := r.options.recipe(o.Recipe)
	if !ok {
		return nil, fmt.Errorf("collect %s of %s: unknown recipe %q", o.Kind, o.Process.Name, o.Recipe)
	}
	if n, err := free(r.dir); o.Recipe == Snapshot && err == nil && n < leastFree {
		return nil, fmt.Errorf("snapshot of %s: only %s free on the host's disk, reserved for samples",
			o.Process.Name, text.Size(n))
	}
	dir, err := r.newFolder(o)
	if err != nil {
		return nil, r.redactHostPaths(err)
	}
	c := &Case{Order: o, folder: dir, Record: record.Diagnosis{
		Device: dev.Serial(), User: o.Process.User, Process: o.Process.Key().Name, PID: o.Process.PID,
		T: o.T, Trigger: o.Trigger, Mark: o.Mark, Marks: o.Marks, Age: o.Age, Memory: o.Memory, Settled: o.Settled,
		Kind: o.Kind, Recipe: o.Recipe,
		Folder: dir.name, Outcome: record.DiagnosisInterrupted, Keep: string(r.options.Keep),
		Steps: []record.Collected{}, Findings: []record.Finding{}, Summary: []string{}, Warnings: []string{},
	}}
	// A killed run leaves no line about the folder, so the record that is
	// written here says what may remain in the folder.
	_ = c.write() // Collect writes it again below, and returns the error
	d, err := diagnose.Diagnose(ctx, dev, facts, diagnose.Request{
		Process: o.Process, Recipe: recipe, Level: o.Level, Findings: o.Findings, Dir: dir.path, Run: r.token,
		App: o.App, Logcat: r.options.Logcat,
		HostFree: func() (int64, error) { return free(dir.path) },
		Expect:   o.Expect, Paused: o.Paused,
	})
	c.Ended = d.Ended
	for _, s := range d.Steps {
		if s.Left != "" {
			c.Left = append(c.Left, s.Left)
		}
	}
	c.Record.Duration, c.Record.Steps, c.Record.Outcome = seconds(d.Took), collected(recipe, d, dir), outcome(d, err)
	if err != nil && ctx.Err() == nil { // the outcome describes the other errors
		c.warn(err)
	}
	return c, r.redactHostPaths(errors.Join(err, c.write()))
}

// Headline returns the first line about a case: the leak, or what grew.
func (c *Case) Headline() string {
	if c.Recipe == Snapshot && len(c.Record.Summary) > 0 {
		files := 0
		for _, s := range c.Record.Steps {
			if s.File != "" {
				files++
			}
		}
		if c.Trigger == record.TriggerLast {
			return fmt.Sprintf("snapshot of %d artifacts, compared with the first one", files)
		}
		return fmt.Sprintf("snapshot of %d artifacts, for later comparison", files)
	}
	if c.headline != "" {
		return c.headline
	}
	return "nothing to report"
}

func free(dir string) (int64, error) {
	n, ok := spool.FreeBytes(dir)
	if !ok {
		return 0, errors.New("the free space is unknown")
	}
	return n, nil
}

// collected returns the steps in the form of run.json.
func collected(recipe diagnose.Recipe, d diagnose.Diagnosis, dir folder) []record.Collected {
	proves := map[string]string{}
	for _, s := range recipe.Steps {
		proves[s.Name] = s.Proves
	}
	out := make([]record.Collected, len(d.Steps))
	for i, s := range d.Steps {
		out[i] = record.Collected{
			Step: s.Step, Outcome: string(s.Ending), File: s.File, Bytes: s.Bytes,
			Purpose: text.Head(proves[s.Step], maxWords), Note: text.Head(dir.redactHostPaths(s.Note), maxWords),
			Reasons: reasons(s.Reasons, dir), Duration: seconds(s.Took),
		}
	}
	return out
}

// reasons returns the first few reasons why no better method was used,
// shortened.
func reasons(all []string, dir folder) []string {
	var out []string
	for _, reason := range all[:min(len(all), maxReasons)] {
		out = append(out, text.Head(dir.redactHostPaths(reason), maxWords))
	}
	return out
}

// outcome returns the combined outcome of all steps.
func outcome(d diagnose.Diagnosis, err error) string {
	whole, some := true, false
	for _, s := range d.Steps {
		whole = whole && s.Ending == diagnose.Complete
		some = some || s.File != ""
	}
	switch {
	case err != nil:
		return record.DiagnosisInterrupted
	case !some:
		return record.DiagnosisNothing
	case !whole:
		return record.DiagnosisDegraded
	}
	return record.DiagnosisComplete
}

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

const (
	// maxWarnings and maxText limit external strings in a record; maxReasons
	// and maxWords limit those of each step.
	maxWarnings = 50
	maxText     = 500
	maxReasons  = 5
	maxWords    = 240
)

func (c *Case) warn(err error) { c.warnText(c.folder.paths().Error(err)) }

// warnText adds a warning unless it was added before, because an interrupted
// analysis is repeated.
func (c *Case) warnText(warning string) {
	warning = text.Tail(c.folder.redactHostPaths(warning), maxText)
	if len(c.Record.Warnings) < maxWarnings && !slices.Contains(c.Record.Warnings, warning) {
		c.Record.Warnings = append(c.Record.Warnings, warning)
	}
}
