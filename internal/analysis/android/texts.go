package android

import (
	"encoding/binary"
	"strings"
	"unicode/utf16"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/text"
)

const (
	// longestText is the maximum length of a kept string, in UTF-16 units;
	// longestClass is the maximum length of a class name, in characters.
	longestText  = 256
	longestClass = 512
)

// span is the position of a String's characters.
type span struct {
	array heap.Object
	// first and length count elements of the array; length may exceed the
	// length of the array.
	first, length uint32
	// wide reports whether a byte[] holds UTF-16.
	wide bool
}

// noArray means that there is no array. Every object number is smaller than
// noArray.
const noArray = ^heap.Object(0)

// layout holds the fields of java.lang.String that locate its characters.
// Depending on the runtime, they are value, offset and count (Dalvik, JDK 6),
// value (JDK 7), value and coder (JDK 9), or value and count (ART, which
// generates value for dumps, as a byte[] of ASCII or a char[]:
// runtime/hprof/hprof.cc).
type layout struct {
	graph                       *heap.Graph
	value, offset, count, coder *heap.Field
}

func newLayout(g *heap.Graph) *layout {
	const class = "java.lang.String"
	return &layout{
		g, g.Field(class, "value"), g.Field(class, "offset"), g.Field(class, "count"), g.Field(class, "coder"),
	}
}

// span finds the characters of a String. known is false if there are none,
// because value is null or is not in the dump. An empty String may have no
// characters.
func (l *layout) span(r *heap.Record) (s span, known bool) {
	s.length = 1<<32 - 1
	if l.offset.Declared() {
		first, ok := r.IntOf(l.offset)
		count, there := r.IntOf(l.count)
		if !ok || !there || first < 0 || count < 0 {
			return span{}, false
		}
		s.first, s.length = uint32(first), uint32(count)
	}
	if coder, ok := r.IntOf(l.coder); ok {
		s.wide = coder == 1
	}
	array, ok := r.RefOf(l.value)
	if !ok {
		null, _ := r.IsNull(l.value)
		count, counted := r.IntOf(l.count)
		return span{array: noArray}, !null && counted && count == 0
	}
	s.array = array
	return s, true
}

// characters are the characters of one requested string.
type characters struct {
	span
	// units holds the characters in UTF-16.
	units []uint16
	// known reports whether the string exists; cut reports whether it continues
	// after the kept characters.
	known, cut bool
}

// texts holds the strings requested by all topics.
type texts struct {
	layout *layout
	list   []characters
}

func newTexts(g *heap.Graph) *texts { return &texts{layout: newLayout(g)} }

const (
	// askString requests a String, or the char[] that holds a Thread's name in
	// old JDKs.
	askString uint8 = iota
	askChars
)

// text requests the contents of a String. It returns a number to be passed to
// the method at.
func (p *plan) text(o heap.Object) int {
	p.texts.list = append(p.texts.list, characters{})
	return p.askText(o, askString)
}

// textOf requests a string whose position is known.
func (p *plan) textOf(s span) int {
	p.texts.list = append(p.texts.list, characters{span: s})
	return p.askText(s.array, askChars)
}

func (p *plan) askText(o heap.Object, tag uint8) int {
	n := len(p.texts.list) - 1
	p.requests = append(p.requests, request{o, uint32(n), 0, tag})
	return n
}

// at returns a requested string, truncated and made printable, or "" if there
// is none.
func (t *texts) at(n int) string {
	if n < 0 || n >= len(t.list) || !t.list[n].known {
		return ""
	}
	x := &t.list[n]
	s := text.Excerpt(string(utf16.Decode(x.units)), longestText)
	if x.cut && !strings.HasSuffix(s, "…") {
		s += "…"
	}
	return s
}

func (t *texts) families() []*heap.Family { return nil }
func (t *texts) begin(*plan)              {}
func (t *texts) advance(*plan)            {}
func (t *texts) finish(*plan)             {}

func (t *texts) visit(p *plan, r *heap.Record, tag uint8, number uint32) {
	x := &t.list[number]
	if tag == askString && r.Kind == hprof.SubInstance {
		s, ok := t.layout.span(r)
		if !ok {
			return
		}
		x.span = s
		if s.length == 0 {
			x.known = true
			return
		}
		p.ask(s.array, askChars, int(number))
		return
	}
	if tag == askString {
		x.length = 1<<32 - 1
	}
	x.take(r)
}

// take appends the characters in a piece of the array to units.
func (x *characters) take(r *heap.Record) {
	size := r.Type.Size(8)
	if r.Kind != hprof.SubPrimitiveArray || (r.Type != hprof.Byte && r.Type != hprof.Char) {
		return
	}
	from, to := x.within(r)
	if from == uint64(x.first) {
		x.known, x.cut, x.units = true, false, x.units[:0]
	}
	if from >= to || !x.known {
		return
	}
	body := r.Body[(from-uint64(r.First))*uint64(size):][:(to-from)*uint64(size)]
	for len(body) > 0 {
		unit, n := x.unit(body, r.Type)
		if len(x.units) == longestText {
			x.cut = true
			return
		}
		x.units = append(x.units, unit)
		body = body[n:]
	}
}

func (x *characters) unit(b []byte, t hprof.Type) (uint16, int) {
	switch {
	case t == hprof.Char:
		return binary.BigEndian.Uint16(b), 2
	case x.wide && len(b) > 1:
		// A byte[] has the byte order of the machine, and Android and JVMs run
		// on little-endian machines.
		return binary.LittleEndian.Uint16(b), 2
	}
	return uint16(b[0]), 1
}

// within returns the elements of a span that a piece of its array contains, as
// a range.
func (s *span) within(r *heap.Record) (from, to uint64) {
	size := r.Type.Size(8)
	first := uint64(r.First)
	from = max(first, uint64(s.first))
	to = min(first+uint64(len(r.Body)/max(size, 1)), uint64(s.first)+uint64(s.length))
	return from, to
}
