package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/mapping"
)

// mostMoved limits the search for moved leaks: at most this many new leaks are
// compared with the same number of leaks that are gone. The leaks that retain
// the most bytes are compared first.
const mostMoved = 1000

// pairing is a leak of base and a leak of head that are the same leak, although
// the code that holds the leaking objects changed. Pairings are compared by
// alike, then lines, count and bytes; the smaller values sort first. Base and
// head are treated alike: the reverse comparison finds the same pairs.
type pairing struct {
	base, head *leakSum
	// alike is 0 if Shark's fingerprints are equal, 1 if the leaking classes
	// are equal and the keys differ in one line, 2 if only the classes are
	// equal, and 3 if the classes differ and the keys differ in one line.
	alike int
	// lines is the number of lines in which the keys differ; count and bytes
	// are the differences in the numbers of objects and retained bytes.
	lines        int
	count, bytes int64
}

func (p pairing) compare(q pairing) int {
	return cmp.Or(cmp.Compare(p.alike, q.alike), cmp.Compare(p.lines, q.lines), cmp.Compare(p.count, q.count),
		cmp.Compare(p.bytes, q.bytes),
		cmp.Compare(min(p.base.key, p.head.key), min(q.base.key, q.head.key)),
		cmp.Compare(max(p.base.key, p.head.key), max(q.base.key, q.head.key)))
}

// loadedClasses are the stable names of the app's loaded classes in both dumps.
type loadedClasses struct{ base, head map[string]bool }

// renamed reports whether a class of base may have a different name in head,
// which requires that neither dump has both classes. An app does not rename
// classes of the platform.
func (c loadedClasses) renamed(base, head string) bool {
	return mapping.MayBeRenamed(base) && mapping.MayBeRenamed(head) && !c.head[base] && !c.base[head]
}

// paired compares a leak that is gone with a new one. They can be the same leak
// only if they are leaks of the app and the numbers of objects differ by at
// most one, or by at most a quarter of the larger number. In addition, they
// need a common fingerprint, the same leaking class, or keys that differ in
// only one line. If the classes differ, similar keys are sufficient only if the
// class may have been renamed.
func paired(base, head *leakSum, classes loadedClasses) (pairing, bool) {
	p := pairing{
		base: base, head: head, count: distance(base.instances, head.instances),
		bytes: distance(base.bytes, head.bytes),
	}
	if base.library || head.library || p.count > 1 && p.count > max(base.instances, head.instances)/4 {
		return p, false
	}
	common := commonLines(base.text, head.text)
	p.lines = max(len(base.text), len(head.text)) - common
	line := p.lines == 1 && common > 0 && len(base.text) == len(head.text)
	class := base.leaking() == head.leaking()
	switch {
	case slices.ContainsFunc(base.fingerprints, func(f string) bool { return slices.Contains(head.fingerprints, f) }):
		p.alike = 0
	case class && line:
		p.alike = 1
	case class:
		p.alike = 2
	case line && classes.renamed(base.leaking(), head.leaking()):
		p.alike = 3
	default:
		return p, false
	}
	return p, true
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// commonLines counts the lines that two keys have in common at their beginning
// and end.
func commonLines(a, b []string) int {
	n, least := 0, min(len(a), len(b))
	for n < least && a[n] == b[n] {
		n++
	}
	start := n
	for n < least && a[len(a)-1-n+start] == b[len(b)-1-n+start] {
		n++
	}
	return n
}

// moved finds the new leaks that also exist in base but were held by something
// else there. The best pairs are matched first. The result maps each moved leak
// of head to the same leak of base.
func moved(gone, added []*leakSum, classes loadedClasses) map[*leakSum]*leakSum {
	var all []pairing
	for _, h := range heaviest(added, mostMoved) {
		for _, b := range heaviest(gone, mostMoved) {
			if p, ok := paired(b, h, classes); ok {
				all = append(all, p)
			}
		}
	}
	slices.SortFunc(all, pairing.compare)
	of, taken := map[*leakSum]*leakSum{}, map[*leakSum]bool{}
	for _, p := range all {
		if of[p.head] == nil && !taken[p.base] {
			of[p.head], taken[p.base] = p.base, true
		}
	}
	return of
}

// MatchMoved finds the leaks of base that are held by something else in head.
// The leaks in gone were found only in base, and those in added only in head.
// It uses the same rules as [Compare]. The result maps indexes into added to
// indexes into gone. baseLoads and headLoads report whether a class of the app
// is loaded in base or head; the class is given by its name without
// compiler-generated numbers.
func MatchMoved(gone, added []SummaryLeak, baseLoads, headLoads func(class string) bool) map[int]int {
	classes := loadedClasses{map[string]bool{}, map[string]bool{}}
	sums := func(list []SummaryLeak) (out []*leakSum, places map[*leakSum]int) {
		places = map[*leakSum]int{}
		read := readLeaks(list)
		for i := range read {
			out, places[&read[i]] = append(out, &read[i]), i
			class := read[i].leaking()
			classes.base[class], classes.head[class] = baseLoads(class), headLoads(class)
		}
		return out, places
	}
	b, baseAt := sums(gone)
	h, headAt := sums(added)
	out := map[int]int{}
	for head, base := range moved(b, h, classes) {
		out[headAt[head]] = baseAt[base]
	}
	return out
}

// heaviest returns the given number of leaks that retain the most bytes; a
// shorter list is returned unchanged.
func heaviest(list []*leakSum, most int) []*leakSum {
	if len(list) <= most {
		return list
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b *leakSum) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.key, b.key))
	})
	return list[:most]
}

// movedWarnings warns if there were too many new or gone leaks to compare all
// of them with each other.
func movedWarnings(list []LeakChange) []string {
	count := map[string]int{}
	for i := range list {
		count[list[i].Status]++
	}
	added, gone, moved := count[statusNew], count[statusGone], count[statusMoved]
	if max(added, gone)+moved > mostMoved && min(added, gone) > 0 {
		return []string{
			fmt.Sprintf("%d leaks are new and %d are gone: only the %d of each that retain the most were checked for "+
				"leaks that merely moved", added, gone, mostMoved),
		}
	}
	return nil
}
