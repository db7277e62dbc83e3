package monitor

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/reporters/record"
)

// recordedLines are the lines of a run with a leak, a restart, a hole, a reboot
// and a mark.
func recordedLines(t *testing.T) []byte {
	t.Helper()
	spec := leaky("com.shop:b", androidsim.Native, 200)
	spec.Models = append(spec.Models, androidsim.Crash(7*time.Minute, 20*time.Second))
	p := phone("S1", rooted(), leaky("com.shop", androidsim.Java, 300), spec)
	o := options(t, p)
	go func() {
		time.Sleep(32 * time.Minute)
		p.unplug(true)
		time.Sleep(3 * time.Minute)
		p.unplug(false)
		time.Sleep(5 * time.Minute)
		p.Reboot()
	}()
	o.Duration = 50 * time.Minute
	perform(t, t.Context(), o)
	text, err := os.ReadFile(filepath.Join(o.Dir, record.SamplesName))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func rebuildOf(t *testing.T, text []byte) (record.Run, []error, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, record.SamplesName), text, 0o644); err != nil {
		t.Fatal(err)
	}
	return Rebuild(dir)
}

// A run that is killed leaves a beginning of its lines. Every one of them is a
// run: with all whole samples, and no step that the whole run has not.
func TestRebuildEveryBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := recordedLines(t)
		whole, _, err := rebuildOf(t, text)
		if err != nil {
			t.Fatal(err)
		}
		header := bytes.IndexByte(text, '\n') + 1
		cuts := []int{header, len(text) - 1}
		r := rand.New(rand.NewPCG(1, 2))
		tried := 200
		if racing {
			tried = 20 // one goroutine does it all
		}
		for range tried {
			cuts = append(cuts, header+r.IntN(len(text)-header))
		}
		for _, cut := range cuts {
			run, doubts, err := rebuildOf(t, text[:cut])
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			torn := cut > header && text[cut-1] != '\n'
			if torn != (len(doubts) == 1) || run.Stopped != "killed" || !run.Interrupted || run.ExitCode != ExitInterrupted {
				t.Fatalf("cut at %d: %v %+v", cut, doubts, run)
			}
			checkBeginning(t, text[:cut], run, whole)
		}
	})
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
		if p.Process != full.Process || len(p.Transitions) > len(full.Transitions) || !reflect.DeepEqual(p.Transitions[:n], full.Transitions[:n]) {
			t.Fatalf("%d bytes: steps %+v, the whole run has %+v", len(text), p.Transitions, full.Transitions)
		}
	}
	if samples != readings {
		t.Fatalf("%d bytes: %d samples of %d lines", len(text), samples, readings)
	}
	if run.Ended.Before(run.Started) || run.Ended.After(whole.Ended.Add(time.Second)) {
		t.Fatalf("%d bytes: ended %v", len(text), run.Ended)
	}
}

// A replay by the policy that the run had says what run.json says, with times from
// each first sample, however many share the processes.
func TestReplayIsTheRebuild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := recordedLines(t)
		run, _, err := rebuildOf(t, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, shares := range []int{1, 2, 3} {
			for _, r := range sharedReplay(t, text, shares) {
				for x, p := range r {
					checkReplayed(t, x, p, run)
				}
			}
		}
	})
}

