package harness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/check"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/onsi/gomega/types"
)

// matcher implements a Gomega matcher for values of type T, or for functions
// that return them.
type matcher[T any] struct {
	// match reports whether the value matches, and describes the value.
	match func(T) (ok bool, words string, err error)
	// want describes the expectation, as in "to be leaking".
	want string
	// final reports whether the result can no longer change. If final is nil,
	// the result can always change.
	final func(T) bool
	words string
}

// Match implements Gomega's matcher. If the actual value is a function, such as
// the result of [Leaks.Process], Match calls it to get the value.
func (m *matcher[T]) Match(actual any) (bool, error) {
	v, err := valueOf[T](actual)
	if err != nil {
		return false, err
	}
	ok, words, err := m.match(v)
	m.words = words
	return ok, err
}

// askTime is the timeout for a function that a matcher calls itself because
// Gomega does not poll it.
const askTime = 30 * time.Second

// valueOf returns the value to match. If the value is a function, valueOf
// returns the result of the function.
func valueOf[T any](actual any) (T, error) {
	var none T
	switch a := actual.(type) {
	case T:
		return a, nil
	case func(context.Context) (T, error):
		ctx, done := context.WithTimeout(context.Background(), askTime)
		defer done()
		return a(ctx)
	}
	return none, fmt.Errorf("want %T, got %T", none, actual)
}

// FailureMessage implements Gomega's matcher.
func (m *matcher[T]) FailureMessage(any) string { return m.words + "\nexpected it " + m.want }

// NegatedFailureMessage implements Gomega's matcher.
func (m *matcher[T]) NegatedFailureMessage(any) string {
	return m.words + "\nexpected it not " + m.want
}

// MatchMayChangeInTheFuture implements Gomega's interface of the same name: a
// final result ends an Eventually.
func (m *matcher[T]) MatchMayChangeInTheFuture(actual any) bool {
	v, err := valueOf[T](actual)
	return err != nil || m.final == nil || !m.final(v)
}

// BeLeaking matches a process that is LEAKING.
func BeLeaking() types.GomegaMatcher {
	return &matcher[ProcessState]{want: "to be leaking", match: func(s ProcessState) (bool, string, error) {
		return s.State == detector.Leaking, s.GomegaString(), nil
	}}
}

// HaveState matches a process in the given state.
func HaveState(want detector.State) types.GomegaMatcher {
	return &matcher[ProcessState]{want: "to be " + want.String(), match: func(s ProcessState) (bool, string, error) {
		return s.State == want, s.GomegaString(), nil
	}}
}

// HaveSlopeBelow matches a process whose memory grows more slowly than the
// given rate in MB/h: the upper end of the 95 % interval is below the rate. If
// the rate of the process is still unknown, matching fails with an error.
func HaveSlopeBelow(mbPerHour float64) types.GomegaMatcher {
	want := fmt.Sprintf("to grow by less than %g MB/h, with 95 %% confidence", mbPerHour)
	return &matcher[ProcessState]{want: want, match: func(s ProcessState) (bool, string, error) {
		if s.Slope == nil {
			return false, s.GomegaString(), fmt.Errorf("judge the slope of %s: the rate is still unknown: %s",
				s.Process, s.Because)
		}
		return s.Slope.High < mbPerHour, s.GomegaString(), nil
	}}
}

// HaveGrowingObjects matches a trip that leaks objects, threads, files or
// memory in every repetition. If the trip could not be judged, matching fails
// with an error.
func HaveGrowingObjects() types.GomegaMatcher {
	return &matcher[*Trip]{
		want: "to grow with every repetition", match: func(t *Trip) (bool, string, error) {
			if t == nil {
				return false, "", errors.New("judge a trip: it is nil; see the error of RoundTrip")
			}
			words := tripText(t)
			if t.Verdict == record.VerdictInconclusive {
				return false, words, fmt.Errorf("judge the trip of %s: %s", t.Process, t.Text)
			}
			return t.Verdict == record.VerdictLeak, words, nil
		}, final: func(*Trip) bool { return true }}
}

func tripText(t *Trip) string {
	var b strings.Builder
	_ = reporters.WriteTrip(&b, *t) // a Builder never fails
	return screen(strings.TrimSpace(b.String()))
}

