package trace

import "slices"

// PatternKind is the kind of reference of a pattern.
type PatternKind uint8

const (
	InstanceField PatternKind = iota
	StaticField
	// NativeGlobal is a JNI global reference to an object of a class.
	NativeGlobal
	// JavaLocal are the local variables of a thread.
	JavaLocal
)

// Pattern selects references: a field of a class and its subclasses, a static
// field, JNI globals of a class, or the locals of the thread with a name.
type Pattern struct {
	Kind        PatternKind
	Class, Name string
}

// String returns the pattern in Shark's form, which the fingerprint of a
// library leak is made of (ReferencePattern.kt).
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

// Build is the input of a Matcher's conditions: the phone of a dump.
type Build struct {
	// SDK is the API level, 0 if unknown.
	SDK              int
	Manufacturer, ID string
}

// Matcher is a reference that the platform is known to leak by, or one that
// never explains what holds an object.
type Matcher struct {
	Pattern
	// Ignored references are not followed. Others are followed last, and a leak
	// by them is one of the library.
	Ignored bool
	// Description explains it, Source says where that is from.
	Description, Source string
	// Where are the affected builds, any of them; empty means all.
	Where []Condition
}

// Condition is a set of builds. A zero bound is no bound, an empty list means
// all.
type Condition struct {
	// MinSDK and MaxSDK are inclusive.
	MinSDK, MaxSDK     int
	Manufacturers, IDs []string
}

// Applies reports whether a build has what the matcher is about.
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
