package heap_test

//unit:sleep polls for the end of goroutines; its deadline is a hang

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// watched is a dump that counts the bytes read from it and can make reads fail.
type watched struct {
	*bytes.Reader
	read atomic.Int64
	// after is called before each read, with the number of bytes read so far.
	after func(read int64) error
}

func (w *watched) ReadAt(b []byte, at int64) (int, error) {
	if w.after != nil {
		if err := w.after(w.read.Load()); err != nil {
			return 0, err
		}
	}
	n, err := w.Reader.ReadAt(b, at)
	w.read.Add(int64(n))
	return n, err
}

// watch opens a dump; the reads that opening needs are not counted.
func watch(tb testing.TB, dump []byte) (*hprof.File, *watched) {
	tb.Helper()
	w := &watched{Reader: bytes.NewReader(dump)}
	f, err := hprof.Open(context.Background(), w, int64(len(dump)))
	if err != nil {
		tb.Fatal(err)
	}
	w.read.Store(0)
	return f, w
}

// chain returns the dump of a linked list.
func chain(tb testing.TB, objects int) []byte {
	s := shape{n: objects, refs: func(refs []int, i int) []int { return append(refs, min(i+1, objects-1)) }}
	return s.dump(tb)
}

// TestLimitObjects checks that Load refuses a dump with too many objects after
// reading only a part of it.
func TestLimitObjects(t *testing.T) {
	dump := chain(t, 200_000)
	for name, workers := range map[string]int{"one": 1, "two": 2} {
		t.Run(name, func(t *testing.T) {
			f, w := watch(t, dump)
			var phases []string
			_, err := heap.Load(t.Context(), f,
				heap.Options{
					Limit: 400_000, Workers: workers, Phase: func(name string) { phases = append(phases, name) },
				})
			checkRefused(t, err, 400_000)
			if len(phases) != 1 || w.read.Load() > int64(len(dump))*3/4 {
				t.Errorf("the dump was refused in phases %v, after %d of %d bytes were read", phases, w.read.Load(),
					len(dump))
			}
		})
	}
}

// checkRefused checks that a load failed with a MemoryError whose Limit is the
// given limit and whose Need exceeds it.
func checkRefused(t *testing.T, err error, limit int64) {
	t.Helper()
	var refused *heap.MemoryError
	if !errors.As(err, &refused) || refused.Limit != limit || refused.Need <= limit ||
		!strings.Contains(err.Error(), "memory") {
		t.Fatalf("%v (%+v)", err, refused)
	}
}

// TestLimitReferences checks that Load refuses a dump with few objects and many
// references before it reads the references, and that the dump loads with the
// memory that the error named.
func TestLimitReferences(t *testing.T) {
	const objects, references, limit = 1000, 1_500_000, 4 << 20
	w := newScribe(4)
	w.class(0x100, "C", 8, 0)
	w.class(0x200, "C[]", 0, 0)
	all := make([]hprof.ID, references)
	for i := range all {
		all[i] = hprof.ID(0x1000 + 8*(i*7%objects))
	}
	for i := range objects {
		w.instance(hprof.ID(0x1000+8*i), 0x100)
	}
	w.ObjectArray(0x800, 0, 0x200, all)
	w.Root(hprof.Root{Kind: hprof.SubRootUnknown, Object: 0x800})
	f, r := watch(t, w.dump(t))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var phases []string
	_, err := heap.Load(t.Context(), f,
		heap.Options{Limit: limit, Phase: func(name string) { phases = append(phases, name) }})
	checkRefused(t, err, limit)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > limit || r.read.Load() > f.Size+f.Size/10 ||
		phases[len(phases)-1] != "read references" {
		t.Errorf("the dump was refused in phases %v, after %d of %d bytes were read and %d allocated", phases,
			r.read.Load(), f.Size, got)
	}
	var refused *heap.MemoryError
	errors.As(err, &refused)
	// Inbound references need additional memory, which counts towards the
	// limit.
	_, err = heap.Load(t.Context(), f, heap.Options{Limit: refused.Need, Inbound: true})
	checkRefused(t, err, refused.Need)
	g, err := heap.Load(t.Context(), f, heap.Options{Limit: refused.Need})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if o, _ := g.Find(0x800); g.Retained(o).Java != 4*references+8*objects || g.ReferenceCount != references {
		t.Errorf("got %v retained and %d references", g.Retained(o), g.ReferenceCount)
	}
}

// phasesOf returns the phases of a load.
func phasesOf(t *testing.T, dump []byte) (names []string) {
	load(t, dump, heap.Options{Phase: func(name string) { names = append(names, name) }})
	return names
}

