package monitor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/check"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

// Exception is a leak that is accepted until a date.
type Exception = check.Exception

// CheckOptions say what a check looks at.
type CheckOptions struct {
	// Name is the full text of a spec or CLASS#METHOD of a test, Of record.CheckSpec or
	// record.CheckTest, Location FILE:LINE of the check in the suite, if it has one.
	Name, Of, Location string
	// Device is the device on which it runs; it may be "" where there is one.
	Device string
	// Patterns choose the processes among those that are watched; nil for all.
	Patterns []capture.Pattern
	// Heap has heaps dumped in any case, not only where counts of objects rose.
	Heap bool
	// Trend judges the memory of the span too; that takes half an hour.
	Trend bool
	// Live fails where a process was ever LEAKING within the span.
	Live bool
	// Later leaves the counts before the body to Recount, right before it.
	Later bool
	// Known are leaks that do not fail the check.
	Known []Exception
}

// incarnation is one process between its start and its end.
type incarnation struct {
	device string
	user   int
	name   string
	pid    int
	start  uint64
}

// OpenCheck is a span of a run that is checked for what it leaves behind: by the counts of
// objects before and after, and by a heap dump where they rose. Its methods are called by one
// goroutine.
type OpenCheck struct {
	live    *LiveRun
	session *session
	options CheckOptions
	window  *OpenWindow
	began   float64

	objects objectChanges
	// skipped is why the check is not judged, "" where it is.
	skipped string
	// found are the processes by name, in the order in which they were read.
	found    []*record.CheckedProcess
	readings int
	took     time.Duration
	// unread says why nothing was read, where the caller knows.
	unread string

	mu       sync.Mutex
	closed   *record.Check
	closeErr error
}

// objectChanges are the objects of each incarnation that a check has seen.
type objectChanges struct {
	// before are the counts of each incarnation before the body, uncounted those that could
	// not be counted then.
	before    map[incarnation]map[string]int64
	uncounted map[incarnation]error
	// body are the incarnations that ran right before the body of the present attempt.
	body map[incarnation]bool
	// opened: the processes that run are those from before the check.
	opened bool
	// older are leaks of each incarnation that are older than the check, hidden says of those
	// that seem to have some why nobody could look.
	older  map[incarnation][]record.CheckedLeak
	hidden map[incarnation]string
	// there are the incarnations that ran at the beginning or later.
	there map[incarnation]bool
}

func newObjectChanges() objectChanges {
	return objectChanges{
		before: map[incarnation]map[string]int64{}, uncounted: map[incarnation]error{},
		older: map[incarnation][]record.CheckedLeak{}, hidden: map[incarnation]string{}, there: map[incarnation]bool{},
	}
}

// Check opens a check: a window on its device, and the counts of objects of each process that
// runs. A process that cannot be counted is part of what the check shows. The error is a device
// that does not answer, or a run that has ended.
func (w *LiveRun) Check(ctx context.Context, o CheckOptions) (*OpenCheck, error) {
	c, err := w.openCheck(o)
	if err != nil {
		return nil, err
	}
	if o.Later {
		began := time.Now()
		_, err = c.look(ctx)
		c.took += time.Since(began)
	} else {
		err = c.Recount(ctx)
	}
	if err != nil {
		_, cerr := c.window.Close()
		return nil, errors.Join(fmt.Errorf("check %s: %w", text.Quote(c.options.Name, maxMarkShown), err), cerr)
	}
	return c, nil
}

// openCheck opens the window of a check and counts nothing.
func (w *LiveRun) openCheck(o CheckOptions) (*OpenCheck, error) {
	o.Name = cmp.Or(cleanMark(o.Name), "unnamed")
	o.Of = cmp.Or(o.Of, record.CheckSpec)
	s, err := w.session(o.Device)
	if err != nil {
		return nil, fmt.Errorf("check %s: %w", text.Quote(o.Name, maxMarkShown), err)
	}
	window, err := w.windowOn([]*session{s}, o.Name)
	if err != nil {
		return nil, fmt.Errorf("check: %w", err)
	}
	c := &OpenCheck{live: w, session: s, options: o, window: window, objects: newObjectChanges()}
	if err := s.ask(func() { c.began = s.part.Seconds(max(s.part.Up(), s.part.At(s.clock.now()))) }); err != nil {
		_, cerr := window.Close()
		return nil, errors.Join(fmt.Errorf("check %s: %w", text.Quote(o.Name, maxMarkShown), err), cerr)
	}
	return c, nil
}

