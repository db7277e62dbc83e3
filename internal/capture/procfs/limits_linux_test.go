package procfs

import (
	"os"
	"syscall"
	"testing"

	"github.com/leakgate/leakgate/internal/known"
)

// The parsed limits of this process agree with the result of getrlimit.
func TestOwnLimits(t *testing.T) {
	text, err := os.ReadFile("/proc/self/limits")
	if err != nil {
		t.Fatal(err)
	}
	var want syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &want); err != nil {
		t.Fatal(err)
	}
	got, err := ParseLimits(text)
	if err != nil || got.OpenFiles.Soft != known.Of(int64(want.Cur)) || got.Truncated || len(got.Warnings) > 0 {
		t.Errorf("%+v, %v; getrlimit: %d", got, err, want.Cur)
	}
}
