package ksh

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// automaton is a regular expression compiled to a table with one step per byte
// of a line: the sets of states of Thompson's construction, computed in advance
// (Aho, Hopcroft, Ullman: The Design and Analysis of Computer Algorithms,
// section 9.1). It reports whether an ASCII line contains the pattern, but not
// where. Package regexp takes thirty times as long and used to dominate the
// time to read the smaps of a process.
type automaton struct {
	next [][utf8.RuneSelf]uint8
	// ends reports for each state whether a line that ends in it matches.
	ends []bool
}

// The first states of every automaton: the pattern can no longer be found, the
// pattern has been found, and the beginning of the line. In the first two
// states, the rest of the line makes no difference.
const (
	stateLost = iota
	stateFound
	stateFirst
)

// Limits on the work per automaton: even a short pattern may need very many
// states.
const (
	maxStates       = 128
	maxInstructions = 256
)

// matches reports whether the line contains the pattern; known is false if the
// line is not ASCII.
func (a *automaton) matches(line string) (found, known bool) {
	state := uint8(stateFirst)
	for i := range len(line) {
		if line[i] >= utf8.RuneSelf {
			return false, false
		}
		if state = a.next[state][line[i]]; state <= stateFound {
			return state == stateFound, true
		}
	}
	return a.ends[state], true
}

// newAutomaton returns the table for a regular expression of package regexp, or
// nil if the expression depends on word boundaries or is too large.
func newAutomaton(text string) *automaton {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil || len(prog.Inst) > maxInstructions {
		return nil
	}
	for _, in := range prog.Inst {
		if in.Op == syntax.InstEmptyWidth && syntax.EmptyOp(in.Arg)&^(syntax.EmptyBeginText|syntax.EmptyEndText) != 0 {
			return nil
		}
	}
	a, p := &automaton{}, program{prog}
	// A state is a set of instructions. The sets of stateLost and stateFound
	// are empty.
	sets := [][]uint32{
		stateLost: {}, stateFound: {}, stateFirst: p.closure([]uint32{uint32(prog.Start)}, syntax.EmptyBeginText),
	}
	states := map[string]uint8{keyOf(sets[stateLost]): stateLost}
	for state := 0; state < len(sets); state++ {
		if len(sets) > maxStates {
			return nil
		}
		at := syntax.EmptyEndText
		if state == stateFirst {
			at |= syntax.EmptyBeginText
		}
		a.ends = append(a.ends, state == stateFound || p.matched(p.closure(sets[state], at)))
		var row [utf8.RuneSelf]uint8
		for b := range row {
			switch {
			case state <= stateFound:
				row[b] = uint8(state)
				continue
			case p.matched(sets[state]):
				row[b] = stateFound
				continue
			}
			set := p.after(sets[state], rune(b))
			if p.matched(set) {
				row[b] = stateFound
				continue
			}
			key := keyOf(set)
			n, ok := states[key]
			if !ok && len(sets) <= maxStates {
				n = uint8(len(sets))
				states[key], sets = n, append(sets, set)
			}
			row[b] = n
		}
		a.next = append(a.next, row)
	}
	return a
}

// program is a compiled regular expression.
type program struct{ *syntax.Prog }

// after returns the instructions reachable after one more byte. The pattern may
// begin after any byte.
func (p program) after(set []uint32, b rune) []uint32 {
	next := []uint32{uint32(p.Start)}
	for _, pc := range set {
		if in := &p.Inst[pc]; in.Op >= syntax.InstRune && in.MatchRune(b) {
			next = append(next, in.Out)
		}
	}
	return p.closure(next, 0)
}

// closure returns, in order, the instructions that can be reached without
// reading a byte; at holds the conditions that are met. It omits jumps.
func (p program) closure(from []uint32, at syntax.EmptyOp) []uint32 {
	seen := make([]bool, len(p.Inst))
	var out []uint32
	for todo := slices.Clone(from); len(todo) > 0; {
		pc := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch in := &p.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			todo = append(todo, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			todo = append(todo, in.Out)
		case syntax.InstEmptyWidth:
			need := syntax.EmptyOp(in.Arg)
			if need&^at == 0 {
				todo = append(todo, in.Out)
			} else if need&syntax.EmptyEndText != 0 {
				out = append(out, pc) // the condition may hold at the end of the line
			}
		case syntax.InstFail:
		default:
			out = append(out, pc)
		}
	}
	slices.Sort(out)
	return out
}

func (p program) matched(set []uint32) bool {
	return slices.ContainsFunc(set, func(pc uint32) bool { return p.Inst[pc].Op == syntax.InstMatch })
}

func keyOf(set []uint32) string {
	var b []byte
	for _, pc := range set {
		b = binary.LittleEndian.AppendUint32(b, pc)
	}
	return string(b)
}
