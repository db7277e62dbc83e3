package harness

import (
	"context"
	"flag"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/harness/hub"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

// ForTest combines [Watch] and [Leaks.Check] for a single Go test. It starts
// the watch immediately and counts objects. If objects are left behind when the
// test is over, the test fails. Cleanups that were registered after ForTest run
// before the check: register ForTest last, or call it after the app is set up.
//
// The Expect of Gomega and the matchers of this package work without Ginkgo.
func ForTest(t testing.TB, process string, opts ...any) *Leaks {
	t.Helper()
	declareFlags(flag.CommandLine)
	watch, check := splitOptions(t, opts)
	l := newLeaks(process, watch)
	l.settings.Suite = t.Name()
	l.settings.Log = func(line string) { t.Log("leakgate: " + line) }
	if err := l.resolve(); err != nil {
		t.Fatal("leakgate: ", err)
	}
	l.owner = hub.New(l.settings.Options)
	l.hub = l.owner
	s := &spec{name: t.Name(), entered: map[*int]bool{}, check: *newCheckSettings(check), wanted: true}
	s.check.location = caller()
	l.spec = s
	ctx := context.WithoutCancel(t.Context())
	var err error
	if s.turn, err = l.owner.Turn(ctx, t.Name(), func(string) {}); err == nil {
		err = l.owner.Start(ctx, false)
	}
	if err != nil {
		t.Fatal("leakgate: ", err)
	}
	opened, err := l.owner.Open(ctx,
		hub.OpenRequest{
			Name: s.name, Location: withoutHost(s.check.location), Device: s.turn.Serial(),
			Patterns: patternsOf(s.check.patterns),
		})
	s.number, s.strict, s.problem = opened.Check, opened.Strict, err
	s.setSerial()
	if err == nil {
		s.note(l.owner.Recount(ctx, s.number))
	}
	t.Cleanup(func() { l.endTest(ctx, t, s) })
	return l
}

// splitOptions separates the options of a watch from those of a check.
func splitOptions(t testing.TB, opts []any) (watch []Option, check []CheckOption) {
	t.Helper()
	for _, o := range opts {
		switch o := o.(type) {
		case Option:
			watch = append(watch, o)
		case CheckOption:
			check = append(check, o)
		default:
			t.Fatalf("leakgate: invalid option %T: want an Option or a CheckOption", o)
		}
	}
	return watch, check
}

// endTest checks a finished test for leaks and ends the run.
func (l *Leaks) endTest(ctx context.Context, t testing.TB, s *spec) {
	t.Helper()
	s.stopBackground()
	if s.number != 0 {
		s.note(l.owner.Collect(ctx, hub.CollectRequest{
			Check: s.number, Location: withoutHost(s.check.location), Patterns: patternsOf(s.check.patterns),
			Heap: s.check.heap, Trend: s.check.trend, Live: s.check.live,
		}))
	}
	outcome := record.OutcomePassed
	if t.Failed() {
		outcome = record.OutcomeFailed
	}
	e := SpecEntry{Check: l.closeWith(ctx, s, outcome, ""), Run: l.Dir()}
	s.resetSerial()
	s.turn.Release()
	v, err := l.owner.Finish("the test has ended", false)
	if err == nil {
		err = reporters.WriteJUnitFile(l.owner.Dir(), v.Run)
	}
	if err != nil {
		t.Error("leakgate: ", err)
	}
	switch {
	case l.fails(e, s.strict):
		t.Error(screen(l.failure(e)))
	case len(v.Failures) > 0 && !l.settings.Observe:
		t.Error(screen("leakgate: " + strings.Join(v.Failures, "\n")))
	default:
		t.Log("leakgate: " + e.String())
	}
	for _, tested := range s.tests {
		if one := (SpecEntry{Check: tested, Run: e.Run}); l.fails(one, s.strict) {
			t.Error(screen(tested.Name + "\n" + l.failure(one)))
		}
	}
}
