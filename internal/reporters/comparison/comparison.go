package comparison

import "time"

// Schema is the name of the format of gate.json (docs/formats/gate.md).
const Schema = "leakgate.gate/1"

// FileName is the name of the file in a run directory that contains the
// comparison.
const FileName = "gate.json"

// Comparison is the result of the gate for one run.
type Comparison struct {
	Schema string `json:"schema"`
	Tool   string `json:"tool"`
	// Verdict is pass, fail or neutral; Text describes it in one sentence.
	Verdict Result `json:"verdict"`
	Text    string `json:"text"`
	// Judged reports whether the run has enough evidence to be judged.
	// Informational reports whether rules are only reported and never fail the
	// gate.
	Judged        bool `json:"judged"`
	Informational bool `json:"informational,omitempty"`
	// ExitCode is the exit code of the gate.
	ExitCode int `json:"exit_code"`
	// Reasons lists the violated rules and explains each violation.
	Reasons []Reason `json:"reasons"`
	Base    Base     `json:"base"`
	Head    Head     `json:"head"`
	// Processes lists the processes of the run, sorted by name.
	Processes []ProcessRow `json:"processes"`
	// Leaks are sorted: failures first, then by status and bytes.
	Leaks []Row `json:"leaks"`
	// LeaksOmitted is the number of leaks that are not listed because the list
	// has a maximum length.
	LeaksOmitted int      `json:"leaks_omitted,omitempty"`
	Warnings     []string `json:"warnings"`
	// Unfailed contains the verdict, exit code and text that the run would have
	// if no rule were violated. They replace those of the comparison if a
	// second run does not confirm the reasons. Unfailed is nil in a comparison
	// that was read from a file.
	Unfailed *Comparison `json:"-"`
}

// Result is the verdict of the gate on a run.
type Result string

// Pass means that the run satisfies all rules, and Fail that it violates one.
// Neutral means that no rule is violated, but either the run was not compared
// (there is no baseline, or nothing could be judged) or the rules are
// informational.
const (
	Pass    Result = "pass"
	Fail    Result = "fail"
	Neutral Result = "neutral"
)

// Reason is a violated rule.
type Reason struct {
	// Rule is the rule as written in the configuration, such as "leak.per_loop:
	// new == 0".
	Rule    string `json:"rule"`
	Process string `json:"process"`
	// Key is the key of the leak; "" if the rule does not concern a leak.
	Key  string `json:"key"`
	Text string `json:"text"`
}

// Base describes what the run was compared with.
type Base struct {
	// Runs is the number of earlier runs. Observed is the number of failed runs
	// among them, which are used only to excuse the leaks that they show.
	Runs     int `json:"runs"`
	Observed int `json:"observed"`
	// Commit, Branch and Time (when it started) describe the newest of these
	// runs. Behind is the number of commits from Commit to the merge base of
	// head; nil if unknown.
	Commit string    `json:"commit,omitempty"`
	Branch string    `json:"branch,omitempty"`
	Time   time.Time `json:"time,omitzero"`
	Behind *int      `json:"behind"`
	// Pinned is the name of the release with which the run is also compared; ""
	// if there is none. PinnedRuns is the number of runs of this release.
	Pinned     string `json:"pinned,omitempty"`
	PinnedRuns int    `json:"pinned_runs,omitempty"`
	// Store is the address of the baseline, without credentials.
	Store string `json:"store,omitempty"`
	// Incomparable is the reason why no run of the baseline is compared with
	// this run, such as "different workload" or "the baseline has only this
	// run". It is "" if any runs are compared, or if there are no base runs.
	Incomparable string `json:"incomparable,omitempty"`
	// Others is the number of baseline runs that were not compared for that
	// reason.
	Others int `json:"other_runs,omitempty"`
}

// Head describes the judged run.
type Head struct {
	// Run is the name of the run directory; "" if only heap dumps were judged.
	Run         string    `json:"run,omitempty"`
	Started     time.Time `json:"started,omitzero"`
	App         string    `json:"app"`
	Variant     string    `json:"variant,omitempty"`
	Version     string    `json:"version,omitempty"`
	Commit      string    `json:"commit,omitempty"`
	Branch      string    `json:"branch,omitempty"`
	PullRequest int       `json:"pull_request,omitempty"`
	// Workload describes what each loop did; Duration is in seconds.
	Workload string      `json:"workload,omitempty"`
	Duration float64     `json:"duration_s,omitempty"`
	Devices  []DeviceRow `json:"devices"`
}

// DeviceRow is one device of the run.
type DeviceRow struct {
	Device   string `json:"device"`
	Model    string `json:"model"`
	API      int    `json:"api"`
	ABI      string `json:"abi,omitempty"`
	Emulator bool   `json:"emulator,omitempty"`
}

// ProcessRow is one process of the run, with the evidence by which it was
// judged.
type ProcessRow struct {
	Device  string `json:"device,omitempty"`
	Process string `json:"process"`
	// Dumps is the number of heap dumps at marks that were compared. Settled
	// reports whether the app was idle before each of these dumps. Loops is the
	// number of loops between the first and the last dump.
	Dumps   int     `json:"dumps"`
	Settled bool    `json:"settled"`
	Loops   float64 `json:"loops"`
	// Reachable is the size of the reachable heap in bytes at each dump.
	// BaseReachable contains the minimum and maximum size of the reachable heap
	// in the base runs, after the same number of loops; nil if unknown.
	Reachable     []int64 `json:"reachable_bytes"`
	BaseReachable []int64 `json:"base_reachable_bytes"`
	// Gate is the run's verdict on the process. Trend describes its memory
	// trend, or the reason why the trend was not judged. Judged reports whether
	// the heap dumps or the trend of the process were judged.
	Gate   string `json:"gate"`
	Trend  string `json:"trend"`
	Judged bool   `json:"judged"`
	// Deaths counts the deaths of the process by reason.
	Deaths map[string]int `json:"deaths,omitempty"`
}

