package main

import "fmt"

// surprise is the significance level of loose mode: a bar is missed only if,
// given a true figure equal to the bar, the probability of such a bad count is
// at most surprise.
const surprise = 1e-4

// bars compares measured figures with their bars and collects the bars that
// were missed.
type bars struct {
	// loose means that a figure also passes if the number of runs is too small
	// to distinguish it from a figure equal to the bar.
	loose  bool
	at     string
	missed []string
}

func (b *bars) miss(format string, args ...any) {
	b.missed = append(b.missed, b.at+": "+fmt.Sprintf(format, args...))
}

// most requires a figure to be at most the given percentage; the bar is met if
// there are no runs to count.
func (b *bars) most(what string, hits, of int, percent float64) {
	if of == 0 || 100*float64(hits) <= percent*float64(of) {
		return
	}
	if b.loose && tail(hits, of, percent/100) > surprise {
		return
	}
	b.miss("%s in %s %% (%d of %d), at most %g %%", what, percentText(hits, of), hits, of, percent)
}

// least requires a figure to be at least the given percentage; the bar is
// missed, too, if there are no runs to count.
func (b *bars) least(what string, hits, of int, percent float64) {
	if of == 0 {
		b.miss("%s: no runs to count", what)
		return
	}
	if 100*float64(hits) >= percent*float64(of) {
		return
	}
	if b.loose && tail(of-hits, of, 1-percent/100) > surprise {
		return
	}
	b.miss("%s in %s %% (%d of %d), at least %g %%", what, percentText(hits, of), hits, of, percent)
}

// soon requires a time in minutes to be at most the bar; loose mode multiplies
// the bar by 1.5 and then adds 15 minutes.
func (b *bars) soon(what string, minutes, bar float64) {
	if b.loose {
		bar = 1.5*bar + 15
	}
	if minutes > bar {
		b.miss("%s after %s min, at most %s", what, timeText(minutes), timeText(bar))
	}
}
