package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/trace"
)

// diffSchema names the form of a Diff.
const diffSchema = "leakgate.diff/1"

// Diff is what changed from one dump to another. docs/formats/diff.md has the fields.
type Diff struct {
	Schema string `json:"schema"`
	Base   Dump   `json:"base"`
	Head   Dump   `json:"head"`
	// Comparable is false where the sizes of the two are not of one kind, or the names are an
	// obfuscator's and nobody knows those of the source; Mismatches say why.
	Comparable      bool     `json:"comparable"`
	Mismatches      []string `json:"mismatches"`
	Objects         Change   `json:"objects"`
	ShallowBytes    Change   `json:"shallow_bytes"`
	ReachableBytes  Change   `json:"reachable_bytes"`
	ReachableNative Change   `json:"reachable_native_bytes"`
	// Leaks and Suspects are those of both, the changed ones first.
	Leaks    []LeakChange `json:"leaks"`
	Suspects []LeakChange `json:"suspects"`
	// Growth is where in the dominator tree there is more, Shrinkage where there is less.
	Growth    []PathChange `json:"growth"`
	Shrinkage []PathChange `json:"shrinkage"`
	// Classes are those that changed most, of ClassesChanged.
	Classes        []ClassChange `json:"classes"`
	ClassesChanged int           `json:"classes_changed"`
	Warnings       []string      `json:"warnings"`
}

// Change is a number in both dumps; Delta is Head without Base.
type Change struct {
	Base  int64 `json:"base"`
	Head  int64 `json:"head"`
	Delta int64 `json:"delta"`
}

func change(base, head int64) Change { return Change{base, head, head - base} }

// The statuses of what is compared.
const (
	statusNew    = "new"
	statusGone   = "gone"
	statusGrown  = "grown"
	statusMoved  = "moved"
	statusShrunk = "shrunk"
	statusKnown  = "known"
	// statusUnpaired is a leak of two dumps whose names are not of the same things: it may be
	// in the other one, too.
	statusUnpaired = "unpaired"
)

// ClassChange is a class in both dumps. A class of which the name changes with each build, such
// as that of a lambda, stands for all that differ only so, and has the part of the name
// that does not change.
type ClassChange struct {
	Class          string `json:"class"`
	Status         string `json:"status"`
	Instances      Change `json:"instances"`
	ShallowBytes   Change `json:"shallow_bytes"`
	RetainedBytes  Change `json:"retained_bytes"`
	RetainedNative Change `json:"retained_native_bytes"`
}

// LeakChange is a leak or suspect in both dumps, by its key.
type LeakChange struct {
	Key     string `json:"key"`
	Status  string `json:"status"`
	Class   string `json:"class"`
	Library bool   `json:"library"`
	Pattern string `json:"pattern"`
	// KeyText is what the key is made of.
	KeyText []string `json:"key_text"`
	// MovedFrom is the key in base of a leak that something else holds in head, BaseKeyText
	// what that is made of.
	MovedFrom   string   `json:"moved_from,omitempty"`
	BaseKeyText []string `json:"base_key_text,omitempty"`
	// Classes are those of what leaks or piles up, those of which there are most in head first,
	// at most ten of them.
	Classes []LeakClassChange `json:"classes"`
	// BaseFingerprints and HeadFingerprints are Shark's. They differ where names do.
	BaseFingerprints []string `json:"base_fingerprints"`
	HeadFingerprints []string `json:"head_fingerprints"`
	// Like is the key of a leak of the other dump that has the same fingerprint, where
	// this one is new or gone.
	SameFingerprint string `json:"same_fingerprint,omitempty"`
	Instances       Change `json:"instances"`
	RetainedBytes   Change `json:"retained_bytes"`
	RetainedNative  Change `json:"retained_native_bytes"`
}

// LeakClassChange is how many objects of one class leak in both dumps.
type LeakClassChange struct {
	Class     string `json:"class"`
	Instances Change `json:"instances"`
}

// PathChange is a way down the dominator tree, as classes, with all objects that have it.
// The change is that of the last step. Below are the steps after it that changed most.
type PathChange struct {
	Change
	Steps []PathStep `json:"steps"`
	Below []PathStep `json:"below"`
}

