package footprint

import (
	"cmp"
	"slices"
	"strings"
)

// family holds the names with one skeleton, and the truncated forms of such
// names.
type family struct {
	skeleton string
	members  []familyMember
	threads  int
	all      bool // all names may be truncated
}

// familyMember is one name of a family, with the number of threads that have
// it.
type familyMember struct {
	threadName
	text string
	// shift is the index of its first number in the family's skeleton.
	shift int
	counts
}

// counts holds the numbers of threads in both snapshots.
type counts struct {
	before, after, fresh, ended, threads int
}

func (c *counts) add(d counts) {
	c.before += d.before
	c.after += d.after
	c.fresh += d.fresh
	c.ended += d.ended
	c.threads += d.threads
}

// families groups names into families, sorted by their skeletons.
func families(names map[string]*counts) []*family {
	list := make([]familyMember, 0, len(names))
	var skeletons []string
	for text, c := range names {
		list = append(list, familyMember{threadName: parseName(text), text: text, counts: *c})
		skeletons = append(skeletons, list[len(list)-1].skeleton)
	}
	slices.SortFunc(list, func(a, b familyMember) int { return strings.Compare(a.text, b.text) })
	whole := newWhole(skeletons)
	found := map[string]*family{}
	var all []*family
	for _, m := range list {
		var skeleton string
		skeleton, m.shift = whole.of(&m.threadName)
		f := found[skeleton]
		if f == nil {
			f = &family{skeleton: skeleton, all: true}
			found[skeleton] = f
			all = append(all, f)
		}
		f.members = append(f.members, m)
		f.threads += m.threads
		f.all = f.all && m.cut && !m.front()
	}
	slices.SortFunc(all, func(a, b *family) int { return strings.Compare(a.skeleton, b.skeleton) })
	return all
}

// whole finds the full name for a truncated name. It searches once for each
// skeleton, and only among the skeletons that begin or end with it, so all
// searches together take linear time.
type whole struct {
	forward, backward []string
	found             map[string]string
}

func newWhole(skeletons []string) *whole {
	w := &whole{forward: skeletons, found: map[string]string{}}
	slices.Sort(w.forward)
	w.forward = slices.Compact(w.forward)
	for _, s := range w.forward {
		w.backward = append(w.backward, reversed(s))
	}
	slices.Sort(w.backward)
	return w
}

// of returns the skeleton to which a name belongs, and the index in the
// skeleton of the name's first number. A name that may be truncated belongs to
// the longest skeleton that extends its own; any other name belongs to its own
// skeleton.
func (w *whole) of(n *threadName) (skeleton string, shift int) {
	if !n.cut {
		return n.skeleton, 0
	}
	skeleton, ok := w.found[n.skeleton]
	if !ok {
		skeleton = w.search(n)
		w.found[n.skeleton] = skeleton
	}
	if strings.HasPrefix(skeleton, n.skeleton) {
		return skeleton, 0
	}
	return skeleton, strings.Count(skeleton, "\x00") - len(n.numbers)
}

func (w *whole) search(n *threadName) string {
	found := longest(w.forward, n.skeleton)
	if found == "" && n.front() {
		found = reversed(longest(w.backward, reversed(n.skeleton)))
	}
	return cmp.Or(found, n.skeleton)
}

// longest returns the longest string in a sorted list that begins with the
// given string and differs from it. If there are several, it returns the first;
// if there are none, "".
func longest(sorted []string, start string) (found string) {
	i, _ := slices.BinarySearch(sorted, start)
	for _, s := range sorted[i:] {
		if !strings.HasPrefix(s, start) {
			break
		}
		if len(s) > len(start) && len(s) > len(found) {
			found = s
		}
	}
	return found
}

// reversed returns a string with its bytes reversed.
func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// at returns the member's number at an index in the family, or "*" if the
// number was truncated.
func (m *familyMember) at(i int) string {
	if i -= m.shift; i < 0 || i >= len(m.numbers) {
		return "*"
	}
	return m.numbers[i]
}

// differ reports, for each number in the skeleton, whether it differs between
// threads: either two threads have different numbers, or the number may be
// truncated.
func (f *family) differ() []bool {
	list := make([]bool, strings.Count(f.skeleton, "\x00"))
	if f.threads < 2 {
		return list
	}
	for i := range list {
		for k := range f.members {
			m := &f.members[k]
			list[i] = list[i] || m.at(i) != f.members[0].at(i) || m.at(i) == "*" || m.open(i-m.shift)
		}
	}
	return list
}

// pattern returns the skeleton with an asterisk for each number that differs.
func (f *family) pattern(differ []bool) string {
	text := fillIn(f.skeleton, func(i int) string {
		if differ[i] {
			return "*"
		}
		return f.members[0].at(i)
	})
	// If there are several threads and all names have the maximum length, the
	// names are considered truncated.
	if f.all && f.threads > 1 && !strings.HasSuffix(text, "*") {
		text += "*"
	}
	return text
}

// group returns the thread group of a family.
func (f *family) group() ThreadGroup {
	differ := f.differ()
	var sum counts
	for _, m := range f.members {
		sum.add(m.counts)
	}
	g := ThreadGroup{ThreadPart: newThreadPart(f.pattern(differ), sum), Example: printableThread(f.members[0].text)}
	g.Parts = f.parts(differ)
	return g
}

// parts splits a family into groups whose names differ only in the last of the
// varying numbers. It returns nil unless at least two numbers vary.
func (f *family) parts(differ []bool) []ThreadPart {
	last, several := -1, false
	for i, d := range differ {
		if d {
			several = last >= 0
			last = i
		}
	}
	if !several {
		return nil
	}
	sums := map[string]*counts{}
	for k := range f.members {
		m := &f.members[k]
		pattern := fillIn(f.skeleton, func(i int) string {
			if i == last {
				return "*"
			}
			return m.at(i)
		})
		if sums[pattern] == nil {
			sums[pattern] = new(counts)
		}
		sums[pattern].add(m.counts)
	}
	var list []ThreadPart
	for pattern, sum := range sums {
		list = append(list, newThreadPart(pattern, *sum))
	}
	slices.SortFunc(list, byThreads)
	return list[:min(len(list), maxParts)]
}

func byThreads(a, b ThreadPart) int {
	return cmp.Or(cmp.Compare(b.Delta, a.Delta), cmp.Compare(b.After, a.After), strings.Compare(a.Pattern, b.Pattern))
}

func newThreadPart(pattern string, c counts) ThreadPart {
	return ThreadPart{
		Pattern: pattern, Before: c.before, After: c.after, Delta: c.after - c.before, New: c.fresh, Ended: c.ended,
	}
}
