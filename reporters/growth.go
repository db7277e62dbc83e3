package reporters

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/growth"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// WriteGrowth writes what grew from each dump of a series to the next.
func WriteGrowth(w io.Writer, r *analysis.Growth) error {
	var out page
	for i, d := range r.Dumps {
		out.line("dump %d: %s, %s objects, %s reachable, %s", i+1, shownName(d.Name), text.Grouped(d.Objects),
			text.Size(d.ReachableBytes), date(d.Time))
	}
	out.warnings(r.Warnings)
	out.blank()
	out.accounting(r)
	often := "by at least 1 object each time"
	if r.Loops > 1 {
		often = fmt.Sprintf("by at least %s objects each time, one for each repetition", text.Grouped(int64(r.Loops)))
	}
	if r.Found == 0 {
		out.line("no place grew in every dump (%s)", often)
	} else {
		out.line("%s in every dump (%s)", text.Count(r.Found, "place grew", "places grew"), often)
	}
	for i := range r.Growth {
		out.blank()
		out.place(&r.Growth[i], i+1)
	}
	if n := r.Found - len(r.Growth); n > 0 {
		out.blank()
		out.line("%s more; --top prints more", text.Grouped(int64(n)))
	}
	return out.writeTo(w)
}

// accounting prints how much of the growth the following places account for.
func (out *page) accounting(r *analysis.Growth) {
	a := r.Accounting
	if len(r.Dumps) < 2 || a.ReachableDelta == 0 {
		return
	}
	if a.ReachableDelta < 0 {
		out.line("reachable memory shrank by %s", text.Size(-a.ReachableDelta))
		return
	}
	out.line("reachable memory grew by %s: explained %s, unexplained %s", text.Size(a.ReachableDelta),
		text.Size(a.Explained), text.Size(a.Unexplained))
}

// increments returns how many more objects each dump contains than the previous
// one.
func increments(list []int64) string {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = text.Signed(n)
	}
	return strings.Join(texts, ", ")
}

// date returns the time when a dump was taken.
func date(t *time.Time) string {
	if t == nil {
		return "no date"
	}
	return t.Format("2006-01-02 15:04:05")
}

// shownStart and shownEnd are the numbers of steps printed from the start and
// the end of a path.
const (
	shownStart = 4
	shownEnd   = 12
)

func (out *page) place(p *growth.Place, number int) {
	slows := ""
	if p.Slowing {
		slows = "; growth slows (" + increments(p.Increments) + "): consistent with a cache that fills or a warm-up"
	}
	if p.Larger {
		steps := ""
		if p.Stepwise {
			steps = ", in steps, like a buffer that doubles"
		}
		out.line("%d. %s: %s with the same number of objects%s", number, shownName(holder(p)),
			text.SignedSize(p.GrowthBytes), steps)
	} else {
		out.line("%d. %s: %s objects, %s for each repetition, %s%s", number, shownName(holder(p)), text.Signed(p.Delta),
			rate(p.PerLoop), text.SignedSize(p.GrowthBytes), slows)
	}
	indent := ""
	for i, s := range p.Path {
		// Only the start and the end of a long path are printed.
		left := len(p.Path) - shownEnd - shownStart
		switch {
		case left > 0 && i == shownStart:
			out.line("   %s... %s more", indent, text.Count(left, "step", "steps"))
			fallthrough
		case left > 0 && i > shownStart && i < shownStart+left:
			continue
		}
		out.line("   %s%s", indent, shownName(joinedStep(s)))
		indent += "  "
	}
	out.grown(p.Children, indent)
	if p.ChildrenOmitted > 0 {
		out.line("   %s%s more that grow", indent, text.Grouped(int64(p.ChildrenOmitted)))
	}
}

