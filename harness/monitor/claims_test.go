package monitor

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/reporters/record"
)

var updateClaims = flag.Bool("update", false, "write the measurements into docs/detector.md")

// claim is a row of section 7.1 or 8.1 of the article, simulated on a phone.
type claim struct {
	scenario, says string
	// length is the length of the run, and onset is the age of the process when
	// the growth begins.
	length, onset time.Duration
	// noise is the standard deviation of the noise in MB; 0 means 5 MB.
	noise  float64
	models []androidsim.Model
	// Rows with short set are measured in every test run, and those with wired
	// set also over adb.
	short, wired bool
	// article and robust are the expected results under these policies.
	article, robust expected
}

// expected is the result that every run of a row must produce.
type expected struct {
	// gate lists the allowed gates, separated by spaces.
	gate string
	// leaking is the range of minutes after the onset in which the process must
	// become LEAKING. If it is nil, the process must not become LEAKING; if its
	// end is 0, the process may or may not.
	leaking *[2]float64
	// kind is the kind of leak, empty for any kind.
	kind string
	jump jumping
}

// jumping states whether jumps must, may or must not be reported.
type jumping int

const (
	noJump jumping = iota
	aJump
	// With perhapsJumps, jumps may or may not be reported, because sudden
	// growth happens repeatedly.
	perhapsJumps
)

func never(gate string) expected { return expected{gate: gate} }

func between(first, last float64) *[2]float64 { return &[2]float64{first, last} }

// perhaps allows the process to become LEAKING at any time or not at all.
var perhaps = between(0, 0)

func leak(kind androidsim.Kind, rate float64) []androidsim.Model {
	return []androidsim.Model{androidsim.Leak(kind, rate, 0)}
}

const hour = time.Hour

