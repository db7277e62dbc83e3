package comparison

import (
	"fmt"
	"strings"
	"time"
)

// These are the comparisons for the golden files.

const sha = "8c1d0fe6a1b2c3d4e5f60718293a4b5c6d7e8f90"

func at(day int) time.Time { return time.Date(2026, 11, day, 3, 4, 5, 0, time.UTC) }

func options() MarkdownOptions {
	return MarkdownOptions{
		Key: "shop", RepoURL: "https://github.com/acme/shop", HeadSHA: sha,
		RunURL:   "https://github.com/acme/shop/actions/runs/9482",
		Download: "gh run download 9482 -n leakgate-shop -D leakgate-shop", RunDir: "leakgate-shop",
		Tool: "leakgate 0.3.0",
	}
}

// clean returns the comparison of a run in which nothing is worse.
func clean() *Comparison {
	return &Comparison{
		Schema: Schema, Tool: "leakgate 0.3.0", Verdict: Pass, Judged: true,
		Text:    "nothing is worse than in 10 base runs",
		Reasons: []Reason{}, Warnings: []string{}, Leaks: []Row{},
		Base: Base{
			Runs: 10, Commit: "b71e0041c2d3e4f5061728394a5b6c7d8e9f0a1b", Branch: "main", Time: at(20), Behind: new(2),
			Store: "actions artifact leakgate-base-main",
		},
		Head: Head{
			Run: "2026-11-25-030405", Started: at(25), App: "com.shop", Variant: "debug", Version: "4.2.0", Commit: sha,
			Branch: "wishlist", PullRequest: 7,
			Workload: "checkout", Duration: 720,
			Devices: []DeviceRow{{Device: "emulator-5554", Model: "Pixel 6", API: 34, ABI: "x86_64", Emulator: true}},
		},
		Processes: []ProcessRow{{
			Device: "emulator-5554", Process: "com.shop", Dumps: 3, Settled: true, Loops: 12,
			Reachable:     []int64{16_900_000, 18_700_000, 22_200_000},
			BaseReachable: []int64{17_301_504, 18_559_795}, Gate: "inconclusive",
			Trend: "not judged: 12 min, a trend needs 30", Judged: true,
		}},
	}
}

func sides(base, head float64) Sides { return Sides{Base: &base, Head: &head} }

func wishScreen() Row {
	return Row{
		Device: "emulator-5554", Process: "com.shop", Type: "leak", Class: "com.shop.WishScreen",
		Key: "d97295ca5be1f0a2c3d4e5f60718293a4b5c6d7e", HeldBy: "WishScreen.recent",
		Fingerprints: []string{"0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"}, Unit: "loop",
		Evidence: "4, 8, 12 at 3 marks", Status: New, Fails: true,
		StatusReason: "in none of 10 base runs, and grew at every mark", PerLoop: sides(0, 1),
		BytesEach: Sides{Head: new(99_328.0)}, HeadBytes: 1_191_936,
		Counts: []int64{4, 8, 12}, Bytes: []int64{397_312, 794_624, 1_191_936},
		Trace: []string{
			"┬───", "│ GC Root: System class", "│", "├─ com.shop.WishScreen class",
			"│    Leaking: NO (a class is never leaking)", "│    ↓ static WishScreen.recent",
			"│                        ~~~~~~  ← look here first", "├─ java.util.HashMap instance",
			"│    Leaking: UNKNOWN", "│    ↓ HashMap[instance of java.lang.Integer]",
			"│             ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~",
			"╰→ com.shop.WishScreen instance", "      Leaking: YES (closed, still held)", "      Retaining 97.0 kB",
		},
		Suspects: []Suspect{
			{
				Class: "com.shop.WishScreen", Field: "recent", File: "app/src/main/java/com/shop/WishScreen.java",
				Line: 12, Changed: new(true), Added: new(true),
			},
		},
		Owners: []string{"@acme/wishlist"},
	}
}

