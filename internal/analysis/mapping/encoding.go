package mapping

import "encoding/binary"

// kind is the type of a field, as precisely as a dump records it.
type kind byte

const (
	object kind = iota
	anyKind
	firstPrimitive
)

// primitives lists the primitive types, by their names in Java and in
// descriptors.
var primitives = []struct {
	name   string
	letter byte
}{{"boolean", 'Z'}, {"byte", 'B'}, {"char", 'C'}, {"short", 'S'}, {"int", 'I'}, {"long", 'J'}, {"float", 'F'},
	{"double", 'D'}}

// kindOf returns the kind of a type in Java's notation.
func kindOf(name []byte) kind {
	for i, p := range primitives {
		if p.name == string(name) {
			return firstPrimitive + kind(i)
		}
	}
	return object
}

// kindOfDescriptor returns the kind of a type in the notation of class files.
func kindOfDescriptor(text string) kind {
	for i, p := range primitives {
		if len(text) == 1 && text[0] == p.letter {
			return firstPrimitive + kind(i)
		}
	}
	return object
}

// field is a parsed line that describes a field. renamed and name are the
// numbers that stand for names.
type field struct {
	renamed, name uint32
	kind          kind
}

// appendField appends an encoded field. The kind comes first, so a comment
// below the line can change it in place.
func appendField(b []byte, f field) []byte {
	b = append(b, byte(f.kind))
	b = binary.AppendUvarint(b, uint64(f.renamed))
	return binary.AppendUvarint(b, uint64(f.name))
}

func decodeField(b []byte) (field, []byte) {
	f := field{kind: kind(b[0])}
	f.renamed, b = decodeNumber(b[1:])
	f.name, b = decodeNumber(b)
	return f, b
}

// method is a parsed line that describes a method. renamed, name and holder are
// the numbers that stand for names.
type method struct {
	renamed, name, holder uint32
	obfuscated, original  lines
	// signature is a hash of the type, the name and the arguments, which
	// distinguishes methods with the same name.
	signature   uint32
	synthesized bool
}

const (
	hasObfuscated = 1 << iota
	hasOriginal
	hasHolder
	isSynthesized
)

// appendMethod appends an encoded method. The flags come first, so a comment
// below the line can change them in place.
func appendMethod(b []byte, m method) []byte {
	at := len(b)
	b = append(b, 0)
	b = binary.AppendUvarint(b, uint64(m.renamed))
	b = binary.AppendUvarint(b, uint64(m.name))
	b = binary.LittleEndian.AppendUint32(b, m.signature)
	if m.holder != 0 {
		b[at] |= hasHolder
		b = binary.AppendUvarint(b, uint64(m.holder))
	}
	if m.obfuscated.known {
		b[at] |= hasObfuscated
		b = appendLines(b, m.obfuscated)
	}
	if m.original.known {
		b[at] |= hasOriginal
		b = appendLines(b, m.original)
	}
	return b
}

func appendLines(b []byte, l lines) []byte {
	b = binary.AppendUvarint(b, uint64(l.from))
	return binary.AppendUvarint(b, uint64(l.to-l.from))
}

func decodeMethod(b []byte) (method, []byte) {
	var m method
	flags := b[0]
	m.synthesized = flags&isSynthesized != 0
	m.renamed, b = decodeNumber(b[1:])
	m.name, b = decodeNumber(b)
	m.signature, b = binary.LittleEndian.Uint32(b), b[4:]
	if flags&hasHolder != 0 {
		m.holder, b = decodeNumber(b)
	}
	if flags&hasObfuscated != 0 {
		m.obfuscated, b = decodeLines(b)
	}
	if flags&hasOriginal != 0 {
		m.original, b = decodeLines(b)
	}
	return m, b
}

func decodeLines(b []byte) (lines, []byte) {
	from, b := decodeNumber(b)
	more, b := decodeNumber(b)
	return lines{int32(from), int32(from + more), true}, b
}

// decodeNumber decodes a number encoded by this package, which is always valid.
func decodeNumber(b []byte) (uint32, []byte) {
	n, size := binary.Uvarint(b)
	return uint32(n), b[size:]
}