// HaveLeaks matches a heap dump that contains leaked objects of the app.
func HaveLeaks() types.GomegaMatcher {
	return &matcher[*Dump]{
		want: "to have leaks", final: func(*Dump) bool { return true }, match: func(d *Dump) (bool, string, error) {
			if err := d.check(); err != nil {
				return false, "", err
			}
			var own []record.CheckedLeak
			for _, l := range d.Leaks {
				if !l.Library {
					own = append(own, record.CheckedLeak{DumpLeak: l, New: l.Count})
				}
			}
			words := d.GomegaString() + " has no leak"
			if len(own) > 0 {
				words = d.GomegaString() + " has " + check.Describe(own) + traceOf(d, own[0].Key)
			}
			if len(own) == 0 && len(d.Report.Undecided) > 0 {
				return false, words, fmt.Errorf("judge %s: leaks cannot be ruled out: %s",
					d.GomegaString(), strings.Join(d.Report.Undecided, "; "))
			}
			return len(own) > 0, words, nil
		}}
}

// check returns the reason why there is nothing to judge, or nil.
func (d *Dump) check() error {
	if d == nil || d.Report == nil {
		return errors.New("judge a heap dump: it is nil; see the error of Dump")
	}
	return nil
}

// traceOf returns the trace of a leak, beginning on a new line, or "" if there
// is no trace.
func traceOf(d *Dump, key string) string {
	for i := range d.Report.Leaks {
		if d.Report.Leaks[i].Key == key {
			var b strings.Builder
			_ = reporters.WriteLeak(&b, &d.Report.Leaks[i]) // a Builder never fails
			return "\n" + screen(strings.TrimSpace(b.String()))
		}
	}
	return ""
}

// HaveRetainedBelow matches a heap dump in which all objects of a class
// together retain less than the given number of bytes.
func HaveRetainedBelow(class string, bytes int64) types.GomegaMatcher {
	want := fmt.Sprintf("to have less than %s retained by %s", text.Bytes(bytes), class)
	return &matcher[*Dump]{
		want: want, final: func(*Dump) bool { return true }, match: func(d *Dump) (bool, string, error) {
			if err := d.check(); err != nil {
				return false, "", err
			}
			least := int64(-1)
			for _, c := range d.Report.Classes {
				if c.Class == class {
					words := fmt.Sprintf("%s: %s of %s, %s retained", d.GomegaString(),
						text.Count(int(c.Instances), "object", "objects"), class, text.Bytes(c.RetainedBytes))
					if c.RetainedIsBound && c.RetainedBytes < bytes {
						return false, words, fmt.Errorf("judge %s: %s retains at least %s; the exact size is unknown",
							d.GomegaString(), class, text.Bytes(c.RetainedBytes))
					}
					return c.RetainedBytes < bytes, words, nil
				}
				if least < 0 || c.RetainedBytes < least {
					least = c.RetainedBytes
				}
			}
			words := fmt.Sprintf("%s: %s is not among the %d classes that retain the most memory, "+
				"so it retains at most %s", d.GomegaString(), class, len(d.Report.Classes), text.Bytes(max(least, 0)))
			if least > 0 && bytes <= least {
				return false, words, fmt.Errorf("judge %s: %s is not among the classes that retain the most memory",
					d.GomegaString(), class)
			}
			return true, words, nil
		}}
}

// HaveLeaked matches a process that has more objects, threads or open files
// than in an earlier snapshot:
// Eventually(leaks.Process("com.shop")).ShouldNot(HaveLeaked(before)).
func HaveLeaked(before *Snapshot) types.GomegaMatcher {
	return &matcher[ProcessState]{
		want: "to have leaked since the snapshot", match: func(s ProcessState) (bool, string, error) {
			if before == nil {
				return false, "", fmt.Errorf("compare %s: the snapshot is nil", s.Process)
			}
			if before.Process != s.Process {
				return false, "", fmt.Errorf("compare %s: the snapshot is of %s", s.Process, before.Process)
			}
			ctx, done := context.WithTimeout(context.Background(), askTime)
			defer done()
			now, err := s.leaks.Snapshot(ctx, s.Process)
			if err != nil {
				return false, "", err
			}
			if now.PID != before.PID || now.Start != before.Start {
				return false, "", fmt.Errorf("compare %s: it has restarted since the snapshot (pid %[3]d, then %[2]d)",
					s.Process, now.PID, before.PID)
			}
			rises := snapshotGrowth(before, now)
			if len(rises) == 0 {
				return false, s.Process + " has no more objects, threads or open files than before", nil
			}
			return true, s.Process + " has more objects, threads or open files than before: " + check.Text(rises), nil
		}}
}

func snapshotGrowth(before, now *Snapshot) []check.Rise {
	rises := check.Rose(before.Objects, now.Objects)
	for _, n := range []struct {
		name        string
		before, now *int64
	}{{"threads", before.Threads, now.Threads}, {"open files", before.Files, now.Files}} {
		if n.before != nil && n.now != nil && *n.now > *n.before {
			rises = append(rises, check.Rise{Name: n.name, Before: *n.before, After: *n.now})
		}
	}
	return rises
}
