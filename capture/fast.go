package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/text"
)

// ErrGone means that a process has ended, or that its pid now belongs to
// another process.
var ErrGone = errors.New("process is gone")

// Target is a process and the Level used to read it.
type Target struct {
	Process
	Level Level
}

// Reading is the result of one round of the fast channel for one process.
// Values are in kB and may be unknown.
type Reading struct {
	Target
	PSS, SwapPSS  known.Int
	RSSAnon, Swap known.Int
	Threads       known.Int
	// CPU is the total CPU time of the process.
	CPU known.Duration
	// Err is nil if the reading is a valid sample: it is from the requested
	// process and contains the value that the process's level provides.
	Err error
}

// Round is one round trip of the fast channel.
type Round struct {
	// Up is the device's clock at the beginning of the round trip, as time
	// since boot.
	Up time.Duration
	// Took is the real duration of the round trip, measured on the host.
	Took time.Duration
	// Readings are in the order of the targets.
	Readings []Reading
	// SystemServer is the total CPU time of system_server; unknown if it was
	// not read.
	SystemServer known.Duration
}

// Fast is the fast channel of one device. It keeps its buffers between rounds
// and is not safe for concurrent use.
type Fast struct {
	// MemTotal is the memory of the device in bytes, 0 if unknown; larger
	// readings are rejected.
	MemTotal int64

	dev      Device
	out, err shell.Buffer
	files    map[file][]byte
}

// file is a file in /proc that a round reads.
type file struct {
	pid  int
	name string
}

// NewFast returns the fast channel of a device.
func NewFast(dev Device) *Fast {
	return &Fast{dev: dev, files: map[file][]byte{}}
}

// fastPattern selects the lines of stat, status, smaps_rollup and smaps that a
// round needs. The third branch matches the end of a stat line whose comm
// contains a line break. The fourth branch matches the line of /proc/uptime,
// which is the last file of every grep. Only this line proves that the output
// is complete: a phone whose adbd loses the exit status reports 0 even for
// truncated output.
const fastPattern = `^(Pss|SwapPss|Threads|RssAnon|VmSwap):|^[0-9]+ [(]|[)] [A-Za-z] -?[0-9]+ |^[0-9.]+ [0-9.]+$`

// fastCommand returns the command line of an entire round. One grep reads the
// files of all processes and prefixes each line with the name of its file, so
// an extra process costs no fork and no round trip. A target that is read
// through run-as or su costs one extra fork.
func fastCommand(targets []Target, systemServer int) string {
	var b strings.Builder
	grep := "grep -E " + text.ShellQuote(fastPattern)
	b.WriteString("cat /proc/uptime; cd /proc && ")
	wrapped := wrappedReads(targets, grep)
	if len(wrapped) == 0 {
		b.WriteString("exec ")
	}
	// With /dev/null as a second file, grep prints the file name even when it
	// reads a single file.
	b.WriteString(grep + " /dev/null")
	if systemServer > 0 {
		fmt.Fprintf(&b, " %d/stat", systemServer)
	}
	for _, t := range targets {
		fmt.Fprintf(&b, " %d/stat %d/status", t.PID, t.PID)
		if t.Level.Prefix.IsZero() && t.Level.file() != "" && t.Level.file() != "status" {
			fmt.Fprintf(&b, " %d/%s", t.PID, t.Level.file())
		}
	}
	b.WriteString(" uptime")
	for _, w := range wrapped {
		b.WriteString("; " + w + " </dev/null")
	}
	if len(wrapped) > 0 {
		// A command under another uid may fail without a message, so the end
		// line is printed after it.
		b.WriteString("; exec " + grep + " /dev/null uptime")
	}
	return b.String()
}

// wrappedReads returns one command for each run-as or su prefix that the
// targets need.
func wrappedReads(targets []Target, grep string) []string {
	var order []shell.Prefix
	files := map[shell.Prefix]string{}
	for _, t := range targets {
		w := t.Level.Prefix
		if w.IsZero() {
			continue
		}
		if _, ok := files[w]; !ok {
			order = append(order, w)
		}
		files[w] += fmt.Sprintf(" /proc/%d/%s", t.PID, t.Level.file())
	}
	out := make([]string, 0, len(order))
	for _, w := range order {
		out = append(out, w.Wrap(grep+" /dev/null"+files[w]))
	}
	return out
}

