package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// These limits are far above what a run needs. They protect against a malicious
// file: aliases can turn a few lines into billions of values.
const (
	mostDepth    = 32    // nested mappings and lists
	mostEntries  = 1000  // entries of a list
	mostMerged   = 10000 // keys added by merges
	mostProblems = 100   // problems reported at once
	mostNoted    = 2000  // problems recorded; any more are only counted
)

var tooDeep = fmt.Sprintf("mappings and lists are nested more than %d levels deep", mostDepth)

const (
	nullTag  = "!!null"
	mergeTag = "!!merge"
)

// place is the position of a value in the file or in a layer that is merged
// over it.
type place struct {
	key  *yaml.Node // nil in a list and for the file as a whole
	node *yaml.Node
	path string
	from *layer // nil if the place is in the file itself
	over []over // the layers merged over a mapping, weakest first
}

// entry returns the place of an entry of a list.
func (p place) entry(i int, node *yaml.Node) place {
	return place{node: node, path: fmt.Sprintf("%s[%d]", p.path, i), from: p.from}
}

// mark returns the node whose position appears in messages about the place as a
// whole.
func (p place) mark() *yaml.Node {
	if p.key != nil {
		return p.key
	}
	return p.node
}

// named returns the path as it is written in the file, including the profile.
func (p place) named() string {
	if p.from == nil || p.from.kind != Profile {
		return p.path
	}
	if p.path == "" {
		return "profiles." + p.from.name
	}
	return join("profiles."+p.from.name, p.path)
}

// noted is a problem that a walk has found.
type noted struct {
	Problem
	outside bool // in a profile, or outside the file
	unset   bool // caused by an unset variable
}

// byOthers reports whether a problem is in the file but may be caused by a
// layer that is merged over the file.
func (n noted) byOthers() bool { return !n.outside && !n.unset }

// walker walks the tree of a file according to a schema. It continues after
// every problem.
type walker struct {
	source   source
	getenv   func(string) (string, bool)
	filled   map[*yaml.Node]filling
	secrets  secrets // all secrets that were substituted
	private  secrets // those secrets that are not shown on devices and in records
	wanted   func(path string) string
	lenient  bool     // an unset variable is not a problem
	supplied []*layer // layers that may supply values in place of the file
	root     place
	problems []noted
	origins  map[string]Origin // origins of the accepted values
	written  map[string]place  // all keys of the schema that occur in the file
	profiles []profile
	merged   int
	unnoted  int // problems beyond mostNoted
}

func newWalker(s source, getenv func(string) (string, bool)) *walker {
	return &walker{
		source: s, getenv: getenv, filled: map[*yaml.Node]filling{}, secrets: secrets{}, private: secrets{},
		wanted: wanted, origins: map[string]Origin{}, written: map[string]place{},
	}
}

// walk reads the whole file, with the layers merged over it, into c.
func (w *walker) walk(root *yaml.Node, layers []*layer, c *Config) {
	w.root = place{node: root}
	if root.Kind != yaml.MappingNode {
		w.refuse(w.root,
			&fault{message: "the file must be a mapping with the keys version, app and workload, not " + kindOf(root)})
		return
	}
	for _, l := range layers {
		w.root.over = append(w.root.over, over{node: l.root, from: l})
	}
	w.mapping(w.root, schema(c))
	w.require(c)
}

// refuse records a problem at a place.
func (w *walker) refuse(at place, f *fault) { w.note(at, at.mark().Line, at.mark().Column, f) }

// refuseValue records a problem with the value at a place. If the value is an
// alias, the problem is reported where the value is written.
func (w *walker) refuseValue(at place, f *fault) {
	n := resolved(at.node)
	w.note(at, n.Line, n.Column, f)
}

