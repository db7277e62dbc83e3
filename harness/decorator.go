package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// Decorator can be passed to Describe, Context, When, It, DescribeTable and
// Entry, and applies to all of their specs. It does not change the names or
// labels of nodes.
type Decorator []any

// CheckOption selects what a check examines.
type CheckOption interface{ applyCheck(*checkSettings) }

type checkOption func(*checkSettings)

func (o checkOption) applyCheck(s *checkSettings) { o(s) }

// checkSettings are the combined options of the decorators of one spec.
type checkSettings struct {
	location          string
	patterns          []string
	heap, trend, live bool
}

func newCheckSettings(opts []CheckOption) *checkSettings {
	s := &checkSettings{}
	for _, o := range opts {
		o.applyCheck(s)
	}
	return s
}

// Heap makes the check dump the heap after the body even if no object counts
// grew. This also finds leaks of objects that dumpsys does not count. It costs
// one heap dump per spec.
func Heap() CheckOption { return checkOption(func(s *checkSettings) { s.heap = true }) }

// Trend judges the memory growth within the spec, which must last for at least
// 30 minutes; a shorter spec is inconclusive.
func Trend() CheckOption { return checkOption(func(s *checkSettings) { s.trend = true }) }

// Live fails a spec if its samples show that a process was LEAKING at any time.
func Live() CheckOption { return checkOption(func(s *checkSettings) { s.live = true }) }

// Of returns an option that limits the check to the watched processes whose
// names match one of the given names or patterns. By default, all watched
// processes are checked.
func Of(processes ...string) CheckOption {
	return checkOption(func(s *checkSettings) { s.patterns = append(s.patterns, processes...) })
}

// Check returns a decorator that checks specs for leaked objects.
//
// Activities, Views, ViewRootImpl and AppContexts are counted right before the
// body and right after it, before any teardown. If the counts grew, the app is
// left alone until it has settled, the objects are counted again, and the heap
// is dumped. The spec fails if the dump contains objects that should be gone,
// are still held, and were not in the previous dump. Objects that are open and
// in use do not fail the spec.
func (l *Leaks) Check(opts ...CheckOption) Decorator {
	s := newCheckSettings(opts)
	s.location = caller()
	d := l.around(func(ctx context.Context, spec *spec) { l.checkSpec(ctx, spec, s) })
	l.checks[d[0].(types.AroundNodeDecorator).CodeLocation] = s
	return d
}

// Known accepts a leak in the specs that it decorates until the end of the
// given day; other leaks still fail. The reason and the owner appear in every
// report. After that day the spec fails, whether or not the leak still exists.
func (l *Leaks) Known(id Identity, reason, owner string, until Date) Decorator {
	e := monitor.Exception{Reason: reason, Owner: owner, Until: time.Time(until)}
	id(&e)
	if err := e.Validate(); err != nil {
		panic(fmt.Sprintf("harness.Known at %s: %v", caller(), err))
	}
	return l.around(func(_ context.Context, spec *spec) { spec.accept(e) })
}

// Skip excludes the specs that it decorates from checking, and reports the
// reason.
func (l *Leaks) Skip(reason string) Decorator {
	if strings.TrimSpace(reason) == "" {
		panic(fmt.Sprintf("harness.Skip at %s: write a reason", caller()))
	}
	return l.around(func(_ context.Context, spec *spec) { spec.skipped = reason })
}

// Identity determines which leaks an exception covers; see [Key], [Class] and
// [Held].
type Identity func(*monitor.Exception)

// Key identifies a leak by the key that reports show, or by at least the first
// 8 characters of the key.
func Key(key string) Identity { return func(e *monitor.Exception) { e.Key = key } }

// Class identifies leaks by the class of the leaking objects, with or without
// its package.
func Class(name string) Identity { return func(e *monitor.Exception) { e.Class = name } }

// Held identifies leaks by a reference on their path from the GC root, such as
// "ScreenTracker.sScreens".
func Held(reference string) Identity { return func(e *monitor.Exception) { e.Held = reference } }

// Date is a day.
type Date time.Time

// Until returns the last day of an exception.
func Until(year int, month time.Month, day int) Date {
	return Date(time.Date(year, month, day, 0, 0, 0, 0, time.Local))
}

// around returns a decorator that calls a function once in each spec, before
// the first node that it decorates.
func (l *Leaks) around(do func(context.Context, *spec)) Decorator {
	once := new(int) // the address of once identifies the decorator
	l.decorators++
	at := types.CodeLocation{CustomMessage: fmt.Sprintf("leakgate decorator %d", l.decorators)}
	return Decorator{types.AroundNode(func(ctx context.Context, body func(context.Context)) {
		if s := l.current(); s != nil && s.enter(once) {
			do(ctx, s)
		}
		body(ctx)
	}, at)}
}

// recordLocations records the locations of nodes with a check, so that their
// specs can be prepared outside of their timeouts. It skips table entries:
// their specs are prepared in their first node.
func (l *Leaks) recordLocations(
	_ types.NodeType, offset ginkgo.Offset, text string, args []any,
) (string, []any, []error) {
	for _, a := range args {
		d, ok := a.(types.AroundNodeDecorator)
		if !ok {
			continue
		}
		if s := l.checks[d.CodeLocation]; s != nil {
			at := types.NewCodeLocation(int(offset))
			l.nodes[fmt.Sprintf("%s:%d", at.FileName, at.LineNumber)] = s
		}
	}
	return text, args, nil
}

// expectedCheck returns the check that a spec will probably have, or nil if
// none is known.
func (l *Leaks) expectedCheck(r ginkgo.SpecReport) *checkSettings {
	if l.settings.every != nil {
		return l.settings.every
	}
	for _, at := range append([]types.CodeLocation{r.LeafNodeLocation}, r.ContainerHierarchyLocations...) {
		if s := l.nodes[fmt.Sprintf("%s:%d", at.FileName, at.LineNumber)]; s != nil {
			return s
		}
	}
	return nil
}

// caller returns the location FILE:LINE from which this package was called.
func caller() string {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, packagePath+".") || strings.HasSuffix(f.File, "_test.go") {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if !more {
			return ""
		}
	}
}

// withoutHost removes this computer's directories from a location, because the
// record of a run must not contain them. The result is relative to the
// directory of the package, in which Go runs the package's tests.
func withoutHost(location string) string {
	dir, err := os.Getwd()
	if err != nil {
		return filepath.Base(location)
	}
	inside, err := filepath.Rel(dir, location)
	if err != nil || !filepath.IsLocal(inside) {
		return filepath.Base(location)
	}
	return filepath.ToSlash(inside)
}

const packagePath = "github.com/leakgate/leakgate/harness"

// patternsOf converts strings such as com.shop and com.shop:* to patterns.
func patternsOf(names []string) []capture.Pattern {
	out := make([]capture.Pattern, len(names))
	for i, n := range names {
		out[i] = capture.Pattern(n)
	}
	return out
}
