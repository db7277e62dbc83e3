package ledger

import (
	"encoding/json"
	"fmt"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// PolicyOf is the policy that the run had; the default where the header does not
// tell it, as before leakgate wrote it there.
func PolicyOf(h record.Header) (detector.Policy, error) {
	policy := detector.ArticlePolicy()
	if h.Plan == nil || len(h.Plan.Policy) == 0 {
		return policy, nil
	}
	if err := json.Unmarshal(h.Plan.Policy, &policy); err != nil {
		return policy, fmt.Errorf("decode policy: %w", err)
	}
	return policy, policy.Validate()
}
