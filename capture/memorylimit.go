package capture

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/known"
)

// memoryLimiterAPI is the first API level with the memory limiter (Android 17).
const memoryLimiterAPI = 37

// limiter is what the device reports about its memory limiter.
type limiter struct {
	dumpsys.MemoryLimiter
	// answered is false if the device's limits could not be read; the limits
	// for its RAM from memoryLimits are then assumed.
	answered bool
	said     string
}

// memoryLimits are the limits that Android recommends, by the RAM of the
// device, in MB (source.android.com/docs/core/perf/memory-limiter). The last
// entry whose ram does not exceed the RAM of the device applies
// (MemoryLimiter.java, getConfiguration). Devices with less RAM than the first
// entry have no limit.
var memoryLimits = []struct{ ram, visible, visibleSwap, notVisible, notVisibleSwap int64 }{
	{3200, 2048, 1024, 1024, 1024},
	{4800, 4096, 2048, 2048, 2048},
	{6800, 5120, 3072, 3072, 3072},
	{9216, 8192, 4096, 4096, 4096},
	{14336, 10240, 5120, 5120, 5120},
}

// limiterParts returns the commands that read the limits of the device. These
// commands call system_server, which may hang.
func (h *Headrooms) limiterParts() []shell.Part {
	if h.asked || h.facts.API < memoryLimiterAPI {
		return nil
	}
	return []shell.Part{{"ram", memTotalCommand}, {"limiter", "am memory-limiter status </dev/null 2>&1"}}
}

// readLimiter parses the output of limiterParts. It returns nil before Android
// 17.
func (h *Headrooms) readLimiter(parts map[string][]byte) *limiter {
	if h.facts.API < memoryLimiterAPI {
		return nil
	}
	status, err := dumpsys.ParseMemoryLimiter(parts["limiter"])
	l := &limiter{MemoryLimiter: status, answered: err == nil}
	if err == nil {
		return l
	}
	l.said = shell.Clip(err.Error())
	ram := memTotal(parts["ram"])
	for _, set := range memoryLimits {
		if ram.Known && ram.N >= set.ram<<20 {
			l.Enabled, l.Kills = true, true
			l.VisibleMemory, l.VisibleSwap = known.Of(set.visible<<20), known.Of(set.visibleSwap<<20)
			l.NotVisibleMemory, l.NotVisibleSwap = known.Of(set.notVisible<<20), known.Of(set.notVisibleSwap<<20)
		}
	}
	return l
}

const memTotalCommand = "grep MemTotal: /proc/meminfo"

// memTotal parses "MemTotal: 7864320 kB" and returns bytes.
func memTotal(line []byte) known.Int {
	words := strings.Fields(string(line))
	if len(words) != 3 || words[0] != "MemTotal:" || words[2] != "kB" {
		return known.Int{}
	}
	kb, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil || kb <= 0 {
		return known.Int{}
	}
	return inBytes(known.Of(kb))
}

// anonymousOf returns RssAnon plus VmSwap in bytes. VmSwap is missing if the
// kernel has no swap.
func anonymousOf(s procfs.Status) known.Int {
	anon, swap := inBytes(s.RssAnon), inBytes(s.VmSwap)
	if !anon.Known {
		return known.Int{}
	}
	return known.Of(anon.N + swap.N)
}

// firstAppUID is the first uid of apps (Process.FIRST_APPLICATION_UID);
// processes with a lower uid are exempt from the limits.
const firstAppUID = 10000

// exempt is the suffix of a reason for a process that has no limit, as opposed
// to an unknown limit.
const exempt = ", so the process does not run out of it"

// anonymousLimit sets how much anonymous memory and swap the process may use.
// The limiter also counts the shared memory of the process's cgroup, which is
// not in /proc/PID, so the limit may be reached earlier.
func (h *Headrooms) anonymousLimit(room *Headroom, oomScoreAdj known.Int) {
	l := h.phone.limiter
	if l == nil {
		return
	}
	const what = "anonymous memory"
	switch {
	case !l.answered && !l.Enabled:
		room.why(what, "the device does not report the limits of its memory limiter: "+l.said)
		return
	case !l.Enabled:
		room.why(what, "the device has no memory limiter"+exempt)
		return
	case !l.Kills:
		room.why(what, "the memory limiter of the device does not kill processes"+exempt)
		return
	case l.Ignored == "all", l.Ignored == strconv.Itoa(room.UID), room.UID%perUser < firstAppUID:
		room.why(what, "the memory limiter ignores the process"+exempt)
		return
	}
	memory, swap, word := l.VisibleMemory, l.VisibleSwap, "visible"
	switch {
	case !oomScoreAdj.Known: // the larger limit applies
	case oomScoreAdj.N < 0, oomScoreAdj.N >= cachedAdj:
		room.why(what, "the memory limiter does not limit a process of this importance"+exempt)
		return
	case oomScoreAdj.N >= perceptibleAdj:
		memory, swap, word = l.NotVisibleMemory, l.NotVisibleSwap, "background"
	}
	if !memory.Known || !swap.Known {
		room.why(what, fmt.Sprintf("the memory limiter does not report the limit of a %s process", word))
		return
	}
	room.AnonymousLimit, room.AnonymousAssumed = known.Of(memory.N+swap.N), !l.answered
	if room.AnonymousAssumed {
		room.why(what,
			"the limit is assumed from the RAM of the device, which does not report the limits of its memory limiter: "+
				l.said)
	}
}

const (
	// perceptibleAdj is the lowest oom_score_adj of foreground services, which
	// the memory limiter does not count as visible; cachedAdj is the lowest
	// oom_score_adj of cached processes, whose swap is not limited
	// (services/core am/psc/ProcessList.java and MemoryLimiter.java,
	// initializeMemoryLimits).
	perceptibleAdj = 200
	cachedAdj      = 900
)

// oomScoreAdj parses /proc/PID/oom_score_adj.
func (r headroomRound) oomScoreAdj(pid int) known.Int {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(r.files[file{pid, "oom_score_adj"}])), 10, 32)
	if err != nil {
		return known.Int{}
	}
	return known.Of(n)
}