func (w *walker) note(at place, line, column int, f *fault) {
	if w.full() {
		w.unnoted++
		return
	}
	p := Problem{
		File: w.source.name, Line: line, Column: column, Path: at.named(), Message: w.secrets.redact(f.message),
		Suggestion: w.secrets.redact(f.suggestion),
	}
	if at.from.outside() {
		p.File, p.Line, p.Column = at.from.sourceOf(at.path), 0, 0
	}
	w.problems = append(w.problems, noted{Problem: p, outside: at.from != nil, unset: f.unset})
}

func (w *walker) full() bool { return len(w.problems) >= mostNoted }

// wrote reports whether the file contains a key, even if its value is invalid.
func (w *walker) wrote(path string) bool {
	_, ok := w.written[path]
	return ok
}

// given reports whether a key has a value in the file, in an environment
// variable or in a flag. A required key may therefore be missing from the file.
func (w *walker) given(path string) bool {
	return w.wrote(path) || slices.ContainsFunc(w.supplied, func(l *layer) bool { return l.supplies(path) })
}

// accepted reports whether the file has a valid value for a key.
func (w *walker) accepted(path string) bool {
	_, ok := w.origins[path]
	return ok
}

func (w *walker) isMapping(path string) bool {
	p, ok := w.written[path]
	return ok && resolved(p.node).Kind == yaml.MappingNode
}

// accept records the origin of a value.
func (w *walker) accept(at place, names []string) {
	n := resolved(at.node)
	o := Origin{Layer: File, File: w.source.name, Line: n.Line, Column: n.Column, Variables: names}
	if len(names) > 0 {
		o.written = n.Value
	}
	switch {
	case at.from.outside():
		o = Origin{Layer: at.from.kind, Name: strings.TrimPrefix(at.from.sourceOf(at.path), environmentPlace(""))}
	case at.from != nil:
		o.Layer, o.Name = at.from.kind, at.from.name
	}
	w.origins[at.path] = o
}

// shape rejects what no part of a file may contain, not even a part outside the
// schema. It does not follow aliases, so it visits every node once.
func (w *walker) shape(n *yaml.Node) { w.shapeAt(n, 1) }

func (w *walker) shapeAt(n *yaml.Node, depth int) {
	if n.Style&yaml.TaggedStyle != 0 {
		w.refuseTag(n)
	}
	if depth > mostDepth {
		w.refuse(place{node: n}, &fault{message: tooDeep})
		return
	}
	if n.Kind == yaml.MappingNode {
		w.uniqueKeys(n)
	}
	for _, child := range n.Content {
		w.shapeAt(child, depth+1)
	}
}

// refuseTag rejects a tag. A tag that begins with != is the operator of an
// unquoted rule: it is read as the intended text, so that only the missing
// quotes are reported.
func (w *walker) refuseTag(n *yaml.Node) {
	f := &fault{message: "a tag such as !!str is not supported: write the value alone"}
	if strings.HasPrefix(n.Tag, "!=") && n.Kind == yaml.ScalarNode {
		text := strings.TrimSpace(n.Tag + " " + n.Value)
		f = &fault{message: "a value that begins with ! needs quotes, since YAML treats it as a tag"}
		if plainRule.MatchString(text) {
			f.suggestion = `"` + text + `"`
		}
		n.Tag, n.Value = "!!str", text
	}
	w.refuse(place{node: n}, f)
}

func (w *walker) uniqueKeys(n *yaml.Node) {
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode {
			w.refuse(place{node: k}, &fault{message: "a key must be a word, not " + kindOf(k)})
			continue
		}
		if line, ok := first[k.Value]; ok {
			w.refuse(place{node: k},
				&fault{message: fmt.Sprintf("duplicate key %s, first in line %d: remove one", quoted(k.Value), line)})
			continue
		}
		first[k.Value] = k.Line
	}
}

// pair is a key of a mapping and its value.
type pair struct {
	key, value *yaml.Node
	from       *layer
	over       []over
}

// below returns the place of the value of a pair.
func (p pair) below(at place) place {
	return place{key: p.key, node: p.value, path: join(at.path, p.key.Value), from: p.from, over: p.over}
}