// Amend adds to what the check looks at: what Heap, Trend, Live and Known ask for counts beside
// what was asked for before. Patterns and Location, where given, take the place of those.
func (c *OpenCheck) Amend(o CheckOptions) {
	have := &c.options
	have.Heap, have.Trend, have.Live = have.Heap || o.Heap, have.Trend || o.Trend, have.Live || o.Live
	have.Known = append(have.Known, o.Known...)
	have.Location = cmp.Or(o.Location, have.Location)
	if len(o.Patterns) > 0 {
		have.Patterns = o.Patterns
	}
}

// Recount counts the objects of all processes: these are the counts before the body from now on,
// as after a suite has set up the screens of a spec, or started the app again.
func (c *OpenCheck) Recount(ctx context.Context) error {
	began := time.Now()
	defer func() { c.took += time.Since(began) }()
	rows, err := c.look(ctx)
	if err != nil {
		return err
	}
	c.objects.body = map[incarnation]bool{}
	for i, counts := range c.count(ctx, rows) {
		of := incarnationOf(rows[i])
		c.objects.body[of] = true
		c.objects.before[of] = counts.objects
		delete(c.objects.uncounted, of)
		if counts.err != nil {
			c.objects.uncounted[of] = counts.err
		} else if !c.objects.opened {
			c.findOlder(ctx, rows[i], counts.objects)
		}
	}
	c.objects.opened = true
	return nil
}

// findOlder dumps the heap of a process before the body where it seems to hold screens that
// are over already, and nobody has looked since they were left: they must not be taken for
// what this check leaves, and must not be lost.
func (c *OpenCheck) findOlder(ctx context.Context, r Row, counts map[string]int64) {
	of := incarnationOf(r)
	latest, checked := c.live.latestCounts(of)
	hidden := check.Hidden(counts)
	if hidden <= 0 || checked && hidden <= check.Hidden(latest) {
		return
	}
	why := "it did not come to rest"
	if settled, _ := c.live.Settle(ctx, r.Device, r.Process); settled {
		d, err := c.live.Diagnose(ctx, r.Device, r.Process, "dump")
		c.readings++
		if err == nil {
			err = dumpError(d)
		}
		if err == nil {
			c.objects.older[of] = c.live.seenOf(of).New(d.Leaks)
			return
		}
		why = err.Error()
	}
	c.objects.hidden[of] = fmt.Sprintf("%s: had %s without a window before the body, and no heap dump could show whether they leak: %s",
		r.Process, text.Count(int(hidden), "Activity", "Activities"), text.Head(why, maxReason))
}

// look returns the processes of the check that run now.
func (c *OpenCheck) look(ctx context.Context) ([]Row, error) {
	c.readings++
	if err := c.live.look(ctx, []*session{c.session}); err != nil {
		return nil, err
	}
	var out []Row
	err := c.session.ask(func() {
		now := c.session.clock.now()
		for _, x := range c.session.subjects.order {
			if x.present && c.watches(x.Name) {
				out = append(out, c.session.row(x, now))
			}
		}
	})
	for _, r := range out {
		c.objects.there[incarnationOf(r)] = true
	}
	return out, err
}

func (c *OpenCheck) watches(name string) bool {
	return len(c.options.Patterns) == 0 || slices.ContainsFunc(c.options.Patterns, func(p capture.Pattern) bool { return p.Match(name) })
}

func incarnationOf(r Row) incarnation {
	return incarnation{r.Device, r.User, r.Name, r.PID, r.Start}
}

