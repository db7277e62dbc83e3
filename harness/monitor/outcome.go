package monitor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/reporters/record"
)

// outcome is all that run.json is made of: what the run was asked, what its lines
// tell, and how it ended.
type outcome struct {
	header  record.Header
	ledgers []*ledger
	final   record.Event
	// damage is what a rebuild could not read.
	damage damage
}

// record makes run.json.
func (o outcome) record() record.Run {
	plan := o.plan()
	r := record.Run{
		Schema: record.RunSchema, Tool: plan.Tool, Started: o.header.Started,
		Policy: policyName(plan), Stopped: o.final.Text, Workload: o.workload(),
		Devices: []record.Device{}, Processes: []record.Process{}, Diagnoses: []record.Diagnosis{}, Warnings: []string{},
	}
	if o.final.Ended != nil {
		r.Ended = *o.final.Ended
	}
	r.Own = o.final.Own
	processes := 0
	for _, l := range o.ledgers {
		processes += len(l.order)
	}
	for _, l := range o.ledgers {
		d := l.record()
		if r.Own == nil {
			r.Own = l.own
		}
		d.Apps = nil
		r.Devices = append(r.Devices, d)
		for _, a := range l.order {
			r.Processes = append(r.Processes, a.record(l, processes))
		}
		r.Diagnoses = append(r.Diagnoses, l.diagnoses()...)
	}
	var cut int
	if r.Diagnoses, cut = shorten(r.Diagnoses); cut > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d diagnoses are left out here, or what they have found: their folders have it", cut))
	}
	r.Interrupted = r.Stopped == stoppedInterrupted || r.Stopped == stoppedKilled
	r.Warnings = append(r.Warnings, o.absent()...)
	if text := o.damage.summary(); text != "" {
		r.Warnings = append(r.Warnings, text)
	}
	r.ExitCode = exitCode(r, Assert(plan.Assert), plan.Strict)
	return r
}

// diagnoses are those of all processes, in the order of their times.
func (l *ledger) diagnoses() []record.Diagnosis {
	var out []record.Diagnosis
	for _, a := range l.order {
		out = append(out, a.diagnoses...)
	}
	slices.SortStableFunc(out, func(a, b record.Diagnosis) int { return cmp.Compare(a.T, b.T) })
	return out
}

// maxDiagnosesText bounds the diagnoses of run.json together, in bytes: it must be read
// again, see record.ReadRun.
const maxDiagnosesText = 32 << 20

// shorten leaves out what goes beyond the bound: first what a diagnosis has found, then
// whole ones. It says of how many.
func shorten(list []record.Diagnosis) (kept []record.Diagnosis, cut int) {
	kept = list[:0:0]
	total := 0
	fits := func(d *record.Diagnosis) bool {
		text, err := json.Marshal(d)
		if err != nil || total+len(text) > maxDiagnosesText {
			return false
		}
		total += len(text)
		return true
	}
	for _, d := range list {
		if fits(&d) {
			kept = append(kept, d)
			continue
		}
		cut++
		d.Findings, d.Summary = []record.Finding{}, []string{}
		if fits(&d) {
			kept = append(kept, d)
		}
	}
	return kept, cut
}

// workload is how the workload has ended, and where it was interrupted.
func (o outcome) workload() *record.Workload {
	if o.final.Workload == nil {
		return nil
	}
	w := *o.final.Workload
	w.Interrupted = nil
	for _, l := range o.ledgers {
		if l.dropped != nil {
			w.Interrupted = append(w.Interrupted, record.Interruption{Device: l.device.Device, T: *l.dropped})
		}
	}
	return &w
}

func (o outcome) plan() record.Plan {
	if o.header.Plan == nil {
		return record.Plan{Assert: string(AssertEnd)}
	}
	return *o.header.Plan
}

func policyName(p record.Plan) string {
	var policy struct{ Name string }
	// The policy was written by this program or read by it before.
	_ = json.Unmarshal(p.Policy, &policy)
	return policy.Name
}

// absent names the processes that were asked for and never seen. A pattern with a
// star may well choose none, as long as something was seen.
func (o outcome) absent() []string {
	some := slices.ContainsFunc(o.ledgers, func(l *ledger) bool { return len(l.order) > 0 })
	var out []string
	for _, text := range o.plan().Processes {
		p := capture.Pattern(text)
		seen := slices.ContainsFunc(o.ledgers, func(l *ledger) bool { return l.saw(p) })
		if !seen && !(some && strings.HasSuffix(text, "*")) {
			out = append(out, fmt.Sprintf("no process %s was seen", p))
		}
	}
	return out
}

func (l *ledger) saw(p capture.Pattern) bool {
	return slices.ContainsFunc(l.order, func(a *account) bool { return p.Match(a.Name) })
}
