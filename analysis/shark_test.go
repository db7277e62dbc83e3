package analysis

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/sharktest"
)

// sharkCase is a generated dump with Shark 2.14's answers about it.
type sharkCase struct {
	name    string
	data    []byte
	answers []sharkAnswer
}

// sharkAnswer is one answer of Shark. kind is filter, keyed or class; class is
// set for the kind class.
type sharkAnswer struct {
	sharktest.Answer
	kind, class string
	// mine is our answer to the same question by Shark's rules; nil until it is
	// computed.
	mine *ourAnswer
}

// ourAnswer holds what several tests compare: all lines without sizes, the
// credited bytes of each leak by its lines, and the verdict on each target.
type ourAnswer struct {
	lines    []string
	credited map[string]int64
	fates    map[heap.Object]fate
}

// ask returns our answer to the question that Shark answered.
func (a *sharkAnswer) ask(t *testing.T, data []byte) *ourAnswer {
	t.Helper()
	if a.mine != nil {
		return a.mine
	}
	f := find(t, data, a.options(true))
	defer f.graph.Close()
	a.mine = answerOf(f)
	return a.mine
}

func answerOf(f *found) *ourAnswer {
	a := &ourAnswer{lines: f.lines(), credited: map[string]int64{}, fates: f.fates()}
	for i := range f.Leaks {
		l := &f.Leaks[i]
		a.credited[leakLine(l.Library() != nil, l.Fingerprint(), len(l.Traces))] = l.Credited.Total()
	}
	return a
}

func (a *sharkAnswer) String() string { return strings.TrimSpace(a.kind + " " + a.class) }

// options returns options that select the same targets as Shark's question.
func (a *sharkAnswer) options(shark214 bool) Options {
	o := Options{shark214: shark214, watched: a.kind == "keyed"}
	if a.kind == "class" {
		o.LeakingClasses = []string{a.class}
	}
	return o
}

// sharkRun holds everything that the tests of this package need from Shark,
// computed by one JVM.
type sharkRun struct {
	cases []sharkCase
	// faults holds the answers about the dumps of sharkFaults, by name.
	faults map[string]sharktest.Answer
}

var oneRun struct {
	once sync.Once
	run  *sharkRun
}

// askShark runs Shark once for all tests. If Shark is not available,
// recorded.Missing skips the test or fails it.
func askShark(t *testing.T) *sharkRun {
	t.Helper()
	if testing.Short() {
		t.Skip("runs Shark on hundreds of dumps")
	}
	s := sharktest.New(t)
	oneRun.once.Do(func() { oneRun.run = newSharkRun(t, s) })
	if oneRun.run == nil {
		t.Fatal("Shark failed in an earlier test")
	}
	return oneRun.run
}

func newSharkRun(t *testing.T, s *sharktest.Shark) *sharkRun {
	t.Helper()
	run := &sharkRun{faults: map[string]sharktest.Answer{}}
	dir := t.TempDir()
	var requests []sharktest.Request
	ask := func(name string, data []byte, finders ...sharktest.Finder) {
		path := filepath.Join(dir, fmt.Sprint(len(requests), ".hprof"))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, finder := range finders {
			requests = append(requests, sharktest.Request{Dump: path, Mode: sharktest.Android, Finder: finder})
		}
	}
	for _, c := range hproftest.LeakCases() {
		data, _, err := c.Heap().Dump(c.Form)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		asked := sharkCase{name: c.Name, data: data}
		asked.ask("filter", "")
		if watches(c.Name) {
			asked.ask("keyed", "")
		}
		for _, class := range classesOf(&c) {
			if bytes.Contains(data, []byte(class)) {
				asked.ask("class", class)
			}
		}
		var finders []sharktest.Finder
		for _, a := range asked.answers {
			finders = append(finders, a.finder())
		}
		ask(c.Name, data, finders...)
		run.cases = append(run.cases, asked)
	}
	faults := sharkFaults()
	for _, f := range faults {
		ask(f.name, f.dump(t), sharktest.Filter)
	}
	answers := s.Analyze(t, requests)
	for i := range run.cases {
		for j := range run.cases[i].answers {
			run.cases[i].answers[j].Answer, answers = answers[0], answers[1:]
		}
	}
	for i, f := range faults {
		run.faults[f.name] = answers[i]
	}
	return run
}

func (c *sharkCase) ask(kind, class string) {
	c.answers = append(c.answers, sharkAnswer{kind: kind, class: class})
}

func (a *sharkAnswer) finder() sharktest.Finder {
	if a.kind == "class" {
		return sharktest.Class(a.class)
	}
	return sharktest.Finder(a.kind)
}

// watches reports whether a case may contain objects that LeakCanary watches.
func watches(name string) bool {
	return strings.Contains(name, "watched") || strings.HasPrefix(name, "mix/")
}

// classesOf returns the classes whose objects are treated as leaking: all
// classes that a case names. Shapes that do not leak themselves are excluded,
// because the plain leak that they hold is their only leak anyway.
func classesOf(c *hproftest.LeakCase) []string {
	kind, shape, _ := strings.Cut(c.Name, "/")
	if kind == "holder" && !slices.Contains(leakingShapes(), shape) || kind == "harmony" {
		return nil
	}
	return c.Classes
}

// leakingShapes are the shapes that leak themselves: each has a case of its
// own.
var leakingShapes = sync.OnceValue(func() (names []string) {
	for _, c := range hproftest.LeakCases() {
		if shape, ok := strings.CutPrefix(c.Name, "leak/"); ok {
			names = append(names, shape)
		}
	}
	return names
})

