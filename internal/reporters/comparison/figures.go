package comparison

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// These are the types of rows and their units, as in gate.json.
const (
	whatLeak     = "leak"
	whatTrend    = "trend"
	whatMeasure  = "measure"
	whatNative   = "native"
	whatGraphics = "graphics"

	unitLoop  = "loop"
	unitEvent = "event"
	unitHour  = "hour"
	unitRun   = "run"
)

// These are the maximum lengths of strings within a line, in characters.
const (
	maxName     = 80
	maxSentence = 300
)

// worse reports whether a row is worse than the base.
func (r *Row) worse() bool {
	return r.Status == New || r.Status == Wider || r.Status == Grown || r.Status == Heavier
}

// shown reports whether a row belongs in the main table. A leak whose holder
// changed is shown if its class also differs, because it may be another leak.
func (r *Row) shown() bool {
	return r.Fails || r.worse() || r.Status == Moved && r.MovedClass != "" || r.Pinned != ""
}

// name returns the name of what leaks, as one word if possible.
func (r *Row) name() string {
	switch {
	case r.Type == whatTrend:
		return cmp.Or(r.Class, r.Process)
	case r.Type == whatLeak:
		return cmp.Or(simpleName(r.Class), r.shortKey())
	}
	return cmp.Or(r.Class, r.Key)
}

// kind returns the kind of problem that a row describes, or "" for a leak of
// Java objects.
func (r *Row) kind() string {
	switch r.Type {
	case whatLeak, "":
		return ""
	case whatNative:
		return "native memory"
	case whatGraphics:
		return "graphics memory"
	case whatTrend:
		return "growth over time"
	case whatMeasure:
		return "grows with each loop of a trip"
	}
	return r.Type
}

// title describes a row in a few words: its status, its kind and its name.
func (r *Row) title(kind, name string) string {
	switch {
	case kind == "":
		return string(r.Status) + " " + name
	case r.Type == whatMeasure:
		return fmt.Sprintf("%s %s, %s", r.Status, name, kind)
	}
	return fmt.Sprintf("%s %s %s", r.Status, kind, name)
}

// simpleName returns a class without its package.
func simpleName(class string) string {
	if i := strings.LastIndexByte(class, '.'); i >= 0 && i+1 < len(class) {
		return class[i+1:]
	}
	return class
}

// shortKey returns the key in a form that commands accept: hashes are shortened
// to their first 8 digits.
func (r *Row) shortKey() string {
	if len(r.Key) > 8 && wholeCommit.MatchString(r.Key) {
		return r.Key[:8]
	}
	return r.Key
}

func shortCommit(sha string) string {
	if wholeCommit.MatchString(sha) {
		return sha[:7]
	}
	return sha
}

// figure contains the displayed values of base and head; base is "" if it adds
// no information.
type figure struct{ base, head string }

// noticeable is the minimum factor by which two values must differ for both to
// be shown. The gate uses the same factor to call an object heavier.
const noticeable = 1.25

// figureOf returns head, and also base if both are displayed differently and
// differ noticeably. about is set if the status of the row refers to these
// values: any displayed difference is then enough. If head is unknown, it
// returns an empty figure.
func figureOf(s Sides, about bool, format func(float64) string) figure {
	if s.Head == nil {
		return figure{}
	}
	f := figure{head: format(*s.Head)}
	if s.Base == nil || format(*s.Base) == f.head {
		return f
	}
	low, high := min(*s.Base, *s.Head), max(*s.Base, *s.Head)
	if about || low <= 0 || high > noticeable*low {
		f.base = format(*s.Base)
	}
	return f
}

// left returns the number of objects leaked per loop or per 1,000 events, or
// the growth in MB per hour.
func (r *Row) left() figure {
	s := r.PerLoop
	if r.Status == New && s.Base == nil && s.Head != nil {
		s.Base = new(0.0)
	}
	scale := 1.0
	if r.Unit == unitEvent {
		scale = 1000
	}
	about := r.Status == New || r.Status == Grown || r.Status == Shrunk || r.Status == Gone
	return figureOf(s, about, func(x float64) string { return number(x * scale) })
}

