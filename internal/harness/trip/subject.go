package trip

import (
	"context"
	"errors"
	"io"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/reporters/record"
)

// Subject is the process of a trip.
type Subject interface {
	// Alive returns which incarnation runs now; ErrGone is none.
	Alive(ctx context.Context) (Incarnation, error)
	// Settle waits until what the last loop had in flight is released. False is a process that
	// does not come to rest.
	Settle(ctx context.Context) (settled bool, err error)
	// Snapshot reads what the process holds now.
	Snapshot(ctx context.Context) (Measured, error)
	// Dump writes a heap dump and opens it. An error that is not that of the context is a heap
	// that cannot be dumped; the trip goes on without.
	Dump(ctx context.Context) (*Dump, error)
}

// ErrGone is a process that does not run.
var ErrGone = errors.New("the process is not running")

// Incarnation identifies a process from its start to its end.
type Incarnation struct {
	PID int
	// Start is when it started, in clock ticks of the device.
	Start uint64
}

// Measured is what a process holds at one moment. What could not be read is nil or missing,
// and Reasons say why.
type Measured struct {
	Incarnation
	User int
	// Objects counts objects by the names of dumpsys meminfo.
	Objects        map[string]int64
	Threads, Files *int64
	// Breakdown is the memory by dimension, PSS all of it with its swap, in kB.
	Breakdown record.Breakdown
	PSS       *int64
	Reasons   []string
}

// Dump is an open heap dump.
type Dump struct {
	Name string
	io.ReaderAt
	Size int64
	// Options are how it is read.
	Options analysis.Options
	// Close releases it; nil for nothing.
	Close func() error
}
