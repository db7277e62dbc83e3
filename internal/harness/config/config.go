// Package config reads the YAML file of a stability run: which app, which
// devices, what stresses the app, how often to sample, how to judge and what to
// capture of a process that leaks.
//
// It takes text, an environment and the flags that stand for keys, and gives
// either a complete [Config], with every default filled in and the origin of
// every value kept, or [Errors]: all that is wrong with the file at once, each
// with file, line, column, the line itself and, where a word is nearly right, the
// word that was meant. It never gives both and it is strict: an unknown, doubled,
// misplaced or mistyped key is refused, and so is a key of a feature that this
// version does not have.
//
// A value comes from one of five layers, strongest first: a flag, a variable of
// the environment named after the key, the chosen profile of the file, the file,
// the default. The file alone and every profile are checked whichever is chosen.
//
// One table of keys (keys.go) says what may stand in a file. The reader, the
// written form of a Config and the JSON Schema are all made from it.
//
// It does not touch a device, does not check that a device, an app or a program
// exists, and knows of the project only the rules of package gate: whoever runs the
// stability run turns a Config into the parts of that run. It is the one home of the YAML
// library, whose node tree it walks itself, because a decoder into structs has
// no columns, stops early, and tells users about types of the program.
//
// Text of the form ${VAR}, ${VAR:-default} and ${VAR:?message} is filled in from
// the environment, in values only and after the YAML is parsed, so that a
// variable can hold a value but never add a key. $$ stands for one $.
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

// MaxFileBytes is the size of the largest file that is read.
const MaxFileBytes = 1 << 20

