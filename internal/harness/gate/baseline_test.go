package gate

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/reporters/comparison"
)

// filled returns a baseline of some runs with many leaks.
func filled(t testing.TB, n, leaks int) *Baseline {
	t.Helper()
	b := &Baseline{}
	for i := range n {
		var places []Place
		for k := range leaks {
			places = append(places, leak(fmt.Sprintf("%040d", k), fmt.Sprint("com.shop.Screen", k), 100*kB, 1, 2, 3, 4))
		}
		o := observed(i, places...)
		var names []string
		for k := range 3000 {
			names = append(names, fmt.Sprint("com.shop.Class", k))
		}
		o.Processes[0].Loaded = NewClassSet(names)
		b.Add(o, Window)
	}
	return b
}

func encoded(t testing.TB, b *Baseline) []byte {
	t.Helper()
	raw, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A baseline that is written and read back leads to the same verdicts, and
// writing it again produces the same bytes.
func TestBaselineRoundTrip(t *testing.T) {
	b := filled(t, 4, 3)
	b.Add(func() Observation { o := observed(7, leak("new", "N", kB, 1, 2, 3)); o.Failed = true; return o }(), Window)
	b.Pin("4.1")
	raw := encoded(t, b)
	again, err := ReadBaseline(raw)
	if err != nil {
		t.Fatal(err)
	}
	if second := encoded(t, again); !bytes.Equal(raw, second) {
		t.Errorf("%s\n%s", raw, second)
	}
	head := observed(20, leak(fmt.Sprintf("%040d", 1), "com.shop.Screen1", 100*kB, 2, 4, 6, 8),
		leak("new", "N", kB, 1, 2, 3, 4), leak("newer", "N2", kB, 1, 2, 3, 4))
	want, got := judge(b.Runs, head), judge(again.Runs, head)
	if !reflect.DeepEqual(want, got) {
		t.Errorf("%+v\n%+v", got, want)
	}
	if len(again.Pinned) != 4 || again.PinnedName != "4.1" {
		t.Errorf("%d pinned as %q", len(again.Pinned), again.PinnedName)
	}
	// A moved leak is found by its entry in the table of places.
	moved := observed(20, leak("elsewhere", "com.shop.Screen1", 100*kB, 1, 2, 3, 4))
	if row := rowOf(t, judge(again.Runs, moved), "elsewhere"); row.Status != comparison.Moved {
		t.Errorf("%+v", row)
	}
}

// Ten runs of 60 leaks and 3,000 classes take at most 200 kB, because the file
// may be stored in git.
func TestBaselineSize(t *testing.T) {
	if n := len(encoded(t, filled(t, 30, 60))); n > 200_000 {
		t.Errorf("%d bytes", n)
	}
}

func TestBaselineWindow(t *testing.T) {
	b := filled(t, 25, 1)
	if len(b.Runs) != Window || b.Runs[0].Commit != observed(24).Commit || b.Runs[9].Commit != observed(15).Commit {
		t.Errorf("%d runs, %s to %s", len(b.Runs), b.Runs[0].Commit, b.Runs[len(b.Runs)-1].Commit)
	}
	old := observed(3)
	old.Failed = true
	b.Add(old, Window)
	if len(b.Runs) != Window {
		t.Error("failed run older than the window is kept")
	}
	for i := range 2 * Window {
		o := observed(30 + i)
		o.Failed = true
		b.Add(o, Window)
	}
	good := 0
	for _, o := range b.Runs {
		if !o.Failed {
			good++
		}
	}
	if good != Window || len(b.Runs) != 2*Window {
		t.Errorf("%d good of %d", good, len(b.Runs))
	}
	// Each device has its own window. A run that is added twice counts once.
	o := observed(60)
	o.Subject.API = 21
	b.Add(o, Window)
	b.Add(o, Window)
	if len(b.Runs) != 2*Window+1 {
		t.Errorf("%d runs", len(b.Runs))
	}
	// The time at which a leak was first seen is kept even after its run has
	// left the window.
	if s := b.FirstSeen("com.shop")[SeenKey{"com.shop", TypeLeak, fmt.Sprintf("%040d", 0)}]; s.Commit != observed(0).
		Commit {
		t.Errorf("%+v", s)
	}
}

// If two jobs each add a run, neither run is lost, whatever their order.
func TestMerge(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		a, b := &Baseline{}, &Baseline{}
		all := &Baseline{}
		for i := range random.IntN(12) {
			o := observed(i, leak(fmt.Sprint("k", random.IntN(3)), "A", kB, 1, 2))
			if random.IntN(4) == 0 {
				o.Failed = true
			}
			if random.IntN(2) == 0 {
				a.Add(o, Window)
			} else {
				b.Add(o, Window)
			}
			if random.IntN(5) == 0 {
				a.Add(o, Window)
				b.Add(o, Window)
			}
			all.Add(o, Window)
		}
		ab, ba := &Baseline{}, &Baseline{}
		ab.Merge(a, Window)
		ab.Merge(b, Window)
		ba.Merge(b, Window)
		ba.Merge(a, Window)
		want := encoded(t, all)
		if x, y := encoded(t, ab), encoded(t, ba); !bytes.Equal(x, want) || !bytes.Equal(y, want) {
			t.Fatalf("%s\n%s\n%s", x, y, want)
		}
	}
}

