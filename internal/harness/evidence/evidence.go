package evidence

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/harness/gate"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
)

// Evidence contains what was observed in one run, and the traces of its leaks.
type Evidence struct {
	// Observations contains one entry for each device.
	Observations []gate.Observation
	Traces       map[gate.TraceKey]gate.Trace
	Head         comparison.Head
	// Missing lists evidence that should exist but does not.
	Missing []string
	// Unjudged lists the devices without a verdict and the reasons.
	Unjudged []string
	// RunExit is the exit code of the run itself; it is 0 if there are only
	// heap dumps. WorkloadFailed reports whether the workload failed, whatever
	// else determined the exit code.
	RunExit        int
	WorkloadFailed bool
	Warnings       []string
}

// moment is one heap dump of a process.
type moment struct {
	at        float64
	settled   bool
	leaks     []analysis.SummaryLeak
	loaded    []string
	reachable int64
	names     string
	undecided string
}

// series adds the leaks of a process and their counts, taken from its dumps,
// which must be in time order.
func series(o *gate.Observed, dumps []moment, lives bool) {
	places := map[string]int{}
	o.Heap = gate.Timeline{Exposure: []float64{}, Settled: true, SeparateLives: lives}
	for i := range dumps {
		d := &dumps[i]
		o.Heap.Exposure = append(o.Heap.Exposure, d.at)
		o.Heap.Settled = o.Heap.Settled && d.settled
		o.Reachable = append(o.Reachable, d.reachable)
		o.Undecided = cmp.Or(o.Undecided, d.undecided)
		for k := range d.leaks {
			l := &d.leaks[k]
			at, ok := places[l.Key]
			if !ok {
				at = len(o.Places)
				places[l.Key] = at
				o.Places = append(o.Places,
					gate.Place{
						Type: gate.TypeLeak, Key: l.Key, Counts: make([]int64, len(dumps)),
						Bytes: make([]int64, len(dumps)), Classes: map[string][]int64{},
					})
			}
			add(&o.Places[at], l, i, len(dumps))
		}
		o.Names = worse(o.Names, d.names)
	}
	for i := range o.Places {
		boundClasses(&o.Places[i])
	}
	if n := len(dumps); n > 0 {
		o.Loaded = gate.NewClassSet(dumps[n-1].loaded)
	}
}

// boundClasses keeps the classes with the most objects in the last dump. The
// number of classes is bounded because each dump may contain different ones.
func boundClasses(p *gate.Place) {
	if len(p.Classes) <= mostClasses {
		return
	}
	last := len(p.Counts) - 1
	names := slices.SortedFunc(maps.Keys(p.Classes), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.Classes[b][last], p.Classes[a][last]), strings.Compare(a, b))
	})
	for _, name := range names[mostClasses:] {
		delete(p.Classes, name)
	}
}

// name records, for each place of a process, the reference in its trace that
// holds the objects.
func (e *Evidence) name(device string, o *gate.Observed) {
	for i := range o.Places {
		p := &o.Places[i]
		p.HeldBy = cmp.Or(p.HeldBy, e.Traces[gate.TraceKey{Device: device, Process: o.Process, Key: p.Key}].HeldBy)
	}
}

// mostClasses is the maximum number of classes of one leak; those with the most
// objects are kept.
const mostClasses = 100

// add adds a leak in the dump with the given number. The description is taken
// from the latest dump.
func add(p *gate.Place, l *analysis.SummaryLeak, dump, dumps int) {
	p.Counts[dump] += l.Instances
	p.Bytes[dump] += l.RetainedBytes
	p.Description = gate.Description{
		Class: name(l.Class), HeldBy: p.HeldBy, KeyText: l.KeyText, Fingerprints: l.Fingerprints, Library: l.Library,
	}
	classes := make([]string, 0, len(l.Classes))
	for class := range l.Classes {
		classes = append(classes, class)
	}
	slices.SortFunc(classes, func(a, b string) int {
		return cmp.Or(cmp.Compare(l.Classes[b], l.Classes[a]), strings.Compare(a, b))
	})
	for _, class := range classes[:min(len(classes), mostClasses)] {
		n, class := l.Classes[class], name(class)
		if p.Classes[class] == nil {
			p.Classes[class] = make([]int64, dumps)
		}
		p.Classes[class][dump] += n
	}
}

// maxName is the maximum length of a name that an app supplies.
const maxName = 500

func name(s string) string { return text.Head(text.Printable(s), maxName) }

// worse compares where the class and field names in two dumps come from, and
// returns the less reliable origin.
func worse(a, b string) string {
	order := []string{"", "source", "mapping", "other_mapping", "obfuscated"}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// traceOf returns the trace of a leak.
func traceOf(l *analysis.Leak) gate.Trace {
	var out bytes.Buffer
	_ = reporters.WriteLeak(&out, l) // writing to a Buffer cannot fail
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	// Skip the lines before the trace: the comparison shows them separately.
	if at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "┬") }); at > 0 {
		lines = lines[at:]
	}
	t := gate.Trace{Lines: lines[:min(len(lines), maxTrace)]}
	if _, held, ok := strings.Cut(reporters.LeakName(l), ", held by "); ok {
		t.HeldBy = text.Head(held, maxName)
	}
	var platform []comparison.Suspect
	for _, e := range l.Trace {
		if !e.Suspect || e.Owner == "" || !strings.HasSuffix(e.Kind, "_field") {
			continue
		}
		s := comparison.Suspect{Class: name(e.Owner), Field: name(e.Reference[strings.LastIndex(e.Reference, ".")+1:])}
		if android.IsPlatform(e.Owner) {
			platform = append(platform, s)
		} else {
			t.Suspects = append(t.Suspects, s)
		}
	}
	if len(t.Suspects) == 0 {
		t.Suspects = platform
	}
	t.Suspects = t.Suspects[:min(len(t.Suspects), maxSuspects)]
	return t
}

const (
	// maxTrace is the maximum number of lines in a trace. maxSuspects is the
	// maximum number of suspected references in a trace.
	maxTrace    = 80
	maxSuspects = 5
)
