package diagnose

import (
	"context"
	"fmt"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/text"
)

// checkSpace checks the free space on the device's disk, and removes any file
// that has the name of the dump. It returns the contents of /proc/PID/status.
func (h *heapDump) checkSpace(ctx context.Context) (status []byte, err error) {
	m, p := shell.NewMarker(), h.req.Process
	a, err := shell.Ask(ctx, h.dev, h.scaled(quickLimit), m.Join([]shell.Part{
		{"df", dfCommand},
		{"status", fmt.Sprintf("cat /proc/%d/status 2>&1", p.PID)},
		{"heapsize", "getprop dalvik.vm.heapsize"},
		{"rm", "rm -f " + text.ShellQuote(h.remote) + " 2>&1"},
	}))
	if err != nil {
		return nil, fmt.Errorf("read free space: %w", err)
	}
	parts, whole := m.Split(a.Stdout)
	if !whole {
		return nil, fmt.Errorf("read free space: %w: truncated answer", capture.ErrDevice)
	}
	h.seeFree(parts["df"])
	h.bound = bound(parts["status"])
	if most := dumpsys.ParseMemorySize(parts["heapsize"]); most.Known {
		h.bound = min(h.bound, most.N)
	}
	expect := h.req.Expect
	if expect <= 0 {
		expect = h.bound
	}
	need := expect + expect/5 + reserve
	if h.free.Known && h.free.N < need {
		return nil, fmt.Errorf("the device's disk is full: %s free on /data, and a dump may take %s",
			text.Size(h.free.N), text.Size(need))
	}
	return parts["status"], nil
}

const dfCommand = "df /data 2>/dev/null"

func (h *heapDump) seeFree(df []byte) {
	if v := dumpsys.ParseDiskFree(string(df), "/data"); v.Known && (!h.free.Known || v.N < h.free.N) {
		h.free = v
	}
}

// bound returns an upper bound on the size of a process's Java heap, in bytes:
// the anonymous memory of the process. Kernels before 4.5 do not report the
// anonymous memory; the whole resident memory is used instead.
func bound(status []byte) int64 {
	s, err := procfs.ParseStatus(status)
	if err != nil {
		return 0
	}
	resident := s.RssAnon
	if !resident.Known {
		resident = s.VmRSS
	}
	return (resident.N + s.VmSwap.N) << 10
}

// checkHostSpace checks that the host's disk has space for a dump of this size
// and a copy of it.
func (h *heapDump) checkHostSpace(size int64) error {
	if h.req.HostFree == nil {
		return nil
	}
	free, err := h.req.HostFree()
	if err != nil {
		h.result.reasons = append(h.result.reasons, fmt.Sprintf("the host's free space is unknown: %v", err))
		return nil
	}
	if need := 2*size + reserve; free < need {
		return fmt.Errorf("the host's disk is full: %s free, but the dump and a copy need %s", text.Size(free),
			text.Size(need))
	}
	return nil
}

// full returns err. If too little space was free for the whole dump, err is
// wrapped in a message that the device's disk is full.
func (h *heapDump) full(err error) error {
	if h.free.Known && h.free.N < max(h.bound, reserve) {
		return fmt.Errorf("the device's disk is full: %s free on /data, and %w", text.Size(h.free.N), err)
	}
	return err
}
