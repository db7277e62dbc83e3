package config

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// mostProfiles limits the number of profiles, and with it the time for reading
// a file: the whole file is checked with each profile.
const mostProfiles = 50

// profileName matches the name of a profile, which is used on command lines, in
// environment variables and in reports.
var profileName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)

// profile is a named part of the file that can be applied to the rest.
type profile struct {
	name string
	at   place
}

// readProfiles finds the profiles. Their contents are read when they are
// applied to the file.
func readProfiles(w *walker, at place) {
	pairs, ok := w.pairsOf(at)
	if !ok {
		return
	}
	if len(pairs) > mostProfiles {
		w.refuse(at,
			&fault{message: fmt.Sprintf("has %d profiles, but at most %d are allowed", len(pairs), mostProfiles)})
		return
	}
	for _, p := range pairs {
		below := p.below(at)
		if !profileName.MatchString(p.key.Value) {
			w.refuse(place{node: p.key, path: at.path}, &fault{message: quoted(p.key.Value) +
				" is not the name of a profile: want a letter, then letters, digits and . _ -"})
			continue
		}
		if n := resolved(p.value); n.Kind != yaml.MappingNode {
			f := &fault{message: "a profile must be a mapping of keys of this file, not " + kindOf(n)}
			if n.Tag == nullTag {
				f.message += "; for a profile that changes nothing write {}"
			}
			w.refuse(below, f)
			continue
		}
		w.profiles = append(w.profiles, profile{p.key.Value, below})
	}
}

// belongsOutside reports whether a top-level key of the file is not allowed in
// a profile.
func belongsOutside(name string) bool {
	return name == "version" || name == "profiles" || strings.HasPrefix(name, "x-")
}

func (p profile) layer() *layer {
	return &layer{kind: Profile, name: p.name, root: p.at.node}
}

// reading is the state while the YAML tree of a file is converted into a
// Config.
type reading struct {
	source source
	getenv func(string) (string, bool)
	root   *yaml.Node
	chosen chosen

	environment, flags *layer
	filled             map[*yaml.Node]filling
	findings           findings
}

// resolve checks the file alone and with each profile, and then the selected
// configuration with all stronger layers. In configurations that are not
// selected, unset variables are ignored.
func (r *reading) resolve() (*Config, error) {
	r.environment, r.flags = environmentLayer(r.getenv), flagLayer(r.chosen.flags)
	r.findings = findings{source: r.source, index: map[Problem]int{}}
	r.filled = map[*yaml.Node]filling{}
	form := newWalker(r.source, r.getenv)
	form.shape(r.root)
	r.findings.add(form, "")
	r.root = withoutAnchors(r.root)

	layers, with := r.outside()
	chosen := newWalker(r.source, r.getenv)
	alone := chosen
	if r.chosen.profile != "" || len(with) > 0 {
		alone = r.lenient()
	}
	c := r.walk(alone, nil)
	r.findings.add(alone, "")
	for _, p := range alone.profiles {
		if len(r.findings.all) >= mostNoted {
			break // far more than are reported at once
		}
		w := r.lenient()
		r.walk(w, []*layer{p.layer()})
		r.findings.add(w, "profile "+p.name)
	}
	if alone != chosen {
		if p, ok := r.profile(alone.profiles); ok {
			layers, with = append([]*layer{p.layer()}, layers...), append([]string{"profile " + p.name}, with...)
		}
		c = r.walk(chosen, layers)
		r.findings.add(chosen, joinList(with, "and"))
	}
	if errs := r.findings.errors(); len(errs) > 0 {
		return nil, errs
	}
	c.gated = chosen.wrote("gate") || chosen.wrote("baseline")
	c.source, c.origins, c.profile, c.secrets = r.source, chosen.origins, r.chosen.profile, chosen.private
	for _, p := range alone.profiles {
		c.profiles = append(c.profiles, p.name)
	}
	return c, nil
}

// withoutAnchors returns the root without the keys that hold only anchors.
// There may be many such keys, and the file is walked once for each profile.
func withoutAnchors(root *yaml.Node) *yaml.Node {
	if root.Kind != yaml.MappingNode {
		return root
	}
	out := *root
	out.Content = nil
	for i := 0; i+1 < len(root.Content); i += 2 {
		if !strings.HasPrefix(root.Content[i].Value, "x-") {
			out.Content = append(out.Content, root.Content[i], root.Content[i+1])
		}
	}
	return &out
}

func (r *reading) lenient() *walker {
	w := newWalker(r.source, r.getenv)
	w.lenient = true
	return w
}

