package comparison

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

// MarkdownOptions are optional inputs for a Markdown page.
type MarkdownOptions struct {
	// Key separates the comments of several jobs on one pull request; see
	// CommentMarker.
	Key string
	// RepoURL is the URL of the repository. HeadSHA is the commit that is used
	// in links to lines. If either is empty, the page contains no links to
	// lines.
	RepoURL string
	HeadSHA string
	// RunURL is the URL of the CI run.
	RunURL string
	// Download is the command that downloads the run directory. RunDir is the
	// directory that the command creates; the default is the name of the run.
	Download string
	RunDir   string
	// Limit is the maximum size of the page in bytes. 0 means 60,000; values
	// below 20,000 are raised to 20,000.
	Limit int
	// Tool is the name and version of the program; the default is the program
	// that the comparison names.
	Tool string
}

// defaultLimit is the maximum size of a page in bytes: the body of a GitHub
// comment may have 65,536 characters.
const defaultLimit = 60_000

const minLimit = 20_000

// These are the bounds of a page.
const (
	maxShownRows  = 30
	maxDetails    = 30
	maxGroupRows  = 30
	maxProcesses  = 30
	maxUnchecked  = 8
	maxTraceLines = 60
	maxDevices    = 3
)

// CommentMarker returns the first line of a comment, which identifies the
// comment. Different keys have different markers. The marker is an HTML
// comment, and no key can close it.
func CommentMarker(key string) string {
	key = cmp.Or(key, "default")
	if len(key) > 100 {
		sum := sha256.Sum256([]byte(key))
		key = key[:60] + "~" + hex.EncodeToString(sum[:8])
	}
	var b strings.Builder
	for i := range len(key) {
		c := key[i]
		switch {
		case '0' <= c && c <= '9', 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', c == '.', c == '_', c == '~', c == '-' &&
			i > 0 && key[i-1] != '-':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return "<!-- leakgate:comment key=" + b.String() + " v=1 -->"
}

// Markdown returns the comparison as GitHub and GitLab show it in a pull
// request or job summary. It is valid GitHub Flavored Markdown of at most Limit
// bytes, whatever the comparison contains. To stay within the limit, entire
// parts are dropped, but never the verdict, the reasons or the commands.
func Markdown(c *Comparison, o MarkdownOptions) string {
	if o.Limit <= 0 {
		o.Limit = defaultLimit
	}
	o.Limit = max(o.Limit, minLimit)
	c = c.published()
	p := &page{c: c, o: o, limit: o.Limit}
	p.add(CommentMarker(o.Key) + "\n" + p.heading() + "\n")
	if c.nothingWorse() {
		p.short()
	} else {
		p.full()
	}
	p.add(p.footer())
	return p.fit()
}

// page is a page of Markdown under construction.
type page struct {
	c     *Comparison
	o     MarkdownOptions
	limit int
	parts []part
	// omitted lists what is not on the page: skipped items, with their number,
	// and the parts that do not fit.
	omitted []omission
}

// part is a piece of the page that is either kept or dropped as a whole.
type part struct {
	text string
	// rank is 0 for parts that always stay; the part with the highest rank is
	// dropped first.
	rank int
	omission
}

// omission describes something that is not on the page.
type omission struct {
	what string
	n    int
}

// These are the ranks of parts, in the order in which they are kept.
const (
	rankUnjudged = iota + 1
	rankPresent
	rankProcesses
	rankDetails
	rankAccepted = rankDetails + maxDetails + iota
	rankMoved
	rankGone
	rankTransient
	rankShrunk
	rankKnown
)

func (p *page) add(text string) {
	if text != "" {
		p.parts = append(p.parts, part{text: text})
	}
}

func (p *page) addPart(text string, rank, n int, what string) {
	if text != "" {
		p.parts = append(p.parts, part{text, rank, omission{what, n}})
	}
}

// omit counts items that are skipped because they exceed a limit.
func (p *page) omit(n int, what string) {
	if n > 0 {
		p.omitted = append(p.omitted, omission{what, n})
	}
}

// room is the part of the limit that is reserved for the note about omissions.
const room = 600

// fit drops parts until the page is within its limit. It inserts a list of the
// dropped parts before the last two parts, which are the commands and the
// footer.
func (p *page) fit() string {
	size := room
	for _, part := range p.parts {
		size += len(part.text) + 1
	}
	for size > p.limit {
		last := 0
		for i := range p.parts {
			if p.parts[i].rank >= p.parts[last].rank {
				last = i
			}
		}
		if p.parts[last].rank == 0 {
			break
		}
		size -= len(p.parts[last].text) + 1
		p.omitted = append(p.omitted, p.parts[last].omission)
		p.parts = slices.Delete(p.parts, last, last+1)
	}
	var out []string
	for _, part := range p.parts {
		out = append(out, part.text)
	}
	if note := p.omissions(); note != "" {
		out = slices.Insert(out, max(len(out)-2, 0), note)
	}
	return strings.Join(out, "\n")
}

// omissions lists what is not on the page and where to find it.
func (p *page) omissions() string {
	p.omit(p.c.LeaksOmitted, "leaks that do not fit in gate.json")
	if len(p.omitted) == 0 {
		return ""
	}
	var kinds []string
	sum := map[string]int{}
	for _, o := range p.omitted {
		if sum[o.what] == 0 {
			kinds = append(kinds, o.what)
		}
		sum[o.what] += o.n
	}
	for i, what := range kinds {
		kinds[i] = text.Grouped(int64(sum[what])) + " " + what
	}
	where := "See `gate.json` in the run directory"
	if to := address(p.o.RunURL); to != "" {
		where += ", from [the run](" + to + ")"
	}
	return fmt.Sprintf("Not shown here: %s. %s.\n", strings.Join(kinds, "; "), where)
}

// icons are the symbols of the verdicts.
var icons = map[Result]string{Pass: "✅", Fail: "❌", Neutral: "⚪"}

func (p *page) heading() string {
	app := ""
	if p.c.Head.App != "" {
		app = " " + inLine.code(p.c.Head.App, maxName)
	}
	return fmt.Sprintf("### %s leakgate%s: %s", icons[p.c.Verdict], app, inLine.prose(p.c.headline(), maxSentence))
}

// short writes the body of the page if nothing is worse.
func (p *page) short() {
	counts := p.counts()
	if counts == "" {
		counts = "no leaks"
	}
	p.add(fmt.Sprintf("%s: %s.\n", p.compared(), counts))
	for _, g := range groups {
		if g.status == Gone {
			p.group(g)
		}
	}
	p.unjudged()
	p.add(p.processes())
	p.add(p.unchecked())
	p.add(p.see(""))
}

// counts returns the numbers of leaks by status.
func (p *page) counts() string {
	var parts []string
	for _, s := range Statuses() {
		n := 0
		for i := range p.c.Leaks {
			if p.c.Leaks[i].Status == s {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, text.Grouped(int64(n))+" "+string(s))
		}
	}
	return strings.Join(parts, ", ")
}

// compared describes what the run was compared with.
func (p *page) compared() string {
	if p.c.Base.Runs == 0 {
		return "Not compared with earlier runs"
	}
	return "Compared with " + p.c.baseRuns(inLine)
}

// baseRuns describes the runs of the base.
func (c *Comparison) baseRuns(m markup) string {
	out := text.Count(c.Base.Runs, "run", "runs")
	if c.Base.Branch != "" {
		out += " of " + m.code(c.Base.Branch, maxName)
	}
	var more []string
	if c.Base.Commit != "" {
		newest := "newest " + m.code(shortCommit(c.Base.Commit), maxName)
		if !c.Base.Time.IsZero() {
			newest += " of " + day(c.Base.Time)
		}
		more = append(more, newest)
	}
	if c.Base.Behind != nil {
		more = append(more, behind(*c.Base.Behind))
	}
	if n := c.Base.Observed; n > 0 {
		more = append(more, text.Count(n, "failed run only excuses its own leaks",
			"failed runs only excuse their own leaks"))
	}
	if len(more) > 0 {
		out += " (" + strings.Join(more, ", ") + ")"
	}
	if c.Base.Pinned != "" {
		out += fmt.Sprintf(" and %s of release %s", text.Count(c.Base.PinnedRuns, "run", "runs"),
			m.code(c.Base.Pinned, maxName))
	}
	return out
}

func behind(commits int) string {
	if commits == 0 {
		return "at the merge base"
	}
	return text.Count(commits, "commit", "commits") + " behind the merge base"
}

func day(t time.Time) string { return t.UTC().Format("2 Jan 2006") }

// full writes the body of the page if something is worse, or if nothing could
// be compared.
func (p *page) full() {
	if cost := p.c.cost(inLine); cost != "" {
		p.add(cost + "\n")
	}
	p.add(p.notes())
	p.add(p.reasons())
	p.rows()
	p.unjudged()
	p.addPart(p.processes(), rankProcesses, len(p.c.Processes), "processes")
	p.add(p.unchecked())
	for _, g := range groups {
		p.group(g)
	}
	p.add(p.commands())
}

// maxPending is the maximum number of lines about leaks that cannot be judged
// yet.
const maxPending = 10

// unjudged lists the leaks whose growth cannot be judged yet.
func (p *page) unjudged() {
	rows := p.c.unjudged()
	var b strings.Builder
	for _, r := range rows[:min(len(rows), maxPending)] {
		b.WriteString("- " + r.pending(inLine) + "\n")
	}
	const what = "leaks that are not judged yet"
	p.addPart(b.String(), rankUnjudged, min(len(rows), maxPending), what)
	p.omit(len(rows)-maxPending, what)
}

// fewBaseRuns is the number of runs below which only a new leak can fail.
const fewBaseRuns = 3

// notes explains a verdict that is not a normal pass or failure.
func (p *page) notes() string {
	c := p.c
	var out []string
	switch {
	case c.unmatched(inLine) != "":
		out = append(out, c.unmatched(inLine))
	case c.firstDay():
		out = append(out,
			fmt.Sprintf("**There is no baseline yet**, so no leak counts against %s. The first run %s that records "+
				"one makes later runs comparable; "+
				"see `leakgate baseline update`. To accept the current leaks: `leakgate accept --current`.",
				p.changeName(), c.onBase(inLine)))
	case c.Base.Runs == 0:
		out = append(out, "There are no earlier runs to compare with, so this run is judged on its own.")
	case c.Base.Runs < fewBaseRuns:
		out = append(out,
			fmt.Sprintf("Only %s to compare with: until there are %d, only new leaks can fail the gate.",
				text.Count(c.Base.Runs, "base run", "base runs"), fewBaseRuns))
	}
	if c.Informational {
		out = append(out, "The rules are informational here and never fail the run.")
	}
	if !c.Judged {
		out = append(out, "This is not a pass: the evidence below is not sufficient for a verdict.")
	}
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, "\n\n") + "\n"
}

func (p *page) changeName() string {
	_, long := p.c.change()
	return long
}

// reasons writes a line for each violated rule and for each leak that fails,
// with its evidence. If the limit leaves no room for more, this line is all
// that the page contains about the leak.
func (p *page) reasons() string {
	var lines []string
	for _, r := range p.breaches() {
		lines = append(lines, p.breach(r))
	}
	if len(lines) == 0 {
		return ""
	}
	kept, size := 0, 0
	for kept < len(lines) && size+len(lines[kept]) <= p.limit*2/5 {
		size += len(lines[kept])
		kept++
	}
	p.omit(len(lines)-kept, "more reasons")
	return strings.Join(lines[:kept], "")
}

// breach is a cause of rule violations: the leak in row, or else the cause that
// text describes.
type breach struct {
	row           *Row
	process, text string
	rules         []string
}

// breaches combines the reasons that concern the same leak. It also adds the
// failing leaks that no reason concerns.
func (p *page) breaches() []*breach {
	var out []*breach
	of, find := map[*Row]*breach{}, p.c.finder()
	trends := map[string]bool{}
	for _, reason := range p.c.Reasons {
		row := find(reason)
		if row == nil || row.Evidence == "" || !strings.Contains(reason.Text, row.Evidence) {
			trends[reason.Process] = trends[reason.Process] || row == nil
			out = append(out, &breach{nil, reason.Process, reason.Text, []string{reason.Rule}})
			continue
		}
		if of[row] == nil {
			of[row] = &breach{row: row}
			out = append(out, of[row])
		}
		of[row].rules = append(of[row].rules, reason.Rule)
	}
	for i := range p.c.Leaks {
		r := &p.c.Leaks[i]
		// A reason that concerns an entire process is about the trend of that
		// process.
		if r.Fails && of[r] == nil && (r.Type != whatTrend || !trends[r.Process]) {
			out = append(out, &breach{row: r})
		}
	}
	return out
}

func (p *page) breach(b *breach) string {
	line := "- "
	if r := b.row; r != nil {
		line += p.evidence(r) + p.introduced(r)
	} else {
		if b.process != "" && !strings.Contains(b.text, b.process) {
			line += inLine.code(b.process, maxName) + ": "
		}
		line += inLine.prose(strings.TrimRight(b.text, ". "), maxSentence) + "."
	}
	if len(b.rules) == 0 {
		return line + "\n"
	}
	var rules []string
	for _, rule := range b.rules[:min(len(b.rules), maxFacts)] {
		rules = append(rules, inLine.code(rule, maxName))
	}
	return line + " Rule: " + strings.Join(rules, ", ") + ".\n"
}

// evidence returns one line with a leak and its evidence.
func (p *page) evidence(r *Row) string {
	line := r.title(inLine.prose(r.kind(), maxName), inLine.code(r.name(), maxName))
	if r.HeldBy != "" {
		line += ", held by " + inLine.code(r.HeldBy, maxName)
	}
	if p.c.severalProcesses() {
		line += ", in " + inLine.code(r.Process, maxName)
	}
	var shown []string
	for _, s := range []string{r.Evidence, r.StatusReason} {
		if s != "" {
			shown = append(shown, inLine.prose(s, maxSentence))
		}
	}
	if r.Pinned != "" {
		shown = append(shown, "compared with the pinned release "+inLine.prose(r.Pinned, maxSentence))
	}
	if len(shown) > 0 {
		line += ": " + strings.Join(shown, "; ")
	}
	return line + "."
}

// introduced returns a sentence about how the change relates to a leak; "" if
// this is unknown.
func (p *page) introduced(r *Row) string {
	if r.untouched() {
		return fmt.Sprintf(" No file that declares a reference on its path is changed by %s.", p.changeName())
	}
	s := r.introducer()
	if s == nil {
		return ""
	}
	switch s.role() {
	case roleAdded:
		return fmt.Sprintf(" %s adds %s.", upper(p.changeName()), p.location(s, true))
	case roleChanged:
		return fmt.Sprintf(" %s changes %s.", upper(p.changeName()), p.location(s, true))
	}
	return " Declared in " + p.location(s, true) + "."
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// location returns the line of a suspect, with a link if the repository is
// known.
func (p *page) location(s *Suspect, short bool) string {
	name := s.File
	if short {
		name = path.Base(s.File)
	}
	if s.Line > 0 {
		name = fmt.Sprintf("%s:%d", name, s.Line)
	}
	label := inLine.code(text.Tail(name, 200), 200)
	if to := fileAddress(p.o.RepoURL, p.o.HeadSHA, s.File, s.Line); to != "" {
		return "[" + label + "](" + to + ")"
	}
	return label
}

// rows writes the table of rows that are worse and a section for each leak in
// it.
func (p *page) rows() {
	var shown []*Row
	for i := range p.c.Leaks {
		if p.c.Leaks[i].shown() {
			shown = append(shown, &p.c.Leaks[i])
		}
	}
	if len(shown) == 0 {
		return
	}
	p.add(p.table(shown))
	for i, r := range shown[:min(len(shown), maxDetails)] {
		p.addPart(p.details(r, i == 0), rankDetails+i, 1, "leaks with their traces")
	}
	p.omit(len(shown)-maxDetails, "leaks with their traces")
}

// table writes a row for each leak that is worse.
func (p *page) table(shown []*Row) string {
	unit := usualUnit(shown)
	sides := p.sides()
	var b strings.Builder
	fmt.Fprintf(&b, "| | what leaks | held by | %s%s | each%s | now |\n|---|---|---|---|---|---|\n", leftTitle(unit),
		sides, sides)
	kept := 0
	for _, r := range shown[:min(len(shown), maxShownRows)] {
		row := fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", p.status(r), p.what(r), inCell.code(r.HeldBy, maxName),
			leftCell(r, unit), figureCell(r.each(), ""), cmp.Or(r.now(), unknown))
		if b.Len()+len(row) > p.limit/5 {
			break
		}
		b.WriteString(row)
		kept++
	}
	p.omit(len(shown)-kept, "rows of the table of leaks")
	after := " after the last loop"
	if p.c.ofLeakCanary() {
		after = ""
	}
	b.WriteString("\n<sub>each: retained bytes ÷ objects, which is what freeing one object would release; memory " +
		"that other objects also hold is not included. now: what all of them retain" + after +
		". A single value: no noticeable difference.</sub>\n")
	return b.String()
}

// sides returns the second line of a column title for two values.
func (p *page) sides() string {
	if p.c.Base.Runs == 0 {
		return ""
	}
	short, _ := p.c.change()
	return fmt.Sprintf("<br>%s → %s", p.c.baseName(inCell), short)
}

func (p *page) status(r *Row) string {
	word := string(r.Status)
	if r.Accepted != nil && r.Accepted.Expired {
		word += ", acceptance expired"
	}
	switch {
	case r.Fails && !p.c.Informational:
		return "❌ " + word
	case r.Fails || r.worse():
		return "⚠️ " + word
	}
	return word
}

// what returns the content of the cell that names what leaks.
func (p *page) what(r *Row) string {
	cell := inCell.code(r.name(), maxName)
	if kind := r.kind(); kind != "" {
		cell += "<br>" + inCell.prose(kind, maxName)
	}
	if r.MovedClass != "" {
		cell += "<br>was " + inCell.code(simpleName(r.MovedClass), maxName)
	}
	if p.c.severalProcesses() && r.Type != whatTrend {
		cell += "<br>in " + inCell.code(r.Process, maxName)
	}
	if len(p.c.Head.Devices) > 1 {
		cell += "<br>on " + inCell.code(p.c.deviceName(r.Device), maxName)
	}
	return cell
}

// usualUnit returns the most frequent unit among the rows.
func usualUnit(rows []*Row) string {
	count := map[string]int{}
	best := ""
	for _, r := range rows {
		if count[r.Unit]++; perUnit(r.Unit) != "" && count[r.Unit] > count[best] {
			best = r.Unit
		}
	}
	return cmp.Or(best, unitLoop)
}

func leftTitle(unit string) string {
	if unit == unitHour {
		return "growth, MB per hour"
	}
	return "leaked " + perUnit(unit)
}

func leftCell(r *Row, usual string) string {
	suffix := ""
	if r.Unit != usual {
		suffix = " " + perUnit(r.Unit)
	}
	return figureCell(r.left(), suffix)
}

func figureCell(f figure, suffix string) string {
	switch {
	case f.head == "":
		return unknown
	case f.base == "":
		return f.head + suffix
	}
	return f.base + " → **" + f.head + "**" + suffix
}

// details writes the section of one leak.
func (p *page) details(r *Row, open bool) string {
	var b strings.Builder
	attribute := ""
	if open {
		attribute = " open"
	}
	fmt.Fprintf(&b, "<details%s><summary>%s <b>%s</b> %s", attribute, p.status(r), inHTML.code(r.name(), maxName),
		inHTML.code(r.shortKey(), maxName))
	if r.Evidence != "" {
		b.WriteString(": " + inHTML.prose(r.Evidence, maxSentence))
	}
	b.WriteString("</summary>\n\n")
	for _, line := range p.facts(r) {
		b.WriteString("- " + line + "\n")
	}
	b.WriteString(p.trace(r))
	b.WriteString("\n</details>\n")
	return b.String()
}

// trace returns the trace of a leak as a code block.
func (p *page) trace(r *Row) string {
	if len(r.Trace) == 0 {
		return ""
	}
	block := "\n" + fenced("", shownTrace(r.Trace))
	if len(block) > p.limit/4 {
		return "- The trace is too long for this page: `leakgate show` prints it\n"
	}
	return block
}

// maxFacts is the maximum number of suspects, owners and classes of one leak.
const maxFacts = 5

// facts returns the known facts about a leak, one per line.
func (p *page) facts(r *Row) []string {
	out := []string{p.subject(r)}
	if r.StatusReason != "" {
		out = append(out, "Why "+string(r.Status)+": "+inLine.prose(r.StatusReason, maxSentence))
	}
	if r.Pinned != "" {
		out = append(out,
			fmt.Sprintf("Compared with release %s: %s", inLine.code(p.c.Base.Pinned, maxName),
				inLine.prose(r.Pinned, maxSentence)))
	}
	out = append(out, p.suspects(r)...)
	if len(r.Owners) > 0 {
		var owners []string
		for _, owner := range r.Owners[:min(len(r.Owners), maxFacts)] {
			owners = append(owners, inLine.code(owner, maxName))
		}
		out = append(out, "Code owner: "+strings.Join(owners, ", "))
	}
	if seen := r.firstSeen(inLine); seen != "" {
		out = append(out, "First seen "+seen)
	}
	if a := r.Accepted; a != nil {
		out = append(out, "Accepted "+accepted(inLine, a))
	}
	if r.MovedFrom != "" {
		out = append(out,
			fmt.Sprintf("Has the key %s %s, where something else holds the objects",
				inLine.code((&Row{Key: r.MovedFrom}).shortKey(), maxName), p.c.onBase(inLine)))
	}
	if len(r.Classes) > 1 {
		out = append(out, p.classes(r))
	}
	return out
}

// subject returns the full name of the leak.
func (p *page) subject(r *Row) string {
	line := inLine.code(cmp.Or(r.Class, r.name()), 200)
	if r.HeldBy != "" {
		line += ", held by " + inLine.code(r.HeldBy, 200)
	}
	if r.Type != whatTrend {
		line += ", in " + inLine.code(r.Process, maxName)
	}
	if r.Device != "" {
		line += " on " + inLine.code(p.c.deviceName(r.Device), maxName)
	}
	if r.Library {
		line += " (a known leak of the platform or a library)"
	}
	return line
}

// suspects describes where the suspect references are declared; at least one of
// them must change.
func (p *page) suspects(r *Row) []string {
	var out []string
	declared := r.declared()
	for i := range declared[:min(len(declared), maxFacts)] {
		s := &declared[i]
		does := ""
		switch s.role() {
		case roleAdded:
			does = fmt.Sprintf(": **%s adds this line**", p.changeName())
		case roleChanged:
			does = fmt.Sprintf(": **%s changes this file**", p.changeName())
		case roleUnchanged:
			does = fmt.Sprintf(": not changed by %s", p.changeName())
		}
		out = append(out,
			fmt.Sprintf("%s is declared in %s%s", inLine.code(s.reference(), maxName), p.location(s, false), does))
	}
	if r.untouched() {
		hint := "the cause is elsewhere in the change, or in a commit that the base runs do not contain"
		if n := p.c.Base.Behind; n != nil && *n > 0 {
			hint += " (they are " + behind(*n) + ")"
		}
		out = append(out,
			fmt.Sprintf("No file that declares a reference on this path is changed by %s: %s", p.changeName(), hint))
	}
	return out
}

// firstSeen returns what follows "first seen"; "" if neither the commit nor the
// time is known.
func (r *Row) firstSeen(m markup) string {
	if r.FirstSeen == nil {
		return ""
	}
	switch seen := sighted(m, r.FirstSeen); {
	case seen == unknown:
		return ""
	case strings.TrimSpace(r.FirstSeen.Commit) == "":
		return seen
	default:
		return "at " + seen
	}
}

// sighted returns the commit and day of a sighting, if known.
func sighted(m markup, s *Sighting) string {
	var parts []string
	commit := s.Commit
	if m != onTerminal {
		commit = shortCommit(commit)
	}
	if strings.TrimSpace(commit) != "" {
		parts = append(parts, m.code(commit, maxName))
	}
	if !s.Time.IsZero() {
		parts = append(parts, day(s.Time))
	}
	return cmp.Or(strings.Join(parts, ", "), unknown)
}

// accepted says until when a leak is accepted, by whom and why.
func accepted(m markup, a *Acceptance) string {
	expired := ""
	if a.Expired {
		expired = " (expired)"
	}
	return fmt.Sprintf("until %s%s by %s: %s", m.prose(a.Until, 20), expired, m.code(a.Owner, maxName),
		m.prose(a.Reason, maxSentence))
}

// classes lists the classes of a leak's objects if there are several.
func (p *page) classes(r *Row) string {
	var list []string
	for _, c := range r.Classes[:min(len(r.Classes), maxFacts)] {
		count := text.Grouped(c.Head)
		if c.Base != c.Head {
			count = text.Grouped(c.Base) + " → " + count
		}
		list = append(list, inLine.code(simpleName(c.Class), maxName)+" "+count)
	}
	if n := len(r.Classes) - maxFacts; n > 0 {
		list = append(list, fmt.Sprintf("%d more", n))
	}
	return "Objects by class: " + strings.Join(list, ", ")
}

// shownTrace returns the lines of a trace that are shown. A long trace is
// shortened to its beginning with the GC root, its end, and the lines around
// underlined references.
func shownTrace(lines []string) []string {
	if len(lines) <= maxTraceLines {
		return slices.Clone(lines)
	}
	keep := make([]bool, len(lines))
	mark := func(from, to, room int) {
		for i := max(from, 0); i < min(to, len(lines)) && room > 0; i++ {
			if !keep[i] {
				keep[i] = true
				room--
			}
		}
	}
	mark(0, 6, 6)
	mark(len(lines)-12, len(lines), 12)
	room := maxTraceLines - 24
	for i, line := range lines {
		if room > 0 && strings.Contains(line, "~~~") {
			mark(i-3, i+2, room)
			room -= 5
		}
	}
	var out []string
	skipped := 0
	for i, line := range lines {
		if !keep[i] {
			skipped++
			continue
		}
		if skipped > 0 {
			out = append(out, fmt.Sprintf("│    ... %s skipped", text.Count(skipped, "line", "lines")))
			skipped = 0
		}
		out = append(out, line)
	}
	return out
}

// processes writes the table of processes with the evidence that was judged for
// each.
func (p *page) processes() string {
	if len(p.c.Processes) == 0 {
		return ""
	}
	var b strings.Builder
	if p.c.ofLeakCanary() {
		b.WriteString("| process | evidence |\n|---|---|\n")
	} else {
		fmt.Fprintf(&b,
			"| process | reachable heap<br>at each dump | after the last loop%s | evidence |\n|---|---|---|---|\n",
			p.sides())
	}
	kept := 0
	for i := range p.c.Processes[:min(len(p.c.Processes), maxProcesses)] {
		row := p.process(&p.c.Processes[i])
		if b.Len()+len(row) > p.limit/5 {
			break
		}
		b.WriteString(row)
		kept++
	}
	p.omit(len(p.c.Processes)-kept, "processes")
	return b.String()
}

func (p *page) process(r *ProcessRow) string {
	name := inCell.code(r.Process, maxName)
	if len(p.c.Head.Devices) > 1 {
		name += "<br>on " + inCell.code(p.c.deviceName(r.Device), maxName)
	}
	evidence := inCell.prose(p.c.evidence(r), maxSentence)
	if p.c.ofLeakCanary() {
		return fmt.Sprintf("| %s | %s |\n", name, evidence)
	}
	base, head := r.after()
	after := cmp.Or(head, unknown)
	if base != "" {
		after = base + " → " + head
	}
	return fmt.Sprintf("| %s | %s | %s | %s |\n", name, cmp.Or(spark(r.Reachable), unknown), after, evidence)
}

// unchecked lists the warnings and what was not judged. The warnings come
// first, because one of them may say that the run ended early.
func (p *page) unchecked() string {
	var lines []string
	for _, w := range p.c.Warnings {
		lines = append(lines, "- "+inLine.prose(w, maxSentence)+"\n")
	}
	for i := range p.c.Processes {
		if r := &p.c.Processes[i]; !r.Judged {
			lines = append(lines,
				fmt.Sprintf("- %s: %s\n", inLine.code(r.Process, maxName),
					inLine.prose(cmp.Or(r.Trend, "no evidence"), maxSentence)))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	kept := min(len(lines), maxUnchecked)
	for kept > 1 && len(strings.Join(lines[:kept], "")) > p.limit/10 {
		kept--
	}
	p.omit(len(lines)-kept, "more warnings and processes that were not checked")
	return "**Not checked or uncertain:**\n\n" + strings.Join(lines[:kept], "")
}

// group is a folded section of leaks that need no attention.
type group struct {
	status Status
	rank   int
	open   bool
	// one and many are the words that follow a count of one or more, as in "3
	// known leaks".
	one, many string
	// note is the title of the last column.
	note string
}

var groups = []group{
	{Present, rankPresent, true, "leak in this run, not compared", "leaks in this run, not compared", "why"},
	{Accepted, rankAccepted, false, "accepted leak", "accepted leaks", "accepted"},
	{Moved, rankMoved, false, "known leak that something else now holds", "known leaks that something else now holds",
		"previous key"},
	{Known, rankKnown, false, "known leak", "known leaks", "first seen"},
	{Transient, rankTransient, false, "place that does not grow with each loop",
		"places that do not grow with each loop", "evidence"},
	{Shrunk, rankShrunk, false, "leak that became smaller", "leaks that became smaller", "why"},
	{Gone, rankGone, false, "leak is gone", "leaks are gone", "first seen"},
}

func (p *page) group(g group) {
	var rows []*Row
	for i := range p.c.Leaks {
		if r := &p.c.Leaks[i]; r.Status == g.status && !r.shown() {
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		return
	}
	kept := min(len(rows), maxGroupRows)
	rest := len(rows) - kept
	unit := usualUnit(rows)
	var b strings.Builder
	attribute := ""
	if g.open {
		attribute = " open"
	}
	fmt.Fprintf(&b,
		"<details%s><summary>%s</summary>\n\n| what leaks | held by | key | %s | now | %s "+
			"|\n|---|---|---|---|---|---|\n", attribute, text.Count(len(rows), g.one, g.many), leftTitle(unit), g.note)
	for _, r := range rows[:kept] {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", p.what(r), inCell.code(r.HeldBy, maxName),
			inCell.code(r.shortKey(), maxName), leftCell(r, unit), cmp.Or(r.now(), unknown), groupNote(r))
	}
	b.WriteString("\n")
	if rest > 0 {
		fmt.Fprintf(&b, "and %s more, in `gate.json`\n\n", text.Grouped(int64(rest)))
	}
	b.WriteString("</details>\n")
	p.addPart(b.String(), g.rank, len(rows), string(g.status)+" leaks")
}

// groupNote returns what the last column says about a leak.
func groupNote(r *Row) string {
	switch r.Status {
	case Accepted:
		if r.Accepted != nil {
			return accepted(inCell, r.Accepted)
		}
	case Moved:
		return inCell.code((&Row{Key: r.MovedFrom}).shortKey(), maxName)
	case Known, Gone:
		if r.FirstSeen != nil {
			return sighted(inCell, r.FirstSeen)
		}
	case Transient:
		return inCell.prose(cmp.Or(r.Evidence, unknown), maxSentence)
	case Shrunk, Present:
		return inCell.prose(cmp.Or(r.StatusReason, r.Evidence, unknown), maxSentence)
	}
	return unknown
}

// commands lists the next commands to run: to show a leak and to accept it.
func (p *page) commands() string {
	first := p.c.first(func(r *Row) bool { return r.shown() })
	if first == nil {
		first = p.c.first(func(*Row) bool { return true })
	}
	if first == nil {
		return p.see("")
	}
	out := p.see(shellWord(first.shortKey(), "KEY"))
	if len(p.c.Leaks) > 1 {
		out += "\nFor another leak, replace the key with the one shown above.\n"
	}
	if leak := p.c.first((*Row).acceptable); leak != nil {
		out += "\n**Intended?** Accept it until a given date, and commit the file that this changes:\n\n" +
			fenced("sh", []string{leak.acceptCommand()})
	}
	return out
}

// see returns the command that shows a leak, or the run if there is no key.
func (p *page) see(key string) string {
	if key == "" && p.o.Download == "" {
		return ""
	}
	dir := shellWord(cmp.Or(p.o.RunDir, p.c.Head.Run), "RUN")
	command := "leakgate show " + dir + " " + key
	if key == "" {
		command = "leakgate report " + dir
	}
	if p.o.Download != "" {
		command = text.Head(p.o.Download, 300) + " && " + command
	}
	return "**See it yourself:**\n\n" + fenced("sh", []string{command})
}

// footer lists the devices, builds and other inputs on which the verdict is
// based.
func (p *page) footer() string {
	c := p.c
	var parts []string
	for _, d := range c.Head.Devices[:min(len(c.Head.Devices), maxDevices)] {
		parts = append(parts, inLine.code(c.describe(&d), 120))
	}
	if n := len(c.Head.Devices) - maxDevices; n > 0 {
		parts = append(parts, fmt.Sprintf("%d more devices", n))
	}
	switch {
	case c.ofLeakCanary():
		parts = append(parts, "LeakCanary's report")
	case c.Head.Workload != "":
		parts = append(parts, "each loop: "+inLine.code(c.Head.Workload, 120))
	}
	parts = append(parts, p.builds())
	if c.Base.Store != "" {
		parts = append(parts, "baseline in "+inLine.code(c.Base.Store, 120))
	}
	if to := address(p.o.RunURL); to != "" {
		parts = append(parts, "[run]("+to+")")
	}
	parts = append(parts, inLine.prose(c.tool(p.o.Tool), maxName))
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return "<sub>" + strings.Join(parts, " · ") + "</sub>\n"
}

// describe returns the full name of a device of the run.
func (c *Comparison) describe(d *DeviceRow) string {
	name, ordinal := c.device(d.Device)
	if d.Emulator && !strings.Contains(strings.ToLower(name), "emulator") {
		name += " emulator"
	}
	name += ordinal
	if d.API > 0 {
		name += fmt.Sprintf(", API %d", d.API)
	}
	if d.ABI != "" {
		name += ", " + d.ABI
	}
	return name
}

// builds returns the names of both builds that are compared.
func (p *page) builds() string {
	c := p.c
	var parts []string
	for _, s := range []string{c.Head.App, c.Head.Variant, c.Head.Version, shortCommit(c.Head.Commit)} {
		if s != "" {
			parts = append(parts, inLine.code(s, maxName))
		}
	}
	switch {
	case c.unmatched(inLine) != "":
		return strings.Join(append(parts, "not compared with any base run"), " ")
	case c.Base.Runs == 0:
		return strings.Join(append(parts, "without a baseline"), " ")
	}
	return strings.Join(append(parts, "against", c.baseRuns(inLine)), " ")
}
