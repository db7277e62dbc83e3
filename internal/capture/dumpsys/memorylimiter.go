package dumpsys

import (
	"math"
	"strings"

	"github.com/leakgate/leakgate/internal/known"
)

// MemoryLimiter is the output of am memory-limiter status, on Android 17 and
// later: how much anonymous memory and swap an app's process may use. Sizes are
// in bytes.
type MemoryLimiter struct {
	// Enabled reports whether the memory limiter is enabled. Kills reports
	// whether a process that exceeds its limits is killed. Limits, monitoring
	// and killing can each be disabled at run time.
	Enabled, Kills bool
	// Ignored is "none", "all" or the uid that is exempt from the limits.
	Ignored string
	// VisibleMemory and VisibleSwap are the limits of a process that is visible
	// to the user. NotVisibleMemory and NotVisibleSwap are the limits of a
	// background process. A process is killed if its memory and swap together
	// exceed the sum of its two limits.
	VisibleMemory, VisibleSwap       known.Int
	NotVisibleMemory, NotVisibleSwap known.Int
}

// ParseMemoryLimiter parses the output of MemoryLimiter.dump (frameworks/base
// services/core java/com/android/server/am/MemoryLimiter.java): "disabled", or
// "enabled" followed by KEY=VALUE words in columns. The error is a DeviceError;
// before Android 17 its kind is Unsupported.
func ParseMemoryLimiter(text []byte) (MemoryLimiter, error) {
	s, _ := input(text)
	words := strings.Fields(clip(s, maxErrorHead))
	if len(words) < 3 || words[0] != "Memory" || words[1] != "limiter" || words[2] != "enabled" &&
		words[2] != "disabled" {
		e := notAnAnswer([]byte(s), false)
		if e.Kind == Format && strings.Contains(e.Text, "Unknown command") {
			e.Kind = Unsupported
		}
		return MemoryLimiter{}, e
	}
	out := MemoryLimiter{Enabled: words[2] == "enabled", Ignored: "none"}
	out.Kills = out.Enabled
	for _, word := range words[3:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "limits", "monitoring", "killing":
			out.Kills = out.Kills && value == "true"
		case "ignored":
			out.Ignored = tidy(value, maxComm)
		case "visibleMem":
			out.VisibleMemory = megabytes(value)
		case "visibleSwap":
			out.VisibleSwap = megabytes(value)
		case "notVisibleMem":
			out.NotVisibleMemory = megabytes(value)
		case "notVisibleSwap":
			out.NotVisibleSwap = megabytes(value)
		}
	}
	return out, nil
}

// megabytes parses "1948MB" and returns bytes.
func megabytes(s string) known.Int {
	digits, ok := strings.CutSuffix(s, "MB")
	n, isNumber := wholeNumber(digits)
	if !ok || !isNumber || n > math.MaxInt64>>21 {
		return known.Int{}
	}
	return known.Of(n << 20)
}
