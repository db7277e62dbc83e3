package harness

import (
	"errors"
	"flag"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/internal/harness/hub"
)

// Option is an option of [Watch] or [ForTest]. A YAML file overrides options,
// LEAKGATE_ variables override the file, and flags override everything.
type Option interface{ apply(*settings) }

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

// settings are the options of one watch.
type settings struct {
	hub.Options
	every *checkSettings
}

// Config sets the path of a leakgate YAML file for devices, sampling, detection
// and diagnostics. The processes in the file override those in the code.
// Workload and duration may be missing and are ignored if present, because the
// suite is the workload.
func Config(path string) Option { return option(func(s *settings) { s.Config = path }) }

// Processes adds processes to watch, by names or patterns such as com.shop:*. A
// pattern that matches no process fails the suite.
func Processes(patterns ...string) Option {
	return option(func(s *settings) { s.Options.Processes = append(s.Options.Processes, patterns...) })
}

// Devices chooses attached devices by their serials. If several are chosen,
// each spec uses one of them.
func Devices(serials ...string) Option {
	return option(func(s *settings) { s.Options.Devices = append(s.Options.Devices, serials...) })
}

// Artifacts sets the directory in which run directories are created. The
// default is leakgate-runs, in the directory of Ginkgo's reports if Ginkgo
// writes any, and otherwise in the directory of the package.
func Artifacts(dir string) Option { return option(func(s *settings) { s.Artifacts = dir }) }

// Accepted sets the path of the reviewed file of leaks that are accepted until
// a date. Accepted leaks fail neither specs nor the suite; an expired entry
// fails the suite.
func Accepted(path string) Option { return option(func(s *settings) { s.Accepted = path }) }

// EverySpec checks each spec of the suite, whether decorated or not.
func EverySpec(opts ...CheckOption) Option {
	return option(func(s *settings) { s.every = newCheckSettings(opts) })
}

// Strict fails a spec whose check is inconclusive, for example because the heap
// of the app cannot be dumped, or because no process was read.
func Strict() Option { return option(func(s *settings) { s.Strict = true }) }

// Observe reports everything and never fails a spec or the suite.
func Observe() Option { return option(func(s *settings) { s.Observe = true }) }

// Wait makes the suite wait for devices that another run or suite on this
// computer uses. By default, the suite fails if a device is in use.
func Wait() Option { return option(func(s *settings) { s.Wait = true }) }

// StandIn allows a simulated phone that runs faster than real time, such as the
// phone of `leakgate demo --serve`.
func StandIn() Option { return option(func(s *settings) { s.StandIn = true }) }

// flags holds the values of leakgate's flags in a test binary. The flags follow
// -- on a ginkgo command line, or -args on a go test command line.
var flags struct {
	config, devices, artifacts, accepted string
	strict, observe, wait, standIn       optionalBool
}

// optionalBool is a boolean flag that has no effect unless the user sets it.
type optionalBool struct{ set, value bool }

func (b *optionalBool) String() string   { return "" }
func (b *optionalBool) IsBoolFlag() bool { return true }
func (b *optionalBool) Set(text string) error {
	v, err := strconv.ParseBool(text)
	if err != nil {
		return errors.New("want true or false")
	}
	b.set, b.value = true, v
	return nil
}

// declareFlags declares the flags once. It skips flags whose names the test
// binary already uses.
func declareFlags(to *flag.FlagSet) {
	text := func(name string, value *string, usage string) {
		if to.Lookup(name) == nil {
			to.StringVar(value, name, "", usage)
		}
	}
	text("leakgate.config", &flags.config, "leakgate YAML file")
	text("leakgate.devices", &flags.devices, "serials of the devices to use, separated by commas")
	text("leakgate.artifacts", &flags.artifacts, "directory in which run directories are created")
	text("leakgate.accepted", &flags.accepted, "file that lists the accepted leaks")
	for name, f := range map[string]struct {
		value *optionalBool
		usage string
	}{
		"leakgate.strict":   {&flags.strict, "fail checks that are inconclusive"},
		"leakgate.observe":  {&flags.observe, "report leaks without failing"},
		"leakgate.wait":     {&flags.wait, "wait for devices that another run uses"},
		"leakgate.stand_in": {&flags.standIn, "allow a simulated phone whose time runs faster than real time"},
	} {
		if to.Lookup(name) == nil {
			to.Var(f.value, name, f.usage)
		}
	}
}

// addFlags adds the values of flags, which override all other settings. Call it
// after the flags have been parsed.
func (s *settings) addFlags() {
	for value, text := range map[*string]string{
		&s.Config: flags.config, &s.Artifacts: flags.artifacts, &s.Accepted: flags.accepted,
	} {
		if text != "" {
			*value = text
		}
	}
	s.Flags = map[string][]string{}
	if flags.devices != "" {
		s.Flags["devices.serials"] = strings.Split(flags.devices, ",")
	}
	for key, f := range map[string]optionalBool{"strict": flags.strict, "devices.stand_in": flags.standIn} {
		if f.set {
			s.Flags[key] = []string{strconv.FormatBool(f.value)}
		}
	}
	for value, f := range map[*bool]optionalBool{&s.Observe: flags.observe, &s.Wait: flags.wait} {
		if f.set {
			*value = f.value
		}
	}
}
