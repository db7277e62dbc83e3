package detector

import (
	"errors"
	"fmt"
	"time"
)

// MB is the megabyte of every threshold and message: 1024 kB of 1024 bytes, because
// the figures that Android prints in kB are units of 1024 bytes.
const MB = 1 << 20

// The names of the policies.
const (
	// PolicyArticle follows the article.
	PolicyArticle = "article"
	// PolicyRobust is the default; docs/detector.md has its measured rates of alarms.
	PolicyRobust = "robust"
)

// Policy is all rules and constants of one way to judge.
type Policy struct {
	// Name says which rules apply: PolicyRobust or PolicyArticle.
	Name string
	// Article holds the constants and readings of policy "article".
	Article Article
	// Robust holds the constants of policy "robust" that a user may change.
	Robust Robust
}

// DefaultPolicy is what applies where nobody chose: [RobustPolicy].
func DefaultPolicy() Policy { return RobustPolicy() }

// RobustPolicy is the policy "robust".
func RobustPolicy() Policy {
	p := ArticlePolicy()
	p.Name = PolicyRobust
	return p
}

// ArticlePolicy is the policy "article" with the article's figures and the default
// reading of everything it leaves open.
func ArticlePolicy() Policy {
	return Policy{Name: PolicyArticle, Robust: defaultRobust(), Article: Article{
		TMin: 2.0, R2Min: 0.6, Consecutive: 2, MinPoints: 10,
		HighWindow: 240, LowWindow: 60,
		Segment: 5 * time.Minute, MinSegments: 3,
		NormalInterval: 30 * time.Second, SuspiciousInterval: 15 * time.Second,
		ConfirmingInterval: 15 * time.Second, LeakingInterval: 60 * time.Second,
		SuspiciousMax: 30 * time.Minute, ConfirmingMax: 10 * time.Minute,
		ExtraBreakdowns: 3, ExtraSpacing: 30 * time.Second,
		MinGrowth: 20 * MB, Cooldown: 30 * time.Minute,
		SpikePct: 50, SpikeMin: 200 * MB, SpikeMinPoints: 5, FlatT: 1.0,

		Total: TotalMappedAndDriver, Windows: WindowsWhole,
		Floors: FloorsAll, FloorsFrom: FloorsFromEntry, FallBack: FallBackByT,
		Dimensions: DimensionsWhole, TotalVote: TotalVotes, Unconfirmed: UnconfirmedWaits,
		CooldownRule: CooldownReports, AfterDiagnosis: AfterDiagnosisNormal,
		SpikeFrom: SpikeFromNormal, GPU: GPUGraphics, Kind: KindByShare,
	}}
}

// Article is the constants of policy "article", each with the section of the article
// that gives it, and the readings of what the article leaves open.
type Article struct {
	// TMin and R2Min are what t and R2 of a rising line must exceed (5.2).
	TMin, R2Min float64
	// Consecutive is how many windows in a row must agree (5.5).
	Consecutive int
	// MinPoints is the fewest points of a regression that is looked at (8.1). The
	// dimensions in CONFIRMING need three (8.2).
	MinPoints int
	// HighWindow and LowWindow are how many samples and breakdowns are kept (4.3, 8.3).
	HighWindow, LowWindow int
	// Segment is the length of one floor, MinSegments how many there must be (5.3).
	Segment     time.Duration
	MinSegments int
	// The intervals of the fast channel in the four states (4.3, 5.5).
	NormalInterval, SuspiciousInterval, ConfirmingInterval, LeakingInterval time.Duration
	// SuspiciousMax and ConfirmingMax are the time-outs of the two states (5.5, 8.2).
	SuspiciousMax, ConfirmingMax time.Duration
	// ExtraBreakdowns are asked for in CONFIRMING, ExtraSpacing apart (5.5, 8.2).
	ExtraBreakdowns int
	ExtraSpacing    time.Duration
	// MinGrowth in bytes is what memory must have grown by since SUSPICIOUS began (5.5).
	MinGrowth int64
	// Cooldown is the shortest time between two diagnoses (6.4).
	Cooldown time.Duration
	// SpikePct in percent of the floor and SpikeMin in bytes: a spike exceeds both (5.4).
	SpikePct float64
	SpikeMin int64
	// SpikeMinPoints is the fewest samples in one Segment that make a floor for a
	// spike. The article gives none; with fewer every launch is a spike.
	SpikeMinPoints int
	// FlatT is what t stays below where memory does not rise (5.4, GPU path).
	FlatT float64

	Total          TotalRule
	Windows        Windows
	Floors         FloorRule
	FloorsFrom     FloorsFrom
	FallBack       FallBack
	Dimensions     Dimensions
	TotalVote      TotalVote
	Unconfirmed    Unconfirmed
	CooldownRule   CooldownRule
	AfterDiagnosis AfterDiagnosis
	SpikeFrom      SpikeFrom
	GPU            GPUPath
	Kind           KindRule
}

