package mapping

import (
	"slices"
	"strings"
)

// Frame is a frame of a stack trace, with the names in the source.
type Frame struct {
	Class, Method string
	// Source is the name of the source file: from the mapping, or otherwise
	// derived from the class's name as in R8's retrace. It is empty for a class
	// that is missing from the mapping: then the name in the dump is correct.
	Source string
	// Line is the line in the source, or the line number in the dump if the
	// mapping does not contain the line.
	Line int32
	// Alternative is the number of the result to which the frame belongs,
	// starting with 0. The frames of one result are adjacent. If there are
	// several results, only one of them is correct.
	Alternative int32
}

// maxFrames is the maximum number of frames in all results of one request. A
// range of more than maxSpread lines becomes one alternative without a line,
// instead of one per line.
const (
	maxFrames = 256
	maxSpread = 64
)

// Frame returns the frames of the source for one frame of the obfuscated build,
// innermost inlined ones first. line is the line number in the dump; it is 0 or
// less if the dump has none. The results are those of R8's retrace: for an
// ambiguous frame, all possibilities, one alternative after the other; for a
// frame of a compiler-generated method, no frames. A class or a method that is
// missing from the mapping keeps its name.
//
// A heap dump's traces are not exceptions, so R8's rewriteFrame, which changes
// the traces of some exceptions, never applies.
func (m *Mapping) Frame(class, method string, line int32) []Frame {
	c := m.renamed(class)
	if c == nil {
		return []Frame{{Class: class, Method: method, Line: line}}
	}
	t := retrace{Mapping: m, class: c, line: line}
	entries := m.methods(c, method)
	if len(entries) > 0 {
		t.narrow(partition(entries))
	}
	if len(t.answers) == 0 {
		return []Frame{t.frame(0, method, line)}
	}
	t.collect()
	return t.frames
}

// methods returns the mapping's lines for the methods with the given name in
// the build.
func (m *Mapping) methods(c *class, name string) (entries []method) {
	renamed := m.names.find(name)
	if renamed == 0 {
		return nil
	}
	var made []uint32
	for rest := c.members[c.methods:]; len(rest) > 0; {
		var e method
		e, rest = decodeMethod(rest)
		if e.renamed != renamed {
			continue
		}
		if e.synthesized && !slices.Contains(made, e.signature) {
			made = append(made, e.signature)
		}
		entries = append(entries, e)
	}
	// A comment below any line of a method marks the whole method as
	// compiler-generated (doc/retrace.md).
	for i := range entries {
		entries[i].synthesized = slices.Contains(made, entries[i].signature)
	}
	return entries
}

// inlined reports whether the method on a line of a mapping was inlined into
// the method on the next line: both lines have the same range of lines in the
// build.
func inlined(e, into method) bool { return e.obfuscated.known && e.obfuscated == into.obfuscated }

// outermost returns the index of the entry for the outermost method into which
// the method of entry i was inlined, or i if it was not inlined.
func outermost(entries []method, i int) int {
	for i+1 < len(entries) && inlined(entries[i], entries[i+1]) {
		i++
	}
	return i
}

// partition returns the lines of each method separately, if several methods
// have the same name. The methods are distinguished by the signature of the
// outermost method. If the first and the last signature are equal, all lines
// belong to one method, as in retrace.
func partition(entries []method) (parts [][]method) {
	last := outermost(entries, 0)
	if entries[last].signature == entries[len(entries)-1].signature {
		return [][]method{entries}
	}
	begin := 0
	for next := last + 1; next < len(entries); next = last + 1 {
		end := outermost(entries, next)
		if entries[end].signature != entries[last].signature {
			parts = append(parts, entries[begin:next])
			begin = next
		}
		last = end
	}
	return append(parts, entries[begin:])
}

// retrace holds one frame of the obfuscated build and the frames of the source
// found for it.
type retrace struct {
	*Mapping
	class *class
	line  int32
	// answers holds, for each possible method, the lines of the mapping that
	// apply.
	answers []answer
	// ambiguous is true if there is more than one result.
	ambiguous bool
	frames    []Frame
	count     int32
}

type answer struct {
	entries []method
	// synthesized is true if the outermost frame is compiler-generated.
	synthesized bool
}

// narrow finds the entries that apply to the line: those whose range contains
// it or, if no range does, those without a range. If the frame has no line,
// narrow selects the entries for line 0. If no entry applies to line 0, narrow
// selects the first entry without a range; if every entry has a range, it
// selects the method without line numbers.
func (t *retrace) narrow(parts [][]method) {
	t.pick(parts, func(part []method) []method { return onLine(part, max(t.line, 0)) })
	if len(t.answers) == 0 && t.line > 0 {
		t.pick(parts, withoutRange)
	}
	if len(t.answers) == 0 && t.line <= 0 {
		t.pick(parts, bare)
	}
	t.ambiguous = len(t.answers) > 1 || len(t.answers) == 1 && ambiguous(t.answers[0].entries)
}

func (t *retrace) pick(parts [][]method, choose func([]method) []method) {
	for _, part := range parts {
		if entries := choose(part); len(entries) > 0 {
			t.answers = append(t.answers, answer{entries, part[len(part)-1].synthesized})
		}
	}
}