// Config is one stability run as the file describes it. Every value that the
// file leaves out holds its default; [Config.Origin] tells which is which.
type Config struct {
	App      App
	Devices  Devices
	Workload Workload
	// Duration is how long the run lasts at most. 0: until the workload ends,
	// which a file with the workload "none" cannot ask for.
	Duration time.Duration
	// LongestDuration is how long a suspicion extends the run, 0 for no longer than Duration.
	LongestDuration time.Duration
	Sample          Sample
	Detect          Detect
	Diagnose        Diagnose
	Gate            Requirements
	Baseline        BaselineSource
	Report          Report
	GitHub          GitHub
	// Strict makes the run exit with 5 where any process is inconclusive, AllowUnjudged with 0
	// where nothing could be judged or a heap dump is missing.
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

// App is what is watched.
type App struct {
	// Package is the application id, such as com.shop; empty where only processes
	// are named.
	Package string
	// Processes are names of processes, or the beginnings of names with a star
	// behind. Never empty: the default is the package and package + ":*".
	Processes []string
	// Mapping is the path of the mapping of an obfuscated build, as it is written: one
	// that is not absolute is seen from the folder of the file. Empty for none.
	Mapping string
	// Variant is what the build calls what is tested, such as freeDebug; empty where it is
	// not said.
	Variant string
}

// Devices says on which phones the run takes place.
type Devices struct {
	// Serials are the devices to use; empty means all that are connected.
	Serials []string
	// MinAPI is the lowest API level of Android that a device may have.
	MinAPI int
	// Require is how many devices the run needs at least.
	Require int
	// StandIn allows devices whose property leakgate.time_scale makes their time faster.
	StandIn bool
}

// Workload is what stresses the app: exactly one of its fields but Windows is set, or none.
type Workload struct {
	// Monkey is the event generator of Android; nil for another workload.
	Monkey *Monkey
	// Command is a program on the host with its arguments, without a shell.
	Command []string
	// DeviceCommand is one command line for the shell of the device.
	DeviceCommand string
	// Instrument are instrumented tests; nil for another workload.
	Instrument *Instrument
	// Windows finds tests in the output of Command or DeviceCommand; nil for none.
	Windows *Windows
}

// None tells whether nothing is started: the app is only watched.
func (w Workload) None() bool {
	return w.Monkey == nil && len(w.Command) == 0 && w.DeviceCommand == "" && w.Instrument == nil
}

// Instrument is a run of the instrumented tests of an app.
type Instrument struct {
	// Component is PACKAGE/RUNNER, or the package alone where it has one runner.
	Component string
	// Classes are the classes and CLASS#METHOD that run; empty for all.
	Classes []string
	// Arguments are further values of -e; delay_msec and class are not among them.
	Arguments map[string]string
	// Room is the time of the device after each test; 0 for what the device needs.
	Room time.Duration
}

// Windows are regular expressions of RE2 for the lines of an output at which a test begins and
// ends. Both compile.
type Windows struct {
	Begin, End string
}

// Report says which reports the run directory gets beside those that every run has.
type Report struct {
	// JUnit is whether junit.xml is written; nil for where the run has checks.
	JUnit *bool
}

// Monkey is a run of monkey, the event generator on the device.
type Monkey struct {
	// Events is how many events are sent, at most 2^31-1
	// (AOSP cmds/monkey/src/com/android/commands/monkey/Monkey.java, mCount).
	Events int
	// Throttle is the pause between two events, in whole milliseconds.
	Throttle time.Duration
	// Seed makes two runs alike; nil means a new one for each run.
	Seed *int64
}

// Sample holds the time between two readings, in device time.
type Sample struct {
	// Normal, Suspicious and Leaking are the intervals of the fast channel in the
	// states of these names; Confirming samples as Suspicious does.
	Normal, Suspicious, Leaking time.Duration
	// Detail is the time between two breakdowns, each of the next process.
	Detail time.Duration
	// MaxSystemServer and MaxApp are what the sampling may cost at most in the
	// process system_server and in the app, in percent of one core.
	MaxSystemServer, MaxApp float64
}

// Detect says how the series are judged.
type Detect struct {
	// Policy is the name of a set of rules: robust or article.
	Policy string
	// Assert is end, to judge by the word at the end of the run, or live, to fail a
	// run in which a process ever reached LEAKING.
	Assert string
	// MustSee is the slowest leak that a pass must rule out, in bytes per hour; 0 for any.
	MustSee int64
}

// Diagnose says what is captured of a process that leaks.
type Diagnose struct {
	// Dump is when a heap dump is made: on_leak, at_end (of the run) or at_marks.
	// The last two make one on a leak too.
	Dump string
	// Cooldown is the least time between two diagnoses of one process, in the time
	// of the device.
	Cooldown time.Duration
	// Keep is what stays of a heap dump after its analysis: stripped (the graph
	// without the contents of primitive arrays), raw or none.
	Keep string
	// Collect is when garbage collections are forced and what is left is counted: at_marks,
	// never, or auto, which is at marks that begin a loop, in short runs.
	Collect string
	// Logcat is what is kept of the device's log: app (the lines of the app and those of the
	// system about it), all or none.
	Logcat string
	// Texts is hidden, where a hash takes the place of each text of the app, or shown.
	Texts string
	// Steps are added to the recipe of a kind: java, native, gpu, thread, unknown, or
	// all for each of them. A kind without steps is not in it; nil means no steps.
	Steps map[string][]Step
}

// Step is one command of the file whose output is kept with a diagnosis.
type Step struct {
	// Name is the name of its file without the ending. Within a kind and all it is
	// unique, and none of leakgate's own steps is called so.
	Name string
	// Command is one command line for the shell of the device, as it is written: {pid},
	// {process}, {package} and {user} are still to be filled in, quoted, and {{ stands
	// for one {. It has no other {.
	Command string
	// Limit is the real time that it may take.
	Limit time.Duration
}

// The defaults of a file that says no more than it must.
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
		Detect:   Detect{Policy: DefaultPolicy, Assert: DefaultAssert},
		Diagnose: Diagnose{Dump: DefaultDump, Cooldown: DefaultCooldown, Keep: DefaultKeep, Collect: DefaultCollect, Logcat: DefaultLogcat, Texts: DefaultTexts},
		Gate:     Requirements{Rules: gate.DefaultRules()},
		Baseline: BaselineSource{Window: gate.Window, Match: gate.MatchAll()},
		GitHub:   GitHub{CommentWhen: DefaultCommentWhen, Summary: true},
	}
}

// Load reads and parses the file at path, see [Parse]. The error is of type
// [Errors]; that of a file that cannot be read has no line.
func Load(path string, getenv func(string) (string, bool), choices ...Choice) (*Config, error) {
	text, err := read(path)
	if err != nil {
		return nil, Errors{unreadable(path, err)}
	}
	return Parse(path, text, getenv, choices...)
}

// Parse reads the text of a file of this name. getenv gives the value of a
// variable of the environment and whether it is set, as [os.LookupEnv] does; nil
// stands for an empty environment. The error is of type [Errors] and is nil
// exactly if the Config is not.
//
// Whatever is chosen, all errors of the file alone and of the file with each of
// its profiles are told, each once. A variable that is not set counts as an error
// only in what is chosen.
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

// Choice is what the caller of [Parse] knows beside the file.
type Choice func(*chosen)

type chosen struct {
	profile string
	flags   []flagged
}

// WithProfile chooses a profile of the file; an empty name chooses none.
func WithProfile(name string) Choice {
	return func(c *chosen) { c.profile = name }
}

// WithFlag gives the value at a path, or the values of a list, in the name of a
// flag of the command line such as --for. No value leaves the path alone.
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
	// One byte more than allowed is enough to tell that there are too many.
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

// plain is the cause of an error of the file system without the path, which
// stands in front of the message already.
func plain(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}
