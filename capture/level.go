package capture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/text"
)

// Source is the file or service that a sample was read from. The sources
// SmapsRollup to Smaps yield Pss and SwapPss. Status yields RssAnon and VmSwap,
// which must not be mixed with Pss and SwapPss in one series. The source
// Dumpsys means that the fast channel cannot read the process.
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

// Answer is the result of a probe: available, refused permanently, or unclear
// (the process died, or the device did not respond in time).
type Answer uint8

// The three possible results of a probe.
const (
	Unclear Answer = iota
	Refused
	Available
)

// String returns available, refused or unclear.
func (a Answer) String() string {
	return [...]string{"unclear", "refused", "available"}[a]
}

// ProbeResult is the answer for one source, with the device's own error
// message.
type ProbeResult struct {
	Source Source
	Answer Answer
	Reason string
}

// Level is how the fast channel reads one process.
type Level struct {
	Source Source
	// Prefix is the command under which grep runs.
	Prefix shell.Prefix
}

// file returns the file of /proc/PID that is read, or "".
func (l Level) file() string {
	switch l.Source {
	case SmapsRollup, SU, RunAs:
		return "smaps_rollup"
	case Smaps:
		return "smaps"
	case Status:
		return "status"
	}
	return ""
}

// Probe is the level of a process, with the findings that determined it.
type Probe struct {
	Level    Level
	Findings []ProbeResult
}

// conclusive reports whether the probe may be kept: every source better than
// the chosen one must have been refused permanently.
func (p Probe) conclusive() bool {
	for _, f := range p.Findings {
		if f.Answer == Unclear {
			return false
		}
	}
	return true
}

// Reasons explains why no better source is used.
func (p Probe) Reasons() []string {
	var out []string
	for _, f := range p.Findings {
		if f.Answer != Available {
			out = append(out, fmt.Sprintf("%s: %s (%s)", f.Source, f.Reason, f.Answer))
		}
	}
	return out
}

// Levels probes processes of one device and keeps conclusive results. The level
// depends on the process, not on the Android version: on a user build the
// kernel does not let the shell read smaps of any app, but lets run-as read
// smaps of a debuggable app. Whether su works is a property of the device.
// Levels is not safe for concurrent use.
type Levels struct {
	dev   Device
	facts Facts
	known map[levelKey]Probe
	// unsure holds inconclusive probes, which are repeated after retryAfter
	// lookups.
	unsure map[Process]provisional
	su     superuser
}

// superuser is the result of trying su on the device.
type superuser struct {
	asked bool
	// prefix is the command prefix that calls su; if it is zero, refused
	// explains why.
	prefix  shell.Prefix
	refused string
}

// provisional is a probe that is used for a limited number of further lookups;
// left is the number of lookups that remain.
type provisional struct {
	probe Probe
	left  int
}

const (
	// retryAfter is the number of lookups after which an inconclusive probe is
	// repeated. An inconclusive probe is thus repeated about every ten minutes.
	retryAfter = 20
	// maxUnsure is the maximum number of inconclusive probes that are kept:
	// there may be many short-lived processes.
	maxUnsure = 1000
	// suTimeout is the maximum wall-clock time of a call of su, which may wait
	// for the user to confirm it.
	suTimeout = 10 * time.Second
)

// levelKey identifies the processes of one device that share one conclusive
// probe.
type levelKey struct {
	pkg      string
	user     int
	isolated bool
}

// NewLevels returns an empty Levels.
func NewLevels(dev Device, facts Facts) *Levels {
	return &Levels{dev: dev, facts: facts, known: map[levelKey]Probe{}, unsure: map[Process]provisional{}}
}

// Forget discards the probes of a process. The caller uses it when a reading at
// the process's level failed.
func (l *Levels) Forget(p Process) {
	delete(l.known, keyOf(p))
	delete(l.unsure, p)
}

func keyOf(p Process) levelKey {
	return levelKey{pkg: p.Package(), user: p.User, isolated: p.Isolated()}
}

// Probe finds the best source for a process, by trying the sources. It returns
// an error if the device did not respond. If the process dies during the probe,
// Probe returns the source Dumpsys with unclear findings; probe the process
// again.
func (l *Levels) Probe(ctx context.Context, p Process) (Probe, error) {
	probes, err := l.ProbeAll(ctx, []Process{p})
	if err != nil {
		return Probe{}, err
	}
	return probes[0], nil
}

