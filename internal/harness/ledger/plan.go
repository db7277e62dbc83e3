package ledger

import (
	"errors"
	"fmt"
	"strings"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// PolicyOf returns the policy of the run with this header. There is no default
// policy.
func PolicyOf(h record.Header) (detector.Policy, error) {
	if h.Plan == nil || h.Plan.Policy == "" {
		return detector.Policy{}, errors.New("read the policy of the run: the plan in its header has no policy")
	}
	policy := h.Plan.DetectorPolicy()
	if err := policy.Validate(); err != nil {
		return detector.Policy{}, fmt.Errorf("read the policy of the run: %w", err)
	}
	return policy, nil
}

// headerError describes an unusable header.
func headerError(h record.Header, err error) error {
	because := ""
	if len(h.Warnings) > 0 {
		because = fmt.Sprintf(" (%s)", strings.Join(h.Warnings, "; "))
	}
	return fmt.Errorf("%w%s: restore the first line of %s", err, because, record.SamplesName)
}
