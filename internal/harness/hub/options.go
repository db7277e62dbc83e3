package hub

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/harness/fleet"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/config"
	"github.com/leakgate/leakgate/internal/harness/plan"
)

// Options define what a suite watches. The precedence, from highest to lowest,
// is: flag, environment, YAML file, code of the suite.
type Options struct {
	// Suite names the suite in messages and in its run directory.
	Suite string
	// Processes are names or patterns such as com.shop*.
	Processes []string
	// Config is the path of a YAML file, or "" if there is none.
	Config string
	// Devices are the serials of the devices; nil means all attached devices.
	Devices []string
	// Artifacts is the directory in which run directories are created; "" means
	// leakgate-runs.
	Artifacts string
	// Accepted is the path of the file of accepted leaks, or "" if there is
	// none.
	Accepted string
	// If Strict is set, checks that are inconclusive or missing also fail. If
	// Observe is set, neither a spec nor the suite fails. If Wait is set, the
	// suite waits for devices that another run uses.
	Strict, Observe, Wait bool
	// StandIn allows simulated devices that run faster than real time (see
	// fleet.DeviceChoice).
	StandIn bool
	// Flags holds the values of flags by their keys in the YAML file, such as
	// devices.serials.
	Flags map[string][]string
	// Getenv reads the environment, like [os.LookupEnv].
	Getenv func(string) (string, bool)
	// Log receives progress messages, one line each; it may be nil.
	Log func(line string)
	// Client is the adb server; nil means the server that the environment
	// specifies.
	Client *adb.Client
	// Tool is the program's name and version, for run.json.
	Tool string
}

// These variables are read by suites only. Suites also read the variables of
// the YAML file.
const (
	ConfigVariable    = "LEAKGATE_CONFIG"
	ArtifactsVariable = "LEAKGATE_ARTIFACTS"
	AcceptedVariable  = "LEAKGATE_ACCEPTED"
	ObserveVariable   = "LEAKGATE_OBSERVE"
	WaitVariable      = "LEAKGATE_WAIT"
)

// Resolve applies the environment to the options. It returns an error for an
// invalid variable.
func (o *Options) Resolve() error {
	if o.Getenv == nil {
		o.Getenv = os.LookupEnv
	}
	for name, value := range map[string]*string{
		ConfigVariable: &o.Config, ArtifactsVariable: &o.Artifacts, AcceptedVariable: &o.Accepted,
	} {
		if text, ok := o.Getenv(name); ok && text != "" {
			*value = text
		}
	}
	for name, value := range map[string]*bool{ObserveVariable: &o.Observe, WaitVariable: &o.Wait} {
		text, ok := o.Getenv(name)
		if !ok || text == "" {
			continue
		}
		set, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("environment %s: invalid value %q: want true or false", name, text)
		}
		*value = set
	}
	return nil
}

// settings are the resolved options of a run.
type settings struct {
	config *config.Config
	run    monitor.Options
	choice fleet.DeviceChoice
}

// settle resolves the options of the run and of its devices. It does not access
// a device.
func (o *Options) settle() (settings, error) {
	cfg, dir, err := o.load()
	if err != nil {
		return settings{}, err
	}
	run, err := plan.Of(cfg, dir)
	if err != nil {
		return settings{}, err
	}
	// A suite drives the app itself and decides when the run ends.
	run.Workload, run.Duration, run.LongestDuration = nil, 0, 0
	run.Tool = o.Tool
	choice := plan.Choice(cfg)
	choice.Client = o.Client
	if cfg.Origin("devices.stand_in").Layer == config.Default {
		choice.StandIn = o.StandIn
	}
	choice.Getenv = func(name string) string { value, _ := o.Getenv(name); return value }
	return settings{cfg, run, choice}, nil
}

// load reads the YAML file, or generates one from the code. Paths in the file
// are relative to dir.
func (o *Options) load() (cfg *config.Config, dir string, err error) {
	var choices []config.Choice
	for path, values := range o.Flags {
		choices = append(choices, config.WithFlag("leakgate."+path, path, values...))
	}
	if profile, _ := o.Getenv("LEAKGATE_PROFILE"); profile != "" {
		choices = append(choices, config.WithProfile(profile))
	}
	if o.Config == "" {
		cfg, err = config.Parse("the options of harness.Watch", o.text(), o.Getenv, choices...)
		return cfg, ".", err
	}
	cfg, err = config.Load(o.Config, o.Getenv, append(choices, o.suiteChoices()...)...)
	if err != nil {
		return nil, "", err
	}
	// The file overrides the code, which supplies the settings that the file
	// omits.
	if cfg.Origin("devices.serials").Layer == config.Default && len(o.Devices) > 0 {
		cfg.Devices.Serials = o.Devices
	}
	if cfg.Origin("strict").Layer == config.Default {
		cfg.Strict = o.Strict
	}
	return cfg, filepath.Dir(o.Config), nil
}

// suiteChoices returns values for the keys that have no effect or are optional
// when a suite is the workload.
func (o *Options) suiteChoices() []config.Choice {
	out := []config.Choice{
		config.WithFlag("a suite", "workload", "none"), config.WithFlag("a suite", "duration", endless),
	}
	file, err := os.ReadFile(o.Config)
	if err == nil && !appKey.Match(file) { // Load reports the errors of a file that cannot be read
		out = append(out, config.WithFlag("harness.Watch", "app.processes", o.Processes...))
	}
	return out
}

// appKey matches the app key in a YAML file.
var appKey = regexp.MustCompile(`(?m)^\{?\s*["']?app["']?\s*:`)

// endless is a duration that is longer than any suite.
const endless = "1000h"

// text returns a YAML file with the settings from the code.
func (o *Options) text() []byte {
	var b bytes.Buffer
	quoted := func(list []string) string {
		words := make([]string, len(list))
		for i, w := range list {
			// Here, ${VAR} in a name does not refer to a variable.
			words[i] = strconv.Quote(strings.ReplaceAll(w, "$", "$$"))
		}
		return "[" + strings.Join(words, ", ") + "]"
	}
	fmt.Fprintf(&b, "version: 1\napp: { processes: %s }\nworkload: none\nduration: 1000h\nstrict: %t\n",
		quoted(o.Processes), o.Strict)
	if len(o.Devices) > 0 {
		fmt.Fprintf(&b, "devices: { serials: %s }\n", quoted(o.Devices))
	}
	return b.Bytes()
}

// directory returns the path of a new run directory.
func (o *Options) directory() string {
	name := time.Now().UTC().Format("20060102T150405.000Z") + "-suite"
	if word := slug(o.Suite); word != "" {
		name += "-" + word
	}
	return filepath.Join(cmp.Or(o.Artifacts, "leakgate-runs"), name)
}

// maxSlug is the maximum length of the part of a path that is derived from the
// name of a suite.
const maxSlug = 40

// slug converts a name to a path component.
func slug(name string) string {
	keep := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return ' '
	}
	words := strings.Fields(strings.Map(keep, strings.ToLower(name)))
	out := strings.Join(slices.Compact(words), "-")
	return strings.Trim(out[:min(len(out), maxSlug)], "-")
}
