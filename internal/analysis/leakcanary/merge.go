package leakcanary

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// collection gathers the reports in an input.
type collection struct {
	analyses  []*analysis
	tests     int
	leaks     int
	failures  []string
	undecided []string
	warnings  []string
	// seen maps the identity of each report to its index; repeated is the
	// number of duplicates.
	seen     map[string]int
	repeated int
}

// add adds a report. It returns false if the input already contained the
// report: a runner writes the failure of a test both to its log and to its
// result.
func (c *collection) add(a *analysis) bool {
	key := a.identity()
	if at, ok := c.seen[key]; ok && key != "" {
		c.repeated++
		c.analyses[at].test = firstOf(c.analyses[at].test, a.test)
		return false
	}
	c.seen[key] = len(c.analyses)
	c.analyses = append(c.analyses, a)
	return true
}

// identity returns a string that is equal for duplicates of one report: its
// time (or its test, if the time is missing) and a hash of its leaks. It
// returns "" if the report cannot be distinguished from others.
func (a *analysis) identity() string {
	if a.made == "" && a.test == "" {
		return ""
	}
	var content []byte
	for _, l := range a.leaks {
		content = fmt.Appendf(content, "%q %q %t\n", l.printed, l.class, l.library)
	}
	if a.made != "" {
		return fmt.Sprintf("%s %x", a.made, sha256.Sum256(content))
	}
	return fmt.Sprintf(" %q %x", a.test, sha256.Sum256(content))
}

// merge combines the leaks of all reports.
func (r *Report) merge(list []*analysis, most int) error {
	type identity struct {
		signature string
		library   bool
	}
	at := map[identity]int{}
	r.Analyses = len(list)
	for _, a := range list {
		r.check(a)
		known := map[identity]bool{}
		for _, l := range a.leaks {
			signature, ok := l.signature()
			if !ok {
				note(&r.Undecided, "a leak of %s has no readable signature: %s", firstOf(l.class, "an unknown class"),
					text.Quote(l.printed, 50))
				continue
			}
			if l.printed == "" {
				note(&r.Warnings, "the report has no signature for the leak of %s; it was computed from the trace",
					l.class)
			}
			id := identity{signature, l.library}
			i, ok := at[id]
			if !ok {
				if i = len(r.Leaks); i == most {
					return fmt.Errorf("read LeakCanary's report: more than %s leaks", text.Grouped(int64(most)))
				}
				at[id] = i
				r.Leaks = append(r.Leaks, l.signed(signature))
			} else {
				r.Leaks[i].add(l)
			}
			if !known[id] {
				known[id] = true
				r.Leaks[i].found(a.test)
			}
		}
	}
	return nil
}

// check records that leaks may be missing if a report declares no number of
// leaks, or not the number that was read. It also adds warnings about truncated
// traces.
func (r *Report) check(a *analysis) {
	switch {
	case a.counts < 2:
		note(&r.Undecided, "a report does not contain the number of leaks: it is truncated or of an unknown version")
	case len(a.leaks) != a.declared:
		note(&r.Undecided, "a report declares %s, but %s could be parsed", text.Count(a.declared, "leak", "leaks"),
			text.Grouped(int64(len(a.leaks))))
	}
	for _, l := range a.leaks {
		if !l.complete() {
			note(&r.Warnings, "the trace of leak %s is truncated", text.Head(l.printed, 40))
		}
	}
}

func (l *leak) signed(signature string) SignedLeak {
	s := SignedLeak{
		Signature: signature, Library: l.library, Pattern: text.Head(l.pattern, maxName),
		Description: text.Head(strings.Join(l.description, " "), maxName),
		Class:       text.Head(l.class, maxName), Root: text.Head(l.root, maxName),
		HeldBy: text.Head(l.heldBy, maxName), Traces: l.traces, TraceLines: l.lines(),
	}
	if l.bytes != nil {
		s.RetainedBytes = new(min(*l.bytes, maxBytes))
	}
	return s
}

// Sums are bounded, because the input is not trusted.
const (
	maxTraces = 1 << 30
	maxBytes  = 1 << 50
)

// add adds the traces and the retained bytes that another report lists for the
// same leak.
func (s *SignedLeak) add(l *leak) {
	s.Traces = min(s.Traces+l.traces, maxTraces)
	if s.RetainedBytes == nil || l.bytes == nil {
		s.RetainedBytes = nil
		return
	}
	s.RetainedBytes = new(min(*s.RetainedBytes+min(*l.bytes, maxBytes), maxBytes))
}

// found counts a report that contains the leak, and records the test of the
// report.
func (s *SignedLeak) found(test string) {
	s.Analyses++
	if test != "" && len(s.Tests) < maxTests && !slices.Contains(s.Tests, test) {
		s.Tests = append(s.Tests, test)
	}
}
