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

// Ending is how a step of a diagnosis has ended.
type Ending string

// The ends of a step.
const (
	// Complete: the whole artifact, and nothing is lost by the way that was taken.
	Complete Ending = "complete"
	// Fallback: a lesser way gave it; Note and Reasons say what is lost and why.
	Fallback Ending = "fallback"
	// Skipped: this device allows no way; Reasons say why.
	Skipped Ending = "skipped"
	// Failed: a way that is allowed gave nothing whole.
	Failed Ending = "failed"
)

// Outcome is what one step gave.
type Outcome struct {
	Step   string
	Ending Ending
	// File is the artifact's name in the folder, empty if there is none; Bytes its size.
	File  string
	Bytes int64
	// Command is the line that gave it.
	Command string
	// Note is what is lost by the way that was taken, or what takes the artifact's place.
	Note string
	// Reasons say why better ways, or all, were not taken.
	Reasons []string
	// Left is the path of a file that may still be on the device, empty for none; Sweep
	// tries to remove it.
	Left string
	// Took is the real time of all ways of the step.
	Took time.Duration
}

// Request is one diagnosis of one process.
type Request struct {
	Process capture.Process
	Recipe  Recipe
	// Level is how the fast channel reads the process: what is known of its rights.
	Level capture.Level
	// Findings are what was found when that was looked for: a refused su is not asked again.
	Findings []capture.Finding
	// Dir is the folder on the host that takes the artifacts. It is there.
	Dir string
	// App are other incarnations of processes of the app, running and ended.
	App []Sighting
	// Logcat is what is kept of the device's log; empty is LogcatApp.
	Logcat KeptLog
	// Run names the files on the device: letters and digits, another for each run.
	Run string
	// HostFree gives the bytes that Dir may still take; nil where nobody knows.
	HostFree func() (int64, error)
	// Expect is about how many bytes a heap dump has; 0 where nobody knows.
	Expect int64
	// Paused is told when the process is about to be stopped by a heap dump, and when
	// it goes on; nil for nobody. It must return at once.
	Paused func(bool)
}

// Sighting is an incarnation of a process that was seen. Until is the device's clock when it was missed, time since
// boot; 0 while it runs.
type Sighting struct {
	capture.Process
	Until time.Duration
}

// KeptLog is what is kept of the device's log.
type KeptLog string

// What is kept of the log: the lines of the app and those of the system about it; all lines, which
// are of every app; or nothing.
const (
	LogcatApp  KeptLog = "app"
	LogcatAll  KeptLog = "all"
	LogcatNone KeptLog = "none"
)

// Diagnosis is what was collected of one process.
type Diagnosis struct {
	Process capture.Process
	Recipe  string
	// Up is the device's clock when it began and Ended when it ended: time since boot, 0
	// where the device did not tell.
	Up, Ended time.Duration
	// Took is the real time of all of it.
	Took time.Duration
	// Steps are those of the recipe, each with its outcome.
	Steps []Outcome
}

// diagnosing is one diagnosis while it goes on.
type diagnosing struct {
	dev    capture.Device
	facts  capture.Facts
	req    Request
	rights rights
	// complete are the steps that lost nothing.
	complete []string
	// up is the device's clock at the latest look, wall its wall clock then, zero if unknown.
	up   time.Duration
	wall time.Time
	// gone is the end of the process; lost that of the device, or of the caller's patience.
	gone, lost error
}

