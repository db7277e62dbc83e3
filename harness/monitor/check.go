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

// CheckOptions define what a check examines.
type CheckOptions struct {
	// Name is the full name of a spec, or CLASS#METHOD of a test; Type is
	// record.CheckSpec or record.CheckTest; Location is FILE:LINE of the check
	// in the suite, if known.
	Name, Type, Location string
	// Device is the device on which the spec or test runs. It may be "" if
	// there is only one.
	Device string
	// Patterns select among the watched processes. If Patterns is nil, all
	// watched processes are checked.
	Patterns []capture.Pattern
	// Heap requests a heap dump even if no object counts grew.
	Heap bool
	// Trend also judges the memory growth within the span, which must last at
	// least half an hour.
	Trend bool
	// Live fails the check if a process was ever LEAKING within the span.
	Live bool
	// DeferCounts postpones the counts before the body to Recount, which is
	// called right before the body.
	DeferCounts bool
	// Known lists the leaks that do not fail the check.
	Known []Exception
}

// life identifies one life of a process.
type life struct {
	device string
	user   int
	name   string
	pid    int
	start  uint64
}

// OpenCheck is a span of a run that is checked for leaked objects. It counts
// objects before and after the span, and dumps the heap if the counts grew. Its
// methods are called by one goroutine.
type OpenCheck struct {
	live    *LiveRun
	session *session
	options CheckOptions
	window  *OpenWindow
	began   float64

	objects objectChanges
	// skipped is the reason why the check is not judged, or "" if it is judged.
	skipped string
	// found lists the processes in the order in which they were read.
	found    []*record.CheckedProcess
	readings int
	took     time.Duration
	// unread is the reason why no process was read, or "" if it is not known.
	unread string

	mu       sync.Mutex
	closed   *record.Check
	closeErr error
}

// objectChanges holds the object counts of each life and how they changed.
type objectChanges struct {
	// before holds the counts before the body; uncounted holds the errors of
	// the counts that failed.
	before    map[life]map[string]int64
	uncounted map[life]error
	// body lists the lives that were running right before the current attempt
	// of the body.
	body map[life]bool
	// opened is set once the counts at the beginning of the check are known.
	opened bool
	// older holds the leaks that existed before the check. hidden holds the
	// reasons why older leaks could not be determined although the counts
	// suggest that some exist.
	older  map[life][]record.CheckedLeak
	hidden map[life]string
	// running holds the lives that were running at any time during the check.
	running map[life]bool
}

func newObjectChanges() objectChanges {
	return objectChanges{
		before: map[life]map[string]int64{}, uncounted: map[life]error{},
		older: map[life][]record.CheckedLeak{}, hidden: map[life]string{}, running: map[life]bool{},
	}
}