// tally is what was counted: the objects of one process, or why they are not known.
type tally struct {
	objects map[string]int64
	err     error
}

// atOnce bounds the processes of one device that are counted at the same time: system_server
// answers for each of them.
const atOnce = 3

// count counts the objects of processes.
func (c *OpenCheck) count(ctx context.Context, rows []Row) []tally {
	out := make([]tally, len(rows))
	room := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, r := range rows {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			out[i].objects, out[i].err = c.live.Objects(ctx, r.Device, r.Process)
		})
	}
	wg.Wait()
	c.readings += len(rows)
	return out
}

// Collect reads what the body has left behind: it counts objects, and where they rose, or
// always with CheckOptions.Heap, it lets the app settle, counts again, and dumps the heap. It is
// called right after the body, before the suite tears anything down. It may be called again, for
// another attempt of the body: what one attempt has shown stays.
func (c *OpenCheck) Collect(ctx context.Context) error {
	began := time.Now()
	defer func() { c.took += time.Since(began) }()
	rows, err := c.look(ctx)
	if err != nil {
		return fmt.Errorf("check %s: %w", text.Quote(c.options.Name, maxMarkShown), err)
	}
	for i, after := range c.count(ctx, rows) {
		c.keep(c.collect(ctx, rows[i], after))
	}
	for of := range c.objects.body {
		if !slices.ContainsFunc(rows, func(r Row) bool { return r.User == of.user && r.Name == of.name }) {
			c.keep(record.CheckedProcess{User: of.user, Process: of.name, PID: of.pid, Verdict: record.VerdictNotChecked, Leaks: []record.CheckedLeak{}, Before: check.Keep(c.objects.before[of]),
				Text: of.name + ": not checked: it ended within the body, and what it held with it"})
		}
	}
	return nil
}

// keep adds what was found of a process to what an earlier attempt has shown.
func (c *OpenCheck) keep(p record.CheckedProcess) {
	i := slices.IndexFunc(c.found, func(have *record.CheckedProcess) bool {
		return have.User == p.User && have.Process == p.Process
	})
	if i < 0 {
		c.found = append(c.found, &p)
		return
	}
	have := c.found[i]
	p.Older = append(have.Older, p.Older...)
	if check.Worse(have.Verdict, p.Verdict) == have.Verdict && have.Verdict != p.Verdict {
		have.PID, have.After, have.Older = p.PID, p.After, p.Older
		return
	}
	if have.Verdict == p.Verdict && len(have.Leaks) > 0 {
		p.Leaks = check.Merge(have.Leaks, p.Leaks)
		p.Before = have.Before
		p.Text = p.Process + ": " + verbOf(p.Verdict) + check.Describe(p.Leaks) + ", over several attempts"
	}
	*have = p
}

// verbOf begins the text of a process that leaks.
func verbOf(v record.CheckVerdict) string {
	if v == record.VerdictKnown {
		return "only accepted leaks: "
	}
	return "leaks "
}

// collect judges one process after the body.
func (c *OpenCheck) collect(ctx context.Context, r Row, after tally) record.CheckedProcess {
	of := incarnationOf(r)
	before, known := c.objects.before[of]
	if !known { // the body did not run, or the device did not answer before it
		before, known = c.live.latestCounts(of)
	}
	p := record.CheckedProcess{User: r.User, Process: r.Name, PID: r.PID, Before: check.Keep(before), After: check.Keep(after.objects), Leaks: []record.CheckedLeak{}}
	check.Judge(c.objects.older[of], c.options.Known, func(string) []string { return nil })
	p.Older, c.objects.older[of] = c.objects.older[of], nil
	defer func() { // of the next attempt, and of the next check
		c.objects.before[of] = after.objects
		c.live.setLatestCounts(of, after.objects)
	}()
	switch {
	case after.err != nil:
		p.Verdict, p.Text = record.VerdictInconclusive, r.Name+": its objects could not be counted: "+text.Head(after.err.Error(), maxReason)
		return p
	case !c.suspicious(before, known, after.objects):
		p.Verdict, p.Text = c.unsuspicious(r, known)
		return p
	}
	p.Settled, _ = c.live.Settle(ctx, r.Device, r.Process)
	settled := c.count(ctx, []Row{r})[0]
	if settled.err == nil {
		after = settled
		p.After = check.Keep(after.objects)
	}
	if !c.suspicious(before, known, after.objects) {
		if p.Verdict, p.Text = c.unsuspicious(r, known); p.Verdict == record.VerdictPass {
			p.Text = r.Name + ": released what the body had left in flight"
		}
		return p
	}
	c.dump(ctx, r, &p, before)
	return p
}

