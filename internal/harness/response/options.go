package response

import (
	"slices"
	"time"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/capture/diagnose"
)

// Dump says when heaps are dumped.
type Dump string

// When heaps are dumped: OnLeak as part of the response to a leak, AtEnd and AtMarks
// also of every process when the run ends, or at each mark.
const (
	OnLeak  Dump = "on_leak"
	AtEnd   Dump = "at_end"
	AtMarks Dump = "at_marks"
)

// Keep says what stays of a heap dump after its analysis.
type Keep string

// What stays: the dump with the contents of its primitive arrays zeroed, all of it, or
// nothing. Dumps hold personal data, and artifacts of a run get uploaded.
const (
	Stripped Keep = "stripped"
	Raw      Keep = "raw"
	Nothing  Keep = "none"
)

// Logcat is what is kept of the device's log in a diagnosis.
type Logcat = diagnose.KeptLog

// What is kept of the log: the lines of the app and those of the system about it, all lines, or
// nothing.
const (
	LogcatApp  = diagnose.LogcatApp
	LogcatAll  = diagnose.LogcatAll
	LogcatNone = diagnose.LogcatNone
)

// DefaultCooldown is the device time between two diagnoses of one process (the article,
// section 6.4).
const DefaultCooldown = 30 * time.Minute

// Options say what is collected and what stays of it. The zero value is on_leak,
// stripped, of the log what is about the app, without custom steps.
type Options struct {
	Dump Dump
	Keep Keep
	// Logcat is what is kept of the device's log, which has lines of every app; empty is LogcatApp.
	Logcat Logcat
	// ShowTexts shows texts of the app, which may be about people: keys of maps, names of
	// threads, titles. Without it a hash takes the place of each.
	ShowTexts bool
	// Cooldown is the device time between two diagnoses of one process. The policy has
	// its own for its demands: whoever sets one sets both.
	Cooldown time.Duration
	// Steps are added to the recipe of this name (java, native, gpu, thread, unknown), or
	// to each of them where it is all.
	Steps map[string][]Step
	// Mapping has the names of the source for those of an obfuscated build; nil for none.
	Mapping *analysis.Mapping
	// Memory gives the bytes that the graph of a dump may take; nil, or 0, bounds nothing.
	Memory func() int64
	// maxDump is how many bytes a dump may have that is unpacked to be read again; 0 is
	// what a dump may have that is pulled.
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

// recipe is the recipe of this name with the steps that were added to it.
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

// Step is a command of the user's that is added to a recipe.
type Step struct{ step diagnose.Step }

// NewStep returns the step that keeps what a command prints on the device as artifact
// name. In the command {pid}, {process}, {package} and {user} stand for those of the
// process; limit is the real time that it may take.
func NewStep(name, command string, limit time.Duration) (Step, error) {
	s, err := diagnose.CustomStep(name, command, limit)
	return Step{s}, err
}

// The recipes that are of no kind: what is light, to compare with later, and the heap
// alone.
const (
	Snapshot = "snapshot"
	HeapOnly = "dump"
)
