package diagnose

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/text"
)

// Ending is how a step of a diagnosis ended.
type Ending string

// The endings of a step.
const (
	// Complete: the whole artifact was taken, by a method that loses no
	// information.
	Complete Ending = "complete"
	// Fallback: the artifact comes from a lesser method; Note and Reasons
	// describe what is lost and why.
	Fallback Ending = "fallback"
	// Skipped: this device allows none of the methods; Reasons explains why.
	Skipped Ending = "skipped"
	// Failed: none of the allowed methods produced a complete artifact.
	Failed Ending = "failed"
)

// StepOutcome is the result of one step.
type StepOutcome struct {
	Step   string
	Ending Ending
	// File is the artifact's name in the folder, or empty; Bytes is its size.
	File  string
	Bytes int64
	// Command is the command line that produced the artifact.
	Command string
	// Note describes what the method loses, or what was collected in place of
	// the artifact.
	Note string
	// Reasons explains why better methods, or all methods, were not used.
	Reasons []string
	// Left is the path of a file that may still be on the device, or empty;
	// Sweep tries to remove it.
	Left string
	// Took is the wall-clock duration of all methods of the step.
	Took time.Duration
}

// Request specifies the diagnosis of one process.
type Request struct {
	Process capture.Process
	Recipe  Recipe
	// Level is how the fast channel reads the process. It shows which
	// permissions are known to work.
	Level capture.Level
	// Findings are the findings of the probe that determined Level. If they
	// contain a refusal by su, su is not tried again.
	Findings []capture.ProbeResult
	// Dir is the existing folder on the host for the artifacts.
	Dir string
	// App lists other lives of processes of the app, both running and ended.
	App []KnownProcess
	// Logcat selects which part of the device's log is kept; empty means
	// LogcatApp.
	Logcat KeptLog
	// Run is part of the file names on the device. It consists of letters and
	// digits and is different for each run.
	Run string
	// HostFree returns how many bytes may still be written to Dir; nil if
	// unknown.
	HostFree func() (int64, error)
	// Expect is the approximate size of a heap dump in bytes; 0 if unknown.
	Expect int64
	// Paused, if not nil, is called when a heap dump is about to stop the
	// process, and when the process continues. It must not block.
	Paused func(bool)
}

// KnownProcess is one life of a process. Until is the time since boot, on the
// device's clock, at which the process was found to be gone; 0 while it runs.
type KnownProcess struct {
	capture.Process
	Until time.Duration
}

// KeptLog selects which part of the device's log is kept.
type KeptLog string

// The parts of the log that can be kept: the app's lines and the system's lines
// about it; all lines, including those of every other app; or nothing.
const (
	LogcatApp  KeptLog = "app"
	LogcatAll  KeptLog = "all"
	LogcatNone KeptLog = "none"
)

// Diagnosis is what was collected from one process.
type Diagnosis struct {
	Process capture.Process
	Recipe  string
	// Up and Ended are the times since boot, on the device's clock, at which
	// the diagnosis began and ended; 0 if unknown.
	Up, Ended time.Duration
	// Took is the wall-clock duration of the diagnosis.
	Took time.Duration
	// Steps are the outcomes of the recipe's steps.
	Steps []StepOutcome
}

// diagnosing is one diagnosis in progress.
type diagnosing struct {
	dev    capture.Device
	facts  capture.Facts
	req    Request
	rights rights
	// complete lists the names of the steps that lost no information.
	complete []string
	// up is the device's clock (time since boot) at the latest check; wall is
	// its wall clock at the same moment, zero if unknown.
	up   time.Duration
	wall time.Time
	// gone is an error if the process has ended; lost is an error if the device
	// does not respond or the caller's context is done.
	gone, lost error
}

// Diagnose collects the artifacts of the recipe. An artifact is either
// completely in the folder or not at all. An artifact always belongs to the
// requested process: the pid and the start time are compared before and after
// the artifact is collected. Once the process has ended, only artifacts that
// outlive it are collected.
//
// An error means that the device does not respond or that ctx is done; the
// artifacts collected by then are returned too.
func Diagnose(ctx context.Context, dev capture.Device, facts capture.Facts, r Request) (Diagnosis, error) {
	began := time.Now()
	d := &diagnosing{dev: dev, facts: facts, req: r, rights: newRights(facts, r)}
	out := Diagnosis{Process: r.Process, Recipe: r.Recipe.Name}
	d.check(ctx, "the process ended before the diagnosis")
	out.Up = d.up
	for _, s := range r.Recipe.Steps {
		out.Steps = append(out.Steps, d.take(ctx, s))
	}
	out.Ended, out.Took = d.up, time.Since(began)
	if d.lost != nil {
		return out, fmt.Errorf("diagnose %s: %w", r.Process.Name, d.lost)
	}
	return out, nil
}

