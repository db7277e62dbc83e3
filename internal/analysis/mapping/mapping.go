package mapping

import "strings"

// Mapping tells the names of the source for those of an obfuscated build. It does not
// change once it is read, so that several goroutines can ask.
type Mapping struct {
	// ID is what R8 calls the mapping: its "pg_map_id", or the hash of its content
	// where that is all there is. Hash is that hash, SHA-256 in hexadecimal digits.
	// Each is empty where the mapping has none, as ProGuard's have.
	ID, Hash string
	// Compiler is who wrote the mapping and Version its version, as in "R8" and
	// "8.5.35". Empty where the mapping does not say.
	Compiler, Version string
	// Classes, Fields and Methods are how many lines of each kind were understood.
	Classes, Fields, Methods int
	// Warnings tell what was not understood: one for each kind of doubt, with the first
	// line of it and the count.
	Warnings []error

	names   *names
	classes []class
	// byRenamed and byOriginal give for the number of a name the class, plus 1, that is
	// called so in the obfuscated build and in the source.
	byRenamed, byOriginal []uint32
}

// class is the part of a mapping below the line of a class.
type class struct {
	original, renamed uint32
	// source is the name of the source file.
	source uint32
	// next is the next class of the same original name, plus 1.
	next        uint32
	synthesized bool
	// members are the encoded fields, and from methods on the encoded methods.
	members []byte
	methods uint32
}

// Class gives the name of the source for a class as a dump names it, also for an array
// of it as in "a.b[]". A name that the mapping does not hold stays as it is.
func (m *Mapping) Class(name string) string {
	element := strings.TrimRight(name, "[]")
	c := m.renamed(element)
	if c == nil {
		return name
	}
	original := m.names.name(c.original)
	switch len(element) {
	case len(original):
		if element == original {
			return name
		}
	case len(name):
		return original
	}
	return original + name[len(element):]
}

// Field gives the name of the source for a field. class is the name that the source has
// for the class that declares it, name the one that the dump has. It stays as it is
// where the mapping does not hold it, and where fields of several types share it and
// have several names in the source: FieldOfType tells those apart.
func (m *Mapping) Field(class, name string) string { return m.field(class, name, anyKind) }

// FieldOfType does as Field and tells fields apart that are called the same and have
// different types, which aggressive overloading leaves behind. kind is what a dump
// knows of the type: the name of a primitive type as in "int", or "object".
func (m *Mapping) FieldOfType(class, name, kind string) string {
	return m.field(class, name, kindOf([]byte(kind)))
}

func (m *Mapping) field(class, name string, wanted kind) string {
	renamed := m.names.find(name)
	if renamed == 0 {
		return name
	}
	found := uint32(0)
	for c := m.original(class); c != nil; c = m.at(c.next) {
		for rest := c.members[:c.methods]; len(rest) > 0; {
			var f field
			f, rest = decodeField(rest)
			if f.renamed != renamed || wanted != anyKind && f.kind != wanted {
				continue
			}
			if found != 0 && found != f.name {
				return name
			}
			found = f.name
		}
	}
	if found == 0 {
		return name
	}
	return m.names.name(found)
}

// Synthesized tells whether the compiler made a class up: one that the source lacks,
// by the name that the mapping has on the source's side.
func (m *Mapping) Synthesized(originalClass string) bool {
	for c := m.original(originalClass); c != nil; c = m.at(c.next) {
		if c.synthesized {
			return true
		}
	}
	return false
}

// renamed gives the class that the obfuscated build calls so, nil if there is none.
func (m *Mapping) renamed(name string) *class { return m.at(m.byRenamed[m.names.find(name)]) }

// original gives the first class that the source calls so, nil if there is none.
func (m *Mapping) original(name string) *class { return m.at(m.byOriginal[m.names.find(name)]) }

func (m *Mapping) at(i uint32) *class {
	if i == 0 {
		return nil
	}
	return &m.classes[i-1]
}

// index makes the classes be found by their names: of two that the build calls the same
// the first, of several that the source calls the same all in their order.
func (m *Mapping) index() {
	m.byRenamed, m.byOriginal = make([]uint32, m.names.len()), make([]uint32, m.names.len())
	for i := len(m.classes) - 1; i >= 0; i-- {
		c := &m.classes[i]
		c.next = m.byOriginal[c.original]
		m.byOriginal[c.original] = uint32(i) + 1
		m.byRenamed[c.renamed] = uint32(i) + 1
	}
}
