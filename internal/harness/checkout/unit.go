package checkout

import (
	"slices"
	"strings"
)

// declaredClass is a class that a file declares. Names are those of the JVM.
type declaredClass struct {
	name   string
	line   int
	fields []declaredField
}

type declaredField struct {
	name string
	line int
}

// unit reads the declarations in a file.
type unit struct {
	tokens  []token
	partner []int32
	classes []*declaredClass
	prefix  string // the package followed by a dot; empty in the default package
}

// declarations returns the classes in a file and their fields. path determines
// the language and the name of the class that Kotlin generates for functions
// and properties outside any class.
func declarations(path, source string) []*declaredClass {
	kotlin := strings.HasSuffix(path, ".kt")
	u := unit{tokens: tokens(source, kotlin)}
	u.partner = partners(u.tokens)
	u.readPackage()
	if kotlin {
		u.readKotlin(path)
	} else {
		u.readJava()
	}
	return u.classes
}

// readPackage finds the package statement, which only annotations and comments
// may precede.
func (u *unit) readPackage() {
	for i := 0; i < len(u.tokens); {
		switch t := u.tokens[i]; {
		case t.is("package"):
			u.prefix = u.path(i+1) + "."
			return
		case t.kind == '@':
			i = u.skipAnnotation(i)
		case t.kind == ';':
			i++
		default:
			return
		}
	}
}

// path joins the parts of a qualified name, which ends at the end of its line
// at the latest.
func (u *unit) path(i int) string {
	var names []string
	for u.at(i).identifier() {
		names = append(names, u.at(i).text)
		if u.at(i+1).kind != '.' {
			break
		}
		i += 2
	}
	return strings.Join(names, ".")
}

// at returns a token; outside the file, it returns a token without a kind.
func (u *unit) at(i int) token {
	if i < 0 || i >= len(u.tokens) {
		return token{}
	}
	return u.tokens[i]
}

// skip returns the index after a token or, if the token opens brackets, the
// index after the closing bracket.
func (u *unit) skip(i int) int {
	if i < len(u.partner) && int(u.partner[i]) > i {
		return int(u.partner[i]) + 1
	}
	return i + 1
}

// closing returns the index of the bracket that closes an opening bracket.
func (u *unit) closing(i int) int { return max(int(u.partner[i]), i) }

// skipAnnotation returns the index after an annotation that begins at i: its
// name, type arguments and arguments. In Kotlin, `@file:[A B]` contains several
// annotations.
func (u *unit) skipAnnotation(i int) int {
	i++
	if u.at(i).identifier() && u.at(i+1).kind == ':' { // the target in Kotlin
		i += 2
	}
	if u.at(i).kind == '[' {
		return u.skip(i)
	}
	for u.at(i).identifier() {
		i++
		if u.at(i).kind != '.' {
			break
		}
		i++
	}
	if u.at(i).kind == '<' {
		i = u.skip(i)
	}
	// In Java and Kotlin alike, parentheses after the name contain the
	// arguments of the annotation, even if they are on the next line.
	if u.at(i).kind == '(' {
		i = u.skip(i)
	}
	return i
}

// declare adds a class with the given name inside another class; outer is nil
// outside any class.
func (u *unit) declare(outer *declaredClass, simple string, line int32) *declaredClass {
	full := u.prefix + simple
	if outer != nil {
		full = outer.name + "$" + simple
	}
	c := &declaredClass{name: full, line: int(line)}
	u.classes = append(u.classes, c)
	return c
}

// add adds a field. If a field with the same name exists, the existing one is
// kept.
func (c *declaredClass) add(name string, line int32) {
	if c != nil {
		c.fields = append(c.fields, declaredField{name, int(line)})
	}
}

// field returns the line on which a field is declared. It returns false if the
// class does not declare the field.
func (c *declaredClass) field(name string) (int, bool) {
	i := slices.IndexFunc(c.fields, func(f declaredField) bool { return f.name == name })
	if i < 0 {
		return 0, false
	}
	return c.fields[i].line, true
}
