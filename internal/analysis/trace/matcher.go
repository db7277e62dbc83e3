package trace

import "slices"

// PatternKind is the kind of reference that a pattern selects.
type PatternKind uint8

const (
	InstanceField PatternKind = iota
	StaticField
	// NativeGlobal is a JNI global reference to an object of the given class.
	NativeGlobal
	// JavaLocal is a local variable of a thread with the given name.
	JavaLocal
)

// Pattern selects references: a field of a class and its subclasses, a static
// field, the JNI globals of a class, or the local variables of threads with a
// given name.
type Pattern struct {
	Kind        PatternKind
	Class, Name string
}

// String returns the pattern in Shark's form, from which the fingerprint of a
// library leak is computed (ReferencePattern.kt).
func (p Pattern) String() string {
	switch p.Kind {
	case StaticField:
		return "static field " + p.Class + "#" + p.Name
	case NativeGlobal:
		return "native global variable referencing " + p.Class
	case JavaLocal:
		return "local variable on thread " + p.Name
	}
	return "instance field " + p.Class + "#" + p.Name
}

// Build is the build on which the dump was made; the conditions of a Matcher
// are evaluated for it.
type Build struct {
	// SDK is the API level, or 0 if it is unknown.
	SDK              int
	Manufacturer, ID string
}

// Matcher selects references that are a known leak of the platform, or that
// never explain what holds an object.
type Matcher struct {
	Pattern
	// Ignored references are not followed. Other matched references are
	// followed last, and a leak through one of them is a library leak.
	Ignored bool
	// Description explains the leak; Source says where this information comes
	// from.
	Description, Source string
	// Where lists the affected builds: a build is affected if any one condition
	// applies. An empty list means all builds.
	Where []Condition
}

// Condition is a set of builds. A zero field or an empty list restricts
// nothing.
type Condition struct {
	// MinSDK and MaxSDK are inclusive.
	MinSDK, MaxSDK     int
	Manufacturers, IDs []string
}

// Applies reports whether the matcher applies to the given build.
func (m *Matcher) Applies(b Build) bool {
	return len(m.Where) == 0 || slices.ContainsFunc(m.Where, func(c Condition) bool { return c.holds(b) })
}

func (c *Condition) holds(b Build) bool {
	switch {
	case b.SDK == 0 && (c.MinSDK != 0 || c.MaxSDK != 0):
		return false
	case c.MinSDK != 0 && b.SDK < c.MinSDK, c.MaxSDK != 0 && b.SDK > c.MaxSDK:
		return false
	case len(c.Manufacturers) > 0 && !slices.Contains(c.Manufacturers, b.Manufacturer):
		return false
	}
	return len(c.IDs) == 0 || slices.Contains(c.IDs, b.ID)
}
