package footprint

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leakgate/leakgate/internal/known"
)

// threadReading assigns consecutive IDs to names, beginning with the given ID.
func threadReading(from int64, names ...string) (r ThreadReading) {
	for i, n := range names {
		r.Threads = append(r.Threads, Thread{from + int64(i), n})
	}
	return r
}

// commOf truncates a name as the kernel does.
func commOf(name string) string { return name[:min(len(name), commLen)] }

// tailOf truncates a name as Android's runtime does.
func tailOf(name string) string {
	if strings.Contains(name, ".") && !strings.Contains(name, "@") {
		return name[max(len(name)-commLen, 0):]
	}
	return commOf(name)
}

func nameSeries(format string, from, to int) (names []string) {
	for i := from; i <= to; i++ {
		names = append(names, tailOf(fmt.Sprintf(format, i)))
	}
	return names
}

// patternsOf formats each group as "pattern number", largest first.
func patternsOf(names ...string) string {
	var list []string
	for _, g := range CompareThreads(ThreadReading{}, threadReading(1, names...)).Groups {
		list = append(list, fmt.Sprintf("%s %d", g.Pattern, g.After))
	}
	return strings.Join(list, ", ")
}

func TestPatterns(t *testing.T) {
	tests := []struct {
		what, want string
		names      []string
	}{
		{"pool", "pool-3-thread-* 9", nameSeries("pool-3-thread-%d", 1, 9)},
		{"pool of one thread", "pool-3-thread-1 1", []string{"pool-3-thread-1"}},
		{"large pool with truncated names", "pool-3-thread-* 148", nameSeries("pool-3-thread-%d", 1, 148)},
		{
			"repeated name with a truncated number", "pool-3-thread-* 2",
			[]string{"pool-3-thread-1", "pool-3-thread-1"},
		},
		{"pool with truncated numbers", "pool-12-thread-* 50", nameSeries("pool-12-thread-%d", 1, 50)},
		{"many pools of one thread", "pool-*-thread-* 120", nameSeries("pool-%d-thread-1", 1, 120)},
		{"pools with short names", "p-*-t-1 120", nameSeries("p-%d-t-1", 1, 120)},
		{"truncated name", "glide-source-th* 5", nameSeries("glide-source-thread-%d", 0, 4)},
		{"name of the maximum length", "FinalizerDaemon 1", []string{"FinalizerDaemon"}},
		{"names without numbers", "HeapTaskDaemon 1, Jit 1", []string{"Jit", "HeapTaskDaemon"}},
		{"binder", "Binder:4711_* 4", nameSeries("Binder:4711_%d", 1, 4)},
		{"binder threads with hexadecimal numbers", "HwBinder:3045_* 31", nameSeries("HwBinder:3045_%X", 1, 31)},
		{"binder threads with a long PID", "Binder:123456_* 2", nameSeries("Binder:123456_%X", 0xe, 0xf)},
		{"start truncated by Android", "com.shop.work-* 250", nameSeries("com.shop.work-%d", 1, 250)},
		{"start truncated within a number", "*.some.work-* 2", []string{"234.some.work-7", "234.some.work-7"}},
		{
			"threads of HotSpot 17 and 25",
			"pool-*-thread-* 3, GC Thread#* 2, DefaultDispatch 1, OkHttp Connecti 1, com.example.wor 1",
			[]string{
				"GC Thread#0", "GC Thread#1", "pool-3-thread-1", "pool-3-thread-1", "pool-12-thread-",
				"com.example.wor", "DefaultDispatch", "OkHttp Connecti",
			}},
		{"hostile", "a?[2J*?b?? 2", []string{"a\x1b[2J1\u202eb\xff\x00", "a\x1b[2J2\u202eb\xff\x00"}},
		{"empty", " 2", []string{"", ""}},
	}
	for _, c := range tests {
		if got := patternsOf(c.names...); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

func TestParts(t *testing.T) {
	before := threadReading(1, slices.Concat(nameSeries("p-1-t-%d", 1, 4), nameSeries("p-3-t-%d", 1, 12))...)
	after := threadReading(1, slices.Concat(nameSeries("p-1-t-%d", 1, 4), nameSeries("p-3-t-%d", 1, 148))...)
	after.Stack = known.Of(152 * 1024)
	g := CompareThreads(before, after)
	want := []ThreadGroup{{
		ThreadPart: ThreadPart{"p-*-t-*", 16, 152, 136, 136, 0},
		Example:    "p-1-t-1",
		Parts:      []ThreadPart{{"p-3-t-*", 12, 148, 136, 136, 0}, {"p-1-t-*", 4, 4, 0, 0, 0}},
	}}
	if !reflect.DeepEqual(g.Groups, want) {
		t.Errorf("%+v", g.Groups)
	}
	lines := []string{"16 -> 152 threads (+136): 136 new, 0 ended",
		"p-*-t-*: 16 -> 152 threads (+136), about 1.0 MB of stack each; of them p-3-t-*: 12 -> 148"}
	if got := g.Lines(5); !slices.Equal(got, lines) {
		t.Errorf("%q", got)
	}
}

func TestThreadLines(t *testing.T) {
	before, after := threadReading(1, "main", "a-1", "b"), threadReading(1, "main", "a-1")
	before.Stack, after.Stack = known.Of(100), known.Of(-1)
	for _, c := range []struct {
		what          string
		before, after ThreadReading
		top           int
		want          []string
	}{
		{"fewer threads", before, after, 5, []string{"3 -> 2 threads (-1): 0 new, 1 ended", "no group grew"}},
		{
			"unread before", ThreadReading{}, after, 5,
			[]string{
				"0 -> 2 threads (+2): 2 new, 0 ended", "a-1: 0 -> 1 thread (+1)", "main: 0 -> 1 thread (+1)",
				"warning: before: no threads recorded",
			},
		},
		{
			"only new threads", threadReading(1, "a"),
			ThreadReading{Threads: threadReading(7, nameSeries("x%dy", 1, 30)...).Threads, Stack: known.Of(3000)}, 0,
			[]string{"1 -> 30 threads (+29): 30 new, 1 ended", "1 more group grew"}},
		{
			"two new threads", threadReading(1, "a"), threadReading(7, "b", "c"), 0,
			[]string{"1 -> 2 threads (+1): 2 new, 1 ended", "2 more groups grew"},
		},
	} {
		g := CompareThreads(c.before, c.after)
		if got := g.Lines(c.top); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", c.what, got)
		}
	}
	var many ThreadReading
	for i := range 40 {
		many.Threads = append(many.Threads, Thread{int64(i), strings.Repeat("x", i)})
	}
	many.Stack = known.Of(10)
	g := CompareThreads(ThreadReading{Stack: known.Of(1)}, many)
	if lines := g.Lines(100); len(lines) != maxLines {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
}

// A renamed thread is neither new nor ended.
func TestRenamed(t *testing.T) {
	g := CompareThreads(threadReading(1, "a", "b", "c"),
		ThreadReading{Threads: []Thread{{1, "a"}, {2, "x"}, {4, "x"}, {4, "again"}}})
	parts := map[string]ThreadPart{}
	for _, group := range g.Groups {
		parts[group.Pattern] = group.ThreadPart
	}
	want := map[string]ThreadPart{
		"a": {"a", 1, 1, 0, 0, 0}, "b": {"b", 1, 0, -1, 0, 0}, "c": {"c", 1, 0, -1, 0, 1}, "x": {"x", 0, 2, 2, 1, 0},
	}
	if !reflect.DeepEqual(parts, want) || g.New != 1 || g.Ended != 1 || g.Before != 3 || g.After != 3 {
		t.Errorf("%+v", g)
	}
}

var numberRuns = regexp.MustCompile(`[0-9]+`)

func skeletonOf(comm string) string { return numberRuns.ReplaceAllString(comm, "#") }

func naiveRoot(comm string, all []string) (root string, front bool) {
	own := skeletonOf(comm)
	if len(comm) != 15 {
		return own, false
	}
	for _, front := range []bool{false, true} {
		best := ""
		for _, other := range all {
			s := skeletonOf(other)
			fits := strings.HasPrefix(s, own)
			if front {
				fits = strings.HasSuffix(s, own) && strings.Contains(comm, ".") && !strings.Contains(comm, "@")
			}
			better := len(s) > len(best) || len(s) == len(best) &&
				(!front && s < best || front && reversed(s) < reversed(best))
			if fits && s != own && better {
				best = s
			}
		}
		if best != "" {
			return best, front
		}
	}
	return own, false
}

// naivePatterns computes the groups by their definition, thread by thread:
// names that differ only in numbers belong together, and a truncated name
// belongs to the longest name of which it may be a part. A number becomes an
// asterisk if it differs, or may differ, between two threads.
func naivePatterns(all []string) map[string]int {
	type aligned struct {
		comm   string
		values []string
	}
	families := map[string][]aligned{}
	for _, comm := range all {
		root, front := naiveRoot(comm, all)
		values := numberRuns.FindAllString(comm, -1)
		dotted := len(comm) == 15 && strings.Contains(comm, ".") && !strings.Contains(comm, "@")
		for i := range values {
			last := i == len(values)-1 && len(comm) == 15 && strings.HasSuffix(comm, values[i])
			first := i == 0 && dotted && strings.HasPrefix(comm, values[i])
			if last || first {
				values[i] += "?"
			}
		}
		for len(values) < strings.Count(root, "#") {
			if front {
				values = append([]string{"?"}, values...)
			} else {
				values = append(values, "?")
			}
		}
		families[root] = append(families[root], aligned{comm, values})
	}
	out := map[string]int{}
	for root, list := range families {
		text, rest := "", root
		for i := range strings.Count(root, "#") {
			value := strings.TrimSuffix(list[0].values[i], "?")
			for _, a := range list {
				if len(list) > 1 && (a.values[i] != list[0].values[i] || strings.HasSuffix(a.values[i], "?")) {
					value = "*"
				}
			}
			if value == "" {
				value = "*"
			}
			before, after, _ := strings.Cut(rest, "#")
			text, rest = text+before+value, after
		}
		text += rest
		cut := len(list) > 1
		for _, a := range list {
			cut = cut && len(a.comm) == 15 && (!strings.Contains(a.comm, ".") || strings.Contains(a.comm, "@"))
		}
		if cut && !strings.HasSuffix(text, "*") {
			text += "*"
		}
		out[text] += len(list)
	}
	return out
}

var nameForms = []string{
	"pool-%d-thread-%d", "p%d-%d", "x", "com.shop.w%d-%d", "io%d.netty.worker-%d", "OkHttp", "glide-source-thread-%d",
	"a%d@b.c-%d-xxxxxxxx", "pool-%d-threader", "%d.%d", "8%d00.shop.wo-%d",
}

func randomThreadNames(rng *rand.Rand) (names []string) {
	for range rng.IntN(30) {
		form := nameForms[rng.IntN(len(nameForms))]
		name := form
		for strings.Contains(name, "%d") {
			name = strings.Replace(name, "%d", fmt.Sprint(rng.IntN([]int{2, 20, 3000}[rng.IntN(3)])), 1)
		}
		if rng.IntN(2) == 0 {
			name = commOf(name)
		}
		names = append(names, tailOf(name))
	}
	return names
}

func TestAgainstBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for round := range 1000 {
		var all []string
		var after ThreadReading
		for i, n := range randomThreadNames(rng) {
			all = append(all, n)
			after.Threads = append(after.Threads, Thread{int64(i), n})
		}
		got := map[string]int{}
		for _, g := range CompareThreads(ThreadReading{}, after).Groups {
			got[g.Pattern] += g.After
		}
		if want := naivePatterns(all); !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d: %q\n%v, want\n%v", round, all, got, want)
		}
	}
}

