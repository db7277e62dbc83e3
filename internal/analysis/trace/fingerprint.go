package trace

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
)

// Fingerprint returns Shark's identifier of a leak: a SHA-1 in lowercase hex.
// The hash covers the suspect references without separators, each as the class
// of its object and the name of its field (LeakTrace.signature); for a leak of
// the platform, it covers the leak's pattern (Pattern.String). The fingerprint
// changes when a compiler renumbers its lambdas: see Key.
func (t *Trace) Fingerprint() string {
	var text strings.Builder
	if t.Matcher != nil {
		text.WriteString(t.Matcher.String())
	} else {
		for _, e := range t.Elements {
			if e.Suspect {
				text.WriteString(strings.Repeat(e.Class+e.Field, e.Repeat+1))
			}
		}
	}
	sum := sha1.Sum([]byte(text.String()))
	return hex.EncodeToString(sum[:])
}

// omits reports whether elements of the trace are omitted.
func (t *Trace) omits() bool {
	return slices.ContainsFunc(t.Elements, func(e Element) bool { return e.Omitted > 0 })
}

// Key identifies the leak and does not change from build to build: 40 lowercase
// hex digits of the SHA-256 of KeyText.
func (t *Trace) Key() string { return KeyOf(t.KeyText()) }

// KeyOf returns the key computed from a string that is the same from build to
// build.
func KeyOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:20])
}

// KeyText returns the text from which Key is computed: one line for each
// suspect reference, in the order of the trace. A line has the form
// "CLASS.FIELD", where CLASS is the StableClass of the class that declares the
// field, and FIELD is the StableField of the field. Three things would depend
// on the size of a collection or on a position in it, and are therefore written
// in a different form:
//   - elements of arrays and collections are "[x]";
//   - a collection of java.util that a search does not flatten (trees, queues,
//     subclasses of other collections) is one line with its own class:
//     "java.util.TreeMap.[x]", whichever of its tables and nodes the path goes
//     through;
//   - links between objects of one class, such as those of a list or a tree,
//     are omitted.
//
// A trace without suspect references is identified by its GC root, "JNI_GLOBAL
// CLASS", and a known leak by the line "library", followed by its pattern.
func (t *Trace) KeyText() string {
	if t.Matcher != nil {
		return "library\n" + t.Matcher.String() + "\n"
	}
	var text strings.Builder
	for i := 0; i < len(t.Elements)-1; i++ {
		e := &t.Elements[i]
		if !e.Suspect || t.linked(i) {
			continue
		}
		text.WriteString(e.stable() + "\n")
		i += e.Parts
	}
	if text.Len() == 0 {
		return t.Root.Kind.String() + " " + StableClass(t.Elements[0].Class) + "\n"
	}
	return text.String()
}

// linked reports whether an object of the trace references another object of
// its own class.
func (t *Trace) linked(i int) bool {
	return t.Elements[i].Kind == FieldEdge && t.Elements[i].Class == t.Elements[i+1].Class
}

// stable returns one line of KeyText.
func (e *Element) stable() string {
	class, field := e.Owner, e.Field
	switch {
	case e.Parts > 0:
		class, field = e.Class, "[x]"
	case e.Kind == FieldEdge && isCompiled(e.Class):
		// The superclass of a lambda or an anonymous class is less informative
		// than its name.
		class = e.Class
	}
	line := StableClass(class)
	if isCompiled(class) && e.Super != "" {
		line += " (" + StableClass(e.Super) + ")"
	}
	return line + "." + stableField(field)
}

// bases lists the superclasses of java.util's collections that contain nodes or
// tables.
var bases = []string{"java.util.AbstractCollection", "java.util.AbstractMap", "java.util.Dictionary"}

// findParts finds the collections of a path, and the elements that belong to
// them.
func (r *Reader) findParts(elements []Element) {
	for i := range elements {
		e := &elements[i]
		if e.Kind != FieldEdge || e.Type != "instance" || !strings.HasPrefix(e.Owner, "java.util.") {
			continue
		}
		hierarchy := r.graph.Hierarchy(r.graph.ClassNumber(e.Object))
		if slices.ContainsFunc(bases, func(base string) bool { return slices.Contains(hierarchy, base) }) {
			e.Parts = parts(hierarchy, elements[i:])
		}
	}
}

// parts returns the number of elements after a collection that belong to it: an
// array that the collection itself holds, and instances of classes nested in
// its own class, which are its nodes.
func parts(hierarchy []string, elements []Element) int {
	for i := 1; i < len(elements); i++ {
		outer, _, nested := strings.Cut(elements[i].Class, "$")
		array := i == 1 && elements[i].Type == "array"
		node := nested && elements[i].Type == "instance" && strings.HasPrefix(outer, "java.util.") &&
			slices.Contains(hierarchy, outer)
		if !array && !node {
			return i - 1
		}
	}
	return len(elements) - 1
}

// change is a rule that removes the parts of names that change from build to
// build or from run to run.
type change struct {
	from *regexp.Regexp
	to   string
	// parts are substrings such that every affected name contains at least one
	// of them: searching for them is faster than matching the expression. If
	// parts is empty, the expression is always matched.
	parts []string
}

// in applies the change to a name and returns the result.
func (c change) in(name string) string {
	if len(c.parts) > 0 &&
		!slices.ContainsFunc(c.parts, func(part string) bool { return strings.Contains(name, part) }) {
		return name
	}
	return c.from.ReplaceAllString(name, c.to)
}