// checkNoGoroutines fails the test if goroutines that it started do not end.
func checkNoGoroutines(t *testing.T, before int) {
	t.Helper()
	for range 200 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// TestCancel cancels a load in each of its phases.
func TestCancel(t *testing.T) {
	_, w := randomWorld(4, 3000)
	dump := w.write(t, form{}).dump
	phases := phasesOf(t, dump)
	if len(phases) < 5 {
		t.Fatalf("phases %v", phases)
	}
	goroutines := runtime.NumGoroutine()
	for i, name := range phases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			f, _ := watch(t, dump)
			met := 0
			g, err := heap.Load(ctx, f, heap.Options{Workers: 3, Phase: func(string) {
				if met++; met == i+1 {
					cancel()
				}
			}})
			if g != nil || !errors.Is(err, context.Canceled) || met != i+1 {
				t.Errorf("got error %v after %d phases", err, met)
			}
		})
	}
	checkNoGoroutines(t, goroutines)
}

// TestCancelReading cancels a load in the middle of each pass. One of the heaps
// consists of a single segment.
func TestCancelReading(t *testing.T) {
	const objects = 300_000
	one := newScribe(4)
	one.Segment(hproftest.Segmentation{Single: true})
	one.class(0x100, "C", 8, 1)
	one.Root(hprof.Root{Kind: hprof.SubRootUnknown, Object: 0x1000})
	for i := range objects {
		one.instance(hprof.ID(0x1000+8*i), 0x100, hprof.ID(0x1008+8*i))
	}
	goroutines := runtime.NumGoroutine()
	for name, dump := range map[string][]byte{"segments": chain(t, objects), "one segment": one.dump(t)} {
		for _, part := range []int64{1, 5} {
			t.Run(fmt.Sprint(name, " ", part), func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				f, w := watch(t, dump)
				from := f.Size * part / 4
				w.after = func(read int64) error {
					if read >= from {
						cancel()
					}
					return nil
				}
				_, err := heap.Load(ctx, f, heap.Options{Workers: 2})
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%v", err)
				}
				if got := w.read.Load(); got > from+f.Size/2 {
					t.Errorf("%d bytes were read, but loading was canceled after %d bytes", got, from)
				}
			})
		}
	}
	checkNoGoroutines(t, goroutines)
}

// TestReadErrors checks that a load returns the reader's error, in all passes,
// with and without Partial: a failing read is not damage, even if a later read
// succeeds.
func TestReadErrors(t *testing.T) {
	twice := bytes.Clone(chain(t, 50_000))
	// The last object has the ID of the first one, which requires another pass.
	last := bytes.LastIndexByte(twice[:len(twice)-9], byte(hprof.SubInstance))
	copy(twice[last+1:], []byte{0, 1, 0, 0})
	goroutines := runtime.NumGoroutine()
	for name, dump := range map[string][]byte{"once": chain(t, 50_000), "twice": twice} {
		for _, partial := range []bool{false, true} {
			for _, part := range []int64{0, 2, 5, 6} {
				f, w := watch(t, dump)
				var failed atomic.Bool
				w.after = func(read int64) error {
					if read >= f.Size*part/4 && !failed.Swap(true) {
						return io.ErrNoProgress
					}
					return nil
				}
				if _, err := heap.Load(t.Context(), f, heap.Options{Partial: partial}); !errors.Is(err,
					io.ErrNoProgress) {
					t.Errorf("objects %s, partial %t, after %d/4: %v", name, partial, part, err)
				}
			}
		}
	}
	checkNoGoroutines(t, goroutines)
}

// TestClose checks that Close releases all memory and may be called twice.
func TestClose(t *testing.T) {
	f, _ := watch(t, chain(t, 300_000))
	g, err := heap.Load(t.Context(), f, heap.Options{Snapshot: -1})
	if err != nil {
		t.Fatal(err)
	}
	held := heap.Held(g)
	// An object has a number, a class, a size and a position in the tree.
	if least, most := 10*g.Objects, 40*g.Objects; held < least || held > most {
		t.Errorf("%d bytes are held for %d objects", held, g.Objects)
	}
	g.Close()
	g.Close()
	if held := heap.Held(g); held != 0 {
		t.Errorf("%d bytes are held after Close", held)
	}
}

// TestProgress checks that progress reaches the total and never decreases.
func TestProgress(t *testing.T) {
	dump := chain(t, 60_000)
	for _, workers := range []int{1, 4} {
		var most, total atomic.Int64
		load(t, dump, heap.Options{Workers: workers, Progress: func(done, all int64) {
			for {
				last := most.Load()
				if done <= last || most.CompareAndSwap(last, done) {
					break
				}
			}
			total.Store(all)
			if done > all || done <= 0 {
				t.Errorf("%d of %d", done, all)
			}
		}})
		if most.Load() != total.Load() || total.Load() < int64(len(dump)) {
			t.Errorf("%d of %d", most.Load(), total.Load())
		}
	}
}
