package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// runLine is one line of a run, a sample or an event.
type runLine struct {
	text   string
	event  *record.Event
	sample *record.Sample
}

func runLines(t *testing.T, text []byte) []runLine {
	t.Helper()
	var out []runLine
	for line := range strings.Lines(string(text)) {
		l := runLine{text: line}
		var kind struct{ Event *string }
		into := any(&l.sample)
		if err := json.Unmarshal([]byte(line), &kind); err != nil {
			t.Fatal(err)
		}
		if kind.Event != nil {
			into = &l.event
		}
		if err := json.Unmarshal([]byte(line), into); err != nil {
			t.Fatal(err)
		}
		out = append(out, l)
	}
	return out
}

func (l runLine) of() string {
	switch {
	case l.sample != nil:
		return fmt.Sprint(l.sample.Device, "|", l.sample.User, "|", l.sample.Process)
	case l.event.User != nil:
		return fmt.Sprint(l.event.Device, "|", *l.event.User, "|", l.event.Process)
	}
	return ""
}

func joined(lines []runLine) []byte {
	var b bytes.Buffer
	for _, l := range lines {
		b.WriteString(l.text)
	}
	return b.Bytes()
}

// withPolicy returns the run with the given policy in its header.
func withPolicy(t *testing.T, text []byte, policy detector.Policy) []byte {
	t.Helper()
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	var h record.Header
	if err := json.Unmarshal(first, &h); err != nil {
		t.Fatal(err)
	}
	h.Plan.SetPolicy(policy)
	first, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(first, []byte("\n"), rest)
}

// withSeriesBroken returns the oracle for a lost line that does not identify a
// process: the run without that line, in which every process changes its source
// at its next sample.
func withSeriesBroken(t *testing.T, lines []runLine, lost int) []byte {
	t.Helper()
	identity := map[string]record.Event{}
	due := map[string]bool{}
	var out []runLine
	for i, l := range lines {
		if i == lost {
			for name := range identity {
				due[name] = true
			}
			continue
		}
		name := ""
		if i > 0 {
			name = l.of()
		}
		if l.event != nil {
			switch l.event.Event {
			case "found", "level", "restart":
				identity[name] = *l.event
			case "gap", "missed":
				if due[name] {
					continue
				}
			}
			due[name] = due[name] && l.event.Event != "restart" && l.event.Event != "level"
		}
		if l.sample != nil && due[name] {
			due[name] = false
			e := identity[name]
			e.Event, e.T, e.Up = "level", l.sample.T, l.sample.Up
			text, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, runLine{text: string(text) + "\n"})
		}
		out = append(out, l)
	}
	return joined(out)
}

// verdictOf returns those parts of a process record that depend on where a
// series breaks.
func verdictOf(p record.Process) record.Process {
	p.Gaps, p.Missed, p.Missing = 0, 0, 0
	p.Transitions = slices.Clone(p.Transitions)
	for i := range p.Transitions {
		if p.Transitions[i].To == detector.Normal {
			p.Transitions[i].Reason = ""
		}
	}
	return p
}

// A damaged line is skipped and reported, and no trend spans it: the run is
// judged as if every series ended at that line.
func TestRebuildDamagedLine(t *testing.T) {
	recorded := recordedLines(t)
	for _, policy := range []detector.Policy{detector.ArticlePolicy(), detector.RobustPolicy()} {
		text := withPolicy(t, recorded, policy)
		whole, _, err := rebuildOf(t, text)
		if err != nil {
			t.Fatal(err)
		}
		lines := runLines(t, text)
		r := rand.New(rand.NewPCG(3, 4))
		differs, tried := 0, 80
		for range tried {
			lost := 1 + r.IntN(len(lines)-2)
			if e := lines[lost].event; e != nil &&
				slices.Contains([]string{"found", "restart", "level", "reboot", "usage", "mark"}, e.Event) {
				continue
			}
			damaged := slices.Clone(lines)
			damaged[lost].text = damagedAs(r, lines[lost].text)
			got, warnings, err := rebuildOf(t, joined(damaged))
			if err != nil {
				t.Fatal(err)
			}
			checkDamageTold(t, got, warnings, lost+1)
			want, _, err := rebuildOf(t, withSeriesBroken(t, lines, lost))
			if err != nil {
				t.Fatal(err)
			}
			for i := range got.Processes {
				if g, w := verdictOf(got.Processes[i]), verdictOf(want.Processes[i]); !reflect.DeepEqual(g, w) {
					t.Fatalf("%s, line %d, %q:\n%+v\nwant\n%+v", policy.Name, lost+1, damaged[lost].text, g, w)
				}
				if !reflect.DeepEqual(verdictOf(got.Processes[i]), verdictOf(whole.Processes[i])) {
					differs++
				}
				checkGap(t, damaged, lost, got.Processes[i], whole.Processes[i])
			}
		}
		if differs < tried/2 {
			t.Errorf("%s: only %d verdicts on processes differ from the complete run", policy.Name, differs)
		}
	}
}

