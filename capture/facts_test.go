package capture

import "testing"

// A time scale divides and multiplies durations: what would overflow them is refused.
func TestParseScale(t *testing.T) {
	for text, want := range map[string]float64{"": 1, "1": 1, "200": 200, "0.5": 0.5, "0.0001": 0.0001, "10000": 10000} {
		if got, err := parseScale(text); got != want || err != nil {
			t.Errorf("%q: %g, %v", text, got, err)
		}
	}
	for _, text := range []string{"0", "-1", "5e-324", "0.00009", "10001", "Inf", "NaN", "1x", "x"} {
		if got, err := parseScale(text); err == nil {
			t.Errorf("%q: %g", text, got)
		}
	}
}