// onLine returns the first entry whose range contains the line and the entries
// after it with the same range: the frames that were inlined there. If no range
// contains line 0, it returns the first entry without a range.
func onLine(part []method, line int32) []method {
	general := -1
	for i, e := range part {
		if !e.obfuscated.known && general < 0 {
			general = i
		}
		if e.obfuscated.has(line) {
			return part[i : outermost(part, i)+1]
		}
	}
	if line == 0 && general >= 0 {
		return part[general : general+1]
	}
	return nil
}

func withoutRange(part []method) (entries []method) {
	for _, e := range part {
		if !e.obfuscated.known {
			entries = append(entries, e)
		}
	}
	return entries
}

// bare returns the last entry of a method, with its line numbers removed.
func bare(part []method) []method {
	last := part[len(part)-1]
	return []method{{name: last.name, holder: last.holder}}
}

// ambiguous reports whether the entries of one method lead to more than one
// result.
func ambiguous(entries []method) bool {
	for i, e := range entries {
		if spread(e) || i > 0 && !inlined(entries[0], e) {
			return true
		}
	}
	return false
}

// spread reports whether an entry has several source lines and does not
// determine which of them applies.
func spread(e method) bool {
	if !e.original.known || e.original.span() == 1 {
		return false
	}
	return !e.obfuscated.known || e.obfuscated.span() != e.original.span()
}

// collect builds the frames of all results.
func (t *retrace) collect() {
	for _, a := range t.answers {
		for begin := 0; begin < len(a.entries); {
			end := outermost(a.entries, begin) + 1
			t.alternatives(a.entries[begin:end], a.synthesized)
			begin = end
		}
	}
}

// alternatives adds one stack of inlined frames for each possible line of the
// innermost frame.
func (t *retrace) alternatives(stack []method, synthesized bool) {
	first := stack[0]
	if !t.ambiguous || !spread(first) || first.original.span() > maxSpread {
		t.add(stack, t.lineOf(first), synthesized)
		return
	}
	for line := int64(first.original.from); line <= int64(first.original.to); line++ {
		t.add(stack, int32(line), synthesized)
	}
}

// add adds a result if it is new.
func (t *retrace) add(stack []method, line int32, synthesized bool) {
	if synthesized {
		stack = stack[:len(stack)-1]
	}
	if len(stack) == 0 || len(t.frames)+len(stack) > maxFrames {
		return
	}
	begin := len(t.frames)
	for i, e := range stack {
		if i > 0 {
			line = t.lineOf(e)
		}
		t.frames = append(t.frames, t.frame(e.holder, t.names.name(e.name), line))
	}
	if t.known(t.frames[begin:]) {
		t.frames = t.frames[:begin]
		return
	}
	for i := begin; i < len(t.frames); i++ {
		t.frames[i].Alternative = t.count
	}
	t.count++
}

// known reports whether the frames added last duplicate an earlier result.
func (t *retrace) known(last []Frame) bool {
	before := t.frames[:len(t.frames)-len(last)]
	for begin := 0; begin < len(before); {
		end := begin + 1
		for end < len(before) && before[end].Alternative == before[begin].Alternative {
			end++
		}
		if slices.EqualFunc(before[begin:end], last, Frame.same) {
			return true
		}
		begin = end
	}
	return false
}

func (f Frame) same(g Frame) bool {
	f.Alternative = g.Alternative
	return f == g
}

// lineOf returns the line in the source, or the requested line if the mapping
// does not determine the line in the source.
func (t *retrace) lineOf(e method) int32 {
	if !e.obfuscated.known {
		if e.original.known {
			return e.original.from
		}
		return t.line
	}
	if !t.ambiguous && t.line <= 0 {
		switch {
		case e.original.known && e.original.from > 0:
			return e.original.from
		case !e.original.known && e.obfuscated.from > 0:
			return e.obfuscated.from
		}
		return t.line
	}
	line := max(t.line, 0)
	switch {
	case !e.obfuscated.has(line) || !e.original.known:
		return t.line
	case e.original.from == e.original.to:
		return e.original.from
	case t.line <= 0:
		return t.line
	}
	return e.original.from + (line - e.obfuscated.from)
}

// frame returns the frame of a method of the class, or of holder if holder is
// set.
func (t *retrace) frame(holder uint32, method string, line int32) Frame {
	if holder == 0 {
		holder = t.class.original
	}
	name := t.names.name(holder)
	return Frame{Class: name, Method: method, Source: t.source(name), Line: line}
}

// source returns the source file of the class with the given name in the
// source.
func (m *Mapping) source(class string) string {
	for c := m.original(class); c != nil; c = m.at(c.next) {
		if c.source != 0 {
			return m.names.name(c.source)
		}
	}
	return inferred(class)
}

// inferred derives the name of a file from the name of the outermost class.
// Kotlin compiles the functions of a file into a class whose name ends in Kt.
func inferred(class string) string {
	simple := class[strings.LastIndexByte(class, '.')+1:]
	simple, _, _ = strings.Cut(simple, "$")
	if simple == "" {
		return ""
	}
	if file, ok := strings.CutSuffix(simple, "Kt"); ok {
		return file + ".kt"
	}
	return simple + ".java"
}