// itself returns the place of the key of a pair, with the path of its mapping.
func (p pair) itself(at place) place {
	return place{node: p.key, path: at.path, from: p.from}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// pairsOf returns the keys and values of a mapping. It rejects nodes that are
// not mappings.
func (w *walker) pairsOf(at place) ([]pair, bool) {
	n := resolved(at.node)
	if n.Kind != yaml.MappingNode {
		w.refuse(at, &fault{message: "must be a mapping of keys to values, not " + kindOf(n)})
		return nil, false
	}
	return w.layered(at), true
}

// layered returns the keys and values of a mapping, combined with those of the
// layers over it: mappings are merged key by key, and all other values are
// replaced.
func (w *walker) layered(at place) []pair {
	out := unfoldBrief(at, w.pairs(at.node))
	for i := range out {
		out[i].from = at.from
	}
	if len(at.over) == 0 {
		return out
	}
	index := map[string]int{}
	for i, p := range out {
		index[p.key.Value] = i
	}
	for _, o := range at.over {
		for _, p := range unfoldBrief(at, w.pairs(o.node)) {
			p.from = o.from
			i, known := index[p.key.Value]
			switch {
			case !known || p.misplaced(at):
				if !known {
					index[p.key.Value] = len(out)
				}
				out = append(out, p)
			case w.mergeable(out[i].below(at), p):
				out[i].over = append(slices.Clip(out[i].over), over{p.key, p.value, p.from})
			default:
				out[i] = p
			}
		}
	}
	return out
}

// unfoldBrief converts a single value that is the short form of a mapping into
// that mapping, so that a layer can be merged over it.
func unfoldBrief(at place, pairs []pair) []pair {
	if at.path != "workload" {
		return pairs
	}
	for i, p := range pairs {
		n := resolved(p.value)
		if p.key.Value != "instrument" || n.Kind != yaml.ScalarNode || n.Tag == nullTag {
			continue
		}
		key := newText("component")
		key.Line, key.Column = n.Line, n.Column
		pairs[i].value = &yaml.Node{
			Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line, Column: n.Column, Content: []*yaml.Node{key, p.value},
		}
	}
	return pairs
}

// misplaced reports whether a profile contains a key that is only allowed in
// the file itself.
func (p pair) misplaced(at place) bool {
	return at.path == "" && p.from != nil && p.from.kind == Profile && belongsOutside(p.key.Value)
}

// mergeable reports whether a value is merged with a mapping key by key. A
// workload is a single choice, so it is replaced as a whole. There are two
// exceptions: an environment variable for a setting of monkey is merged with
// the monkey workload of the file, and one for a setting of windows is merged
// with any workload.
func (w *walker) mergeable(below place, p pair) bool {
	if resolved(below.node).Kind != yaml.MappingNode || resolved(p.value).Kind != yaml.MappingNode {
		return false
	}
	if below.path != "workload" {
		return true
	}
	have := w.layered(below)
	return p.from.outside() && !slices.ContainsFunc(w.pairs(p.value), func(p pair) bool {
		return p.key.Value != "windows" &&
			!slices.ContainsFunc(have, func(h pair) bool { return h.key.Value == p.key.Value })
	})
}

// pairs returns the keys and values of a mapping, including those of its
// merges. A key of the mapping itself overrides a merged one, and an earlier
// merge overrides a later one (https://yaml.org/type/merge.html).
func (w *walker) pairs(n *yaml.Node) []pair {
	var out []pair
	w.addPairs(resolved(n), map[string]bool{}, nil, &out)
	return out
}

func (w *walker) addPairs(n *yaml.Node, seen map[string]bool, inside []*yaml.Node, out *[]pair) {
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		switch {
		case k.Tag == mergeTag:
			merges = append(merges, v)
		case k.Kind == yaml.ScalarNode && !seen[k.Value]:
			seen[k.Value] = true
			*out = append(*out, pair{key: k, value: v})
		}
	}
	inside = append(inside, n)
	for _, m := range merges {
		for _, source := range mergeSources(m) {
			w.merge(m, source, seen, inside, out)
		}
	}
}

