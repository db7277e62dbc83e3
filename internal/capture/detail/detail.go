// Package detail reads the detail channel: one dumpsys meminfo of one process.
// A reading contains the memory of the process by kind, and costs CPU time in
// system_server and in the process.
package detail

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/known"
)

// Detail is one reading of the detail channel.
type Detail struct {
	capture.Process
	// Up is the device's clock when dumpsys ended, as time since boot.
	Up time.Duration
	// Spent is the device time that dumpsys took. Took is the wall-clock time
	// of the round trip.
	Spent, Took time.Duration
	// Block is the part of the output of dumpsys meminfo that is about the
	// process.
	Block dumpsys.Block
	// SystemServer and App are the CPU time that system_server and the process
	// used during the dump.
	SystemServer, App known.Duration
	// Warnings lists the unreadable values of an otherwise valid block.
	Warnings []error
}

// detailSlack is the wall-clock time that a round trip may take in addition to
// the dump itself.
const detailSlack = 3 * time.Second

// Read runs one dumpsys meminfo for a process. Both dumpsys on the device and
// the host limit its time, so a hung process costs at most a known amount of
// time. The error is capture.ErrGone, capture.ErrNoAnswer, or the error of a
// device that did not respond.
func Read(ctx context.Context, dev capture.Device, facts capture.Facts, p capture.Process, systemServer int) (Detail,
	error) {
	m := shell.NewMarker()
	deadline := time.Duration(float64((dumpsys.DefaultTimeout+2)*time.Second)/facts.TimeScale) + detailSlack
	began := time.Now()
	a, err := shell.Ask(ctx, dev, deadline, detailCommand(m, facts, p.PID, systemServer))
	d := Detail{Process: p, Took: time.Since(began)}
	switch {
	case ctx.Err() != nil:
		return d, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return d, fmt.Errorf("read meminfo of %s, pid %d: no answer in %v: %w",
			p.Name, p.PID, deadline, capture.ErrNoAnswer)
	case err != nil:
		return d, fmt.Errorf("read meminfo of %s: %w", p.Name, err)
	}
	parts, whole := m.Split(a.Stdout)
	if !whole {
		return d, fmt.Errorf("read meminfo of %s: truncated answer", p.Name)
	}
	if err := d.clock(parts); err != nil {
		return d, err
	}
	d.SystemServer = spent(parts["ss1"], parts["ss2"])
	d.App = spent(parts["stat1"], parts["stat"])
	if stat, err := procfs.ParseStat(parts["stat"]); err != nil || uint64(stat.StartTicks.N) != p.Start {
		return d, fmt.Errorf("read meminfo of %s, pid %d: %w", p.Name, p.PID, capture.ErrGone)
	}
	return d, d.block(parts["meminfo"])
}

func detailCommand(m shell.Marker, facts capture.Facts, pid, systemServer int) string {
	// Before Android 7 only the host limits the time.
	timeout := dumpsys.TimeoutOption(facts.API, dumpsys.DefaultTimeout)
	busy := fmt.Sprintf("cat /proc/%d/stat 2>&1", systemServer)
	if systemServer <= 0 {
		busy = ":"
	}
	stat := fmt.Sprintf("cat /proc/%d/stat 2>&1", pid)
	return m.Join([]shell.Part{
		{"ss1", busy},
		{"stat1", stat},
		{"up1", "cat /proc/uptime"},
		{"meminfo", fmt.Sprintf("dumpsys %smeminfo %d </dev/null 2>&1", timeout, pid)},
		{"up2", "cat /proc/uptime"},
		{"ss2", busy},
		{"stat", stat},
	})
}

func (d *Detail) clock(parts map[string][]byte) error {
	before, err := procfs.ParseUptime(parts["up1"])
	if err == nil {
		d.Up, err = procfs.ParseUptime(parts["up2"])
	}
	if err != nil {
		return fmt.Errorf("read clock around meminfo of %s: %w", d.Name, err)
	}
	d.Spent = d.Up - before
	return nil
}

func spent(before, after []byte) known.Duration {
	a, errA := procfs.ParseStat(before)
	b, errB := procfs.ParseStat(after)
	from, to := a.CPU(), b.CPU()
	if errA != nil || errB != nil || a.StartTicks != b.StartTicks || !from.Known || !to.Known {
		return known.Duration{}
	}
	return known.OfDuration(to.N - from.N)
}

// block parses the output of dumpsys and stores the part that is about the
// process in Block.
func (d *Detail) block(text []byte) error {
	info, err := dumpsys.ParseMeminfo(text)
	if err != nil {
		return fmt.Errorf("read meminfo of %s: %w", d.Name, asCaptureError(err))
	}
	for _, b := range info.Blocks {
		if b.PID.Known && b.PID.N != int64(d.PID) {
			continue
		}
		if !b.TotalPss.Known {
			return fmt.Errorf("read meminfo of %s: no total%s: %w", d.Name, brokenOff(info), capture.ErrNoAnswer)
		}
		d.Block, d.Warnings = b, append(info.Warnings, b.Warnings...)
		return nil
	}
	return fmt.Errorf("read meminfo of %s: no block for pid %d: %w", d.Name, d.PID, capture.ErrGone)
}

func brokenOff(info dumpsys.Meminfo) string {
	if info.Interrupted == nil {
		return ""
	}
	return " (" + info.Interrupted.Error() + ")"
}

// asCaptureError converts a device's error message to the error that the engine
// acts on.
func asCaptureError(err error) error {
	var e dumpsys.DeviceError
	if !errors.As(err, &e) {
		return err
	}
	switch e.Kind {
	case dumpsys.NoProcess:
		return fmt.Errorf("%w: %w", capture.ErrGone, err)
	case dumpsys.Timeout, dumpsys.Frozen, dumpsys.DumpFailed:
		return fmt.Errorf("%w: %w", capture.ErrNoAnswer, err)
	}
	return err
}

// JavaHeapUse returns the size of all Java objects that the runtime has
// allocated, in bytes, including garbage: Heap Alloc of the row "Dalvik Heap",
// which is totalMemory() - freeMemory() (frameworks/base
// ActivityThread.dumpMemInfo). This is the quantity that the growth limit
// bounds.
func JavaHeapUse(block dumpsys.Block) known.Int {
	row, ok := block.Row("Dalvik Heap")
	if !ok || !row.HeapAlloc.Known || row.HeapAlloc.N < 0 || row.HeapAlloc.N > maxKB {
		return known.Int{}
	}
	return known.Of(row.HeapAlloc.N << 10)
}

// maxKB is the largest size in kB that does not overflow when it is converted
// to bytes.
const maxKB = 1 << 50