// ProbeAll is like Probe, but probes several processes in few round trips.
func (l *Levels) ProbeAll(ctx context.Context, ps []Process) ([]Probe, error) {
	out := make([]Probe, len(ps))
	rest := make([]int, len(ps))
	for i := range ps {
		rest[i] = i
	}
	for len(rest) > 0 {
		asked, later := l.recall(ps, rest, out)
		if err := l.probe(ctx, ps, asked, out); err != nil {
			return nil, err
		}
		for _, i := range asked {
			l.keep(ps[i], out[i])
		}
		rest = later
	}
	return out, nil
}

// recall stores the known probes in out and splits the remaining processes.
// asked contains one process of each package, because the result usually
// applies to the whole package; later contains the others.
func (l *Levels) recall(ps []Process, rest []int, out []Probe) (asked, later []int) {
	first := map[levelKey]bool{}
	for _, i := range rest {
		p, key := ps[i], keyOf(ps[i])
		if probe, ok := l.known[key]; ok {
			out[i] = probe
			continue
		}
		if u, ok := l.unsure[p]; ok && u.left > 0 {
			u.left--
			l.unsure[p] = u
			out[i] = u.probe
			continue
		}
		if first[key] {
			later = append(later, i)
			continue
		}
		first[key] = true
		asked = append(asked, i)
	}
	return asked, later
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
	l.unsure[p] = provisional{probe, retryAfter}
}

// candidate is one source to try.
type candidate struct {
	Level
	// skip is the reason why this source cannot work for the process; it is
	// empty if the source is to be tried.
	skip string
}

// ways is the number of candidate sources for each process.
const ways = 7

func (l *Levels) candidates(p Process) [ways]candidate {
	noRunAs, noSU := "", l.su.refused
	if p.Isolated() {
		noRunAs = "an isolated process has a uid of its own"
	}
	if !p.Installed() {
		noRunAs = "not a process of an installed app"
	}
	if l.facts.UID == 0 {
		noSU, noRunAs = "the shell is already root", "the shell is already root"
	}
	runAs, su := shell.RunAs(p.Package(), p.User), l.su.prefix
	return [ways]candidate{
		{Level{SmapsRollup, shell.Prefix{}}, ""},
		{Level{SU, su}, noSU},
		{Level{RunAs, runAs}, noRunAs},
		{Level{Smaps, shell.Prefix{}}, ""},
		{Level{Smaps, su}, noSU},
		{Level{Smaps, runAs}, noRunAs},
		{Level{Status, shell.Prefix{}}, ""},
	}
}

// probe tries the sources one after the other, each on all processes for which
// no better source was available.
func (l *Levels) probe(ctx context.Context, ps []Process, asked []int, out []Probe) error {
	asked = slices.Clone(asked)
	for _, i := range asked {
		out[i] = Probe{Level: Level{Source: Dumpsys}}
	}
	for way := 0; way < ways && len(asked) > 0; way++ {
		if way == 1 && l.facts.UID != 0 {
			if err := l.trySU(ctx); err != nil {
				return err
			}
		}
		var trials []trial
		for _, i := range asked {
			trials = append(trials, trial{i, ps[i], l.candidates(ps[i])[way]})
		}
		findings, err := l.tryAll(ctx, trials)
		if err != nil {
			return err
		}
		asked = asked[:0]
		for k, f := range findings {
			t := trials[k]
			if f.Answer == Available {
				out[t.index].Level = t.Level
				continue
			}
			out[t.index].Findings = append(out[t.index].Findings, f)
			asked = append(asked, t.index)
		}
	}
	return nil
}

// trySU tests, once per device, whether su works, using both ways to call it.
// It does not repeat the test, because each call of su may show the user a
// prompt on top of the app that is being tested.
func (l *Levels) trySU(ctx context.Context) error {
	if l.su.asked {
		return nil
	}
	m := shell.NewMarker()
	var parts []shell.Part
	for i, su := range shell.SU() {
		parts = append(parts, shell.Part{strconv.Itoa(i), su.Wrap("id") + " </dev/null 2>&1"})
	}
	a, err := shell.Ask(ctx, l.dev, suTimeout, m.Join(parts))
	silent := errors.Is(err, context.DeadlineExceeded)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !silent:
		return fmt.Errorf("run su: %w", err)
	}
	l.su.asked = true
	texts, _ := m.Split(a.Stdout)
	for i, su := range shell.SU() {
		answer := texts[strconv.Itoa(i)]
		if dumpsys.ParseUID(string(answer)) == 0 {
			l.su.prefix, l.su.refused = su, ""
			return nil
		}
		if l.su.refused == "" {
			l.su.refused = shell.Clip(string(answer))
		}
	}
	if silent {
		l.su.refused = fmt.Sprintf("no answer in %v; not tried again", suTimeout)
	} else if l.su.refused == "" {
		l.su.refused = "its shell is not root"
	}
	return nil
}

