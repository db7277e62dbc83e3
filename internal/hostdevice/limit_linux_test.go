//go:build e2e

package hostdevice_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/capture/detail"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/hostdevicetest"
)

// TestLimits checks that limits are reported as on a phone, and that usage
// grows until the process dies.
func TestLimits(t *testing.T) {
	hostdevicetest.RequireJava(t)
	const files = 200
	d := hostdevicetest.New(t, hostdevice.Options{Scale: 100, HeapMB: 256, FileLimit: files})
	if out, _ := shell(t, d, "getprop dalvik.vm.heapgrowthlimit; getprop dalvik.vm.heapsize"); out != "256m\n256m\n" {
		t.Errorf("heap sizes: %q", out)
	}
	// Four files per MB amount to 40 files per second.
	if out, exit := shell(t, d, "am start -n "+d.Package()+"/.Files --ef mb_per_h 360"); exit != 0 {
		t.Fatalf("%s, exit %d", out, exit)
	}
	pid, _ := shell(t, d, "pidof "+d.Package()+":files")
	pid = strings.TrimSpace(pid)
	eventually(t, "the limit of the process", func() bool {
		out, _ := shell(t, d, "grep '^Max open files' /proc/"+pid+"/limits")
		f := strings.Fields(out)
		return len(f) == 6 && f[3] == fmt.Sprint(files) && f[4] == f[3]
	})
	most := 0
	eventually(t, "the process to reach its limit", func() bool {
		out, _ := shell(t, d, "ls -l /proc/"+pid+"/fd 2>/dev/null")
		most = max(most, strings.Count(out, "/dev/null"))
		out, _ = shell(t, d, "pidof "+d.Package()+":files")
		return out == ""
	})
	if most < files/2 || most > files {
		t.Errorf("got at most %d open files, want %d to %d, the limit", most, files/2, files)
	}
}

// TestHeapInUse checks that the used part of the Java heap falls with each
// collection while its minimum rises; the kernel reports only growth.
func TestHeapInUse(t *testing.T) {
	hostdevicetest.RequireJava(t)
	d := hostdevicetest.New(t, hostdevice.Options{Scale: 100, HeapMB: 512})
	// The leak is 4 MB per second, with four times as much garbage.
	if out, exit := shell(t, d, "am start -n "+d.Package()+"/.Busy --ef mb_per_h 144"); exit != 0 {
		t.Fatalf("%s, exit %d", out, exit)
	}
	var used, floors []int64
	eventually(t, "three collections", func() bool {
		out, _ := shell(t, d, "dumpsys meminfo "+d.Package()+":busy")
		m, err := dumpsys.ParseMeminfo([]byte(out))
		if err != nil || len(m.Blocks) != 1 {
			t.Fatalf("%v\n%s", err, out)
		}
		now := detail.JavaHeapUse(m.Blocks[0])
		row, _ := m.Blocks[0].Row("Dalvik Heap")
		if !now.Known || now.N>>10 != row.HeapAlloc.N || row.HeapAlloc.N+row.HeapFree.N != row.HeapSize.N {
			t.Fatalf("%+v, %+v", now, row)
		}
		if n := len(used); n > 0 && now.N < used[n-1] {
			floors = append(floors, now.N)
		}
		used = append(used, now.N)
		return len(floors) == 3
	})
	if !(floors[0] < floors[1] && floors[1] < floors[2]) {
		t.Errorf("memory used after collections is %v, want rising values", floors)
	}
}
