package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/reporters/record"
)

// articlePlan is the plan of a run with policy "article"; headerLine is the
// header of that run.
const (
	articlePlan = `"plan":{"tool":"t","policy":"article","revision":1,"intervals":{"normal_s":30,"suspicious_s":15,"leaking_s":60},"cooldown_s":1800,"max_gap_s":1800,"assert":"end","strict":false,"processes":["*"],"workload":null}`
	headerLine  = `{"schema":"leakgate.samples/1","started":"2026-01-02T03:04:05Z","devices":[{"device":"S1","model":"m","api":34,"started_up_s":1,"time_scale":1}],` + articlePlan + "}\n"
)

// recordedLines returns the lines of a run with policy "article" that contains
// leaks, crashes, a gap, a disconnected device and a reboot.
func recordedLines(t *testing.T) []byte { return recordedRun(t, "faults") }

func rebuildOf(t *testing.T, text []byte) (record.Run, []error, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, record.SamplesName), text, 0o644); err != nil {
		t.Fatal(err)
	}
	return Rebuild(dir)
}

// If a run is killed, the first part of its lines remains. Every such part is a
// valid run that contains all of its complete samples, and only transitions of
// the complete run.
func TestRebuildEveryBeginning(t *testing.T) {
	text := recordedLines(t)
	whole, _, err := rebuildOf(t, text)
	if err != nil {
		t.Fatal(err)
	}
	header := bytes.IndexByte(text, '\n') + 1
	cuts := []int{header, len(text) - 1}
	r := rand.New(rand.NewPCG(1, 2))
	tried := 200
	for range tried {
		cuts = append(cuts, header+r.IntN(len(text)-header))
	}
	for _, cut := range cuts {
		run, warnings, err := rebuildOf(t, text[:cut])
		if err != nil {
			t.Fatalf("truncated at %d: %v", cut, err)
		}
		incomplete := cut > header && text[cut-1] != '\n'
		if incomplete != (len(warnings) == 1) || run.Stopped != "killed" || !run.Interrupted ||
			run.ExitCode != record.ExitInterrupted {
			t.Fatalf("truncated at %d: %v %+v", cut, warnings, run)
		}
		checkBeginning(t, text[:cut], run, whole)
	}
}

func checkBeginning(t *testing.T, text []byte, run, whole record.Run) {
	t.Helper()
	readings := 0
	for line := range bytes.Lines(text) {
		if bytes.HasSuffix(line, []byte("\n")) && bytes.Contains(line, []byte(`"source":"smaps_rollup","pss_kb"`)) {
			readings++
		}
	}
	samples := 0
	for i, p := range run.Processes {
		samples += p.Samples
		full := whole.Processes[i]
		n := min(len(p.Transitions), len(full.Transitions))
		if p.Process != full.Process || len(p.Transitions) > len(full.Transitions) ||
			!reflect.DeepEqual(p.Transitions[:n], full.Transitions[:n]) {
			t.Fatalf("%d bytes: got transitions %+v, the complete run has %+v", len(text), p.Transitions,
				full.Transitions)
		}
	}
	if samples != readings {
		t.Fatalf("%d bytes: got %d samples from %d lines", len(text), samples, readings)
	}
	if run.Ended.Before(run.Started) || run.Ended.After(whole.Ended.Add(time.Second)) {
		t.Fatalf("%d bytes: ended %v", len(text), run.Ended)
	}
}

