package capture

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/text"
)

// Source says where a sample was read. Sources from SmapsRollup to Smaps give
// Pss and SwapPss; Status gives RssAnon and VmSwap, which is another series;
// Dumpsys means that the fast channel cannot see the process.
type Source string

// The sources, best first.
const (
	SmapsRollup Source = "smaps_rollup"
	SU          Source = "su"
	RunAs       Source = "run_as"
	Smaps       Source = "smaps"
	Status      Source = "status"
	Dumpsys     Source = "dumpsys"
)

// Answer is what a probe found: yes, a no that stays, or nothing that may be
// relied on (the process died, the device did not answer in time).
type Answer uint8

// The three answers of a probe.
const (
	Unclear Answer = iota
	Refused
	Available
)

// String gives available, refused or unclear.
func (a Answer) String() string {
	return [...]string{"unclear", "refused", "available"}[a]
}

// Finding is the answer for one source, with the device's own words.
type Finding struct {
	Source Source
	Answer Answer
	Reason string
}

// Level is how the fast channel reads one process.
type Level struct {
	Source Source
	// Prefix is the command that the reading grep runs under.
	Prefix shell.Prefix
	// file is smaps_rollup, smaps or status.
	file string
}

// Probe is the level of a process and all that was found on the way.
type Probe struct {
	Level    Level
	Findings []Finding
}

// conclusive tells whether every better source than the chosen one is a no that
// stays: only then may the probe be kept.
func (p Probe) conclusive() bool {
	for _, f := range p.Findings {
		if f.Answer == Unclear {
			return false
		}
	}
	return true
}

// Reasons says in words why no better source is used.
func (p Probe) Reasons() []string {
	var out []string
	for _, f := range p.Findings {
		if f.Answer != Available {
			out = append(out, fmt.Sprintf("%s: %s (%s)", f.Source, f.Reason, f.Answer))
		}
	}
	return out
}

// Levels probes processes of one device and keeps what is conclusive. The level
// depends on the process, not on the Android version: on a user build the kernel
// lets the shell read smaps of no app but lets run-as read those of a debuggable
// one. Not for use by two goroutines at once.
type Levels struct {
	dev   Device
	facts Facts
	known map[levelKey]Probe
	// unsure holds what was found of an incarnation where something did not answer,
	// to be asked again after some looks: su may wait for a person every time.
	unsure map[Process]provisional
}

// provisional is a probe that is used until it is asked for left more times.
type provisional struct {
	probe Probe
	left  int
}

const (
	// askAgainAfter is how many looks an unclear answer stands: ten minutes of them.
	askAgainAfter = 20
	// maxUnsure bounds what is kept of processes that come and go.
	maxUnsure = 1000
)

// levelKey is what the answer can depend on while a device stays the same.
type levelKey struct {
	pkg      string
	user     int
	isolated bool
}

// NewLevels makes an empty memory of probes.
func NewLevels(dev Device, facts Facts) *Levels {
	return &Levels{dev: dev, facts: facts, known: map[levelKey]Probe{}, unsure: map[Process]provisional{}}
}

// Forget drops what is known of the process, after a reading at its level failed.
func (l *Levels) Forget(p Process) {
	delete(l.known, keyOf(p))
	delete(l.unsure, p)
}

func keyOf(p Process) levelKey {
	return levelKey{pkg: p.Package(), user: p.User, isolated: p.Isolated()}
}

// Probe finds the best source for a process, on the process itself. The error is
// a device that did not answer; a process that died meanwhile gives Dumpsys with
// unclear findings, to be probed again.
func (l *Levels) Probe(ctx context.Context, p Process) (Probe, error) {
	if probe, ok := l.known[keyOf(p)]; ok {
		return probe, nil
	}
	if u, ok := l.unsure[p]; ok && u.left > 0 {
		u.left--
		l.unsure[p] = u
		return u.probe, nil
	}
	probe, err := l.probe(ctx, p)
	if err == nil {
		l.keep(p, probe)
	}
	return probe, err
}

func (l *Levels) keep(p Process, probe Probe) {
	delete(l.unsure, p)
	if probe.conclusive() {
		l.known[keyOf(p)] = probe
		return
	}
	if len(l.unsure) >= maxUnsure {
		clear(l.unsure)
	}
	l.unsure[p] = provisional{probe, askAgainAfter}
}