func cartScreen() Row {
	return Row{
		Device: "emulator-5554", Process: "com.shop", Type: "leak", Class: "com.shop.CartScreen",
		Key: "1e31bfa2c3d4e5f60718293a4b5c6d7e8f901234", HeldBy: "EventBus.listeners",
		Fingerprints: []string{}, Unit: "loop", Evidence: "8, 16, 24 at 3 marks", Status: Heavier, Fails: true,
		StatusReason: "162.0 kB each, at most 37.4 kB in 10 base runs",
		PerLoop:      sides(2, 2), BytesEach: sides(38_298, 165_888), BaseBytes: 919_152, HeadBytes: 3_981_312,
		Counts: []int64{8, 16, 24}, Bytes: []int64{1_327_104, 2_654_208, 3_981_312},
		Trace: []string{
			"┬───", "│ GC Root: System class", "│", "├─ com.shop.EventBus class",
			"│    Leaking: NO (a class is never leaking)", "│    ↓ static EventBus.listeners",
			"│                      ~~~~~~~~~", "╰→ com.shop.CartScreen instance",
			"      Leaking: YES (closed, still held)",
		},
		Suspects: []Suspect{
			{
				Class: "com.shop.EventBus", Field: "listeners", File: "core/src/main/kotlin/com/shop/EventBus.kt",
				Line: 31, Changed: new(false), Added: new(false),
			},
		},
		Owners:    []string{"@acme/core", "kim@example.com"},
		FirstSeen: &Sighting{Commit: "3f2a91c7d8e9f0a1b2c3d4e5f60718293a4b5c6d", Time: at(2)},
	}
}

func listScreen(n int, status Status) Row {
	r := Row{
		Device: "emulator-5554", Process: "com.shop", Type: "leak", Class: fmt.Sprintf("com.shop.list.ListScreen%d", n),
		Key: fmt.Sprintf("%08x%032x", 0xa0000000+n, n), HeldBy: "Tracker.screens",
		Fingerprints: []string{}, Unit: "loop", Evidence: "12, 24, 36 at 3 marks", Status: status, PerLoop: sides(3, 3),
		BytesEach: sides(126_976, 137_216), BaseBytes: 4_571_136, HeadBytes: 4_939_776,
		Counts:    []int64{12, 24, 36},
		FirstSeen: &Sighting{Commit: "3f2a91c7d8e9f0a1b2c3d4e5f60718293a4b5c6d", Time: at(2)},
	}
	switch status {
	case Accepted:
		r.Accepted = &Acceptance{
			Reason: "SHOP-12, the payment SDK keeps its screens", Owner: "kim", Until: "2027-01-15",
		}
	case Gone:
		r.PerLoop, r.HeadBytes, r.BytesEach.Head, r.Evidence, r.Counts = sides(3, 0), 0, nil,
			"not in any heap dump of this run", nil
	case Transient:
		r.Counts, r.Evidence, r.StatusReason = []int64{3, 0, 5}, "3, 0, 5 at 3 marks",
			"in none of 10 base runs; did not grow at every mark"
	case Moved:
		r.MovedFrom, r.StatusReason = "0011223344556677", "something else holds the same objects"
	case Present:
		r.PerLoop.Base, r.BytesEach.Base, r.StatusReason, r.FirstSeen, r.BaseBytes = nil, nil,
			"no earlier run has this process", nil, 0
	case New, Wider, Grown:
		r.Fails, r.PerLoop, r.StatusReason = true, sides(3, 4),
			"4 per loop, at most 3 in 10 base runs, all of which leaked the same number"
		r.Trace, r.Suspects = cartScreen().Trace, cartScreen().Suspects
	}
	return r
}

// describe returns the text of a reason in the same words as the gate.
func describe(r Row) string {
	return fmt.Sprintf("%s: %s leak: %s, held by %s; %s; %s", r.Process, r.Status, r.Class, r.HeldBy, r.Evidence,
		r.StatusReason)
}

