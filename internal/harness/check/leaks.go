package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// Seen holds the leaks of the latest heap dump of one life of a process.
type Seen struct {
	dumped bool
	// byKey counts the objects of each leak; byClass counts the leaking objects
	// of each class, whatever path holds them.
	byKey, byClass map[string]int64
}

// Dumped reports whether there was a heap dump.
func (s *Seen) Dumped() bool { return s.dumped }

// New returns the leaks of a dump that have more objects than in the previous
// dump, and remembers the dump. It omits leaks in libraries and in Android,
// which the app cannot fix. A leak is not new if its objects already leaked
// through another path: when the holder of an object changes, so does the key
// of the leak.
func (s *Seen) New(leaks []record.DumpLeak) []record.CheckedLeak {
	out := []record.CheckedLeak{}
	byKey, byClass := map[string]int64{}, map[string]int64{}
	for _, l := range leaks {
		if l.Library {
			continue
		}
		byKey[l.Key] += l.Count
		for _, c := range l.Classes {
			byClass[c.Class] += c.Count
		}
	}
	for _, l := range leaks {
		if l.Library {
			continue
		}
		more := min(l.Count, byKey[l.Key]-s.byKey[l.Key], s.rise(l, byClass))
		if more > 0 {
			out = append(out, record.CheckedLeak{DumpLeak: l, New: more})
		}
	}
	s.dumped, s.byKey, s.byClass = true, byKey, byClass
	return out
}

// rise returns the increase in the number of leaking objects of the classes of
// a leak. If the classes of a leak are unknown, all its objects may be new.
func (s *Seen) rise(l record.DumpLeak, now map[string]int64) int64 {
	if len(l.Classes) == 0 {
		return l.Count
	}
	rise := int64(0)
	for _, c := range l.Classes {
		rise += max(0, now[c.Class]-s.byClass[c.Class])
	}
	return rise
}

// maxTraceLines is the maximum number of lines of a trace in a record.
const maxTraceLines = 60

// Judge sets the traces of the leaks and the exceptions that match them. It
// returns the verdict of the process, which is leak if any of the leaks is not
// matched by an exception.
func Judge(leaks []record.CheckedLeak, exceptions []Exception, traceOf func(key string) []string) record.CheckVerdict {
	verdict := record.VerdictPass
	for i := range leaks {
		l := &leaks[i]
		l.Trace = traceOf(l.Key)
		for _, e := range exceptions {
			if e.Names(l.DumpLeak, l.Trace) {
				l.Known = e.String()
				break
			}
		}
		l.Trace = l.Trace[:min(len(l.Trace), maxTraceLines)]
		switch {
		case l.Known == "":
			verdict = record.VerdictLeak
		case verdict == record.VerdictPass:
			verdict = record.VerdictKnown
		}
	}
	return verdict
}

// shownLeaks is the maximum number of leaks in one line.
const shownLeaks = 3

// Describe returns leaks in one line: "2 x DetailActivity, held by
// ScreenTracker.sScreens (5 in all, 4.0 MB retained)".
func Describe(leaks []record.CheckedLeak) string {
	words := []string{}
	for _, l := range leaks[:min(len(leaks), shownLeaks)] {
		all := ""
		if l.Count > l.New {
			all = fmt.Sprintf("%d in all, ", l.Count)
		}
		words = append(words, fmt.Sprintf("%d x %s (%s%s retained)", l.New, l.Name, all, text.Bytes(l.Bytes)))
	}
	if more := len(leaks) - shownLeaks; more > 0 {
		words = append(words, fmt.Sprintf("%d more", more))
	}
	return strings.Join(words, "; ")
}

// Merge returns the leaks of two attempts. Each leak occurs once, with the
// values from the later dump and the new objects from both.
func Merge(earlier, later []record.CheckedLeak) []record.CheckedLeak {
	out := slices.Clone(later)
	for _, l := range earlier {
		i := slices.IndexFunc(out, func(have record.CheckedLeak) bool { return have.Key == l.Key })
		if i < 0 {
			out = append(out, l)
			continue
		}
		out[i].New += l.New
	}
	return out
}

// Failures returns the crashes, ANRs and out-of-memory deaths of a process
// within a check. It ignores other deaths: the suite itself stops or restarts
// the app.
func Failures(p record.CheckedProcess) []record.Death {
	return slices.DeleteFunc(slices.Concat(p.Deaths, p.Faults), func(d record.Death) bool {
		return !slices.Contains(record.IncidentKinds(), d.Reason)
	})
}

// Worse returns the verdict that takes precedence.
func Worse(a, b record.CheckVerdict) record.CheckVerdict {
	for _, v := range []record.CheckVerdict{
		record.VerdictLeak, record.VerdictInconclusive, record.VerdictNotChecked, record.VerdictKnown,
	} {
		if a == v || b == v {
			return v
		}
	}
	return record.VerdictPass
}
