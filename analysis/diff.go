package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/trace"
)

// diffSchema is the schema of a Diff.
const diffSchema = "leakgate.diff/1"

// Diff is what changed between two dumps. docs/formats/diff.md describes the
// fields.
type Diff struct {
	Schema string `json:"schema"`
	Base   Dump   `json:"base"`
	Head   Dump   `json:"head"`
	// Comparable is false if the sizes of the two dumps are counted
	// differently, or if names are obfuscated and cannot be translated;
	// Mismatches lists the reasons.
	Comparable      bool     `json:"comparable"`
	Mismatches      []string `json:"mismatches"`
	Objects         Change   `json:"objects"`
	ShallowBytes    Change   `json:"shallow_bytes"`
	ReachableBytes  Change   `json:"reachable_bytes"`
	ReachableNative Change   `json:"reachable_native_bytes"`
	// Leaks and Suspects are the leaks and suspects of both dumps; the changed
	// ones come first.
	Leaks    []LeakChange `json:"leaks"`
	Suspects []LeakChange `json:"suspects"`
	// Growth lists the paths along which the dominator tree grew; Shrinkage
	// lists the paths along which the tree shrank.
	Growth    []PathChange `json:"growth"`
	Shrinkage []PathChange `json:"shrinkage"`
	// Classes are the classes that changed most; ClassesChanged is the number
	// of all classes that changed.
	Classes        []ClassChange `json:"classes"`
	ClassesChanged int           `json:"classes_changed"`
	Warnings       []string      `json:"warnings"`
}

// Change contains the values of a number in both dumps; Delta is Head minus
// Base.
type Change struct {
	Base  int64 `json:"base"`
	Head  int64 `json:"head"`
	Delta int64 `json:"delta"`
}

func change(base, head int64) Change { return Change{base, head, head - base} }

// The statuses of the entries of a comparison.
const (
	statusNew    = "new"
	statusGone   = "gone"
	statusGrown  = "grown"
	statusMoved  = "moved"
	statusShrunk = "shrunk"
	statusKnown  = "known"
	// statusUnpaired is the status of a leak that cannot be paired, because the
	// names in the two dumps do not refer to the same things. Such a leak may
	// exist in the other dump too.
	statusUnpaired = "unpaired"
)

// ClassChange compares the numbers of a class in both dumps. If the name of a
// class changes with each build, such as that of a lambda, the entry stands for
// all classes whose names differ only in the generated part, and is named by
// the stable part.
type ClassChange struct {
	Class          string `json:"class"`
	Status         string `json:"status"`
	Instances      Change `json:"instances"`
	ShallowBytes   Change `json:"shallow_bytes"`
	RetainedBytes  Change `json:"retained_bytes"`
	RetainedNative Change `json:"retained_native_bytes"`
}

// LeakChange compares the numbers of a leak or suspect in both dumps.
type LeakChange struct {
	Key     string `json:"key"`
	Status  string `json:"status"`
	Class   string `json:"class"`
	Library bool   `json:"library"`
	Pattern string `json:"pattern"`
	// KeyText is the text from which the key is computed.
	KeyText []string `json:"key_text"`
	// MovedFrom is the key in base of a leak that is held by something else in
	// head. BaseKeyText is the text from which MovedFrom is computed.
	MovedFrom   string   `json:"moved_from,omitempty"`
	BaseKeyText []string `json:"base_key_text,omitempty"`
	// Classes lists the classes of the objects that leak or accumulate, at most
	// ten; the ones with the most objects in head come first.
	Classes []LeakClassChange `json:"classes"`
	// BaseFingerprints and HeadFingerprints are the fingerprints that Shark
	// computes for the leak in base and in head. They differ if a class or
	// field on the path was renamed.
	BaseFingerprints []string `json:"base_fingerprints"`
	HeadFingerprints []string `json:"head_fingerprints"`
	// If this leak is new or gone, SameFingerprint is the key of a leak in the
	// other dump that has the same fingerprint.
	SameFingerprint string `json:"same_fingerprint,omitempty"`
	Instances       Change `json:"instances"`
	RetainedBytes   Change `json:"retained_bytes"`
	RetainedNative  Change `json:"retained_native_bytes"`
}

// LeakClassChange is the number of leaking objects of one class, in both dumps.
type LeakClassChange struct {
	Class     string `json:"class"`
	Instances Change `json:"instances"`
}

// PathChange is a path down the dominator tree, given as a list of classes. It
// covers all objects on paths with these classes. Change is the retained size
// of the last step in Steps. Below lists up to five next steps; the ones that
// grew or shrank most come first.
type PathChange struct {
	Change
	Steps []PathStep `json:"steps"`
	Below []PathStep `json:"below"`
}

// PathStep is one class on a path down the dominator tree, with the objects
// that the path reaches there.
type PathStep struct {
	Class         string `json:"class"`
	Objects       Change `json:"objects"`
	RetainedBytes Change `json:"retained_bytes"`
}

