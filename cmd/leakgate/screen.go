package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/reporters"
)

// screen shows a run while it goes on: on a terminal a table that is drawn again
// in place with the events above it, elsewhere one plain line an event.
type screen struct {
	mu      sync.Mutex
	w       io.Writer
	width   func() int // columns; 0 where w is no terminal
	several bool
	rows    map[string][]monitor.Row
	drawn   int // lines of the table that stand on the terminal
	last    time.Time
}

const (
	// redraw is the least real time between two drawings of the table.
	redraw = 250 * time.Millisecond
	// heartbeat is the real time between two tables in a log, where nothing is
	// drawn in place: a night without events still shows that it goes on.
	heartbeat = 10 * time.Minute
)

func newScreen(w io.Writer, o monitor.Options) *screen {
	return &screen{w: w, width: terminalWidth(w), several: len(o.Devices) > 1, rows: map[string][]monitor.Row{}, last: time.Now()}
}

// terminalWidth gives the present width of the terminal behind w, 0 if there is none.
func terminalWidth(w io.Writer) func() int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func() int { return 0 }
	}
	return func() int {
		width, _, err := term.GetSize(int(f.Fd()))
		if err != nil || width < 40 {
			return 80
		}
		return width
	}
}

// Happened implements monitor.Observer.
func (s *screen) Happened(e reporters.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	fmt.Fprintln(s.w, clipLine(eventLine(e, s.several), s.width()))
	s.draw()
}

// Changed implements monitor.Observer.
func (s *screen) Changed(device string, rows []monitor.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[device] = rows
	switch terminal, quiet := s.width() > 0, time.Since(s.last); {
	case terminal && quiet >= redraw:
		s.erase()
		s.draw()
	case !terminal && quiet >= heartbeat:
		s.last = time.Now()
		for _, line := range s.table() {
			fmt.Fprintln(s.w, line)
		}
	}
}

// close draws the table a last time and leaves it there.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.erase()
	s.draw()
	s.drawn = 0
}

// erase takes the table off the terminal: up by its lines, then clear downwards
// (ECMA-48 CPL and ED).
func (s *screen) erase() {
	if s.drawn > 0 {
		fmt.Fprintf(s.w, "\x1b[%dF\x1b[J", s.drawn)
		s.drawn = 0
	}
}

func (s *screen) draw() {
	width := s.width()
	if width == 0 {
		return
	}
	s.last = time.Now()
	lines := s.table()
	for _, line := range lines {
		fmt.Fprintln(s.w, clipLine(line, width))
	}
	s.drawn = len(lines)
}

func (s *screen) table() []string {
	var devices []string
	for d := range s.rows {
		devices = append(devices, d)
	}
	slices.Sort(devices)
	lines := []string{fmt.Sprintf("%-32s %-24s %10s %9s %7s %6s %7s  %s", "PROCESS", "STATE", "MB", "MB/h", "THREADS", "NEXT", "COST", "EVIDENCE")}
	for _, d := range devices {
		for _, r := range s.rows[d] {
			lines = append(lines, tableLine(r, s.several))
		}
	}
	return lines
}

func tableLine(r monitor.Row, several bool) string {
	name := r.Process
	if several {
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
	return fmt.Sprintf("%-32s %-24s %10.1f %9s %7s %6s %5.0fms  %s",
		reporters.Printable(tail(name, 32)), stateWords(r.Verdict), r.MB, rate, threads, next, r.CostMS, reporters.Printable(r.Verdict.Because))
}

// stateWords shows LEAKING as provisional: only the end of a run decides.
func stateWords(v detector.Verdict) string {
	switch {
	case v.State == detector.Leaking && v.Kind != detector.None:
		return "LEAKING? " + v.Kind.String()
	case v.State == detector.Leaking:
		return "LEAKING (provisional)"
	}
	return v.State.String()
}

func eventLine(e reporters.Event, several bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%8s ", reporters.Span(e.T))
	if several {
		fmt.Fprintf(&b, "%s ", reporters.Printable(e.Device))
	}
	if e.Process != "" {
		fmt.Fprintf(&b, "%s ", reporters.Printable(e.Process))
	}
	switch {
	case e.Event == "state" && e.To == "LEAKING":
		fmt.Fprintf(&b, "%s -> LEAKING (provisional): ", e.From)
	case e.Event == "state":
		fmt.Fprintf(&b, "%s -> %s: ", e.From, e.To)
	default:
		fmt.Fprintf(&b, "%s: ", e.Event)
	}
	b.WriteString(reporters.Printable(e.Text))
	return b.String()
}

// clipLine cuts a line to the terminal, so that one line stays one row; width 0
// leaves it whole.
func clipLine(line string, width int) string {
	runes := []rune(line)
	if width == 0 || len(runes) < width {
		return line
	}
	return string(runes[:width-1])
}

// tail keeps the end of a long name, where processes of one app differ.
func tail(name string, n int) string {
	runes := []rune(name)
	if len(runes) <= n {
		return name
	}
	return "…" + string(runes[len(runes)-n+1:])
}
