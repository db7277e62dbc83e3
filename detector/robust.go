package detector

import "time"

// The live tier. "Calibrated" means: chosen on simulated runs of the scenarios of
// docs/detector.md with one set of seeds, and measured there with another.
const (
	// lookP is the chance that a window of pure noise, correlated or not, rises as
	// steeply: of one look, before all other tests. keepP is that of the looks after
	// a first one, which need not find the rise again from nothing.
	lookP, keepP = 1e-3, 1e-2
	// noiseRaise is by how many standard errors the noise is taken for more correlated
	// than it looks: too little makes noise significant, too much costs time. Calibrated.
	noiseRaise = 1.0
	// pooledRaise is the same where the noise is known from more than the window.
	pooledRaise = 1.5
	// pooledWindows before the present one tell how the noise is correlated, for
	// windows up to pooledMinutes, which are too short to tell it themselves.
	pooledWindows, pooledMinutes = 3, 60
	// lineBetter is by how much a line (or a line after a flat part) must be better
	// than each other shape by the BIC; 2 is "positive evidence" (Kass and Raftery
	// 1995), 1 finds leaks sooner and is made up for by the looks that follow.
	lineBetter = 1.0
	// keepBetter is the same for the looks that follow; in windows of keepLong minutes
	// and more another shape may be better by keepWorse.
	keepBetter, keepLong, keepWorse = 0.7, 90, 1.5
	// keepSteps is by how much steps may be better than the line in the looks that
	// follow: correlated noise looks like steps. threeStepsCost is added to the BIC of
	// three steps for their places, which were searched.
	keepSteps, threeStepsCost = 4.0, 3.0
	// steadyT and steadyPace are how clear a rise must be, and how much of its pace the
	// last quarter must have of that of the second, for a curve not to matter.
	steadyT, steadyPace = 30.0, 0.85
	// recordPart of the growth, and recordSigmas of how much the level has changed
	// before, is how far the end must be above every level from before the window: a
	// level that was there already and left again is no leak.
	recordPart, recordSigmas = 0.4, 2.0
	// explained is the share of the variance of the floors that the line must explain
	// before the word is LEAKING. Calibrated on "realistic 2".
	explained = 0.675
	// pacePart of the growth that the first look foretold must have come by the third,
	// less paceSigmas of how much the floors move anyway: a warm-up slows down. Windows
	// up to pooledMinutes have few floors to tell that from.
	pacePart, paceSigmas, paceShortSigmas = 0.5, 0.85, 0.4
	// shortProof is by how much the growth asked for is larger at the third look, in
	// windows up to shortMinutes: a wave's rise is over by then.
	shortProof, shortMinutes = 1.15, 40
	// fadedLooks in a row without evidence end LEAKING.
	fadedLooks = 3
)

// lookWindow is one length of time that is looked at.
type lookWindow struct {
	minutes int
	// need is the growth in MB below which nothing is told: short windows ask for
	// more, because a garbage collector's tooth and a page that opens are rises too;
	// long ones for leakRate.
	need float64
	// blocks is into how many levels it is cut.
	blocks int
}

// leakRate in MB/h is the slowest rise that the live tier tells.
const leakRate = 16

// lookWindows are tried from the shortest: the first that shows a leak decides.
var lookWindows = [...]lookWindow{
	{15, 65, 24}, {20, 65, 24}, {25, 54, 24}, {30, 49, 24}, {40, 49, 24}, {60, 21, 24}, {90, leakRate * 1.5, 18}, {120, leakRate * 2, 24},
	{180, leakRate * 3, 18}, {240, leakRate * 4, 24}, {360, leakRate * 6, 24}, {480, leakRate * 8, 24}, {600, leakRate * 10, 24},
}

// The end verdict.
const (
	// endBlocks is into how many levels a run is cut at most.
	endBlocks = 36
	// endP is lookP for the end verdict, shared by all processes and stretches.
	endP = 1e-3
	// endRaise and rateRaise are noiseRaise for the test and for the interval of the rate.
	endRaise, rateRaise = 1.0, 0.1
	// leastGrowth in MB is below what a tester would act on in a run of any length; a
	// window shorter than 6 h needs shortGrowth MB less hourGrowth an hour, because
	// warm-ups and caches of 100 MB and more rise like a leak for an hour or two.
	leastGrowth, shortGrowth, hourGrowth = 20.0, 140.0, 20.0
	// leastPace is the growth of the last quarter, and leastStart that of the second
	// against the first, as parts of what an even rise would have.
	leastPace, leastStart = 0.4, 0.15
	// largestRise of the growth may come at once, one and a half of it at two times:
	// more is steps.
	largestRise = 0.38
	// endExplained is "explained" for the end verdict.
	endExplained = 0.63
	// curveBetter is by how much a curve that levels off may be better than the line by
	// the BIC: 6 to 10 is "strong evidence" (Kass and Raftery 1995).
	curveBetter = 6.0
	// stepsBetter is the same for two and three steps.
	stepsBetter = 6.0
	// shortest is the shortest run that is judged at all, and the shortest part of one. A run of
	// 30 min has a minute less of complete slots.
	shortest, shortestPart = 29 * time.Minute, 45 * time.Minute
	// aboveBefore is how far the end of a part must be above all levels from before it, in parts of
	// its growth.
	aboveBefore = 0.3
	// stillThere is the part of the growth of a window that must be left in all that follows it.
	stillThere = 0.8
	// uncached is the growth in MB, over uncachedTime, that no cache has: it is a leak also if it ended
	// before the run did and nobody knows why.
	uncached, uncachedTime = 250.0, 2 * time.Hour
	// ratchetTime is the shortest window for lumps; leastRise in MB, and ratchetSigmas of the noise, is
	// a rise; falls may be ratchetFalls of the rises, of which ratchetKept must be there at the end. doubtfulRises, or two of doubtfulSteps MB in all, are worth a doubt, provedRises are
	// a leak. Calibrated.
	ratchetTime                = 3 * time.Hour
	leastRise, ratchetSigmas   = 10.0, 3.0
	ratchetFalls, ratchetKept  = 0.1, 0.5
	doubtfulSteps              = 130.0
	doubtfulRises, provedRises = 4, 5
	// spliceTime is the shortest run whose one fall is added again, shortestSide that of the time before
	// and after it; the slopes of both may differ by alikeSlopes.
	spliceTime, shortestSide = 4 * time.Hour, time.Hour
	alikeSlopes              = 0.4
	// toothPart of what grew is by how much the fall of a tooth may differ from that.
	toothPart = 0.07
	// otherChanges is the largest other change, as a part of the fall.
	otherChanges = 0.4
	// certain is the 95 % quantile of the normal distribution.
	certain = 1.645
	// onsetBetter is by how much a line after a flat part must be better than a line by the BIC before the
	// rate is that of the later part.
	onsetBetter = 6.0
	// Levels after forced collections must grow by leastCollected MB, and perLoop MB a loop.
	leastCollected, perLoop = 2.0, 0.2
	// keptPart of a growth may be left where it is said to be gone.
	keptPart = 0.25
	// settledTime, and settledPart of a run, must be flat at its end before it has settled.
	settledTime, settledPart = 3 * time.Hour, 1.0 / 3
)

// earlyEnds are where windows end beside the end of the run, as parts of it: a leak whose workload
// ended, or whose app went to the background, is still one.
var earlyEnds = [...]float64{0.875, 0.75}

// endParts are where the windows of the end verdict begin, as parts of the run: a
// warm-up before, or a flat time before, does not hide a leak.
var endParts = [...]float64{0.25, 0.5, 0.75, 0.875}