func damagedAs(r *rand.Rand, line string) string {
	switch r.IntN(5) {
	case 0:
		return line[:1+r.IntN(len(line)-3)] + "\n"
	case 1:
		return strings.Repeat("\x00", len(line)) + "\n"
	case 2:
		return strings.Replace(line, `"device":"S1"`, `"device":"S0"`, 1)
	case 3:
		return strings.Replace(line, `"t_s":`, `"t_s":9e99`, 1)
	}
	return strings.Repeat("x", 2<<20) + "\n"
}

func checkDamageTold(t *testing.T, run record.Run, warnings []error, number int) {
	t.Helper()
	named := fmt.Sprintf("line %d of samples.ndjson", number)
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0].Error(), named) || len(warnings[0].Error()) > 400 {
		t.Fatalf("line %d: %.500q", number, warnings)
	}
	if want := fmt.Sprintf("no trend crosses them: %d", number); !slices.ContainsFunc(run.Warnings,
		func(w string) bool { return strings.HasSuffix(w, want) }) {
		t.Fatalf("line %d: got the warnings %q, want one that ends in %q", number, run.Warnings, want)
	}
	if run.Stopped != "duration" || run.ExitCode == record.ExitUnwritten {
		t.Fatalf("line %d: %s, exit %d", number, run.Stopped, run.ExitCode)
	}
}

// checkGap compares the reported gap with the samples before and after the lost
// line, for a process that is present and does not restart.
func checkGap(t *testing.T, lines []runLine, lost int, got, whole record.Process) {
	t.Helper()
	if whole.Restarts > 1 || whole.Gaps > 1 || whole.Missed > 0 {
		return
	}
	before, after := math.NaN(), math.NaN()
	for i, l := range lines {
		switch {
		case i == lost || l.sample == nil || l.sample.Process != got.Process:
		case i < lost && l.sample.Breakdown == nil:
			before = l.sample.Up
		case i > lost && math.IsNaN(after):
			after = l.sample.Up
		}
	}
	if math.IsNaN(before) || math.IsNaN(after) || after < before {
		return
	}
	if gap := got.Missing - whole.Missing; got.Gaps == whole.Gaps+1 && math.Abs(gap-(after-before)) > 0.01 {
		t.Errorf("line %d, %s: missing time increased by %g s, but the samples are at %g and %g s", lost+1, got.Process,
			gap, before, after)
	}
}

// The lines after a lost line show what the lost line reported about a process:
// the restarts, the sources and the time axis are those of the complete run.
func TestRebuildWithoutIdentityLines(t *testing.T) {
	text := withPolicy(t, recordedLines(t), detector.ArticlePolicy())
	whole, _, err := rebuildOf(t, text)
	if err != nil {
		t.Fatal(err)
	}
	lines := runLines(t, text)
	lost := map[string]int{}
	for i, l := range lines {
		if l.event == nil || !slices.Contains([]string{"found", "restart", "reboot"}, l.event.Event) {
			continue
		}
		lost[l.event.Event]++
		damaged := slices.Clone(lines)
		damaged[i].text = "{\n"
		got, _, err := rebuildOf(t, joined(damaged))
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Processes) != len(whole.Processes) {
			t.Fatalf("without %s: %d processes", l.text, len(got.Processes))
		}
		for k, w := range whole.Processes {
			g := got.Processes[slices.IndexFunc(got.Processes,
				func(p record.Process) bool { return p.Process == w.Process })]
			if g.PID != w.PID || g.Source != w.Source || g.Restarts != w.Restarts || g.Samples != w.Samples ||
				g.Details != w.Details {
				t.Errorf("without %sprocess %d is\n%+v\nnot\n%+v", l.text, k, g, w)
			}
		}
		if got.Devices[0].Duration != whole.Devices[0].Duration || !got.Ended.Equal(whole.Ended) {
			t.Errorf("without the line %sthe run lasts %g s, want %g s", l.text, got.Devices[0].Duration,
				whole.Devices[0].Duration)
		}
	}
	if lost["found"] < 2 || lost["restart"] < 2 || lost["reboot"] != 1 {
		t.Errorf("too few lost lines of each kind: %v", lost)
	}
}

