package detector

import (
	"strings"
	"testing"
	"time"
)

// TestLongerRun checks that the advised duration is longer than the present
// run, long enough to prove a leak of the given rate, and at most a quarter
// longer than necessary.
func TestLongerRun(t *testing.T) {
	for _, rate := range []float64{0, 1, 2.5, 5, 10, 20, 50, 120, 600} {
		for _, present := range []time.Duration{30 * time.Minute, time.Hour, 4 * time.Hour, 12 * time.Hour} {
			words := strings.SplitN(
				strings.TrimPrefix(new(robustMachine).advice(longerHours(rate, present)), "run for "), ",", 2)
			advised, err := time.ParseDuration(strings.NewReplacer(" min", "m", " ", "").Replace(words[0]))
			if err != nil {
				t.Fatalf("%g MB/h after %v: %v", rate, present, err)
			}
			hours := advised.Hours()
			if grows := max(rate, leastGrowth/8) * hours; grows < needed(hours) {
				t.Errorf("%g MB/h after %v: grows %.0f MB in %v, a proof needs %.0f MB", rate, present, grows, advised,
					needed(hours))
			}
			if advised <= present || hours > 1.25*max(8, present.Hours())+0.17 {
				t.Errorf("%g MB/h after %v: advises %v", rate, present, advised)
			}
		}
	}
}

// TestAdviceToSettle checks that a run that is flat from a given time on has
// settled after the advised time, and not much sooner.
func TestAdviceToSettle(t *testing.T) {
	for _, since := range []time.Duration{
		0, 17 * time.Minute, time.Hour, 4 * time.Hour, 6 * time.Hour, 20 * time.Hour,
	} {
		settles := func(hours float64) bool {
			flat := time.Duration(hours*float64(time.Hour)) - since
			return flat >= settledTime && flat.Hours() >= settledPart*hours
		}
		if h := settledHours(since); !settles(h) || settles(0.95*h) {
			t.Errorf("flat since %v: %.2f h", since, h)
		}
	}
	m := &robustMachine{restarts: 1}
	if got := m.advice(3.01); got != "run for 3.2 h without a restart, or compare with --base" {
		t.Error(got)
	}
}