// walk reads the file with the given layers applied on top.
func (r *reading) walk(w *walker, layers []*layer) *Config {
	c := defaults()
	w.filled = r.filled
	w.supplied = []*layer{r.environment, r.flags}
	w.walk(r.root, layers, c)
	return c
}

// outside returns the nonempty layers that are not part of the file, and the
// sources of their values.
func (r *reading) outside() (layers []*layer, with []string) {
	for _, l := range []*layer{r.environment, r.flags} {
		for _, p := range l.faults {
			r.findings.note(noted{Problem: p, outside: true}, "", false)
		}
		if len(l.said) == 0 {
			continue
		}
		layers = append(layers, l)
		for _, place := range slices.Compact(slices.Sorted(maps.Values(l.said))) {
			with = append(with, strings.TrimPrefix(place, environmentPlace("")))
		}
	}
	return layers, with
}

// profile returns the selected profile. It is an error if the file does not
// have this profile.
func (r *reading) profile(profiles []profile) (profile, bool) {
	if r.chosen.profile == "" {
		return profile{}, false
	}
	for _, p := range profiles {
		if p.name == r.chosen.profile {
			return p, true
		}
	}
	r.findings.note(noted{Problem: r.noProfile(profiles)}, "", false)
	return profile{}, false
}

// noProfile reports that the selected profile is not in the file.
func (r *reading) noProfile(profiles []profile) Problem {
	at := place{node: r.root}
	var names []string
	for _, p := range profiles {
		names = append(names, p.name)
	}
	for i := 0; i+1 < len(r.root.Content); i += 2 {
		if k := r.root.Content[i]; k.Value == "profiles" {
			at = place{node: k, path: "profiles"}
		}
	}
	p := Problem{File: r.source.name, Line: at.node.Line, Column: at.node.Column, Path: at.path}
	p.Message = "there is no profile " + quoted(r.chosen.profile) + ": this file has "
	if len(names) == 0 {
		p.Message += "none"
		return p
	}
	p.Message += joinList(names, "and")
	p.Suggestion, _ = Nearest(r.chosen.profile, names)
	return p
}

// findings collects the problems of all walks over one file, without
// duplicates.
type findings struct {
	source  source
	all     []finding
	index   map[Problem]int
	unnoted int
}

// finding is a problem and the layers that cause it; a problem of the file
// alone has no such layers.
type finding struct {
	Problem
	with []string
}

// add records the problems found by a walk over the file and the given layers.
func (f *findings) add(w *walker, with string) {
	for _, p := range w.problems {
		f.note(p, with, w.lenient)
	}
	f.unnoted = max(f.unnoted, w.unnoted)
}

// note records a problem. If the problem is already known, note only adds the
// profile that also causes the problem; layers over the selected configuration
// are not added.
func (f *findings) note(p noted, with string, ofProfile bool) {
	// An alias may lead to the same value on several paths, so the path is not
	// part of the key.
	key := Problem{File: p.File, Line: p.Line, Column: p.Column, Message: p.Message}
	i, known := f.index[key]
	if !known {
		f.index[key] = len(f.all)
		found := finding{Problem: p.Problem}
		if with != "" && p.byOthers() {
			found.with = []string{with}
		}
		f.all = append(f.all, found)
		return
	}
	if before := f.all[i].with; ofProfile && len(before) > 0 && !slices.Contains(before, with) {
		f.all[i].with = append(before, with)
	}
}

// errors returns the problems in the order of the file. Problems of variables
// and flags have no line number and come first.
func (f *findings) errors() Errors {
	var errs Errors
	for _, found := range f.all {
		p := found.Problem
		if len(found.with) > 0 {
			p.Message += " (with " + joinList(found.with, "or") + ")"
		}
		errs = append(errs, p)
	}
	slices.SortStableFunc(errs, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if more := len(errs) - mostProblems; more > 0 {
		errs = errs[:mostProblems+1]
		last := &errs[mostProblems]
		last.Path, last.Suggestion = "", ""
		last.Message = fmt.Sprintf("at least %d more problems from here on", more+f.unnoted)
	}
	// Excerpts are added only here, because creating an excerpt of a long line
	// for each of many problems takes a long time.
	for i, p := range errs {
		if p.Line > 0 {
			at := f.source.problem(p.Line, p.Column, "")
			errs[i].Line, errs[i].Column, errs[i].Excerpt = at.Line, at.Column, at.Excerpt
		}
	}
	return errs
}

// joinList joins words into a list: a, b and c.
func joinList(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}