// unsuspicious is the verdict on a process that need not be dumped.
func (c *OpenCheck) unsuspicious(r Row, known bool) (record.CheckVerdict, string) {
	of := incarnationOf(r)
	switch err := c.objects.uncounted[of]; {
	case c.objects.hidden[of] != "":
		return record.VerdictInconclusive, c.objects.hidden[of]
	case c.objects.restarted(of) != 0:
		return record.VerdictInconclusive, fmt.Sprintf("%s: restarted within the body (pid %d, then %d): what pid %[2]d held is gone, and was not checked", r.Name, c.objects.restarted(of), r.PID)
	case err != nil:
		return record.VerdictInconclusive, r.Name + ": its objects could not be counted before the body: " + text.Head(err.Error(), maxReason)
	case known:
		return record.VerdictPass, r.Name + ": no more objects than before"
	}
	return record.VerdictPass, r.Name + ": was not counted before the body, and has one screen at most"
}

// restarted returns the pid of the incarnation that ran before the body in the place of one that
// did not, 0 where there is none.
func (c *objectChanges) restarted(now incarnation) int {
	if c.body[now] {
		return 0
	}
	for of := range c.body {
		if of.user == now.user && of.name == now.name {
			return of.pid
		}
	}
	return 0
}

// suspicious reports whether a heap dump is needed: counts rose, or there are more Activities
// without a window. A body that closes a screen which it has found open leaves no more objects
// than before, even if the screen leaks.
func (c *OpenCheck) suspicious(before map[string]int64, known bool, after map[string]int64) bool {
	switch {
	case c.options.Heap:
		return true
	case known && before != nil:
		return len(check.Rose(before, after)) > 0 || check.Hidden(after) > max(0, check.Hidden(before))
	}
	return check.Crowded(after)
}

// dump judges a process by its heap.
func (c *OpenCheck) dump(ctx context.Context, r Row, p *record.CheckedProcess, before map[string]int64) {
	rose := ""
	switch rises := check.Rose(before, p.After); {
	case len(rises) > 0:
		rose = "; " + check.Text(rises)
	case before != nil && check.Hidden(p.After) > max(0, check.Hidden(before)):
		rose = fmt.Sprintf("; Activities without a window %d -> %d", max(0, check.Hidden(before)), check.Hidden(p.After))
	}
	d, err := c.live.Diagnose(ctx, r.Device, r.Process, "dump")
	c.readings++
	p.Folder = d.Folder
	if err == nil {
		err = dumpError(d)
	}
	if err != nil {
		p.Verdict, p.Text = record.VerdictInconclusive, fmt.Sprintf("%s: no heap dump could show whether something leaks: %s%s", r.Name, text.Head(err.Error(), maxReason), rose)
		return
	}
	seen := c.live.seenOf(incarnationOf(r))
	first := !seen.Dumped()
	p.Leaks = seen.New(d.Leaks)
	p.Verdict = check.Judge(p.Leaks, c.options.Known, c.live.traces(d))
	p.Text = r.Name + ": " + c.dumpText(p, d, rose)
	if first && len(p.Leaks) > 0 && before["Activities"] > 0 {
		p.Text += "; the first heap dump of this process: some may be older than this check"
	}
	if p.Verdict != record.VerdictLeak && d.LeaksOmitted > 0 {
		p.Verdict, p.Text = record.VerdictInconclusive, fmt.Sprintf("%s: its heap has %d leaks, of which only the %d largest were compared with those before%s", r.Name, len(d.Leaks)+d.LeaksOmitted, len(d.Leaks), rose)
	}
	if p.Verdict == record.VerdictPass && d.Undecided != "" {
		p.Verdict, p.Text = record.VerdictInconclusive, r.Name+": the heap dump cannot show whether something leaks: "+d.Undecided+rose
	}
}

