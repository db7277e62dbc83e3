package androidsim

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// automaton is a pattern as a table that takes one step for each byte of a line, in
// the way of Thompson's construction with its sets of states made beforehand (Aho,
// Hopcroft, Ullman: The Design and Analysis of Computer Algorithms, section 9.1).
// It says whether the pattern is in a line of ASCII, not where. Package regexp
// tries the branches of a pattern one by one, which is most of the time that
// reading a process's smaps takes.
type automaton struct {
	// classes has for each ASCII byte the column of next; bytes of one class differ
	// for no instruction of the pattern.
	classes [utf8.RuneSelf]uint8
	width   int
	// next has the rows of the states: [state*width+class].
	next []uint16
	// ends says of each state whether the pattern is found if the line ends there.
	ends []bool
}

// The first states of every automaton: no end of the line can bring the pattern, the
// pattern was found, the beginning of the line.
const (
	stateLost = iota
	stateFound
	stateFirst
)

// What bounds the work for one automaton: a short pattern may need very many states.
const (
	maxStates       = 128
	maxInstructions = 256
)

// newAutomaton makes the table of a regular expression of package regexp; nil for
// one that looks at word boundaries or that is too large.
func newAutomaton(text string) *automaton {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil || len(prog.Inst) > maxInstructions {
		return nil
	}
	m := &determiner{prog: prog, states: map[string]uint16{}, automaton: &automaton{}}
	return m.make()
}

// matches says whether the pattern is in the line; it does not know where there are
// bytes that are not ASCII.
func (a *automaton) matches(line string) (found, known bool) {
	state := stateFirst
	for i := range len(line) {
		b := line[i]
		if b >= utf8.RuneSelf {
			return false, false
		}
		state = int(a.next[state*a.width+int(a.classes[b])])
		if state <= stateFound {
			return state == stateFound, true
		}
	}
	return a.ends[state], true
}

// determiner makes an automaton of a program.
type determiner struct {
	*automaton
	prog *syntax.Prog
	// states numbers the sets of instructions; samples has one byte of each class.
	states  map[string]uint16
	sets    [][]uint32
	samples []byte
}

func (m *determiner) make() *automaton {
	for i := range m.prog.Inst {
		const known = syntax.EmptyBeginText | syntax.EmptyEndText
		if in := &m.prog.Inst[i]; in.Op == syntax.InstEmptyWidth && syntax.EmptyOp(in.Arg)&^known != 0 {
			return nil
		}
	}
	m.classify()
	lost, found := []uint32{}, []uint32{}
	m.sets = [][]uint32{lost, found, m.closure([]uint32{uint32(m.prog.Start)}, syntax.EmptyBeginText)}
	m.states[key(lost)] = stateLost
	for state := 0; state < len(m.sets); state++ {
		if len(m.sets) > maxStates {
			return nil
		}
		m.fill(state)
	}
	return m.automaton
}

// classify puts bytes together that no instruction tells apart.
func (m *determiner) classify() {
	known := map[string]uint8{}
	for b := range byte(utf8.RuneSelf) {
		var sign []byte
		for i := range m.prog.Inst {
			if in := &m.prog.Inst[i]; takes(in, b) {
				sign = binary.AppendUvarint(sign, uint64(i))
			}
		}
		class, ok := known[string(sign)]
		if !ok {
			class = uint8(len(known))
			known[string(sign)] = class
			m.samples = append(m.samples, b)
		}
		m.classes[b] = class
	}
	m.width = len(m.samples)
}

// takes says whether an instruction goes on by a byte.
func takes(in *syntax.Inst, b byte) bool {
	switch in.Op {
	case syntax.InstRune:
		return in.MatchRune(rune(b))
	case syntax.InstRune1:
		return in.Rune[0] == rune(b)
	case syntax.InstRuneAny:
		return true
	case syntax.InstRuneAnyNotNL:
		return b != '\n'
	}
	return false
}

// fill adds the row of a state.
func (m *determiner) fill(state int) {
	at := syntax.EmptyOp(0)
	if state == stateFirst {
		at = syntax.EmptyBeginText
	}
	end := state == stateFound || m.matched(m.closure(m.sets[state], at|syntax.EmptyEndText))
	m.ends = append(m.ends, end)
	for _, b := range m.samples {
		m.next = append(m.next, m.step(state, b))
	}
}

// step is the state after one more byte.
func (m *determiner) step(state int, b byte) uint16 {
	if state <= stateFound {
		return uint16(state)
	}
	if m.matched(m.sets[state]) {
		return stateFound
	}
	// The pattern may begin after any byte.
	after := []uint32{uint32(m.prog.Start)}
	for _, pc := range m.sets[state] {
		if in := &m.prog.Inst[pc]; takes(in, b) {
			after = append(after, in.Out)
		}
	}
	set := m.closure(after, 0)
	if m.matched(set) {
		return stateFound
	}
	k := key(set)
	n, ok := m.states[k]
	if !ok {
		n = uint16(len(m.sets))
		m.states[k] = n
		m.sets = append(m.sets, set)
	}
	return n
}

// closure is all that can be reached without a byte where the conditions of at hold,
// in order. What only jumps is left out.
func (m *determiner) closure(from []uint32, at syntax.EmptyOp) []uint32 {
	seen := make([]bool, len(m.prog.Inst))
	var out []uint32
	for todo := slices.Clone(from); len(todo) > 0; {
		pc := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch in := &m.prog.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			todo = append(todo, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			todo = append(todo, in.Out)
		case syntax.InstEmptyWidth:
			need := syntax.EmptyOp(in.Arg)
			if need&^at == 0 {
				todo = append(todo, in.Out)
			} else if need&syntax.EmptyEndText != 0 {
				out = append(out, pc) // it may hold when the line ends
			}
		case syntax.InstFail:
		default:
			out = append(out, pc)
		}
	}
	slices.Sort(out)
	return out
}

func (m *determiner) matched(set []uint32) bool {
	return slices.ContainsFunc(set, func(pc uint32) bool { return m.prog.Inst[pc].Op == syntax.InstMatch })
}

// key is a set as the key of a map.
func key(set []uint32) string {
	var b []byte
	for _, pc := range set {
		b = binary.AppendUvarint(b, uint64(pc))
	}
	return string(b)
}
