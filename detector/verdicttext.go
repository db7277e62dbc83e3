package detector

import (
	"fmt"
	"math"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

// seriesWord returns the name of a track in a verdict.
func (m *robustMachine) seriesWord(i int) string {
	if i != totalTrack {
		return seriesName(i)
	}
	switch m.quantity {
	case Anonymous:
		return "anonymous memory"
	case WithoutSwap:
		return "memory without swap"
	}
	return "memory"
}

// intervalText formats an interval of rates. It adds a digit if both ends would
// be printed as the same number.
func intervalText(low, high float64) string {
	a, b := number(low), number(high)
	if a == b && low != high {
		a, b = fmt.Sprintf("%.2f", low), fmt.Sprintf("%.2f", high)
	}
	return a + " to " + b
}

func (m *robustMachine) because(j *judgement, aligned string) string {
	switch j.gate {
	case Leak:
		return m.leakText(j, aligned)
	case Settled:
		return m.settledText(j)
	case Pass:
		return m.passText(j)
	}
	length := minutesText(m.axis.length())
	switch {
	case m.axis.length() < shortest:
		return fmt.Sprintf("only %s of uninterrupted data%s; a trend needs %s", length, m.growthSoFar(),
			minutesText(30*time.Minute))
	case !j.known:
		return fmt.Sprintf("%s over %s %s", m.seriesWord(j.leading), length, reasonTexts[j.reason])
	case !j.rising:
		return fmt.Sprintf("%s is too noisy over %s: no leak of any rate would have been detected",
			m.seriesWord(j.leading), length)
	case m.row >= 2:
		return fmt.Sprintf("%v at the end: %s MB in the last %s (%s MB/h); %s", m.state, signed(m.first.growth),
			minutesText(m.first.window), number(m.first.perHour()),
			m.advice(longerHours(m.first.perHour(), m.axis.length())))
	}
	return m.undecidedText(j)
}

// growthSoFar returns the growth of a series that is too short to judge, or ""
// if the levels at its ends are unknown.
func (m *robustMachine) growthSoFar() string {
	x, ok := m.lifeOf()
	if !ok || len(x.levels) < 4 || math.IsNaN(x.first+x.last) {
		return ""
	}
	return fmt.Sprintf(": %s MB", signed(x.last-x.first))
}

// signed formats a number with its sign.
func signed(v float64) string {
	if v < 0 {
		return number(v)
	}
	return "+" + number(v)
}

// undecidedText returns a message that says why growth could not be
// distinguished from a leak, and recommends what to do next.
func (m *robustMachine) undecidedText(j *judgement) string {
	hours := longerHours(max(j.rate, j.growth/max(j.window.Hours(), 0.1)), m.axis.length())
	advice := m.advice(hours)
	word := m.seriesWord(j.leading)
	switch {
	case j.flat > 0 && j.fell == 0:
		return fmt.Sprintf("%s is %s MB higher than at the start and has been flat for %s, since %s; it counts as "+
			"settled "+
			"after %s; %s", word, number(max(j.higher, 0)),
			minutesText(j.flat), sinceText(m.axis.length()-j.flat),
			minutesText(max(settledTime, time.Duration(settledPart*float64(m.axis.length())))),
			m.advice(max(hours, settledHours(m.axis.length()-j.flat))))
	case j.fell > 0:
		return fmt.Sprintf("%s was LEAKING (%s MB in %s), then fell %s MB at once: too little data since then; %s",
			word, signed(m.first.growth), minutesText(m.first.window), number(j.fell), advice)
	case j.ratchet >= undecidedRises:
		return fmt.Sprintf("%s rose in %s, %s MB in all, and hardly fell: consistent with a leak or with content "+
			"that stays; %s",
			word, text.Count(j.ratchet, "step", "steps"), signed(j.higher), advice)
	case j.jump != nil && !j.grows():
		return fmt.Sprintf("%s is still %s MB up since a jump %s: not flat for long enough to have settled; %s",
			word, number(float64(j.jump.Bytes)/MB), sinceText(j.jump.At-m.axis.origin),
			m.advice(max(hours, settledHours(j.jump.At-m.axis.origin))))
	case m.stretchWorst == Leaking && !j.grows():
		return fmt.Sprintf("%s was LEAKING (%s MB in %s) and is %s MB above the start: not flat for long enough to "+
			"have settled; %s",
			word, signed(m.first.growth), minutesText(m.first.window), number(j.higher), advice)
	case j.reason == slowing || j.reason == curved || j.reason == early:
		return fmt.Sprintf("%s grew %s MB in %s and has slowed down, but not for long enough to have settled; %s", word,
			number(max(j.higher, j.growth)), minutesText(j.window), advice)
	case !j.grows() && j.reason != small:
		return fmt.Sprintf("%s is %s MB higher at the end than at the start and neither rises steadily nor has been "+
			"flat for %s; %s",
			word, number(j.higher), minutesText(settledTime), advice)
	}
	return fmt.Sprintf("%s grew %s MB in %s (%s MB/h, 95 %% interval %s), "+
		"consistent with a leak or a filling cache; %s",
		word, number(j.growth), minutesText(j.window), number(j.rate), intervalText(j.low, j.high), advice)
}

// longerHours returns how many hours a run must last to show a leak of the
// given rate in MB/h. It solves needed() for the hours; the result is longer
// than the present run.
func longerHours(rate float64, present time.Duration) float64 {
	rate = max(rate, leastGrowth/8) // no run lasts more than a few nights
	hours := shortGrowth / (hourGrowth + rate)
	if hours*rate < leastGrowth {
		hours = leastGrowth / rate
	}
	return 1.25 * max(hours, present.Hours())
}

// settledHours returns how many hours a run must last until memory that is flat
// from a given time counts as settled.
func settledHours(since time.Duration) float64 {
	return 1.05 * max(since.Hours()+settledTime.Hours(), since.Hours()/(1-settledPart))
}

// advice recommends a run of the given number of hours, which would be long
// enough to decide.
func (m *robustMachine) advice(hours float64) string {
	piece := ""
	if m.restarts > 0 {
		piece = " without a restart"
	}
	const step = 10 * time.Minute
	length := (time.Duration(hours*float64(time.Hour)) + step - 1).Truncate(step)
	return fmt.Sprintf("run for %s%s, or compare with --base", minutesText(length), piece)
}

func (m *robustMachine) leakText(j *judgement, aligned string) string {
	word := m.seriesWord(j.leading)
	verb := "grows"
	if j.early {
		verb = "grew"
	}
	if j.lumps {
		verb += " in lumps,"
	}
	out := fmt.Sprintf("%s %s %s MB/h (95 %% interval %s): %s MB since %s", word, verb, number(j.rate),
		intervalText(j.low, j.high), number(j.growth), sinceText(j.begins-m.axis.origin))
	if j.early {
		out += fmt.Sprintf(", until %s after the first sample, and not freed since", minutesText(j.ends-m.axis.origin))
	}
	if j.trimmed > 0 {
		out += fmt.Sprintf(", not counting %s MB that were freed at once", number(j.trimmed))
	}
	if aligned != "" {
		out += ", judged by " + aligned
	}
	switch {
	case j.leading == wholeTrack:
		out += ", according to the breakdowns; the samples do not show it"
	case j.leading != totalTrack:
		out += ", hidden in a total that does not grow"
	}
	return out + "; " + j.shares.text()
}

// collectedText returns the verdict on levels after forced collections, by
// loop.
func (m *robustMachine) collectedText(j *judgement, each time.Duration) string {
	a := each.Hours()
	perLoop := fmt.Sprintf("%.2g MB per loop (95 %% interval %.2g to %.2g)", j.rate*a, j.low*a, j.high*a)
	loops := text.Count(j.loops, "loop", "loops")
	switch j.gate {
	case Leak:
		return fmt.Sprintf("%s grows %s after forced collections, %s MB in the last %s; %s", m.seriesWord(totalTrack),
			perLoop, number(j.growth), loops, j.shares.text())
	case Pass:
		return fmt.Sprintf("no growth after forced collections in the last %s: %s; a leak of %.2g MB per loop or "+
			"more would have been detected", loops, perLoop, j.detectable*a)
	}
	if j.rising {
		return fmt.Sprintf("%s grew %s after forced collections in the last %s, not evenly enough for a leak; run "+
			"more loops", m.seriesWord(totalTrack), perLoop, loops)
	}
	return fmt.Sprintf("levels after forced collections are too noisy over the last %s: no leak of any rate would "+
		"have been detected", loops)
}

// sinceText formats a point in time within a stretch.
func sinceText(since time.Duration) string {
	switch {
	case since < 2*time.Minute:
		return "the first sample"
	case since < 10*time.Minute:
		return fmt.Sprintf("about %.0f min after the first sample", since.Minutes())
	}
	return "about " + minutesText(since) + " after the first sample"
}

func (m *robustMachine) settledText(j *judgement) string {
	word := m.seriesWord(j.leading)
	if j.flat == 0 {
		return fmt.Sprintf("%s grew %s MB in %s and was LEAKING, then went back: %s MB above the start at the end",
			word, number(m.first.growth), minutesText(m.first.window), number(max(0, j.higher)))
	}
	since := m.axis.length() - j.flat
	if j.jump != nil {
		return fmt.Sprintf("%s jumped %s and stayed there, flat since %s", word, mbText(float64(j.jump.Bytes)),
			sinceText(since))
	}
	was := ""
	if m.stretchWorst > Normal {
		was = fmt.Sprintf(" and was %v", m.stretchWorst)
	}
	return fmt.Sprintf("%s rose %s MB%s, then settled: flat since %s, for %s", word, number(j.higher), was,
		sinceText(since), minutesText(j.flat))
}

func (m *robustMachine) passText(j *judgement) string {
	word := ""
	if m.quantity != WholeMemory {
		word = " of " + m.seriesWord(j.leading)
	}
	out := fmt.Sprintf("no sustained growth%s in %s; ", word, minutesText(m.axis.length()))
	out += fmt.Sprintf("a leak of %s MB/h or more would have been detected", number(j.detectable))
	if lately := j.lately; !math.IsInf(lately, 1) && lately > 2*j.detectable {
		out += fmt.Sprintf(", or one of %s MB/h in the last hour", number(lately))
	}
	return out
}
