// Package config reads the YAML file of a stability run: which app, which
// devices, what stresses the app, how often to sample, how to judge and what to
// capture from a leaking process.
//
// It returns either a complete [Config], with every default filled in and the
// origin of every value, or [Errors]: all mistakes at once, each with file,
// line, column, the line itself and a suggestion for a misspelled word. It is
// strict: unknown, duplicate, misplaced or mistyped keys are errors.
//
// A value comes from one of five layers, strongest first: a flag, an
// environment variable named after the key, the chosen profile of the file, the
// file, the default. The file alone and every profile are checked whichever is
// chosen.
//
// One table of keys (keys.go) defines the file. The reader, the written form of
// a Config and the JSON Schema are all derived from it.
//
// It does not check that a device, an app or a program exists, and of the rest
// of the project it uses only the rules of package gate. It is the only user of
// the YAML library, whose node tree it walks itself, because a decoder into
// structs has no columns, stops early, and mentions types of the program.
//
// ${VAR}, ${VAR:-default} and ${VAR:?message} are replaced from the
// environment, only in values and after the YAML is parsed, so that a variable
// can hold a value but never add a key. $$ is a literal $.
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

// MaxFileBytes is the maximum size of a file.
const MaxFileBytes = 1 << 20

// Config is one stability run as the file describes it. Every value that is
// missing in the file has its default; [Config.Origin] reports where a value
// comes from.
type Config struct {
	App      App
	Devices  Devices
	Workload Workload
	// Duration is the maximum duration of the run. 0: until the workload ends,
	// which is invalid with the workload "none".
	Duration time.Duration
	// LongestDuration is how long a suspicion extends the run, 0 for no longer
	// than Duration.
	LongestDuration time.Duration
	Sample          Sample
	Detect          Detect
	Diagnose        Diagnose
	Gate            Requirements
	Baseline        BaselineSource
	Report          Report
	GitHub          GitHub
	// Strict makes the run exit with 5 if any process is inconclusive,
	// AllowUnjudged with 0 if nothing could be judged or a heap dump is
	// missing.
	Strict        bool
	AllowUnjudged bool

	gated    bool
	masked   bool // references are written instead of the values
	secrets  secrets
	source   source
	origins  map[string]Origin
	profile  string
	profiles []string
}

// App is what to watch.
type App struct {
	// Package is the application id, such as com.shop; empty if only processes
	// are named.
	Package string
	// Processes are process names, or prefixes of names followed by a star.
	// Never empty: the default is the package and package + ":*".
	Processes []string
	// Mapping is the path of the mapping of an obfuscated build, as written: a
	// relative path is relative to the folder of the file. Empty for none.
	Mapping string
	// Variant is the name of the tested build variant, such as freeDebug; may
	// be empty.
	Variant string
}

// Devices selects the phones of the run.
type Devices struct {
	// Serials are the devices to use; empty for all that are connected.
	Serials []string
	// MinAPI is the lowest API level of Android that a device may have.
	MinAPI int
	// Require is the minimum number of devices.
	Require int
	// StandIn allows devices whose property leakgate.time_scale makes their
	// clock faster.
	StandIn bool
}

// Workload is what stresses the app: exactly one of its fields except Windows
// is set, or none.
type Workload struct {
	// Monkey is the event generator of Android; nil for another workload.
	Monkey *Monkey
	// Command is a program on the host with its arguments, without a shell.
	Command []string
	// DeviceCommand is one command line for the shell of the device.
	DeviceCommand string
	// Instrument are instrumented tests; nil for another workload.
	Instrument *Instrument
	// Windows finds tests in the output of Command or DeviceCommand; nil for
	// none.
	Windows *Windows
}

// None reports whether nothing is started: the app is only watched.
func (w Workload) None() bool {
	return w.Monkey == nil && len(w.Command) == 0 && w.DeviceCommand == "" && w.Instrument == nil
}

// Instrument is a run of the instrumented tests of an app.
type Instrument struct {
	// Component is PACKAGE/RUNNER, or the package alone if it has one runner.
	Component string
	// Classes are the classes and CLASS#METHOD that run; empty for all.
	Classes []string
	// Arguments are further values of -e, except delay_msec and class.
	Arguments map[string]string
	// Room is the device time after each test; 0 for what the device needs.
	Room time.Duration
}

// Windows are RE2 regular expressions for the output lines at which a test
// begins and ends. Both compile.
type Windows struct {
	Begin, End string
}