// Diagnose collects what the recipe says. An artifact is in the folder whole or not at
// all, and of the process that was asked for: its pid and start time are compared
// before and after. Once that process is gone, only what outlives it is collected.
//
// The error is a device that does not answer any more, or the end of ctx; what was
// collected until then is told all the same.
func Diagnose(ctx context.Context, dev capture.Device, facts capture.Facts, r Request) (Diagnosis, error) {
	began := time.Now()
	d := &diagnosing{dev: dev, facts: facts, req: r, rights: newRights(facts, r)}
	out := Diagnosis{Process: r.Process, Recipe: r.Recipe.Name}
	d.look(ctx, "the process was gone before")
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

// lookDeadline is the real time that a device has to tell who a pid is.
const lookDeadline = 5 * time.Second

// look compares the process with the one that was asked for. What it finds stays: gone
// with the words of what went on, or lost. A device gets two tries.
func (d *diagnosing) look(ctx context.Context, words string) {
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

// identify asks once who the pid is, and what time it is.
func (d *diagnosing) identify(ctx context.Context) error {
	p, m := d.req.Process, shell.NewMarker()
	a, err := shell.Ask(ctx, d.dev, lookDeadline, m.Join([]shell.Part{{"up", "cat /proc/uptime"}, {"date", "date '+%Y-%m-%d %H:%M:%S'"}, {"stat", statCommand(p)}}))
	if err != nil {
		return fmt.Errorf("look for %s: %w", p.Name, err)
	}
	parts, whole := m.Split(a.Stdout)
	if !whole {
		return fmt.Errorf("look for %s: %w: the answer is cut", p.Name, capture.ErrDevice)
	}
	if up, err := procfs.ParseUptime(parts["up"]); err == nil {
		d.up = up
		d.wall, _ = time.Parse(time.DateTime, strings.TrimSpace(string(parts["date"]))) // zero where it does not say
	}
	return identity(p, parts["stat"])
}

func statCommand(p capture.Process) string {
	return fmt.Sprintf("cat /proc/%d/stat 2>/dev/null", p.PID)
}

// errOther is ErrGone where another process has the pid.
var errOther = fmt.Errorf("%w", capture.ErrGone)

// identity is nil if a stat line is that of the process, and ErrGone if it is not.
func identity(p capture.Process, text []byte) error {
	stat, err := procfs.ParseStat(text)
	switch {
	case len(bytes.TrimSpace(text)) == 0:
		return fmt.Errorf("%s, pid %d: %w", p.Name, p.PID, capture.ErrGone)
	case err != nil || !stat.StartTicks.Known:
		return fmt.Errorf("look for %s: %w: no start time in %q", p.Name, capture.ErrDevice, shell.Clip(string(text)))
	case stat.PID != int64(p.PID) || uint64(stat.StartTicks.N) != p.Start:
		return fmt.Errorf("%s: pid %d is another process now: %w", p.Name, p.PID, errOther)
	case stat.State == 'Z' || stat.State == 'X':
		return fmt.Errorf("%s, pid %d, has ended: %w", p.Name, p.PID, capture.ErrGone)
	}
	return nil
}

// over is why a step is not begun, nil if it may be.
func (d *diagnosing) over(s Step) error {
	switch {
	case d.lost != nil:
		return d.lost
	case !s.Outlives && d.gone != nil:
		return d.gone
	case s.Name == logcatStep && d.req.Logcat == LogcatNone:
		return notAllowed{"logcat is none: the log is not kept"}
	}
	return nil
}

// filtered reports whether only a part of a text is kept.
func (d *diagnosing) filtered(s Step, w Way) bool {
	return w.own != nil && !(s.Name == logcatStep && d.req.Logcat == LogcatAll)
}

const (
	// ticks is how many clock ticks a second has, in /proc/PID/stat (USER_HZ of the kernel).
	ticks = 100
	// lifeSlack is how much longer than it was seen a process may have logged: its clock and its
	// end are read a moment later.
	lifeSlack = 10 * time.Second
)

// app is the app as its part of a text is found.
func (d *diagnosing) app() dumpsys.AppFilter {
	out := dumpsys.AppFilter{Package: d.req.Process.Package()}
	for _, s := range append([]Sighting{{Process: d.req.Process}}, d.req.App...) {
		l := dumpsys.Life{PID: int64(s.PID), Name: s.Name, From: d.wallAt(time.Duration(s.Start) * time.Second / ticks)}
		if !l.From.IsZero() {
			l.From = l.From.Add(-lifeSlack)
		}
		if s.Until > 0 && !d.wall.IsZero() {
			l.To = d.wallAt(s.Until).Add(lifeSlack)
		}
		out.Lives = append(out.Lives, l)
	}
	return out
}

// wallAt is the device's wall clock at a time since boot, zero if that is unknown.
func (d *diagnosing) wallAt(up time.Duration) time.Time {
	if d.wall.IsZero() || up > d.up {
		return time.Time{}
	}
	return d.wall.Add(up - d.up)
}

// take makes the outcome of one step.
func (d *diagnosing) take(ctx context.Context, s Step) Outcome {
	began := time.Now()
	o := Outcome{Step: s.Name, Ending: Skipped}
	for _, w := range d.order(s.Ways) {
		if why := d.over(s); why != nil {
			if text := reasonOf(why); !slices.Contains(o.Reasons, text) {
				o.Reasons = append(o.Reasons, text)
			}
			break
		}
		y, err := d.way(ctx, s, w)
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
	if o.File == "" && s.Instead != "" && slices.Contains(d.complete, s.Instead) {
		o.Note = s.Instead + " takes its place: it is summed on the host"
	}
	o.Took = time.Since(began)
	return o
}

// reasonOf is an error in words: the end of a context is one's own doing.
func reasonOf(err error) string {
	if errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	return err.Error()
}

// reason is why a way gave nothing, with the user under which it ran where that matters.
func (d *diagnosing) reason(w Way, err error) string {
	if w.Heap || errors.Is(err, context.Canceled) || errors.Is(err, d.gone) || errors.Is(err, d.lost) || inRelease(w, d.facts.API) != nil {
		return reasonOf(err)
	}
	return fmt.Sprintf("%s: %v", w.As, err)
}

// order puts the ways first that lose nothing and by which the fast channel reads. A
// shell that is root needs to try only once.
func (d *diagnosing) order(ways []Way) []Way {
	best := hint(d.req.Level)
	rank := func(w Way) int {
		if w.Note == "" && w.As == best {
			return 0
		}
		return 1
	}
	var out []Way
	for _, w := range ways {
		asked := slices.ContainsFunc(out, func(have Way) bool { return have.Command == w.Command && !have.Heap })
		if d.facts.UID == 0 && w.As == AsRoot && asked {
			continue
		}
		out = append(out, w)
	}
	slices.SortStableFunc(out, func(a, b Way) int { return rank(a) - rank(b) })
	return out
}

// yield is what one way gave.
type yield struct {
	file    string
	bytes   int64
	command string
	// note is what the way lost on this device, reasons why; left is what stays there, also
	// in the reasons.
	note    string
	reasons []string
	left    string
}

// way takes an artifact by one way.
func (d *diagnosing) way(ctx context.Context, s Step, w Way) (yield, error) {
	if err := inRelease(w, d.facts.API); err != nil {
		return yield{}, err
	}
	prefix, err := d.prefix(ctx, w.As)
	if err != nil {
		return yield{}, err
	}
	words := fmt.Sprintf("the process died while %s was taken", s.Name)
	if w.Heap {
		y, err := d.heap(ctx, s, w)
		d.look(ctx, words)
		return y, err
	}
	y, a, err := d.text(ctx, s, w, prefix)
	if a != nil {
		defer a.discard()
	}
	if err != nil || !s.Outlives {
		d.look(ctx, words)
	}
	switch {
	case d.lost != nil:
		return yield{}, d.lost
	case d.gone != nil && !s.Outlives:
		return yield{}, d.gone
	case err != nil:
		return yield{}, err
	}
	return y, a.commit(d.req.Dir, y.file)
}

// inRelease refuses a way that this release does not have. A device that does not tell
// its release may try.
func inRelease(w Way, api int) error {
	switch {
	case api == 0:
		return nil
	case w.From > 0 && api < w.From:
		return notAllowed{fmt.Sprintf("this is API level %d, and it came with %d", api, w.From)}
	case w.To > 0 && api > w.To:
		return notAllowed{fmt.Sprintf("this is API level %d, and it was there until %d", api, w.To)}
	}
	return nil
}

// slack is the real time that a trip may take beyond what runs on the device.
const slack = 5 * time.Second

// within is a limit on this device: one whose time runs faster gets less.
func (d *diagnosing) within(limit time.Duration) time.Duration {
	return min(limit, time.Duration(float64(limit)/max(d.facts.TimeScale, 1))+slack)
}

// text takes the output of one command, whole and judged, but not yet kept.
func (d *diagnosing) text(ctx context.Context, s Step, w Way, prefix shell.Prefix) (yield, *artifact, error) {
	line := fill(w.Command, d.req.Process, d.facts)
	if w.script {
		line = "sh -c " + text.ShellQuote(line)
	}
	y := yield{file: cmp.Or(w.File, s.File), command: prefix.Wrap(line)}
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

// keepOwn leaves of an artifact what is about the app. The reasons say how much that is, and so
// does the first line, which every parser takes for a separator of logcat.
func (d *diagnosing) keepOwn(w Way, a *artifact) (reasons []string, err error) {
	part := w.own(d.app(), a.held.Bytes(), d.wall)
	if part.Kept == part.All {
		return nil, a.replace(part.Text)
	}
	kept := part.String() + ": what is about the app"
	return []string{kept}, a.replace(append([]byte("--------- leakgate: "+kept+"\n"), part.Text...))
}

// stream runs a command into an artifact. The second error is one of the trip, the
// first why the text is not the artifact.
func (d *diagnosing) stream(ctx context.Context, w Way, command string, a *artifact) (refused, err error) {
	m, limit := shell.NewMarker(), d.within(w.Limit)
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
		return nil, fmt.Errorf("no end in %v", limit)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", capture.ErrDevice, err)
	}
	text, exit, err := a.open(m)
	if err != nil {
		return nil, err
	}
	return w.judge(d.req.Process, text, exit, errs.Bytes()), nil
}

// head keeps the beginning of what is written to it.
type head struct{ bytes.Buffer }

// maxHead is enough for the words of an error.
const maxHead = 16 << 10

func (h *head) Write(p []byte) (int, error) {
	h.Buffer.Write(p[:min(len(p), max(0, maxHead-h.Len()))])
	return len(p), nil
}
