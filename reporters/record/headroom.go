package record

// Headroom describes how close a process was, at the time of a reading, to the
// limits at which it is killed. Unknown values are null, and Reasons explain
// why.
type Headroom struct {
	Files     *int64 `json:"files"`
	FileLimit *int64 `json:"file_limit"`
	Threads   *int64 `json:"threads"`
	// ThreadLimit is the smallest known limit on the number of threads, and
	// ThreadLimitBy is the name of that limit.
	ThreadLimit   *int64 `json:"thread_limit"`
	ThreadLimitBy string `json:"thread_limit_by,omitempty"`
	// Virtual is the used address space in bytes. The address space of a 64-bit
	// process is not limited.
	Virtual      *int64 `json:"virtual_bytes"`
	VirtualLimit *int64 `json:"virtual_limit_bytes"`
	// Bits is 32 or 64, or 0 if unknown.
	Bits int `json:"bits"`
	// Anonymous is the sum of RssAnon and VmSwap in bytes. AnonymousLimit is
	// the maximum that the memory limiter of Android 17 allows.
	// AnonymousAssumed reports whether the limit is assumed because the device
	// does not report it; in that case the limit is the value that Android
	// recommends for the device's RAM.
	Anonymous        *int64 `json:"anonymous_bytes"`
	AnonymousLimit   *int64 `json:"anonymous_limit_bytes"`
	AnonymousAssumed bool   `json:"anonymous_limit_assumed,omitempty"`
	// JavaHeap is the number of bytes that the runtime had allocated at the
	// latest breakdown.
	JavaHeap  *int64 `json:"java_heap_bytes"`
	JavaLimit *int64 `json:"java_limit_bytes"`
	// JavaGarbage is an upper bound on the number of bytes in JavaHeap that a
	// garbage collection could free.
	JavaGarbage *int64   `json:"java_garbage_bytes"`
	Reasons     []string `json:"reasons,omitempty"`
}

// LimitWarning is an early warning that a process is approaching a limit.
type LimitWarning struct {
	T float64 `json:"t_s"`
	// Resource is java_heap, file_descriptors, threads, address_space or
	// anonymous_memory; Used and Limit are bytes or counts.
	Resource string `json:"resource"`
	Used     int64  `json:"used"`
	Limit    int64  `json:"limit"`
	// TimeLeft is the time, in seconds, until the limit is reached at the
	// present growth rate. It is null if there is no steady growth.
	TimeLeft *float64 `json:"time_left_s"`
	Urgent   bool     `json:"urgent"`
	// Assumed reports whether the limit is assumed because the device does not
	// report it.
	Assumed bool   `json:"assumed,omitempty"`
	Text    string `json:"text"`
}

// Standing is the state of a process at the end of the run with respect to one
// limit.
type Standing struct {
	Resource string `json:"resource"`
	Used     int64  `json:"used"`
	Limit    int64  `json:"limit"`
	// Share is the fraction of the limit that is used. For a Java heap, it
	// includes only memory that remains after garbage collections. Rate is the
	// growth in usage per hour.
	Share    *float64 `json:"share"`
	Rate     *float64 `json:"rate_per_h"`
	TimeLeft *float64 `json:"time_left_s"`
	// Exceeded reports whether usage exceeded the limit. If it is set, Limit
	// cannot be the real limit.
	Exceeded bool `json:"exceeded,omitempty"`
	// Assumed has the same meaning as in LimitWarning.
	Assumed bool `json:"assumed,omitempty"`
	Warned  bool `json:"warned"`
}
