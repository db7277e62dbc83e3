package detector

import "time"

// The live tier. "Calibrated" means: chosen on simulated runs of the scenarios
// of docs/detector.md with one set of seeds, and measured there with another.
const (
	// lookP is the chance that a window of pure noise, correlated or not, rises
	// as steeply: of one look, before all other tests. keepP is that of the
	// looks after a first one, which need not find the growth again
	// independently.
	lookP, keepP = 1e-3, 1e-2
	// noiseRaise is by how many standard errors the noise is assumed to be more
	// correlated than measured. Too little makes noise significant, too much
	// costs time. Calibrated.
	noiseRaise = 1.0
	// pooledRaise is the same where the noise is known from more than the
	// window.
	pooledRaise = 1.5
	// pooledWindows are the number of windows before the present one that show
	// how the noise is correlated. They are used for windows up to
	// pooledMinutes, which are too short to show it themselves.
	pooledWindows, pooledMinutes = 3, 60
	// lineBetter is by how much a line (or a line after a flat part) must be
	// better than each other shape by the BIC. 2 is "positive evidence" (Kass
	// and Raftery 1995); 1 finds leaks sooner, and the later looks make up for
	// it.
	lineBetter = 1.0
	// keepBetter is the same for the later looks; in windows of keepLong
	// minutes and more another shape may be better by keepWorse.
	keepBetter, keepLong, keepWorse = 0.7, 90, 1.5
	// keepSteps is by how much steps may be better than the line in later
	// looks, because correlated noise looks like steps. threeStepsCost is added
	// to the BIC of three steps for their positions, which were searched.
	keepSteps, threeStepsCost = 4.0, 3.0
	// steadyT and steadyPace are how significant a rise must be, and which part
	// of the pace of the second quarter the last quarter must have, for a curve
	// not to matter.
	steadyT, steadyPace = 30.0, 0.85
	// recordPart of the growth, and recordSigmas of how much the level has
	// changed before, is how far the end must be above every level from before
	// the window. A level that memory had before, left and reached again is not
	// a leak.
	recordPart, recordSigmas = 0.4, 2.0
	// explained is the share of the variance of the floors that the line must
	// explain to reach LEAKING. Calibrated on "realistic 2".
	explained = 0.675
	// pacePart of the growth that the first look predicted must have come by
	// the third, less paceSigmas of how much the floors vary: a warm-up slows
	// down. Windows up to pooledMinutes have too few floors for this test.
	pacePart, paceSigmas, paceShortSigmas = 0.5, 0.85, 0.4
	// shortProof is by how much the required growth is larger at the third
	// look, in windows up to shortMinutes. The rise of a wave is over by then.
	shortProof, shortMinutes = 1.15, 40
	// fadedLooks consecutive looks without evidence end LEAKING.
	fadedLooks = 3
)

// lookWindow is one length of time that a look tests.
type lookWindow struct {
	minutes int
	// need is the least growth in MB. Short windows require more, because a
	// garbage collector's sawtooth and an opened page also grow; long ones
	// require leakRate.
	need float64
	// blocks is the number of levels of the window.
	blocks int
}

// leakRate in MB/h is the slowest rise that the live tier reports.
const leakRate = 16

// lookWindows are tried from the shortest; the first that shows a leak decides.
var lookWindows = [...]lookWindow{
	{15, 65, 24}, {20, 65, 24}, {25, 54, 24}, {30, 49, 24}, {40, 49, 24}, {60, 21, 24}, {90, leakRate * 1.5, 18},
	{120, leakRate * 2, 24},
	{180, leakRate * 3, 18}, {240, leakRate * 4, 24}, {360, leakRate * 6, 24}, {480, leakRate * 8, 24},
	{600, leakRate * 10, 24},
}

