package diagnose

import (
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/recorded"
)

// TestSmallDisk writes to a disk that fills up: an artifact that does not fit
// is absent, and one that fits is complete.
func TestSmallDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		recorded.Missing(t, "needs a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := situation{api: 34, rooted: true, options: androidsim.Options{DumpHeap: large(4 << 20)}}
		d, facts, r := s.begin(t)
		r.Dir = dir
		got, err := collect(t, t.Context(), d, facts, r, "unknown")
		if err != nil {
			t.Fatal(err)
		}
		if o := outcome(t, got, "heap"); o.Ending != Failed ||
			!strings.Contains(o.Reasons[0], "the host's disk is full") {
			t.Errorf("%+v", o)
		}
		for _, step := range []string{"smaps", "meminfo", "exit_info"} {
			if o := outcome(t, got, step); o.Ending != Complete {
				t.Errorf("%+v", o)
			}
		}
		if left := d.dumps(t); len(left) > 0 {
			t.Errorf("%v was left", left)
		}
	})
}