// claims are the nine rows of section 7.1 and the five rows of section 8.1 of
// the article, some of them twice.
var claims = []claim{
	{
		scenario: "7.1 fast leak: 700 MB/h", says: "about 5 min",
		length: hour, models: leak(androidsim.Java, 700), short: true, wired: true,
		article: expected{gate: "leak", leaking: between(20, 25), kind: "java_leak"},
		robust:  expected{gate: "leak", leaking: between(10, 40), kind: "java_leak"},
	},
	{
		scenario: "7.1 medium leak: 300 MB/h", says: "10 to 20 min",
		length: 4 * hour, models: leak(androidsim.Java, 300),
		article: expected{gate: "leak", leaking: between(20, 40), kind: "java_leak"},
		robust:  expected{gate: "leak", leaking: between(10, 60), kind: "java_leak"},
	},
	{
		scenario: "7.1 medium leak: 100 MB/h, native", says: "10 to 20 min",
		length: 8 * hour, models: leak(androidsim.Native, 100),
		article: expected{gate: "leak", leaking: between(20, 120), kind: "native_leak"},
		robust:  expected{gate: "leak", leaking: between(10, 120), kind: "native_leak"},
	},
	{
		scenario: "7.1 slow leak: 50 MB/h", says: "20 to 30 min",
		length: 8 * hour, models: leak(androidsim.Java, 50),
		article: expected{gate: "leak", leaking: between(20, 240), kind: "java_leak"},
		robust:  expected{gate: "leak", leaking: between(15, 180), kind: "java_leak"},
	},
	{
		scenario: "7.1 slow leak: 20 MB/h", says: "20 to 30 min",
		length: 8 * hour, models: leak(androidsim.Java, 20),
		article: expected{gate: "leak pass settled inconclusive", leaking: perhaps},
		robust:  expected{gate: "leak", leaking: between(30, 300)},
	},
	{
		scenario: "7.1 very slow leak: 10 MB/h", says: "more than 60 min",
		length: 8 * hour, models: leak(androidsim.Java, 10),
		article: expected{gate: "leak pass settled inconclusive", leaking: perhaps},
		robust:  expected{gate: "leak", leaking: perhaps, kind: "java_leak"},
	},
	{
		scenario: "7.1 burst: 250 MB at once", says: "30 s",
		length: 4 * hour, onset: 2 * hour, models: []androidsim.Model{androidsim.Step(2*hour, 250)}, wired: true,
		article: expected{gate: "leak", leaking: between(0, 1), kind: "unknown"},
		robust:  expected{gate: "pass settled", jump: aJump},
	},
	{
		scenario: "7.1 staircase: three resources of 60 MB", says: "must not trigger",
		length: 8 * hour,
		models: []androidsim.Model{
			androidsim.Step(hour, 60), androidsim.Step(5*hour/2, 60), androidsim.Step(4*hour, 60),
		},
		article: expected{gate: "leak pass settled inconclusive", leaking: perhaps},
		robust:  never("pass settled"),
	},
	{
		scenario: "7.1 pure GPU leak: 100 MB/h", says: "20 to 30 min",
		length: 8 * hour, models: leak(androidsim.GPU, 100), wired: true,
		article: expected{gate: "leak", leaking: between(8, 60), kind: "gpu_leak"},
		robust:  expected{gate: "leak", leaking: between(10, 120), kind: "gpu_leak"},
	},
	{
		scenario: "7.1 medium leak in a noisy process: 300 MB/h, 50 MB of noise", says: "15 to 20 min",
		length: 8 * hour, models: leak(androidsim.Java, 300), noise: 50,
		article: expected{gate: "leak", leaking: between(0, 200)},
		robust:  expected{gate: "leak", leaking: between(10, 180), kind: "java_leak"},
	},
	{
		scenario: "7.1 periodic load and leak: 60 MB every 5 min, 100 MB/h", says: "20 to 30 min",
		length: 8 * hour, models: append(leak(androidsim.Java, 100), androidsim.Periodic(60, 5*time.Minute)),
		article: expected{gate: "leak", leaking: between(20, 240)},
		robust:  expected{gate: "leak", leaking: between(10, 180), kind: "java_leak"},
	},
	{
		scenario: "7.1 periodic load and leak: 60 MB every 20 min, 100 MB/h", says: "20 to 30 min",
		length: 8 * hour, models: append(leak(androidsim.Java, 100), androidsim.Periodic(60, 20*time.Minute)),
		article: expected{gate: "leak", leaking: between(10, 300)},
		robust:  expected{gate: "leak", leaking: between(10, 180), kind: "java_leak"},
	},
	{
		scenario: "8.1 too few data: the first 8 min of a launch", says: "no judgement",
		length: 8 * time.Minute, models: []androidsim.Model{androidsim.WarmUp(200, 10*time.Minute)}, short: true,
		article: never("inconclusive"), robust: never("inconclusive pass"),
	},
	{
		scenario: "8.1 growth at launch: 150 MB, time constant 2 min", says: "falls back after 30 min",
		length: 8 * hour, models: []androidsim.Model{androidsim.WarmUp(150, 2*time.Minute)},
		article: expected{gate: "leak pass settled inconclusive", leaking: perhaps}, robust: never("pass settled"),
	},
	{
		scenario: "8.1 growth at launch: 200 MB, time constant 10 min", says: "falls back after 30 min",
		length: 8 * hour, models: []androidsim.Model{androidsim.WarmUp(200, 10*time.Minute)}, wired: true,
		article: expected{gate: "leak", leaking: between(20, 40)}, robust: never("pass settled"),
	},
	{
		scenario: "8.1 load peaks: 150 MB for 1 min, once every 10 min", says: "no alarm",
		length: 8 * hour, models: []androidsim.Model{androidsim.Peaks(150, time.Minute, 10*time.Minute)},
		article: never("pass settled"), robust: expected{gate: "pass settled", jump: perhapsJumps},
	},
	{
		scenario: "8.1 load peaks: 250 MB for 2 min, once every 30 min", says: "no alarm",
		length: 8 * hour, models: []androidsim.Model{androidsim.Peaks(250, 2*time.Minute, 30*time.Minute)},
		article: expected{gate: "leak", leaking: between(0, 60), kind: "unknown"},
		robust:  expected{gate: "pass settled", jump: perhapsJumps},
	},
	{
		scenario: "8.1 staircase: 80 MB", says: "no alarm",
		length: 8 * hour, models: []androidsim.Model{androidsim.Step(2*hour, 80)}, wired: true,
		article: never("pass settled"), robust: never("pass settled"),
	},
	{
		scenario: "8.1 periodic load: 60 MB every 5 min", says: "no alarm",
		length: 8 * hour, models: []androidsim.Model{androidsim.Periodic(60, 5*time.Minute)}, wired: true,
		article: never("pass settled"), robust: never("pass settled"),
	},
}

// claimSeeds is the number of measured runs per row; under the race detector
// only one is measured.
const claimSeeds = 5

func seedsOfAClaim() uint64 {
	if racing {
		return 1
	}
	return claimSeeds
}

var claimPolicies = []detector.Policy{detector.ArticlePolicy(), detector.RobustPolicy()}

func (c claim) expected(policy string) expected {
	if policy == detector.PolicyArticle {
		return c.article
	}
	return c.robust
}

// options returns the options of a phone whose process behaves as the row
// describes.
func (c claim) options(seed uint64) androidsim.Options {
	noise := c.noise
	if noise == 0 {
		noise = 5
	}
	models := append([]androidsim.Model{androidsim.Typical(), androidsim.Noise(noise, 0.7)}, c.models...)
	o := rooted()
	o.Seed = seed
	o.Apps = []androidsim.App{
		{Package: "com.shop", Processes: []androidsim.ProcessSpec{{Name: "com.shop", Models: models}}},
	}
	return o
}