// steadyLines returns samples of one process, one every 30 s; each exceeds the
// previous one by the given number of kB.
func steadyLines(n, rise int, source string) []string {
	lines := []string{
		`{"schema":"leakgate.samples/1","started":"2026-01-02T03:04:05Z","devices":[{"device":"S1","model":"m","api":34,"started_up_s":1000,"time_scale":1}],"plan":{"tool":"t","policy":"article","revision":1,"intervals":{"normal_s":30,"suspicious_s":15,"leaking_s":60},"cooldown_s":1800,"max_gap_s":1800,"assert":"end","strict":true,"processes":["com.x"],"workload":null}}`,
	}
	for i := range n {
		lines = append(lines,
			fmt.Sprintf(`{"t_s":%d,"up_s":%d,"device":"S1","user":0,"process":"com.x","pid":5,"start":6,"source":%q,"pss_kb":%d,"swap_pss_kb":0,"rss_anon_kb":%d,"swap_kb":0}`,
				30*i, 1000+30*i, source, 200_000+rise*i, 100_000+rise*i))
	}
	return lines
}

func linesOf(lines []string) []byte { return []byte(strings.Join(lines, "\n") + "\n") }

// Samples of another quantity after a lost line belong to another series, even
// if the lost line is the one that reported the change of the quantity.
func TestRebuildWithoutLevelLine(t *testing.T) {
	lines := slices.Concat(steadyLines(60, 0, "smaps_rollup"), []string{"lost"}, steadyLines(120, 0, "status")[61:])
	run, _, err := rebuildOf(t, linesOf(lines))
	if err != nil {
		t.Fatal(err)
	}
	p := run.Processes[0]
	if p.Source != string(capture.Status) || p.Restarts != 0 || p.Gaps != 1 || p.Samples != 120 {
		t.Errorf("%+v", p)
	}
}

// rebooted returns the samples of a device whose clock restarts after half an
// hour, and of a process that leaks after that. reported lists the lines in
// between.
func rebooted(reported ...string) []string {
	second := steadyLines(260, 3000, "smaps_rollup")[61:]
	for i, line := range second {
		second[i] = strings.NewReplacer(fmt.Sprintf(`"up_s":%d`, 1000+30*(60+i)), fmt.Sprintf(`"up_s":%d`, 50+30*i),
			`"pid":5`, `"pid":7`).Replace(line)
	}
	return slices.Concat(steadyLines(60, 0, "smaps_rollup"), reported, second)
}

// If no line reports a reboot, it is recognized from the clock. The transitions
// after the reboot have the same times as if it had been reported.
func TestRebuildWithoutRebootLine(t *testing.T) {
	reported, _, err := rebuildOf(t, linesOf(rebooted(
		`{"t_s":1800,"up_s":50,"device":"S1","event":"reboot"}`,
		`{"t_s":1800,"up_s":50,"device":"S1","event":"restart","user":0,"process":"com.x","pid":7,"start":6,"source":"smaps_rollup"}`)))
	if err != nil {
		t.Fatal(err)
	}
	lost, _, err := rebuildOf(t, linesOf(rebooted("lost", "lost")))
	if err != nil {
		t.Fatal(err)
	}
	want, got := reported.Processes[0], lost.Processes[0]
	if len(want.Transitions) == 0 || !reflect.DeepEqual(got.Transitions, want.Transitions) || got.Restarts != 1 ||
		got.Samples != want.Samples || got.Gate != want.Gate {
		t.Errorf("%+v\nwant\n%+v", got, want)
	}
}

// If the line before the first sample is lost, the samples still show how the
// process is read.
func TestRebuildWithoutFirstLines(t *testing.T) {
	lines := slices.Insert(steadyLines(60, 0, "status"), 1, "lost")
	run, _, err := rebuildOf(t, linesOf(lines))
	if err != nil {
		t.Fatal(err)
	}
	if p := run.Processes[0]; p.Source != string(capture.Status) || p.Gaps != 0 || p.Missing != 0 || p.Samples != 60 {
		t.Errorf("%+v", p)
	}
}

// If a gap that the run reports also contains lost lines, it is counted only
// once.
func TestRebuildLostLinesInGap(t *testing.T) {
	for _, word := range []string{"gap", "missed"} {
		lines := slices.Concat(steadyLines(20, 0, "smaps_rollup"), []string{"lost",
			fmt.Sprintf(`{"t_s":900,"up_s":1900,"device":"S1","event":%q,"user":0,"process":"com.x","pid":5,"duration_s":200}`, word)},
			steadyLines(60, 0, "smaps_rollup")[31:])
		run, _, err := rebuildOf(t, linesOf(lines))
		if err != nil {
			t.Fatal(err)
		}
		if p := run.Processes[0]; p.Gaps != 1 || p.Missed != 0 || p.Missing != 330 {
			t.Errorf("%s: %d gaps, %d missed, %g s", word, p.Gaps, p.Missed, p.Missing)
		}
	}
}

