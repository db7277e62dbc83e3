package response

import (
	"slices"
	"time"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/capture/diagnose"
)

// Dump is when heaps are dumped.
type Dump string

// When heaps are dumped: OnLeak as part of the response to a leak, AtEnd and
// AtMarks also of every process when the run ends, or at each mark.
const (
	OnLeak  Dump = "on_leak"
	AtEnd   Dump = "at_end"
	AtMarks Dump = "at_marks"
)

// Keep is what is kept of a heap dump after its analysis.
type Keep string

// What is kept: the dump with the contents of its primitive arrays zeroed, the
// whole dump, or nothing. Dumps contain personal data, and artifacts of a run
// get uploaded.
const (
	Stripped Keep = "stripped"
	Raw      Keep = "raw"
	Nothing  Keep = "none"
)

// Logcat is what is kept of the device's log in a diagnosis.
type Logcat = diagnose.KeptLog

// The kept parts of the log: the lines of the app and those of the system about
// it, all lines, or nothing.
const (
	LogcatApp  = diagnose.LogcatApp
	LogcatAll  = diagnose.LogcatAll
	LogcatNone = diagnose.LogcatNone
)

// DefaultCooldown is the device time between two diagnoses of one process (the
// article, section 6.4).
const DefaultCooldown = 30 * time.Minute

// Options configure what is collected and what is kept of it. The zero value is
// on_leak, stripped, the app's part of the log, without custom steps.
type Options struct {
	Dump Dump
	Keep Keep
	// Logcat is what is kept of the device's log, which has lines of every app;
	// empty means LogcatApp.
	Logcat Logcat
	// ShowTexts shows texts of the app, which may be personal: keys of maps,
	// names of threads, titles. Otherwise a hash replaces each.
	ShowTexts bool
	// Cooldown is the device time between two diagnoses of one process. The
	// policy has its own for its demands: set both together.
	Cooldown time.Duration
	// Steps are added to the recipe of this name (java, native, gpu, thread,
	// unknown), or to each of them for all.
	Steps map[string][]Step
	// Mapping has the source names for an obfuscated build; nil for none.
	Mapping *analysis.Mapping
	// Memory returns how many bytes the graph of a dump may take; nil, or 0,
	// means no limit.
	Memory func() int64
	// maxDump bounds a dump that is unpacked to be read again, in bytes; 0 is
	// the limit of a dump that is pulled.
	maxDump int64
}

func (o Options) withDefaults() Options {
	if o.Dump == "" {
		o.Dump = OnLeak
	}
	if o.Keep == "" {
		o.Keep = Stripped
	}
	if o.Logcat == "" {
		o.Logcat = LogcatApp
	}
	if o.maxDump == 0 {
		o.maxDump = diagnose.MaxHeap
	}
	return o
}

// recipe returns the recipe of this name with the steps that were added to it.
func (o Options) recipe(name string) (diagnose.Recipe, bool) {
	r, ok := diagnose.RecipeOf(name)
	if !ok {
		return r, false
	}
	if name == Snapshot || name == HeapOnly {
		return r, true
	}
	for _, s := range slices.Concat(o.Steps["all"], o.Steps[name]) {
		r = r.With(s.step)
	}
	return r, true
}

// Step is a user's command that is added to a recipe.
type Step struct{ step diagnose.Step }

// NewStep returns the step that keeps the output of a command on the device as
// artifact name. In the command {pid}, {process}, {package} and {user} are
// replaced by those of the process; limit bounds it in real time.
func NewStep(name, command string, limit time.Duration) (Step, error) {
	s, err := diagnose.CustomStep(name, command, limit)
	return Step{s}, err
}

// The recipes without a kind: light artifacts, to compare with later, and only
// the heap.
const (
	Snapshot = "snapshot"
	HeapOnly = "dump"
)
