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
	// Alive returns the life that is running, or ErrGone if the process is not
	// running.
	Alive(ctx context.Context) (Life, error)
	// Settle waits until the unfinished work of the last loop has ended. It
	// returns false if the process does not settle.
	Settle(ctx context.Context) (settled bool, err error)
	// Snapshot counts what the process holds now.
	Snapshot(ctx context.Context) (Measured, error)
	// Dump writes a heap dump and opens it. Unless the context is done, an
	// error means that the heap cannot be dumped, and the trip continues
	// without dumps.
	Dump(ctx context.Context) (*Dump, error)
}

// ErrGone is the error for a process that is not running.
var ErrGone = errors.New("the process is not running")

// Life identifies one life of a process, from its start to its end.
type Life struct {
	PID int
	// Start is the time when the process started, in clock ticks of the device.
	Start uint64
}

// Measured holds the object counts and the memory of a process at one point in
// time. Values that could not be read are nil or missing; Reasons says why.
type Measured struct {
	Life
	User int
	// Objects holds the object counts of dumpsys meminfo, by name.
	Objects        map[string]int64
	Threads, Files *int64
	// Breakdown is the memory by dimension; PSS is the total including swap, in
	// kB.
	Breakdown record.Breakdown
	PSS       *int64
	Reasons   []string
}

// Dump is an open heap dump.
type Dump struct {
	Name string
	io.ReaderAt
	Size int64
	// Options controls how the dump is read.
	Options analysis.Options
	// Close releases the dump; it may be nil.
	Close func() error
}
