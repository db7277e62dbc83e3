package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// The limits of a file. They are far above what a run needs, and keep a file
// that was made to hurt from doing so: aliases can turn a few lines into
// billions of values.
const (
	mostDepth    = 32    // nested mappings and lists
	mostEntries  = 1000  // of a list
	mostMerged   = 10000 // keys that merges bring in
	mostProblems = 100   // told at once
	mostNoted    = 2000  // looked into; of more it is only counted how many
)

var tooDeep = fmt.Sprintf("mappings and lists are nested more than %d deep", mostDepth)

const (
	nullTag  = "!!null"
	mergeTag = "!!merge"
)

// place is a value in the file.
type place struct {
	key  *yaml.Node // nil in a list and for the file as a whole
	node *yaml.Node
	path string
}

// mark is the node that messages about the place as a whole point to.
func (p place) mark() *yaml.Node {
	if p.key != nil {
		return p.key
	}
	return p.node
}

// walker goes through the tree of a file along a schema. It never stops at a
// problem.
type walker struct {
	source   source
	getenv   func(string) (string, bool)
	root     place
	problems Errors
	origins  map[string]Origin // of the values that were accepted
	written  map[string]place  // all keys of the schema that the file has
	merged   int
	unnoted  int // problems beyond mostNoted
}

func newWalker(s source, getenv func(string) (string, bool)) *walker {
	return &walker{source: s, getenv: getenv, origins: map[string]Origin{}, written: map[string]place{}}
}

// walk reads the whole file into c.
func (w *walker) walk(root *yaml.Node, c *Config) {
	w.root = place{node: root}
	if root.Kind != yaml.MappingNode {
		w.refuse(w.root, &fault{message: "the file must be a mapping with the keys version, app and workload, not " + kindOf(root)})
		return
	}
	w.mapping(w.root, schema(c))
	w.require(c)
}

// found gives the problems in the order of the file, each once, though an alias
// may lead to the same value on several ways.
func (w *walker) found() Errors {
	slices.SortStableFunc(w.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	errs := slices.CompactFunc(w.problems, func(a, b Problem) bool {
		return a.Line == b.Line && a.Column == b.Column && a.Message == b.Message
	})
	if more := len(errs) - mostProblems; more > 0 {
		errs = errs[:mostProblems+1]
		last := &errs[mostProblems]
		last.Path, last.Suggestion = "", ""
		last.Message = fmt.Sprintf("at least %d more problems from here on", more+w.unnoted)
	}
	// Only now, as looking at a long line for each of many problems takes long.
	for i, p := range errs {
		at := w.source.problem(p.Line, p.Column, "")
		errs[i].Line, errs[i].Column, errs[i].Excerpt = at.Line, at.Column, at.Excerpt
	}
	return errs
}

// refuse notes a problem with a place.
func (w *walker) refuse(at place, f *fault) {
	n := at.mark()
	w.note(n.Line, n.Column, at.path, f)
}

// refuseValue notes a problem with the value at a place, which may be written
// elsewhere, where an anchor is.
func (w *walker) refuseValue(at place, f *fault) {
	n := resolved(at.node)
	w.note(n.Line, n.Column, at.path, f)
}

func (w *walker) note(line, column int, path string, f *fault) {
	if w.full() {
		w.unnoted++
		return
	}
	w.problems = append(w.problems, Problem{
		File: w.source.name, Line: line, Column: column,
		Path: path, Message: f.message, Suggestion: f.suggestion,
	})
}

func (w *walker) full() bool { return len(w.problems) >= mostNoted }

// wrote tells whether the file has a key, be its value good or not.
func (w *walker) wrote(path string) bool {
	_, ok := w.written[path]
	return ok
}

// accepted tells whether the file has a good value for a key.
func (w *walker) accepted(path string) bool {
	_, ok := w.origins[path]
	return ok
}

func (w *walker) isMapping(path string) bool {
	p, ok := w.written[path]
	return ok && resolved(p.node).Kind == yaml.MappingNode
}

// accept notes where a value comes from.
func (w *walker) accept(at place, names []string) {
	n := resolved(at.node)
	w.origins[at.path] = Origin{Layer: File, File: w.source.name, Line: n.Line, Column: n.Column, Variables: names}
}

// shape refuses what no part of a file may have, known to the schema or not.
// It does not follow aliases, so it sees every node once.
func (w *walker) shape(n *yaml.Node) { w.shapeAt(n, 1) }

func (w *walker) shapeAt(n *yaml.Node, depth int) {
	if n.Style&yaml.TaggedStyle != 0 {
		w.refuse(place{node: n}, &fault{message: "a tag such as !!str is not supported: write the value alone"})
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

func (w *walker) uniqueKeys(n *yaml.Node) {
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode {
			w.refuse(place{node: k}, &fault{message: "a key must be a word, not " + kindOf(k)})
			continue
		}
		if line, ok := first[k.Value]; ok {
			w.refuse(place{node: k}, &fault{message: fmt.Sprintf("the key %s is here twice, first in line %d: remove one", quoted(k.Value), line)})
			continue
		}
		first[k.Value] = k.Line
	}
}

// pair is a key and its value in a mapping.
type pair struct{ key, value *yaml.Node }

// below is the place of the value of a pair.
func (p pair) below(at place) place {
	return place{key: p.key, node: p.value, path: join(at.path, p.key.Value)}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// pairsOf gives the keys and values of a mapping, and refuses anything else.
func (w *walker) pairsOf(at place) ([]pair, bool) {
	n := resolved(at.node)
	if n.Kind != yaml.MappingNode {
		w.refuse(at, &fault{message: "must be a mapping, that is keys with values, not " + kindOf(n)})
		return nil, false
	}
	return w.pairs(n), true
}

// pairs gives the keys and values of a mapping with those of its merges: a key
// of the mapping itself wins over a merged one, and an earlier merge over a
// later one (https://yaml.org/type/merge.html).
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
			*out = append(*out, pair{k, v})
		}
	}
	inside = append(inside, n)
	for _, m := range merges {
		for _, source := range mergeSources(m) {
			w.merge(m, source, seen, inside, out)
		}
	}
}

