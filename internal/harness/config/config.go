// Package config reads the YAML file of a stability run: which app and devices
// to use, what stresses the app, how often to sample, how to judge the app, and
// what to capture from a leaking process.
//
// It returns either a complete [Config], with every default filled in and the
// origin of every value, or [Errors]: all mistakes at once, each with its file,
// line and column, the line itself, and a suggestion if a word is misspelled.
// It is strict: unknown, duplicate, misplaced or mistyped keys are errors.
//
// A value comes from one of five layers, strongest first: a flag, an
// environment variable named after the key, the selected profile of the file,
// the file, the default. The file is always checked both alone and with each of
// its profiles, whichever profile is selected.
//
// A single table of keys (keys.go) defines the format of the file. The reader,
// the written form of a Config and the JSON Schema are all derived from it.
//
// It does not check whether a device, an app or a program exists. Within this
// project, it imports only the helpers of package text and the rules of package
// gate. It is the only user of the YAML library. It walks the library's node
// tree itself, because a decoder into structs reports no columns, stops at the
// first errors, and mentions Go types in its messages.
//
// ${VAR}, ${VAR:-default} and ${VAR:?message} are expanded from the
// environment. They are replaced only in values and after the YAML is parsed,
// so a variable can supply a value but never add a key. $$ is a literal $.
package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/harness/gate"
)

// MaxFileBytes is the maximum size of a file in bytes.
const MaxFileBytes = 1 << 20

// Config describes one stability run. Values that are missing from the file
// have their defaults; [Config.Origin] returns the origin of a value.
type Config struct {
	App      App
	Devices  Devices
	Workload Workload
	// Duration is the maximum duration of the run. 0 means until the workload
	// ends; this is invalid with the workload "none".
	Duration time.Duration
	// LongestDuration is the maximum duration of a run that is extended because
	// of a suspected leak; 0 means that a run is never extended.
	LongestDuration time.Duration
	Sample          Sample
	Detect          Detect
	Diagnose        Diagnose
	Gate            Requirements
	Baseline        BaselineSource
	Report          Report
	GitHub          GitHub
	// If Strict is set, the exit code of the run is 5 if any process is
	// inconclusive. If AllowUnjudged is set, the exit code is 0 even if nothing
	// could be judged or a heap dump is missing.
	Strict        bool
	AllowUnjudged bool

	gated    bool
	masked   bool // show the references to variables in place of their values
	secrets  secrets
	source   source
	origins  map[string]Origin
	profile  string
	profiles []string
}

// App is the app to watch.
type App struct {
	// Package is the application ID, such as com.shop; empty if only processes
	// are named.
	Package string
	// Processes lists names of processes, or name prefixes followed by a star.
	// It is never empty: the default is the package and package + ":*".
	Processes []string
	// Mapping is the path of the mapping file of an obfuscated build, as
	// written: a relative path is relative to the directory of this file. It is
	// empty if there is no mapping.
	Mapping string
	// Variant is the name of the tested build variant, such as freeDebug; it
	// may be empty.
	Variant string
}

// Devices selects the phones of the run.
type Devices struct {
	// Serials lists the serial numbers of the devices to use; if it is empty,
	// all connected devices are used.
	Serials []string
	// MinAPI is the lowest Android API level that a device may have.
	MinAPI int
	// Require is the minimum number of devices.
	Require int
	// StandIn allows simulated devices whose clock runs faster than real time,
	// as declared by their property leakgate.time_scale.
	StandIn bool
}

// Workload is what stresses the app. At most one of the fields other than
// Windows is set.
type Workload struct {
	// Monkey configures the event generator of Android; it is nil for other
	// workloads.
	Monkey *Monkey
	// Command is a program on the host with its arguments; it runs without a
	// shell.
	Command []string
	// DeviceCommand is one command line for the shell of the device.
	DeviceCommand string
	// Instrument is a run of instrumented tests; it is nil for other workloads.
	Instrument *Instrument
	// Windows finds tests in the output of Command or DeviceCommand. If it is
	// nil, the output is not searched for tests.
	Windows *Windows
}

// None reports whether there is no workload, so that the app is only watched.
func (w Workload) None() bool {
	return w.Monkey == nil && len(w.Command) == 0 && w.DeviceCommand == "" && w.Instrument == nil
}

