package plan

import (
	"fmt"

	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/config"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/internal/text"
)

// CannotJudge returns the reason why a run with these options cannot judge
// anything, and the smallest change that would help. It returns "" if the run
// can judge something. If gated is set, the heap dumps at the end of the run
// are compared with those of earlier runs.
func CannotJudge(o monitor.Options, gated bool) string {
	dump := response.OnLeak
	if o.Respond != nil {
		dump = o.Respond.Dump
	}
	switch {
	case o.Duration <= 0 || o.Duration >= ledger.TrendNeeds:
		return ""
	case dump == response.AtMarks, dump == response.AtEnd && gated, checksTests(o.Workload):
		return ""
	}
	after := fmt.Sprintf("the run ends after %s", text.Span(o.Duration.Seconds()))
	if o.LongestDuration > o.Duration {
		after += " unless memory grows"
	}
	return fmt.Sprintf("nothing can be judged: %s, and a trend needs %s: run for 30m or longer, or dump heaps at "+
		"marks (`diagnose.dump: at_marks`)",
		after, text.Span(ledger.TrendNeeds.Seconds()))
}

// checksTests reports whether the tests of a workload are checked.
func checksTests(w monitor.Workload) bool {
	switch w := w.(type) {
	case monitor.Instrument:
		return true
	case monitor.HostCommand:
		return w.Windows != nil
	case monitor.DeviceCommand:
		return w.Windows != nil
	}
	return false
}

// FileCannotJudge is like CannotJudge, for the run that a file describes. It
// returns "" if the file allows a run that judges nothing.
func FileCannotJudge(cfg *config.Config) string {
	if cfg.AllowUnjudged && !cfg.Strict {
		return ""
	}
	o := monitor.Options{
		Duration: cfg.Duration, LongestDuration: cfg.LongestDuration, Workload: workload(cfg),
		Respond: &monitor.Response{Dump: response.Dump(cfg.Diagnose.Dump)},
	}
	return CannotJudge(o, cfg.Gated())
}

// Refused returns an error if a file sets strict and its run cannot judge
// anything; otherwise nil.
func Refused(cfg *config.Config) error {
	why := FileCannotJudge(cfg)
	if why == "" || !cfg.Strict {
		return nil
	}
	return config.Errors{cfg.Problem("duration", why+"; with strict such a run would always exit with 5")}
}
