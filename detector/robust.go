package detector

import "time"

// Constants of the live tier. "Calibrated" means that the value was chosen on
// simulated runs of the scenarios of docs/detector.md with one set of seeds and
// measured on runs with another set.
const (
	// lookP is the probability, for one look and before all other tests, that a
	// window of pure noise (correlated or not) rises as steeply as observed.
	// keepP is the same for the looks after a first one, which need not find
	// the growth again independently.
	lookP, keepP = 1e-3, 1e-2
	// noiseRaise is the number of standard errors by which the noise is assumed
	// to be more correlated than measured. If it is too small, noise becomes
	// significant; if it is too large, leaks are found later. Calibrated.
	noiseRaise = 1.0
	// pooledRaise is the same as noiseRaise if the noise is known from more
	// data than the window.
	pooledRaise = 1.5
	// pooledWindows is the number of windows before the present one from which
	// the correlation of the noise is measured. They are used for windows up to
	// pooledMinutes, which are too short to show the correlation themselves.
	pooledWindows, pooledMinutes = 3, 60
	// lineBetter is the minimum difference of the BIC by which a line (or a
	// line after a flat part) must be better than each other shape. 2 is
	// "positive evidence" (Kass and Raftery 1995); 1 finds leaks sooner, and
	// the later looks make up for the weaker evidence.
	lineBetter = 1.0
	// keepBetter is the same as lineBetter for the later looks; in windows of
	// keepLong minutes and more, another shape may be better by up to
	// keepWorse.
	keepBetter, keepLong, keepWorse = 0.7, 90, 1.5
	// keepSteps is the largest difference of the BIC by which steps may be
	// better than the line in later looks, because correlated noise looks like
	// steps. threeStepsCost is added to the BIC of three steps, because their
	// positions were searched.
	keepSteps, threeStepsCost = 4.0, 3.0
	// A curve that fits better does not matter if the t of the rise is at least
	// steadyT and the rise from the third quarter to the last is at least
	// steadyPace of the rise from the first quarter to the second.
	steadyT, steadyPace = 30.0, 0.85
	// The end must be above every level from before the window by recordPart of
	// the growth, and by recordSigmas times the earlier variation of the level.
	// A level that memory had before, left and reached again is not a leak.
	recordPart, recordSigmas = 0.4, 2.0
	// explained is the share of the variance of the floors that the line must
	// explain to reach LEAKING. Calibrated on "realistic 2".
	explained = 0.675
	// By the third look, memory must have grown by pacePart of the growth that
	// the first look predicted, minus paceSigmas times the variation of the
	// floors, because a warm-up slows down. paceShortSigmas replaces paceSigmas
	// for windows up to pooledMinutes.
	pacePart, paceSigmas, paceShortSigmas = 0.5, 0.85, 0.4
	// shortProof is the factor by which the required growth is raised at the
	// third look, in windows up to shortMinutes. By then the rise of a wave is
	// over.
	shortProof, shortMinutes = 1.15, 40
	// fadedLooks consecutive looks without evidence end LEAKING.
	fadedLooks = 3
)