// each returns the number of bytes that one object retains.
func (r *Row) each() figure {
	return figureOf(r.BytesEach, r.Status == Heavier, func(x float64) string { return size(x) })
}

// perUnit returns the unit that is printed after a number.
func perUnit(unit string) string {
	switch unit {
	case unitLoop:
		return "per loop"
	case unitEvent:
		return "per 1 000 events"
	case unitHour:
		return "MB per hour"
	}
	return ""
}

// number formats a rate with three significant digits.
func number(x float64) string {
	switch abs := math.Abs(x); {
	case abs >= 1000:
		return text.Grouped(int64(math.Round(min(abs, 1<<62)) * sign(x)))
	case abs > 0 && abs < 0.001:
		return "< 0.001"
	}
	return strconv.FormatFloat(roundDigits(x), 'f', -1, 64)
}

// size is like text.Size, but for computed sizes, which may exceed any real
// memory.
func size(x float64) string { return text.Size(int64(max(0, min(x, 1<<49)))) }

func sign(x float64) float64 {
	if x < 0 {
		return -1
	}
	return 1
}

// roundDigits rounds to three significant digits.
func roundDigits(x float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	if err != nil {
		return x
	}
	return rounded
}

// now returns the number of bytes that all objects of a row retain after the
// last loop.
func (r *Row) now() string {
	if r.HeadBytes == 0 {
		return ""
	}
	return text.Size(r.HeadBytes)
}

// burden is how much more memory a row costs than in the base.
type burden struct {
	row *Row
	// extra is in bytes per loop or event, or in MB per hour; formula describes
	// how it is computed.
	extra   float64
	formula string
}

// burdenOf returns the cost of a row; nil if it is unknown or zero. Objects
// whose number stays constant after the first marks do not accumulate in
// further loops.
func burdenOf(r *Row) *burden {
	if r.Unit == unitRun || r.PerLoop.Head == nil || r.Type != whatTrend && r.Type != whatMeasure && !rises(r.Counts) {
		return nil
	}
	head, base := *r.PerLoop.Head, 0.0
	if r.PerLoop.Base != nil && r.Status != New {
		base = max(*r.PerLoop.Base, 0)
	}
	b := &burden{row: r, extra: head - base}
	if r.Unit != unitHour {
		if r.BytesEach.Head == nil {
			return nil
		}
		each, was := *r.BytesEach.Head, *r.BytesEach.Head
		if r.BytesEach.Base != nil {
			was = *r.BytesEach.Base
		}
		b.extra, b.formula = head*each-base*was, formula(r.Unit, head, base, each, was)
	}
	if b.extra <= 0 {
		return nil
	}
	return b
}

// rises reports whether the number of objects increases at every mark.
func rises(counts []int64) bool {
	for i := 1; i < len(counts); i++ {
		if counts[i] <= counts[i-1] {
			return false
		}
	}
	return len(counts) > 1
}

// unjudged returns the known leaks that now leak more objects per loop, if
// there are too few base runs to judge this growth.
func (c *Comparison) unjudged() []*Row {
	var out []*Row
	for i := range c.Leaks {
		r := &c.Leaks[i]
		s := r.PerLoop
		if r.Status != Known || r.Library || r.shown() || !strings.Contains(r.StatusReason, "too few") ||
			s.Head == nil || s.Base == nil {
			continue
		}
		if *s.Head > noticeable*max(*s.Base, 0) {
			out = append(out, r)
		}
	}
	return out
}

// pending describes what cannot be judged yet about one of the leaks returned
// by unjudged.
func (r *Row) pending(m markup) string {
	scale, per, arrow := 1.0, perUnit(unitLoop), "→"
	switch {
	case r.Unit == unitEvent:
		scale, per = 1000, perUnit(unitEvent)
	case r.Unit == unitHour:
		per = "MB per hour"
	case r.Type == whatNative || r.Type == whatGraphics:
		per = "kB per loop"
	}
	if m == onTerminal {
		arrow = "->"
	}
	return fmt.Sprintf("not judged yet, too few base runs: %s, %s %s %s %s, key %s", m.code(r.name(), maxName),
		number(*r.PerLoop.Base*scale), arrow, number(*r.PerLoop.Head*scale), per, m.code(r.shortKey(), maxName))
}