// checkTimeout is the maximum wall-clock time for identifying the process with
// a pid.
const checkTimeout = 5 * time.Second

// check compares the process that has the pid with the requested process, and
// records the result. words describes what was in progress; the recorded error
// includes it if the requested process has ended. If the device does not
// respond, check tries once more.
func (d *diagnosing) check(ctx context.Context, words string) {
	for range 2 {
		err := d.identify(ctx)
		switch {
		case err == nil:
			d.lost = nil
			return
		case ctx.Err() != nil:
			d.lost = ctx.Err()
			return
		case errors.Is(err, capture.ErrGone):
			d.lost = nil
			if d.gone == nil {
				d.gone = fmt.Errorf("%s: %w", words, err)
			}
			return
		}
		d.lost = err
	}
}

// identify checks once whether the pid belongs to the requested process, and
// reads the device's clocks.
func (d *diagnosing) identify(ctx context.Context) error {
	p, m := d.req.Process, shell.NewMarker()
	a, err := shell.Ask(ctx, d.dev, checkTimeout,
		m.Join([]shell.Part{
			{"up", "cat /proc/uptime"}, {"date", "date '+%Y-%m-%d %H:%M:%S'"}, {"stat", statCommand(p)},
		}))
	if err != nil {
		return fmt.Errorf("identify %s: %w", p.Name, err)
	}
	parts, whole := m.Split(a.Stdout)
	if !whole {
		return fmt.Errorf("identify %s: %w: truncated answer", p.Name, capture.ErrDevice)
	}
	if up, err := procfs.ParseUptime(parts["up"]); err == nil {
		d.up = up
		d.wall, _ = time.Parse(time.DateTime, strings.TrimSpace(string(parts["date"]))) // zero if unknown
	}
	return identity(p, parts["stat"])
}

func statCommand(p capture.Process) string {
	return fmt.Sprintf("cat /proc/%d/stat 2>/dev/null", p.PID)
}

// errOther is ErrGone for a pid that now belongs to another process.
var errOther = fmt.Errorf("%w", capture.ErrGone)

// identity returns nil if a stat line belongs to the process and the process is
// still running, ErrGone if not, or ErrDevice if the line has no start time.
func identity(p capture.Process, text []byte) error {
	stat, err := procfs.ParseStat(text)
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return fmt.Errorf("%s, pid %d: %w", p.Name, p.PID, capture.ErrGone)
	case err != nil || !stat.StartTicks.Known:
		return fmt.Errorf("identify %s: %w: no start time in %q", p.Name, capture.ErrDevice, shell.Clip(string(text)))
	case stat.PID != int64(p.PID) || uint64(stat.StartTicks.N) != p.Start:
		return fmt.Errorf("%s: pid %d now belongs to another process: %w", p.Name, p.PID, errOther)
	case stat.State == 'Z' || stat.State == 'X':
		return fmt.Errorf("%s, pid %d, has ended: %w", p.Name, p.PID, capture.ErrGone)
	}
	return nil
}

// over returns the reason why a step is not started, or nil if it may be
// started.
func (d *diagnosing) over(s Step) error {
	switch {
	case d.lost != nil:
		return d.lost
	case !s.Outlives && d.gone != nil:
		return d.gone
	case s.Name == logcatStep && d.req.Logcat == LogcatNone:
		return notAllowed{"logcat: none (the log is not kept)"}
	}
	return nil
}

// filtered reports whether only the part of the output that is about the app is
// kept.
func (d *diagnosing) filtered(s Step, w Method) bool {
	return w.own != nil && !(s.Name == logcatStep && d.req.Logcat == LogcatAll)
}

const (
	// ticks is the number of clock ticks per second in /proc/PID/stat (USER_HZ
	// of the kernel).
	ticks = 100
	// lifeSlack extends the period in which a process may have logged, because
	// the device's clock is read slightly late and the process's exit is
	// noticed slightly late.
	lifeSlack = 10 * time.Second
)