// lookWindow is one length of time that a look tests.
type lookWindow struct {
	minutes int
	// need is the required growth in MB. Short windows require more, because a
	// garbage collector's sawtooth and an opened page also cause growth; long
	// windows require leakRate.
	need float64
	// blocks is the number of levels of the window.
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
	// endBlocks is the largest number of levels of a run.
	endBlocks = 36
	// endP is the same as lookP for the end verdict, shared by all processes
	// and stretches.
	endP = 1e-3
	// endRaise and rateRaise have the same meaning as noiseRaise, for the end
	// test and for the interval of the rate.
	endRaise, rateRaise = 1.0, 0.1
	// leastGrowth is the minimum growth in MB that a tester would act on in a
	// run of any length. A window shorter than 6 h needs more growth:
	// shortGrowth MB minus hourGrowth per hour, because warm-ups and caches of
	// 100 MB and more grow like a leak for an hour or two.
	leastGrowth, shortGrowth, hourGrowth = 20.0, 140.0, 20.0
	// leastPace is the minimum rise from the third quarter to the last, and
	// leastStart the minimum rise from the first quarter to the second,
	// relative to an even rise.
	leastPace, leastStart = 0.4, 0.15
	// A single rise may account for at most largestRise of the growth, and two
	// rises together for one and a half times as much. If they account for
	// more, the growth consists of steps.
	largestRise = 0.38
	// endExplained is the same as explained, for the end verdict.
	endExplained = 0.63
	// curveBetter is the largest difference of the BIC by which a curve that
	// levels off may be better than the line. 6 to 10 is "strong evidence"
	// (Kass and Raftery 1995).
	curveBetter = 6.0
	// stepsBetter is the same as curveBetter for two and three steps.
	stepsBetter = 6.0
	// shortest is the length of the shortest run that is judged at all, and of
	// the shortest part of a run. A run of 30 min has a minute less of complete
	// slots.
	shortest, shortestPart = 29 * time.Minute, 45 * time.Minute
	// aboveBefore is how far the end of a part must be above all levels from
	// before it, relative to its growth.
	aboveBefore = 0.3
	// stillThere is the fraction of the growth of a window that must remain in
	// all later levels.
	stillThere = 0.8
	// uncached is an amount of growth in MB, over uncachedTime, that no cache
	// reaches. Such growth is a leak even if it stopped before the end of the
	// run for an unknown reason.
	uncached, uncachedTime = 250.0, 2 * time.Hour
	// ratchetTime is the shortest window that is tested for lumps. A rise is at
	// least leastRise MB and ratchetSigmas times the noise. The falls may be at
	// most ratchetFalls of the rises, and ratchetKept of the rises must remain
	// at the end. undecidedRises rises, or two rises of undecidedSteps MB in
	// all, make the verdict undecided; provedRises rises are a leak.
	// Calibrated.
	ratchetTime                 = 3 * time.Hour
	leastRise, ratchetSigmas    = 10.0, 3.0
	ratchetFalls, ratchetKept   = 0.1, 0.5
	undecidedSteps              = 130.0
	undecidedRises, provedRises = 4, 5
	// spliceTime is the shortest run whose single fall is added back;
	// shortestSide is the time required before and after the fall. The smaller
	// of the slopes of both sides must be at least alikeSlopes times the
	// larger.
	spliceTime, shortestSide = 4 * time.Hour, time.Hour
	alikeSlopes              = 0.4
	// toothPart is the fraction of the growth by which the fall of a sawtooth
	// may differ from the growth before it.
	toothPart = 0.07
	// otherChanges is the largest other change, relative to the fall.
	otherChanges = 0.4
	// certain is the 95 % quantile of the normal distribution.
	certain = 1.645
	// If a line after a flat part is better than a line without one by a
	// difference of the BIC of at least onsetBetter, the rate is that of the
	// later part.
	onsetBetter = 6.0
	// Levels after forced collections must grow by leastCollected MB and by
	// perLoop MB per loop.
	leastCollected, perLoop = 2.0, 0.2
	// Growth is reported as gone if at most keptPart of it remains.
	keptPart = 0.25
	// A run has settled if its end is flat for at least settledTime and for
	// settledPart of the run.
	settledTime, settledPart = 3 * time.Hour, 1.0 / 3
)

// earlyEnds are the points at which windows end, besides the end of the run, as
// fractions of the run. A leak whose workload ended, or whose app went to the
// background, is still a leak.
var earlyEnds = [...]float64{0.875, 0.75}

// endParts are the points at which the windows of the end verdict begin, as
// fractions of the run. Because of the later ones, a warm-up, or a flat time
// before a leak, does not hide the leak.
var endParts = [...]float64{0.25, 0.5, 0.75, 0.875}