func TestReadDamagedBaseline(t *testing.T) {
	good := string(encoded(t, filled(t, 2, 2)))
	for name, c := range map[string][2]string{
		"empty":          {"", "read baseline"},
		"truncated":      {good[:len(good)/2], "read baseline"},
		"another schema": {strings.Replace(good, BaselineSchema, "leakgate.gate/1", 1), "its schema is"},
		"a missing count": {
			strings.Replace(good, `"counts":[1,`, `"counts":[`, 1), "3 counts and 4 sizes for 4 dumps",
		},
		"a negative count": {strings.Replace(good, `"counts":[1,`, `"counts":[-1,`, 1), "invalid numbers"},
		"out of order":     {strings.Replace(good, `"exposure":[1,`, `"exposure":[9,`, 1), "out of order"},
		"another unit":     {strings.Replace(good, `"unit":"loop"`, `"unit":"hour"`, 1), "its unit is"},
		"a kind":           {strings.Replace(good, `"type":"leak"`, `"type":"trend"`, 1), "string or list"},
		"a long name": {
			strings.Replace(good, `"class":"com`, `"class":"`+strings.Repeat("x", 2*maxName), 1), "too long",
		},
		"another JSON": {"<html>", "read baseline"},
	} {
		if _, err := ReadBaseline([]byte(c[0])); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Any baseline that can be read is written and read again unchanged, and any
// run can be judged with it: every number in the result is finite, and a run
// that is in the base is not worse than the base.
func FuzzReadBaseline(f *testing.F) {
	f.Add(encoded(f, filled(f, 2, 2)))
	small := &Baseline{}
	small.Add(trending(observed(1, leak("k", "A", kB, 1, 2, 3)), "leak", 4), Window)
	small.Pin("x")
	f.Add(encoded(f, small))
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := ReadBaseline(raw)
		if err != nil {
			return
		}
		if first, err := b.Encode(); err == nil {
			again, err := ReadBaseline(first)
			if err != nil {
				t.Fatalf("%v: %s", err, first)
			}
			if second := encoded(t, again); !bytes.Equal(first, second) {
				t.Errorf("%s\n%s", first, second)
			}
		}
		if len(b.Runs) == 0 {
			return
		}
		head := b.Runs[0]
		head.Started = head.Started.AddDate(1, 0, 0)
		c := judge(b.Runs, head)
		for _, r := range c.Leaks {
			if r.Status == comparison.New || r.Status == comparison.Grown || r.Status == comparison.Wider ||
				r.Status == comparison.Heavier {
				t.Errorf("equal to one of its base runs, but worse: %+v", r)
			}
		}
	})
}
