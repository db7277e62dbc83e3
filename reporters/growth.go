package reporters

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/analysis/growth"
	"github.com/leakgate/leakgate/internal/text"
)

// TellGrowth prints what grew in every dump of a series. Every line is Printable.
func TellGrowth(b *strings.Builder, r *analysis.Growth) {
	for i, d := range r.Dumps {
		put(b, "dump %d: %s, %s objects, %s reachable, %s", i+1, shownName(d.Name), text.Grouped(d.Objects), text.Size(d.ReachableBytes), date(d.Time))
	}
	b.WriteByte('\n')
	often := "each time by 1 object at least"
	if r.Loops > 1 {
		often = fmt.Sprintf("each time by %s objects at least, one for each repetition", text.Grouped(int64(r.Loops)))
	}
	if r.Found == 0 {
		put(b, "nothing grew in every dump (%s)", often)
	} else {
		put(b, "%s in every dump (%s)", PlacesGrew(r.Found), often)
	}
	for i := range r.Growth {
		b.WriteByte('\n')
		tellPlace(b, &r.Growth[i], i+1)
	}
	if n := r.Found - len(r.Growth); n > 0 {
		b.WriteByte('\n')
		put(b, "%s more; --top prints more", text.Grouped(int64(n)))
	}
	if len(r.Warnings) > 0 {
		b.WriteByte('\n')
	}
	for _, warning := range r.Warnings {
		put(b, "warning: %s", text.Printable(warning))
	}
}

// date is when a dump was taken.
func date(t *time.Time) string {
	if t == nil {
		return "no date"
	}
	return t.Format("2006-01-02 15:04:05")
}

// PlacesGrew says how many places grew.
func PlacesGrew(n int) string {
	if n == 1 {
		return "1 place grew"
	}
	return text.Grouped(int64(n)) + " places grew"
}

// shownStart and shownEnd bound the steps of a path that are printed.
const (
	shownStart = 4
	shownEnd   = 12
)

func tellPlace(b *strings.Builder, p *growth.Place, number int) {
	put(b, "%d. %s: %s objects, %s for each repetition, %s", number, shownName(holder(p)), text.Signed(p.Delta), rate(p.PerLoop), text.SignedSize(p.GrowthBytes))
	indent := ""
	for i, s := range p.Path {
		// Of a long way only the ends are worth to be read.
		left := len(p.Path) - shownEnd - shownStart
		switch {
		case left > 0 && i == shownStart:
			put(b, "   %s... %s more", indent, text.Count(left, "step", "steps"))
			fallthrough
		case left > 0 && i > shownStart && i < shownStart+left:
			continue
		}
		put(b, "   %s%s", indent, shownName(joinedStep(s)))
		indent += "  "
	}
	tellGrown(b, p.Children, indent)
	if p.LeftOut > 0 {
		put(b, "   %s%s more that grow", indent, text.Grouped(int64(p.LeftOut)))
	}
}

// holder names a place in a few words: the last field on the way to it, of the app if
// there is one, and the class that is there.
func holder(p *growth.Place) string {
	if len(p.Path) == 0 {
		return "GC roots"
	}
	if len(p.Children) == 1 && p.LeftOut == 0 {
		if c := &p.Children[0]; ofField(&c.Step) && !isPlatform(c.Owner) {
			return fmt.Sprintf("%s.%s (%s)", SimpleName(c.Owner), c.Name, SimpleName(c.Class))
		}
	}
	class := SimpleName(p.Path[len(p.Path)-1].Class)
	last := ""
	for _, s := range slices.Backward(p.Path) {
		if !ofField(&s) {
			continue
		}
		field := SimpleName(s.Owner) + "." + s.Name
		if !isPlatform(s.Owner) {
			last = field
			break
		}
		last = cmp.Or(last, field)
	}
	if last == "" {
		return class
	}
	return fmt.Sprintf("%s (%s)", last, class)
}

func ofField(s *growth.Step) bool {
	return s.Kind == growth.KindStatic || s.Kind == growth.KindInstance
}

// joinedStep is one reference with the class of what it leads to.
func joinedStep(s growth.Step) string {
	linked := ""
	if s.Linked {
		linked = ", linked to each other"
	}
	switch s.Kind {
	case growth.KindRoot:
		return s.Name + " " + s.Class
	case growth.KindStatic:
		return "static " + s.Name + " -> " + s.Class + linked
	case growth.KindInstance:
		return "." + s.Name + " -> " + s.Class + linked
	}
	return s.Name + " -> " + s.Class + linked
}

func tellGrown(b *strings.Builder, list []growth.Child, indent string) {
	for _, c := range list {
		put(b, " + %s%s: %s, %s (%s)", indent, shownName(joinedStep(c.Step)), counted(c.Objects), text.Size(c.RetainedBytes[len(c.RetainedBytes)-1]), text.SignedSize(c.RetainedDelta))
		tellGrown(b, c.Children, indent+"  ")
		if c.LeftOut > 0 {
			put(b, " + %s  %s more", indent, text.Grouped(int64(c.LeftOut)))
		}
	}
}

// counted writes the counts of a series; of a long one its ends.
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

// rate writes how many objects a repetition adds.
func rate(n float64) string { return strconv.FormatFloat(math.Round(100*n)/100, 'f', -1, 64) }

// PlaceName names a place that grows in a few words.
func PlaceName(p *growth.Place) string { return shownName(holder(p)) }