// Check opens a window on the device and counts the objects of each running
// process. If a process cannot be counted, the result of the check reports
// this. Check returns an error if the device does not respond or the run has
// ended.
func (w *LiveRun) Check(ctx context.Context, o CheckOptions) (*OpenCheck, error) {
	c, err := w.openCheck(o)
	if err != nil {
		return nil, err
	}
	if o.DeferCounts {
		began := time.Now()
		_, err = c.findProcesses(ctx)
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

// openCheck opens the window of a check without counting objects.
func (w *LiveRun) openCheck(o CheckOptions) (*OpenCheck, error) {
	o.Name = cmp.Or(cleanMark(o.Name), "unnamed")
	o.Type = cmp.Or(o.Type, record.CheckSpec)
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

// Amend changes the options of the check: Heap, Trend, Live and Known are added
// to the present options; Patterns and Location, if set, replace them.
func (c *OpenCheck) Amend(o CheckOptions) {
	have := &c.options
	have.Heap, have.Trend, have.Live = have.Heap || o.Heap, have.Trend || o.Trend, have.Live || o.Live
	have.Known = append(have.Known, o.Known...)
	have.Location = cmp.Or(o.Location, have.Location)
	if len(o.Patterns) > 0 {
		have.Patterns = o.Patterns
	}
}

// Recount counts the objects of all processes again and uses the result as the
// counts before the body, for example after a suite has set up the screens of a
// spec or has restarted the app.
func (c *OpenCheck) Recount(ctx context.Context) error {
	began := time.Now()
	defer func() { c.took += time.Since(began) }()
	rows, err := c.findProcesses(ctx)
	if err != nil {
		return err
	}
	c.objects.body = map[life]bool{}
	for i, counts := range c.count(ctx, rows) {
		of := lifeOf(rows[i])
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

// findOlder dumps the heap of a process before the body if the counts suggest
// destroyed screens that no earlier check has examined. The leaks in this dump
// are recorded, but not attributed to this check.
func (c *OpenCheck) findOlder(ctx context.Context, r Row, counts map[string]int64) {
	of := lifeOf(r)
	latest, checked := c.live.latestCounts(of)
	hidden := check.Windowless(counts)
	if hidden <= 0 || checked && hidden <= check.Windowless(latest) {
		return
	}
	why := "it did not settle"
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
	c.objects.hidden[of] = fmt.Sprintf(
		"%s: had %s without a window before the body, and no heap dump could show whether they leak: %s",
		r.Process, text.Count(int(hidden), "Activity", "Activities"), text.Head(why, maxReason))
}

// findProcesses returns the running processes that the check selects.
func (c *OpenCheck) findProcesses(ctx context.Context) ([]Row, error) {
	c.readings++
	if err := c.live.discover(ctx, []*session{c.session}); err != nil {
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
		c.objects.running[lifeOf(r)] = true
	}
	return out, err
}

func (c *OpenCheck) watches(name string) bool {
	return len(c.options.Patterns) == 0 ||
		slices.ContainsFunc(c.options.Patterns, func(p capture.Pattern) bool { return p.Match(name) })
}

func lifeOf(r Row) life {
	return life{r.Device, r.User, r.Name, r.PID, r.Start}
}

// objectCount is the result of counting the objects of one process.
type objectCount struct {
	objects map[string]int64
	err     error
}

// maxConcurrentCounts bounds how many processes of one device are counted at
// the same time, because system_server takes part in every count.
const maxConcurrentCounts = 3

// count counts the objects of processes.
func (c *OpenCheck) count(ctx context.Context, rows []Row) []objectCount {
	out := make([]objectCount, len(rows))
	slots := make(chan struct{}, maxConcurrentCounts)
	var wg sync.WaitGroup
	for i, r := range rows {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			out[i].objects, out[i].err = c.live.Objects(ctx, r.Device, r.Process)
		})
	}
	wg.Wait()
	c.readings += len(rows)
	return out
}

// Collect reads the processes after the body. It counts their objects. If the
// counts grew, or if CheckOptions.Heap is set, it waits for the app to settle,
// counts again, and dumps the heap. Call it right after the body, before the
// suite tears anything down. It may be called again after another attempt of
// the body; findings of earlier attempts are kept.
func (c *OpenCheck) Collect(ctx context.Context) error {
	began := time.Now()
	defer func() { c.took += time.Since(began) }()
	rows, err := c.findProcesses(ctx)
	if err != nil {
		return fmt.Errorf("check %s: %w", text.Quote(c.options.Name, maxMarkShown), err)
	}
	for i, after := range c.count(ctx, rows) {
		c.merge(c.collect(ctx, rows[i], after))
	}
	for of := range c.objects.body {
		if !slices.ContainsFunc(rows, func(r Row) bool { return r.User == of.user && r.Name == of.name }) {
			c.merge(record.CheckedProcess{
				User: of.user, Process: of.name, PID: of.pid, Verdict: record.VerdictNotChecked,
				Leaks: []record.CheckedLeak{}, Before: check.Keep(c.objects.before[of]),
				Text: of.name + ": not checked: it ended during the body, and its heap is gone"})
		}
	}
	return nil
}

// merge adds the findings of a process to those of an earlier attempt.
func (c *OpenCheck) merge(p record.CheckedProcess) {
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
		p.Text = p.Process + ": " + leakVerb(p.Verdict) + check.Describe(p.Leaks) + ", over several attempts"
	}
	*have = p
}

// leakVerb returns the beginning of the message about a process that leaks.
func leakVerb(v record.CheckVerdict) string {
	if v == record.VerdictKnown {
		return "only accepted leaks: "
	}
	return "leaks "
}

// collect judges one process after the body.
func (c *OpenCheck) collect(ctx context.Context, r Row, after objectCount) record.CheckedProcess {
	of := lifeOf(r)
	before, known := c.objects.before[of]
	if !known { // the body did not run, or the counts before it are missing
		before, known = c.live.latestCounts(of)
	}
	p := record.CheckedProcess{
		User: r.User, Process: r.Name, PID: r.PID, Before: check.Keep(before), After: check.Keep(after.objects),
		Leaks: []record.CheckedLeak{},
	}
	check.Judge(c.objects.older[of], c.options.Known, func(string) []string { return nil })
	p.Older, c.objects.older[of] = c.objects.older[of], nil
	defer func() { // the next attempt and the next check start from these counts
		c.objects.before[of] = after.objects
		c.live.setLatestCounts(of, after.objects)
	}()
	switch {
	case after.err != nil:
		p.Verdict, p.Text = record.VerdictInconclusive, r.Name+": its objects could not be counted: "+
			text.Head(after.err.Error(), maxReason)
		return p
	case !c.suspicious(before, known, after.objects):
		p.Verdict, p.Text = c.withoutDump(r, known)
		return p
	}
	p.Settled, _ = c.live.Settle(ctx, r.Device, r.Process)
	settled := c.count(ctx, []Row{r})[0]
	if settled.err == nil {
		after = settled
		p.After = check.Keep(after.objects)
	}
	if !c.suspicious(before, known, after.objects) {
		if p.Verdict, p.Text = c.withoutDump(r, known); p.Verdict == record.VerdictPass {
			p.Text = r.Name + ": objects still in use at the end of the body were released"
		}
		return p
	}
	c.dump(ctx, r, &p, before)
	return p
}

// withoutDump returns the verdict on a process whose heap need not be dumped.
func (c *OpenCheck) withoutDump(r Row, known bool) (record.CheckVerdict, string) {
	of := lifeOf(r)
	switch err := c.objects.uncounted[of]; {
	case c.objects.hidden[of] != "":
		return record.VerdictInconclusive, c.objects.hidden[of]
	case c.objects.restarted(of) != 0:
		return record.VerdictInconclusive, fmt.Sprintf("%s: restarted during the body (pid %d, then %d): "+
			"the heap of pid %[2]d is gone and was not checked", r.Name, c.objects.restarted(of), r.PID)
	case err != nil:
		return record.VerdictInconclusive, r.Name + ": its objects could not be counted before the body: " +
			text.Head(err.Error(), maxReason)
	case known:
		return record.VerdictPass, r.Name + ": no more objects than before"
	}
	return record.VerdictPass, r.Name + ": not counted before the body; it has at most one screen"
}

// restarted returns the pid of the life that was running before the body and
// was replaced by this one, or 0 if there is none.
func (c *objectChanges) restarted(now life) int {
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

// suspicious reports whether a heap dump is needed: object counts grew, or more
// Activities have no window. The second condition is needed because a body that
// closes an open screen does not raise the counts, even if the screen leaks.
func (c *OpenCheck) suspicious(before map[string]int64, known bool, after map[string]int64) bool {
	switch {
	case c.options.Heap:
		return true
	case known && before != nil:
		return len(check.Rose(before, after)) > 0 || check.Windowless(after) > max(0, check.Windowless(before))
	}
	return check.MayHoldDestroyed(after)
}

// dump judges a process by a heap dump.
func (c *OpenCheck) dump(ctx context.Context, r Row, p *record.CheckedProcess, before map[string]int64) {
	rose := ""
	switch rises := check.Rose(before, p.After); {
	case len(rises) > 0:
		rose = "; " + check.Text(rises)
	case before != nil && check.Windowless(p.After) > max(0, check.Windowless(before)):
		rose = fmt.Sprintf("; Activities without a window %d -> %d", max(0, check.Windowless(before)),
			check.Windowless(p.After))
	}
	d, err := c.live.Diagnose(ctx, r.Device, r.Process, "dump")
	c.readings++
	p.Folder = d.Folder
	if err == nil {
		err = dumpError(d)
	}
	if err != nil {
		p.Verdict, p.Text = record.VerdictInconclusive,
			fmt.Sprintf("%s: no heap dump could show whether something leaks: %s%s", r.Name,
				text.Head(err.Error(), maxReason), rose)
		return
	}
	seen := c.live.seenOf(lifeOf(r))
	first := !seen.Dumped()
	p.Leaks = seen.New(d.Leaks)
	p.Verdict = check.Judge(p.Leaks, c.options.Known, c.live.traces(d))
	p.Text = r.Name + ": " + c.dumpText(p, d, rose)
	if first && len(p.Leaks) > 0 && before["Activities"] > 0 {
		p.Text += "; first heap dump of this process: some leaks may be older than this check"
	}
	if p.Verdict != record.VerdictLeak && d.LeaksOmitted > 0 {
		p.Verdict, p.Text = record.VerdictInconclusive,
			fmt.Sprintf("%s: its heap has %d leaks, and only the %d largest were compared with earlier ones%s", r.Name,
				len(d.Leaks)+d.LeaksOmitted, len(d.Leaks), rose)
	}
	if p.Verdict == record.VerdictPass && d.Undecided != "" {
		p.Verdict, p.Text = record.VerdictInconclusive, r.Name+": the heap dump cannot show whether something leaks: "+
			d.Undecided+rose
	}
}

func (c *OpenCheck) dumpText(p *record.CheckedProcess, d record.Diagnosis, rose string) string {
	leaks := slices.DeleteFunc(slices.Clone(p.Leaks),
		func(l record.CheckedLeak) bool { return l.Known != "" && p.Verdict == record.VerdictLeak })
	switch {
	case p.Verdict == record.VerdictLeak, p.Verdict == record.VerdictKnown:
		return leakVerb(p.Verdict) + check.Describe(leaks) + rose
	case len(d.Leaks) > 0:
		return "no new leak in its heap" + rose
	}
	return "no leak in its heap: everything found is in use" + rose
}

// dumpError returns the reason why a diagnosis has no analyzed heap dump, or
// nil if it has one.
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
	return errors.New("the device returned none")
}

// latestCounts returns the object counts of a life at the end of the latest
// check.
func (w *LiveRun) latestCounts(of life) (map[string]int64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts, ok := w.latest[of]
	return counts, ok
}

func (w *LiveRun) setLatestCounts(of life, counts map[string]int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.latest) >= maxSeen {
		clear(w.latest)
	}
	w.latest[of] = counts
}

// maxSeen bounds the number of lives whose dumps are remembered.
const maxSeen = 10_000

// seenOf returns the leaks that were found in earlier heap dumps of a life.
func (w *LiveRun) seenOf(of life) *check.Seen {
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

// maxAnalysis bounds the analysis file that is read again for a trace, in
// bytes.
const maxAnalysis = 64 << 20

// traces returns a function that maps the key of a leak to its leak trace. The
// record contains the first ten leak traces. All other traces are read from the
// analysis file.
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

// readTraces reads the leak traces of an analysis. If the file cannot be read,
// the result is empty.
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
		_ = reporters.WriteLeak(&b, &report.Leaks[i]) // a Builder never fails
		out[report.Leaks[i].Key] = strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	}
	return out
}