// classChanges are applied in the order of the list.
var classChanges = []change{
	// Before D8 numbered lambdas, it identified them by a hash:
	// -$$Lambda$Foo$Bar$jQz0_-8 belongs to Foo$Bar (D8 1, LambdaDescriptor).
	// The names that desugar wrote, and those in the libraries of ART in
	// Android 8.0, do not contain a class: -$Lambda$aS31.
	{regexp.MustCompile(`(^|\.)[-_]?\$\$Lambda\$([^.\[\]]+)\$[A-Za-z0-9_-]+`), "${1}${2}$$$$Lambda",
		[]string{"$$Lambda$"}},
	{regexp.MustCompile(`(^|\.)-\$Lambda\$[A-Za-z0-9_-]+`), "${1}-$$Lambda", []string{"-$Lambda$"}},
	// R8 merged the lambdas of several classes into groups.
	{regexp.MustCompile(`\$\$LambdaGroup\$[^.\[\]]+`), "$$$$LambdaGroup", []string{"$$LambdaGroup$"}},
	// Later D8 and R8 (R8, SyntheticNaming.java): $$ExternalSyntheticLambda0,
	// and before merging $$InternalSyntheticLambda$1$hash$0; other kinds are
	// backports, outlines, records.
	{regexp.MustCompile(`\$\$(?:External|Internal)Synthetic([A-Za-z]+)(?:\d+|(?:\$[0-9a-f]+)+)`), "$$$$$1",
		[]string{"Synthetic"}},
	// The JVM, retrolambda and desugar: Foo$$Lambda$14, and hidden classes with
	// an address or a hash, which NormalName may have turned into a part of the
	// package.
	{regexp.MustCompile(`(\$\$Lambda)\$\d+`), "$1", []string{"$$Lambda$"}},
	{regexp.MustCompile(`([^\[\]./+])(?:[./+](?:0x[0-9a-f]+|\d+))+((?:\[\])*)$`), "$1$2", nil},
	// Jack numbered lambdas.
	{regexp.MustCompile(`(_LambdaImpl)\d+`), "$1", []string{"_LambdaImpl"}},
	// Compose numbers the lambdas of a file, or uses their positions in it.
	{regexp.MustCompile(`lambda(?:\$?-)\d+`), "lambda", []string{"lambda"}},
	// A runtime numbers the classes that it generates, and the modules of proxy
	// classes.
	{regexp.MustCompile(`^jdk\.proxy\d+\.`), "jdk.proxy.", []string{"jdk.proxy"}},
	{regexp.MustCompile(`(^|\.)\$Proxy\d+`), "${1}$$Proxy", []string{"$Proxy"}},
	{regexp.MustCompile(`^((?:sun|jdk\.internal)\.reflect\.Generated[A-Za-z]+Accessor)\d+`), "$1",
		[]string{".reflect.Generated"}},
	// Libraries that generate classes append a hash of the class or a random
	// string to its name.
	{regexp.MustCompile(`(\$\$[A-Za-z]+CGLIB)\$\$[0-9a-f]+`), "$1", []string{"CGLIB$$"}},
	{regexp.MustCompile(`(\$(?:ByteBuddy|HibernateProxy|MockitoMock))\$[A-Za-z0-9]+`), "$1",
		[]string{"ByteBuddy$", "HibernateProxy$", "MockitoMock$"}},
	// Anonymous and local classes: $1, $1Local.
	{regexp.MustCompile(`\$\d+`), "$$#", []string{"$"}},
}

// changing contains substrings such that every name that may change contains at
// least one of them.
var changing = []string{
	"Synthetic", "Lambda$", "LambdaGroup$", "CGLIB$", "ByteBuddy$", "HibernateProxy$", "MockitoMock$",
}

// StableClass returns the name of a class without the parts that change from
// build to build or from run to run: the numbers and hashes of lambdas,
// anonymous, local and generated classes.
func StableClass(name string) string {
	if !strings.ContainsAny(name, "0123456789") &&
		!slices.ContainsFunc(changing, func(part string) bool { return strings.Contains(name, part) }) {
		return name
	}
	for _, c := range classChanges {
		name = c.in(name)
	}
	return name
}

// StableReference returns the name of a field of a class, or of an element, as
// in KeyText.
func StableReference(class, field string) string {
	return StableClass(class) + "." + stableField(field)
}

// isCompiled reports whether a name contains numbers that a compiler assigned,
// which means that the compiler chose the name.
func isCompiled(name string) bool { return StableClass(name) != name }

var fieldChanges = []change{
	// Fields of lambdas and local classes, numbered in the order of captured
	// variables; fields of coroutines, numbered in the order of saved
	// variables.
	{regexp.MustCompile(`^(?:f\$|arg\$|\$capturedLocal\$)\d+$`), "<captured>", nil},
	{regexp.MustCompile(`^[A-Z]\$\d+$`), "<spilled>", nil},
	// Fields numbered by the nesting depth of the class.
	{regexp.MustCompile(`^this\$\d+$`), "this$$", nil},
	{regexp.MustCompile(`^\$r8\$lambda\$.+$`), "$$r8$$lambda", nil},
	{regexp.MustCompile(`lambda(?:\$?-)\d+`), "lambda", nil},
}

// stableField returns the name of a field without the parts that change from
// build to build.
func stableField(name string) string {
	if !strings.ContainsAny(name, "$-") {
		return name
	}
	for _, c := range fieldChanges {
		name = c.in(name)
	}
	return name
}