// subject is a loaded dump.
type subject struct {
	*dump
	metadata *android.Metadata
}

// load reads a dump. The caller must close the graph, because a test reads a
// thousand dumps.
func load(t *testing.T, data []byte, o Options) *subject {
	t.Helper()
	ctx := context.Background()
	d, err := open(ctx, bytes.NewReader(data), int64(len(data)), o)
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.platform(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &subject{d, m}
}

// found is the result of a search. Each graph is used for only one search.
type found struct {
	*trace.Result
	graph *heap.Graph
}

// find loads a dump and searches it as a report does. The caller must close the
// graph.
func find(t *testing.T, data []byte, o Options) *found {
	t.Helper()
	ctx := context.Background()
	o.inbound = true
	s := load(t, data, o)
	search, err := s.inspect(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer search.close()
	targets, err := search.targets(ctx, o)
	if err == nil {
		err = search.open(ctx, s.metadata, targets, nil, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	result, err := search.find(ctx, targets, o)
	if err != nil {
		t.Fatal(err)
	}
	return &found{result, s.graph}
}

// TestSharkGenerated compares the leaks, identities, statuses and paths that
// our search finds by Shark's rules with those of Shark 2.14, on every
// generated dump.
func TestSharkGenerated(t *testing.T) {
	wrong, all := 0, 0
	for _, c := range askShark(t).cases {
		for i := range c.answers {
			a := &c.answers[i]
			all++
			if a.Failure != "" {
				t.Errorf("%s, %v: Shark failed: %s", c.name, a, a.Failure)
				continue
			}
			err := difference(a.ask(t, c.data).lines, sharkLines(&a.Answer))
			if err == nil {
				continue
			}
			if wrong++; wrong <= 20 {
				t.Errorf("%s, %v: %v", c.name, a, err)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d answers differ", wrong, all)
	}
	if len(askShark(t).cases) < 200 {
		t.Errorf("%d dumps", len(askShark(t).cases))
	}
	t.Logf("%d answers for %d dumps", all, len(askShark(t).cases))
}

// lines returns everything in a result, except for sizes.
func (f *found) lines() (lines []string) {
	for i := range f.Leaks {
		l := &f.Leaks[i]
		lines = append(lines, leakLine(l.Library() != nil, l.Fingerprint(), len(l.Traces)))
		for j := range l.Traces {
			lines = append(lines, traceLine(f.graph, &l.Traces[j]))
		}
	}
	for _, o := range f.Unreachable {
		lines = append(lines, fmt.Sprintf("unreachable %#x", f.graph.ID(o)))
	}
	return lines
}

func sharkLines(a *sharktest.Answer) (lines []string) {
	for _, l := range a.Leaks {
		lines = append(lines, leakLine(l.Type == sharktest.Library, l.Signature, len(l.Traces)))
		for _, x := range l.Traces {
			lines = append(lines, sharkLine(x))
		}
	}
	for _, o := range a.Unreachable {
		lines = append(lines, fmt.Sprintf("unreachable %#x", o.ID))
	}
	return lines
}

func leakLine(library bool, fingerprint string, traces int) string {
	return fmt.Sprintf("leak %s library=%t %d traces", fingerprint, library, traces)
}

func traceLine(g *heap.Graph, x *trace.Trace) string {
	var b strings.Builder
	fmt.Fprintf(&b, "trace %s", x.Root.Kind)
	for i := range x.Elements {
		e := &x.Elements[i]
		fmt.Fprintf(&b, "\n   %#x %s %s %s (%s) %s", g.ID(e.Object), e.Type, e.Class, e.Status, e.Reason,
			strings.Join(e.Labels, "; "))
		if i < len(x.Elements)-1 {
			fmt.Fprintf(&b, " -> %s %s %s %t", kindNames[e.Kind], e.Owner, e.Field, e.Suspect)
		}
	}
	return b.String()
}

// sharkStatuses maps Shark's statuses to the words in leak traces.
var sharkStatuses = map[string]string{"LEAKING": "YES", "NOT_LEAKING": "NO", "UNKNOWN": "UNKNOWN"}

func sharkLine(x sharktest.Trace) string {
	var b strings.Builder
	fmt.Fprintf(&b, "trace %s", x.Root)
	object := func(o sharktest.Object) {
		fmt.Fprintf(&b, "\n   %#x %s %s %s (%s) %s", o.ID, strings.ToLower(o.Type), o.Class, sharkStatuses[o.Status],
			o.Reason, strings.Join(o.Labels, "; "))
	}
	for _, r := range x.Path {
		object(r.Origin)
		fmt.Fprintf(&b, " -> %s %s %s %t", strings.ToLower(r.Kind), heap.NormalName(r.Owner), r.Generic, r.Suspect)
	}
	object(x.Leaking)
	return b.String()
}

// difference returns an error with the lines that only one side has, or nil.
func difference(mine, theirs []string) error {
	slices.Sort(mine)
	slices.Sort(theirs)
	if slices.Equal(mine, theirs) {
		return nil
	}
	var b strings.Builder
	for _, l := range mine {
		if !slices.Contains(theirs, l) {
			b.WriteString("\n ours   " + l)
		}
	}
	for _, l := range theirs {
		if !slices.Contains(mine, l) {
			b.WriteString("\n Shark's " + l)
		}
	}
	return fmt.Errorf("%d lines, Shark has %d:%s", len(mine), len(theirs), b.String())
}
