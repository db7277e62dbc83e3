package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Unreadable lines must be reported with their numbers, and every other line
// must be delivered. The expected result is that of the same file without the
// unreadable lines.
func TestReadSamplesDamagedLines(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		text := []string{`{"schema":"leakgate.samples/1"}`}
		var want []string
		var lost []int
		for n := range 40 {
			switch r.IntN(6) {
			case 0:
				bad := []string{
					"x", `{"t_s":`, `{"t_s":"x"}`, `{"event":7}`, strings.Repeat("\x00", 70_000),
					strings.Repeat("9", maxLine+1), `{"event":"refused"}`,
				}
				text, lost = append(text, bad[r.IntN(len(bad))]), append(lost, n+2)
			case 1:
				text = append(text, " ")
			case 2:
				text, want = append(text, fmt.Sprintf(`{"t_s":%d,"event":"mark"}`, n)),
					append(want, fmt.Sprint("mark ", n))
			default:
				text, want = append(text, fmt.Sprintf(`{"t_s":%d}`, n)), append(want, fmt.Sprint("sample ", n))
			}
		}
		var got []string
		var told []int
		warnings, err := ReadSamples(strings.NewReader(strings.Join(text, "\n")+"\n"), Lines{
			Sample: func(s Sample) error { got = append(got, fmt.Sprint("sample ", s.T)); return nil },
			Event: func(e Event) error {
				if e.Event == "refused" {
					return errors.New("refused")
				}
				got = append(got, fmt.Sprint("mark ", e.T))
				return nil
			},
			Damaged: func(line int, why error) {
				if why == nil {
					t.Error("no reason")
				}
				told = append(told, line)
			},
		})
		if err != nil || len(warnings) > 0 || !slices.Equal(got, want) || !slices.Equal(told, lost) {
			t.Fatalf("delivered %q\nwant %q\ndamaged %v, want %v; %v %v", got, want, told, lost, warnings, err)
		}
	}
}

// A last line without a newline must be skipped with a warning, however long it
// is, because the run was killed while writing it. An endless line is an error.
func TestReadSamplesEndsOfDamage(t *testing.T) {
	header := `{"schema":"leakgate.samples/1"}` + "\n" + `{"t_s":1}` + "\n"
	none := Lines{Damaged: func(line int, why error) { t.Errorf("line %d: %v", line, why) }}
	warnings, err := ReadSamples(strings.NewReader(header+strings.Repeat("\x00", maxLine+100)), none)
	if err != nil || len(warnings) != 1 || warnings[0].Error() != "line 3 of samples.ndjson is truncated, skipped" {
		t.Errorf("%v, %v", warnings, err)
	}
	if _, err := ReadSamples(io.MultiReader(strings.NewReader(header), zeros{}), none); err == nil ||
		!strings.Contains(err.Error(), "line 3 is longer than") {
		t.Errorf("%v", err)
	}
	broken := io.MultiReader(strings.NewReader(header+"x\n"), brokenReader{})
	if _, err := ReadSamples(broken, Lines{Damaged: func(int, error) {}}); !errors.Is(err, errBroken) {
		t.Errorf("%v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

var errBroken = errors.New("input/output error")

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }

// For any file, a reader with a Damaged function must receive at least all
// lines that a reader without this function receives. No line may be delivered
// twice.
func FuzzReadDamagedSamples(f *testing.F) {
	f.Add([]byte(`{"schema":"leakgate.samples/1"}` + "\nx\n" + `{"t_s":1,"event":"mark"}` + "\n\n" +
		`{"t_s":1,"pss_kb":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, samples, events, _, err := read(text)
		delivered, damaged := 0, 0
		_, derr := ReadSamples(bytes.NewReader(text), Lines{
			Sample:  func(Sample) error { delivered++; return nil },
			Event:   func(Event) error { delivered++; return nil },
			Damaged: func(int, error) { damaged++ },
		})
		if err == nil && (derr != nil || damaged > 0 || delivered != len(samples)+len(events)) ||
			delivered < len(samples)+
				len(events) {
			t.Errorf("%d delivered, %d damaged, %v; without %d, %v", delivered, damaged, derr,
				len(samples)+len(events), err)
		}
		if n := bytes.Count(text, []byte("\n")); delivered+damaged > n {
			t.Errorf("got %d lines from an input of %d", delivered+damaged, n)
		}
	})
}