// Row is one leak or other growth in a run, compared with the base.
type Row struct {
	Device  string `json:"device"`
	Process string `json:"process"`
	// Type is leak, threads, native or graphics (kinds of leaks), measure (a
	// value that grows with each loop of a trip), or trend (the growth of a
	// process).
	Type string `json:"type"`
	// Class is the most frequent class of the leaked objects. Classes lists all
	// classes of the leaked objects in base and head, the most frequent first.
	Class   string        `json:"class"`
	Classes []ClassCounts `json:"classes,omitempty"`
	// Key identifies the leak and does not change between builds. MovedFrom is
	// the key of the leak in the base, if another reference holds the objects
	// now. MovedClass is the class of the leaked objects in the base, if it
	// differs from Class.
	Key        string `json:"key"`
	MovedFrom  string `json:"moved_from,omitempty"`
	MovedClass string `json:"moved_class,omitempty"`
	// HeldBy is the reference that holds the objects, such as
	// "EventBus.listeners"; "" if unknown.
	HeldBy       string   `json:"held_by"`
	Library      bool     `json:"library,omitempty"`
	Fingerprints []string `json:"fingerprints"`
	// Unit is the unit of PerLoop: loop, event (of monkey), hour (for trends)
	// or run (only presence is known).
	Unit string `json:"unit"`
	// Evidence describes the measurements that show the leak.
	Evidence string `json:"evidence"`
	Status   Status `json:"status"`
	// Fails reports whether the leak is a reason for the verdict; StatusReason
	// explains its status.
	Fails        bool   `json:"fails"`
	StatusReason string `json:"status_reason,omitempty"`
	// PerLoop is the number of objects that each loop leaks (for trends, the
	// growth in MB); nil if unknown.
	PerLoop Sides `json:"per_loop"`
	// BytesEach is the retained size of one object: retained bytes divided by
	// the number of objects.
	BytesEach Sides `json:"bytes_each"`
	// BaseBytes and HeadBytes are the numbers of bytes that all objects
	// together retain after the last loop.
	BaseBytes int64 `json:"base_bytes"`
	HeadBytes int64 `json:"head_bytes"`
	// Counts and Bytes are the values of head at each mark.
	Counts []int64 `json:"counts_at_marks,omitempty"`
	Bytes  []int64 `json:"bytes_at_marks,omitempty"`
	// Trace contains the lines of the path from the GC root. Suspects are
	// references on that path, at least one of which must change; the one
	// nearest to the GC root is first.
	Trace    []string  `json:"trace,omitempty"`
	Suspects []Suspect `json:"suspects,omitempty"`
	// Owners are the code owners of the file of the first suspect.
	Owners []string `json:"owners,omitempty"`
	// FirstSeen is the earliest base run that contained the leak.
	FirstSeen *Sighting `json:"first_seen,omitempty"`
	// Accepted records who accepted the leak, why and until when.
	Accepted *Acceptance `json:"accepted,omitempty"`
	// Pinned describes how the leak compares with the pinned release. It is ""
	// unless the leak is worse than in that release.
	Pinned string `json:"pinned,omitempty"`
}

// Sides holds the values of one figure in base and head; a value is nil if it
// is unknown.
type Sides struct {
	Base *float64 `json:"base"`
	Head *float64 `json:"head"`
}

// ClassCounts is a class of leaked objects with the number of its objects in
// the last heap dump of base and head.
type ClassCounts struct {
	Class string `json:"class"`
	Base  int64  `json:"base"`
	Head  int64  `json:"head"`
}

// Suspect is a reference on a leak trace that should not be there.
type Suspect struct {
	// Class is the class that declares Field.
	Class string `json:"class"`
	Field string `json:"field"`
	// File and Line are the position of the declaration in the checkout. File
	// is "" if it was not found, or was found in several files.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Changed reports whether the pull request changes the file; Added reports
	// whether it adds the line. Both are nil if unknown.
	Changed *bool `json:"changed,omitempty"`
	Added   *bool `json:"added,omitempty"`
}

// Sighting identifies a commit at which a leak was seen.
type Sighting struct {
	Commit string    `json:"commit"`
	Time   time.Time `json:"time"`
}

// Acceptance is an entry of the file of accepted leaks.
type Acceptance struct {
	Reason string `json:"reason"`
	Owner  string `json:"owner"`
	// Until is the last day on which the leak is accepted, such as 2027-03-31.
	Until   string `json:"until"`
	Expired bool   `json:"expired,omitempty"`
}

// Status is the result of comparing a leak with the base.
type Status string

// These are the statuses. docs/formats/gate.md describes how each is
// determined.
const (
	New       Status = "new"
	Grown     Status = "grown"
	Heavier   Status = "heavier"
	Wider     Status = "wider"
	Moved     Status = "moved"
	Accepted  Status = "accepted"
	Known     Status = "known"
	Transient Status = "transient"
	Shrunk    Status = "shrunk"
	Gone      Status = "gone"
	// A Present leak is in head, but there is no base to compare it with.
	Present Status = "present"
)

// Statuses returns all statuses in the order in which reports list them.
func Statuses() []Status {
	return []Status{New, Wider, Grown, Heavier, Moved, Present, Accepted, Known, Transient, Shrunk, Gone}
}
