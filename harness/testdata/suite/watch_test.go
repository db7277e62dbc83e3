//go:build !plain

package suite

import (
	"cmp"
	"os"
	"strings"

	"github.com/leakgate/leakgate/harness"
)

var leaks = harness.Watch(cmp.Or(os.Getenv("SUITE_WATCHES"), "com.cart*"), options()...)

// options returns the options that SUITE_OPTIONS contains: NAME or NAME=VALUE,
// separated by commas.
func options() (out []harness.Option) {
	for _, word := range strings.FieldsFunc(os.Getenv("SUITE_OPTIONS"), func(r rune) bool { return r == ',' }) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "strict":
			out = append(out, harness.Strict())
		case "observe":
			out = append(out, harness.Observe())
		case "wait":
			out = append(out, harness.Wait())
		case "every":
			out = append(out, harness.EverySpec())
		case "config":
			out = append(out, harness.Config(value))
		case "accepted":
			out = append(out, harness.Accepted(value))
		case "artifacts":
			out = append(out, harness.Artifacts(value))
		case "device":
			out = append(out, harness.Devices(value))
		case "process":
			out = append(out, harness.Processes(value))
		default:
			panic("no option " + name)
		}
	}
	return out
}
