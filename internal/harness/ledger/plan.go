package ledger

import (
	"errors"
	"fmt"
	"strings"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// PolicyOf returns the policy that the run with this header had. There is no default.
func PolicyOf(h record.Header) (detector.Policy, error) {
	if h.Plan == nil || h.Plan.Policy == "" {
		return detector.Policy{}, errors.New("use the policy of the run: the plan of its header names none")
	}
	policy := h.Plan.DetectorPolicy()
	if err := policy.Validate(); err != nil {
		return detector.Policy{}, fmt.Errorf("use the policy of the run: %w", err)
	}
	return policy, nil
}

// headerError is a header that cannot be used.
func headerError(h record.Header, err error) error {
	because := ""
	if len(h.Warnings) > 0 {
		because = fmt.Sprintf(" (%s)", strings.Join(h.Warnings, "; "))
	}
	return fmt.Errorf("%w%s: restore the first line of %s", err, because, record.SamplesName)
}
