package ledger

import (
	"slices"
	"strings"

	"github.com/leakgate/leakgate/reporters/record"
)

// incidents counts the crashes, the ANRs and the memory-related deaths of one
// process. The workload reports a crash, and the death that the crash causes is
// read later: together they count as one incident.
type incidents struct {
	byKind map[string]*record.Incident
	// open lists the latest faults for which no death has been read yet.
	open []openFault
}

// openFault is a fault that may still turn out to have caused the death of its
// process.
type openFault struct {
	pid  int
	kind string
	text string
}

// maxOpenFaults is the maximum number of faults for which a death may still be
// read.
const maxOpenFaults = 100

// kindOfFault returns the kind of a fault that a workload reported; monkey
// prints the class of an exception.
func kindOfFault(d record.Death) string {
	if d.Reason == "crash" && strings.HasPrefix(d.Text, "java.lang.OutOfMemoryError") {
		return "out_of_memory"
	}
	return d.Reason
}

func (x *incidents) addFault(d record.Death) {
	kind := kindOfFault(d)
	if !slices.Contains(record.IncidentKinds(), kind) {
		return
	}
	x.count(kind, d)
	if len(x.open) == maxOpenFaults {
		x.open = append(x.open[:0], x.open[1:]...)
	}
	x.open = append(x.open, openFault{d.PID, kind, d.Text})
}

// explain adds a reason to a death that the device does not explain, if the
// workload reported the reason earlier.
func (x *incidents) explain(d record.Death) record.Death {
	if d.Reason != "unknown" {
		return d
	}
	for _, f := range x.open {
		if f.pid == d.PID && f.kind != "anr" { // a fault that the process may have survived
			d.Reason, d.Text = f.kind, "reported by the workload: "+f.text
		}
	}
	return d
}

func (x *incidents) addDeath(d record.Death) {
	defer func() {
		x.open = slices.DeleteFunc(x.open, func(f openFault) bool { return f.pid == d.PID })
	}()
	if !slices.Contains(record.IncidentKinds(), d.Reason) {
		return
	}
	for _, f := range x.open {
		if f.pid == d.PID && sameFailure(f.kind, d.Reason) {
			x.byKind[f.kind].Count-- // the record of the death contains more information
			x.count(d.Reason, d)
			return
		}
	}
	x.count(d.Reason, d)
}

// sameFailure reports whether a fault and a death may belong to the same
// failure.
func sameFailure(fault, death string) bool {
	if fault == "anr" || death == "anr" {
		return fault == death
	}
	crashes := []string{"crash", "native_crash", "out_of_memory"}
	return slices.Contains(crashes, fault) && slices.Contains(crashes, death)
}

func (x *incidents) count(kind string, d record.Death) {
	if x.byKind == nil {
		x.byKind = map[string]*record.Incident{}
	}
	i := x.byKind[kind]
	if i == nil {
		i = &record.Incident{Kind: kind, First: d.T}
		x.byKind[kind] = i
	}
	if i.Count == 0 {
		i.First = d.T
	}
	i.Count++
	i.Last, i.Text = d.T, d.Text
}

// list returns the incidents, ordered by kind.
func (x *incidents) list() []record.Incident {
	out := []record.Incident{}
	for _, kind := range record.IncidentKinds() {
		if i := x.byKind[kind]; i != nil && i.Count > 0 {
			out = append(out, *i)
		}
	}
	return out
}