// finding is the result of a run. Times are in minutes after the onset. NaN
// means never, and a negative time is an alarm before the onset.
type finding struct {
	gate, kind, because       string
	suspicious, leaking, jump float64
}

func (c claim) finding(p record.Process) finding {
	since := func(s *float64) float64 {
		if s == nil {
			return math.NaN()
		}
		return (*s - c.onset.Seconds()) / 60
	}
	f := finding{
		gate: string(p.Gate), because: p.Reason, suspicious: since(p.FirstSuspicious), leaking: since(p.FirstLeaking),
		jump: math.NaN(),
	}
	if len(p.Jumps) > 0 {
		f.jump = since(&p.Jumps[0].T)
	}
	if p.Gate == detector.Leak || p.FirstLeaking != nil {
		f.kind = p.Kind.String()
	}
	return f
}

// check compares a finding with the expectation.
func (a expected) check(f finding) string {
	var wrong []string
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if !slices.Contains(strings.Fields(a.gate), f.gate) {
		complain("gate %s, want %s", f.gate, a.gate)
	}
	came := !math.IsNaN(f.leaking)
	switch {
	case a.leaking == nil && came:
		complain("LEAKING after %.1f min, want never", f.leaking)
	case a.leaking == nil || a.leaking[1] == 0:
	case !came:
		complain("never LEAKING")
	case f.leaking < a.leaking[0] || f.leaking > a.leaking[1]:
		complain("LEAKING after %.1f min, want %v", f.leaking, *a.leaking)
	}
	if f.gate == "leak" && a.kind != "" && f.kind != a.kind {
		complain("%s, want %s", f.kind, a.kind)
	}
	if jumped := !math.IsNaN(f.jump); a.jump != perhapsJumps && jumped != (a.jump == aJump) {
		complain("a jump: %v", jumped)
	}
	if len(wrong) == 0 {
		return ""
	}
	return strings.Join(wrong, "; ") + ": " + f.because
}

// measure runs the scenario of a row in a synctest bubble, with simulated time.
func (c claim) measure(t *testing.T, policy detector.Policy, seed uint64) (f finding) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := options(t, &simulated{Phone: androidsim.New(c.options(seed))})
		o.Duration, o.Policy, o.Sampling = c.length, policy, defaultBudget
		run, err := Run(t.Context(), o)
		if err != nil || len(run.Processes) != 1 {
			t.Fatalf("%d processes, %v", len(run.Processes), err)
		}
		f = c.finding(run.Processes[0])
	})
	return f
}

// share returns text that states in how many runs a result occurred, or "" if
// it occurred in all of them.
func share(n, of int) string {
	if n == of {
		return ""
	}
	return fmt.Sprintf(" in %d of %d", n, of)
}

// span returns text that states how many times a result occurred and the range
// of times at which it first occurred.
func span(what string, minutes []float64) string {
	came := slices.DeleteFunc(slices.Clone(minutes), math.IsNaN)
	early := len(came)
	came = slices.DeleteFunc(came, func(at float64) bool { return at < 0 })
	early -= len(came)
	var parts []string
	if early > 0 {
		parts = append(parts, what+" earlier"+share(early, len(minutes)))
	}
	if len(came) > 0 {
		low, high := math.Round(slices.Min(came)), math.Round(slices.Max(came))
		text := fmt.Sprintf("%s%s after %.0f", what, share(len(came), len(minutes)), low)
		if high > low {
			text += fmt.Sprintf(" to %.0f", high)
		}
		parts = append(parts, text+" min")
	}
	return strings.Join(parts, "; ")
}

// cell returns the contents of the table cell that summarizes the runs of a
// row.
func cell(all []finding) string {
	gates, kinds := map[string]int{}, map[string]int{}
	var suspicious, leaking, jumps []float64
	for _, f := range all {
		gates[f.gate]++
		if f.kind != "" {
			kinds[f.kind]++
		}
		suspicious, leaking, jumps = append(suspicious, f.suspicious), append(leaking, f.leaking), append(jumps, f.jump)
	}
	list := func(of map[string]int, words ...string) string {
		var parts []string
		for _, w := range words {
			if of[w] > 0 {
				parts = append(parts, w+share(of[w], len(all)))
			}
		}
		return strings.Join(parts, ", ")
	}
	parts := []string{
		list(gates, "leak", "pass", "settled", "inconclusive"),
		span("SUSPICIOUS", suspicious), span("LEAKING", leaking),
		list(kinds, "java_leak", "native_leak", "gpu_leak", "thread_leak", "unknown"),
		span("a jump", jumps),
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "; ")
}

func long() bool { return os.Getenv("LEAKGATE_E2E") == "long" }

