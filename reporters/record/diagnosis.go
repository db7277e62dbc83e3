package record

import "github.com/leakgate/leakgate/detector"

// DiagnosisSchema names the format of diagnosis.json (docs/formats/run.md).
const DiagnosisSchema = "leakgate.diagnosis/1"

// Diagnosis describes the artifacts that were collected from one process at one
// point in time, and the findings.
type Diagnosis struct {
	// Schema is set in diagnosis.json only.
	Schema  string `json:"schema,omitempty"`
	Device  string `json:"device"`
	User    int    `json:"user"`
	Process string `json:"process"`
	PID     int    `json:"pid"`
	// T is when the diagnosis began, in seconds since the start of the run on
	// the device's clock. It is 0 for a diagnosis on demand.
	T float64 `json:"t_s"`
	// Duration is the wall-clock time, in seconds, until everything was on the
	// host. Analysis is the wall-clock time, in seconds, that the analysis on
	// the host took.
	Duration float64 `json:"duration_s"`
	Analysis float64 `json:"analysis_s"`
	// Trigger is leak, suspicious, mark, marks, first, last, end, final or
	// demand; Mark is the name of the mark that triggered the diagnosis.
	Trigger string `json:"trigger"`
	Mark    string `json:"mark,omitempty"`
	// Kind is the kind of the leak, or None if it was not determined. Recipe
	// defines what was to be collected.
	Kind   detector.LeakKind `json:"kind"`
	Recipe string            `json:"recipe"`
	// Folder contains the artifacts. The path is relative to the run directory
	// and uses slashes.
	Folder string `json:"folder"`
	// Outcome is complete, degraded (some steps used a fallback or are
	// incomplete), nothing, or interrupted.
	Outcome string `json:"outcome"`
	// Keep is the form in which a heap dump is kept: stripped, raw or none.
	// Analyzed reports whether the analysis finished without being interrupted.
	Keep     string      `json:"keep"`
	Analyzed bool        `json:"analyzed"`
	Steps    []Collected `json:"steps"`
	Findings []Finding   `json:"findings"`
	Summary  []string    `json:"summary"`
	Warnings []string    `json:"warnings"`
	// Settled reports whether the app was idle before its heap was dumped.
	Settled bool `json:"settled,omitempty"`
	// Leaks lists the leaks in the heap dump, at most 100, sorted by retained
	// size. It is nil if no dump was analyzed. LeaksOmitted is the number of
	// leaks that are not listed.
	Leaks        []DumpLeak `json:"leaks,omitzero"`
	LeaksOmitted int        `json:"leaks_omitted,omitempty"`
	// Undecided is the reason why there may be leaks that are not in the list,
	// or "" if there is no such reason.
	Undecided string `json:"leaks_undecided,omitempty"`
	// Marks is the number of marks on the device when the diagnosis was
	// requested, including the mark of this diagnosis. With one mark in each
	// loop, it is the number of completed loops.
	Marks int `json:"marks,omitempty"`
	// Age is how long the process had been running when the diagnosis was
	// requested, in seconds of device time. Memory is the latest sample of the
	// process before the request, in MB. Age and Memory are nil if unknown.
	Age    *float64 `json:"process_age_s,omitempty"`
	Memory *float64 `json:"memory_mb,omitempty"`
	// Heap describes the entire heap dump. It is nil if no dump was analyzed.
	Heap *HeapDump `json:"heap,omitempty"`
}

// HeapDump describes a heap dump that was analyzed.
type HeapDump struct {
	// Summary is the file in the folder that is used to compare the dump with
	// other dumps, or "" if there is none.
	Summary string `json:"summary"`
	Objects int64  `json:"objects"`
	// ReachableBytes is the size of the reachable Java objects. ReachableNative
	// is the native memory that these objects have registered.
	ReachableBytes  int64 `json:"reachable_bytes"`
	ReachableNative int64 `json:"reachable_native_bytes"`
	// Names is the origin of the class names: source, mapping, obfuscated or
	// other_mapping.
	Names string `json:"names"`
	// Mapping is the mapping that was used to read the dump, or nil if none was
	// used.
	Mapping *Mapping `json:"mapping,omitempty"`
}

// Mapping describes the mapping of an obfuscated build and how well it matches
// a dump.
type Mapping struct {
	// ID is R8's ID of the mapping, or "" for a mapping by ProGuard. SHA256 is
	// the hash of the mapping's file.
	ID     string `json:"id"`
	SHA256 string `json:"sha256"`
	// Classes is the number of classes that the mapping renames, and Found is
	// the number of those that exist in the dump. Unknown is the number of
	// classes in the dump whose names look obfuscated and are not in the
	// mapping. Fields is the number of fields that the mapping contains for the
	// classes found, and Missing is the number of those that are not in the
	// dump.
	Classes int `json:"classes"`
	Found   int `json:"found_classes"`
	Unknown int `json:"unknown_names"`
	Fields  int `json:"fields"`
	Missing int `json:"missing_fields"`
}

// Collected is the result of one step of a diagnosis.
type Collected struct {
	Step string `json:"step"`
	// Outcome is complete, fallback, skipped or failed.
	Outcome string `json:"outcome"`
	// File is the name of the artifact in the folder, or "" if there is none.
	// Bytes is the size of the file.
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	// Purpose describes what the step shows, Note describes what the method
	// used does not show, and Reasons explain why no better method was used.
	Purpose  string   `json:"purpose,omitempty"`
	Note     string   `json:"note,omitempty"`
	Reasons  []string `json:"reasons,omitempty"`
	Duration float64  `json:"duration_s"`
}

// Finding describes one kind of object or memory that grew or leaks.
type Finding struct {
	// Type is leak, library_leak, suspect, growing (between dumps),
	// native_kind, library, mapping, meminfo, threads or graphics.
	Type string `json:"type"`
	Name string `json:"name"`
	// Count is the present number of objects, mappings, threads or buffers.
	// CountDelta is the increase, or null if there is no earlier value.
	Count      *int64 `json:"count"`
	CountDelta *int64 `json:"count_delta"`
	// Bytes is the present size of the counted objects, mappings, threads or
	// buffers. BytesDelta is the increase in Bytes, or null if there is no
	// earlier value.
	Bytes      *int64 `json:"bytes"`
	BytesDelta *int64 `json:"bytes_delta"`
	// Share is the part of the total growth of the finding's kind, from 0 to 1.
	Share       *float64 `json:"share"`
	Fingerprint string   `json:"fingerprint,omitempty"`
	Key         string   `json:"key,omitempty"`
	// Trace is the path from the GC root, one reference per line.
	Trace []string `json:"trace,omitempty"`
}

// The triggers of a diagnosis, in order: a leak; a first suspicion (a snapshot
// for comparison); a mark; all dumps at marks together; the first mark, or the
// end of the startup of a process (a snapshot); the end of the run (a second
// snapshot, compared with the first); the end of the run for a process that is
// not suspicious; the end of the run for a suspicious process; and a user's
// request.
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
