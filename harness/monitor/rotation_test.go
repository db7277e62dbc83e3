package monitor

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leakgate/leakgate/capture"
)

func key(name string) capture.Key { return capture.Key{Name: name} }

// turns steps through a rotation second by second and returns which process was
// read at which time.
func turns(r *rotation, from, to time.Duration) []string {
	var out []string
	for now := from; now < to; now += time.Second {
		if k, ok := r.Turn(now); ok {
			out = append(out, fmt.Sprintf("%v %s", now, k.Name))
		}
	}
	return out
}

func equal(t *testing.T, got, want []string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// The sequence diagram of the article, section 4.4: A, B, C, A, thirty seconds
// apart.
func TestRotationOfTheArticle(t *testing.T) {
	r := newRotation(30 * time.Second)
	for _, name := range []string{"A", "B", "C", "B"} {
		r.Add(key(name))
	}
	equal(t, turns(r, 0, 2*time.Minute), []string{"0s A", "30s B", "1m0s C", "1m30s A"})
}

func TestRotationExtraReadings(t *testing.T) {
	r := newRotation(30 * time.Second)
	r.Add(key("A"))
	r.Add(key("B"))
	r.Want(key("B"), 3, 0, 30*time.Second)
	equal(t, turns(r, 0, 2*time.Minute), []string{
		"0s A", "15s B", "30s B", "45s B", "1m0s A", "1m15s B", "1m30s B",
	})
	if n := r.Wanted(key("B")); n != 0 {
		t.Errorf("%d readings still pending", n)
	}
}

func TestRotationAlternatesExtraReadings(t *testing.T) {
	r := newRotation(30 * time.Second)
	r.Add(key("A"))
	r.Add(key("B"))
	r.Want(key("A"), 2, 0, 30*time.Second)
	r.Want(key("B"), 2, 0, 30*time.Second)
	equal(t, turns(r, 0, 130*time.Second), []string{
		"0s A", "15s A", "30s B", "45s B", "1m0s A", "1m15s A", "1m30s B", "1m45s B", "2m0s A",
	})
}

func TestRotationUnansweredProcessRests(t *testing.T) {
	r := newRotation(30 * time.Second)
	r.Add(key("A"))
	r.Add(key("B"))
	equal(t, turns(r, 0, 45*time.Second), []string{"0s A", "30s B"})
	r.MarkUnanswered(key("B"))
	equal(t, turns(r, 45*time.Second, 150*time.Second), []string{"1m0s A", "1m30s A", "2m0s B"})
	r.MarkUnanswered(key("B"))
	equal(t, turns(r, 150*time.Second, 255*time.Second), []string{"2m30s A", "3m0s A", "3m30s A", "4m0s B"})
	r.Answered(key("B"))
	equal(t, turns(r, 255*time.Second, 330*time.Second), []string{"4m30s A", "5m0s B"})
}

func TestRotationUnansweredProcessGetsNoExtraReadings(t *testing.T) {
	r := newRotation(30 * time.Second)
	r.Add(key("A"))
	r.MarkUnanswered(key("A"))
	r.Want(key("A"), 3, 0, 30*time.Second)
	equal(t, turns(r, 0, 40*time.Second), []string{"30s A"})
	r.Answered(key("A"))
	r.Want(key("A"), 1, 40*time.Second, 30*time.Second)
	equal(t, turns(r, 40*time.Second, 65*time.Second), []string{"45s A", "1m0s A"})
}

func TestRotationSkipsNextSlot(t *testing.T) {
	r := newRotation(30 * time.Second)
	r.Add(key("A"))
	equal(t, turns(r, 0, time.Second), []string{"0s A"})
	r.Skip(20 * time.Second)
	equal(t, turns(r, 20*time.Second, 65*time.Second), []string{"1m0s A"})
}

// However processes are added, removed, given extra readings and marked as
// unanswered, each slot has at most one turn, and only existing processes get a
// turn.
func TestRotationProperties(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		r := newRotation(30 * time.Second)
		there := map[capture.Key]bool{}
		lastSlot := int64(-1)
		for now := time.Duration(0); now < 2*time.Hour; now += time.Duration(1+rng.IntN(9)) * time.Second {
			k := key(string(rune('A' + rng.IntN(6))))
			switch rng.IntN(40) {
			case 0:
				r.Add(k)
				there[k] = true
			case 1:
				r.Remove(k)
				delete(there, k)
			case 2:
				if there[k] {
					r.Want(k, 3, now, 30*time.Second)
				}
			case 3:
				r.MarkUnanswered(k)
			}
			got, ok := r.Turn(now)
			if !ok {
				continue
			}
			if !there[got] {
				t.Fatalf("seed %d, %v: got a turn for process %v, which does not exist", seed, now, got)
			}
			if slot := int64(now / r.Slot()); slot <= lastSlot {
				t.Fatalf("seed %d, %v: two turns in slot %d", seed, now, slot)
			} else {
				lastSlot = slot
			}
		}
	}
}

func TestRotationIsFair(t *testing.T) {
	r := newRotation(30 * time.Second)
	for i := range 10 {
		r.Add(key(fmt.Sprint(i)))
	}
	count := map[string]int{}
	for now := time.Duration(0); now < 100*time.Minute; now += time.Second {
		if k, ok := r.Turn(now); ok {
			count[k.Name]++
		}
	}
	for name, n := range count {
		if n != 20 {
			t.Errorf("process %s had %d of 200 turns, want 20", name, n)
		}
	}
	if len(count) != 10 {
		t.Errorf("%d processes had a turn, want 10", len(count))
	}
}

func TestRotationAddAllocatesNothingPerTurn(t *testing.T) {
	r := newRotation(30 * time.Second)
	r.Add(key("A"))
	now := time.Duration(0)
	if n := testing.AllocsPerRun(100, func() { now += 15 * time.Second; r.Turn(now) }); n != 0 {
		t.Errorf("%v allocations per turn", n)
	}
}