// Report selects the optional reports of the run directory.
type Report struct {
	// JUnit is whether junit.xml is written; nil for only if the run has
	// checks.
	JUnit *bool
}

// Monkey is a run of monkey, the event generator on the device.
type Monkey struct {
	// Events is the number of events, at most 2^31-1 (AOSP
	// cmds/monkey/src/com/android/commands/monkey/Monkey.java, mCount).
	Events int
	// Throttle is the pause between two events, in whole milliseconds.
	Throttle time.Duration
	// Seed makes runs reproducible; nil means a new one for each run.
	Seed *int64
}

// Sample configures the time between two readings, in device time.
type Sample struct {
	// Normal, Suspicious and Leaking are the intervals of the fast channel in
	// the states of these names; Confirming samples like Suspicious.
	Normal, Suspicious, Leaking time.Duration
	// Detail is the time between two breakdowns, each of the next process.
	Detail time.Duration
	// MaxSystemServer and MaxApp bound the cost of sampling in the process
	// system_server and in the app, in percent of one core.
	MaxSystemServer, MaxApp float64
}

// Detect configures how the series are judged.
type Detect struct {
	// Policy is the name of a set of rules: robust or article.
	Policy string
	// Assert is end, to judge by the verdict at the end of the run, or live, to
	// fail a run in which a process ever reached LEAKING.
	Assert string
	// MustSee is the slowest leak that a pass must rule out, in bytes per hour;
	// 0 for any.
	MustSee int64
}

// Diagnose configures what is captured from a leaking process.
type Diagnose struct {
	// Dump is when a heap dump is made: on_leak, at_end (of the run) or
	// at_marks. The last two also make one on a leak.
	Dump string
	// Cooldown is the minimum time between two diagnoses of one process, in
	// device time.
	Cooldown time.Duration
	// Keep is what is kept of a heap dump after its analysis: stripped (the
	// graph without the contents of primitive arrays), raw or none.
	Keep string
	// Collect is when garbage collections are forced and the remaining objects
	// counted: at_marks, never, or auto, which is at marks that begin a loop,
	// in short runs.
	Collect string
	// Logcat is what is kept of the device's log: app (the lines of the app and
	// those of the system about it), all or none.
	Logcat string
	// Texts is hidden, to replace each text of the app by a hash, or shown.
	Texts string
	// Steps are added to the recipe of a kind: java, native, gpu, thread,
	// unknown, or all for each of them. Kinds without steps are absent; nil
	// means no steps.
	Steps map[string][]Step
}

// Step is one command of the file whose output is kept with a diagnosis.
type Step struct {
	// Name is the name of its file without the extension. It is unique within a
	// kind and all, and differs from leakgate's own steps.
	Name string
	// Command is one command line for the shell of the device, as written:
	// {pid}, {process}, {package} and {user} are placeholders for quoted
	// values, and {{ is a literal {. It has no other {.
	Command string
	// Limit bounds it in real time.
	Limit time.Duration
}

// The defaults of a minimal file.
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

// TextsShown is the value of diagnose.texts that shows them.
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

// Load reads and parses the file at path, see [Parse]. The error is of type
// [Errors]; that of an unreadable file has no line.
func Load(path string, getenv func(string) (string, bool), choices ...Choice) (*Config, error) {
	text, err := read(path)
	if err != nil {
		return nil, Errors{unreadable(path, err)}
	}
	return Parse(path, text, getenv, choices...)
}

// Parse parses the text of a file of this name. getenv returns the value of an
// environment variable and whether it is set, like [os.LookupEnv]; nil is an
// empty environment. The error is of type [Errors] and is nil exactly if the
// Config is not.
//
// Whatever is chosen, all mistakes of the file alone and of the file with each
// of its profiles are reported, each once. An unset variable is an error only
// in what is chosen.
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

// Choice is an input of [Parse] beside the file.
type Choice func(*chosen)

type chosen struct {
	profile string
	flags   []flagged
}

// WithProfile chooses a profile of the file; an empty name chooses none.
func WithProfile(name string) Choice {
	return func(c *chosen) { c.profile = name }
}

// WithFlag sets the value at a path, or the values of a list, in the name of a
// command-line flag such as --for. No value leaves the path unchanged.
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
	// One byte more than allowed shows that there are too many.
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

// plain is the cause of a file system error without the path, which the message
// already has.
func plain(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}