// formula returns, as text, the multiplication that yields a cost.
func formula(unit string, head, base, each, was float64) string {
	per := perUnit(unitLoop)
	if unit == unitEvent {
		per, head, base = "per 1 000 events", head*1000, base*1000
	}
	left, now := number(head), size(each)
	switch {
	case base == 0:
		return fmt.Sprintf("%s %s at %s each", left, per, now)
	case number(base) == left:
		return fmt.Sprintf("%s %s, each %s larger", left, per, size(each-was))
	case size(was) == now:
		return fmt.Sprintf("%s more %s at %s each", number(head-base), per, now)
	}
	return fmt.Sprintf("%s %s at %s each, previously %s at %s", left, per, now, number(base), size(was))
}

// judgedRows returns the rows to which the sentence about the cost applies:
// those that fail, or else those that are worse.
func (c *Comparison) judgedRows() []*Row {
	var fails, worse []*Row
	for i := range c.Leaks {
		switch r := &c.Leaks[i]; {
		case r.Fails:
			fails = append(fails, r)
		case r.worse():
			worse = append(worse, r)
		}
	}
	if len(fails) > 0 {
		return fails
	}
	return worse
}

// cost describes in one sentence what is worse and how many bytes it costs in
// 100 loops; it returns "" if this is unknown. Several leaks may retain the
// same bytes, so the largest cost is a lower bound on the cost of all leaks
// together.
func (c *Comparison) cost(m markup) string {
	worst, of := map[string]*burden{}, map[string]int{}
	for _, r := range c.judgedRows() {
		if b := burdenOf(r); b != nil {
			of[r.Unit]++
			if worst[r.Unit] == nil || b.extra > worst[r.Unit].extra {
				worst[r.Unit] = b
			}
		}
	}
	for _, unit := range []string{unitLoop, unitEvent} {
		if b := worst[unit]; b != nil {
			return c.costOf(m, b, of[unit])
		}
	}
	if b := worst[unitHour]; b != nil {
		return c.growth(m, b.row)
	}
	return ""
}

func (c *Comparison) costOf(m markup, b *burden, leaks int) string {
	loops, factor := "100 loops", 100.0
	if b.row.Unit == unitEvent {
		loops, factor = "10 000 events", 10_000
	}
	bytes, than := size(b.extra*factor), ""
	if c.Base.Runs > 0 {
		bytes, than = bytes+" more", " than "+c.onBase(m)
	}
	name := m.code(b.row.name(), maxName)
	if leaks == 1 {
		return fmt.Sprintf("Every %s retain %s%s: %s, %s.", loops, m.bold(bytes), than, name, b.formula)
	}
	return fmt.Sprintf("Every %s retain at least %s%s: %s alone, %s. The memory retained by several leaks can "+
		"overlap, so "+
		"it is not added up.",
		loops, m.bold(bytes), than, name, b.formula)
}

func (c *Comparison) growth(m markup, r *Row) string {
	was := ""
	if f := r.left(); f.base != "" && f.base != "0" {
		was = fmt.Sprintf(", compared with %s MB %s", f.base, c.onBase(m))
	}
	return fmt.Sprintf("%s grows by %s per hour%s.", m.code(r.Process, maxName), m.bold(number(*r.PerLoop.Head)+" MB"),
		was)
}

// onBase returns a phrase that names the base, such as "on main".
func (c *Comparison) onBase(m markup) string {
	if c.Base.Branch == "" {
		return "in the base runs"
	}
	return "on " + m.code(c.Base.Branch, maxName)
}

func (c *Comparison) baseName(m markup) string {
	if c.Base.Branch == "" {
		return "base"
	}
	return m.code(c.Base.Branch, maxName)
}

// change returns the name of the change that is judged: a pull request or
// another run.
func (c *Comparison) change() (short, long string) {
	if c.Head.PullRequest > 0 {
		return "PR", "this pull request"
	}
	return "now", "this change"
}

