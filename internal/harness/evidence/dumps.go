package evidence

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/harness/gate"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
	"github.com/leakgate/leakgate/internal/text"
)

// Scenario holds heap dumps of one process, taken after each loop or every few
// loops, in the order in which they were taken.
type Scenario struct {
	Process string
	Files   []string
}

// DumpOptions determine how heap dumps are read.
type DumpOptions struct {
	Analysis analysis.Options
	// Spool is the maximum size of the temporary file for a compressed dump, in
	// bytes; 0 means the default.
	Spool int64
	// InUse reports whether the app was in use, rather than idle, before each
	// dump.
	InUse bool
	// App is the package under test. Only dumps with the same Variant and Test
	// can be compared with each other.
	App, Variant, Test string
	// Progress is called with the name of each file before the file is read. It
	// may be nil.
	Progress func(file string)
}

// DumpError describes a heap dump that could not be read.
type DumpError struct {
	File string
	Err  error
}

// ErrOrder is wrapped by the error for dumps that are not in the order in which
// they were taken.
var ErrOrder = errors.New("name the dumps in the order of the loops")

// Error implements error.
func (e *DumpError) Error() string { return text.Printable(e.File) + ": " + e.Err.Error() }

// Unwrap returns the cause of the error.
func (e *DumpError) Unwrap() error { return e.Err }

// FromDumps reads heap dumps that were taken without leakgate.
func FromDumps(ctx context.Context, scenarios []Scenario, o DumpOptions) (*Evidence, error) {
	out := &Evidence{
		Traces: map[gate.TraceKey]gate.Trace{},
		Head: comparison.Head{
			App: o.App, Variant: o.Variant, Workload: "heap dumps", Devices: []comparison.DeviceRow{},
		},
	}
	obs := gate.Observation{
		Unit: gate.UnitLoop, Subject: gate.Testbed{App: o.App, Variant: o.Variant, Test: o.Test, Workload: "dumps"},
		Processes: []gate.Observed{},
	}
	for _, s := range scenarios {
		p := gate.Observed{Process: name(s.Process), Places: []gate.Place{}}
		var moments []moment
		var latest time.Time
		for i, file := range s.Files {
			if o.Progress != nil {
				o.Progress(file)
			}
			m, report, taken, err := readDump(ctx, file, o)
			if err != nil {
				return nil, &DumpError{file, err}
			}
			if taken.Before(latest) && !taken.IsZero() {
				return nil,
					&DumpError{
						file,
						fmt.Errorf("it was taken before the preceding dump (%s): %w", text.Printable(s.Files[i-1]),
							ErrOrder),
					}
			}
			latest = taken
			if i == 0 && (obs.Started.IsZero() || taken.Before(obs.Started)) {
				obs.Started = taken
			}
			m.at = float64(i + 1)
			moments = append(moments, m)
			if a := report.Dump.Android; a != nil && obs.Subject.API == 0 {
				obs.Subject.API, obs.Subject.Model = int(a.SDK), name(a.Model)
			}
			if i == len(s.Files)-1 {
				addTraces(out.Traces, "", p.Process, report.Leaks)
			}
		}
		series(&p, moments, false)
		out.name("", &p)
		obs.Processes = append(obs.Processes, p)
	}
	out.Observations = []gate.Observation{obs}
	return out, nil
}

// readDump reads one dump; taken is the time at which the dump was written, by
// the clock of its device.
func readDump(ctx context.Context, path string, o DumpOptions) (m moment, report *analysis.Report, taken time.Time,
	err error) {
	file, err := spool.Open(ctx, path, nil, spool.Options{Cap: o.Spool})
	if err != nil {
		return m, nil, taken, err
	}
	defer file.Close()
	if spool.IsPerfetto(file, file.Size()) {
		return m, nil, taken, errors.New("this is a Perfetto trace: " +
			"take a heap dump with `adb shell am dumpheap -g PROCESS FILE`")
	}
	a := o.Analysis
	a.Cut = errors.Join(file.Truncated, file.Damage)
	report, summary, err := analysis.Examine(ctx, file, file.Size(), a)
	if err != nil {
		return m, nil, taken, err
	}
	m = moment{
		settled: !o.InUse, leaks: summary.Leaks(), loaded: summary.Loaded(), reachable: report.Dump.ReachableBytes +
			report.Dump.ReachableNative, names: report.Dump.Names.Origin,
	}
	// Dumps of a JVM are always undecided, because a JVM does not mark objects
	// as no longer needed.
	for _, reason := range report.Undecided {
		m.undecided = fmt.Sprint(reason)
		break
	}
	return m, report, takenAt(file), nil
}

// takenAt reads the time, in milliseconds, from the header of a dump, where it
// follows the format name, a zero byte and the size of an ID. It returns the
// zero time if the header contains no time.
func takenAt(file io.ReaderAt) time.Time {
	head := make([]byte, 64)
	n, _ := file.ReadAt(head, 0) // a dump that was read has a header
	at := bytes.IndexByte(head[:n], 0)
	if at < 0 || at+13 > n {
		return time.Time{}
	}
	ms := binary.BigEndian.Uint64(head[at+5:])
	if ms == 0 || ms > maxMillis {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms)).UTC()
}

// maxMillis is the beginning of the year 9999, in milliseconds since 1970.
const maxMillis = 253_370_764_800_000