// trial is one attempt to read a process from one source; index is the position
// of the process in the caller's list.
type trial struct {
	index int
	Process
	candidate
}

// trialsPerRequest returns the maximum number of processes that one command
// reads. Reading one smaps may take a second.
func trialsPerRequest(file string) int {
	if file == "smaps" {
		return 5
	}
	return 50
}

// deadline returns the maximum wall-clock time of a round trip that reads one
// file of each process.
func deadline(file string) time.Duration {
	if file == "smaps" {
		return 30 * time.Second
	}
	return 10 * time.Second
}

// tryAll reads each process once, all in the same way, and returns a finding
// for each.
func (l *Levels) tryAll(ctx context.Context, trials []trial) ([]ProbeResult, error) {
	out := make([]ProbeResult, len(trials))
	var open []int
	for i, t := range trials {
		if t.skip != "" {
			out[i] = ProbeResult{t.Source, Refused, t.skip}
			continue
		}
		open = append(open, i)
	}
	if len(open) == 0 {
		return out, nil
	}
	for part := range slices.Chunk(open, trialsPerRequest(trials[open[0]].file())) {
		batch := make([]trial, len(part))
		for k, i := range part {
			batch[k] = trials[i]
		}
		findings, err := l.try(ctx, batch)
		if err != nil {
			return nil, err
		}
		for k, i := range part {
			out[i] = findings[k]
		}
	}
	return out, nil
}

// try reads each process of a batch once. It returns an error only if the
// connection is dead or the caller's context is done. If the device does not
// respond in time, one process may be blocking the others, so each process is
// then read alone.
func (l *Levels) try(ctx context.Context, batch []trial) ([]ProbeResult, error) {
	m := shell.NewMarker()
	var parts []shell.Part
	for _, t := range batch {
		read := t.Prefix.Wrap(fmt.Sprintf("grep -E %s /proc/%d/%s", text.ShellQuote(probePattern(t.file())), t.PID,
			t.file()))
		parts = append(parts,
			shell.Part{fmt.Sprintf("read%d", t.PID), read + " </dev/null 2>&1"},
			shell.Part{fmt.Sprintf("stat%d", t.PID), fmt.Sprintf("cat /proc/%d/stat 2>&1", t.PID)})
	}
	wait := deadline(batch[0].file())
	a, err := shell.Ask(ctx, l.dev, wait, m.Join(parts))
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded) && len(batch) > 1:
		return l.tryEach(ctx, batch)
	case errors.Is(err, context.DeadlineExceeded):
		return []ProbeResult{{Source: batch[0].Source, Reason: fmt.Sprintf("no answer in %v", wait)}}, nil
	case err != nil:
		return nil, fmt.Errorf("probe %s of %s: %w", batch[0].Source, batch[0].Name, err)
	}
	texts, whole := m.Split(a.Stdout)
	out := make([]ProbeResult, len(batch))
	for i, t := range batch {
		f := ProbeResult{Source: t.Source}
		f.Answer, f.Reason = judge(string(texts[fmt.Sprintf("read%d", t.PID)]), t.file())
		alive := strings.HasPrefix(string(texts[fmt.Sprintf("stat%d", t.PID)]), strconv.Itoa(t.PID)+" (")
		if f.Answer != Available && (!whole || !alive) {
			f.Answer, f.Reason = Unclear, "the process ended in the meantime"
		}
		out[i] = f
	}
	return out, nil
}

func (l *Levels) tryEach(ctx context.Context, batch []trial) ([]ProbeResult, error) {
	var out []ProbeResult
	for _, t := range batch {
		f, err := l.try(ctx, []trial{t})
		if err != nil {
			return nil, err
		}
		out = append(out, f...)
	}
	return out, nil
}

// probePattern returns the pattern of the line that shows that a file is
// usable.
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
	return Refused, "no Pss in the file"
}
