package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leakgate/leakgate/internal/text"

	"golang.org/x/term"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

// screen shows a run in progress. On a terminal it redraws a table in place,
// one line per row, and prints the events above it. Otherwise it prints one
// line per event.
type screen struct {
	mu          sync.Mutex
	w           io.Writer
	out         *asyncWriter // closes w
	width       func() int   // columns; 0 if w is not a terminal
	textContext textContext
	color       bool // whether states have colors on a terminal
	rows        map[string][]monitor.Row
	read        map[string]time.Time // when the rows of a device were last requested
	drawn       int                  // lines of the table on the terminal
	last        time.Time
}

const (
	// redraw is the minimum time from one redraw of the table to the next.
	redraw = 250 * time.Millisecond
	// heartbeat is the interval between tables in a log, which show that the
	// run continues even if there are no events all night.
	heartbeat = 10 * time.Minute
	// logged is the maximum age of a row that is printed in a log.
	logged = time.Minute
	// maxLogLine is the maximum width of a permanent line, and maxName is the
	// maximum width of a name in an event line, both in columns. A device does
	// not limit the length of process names.
	maxLogLine = 1000
	maxName    = 64
)

func newScreen(c console, o monitor.Options) *screen {
	w := drawable(c.err)
	if c.quiet {
		w = io.Discard
	}
	out := newAsyncWriter(w)
	return &screen{
		w: out, out: out, width: terminalWidth(w), textContext: textContext{o.Policy.Name, len(o.Devices) > 1},
		color: c.colored(), rows: map[string][]monitor.Row{}, read: map[string]time.Time{}, last: time.Now(),
	}
}

// terminalWidth returns a function that returns the current width of the
// terminal that w writes to, or 0 if w is not a terminal.
func terminalWidth(w io.Writer) func() int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func() int { return 0 }
	}
	return func() int {
		width, _, err := term.GetSize(int(f.Fd()))
		if err != nil || width < 1 {
			return 80 // some terminals do not report it
		}
		return width
	}
}

// Happened implements monitor.Observer.
func (s *screen) Happened(e record.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.put(s.textContext.event(e))
	s.draw()
}

// Changed implements monitor.Observer.
func (s *screen) Changed(device string, rows func() []monitor.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := logged
	if s.width() > 0 {
		fresh = redraw
	}
	if time.Since(s.read[device]) >= fresh {
		s.rows[device], s.read[device] = rows(), time.Now()
	}
	switch terminal, quiet := s.width() > 0, time.Since(s.last); {
	case terminal && quiet >= redraw:
		s.erase()
		s.draw()
	case !terminal && quiet >= heartbeat:
		s.last = time.Now()
		for _, line := range s.table() {
			s.put(line.text)
		}
	}
}

// close draws the table one last time and leaves it on the terminal.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.draw()
	s.drawn = 0
	s.out.close()
}

// erase removes the table from the terminal: it moves the cursor up to the
// first line of the table and clears everything below (ECMA-48 CPL and ED).
func (s *screen) erase() {
	if s.drawn > 0 {
		fmt.Fprintf(s.w, "\x1b[%dF\x1b[J", s.drawn)
		s.drawn = 0
	}
}

func (s *screen) draw() {
	if s.width() == 0 {
		return
	}
	s.last = time.Now()
	lines, width := s.table(), s.width()
	for _, line := range lines {
		row := text.Row(line.text, width)
		if s.color && line.color != "" {
			row = line.color + row + "\x1b[0m"
		}
		fmt.Fprintln(s.w, row)
	}
	s.drawn = len(lines)
}

// put writes one permanent line, which may take several rows of a terminal.
func (s *screen) put(line string) { fmt.Fprintln(s.w, text.Row(line, maxLogLine)) }

// tableLine is a line of the table and its color, if any (ECMA-48 SGR).
type tableLine struct{ text, color string }

func stateColor(s detector.State) string {
	switch s {
	case detector.Leaking:
		return "\x1b[31m" // red
	case detector.Suspicious, detector.Confirming:
		return "\x1b[33m" // yellow
	}
	return ""
}

func (s *screen) table() []tableLine {
	var devices []string
	for d := range s.rows {
		devices = append(devices, d)
	}
	slices.Sort(devices)
	lines := []tableLine{
		{
			text: fmt.Sprintf("%-*s %-24s %10s %9s %7s %6s %7s  %s", nameColumns, "PROCESS", "STATE", "MB", "MB/h",
				"THREADS", "NEXT", "COST", "EVIDENCE"),
		},
	}
	for _, d := range devices {
		for _, r := range s.rows[d] {
			lines = append(lines, tableLine{s.textContext.row(r), stateColor(r.Verdict.State)})
		}
	}
	return lines
}

// nameColumns is the width of the names in the table.
const nameColumns = 32

// textContext holds the values that affect the wording of rows and events.
type textContext struct {
	policy  string
	several bool // devices
}

func (s textContext) row(r monitor.Row) string {
	name := r.Process
	if s.several {
		name += " @" + r.Device
	}
	rate, threads, next := "-", "-", "gone"
	if r.Verdict.RateKnown {
		rate = fmt.Sprintf("%+.0f", r.Verdict.Rate/detector.MB)
	}
	if r.Threads >= 0 {
		threads = fmt.Sprint(r.Threads)
	}
	if r.Present {
		next = fmt.Sprintf("%.0fs", r.Next.Seconds())
	}
	return text.Printable(fmt.Sprintf("%s %-24s %10.1f %9s %7s %6s %5.0fms  %s",
		text.Cell(name, nameColumns), reporters.DescribeState(r.Verdict.State, s.policy), r.MB, rate, threads, next,
		r.CostMS, evidenceWords(r.Verdict)))
}

func evidenceWords(v detector.Verdict) string {
	if v.State == detector.Leaking && v.Kind != detector.None {
		return reporters.DescribeKind(v.Kind) + ": " + v.Because
	}
	return v.Because
}

// shownEvents maps event types in samples.ndjson to words that are easier to
// understand in a list of events.
var shownEvents = map[string]string{"diagnose": "saved", "diagnosed": "diagnosis", "missed": "short gap"}

// event formats an event as one printable line, whatever the event contains.
func (s textContext) event(e record.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%8s ", text.Span(e.T))
	if s.several {
		fmt.Fprintf(&b, "%s ", text.TailColumns(e.Device, maxName))
	}
	if e.Process != "" {
		fmt.Fprintf(&b, "%s ", text.TailColumns(e.Process, maxName))
	}
	switch {
	case e.Event == "state" && e.From != nil && e.To != nil:
		fmt.Fprintf(&b, "%s -> %s: ", reporters.DescribeState(*e.From, s.policy),
			reporters.DescribeState(*e.To, s.policy))
	case !strings.HasPrefix(e.Text, e.Event+" "): // no name before a message such as "waiting for com.shop to start"
		fmt.Fprintf(&b, "%s: ", cmp.Or(shownEvents[e.Event], e.Event))
	}
	if e.Event == "death" && e.PID != 0 { // the next life may have been found before the reason was read
		fmt.Fprintf(&b, "pid %d, ", e.PID)
	}
	b.WriteString(e.Text)
	return text.Printable(b.String())
}
