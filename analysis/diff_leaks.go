package analysis

import (
	"cmp"
	"slices"
)

// leakSum is all leaks of one key in one dump.
type leakSum struct {
	key, class, pattern string
	text, fingerprints  []string
	library             bool
	instances           int64
	bytes, native       int64
}

// sumLeaks adds up the leaks of each key, in their order.
func sumLeaks(leaks []Leak) []leakSum {
	var list []leakSum
	places := map[string]int{}
	for i := range leaks {
		l := &leaks[i]
		// A leak that has no key is known by Shark's fingerprint, or by what leaks.
		key := cmp.Or(l.Key, l.Fingerprint, l.Class)
		at, ok := places[key]
		if !ok {
			at = len(list)
			places[key] = at
			list = append(list, leakSum{key: key, class: l.Class, pattern: l.Pattern, text: l.KeyText, library: l.Library, fingerprints: []string{}})
		}
		s := &list[at]
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

// compareLeaks gives the leaks of both dumps: new ones, then those that grew, shrank,
// are gone and are as they were; leaks of the platform behind those of the app.
func compareLeaks(base, head []leakSum) []LeakChange {
	list := []LeakChange{}
	byKey := map[string]*leakSum{}
	for i := range base {
		byKey[base[i].key] = &base[i]
	}
	for i := range head {
		h := &head[i]
		list = append(list, compareLeak(byKey[h.key], h))
		delete(byKey, h.key)
	}
	for i := range base {
		if b := &base[i]; byKey[b.key] == b {
			list = append(list, compareLeak(b, nil))
		}
	}
	crossRefer(list)
	slices.SortFunc(list, func(a, b LeakChange) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), bySize(a.RetainedBytes, b.RetainedBytes), cmp.Compare(a.Key, b.Key))
	})
	return list
}

func rank(c *LeakChange) int {
	n := slices.Index([]string{statusNew, statusGrown, statusShrunk, statusGone, statusKnown}, c.Status)
	if c.Library {
		n += 5
	}
	return n
}

func compareLeak(base, head *leakSum) LeakChange {
	b, h := leakSum{fingerprints: []string{}}, leakSum{fingerprints: []string{}}
	if base != nil {
		b = *base
	}
	// What a leak is called is how head calls it, where head has it.
	named := b
	if head != nil {
		h, named = *head, *head
	}
	c := LeakChange{
		Key: named.key, Class: named.class, Library: named.library, Pattern: named.pattern, KeyText: named.text,
		BaseFingerprints: b.fingerprints, HeadFingerprints: h.fingerprints,
		Instances: change(b.instances, h.instances), RetainedBytes: change(b.bytes, h.bytes), RetainedNative: change(b.native, h.native),
	}
	c.Status = statusOf(base != nil, head != nil, c.RetainedBytes, c.Instances)
	return c
}

// crossRefer tells which new leaks have Shark's fingerprint of one that is gone: they are the same
// for Shark, and for us something on the way to them was renamed, or is known now.
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
			if g := gone[f]; g != nil && c.Like == "" {
				c.Like, g.Like = g.Key, c.Key
			}
		}
	}
}
