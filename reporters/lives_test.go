package reporters

import (
	"testing"

	"github.com/leakgate/leakgate/reporters/record"
)

// The headline must mention the restarts. The reason in the next line must not
// repeat the restarts.
func TestReasonBesideRestarts(t *testing.T) {
	deaths := map[string]int{"out_of_memory": 2}
	for _, c := range []struct {
		p    record.Process
		want string
	}{
		{
			record.Process{
				Restarts: 2, DeathsByReason: deaths,
				Reason: "restarted 2 times (2 out of memory): died 2 times of memory; grew 5 MB",
			}, "died 2 times of memory; grew 5 MB",
		},
		{
			record.Process{Restarts: 7, Reason: "restarted 7 times; no growth in 8 lives; a leak of 34 MB/h"},
			"no growth in 8 lives; a leak of 34 MB/h",
		},
		{record.Process{Restarts: 1, Reason: "restarted 1 time"}, "restarted 1 time"},
		{record.Process{Restarts: 1, Reason: "no sustained growth: all is well"}, "no sustained growth: all is well"},
		{record.Process{Reason: "restarted 2 times; as reported"}, "restarted 2 times; as reported"},
	} {
		if got := whyBesideLives(c.p); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
