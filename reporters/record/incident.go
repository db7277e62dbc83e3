package record

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// Incident is a kind of process failure that can violate a rule of the gate: a
// crash, an ANR, or a death caused by memory.
type Incident struct {
	// Kind is crash, native_crash, anr, out_of_memory, memory_limiter, anomaly
	// or low_memory.
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	// First and Last are the times of the first and the last occurrence; Text
	// describes the last one.
	First float64 `json:"first_t_s"`
	Last  float64 `json:"last_t_s"`
	Text  string  `json:"text"`
}

// IncidentKinds returns the kinds of deaths and faults that count as incidents.
func IncidentKinds() []string {
	return []string{"crash", "native_crash", "anr", "out_of_memory", "memory_limiter", "anomaly", "low_memory"}
}

// reasonWords maps the reason for a death to its wording in reports, singular
// and plural.
var reasonWords = map[string][2]string{
	"crash": {"crash", "crashes"}, "native_crash": {"native crash", "native crashes"}, "anr": {"ANR", "ANRs"},
	"out_of_memory":  {"OutOfMemoryError", "OutOfMemoryErrors"},
	"memory_limiter": {"kill by the memory limiter", "kills by the memory limiter"},
	"anomaly":        {"kill for a memory anomaly", "kills for a memory anomaly"},
	"low_memory":     {"low-memory kill", "low-memory kills"},
	"kill":           {"kill", "kills"}, "exit": {"exit", "exits"}, "reboot": {"reboot", "reboots"},
	"unknown": {"for an unknown reason", "for unknown reasons"},
}

// DescribeDeaths describes how often the lives of a process ended for each
// reason, the most frequent first, such as "22 OutOfMemoryErrors, 8 crashes".
// It returns "" if the process never ended.
func DescribeDeaths(byReason map[string]int) string {
	reasons := slices.SortedFunc(maps.Keys(byReason), func(a, b string) int {
		return cmp.Or(cmp.Compare(byReason[b], byReason[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, reason := range reasons {
		n := byReason[reason]
		if n <= 0 {
			continue
		}
		words, ok := reasonWords[reason]
		if !ok {
			other := text.Printable(strings.ReplaceAll(reason, "_", " "))
			words = [2]string{other, other}
		}
		parts = append(parts, text.Count(n, words[0], words[1]))
	}
	return strings.Join(parts, ", ")
}