// PathStep is one step of the way.
type PathStep struct {
	Class         string `json:"class"`
	Objects       Change `json:"objects"`
	RetainedBytes Change `json:"retained_bytes"`
}

// Compare tells what changed. Lists have up to top entries.
func Compare(base, head *Summary, top int) *Diff {
	d := &Diff{
		Schema: diffSchema, Base: base.dump, Head: head.dump,
		Objects:         change(base.dump.Objects, head.dump.Objects),
		ShallowBytes:    change(base.shallow, head.shallow),
		ReachableBytes:  change(base.dump.ReachableBytes, head.dump.ReachableBytes),
		ReachableNative: change(base.dump.ReachableNative, head.dump.ReachableNative),
		Mismatches:      mismatches(&base.dump, &head.dump), Warnings: doubts(&base.dump, &head.dump),
	}
	unnamed := strangers(base, head)
	d.Mismatches = append(d.Mismatches, unnamed...)
	d.Comparable = len(d.Mismatches) == 0
	compare := compareLeaks
	if len(unnamed) > 0 {
		compare = listLeaks
	}
	loaded := loadedClasses{base.loaded(), head.loaded()}
	d.Leaks, d.Suspects = compare(base.leaks, head.leaks, loaded), compare(base.suspects, head.suspects, loaded)
	d.Warnings = append(d.Warnings, doubtMoved(d.Leaks)...)
	classes := compareClasses(base.classes, head.classes)
	d.Classes, d.ClassesChanged = classes[:min(top, len(classes))], len(classes)
	t := trees{base: &base.tree, head: &head.tree}
	d.Growth, d.Shrinkage = t.paths(1, top), t.paths(-1, top)
	for _, side := range []struct {
		name     string
		warnings []string
	}{{"base", base.warnings}, {"head", head.warnings}} {
		for _, text := range side.warnings {
			d.Warnings = append(d.Warnings, side.name+": "+text)
		}
	}
	return d
}

// mismatches tells why the sizes of two dumps are not of one kind.
func mismatches(base, head *Dump) []string {
	list := []string{}
	if base.SizeModel != head.SizeModel {
		list = append(list, fmt.Sprintf("the sizes are counted in two ways, %s and %s: their differences mean nothing", base.SizeModel, head.SizeModel))
	}
	if base.IDSize != head.IDSize {
		list = append(list, fmt.Sprintf("base has IDs of %d bytes and head of %d: each reference differs in size, so differences of bytes mean little; compare dumps of one kind of device", base.IDSize, head.IDSize))
	}
	// Of a part of a dump the classes may be missing that tell.
	whole := !base.Truncated && !base.Partial && !head.Truncated && !head.Partial
	if whole && (base.Android == nil) != (head.Android == nil) {
		list = append(list, "one dump is Android's and the other a JVM's: they have other classes, and count other bytes")
	}
	return list
}

// strangers tells why the names of two dumps are not those of the same things. Where names mean
// nothing by themselves they do so in two dumps of one build.
func strangers(base, head *Summary) []string {
	b, h := base.dump.Names, head.dump.Names
	if b.unknown() && h.unknown() && b.used() == h.used() && oneBuild(base.shapes, head.shapes) {
		return nil
	}
	var list []string
	for _, side := range []struct {
		which, flag string
		names       Naming
	}{{"base", "--base-mapping", b}, {"head", "--mapping", h}} {
		switch side.names.Origin {
		case namesObscure:
			list = append(list, fmt.Sprintf("the names of %s are obfuscated: its classes and leaks cannot be found again in another build; give the mapping.txt of its build with %s", side.which, side.flag))
		case namesDoubtful:
			list = append(list, fmt.Sprintf("the mapping of %s is that of another build: the names of its classes and leaks are wrong; give that of its own build with %s", side.which, side.flag))
		}
	}
	return list
}

// unknown reports whether nobody knows the names of the source.
func (n *Naming) unknown() bool { return n.Origin == namesObscure || n.Origin == namesDoubtful }

