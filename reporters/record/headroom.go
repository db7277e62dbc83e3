package record

// Headroom is how close a process is to the limits that kill it, as it was
// read. Unknown values are null; Reasons are why.
type Headroom struct {
	Files     *int64 `json:"files"`
	FileLimit *int64 `json:"file_limit"`
	Threads   *int64 `json:"threads"`
	// ThreadLimit is the least of the known limits, ThreadLimitBy its name.
	ThreadLimit   *int64 `json:"thread_limit"`
	ThreadLimitBy string `json:"thread_limit_by,omitempty"`
	// Virtual is the address space in bytes; a 64-bit process has no limit of
	// it.
	Virtual      *int64 `json:"virtual_bytes"`
	VirtualLimit *int64 `json:"virtual_limit_bytes"`
	// Bits is 32 or 64, 0 if unknown.
	Bits int `json:"bits"`
	// Anonymous is RssAnon and VmSwap in bytes, AnonymousLimit what the memory
	// limiter of Android 17 allows of them; AnonymousAssumed reports that the
	// device does not show its limits and that this is what Android recommends
	// for its RAM.
	Anonymous        *int64 `json:"anonymous_bytes"`
	AnonymousLimit   *int64 `json:"anonymous_limit_bytes"`
	AnonymousAssumed bool   `json:"anonymous_limit_assumed,omitempty"`
	// JavaHeap is what the runtime had allocated at the latest breakdown, in
	// bytes.
	JavaHeap  *int64 `json:"java_heap_bytes"`
	JavaLimit *int64 `json:"java_limit_bytes"`
	// JavaGarbage is the largest part of JavaHeap, in bytes, that a collection
	// could free.
	JavaGarbage *int64   `json:"java_garbage_bytes"`
	Reasons     []string `json:"reasons,omitempty"`
}

// LimitWarning is an early warning: a process comes close to a limit.
type LimitWarning struct {
	T float64 `json:"t_s"`
	// Resource is java_heap, file_descriptors, threads, address_space or
	// anonymous_memory; Used and Limit are bytes, or counts.
	Resource string `json:"resource"`
	Used     int64  `json:"used"`
	Limit    int64  `json:"limit"`
	// TimeLeft is the time in seconds until the limit at the present growth,
	// null if nothing grows evenly.
	TimeLeft *float64 `json:"time_left_s"`
	Urgent   bool     `json:"urgent"`
	// Assumed reports that the device does not show its limit.
	Assumed bool   `json:"assumed,omitempty"`
	Text    string `json:"text"`
}

// Standing is the state of a process for one limit at the end.
type Standing struct {
	Resource string `json:"resource"`
	Used     int64  `json:"used"`
	Limit    int64  `json:"limit"`
	// Share is the part of the limit that counts of Used: of a Java heap what
	// is left after collections. Rate is its growth per hour.
	Share    *float64 `json:"share"`
	Rate     *float64 `json:"rate_per_h"`
	TimeLeft *float64 `json:"time_left_s"`
	// Exceeded reports that more than the limit was used, so that it is not the
	// limit.
	Exceeded bool `json:"exceeded,omitempty"`
	// Assumed is as in LimitWarning.
	Assumed bool `json:"assumed,omitempty"`
	Warned  bool `json:"warned"`
}