// holder names a place in a few words: the last field on the path to the place,
// and the field's class. Fields of the app are preferred.
func holder(p *growth.Place) string {
	if len(p.Path) == 0 {
		return "GC roots"
	}
	if p.Path[0].Kind == growth.KindFinalizer {
		return fmt.Sprintf("%s (%s)", p.Path[0].Name, simpleName(p.Path[0].Class))
	}
	if len(p.Children) == 1 && p.ChildrenOmitted == 0 {
		if c := &p.Children[0]; ofField(&c.PathEdge) && !android.IsPlatform(c.Owner) {
			return fmt.Sprintf("%s.%s (%s)", simpleName(c.Owner), c.Name, simpleName(c.Class))
		}
	}
	class := simpleName(p.Path[len(p.Path)-1].Class)
	last, own := "", false
	for _, s := range slices.Backward(p.Path) {
		if !ofField(&s) {
			continue
		}
		field := simpleName(s.Owner) + "." + s.Name
		if own = !android.IsPlatform(s.Owner); own {
			last = field
			break
		}
		last = cmp.Or(last, field)
	}
	if last == "" {
		return class + ofApp(p.Children)
	}
	if own {
		return fmt.Sprintf("%s (%s)", last, class)
	}
	return fmt.Sprintf("%s (%s)%s", last, class, ofApp(p.Children))
}

// ofApp looks below a place for the first object of one of the app's classes,
// and returns " of " and the class, or "" if there is no such object. This name
// is used only if no field above the place belongs to the app.
func ofApp(list []growth.Child) string {
	for ; len(list) > 0; list = list[0].Children {
		if class := list[0].Class; !android.IsContainer(class) {
			return " of " + simpleName(class)
		}
	}
	return ""
}

func ofField(s *growth.PathEdge) bool {
	return s.Kind == growth.KindStatic || s.Kind == growth.KindInstance
}

// joinedStep returns a reference with the class of its target.
func joinedStep(s growth.PathEdge) string {
	linked := ""
	if s.Linked {
		linked = ", linked to each other"
	}
	class := hiddenClass.ReplaceAllString(s.Class, "")
	switch s.Kind {
	case growth.KindFinalizer:
		return "waiting for finalizers: " + counted(s.Objects) + ", most of " + class
	case growth.KindRoot:
		return s.Name + " " + class
	case growth.KindStatic:
		return "static " + s.Name + " -> " + class + linked
	case growth.KindInstance:
		return "." + s.Name + " -> " + class + linked
	}
	return s.Name + " -> " + class + linked
}

func (out *page) grown(list []growth.Child, indent string) {
	for _, c := range list {
		out.line(" + %s%s: %s, %s (%s)", indent, shownName(joinedStep(c.PathEdge)), counted(c.Objects),
			text.Size(c.RetainedBytes[len(c.RetainedBytes)-1]), text.SignedSize(c.RetainedDelta))
		out.grown(c.Children, indent+"  ")
		if c.ChildrenOmitted > 0 {
			out.line(" + %s  %s more", indent, text.Grouped(int64(c.ChildrenOmitted)))
		}
	}
}

// counted formats the counts of a series. For a long series, only its first and
// last counts are shown.
func counted(list []int64) string {
	const most = 6
	var texts []string
	for i, n := range list {
		if len(list) > most && i == most/2 {
			texts = append(texts, "...")
		}
		if len(list) <= most || i < most/2 || i >= len(list)-most/2 {
			texts = append(texts, text.Grouped(n))
		}
	}
	return strings.Join(texts, " > ")
}

// rate formats how many objects each repetition adds.
func rate(n float64) string { return strconv.FormatFloat(math.Round(100*n)/100, 'f', -1, 64) }

// PlaceName returns the name of a growing place in a few words.
func PlaceName(p *growth.Place) string { return shownName(holder(p)) }

// maxStepText is the maximum length of a step of the path to a place, in
// characters.
const maxStepText = 500

// PlaceFinding returns a growing place as a finding, with the entire path to
// it.
func PlaceFinding(p *growth.Place) record.Finding {
	f := record.Finding{
		Type: "growing", Name: PlaceName(p), Key: p.Key, CountDelta: new(p.Delta), BytesDelta: new(p.GrowthBytes),
	}
	if n := len(p.RetainedBytes); n > 0 {
		f.Bytes = new(p.RetainedBytes[n-1])
	}
	for _, s := range p.Path {
		name := s.Name
		if s.Owner != "" {
			name = s.Owner + "." + name
		}
		f.Trace = append(f.Trace, text.Tail(name+" -> "+s.Class, maxStepText))
	}
	return f
}
