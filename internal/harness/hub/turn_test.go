package hub

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestConcurrentTurns starts goroutines that each hold devices for a while;
// some of them stop waiting before they get one. No device has two holders at
// the same time, and all devices are free at the end.
func TestConcurrentTurns(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			ring := newTurns()
			devices := []string{"a", "b", "c"}[:1+r.IntN(3)]
			var mu sync.Mutex
			holder, served, gaveUp := map[string]string{}, 0, 0
			var wg sync.WaitGroup
			for n := range 30 {
				wait, hold, timeout := time.Duration(r.IntN(60))*time.Second, time.Duration(1+r.IntN(20))*time.Second,
					time.Duration(1+r.IntN(300))*time.Second
				who := fmt.Sprint("spec ", n)
				wg.Go(func() {
					time.Sleep(wait)
					ctx, stop := context.WithTimeout(t.Context(), timeout)
					defer stop()
					turn, err := ring.take(ctx, who, func(string) {})
					if err != nil {
						if !errors.Is(err, context.DeadlineExceeded) {
							t.Error(err)
						}
						mu.Lock()
						gaveUp++
						mu.Unlock()
						return
					}
					device := lent{turn}.Serial()
					mu.Lock()
					if other := holder[device]; other != "" {
						t.Errorf("%s got device %q, which %s still holds", who, device, other)
					}
					holder[device], served = who, served+1
					mu.Unlock()
					time.Sleep(hold)
					mu.Lock()
					holder[device] = ""
					mu.Unlock()
					turn.Release()
					turn.Release()
				})
			}
			ring.open(devices)
			wg.Wait()
			slices.Sort(ring.free)
			if served+gaveUp != 30 || served < 5 || !slices.Equal(ring.free, devices) || len(ring.holders) > 0 ||
				len(ring.waiting) > 0 {
				t.Errorf("seed %d: %d served, %d gave up, free devices %q, %d holders, %d waiting", seed, served,
					gaveUp, ring.free,
					len(ring.holders), len(ring.waiting))
			}
		})
	}
}

// Specs get their turns in the order of their requests, and learn who holds the
// device.
func TestTurnsAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring := newTurns()
		ring.open([]string{"a"})
		first, err := ring.take(t.Context(), "first", func(string) { t.Error("the first spec has to wait") })
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		var wg sync.WaitGroup
		for _, who := range []string{"second", "third", "fourth"} {
			wg.Go(func() {
				turn, err := ring.take(t.Context(), who, func(holder string) {
					if holder != "first" {
						t.Errorf("%s waits for %q, want first", who, holder)
					}
				})
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, who) // only one spec at a time has a turn
				time.Sleep(time.Second)
				turn.Release()
			})
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		first.Release()
		wg.Wait()
		if !slices.Equal(order, []string{"second", "third", "fourth"}) {
			t.Errorf("%q", order)
		}
	})
}

// The spec in which the run starts keeps its turn, on the first device. Waiting
// specs get the other devices immediately.
func TestTurnsBeforeTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring := newTurns()
		first, err := ring.take(t.Context(), "first", func(string) {})
		if err != nil || (lent{first}).Serial() != "" || ring.first() != "" {
			t.Fatalf("%q, %v", lent{first}.Serial(), err)
		}
		got := make(chan string, 2)
		for range 2 {
			go func() {
				turn, err := ring.take(t.Context(), "other", func(string) {})
				if err == nil {
					got <- lent{turn}.Serial()
				}
			}()
		}
		synctest.Wait()
		if len(got) > 0 {
			t.Error("a second spec got a device before the run started")
		}
		ring.open([]string{"a", "b"})
		synctest.Wait()
		if len(got) != 1 || <-got != "b" || (lent{first}).Serial() != "a" || ring.first() != "" {
			t.Errorf("the first spec has device %q, want a", lent{first}.Serial())
		}
		first.Release()
		if device := <-got; device != "a" {
			t.Errorf("then got device %q, want a", device)
		}
	})
}

// asked is a spec in the model with which FuzzTurns compares the turns.
type asked struct {
	turn   *Turn
	stop   context.CancelFunc
	done   chan struct{}
	device string // the granted device in the model
	state  string // waiting, holding a device, or done
}

// For any order of requests, cancellations and releases, turns are granted as
// by a queue of specs that wait for devices.
func FuzzTurns(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0x10, 0x20, 0x01})
	f.Add([]byte{1, 0, 0, 0x11, 0x12, 0, 0, 0x10})
	f.Fuzz(func(t *testing.T, ops []byte) {
		synctest.Test(t, func(t *testing.T) {
			ring := newTurns()
			devices := []string{"a", "b", "c"}
			ring.open(devices)
			free := slices.Clone(devices)
			var all []*asked
			serve := func() {
				for _, a := range all {
					if a.state == "waits" && len(free) > 0 {
						a.state, a.device, free = "holds", free[0], free[1:]
					}
				}
			}
			for _, op := range ops[:min(len(ops), 60)] {
				switch n := int(op >> 4); {
				case op&3 == 0 || n >= len(all): // another spec
					ctx, stop := context.WithCancel(t.Context())
					a := &asked{stop: stop, done: make(chan struct{}), state: "waits"}
					all = append(all, a)
					go func() {
						defer close(a.done)
						a.turn, _ = ring.take(ctx, "spec", func(string) {})
					}()
				case op&3 == 1 && all[n].state == "waits":
					all[n].stop()
					all[n].state = "over"
				case all[n].state == "holds":
					all[n].turn.Release()
					free = append(free, all[n].device)
					all[n].state = "over"
				}
				serve()
				synctest.Wait()
				for i, a := range all {
					select {
					case <-a.done:
						if a.state == "waits" || a.state == "holds" && (a.turn == nil || a.turn.Device != a.device) {
							t.Fatalf("spec %d %s %q: %+v", i, a.state, a.device, a.turn)
						}
					default:
						if a.state != "waits" {
							t.Fatalf("spec %d still waits, want: %s %q", i, a.state, a.device)
						}
					}
				}
			}
			for _, a := range all {
				a.stop()
			}
		})
	})
}
