package dumpsys

import (
	"errors"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/known"
)

// The output in MemoryLimiter.md (frameworks/base services/core
// java/com/android/server/am), that of a later version of the code, and that of
// an emulator of API 37.
func TestMemoryLimiter(t *testing.T) {
	const documented = `Memory limiter
  enabled                  monitoring=true          ignored=none
  visibleMem=1948MB        visibleSwap=974MB        notVisibleMem=974MB      notVisibleSwap=487MB
  started=36               watched=36               watch-failed=0           events=0
  processes=36             process-hwm=36
`
	limits := MemoryLimiter{
		Enabled: true, Kills: true, Ignored: "none", VisibleMemory: known.Of(1948 << 20),
		VisibleSwap: known.Of(974 << 20), NotVisibleMemory: known.Of(974 << 20), NotVisibleSwap: known.Of(487 << 20),
	}
	with := func(change func(*MemoryLimiter)) MemoryLimiter {
		l := limits
		change(&l)
		return l
	}
	for name, c := range map[string]struct {
		text string
		want MemoryLimiter
	}{
		"documented": {documented, limits},
		"later": {
			strings.Replace(documented, "enabled ", "enabled limits=true killing=true ", 1), limits,
		},
		"carriage returns": {strings.ReplaceAll(documented, "\n", "\r\n"), limits},
		"disabled":         {"Memory limiter\n  disabled\n", MemoryLimiter{Ignored: "none"}},
		"limits off": {
			strings.Replace(documented, "enabled ", "enabled limits=false ", 1),
			with(func(l *MemoryLimiter) { l.Kills = false }),
		},
		"killing off": {
			strings.Replace(documented, "enabled ", "enabled killing=false ", 1),
			with(func(l *MemoryLimiter) { l.Kills = false }),
		},
		"monitoring off": {
			strings.Replace(documented, "monitoring=true", "monitoring=false", 1),
			with(func(l *MemoryLimiter) { l.Kills = false }),
		},
		"exempt uid": {
			strings.Replace(documented, "ignored=none", "ignored=10087", 1),
			with(func(l *MemoryLimiter) { l.Ignored = "10087" }),
		},
		"hostile": {
			strings.NewReplacer("1948MB", "-1MB", "974MB", "99999999999999999999MB", "487MB", "487GB", "none",
				"\x1b[2J").Replace(documented),
			MemoryLimiter{Enabled: true, Kills: true, Ignored: "?[2J"}},
	} {
		got, err := ParseMemoryLimiter([]byte(c.text))
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for text, kind := range map[string]Kind{
		"Unknown command: memory-limiter\n": Unsupported, "": Empty, "Memory limiter\n": Format,
		"Memory limiter\n  sleeping\n": Format,
	} {
		_, err := ParseMemoryLimiter([]byte(text))
		var e DeviceError
		if !errors.As(err, &e) || e.Kind != kind {
			t.Errorf("%q: %v", text, err)
		}
	}
}
