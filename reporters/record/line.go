package record

import (
	"time"

	"github.com/leakgate/leakgate/detector"
)

// Sample is one reading of one process. A value that the source does not
// provide is nil.
type Sample struct {
	// T is the number of seconds since the start of the run on the device's own
	// clock. Up is the reading of that clock, in seconds since boot.
	T       float64 `json:"t_s"`
	Up      float64 `json:"up_s"`
	Device  string  `json:"device"`
	User    int     `json:"user"`
	Process string  `json:"process"`
	PID     int     `json:"pid"`
	// Start is field 22 of /proc/PID/stat, in clock ticks. Together with the
	// pid it identifies the process.
	Start uint64 `json:"start"`
	// Source is smaps_rollup, su, run_as, smaps, status or dumpsys.
	Source    string     `json:"source"`
	PSS       *int64     `json:"pss_kb"`
	SwapPSS   *int64     `json:"swap_pss_kb"`
	RSSAnon   *int64     `json:"rss_anon_kb"`
	Swap      *int64     `json:"swap_kb"`
	Threads   *int64     `json:"threads"`
	CostMS    float64    `json:"cost_ms"`
	Breakdown *Breakdown `json:"breakdown,omitempty"`
	// Warnings lists the parts of a usable breakdown that could not be read.
	Warnings []string `json:"warnings,omitempty"`
}

// Breakdown is the memory of a process by kind, in kB, with the same JSON keys
// as the output of `leakgate parse`.
type Breakdown struct {
	TotalPSS    *int64 `json:"total_pss_kb"`
	SwapPSS     *int64 `json:"swap_pss_kb"`
	SwapInTotal *bool  `json:"swap_in_total"`
	RSS         *int64 `json:"rss_kb"`
	JavaHeap    *int64 `json:"java_heap_kb"`
	NativeHeap  *int64 `json:"native_heap_kb"`
	// JavaAlloc is the memory that the runtime has allocated for Java objects,
	// including garbage.
	JavaAlloc    *int64 `json:"java_alloc_kb,omitempty"`
	Code         *int64 `json:"code_kb"`
	Stack        *int64 `json:"stack_kb"`
	Graphics     *int64 `json:"graphics_kb"`
	PrivateOther *int64 `json:"private_other_kb"`
	System       *int64 `json:"system_kb"`
	EGL          *int64 `json:"egl_mtrack_kb"`
	GL           *int64 `json:"gl_mtrack_kb"`
	OtherMtrack  *int64 `json:"other_mtrack_kb"`
	GfxDev       *int64 `json:"gfx_dev_kb"`
	OtherDev     *int64 `json:"other_dev_kb"`
	// Objects contains the counts in the Objects section of dumpsys meminfo:
	// Activities, Views, ViewRootImpl, AppContexts and so on. It is nil if
	// there was no such section.
	Objects map[string]int64 `json:"objects,omitempty"`
}

// Event is a line of samples.ndjson about something that happened during a run,
// such as a mark or a restart.
type Event struct {
	T      float64 `json:"t_s"`
	Up     float64 `json:"up_s"`
	Device string  `json:"device"`
	// Event is the type of the event, one of the words in docs/formats/run.md.
	Event   string `json:"event"`
	User    *int   `json:"user,omitempty"`
	Process string `json:"process,omitempty"`
	PID     int    `json:"pid,omitempty"`
	// Start and Source are the values of the process after the event. Reasons
	// explain why no better source is used.
	Start   uint64            `json:"start,omitempty"`
	Source  string            `json:"source,omitempty"`
	Reasons []string          `json:"source_reasons,omitempty"`
	From    *detector.State   `json:"from,omitempty"`
	To      *detector.State   `json:"to,omitempty"`
	Kind    detector.LeakKind `json:"kind,omitempty"`
	Text    string            `json:"text,omitempty"`
	// Build is the installed build of an app.
	Build *AppBuild `json:"build,omitempty"`
	// Similar lists names of running processes that resemble the watched names.
	Similar []string `json:"similar,omitempty"`
	// Unwatched lists names of processes of the app that no pattern matches.
	Unwatched []string `json:"unwatched,omitempty"`
	// Mark is the name of the mark whose heap dump is missing, or at which a
	// garbage collection was forced. Unreadable reports whether the dump was
	// taken but could not be analyzed.
	Mark       string `json:"mark,omitempty"`
	Unreadable bool   `json:"unreadable,omitempty"`
	// Count is the number of skipped marks or workload events.
	Count int64 `json:"count,omitempty"`
	// Window is the number of the window that this event opens or closes.
	Window int `json:"window,omitempty"`
	// Reason explains why a process ended, or why a program finished the run.
	// Lines are the related lines of the device's log.
	Reason string   `json:"reason,omitempty"`
	Lines  []string `json:"lines,omitempty"`
	// EndedUp is the reading of the device's clock when the process that died
	// was last seen. It is nil if the device has rebooted since.
	EndedUp *float64 `json:"ended_up_s,omitempty"`
	// Duration is the length in seconds of the activity that ends with this
	// event.
	Duration float64 `json:"duration_s,omitempty"`
	// Usage is the cost of watching so far; Overhead is the resource use of
	// leakgate itself.
	Usage    *Usage    `json:"usage,omitempty"`
	Overhead *Overhead `json:"overhead,omitempty"`
	// Workload describes how the workload ended.
	Workload *Workload `json:"workload,omitempty"`
	// Headroom describes how close a process is to its limits.
	Headroom *Headroom `json:"headroom,omitempty"`
	// Ended is the end of the run on the host's clock.
	Ended *time.Time `json:"ended,omitempty"`
	// Diagnosis describes the collected artifacts and, after the analysis, the
	// findings. Retry reports whether the diagnosis was interrupted and will be
	// retried.
	Diagnosis *Diagnosis `json:"diagnosis,omitempty"`
	Retry     bool       `json:"retry,omitempty"`
	// Check is the result of a check that ends with this event.
	Check *Check `json:"check,omitempty"`
}
