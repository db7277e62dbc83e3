package ledger

import (
	"math"
	"time"

	"github.com/leakgate/leakgate/internal/detector/limit"
	"github.com/leakgate/leakgate/reporters/record"
)

// limits judges how close a process is to the limits at which it is killed.
type limits struct {
	watch    limit.Watch
	warnings []record.LimitWarning
	dropped  int // number of warnings beyond maxLimits
	// reasons explains why limits could not be read.
	reasons []string
	// javaLimit is the limit of the Java heap in bytes; 0 if it is unknown.
	// javaGarbage is the largest amount of memory in the heap that a collection
	// could free.
	javaLimit, javaGarbage int64
	// anonymousLimit is the limit of anonymous memory and swap in bytes; 0
	// means that there is no limit. anonymousAssumed reports whether the limit
	// is an assumption because it was not read from the device.
	anonymousLimit   int64
	anonymousAssumed bool
}

// maxLimits is the maximum number of warnings about one process; each approach
// to a limit causes one or two of them.
const maxLimits = 100

func (l *limits) addHeadroom(h record.Headroom, up time.Duration, seconds func(time.Duration) float64) {
	l.reasons = h.Reasons
	if h.JavaLimit != nil {
		l.javaLimit = *h.JavaLimit
	}
	if h.JavaGarbage != nil {
		l.javaGarbage = *h.JavaGarbage
	}
	l.anonymousLimit, l.anonymousAssumed = 0, h.AnonymousAssumed
	if h.AnonymousLimit != nil {
		l.anonymousLimit = *h.AnonymousLimit
	}
	if h.Anonymous != nil {
		l.addAnonymous(*h.Anonymous, up, seconds)
	}
	for _, u := range []struct {
		of         limit.Resource
		used, most *int64
	}{
		{limit.FileDescriptors, h.Files, h.FileLimit},
		{limit.Threads, h.Threads, h.ThreadLimit},
		{limit.AddressSpace, h.Virtual, h.VirtualLimit},
	} {
		if u.used != nil && u.most != nil {
			l.add(u.of, limit.Use{At: up, Used: *u.used, Limit: *u.most}, seconds)
		}
	}
}

// addBreakdown judges the Java heap in a breakdown. Breakdowns are read more
// often than the other limits. Judging them ensures that a collection between
// two readings of those limits is not missed.
func (l *limits) addBreakdown(b record.Breakdown, most bounds, up time.Duration, seconds func(time.Duration) float64) {
	if used := within(b.JavaAlloc, most.memory); used.Known && l.javaLimit > 0 {
		l.add(limit.JavaHeap, limit.Use{At: up, Used: used.N, Limit: l.javaLimit, Garbage: l.javaGarbage}, seconds)
	}
}

// addSample judges the anonymous memory in a sample. Samples are more frequent
// than readings of the limits.
func (l *limits) addSample(s record.Sample, most bounds, up time.Duration, seconds func(time.Duration) float64) {
	if resident := within(s.RSSAnon, most.memory); resident.Known {
		l.addAnonymous(resident.N+within(s.Swap, most.swap).N, up, seconds)
	}
}

func (l *limits) addAnonymous(bytes int64, up time.Duration, seconds func(time.Duration) float64) {
	if l.anonymousLimit > 0 {
		l.add(limit.AnonymousMemory,
			limit.Use{At: up, Used: bytes, Limit: l.anonymousLimit, Assumed: l.anonymousAssumed}, seconds)
	}
}

func (l *limits) add(of limit.Resource, u limit.Use, seconds func(time.Duration) float64) {
	for _, w := range l.watch.Add(of, u) {
		if len(l.warnings) == maxLimits {
			l.dropped++
			continue
		}
		out := record.LimitWarning{
			T: max(0, seconds(w.At)), Resource: w.Resource.String(), Used: w.Used, Limit: w.Limit, Urgent: w.Urgent,
			Assumed: w.Assumed, Text: w.Text,
		}
		if w.TimeKnown {
			out.TimeLeft = new(record.Round(w.TimeLeft.Seconds(), 0))
		}
		l.warnings = append(l.warnings, out)
	}
}

// standings returns the state of the process relative to each limit that was
// read.
func (l *limits) standings() []record.Standing {
	out := []record.Standing{}
	for _, st := range l.watch.State() {
		s := record.Standing{
			Resource: st.Resource.String(), Used: st.Used, Limit: st.Limit, Exceeded: st.Exceeded, Warned: st.Warned,
			Assumed: st.Assumed,
		}
		if st.LevelKnown && finite(st.Share) {
			s.Share = new(record.Round(st.Share, 4))
		}
		if st.Rate.Known && finite(st.Rate.PerHour) {
			s.Rate = new(record.Round(st.Rate.PerHour, 1))
		}
		if st.TimeKnown {
			s.TimeLeft = new(record.Round(st.TimeLeft.Seconds(), 0))
		}
		out = append(out, s)
	}
	return out
}

// finite reports whether JSON can represent a number.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
