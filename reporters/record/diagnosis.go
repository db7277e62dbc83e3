package record

import "github.com/leakgate/leakgate/detector"

// DiagnosisSchema names the format of diagnosis.json (docs/formats/run.md).
const DiagnosisSchema = "leakgate.diagnosis/1"

// Diagnosis is what was collected from one process at one time, and the
// findings.
type Diagnosis struct {
	// Schema is set in diagnosis.json only.
	Schema  string `json:"schema,omitempty"`
	Device  string `json:"device"`
	User    int    `json:"user"`
	Process string `json:"process"`
	PID     int    `json:"pid"`
	// T is when it began, in seconds since the start of the run on the device's
	// clock; 0 for a diagnosis on demand.
	T float64 `json:"t_s"`
	// Duration is the real time in seconds until everything was on the host;
	// Analysis is the duration of the analysis on the host.
	Duration float64 `json:"duration_s"`
	Analysis float64 `json:"analysis_s"`
	// Trigger is leak, suspicious, mark, marks, first, last, end, final or
	// demand; Mark is the text of the mark.
	Trigger string `json:"trigger"`
	Mark    string `json:"mark,omitempty"`
	// Kind is the kind of the leak, None if it was not decided; Recipe is what
	// was to be collected.
	Kind   detector.LeakKind `json:"kind"`
	Recipe string            `json:"recipe"`
	// Folder contains the artifacts; it is relative to the run directory and
	// uses slashes.
	Folder string `json:"folder"`
	// Outcome is complete, degraded (some steps used a fallback or are
	// incomplete), nothing, or interrupted.
	Outcome string `json:"outcome"`
	// Keep is the form in which a heap dump is kept: stripped, raw or none.
	// Analysed reports whether the analysis was reached.
	Keep     string      `json:"keep"`
	Analyzed bool        `json:"analyzed"`
	Steps    []Collected `json:"steps"`
	Findings []Finding   `json:"findings"`
	Summary  []string    `json:"summary"`
	Warnings []string    `json:"warnings"`
	// Settled reports whether the app was idle before its heap was dumped.
	Settled bool `json:"settled,omitempty"`
	// Leaks are the leaks in the heap dump, at most 100, sorted by retained
	// size; nil if no dump was analyzed. LeaksOmitted counts the others.
	Leaks        []DumpLeak `json:"leaks,omitzero"`
	LeaksOmitted int        `json:"leaks_omitted,omitempty"`
	// Undecided is the reason why there may be leaks that are not in the list,
	// or "".
	Undecided string `json:"leaks_undecided,omitempty"`
	// Marks is the number of marks on the device when the diagnosis was
	// requested, including the mark of this diagnosis. It is the number of
	// loops that the process had done.
	Marks int `json:"marks,omitempty"`
	// Age is how long the process had run at that time, in seconds of device
	// time. Memory is its latest sample before then, in MB, as measured by its
	// source. Both are nil if unknown.
	Age    *float64 `json:"process_age_s,omitempty"`
	Memory *float64 `json:"memory_mb,omitempty"`
	// Heap describes the entire heap dump; nil if no dump was analyzed.
	Heap *HeapDump `json:"heap,omitempty"`
}

// HeapDump describes a heap dump that was analyzed.
type HeapDump struct {
	// Summary is the file in the folder that is used to compare the dump with
	// other dumps, or "".
	Summary string `json:"summary"`
	Objects int64  `json:"objects"`
	// ReachableBytes is the size of the Java objects; ReachableNative is the
	// native memory that Java objects have registered.
	ReachableBytes  int64 `json:"reachable_bytes"`
	ReachableNative int64 `json:"reachable_native_bytes"`
	// Names is the source of its class names: source, mapping, obfuscated or
	// other_mapping.
	Names string `json:"names"`
	// Mapping is the mapping that was used to read the dump, or nil.
	Mapping *Mapping `json:"mapping,omitempty"`
}

// Mapping describes the mapping of an obfuscated build and how well it matches
// a dump.
type Mapping struct {
	// ID is R8's ID of the mapping, "" for a mapping by ProGuard; SHA256 is the
	// hash of its file.
	ID     string `json:"id"`
	SHA256 string `json:"sha256"`
	// Classes counts the classes that the mapping renames, and Found those that
	// exist in the dump. Unknown counts the classes of the dump whose names
	// look obfuscated and that are not in the mapping. Fields counts the fields
	// that the mapping has in the classes found, and Missing those that are not
	// in the dump.
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
	// File is the artifact in the folder, or ""; its size is in bytes.
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	// Purpose is what the step shows, Note is what the method used does not
	// show, and Reasons are why no better method was used.
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
	// Count is the number of objects, mappings, threads or buffers now;
	// CountDelta is the increase, null if there is no earlier value.
	Count      *int64 `json:"count"`
	CountDelta *int64 `json:"count_delta"`
	// Bytes is their size now; BytesDelta is the increase.
	Bytes      *int64 `json:"bytes"`
	BytesDelta *int64 `json:"bytes_delta"`
	// Share is the part of the total growth of its kind, from 0 to 1.
	Share       *float64 `json:"share"`
	Fingerprint string   `json:"fingerprint,omitempty"`
	Key         string   `json:"key,omitempty"`
	// Trace is the path from the GC root, one reference per line.
	Trace []string `json:"trace,omitempty"`
}

// The triggers of a diagnosis, in order: a leak; a first suspicion (a snapshot
// for comparison); a mark; all dumps at marks together; the first mark or the
// end of a process's start (a snapshot); the end of the run (a second snapshot,
// compared with the first); the end of the run for a process without and with a
// suspicion; and a user's request.
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
