package record

import "github.com/leakgate/leakgate/detector"

// DiagnosisSchema names the format of diagnosis.json (docs/formats/run.md).
const DiagnosisSchema = "leakgate.diagnosis/1"

// Diagnosis is what was collected of one process at one time, and its findings.
type Diagnosis struct {
	// Schema is set in diagnosis.json only.
	Schema  string `json:"schema,omitempty"`
	Device  string `json:"device"`
	User    int    `json:"user"`
	Process string `json:"process"`
	PID     int    `json:"pid"`
	// T is when it began, in seconds since the start of the run on the device's
	// clock; 0 for one on demand.
	T float64 `json:"t_s"`
	// Duration is the real time in seconds until everything was on the host,
	// Analysis that of the analysis there.
	Duration float64 `json:"duration_s"`
	Analysis float64 `json:"analysis_s"`
	// Trigger is leak, suspicious, mark, marks, first, last, end, final or
	// demand; Mark is the mark's text.
	Trigger string `json:"trigger"`
	Mark    string `json:"mark,omitempty"`
	// Kind is the kind of the leak, None if none was decided; Recipe is what
	// was collected.
	Kind   detector.LeakKind `json:"kind"`
	Recipe string            `json:"recipe"`
	// Folder has the artifacts, below the run directory, with slashes.
	Folder string `json:"folder"`
	// Outcome is complete, degraded (some by a fallback, or incomplete),
	// nothing, or interrupted.
	Outcome string `json:"outcome"`
	// Keep is what is kept of a heap dump: stripped, raw or none. Analysed
	// reports that the analysis was reached.
	Keep     string      `json:"keep"`
	Analyzed bool        `json:"analyzed"`
	Steps    []Collected `json:"steps"`
	Findings []Finding   `json:"findings"`
	Summary  []string    `json:"summary"`
	Warnings []string    `json:"warnings"`
	// Settled reports that the app was idle before its heap was dumped.
	Settled bool `json:"settled,omitempty"`
	// Leaks are those of the heap dump, by retained size and at most 100; nil
	// if no dump was analyzed. LeaksOmitted counts the others.
	Leaks        []DumpLeak `json:"leaks,omitzero"`
	LeaksOmitted int        `json:"leaks_omitted,omitempty"`
	// Undecided is why there may be leaks that are not in the list, or "".
	Undecided string `json:"leaks_undecided,omitempty"`
	// Marks is how many marks the device had when a diagnosis of a run was
	// ordered, including that of the diagnosis: how many loops the process had
	// done.
	Marks int `json:"marks,omitempty"`
	// Age is for how long the process had run then, in seconds of the device,
	// and Memory its latest sample before, in MB by its source; nil if unknown.
	Age    *float64 `json:"process_age_s,omitempty"`
	Memory *float64 `json:"memory_mb,omitempty"`
	// Heap describes the entire heap dump; nil if none was analyzed.
	Heap *HeapDump `json:"heap,omitempty"`
}

// HeapDump is a heap dump that was analyzed.
type HeapDump struct {
	// Summary is the file of the folder with which the dump is compared with
	// others, or "".
	Summary string `json:"summary"`
	Objects int64  `json:"objects"`
	// ReachableBytes are Java bytes, ReachableNative those of native memory
	// that Java objects have registered.
	ReachableBytes  int64 `json:"reachable_bytes"`
	ReachableNative int64 `json:"reachable_native_bytes"`
	// Names is the origin of its class names: source, mapping, obfuscated or
	// other_mapping.
	Names string `json:"names"`
	// Mapping is what was used to read it, nil for none.
	Mapping *Mapping `json:"mapping,omitempty"`
}

// Mapping is the mapping of an obfuscated build and how it fits a dump.
type Mapping struct {
	// ID is R8's name for it, "" for one by ProGuard; SHA256 is that of its
	// file.
	ID     string `json:"id"`
	SHA256 string `json:"sha256"`
	// Classes are those that it renames, Found those of them that the dump has;
	// Unknown are classes of the dump whose names look obfuscated and which it
	// lacks. Fields are those that it names in the classes found, Missing those
	// of them that the dump lacks.
	Classes int `json:"classes"`
	Found   int `json:"found_classes"`
	Unknown int `json:"unknown_names"`
	Fields  int `json:"fields"`
	Missing int `json:"missing_fields"`
}

// Collected is one step of a diagnosis.
type Collected struct {
	Step string `json:"step"`
	// Outcome is complete, fallback, skipped or failed.
	Outcome string `json:"outcome"`
	// File is the artifact in the folder, "" for none, with its size in bytes.
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	// Purpose is what it shows; Note is what the method used does not show;
	// Reasons are why no better one was used.
	Purpose  string   `json:"purpose,omitempty"`
	Note     string   `json:"note,omitempty"`
	Reasons  []string `json:"reasons,omitempty"`
	Duration float64  `json:"duration_s"`
}

// Finding is one thing that grew or leaks.
type Finding struct {
	// Type is leak, library_leak, suspect, growing (between dumps),
	// native_kind, library, mapping, meminfo, threads or graphics.
	Type string `json:"type"`
	Name string `json:"name"`
	// Count is how many objects, mappings, threads or buffers there are now,
	// CountDelta how many more than before, null if there is no before.
	Count      *int64 `json:"count"`
	CountDelta *int64 `json:"count_delta"`
	// Bytes is what they hold now, BytesDelta how much more than before.
	Bytes      *int64 `json:"bytes"`
	BytesDelta *int64 `json:"bytes_delta"`
	// Share is that of all growth of its kind, from 0 to 1.
	Share       *float64 `json:"share"`
	Fingerprint string   `json:"fingerprint,omitempty"`
	Key         string   `json:"key,omitempty"`
	// Trace is the path from the GC root, a reference per line.
	Trace []string `json:"trace,omitempty"`
}

// The triggers of a diagnosis: a leak, a first suspicion (a snapshot to compare
// with), a mark, all dumps at marks together, the first mark or the end of a
// process's start (a snapshot) and the end of the run (another one, compared
// with the first), the end of the run for a process that is not suspect and for
// one that is, and a user's request.
const (
	TriggerLeak       = "leak"
	TriggerSuspicious = "suspicious"
	TriggerMark       = "mark"
	TriggerMarks      = "marks"
	TriggerFirst      = "first"
	TriggerLast       = "last"
	TriggerEnd        = "end"
	TriggerFinal      = "final"
	TriggerDemand     = "demand"
)

// The outcomes of a diagnosis.
const (
	DiagnosisComplete    = "complete"
	DiagnosisDegraded    = "degraded"
	DiagnosisNothing     = "nothing"
	DiagnosisInterrupted = "interrupted"
)
