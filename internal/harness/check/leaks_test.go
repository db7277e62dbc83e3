package check

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/reporters/record"
)

// This compares New with an oracle that counts objects one by one: for each
// leak, it counts the objects in excess of the number in the previous dump.
func TestNewAgainstOracle(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var s Seen
		var before []string // one key for each object
		for dump := range 6 {
			var objects []string
			var leaks []record.DumpLeak
			for _, n := range r.Perm(5) {
				count := r.IntN(4)
				if count == 0 {
					continue
				}
				l := record.DumpLeak{Key: fmt.Sprint("key ", n), Count: int64(count), Library: n == 4}
				leaks = append(leaks, l)
				if !l.Library {
					objects = append(objects, slices.Repeat([]string{l.Key}, count)...)
				}
			}
			if s.Dumped() != (dump > 0) {
				t.Fatalf("seed %d, before dump %d: got Dumped %v, want %v", seed, dump, s.Dumped(), dump > 0)
			}
			var want []string
			left := slices.Clone(before)
			for _, o := range objects {
				if i := slices.Index(left, o); i >= 0 {
					left = slices.Delete(left, i, i+1)
				} else {
					want = append(want, o)
				}
			}
			var got []string
			for _, l := range s.New(leaks) {
				got = append(got, slices.Repeat([]string{l.Key}, int(l.New))...)
			}
			if slices.Sort(got); !slices.Equal(got, sorted(want)) {
				t.Fatalf("seed %d, dump %d: %q, want %q", seed, dump, got, want)
			}
			before = objects
		}
	}
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

