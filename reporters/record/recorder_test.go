package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
)

func header() Header {
	return Header{
		Schema: SamplesSchema, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Devices: []HeaderDevice{{Device: "S1", Model: "Pixel", API: 34, StartedUp: 1234.5, TimeScale: 1}},
	}
}

func lines() (samples []Sample, events []Event) {
	samples = []Sample{
		{
			T: 12.5, Up: 1247, Device: "S1", Process: "com.x", PID: 123, Start: 4567, Source: "smaps_rollup",
			PSS: new(int64(1)), SwapPSS: new(int64(0)), Threads: new(int64(30)), CostMS: 6,
		},
		{
			T: 13, Up: 1247.5, Device: "S1", Process: "com.x", PID: 123, Start: 4567, Source: "dumpsys", CostMS: 900,
			Breakdown: &Breakdown{TotalPSS: new(int64(99)), SwapInTotal: new(true)},
		},
	}
	events = []Event{
		{
			T: 14, Up: 1248.5, Device: "S1", Event: "state", User: new(0), Process: "com.x", PID: 123,
			From: new(detector.Normal), To: new(detector.Suspicious), Text: "rises",
		},
	}
	return samples, events
}

func record(t *testing.T, dir string) []byte {
	t.Helper()
	r, err := CreateRecorder(dir, header())
	if err != nil {
		t.Fatal(err)
	}
	samples, events := lines()
	for _, s := range samples {
		if err := r.AppendSample(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range events {
		if err := r.AppendEvent(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "samples.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func read(text []byte) (h Header, samples []Sample, events []Event, warnings []error, err error) {
	warnings, err = ReadSamples(bytes.NewReader(text), Lines{
		Header: func(first Header) error { h = first; return nil },
		Sample: func(s Sample) error { samples = append(samples, s); return nil },
		Event:  func(e Event) error { events = append(events, e); return nil },
	})
	return h, samples, events, warnings, err
}

func TestRecorderRoundTrip(t *testing.T) {
	text := record(t, t.TempDir())
	h, samples, events, warnings, err := read(text)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	wantSamples, wantEvents := lines()
	if !reflect.DeepEqual(h, header()) || !reflect.DeepEqual(samples, wantSamples) ||
		!reflect.DeepEqual(events, wantEvents) {
		t.Errorf("read back %+v %+v %+v", h, samples, events)
	}
}

// The names in samples.ndjson are a stable interface, and unknown values must
// be null.
func TestSampleLineNames(t *testing.T) {
	text := record(t, t.TempDir())
	line := strings.Split(string(text), "\n")[1]
	var got map[string]any
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"t_s", "up_s", "device", "user", "process", "pid", "start", "source", "pss_kb", "swap_pss_kb", "rss_anon_kb",
		"threads", "cost_ms",
	} {
		if _, ok := got[name]; !ok {
			t.Errorf("no %s in %s", name, line)
		}
	}
	if got["rss_anon_kb"] != nil || got["swap_pss_kb"] != 0.0 {
		t.Errorf("unknown and zero are not distinguished in %s", line)
	}
}

// The file of a run that was killed may end anywhere. No complete line may be
// lost, and no incomplete line may be used.
func TestReadSamplesTruncatedAnywhere(t *testing.T) {
	text := record(t, t.TempDir())
	wantSamples, wantEvents := lines()
	headerEnd := bytes.IndexByte(text, '\n') + 1
	for cut := headerEnd; cut <= len(text); cut++ {
		_, samples, events, warnings, err := read(text[:cut])
		if err != nil {
			t.Fatalf("truncated at %d: %v", cut, err)
		}
		whole := bytes.Count(text[headerEnd:cut], []byte("\n"))
		if len(samples)+len(events) != whole {
			t.Fatalf("truncated at %d: read %d lines, want %d", cut, len(samples)+len(events), whole)
		}
		if incomplete := text[cut-1] != '\n'; incomplete != (len(warnings) == 1) {
			t.Fatalf("truncated at %d: incomplete %v, warnings %v", cut, incomplete, warnings)
		}
		if !reflect.DeepEqual(samples, wantSamples[:len(samples):len(samples)]) && len(samples) > 0 {
			t.Fatalf("truncated at %d: samples differ", cut)
		}
		if len(events) > 0 && !reflect.DeepEqual(events, wantEvents) {
			t.Fatalf("truncated at %d: events differ", cut)
		}
	}
}

func TestReadSamplesErrors(t *testing.T) {
	good := `{"schema":"leakgate.samples/1"}` + "\n"
	for name, text := range map[string]string{
		"nothing":        "",
		"no header":      `{"t_s":1}` + "\n",
		"other schema":   `{"schema":"leakgate.samples/9"}` + "\n",
		"corrupt middle": good + `{"t_s":1,` + "\n" + `{"t_s":2}` + "\n",
		"wrong type":     good + `{"t_s":"x"}` + "\n",
		"long line":      good + strings.Repeat("x", maxLine+2) + "\n",
	} {
		if _, _, _, _, err := read([]byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzReadSamples(f *testing.F) {
	f.Add([]byte(`{"schema":"leakgate.samples/1"}` + "\n" + `{"t_s":1,"event":"mark"}` + "\n" +
		`{"t_s":1,"pss_kb":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, samples, events, _, err := read(text)
		if err == nil && h.Schema != SamplesSchema {
			t.Errorf("no error for a file without a header")
		}
		if n := bytes.Count(text, []byte("\n")); len(samples)+len(events) > n {
			t.Errorf("got %d lines from an input of %d", len(samples)+len(events), n)
		}
	})
}

func TestCreateRecorderNeverOverwrites(t *testing.T) {
	dir := t.TempDir()
	before := record(t, dir)
	if _, err := CreateRecorder(dir, header()); err == nil || !strings.Contains(err.Error(), "already holds a run") {
		t.Errorf("second run in the same directory: got error %v", err)
	}
	after, err := os.ReadFile(filepath.Join(dir, "samples.ndjson"))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the first run was changed (%v)", err)
	}
}

func TestRecorderKeepsTheFirstError(t *testing.T) {
	r, err := CreateRecorder(t.TempDir(), header())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.f.Close(); err != nil {
		t.Fatal(err)
	}
	first := r.AppendSample(Sample{})
	if first == nil || !errors.Is(r.AppendEvent(Event{}), first) {
		t.Errorf("the first error %v is not returned again", first)
	}
}

func TestRunRoundTrip(t *testing.T) {
	dir := t.TempDir()
	want := Run{
		Schema: RunSchema, Stopped: "duration",
		Processes: []Process{{Process: "com.x", Gate: detector.Pass, Rate: new(1.5), RateInterval: []float64{1, 2}}},
	}
	for range 2 { // the second file replaces the first
		if err := WriteRun(dir, want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadRun(dir)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("unexpected files: %v, %v", entries, err)
	}
}

func TestReadRunErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadRun(dir); err == nil {
		t.Error("no error for a missing file")
	}
	for _, text := range []string{"", "{", `{"schema":"other"}`} {
		if err := os.WriteFile(filepath.Join(dir, "run.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadRun(dir); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func BenchmarkRecorderSample(b *testing.B) {
	r, err := CreateRecorder(b.TempDir(), header())
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	samples, _ := lines()
	b.ReportAllocs()
	for b.Loop() {
		if err := r.AppendSample(samples[0]); err != nil {
			b.Fatal(err)
		}
	}
}
