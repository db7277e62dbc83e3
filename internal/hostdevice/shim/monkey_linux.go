package shim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
	"github.com/leakgate/leakgate/internal/hostdevice/state"
)

// eventCost is the device time that an event takes without a throttle.
const eventCost = 5 * time.Millisecond

// monkey prints what Android's UI exerciser would print, and takes as long as
// that tool on the device's clock. It sends no events, because there is no
// screen, and starts no app.
func monkey(c command) int {
	m, problem := androidtext.ParseMonkey(c.args, rand.Int64N(1<<41))
	if problem != "" {
		fmt.Fprint(c.err, problem)
		return 255
	}
	installed, err := c.dir.Property(state.PackageProperty)
	if err != nil {
		return fail(c.err, "monkey", err)
	}
	api, err := c.dir.API()
	if err != nil {
		return fail(c.err, "monkey", err)
	}
	clock, err := c.dir.Clock()
	if err != nil {
		return fail(c.err, "monkey", err)
	}
	fmt.Fprint(c.out, m.Begin(api, c.args))
	if slices.ContainsFunc(m.Packages, func(p string) bool { return p != installed }) {
		// Monkey.java exits with -4 here.
		fmt.Fprint(c.out, androidtext.MonkeyNoActivities)
		return 252
	}
	began := time.Now()
	for done := 0; done < m.Events; {
		n := min(androidtext.MonkeyChunk, m.Events-done)
		time.Sleep(clock.Real(time.Duration(n) * max(m.Throttle, eventCost)))
		done += n
		fmt.Fprint(c.out, m.Progress(done))
	}
	fmt.Fprint(c.out, m.End(time.Duration(float64(time.Since(began))*clock.Scale)))
	return 0
}
