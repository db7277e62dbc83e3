package monitor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/reporters/record"
)

// If a dump would not fit on the host's disk, it is not started. The other
// artifacts are collected, and the run continues.
func TestResponseOnSmallHostDisk(t *testing.T) {
	disk := smallDisk(t, "40M") // less than the space that must stay free in addition to a dump
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", smallDumps(rooted()), leaky("com.shop", androidsim.Java, 300)))
		o := responding(t, response.Options{}, p)
		o.Dir, o.Duration = filepath.Join(disk, "run"), 26*time.Minute
		r := respond(t, t.Context(), o)
		leaks := r.diagnosesOf("com.shop", record.TriggerLeak)
		if r.Stopped != record.StoppedDuration || len(leaks) != 1 || steps(leaks[0]) != "meminfo logcat exit_info" ||
			leaks[0].Outcome != record.DiagnosisDegraded {
			t.Fatalf("%s, %+v", r.Stopped, leaks)
		}
		i := slices.IndexFunc(leaks[0].Steps, func(s record.Collected) bool { return s.Step == "heap" })
		if s := leaks[0].Steps[i]; s.Outcome != "failed" ||
			!strings.Contains(strings.Join(s.Reasons, "\n"), "the host's disk is full") {
			t.Errorf("%+v", s)
		}
		if p.commands("am dumpheap") > 0 {
			t.Error("the process was suspended for a dump that cannot be kept")
		}
	})
}

// A disk that becomes full during a pull leaves no partial dump: the written
// part is removed. The run must either be complete or report that it could not
// be written.
func TestResponseOnFillingHostDisk(t *testing.T) {
	disk := smallDisk(t, "250M")
	synctest.Test(t, func(t *testing.T) {
		// The heap contains little except the leak, because the expected size
		// of a dump depends on the Java heap.
		spec := androidsim.ProcessSpec{Name: "com.shop", DumpBytes: 9 << 20, Models: []androidsim.Model{
			androidsim.Steady(androidsim.JavaHeap, 4), androidsim.Steady(androidsim.NativeHeap, 80),
			androidsim.Noise(0.5, 0.3), androidsim.Leak(androidsim.Java, 90, 0),
		}}
		p := cable(phone("S1", rooted(), spec))
		var filled bool
		p.listen(func(what string) {
			if strings.HasPrefix(what, "read ") && !filled {
				filled = true
				fill(t, disk)
			}
		})
		o := responding(t, response.Options{}, p)
		o.Dir, o.Duration = filepath.Join(disk, "run"), 45*time.Minute
		run, err := Run(context.WithoutCancel(t.Context()), o)
		if !filled {
			t.Fatal("nothing was pulled")
		}
		if err != nil && !errors.Is(err, syscall.ENOSPC) || err == nil && run.Stopped != record.StoppedDuration ||
			err != nil && run.Stopped != "disk" {
			t.Errorf("stopped by %s, %v", run.Stopped, err)
		}
		onDisk, err := record.ReadRun(o.Dir)
		if err != nil || onDisk.Stopped != run.Stopped {
			t.Errorf("run.json: %+v, %v", onDisk.Stopped, err)
		}
		err = filepath.WalkDir(filepath.Join(o.Dir, response.Artifacts),
			func(path string, e os.DirEntry, err error) error {
				if err == nil && (strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "heap.hprof")) {
					t.Errorf("file remains: %s", path)
				}
				return err
			})
		if err != nil {
			t.Error(err)
		}
		for _, d := range run.Diagnoses {
			if strings.Contains(steps(d), "heap") {
				t.Errorf("a dump is recorded: %+v", d.Steps)
			}
		}
		if left := leftOn(t, p); len(left) > 0 {
			t.Errorf("files remain on the phone: %v", left)
		}
	})
}
