//go:build realtime

package monitor

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/adbd/adbtest"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/stall"
)

// newRealBench returns a phone whose time is scaled, behind the real adb
// server.
func newRealBench(t *testing.T, server *adbtest.Server, number int, scale float64) *bench {
	t.Helper()
	p, line := steadyPhone(androidsim.Options{Scale: scale, Seed: uint64(number)}), &adbd.Line{}
	d := adbd.NewDaemon(p)
	d.Wire = line.Wire
	if err := d.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	client, err := adb.NewClient(adb.Options{Addr: server.Addr, NoStart: true})
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, p, client, server.Connect(t, d.Addr()), androidsim.Faults(p, d, line))
	// A stream whose OPEN packet was corrupted stays open until the connection
	// ends, because no host knows the number of the stream.
	b.hangUp = d.Drop
	return b
}

// smokeFaults are the faults that take a different path through the real adb
// server than through one in memory. TestEachFault covers all faults.
var smokeFaults = []string{"offline", "connection dropped", "line unplugged", "line hangs", "line with garbage"}

// TestRealFaults injects faults behind the real adb server: a few of them with
// a short interval, or all with a long one.
func TestRealFaults(t *testing.T) {
	names, scale := smokeFaults, 10.0
	if long() {
		names, scale = nil, 2
	}
	ownTemporary(t)
	server := adbtest.StartServer(t)
	benches := []*bench{newRealBench(t, server, 1, scale)}
	var faults []int
	for i, f := range benches[0].faults {
		if names == nil || slices.Contains(names, f.Name) {
			faults = append(faults, i)
			benches = append(benches, newRealBench(t, server, len(benches)+1, scale))
		}
	}
	if len(faults) < len(names) {
		t.Fatalf("only %d of the faults %q exist", len(faults), names)
	}
	before := census(t)
	stalls := stall.Measure(t)
	o := soakOptions(t, benches)
	o.Duration = 150 * time.Second
	unit := func(seconds float64) time.Duration { return time.Duration(seconds / scale * float64(time.Second)) }
	for n, i := range faults {
		b := benches[1+n]
		go b.suffer(t.Context(), b.faults[i], unit(40), unit(40))
	}
	r := perform(t, t.Context(), o)
	checkEachFault(t, r, benches, stalls.Total())
	checkCensus(t, before, benches)
	checkNothingLeft(t, benches)
}

// inventory counts the resources on the host that a run may leave behind.
type inventory struct{ goroutines, files, children, temporary int }

func (n inventory) within(m inventory) bool {
	return n.goroutines <= m.goroutines && n.files <= m.files && n.children <= m.children && n.temporary <= m.temporary
}

func census(t *testing.T) inventory {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	temporary, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return inventory{runtime.NumGoroutine(), len(files), children(t), len(temporary)}
}

// children returns the number of live child processes of this process.
func children(t *testing.T) int {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range lists {
		pids, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		n += len(strings.Fields(string(pids)))
	}
	return n
}

// checkCensus waits until no more resources are in use than before the run.
// Connections of the adb server that was killed end only after the run.
func checkCensus(t *testing.T, before inventory, benches []*bench) {
	t.Helper()
	for _, b := range benches {
		b.hangUp()
	}
	var now inventory
	for range 200 {
		if now = census(t); now.within(before) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if !now.within(before) {
		stacks := make([]byte, 1<<20)
		t.Errorf("resources after the run: %+v, before: %+v\n%s", now, before, stacks[:runtime.Stack(stacks, true)])
	}
}
