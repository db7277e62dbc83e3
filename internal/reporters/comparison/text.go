package comparison

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// terminalColumns is the width at which lines are wrapped.
const terminalColumns = 100

// maxTextRows is the maximum number of leaks of each kind that WriteText
// writes.
const maxTextRows = 50

// WriteText writes the comparison for a terminal: the verdict first, then its
// reasons, what is worse, and the evidence for each process. Every line is
// printable.
func WriteText(w io.Writer, c *Comparison) error {
	out := &lines{}
	out.verdict(c)
	out.leaks(c)
	out.processes(c)
	out.warnings(c)
	out.next(c)
	return out.write(w)
}

// WriteRow writes one leak in full: its numbers, the position at which it is
// declared, and its trace.
func WriteRow(w io.Writer, r *Row) error {
	out := &lines{}
	out.row(0, r)
	out.numbers(2, r)
	out.facts(r)
	if len(r.Trace) > 0 {
		out.blank()
		for _, line := range r.Trace {
			out.add(inert(text.Printable(line)))
		}
	}
	return out.write(w)
}

// inert returns a line that no CI runner interprets as a command, such as
// GitHub's ::error::
// (docs.github.com/actions/reference/workflow-commands-for-github-actions).
func inert(line string) string {
	if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "::"); ok {
		return ": :" + rest
	}
	return line
}

// lines collects the lines for a terminal.
type lines struct{ list []string }

func (l *lines) add(line string) { l.list = append(l.list, strings.TrimRight(line, " ")) }

func (l *lines) blank() {
	if len(l.list) > 0 {
		l.add("")
	}
}

// wrap adds a message in lines of at most terminalColumns, unless a single word
// is longer. All lines but the first are indented further.
func (l *lines) wrap(indent int, s string) {
	line, pad := strings.Repeat(" ", indent), strings.Repeat(" ", indent+4)
	begun := false
	for _, word := range strings.Fields(text.Printable(s)) {
		if begun && text.Columns(line)+1+text.Columns(word) > terminalColumns {
			l.add(line)
			line, begun = pad, false
		}
		if begun {
			line += " "
		}
		line, begun = line+word, true
	}
	l.add(line)
}