// sharedReplay replays a run in shares, process by process in turn, and gives the
// records of each.
func sharedReplay(t *testing.T, text []byte, shares int) []map[*Series]record.Process {
	t.Helper()
	replays := make([]*Replay, shares)
	series := make([]map[*Series]record.Process, shares)
	var share = map[string]int{}
	open := func(device string, p capture.Process) int {
		n, ok := share[p.Name]
		if !ok {
			n = len(share) % shares
			share[p.Name] = n
			x, err := replays[n].Open(device, p)
			if err != nil {
				t.Fatal(err)
			}
			series[n][x] = record.Process{}
		}
		return n
	}
	_, err := record.ReadSamples(bytes.NewReader(text), record.Lines{
		Header: func(h record.Header) error {
			policy, err := PolicyOf(h)
			for i := range replays {
				replays[i], err = NewReplay(h, policy)
				series[i] = map[*Series]record.Process{}
			}
			return err
		},
		Sample: func(s record.Sample) error {
			return replays[open(s.Device, capture.Process{Name: s.Process, User: s.User, PID: s.PID, Start: s.Start})].Sample(s)
		},
		Event: func(e record.Event) error {
			if e.Process != "" {
				return replays[open(e.Device, capture.Process{Name: e.Process, PID: e.PID, Start: e.Start})].Event(e)
			}
			for _, r := range replays {
				if err := r.Event(e); err != nil {
					return err
				}
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	last := replays[0].Last()
	for _, r := range replays {
		last = []float64{max(last[0], r.Last()[0])}
	}
	for i, r := range replays {
		r.Until(last)
		for x := range series[i] {
			series[i][x] = x.Record(len(share))
		}
	}
	return series
}

func checkReplayed(t *testing.T, x *Series, got record.Process, run record.Run) {
	t.Helper()
	for _, want := range run.Processes {
		if want.Process != got.Process {
			continue
		}
		if got.Samples != x.Samples() || got.Samples < 50 {
			t.Errorf("%s: %d samples, %d heard", got.Process, got.Samples, x.Samples())
		}
		if x.first < 0 || got.Duration < 40*60 || got.Duration > 50*60 {
			t.Errorf("%s: first sample at %g s, lasts %g s", got.Process, x.first, got.Duration)
		}
		got.Duration = want.Duration // of the latest incarnation there
		for i := range got.Transitions {
			got.Transitions[i].T = round(got.Transitions[i].T+x.first, 3)
		}
		for i := range got.Jumps {
			got.Jumps[i].T = round(got.Jumps[i].T+x.first, 3)
		}
		for _, at := range []*float64{got.FirstSuspicious, got.FirstLeaking} {
			if at != nil {
				*at = round(*at+x.first, 3)
			}
		}
		want.CPU, want.CostCPU, got.CPU, got.CostCPU = nil, nil, nil, nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: replayed\n%+v\nrebuilt\n%+v", got.Process, got, want)
		}
		return
	}
	t.Errorf("%s is not in the run", got.Process)
}

func TestRebuildRefuses(t *testing.T) {
	header := `{"schema":"leakgate.samples/1","started":"2026-01-02T03:04:05Z","devices":[{"device":"S1","model":"m","api":34,"started_up_s":1,"time_scale":1}]}` + "\n"
	for name, c := range map[string]struct{ text, want string }{
		"an empty file":       {"", "read samples header"},
		"half a header":       {header[:40], "read samples header"},
		"a strange device":    {header + `{"t_s":1,"up_s":2,"device":"S2","process":"x","source":"smaps"}` + "\n", `line 2: device "S2" is not in the header`},
		"no JSON":             {header + "x\n", "line 2"},
		"a device twice":      {strings.Replace(header, `"devices":[`, `"devices":[{"device":"S1"},`, 1), "stands twice"},
		"a policy of no kind": {strings.Replace(header, `}]}`, `}],"plan":{"policy":{"Name":"x"}}}`, 1), `find policy "x"`},
	} {
		if _, _, err := rebuildOf(t, []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := Rebuild(t.TempDir()); err == nil || !strings.Contains(err.Error(), "holds no run") {
		t.Errorf("an empty directory: %v", err)
	}
}

// Whatever the lines are, a rebuild gives an error or a run that can be written
// and read again.
func FuzzRebuild(f *testing.F) {
	header := `{"schema":"leakgate.samples/1","started":"2026-01-02T03:04:05Z","devices":[{"device":"S1","model":"m","api":34,"started_up_s":1,"time_scale":1}]}` + "\n"
	for _, lines := range []string{
		`{"t_s":1,"up_s":2,"device":"S1","user":0,"process":"x","pid":1,"start":2,"source":"smaps_rollup","pss_kb":5}`,
		`{"t_s":1,"up_s":2,"device":"S1","process":"x","source":"dumpsys","breakdown":{"total_pss_kb":7}}`,
		`{"t_s":1,"up_s":1e300,"device":"S1","event":"reboot"}` + "\n" + `{"t_s":-5,"up_s":0,"device":"S1","event":"restart","process":"x"}`,
		`{"t_s":1,"up_s":2,"device":"S1","event":"gap","process":"x","user":10,"lasted_s":-1e308}`,
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
			t.Errorf("read back\n%s\nwritten\n%s", after, before)
		}
	})
}
