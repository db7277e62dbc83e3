package replay

import (
	"errors"
	"fmt"
	"io"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/reporters/record"
)

// readLines reads the samples.ndjson of a run, even if the run was killed. If
// the policy is the one that the run used, the constants of the run apply.
func readLines(in io.Reader, o Options, limit int) (*recording, error) {
	r := &recording{}
	var header bool
	_, warnings, err := ledger.Read(in, func(h record.Header) (*ledger.Ledger, error) {
		header = true
		policy := o.Policy
		if had, err := ledger.PolicyOf(h); err != nil {
			r.warnings = append(r.warnings,
				fmt.Sprintf("line 1 of %s: %v; judged with the defaults of policy %s", record.SamplesName, err,
					policy.Name))
		} else if had.Name == policy.Name {
			policy = had
		}
		if o.MustSee > 0 {
			plan := record.Plan{}
			if h.Plan != nil {
				plan = *h.Plan
			}
			plan.MustSee = o.MustSee / detector.MB
			h.Plan = &plan
		}
		l, err := ledger.New(h, policy)
		if err != nil {
			return nil, err
		}
		l.Limit = limit
		l.Opened = func(a *ledger.Account) { r.add(a, o) }
		l.OpenedApp = func(x *ledger.AppSum) { r.addApp(x, o) }
		r.ledger = l
		return l, nil
	})
	if err != nil && !header {
		err = fmt.Errorf("%w; name the %s of a run, or a table with a header such as t_s,pss_kb", err,
			record.SamplesName)
	}
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		r.warnings = append(r.warnings, w.Error())
	}
	if r.samples() == 0 {
		why := "no line holds a sample with pss_kb, rss_anon_kb or a breakdown"
		if len(r.warnings) > 0 {
			why = r.warnings[0]
		}
		return nil, errors.New("no usable number: " + why)
	}
	return r, nil
}
