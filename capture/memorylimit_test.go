package capture

import (
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/known"
)

// An exempt process has no limit; without a usable response the limit is
// unknown.
func TestExemptFromTheMemoryLimiter(t *testing.T) {
	const status = "Memory limiter\n enabled limits=true monitoring=true killing=true ignored=none\n " +
		"visibleMem=300MB visibleSwap=100MB notVisibleMem=200MB notVisibleSwap=50MB\n"
	for name, c := range map[string]struct {
		status, ram string
		uid         int
		adj         known.Int
		limit       known.Int
		reason      string
	}{
		"visible":            {status, "", 10123, known.Of(100), known.Of(400 << 20), ""},
		"foreground service": {status, "", 10123, known.Of(200), known.Of(250 << 20), ""},
		"unknown state":      {status, "", 10123, known.Int{}, known.Of(400 << 20), ""},
		"cached": {
			status, "", 10123, known.Of(900), known.Int{}, "does not limit a process of this importance",
		},
		"persistent": {
			status, "", 10123, known.Of(-800), known.Int{}, "does not limit a process of this importance",
		},
		"system process": {status, "", 1001, known.Of(0), known.Int{}, "ignores the process"},
		"other user":     {status, "", 1010123, known.Of(0), known.Of(400 << 20), ""},
		"app ignored": {
			strings.Replace(status, "ignored=none", "ignored=10123", 1), "", 10123, known.Of(0), known.Int{},
			"ignores the process",
		},
		"all apps ignored": {
			strings.Replace(status, "ignored=none", "ignored=all", 1), "", 10123, known.Of(0), known.Int{},
			"ignores the process",
		},
		"does not kill": {
			strings.Replace(status, "killing=true", "killing=false", 1), "", 10123, known.Of(0), known.Int{},
			"does not kill",
		},
		"no numbers": {
			"Memory limiter\n enabled\n", "", 10123, known.Of(0), known.Int{},
			"does not report the limit of a visible process",
		},
		"no answer, 4 GB": {
			"", "MemTotal:        3900000 kB\n", 10123, known.Of(0), known.Of(3072 << 20), "assumed from the RAM",
		},
		"no answer, 12 GB": {
			"", "MemTotal:       11866316 kB\n", 10123, known.Of(200), known.Of(8192 << 20), "assumed from the RAM",
		},
		"no answer, 2 GB": {
			"", "MemTotal:        2013496 kB\n", 10123, known.Of(0), known.Int{},
			"does not report the limits of its memory limiter",
		},
		"no answer, RAM unknown": {
			"", "grep: /proc/meminfo: Permission denied\n", 10123, known.Of(0), known.Int{},
			"does not report the limits of its memory limiter",
		},
	} {
		h := NewHeadrooms(nil, Facts{API: 37})
		h.phone.limiter = h.readLimiter(map[string][]byte{"limiter": []byte(c.status), "ram": []byte(c.ram)})
		room := Headroom{Target: Target{Process: Process{Name: "a", UID: c.uid}}}
		h.anonymousLimit(&room, c.adj)
		if room.AnonymousLimit != c.limit || !strings.Contains(strings.Join(room.Reasons, ""), c.reason) ||
			(len(room.Reasons) == 0) != (c.reason == "") {
			t.Errorf("%s: %v, %q", name, room.AnonymousLimit, room.Reasons)
		}
	}
	for line, want := range map[string]known.Int{
		"MemTotal: 0 kB": {}, "MemTotal: -5 kB": {}, "MemTotal: 5 MB": {}, "MemTotal: 9999999999999999999999 kB": {},
		"": {}, "MemTotal: 2 kB": known.Of(2048),
	} {
		if got := memTotal([]byte(line)); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}
