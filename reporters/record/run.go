package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/hostfile"
	"github.com/leakgate/leakgate/internal/retired"
)

// RunSchema names the format of run.json (docs/formats/run.md).
const RunSchema = "leakgate.run/1"

// Run is the content of run.json: the record of one run. Times are seconds
// since the start of the run on the device's own clock; sizes are MB of
// 1,048,576 bytes.
type Run struct {
	Schema  string    `json:"schema"`
	Tool    string    `json:"tool"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
	// Stopped is the reason why the run ended: duration, workload, finished,
	// interrupted, devices or disk. The value is "killed" if the run did not
	// finish.
	Stopped string `json:"stopped"`
	// StopReason is the reason given by a program that finished the run.
	StopReason  string `json:"stop_reason,omitempty"`
	Interrupted bool   `json:"interrupted"`
	// Extended is the number of seconds by which a suspicion has extended the
	// run; ExtendedReason is the first suspicion.
	Extended       float64 `json:"extended_s,omitempty"`
	ExtendedReason string  `json:"extended_reason,omitempty"`
	ExitCode       int     `json:"exit_code"`
	Policy         string  `json:"policy"`
	// Patterns are the declared patterns that select the processes.
	Patterns []string  `json:"patterns"`
	Workload *Workload `json:"workload"`
	// Build is the source and variant of the tested build, or nil if unknown.
	Build *Revision `json:"build"`
	// Overhead is the resource use of leakgate itself, or nil if it was not
	// recorded.
	Overhead  *Overhead `json:"overhead"`
	Devices   []Device  `json:"devices"`
	Processes []Process `json:"processes"`
	// Apps lists the apps that had two or more processes at the same time.
	Apps []AppVerdict `json:"apps"`
	// Windows are sorted by their end on each device.
	Windows []JudgedWindow `json:"windows"`
	// Checks are sorted by their end on each device.
	Checks []Check `json:"checks"`
	// Diagnoses are sorted by time on each device.
	Diagnoses []Diagnosis `json:"diagnoses"`
	// MissingEvidence lists the heap dumps that should have been taken but were
	// not.
	MissingEvidence []MissingEvidence `json:"missing_evidence"`
	// Unjudged lists the processes and devices without a verdict.
	Unjudged []Unjudged `json:"unjudged"`
	Warnings []string   `json:"warnings"`
}

// Unjudged is a process, or an entire device, without a verdict.
type Unjudged struct {
	Device string `json:"device"`
	User   int    `json:"user"`
	// Process is "" if the entire device has no verdict.
	Process string `json:"process"`
	// Text describes what happened, why it is not evidence, and the minimum
	// that a verdict requires.
	Text string `json:"text"`
}

// The values of Run.Stopped.
const (
	StoppedDuration    = "duration"
	StoppedWorkload    = "workload"
	StoppedFinished    = "finished"
	StoppedInterrupted = "interrupted"
	StoppedDevices     = "devices"
	StoppedDisk        = "disk"
	StoppedKilled      = "killed"
)

// The values of Run.ExitCode. If several apply, the first one in this list is
// used.
const (
	// ExitUnwritten means that the run directory cannot be written. It is also
	// used for usage and configuration errors.
	ExitUnwritten   = 2
	ExitInterrupted = 130
	ExitLeak        = 1
	// ExitNoDevice is also used if no process of the app was seen in the run.
	ExitNoDevice = 3
	// ExitUnread means that a requested heap dump could not be analyzed.
	ExitUnread   = 6
	ExitWorkload = 4
	// ExitInconclusive means that there is no verdict on the run, on a device
	// or on a process that was present for a long time; that a heap dump is
	// missing; or, with strict, that a process is inconclusive.
	ExitInconclusive = 5
	ExitClean        = 0
)

// Round rounds a number of a record to the given number of decimal places.
func Round(x float64, decimals int) float64 {
	p := math.Pow(10, float64(decimals))
	return math.Round(x*p) / p
}

// Interruption is a command that lost its connection to the device, so its
// result is unknown.
type Interruption struct {
	Device string `json:"device"`
	// T is seconds since the start of the run, on the device's clock.
	T float64 `json:"t_s"`
}

// Workload is the load on the app.
type Workload struct {
	Kind string `json:"kind"`
	// Seed is the seed of monkey, with which the run can be repeated.
	Seed   *int64 `json:"seed,omitempty"`
	Events int    `json:"events,omitempty"`
	// Digest is the SHA-256 of the workload, in hexadecimal. Two runs with the
	// same digest have run the same workload. The digest does not include the
	// seed and the number of events of monkey.
	Digest string `json:"digest,omitempty"`
	Exit   *int   `json:"exit"`
	// Repeats is the number of times that the workload was started again
	// because a suspicion extended the run. Pass is the duration of the first
	// pass, in seconds of device time.
	Repeats int     `json:"repeats,omitempty"`
	Pass    float64 `json:"pass_s,omitempty"`
	Error   string  `json:"error,omitempty"`
	// LeftRunning lists the processes on the host that the workload started and
	// that were still running after it ended, as "NAME (pid N)", at most 20.
	// LeftRunning is available only on Linux.
	LeftRunning []string `json:"left_running,omitempty"`
	// Interrupted lists the devices to which the workload's command lost its
	// connection.
	Interrupted []Interruption `json:"interrupted,omitempty"`
}

// Revision is the source revision of the tested app and the build variant.
type Revision struct {
	Variant string `json:"variant,omitempty"`
	Commit  string `json:"commit,omitempty"`
	Branch  string `json:"branch,omitempty"`
	// PullRequest is the number of the pull request, or 0 if there is none.
	PullRequest int `json:"pull_request,omitempty"`
	// Modified reports whether files differed from the commit.
	Modified bool `json:"modified,omitempty"`
}

// Device is one device of the run and the cost of watching it.
type Device struct {
	Device    string  `json:"device"`
	Model     string  `json:"model"`
	API       int     `json:"api"`
	TimeScale float64 `json:"time_scale"`
	StartedUp float64 `json:"started_up_s"`
	Duration  float64 `json:"duration_s"`
	Error     string  `json:"error,omitempty"`
	// ABI, Fingerprint, Emulator and HeapLimit have the same meaning as in
	// HeaderDevice.
	ABI         string  `json:"abi,omitempty"`
	Fingerprint string  `json:"fingerprint,omitempty"`
	Emulator    bool    `json:"emulator,omitempty"`
	HeapLimit   float64 `json:"heap_limit_mb,omitempty"`
	// Builds lists the builds of the watched apps.
	Builds []AppBuild `json:"builds,omitempty"`
	// Marks is the number of marks on the device. MarksDigest is the SHA-256,
	// in hexadecimal, of the distinct names of the marks, sorted and without
	// numbers. Two runs with the same digest have set the same marks, though
	// not necessarily the same number of times.
	Marks int `json:"marks"`
	// MarksSkipped is the number of marks that were not recorded because they
	// followed each other too quickly.
	MarksSkipped int `json:"marks_skipped,omitempty"`
	// WorkloadEnded is the time, in seconds since the start of the run, at
	// which the last workload on the device ended, if the run then continued
	// without one. It is nil if this did not happen or is unknown.
	WorkloadEnded *float64 `json:"workload_ended_s,omitempty"`
	MarksDigest   string   `json:"marks_digest,omitempty"`
	Usage
}

// AppBuild is the build of an app on one device.
type AppBuild struct {
	Package     string `json:"package"`
	VersionName string `json:"version_name"`
	// VersionCode and Debuggable are nil if the device does not report them.
	VersionCode *int64 `json:"version_code"`
	Debuggable  *bool  `json:"debuggable"`
	// APK is the SHA-256 of the app's base APK, in hexadecimal, or "" if the
	// device does not report it.
	APK string `json:"apk_sha256,omitempty"`
}

// Usage is the cost of watching one device up to a certain time. CPU values are
// in percent of one core, and null if they could not be read.
type Usage struct {
	Fast   Cost `json:"fast"`
	Detail Cost `json:"detail"`
	// SystemServer is the total CPU use of system_server while the device was
	// watched. DetailSystemServer is the CPU use of system_server while dumpsys
	// ran, in percent of that time alone.
	SystemServer       *float64 `json:"system_server_cpu_pct"`
	DetailSystemServer *float64 `json:"system_server_cpu_pct_during_detail"`
	// CostSystemServer is the part of SystemServer that watching the device
	// causes.
	CostSystemServer *float64 `json:"system_server_cost_cpu_pct"`
	// DetailPeriod is the current interval between breakdowns, in seconds. It
	// is longer than configured if sampling was reduced. Thinned is the number
	// of times that sampling has been reduced so far.
	DetailPeriod float64 `json:"detail_period_s"`
	Thinned      int     `json:"thinned"`
	// Apps lists the watched processes. In run.json these values are stored
	// with the processes.
	Apps []AppUsage `json:"apps,omitempty"`
}

// AppUsage is the CPU use of one watched process, and the part of it that
// watching causes.
type AppUsage struct {
	Process string   `json:"process"`
	User    int      `json:"user"`
	CPU     *float64 `json:"cpu_pct"`
	Cost    *float64 `json:"cost_cpu_pct"`
}

// Overhead is the resource use of leakgate itself since the run began: CPU
// seconds and percent of one core, and its peak memory in MB.
type Overhead struct {
	CPU     float64 `json:"cpu_s"`
	Percent float64 `json:"cpu_pct"`
	Memory  float64 `json:"max_memory_mb"`
}

// Cost is the time that a round of one channel takes, measured on the host, in
// milliseconds.
type Cost struct {
	Rounds int     `json:"rounds"`
	Failed int     `json:"failed"`
	MeanMS float64 `json:"mean_ms"`
	MaxMS  float64 `json:"max_ms"`
}

// Process is one process of the run and its verdict.
type Process struct {
	Device   string   `json:"device"`
	User     int      `json:"user"`
	Process  string   `json:"process"`
	PID      int      `json:"pid"`
	Source   string   `json:"source"`
	Reasons  []string `json:"source_reasons"`
	Restarts int      `json:"restarts"`
	Samples  int      `json:"samples"`
	Details  int      `json:"breakdowns"`
	// Missed is the number of short gaps in the series, and Gaps the number of
	// longer ones. Missing is the total duration of all gaps, in seconds.
	Missed  int     `json:"missed"`
	Gaps    int     `json:"gaps"`
	Missing float64 `json:"missing_s"`
	// Paused is the time, in seconds, for which the process was not sampled
	// because its heap was being dumped.
	Paused float64 `json:"paused_s"`
	// Flat is the time, in seconds, for which memory that had grown was flat at
	// the end, or 0 if it was not flat. If an inconclusive process was flat for
	// half of the run, it counts as judged, although not as settled.
	Flat float64 `json:"flat_s,omitempty"`
	// Alive is the time for which the process was present. LongestStretch is
	// the longest time with samples that is not interrupted by a restart, a
	// long gap or a change of the source. Alive and LongestStretch are in
	// seconds.
	Alive          float64 `json:"alive_s"`
	LongestStretch float64 `json:"longest_stretch_s"`
	// CPU and CostCPU have the same meaning as in AppUsage.
	CPU      *float64       `json:"cpu_pct"`
	CostCPU  *float64       `json:"cost_cpu_pct"`
	Duration float64        `json:"duration_s"`
	LastMB   *float64       `json:"last_mb"`
	State    detector.State `json:"state"`
	Worst    detector.State `json:"worst"`
	Gate     detector.Gate  `json:"gate"`
	// TrendGate is the verdict on the trend alone. Gate is the same unless heap
	// dumps or counts at marks change the verdict.
	TrendGate       detector.Gate     `json:"trend_gate,omitempty"`
	Kind            detector.LeakKind `json:"kind"`
	FirstSuspicious *float64          `json:"first_suspicious_s"`
	FirstLeaking    *float64          `json:"first_leaking_s"`
	Rate            *float64          `json:"rate_mb_per_h"`
	RateInterval    []float64         `json:"rate_interval_mb_per_h"`
	MinDetectable   *float64          `json:"min_detectable_mb_per_h"`
	// MinDetectableLately is MinDetectable for a leak that began an hour before
	// the end.
	MinDetectableLately *float64     `json:"min_detectable_last_hour_mb_per_h,omitempty"`
	Growth              float64      `json:"growth_mb"`
	Shares              []Share      `json:"shares"`
	Jumps               []Jump       `json:"jumps"`
	Reason              string       `json:"reason"`
	Evidence            []Evidence   `json:"evidence"`
	Transitions         []Transition `json:"transitions"`
	// Headroom describes how close the process is to its limits,
	// HeadroomReasons explains why some values are unknown, and Limits lists
	// the warnings.
	Headroom        []Standing     `json:"headroom"`
	HeadroomReasons []string       `json:"headroom_reasons"`
	Limits          []LimitWarning `json:"limits"`
	// Deaths lists the latest 100 deaths of the process. DeathsByReason holds
	// the number of all deaths by reason.
	Deaths         []Death        `json:"deaths"`
	DeathsByReason map[string]int `json:"deaths_by_reason"`
	// Faults lists the latest 100 crashes and ANRs that the workload reported.
	// FaultCount is their total number.
	Faults     []Death `json:"faults"`
	FaultCount int     `json:"fault_count"`
	// Findings lists the crashes, ANRs and deaths caused by memory, by kind,
	// from both deaths and faults. If a fault killed the process, the fault and
	// the death count as one.
	Findings []Incident `json:"findings"`
	// Objects lists the object counts of dumpsys meminfo, by name.
	Objects []ObjectCount `json:"objects"`
	// AtMarks is the result of the heap dumps at marks, for each life that has
	// such dumps.
	AtMarks []MarkSeries `json:"at_marks"`
	// CountsAtMarks contains the numbers of objects, threads and files that the
	// process left behind in the loops of a suite. It has an entry for each
	// life and each kind of mark with at least two readings.
	CountsAtMarks []CountsAtMarks `json:"counts_at_marks,omitempty"`
	Warnings      []string        `json:"warnings"`
}

// Death is the end of one life of a process, or a fault that it may survive.
type Death struct {
	T   float64 `json:"t_s"`
	PID int     `json:"pid"`
	// Reason is crash, native_crash, anr, out_of_memory (an uncaught
	// OutOfMemoryError), memory_limiter (killed by the memory limiter of
	// Android 17), anomaly (killed because of an anomaly in its memory),
	// low_memory (killed while in use because the device was low on memory),
	// kill, exit (by itself), reboot or unknown. Text is the device's
	// description. Lines are the lines of the device's log that show the death.
	Reason string   `json:"reason"`
	Text   string   `json:"text"`
	Lines  []string `json:"lines,omitempty"`
}

// ObjectCount is the number of objects of one kind in the present life of a
// process: at the first count, at the maximum, and at the end.
type ObjectCount struct {
	// Name is the name that dumpsys meminfo uses, such as "Activities".
	Name  string `json:"name"`
	First int64  `json:"first"`
	Max   int64  `json:"max"`
	Last  int64  `json:"last"`
}

// Share is the contribution of one dimension of a breakdown to the growth.
type Share struct {
	// Dimension is the name in the App Summary, such as "Java Heap".
	Dimension string  `json:"dimension"`
	Growth    float64 `json:"growth_mb"`
	// Share is the dimension's share, from 0 to 1, of the total growth. Only
	// growing dimensions count toward the total.
	Share float64 `json:"share"`
	Rate  float64 `json:"rate_mb_per_h"`
}

// Jump is a sudden rise in memory. A jump alone is not a leak.
type Jump struct {
	T    float64 `json:"t_s"`
	Size float64 `json:"size_mb"`
	// Sustained reports whether the memory was still as high half an hour
	// later.
	Sustained bool `json:"sustained"`
}

// Evidence is one number on which a verdict is based.
type Evidence struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// Transition is a change of the state of a process.
type Transition struct {
	T      float64           `json:"t_s"`
	From   detector.State    `json:"from"`
	To     detector.State    `json:"to"`
	Kind   detector.LeakKind `json:"kind,omitempty"`
	Reason string            `json:"reason"`
}

// WriteRun writes run.json into dir atomically.
func WriteRun(dir string, run Run) error {
	text, err := json.MarshalIndent(run, "", "  ")
	if err != nil {
		return fmt.Errorf("encode run.json: %w", err)
	}
	return WriteFileAtomic(filepath.Join(dir, "run.json"), append(text, '\n'))
}

// maxRunJSON is the maximum size, in bytes, of a run.json that ReadRun accepts;
// a run of 100 processes stays under 1 MB.
const maxRunJSON = 64 << 20

// retiredKeys are keys of run.json and samples.ndjson that were used before the
// first release.
var retiredKeys = []string{"because", "absent_s", "own", "took_s", "lasted_s", "stopped_because"}

// ReadRun reads run.json in a run directory. It returns an error for a file in
// a format from before the first release.
func ReadRun(dir string) (Run, error) {
	path := filepath.Join(dir, "run.json")
	text, err := hostfile.Read(path, maxRunJSON)
	if err != nil {
		return Run{}, fmt.Errorf("open run: %w", err)
	}
	if err := retired.Check(text, retiredKeys...); err != nil {
		return Run{}, fmt.Errorf("read %s: %w", path, err)
	}
	var run Run
	if err := json.Unmarshal(text, &run); err != nil {
		return Run{}, fmt.Errorf("decode %s: %w", path, err)
	}
	if run.Schema != RunSchema {
		return Run{}, fmt.Errorf("decode %s: schema is %q, not %q; use the leakgate version that wrote it",
			path, run.Schema, RunSchema)
	}
	return run, nil
}

// WriteFileAtomic writes a file under a temporary name and renames it, so a
// reader sees either the old or the new content, never part of it. Only the
// user may read the file, because runs contain personal data.
func WriteFileAtomic(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("create %s: %w", filepath.Base(path), err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}