// Skip excludes the check from judgment. Its findings are still recorded, so a
// later check does not report them as its own.
func (c *OpenCheck) Skip(reason string) { c.skipped = text.Head(reason, maxReason) }

// Drop ends a check without recording it.
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

// Close ends, judges and records the check. outcome and stack describe the spec
// or test itself. A second call returns the same result.
func (c *OpenCheck) Close(ctx context.Context, outcome, stack string) (record.Check, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return *c.closed, c.closeErr
	}
	windows, err := c.window.Close()
	c.closeErr = errors.Join(err, c.awaitDeaths(ctx))
	out := record.Check{
		Name: c.options.Name, Type: c.options.Type, Location: c.options.Location, Device: c.session.dev.Serial(),
		Window: c.window.number, T: c.began,
		Outcome: outcome, Stack: truncateStack(stack), Processes: []record.CheckedProcess{}, Readings: c.readings,
		Duration: record.Round(c.took.Seconds(), 3),
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
	out.Verdict, out.Text = overallVerdict(out.Processes)
	if c.unread != "" && out.Verdict == record.VerdictNotChecked {
		out.Text = c.unread
	}
	if c.skipped != "" {
		out.Verdict, out.Text = record.VerdictSkipped, "skipped: "+c.skipped
	}
	if err == nil {
		err = c.session.ask(func() { c.session.recordEvent(record.Event{Event: "check", Text: out.Text, Check: &out}) })
	}
	c.closed, c.closeErr = &out, errors.Join(c.closeErr, err)
	return out, c.closeErr
}