// Instrument is a run of the instrumented tests of an app.
type Instrument struct {
	// Component is PACKAGE/RUNNER, or only the package if it has exactly one
	// runner.
	Component string
	// Classes lists the classes (CLASS) and methods (CLASS#METHOD) to run; if
	// it is empty, all tests run.
	Classes []string
	// Arguments are additional arguments for the runner (-e NAME VALUE). The
	// names delay_msec and class are not allowed.
	Arguments map[string]string
	// DelayAfterTest is the time after each test, measured by the device's
	// clock; 0 means as long as the device needs.
	DelayAfterTest time.Duration
}

// Windows contains RE2 regular expressions that match the output lines at which
// a test begins and ends. Both are valid.
type Windows struct {
	Begin, End string
}

// Report selects the optional reports of the run directory.
type Report struct {
	// JUnit determines whether junit.xml is written; nil means that it is
	// written only if the run has checks.
	JUnit *bool
}

// Monkey is a run of monkey, the event generator on the device.
type Monkey struct {
	// Events is the number of events, at most 2^31-1 (AOSP
	// cmds/monkey/src/com/android/commands/monkey/Monkey.java, mCount).
	Events int
	// Throttle is the pause between two events, in whole milliseconds.
	Throttle time.Duration
	// Seed makes runs reproducible; nil means that each run uses a new seed.
	Seed *int64
}

// Sample configures the time between two readings, in device time.
type Sample struct {
	// Normal, Suspicious and Leaking are the sampling intervals of the fast
	// channel in the states with these names; the Confirming state uses
	// Suspicious.
	Normal, Suspicious, Leaking time.Duration
	// Detail is the time between two memory breakdowns; the processes take
	// turns.
	Detail time.Duration
	// MaxSystemServer and MaxApp limit the cost of sampling in the
	// system_server process and in the app, in percent of one core.
	MaxSystemServer, MaxApp float64
}

// Detect configures how the memory of each process is judged.
type Detect struct {
	// Policy is the name of a set of rules: "robust" or "article".
	Policy string
	// Assert is "end" or "live". With "end", the verdict at the end of the run
	// decides; with "live", the run fails if a process was ever in the LEAKING
	// state.
	Assert string
	// MustSee is the rate of the slowest leak that a pass must rule out, in
	// bytes per hour; 0 if no rate is required.
	MustSee int64
}

// Diagnose configures what is captured from a leaking process.
type Diagnose struct {
	// Dump determines when a heap dump is taken: on_leak, at_end (of the run)
	// or at_marks. With at_end and at_marks, a heap dump is also taken when a
	// leak is detected.
	Dump string
	// Cooldown is the minimum device time between two diagnoses of one process.
	Cooldown time.Duration
	// Keep determines which part of a heap dump is kept after its analysis:
	// stripped (the graph without the contents of primitive arrays), raw or
	// none.
	Keep string
	// Collect determines when garbage collections are forced and the remaining
	// objects are counted: at_marks, never or auto. auto does so at the marks
	// between two loops, but only in short runs.
	Collect string
	// Logcat determines which part of the device's log is kept: app (the app's
	// lines and the system's lines about it), all or none.
	Logcat string
	// Texts is "hidden" or "shown". With "hidden", each string of the app is
	// replaced by a hash.
	Texts string
	// Steps maps each kind of recipe (java, native, gpu, thread, unknown, or
	// all for every kind) to the steps that are added to it. Kinds without
	// steps are absent; Steps is nil if there are no steps at all.
	Steps map[string][]Step
}

// Step is a command that the file defines. Its output is kept with a diagnosis.
type Step struct {
	// Name is the name of the output file without its extension. It must differ
	// from the names of the other steps of the same kind, of the steps of kind
	// all, and of leakgate's own steps.
	Name string
	// Command is one command line for the shell of the device, as written:
	// {pid}, {process}, {package} and {user} are placeholders for quoted
	// values, and {{ is a literal {. Any other { is an error.
	Command string
	// Limit is the maximum duration of the command, in wall-clock time.
	Limit time.Duration
}

