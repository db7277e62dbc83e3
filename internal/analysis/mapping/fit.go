package mapping

import (
	"fmt"
	"slices"
	"strings"
)

// Fit is how well a mapping and a dump belong together, in counts. A class that the
// mapping leaves its name tells nothing, and neither does one of the platform.
type Fit struct {
	// Renamed are the classes of the mapping that have another name in the build, Found
	// those of them that the dump has. A dump has the classes that were loaded, which is
	// a part of them only.
	Renamed, Found int
	// Short are the names of the dump that look like an obfuscator's, Unknown those of
	// them that the mapping does not hold, Examples a few of the unknown ones.
	Short, Unknown int
	Examples       []string
	// Fields are those that AddFields asked about, Missing those that the dump's classes
	// lack.
	Fields, Missing int

	id string
}

// From these on doubt is justified. WebView, the services of Google Play and SDKs bring
// obfuscated classes of their own into a process, so that many unknown names are needed, or none
// that is known; a class has all the fields that its mapping names, so that of these a few that
// are missing are enough.
const (
	fewClasses = 10
	fewFields  = 3
	// missingShare is the part of the fields, one in so many.
	missingShare = 10
	maxExamples  = 5
)

// Fit compares the mapping with the names of the classes in a dump. Each name counts
// once, arrays as their elements.
func (m *Mapping) Fit(classes []string) Fit {
	f := Fit{id: m.ID}
	for i := range m.classes {
		if c := &m.classes[i]; m.byRenamed[c.renamed] == uint32(i)+1 && c.renamed != c.original && !platform(m.names.name(c.renamed)) {
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

// AddFields asks whether a class of the dump has the fields that the mapping says it
// has, which tells two builds of one app apart where names of classes cannot: both have
// an a.a. class is the dump's name for it, fields are those that it declares, static
// ones too.
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

// Doubt is nil, or says in figures why the mapping is not that of the dump's build and
// what to do. Two builds of one app may use the same names for other classes, which
// only AddFields and Belongs can see.
func (f Fit) Doubt() error {
	const advice = "names of the source would be wrong; use the mapping.txt that was written by the build that ran"
	switch {
	case f.Missing >= fewFields && f.Missing*missingShare > f.Fields:
		return fmt.Errorf("the mapping%s belongs to another build: %d of the %d fields that it names are not in the dump's classes; %s", f.called(), f.Missing, f.Fields, advice)
	case f.Unknown >= fewClasses && 2*f.Unknown > f.Short, f.Unknown >= fewShort && f.Found == 0:
		return fmt.Errorf("the mapping%s belongs to another build or another app: of %d classes in the dump with short names it lacks %d (%s); %s", f.called(), f.Short, f.Unknown, strings.Join(f.Examples, ", "), advice)
	case f.Renamed >= fewClasses && f.Found == 0:
		return fmt.Errorf("the mapping%s does not fit the dump: it renames %d classes and the dump has none of them; the dump is of a build that is not obfuscated, or of another app: leave the mapping away, or %s", f.called(), f.Renamed, advice)
	}
	return nil
}

func (f Fit) called() string {
	if f.id == "" {
		return ""
	}
	return fmt.Sprintf(" %.40s", f.id)
}

// Belongs checks the source file of a stack frame of the dump: R8 can write the ID of
// the mapping there, as in "r8-map-id-7fe8b95". The error tells of another mapping; it
// is nil where the name tells nothing.
func (m *Mapping) Belongs(source string) error {
	id, ok := strings.CutPrefix(source, "r8-map-id-")
	if !ok || m.ID == "" || id == m.ID || id == m.Hash {
		return nil
	}
	return fmt.Errorf("the mapping is %.80q and the dump is of a build with the mapping %.80q: names of the source would be wrong; use that one", m.ID, id)
}

// Obfuscated is nil for the class names of a build whose names are the source's, and
// says for an obfuscated one that a mapping is needed. classes are all names of a dump;
// those of the platform do not count.
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
	return fmt.Errorf("names are obfuscated: %d of %d classes of the app are called like %s; leaks cannot be told by such names nor compared between builds; give the mapping.txt of the build with --mapping",
		len(found), all, strings.Join(examples(found), ", "))
}

// An app's own code has hardly a class with a name of one or two letters; a build that
// is shrunk has most. Libraries that come obfuscated are in between.
const (
	fewShort   = 4
	shortShare = 8
)

// examples are a few names, the same ones for the same classes in any order.
func examples(names []string) []string {
	slices.SortFunc(names, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return names[:min(len(names), maxExamples)]
}

// OfApp reports whether a class, which is no array, is one that a build may rename.
func OfApp(name string) bool { return len(apps([]string{name})) > 0 }

// apps gives each class that is not the platform's once.
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

// platforms are the packages of Android and of JVMs, and those of Google's libraries,
// which come obfuscated into apps that are not, and WebView's.
var platforms = []string{
	"android.", "com.android.", "dalvik.", "libcore.", "java.", "javax.", "jdk.", "sun.", "com.sun.", "org.w3c.", "org.xml.", "org.xmlpull.",
	"org.json.", "org.apache.", "org.ccil.", "com.google.android.", "com.google.firebase.", "WV.", "j$.",
}

// shipped are the packages of libraries that nearly each app has. As the source has them
// they say nothing of the app; where they are renamed they do.
var shipped = []string{"androidx.", "android.support.", "kotlin.", "kotlinx."}

// platform tells whether a class is one that no build of an app renames.
func platform(name string) bool {
	if kindOf([]byte(name)) != object || strings.HasPrefix(name, "[") || strings.ContainsRune(name, '/') {
		return true
	}
	return has(platforms, name) && !has(shipped, name)
}

func has(prefixes []string, name string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// short tells whether a class is called as obfuscators do: a, a0, ab, a.a.b, and what is
// in such a class. Words of the source that are as short begin with two capitals or are R.
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
