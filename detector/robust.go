package detector

import "time"

// Constants of the live tier. "Calibrated" means that the value was chosen on
// simulated runs of the scenarios of docs/detector.md. The error rates were
// then measured on runs with different seeds.
const (
	// lookP is the probability that one look finds a significant rise in a
	// window of pure noise (correlated or not), before all other tests. keepP
	// is the same probability for the looks after a look that fired: they
	// confirm its finding, and need not find the growth independently.
	lookP, keepP = 1e-3, 1e-2
	// noiseRaise is the number of standard errors by which the noise is assumed
	// to be more correlated than measured. If it is too small, noise becomes
	// significant; if it is too large, leaks are found later. Calibrated.
	noiseRaise = 1.0
	// pooledRaise replaces noiseRaise if the noise was measured in more data
	// than the window.
	pooledRaise = 1.5
	// pooledWindows is the number of preceding windows that are used to measure
	// the correlation of the noise. They are used only for windows of up to
	// pooledMinutes, which are too short to measure the correlation.
	pooledWindows, pooledMinutes = 3, 60
	// lineBetter is the minimum advantage in BIC that a line (or a line after a
	// flat part) must have over every other shape. 2 is "positive evidence"
	// (Kass and Raftery 1995); 1 finds leaks sooner, and the later looks make
	// up for the weaker evidence.
	lineBetter = 1.0
	// keepBetter is like lineBetter, but for the later looks; in windows of
	// keepLong minutes and more, another shape may be better by up to
	// keepWorse.
	keepBetter, keepLong, keepWorse = 0.7, 90, 1.5
	// keepSteps is the maximum advantage in BIC that steps may have over the
	// line in later looks, because correlated noise looks like steps.
	// threeStepsCost is added to the BIC of three steps, because their
	// positions were chosen to fit the levels.
	keepSteps, threeStepsCost = 4.0, 3.0
	// A curve that fits better than the line is ignored if the rise is steady:
	// its t is at least steadyT, and the rise between the last two quarters is
	// at least steadyPace times the rise between the first two.
	steadyT, steadyPace = 30.0, 0.85
	// The level at the end of a window must exceed every level before the
	// window by at least recordPart of the growth plus recordSigmas times the
	// variation of those levels. If memory only returns to a level that it had
	// before, that is not a leak.
	recordPart, recordSigmas = 0.4, 2.0
	// explained is the share of the variance of the floors that the line must
	// explain to reach LEAKING. Calibrated on "realistic 2".
	explained = 0.675
	// A warm-up slows down. By the third look, memory must therefore have grown
	// by at least pacePart of the growth that the first look predicted, minus
	// paceSigmas times the variation of the floors. paceShortSigmas replaces
	// paceSigmas for windows up to pooledMinutes.
	pacePart, paceSigmas, paceShortSigmas = 0.5, 0.85, 0.4
	// shortProof is the factor by which the required growth is raised at the
	// third look, in windows up to shortMinutes. By the third look, memory that
	// rises and falls in waves has stopped rising.
	shortProof, shortMinutes = 1.15, 40
	// fadedLooks is the number of consecutive looks without evidence after
	// which LEAKING ends.
	fadedLooks = 3
)

// lookWindow is a window length that each look tests.
type lookWindow struct {
	minutes int
	// need is the required growth in MB. Long windows require growth at
	// leakRate. Short windows require more, because the sawtooth of a garbage
	// collector and the opening of a page also cause growth.
	need float64
	// blocks is the number of levels into which the window is divided.
	blocks int
}

// leakRate in MB/h is the slowest rise that the live tier reports.
const leakRate = 16

// lookWindows are tried in order, starting with the shortest; the first that
// shows a leak decides.
var lookWindows = [...]lookWindow{
	{15, 65, 24}, {20, 65, 24}, {25, 54, 24}, {30, 49, 24}, {40, 49, 24}, {60, 21, 24}, {90, leakRate * 1.5, 18},
	{120, leakRate * 2, 24},
	{180, leakRate * 3, 18}, {240, leakRate * 4, 24}, {360, leakRate * 6, 24}, {480, leakRate * 8, 24},
	{600, leakRate * 10, 24},
}

