package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// Part holds the data of one device, either for a whole run or for one window
// of the run.
type Part struct {
	of     *Ledger
	header record.HeaderDevice
	bounds bounds
	byKey  map[capture.Key]*Account
	apps   *apps
	// swaps means that memory of some process has been swapped out.
	swaps    bool
	accounts []*Account
	// begun is the reading of the device's clock at t_s 0, up is its latest
	// reading, and last is the t_s of the latest line.
	begun, up time.Duration
	last      float64
	// since is t_s at the beginning of the part: 0, or the beginning of a
	// window.
	since   float64
	windows windows
	// checks holds the first maxChecks checks; skippedChecks counts the others.
	checks        []record.Check
	skippedChecks int
	usage         record.Usage
	own           *record.Overhead // overhead of all devices together
	// lost is the reason why the device's part ended early.
	lost string
	// extended is the value of t_s at which the run would have ended without a
	// suspected leak; extendedBecause describes the first suspected leak.
	extended        *float64
	extendedBecause string
	// dropped is the value of t_s at which the device dropped the workload's
	// command.
	dropped *float64
	load    workloads
	// builds holds the build of each app.
	builds []record.AppBuild
	// similar lists names of running processes that resemble the watched ones.
	similar []string
	// unwatched lists processes of the app that no pattern matches.
	unwatched unwatched
	// marks is the number of marks on the device; markTexts contains their
	// distinct names, without numbers.
	marks     int
	markTexts map[string]bool
	// skippedMarks and skippedEvents count the marks, and the other events of
	// the workload, that were skipped because they came too fast.
	skippedMarks, skippedEvents int
	// missing lists heap dumps that were not taken because no process was
	// running at the mark.
	missing []record.MissingEvidence
	// missingLines means that lines are missing directly before the next line
	// that is read. damaged means that some lines were missing earlier.
	missingLines, damaged bool
}

func newPart(of *Ledger, header record.HeaderDevice) *Part {
	up := clockOf(header.StartedUp)
	if header.TimeScale <= 0 {
		header.TimeScale = 1
	}
	return &Part{
		of: of, header: header, bounds: boundsOf(header), byKey: map[capture.Key]*Account{}, apps: of.newApps(),
		begun: up, up: up,
	}
}

// clockOf converts the seconds in a line to the device's clock. The device's
// clock counts hundredths of a second (/proc/uptime), so rounding to whole
// milliseconds restores exactly the value that was read.
func clockOf(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds*1000)) * time.Millisecond
}

// Up returns the reading of the device's clock at the latest line.
func (p *Part) Up() time.Duration { return p.up }

// Advance records a reading of the device's clock.
func (p *Part) Advance(up time.Duration) { p.up = max(p.up, up) }

// Seconds converts a time of the device's clock to t_s, seconds since the run
// began.
func (p *Part) Seconds(up time.Duration) float64 { return record.Round((up - p.begun).Seconds(), 3) }

// At returns what the device's clock reads at time t after the beginning of the
// run.
func (p *Part) At(t time.Duration) time.Duration { return p.begun + t }

// Open returns the account of a process; it creates the account if necessary.
func (p *Part) Open(process capture.Process) *Account {
	a := p.byKey[process.Key()]
	if a == nil {
		// The line that states how the process is read may be one of the
		// missing lines.
		a = &Account{Process: process, Detector: detector.New(p.of.policy), part: p, unsure: p.damaged}
		a.Detector.SetMustSee(p.of.mustSee())
		p.byKey[process.Key()] = a
		p.accounts = append(p.accounts, a)
		if p.of.Opened != nil {
			p.of.Opened(a)
		}
	}
	return a
}

// Entry is one transition of the state machine of one process. If both states
// are the same, the entry is a jump in memory use.
type Entry struct {
	Of *Account
	record.Transition
}

// Jump reports whether the entry is a jump rather than a transition.
func (e Entry) Jump() bool { return e.From == e.To }

// AddSample adds one sample and returns the resulting entries.
func (p *Part) AddSample(s record.Sample) []Entry {
	up := clockOf(s.Up)
	entries := p.resync(s.T, up)
	a := p.Open(capture.Process{Name: s.Process, User: s.User, PID: s.PID, Start: s.Start})
	p.up, p.last = max(p.up, up), max(p.last, s.T)
	p.eachWindow(func(inner *Part) { inner.AddSample(s) })
	return append(entries, p.entries(a, a.addSample(s, up))...)
}