// nothingWorse reports whether the run passes and no leak is worse than in the
// base.
func (c *Comparison) nothingWorse() bool {
	return c.Verdict == Pass && len(c.Reasons) == 0 &&
		!slices.ContainsFunc(c.Leaks, func(r Row) bool { return r.shown() })
}

// firstDay reports whether a baseline is configured but has no runs yet.
func (c *Comparison) firstDay() bool {
	return c.Base.Runs == 0 && c.Base.Incomparable == "" && c.Verdict == Neutral && c.Judged
}

// onlyThisRun is the value of Incomparable for a baseline that contains only
// the judged run.
const onlyThisRun = "the baseline has only this run"

// unmatched returns the reason why no run of the baseline is compared; "" if
// any are compared, or if there are no base runs.
func (c *Comparison) unmatched(m markup) string {
	b := &c.Base
	switch {
	case b.Runs > 0 || b.Incomparable == "":
		return ""
	case b.Incomparable == onlyThisRun:
		return "This run is not compared with earlier runs: " + onlyThisRun + "."
	}
	none := "no base run matches it"
	switch {
	case b.Others == 1:
		none = "the only base run does not match it"
	case b.Others > 1:
		none = fmt.Sprintf("none of the %s base runs matches it", text.Grouped(int64(b.Others)))
	}
	return fmt.Sprintf("This run is not compared with earlier runs: %s (%s). Base runs must have "+
		"the same app, variant, workload, marks and device; the workload's command must not change from run to run.",
		none, m.prose(b.Incomparable, maxSentence))
}

// finder returns a function that finds the row to which a reason applies; the
// function returns nil if there is no such row.
func (c *Comparison) finder() func(Reason) *Row {
	type id struct{ process, key string }
	rows := map[id]*Row{}
	for i := range c.Leaks {
		r := &c.Leaks[i]
		for _, process := range []string{r.Process, ""} {
			// Failing rows come first, so a matching row that fails is
			// preferred.
			if rows[id{process, r.Key}] == nil {
				rows[id{process, r.Key}] = r
			}
		}
	}
	return func(reason Reason) *Row {
		if reason.Key == "" {
			return nil
		}
		return rows[id{reason.Process, reason.Key}]
	}
}

// first returns the first row with the given type, or nil.
func (c *Comparison) first(is func(*Row) bool) *Row {
	for i := range c.Leaks {
		if is(&c.Leaks[i]) {
			return &c.Leaks[i]
		}
	}
	return nil
}

// hexKey matches keys that `leakgate accept` accepts.
var hexKey = regexp.MustCompile(`^[0-9a-f]{8,64}$`)

// acceptable reports whether a row may be accepted: it must be a leak, or a
// place that grows with each loop of a trip.
func (r *Row) acceptable() bool {
	return (r.Fails || r.worse()) && (r.Type == whatLeak || r.Type == whatMeasure) && !r.Library &&
		hexKey.MatchString(r.Key)
}

func (r *Row) acceptCommand() string {
	return fmt.Sprintf("leakgate accept %s --reason \"...\" --owner NAME --until DATE", shellWord(r.shortKey(), "KEY"))
}

// severalProcesses reports whether rows must name their processes because there
// are several.
func (c *Comparison) severalProcesses() bool {
	names := map[string]bool{}
	for i := range c.Leaks {
		names[c.Leaks[i].Process] = true
	}
	return len(names) > 1
}

// deviceName returns the published name of a device: its model, followed by a
// number if several devices of the run have the same model. A serial number is
// not published, because it identifies somebody's phone.
func (c *Comparison) deviceName(serial string) string {
	name, number := c.device(serial)
	return name + number
}

// device returns the model of a device, followed by a number, such as #2, if
// several devices have the same model.
func (c *Comparison) device(serial string) (name, ordinal string) {
	name, number, same := unnamedDevice, 0, 0
	for _, d := range c.Head.Devices {
		if d.Device == serial {
			name = cmp.Or(d.Model, unnamedDevice)
		}
	}
	for _, d := range c.Head.Devices {
		if cmp.Or(d.Model, unnamedDevice) != name {
			continue
		}
		if same++; d.Device == serial {
			number = same
		}
	}
	if same > 1 && number > 0 {
		ordinal = fmt.Sprintf(" #%d", number)
	}
	return name, ordinal
}