// Constants of the end verdict.
const (
	// endBlocks is the maximum number of levels into which a run is divided.
	endBlocks = 36
	// endP replaces lookP in the end verdict. All processes and stretches share
	// this probability.
	endP = 1e-3
	// endRaise and rateRaise have the same meaning as noiseRaise, for the end
	// test and for the interval of the rate.
	endRaise, rateRaise = 1.0, 0.1
	// leastGrowth is the minimum growth in MB that a tester would act on in a
	// run of any length. A window shorter than 6 h needs more growth:
	// shortGrowth MB minus hourGrowth per hour, because warm-ups and caches of
	// 100 MB and more grow like a leak for an hour or two.
	leastGrowth, shortGrowth, hourGrowth = 20.0, 140.0, 20.0
	// leastPace is the minimum rise from the third quarter to the last,
	// relative to an even rise. leastStart is the same for the rise from the
	// first quarter to the second.
	leastPace, leastStart = 0.4, 0.15
	// A single rise may account for at most largestRise of the growth, and two
	// rises together for one and a half times as much. If the rises account for
	// more than that, the growth consists of steps.
	largestRise = 0.38
	// endExplained replaces explained in the end verdict.
	endExplained = 0.63
	// curveBetter is the maximum advantage in BIC that a curve that levels off
	// may have over the line. 6 to 10 is "strong evidence" (Kass and Raftery
	// 1995).
	curveBetter = 6.0
	// stepsBetter is like curveBetter, but for two and three steps.
	stepsBetter = 6.0
	// shortest is the minimum length of a run that is judged at all; a run of
	// 30 min has only 29 min of complete slots. shortestPart is the minimum
	// length of a part of a run.
	shortest, shortestPart = 29 * time.Minute, 45 * time.Minute
	// aboveBefore is the fraction of a part's growth by which the end of the
	// part must exceed all levels before the part.
	aboveBefore = 0.3
	// stillThere is the fraction of the growth of a window that must remain in
	// all later levels.
	stillThere = 0.8
	// No cache grows by uncached MB or more in a window of at least
	// uncachedTime. Such growth is a leak even if it stopped before the end of
	// the run for an unknown reason.
	uncached, uncachedTime = 250.0, 2 * time.Hour
	// ratchetTime is the shortest window that is tested for lumps. A rise is at
	// least leastRise MB and ratchetSigmas times the noise. The falls may add
	// up to at most ratchetFalls of the rises, and at least ratchetKept of the
	// rises must remain at the end. If a series has undecidedRises rises, or
	// two rises of undecidedSteps MB in all, the verdict is undecided; with
	// provedRises rises, it is a leak. Calibrated.
	ratchetTime                 = 3 * time.Hour
	leastRise, ratchetSigmas    = 10.0, 3.0
	ratchetFalls, ratchetKept   = 0.1, 0.5
	undecidedSteps              = 130.0
	undecidedRises, provedRises = 4, 5
	// spliceTime is the minimum length of a run in which a single fall is
	// undone by raising the later levels; shortestSide is the minimum time
	// before and after the fall. The smaller of the slopes before and after the
	// fall must be at least alikeSlopes times the larger.
	spliceTime, shortestSide = 4 * time.Hour, time.Hour
	alikeSlopes              = 0.4
	// The fall of a sawtooth may differ from the growth before it by at most
	// toothPart of that growth.
	toothPart = 0.07
	// otherChanges is the maximum size of any other change, relative to the
	// fall.
	otherChanges = 0.4
	// certain is the 95 % quantile of the normal distribution.
	certain = 1.645
	// If the BIC of a line after a flat part is better than the BIC of a simple
	// line by at least onsetBetter, the rate is measured after the flat part.
	onsetBetter = 6.0
	// Levels after forced collections count as growing only if they grow by at
	// least leastCollected MB, and by at least perLoop MB per loop.
	leastCollected, perLoop = 2.0, 0.2
	// Growth is reported as gone if at most keptPart of it remains.
	keptPart = 0.25
	// A run has settled if its end is flat for at least settledTime and for
	// settledPart of the run.
	settledTime, settledPart = 3 * time.Hour, 1.0 / 3
)

// earlyEnds are additional points at which windows end before the end of the
// run, as fractions of the run. A leak whose workload ended, or whose app went
// to the background, is still a leak.
var earlyEnds = [...]float64{0.875, 0.75}

// endParts are the points at which the windows of the end verdict begin, as
// fractions of the run. With the later points, neither a warm-up nor a flat
// period before a leak hides the leak.
var endParts = [...]float64{0.25, 0.5, 0.75, 0.875}