// AddEvent adds one event and returns the resulting entries. Transitions and
// jumps are events too, but they are ignored because they are derived from the
// other lines.
func (p *Part) AddEvent(e record.Event) []Entry {
	up := clockOf(e.Up)
	var entries []Entry
	if e.Event != "reboot" { // the line about a reboot contains the new clock itself
		entries = p.resync(e.T, up)
	}
	p.last = max(p.last, e.T)
	if e.Process == "" {
		return append(entries, p.addDeviceEvent(e, up)...)
	}
	process := processOf(e)
	if p.byKey[process.Key()] == nil && e.Event != "found" {
		return entries // an event from another version, with an unknown meaning
	}
	a := p.Open(process)
	p.forward(e, process.Key())
	return append(entries, p.entries(a, a.addEvent(e, up))...)
}

// processOf returns the process that an event concerns.
func processOf(e record.Event) capture.Process {
	p := capture.Process{Name: e.Process, PID: e.PID, Start: e.Start}
	if e.User != nil {
		p.User = *e.User
	}
	return p
}

func (p *Part) addDeviceEvent(e record.Event, up time.Duration) []Entry {
	switch e.Event {
	case "window":
		p.openWindow(e)
		return nil
	case "window_end":
		p.closeWindow(e)
		return nil
	}
	p.eachWindow(func(inner *Part) { inner.AddEvent(e) })
	switch e.Event {
	case "usage":
		if e.Usage != nil {
			p.usage = *e.Usage
		}
		p.own = e.Overhead
	case "lost":
		p.lost = e.Text
	case "extended":
		if p.extended == nil {
			p.extended, p.extendedBecause = new(e.T), text.Head(e.Text, maxText)
		}
	case "dropped":
		p.dropped = new(e.T)
	case "workload", "workload_begin", "workload_end":
		p.addWorkload(e, up)
	case "build":
		p.addBuild(e.Build)
	case "check":
		p.addCheck(e.Check)
	case "waiting":
		p.similar = nil
		for _, name := range e.Similar[:min(len(e.Similar), maxSimilar)] {
			p.similar = append(p.similar, text.Head(name, maxText))
		}
	case "unwatched":
		p.unwatched.add(e.Unwatched)
	case "missing":
		if len(p.missing) < maxMissing {
			p.missing = append(p.missing,
				record.MissingEvidence{
					Device: p.header.Device, T: e.T, Mark: text.Head(e.Mark, maxText), Text: text.Head(e.Text, maxText),
				})
		}
	case "marks_skipped":
		p.skippedMarks = addCount(p.skippedMarks, e.Count)
	case "events_skipped":
		p.skippedEvents = addCount(p.skippedEvents, e.Count)
	case "reboot":
		return p.reboot(e.T, up)
	case "mark":
		p.addMark(e.Text)
		for _, a := range p.accounts {
			a.addMark(e, up)
		}
		for _, x := range p.apps.opened {
			x.addMark(e, up)
		}
	}
	return nil
}

// reboot records the device's new clock, read at the given time of the run.
// Values from before the reboot are not compared with later ones.
func (p *Part) reboot(t float64, up time.Duration) []Entry {
	p.missingLines = false
	p.begun, p.up = up-clockOf(t), up
	var out []Entry
	for _, a := range p.accounts {
		a.LastUp, a.Diagnosed = 0, 0
		a.presence.depart(t)
		a.closeSeries()
		a.closeCounts()
		a.limits.watch.Restart(up)
		out = append(out, p.entries(a, a.Detector.Restart(up))...)
	}
	p.load.up = up // a running workload uses the new clock
	p.apps.reboot(up)
	return out
}

// entries records the transitions of an account's state machine on the time
// axis of the run, and returns them.
func (p *Part) entries(a *Account, machine []detector.Transition) []Entry {
	var out []Entry
	for _, t := range machine {
		e := Entry{a, record.Transition{
			T: p.Seconds(t.At), From: t.From, To: t.To, Kind: t.Kind, Reason: t.Because,
		}}
		if e.Jump() {
			a.addJump(p.begun)
		} else {
			a.addTransition(e.Transition)
		}
		out = append(out, e)
	}
	return out
}