// Compare returns the differences between two dumps. The parameter top is the
// maximum length of each list.
func Compare(base, head *Summary, top int) *Diff {
	d := &Diff{
		Schema: diffSchema, Base: base.dump, Head: head.dump,
		Objects:         change(base.dump.Objects, head.dump.Objects),
		ShallowBytes:    change(base.shallow, head.shallow),
		ReachableBytes:  change(base.dump.ReachableBytes, head.dump.ReachableBytes),
		ReachableNative: change(base.dump.ReachableNative, head.dump.ReachableNative),
		Mismatches:      mismatches(&base.dump, &head.dump), Warnings: commonWarnings(&base.dump, &head.dump),
	}
	unnamed := nameMismatches(base, head)
	d.Mismatches = append(d.Mismatches, unnamed...)
	d.Comparable = len(d.Mismatches) == 0
	compare := compareLeaks
	if len(unnamed) > 0 {
		compare = listLeaks
	}
	loaded := loadedClasses{base.loaded(), head.loaded()}
	d.Leaks, d.Suspects = compare(base.leaks, head.leaks, loaded), compare(base.suspects, head.suspects, loaded)
	d.Warnings = append(d.Warnings, movedWarnings(d.Leaks)...)
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

// mismatches returns the reasons why the sizes of two dumps cannot be compared.
func mismatches(base, head *Dump) []string {
	list := []string{}
	if base.SizeModel != head.SizeModel {
		list = append(list,
			fmt.Sprintf("the dumps use different size models, %s and %s: differences in bytes mean nothing",
				base.SizeModel, head.SizeModel))
	}
	if base.IDSize != head.IDSize {
		list = append(list,
			fmt.Sprintf("base has %d-byte IDs and head %d-byte IDs: every reference differs in size, so differences "+
				"in bytes mean little; compare dumps from the same type of device", base.IDSize, head.IDSize))
	}
	// An incomplete dump may lack the classes that identify Android.
	whole := !base.Truncated && !base.Partial && !head.Truncated && !head.Partial
	if whole && (base.Android == nil) != (head.Android == nil) {
		list = append(list,
			"one dump is from Android and the other from a JVM: they have different classes and count different bytes")
	}
	return list
}

// nameMismatches returns the reasons why the names of two dumps do not refer to
// the same things. Names that mean nothing by themselves still refer to the
// same things if both dumps are from one build.
func nameMismatches(base, head *Summary) []string {
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
			list = append(list,
				fmt.Sprintf("the names of %s are obfuscated: its classes and leaks cannot be matched with those of "+
					"another build; pass the mapping.txt of its build with %s", side.which, side.flag))
		case namesOtherMapping:
			list = append(list,
				fmt.Sprintf("the mapping of %s belongs to another build: the names of its classes and leaks are "+
					"wrong; pass the mapping of its own build with %s", side.which, side.flag))
		}
	}
	return list
}

// unknown reports whether the names are obfuscated and the right mapping is
// missing.
func (n *Naming) unknown() bool { return n.Origin == namesObscure || n.Origin == namesOtherMapping }

// used returns the digest of the mapping that was used, or "" if no mapping was
// used.
func (n *Naming) used() string {
	if n.Mapping == nil {
		return ""
	}
	return n.Mapping.SHA256
}

// commonWarnings returns warnings about dumps from different apps or systems.
func commonWarnings(base, head *Dump) []string {
	list := []string{}
	if base.Truncated != head.Truncated || base.Partial != head.Partial {
		list = append(list,
			"one dump is complete and the other is not: objects missing from the incomplete one look gone or new")
	}
	if base.Android == nil || head.Android == nil {
		return list
	}
	b, h := base.Android, head.Android
	if b.SDK != h.SDK && b.SDK != 0 && h.SDK != 0 {
		list = append(list,
			fmt.Sprintf("the dumps are from different versions of Android, SDK %d and %d: the platform's own objects "+
				"differ", b.SDK, h.SDK))
	}
	if b.Package != h.Package && b.Package != "" && h.Package != "" {
		list = append(list, fmt.Sprintf("the dumps are from different apps, %s and %s", b.Package, h.Package))
	}
	return list
}

// compareClasses returns the classes that changed, sorted by the change in
// retained size, largest first.
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
			RetainedBytes:  change(b.retained.Total(), h.retained.Total()),
			RetainedNative: change(b.retained.Native, h.retained.Native),
		}
		if c.Status = statusOf(len(p.base) > 0, len(p.head) > 0, c.RetainedBytes, c.ShallowBytes,
			c.Instances); c.Status != statusKnown {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b ClassChange) int {
		return cmp.Or(bySize(a.RetainedBytes, b.RetainedBytes), bySize(a.ShallowBytes, b.ShallowBytes),
			bySize(a.Instances, b.Instances), cmp.Compare(a.Class, b.Class))
	})
	return list
}

// bySize orders changes by their absolute size, largest first.
func bySize(a, b Change) int { return cmp.Compare(max(b.Delta, -b.Delta), max(a.Delta, -a.Delta)) }

// statusOf returns new or gone if only one dump has the entry, otherwise the
// status of the first number that changed.
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

// pair is a name in both dumps, or two names that differ only in
// compiler-generated numbers.
type pair struct {
	name       string
	base, head []string
}

// pairs first matches equal names. It then matches the remaining names,
// ignoring the parts that change from build to build.
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