// Read reads all targets in one round. If the round exceeds its deadline
// (wall-clock time), one of the processes may be blocking it, because its
// memory map is locked. After such a timeout, each process is read alone: those
// that do not respond fail with ErrNoAnswer, and the others are still read.
// Read returns an error if the device did not respond; an error that affects a
// single process is in the Reading of that process.
func (f *Fast) Read(ctx context.Context, targets []Target, systemServer int, deadline time.Duration) ([]Round, error) {
	round, err := f.round(ctx, targets, systemServer, deadline)
	if err == nil {
		return []Round{round}, nil
	}
	if len(targets) == 1 && errors.Is(err, ErrNoAnswer) {
		if up, ok := f.answers(ctx); ok {
			round.Up, round.Readings = up, []Reading{{Target: targets[0], Err: err}}
			return []Round{round}, nil
		}
	}
	if len(targets) <= 1 || !errors.Is(err, ErrNoAnswer) {
		return nil, err
	}
	return f.readEach(ctx, targets)
}

// aloneDeadline is the maximum wall-clock time for reading one process alone.
const aloneDeadline = 3 * time.Second

func (f *Fast) readEach(ctx context.Context, targets []Target) ([]Round, error) {
	var out []Round
	for _, t := range targets {
		rounds, err := f.Read(ctx, []Target{t}, 0, aloneDeadline)
		if err != nil {
			return out, err
		}
		out = append(out, rounds...)
	}
	return out, nil
}

// answers reads the device's clock, and reports whether the device responds.
func (f *Fast) answers(ctx context.Context) (up time.Duration, ok bool) {
	a, err := shell.Ask(ctx, f.dev, aloneDeadline, "cat /proc/uptime")
	if err != nil {
		return 0, false
	}
	up, err = procfs.ParseUptime(a.Stdout)
	return up, err == nil
}

func (f *Fast) round(ctx context.Context, targets []Target, systemServer int, deadline time.Duration) (Round, error) {
	within, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	f.out.Reset()
	f.err.Reset()
	began := time.Now()
	_, err := f.dev.Shell(within, fastCommand(targets, systemServer), &f.out, &f.err)
	round := Round{Took: time.Since(began)}
	if err != nil {
		if within.Err() != nil && ctx.Err() == nil {
			return round, fmt.Errorf("read fast channel: no answer in %v: %w", deadline, ErrNoAnswer)
		}
		return round, fmt.Errorf("read fast channel: %w", shell.Failure(f.dev, deadline, err))
	}
	clock, rest, _ := bytes.Cut(f.out.Bytes(), []byte("\n"))
	round.Up, err = procfs.ParseUptime(clock)
	if err != nil {
		return round, fmt.Errorf("read fast channel: %w", err)
	}
	if f.sort(rest) < ends(targets) {
		return round, fmt.Errorf("read fast channel: %w: truncated answer", ErrDevice)
	}
	round.SystemServer = f.cpu(systemServer)
	round.Readings = make([]Reading, len(targets))
	for i, t := range targets {
		round.Readings[i] = f.reading(t)
	}
	return round, nil
}

// ends returns the number of end lines (lines of /proc/uptime) that complete
// output contains: one from the main grep, and one more if any target is read
// through run-as or su.
func ends(targets []Target) int {
	for _, t := range targets {
		if !t.Level.Prefix.IsZero() {
			return 2
		}
	}
	return 1
}

// sort collects the lines of each file, without the prefix that grep adds, and
// returns the number of end lines. It drops a truncated last line.
func (f *Fast) sort(out []byte) (ends int) {
	for k, text := range f.files {
		f.files[k] = text[:0]
	}
	for len(out) > 0 {
		i := bytes.IndexByte(out, '\n')
		if i < 0 {
			break
		}
		line := out[:i+1]
		out = out[i+1:]
		if bytes.HasPrefix(line, []byte("uptime:")) || bytes.HasPrefix(line, []byte("/proc/uptime:")) {
			ends++
			continue
		}
		if k, text, ok := splitName(line); ok {
			f.files[k] = append(f.files[k], text...)
		}
	}
	for k, text := range f.files {
		if len(text) == 0 {
			delete(f.files, k)
		}
	}
	return ends
}

// fileNames are the names of the files that a round may request. These strings
// serve as map keys, so that no new string is allocated.
var fileNames = [...]string{"stat", "status", "smaps_rollup", "smaps"}

// splitName splits "123/stat:TEXT" and "/proc/123/stat:TEXT".
func splitName(line []byte) (file, []byte, bool) {
	line = bytes.TrimPrefix(line, []byte("/proc/"))
	slash := bytes.IndexByte(line, '/')
	if slash <= 0 || slash > 10 {
		return file{}, nil, false
	}
	pid := 0
	for _, c := range line[:slash] {
		if c < '0' || c > '9' {
			return file{}, nil, false
		}
		pid = pid*10 + int(c-'0')
	}
	name, text, ok := bytes.Cut(line[slash+1:], []byte(":"))
	if !ok {
		return file{}, nil, false
	}
	for _, expected := range fileNames {
		if string(name) == expected {
			return file{pid, expected}, text, true
		}
	}
	return file{}, nil, false
}

