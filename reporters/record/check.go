package record

// Check is the result of checking one spec of a suite, or one test of an
// instrumentation, for leaks.
type Check struct {
	// Name is the full name of the spec, or CLASS#METHOD of the test.
	Name string `json:"name"`
	// Type is spec or test.
	Type   string `json:"type"`
	Device string `json:"device"`
	// Window is the number of the check's window, or 0 if none was opened.
	Window int `json:"window"`
	// T and Ended are the beginning and the end of the check, in seconds since
	// the start of the run on the device's clock.
	T     float64 `json:"t_s"`
	Ended float64 `json:"ended_s"`
	// Location is FILE:LINE of the check in the source of the suite, or "" if
	// unknown.
	Location string `json:"location,omitempty"`
	// Outcome is the result of the spec or test itself: passed, failed,
	// ignored, assumption_failed, crashed or unfinished; it is "" if unknown.
	// Stack is the stack trace of a failure, or another reason for the outcome.
	Outcome string `json:"outcome,omitempty"`
	Stack   string `json:"stack,omitempty"`
	// Verdict is one of the Verdict values; Text explains it in one line.
	Verdict   CheckVerdict     `json:"verdict"`
	Text      string           `json:"text"`
	Processes []CheckedProcess `json:"processes"`
	// Readings is the number of times that the device was read. Duration is the
	// wall-clock time, in seconds, that these readings took, including all heap
	// dumps and their analyses.
	Readings int     `json:"readings"`
	Duration float64 `json:"duration_s"`
}

// The values of Check.Type.
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

// CheckVerdict is the result of a check for leaks.
type CheckVerdict string

// The verdicts mean, in this order: a new leak was found; all leaks are covered
// by exceptions; evidence is missing; no process was readable; none of these
// applies.
const (
	VerdictLeak         CheckVerdict = "leak"
	VerdictKnown        CheckVerdict = "known"
	VerdictInconclusive CheckVerdict = "inconclusive"
	VerdictNotChecked   CheckVerdict = "not_checked"
	VerdictPass         CheckVerdict = "pass"
	// VerdictSkipped is the verdict on a check that its suite excludes from
	// judgment.
	VerdictSkipped CheckVerdict = "skipped"
)

// CheckedProcess is the result of a check for one process.
type CheckedProcess struct {
	User    int          `json:"user"`
	Process string       `json:"process"`
	PID     int          `json:"pid"`
	Verdict CheckVerdict `json:"verdict"`
	Text    string       `json:"text"`
	// Before and After are the object counts before and after the body of the
	// check, by the names of dumpsys meminfo. They are nil if unknown, for
	// example before the start of the process.
	Before map[string]int64 `json:"objects_before"`
	After  map[string]int64 `json:"objects_after"`
	// Settled reports whether the app was idle before the last count.
	Settled bool `json:"settled,omitempty"`
	// Folder is the directory of the heap dump, relative to the run directory,
	// or "" if no dump was taken.
	Folder string `json:"folder,omitempty"`
	// Leaks lists the leaks in the heap dump that have more objects than in the
	// previous dump.
	Leaks []CheckedLeak `json:"leaks"`
	// Older lists the leaks that existed before the check but were not found by
	// an earlier check.
	Older []CheckedLeak `json:"older_leaks,omitempty"`
	// Deaths lists the deaths of the process during the check. Faults lists the
	// crashes and ANRs that a workload reported.
	Deaths []Death `json:"deaths,omitempty"`
	Faults []Death `json:"faults,omitempty"`
}

// CheckedLeak is a leak that a check found: one that grew during the check, or
// one that existed before.
type CheckedLeak struct {
	DumpLeak
	// New is the increase in the number of leaked objects.
	New int64 `json:"new"`
	// Known contains the reason, owner and date of the exception that covers
	// the leak. It is "" if no exception covers the leak.
	Known string `json:"known,omitempty"`
	// Trace is the path from the GC root, one reference per line.
	Trace []string `json:"trace,omitempty"`
}
