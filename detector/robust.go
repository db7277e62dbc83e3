package detector

import (
	"errors"
	"time"
)

// Robust is the constants of policy "robust" that a user may change. What decides is
// not here: those constants belong together and were calibrated together, see
// docs/detector.md.
type Robust struct {
	// Revision counts the changes of the rules, so that a recorded run tells by which
	// it was judged.
	Revision int
	// The intervals of the fast channel in the states.
	NormalInterval, SuspiciousInterval, LeakingInterval time.Duration
	// Cooldown is the shortest time between two diagnoses.
	Cooldown time.Duration
	// MaxGap is the longest hole in a series that a trend crosses.
	MaxGap time.Duration
}

const robustRevision = 1

func defaultRobust() Robust {
	return Robust{
		Revision:       robustRevision,
		NormalInterval: 30 * time.Second, SuspiciousInterval: 15 * time.Second, LeakingInterval: 60 * time.Second,
		Cooldown: 30 * time.Minute, MaxGap: 30 * time.Minute,
	}
}

func (r Robust) validate() error {
	return errors.Join(
		within("revision", r.Revision, 1, robustRevision),
		within("interval", r.NormalInterval, time.Millisecond, time.Hour),
		within("interval", r.SuspiciousInterval, time.Millisecond, time.Hour),
		within("interval", r.LeakingInterval, time.Millisecond, time.Hour),
		within("cooldown", r.Cooldown, 0, 1000*time.Hour),
		within("gap", r.MaxGap, time.Minute, 24*time.Hour),
	)
}