// Each thread is in exactly one group, for any names in any order.
func TestThreadSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 1000 {
		before, after := threadReading(rng.Int64N(9), randomThreadNames(rng)...),
			threadReading(rng.Int64N(9), randomThreadNames(rng)...)
		g := CompareThreads(before, after)
		checkThreads(t, g, len(before.Threads), len(after.Threads))
		rng.Shuffle(len(after.Threads), reflect.Swapper(after.Threads))
		if other := CompareThreads(before, after); !reflect.DeepEqual(g, other) {
			t.Fatalf("after shuffling: got %+v, want %+v", other, g)
		}
		if back := CompareThreads(after, before); back.New != g.Ended || back.Ended != g.New {
			t.Fatalf("reversed comparison: got %+v; original: %+v", back, g)
		}
	}
}

func checkThreads(t *testing.T, g ThreadGrowth, before, after int) {
	t.Helper()
	var sum ThreadPart
	for i, group := range g.Groups {
		sum.Before += group.Before
		sum.After += group.After
		sum.Delta += group.Delta
		sum.New += group.New
		sum.Ended += group.Ended
		if i > 0 && group.Delta > g.Groups[i-1].Delta || group.Delta != group.After-group.Before {
			t.Errorf("group %d of %+v", i, g.Groups)
		}
	}
	want := ThreadPart{"", before, after, after - before, g.New, g.Ended}
	if sum != want || g.Before != before || g.After != after || g.New-g.Ended != after-before {
		t.Errorf("%+v, want %+v; %+v", sum, want, g)
	}
}