// mergeSources returns the mappings that << refers to, which may be one mapping
// or a list of them.
func mergeSources(m *yaml.Node) []*yaml.Node {
	if r := resolved(m); r.Kind == yaml.SequenceNode {
		return r.Content
	}
	return []*yaml.Node{m}
}

func (w *walker) merge(at, source *yaml.Node, seen map[string]bool, inside []*yaml.Node, out *[]pair) {
	r := resolved(source)
	switch {
	case r.Kind != yaml.MappingNode:
		w.refuse(place{node: source}, &fault{message: "<< takes a mapping or a list of mappings, not " + kindOf(r)})
		return
	case slices.Contains(inside, r) || len(inside) > mostDepth:
		w.refuse(place{node: at}, &fault{message: "<< merges itself"})
		return
	}
	if w.merged += 1 + len(r.Content)/2; w.merged > mostMerged {
		w.refuse(place{node: w.root.node},
			&fault{message: fmt.Sprintf("merges (<<) bring in more than %d keys", mostMerged)})
		return
	}
	w.addPairs(r, seen, inside, out)
}

// mapping reads a mapping with known keys.
func (w *walker) mapping(at place, keys []key) {
	pairs, ok := w.pairsOf(at)
	if !ok {
		return
	}
	for _, p := range pairs {
		name := p.key.Value
		below := p.below(at)
		switch k, known := find(keys, name); {
		case p.misplaced(at):
			w.refuse(p.itself(at),
				&fault{
					message: "the key " + quoted(name) + " is not allowed in a profile: it applies to the whole file",
				})
		case at.path == "" && strings.HasPrefix(name, "x-"):
		case !known && w.full():
			w.unnoted++
		case !known:
			w.refuseKey(p, func(p pair) place { return p.itself(at) },
				func(at place) *fault { return unknownKey(name, keys, at) })
			if k, ok := suggestKey(p, at, keys, pairs); ok {
				// A misspelled key is read like the suggested one: mistakes
				// below it are reported, but the suggested key is not reported
				// as missing.
				below.path = join(at.path, k.name)
				w.written[below.path] = below
				k.take(w, below)
			}
		case k.notYet:
			w.refuseKey(p, func(p pair) place { return p.below(at) }, func(place) *fault {
				return &fault{message: "this key is not yet supported: remove it"}
			})
		default:
			w.written[below.path] = below
			k.take(w, below)
		}
	}
}

// refuseKey rejects a key in every layer that contains it.
func (w *walker) refuseKey(p pair, where func(pair) place, why func(place) *fault) {
	for _, o := range append([]over{{p.key, p.value, p.from}}, p.over...) {
		at := where(pair{key: o.key, value: o.node, from: o.from})
		w.refuse(at, why(at))
	}
}

func find(keys []key, name string) (key, bool) {
	for _, k := range keys {
		if k.name == name {
			return k, true
		}
	}
	return key{}, false
}

// names returns the names of the allowed keys.
func names(keys []key) []string {
	var out []string
	for _, k := range keys {
		if !k.notYet {
			out = append(out, k.name)
		}
	}
	return out
}

// unknownKey reports an unknown key. It suggests a key of the same mapping with
// a similar name, or else a key with the same name that belongs elsewhere.
func unknownKey(name string, keys []key, at place) *fault {
	f := &fault{message: "unknown key " + quoted(name)}
	possible := possibleKeys(keys, at)
	if near, ok := suggestName(name, possible); ok {
		f.suggestion = near
		return f
	}
	if whole := wholeNames(name, possible); len(whole) > 0 {
		f.message += ": want " + joinList(whole, "or") + ", each as one key"
		return f
	}
	if elsewhere := pathOf(name, "", schema(defaults())); elsewhere != "" {
		f.message += " here: it belongs at " + place{path: elsewhere, from: at.from}.named()
		if !strings.Contains(elsewhere, ".") && at.from == nil {
			f.message += ", not indented"
		}
		return f
	}
	f.message += ": want " + strings.Join(possible, ", ")
	return f
}