// The verdict is leak if any of the leaks has no exception.
func TestJudge(t *testing.T) {
	leak := func(class string) record.CheckedLeak {
		return record.CheckedLeak{
			DumpLeak: record.DumpLeak{
				Key: class, Name: class, Count: 3, Bytes: 2 << 20,
				Classes: []record.ClassCount{{Class: "com.shop." + class}},
			}, New: 1,
		}
	}
	known := Exception{Class: "Known", Reason: "SHOP-1", Owner: "anna"}
	long := slices.Repeat([]string{"│ line"}, 100)
	for name, c := range map[string]struct {
		leaks []record.CheckedLeak
		want  record.CheckVerdict
	}{
		"none":  {nil, record.VerdictPass},
		"known": {[]record.CheckedLeak{leak("Known"), leak("Known")}, record.VerdictKnown},
		"both":  {[]record.CheckedLeak{leak("Known"), leak("Other")}, record.VerdictLeak},
		"other": {[]record.CheckedLeak{leak("Other"), leak("Known")}, record.VerdictLeak},
	} {
		if got := Judge(c.leaks, []Exception{known}, func(string) []string { return long }); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		for _, l := range c.leaks {
			if (l.Known != "") != (l.Key == "Known") || len(l.Trace) != maxTraceLines {
				t.Errorf("%s: %+v", name, l)
			}
		}
	}
	if got, want := Describe(slices.Repeat([]record.CheckedLeak{leak("Other")}, 5)),
		"1 x Other (3 in all, 2.0 MB retained); 1 x Other (3 in all, 2.0 MB retained); 1 x Other (3 in all, 2.0 MB "+
			"retained); 2 more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Worse is a maximum: the order of verdicts does not matter.
func TestWorse(t *testing.T) {
	order := []record.CheckVerdict{
		record.VerdictPass, record.VerdictKnown, record.VerdictNotChecked, record.VerdictInconclusive,
		record.VerdictLeak,
	}
	for i, a := range order {
		for k, b := range order {
			if got := Worse(a, b); got != order[max(i, k)] {
				t.Errorf("Worse(%s, %s) is %s", a, b, got)
			}
		}
	}
}

func TestCounts(t *testing.T) {
	one := map[string]int64{"Activities": 1, "Views": 40, "ViewRootImpl": 1, "Assets": 3}
	for name, c := range map[string]struct {
		before, after map[string]int64
		rose          string
		crowded       bool
		hidden        int64
	}{
		"same counts":    {one, one, "", false, 0},
		"unknown before": {nil, one, "", false, 0},
		"unknown after":  {one, nil, "", false, 0},
		"growth of other counts": {
			one, map[string]int64{"Assets": 9, "Activities": 1, "ViewRootImpl": 1}, "", false, 0,
		},
		"one more Activity": {
			one, map[string]int64{"Activities": 2, "Views": 75, "ViewRootImpl": 1}, "Activities 1 -> 2, Views 40 -> 75",
			true, 1,
		},
		"one more window": {
			one, map[string]int64{"Activities": 1, "ViewRootImpl": 2}, "ViewRootImpl 1 -> 2", true, -1,
		},
		"Activity without a window": {
			map[string]int64{}, map[string]int64{"Activities": 1, "ViewRootImpl": 0}, "", true, 1,
		},
	} {
		if got := Text(Rose(c.before, c.after)); got != c.rose || MayHoldDestroyed(c.after) != c.crowded ||
			Windowless(c.after) != c.hidden {
			t.Errorf("%s: %q, crowded %v, %d hidden", name, got, MayHoldDestroyed(c.after), Windowless(c.after))
		}
	}
	if kept := Keep(one); len(kept) != 3 || kept["Assets"] != 0 || Keep(nil) != nil {
		t.Errorf("%v", kept)
	}
}

// For any counts, growth is reported only for a watched count that is known in
// both readings and has increased.
func FuzzRose(f *testing.F) {
	f.Add(int64(1), int64(2), int64(3), int64(0), uint8(0xff))
	f.Fuzz(func(t *testing.T, a, b, c, d int64, known uint8) {
		before, after := map[string]int64{}, map[string]int64{}
		for i, n := range []int64{a, b, c, d} {
			if known>>i&1 == 1 {
				before[Watched[i]] = n
			}
			if known>>(i+4)&1 == 1 {
				after[Watched[i]] = n ^ a
			}
		}
		rises := Rose(before, after)
		for _, name := range Watched {
			x, inBefore := before[name]
			y, inAfter := after[name]
			found := slices.Contains(rises, Rise{name, x, y})
			if want := inBefore && inAfter && y > x; found != want {
				t.Errorf("%s: %d -> %d is a rise: %v", name, x, y, found)
			}
		}
		if n := strings.Count(Text(rises), " -> "); n != len(rises) {
			t.Errorf("%q", Text(rises))
		}
	})
}

// Objects that were held by a different path before are not new. A leak is
// reported only if more objects of its class leak than before; in this case,
// each key that has more objects is reported.
func TestMovedLeaksAreNotNew(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		var s Seen
		before, keys := map[string]int64{}, map[string]int64{}
		for dump := range 5 {
			now := map[string]int64{}
			var leaks []record.DumpLeak
			for n := range 6 {
				if count := int64(r.IntN(3)); count > 0 {
					class := fmt.Sprint("class ", n%2)
					leaks = append(leaks,
						record.DumpLeak{
							Key: fmt.Sprint("key ", n), Count: count,
							Classes: []record.ClassCount{{Class: class, Count: count}},
						})
					now[class] += count
				}
			}
			got := map[string]int64{}
			for _, l := range s.New(leaks) {
				got[l.Key] = l.New
			}
			for _, l := range leaks {
				class := l.Classes[0].Class
				want := max(0, min(l.Count-keys[l.Key], now[class]-before[class]))
				if got[l.Key] != want {
					t.Fatalf("seed %d, dump %d: got %[4]d new objects of %[3]s, want %[5]d", seed, dump, l.Key,
						got[l.Key], want)
				}
			}
			before, keys = now, map[string]int64{}
			for _, l := range leaks {
				keys[l.Key] = l.Count
			}
		}
	}
}