// candidate is one way to try.
type candidate struct {
	Level
	// skip is why this way cannot work for the process; empty to try it.
	skip string
	// wait is the real time that it gets; su may wait for a person to agree.
	wait time.Duration
}

func (l *Levels) probe(ctx context.Context, p Process) (Probe, error) {
	var probe Probe
	silent := false
	for _, c := range l.candidates(p) {
		// One su that does not answer is enough to wait for.
		if silent && c.Prefix.IsSU() {
			continue
		}
		f, err := l.try(ctx, p, c)
		if err != nil {
			return Probe{}, err
		}
		if f.Answer == Available {
			probe.Level = c.Level
			return probe, nil
		}
		silent = silent || c.Prefix.IsSU() && f.Answer == Unclear
		probe.Findings = append(probe.Findings, f)
	}
	probe.Level = Level{Source: Dumpsys}
	return probe, nil
}

func (l *Levels) candidates(p Process) []candidate {
	var noRunAs, noSU string
	if p.Isolated() {
		noRunAs = "an isolated process has a uid of its own"
	}
	if !p.Installed() {
		noRunAs = "not a process of an installed app"
	}
	if l.facts.UID == 0 {
		noSU, noRunAs = "the shell is root already", "the shell is root already"
	}
	runAs, su := shell.RunAs(p.Package(), p.User), shell.SU()
	quick, slow := 10*time.Second, 30*time.Second
	return []candidate{
		{Level{SmapsRollup, shell.Prefix{}, "smaps_rollup"}, "", quick},
		{Level{SU, su[0], "smaps_rollup"}, noSU, quick},
		{Level{SU, su[1], "smaps_rollup"}, noSU, quick},
		{Level{RunAs, runAs, "smaps_rollup"}, noRunAs, quick},
		{Level{Smaps, shell.Prefix{}, "smaps"}, "", slow},
		{Level{Smaps, su[0], "smaps"}, noSU, slow},
		{Level{Smaps, su[1], "smaps"}, noSU, slow},
		{Level{Smaps, runAs, "smaps"}, noRunAs, slow},
		{Level{Status, shell.Prefix{}, "status"}, "", quick},
	}
}

// try reads once by one way. Only a dead connection or the caller's end is an error.
func (l *Levels) try(ctx context.Context, p Process, c candidate) (Finding, error) {
	f := Finding{Source: c.Source}
	if c.skip != "" {
		f.Answer, f.Reason = Refused, c.skip
		return f, nil
	}
	m := shell.NewMarker()
	read := c.Prefix.Wrap(fmt.Sprintf("grep -E %s /proc/%d/%s", text.ShellQuote(probePattern(c.file)), p.PID, c.file))
	a, err := shell.Ask(ctx, l.dev, c.wait, m.Join([]shell.Part{
		{"read", read + " </dev/null 2>&1"},
		{"stat", fmt.Sprintf("cat /proc/%d/stat 2>&1", p.PID)},
	}))
	switch {
	case ctx.Err() != nil:
		return f, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		f.Reason = fmt.Sprintf("no answer in %v", c.wait)
		return f, nil
	case err != nil:
		return f, fmt.Errorf("probe %s of %s: %w", c.Source, p.Name, err)
	}
	parts, whole := m.Split(a.Stdout)
	f.Answer, f.Reason = judge(string(parts["read"]), c.file)
	alive := strings.HasPrefix(string(parts["stat"]), strconv.Itoa(p.PID)+" (")
	if f.Answer != Available && (!whole || !alive) {
		f.Answer, f.Reason = Unclear, "the process ended meanwhile"
	}
	return f, nil
}

// probePattern picks the line that proves a file useful.
func probePattern(file string) string {
	if file == "status" {
		return "^RssAnon:"
	}
	return "^Pss:"
}

func judge(text, file string) (Answer, string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "Pss:") || strings.HasPrefix(line, "RssAnon:") {
			return Available, ""
		}
	}
	switch {
	case strings.TrimSpace(text) != "":
		return Refused, shell.Clip(text)
	case file == "status":
		return Refused, "no RssAnon: a kernel before 4.5"
	}
	return Refused, "no Pss in it"
}
