package checkout

import (
	"path"
	"strings"
)

// readKotlin parses a Kotlin file
// (kotlinlang.org/spec/syntax-and-grammar.html). Kotlin's declaration keywords
// cannot be identifiers, so any of these keywords between the members of a
// class begins a declaration. Text in brackets, such as the body of a function,
// is skipped.
func (u *unit) readKotlin(file string) {
	top := &declaredClass{name: u.prefix + u.facade(file), line: 1}
	if u.kotlinBody(0, len(u.tokens), nil, kotlinFields{top}, 0) {
		u.classes = append(u.classes, top)
	}
}

// facade returns the name of the class that contains the declarations outside
// any class (kotlinlang.org/docs/java-to-kotlin-interop.html, Package-level
// functions).
func (u *unit) facade(file string) string {
	simple := strings.TrimSuffix(path.Base(file), ".kt")
	mangled := []byte(simple)
	for i, c := range mangled {
		if !isNameByte(c) {
			mangled[i] = '_'
		}
	}
	simple = string(mangled)
	if simple != "" && isDigit(simple[0]) {
		simple = "_" + simple
	}
	if simple != "" && simple[0] >= 'a' && simple[0] <= 'z' {
		simple = string(simple[0]-'a'+'A') + simple[1:]
	}
	simple += "Kt"
	given, several := "", false
	for i := 0; i < len(u.tokens) && !u.tokens[i].is("package") && !u.tokens[i].is("import"); i++ {
		t := u.tokens[i]
		switch {
		case t.is("JvmName") && u.at(i+1).kind == '(' && u.at(i+2).kind == literalToken:
			given = u.at(i + 2).text
		case t.is("JvmMultifileClass"):
			several = true
		case t.is("class") || t.is("fun") || t.is("val") || t.is("var") || t.is("object") || t.is("interface"):
			i = len(u.tokens) // no file annotations follow
		}
	}
	switch {
	case given == "":
		return simple
	case several: // each file has its own class, and the named class delegates to it
		return given + "__" + simple
	}
	return given
}

// kotlinFields lists the classes that hold the backing fields of one body's
// properties. The fields of a companion are static fields of the enclosing
// class, but those of an interface's companion are in the companion itself.
type kotlinFields []*declaredClass

func (f kotlinFields) add(name string, line int32) {
	for _, c := range f {
		c.add(name, line)
	}
}

// kotlinBody reads the declarations in a class, or in a file if class is nil.
// It reports whether there are functions or properties.
func (u *unit) kotlinBody(i, end int, class *declaredClass, fields kotlinFields, nesting int) (members bool) {
	for i < end {
		t := u.tokens[i]
		switch {
		case t.is("val") || t.is("var"):
			members = true
			i = u.kotlinProperty(i+1, end, fields)
		case t.is("fun") && !u.at(i+1).is("interface"):
			members = true
			i++
		case (t.is("class") || t.is("interface")) && u.at(i-1).kind != ':' && u.at(i+1).identifier():
			i = u.kotlinClass(i, end, class, nesting)
		case t.is("object") && u.at(i-1).is("companion"):
			i = u.kotlinCompanion(i, end, class, fields, nesting)
		case t.is("object") && u.at(i+1).identifier():
			i = u.kotlinClass(i, end, class, nesting)
		case t.kind == '<': // a comparison in an expression
			i++
		default:
			i = u.skip(i)
		}
	}
	return members
}

// kotlinProperty reads a property from the token after its keyword. An
// extension property such as `val String.initial` has no field.
func (u *unit) kotlinProperty(i, end int, fields kotlinFields) int {
	if i < end && u.tokens[i].kind == '<' {
		i = u.skip(i)
	}
	for i < end && u.tokens[i].kind == '@' {
		i = u.skipAnnotation(i)
	}
	t := u.at(i)
	if i >= end || !t.identifier() {
		return i
	}
	switch after := u.at(i + 1); {
	case after.kind == '.', after.kind == '<', after.kind == '?':
		return i + 1
	}
	fields.add(t.text, t.line)
	return i + 1
}

// kotlinClass reads a class, interface or object. Its keyword is at i.
func (u *unit) kotlinClass(i, end int, outer *declaredClass, nesting int) int {
	if nesting == maxNesting {
		return i + 1
	}
	simple := u.tokens[i+1]
	class := u.declare(outer, simple.text, simple.line)
	if u.tokens[i].is("object") {
		class.add("INSTANCE", simple.line)
	}
	h := u.kotlinHeader(i+2, end)
	u.kotlinParameters(h.constructor, class)
	u.kotlinMembers(h.body, class, kotlinFields{class}, nesting, u.at(i-1).is("enum"))
	return h.next
}