// used is the digest of the mapping that was used, "" for none.
func (n *Naming) used() string {
	if n.Mapping == nil {
		return ""
	}
	return n.Mapping.SHA256
}

// doubts tells what else two dumps that are compared should have in common.
func doubts(base, head *Dump) []string {
	list := []string{}
	if base.Truncated != head.Truncated || base.Partial != head.Partial {
		list = append(list, "one dump is whole and the other is not: what is missing looks as if it were gone, or new")
	}
	if base.Android == nil || head.Android == nil {
		return list
	}
	b, h := base.Android, head.Android
	if b.SDK != h.SDK && b.SDK != 0 && h.SDK != 0 {
		list = append(list, fmt.Sprintf("the dumps are of two versions of Android, SDK %d and %d: the platform's own objects differ", b.SDK, h.SDK))
	}
	if b.Package != h.Package && b.Package != "" && h.Package != "" {
		list = append(list, fmt.Sprintf("the dumps are of two apps, %s and %s", b.Package, h.Package))
	}
	return list
}

// compareClasses gives the classes that changed, those that retain most more or less first.
func compareClasses(base, head map[string]classSum) []ClassChange {
	list := []ClassChange{}
	for _, p := range pairs(slices.Collect(maps.Keys(base)), slices.Collect(maps.Keys(head))) {
		var b, h classSum
		for _, name := range p.base {
			b.add(base[name])
		}
		for _, name := range p.head {
			h.add(head[name])
		}
		c := ClassChange{
			Class: p.name, Instances: change(b.instances, h.instances), ShallowBytes: change(b.shallow, h.shallow),
			RetainedBytes: change(b.retained.Total(), h.retained.Total()), RetainedNative: change(b.retained.Native, h.retained.Native),
		}
		if c.Status = statusOf(len(p.base) > 0, len(p.head) > 0, c.RetainedBytes, c.ShallowBytes, c.Instances); c.Status != statusKnown {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b ClassChange) int {
		return cmp.Or(bySize(a.RetainedBytes, b.RetainedBytes), bySize(a.ShallowBytes, b.ShallowBytes), bySize(a.Instances, b.Instances), cmp.Compare(a.Class, b.Class))
	})
	return list
}

// bySize puts the largest change first, whether up or down.
func bySize(a, b Change) int { return cmp.Compare(max(b.Delta, -b.Delta), max(a.Delta, -a.Delta)) }

// statusOf takes the first change that is one.
func statusOf(inBase, inHead bool, changes ...Change) string {
	switch {
	case !inBase:
		return statusNew
	case !inHead:
		return statusGone
	}
	for _, c := range changes {
		switch {
		case c.Delta > 0:
			return statusGrown
		case c.Delta < 0:
			return statusShrunk
		}
	}
	return statusKnown
}

// pair is a name in both dumps, or names that differ only in what compilers number.
type pair struct {
	name       string
	base, head []string
}

// pairs finds what is what: by equal names, and what is then left by names without what
// changes from build to build.
func pairs(base, head []string) []pair {
	var list []pair
	there := map[string]bool{}
	for _, name := range head {
		there[name] = true
	}
	left := map[string]*pair{}
	leave := func(name string) *pair {
		stable := trace.StableClass(name)
		if left[stable] == nil {
			left[stable] = &pair{name: stable}
		}
		return left[stable]
	}
	for _, name := range base {
		if there[name] {
			list = append(list, pair{name, []string{name}, []string{name}})
			delete(there, name)
			continue
		}
		p := leave(name)
		p.base = append(p.base, name)
	}
	for _, name := range head {
		if there[name] {
			p := leave(name)
			p.head = append(p.head, name)
		}
	}
	for _, p := range left {
		if len(p.base) > 0 && len(p.head) > 0 {
			list = append(list, *p)
			continue
		}
		for _, name := range p.base {
			list = append(list, pair{name: name, base: []string{name}})
		}
		for _, name := range p.head {
			list = append(list, pair{name: name, head: []string{name}})
		}
	}
	slices.SortFunc(list, func(a, b pair) int { return strings.Compare(a.name, b.name) })
	return list
}