// possibleKeys returns the keys that are allowed at a place.
func possibleKeys(keys []key, at place) []string {
	possible := names(keys)
	if at.path == "" && at.from != nil {
		possible = slices.DeleteFunc(possible, belongsOutside)
	}
	return possible
}

// suggestKey returns the key that the user probably meant by an unknown key,
// unless the mapping already contains it.
func suggestKey(p pair, at place, keys []key, beside []pair) (key, bool) {
	near, ok := suggestName(p.key.Value, possibleKeys(keys, p.itself(at)))
	if !ok || slices.ContainsFunc(beside, func(p pair) bool { return p.key.Value == near }) {
		return key{}, false
	}
	return find(keys, near)
}

// suggestName returns the name that was probably meant by an unknown name. This
// is the only dotted name that contains the unknown name as a part, or else a
// similar name.
func suggestName(name string, possible []string) (string, bool) {
	if whole := wholeNames(name, possible); len(whole) == 1 {
		return whole[0], true
	}
	return Nearest(name, possible)
}

// wholeNames returns the dotted names that contain a name as a part: they begin
// with the name followed by a dot or an underscore, or end with a dot followed
// by the name.
func wholeNames(name string, possible []string) []string {
	var out []string
	for _, whole := range possible {
		begins := strings.HasPrefix(whole, name+".") || strings.HasPrefix(whole, name+"_")
		if name != "" && strings.Contains(whole, ".") && (begins || strings.HasSuffix(whole, "."+name)) {
			out = append(out, whole)
		}
	}
	return out
}

func pathOf(name, path string, keys []key) string {
	for _, k := range keys {
		here := join(path, k.name)
		if k.name == name && !k.notYet {
			return here
		}
		if found := pathOf(name, here, k.keys); found != "" {
			return found
		}
	}
	return ""
}

// text returns a single value as a string, with variables substituted.
func (w *walker) text(at place) (filled, bool) {
	n := resolved(at.node)
	switch {
	case n.Kind != yaml.ScalarNode:
		w.refuse(at, &fault{message: "must be a single value, not " + kindOf(n)})
		return filled{}, false
	case n.Tag == nullTag:
		w.refuse(at, &fault{message: "has no value: write one, or remove the key"})
		return filled{}, false
	}
	t, reference, f := w.fill(at, n)
	switch {
	case f == nil && !utf8.ValidString(t.text):
		w.refuseValue(at, (&fault{message: "contains bytes that are not UTF-8"}).from(t.names))
		return filled{}, false
	case f == nil:
		w.secrets.add(t.secrets)
		if !isPublic(at.path) {
			w.private.add(t.secrets)
		}
		return t, true
	case !f.unset || !w.lenient:
		w.note(at, n.Line, w.columnOf(n, reference), f)
	}
	return filled{}, false
}

// fill replaces references to variables in values of the file. The value of a
// variable or a flag is used unchanged.
func (w *walker) fill(at place, n *yaml.Node) (filled, string, *fault) {
	if at.from.outside() {
		return filled{text: n.Value}, "", nil
	}
	done, ok := w.filled[n]
	if !ok {
		done.text, done.reference, done.fault = fill(n.Value, w.getenv)
		w.filled[n] = done
	}
	return done.text, done.reference, done.fault
}

// filling is the result of a substitution. It is kept because a file is walked
// once for each profile, and the environment stays the same.
type filling struct {
	text      filled
	reference string
	fault     *fault
}

