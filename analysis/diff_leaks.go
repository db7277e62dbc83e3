package analysis

import (
	"cmp"
	"maps"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/trace"
)

// leakSum is the sum of all leaks that have the same key in one dump.
type leakSum struct {
	key, class, pattern string
	text, fingerprints  []string
	library             bool
	instances           int64
	bytes, native       int64
	// classes holds the number of objects of each class, by its stable name.
	classes map[string]int64
}

// leaking returns the class that has the most objects in the leak; if several
// do, the first by name.
func (s *leakSum) leaking() string {
	most := ""
	for class, n := range s.classes {
		if have := s.classes[most]; most == "" || n > have || n == have && class < most {
			most = class
		}
	}
	return most
}

// sumLeaks adds up the leaks that have the same key. The sums are in the order
// in which their keys first occur.
func sumLeaks(leaks []Leak) []leakSum {
	var list []leakSum
	places := map[string]int{}
	for i := range leaks {
		l := &leaks[i]
		// A leak without a key is identified by Shark's fingerprint, or by its
		// class.
		key := cmp.Or(l.Key, l.Fingerprint, l.Class)
		at, ok := places[key]
		if !ok {
			at = len(list)
			places[key] = at
			list = append(list,
				leakSum{
					key: key, class: l.Class, pattern: l.Pattern, text: l.KeyText, library: l.Library,
					fingerprints: []string{}, classes: map[string]int64{},
				})
		}
		s := &list[at]
		s.countClasses(l)
		s.instances += int64(l.Instances)
		s.bytes += l.RetainedBytes
		s.native += l.RetainedNative
		if l.Fingerprint != "" && !slices.Contains(s.fingerprints, l.Fingerprint) {
			s.fingerprints = append(s.fingerprints, l.Fingerprint)
		}
	}
	for i := range list {
		slices.Sort(list[i].fingerprints)
	}
	return list
}

// countClasses adds, for each class, the number of objects that leak or
// accumulate.
func (s *leakSum) countClasses(l *Leak) {
	switch {
	case l.Accumulates != nil:
		s.classes[trace.StableClass(l.Accumulates.Class)] += l.Accumulates.Count
	case len(l.Classes) == 0:
		s.classes[trace.StableClass(l.Class)] += int64(l.Instances)
	}
	for _, c := range l.Classes {
		s.classes[trace.StableClass(c.Class)] += int64(c.Instances)
	}
}

// compareLeaks returns the leaks of both dumps in this order: new, grown,
// moved, shrunk, gone and unchanged leaks. Leaks of the platform come after
// leaks of the app.
func compareLeaks(base, head []leakSum, classes loadedClasses) []LeakChange {
	list := []LeakChange{}
	byKey := map[string]*leakSum{}
	for i := range base {
		byKey[base[i].key] = &base[i]
	}
	var gone, added []*leakSum
	for i := range head {
		h := &head[i]
		if b := byKey[h.key]; b != nil {
			list = append(list, compareLeak(b, h))
			delete(byKey, h.key)
			continue
		}
		added = append(added, h)
	}
	for i := range base {
		if b := &base[i]; byKey[b.key] == b {
			gone = append(gone, b)
		}
	}
	of := moved(gone, added, classes)
	for _, h := range added {
		b := of[h]
		list = append(list, compareLeak(b, h))
		if b != nil {
			delete(byKey, b.key)
		}
	}
	for _, b := range gone {
		if byKey[b.key] == b {
			list = append(list, compareLeak(b, nil))
		}
	}
	crossRefer(list)
	sortLeaks(list)
	return list
}

func rank(c *LeakChange) int {
	order := []string{statusNew, statusUnpaired, statusGrown, statusMoved, statusShrunk, statusGone, statusKnown}
	n := slices.Index(order, c.Status)
	if c.Library {
		n += len(order)
	}
	return n
}

// listLeaks returns the leaks of two dumps in which the same class name may
// refer to different classes. Leaks of the platform, which no build renames,
// are compared; the others are listed separately.
func listLeaks(base, head []leakSum, classes loadedClasses) []LeakChange {
	ofApp := func(l leakSum) bool { return !l.library }
	list := compareLeaks(slices.DeleteFunc(slices.Clone(base), ofApp), slices.DeleteFunc(slices.Clone(head), ofApp),
		classes)
	add := func(base, head *leakSum) {
		c := compareLeak(base, head)
		c.Status = statusUnpaired
		list = append(list, c)
	}
	for i := range head {
		if ofApp(head[i]) {
			add(nil, &head[i])
		}
	}
	for i := range base {
		if ofApp(base[i]) {
			add(&base[i], nil)
		}
	}
	sortLeaks(list)
	return list
}

func sortLeaks(list []LeakChange) {
	slices.SortFunc(list, func(a, b LeakChange) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), bySize(a.RetainedBytes, b.RetainedBytes),
			cmp.Compare(a.Key, b.Key), cmp.Compare(b.Instances.Head, a.Instances.Head))
	})
}

func compareLeak(base, head *leakSum) LeakChange {
	b, h := leakSum{fingerprints: []string{}}, leakSum{fingerprints: []string{}}
	if base != nil {
		b = *base
	}
	// For a leak in both dumps, the description is taken from head.
	named := b
	if head != nil {
		h, named = *head, *head
	}
	c := LeakChange{
		Key: named.key, Class: named.class, Library: named.library, Pattern: named.pattern, KeyText: named.text,
		BaseFingerprints: b.fingerprints, HeadFingerprints: h.fingerprints,
		Instances: change(b.instances, h.instances), RetainedBytes: change(b.bytes, h.bytes),
		RetainedNative: change(b.native, h.native),
	}
	c.Classes = compareLeakClasses(b.classes, h.classes)
	c.Status = statusOf(base != nil, head != nil, c.RetainedBytes, c.Instances)
	if base != nil && head != nil && base.key != head.key {
		c.Status, c.MovedFrom, c.BaseKeyText = statusMoved, base.key, base.text
	}
	return c
}

// mostLeakClasses is the maximum number of classes of a leak that are compared.
const mostLeakClasses = 10

// compareLeakClasses compares the classes of a leak in both dumps.
func compareLeakClasses(base, head map[string]int64) []LeakClassChange {
	all := maps.Clone(base)
	if all == nil {
		all = map[string]int64{}
	}
	maps.Copy(all, head)
	list := []LeakClassChange{}
	for class := range all {
		list = append(list, LeakClassChange{class, change(base[class], head[class])})
	}
	slices.SortFunc(list, func(a, b LeakClassChange) int {
		return cmp.Or(cmp.Compare(b.Instances.Head, a.Instances.Head), cmp.Compare(b.Instances.Base, a.Instances.Base),
			cmp.Compare(a.Class, b.Class))
	})
	return list[:min(len(list), mostLeakClasses)]
}

// crossRefer sets SameFingerprint of each new leak that has the same Shark
// fingerprint as a leak that is gone. Shark treats the two as the same leak;
// here their keys differ because something on the path was renamed, or is
// recognized only in one dump.
func crossRefer(list []LeakChange) {
	gone := map[string]*LeakChange{}
	for i := range list {
		if c := &list[i]; c.Status == statusGone {
			for _, f := range c.BaseFingerprints {
				gone[f] = c
			}
		}
	}
	for i := range list {
		c := &list[i]
		if c.Status != statusNew {
			continue
		}
		for _, f := range c.HeadFingerprints {
			if g := gone[f]; g != nil && c.SameFingerprint == "" {
				c.SameFingerprint, g.SameFingerprint = g.Key, c.Key
			}
		}
	}
}
