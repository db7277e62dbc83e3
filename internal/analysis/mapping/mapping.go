package mapping

import "strings"

// Mapping translates the names of an obfuscated build to those of the source.
// It does not change after it has been read, so it is safe for concurrent use.
type Mapping struct {
	// ID is R8's identifier of the mapping: its "pg_map_id" or, if there is
	// none, Hash. Hash is the SHA-256 of the content in hexadecimal digits, as
	// stated in the mapping. ID and Hash are empty if the mapping does not
	// contain them, as with ProGuard.
	ID, Hash string
	// Compiler is the program that wrote the mapping, and Version is its
	// version, for example "R8" and "8.5.35". Compiler and Version are empty if
	// the mapping does not contain them.
	Compiler, Version string
	// Classes, Fields and Methods are the numbers of parsed lines of each kind.
	Classes, Fields, Methods int
	// Warnings describes what could not be parsed: one warning for each kind of
	// problem, with the first line and the count.
	Warnings []error

	names   *names
	classes []class
	// byRenamed and byOriginal map the number of a name to the number, plus 1,
	// of the class with that name in the obfuscated build and in the source,
	// respectively.
	byRenamed, byOriginal []uint32
}

// class is the part of a mapping below the line of a class.
type class struct {
	original, renamed uint32
	// source is the name of the source file.
	source uint32
	// next is the number, plus 1, of the next class with the same original
	// name.
	next        uint32
	synthesized bool
	// members holds the encoded fields, followed by the encoded methods;
	// methods is the offset of the first encoded method.
	members []byte
	methods uint32
}

// Class returns the source name of a class, given its name in a dump. It also
// accepts an array of the class, such as "a.b[]". A name that is missing from
// the mapping is returned unchanged.
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

// Field returns the source name of a field. class is the source name of the
// class that declares the field, and name is the field's name in the dump. The
// name is returned unchanged if it is missing from the mapping, or if fields of
// several types share it and have different names in the source: FieldOfType
// distinguishes those.
func (m *Mapping) Field(class, name string) string { return m.field(class, name, anyKind) }

// FieldOfType is like Field, but distinguishes fields with the same name and
// different types, which aggressive overloading produces. kind is the type in
// the dump: the name of a primitive type such as "int", or "object".
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

// Synthesized reports whether a class is compiler-generated and therefore
// missing from the source. The class is given by its source name in the
// mapping.
func (m *Mapping) Synthesized(originalClass string) bool {
	for c := m.original(originalClass); c != nil; c = m.at(c.next) {
		if c.synthesized {
			return true
		}
	}
	return false
}

// renamed returns the class with the given name in the obfuscated build, or nil
// if there is none.
func (m *Mapping) renamed(name string) *class { return m.at(m.byRenamed[m.names.find(name)]) }

// original returns the first class with the given name in the source, or nil if
// there is none.
func (m *Mapping) original(name string) *class { return m.at(m.byOriginal[m.names.find(name)]) }

func (m *Mapping) at(i uint32) *class {
	if i == 0 {
		return nil
	}
	return &m.classes[i-1]
}

// index indexes the classes by name. If two classes have the same name in the
// build, it keeps the first; if several have the same name in the source, it
// keeps all of them in order.
func (m *Mapping) index() {
	m.byRenamed, m.byOriginal = make([]uint32, m.names.len()), make([]uint32, m.names.len())
	for i := len(m.classes) - 1; i >= 0; i-- {
		c := &m.classes[i]
		c.next = m.byOriginal[c.original]
		m.byOriginal[c.original] = uint32(i) + 1
		m.byRenamed[c.renamed] = uint32(i) + 1
	}
}
