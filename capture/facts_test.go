package capture

import "testing"

// Durations are multiplied and divided by the time scale: values that would
// cause an overflow are rejected.
func TestParseScale(t *testing.T) {
	for text, want := range map[string]float64{"": 1, "1": 1, "1.5": 1.5, "200": 200, "10000": 10000} {
		if got, ok := parseScale(text); got != want || !ok {
			t.Errorf("%q: %g, %t", text, got, ok)
		}
	}
	for _, text := range []string{
		"0", "-1", "5e-324", "0.5", "0.9999", "0.000001", "1e-300", "10001", "Inf", "NaN", "1x", "x",
	} {
		if got, ok := parseScale(text); ok || got != 1 {
			t.Errorf("%q: %g", text, got)
		}
	}
}
