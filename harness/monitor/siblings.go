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
	// names are the names in the record.
	names []string
}

// searchNow reports whether the next scan also searches for siblings.
func (s *siblings) searchNow() bool {
	now := s.clock.now()
	if now < s.due || len(s.subjects.order) == 0 || len(s.names) == maxSiblings {
		return false
	}
	s.due = now + siblingInterval
	return true
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