func (c *OpenCheck) dumpText(p *record.CheckedProcess, d record.Diagnosis, rose string) string {
	leaks := slices.DeleteFunc(slices.Clone(p.Leaks), func(l record.CheckedLeak) bool { return l.Known != "" && p.Verdict == record.VerdictLeak })
	switch {
	case p.Verdict == record.VerdictLeak, p.Verdict == record.VerdictKnown:
		return verbOf(p.Verdict) + check.Describe(leaks) + rose
	case len(d.Leaks) > 0:
		return "no new leak in its heap" + rose
	}
	return "no leak in its heap: what is there is in use" + rose
}

// dumpError says why a diagnosis has no heap dump that was analyzed; nil where it has one.
func dumpError(d record.Diagnosis) error {
	if d.Heap != nil {
		return nil
	}
	for _, step := range d.Steps {
		switch {
		case step.Step != "heap":
		case step.File == "" && len(step.Reasons) > 0:
			return errors.New(strings.Join(step.Reasons, "; "))
		}
	}
	if len(d.Warnings) > 0 {
		return errors.New(d.Warnings[0])
	}
	return errors.New("the device gave none")
}

// latestCounts returns the counts of an incarnation at the end of the latest check.
func (w *LiveRun) latestCounts(of incarnation) (map[string]int64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts, ok := w.latest[of]
	return counts, ok
}

func (w *LiveRun) setLatestCounts(of incarnation, counts map[string]int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.latest) >= maxSeen {
		clear(w.latest)
	}
	w.latest[of] = counts
}

// maxSeen bounds the incarnations whose dumps are remembered.
const maxSeen = 10_000

// seenOf returns what heap dumps of an incarnation have shown.
func (w *LiveRun) seenOf(of incarnation) *check.Seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[of] == nil {
		if len(w.seen) >= maxSeen {
			clear(w.seen)
		}
		w.seen[of] = &check.Seen{}
	}
	return w.seen[of]
}

// maxAnalysis bounds the analysis of a dump that is read again for a trace, in bytes.
const maxAnalysis = 64 << 20

// traces returns the leak traces of a dump by the keys of the leaks: of the record, which has
// the first ten, or else of its analysis.
func (w *LiveRun) traces(d record.Diagnosis) func(key string) []string {
	byKey := map[string][]string{}
	for _, f := range d.Findings {
		if f.Key != "" && len(f.Trace) > 0 {
			byKey[f.Key] = f.Trace
		}
	}
	var rest map[string][]string
	return func(key string) []string {
		if trace, ok := byKey[key]; ok {
			return trace
		}
		if rest == nil {
			rest = readTraces(filepath.Join(w.run.Dir, filepath.FromSlash(d.Folder), "analysis.json"))
		}
		return rest[key]
	}
}

// readTraces reads the leak traces of an analysis. Where it cannot be read there are none.
func readTraces(path string) map[string][]string {
	out := map[string][]string{}
	f, err := os.Open(path)
	if err != nil {
		return out
	}
	defer f.Close()
	var report analysis.Report
	if err := json.NewDecoder(io.LimitReader(f, maxAnalysis)).Decode(&report); err != nil {
		return out
	}
	for i := range report.Leaks {
		var b strings.Builder
		_ = reporters.WriteLeak(&b, &report.Leaks[i]) // a Builder takes everything
		out[report.Leaks[i].Key] = strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	}
	return out
}

// Skip has the check not judged: what it shows is recorded, so that a later check does not take
// it for its own.
func (c *OpenCheck) Skip(reason string) { c.skipped = text.Head(reason, maxReason) }