// app returns the filter that selects the parts of the output that are about
// the app.
func (d *diagnosing) app() dumpsys.AppFilter {
	out := dumpsys.AppFilter{Package: d.req.Process.Package()}
	for _, s := range append([]KnownProcess{{Process: d.req.Process}}, d.req.App...) {
		l := dumpsys.Lifetime{
			PID: int64(s.PID), Name: s.Name, From: d.wallAt(time.Duration(s.Start) * time.Second / ticks),
		}
		if !l.From.IsZero() {
			l.From = l.From.Add(-lifeSlack)
		}
		if s.Until > 0 && !d.wall.IsZero() {
			l.To = d.wallAt(s.Until).Add(lifeSlack)
		}
		out.Lifetimes = append(out.Lifetimes, l)
	}
	return out
}

// wallAt returns the device's wall clock at a time since boot, zero if unknown.
func (d *diagnosing) wallAt(up time.Duration) time.Time {
	if d.wall.IsZero() || up > d.up {
		return time.Time{}
	}
	return d.wall.Add(up - d.up)
}

// take runs one step and returns its outcome.
func (d *diagnosing) take(ctx context.Context, s Step) StepOutcome {
	began := time.Now()
	o := StepOutcome{Step: s.Name, Ending: Skipped}
	for _, w := range d.order(s.Methods) {
		if why := d.over(s); why != nil {
			if text := reasonOf(why); !slices.Contains(o.Reasons, text) {
				o.Reasons = append(o.Reasons, text)
			}
			break
		}
		y, err := d.run(ctx, s, w)
		o.Reasons, o.Left = append(o.Reasons, y.reasons...), cmp.Or(o.Left, y.left)
		if err == nil {
			o.File, o.Bytes, o.Command, o.Note = y.file, y.bytes, y.command, cmp.Or(y.note, w.Note)
			o.Ending = Complete
			if o.Note != "" {
				o.Ending = Fallback
			}
			break
		}
		if !errors.As(err, new(notAllowed)) {
			o.Ending = Failed
		}
		if why := d.reason(w, err); !slices.Contains(o.Reasons, why) {
			o.Reasons = append(o.Reasons, why)
		}
	}
	if o.Ending == Complete {
		d.complete = append(d.complete, s.Name)
	}
	if o.File == "" && s.Substitute != "" && slices.Contains(d.complete, s.Substitute) {
		o.Note = s.Substitute + " replaces it: the sums are computed on the host"
	}
	o.Took = time.Since(began)
	return o
}

// reasonOf describes an error; a canceled context is described as an
// interruption.
func reasonOf(err error) string {
	if errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	return err.Error()
}

// reason describes why a method failed, and names the user that ran the method
// if that matters.
func (d *diagnosing) reason(w Method, err error) string {
	if w.Heap || errors.Is(err, context.Canceled) || errors.Is(err, d.gone) || errors.Is(err, d.lost) ||
		inRelease(w, d.facts.API) != nil {
		return reasonOf(err)
	}
	return fmt.Sprintf("%s: %v", w.As, err)
}

// order puts first the methods that lose no information and run as the fast
// channel's user; the other methods keep their order. If the shell is root, a
// command is not tried a second time as root.
func (d *diagnosing) order(methods []Method) []Method {
	best := hint(d.req.Level)
	rank := func(w Method) int {
		if w.Note == "" && w.As == best {
			return 0
		}
		return 1
	}
	var out []Method
	for _, w := range methods {
		asked := slices.ContainsFunc(out, func(have Method) bool { return have.Command == w.Command && !have.Heap })
		if d.facts.UID == 0 && w.As == AsRoot && asked {
			continue
		}
		out = append(out, w)
	}
	slices.SortStableFunc(out, func(a, b Method) int { return rank(a) - rank(b) })
	return out
}

// result is what one method returned.
type result struct {
	file    string
	bytes   int64
	command string
	// note describes what the method lost on this device, and reasons explain
	// why. left is the path of a file that remains on the device; the reasons
	// name it too.
	note    string
	reasons []string
	left    string
}

