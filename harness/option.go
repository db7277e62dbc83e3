package harness

import (
	"errors"
	"flag"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/internal/harness/hub"
)

// Option is an option of [Watch] or [ForTest]. A YAML file counts before it, LEAKGATE_ variables
// before the file, and flags before all.
type Option interface{ apply(*settings) }

type option func(*settings)

func (o option) apply(s *settings) { o(s) }

// settings are the options of one watch.
type settings struct {
	hub.Options
	every *checkSettings
}

// Config names a YAML file of leakgate for devices, sampling, detection and what is collected of
// a leak. Its processes count before those of the code; workload and duration may be missing, and
// do not count: the suite is the workload.
func Config(path string) Option { return option(func(s *settings) { s.Config = path }) }

// Processes adds processes, by names or patterns such as com.shop:*. No process that matches
// one of them fails the suite.
func Processes(patterns ...string) Option {
	return option(func(s *settings) { s.Options.Processes = append(s.Options.Processes, patterns...) })
}

// Devices chooses devices by their serials, among those that are attached. Where there are
// several, each spec gets one of them.
func Devices(serials ...string) Option {
	return option(func(s *settings) { s.Options.Devices = append(s.Options.Devices, serials...) })
}

// Artifacts is the folder below which run directories are written: by default the folder of
// Ginkgo's reports, else leakgate-runs in the folder of the package.
func Artifacts(dir string) Option { return option(func(s *settings) { s.Artifacts = dir }) }

// Accepted names the reviewed file of leaks that are accepted until a date. They fail no spec
// and not the suite; one whose date is over fails the suite.
func Accepted(path string) Option { return option(func(s *settings) { s.Accepted = path }) }

// EverySpec checks each spec of the suite, decorated or not.
func EverySpec(opts ...CheckOption) Option {
	return option(func(s *settings) { s.every = newCheckSettings(opts) })
}

// Strict fails a spec whose check is inconclusive, such as one of an app whose heap cannot be
// dumped, or in which no process was read.
func Strict() Option { return option(func(s *settings) { s.Strict = true }) }

// Observe reports everything and fails nothing.
func Observe() Option { return option(func(s *settings) { s.Observe = true }) }

// Wait waits for devices that another run or suite on this computer uses, instead of failing.
func Wait() Option { return option(func(s *settings) { s.Wait = true }) }

// StandIn allows a stand-in for a phone whose time runs faster, as that of `leakgate demo --serve`.
func StandIn() Option { return option(func(s *settings) { s.StandIn = true }) }

// flags are those of a test binary, after -- on the command line of ginkgo or after -args on
// that of go test.
var flags struct {
	config, devices, artifacts, accepted string
	strict, observe, wait, standIn       optionalBool
}

// optionalBool is a flag that counts only where it is given.
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

// declareFlags declares the flags once; a test binary may have flags of these names already.
func declareFlags(to *flag.FlagSet) {
	text := func(name string, value *string, usage string) {
		if to.Lookup(name) == nil {
			to.StringVar(value, name, "", usage)
		}
	}
	text("leakgate.config", &flags.config, "YAML file of leakgate")
	text("leakgate.devices", &flags.devices, "serials of the devices to use, with commas")
	text("leakgate.artifacts", &flags.artifacts, "folder of run directories")
	text("leakgate.accepted", &flags.accepted, "file of accepted leaks")
	for name, f := range map[string]struct {
		value *optionalBool
		usage string
	}{
		"leakgate.strict":   {&flags.strict, "fail checks that are inconclusive"},
		"leakgate.observe":  {&flags.observe, "report leaks and fail nothing"},
		"leakgate.wait":     {&flags.wait, "wait for devices that another run uses"},
		"leakgate.stand_in": {&flags.standIn, "allow a stand-in for a phone whose time runs faster"},
	} {
		if to.Lookup(name) == nil {
			to.Var(f.value, name, f.usage)
		}
	}
}

// addFlags adds what flags say, which counts before all else. It is called once they are
// parsed.
func (s *settings) addFlags() {
	for value, text := range map[*string]string{&s.Config: flags.config, &s.Artifacts: flags.artifacts, &s.Accepted: flags.accepted} {
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
