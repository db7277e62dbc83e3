package androidsim

import (
	"time"

	"github.com/leakgate/leakgate/internal/adbd"
)

// Effect is how a fault affects readings of the phone while it is active.
type Effect int

const (
	// Harms means that some readings fail, are incomplete or are late, all of
	// which can be detected; the others are valid. Processes may die.
	Harms Effect = iota
	// Distorts means the same as Harms, but a reading may also contain a wrong
	// value that cannot be detected.
	Distorts
	// Silences means that no sample can be expected.
	Silences
)

// Fault is a possible fault, for tests that choose at random. Start may be
// called at any time, even during other faults or again after the fault has
// ended; it does not block. end may be called repeatedly. Soon after end is
// called, the phone is back in its original state, except that app processes
// that died during the fault run again with a new pid. A fault that happens
// once, such as a dropped connection, may be over before end is called. An adb
// server recovers in about a second.
type Fault struct {
	// Name is unique and human-readable.
	Name   string
	Effect Effect
	Start  func() (end func())
}

// Faults returns the faults of a phone, of the adbd.Daemon or adbd.Server in
// front of it, and of its line. If line is nil, there are no line faults.
// Process faults affect the first process of the first app, if there is one.
//
// OldShell is not included, because no phone loses features of its shell during
// a run.
func Faults(p *Phone, front interface{ Drop() }, l *adbd.Line) []Fault {
	out := append(p.phoneFaults(), Fault{"connection dropped", Harms, func() func() { front.Drop(); return func() {} }})
	if l != nil {
		out = append(out, lineFaults(l, p.opt.Seed)...)
	}
	for _, app := range p.opt.Apps {
		if len(app.Processes) > 0 {
			return append(out, p.processFaults(app.Processes[0].Name)...)
		}
	}
	return out
}

const (
	// forEver is longer than any test.
	forEver = 365 * 24 * time.Hour
	// rollups matches the files that leakgate prefers to read samples from.
	rollups = "/proc/*/smaps_rollup"
)

func (p *Phone) phoneFaults() []Fault {
	out := []Fault{
		{"offline", Silences, func() func() { return p.SetAdbState(adbd.StateOffline) }},
		{"unauthorized", Silences, func() func() { return p.SetAdbState(adbd.StateUnauthorized) }},
		{"reboot", Silences, func() func() { return p.reviving(func() func() { return p.RebootFor(forEver) }) }},
		{"output corrupt, status lost", Harms, func() func() { return p.TruncateOutput(100, false) }},
		{"output corrupt, status 0", Distorts, func() func() { return p.TruncateOutput(100, true) }},
		{"output garbled", Distorts, func() func() { return p.GarbleOutput(61, p.opt.Seed) }},
		{"endless output", Silences, func() func() { return p.FloodOutput(-1) }},
		{"output with a line of 100 MB", Silences, func() func() { return p.FloodOutput(100 << 20) }},
		{"no smaps_rollup", Harms, func() func() { return p.BreakFile(rollups, FileMissing) }},
		{"smaps_rollup denied", Harms, func() func() { return p.BreakFile(rollups, FileDenied) }},
		{"smaps_rollup empty", Harms, func() func() { return p.BreakFile(rollups, FileEmpty) }},
		{"uptime empty", Silences, func() func() { return p.BreakFile("/proc/uptime", FileEmpty) }},
		{"dumpsys times out", Harms, func() func() { return p.DelayDumpsys(forEver) }},
		{"dumpsys hangs", Harms, p.HangDumpsys},
		{
			"system_server crashes", Harms,
			func() func() { return p.reviving(func() func() { return p.CrashSystem(forEver) }) },
		},
		{"clock steps", Harms, func() func() { return p.StepClock(-25 * time.Hour) }},
		{"clock far off", Harms, func() func() { return p.StepClock(-50 * forEver) }},
		{"disk full", Harms, func() func() { return p.FillDisk(0) }},
	}
	if p.opt.Root {
		out = append(out, Fault{"root lost", Harms, p.LoseRoot})
	}
	return out
}

func lineFaults(l *adbd.Line, seed uint64) []Fault {
	return []Fault{
		{"line interrupted", Harms, func() func() { return l.InterruptAfter(1000) }},
		{"line interrupted when a stream opens", Harms, func() func() { return l.InterruptAtOpen(2) }},
		{"line interrupted repeatedly", Harms, func() func() { return l.InterruptEvery(20_000) }},
		{"line unplugged", Silences, l.Unplug},
		{"line slow", Harms, func() func() { return l.Delay(50 * time.Millisecond) }},
		{"line hangs", Silences, func() func() { return l.Delay(forEver) }},
		{"line garbled", Distorts, func() func() { return l.Garble(2003, seed) }},
		{"line with garbage", Harms, func() func() { return l.Insert(noise(seed, 100)) }},
	}
}

// noise returns random bytes.
func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(mix(seed, uint64(i)))
	}
	return b
}

func (p *Phone) processFaults(name string) []Fault {
	return []Fault{
		{"process dies while it is sampled", Harms, func() func() {
			return p.reviving(func() func() { return p.DieInSample(name, 1, FileGone) })
		}},
		{"process ends while it is sampled", Harms, func() func() {
			return p.reviving(func() func() { return p.DieInSample(name, 2, FileEmpty) })
		}},
		{"pid reused", Harms, func() func() {
			return p.reviving(func() func() {
				p.ReusePID(name, stranger)
				return func() { p.Kill(stranger) }
			})
		}},
	}
}

// reviving wraps a fault that kills processes: when it ends, the processes of
// apps that ran before the fault are started again.
func (p *Phone) reviving(start func() func()) (end func()) {
	var ran []*process
	p.mu.Lock()
	p.advance(p.clock.up())
	for _, proc := range p.procs {
		if proc.app != nil && proc.fixed == 0 && proc.alive() {
			ran = append(ran, proc)
		}
	}
	p.mu.Unlock()
	over := start()
	return func() {
		over()
		p.mu.Lock()
		defer p.mu.Unlock()
		up := p.clock.up()
		p.advance(up)
		for _, proc := range ran {
			if !proc.alive() {
				p.spawn(proc, up)
			}
		}
	}
}
