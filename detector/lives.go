package detector

import "time"

// Cause is why a process ended, as far as it matters for a leak.
type Cause uint8

// The causes of a death. The zero value is unknown.
const (
	// UnknownCause is that of an end that nobody explains.
	UnknownCause Cause = iota
	// OutOfMemory is an OutOfMemoryError, or a kill because the process itself used too much
	// memory: by Android's memory limiter, or for an anomaly.
	OutOfMemory
	// LowMemory is a kill because the device had too little memory left (lmkd).
	LowMemory
	// Crash is an exception or a fatal signal, NotResponding an ANR.
	Crash
	NotResponding
	// Killed is any other kill by the system, a user or a test.
	Killed
	// Exited is an end by the process itself.
	Exited
	// Rebooted is the end with the device.
	Rebooted
)

// Death is the end of one incarnation of a process.
type Death struct {
	// At is the device's clock when it was last seen, or later.
	At    time.Duration
	Cause Cause
}

// Quantity is what the samples of a process measure.
type Quantity uint8

// The quantities of samples. The zero value is the whole memory: Pss and SwapPss.
const (
	WholeMemory Quantity = iota
	// WithoutSwap is Pss of a kernel that shows no SwapPss: what is swapped out is missing.
	WithoutSwap
	// Anonymous is RssAnon and VmSwap: memory of files, ashmem and drivers is missing.
	Anonymous
)