// maxMarkTexts is the maximum number of distinct names of marks that a digest
// contains.
const maxMarkTexts = 1000

// addMark counts a mark. The names of the marks of a loop differ only in their
// numbers.
func (p *Part) addMark(words string) {
	p.marks++
	name := numbers.ReplaceAllString(text.Head(words, maxText), "#")
	if p.markTexts == nil {
		p.markTexts = map[string]bool{}
	}
	if len(p.markTexts) < maxMarkTexts {
		p.markTexts[name] = true
	}
}

var numbers = regexp.MustCompile(`[0-9]+`)

// maxSkipped is the maximum value of a count of skipped lines.
const maxSkipped = 1 << 40

// addCount adds more to n, a count of skipped lines. It ignores a number that
// is implausible, because the line may be damaged.
func addCount(n int, more int64) int {
	if more < 0 || more > maxSkipped-int64(n) {
		return n
	}
	return n + int(more)
}

// skipWarnings returns warnings about what is missing from the record because
// the workload was too fast.
func (p *Part) skipWarnings() []string {
	var out []string
	if n := p.skippedMarks; n > 0 {
		out = append(out,
			fmt.Sprintf("device %s: %s skipped because they came too fast, and have no counts or dumps; set "+
				"one mark in each loop", p.header.Device, text.Count(n, "mark was", "marks were")))
	}
	if n := p.skippedEvents; n > 0 {
		out = append(out,
			fmt.Sprintf("device %s: %s skipped because they came too fast; they may include crashes and ANRs",
				p.header.Device, text.Count(n, "event of the workload was", "events of the workload were")))
	}
	return out
}

// marksDigest returns the digest of the marks, or "" if there are none.
func (p *Part) marksDigest() string {
	if p.marks == 0 {
		return ""
	}
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(p.markTexts)) {
		_, _ = fmt.Fprintf(sum, "%q\n", name)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// maxBuilds is the maximum number of apps of one device whose builds are
// recorded.
const maxBuilds = 100

// addBuild records the build of an app; the latest build of each app is kept.
func (p *Part) addBuild(b *record.AppBuild) {
	if b == nil {
		return
	}
	i := slices.IndexFunc(p.builds, func(have record.AppBuild) bool { return have.Package == b.Package })
	switch {
	case i >= 0:
		p.builds[i] = *b
	case len(p.builds) < maxBuilds:
		p.builds = append(p.builds, *b)
	}
}

// maxChecks is the maximum number of checks of one device in run.json.
const maxChecks = 20_000

func (p *Part) addCheck(c *record.Check) {
	switch {
	case c == nil:
	case len(p.checks) < maxChecks:
		p.checks = append(p.checks, *c)
	default:
		p.skippedChecks++
	}
}

// checkWarnings returns warnings about checks that are not in the record.
func (p *Part) checkWarnings() []string {
	if p.skippedChecks == 0 {
		return nil
	}
	return []string{
		fmt.Sprintf("device %s: %s only in %s, because the record is limited to %d", p.header.Device,
			text.Plural(p.skippedChecks, "check is", "checks are"), record.SamplesName, maxChecks),
	}
}

// maxSimilar is the maximum number of similar names in a warning.
const maxSimilar = 5

// device returns the record of the device for run.json.
func (p *Part) device() record.Device {
	usage := p.usage
	usage.Apps = nil
	return record.Device{
		WorkloadEnded: p.workloadEnded(),
		Device:        p.header.Device, Model: p.header.Model, API: p.header.API, TimeScale: p.header.TimeScale,
		StartedUp: p.header.StartedUp, Duration: p.last, Error: p.lost, Usage: usage,
		ABI: p.header.ABI, Fingerprint: p.header.Fingerprint, Emulator: p.header.Emulator,
		HeapLimit: p.header.HeapLimit, Builds: p.builds,
		Marks: p.marks + p.skippedMarks, MarksSkipped: p.skippedMarks, MarksDigest: p.marksDigest(),
	}
}