// worse returns the comparison of a pull request with a new leak and a leak
// that became heavier.
func worse() *Comparison {
	c := clean()
	c.Verdict, c.ExitCode, c.Text = Fail, 1, "1 new leak, 1 leak that got heavier"
	c.Reasons = []Reason{
		{Rule: "leak.per_loop: new == 0", Process: "com.shop", Key: wishScreen().Key, Text: describe(wishScreen())},
		{Rule: "leak.heavier: == 0", Process: "com.shop", Key: cartScreen().Key, Text: describe(cartScreen())},
	}
	moved := listScreen(4, Moved)
	moved.MovedClass, moved.Class = "com.shop.SearchScreen", "com.shop.ProfileScreen"
	c.Leaks = []Row{
		wishScreen(), cartScreen(), moved, listScreen(1, Accepted), listScreen(2, Known), listScreen(3, Known),
		listScreen(5, Transient), listScreen(6, Gone), listScreen(7, Moved), listScreen(8, Shrunk),
	}
	c.Processes = append(c.Processes,
		ProcessRow{
			Device: "emulator-5554", Process: "com.shop:push", Reachable: []int64{},
			Trend: "not judged: 12 min, a trend needs 30", Deaths: map[string]int{"crash": 1},
		})
	c.Warnings = []string{"mark 2: no heap dump of com.shop:push, the process was gone"}
	return c
}

// one returns a comparison with a single leak, which fails.
func one() *Comparison {
	c := worse()
	c.Text, c.Reasons, c.Leaks, c.Processes, c.Warnings = "1 new leak", c.Reasons[:1], c.Leaks[:1], c.Processes[:1],
		[]string{}
	return c
}

// many returns a comparison with n leaks, of which the given number fail.
func many(n, fails int) *Comparison {
	c := worse()
	c.Text = fmt.Sprintf("%d new leaks", fails)
	c.Reasons, c.Leaks = nil, nil
	kinds := []Status{Known, Accepted, Transient, Gone, Shrunk, Moved}
	for i := range n {
		status := kinds[i%len(kinds)]
		if i < fails {
			status = New
		}
		r := listScreen(i, status)
		if i < fails {
			r.PerLoop = sides(0, 4)
			c.Reasons = append(c.Reasons,
				Reason{Rule: "leak.per_loop: new == 0", Process: r.Process, Key: r.Key, Text: describe(r)})
		}
		c.Leaks = append(c.Leaks, r)
	}
	return c
}

func firstDay() *Comparison {
	c := clean()
	c.Verdict, c.Text, c.Base = Neutral,
		"there is no base run to compare with yet; 2 leaks grow in this run and do not count against it",
		Base{Branch: "main", Store: "actions artifact leakgate-base-main"}
	c.Processes[0].BaseReachable = nil
	c.Leaks = []Row{listScreen(1, Present), listScreen(2, Present)}
	return c
}

// noMatch returns the comparison of a run whose workload differs from that of
// every run in the baseline.
func noMatch() *Comparison {
	c := firstDay()
	c.Text = "none of 4 base runs can be compared with this run: different workload; 2 leaks grow in this run " +
		"and do not count against it"
	c.Base.Incomparable, c.Base.Others = "different workload", 4
	c.Warnings = []string{"4 runs of the baseline cannot be compared with this run: different workload"}
	return c
}

// fewRuns returns a comparison with a known leak that has grown, and too few
// base runs to judge it.
func fewRuns() *Comparison {
	c := clean()
	c.Base.Runs, c.Text = 2, "nothing is worse than in 2 base runs; 3 leaks are known"
	grown := listScreen(1, Known)
	grown.PerLoop, grown.StatusReason = sides(1, 2), "in the base; 2 base runs are too few to show whether it has grown"
	same := listScreen(2, Known)
	same.StatusReason = grown.StatusReason
	c.Leaks = []Row{listScreen(3, Accepted), grown, same}
	return c
}

// twoPhones returns a comparison with two phones of one model, whose messages
// contain their serial numbers.
func twoPhones() *Comparison {
	c := worse()
	one, two := DeviceRow{Device: "R58M12ABCDE", Model: "Pixel 9", API: 36, ABI: "arm64-v8a"},
		DeviceRow{Device: "R58M12ABCDEF", Model: "Pixel 9", API: 36, ABI: "arm64-v8a"}
	c.Head.Devices = []DeviceRow{one, two}
	for i := range c.Leaks {
		c.Leaks[i].Device = c.Head.Devices[i%2].Device
	}
	for i := range c.Processes {
		c.Processes[i].Device = c.Head.Devices[i%2].Device
	}
	c.Leaks[1].Evidence += " on R58M12ABCDEF"
	c.Reasons[1].Text = describe(c.Leaks[1])
	c.Reasons = append(c.Reasons,
		Reason{
			Rule: "process.deaths: crash == 0", Process: "com.shop:push",
			Text: "com.shop:push: 1 death by crash on R58M12ABCDEF",
		})
	c.Text, c.Warnings = "1 new leak, 1 leak that got heavier, 1 rule violated",
		append(c.Warnings, "adb: device 'R58M12ABCDE' not found")
	c.Processes[1].Trend = "not judged: R58M12ABCDEF: connection lost"
	return c
}

