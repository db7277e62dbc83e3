package record

// Check is what one check of a run has shown: of one spec of a suite, or of one test that an
// instrumentation has run.
type Check struct {
	// Name is the full text of the spec, or CLASS#METHOD of the test.
	Name string `json:"name"`
	// Of is spec or test.
	Type   string `json:"type"`
	Device string `json:"device"`
	// Window is the number of its window, 0 where none was opened.
	Window int `json:"window"`
	// T and Ended are seconds since the start of the run, on the device's clock.
	T     float64 `json:"t_s"`
	Ended float64 `json:"ended_s"`
	// Location is FILE:LINE of the check in the source of the suite, "" where it has none.
	Location string `json:"location,omitempty"`
	// Outcome is how the spec or test itself ended: passed, failed, ignored,
	// assumption_failed, crashed or unfinished; "" where that is unknown. Stack says why.
	Outcome string `json:"outcome,omitempty"`
	Stack   string `json:"stack,omitempty"`
	// Verdict is one of the Verdict values, Text says it in one line.
	Verdict   CheckVerdict     `json:"verdict"`
	Text      string           `json:"text"`
	Processes []CheckedProcess `json:"processes"`
	// Readings counts the questions to the device, and Took is the real time in seconds that
	// they took with all heap dumps and their analyses.
	Readings int     `json:"readings"`
	Duration float64 `json:"duration_s"`
}

// The values of Check.Of.
const (
	CheckSpec = "spec"
	CheckTest = "test"
)

// The values of Check.Outcome.
const (
	OutcomePassed           = "passed"
	OutcomeFailed           = "failed"
	OutcomeIgnored          = "ignored"
	OutcomeAssumptionFailed = "assumption_failed"
	OutcomeCrashed          = "crashed"
	OutcomeUnfinished       = "unfinished"
)

// CheckVerdict is what a check shows of leaks.
type CheckVerdict string

// The verdicts: a new leak, a leak that an exception names, evidence that is missing, no
// process that could be read, and none of these.
const (
	VerdictLeak         CheckVerdict = "leak"
	VerdictKnown        CheckVerdict = "known"
	VerdictInconclusive CheckVerdict = "inconclusive"
	VerdictNotChecked   CheckVerdict = "not_checked"
	VerdictPass         CheckVerdict = "pass"
	// VerdictSkipped is that of a check that its suite does not want judged.
	VerdictSkipped CheckVerdict = "skipped"
)

// CheckedProcess is one process in a check.
type CheckedProcess struct {
	User    int          `json:"user"`
	Process string       `json:"process"`
	PID     int          `json:"pid"`
	Verdict CheckVerdict `json:"verdict"`
	Text    string       `json:"text"`
	// Before and After count its objects by the names of dumpsys meminfo, before and after
	// the body; nil where they are unknown, as before the start of the process.
	Before map[string]int64 `json:"objects_before"`
	After  map[string]int64 `json:"objects_after"`
	// Settled reports that the app was left alone before the last count.
	Settled bool `json:"settled,omitempty"`
	// Folder has the heap dump, below the run directory; "" where none was taken.
	Folder string `json:"folder,omitempty"`
	// Leaks are those of the heap dump that became more since the latest dump before.
	Leaks []CheckedLeak `json:"leaks"`
	// Older are leaks that were there before the check, and that no earlier one has found.
	Older []CheckedLeak `json:"older_leaks,omitempty"`
	// Deaths are the ends of its incarnations meanwhile, Faults the crashes and ANRs that a
	// workload reported.
	Deaths []Death `json:"deaths,omitempty"`
	Faults []Death `json:"faults,omitempty"`
}

// CheckedLeak is a leak that became more during a check.
type CheckedLeak struct {
	DumpLeak
	// New is how many objects more leak by it than before.
	New int64 `json:"new"`
	// Known is the reason of the exception that names it, with its owner and date; "" for none.
	Known string `json:"known,omitempty"`
	// Trace is the way from the GC root, a reference a line.
	Trace []string `json:"trace,omitempty"`
}
