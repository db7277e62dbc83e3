package mapping

import (
	"fmt"
	"slices"
	"strings"
)

// Fit holds the counts that show how well a mapping and a dump belong together.
// Classes that the mapping does not rename are not counted, nor are those of
// the platform.
type Fit struct {
	// Renamed is the number of classes that have a different name in the build
	// according to the mapping; Found is the number of those that are in the
	// dump. A dump contains only the classes that were loaded.
	Renamed, Found int
	// Short is the number of names in the dump that look obfuscated; Unknown is
	// the number of those that are missing from the mapping. Examples holds a
	// few of the missing names.
	Short, Unknown int
	Examples       []string
	// Fields is the number of fields that the mapping lists for the classes
	// passed to AddFields; Missing is the number of those that the dump's
	// classes do not have.
	Fields, Missing int

	id string
}

// These are the thresholds for a mismatch. WebView, Google Play services and
// SDKs load their own obfuscated classes into a process, so a mismatch requires
// many unknown names, or only unknown names. A class of the right build has
// every field that the mapping lists for it, so a few missing fields are enough
// for a mismatch.
const (
	fewClasses = 10
	fewFields  = 3
	// missingShare determines how many missing fields are a mismatch: more than
	// 1/missingShare of the fields.
	missingShare = 10
	maxExamples  = 5
)

// Fit compares the mapping with the names of the classes in a dump. Each name
// is counted once, and an array as the class of its elements.
func (m *Mapping) Fit(classes []string) Fit {
	f := Fit{id: m.ID}
	for i := range m.classes {
		if c := &m.classes[i]; m.byRenamed[c.renamed] == uint32(i)+1 && c.renamed != c.original &&
			!platform(m.names.name(c.renamed)) {
			f.Renamed++
		}
	}
	for name := range apps(classes) {
		c := m.renamed(name)
		if c != nil && c.renamed != c.original {
			f.Found++
		}
		if !short(name) {
			continue
		}
		f.Short++
		if c == nil {
			f.Unknown++
			f.Examples = append(f.Examples, name)
		}
	}
	f.Examples = examples(f.Examples)
	return f
}

// AddFields checks whether a class of the dump has the fields that the mapping
// lists for it, and adds the number of these fields to Fields and the number of
// missing ones to Missing. This distinguishes two builds of one app that use
// the same names for classes: both have a class named "a.a", for example. class
// is the name in the dump, and fields are the fields that the class declares,
// including static ones.
func (f *Fit) AddFields(m *Mapping, class string, fields []string) {
	c := m.renamed(class)
	if c == nil || c.renamed == c.original {
		return
	}
	for rest := c.members[:c.methods]; len(rest) > 0; {
		var one field
		one, rest = decodeField(rest)
		f.Fields++
		if !slices.Contains(fields, m.names.name(one.renamed)) {
			f.Missing++
		}
	}
}

// Mismatch returns nil, or an error that explains, with numbers, why the
// mapping does not belong to the dump's build, and what to do. Two builds of
// one app may use the same names for different classes, which only AddFields
// and Belongs detect.
func (f Fit) Mismatch() error {
	const advice = "the source names would be wrong; use the mapping.txt of the build that ran"
	switch {
	case f.Missing >= fewFields && f.Missing*missingShare > f.Fields:
		return fmt.Errorf("the mapping%s belongs to another build: %d of the %d fields that it names are not in the "+
			"dump's classes; %s", f.called(), f.Missing, f.Fields, advice)
	case f.Unknown >= fewClasses && 2*f.Unknown > f.Short, f.Unknown >= fewShort && f.Found == 0:
		return fmt.Errorf("the mapping%s belongs to another build or another app: it lacks %d of the "+
			"%d classes with short names in the dump (%s); %s", f.called(), f.Unknown, f.Short,
			strings.Join(f.Examples, ", "), advice)
	case f.Renamed >= fewClasses && f.Found == 0:
		return fmt.Errorf("the mapping%s does not fit the dump: it renames %d classes, none of which are in the "+
			"dump; the dump is from an unobfuscated build or from another app: omit the mapping, or %s", f.called(),
			f.Renamed, advice)
	}
	return nil
}

func (f Fit) called() string {
	if f.id == "" {
		return ""
	}
	return fmt.Sprintf(" %.40s", f.id)
}