// ofLeakCanary returns a comparison of a LeakCanary report.
func ofLeakCanary() *Comparison {
	c := clean()
	c.Verdict, c.ExitCode, c.Text, c.Base.Behind, c.Head.Run, c.Head.Duration, c.Head.Workload, c.Head.Devices = Fail,
		1, "1 new leak", nil, "", 0, "LeakCanary", []DeviceRow{}
	c.Processes = []ProcessRow{
		{
			Process: "com.shop", Dumps: 1, Settled: true, Reachable: []int64{}, Gate: "inconclusive",
			Trend: "LeakCanary reports which leaks exist, not whether they accumulate", Judged: true,
		},
	}
	r := wishScreen()
	r.Device, r.Unit, r.Evidence, r.StatusReason, r.PerLoop, r.BytesEach, r.Counts, r.Bytes = "", "run",
		"1 check: WishTest", "in none of 10 base runs", Sides{}, Sides{Head: new(99_328.0)}, []int64{1}, []int64{99_328}
	r.HeadBytes = 99_328
	c.Leaks, c.Reasons = []Row{r},
		[]Reason{{Rule: "leak.per_loop: new == 0", Process: "com.shop", Key: r.Key, Text: describe(r)}}
	return c
}

// trip returns the comparison of a trip that found growing places in the heap.
func trip() *Comparison {
	c := clean()
	c.Verdict, c.ExitCode, c.Text = Fail, 1, "2 new leaks"
	place := Row{
		Device: "emulator-5554", Process: "com.shop", Type: "measure", Class: "Cache.entries", Key: "77ab1e5dc0ffee00",
		Unit: "loop", Status: New, Fails: true, Fingerprints: []string{},
		Evidence: "2 per loop of a trip (95 %: 1.9 to 2.1)", StatusReason: "in none of 10 base runs",
		PerLoop: Sides{Head: new(2.0)}, FirstSeen: &Sighting{Time: at(25)},
	}
	threads := place
	threads.Class, threads.Key = "threads", "threads"
	for _, r := range []Row{threads, place} {
		c.Reasons = append(c.Reasons,
			Reason{
				Rule: "leak.per_loop: new == 0", Process: "com.shop", Key: r.Key, Text: "com.shop: new: " + r.Class +
					"; " + r.Evidence + "; " + r.StatusReason,
			})
	}
	seen := listScreen(2, Known)
	seen.FirstSeen.Commit = ""
	c.Leaks = []Row{threads, place, seen}
	return c
}

func informational() *Comparison {
	c := worse()
	c.Verdict, c.ExitCode, c.Informational, c.Text, c.Base.Runs, c.Base.Observed = Neutral, 0, true,
		"1 new leak, 1 leak that got heavier; the rules are informational", 2, 1
	return c
}

func notJudged() *Comparison {
	c := clean()
	c.Verdict, c.ExitCode, c.Judged, c.Text = Neutral, 5, false, "nothing could be judged"
	c.Processes = []ProcessRow{
		{
			Process: "com.shop", Dumps: 1, Reachable: []int64{17_000_000}, Gate: "inconclusive",
			Trend: "not judged: 4 min, a trend needs 30",
		},
	}
	c.Warnings = []string{"com.shop: 1 heap dump; growth with each loop needs 3 of them"}
	return c
}

// fixed returns the comparison after the leak has been fixed. It replaces the
// failure in the comment of the pull request.
func fixed() *Comparison {
	c := clean()
	c.Leaks = []Row{listScreen(1, Known), listScreen(2, Accepted), listScreen(6, Gone)}
	return c
}