// Drop ends a check that was opened for nothing, without a record.
func (c *OpenCheck) Drop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return nil
	}
	c.closed = &record.Check{}
	_, err := c.window.Close()
	return err
}

// maxStack bounds the stack of a test in a record, in bytes.
const maxStack = 8 << 10

// Close ends the check, judges it and records it. outcome and stack say how the spec or test
// itself ended. A second call returns the same.
func (c *OpenCheck) Close(ctx context.Context, outcome, stack string) (record.Check, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return *c.closed, c.closeErr
	}
	windows, err := c.window.Close()
	c.closeErr = errors.Join(err, c.awaitDeaths(ctx))
	out := record.Check{
		Name: c.options.Name, Type: c.options.Of, Location: c.options.Location, Device: c.session.dev.Serial(), Window: c.window.number, T: c.began,
		Outcome: outcome, Stack: clip(stack), Processes: []record.CheckedProcess{}, Readings: c.readings, Duration: record.Round(c.took.Seconds(), 3),
	}
	err = c.session.ask(func() {
		out.Ended = c.session.part.Seconds(max(c.session.part.Up(), c.session.part.At(c.session.clock.now())))
		c.addEnds(out.T, out.Ended)
		c.addLeaking(out.T, out.Ended)
	})
	for _, w := range windows {
		c.judgeWindow(w)
	}
	for _, p := range c.found {
		out.Processes = append(out.Processes, *p)
	}
	out.Verdict, out.Text = conclude(out.Processes)
	if c.unread != "" && out.Verdict == record.VerdictNotChecked {
		out.Text = c.unread
	}
	if c.skipped != "" {
		out.Verdict, out.Text = record.VerdictSkipped, "skipped: "+c.skipped
	}
	if err == nil {
		err = c.session.ask(func() { c.session.event(record.Event{Event: "check", Text: out.Text, Check: &out}) })
	}
	c.closed, c.closeErr = &out, errors.Join(c.closeErr, err)
	return out, c.closeErr
}

// clip bounds a stack at a whole line.
func clip(stack string) string {
	if len(stack) <= maxStack {
		return stack
	}
	return stack[:strings.LastIndexByte(stack[:maxStack], '\n')+1] + "[truncated]"
}

// conclude returns the verdict of a check by those of its processes.
func conclude(processes []record.CheckedProcess) (record.CheckVerdict, string) {
	if len(processes) == 0 {
		return record.VerdictNotChecked, "not checked: no process was running"
	}
	verdict := record.VerdictPass
	for _, p := range processes {
		verdict = check.Worse(verdict, p.Verdict)
	}
	var lines []string
	for _, p := range processes {
		if p.Verdict == verdict {
			lines = append(lines, p.Text)
		}
	}
	return verdict, strings.Join(lines, "; ")
}

// judgeWindow adds what the memory of the span shows, where that was asked for.
func (c *OpenCheck) judgeWindow(w record.JudgedWindow) {
	if !c.options.Trend && !c.options.Live {
		return
	}
	sampled := map[capture.Key]bool{}
	for _, x := range w.Processes {
		sampled[capture.Key{User: x.User, Name: x.Process}] = true
		if !c.watches(x.Process) {
			continue
		}
		if verdict, words := c.trend(x); verdict != record.VerdictPass {
			c.add(x.User, x.Process, x.PID, verdict, words)
		}
	}
	for _, p := range slices.Clone(c.found) {
		if c.options.Trend && !sampled[capture.Key{User: p.User, Name: p.Process}] {
			c.add(p.User, p.Process, p.PID, record.VerdictInconclusive, fmt.Sprintf("%s: inconclusive: not sampled within the check; a trend needs %.0f minutes", p.Process, trendNeeds.Minutes()))
		}
	}
}