// The end verdict.
const (
	// endBlocks is the largest number of levels of a run.
	endBlocks = 36
	// endP is lookP for the end verdict, shared by all processes and stretches.
	endP = 1e-3
	// endRaise and rateRaise are noiseRaise for the test and for the interval
	// of the rate.
	endRaise, rateRaise = 1.0, 0.1
	// leastGrowth in MB is below what a tester would act on in a run of any
	// length. A window shorter than 6 h needs shortGrowth MB less hourGrowth
	// per hour, because warm-ups and caches of 100 MB and more grow like a leak
	// for an hour or two.
	leastGrowth, shortGrowth, hourGrowth = 20.0, 140.0, 20.0
	// leastPace is the growth of the last quarter, and leastStart that of the
	// second compared with the first, relative to an even rise.
	leastPace, leastStart = 0.4, 0.15
	// largestRise of the growth may come in one rise, one and a half of it in
	// two. More is steps.
	largestRise = 0.38
	// endExplained is "explained" for the end verdict.
	endExplained = 0.63
	// curveBetter is by how much a curve that levels off may be better than the
	// line by the BIC. 6 to 10 is "strong evidence" (Kass and Raftery 1995).
	curveBetter = 6.0
	// stepsBetter is the same for two and three steps.
	stepsBetter = 6.0
	// shortest is the shortest run that is judged at all, and the shortest part
	// of a run. A run of 30 min has a minute less of complete slots.
	shortest, shortestPart = 29 * time.Minute, 45 * time.Minute
	// aboveBefore is how far the end of a part must be above all levels from
	// before it, relative to its growth.
	aboveBefore = 0.3
	// stillThere is the part of the growth of a window that must remain in all
	// that follows.
	stillThere = 0.8
	// uncached is the growth in MB, over uncachedTime, that no cache reaches.
	// It is a leak even if it ended before the run for an unknown reason.
	uncached, uncachedTime = 250.0, 2 * time.Hour
	// ratchetTime is the shortest window for lumps. A rise has leastRise MB and
	// ratchetSigmas of the noise. Falls may be ratchetFalls of the rises, of
	// which ratchetKept must remain at the end. undecidedRises, or two of
	// undecidedSteps MB in all, make the verdict undecided, provedRises are a
	// leak. Calibrated.
	ratchetTime                 = 3 * time.Hour
	leastRise, ratchetSigmas    = 10.0, 3.0
	ratchetFalls, ratchetKept   = 0.1, 0.5
	undecidedSteps              = 130.0
	undecidedRises, provedRises = 4, 5
	// spliceTime is the shortest run whose single fall is added back,
	// shortestSide the time required before and after it. The slopes of both
	// sides may differ by alikeSlopes.
	spliceTime, shortestSide = 4 * time.Hour, time.Hour
	alikeSlopes              = 0.4
	// toothPart of the growth is by how much the fall of a sawtooth may differ
	// from the growth before it.
	toothPart = 0.07
	// otherChanges is the largest other change, relative to the fall.
	otherChanges = 0.4
	// certain is the 95 % quantile of the normal distribution.
	certain = 1.645
	// onsetBetter is by how much a line after a flat part must be better than a
	// line by the BIC for the rate to be that of the later part.
	onsetBetter = 6.0
	// Levels after forced collections must grow by leastCollected MB, and by
	// perLoop MB per loop.
	leastCollected, perLoop = 2.0, 0.2
	// keptPart of a growth may remain where it is reported as gone.
	keptPart = 0.25
	// settledTime, and settledPart of a run, must be flat at its end for it to
	// have settled.
	settledTime, settledPart = 3 * time.Hour, 1.0 / 3
)

// earlyEnds are where windows end besides the end of the run, as parts of it. A
// leak whose workload ended, or whose app went to the background, is still a
// leak.
var earlyEnds = [...]float64{0.875, 0.75}

// endParts are where the windows of the end verdict begin, as parts of the run.
// A warm-up or a flat time before it does not hide a leak.
var endParts = [...]float64{0.25, 0.5, 0.75, 0.875}