// mergeSources are what << names: one mapping or a list of them.
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
		w.refuse(place{node: at}, &fault{message: "<< leads back to itself"})
		return
	}
	if w.merged += 1 + len(r.Content)/2; w.merged > mostMerged {
		w.refuse(place{node: w.root.node}, &fault{message: fmt.Sprintf("merges (<<) bring in more than %d keys", mostMerged)})
		return
	}
	w.addPairs(r, seen, inside, out)
}

// mapping reads a mapping whose keys are known.
func (w *walker) mapping(at place, keys []key) {
	pairs, ok := w.pairsOf(at)
	if !ok {
		return
	}
	for _, p := range pairs {
		name := p.key.Value
		below := p.below(at)
		switch k, known := find(keys, name); {
		case at.path == "" && strings.HasPrefix(name, "x-"):
		case !known && w.full():
			w.unnoted++
		case !known:
			w.refuse(place{node: p.key, path: at.path}, unknownKey(name, keys))
		case k.notYet:
			w.refuse(below, &fault{message: "this key is not yet supported: remove it"})
		default:
			w.written[below.path] = below
			k.take(w, below)
		}
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

// names are the keys that can be written.
func names(keys []key) []string {
	var out []string
	for _, k := range keys {
		if !k.notYet {
			out = append(out, k.name)
		}
	}
	return out
}

// unknownKey suggests a key of the same mapping that is written alike, or else
// one of the same name that has its place elsewhere.
func unknownKey(name string, keys []key) *fault {
	f := &fault{message: "unknown key " + quoted(name)}
	if near, ok := Nearest(name, names(keys)); ok {
		f.suggestion = near
		return f
	}
	if elsewhere := pathOf(name, "", schema(defaults())); elsewhere != "" {
		f.message += " here: its place is " + elsewhere
		return f
	}
	f.message += ": possible here are " + strings.Join(names(keys), ", ")
	return f
}

func pathOf(name, path string, keys []key) string {
	for _, k := range keys {
		here := join(path, k.name)
		if k.name == name && !k.notYet {
			if path == "" {
				return here + ", not indented"
			}
			return here
		}
		if found := pathOf(name, here, k.keys); found != "" {
			return found
		}
	}
	return ""
}

// text gives the text of a single value with its variables filled in.
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
	t, reference, f := fill(n.Value, w.getenv)
	if f != nil {
		w.note(n.Line, w.columnOf(n, reference), at.path, f)
		return filled{}, false
	}
	return t, true
}

// columnOf finds a part of a value in the line where the value begins, and gives
// the column of the value where the part is not in that line, or the line is too
// long to look through for each of many values.
func (w *walker) columnOf(n *yaml.Node, part string) int {
	const longest = 4096
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

// scalar makes a reader of one value.
func scalar[T any](into *T, parse parser[T]) reader {
	return func(w *walker, at place) {
		t, ok := w.text(at)
		if !ok {
			return
		}
		v, f := parse(t.text)
		if f != nil {
			w.refuseValue(at, f.from(t.names))
			return
		}
		*into = v
		w.accept(at, t.names)
	}
}

// from says which variables a bad value was made of.
func (f *fault) from(names []string) *fault {
	if len(names) == 0 {
		return f
	}
	return &fault{f.message + " (filled in from " + strings.Join(names, ", ") + ")", f.suggestion}
}

// traits say what a list may be.
type traits uint8

const (
	distinct traits = 1 << iota
	mayBeEmpty
)

// list makes a reader of a list of values.
func list[T comparable](into *[]T, parse parser[T], is traits) reader {
	return func(w *walker, at place) {
		n := resolved(at.node)
		switch {
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
		case len(n.Content) > mostEntries:
			w.refuseValue(at, &fault{message: fmt.Sprintf("the list has %d entries, but at most %d are allowed", len(n.Content), mostEntries)})
			return
		}
		w.accept(at, nil)
		out := make([]T, len(n.Content))
		for i, entry := range n.Content {
			below := place{node: entry, path: fmt.Sprintf("%s[%d]", at.path, i)}
			scalar(&out[i], parse)(w, below)
			if is&distinct != 0 && w.accepted(below.path) && slices.Contains(out[:i], out[i]) {
				w.refuseValue(below, &fault{message: fmt.Sprintf("%s is in the list twice", quoted(fmt.Sprint(out[i])))})
			}
		}
		*into = out
	}
}

// plainWords tells whether a text is words that mean the same in a list.
func plainWords(text string) bool {
	return text != "" && len(text) < 100 && !strings.ContainsFunc(text, func(r rune) bool {
		return r >= utf8.RuneSelf || r < ' ' || strings.ContainsRune("'\"`$\\|&;<>(){}[],#*~", r)
	})
}

// resolved is the node that an alias stands for.
func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// kindOf names what a node is, for a message.
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
