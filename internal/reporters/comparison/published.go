package comparison

import (
	"cmp"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// shortestSerial is the minimum length of a serial number that is searched for
// in messages; a shorter one could be an ordinary word.
const shortestSerial = 4

// published returns a copy of a comparison for publication. In the copy, the
// serial numbers that adb's messages contain are replaced with the published
// names of the devices.
func (c *Comparison) published() *Comparison {
	var serials []string
	for _, d := range c.Head.Devices {
		if len(d.Device) >= shortestSerial {
			serials = append(serials, d.Device)
		}
	}
	if len(serials) == 0 {
		return c
	}
	// If several serial numbers match, the longest one is replaced because it
	// is listed first.
	slices.SortStableFunc(serials, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, serial := range serials {
		pairs = append(pairs, serial, text.Head(c.deviceName(serial), maxName))
	}
	all := strings.NewReplacer(pairs...)
	// A name may be longer than the serial number that it replaces.
	rename := func(s string) string { return text.Head(all.Replace(s), maxText) }
	out := *c
	out.Text = rename(c.Text)
	out.Reasons, out.Processes, out.Leaks, out.Warnings = slices.Clone(c.Reasons), slices.Clone(c.Processes),
		slices.Clone(c.Leaks), slices.Clone(c.Warnings)
	for i := range out.Reasons {
		out.Reasons[i].Text = rename(out.Reasons[i].Text)
	}
	for i := range out.Processes {
		out.Processes[i].Trend = rename(out.Processes[i].Trend)
	}
	for i := range out.Leaks {
		r := &out.Leaks[i]
		r.Evidence, r.StatusReason, r.Pinned = rename(r.Evidence), rename(r.StatusReason), rename(r.Pinned)
	}
	for i := range out.Warnings {
		out.Warnings[i] = rename(out.Warnings[i])
	}
	return &out
}