// unnamedDevice is a device whose model is unknown.
const unnamedDevice = "device"

// blocks are the bars of a sparkline, from lowest to highest.
var blocks = []rune("▁▂▃▄▅▆▇█")

// maxSpark is the maximum number of columns in a sparkline.
const maxSpark = 24

// spark returns a sparkline that is scaled to the range from the smallest to
// the largest value. Values within 2 % of each other result in a flat line,
// because noise must not look like a slope.
func spark(values []int64) string {
	if len(values) < 2 {
		return ""
	}
	points := values
	if len(values) > maxSpark {
		points = make([]int64, maxSpark)
		for i := range points {
			points[i] = values[i*(len(values)-1)/(maxSpark-1)]
		}
	}
	low, high := float64(slices.Min(points)), float64(slices.Max(points))
	out := make([]rune, len(points))
	for i, v := range points {
		height := len(blocks) / 2
		if high-low > 0.02*high {
			height = int((float64(v) - low) / (high - low) * float64(len(blocks)-1))
		}
		out[i] = blocks[min(max(height, 0), len(blocks)-1)]
	}
	return string(out)
}

// after returns the reachable heap of a process after its last loop: the
// minimum and maximum in the base, and the current value.
func (p *ProcessRow) after() (base, head string) {
	if len(p.Reachable) > 0 {
		head = text.Size(p.Reachable[len(p.Reachable)-1])
	}
	if len(p.BaseReachable) != 2 {
		return "", head
	}
	low, high := text.Size(p.BaseReachable[0]), text.Size(p.BaseReachable[1])
	switch {
	case low == high:
		return low, head
	case len(low) > 3 && strings.HasSuffix(high, low[len(low)-3:]):
		return low[:len(low)-3] + "–" + high, head
	}
	return low + "–" + high, head
}

// evidence describes the heap dumps, the trend and the deaths of a process, on
// which its verdict is based.
func (c *Comparison) evidence(p *ProcessRow) string {
	var parts []string
	switch {
	case c.ofLeakCanary():
		parts = append(parts, "LeakCanary's report")
	case p.Dumps == 0:
		parts = append(parts, "no heap dumps")
	case p.Loops > 0:
		parts = append(parts, fmt.Sprintf("%s over %s", text.Count(p.Dumps, "heap dump", "heap dumps"), loops(p.Loops)))
	default:
		parts = append(parts, text.Count(p.Dumps, "heap dump", "heap dumps"))
	}
	switch {
	case c.ofLeakCanary():
	case p.Dumps > 0 && p.Settled:
		parts[0] += ", app idle before each"
	case p.Dumps > 0:
		parts[0] += ", taken while the app was in use"
	}
	switch {
	case p.Trend == "":
	case c.ofLeakCanary():
		parts = append(parts, p.Trend)
	default:
		parts = append(parts, "trend: "+p.Trend)
	}
	var deaths []string
	for _, reason := range slices.Sorted(maps.Keys(p.Deaths)) {
		if n := p.Deaths[reason]; n > 0 {
			deaths = append(deaths, strings.ReplaceAll(reason, "_", " ")+" "+text.Grouped(int64(n)))
		}
	}
	if len(deaths) > 0 {
		parts = append(parts, "deaths: "+strings.Join(deaths, ", "))
	}
	return strings.Join(parts, "; ")
}

// ofLeakCanary reports whether a LeakCanary report was judged in place of a
// run.
func (c *Comparison) ofLeakCanary() bool { return c.Head.Workload == "LeakCanary" }

func loops(n float64) string {
	if n == 1 {
		return "1 loop"
	}
	return number(n) + " loops"
}

// headline returns the verdict in one sentence.
func (c *Comparison) headline() string {
	return cmp.Or(strings.TrimRight(c.Text, ". "), string(c.Verdict))
}

// tool returns the name and version of the program.
func (c *Comparison) tool(own string) string {
	name := cmp.Or(own, c.Tool, "leakgate")
	if name[0] >= '0' && name[0] <= '9' || name[0] == 'v' {
		return "leakgate " + name
	}
	return name
}
