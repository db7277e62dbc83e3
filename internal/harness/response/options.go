package response

import (
	"slices"
	"time"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/capture/diagnose"
)

// Dump determines when heaps are dumped.
type Dump string

// OnLeak dumps a heap as part of the response to a leak. AtEnd also dumps every
// process when the run ends, and AtMarks also dumps every process at each mark.
const (
	OnLeak  Dump = "on_leak"
	AtEnd   Dump = "at_end"
	AtMarks Dump = "at_marks"
)

// Keep determines which part of a heap dump is kept after its analysis.
type Keep string

// What is kept: the dump with its primitive arrays zeroed, the whole dump, or
// nothing. Dumps contain personal data, and artifacts of a run are often
// uploaded.
const (
	Stripped Keep = "stripped"
	Raw      Keep = "raw"
	Nothing  Keep = "none"
)

// Logcat determines which part of the device's log is kept in a diagnosis.
type Logcat = diagnose.KeptLog

// The parts of the log that can be kept: the app's lines and the system's lines
// about it, all lines, or nothing.
const (
	LogcatApp  = diagnose.LogcatApp
	LogcatAll  = diagnose.LogcatAll
	LogcatNone = diagnose.LogcatNone
)

// DefaultCooldown is the minimum device time between two diagnoses of one
// process (the article, section 6.4).
const DefaultCooldown = 30 * time.Minute

// Options configure what is collected and how much is kept. The zero value
// means on_leak, stripped, the app's part of the log, and no custom steps.
type Options struct {
	Dump Dump
	Keep Keep
	// Logcat determines which part of the device's log is kept; the log
	// contains lines of every app. Empty means LogcatApp.
	Logcat Logcat
	// ShowTexts shows the app's strings, which may be personal: keys of maps,
	// names of threads, titles. If it is false, each string is replaced by a
	// hash.
	ShowTexts bool
	// Cooldown is the minimum device time between two diagnoses of one process.
	// The policy has a separate cooldown for the diagnoses that it requests:
	// set both to the same value.
	Cooldown time.Duration
	// Steps holds, for each recipe (java, native, gpu, thread or unknown), the
	// steps that are added to it. The steps with the key "all" are added to
	// each of these recipes.
	Steps map[string][]Step
	// Mapping contains the source names for an obfuscated build; nil if the
	// build is not obfuscated.
	Mapping *analysis.Mapping
	// Memory returns how many bytes the graph of a dump may use. If it is nil
	// or returns 0, there is no limit.
	Memory func() int64
	// maxDump is the maximum size of an unpacked dump, in bytes; 0 means the
	// limit for a dump that is pulled.
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

// recipe returns the recipe with this name, including the steps that were added
// to it.
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

// NewStep returns a step that runs a command on the device and keeps the output
// as an artifact with the given name. In the command, {pid}, {process},
// {package} and {user} are replaced by the values of the process; limit bounds
// the wall-clock time of the command.
func NewStep(name, command string, limit time.Duration) (Step, error) {
	s, err := diagnose.CustomStep(name, command, limit)
	return Step{s}, err
}

// Snapshot and HeapOnly are the recipes that do not depend on the kind of leak.
// Snapshot collects light artifacts for later comparison; HeapOnly collects
// only a heap dump.
const (
	Snapshot = "snapshot"
	HeapOnly = "dump"
)
