package monitor

import (
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// siblingInterval is the device time between two searches for siblings.
	// Each search reads one file of every process of the device.
	siblingInterval = 10 * time.Minute
	// maxSiblings is the maximum number of siblings in the record.
	maxSiblings = 20
)

// siblings records which processes of the app are not watched because no
// pattern matches their names (see [capture.FindSiblings]). A leak in such a
// process would otherwise remain unnoticed without any warning.
type siblings struct {
	*port
	// due is the time of the next search on the session's clock.
	due time.Duration
	// found is set once a process of the app has been found. failed means that
	// the latest search failed.
	found, failed bool
	// names are the names in the record.
	names []string
}

// firstFound reports whether the first processes of the app were just found.
// The next scan is then due early, so that a short run searches for siblings
// too, but without delaying the first sample.
func (s *siblings) firstFound() bool {
	first := !s.found
	s.found = true
	return first
}

// searchNow reports whether the next scan also searches for siblings.
func (s *siblings) searchNow() bool {
	return s.clock.now() >= s.due && len(s.subjects.order) > 0 && len(s.names) < maxSiblings
}

// take handles the result of a scan. A search that fails is repeated by the
// next scan; if it fails again, the error is recorded.
func (s *siblings) take(l scan) {
	switch {
	case !l.searched:
	case l.siblingsErr == nil:
		s.failed, s.due = false, s.clock.now()+siblingInterval
		s.record(l.siblings)
	case s.failed:
		s.due = s.clock.now() + siblingInterval
		s.recordFault(faultSiblings, l.siblingsErr)
	default:
		s.failed = true
	}
}

// record records the siblings that are not in the record yet.
func (s *siblings) record(found []capture.Process) {
	var names []string
	for _, p := range found {
		if len(s.names) < maxSiblings && !slices.Contains(s.names, p.Name) {
			names, s.names = append(names, p.Name), append(s.names, p.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	s.recordEvent(record.Event{
		Event: "unwatched", Unwatched: names,
		Text: "processes with the user ID of the app that are not watched: " + strings.Join(names, ", "),
	})
}
