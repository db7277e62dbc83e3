package detector

import (
	"errors"
	"fmt"
	"time"
)

// MB is the megabyte of every threshold and message: 1024 kB of 1024 bytes,
// because Android's kB figures are units of 1024 bytes.
const MB = 1 << 20

// The names of the policies.
const (
	// PolicyArticle follows the article whose rules and constants
	// docs/article.md lists.
	PolicyArticle = "article"
	// PolicyRobust is the default; docs/detector.md lists its measured alarm
	// rates.
	PolicyRobust = "robust"
)

// Policy is a set of rules, together with the constants that a user may change.
// The other constants depend on each other and are part of the rules.
type Policy struct {
	// Name selects the rules: PolicyRobust or PolicyArticle.
	Name string
	// Revision counts the changes of the rules, so that a recorded run states
	// the rules that judged it.
	Revision int
	// The sampling intervals per state; CONFIRMING uses the interval of
	// SUSPICIOUS.
	NormalInterval, SuspiciousInterval, LeakingInterval time.Duration
	// Cooldown is the minimum time between two diagnoses.
	Cooldown time.Duration
	// MaxGap is the longest gap that a trend of policy "robust" may cross. In
	// policy "article" no trend crosses a gap.
	MaxGap time.Duration
}

// policyRevision is the current revision of the rules.
const policyRevision = 1

// DefaultPolicy returns [RobustPolicy].
func DefaultPolicy() Policy { return RobustPolicy() }

// RobustPolicy returns policy "robust" with its default constants.
func RobustPolicy() Policy { return named(PolicyRobust) }

// ArticlePolicy returns policy "article" with the article's intervals and
// cooldown.
func ArticlePolicy() Policy { return named(PolicyArticle) }

// named returns the policy of the given name with the default constants, which
// both policies share.
func named(name string) Policy {
	return Policy{
		Name: name, Revision: policyRevision,
		NormalInterval: 30 * time.Second, SuspiciousInterval: 15 * time.Second, LeakingInterval: 60 * time.Second,
		Cooldown: 30 * time.Minute, MaxGap: 45 * time.Minute,
	}
}

// Validate returns an error that lists everything that makes a policy unusable.
func (p Policy) Validate() error {
	if p.Name != PolicyRobust && p.Name != PolicyArticle {
		return fmt.Errorf("unknown policy %q: want %s or %s", p.Name, PolicyArticle, PolicyRobust)
	}
	return errors.Join(
		within("revision", p.Revision, 1, policyRevision),
		within("interval", p.NormalInterval, time.Millisecond, time.Hour),
		within("interval", p.SuspiciousInterval, time.Millisecond, time.Hour),
		within("interval", p.LeakingInterval, time.Millisecond, time.Hour),
		within("cooldown", p.Cooldown, 0, 1000*time.Hour),
		within("gap", p.MaxGap, time.Minute, 24*time.Hour),
	)
}

func within[T int | time.Duration](name string, v, low, high T) error {
	if v >= low && v <= high {
		return nil
	}
	return fmt.Errorf("invalid %s %v: must be from %v to %v", name, v, low, high)
}
