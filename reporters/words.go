package reporters

import (
	"regexp"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// hiddenClass is the address that a JVM puts behind the name of a lambda's class.
var hiddenClass = regexp.MustCompile(`[./+]0x[0-9a-f]+$`)

// longestName is the characters that are shown of a name of a dump.
const longestName = 240

// Plural names objects of a class with their number.
func Plural(n int, class string) string {
	if n == 1 {
		return ClassName(class)
	}
	return text.Grouped(int64(n)) + " x " + ClassName(class)
}

// ClassName is a class in a line, without the address that says nothing to a reader.
func ClassName(class string) string {
	return text.Tail(hiddenClass.ReplaceAllString(class, ""), longestName)
}

// SimpleName is a class name without its package.
func SimpleName(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }

// Short is the beginning of an identity, enough to tell those of one dump apart.
func Short(identity string) string { return identity[:min(8, len(identity))] }

// maxName bounds a name in a line for people, in characters. A process name of
// Android has at most 255.
const maxName = 255

// name is a name of a process or device for a line for people.
func name(of string) string { return text.Head(of, maxName) }