func TestRebuildErrors(t *testing.T) {
	header := headerLine
	for name, c := range map[string]struct{ text, want string }{
		"an empty file": {"", "read samples header"},
		"half a header": {header[:40], "read samples header"},
		"an unknown device": {
			header + `{"t_s":1,"up_s":2,"device":"S2","process":"x","source":"smaps"}` + "\n",
			`line 2: device "S2" is not in the header`,
		},
		"not JSON": {header + "x\n", "line 2"},
		"a device twice": {
			strings.Replace(header, `"devices":[`, `"devices":[{"device":"S1"},`, 1), "is in the header twice",
		},
		"an unknown policy": {
			strings.Replace(header, `"article"`, `"x"`, 1),
			"unknown policy \"x\": want article or robust: restore the first line of samples.ndjson, or judge the " +
				"run with `leakgate replay --policy robust`",
		},
		"another revision": {strings.Replace(header, `"revision":1`, `"revision":99`, 1), "invalid revision 99"},
		"no policy": {
			strings.Replace(header, `"policy"`, `"polizy"`, 1),
			"has no policy (missing key plan.policy; unknown key \"plan.polizy\")",
		},
		"no plan": {
			strings.Replace(header, `"plan"`, `"PLAN"`, 1), "has no policy (missing key plan; unknown key \"PLAN\")",
		},
		"an invalid word": {
			strings.Replace(header, `"end"`, `"END"`, 1), "key plan.assert: invalid word \"END\": want end or live",
		},
		"policy of an old version": {
			strings.Replace(header, `"article"`, `{"Name":"robust"}`, 1), "record the run again",
		},
		"a nameless device": {
			strings.Replace(header, `"device"`, `"serial"`, 1),
			"missing key devices[0].device; unknown key \"devices[0].serial\"",
		},
	} {
		if _, _, err := rebuildOf(t, []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := Rebuild(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is not a run directory") {
		t.Errorf("empty directory: got error %v", err)
	}
}

// A missing or impossible time scale is replaced with that of a real phone, and
// a warning reports this.
func TestTimeScaleOfTheHeader(t *testing.T) {
	line := `{"t_s":40,"up_s":41,"device":"S1","user":0,"process":"x","pid":1,"start":2,"source":"smaps_rollup","pss_kb":5}` + "\n"
	for scale, c := range map[string]struct {
		want    float64
		warning string
	}{
		`"time_scale":1`:      {1, ""},
		`"time_scale":200`:    {200, ""},
		`"time_scale":0`:      {1, "key devices[0].time_scale is 0, assumed 1"},
		`"time_scale":-3`:     {1, "key devices[0].time_scale is -3, assumed 1"},
		`"time_scale":5e-324`: {1, "key devices[0].time_scale is 5e-324, assumed 1"},
		`"time_scale":1e300`:  {1, "key devices[0].time_scale is 1e+300, assumed 1"},
		`"time_scale":null`:   {1, "key devices[0].time_scale is null, assumed 1"},
		`"tempo":7`:           {1, "missing key devices[0].time_scale, assumed 1"},
	} {
		run, _, err := rebuildOf(t, []byte(strings.Replace(headerLine, `"time_scale":1`, scale, 1)+line))
		if err != nil {
			t.Errorf("%s: %v", scale, err)
			continue
		}
		lasted := time.Duration(40 / c.want * float64(time.Second))
		if got := run.Devices[0].TimeScale; got != c.want || run.Ended.Sub(run.Started) != lasted {
			t.Errorf("%s: got time scale %g, want %g; run from %v to %v, want %v", scale, got, c.want, run.Started,
				run.Ended, lasted)
		}
		if said := strings.Join(run.Warnings, "\n"); !strings.Contains(said, c.warning) || c.warning == "" &&
			said != "" {
			t.Errorf("%s: %q", scale, said)
		}
	}
}

// Each process takes memory until the end, and each line of a file may name a
// different process. If the last processes were dropped, a run could pass
// although they leak, so too many processes are an error.
func TestRebuildBoundsProcesses(t *testing.T) {
	text := []byte(headerLine)
	for i := range MaxProcesses {
		text = fmt.Appendf(text, `{"t_s":1,"up_s":2,"device":"S1","process":"p%d","source":"smaps","pss_kb":5}`+"\n", i)
	}
	if run, _, err := rebuildOf(t, text); err != nil || len(run.Processes) != MaxProcesses {
		t.Errorf("%d processes, %v", len(run.Processes), err)
	}
	text = append(text, `{"t_s":1,"up_s":2,"device":"S1","process":"more","source":"smaps","pss_kb":5}`+"\n"...)
	if _, _, err := rebuildOf(t, text); err == nil ||
		!strings.Contains(err.Error(), "more than 10000 processes in samples.ndjson") {
		t.Errorf("one process too many: got error %v", err)
	}
}

// Whatever the lines contain, a rebuild returns an error or a run that can be
// written and read again.
func FuzzRebuild(f *testing.F) {
	header := headerLine
	for _, lines := range []string{
		`{"t_s":1,"up_s":2,"device":"S1","user":0,"process":"x","pid":1,"start":2,"source":"smaps_rollup","pss_kb":5}`,
		`{"t_s":1,"up_s":2,"device":"S1","process":"x","source":"dumpsys","breakdown":{"total_pss_kb":7}}`,
		`{"t_s":1,"up_s":1e300,"device":"S1","event":"reboot"}` + "\n" +
			`{"t_s":-5,"up_s":0,"device":"S1","event":"restart","process":"x"}`,
		`{"t_s":1,"up_s":2,"device":"S1","event":"gap","process":"x","user":10,"duration_s":-1e308}`,
		`{"event":"stopped","text":"duration","usage":{}}`,
	} {
		f.Add([]byte(header + lines + "\n"))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		run, _, err := rebuildOf(t, text)
		if err != nil {
			return
		}
		dir := t.TempDir()
		if err := record.WriteRun(dir, run); err != nil {
			t.Fatal(err)
		}
		again, err := record.ReadRun(dir)
		if err != nil {
			t.Fatal(err)
		}
		before, _ := json.Marshal(run)
		after, _ := json.Marshal(again)
		if !bytes.Equal(before, after) {
			t.Errorf("read back:\n%s\nwritten:\n%s", after, before)
		}
	})
}

// Unknown entries from another version neither add a process nor change a time.
func TestRebuildOfAnotherVersion(t *testing.T) {
	text := `{"schema":"leakgate.samples/1","started":"2026-01-02T03:04:05Z","devices":[{"device":"S1"}],"new":1,` +
		articlePlan + "}\n" +
		`{"t_s":1,"up_s":2,"device":"S1","event":"celebrated","process":"a","with":"cake"}` + "\n" +
		`{"t_s":60,"up_s":61,"device":"S1","event":"end"}` + "\n"
	run, warnings, err := rebuildOf(t, []byte(text))
	if err != nil || len(warnings) != 5 || warnings[4].Error() != `line 1 of samples.ndjson: unknown key "new"` ||
		len(run.Processes) != 0 || run.Ended.Sub(run.Started) != time.Minute {
		t.Errorf("%+v, %v, %v", run, warnings, err)
	}
}

// If a file contains response lines that no run writes, the rebuild returns an
// error or a run that can be written.
func TestRebuildHostileLines(t *testing.T) {
	header := headerLine
	found := `{"t_s":1,"up_s":2,"device":"S1","event":"found","process":"x","pid":1,"start":2,"source":"smaps_rollup"}` + "\n"
	var many strings.Builder
	for i := range 700 {
		fmt.Fprintf(&many,
			`{"t_s":%d,"up_s":%d,"device":"S1","event":"diagnose","process":"x","diagnosis":{"trigger":"leak","folder":"artifacts/%d","t_s":-1e308}}`+"\n", i, i, i)
	}
	for name, lines := range map[string]string{
		"a diagnosis of an unknown process": `{"t_s":1,"up_s":2,"device":"S1","event":"diagnose","process":"y","diagnosis":{"trigger":"leak"}}`,
		"a diagnosis before the run":        `{"t_s":1,"up_s":2,"device":"S1","event":"diagnose","process":"x","diagnosis":{"trigger":"leak","t_s":-1e308,"duration_s":1e308}}`,
		"an analysis without a diagnosis":   `{"t_s":1,"up_s":2,"device":"S1","event":"diagnosed","process":"x","retry":true}`,
		"many diagnoses":                    many.String(),
		"two diagnoses without a folder":    `{"t_s":1,"up_s":2,"device":"S1","event":"diagnose","process":"x","diagnosis":{}}` + "\n" + `{"t_s":1,"up_s":2,"device":"S1","event":"diagnosed","process":"x","diagnosis":{"findings":[{"share":1e308}]}}`,
		"a negative pause":                  `{"t_s":1,"up_s":2,"device":"S1","event":"pause","process":"x","duration_s":-31536000}`,
		"impossible headroom":               `{"t_s":1,"up_s":2,"device":"S1","event":"headroom","process":"x","headroom":{"files":-1,"file_limit":0,"threads":9223372036854775807,"thread_limit":-9223372036854775808,"virtual_bytes":9223372036854775807,"virtual_limit_bytes":1,"java_limit_bytes":9223372036854775807}}`,
		"a heap without a limit":            `{"t_s":1,"up_s":2,"device":"S1","process":"x","source":"dumpsys","breakdown":{"total_pss_kb":7,"java_alloc_kb":9223372036854775807}}`,
	} {
		t.Run(name, func(t *testing.T) {
			run, _, err := rebuildOf(t, []byte(header+found+lines+"\n"))
			if err != nil {
				return
			}
			if err := record.WriteRun(t.TempDir(), run); err != nil {
				t.Error(err)
			}
			if err := record.WriteLeaks(t.TempDir(), run); err != nil {
				t.Error(err)
			}
			if len(run.Diagnoses) > maxDiagnoses {
				t.Errorf("%d diagnoses", len(run.Diagnoses))
			}
		})
	}
}