// run takes an artifact with one method.
func (d *diagnosing) run(ctx context.Context, s Step, w Method) (result, error) {
	if err := inRelease(w, d.facts.API); err != nil {
		return result{}, err
	}
	prefix, err := d.prefix(ctx, w.As)
	if err != nil {
		return result{}, err
	}
	words := fmt.Sprintf("the process died while %s was being taken", s.Name)
	if w.Heap {
		y, err := d.heap(ctx, s, w)
		d.check(ctx, words)
		return y, err
	}
	y, a, err := d.text(ctx, s, w, prefix)
	if a != nil {
		defer a.discard()
	}
	if err != nil || !s.Outlives {
		d.check(ctx, words)
	}
	switch {
	case d.lost != nil:
		return result{}, d.lost
	case d.gone != nil && !s.Outlives:
		return result{}, d.gone
	case err != nil:
		return result{}, err
	}
	return y, a.commit(d.req.Dir, y.file)
}

// inRelease rejects a method that this release does not support. On an unknown
// release every method is tried.
func inRelease(w Method, api int) error {
	switch {
	case api == 0:
		return nil
	case w.From > 0 && api < w.From:
		return notAllowed{fmt.Sprintf("needs API level %d, this is %d", w.From, api)}
	case w.To > 0 && api > w.To:
		return notAllowed{fmt.Sprintf("removed after API level %d, this is %d", w.To, api)}
	}
	return nil
}

// slack is the wall-clock time that a round trip may take in addition to the
// command on the device.
const slack = 5 * time.Second

// scaled scales a limit to this device: a device with a faster clock gets a
// shorter limit.
func (d *diagnosing) scaled(limit time.Duration) time.Duration {
	return min(limit, time.Duration(float64(limit)/max(d.facts.TimeScale, 1))+slack)
}

// text runs a command and returns its output as an artifact that is complete
// and checked, but not yet committed.
func (d *diagnosing) text(ctx context.Context, s Step, w Method, prefix shell.Prefix) (result, *artifact, error) {
	line := fill(w.Command, d.req.Process, d.facts)
	if w.script {
		line = "sh -c " + text.ShellQuote(line)
	}
	y := result{file: cmp.Or(w.File, s.File), command: prefix.Wrap(line)}
	a, err := newArtifact(d.req.Dir, y.file, w.Max+maxClosing)
	if err != nil {
		return y, nil, err
	}
	if d.filtered(s, w) {
		a.hold()
	}
	refused, err := d.stream(ctx, w, y.command, a)
	if err == nil && refused == nil && a.held != nil {
		y.reasons, err = d.keepOwn(w, a)
	}
	y.bytes = a.size
	return y, a, cmp.Or(err, refused)
}

// keepOwn reduces an artifact to the parts that are about the app. Both the
// reasons and the first line of the artifact report how much was kept; every
// parser treats this first line as a logcat separator.
func (d *diagnosing) keepOwn(w Method, a *artifact) (reasons []string, err error) {
	part := w.own(d.app(), a.held.Bytes(), d.wall)
	if part.Kept == part.All {
		return nil, a.replace(part.Text)
	}
	kept := part.String() + ": only those about the app"
	return []string{kept}, a.replace(append([]byte("--------- leakgate: "+kept+"\n"), part.Text...))
}

// stream writes the output of a command to an artifact. The first error is the
// reason why the output is not the artifact; the second means that the output
// was not received or not stored completely.
func (d *diagnosing) stream(ctx context.Context, w Method, command string, a *artifact) (refused, err error) {
	m, limit := shell.NewMarker(), d.scaled(w.Limit)
	var errs head
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err = d.dev.Shell(within, command+" </dev/null"+closing(m), a, &errs)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case a.err != nil:
		return nil, a.err
	case err != nil && within.Err() != nil:
		return nil, fmt.Errorf("not finished in %v", limit)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", capture.ErrDevice, err)
	}
	text, exit, err := a.open(m)
	if err != nil {
		return nil, err
	}
	return w.judge(d.req.Process, text, exit, errs.Bytes()), nil
}

// head is a writer that keeps the beginning of its input.
type head struct{ bytes.Buffer }

// maxHead is the number of bytes that head keeps, which is enough for an error
// message.
const maxHead = 16 << 10

func (h *head) Write(p []byte) (int, error) {
	h.Buffer.Write(p[:min(len(p), max(0, maxHead-h.Len()))])
	return len(p), nil
}