func (l *lines) write(w io.Writer) error {
	if _, err := io.WriteString(w, strings.Join(l.list, "\n")+"\n"); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func (l *lines) verdict(c *Comparison) {
	l.wrap(0, strings.ToUpper(string(c.Verdict))+": "+c.headline())
	if cost := c.cost(onTerminal); cost != "" {
		l.wrap(0, cost)
	}
	switch {
	case c.unmatched(onTerminal) != "":
		l.wrap(0, c.unmatched(onTerminal))
	case c.firstDay():
		l.wrap(0,
			"There is no baseline yet, so no leak counts against this run: record one with `leakgate baseline update`.")
	case c.Base.Runs == 0:
		l.wrap(0, "Not compared with earlier runs.")
	case c.Base.Runs < fewBaseRuns:
		l.wrap(0,
			fmt.Sprintf("Compared with %s: until there are %d, only new leaks can fail the gate.",
				c.baseRuns(onTerminal),
				fewBaseRuns))
	default:
		l.wrap(0, "Compared with "+c.baseRuns(onTerminal)+".")
	}
	if c.Informational {
		l.add("The rules are informational and never fail the run.")
	}
	if len(c.Reasons) == 0 {
		return
	}
	l.blank()
	l.add("reasons:")
	for _, r := range c.Reasons[:min(len(c.Reasons), maxTextRows)] {
		l.wrap(2, r.Rule+": "+r.Text)
	}
	l.more(len(c.Reasons) - maxTextRows)
}

func (l *lines) more(n int) {
	if n > 0 {
		l.add(fmt.Sprintf("  and %s more", text.Grouped(int64(n))))
	}
}

// leaks lists the leaks that are worse and the leaks that cannot be judged yet.
// Other leaks are only counted, but if there is no base, all leaks are listed.
func (l *lines) leaks(c *Comparison) {
	var list []*Row
	rest := map[Status]int{}
	pending := c.unjudged()
	rest[Known] -= len(pending)
	for i := range c.Leaks {
		if r := &c.Leaks[i]; r.shown() || r.Status == Present {
			list = append(list, r)
		} else {
			rest[r.Status]++
		}
	}
	if len(list) > 0 {
		l.blank()
		l.add("leaks:")
	}
	for _, r := range list[:min(len(list), maxTextRows)] {
		l.row(2, r)
		l.numbers(8, r)
		if r.Evidence != "" {
			l.wrap(8, r.Evidence)
		}
		if where := r.declaredAt(c); where != "" {
			l.wrap(8, where)
		}
	}
	l.more(len(list) - maxTextRows)
	l.pending(pending)
	var parts []string
	for _, s := range Statuses() {
		if n := rest[s]; n > 0 {
			parts = append(parts, text.Grouped(int64(n))+" "+string(s))
		}
	}
	if c.LeaksOmitted > 0 {
		parts = append(parts, text.Grouped(int64(c.LeaksOmitted))+" that do not fit in "+FileName)
	}
	if len(parts) > 0 {
		l.blank()
		l.add("other leaks: " + strings.Join(parts, ", "))
	}
}

// pending lists the leaks whose growth cannot be judged yet.
func (l *lines) pending(rows []*Row) {
	if len(rows) > 0 {
		l.blank()
	}
	for _, r := range rows[:min(len(rows), maxTextRows)] {
		l.wrap(0, r.pending(onTerminal))
	}
	l.more(len(rows) - maxTextRows)
}

// row writes the name of a leak.
func (l *lines) row(indent int, r *Row) {
	status := string(r.Status)
	if r.Fails {
		status = "FAIL " + status
	}
	line := fmt.Sprintf("%s: %s", status, r.name())
	if kind := r.kind(); kind != "" {
		line += ", " + kind
	}
	if r.HeldBy != "" {
		line += ", held by " + r.HeldBy
	}
	if r.Type != whatTrend {
		line += ", in " + r.Process
	}
	l.wrap(indent, line+", key "+r.shortKey())
}

// numbers writes the numbers of a leak in base and head.
func (l *lines) numbers(indent int, r *Row) {
	var parts []string
	if f := r.left(); f.head != "" {
		parts = append(parts, f.onTerminal()+" "+perUnit(r.Unit))
	}
	if f := r.each(); f.head != "" {
		parts = append(parts, f.onTerminal()+" each")
	}
	if now := r.now(); now != "" {
		parts = append(parts, now+" in all")
	}
	if len(parts) > 0 {
		l.wrap(indent, strings.Join(parts, ", "))
	}
}

func (f figure) onTerminal() string {
	if f.base == "" {
		return f.head
	}
	return f.base + " -> " + f.head
}

// declaredAt returns the position at which the suspect is declared and how the
// change relates to it.
func (r *Row) declaredAt(c *Comparison) string {
	s := r.introducer()
	if s == nil {
		return ""
	}
	_, change := c.change()
	where := fmt.Sprintf("%s is declared in %s", s.reference(), s.line())
	switch s.role() {
	case roleAdded:
		return where + ": " + change + " adds this line"
	case roleChanged:
		return where + ": " + change + " changes this file"
	case roleUnchanged:
		return where + ": not changed by " + change
	}
	return where
}

func (s *Suspect) line() string {
	if s.Line == 0 {
		return s.File
	}
	return fmt.Sprintf("%s:%d", s.File, s.Line)
}

// facts writes the other known facts about a leak.
func (l *lines) facts(r *Row) {
	for _, part := range [][2]string{
		{"class", r.Class}, {"key", r.Key}, {"fingerprints", strings.Join(r.Fingerprints, ", ")},
		{"evidence", r.Evidence}, {"why " + string(r.Status), r.StatusReason},
		{"compared with the pinned release", r.Pinned}, {"device", r.Device},
		{"code owners", strings.Join(r.Owners, ", ")},
		{"previous key", r.MovedFrom}, {"previous class", r.MovedClass},
	} {
		if part[1] != "" {
			l.wrap(2, part[0]+": "+part[1])
		}
	}
	if len(r.Counts) > 0 {
		l.wrap(2, "objects at each mark: "+text.Series(r.Counts))
	}
	if len(r.Bytes) > 0 {
		l.wrap(2, "bytes at each mark: "+text.Series(r.Bytes))
	}
	for _, c := range r.Classes {
		l.wrap(2, fmt.Sprintf("%s: %s -> %s objects", c.Class, text.Grouped(c.Base), text.Grouped(c.Head)))
	}
	for i := range r.Suspects {
		s := &r.Suspects[i]
		l.wrap(2, fmt.Sprintf("suspect: %s, %s", s.reference(), cmp.Or(s.line(), "its file was not found")))
	}
	if seen := r.firstSeen(onTerminal); seen != "" {
		l.wrap(2, "first seen "+seen)
	}
	if a := r.Accepted; a != nil {
		l.wrap(2, "accepted "+accepted(onTerminal, a))
	}
}

func (l *lines) processes(c *Comparison) {
	if len(c.Processes) == 0 {
		return
	}
	l.blank()
	l.add("processes:")
	for i := range c.Processes[:min(len(c.Processes), maxTextRows)] {
		p := &c.Processes[i]
		line := p.Process + ": " + c.evidence(p)
		if base, head := p.after(); head != "" {
			line += "; reachable heap " + head
			if base != "" {
				line += " (" + base + " in the base runs)"
			}
		}
		l.wrap(2, line)
	}
	l.more(len(c.Processes) - maxTextRows)
}

func (l *lines) warnings(c *Comparison) {
	if len(c.Warnings) > 0 {
		l.blank()
	}
	for _, w := range c.Warnings {
		l.wrap(0, "warning: "+w)
	}
}

// next writes the commands to run next.
func (l *lines) next(c *Comparison) {
	first := c.first((*Row).shown)
	if first == nil {
		return
	}
	l.blank()
	l.add(fmt.Sprintf("see it:    leakgate show %s %s", shellWord(c.Head.Run, "RUN"),
		shellWord(first.shortKey(), "KEY")))
	if leak := c.first((*Row).acceptable); leak != nil {
		l.add("accept it: " + leak.acceptCommand())
	}
}
