package detector

import "time"

// articleRules holds the constants of policy "article", each with the section
// of the article that it comes from.
type articleRules struct {
	// tMin and r2Min are the values that t and R2 of a rising line must exceed
	// (5.2).
	tMin, r2Min float64
	// consecutive is the number of consecutive windows that must agree (5.5).
	consecutive int
	// minPoints is the minimum number of points of a regression (8.1). In
	// CONFIRMING, three points are enough for a dimension (8.2).
	minPoints int
	// highWindow is the number of samples that are kept; lowWindow is the
	// number of breakdowns that are kept (4.3, 8.3).
	highWindow, lowWindow int
	// segment is the length of one floor; minSegments is the minimum number of
	// floors (5.3).
	segment     time.Duration
	minSegments int
	// suspiciousMax and confirmingMax are the timeouts of the two states (5.5,
	// 8.2).
	suspiciousMax, confirmingMax time.Duration
	// CONFIRMING requests extraBreakdowns breakdowns, extraSpacing apart (5.5,
	// 8.2).
	extraBreakdowns int
	extraSpacing    time.Duration
	// minGrowth is the minimum growth since SUSPICIOUS began, in bytes (5.5).
	minGrowth int64
	// A spike exceeds the floor by more than spikePct percent of the floor and
	// by more than spikeMin bytes (5.4).
	spikePct float64
	spikeMin int64
	// spikeMinPoints is the minimum number of samples from which the floor for
	// spikes is computed. The article states no number. With fewer samples,
	// every launch would be a spike.
	spikeMinPoints int
	// flatT is the value of t below which memory is considered not to rise
	// (5.4, GPU path).
	flatT float64
}

func defaultArticle() articleRules {
	return articleRules{
		tMin: 2.0, r2Min: 0.6, consecutive: 2, minPoints: 10,
		highWindow: 240, lowWindow: 60,
		segment: 5 * time.Minute, minSegments: 3,
		suspiciousMax: 30 * time.Minute, confirmingMax: 10 * time.Minute,
		extraBreakdowns: 3, extraSpacing: 30 * time.Second,
		minGrowth: 20 * MB, spikePct: 50, spikeMin: 200 * MB, spikeMinPoints: 5, flatT: 1.0,
	}
}

// firstPoints returns the number of samples that the consecutive windows need.
func (a *articleRules) firstPoints() int { return a.minPoints + a.consecutive - 1 }

// stages returns the shortest time from SUSPICIOUS to LEAKING: the floors and
// then the extra breakdowns.
func (a *articleRules) stages() time.Duration {
	return time.Duration(a.minSegments)*a.segment + time.Duration(max(0, a.extraBreakdowns-1))*a.extraSpacing
}