// columnOf returns the column of a part of a value; it searches for the part in
// the line where the value begins. It returns the column of the value itself if
// the part is not in that line, or if the line is so long that searching it for
// many values would take too long.
func (w *walker) columnOf(n *yaml.Node, part string) int {
	const longest = 4096
	if part == "" || n.Line < 1 {
		return n.Column
	}
	line := w.source.line(min(n.Line, len(w.source.lines)))
	text := []rune(line[:min(len(line), longest)])
	if n.Column > len(text) {
		return n.Column
	}
	before, _, ok := strings.Cut(string(text[n.Column-1:]), part)
	if !ok {
		return n.Column
	}
	return n.Column + utf8.RuneCountInString(before)
}

// scalar returns a reader for a single value.
func scalar[T any](into *T, parse parser[T]) reader {
	return func(w *walker, at place) {
		t, ok := w.text(at)
		if !ok {
			return
		}
		v, f := parse(t.text)
		if f != nil {
			n, part := resolved(at.node), f.part
			if len(t.secrets) > 0 {
				part = "" // the value is outside the file
			}
			w.note(at, n.Line, w.columnOf(n, part), f.hide(t, w.wanted(at.path)))
			return
		}
		*into = v
		w.accept(at, t.names)
	}
}

// from returns a note about the variables in an invalid value.
func (f *fault) from(names []string) *fault {
	if len(names) == 0 {
		return f
	}
	return &fault{message: f.message + " (filled in from " + strings.Join(names, ", ") + ")", suggestion: f.suggestion}
}

// traits are flags that describe which kinds of lists are allowed.
type traits uint8

const (
	distinct traits = 1 << iota
	mayBeEmpty
	mayBeSingle // a single value is the short form of a list with one entry
)

// list returns a reader for a list of values.
func list[T comparable](into *[]T, parse parser[T], is traits) reader {
	return func(w *walker, at place) {
		n := resolved(at.node)
		switch {
		case is&mayBeSingle != 0 && n.Kind == yaml.ScalarNode && n.Tag != nullTag:
			var v T
			if scalar(&v, parse)(w, at); w.accepted(at.path) {
				*into = []T{v}
			}
			return
		case n.Kind != yaml.SequenceNode:
			f := &fault{message: "must be a list, not " + kindOf(n)}
			if n.Kind == yaml.ScalarNode && plainWords(n.Value) {
				f.suggestion = "[" + strings.Join(strings.Fields(n.Value), ", ") + "]"
			}
			w.refuse(at, f)
			return
		case len(n.Content) == 0 && is&mayBeEmpty == 0:
			w.refuseValue(at, &fault{message: "the list is empty: write at least one entry, or remove the key"})
			return
		case w.tooLong(at, mostEntries):
			return
		}
		w.accept(at, nil)
		var out []T
		for i, entry := range n.Content {
			below := at.entry(i, entry)
			var v T
			scalar(&v, parse)(w, below)
			if is&distinct != 0 && w.accepted(below.path) && slices.Contains(out, v) {
				w.refuseValue(below, &fault{message: fmt.Sprintf("%s is in the list twice", quoted(fmt.Sprint(v)))})
			}
			out = append(out, v)
		}
		*into = out
	}
}

// tooLong rejects a list with too many entries.
func (w *walker) tooLong(at place, most int) bool {
	n := len(resolved(at.node).Content)
	if n > most {
		w.refuseValue(at, &fault{message: fmt.Sprintf("the list has %d entries, but at most %d are allowed", n, most)})
	}
	return n > most
}

// plainWords reports whether the words of a string can become the entries of a
// YAML list without quotes.
func plainWords(text string) bool {
	return text != "" && len(text) < 100 && !strings.ContainsFunc(text, func(r rune) bool {
		return r >= utf8.RuneSelf || r < ' ' || strings.ContainsRune("'\"`$\\|&;<>(){}[],#*~", r)
	})
}

// resolved returns the node that an alias refers to, or the node itself.
func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// kindOf describes a node for a message.
func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case n.Tag == nullTag:
		return "an empty value"
	}
	return "the single value " + quoted(n.Value)
}
