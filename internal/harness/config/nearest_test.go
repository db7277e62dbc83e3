package config

import (
	"testing"
)

// TestDistanceAgainstSearch compares the distance with its definition: the
// length of the shortest sequence of single edits from one word to the other,
// found by exhaustive search.
func TestDistanceAgainstSearch(t *testing.T) {
	const letters, longest = "abc", 4
	words := []string{""}
	for i := 0; i < len(words); i++ {
		if len(words[i]) < longest {
			for _, l := range letters {
				words = append(words, words[i]+string(l))
			}
		}
	}
	for _, from := range words {
		ways := search(from, letters, longest)
		for _, to := range words {
			if got, want := distance([]rune(from), []rune(to)), ways[to]; got != want {
				t.Fatalf("from %q to %q: %d, not %d", from, to, got, want)
			}
		}
	}
}

// search performs a breadth-first search from one word and visits all words
// that are not much longer. It returns the number of edits to each of them.
func search(from, letters string, longest int) map[string]int {
	ways := map[string]int{from: 0}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		word := queue[0]
		reach := func(next string) {
			if _, ok := ways[next]; !ok && len(next) <= longest+1 {
				ways[next] = ways[word] + 1
				queue = append(queue, next)
			}
		}
		for i := 0; i <= len(word); i++ {
			for _, l := range letters {
				reach(word[:i] + string(l) + word[i:])
				if i < len(word) {
					reach(word[:i] + string(l) + word[i+1:])
				}
			}
			if i < len(word) {
				reach(word[:i] + word[i+1:])
			}
			if i+1 < len(word) {
				reach(word[:i] + word[i+1:i+2] + word[i:i+1] + word[i+2:])
			}
		}
	}
	return ways
}

func TestNearest(t *testing.T) {
	verbs := []string{"run", "watch", "demo", "mark", "replay", "parse", "report", "doctor", "config", "version"}
	keys := []string{"t", "r2", "spike", "options", "min_api", "device_command", "max"}
	for _, c := range []struct {
		word       string
		candidates []string
		want       string
	}{
		{"rnu", verbs, "run"},
		{"RUN", verbs, "run"},
		{"repaly", verbs, "replay"},
		{"reprot", verbs, "report"},
		{"prase", verbs, "parse"},
		{"confg", verbs, "config"},
		{"versiom", verbs, "version"},
		{"analyze", verbs, ""},
		{"x", verbs, ""},
		{"", verbs, ""},
		{"cd", keys, ""},
		{"min-api", keys, "min_api"},
		{"devicecomand", keys, "device_command"},
		{"dvcecommnd", keys, ""},
		{"device_cmmn", keys, "device_command"},
		{"ab", []string{"ac", "ab"}, "ab"},
		{"ax", []string{"ac", "ab"}, "ac"},
		{"run", nil, ""},
	} {
		got, ok := Nearest(c.word, c.candidates)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("nearest to %q is %q, want %q", c.word, got, c.want)
		}
	}
}