// Comparing the maximum number of names takes at most 20 s, even if they may
// all be parts of each other.
func TestHostileThreadNames(t *testing.T) {
	var r ThreadReading
	for i := range maxThreads + 10 {
		text := fmt.Sprintf("%d", i)
		name := strings.Repeat("a", 9-i%5) + "." + text
		if len(name) < commLen && i%2 == 0 {
			name += strings.Repeat("b", commLen-len(name))
		}
		r.Threads = append(r.Threads, Thread{int64(i), name + strings.Repeat("c1", i%7)})
	}
	start := time.Now()
	g := CompareThreads(ThreadReading{}, r)
	checkThreads(t, g, 0, maxThreads)
	if len(g.Warnings) != 2 {
		t.Errorf("warnings %v", g.Warnings)
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("the comparison took %v", d)
	}
}

func FuzzCompareThreads(f *testing.F) {
	f.Add("pool-3-thread-1\npool-12-thread-\npool-100-thread", "main")
	f.Add("om.shop.work-10\ncom.shop.work-9\n1234567890.1234", "\x1b[2J1\n\xff\xff2")
	f.Fuzz(func(t *testing.T, one, two string) {
		before, after := threadReading(1, strings.Split(one, "\n")...), threadReading(3, strings.Split(two, "\n")...)
		g := CompareThreads(before, after)
		checkThreads(t, g, len(before.Threads), len(after.Threads))
		texts := g.Lines(9)
		for _, group := range g.Groups {
			texts = append(texts, group.Pattern, group.Example)
			for _, p := range group.Parts {
				texts = append(texts, p.Pattern)
			}
		}
		if len(g.Lines(100)) > maxLines {
			t.Errorf("%d lines", len(g.Lines(100)))
		}
		for _, text := range texts {
			if len(text) > 4*maxThreadName || !utf8.ValidString(text) ||
				strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q and %q are shown as %q, want at most %d bytes of printable text", one, two, text,
					4*maxThreadName)
			}
		}
	})
}

// BenchmarkCompareThreads compares an app before and after a leak of threads.
func BenchmarkCompareThreads(b *testing.B) {
	before := threadReading(1,
		slices.Concat(nameSeries("Binder:4711_%d", 1, 8), nameSeries("pool-%d-thread-1", 1, 20),
			nameSeries("pool-3-thread-%d", 1, 12))...)
	after := threadReading(1,
		slices.Concat(nameSeries("Binder:4711_%d", 1, 8), nameSeries("pool-%d-thread-1", 1, 20),
			nameSeries("pool-3-thread-%d", 1, 1500))...)
	b.ReportAllocs()
	for b.Loop() {
		CompareThreads(before, after)
	}
}
