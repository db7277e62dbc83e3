package monitor

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/reporters/record"
)

// smallDisk mounts a file system of the given size in bytes. The test is
// skipped for users who are not allowed to mount file systems.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("leakgate-test", dir, "tmpfs", 0, "size="+size); err != nil {
		recorded.Missing(t, "a small disk is needed: mount tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// A full disk ends the run immediately, with one message, complete lines, and a
// run.json that states the reason.
func TestRunOnFillingDisk(t *testing.T) {
	disk := smallDisk(t, "3M")
	synctest.Test(t, func(t *testing.T) {
		o := options(t, phone("S1", rooted(), healthy("com.shop"), healthy("com.shop:push")))
		o.Dir, o.Duration = filepath.Join(disk, "run"), 200*time.Hour
		go func() {
			time.Sleep(10*time.Minute + betweenSamples)
			fill(t, disk)
		}()
		began := time.Now()
		run, err := Run(t.Context(), o)
		if took := time.Since(began); took > time.Hour {
			t.Errorf("the run continued for %v, want at most 1 h", took)
		}
		if !errors.Is(err, syscall.ENOSPC) || strings.Count(err.Error(), "no space left") != 1 {
			t.Errorf("message %q", err)
		}
		if run.Stopped != "disk" || run.ExitCode != record.ExitUnwritten {
			t.Errorf("%+v", run)
		}
		again, err := record.ReadRun(o.Dir)
		if err != nil || again.Stopped != "disk" || again.Processes[0].Samples < 15 {
			t.Errorf("%+v %v", again, err)
		}
		rebuilt, warnings, err := ledger.Rebuild(o.Dir)
		if err != nil || len(warnings) > 0 || !reflect.DeepEqual(rebuilt, again) {
			t.Errorf("rebuilt %+v\nwritten %+v\n%v %v", rebuilt, again, warnings, err)
		}
		left, err := filepath.Glob(filepath.Join(o.Dir, ".*"))
		if err != nil || len(left) > 0 {
			t.Errorf("temporary files remain: %v %v", left, err)
		}
	})
}

// fill writes until nothing more fits.
func fill(t *testing.T, disk string) {
	f, err := os.Create(filepath.Join(disk, "filler"))
	if err != nil {
		t.Error(err)
		return
	}
	for size := 64 << 10; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestRunOnFullDisk(t *testing.T) {
	disk := smallDisk(t, "1M")
	synctest.Test(t, func(t *testing.T) {
		o := options(t, phone("S1", rooted(), healthy("com.shop")))
		o.Dir = filepath.Join(disk, "run")
		if _, err := Run(t.Context(), o); !errors.Is(err, syscall.ENOSPC) ||
			!strings.Contains(err.Error(), "reserve 2 MB") {
			t.Errorf("%v", err)
		}
		if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
			t.Errorf("files remain after a run that did not start: %v, %v", left, err)
		}
	})
}

// If the output of a workload fills the disk, the run reports the disk error,
// and the workload does not count as failed.
func TestWorkloadLogFillsDisk(t *testing.T) {
	disk := smallDisk(t, "4M")
	o := options(t, phone("S1", rooted(), healthy("com.shop")))
	o.Dir, o.Duration = filepath.Join(disk, "run"), 0
	o.Workload = HostCommand{
		Args: []string{"sh", "-c", "sleep 0.3; yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | head -c 20000000; sleep 2"},
	}
	run, err := Run(t.Context(), o)
	if !errors.Is(err, syscall.ENOSPC) || run.Stopped != "disk" || run.ExitCode != record.ExitUnwritten ||
		run.Workload.Error != "" {
		t.Errorf("stopped %s, exit %d, %+v, %v", run.Stopped, run.ExitCode, run.Workload, err)
	}
	if again, err := record.ReadRun(o.Dir); err != nil || again.Stopped != "disk" {
		t.Errorf("%+v, %v", again, err)
	}
}