// nightly returns the comparison of a run without heap dumps, which is judged
// by its trend.
func nightly() *Comparison {
	c := clean()
	c.Verdict, c.ExitCode, c.Text, c.Head.PullRequest, c.Head.Workload = Fail, 1, "1 rule violated", 0, "monkey"
	c.Processes = []ProcessRow{
		{
			Device: "emulator-5554", Process: "com.shop", Reachable: []int64{}, Gate: "leak",
			Trend: "grows by 35.2 MB/h (28.0 to 42.4) over 8 h", Judged: true,
		},
		{
			Device: "emulator-5554", Process: "com.shop:push", Reachable: []int64{}, Gate: "pass",
			Trend: "no growth in 8 h; a leak of 9.5 MB/h would have been detected", Judged: true,
		},
	}
	row := Row{
		Device: "emulator-5554", Process: "com.shop", Type: "trend", Key: "trend:native", Unit: "hour", Status: New,
		Fails: true, StatusReason: "the memory grew in none of 10 base runs",
		Fingerprints: []string{}, Evidence: "grows by 35.2 MB/h (28.0 to 42.4) over 8 h",
		PerLoop: Sides{Head: new(35.2)},
	}
	native := Row{
		Device: "emulator-5554", Process: "com.shop", Type: "native", Class: "libimage.so", Key: "native:libimage.so",
		Unit: "run", Status: Transient, Fingerprints: []string{},
		Evidence:     "3, 41 at two moments, 12 loops apart",
		StatusReason: "in none of 10 base runs; two counts do not show whether it keeps growing", HeadBytes: 41 << 20,
	}
	threads := Row{
		Device: "emulator-5554", Process: "com.shop", Type: "threads", Class: "OkHttp *", Key: "threads:OkHttp *",
		Unit: "event", Status: Grown, Fingerprints: []string{},
		Evidence: "8, 61 at two moments", StatusReason: "0.0021 per event, at most 0.0002 in 10 base runs (p = 1e-06)",
		PerLoop: sides(0.0002, 0.0021),
	}
	c.Reasons = []Reason{
		{
			Rule: "process.gate: != leak", Process: "com.shop",
			Text: "com.shop: leak: grows by 35.2 MB/h (28.0 to 42.4) over 8 h",
		},
	}
	c.Leaks = []Row{row, threads, native}
	return c
}

// hostileTexts are names of an app, a branch or a fork that would be
// interpreted as markup if they were not escaped.
var hostileTexts = []string{
	"a|b", `a\|b`, `a\\|b`, `a\`, "`", "``", "a`b``c```d", "` |", "|", "<img src=x onerror=alert(1)>", "</details>",
	"</code><script>", "<!--", "-->", "&lt;b&gt;", "&#64;octocat",
	"@octocat", "x @acme/team y", "#123", "acme/shop#1", "GH-12", "JIRA-12", "GHSA-2c4m-59x9-fr2g", "www.", "0www.",
	"A00000000000'AAA", "1234567–2", "8c1d0fe6", "acme/shop@8c1d0fe", "www.evil.example", "https://evil.example/?a=b",
	"evil@example.com", "mailto:a@b.example", "xmpp:a@b.example", "ftp://a.example",
	"[a](https://evil.example)", "![a](https://evil.example/x.png)", "[a]: https://evil.example", "[^1]", "[^1]: note",
	"- [ ] task", "* * *", "---", "===", "# head", "1. one", "1) one", "> quote", "+ x", "~~~", "~~x~~", "**x**",
	"__x__", "_x_", "$x$", "$$", "$`x`$",
	":x:", ":tada:", "a:x:b", "/close", "!12", "%3", "~bug", "&1", "\n\n# x", "a\nb", "\r", "\t", "\x00", "\u202ex",
	"\u2066", "\x1b[31m", "\xff", "\u0301x", " ", "", "a  b", " a ", strings.Repeat("x", 5000),
	strings.Repeat("@a ", 2000), strings.Repeat("`", 400), strings.Repeat("|", 300), "🎉", "中文", "'; rm -rf /", "$(id)",
	"--help", "-x", `"q"`, "\\`", "](x", ")](", "(((", "...", "1.", "12)", "x.",
	"java.lang.Object[]", "CartScreen$$Lambda$23+0x00007f84bc004aa0", "<init>",
}

// hostile fills every string of a comparison with hostileTexts.
func hostile() *Comparison {
	c := worse()
	n := 0
	fill(c, func() string {
		n++
		return hostileTexts[n%len(hostileTexts)]
	})
	return c
}
