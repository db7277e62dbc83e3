package checkout

// readJava parses a Java compilation unit (Java Language Specification,
// chapters 7 to 9). It parses valid code completely, and any other text as far
// as possible.
func (u *unit) readJava() { u.javaBody(0, len(u.tokens), nil, 0) }

// javaBody parses the members of a class; class is nil outside any class.
func (u *unit) javaBody(i, end int, class *declaredClass, nesting int) {
	for i < end {
		i = u.javaMember(i, end, class, nesting)
	}
}

// javaMember parses one member and returns the index after it. Modifiers,
// annotations and a type may precede the member's name: it is the last
// identifier before the token that distinguishes a field from a method.
func (u *unit) javaMember(i, end int, class *declaredClass, nesting int) int {
	last := token{}
	for i < end {
		t := u.tokens[i]
		switch {
		case t.kind == ';' || t.kind == '=' || t.kind == ',':
			return u.javaVariables(i, end, last, class)
		case t.kind == '{': // an initializer, or the constructor of a record
			return u.skip(i)
		case t.kind == '(':
			return u.skipJavaMethod(i, end)
		case t.kind == '@' && !u.at(i+1).is("interface"):
			i = u.skipAnnotation(i)
		case u.isJavaType(i):
			return u.javaType(i, end, class, nesting)
		case t.identifier():
			last = t
			i++
		default:
			i = u.skip(i)
		}
	}
	return end
}

// javaVariables reads the variables that one field declaration declares. The
// name of the first variable has already been read.
func (u *unit) javaVariables(i, end int, variable token, class *declaredClass) int {
	for i < end {
		if variable.identifier() {
			class.add(variable.text, variable.line)
		}
		for i < end && u.tokens[i].kind != ',' && u.tokens[i].kind != ';' {
			if u.tokens[i].kind == '}' {
				return i + 1
			}
			i = u.skip(i)
		}
		if u.at(i).kind != ',' {
			return i + 1
		}
		variable = u.at(i + 1)
		i += 2
	}
	return end
}

// skipJavaMethod returns the index after a method whose parameters begin at i.
func (u *unit) skipJavaMethod(i, end int) int {
	for i = u.skip(i); i < end; i = u.skip(i) {
		switch u.tokens[i].kind {
		case ';', '}':
			return i + 1
		case '{':
			// The default value of an annotation's method may also be in
			// braces; the semicolon after it is parsed as an empty member.
			return u.skip(i)
		}
	}
	return end
}

// isJavaType reports whether a token is the keyword of a class, interface, enum
// or record. record is a keyword only in this position.
func (u *unit) isJavaType(i int) bool {
	t := u.tokens[i]
	if !u.at(i + 1).identifier() {
		return t.kind == '@' // the at sign of @interface
	}
	switch {
	case t.is("class"), t.is("interface"), t.is("enum"):
		return u.at(i-1).kind != '.'
	case t.is("record"):
		after := u.at(i + 2).kind
		return after == '(' || after == '<'
	}
	return t.kind == '@'
}

// javaType reads a class, interface, enum, record or annotation type. Its
// keyword is at i.
func (u *unit) javaType(i, end int, outer *declaredClass, nesting int) int {
	if u.tokens[i].kind == '@' {
		i++
	}
	keyword, simple := u.tokens[i], u.at(i+1)
	if !simple.identifier() || nesting == maxNesting {
		return i + 1
	}
	class := u.declare(outer, simple.text, simple.line)
	components := keyword.is("record")
	for i += 2; i < end; i = u.skip(i) {
		switch u.tokens[i].kind {
		case ';', '}':
			return i + 1
		case '(':
			if components {
				u.javaComponents(i+1, u.closing(i), class)
				components = false
			}
		case '{':
			first, last := i+1, u.closing(i)
			if keyword.is("enum") {
				first = u.javaConstants(first, last, class)
			}
			u.javaBody(first, last, class, nesting+1)
			return u.skip(i)
		}
	}
	return end
}

// javaComponents reads the components of a record.
func (u *unit) javaComponents(i, end int, class *declaredClass) {
	last := token{}
	for i < end {
		t := u.tokens[i]
		switch {
		case t.kind == ',' && last.identifier():
			class.add(last.text, last.line)
			last = token{}
			i++
		case t.kind == '@':
			i = u.skipAnnotation(i)
		case t.identifier():
			last = t
			i++
		default:
			i = u.skip(i)
		}
	}
	if last.identifier() {
		class.add(last.text, last.line)
	}
}

// javaConstants reads the constants of an enum and returns the index of the
// first member after them.
func (u *unit) javaConstants(i, end int, class *declaredClass) int {
	for i < end {
		t := u.tokens[i]
		switch {
		case t.kind == '@':
			i = u.skipAnnotation(i)
		case t.kind == ';':
			return i + 1
		case t.identifier():
			class.add(t.text, t.line)
			for i++; i < end && u.tokens[i].kind != ',' && u.tokens[i].kind != ';'; {
				i = u.skip(i) // arguments and a body
			}
		default:
			i = u.skip(i)
		}
	}
	return end
}