// MinTime is the soonest that a slow leak can reach LEAKING: the points of the first
// windows, the floors, and the extra breakdowns. 21 minutes with the article's figures.
func (a Article) MinTime() time.Duration {
	return time.Duration(a.firstPoints()-1)*a.NormalInterval + a.stages()
}

// firstPoints is how many samples the consecutive windows need.
func (a Article) firstPoints() int { return a.MinPoints + a.Consecutive - 1 }

// stages is the shortest way from SUSPICIOUS to LEAKING.
func (a Article) stages() time.Duration {
	return time.Duration(a.MinSegments)*a.Segment + time.Duration(max(0, a.ExtraBreakdowns-1))*a.ExtraSpacing
}

// TotalRule says what the total of a process is made of, from samples and breakdowns.
type TotalRule string

// The totals of a process.
const (
	// TotalMappedAndDriver is the sample plus EGL, GL and Other mtrack, which smaps
	// does not see: each page once.
	TotalMappedAndDriver TotalRule = "mapped_and_driver"
	// TotalGraphics is the sample plus Graphics of the App Summary, as in 4.5. It
	// counts Gfx dev twice.
	TotalGraphics TotalRule = "graphics"
)

// Windows says what "two consecutive windows" are (5.5).
type Windows string

// The readings of "two consecutive windows".
const (
	// WindowsWhole looks at the whole window with each sample.
	WindowsWhole Windows = "whole"
	// WindowsMinute looks at the whole window once a minute, as the walk-through does.
	WindowsMinute Windows = "each_minute"
	// WindowsLast looks at the last ten minutes with each sample.
	WindowsLast Windows = "last_10min"
	// WindowsDisjoint looks at each block of ten minutes once.
	WindowsDisjoint Windows = "disjoint_10min"
)

// FloorRule says which of the N floors must rise (5.3).
type FloorRule string

// The readings of "at least N-1 of N rise".
const (
	// FloorsAll wants all N-1 steps between the N floors to rise, as in the worked
	// examples.
	FloorsAll FloorRule = "all"
	// FloorsOneFall allows one step that does not rise, as in the text.
	FloorsOneFall FloorRule = "one_fall"
	// FloorsLast wants the last MinSegments floors to rise.
	FloorsLast FloorRule = "last"
)

// FloorsFrom says which floors count (5.3, 5.5).
type FloorsFrom string

// The readings of which floors count.
const (
	// FloorsFromEntry takes the complete segments since SUSPICIOUS began.
	FloorsFromEntry FloorsFrom = "entry"
	// FloorsFromOpen takes the segment in progress as well, from its second minute
	// on: the walk-through promotes at minute 22, in a segment that ends at 25.
	FloorsFromOpen FloorsFrom = "open"
	// FloorsFromHistory takes all complete segments of the window.
	FloorsFromHistory FloorsFrom = "history"
)

// FallBack says what "the slope is not significant" means in SUSPICIOUS (5.5).
type FallBack string

// The readings of "not significant".
const (
	// FallBackByT means t <= TMin.
	FallBackByT FallBack = "t"
	// FallBackByAll means that one of slope, t and R2 fails.
	FallBackByAll FallBack = "all"
)

// Dimensions says which breakdowns CONFIRMING judges by (5.6, 8.2).
type Dimensions string

// The readings of which breakdowns count.
const (
	// DimensionsWhole takes all breakdowns of the window.
	DimensionsWhole Dimensions = "whole"
	// DimensionsFresh takes those since CONFIRMING began.
	DimensionsFresh Dimensions = "fresh"
)

// TotalVote says whether TOTAL alone can confirm (5.5: "at least one dimension").
type TotalVote string

// The readings of TOTAL as a dimension.
const (
	// TotalVotes lets TOTAL confirm; the kind is unknown then.
	TotalVotes TotalVote = "votes"
	// TotalSilent leaves TOTAL out.
	TotalSilent TotalVote = "silent"
)

// Unconfirmed says what happens where the extra breakdowns do not confirm (5.5).
type Unconfirmed string

// The readings of "not confirmed".
const (
	// UnconfirmedWaits stays until the time-out and judges each new breakdown.
	UnconfirmedWaits Unconfirmed = "wait"
	// UnconfirmedFallsBack returns to NORMAL at once.
	UnconfirmedFallsBack Unconfirmed = "fall_back"
)

// CooldownRule says what a leak within the cooldown does (5.5 against 6.4).
type CooldownRule string