// truncateStack truncates a stack at the end of a line.
func truncateStack(stack string) string {
	if len(stack) <= maxStack {
		return stack
	}
	return stack[:strings.LastIndexByte(stack[:maxStack], '\n')+1] + "[truncated]"
}

// overallVerdict derives the verdict of a check from the verdicts of its
// processes.
func overallVerdict(processes []record.CheckedProcess) (record.CheckVerdict, string) {
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

// judgeWindow adds the verdicts on the memory growth within the span, if the
// check requests them.
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
			c.addVerdict(x.User, x.Process, x.PID, verdict, words)
		}
	}
	for _, p := range slices.Clone(c.found) {
		if c.options.Trend && !sampled[capture.Key{User: p.User, Name: p.Process}] {
			c.addVerdict(p.User, p.Process, p.PID, record.VerdictInconclusive,
				fmt.Sprintf("%s: inconclusive: not sampled during the check; a trend needs %.0f minutes", p.Process,
					minTrendSpan.Minutes()))
		}
	}
}

// addLeaking adds the processes that were LEAKING at any time during the check,
// if the check requests this. It runs on the session's goroutine.
func (c *OpenCheck) addLeaking(from, to float64) {
	if !c.options.Live {
		return
	}
	for _, x := range c.session.subjects.order {
		if c.watches(x.Name) && x.Account.WasLeaking(from, to) {
			c.addVerdict(x.User, x.Key().Name, x.PID, record.VerdictLeak, x.Key().Name+": was LEAKING during the check")
		}
	}
}