func (f *Fast) cpu(pid int) known.Duration {
	if pid <= 0 {
		return known.Duration{}
	}
	stat, err := procfs.ParseStat(f.files[file{pid, "stat"}])
	if err != nil {
		return known.Duration{}
	}
	return stat.CPU()
}

func (f *Fast) reading(t Target) Reading {
	r := Reading{Target: t}
	var stat procfs.Stat
	if stat, r.Err = f.identify(t); r.Err != nil {
		return r
	}
	r.CPU = stat.CPU()
	status, err := procfs.ParseStatus(f.files[file{t.PID, "status"}])
	if err == nil {
		memory, swap := procfs.Bounds(f.MemTotal >> 10)
		r.Threads, r.RSSAnon, r.Swap = status.Threads, atMost(status.RssAnon, memory), atMost(status.VmSwap, swap)
	}
	switch t.Level.file() {
	case "":
	case "status":
		if r.Err = f.impossible(t, "RssAnon", status.RssAnon, "VmSwap", status.VmSwap); r.Err == nil &&
			!r.RSSAnon.Known {
			r.Err = f.missing(t, "RssAnon")
		}
	default:
		f.memory(t, &r)
	}
	return r
}

// identify parses the stat file of the target; its error wraps ErrGone if the
// process has ended or its start time differs from that of the target.
func (f *Fast) identify(t Target) (procfs.Stat, error) {
	text := f.files[file{t.PID, "stat"}]
	if len(text) == 0 {
		return procfs.Stat{}, fmt.Errorf("%s, pid %d: %w", t.Name, t.PID, ErrGone)
	}
	stat, err := procfs.ParseStat(text)
	if err != nil {
		return stat, fmt.Errorf("read identity of %s: %w", t.Name, err)
	}
	switch {
	case !stat.StartTicks.Known:
		return stat, fmt.Errorf("read identity of %s: no start time in %q", t.Name, shell.Clip(string(text)))
	case uint64(stat.StartTicks.N) != t.Start:
		return stat, fmt.Errorf("%s: pid %d now belongs to another process: %w", t.Name, t.PID, ErrGone)
	case stat.State == 'Z' || stat.State == 'X':
		return stat, fmt.Errorf("%s, pid %d, has ended: %w", t.Name, t.PID, ErrGone)
	}
	return stat, nil
}

func (f *Fast) memory(t Target, r *Reading) {
	text := f.files[file{t.PID, t.Level.file()}]
	if len(text) == 0 {
		r.Err = f.missing(t, "Pss")
		return
	}
	memory, err := parseMemory(t.Level.file(), text)
	switch {
	case err != nil:
		r.Err = fmt.Errorf("read %s of %s: %w", t.Level.file(), t.Name, err)
	case !memory.Pss.Known:
		r.Err = f.missing(t, "Pss")
	default:
		if r.Err = f.impossible(t, "Pss", memory.Pss, "SwapPss", memory.SwapPss); r.Err == nil {
			r.PSS, r.SwapPSS = memory.Pss, memory.SwapPss
		}
	}
}

// impossible returns an error for a resident or swapped size that exceeds what
// any process of the device can have; otherwise nil.
func (f *Fast) impossible(t Target, name string, value known.Int, swapName string, swap known.Int) error {
	mostValue, mostSwap := procfs.Bounds(f.MemTotal >> 10)
	for _, v := range []struct {
		name string
		kb   known.Int
		most int64
	}{{name, value, mostValue}, {swapName, swap, mostSwap}} {
		if v.kb.Known && !atMost(v.kb, v.most).Known {
			return fmt.Errorf("read %s of %s: %d kB exceeds the %d kB that a process can have on this device", v.name,
				t.Name, v.kb.N, v.most)
		}
	}
	return nil
}

// parseMemory parses the lines that grep selected from a file.
func parseMemory(name string, text []byte) (procfs.Memory, error) {
	if name == "smaps" {
		return procfs.ParseSmaps(bytes.NewReader(text))
	}
	return procfs.ParseRollup(text)
}

// missing returns the error for a value that is missing, with the device's
// error message if there is one.
func (f *Fast) missing(t Target, value string) error {
	needle := []byte("/" + t.Level.file() + ":")
	pid := []byte(strconv.Itoa(t.PID))
	for line := range bytes.Lines(f.err.Bytes()) {
		if bytes.Contains(line, needle) && bytes.Contains(line, pid) {
			return fmt.Errorf("read %s of %s: %s", value, t.Name, shell.Clip(string(line)))
		}
	}
	err := fmt.Errorf("read %s of %s: not in the output", value, t.Name)
	if said := shell.Clip(f.err.String()); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return err
}