// kotlinCompanion reads a companion object. Its keyword is at i.
func (u *unit) kotlinCompanion(i, end int, outer *declaredClass, fields kotlinFields, nesting int) int {
	if nesting == maxNesting || outer == nil {
		return i + 1
	}
	simple, after := "Companion", i+1
	line := u.tokens[i].line
	if t := u.at(after); after < end && t.identifier() {
		simple, line, after = t.text, t.line, after+1
	}
	outer.add(simple, line)
	class := u.declare(outer, simple, line)
	h := u.kotlinHeader(after, end)
	u.kotlinMembers(h.body, class, append(kotlinFields{class}, fields...), nesting, false)
	return h.next
}

// kotlinMembers reads the body of a class, if it has one.
func (u *unit) kotlinMembers(body int, class *declaredClass, fields kotlinFields, nesting int, enum bool) {
	if body < 0 {
		return
	}
	first, last := body+1, u.closing(body)
	if enum {
		first = u.kotlinEntries(first, last, class, nesting)
	}
	u.kotlinBody(first, last, class, fields, nesting+1)
}

// kotlinEntries reads the entries of an enum and returns the index of the first
// member after them. The compiler generates a class for each entry with a body
// and names it after the entry.
func (u *unit) kotlinEntries(i, end int, class *declaredClass, nesting int) int {
	for i < end {
		t := u.tokens[i]
		switch {
		case t.kind == '@':
			i = u.skipAnnotation(i)
		case t.kind == ';':
			return i + 1
		case t.identifier():
			class.add(t.text, t.line)
			i++
			if u.at(i).kind == '(' {
				i = u.skip(i)
			}
			if i < end && u.at(i).kind == '{' && nesting < maxNesting {
				entry := u.declare(class, t.text, t.line)
				u.kotlinBody(i+1, u.closing(i), entry, kotlinFields{entry}, nesting+1)
				i = u.skip(i)
			}
		default:
			i = u.skip(i)
		}
	}
	return end
}

// kotlinParameters reads those parameters of a primary constructor that are
// properties.
func (u *unit) kotlinParameters(open int, class *declaredClass) {
	if open < 0 {
		return
	}
	for i, end := open+1, u.closing(open); i < end; {
		t := u.tokens[i]
		switch {
		case t.kind == '@':
			i = u.skipAnnotation(i)
		case (t.is("val") || t.is("var")) && u.at(i+1).identifier():
			class.add(u.at(i+1).text, u.at(i+1).line)
			i += 2
		case t.kind == '<':
			i++
		default:
			i = u.skip(i)
		}
	}
}

// kotlinHeader describes the part of a class declaration after the name.
type kotlinHeader struct {
	constructor int // the parenthesis that opens the parameters; -1 if there are none
	body        int // the brace that opens the body; -1 if there is none
	next        int // the index after the declaration
}

// kotlinHeader reads the header of a class up to its body. A class without a
// body ends at the first token that cannot be part of the header.
func (u *unit) kotlinHeader(i, end int) kotlinHeader {
	h := kotlinHeader{-1, -1, end}
	supertypes := false
	for i < end {
		t := u.tokens[i]
		if t.line != u.at(i-1).line && u.mayBegin(i) {
			open := u.constructor(i)
			if supertypes || h.constructor >= 0 || open < 0 {
				h.next = i
				return h
			}
			h.constructor, i = open, u.skip(open)
			continue
		}
		switch {
		case t.kind == '{':
			h.body, h.next = i, u.skip(i)
			return h
		case t.kind == ';', t.kind == '}', t.kind == ')', isKotlinDeclaration(t):
			h.next = i
			return h
		case t.kind == '@':
			i = u.skipAnnotation(i)
			continue
		case t.kind == ':':
			supertypes = true
		case t.kind == '(' && !supertypes && h.constructor < 0:
			h.constructor = i
		}
		i = u.skip(i)
	}
	return h
}

// mayBegin reports whether a token can begin a declaration if it is the first
// token on its line.
func (u *unit) mayBegin(i int) bool {
	t, before := u.tokens[i], u.at(i-1)
	switch {
	case t.kind != '@' && !t.identifier(), t.is("where"), t.is("by"), before.is("where"), before.is("by"):
		return false
	}
	return strings.IndexByte(",:.&", before.kind) < 0
}

// constructor returns the index of the parenthesis after `constructor` if the
// annotations and modifiers that begin at i belong to a primary constructor,
// and -1 otherwise.
func (u *unit) constructor(i int) int {
	for {
		switch t := u.at(i); {
		case t.kind == '@':
			i = u.skipAnnotation(i)
		case t.is("public"), t.is("private"), t.is("protected"), t.is("internal"):
			i++
		case t.is("constructor") && u.at(i+1).kind == '(':
			return i + 1
		default:
			return -1
		}
	}
}

// isKotlinDeclaration reports whether a token is a keyword that begins a
// declaration.
func isKotlinDeclaration(t token) bool {
	if t.kind != nameToken {
		return false
	}
	switch t.text {
	case "val", "var", "fun", "class", "interface", "object", "typealias":
		return true
	}
	return false
}
