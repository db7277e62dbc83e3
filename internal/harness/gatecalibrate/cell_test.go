package gatecalibrate

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/harness/gate"
)

// These are the programs whose runs are compared.
const (
	shop   = "Shop"
	reader = "Reader"
	chat   = "Chat"
	phone  = "simulated phone"
)

// change is the difference between a build and the base.
type change int

const (
	// nothing means that the build is the same as the base.
	nothing change = iota
	// newLeak adds a new leak of one object per loop.
	newLeak
	// oneMore adds one object per loop to a known leak.
	oneMore
	// heavier makes the objects of a known leak retain 3 MB more in total.
	heavier
	// tripled triples the number of objects of a known leak. The gate must
	// report this change in monkey runs.
	tripled
)

// changes lists all changes of a build.
func changes() []change { return []change{newLeak, oneMore, tripled, heavier} }

// moreBytes is the additional size of all objects of a leak together at the end
// of a run.
const moreBytes = 3 << 20

// cell is one way to run one program.
type cell struct {
	program string
	// monkey means that the steps of the script are performed in random order,
	// each equally often on average.
	monkey bool
	// inUse means that dumps are taken right after each loop, while delayed
	// tasks hold screens.
	inUse bool
}

func (c cell) String() string { return fmt.Sprintf("%s, %s, %s", c.program, c.workload(), c.dumps()) }

func (c cell) workload() string { return map[bool]string{true: "Monkey", false: "script"}[c.monkey] }

func (c cell) dumps() string { return map[bool]string{true: "in use", false: "settled"}[c.inUse] }

// moments returns the number of dumps in a run: one more than is needed to
// prove a leak, and one and a half times as many in a long run.
func (c cell) moments(long bool) int {
	n := 4
	if c.inUse {
		n = 6
	}
	if long {
		n += n / 2
	}
	return n
}

// monkeyLoops is the number of script loops that contain as many steps as
// monkey takes between two dumps. A script takes a dump after each loop.
const monkeyLoops = 4

// loops returns the number of script loops between two dumps.
func (c cell) loops() int {
	if c.monkey {
		return monkeyLoops
	}
	return 1
}

// trial is one run with its result.
type trial struct {
	cell
	change change
	long   bool
	seed   uint64
	shown  gate.Observation
}

// name returns the settings that are needed to repeat the run.
func (r *trial) name() string {
	return fmt.Sprintf("%s, %s, %d dumps, seed %d", r.cell, builds[r.change], r.moments(r.long), r.seed)
}

// objects returns how many objects a run leaves, given the number that each
// loop leaves.
func (r *trial) objects(perLoop int) int { return perLoop * r.cell.loops() * r.moments(r.long) }

var builds = map[change]string{
	nothing: "unchanged", newLeak: "new leak", oneMore: "one more per loop", tripled: "three times as many",
	heavier: "3 MB heavier",
}

// random returns the source of random numbers for a run on the simulated phone.
func (r *trial) random() *rand.Rand { return rand.New(rand.NewPCG(r.seed, 20261125)) }

// carryOut executes all runs, several of them concurrently.
func carryOut(t *testing.T, trials []*trial) {
	t.Helper()
	programs := compile(t, trials)
	t.Run("runs", func(t *testing.T) {
		for _, r := range trials {
			t.Run(r.name(), func(t *testing.T) {
				t.Parallel()
				if r.program == phone {
					r.shown = runPhone(t, r)
				} else {
					r.shown = runJVM(t, programs[r.build()], r)
				}
				if n, want := len(r.shown.Processes), 1; n != want ||
					len(r.shown.Processes[0].Heap.Exposure) != r.moments(r.long) ||
					r.shown.Processes[0].Undecided != "" {
					t.Fatalf("%d processes, want %d: %+v", n, want, r.shown)
				}
			})
		}
	})
	if t.Failed() {
		t.FailNow()
	}
}

// at returns the observation with a commit and a time that make it the n-th in
// the history of its program.
func (r *trial) at(n int) gate.Observation {
	o := r.shown
	o.Commit, o.Started = fmt.Sprintf("%07x", n+1), time.Date(2026, 11, 1, 0, 0, n, 0, time.UTC)
	return o
}