// These are the values of keys that the file does not contain.
const (
	DefaultMinAPI          = 21
	DefaultRequire         = 1
	DefaultThrottle        = 300 * time.Millisecond
	DefaultNormal          = 30 * time.Second
	DefaultSuspicious      = 15 * time.Second
	DefaultLeaking         = 60 * time.Second
	DefaultDetail          = 30 * time.Second
	DefaultMaxSystemServer = 25.0
	DefaultMaxApp          = 5.0
	DefaultPolicy          = policyRobust
	DefaultAssert          = "end"
	DefaultDump            = "on_leak"
	DefaultCooldown        = 30 * time.Minute
	DefaultKeep            = "stripped"
	DefaultCollect         = "auto"
	DefaultLogcat          = "app"
	DefaultTexts           = "hidden"
	DefaultLimit           = 30 * time.Second // of a step
)

// If diagnose.texts is TextsShown, reports show strings of the app.
const TextsShown = "shown"

// The names of the policies.
const (
	policyRobust  = "robust"
	policyArticle = "article"
)

func defaults() *Config {
	return &Config{
		Devices: Devices{MinAPI: DefaultMinAPI, Require: DefaultRequire},
		Sample: Sample{
			Normal: DefaultNormal, Suspicious: DefaultSuspicious, Leaking: DefaultLeaking, Detail: DefaultDetail,
			MaxSystemServer: DefaultMaxSystemServer, MaxApp: DefaultMaxApp,
		},
		Detect: Detect{Policy: DefaultPolicy, Assert: DefaultAssert},
		Diagnose: Diagnose{
			Dump: DefaultDump, Cooldown: DefaultCooldown, Keep: DefaultKeep, Collect: DefaultCollect,
			Logcat: DefaultLogcat, Texts: DefaultTexts,
		},
		Gate:     Requirements{Rules: gate.DefaultRules()},
		Baseline: BaselineSource{Window: gate.Window, Match: gate.MatchAll()},
		GitHub:   GitHub{CommentWhen: DefaultCommentWhen, Summary: true},
	}
}

// Load reads the file at path and parses it like [Parse]. If it fails, the
// error is of type [Errors]; if the file cannot be read, the error has no line.
func Load(path string, getenv func(string) (string, bool), choices ...Choice) (*Config, error) {
	text, err := read(path)
	if err != nil {
		return nil, Errors{unreadable(path, err)}
	}
	return Parse(path, text, getenv, choices...)
}

// Parse parses text, the content of the file with the given name. getenv
// returns the value of an environment variable and reports whether it is set,
// like [os.LookupEnv]; nil means an empty environment. Parse returns either a
// Config or an error of type [Errors].
//
// The file is checked both alone and with each of its profiles, whichever
// profile is selected; all mistakes are reported, each only once. An unset
// variable is an error only in the selected configuration.
func Parse(name string, text []byte, getenv func(string) (string, bool), choices ...Choice) (*Config, error) {
	if getenv == nil {
		getenv = func(string) (string, bool) { return "", false }
	}
	src, problem := newSource(name, text)
	if problem != nil {
		return nil, Errors{*problem}
	}
	root, problem := src.parse()
	if problem != nil {
		return nil, Errors{*problem}
	}
	r := reading{source: src, getenv: getenv, root: root}
	for _, choose := range choices {
		choose(&r.chosen)
	}
	return r.resolve()
}

// Choice selects a profile of the file or sets a flag for [Parse].
type Choice func(*chosen)

type chosen struct {
	profile string
	flags   []flagged
}

// WithProfile selects a profile of the file; an empty name selects none.
func WithProfile(name string) Choice {
	return func(c *chosen) { c.profile = name }
}

// WithFlag sets the value at a path, or the values of a list, on behalf of a
// command-line flag such as --for. If no values are given, nothing changes.
func WithFlag(flag, path string, values ...string) Choice {
	return func(c *chosen) {
		if len(values) > 0 {
			c.flags = append(c.flags, flagged{flag, path, values})
		}
	}
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// Read one byte more than allowed, to detect a file that is too large.
	return io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
}

func unreadable(path string, err error) Problem {
	p := Problem{File: path, Message: "cannot read the file: " + plain(err)}
	if !errors.Is(err, fs.ErrNotExist) {
		return p
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		p.Message = fmt.Sprintf("cannot read the file: there is no directory %q", filepath.Dir(path))
		return p
	}
	var names []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext == ".yaml" || ext == ".yml" {
			names = append(names, e.Name())
		}
	}
	if name, ok := Nearest(filepath.Base(path), names); ok {
		p.Suggestion = strings.TrimSuffix(path, filepath.Base(path)) + name
	}
	return p
}

// plain returns the cause of a file system error without the path, which the
// message already contains.
func plain(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}