// trend returns the verdict on the memory growth of one process within the
// span.
func (c *OpenCheck) trend(x record.WindowProcess) (record.CheckVerdict, string) {
	switch {
	case !c.options.Trend:
	case x.Gate == detector.Leak:
		return record.VerdictLeak, fmt.Sprintf("%s: %s", x.Process, x.Reason)
	case x.Gate == detector.Inconclusive && x.Duration < minTrendSpan.Seconds():
		return record.VerdictInconclusive, fmt.Sprintf("%s: inconclusive: only %.0f of "+
			"the %.0f minutes that a trend needs", x.Process, x.Duration/60, minTrendSpan.Minutes())
	case x.Gate == detector.Inconclusive:
		return record.VerdictInconclusive, fmt.Sprintf("%s: inconclusive: %s", x.Process, x.Reason)
	}
	return record.VerdictPass, ""
}

// minTrendSpan is the shortest span for which a trend can be judged.
const minTrendSpan = 30 * time.Minute

// addVerdict adds a verdict on a process to the check, even if the process was
// not counted.
func (c *OpenCheck) addVerdict(user int, name string, pid int, verdict record.CheckVerdict, words string) {
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
	c.found = append(c.found,
		&record.CheckedProcess{
			User: user, Process: name, PID: pid, Verdict: verdict, Text: words, Leaks: []record.CheckedLeak{},
		})
}

// awaitDeaths waits until it is known why processes of the check have ended. A
// device takes some seconds to report the reasons.
func (c *OpenCheck) awaitDeaths(ctx context.Context) error {
	step := max(c.session.clock.real(deathDelay)/4, time.Millisecond)
	for end := time.Now().Add(c.session.clock.real(deathDelay) + deathTimeout); time.Now().Before(end); {
		open := false
		err := c.session.ask(func() { open = c.session.deaths.open() })
		if err != nil || !open {
			return err
		}
		if err := sleep(ctx, step); err != nil {
			return nil // the death is recorded without its reason
		}
	}
	return nil
}

// addEnds adds the deaths and faults of processes within the span, including
// those of processes that were not read.
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
		i := slices.IndexFunc(c.found,
			func(p *record.CheckedProcess) bool { return p.User == x.User && p.Process == x.Key().Name })
		if i < 0 {
			c.addVerdict(x.User, x.Key().Name, x.PID, record.VerdictNotChecked,
				x.Key().Name+": not checked: it ended before its objects were counted")
			i = len(c.found) - 1
		}
		c.found[i].Deaths, c.found[i].Faults = deaths, faults
	}
}

// ran reports whether a process was alive, with the given pid, during the
// check. The death of an earlier life may be read late.
func (c *objectChanges) ran(x *subject, pid int) bool {
	for of := range c.running {
		if of.user == x.User && of.name == x.Key().Name && of.pid == pid {
			return true
		}
	}
	return false
}
