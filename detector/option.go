package detector

import (
	"fmt"
	"slices"
	"strings"
)

// option is one thing that the article leaves open: its name as a user writes it
// and its place in an Article.
type option struct {
	name  string
	known []string
	get   func(*Article) string
	set   func(*Article, string)
}

func choice[T ~string](name string, at func(*Article) *T, known ...T) option {
	o := option{
		name: name,
		get:  func(a *Article) string { return string(*at(a)) },
		set:  func(a *Article, v string) { *at(a) = T(v) },
	}
	for _, k := range known {
		o.known = append(o.known, string(k))
	}
	return o
}

var options = []option{
	choice("total", func(a *Article) *TotalRule { return &a.Total }, TotalMappedAndDriver, TotalGraphics),
	choice("windows", func(a *Article) *Windows { return &a.Windows }, WindowsWhole, WindowsMinute, WindowsLast, WindowsDisjoint),
	choice("floors", func(a *Article) *FloorRule { return &a.Floors }, FloorsAll, FloorsOneFall, FloorsLast),
	choice("floors_from", func(a *Article) *FloorsFrom { return &a.FloorsFrom }, FloorsFromEntry, FloorsFromOpen, FloorsFromHistory),
	choice("fall_back", func(a *Article) *FallBack { return &a.FallBack }, FallBackByT, FallBackByAll),
	choice("dimensions", func(a *Article) *Dimensions { return &a.Dimensions }, DimensionsWhole, DimensionsFresh),
	choice("total_vote", func(a *Article) *TotalVote { return &a.TotalVote }, TotalVotes, TotalSilent),
	choice("unconfirmed", func(a *Article) *Unconfirmed { return &a.Unconfirmed }, UnconfirmedWaits, UnconfirmedFallsBack),
	choice("cooldown_rule", func(a *Article) *CooldownRule { return &a.CooldownRule }, CooldownReports, CooldownBlocks),
	choice("after_diagnosis", func(a *Article) *AfterDiagnosis { return &a.AfterDiagnosis }, AfterDiagnosisNormal, AfterDiagnosisCooled),
	choice("spike_from", func(a *Article) *SpikeFrom { return &a.SpikeFrom }, SpikeFromNormal, SpikeFromAny),
	choice("gpu_path", func(a *Article) *GPUPath { return &a.GPU }, GPUGraphics, GPULiteral, GPULiteralCorrected, GPUOff),
	choice("kind", func(a *Article) *KindRule { return &a.Kind }, KindByShare, KindByT, KindStrict),
}

// OptionNames gives the names that Set takes, in the order of docs/article.md.
func OptionNames() []string {
	names := make([]string, len(options))
	for i, o := range options {
		names[i] = o.name
	}
	return names
}

// Set chooses one reading of what the article leaves open, by the names of
// docs/article.md, such as Set("floors", "one_fall").
func (a *Article) Set(name, value string) error {
	for _, o := range options {
		if o.name != name {
			continue
		}
		if err := o.allows(value); err != nil {
			return err
		}
		o.set(a, value)
		return nil
	}
	return fmt.Errorf("find option %q: known options: %s", name, strings.Join(OptionNames(), ", "))
}

func (o option) check(a *Article) error { return o.allows(o.get(a)) }

func (o option) allows(value string) error {
	if slices.Contains(o.known, value) {
		return nil
	}
	return fmt.Errorf("use %s %q: must be one of %s", o.name, value, strings.Join(o.known, ", "))
}