// Belongs checks the source file of a stack frame of the dump: R8 can write the
// ID of the mapping there, as in "r8-map-id-7fe8b95". It returns an error if
// the ID is that of another mapping, and nil if the IDs are equal or if the
// name or the mapping contains no ID.
func (m *Mapping) Belongs(source string) error {
	id, ok := strings.CutPrefix(source, "r8-map-id-")
	if !ok || m.ID == "" || id == m.ID || id == m.Hash {
		return nil
	}
	return fmt.Errorf("the mapping has the ID %.80q, but the dump is from a build with the mapping %.80q: the source "+
		"names would be wrong; use the mapping of that build", m.ID, id)
}

// Obfuscated returns nil if the class names are those of an unobfuscated build;
// for an obfuscated build, it returns an error that asks for a mapping. classes
// holds all class names of a dump; classes of the platform are not counted.
func Obfuscated(classes []string) error {
	var all int
	var found []string
	for name := range apps(classes) {
		all++
		if short(name) {
			found = append(found, name)
		}
	}
	if len(found) < fewShort || len(found)*shortShare < all {
		return nil
	}
	return fmt.Errorf("names are obfuscated: %d of %d classes of the app have names like %s; leaks cannot be "+
		"identified or compared between builds; pass the mapping.txt of the build with --mapping",
		len(found), all, strings.Join(examples(found), ", "))
}

// An app's own code contains hardly any classes with a name of one or two
// letters; in a shrunk build most names are like that. In libraries that are
// shipped obfuscated, the share of such names is higher than in an app's own
// code, but lower than in a shrunk build.
const (
	fewShort   = 4
	shortShare = 8
)

// examples returns a few of the names; the selection does not depend on their
// order.
func examples(names []string) []string {
	slices.SortFunc(names, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return names[:min(len(names), maxExamples)]
}

// MayBeRenamed reports whether a build may rename the given class, which must
// not be an array.
func MayBeRenamed(name string) bool { return len(apps([]string{name})) > 0 }

// apps returns the classes that do not belong to the platform. Classes of the
// libraries in shipped are included only if their names are short. An array is
// listed as the class of its elements.
func apps(classes []string) map[string]bool {
	names := make(map[string]bool, len(classes))
	for _, name := range classes {
		element := strings.TrimRight(name, "[]")
		if element == "" || platform(element) || has(shipped, element) && !short(element) {
			continue
		}
		names[element] = true
	}
	return names
}

// platforms lists the packages of Android and of JVMs, of WebView, and of
// Google's libraries, which are obfuscated even in unobfuscated apps.
var platforms = []string{
	"android.", "com.android.", "dalvik.", "libcore.", "java.", "javax.", "jdk.", "sun.", "com.sun.", "org.w3c.",
	"org.xml.", "org.xmlpull.",
	"org.json.", "org.apache.", "org.ccil.", "com.google.android.", "com.google.firebase.", "WV.", "j$.",
}

// shipped lists the packages of libraries that are in nearly every app. Classes
// of these packages are evidence about the app only if they are renamed.
var shipped = []string{"androidx.", "android.support.", "kotlin.", "kotlinx."}

// platform reports whether a class belongs to the platform, which means that no
// build of an app renames it.
func platform(name string) bool {
	if kindOf([]byte(name)) != object || strings.HasPrefix(name, "[") || strings.ContainsRune(name, '/') {
		return true
	}
	return has(platforms, name) && !has(shipped, name)
}

func has(prefixes []string, name string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// short reports whether a name looks like an obfuscator's: a, a0, ab, a.a.b, or
// the name of a class nested in such a class. Unobfuscated names this short
// begin with two capitals or are R.
func short(name string) bool {
	simple := name[strings.LastIndexByte(name, '.')+1:]
	simple, _, _ = strings.Cut(simple, "$")
	if len(simple) == 0 || len(simple) > 2 && (len(simple) > 3 || !lower(simple[0])) {
		return false
	}
	for i := range len(simple) {
		if c := simple[i]; !lower(c) && !upper(c) && (i == 0 || !isDigit(c)) {
			return false
		}
	}
	switch {
	case lower(simple[0]):
		return true
	case len(simple) == 1:
		return simple != "R"
	}
	return !upper(simple[1]) && !lower(simple[1])
}

func lower(c byte) bool { return 'a' <= c && c <= 'z' }
func upper(c byte) bool { return 'A' <= c && c <= 'Z' }