// addLeaking adds the processes that were LEAKING at any time of the check, by the run as a
// whole, where that was asked for. The session's goroutine calls it.
func (c *OpenCheck) addLeaking(from, to float64) {
	if !c.options.Live {
		return
	}
	for _, x := range c.session.subjects.order {
		if c.watches(x.Name) && x.Account.WasLeaking(from, to) {
			c.add(x.User, x.Key().Name, x.PID, record.VerdictLeak, x.Key().Name+": was LEAKING within the check")
		}
	}
}

// trend is the verdict on the memory of one process in the span.
func (c *OpenCheck) trend(x record.WindowProcess) (record.CheckVerdict, string) {
	switch {
	case !c.options.Trend:
	case x.Gate == detector.Leak:
		return record.VerdictLeak, fmt.Sprintf("%s: %s", x.Process, x.Reason)
	case x.Gate == detector.Inconclusive && x.Duration < trendNeeds.Seconds():
		return record.VerdictInconclusive, fmt.Sprintf("%s: inconclusive: %.0f of %.0f minutes that a trend needs", x.Process, x.Duration/60, trendNeeds.Minutes())
	case x.Gate == detector.Inconclusive:
		return record.VerdictInconclusive, fmt.Sprintf("%s: inconclusive: %s", x.Process, x.Reason)
	}
	return record.VerdictPass, ""
}

// trendNeeds is the shortest span whose memory can be judged.
const trendNeeds = 30 * time.Minute

// add adds a verdict to a process of the check, which may not have been counted.
func (c *OpenCheck) add(user int, name string, pid int, verdict record.CheckVerdict, words string) {
	for _, p := range c.found {
		if p.User != user || p.Process != name {
			continue
		}
		if p.Verdict == record.VerdictPass {
			p.Text = words
		} else {
			p.Text += "; " + words
		}
		p.Verdict = check.Worse(p.Verdict, verdict)
		return
	}
	c.found = append(c.found, &record.CheckedProcess{User: user, Process: name, PID: pid, Verdict: verdict, Text: words, Leaks: []record.CheckedLeak{}})
}

// awaitDeaths waits until the reasons are known why processes of the check have ended. A
// device takes some seconds to know them.
func (c *OpenCheck) awaitDeaths(ctx context.Context) error {
	step := max(c.session.clock.real(deathDelay)/4, time.Millisecond)
	for end := time.Now().Add(c.session.clock.real(deathDelay) + askDeath); time.Now().Before(end); {
		open := false
		err := c.session.ask(func() { open = c.session.deaths.open() })
		if err != nil || !open {
			return err
		}
		if err := nap(ctx, step); err != nil {
			return nil // it is recorded all the same, without the reason
		}
	}
	return nil
}

// addEnds adds the ends and faults of processes within the span. A process of which nothing
// was read is there with its end.
func (c *OpenCheck) addEnds(from, to float64) {
	within := func(list []record.Death) []record.Death {
		var out []record.Death
		for _, d := range list {
			if d.T >= from && d.T <= to {
				out = append(out, d)
			}
		}
		return out
	}
	for _, x := range c.session.subjects.order {
		if !c.watches(x.Name) {
			continue
		}
		deaths, faults := within(x.Account.Deaths()), within(x.Account.Faults())
		deaths = slices.DeleteFunc(deaths, func(d record.Death) bool { return !c.objects.ran(x, d.PID) })
		if len(deaths)+len(faults) == 0 {
			continue
		}
		i := slices.IndexFunc(c.found, func(p *record.CheckedProcess) bool { return p.User == x.User && p.Process == x.Key().Name })
		if i < 0 {
			c.add(x.User, x.Key().Name, x.PID, record.VerdictNotChecked, x.Key().Name+": not checked: it ended before its objects were counted")
			i = len(c.found) - 1
		}
		c.found[i].Deaths, c.found[i].Faults = deaths, faults
	}
}

// ran reports whether an incarnation of a process ran within the check: the end of one that was
// gone before is read later.
func (c *objectChanges) ran(x *subject, pid int) bool {
	for of := range c.there {
		if of.user == x.User && of.name == x.Key().Name && of.pid == pid {
			return true
		}
	}
	return false
}
