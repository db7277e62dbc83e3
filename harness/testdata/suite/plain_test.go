//go:build plain

package suite

import (
	"github.com/leakgate/leakgate/harness"
	. "github.com/onsi/ginkgo/v2"
)

// leaks replaces the watch but checks nothing, so the specs run as in a suite
// without Watch and Check.
var leaks unwatched

type unwatched struct{}

// nothing is a decorator without any effect.
var nothing = harness.Decorator{Label()}

func (unwatched) Check(...harness.CheckOption) harness.Decorator { return nothing }

func (unwatched) Known(harness.Identity, string, string, harness.Date) harness.Decorator {
	return nothing
}

func (unwatched) Skip(string) harness.Decorator { return nothing }