// TestClaims runs the article's scenarios end to end, under each policy. The
// table in docs/detector.md contains the measured results. The short rows are
// always measured; the other rows are measured only with LEAKGATE_E2E=long.
func TestClaims(t *testing.T) {
	var mu sync.Mutex
	cells := map[string]string{}
	t.Run("rows", func(t *testing.T) {
		for _, c := range claims {
			if !c.short && !long() {
				continue
			}
			for _, policy := range claimPolicies {
				t.Run(policy.Name+", "+c.scenario, func(t *testing.T) {
					t.Parallel()
					var all []finding
					for seed := range seedsOfAClaim() {
						f := c.measure(t, policy, seed+1)
						if wrong := c.expected(policy.Name).check(f); wrong != "" {
							t.Errorf("seed %d: %s", seed+1, wrong)
						}
						all = append(all, f)
					}
					t.Log(cell(all))
					if len(all) < claimSeeds {
						return // the table contains all rows
					}
					mu.Lock()
					defer mu.Unlock()
					cells[c.scenario+policy.Name] = cell(all)
				})
			}
		}
	})
	checkClaims(t, cells)
}

const (
	detectorPage = "../../docs/detector.md"
	claimsBegin  = "<!-- claims -->\n"
	claimsEnd    = "<!-- /claims -->"
	claimsHead   = "| scenario | the article | policy `article` | policy `robust` |\n|---|---|---|---|\n"
)

// checkClaims compares the table on the page with the measurements. Rows that
// were not measured are kept.
func checkClaims(t *testing.T, cells map[string]string) {
	t.Helper()
	page, err := os.ReadFile(detectorPage)
	if err != nil {
		t.Fatal(err)
	}
	page = bytes.ReplaceAll(page, []byte("\r\n"), []byte("\n"))
	before, rest, ok := strings.Cut(string(page), claimsBegin)
	text, after, ended := strings.Cut(rest, claimsEnd)
	head, old, table := strings.Cut(text, claimsHead)
	if !ok || !ended || !table {
		t.Fatalf("%s has no table between %q and %q", detectorPage, claimsBegin, claimsEnd)
	}
	written := map[string][]string{}
	for line := range strings.Lines(old) {
		if columns := strings.Split(strings.Trim(line, "| \n"), " | "); len(columns) == 4 {
			written[columns[0]] = columns
		}
	}
	var rows strings.Builder
	for _, c := range claims {
		columns := []string{c.scenario, c.says, "-", "-"}
		for i, policy := range claimPolicies {
			if have := written[c.scenario]; have != nil {
				columns[i+2] = have[i+2]
			}
			if got, ok := cells[c.scenario+policy.Name]; ok {
				columns[i+2] = got
			}
		}
		fmt.Fprintf(&rows, "| %s |\n", strings.Join(columns, " | "))
	}
	if rows.String() == old {
		return
	}
	if *updateClaims {
		if err := os.WriteFile(detectorPage, []byte(before+claimsBegin+head+claimsHead+rows.String()+claimsEnd+after),
			0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("the table of %s is\n%s\nand should be\n%s\n(LEAKGATE_E2E=long go test -run TestClaims -update writes it)",
		detectorPage, old, rows.String())
}

// TestClaimsOverADB runs the same scenarios over the adb protocol. Only the
// short rows are measured unless LEAKGATE_E2E is long.
func TestClaimsOverADB(t *testing.T) {
	measured := 0
	for _, c := range claims {
		if !c.wired || !c.short && !long() {
			continue
		}
		measured++
		for _, policy := range claimPolicies {
			synctest.Test(t, func(t *testing.T) {
				phone := androidsim.New(c.options(1))
				server := adbd.NewServer(phone)
				t.Cleanup(func() { server.Close() })
				client, err := adb.NewClient(adb.Options{Dial: server.Dial})
				if err != nil {
					t.Fatal(err)
				}
				run, err := Run(t.Context(), Options{
					Devices: claimDevice(t, client, phone.Identity().Serial), Patterns: []capture.Pattern{"com.shop"},
					Policy: policy, Dir: filepath.Join(t.TempDir(), "run"), Duration: c.length, Sampling: defaultBudget,
				})
				if err != nil || len(run.Processes) != 1 {
					t.Errorf("%s, %s: %d processes, %v", c.scenario, policy.Name, len(run.Processes), err)
					return
				}
				if wrong := c.expected(policy.Name).check(c.finding(run.Processes[0])); wrong != "" {
					t.Errorf("%s, %s: %s", c.scenario, policy.Name, wrong)
				}
			})
		}
	}
	if measured == 0 {
		t.Error("no row was measured")
	}
}

func claimDevice(t *testing.T, client *adb.Client, serial string) []Device {
	dev, err := client.Select(t.Context(), serial)
	if err != nil {
		t.Error(err)
		return nil
	}
	facts, err := capture.ReadFacts(t.Context(), dev)
	if err != nil {
		t.Error(err)
	}
	return []Device{{dev, facts}}
}
