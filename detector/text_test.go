package detector

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// Words are read back as what they stand for, and anything else is an error: a verdict
// that nobody gave must not pass for one.
func TestWordsOfAVerdict(t *testing.T) {
	type words struct {
		State State
		Kind  LeakKind
		Gate  Gate
	}
	for s := Normal; s <= Leaking; s++ {
		for k := None; k <= Thread; k++ {
			for _, g := range []Gate{Pass, Leak, Settled, Inconclusive} {
				want := words{s, k, g}
				text, err := json.Marshal(want)
				if err != nil {
					t.Fatal(err)
				}
				var got words
				if err := json.Unmarshal(text, &got); err != nil || got != want {
					t.Errorf("%s: %+v, %v", text, got, err)
				}
			}
		}
	}
	for _, text := range []string{`{"State":"normal"}`, `{"State":""}`, `{"State":1}`, `{"Kind":"leak"}`, `{"Gate":"LEAK"}`, `{"Gate":""}`} {
		if err := json.Unmarshal([]byte(text), new(words)); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

// A pass needs samples for half of the time; other verdicts stand.
func TestCoverage(t *testing.T) {
	d := New(RobustPolicy())
	for i := range 480 {
		d.AddSample(Sample{At: time.Duration(i) * 30 * time.Second, Bytes: 300 * MB})
	}
	for absent, want := range map[int]Gate{0: Pass, 120: Pass, 121: Inconclusive} {
		d.SetCoverage(time.Duration(absent)*time.Minute, 4*time.Hour)
		if v := d.Verdict(); v.Gate != want || (v.Gate == Inconclusive) != strings.HasPrefix(v.Because, "no samples for 2h1m of 4h0m: ") {
			t.Errorf("%d min absent: %s, %s", absent, v.Gate, v.Because)
		}
	}
}