// The readings of the cooldown.
const (
	// CooldownReports enters LEAKING, asks for no diagnosis and returns to NORMAL
	// with the next input (6.4).
	CooldownReports CooldownRule = "report"
	// CooldownBlocks keeps CONFIRMING from LEAKING (the diagram of 5.5). Spikes and
	// the GPU path, which do not pass there, report.
	CooldownBlocks CooldownRule = "block"
)

// AfterDiagnosis says when LEAKING ends (6.4 against the diagram of 5.5).
type AfterDiagnosis string

// The readings of the end of LEAKING.
const (
	// AfterDiagnosisNormal returns to NORMAL when the diagnosis is done (6.4).
	AfterDiagnosisNormal AfterDiagnosis = "normal"
	// AfterDiagnosisCooled stays in LEAKING until the cooldown is over as well.
	AfterDiagnosisCooled AfterDiagnosis = "cooled"
)

// SpikeFrom says in which states a spike counts (5.4).
type SpikeFrom string

// The readings of where a spike counts.
const (
	// SpikeFromNormal takes the diagram's one arrow.
	SpikeFromNormal SpikeFrom = "normal"
	// SpikeFromAny takes "each sample": from every state below LEAKING.
	SpikeFromAny SpikeFrom = "any"
)

// GPUPath says how a leak of graphics memory alone is found (5.4).
type GPUPath string

// The ways to find a leak of graphics memory.
const (
	// GPUGraphics tests the graphics memory of the breakdowns itself, against the
	// rest of the same breakdowns.
	GPUGraphics GPUPath = "graphics"
	// GPULiteral compares TOTAL of the breakdowns with the samples, as the article
	// does; GPULiteralCorrected with the total made of the samples.
	GPULiteral          GPUPath = "literal"
	GPULiteralCorrected GPUPath = "literal_corrected"
	// GPUOff leaves the path out.
	GPUOff GPUPath = "off"
)

// KindRule says which kind a leak is when several dimensions rise (5.6 against 6.2).
type KindRule string

// The readings of the kind.
const (
	// KindByShare takes the dimension with more than half of all significant growth.
	KindByShare KindRule = "by_share"
	// KindByT takes the dimension with the largest t (the chart of 5.6).
	KindByT KindRule = "by_t"
	// KindStrict wants one significant dimension and no other (6.2).
	KindStrict KindRule = "strict"
)

// maxWindow bounds what a configuration can make a Detector allocate.
const maxWindow = 1 << 16

// Validate says all that makes a policy unusable.
func (p Policy) Validate() error {
	switch p.Name {
	case PolicyArticle:
		return p.Article.validate()
	case PolicyRobust:
		return p.Robust.validate()
	}
	return fmt.Errorf("find policy %q: known policies: %s, %s", p.Name, PolicyArticle, PolicyRobust)
}

func (a Article) validate() error {
	errs := []error{
		within("t", a.TMin, 0, 1e6), within("r2", a.R2Min, 0, 0.999), within("flat t", a.FlatT, -1e6, 1e6),
		within("consecutive windows", a.Consecutive, 1, 1000),
		within("points", a.MinPoints, 3, maxWindow),
		within("samples kept", a.HighWindow, a.MinPoints, maxWindow),
		within("breakdowns kept", a.LowWindow, 3, maxWindow),
		within("segment", a.Segment, time.Second, 24*time.Hour),
		within("segments", a.MinSegments, 2, 1000),
		within("extra breakdowns", a.ExtraBreakdowns, 0, 1000),
		within("extra spacing", a.ExtraSpacing, 0, time.Hour),
		within("growth", a.MinGrowth, 0, 1<<50),
		within("cooldown", a.Cooldown, 0, 1000*time.Hour),
		within("spike percent", a.SpikePct, 0, 1e6), within("spike", a.SpikeMin, 0, 1<<50),
		within("points of a spike's floor", a.SpikeMinPoints, 1, maxWindow),
	}
	for _, d := range []time.Duration{a.NormalInterval, a.SuspiciousInterval, a.ConfirmingInterval, a.LeakingInterval} {
		errs = append(errs, within("interval", d, time.Millisecond, time.Hour))
	}
	for _, d := range []time.Duration{a.SuspiciousMax, a.ConfirmingMax} {
		errs = append(errs, within("time-out", d, time.Second, 1000*time.Hour))
	}
	for _, o := range options {
		errs = append(errs, o.check(&a))
	}
	return errors.Join(errs...)
}

func within[T int | int64 | float64 | time.Duration](name string, v, low, high T) error {
	if v >= low && v <= high {
		return nil
	}
	return fmt.Errorf("use %s %v: must be from %v to %v", name, v, low, high)
}