// A run is inconclusive if too little of it can be judged. If no process is
// judged, the run does not pass.
func TestRebuildDamagedExit(t *testing.T) {
	for strict, want := range map[bool]int{true: record.ExitInconclusive, false: record.ExitInconclusive} {
		lines := steadyLines(80, 0, "smaps_rollup")
		lines[0] = strings.Replace(lines[0], `"strict":true`, fmt.Sprintf(`"strict":%v`, strict), 1)
		lines = append(lines,
			`{"t_s":2400,"up_s":3400,"device":"","event":"stopped","text":"duration","ended":"2026-01-02T03:44:05Z"}`)
		if run, _, err := rebuildOf(t, linesOf(lines)); err != nil || run.ExitCode != record.ExitClean ||
			run.Processes[0].Gate != "pass" {
			t.Fatalf("complete run: exit %d, %+v, %v", run.ExitCode, run.Processes, err)
		}
		for i := 10; i < 80; i += 10 {
			lines[i] = lines[i][:50]
		}
		run, warnings, err := rebuildOf(t, linesOf(lines))
		if err != nil || len(warnings) != 7 || run.ExitCode != want || run.Processes[0].Gate != "inconclusive" ||
			run.Processes[0].Gaps != 7 || run.Processes[0].Missing != 7*60 {
			t.Errorf("strict %v: exit %d, %d warnings, %+v, %v",
				strict, run.ExitCode, len(warnings), run.Processes, err)
		}
	}
}

// However many lines are damaged, the number of listed lines and the length of
// their quotes are bounded. If the last line is damaged, the run counts as
// killed.
func TestRebuildManyDamagedLines(t *testing.T) {
	lines := steadyLines(5000, 0, "smaps_rollup")
	for i := 101; i < len(lines); i++ {
		if i%2 == 0 {
			lines[i] = strings.Replace(lines[i], `"S1"`, `"`+strings.Repeat("é", 5000)+`"`, 1)
		}
	}
	began := time.Now()
	run, warnings, err := rebuildOf(t, linesOf(lines))
	if err != nil || len(warnings) != maxDamaged+1 ||
		warnings[maxDamaged].Error() != "2430 more lines of samples.ndjson cannot be read" {
		t.Fatalf("%d warnings, %v", len(warnings), err)
	}
	for _, d := range warnings {
		if len(d.Error()) > 400 || strings.ContainsRune(d.Error(), '\ufffd') {
			t.Errorf("%.500q", d)
		}
	}
	if len(run.Warnings) != 1 || len(run.Warnings[0]) > 400 ||
		!strings.HasSuffix(run.Warnings[0],
			"103, 105, 107, 109, 111, 113, 115, 117, 119, 121, 123, 125, 127, 129, 131, 133, 135, 137, 139, 141, and "+
				"2430 more") {
		t.Errorf("%q", run.Warnings)
	}
	if run.Stopped != record.StoppedKilled || run.Processes[0].Samples != 2550 {
		t.Errorf("%s, %d samples", run.Stopped, run.Processes[0].Samples)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
}

// No data is lost if an editor adds blank lines or changes the line endings. A
// file without a readable line is not a run.
func TestRebuildOfEditedLines(t *testing.T) {
	lines := steadyLines(80, 0, "smaps_rollup")
	want, _, err := rebuildOf(t, linesOf(lines))
	if err != nil {
		t.Fatal(err)
	}
	got, warnings, err := rebuildOf(t, []byte(strings.Join(lines, "\r\n\n")+"\r\n\r\n"))
	if err != nil || len(warnings) > 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", warnings, err)
	}
	_, _, err = rebuildOf(t, linesOf([]string{lines[0], "x", "y"}))
	if err == nil || !strings.Contains(err.Error(), "only the header can be read; line 2: invalid character 'x'") {
		t.Errorf("%v", err)
	}
	// A disk failure may replace several lines at the end of the file with
	// zeros.
	zeros := append(linesOf(lines), make([]byte, 3<<20)...)
	if got, warnings, err = rebuildOf(t, zeros); err != nil || len(warnings) != 1 ||
		warnings[0].Error() != "line 82 of samples.ndjson is truncated, skipped" ||
		!reflect.DeepEqual(got.Processes, want.Processes) {
		t.Errorf("zeros: %v, %v", warnings, err)
	}
}
