package config

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	longestName    = 255       // of a process or a device: NAME_MAX of Linux
	longestPackage = 223       // AOSP FrameworkParsingPackageUtils.java, MAX_FILE_NAME_SIZE
	longestText    = 64 * 1024 // of a command line or argument
	longestPath    = 4096      // PATH_MAX of Linux
)

// checkText returns an error if a name is too long or contains characters other
// than letters, digits and marks; the error names the first invalid character.
// Names are used in paths, command lines and reports, so no other characters
// are allowed.
func checkText(what, name, marks string, longest int) *fault {
	if len(name) > longest {
		return &fault{message: fmt.Sprintf("%s is too long: %s has at most %d characters", quoted(name), what, longest)}
	}
	for i, r := range name {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(marks, r)) {
			continue
		}
		return &fault{message: fmt.Sprintf("%s has %q as character %d: %s consists of letters, digits and %s",
			quoted(name), r, utf8.RuneCountInString(name[:i])+1, what, spelled(marks))}
	}
	return nil
}

// spelled formats a list of characters for a message.
func spelled(marks string) string {
	text := strings.Join(strings.Split(strings.TrimSpace(marks), ""), " ")
	if strings.Contains(marks, " ") {
		text += " and the space"
	}
	return text
}

var packagePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+$`)

// packageName parses an application ID: two or more parts separated by dots,
// each a letter followed by letters, digits and underscores (AOSP
// FrameworkParsingPackageUtils.java, validateName).
func packageName(text string) (string, *fault) {
	if f := checkText("a package name", text, "._", longestPackage); f != nil {
		return "", f
	}
	if !packagePattern.MatchString(text) {
		return "", &fault{message: quoted(text) + " is not a package name: write parts separated by dots, " +
			"each starting with a letter, such as com.shop"}
	}
	return text, nil
}

// processPattern parses the name of a process, or a name prefix followed by a
// star.
func processPattern(text string) (string, *fault) {
	begin, star := strings.CutSuffix(text, "*")
	switch {
	case text == "":
		return "", &fault{message: "is empty: write the name of a process"}
	case strings.Contains(begin, "*"):
		return "",
			&fault{
				message: quoted(text) +
					" has a star that is not at the end: a pattern is a name prefix followed by one star",
			}
	case star && begin == "":
		return "",
			&fault{
				message: "a star alone would sample every process of the device: write a name prefix before it",
			}
	case strings.HasPrefix(begin, "-"):
		return "", &fault{message: quoted(text) + " starts with a hyphen, which commands treat as an option"}
	}
	if f := checkText("a process name", begin, "._:-$/@", longestName); f != nil {
		return "", f
	}
	return text, nil
}

// serial parses the name of a device as adb prints it, such as emulator-5554,
// 192.168.1.7:5555 or "adb-R58M (2)._adb-tls-connect._tcp".
func serial(text string) (string, *fault) {
	switch {
	case text == "":
		return "", &fault{message: "is empty: write the name that adb devices shows"}
	case strings.TrimSpace(text) != text:
		return "", &fault{message: quoted(text) + " begins or ends with a space"}
	case strings.HasPrefix(text, "-"):
		return "", &fault{message: quoted(text) + " starts with a hyphen, which commands treat as an option"}
	}
	if f := checkText("a serial number", text, "._-:()[]%@ ", longestName); f != nil {
		return "", f
	}
	return text, nil
}

// line parses a command line. Any string that can be passed to a system call is
// allowed.
func line(text string) (string, *fault) {
	switch {
	case strings.TrimSpace(text) == "":
		return "", &fault{message: "is blank: write a command"}
	case len(text) > longestText:
		return "", &fault{message: fmt.Sprintf("has %d bytes, but a command has at most %d", len(text), longestText)}
	case strings.ContainsRune(text, 0):
		return "", &fault{message: "has a NUL character, which no command can contain"}
	}
	return text, nil
}

// longestVariant is the maximum length of a variant's name, in characters.
const longestVariant = 100

// variant parses the name of a build variant.
func variant(text string) (string, *fault) {
	odd := strings.IndexFunc(text, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_.-", r)
	})
	if text == "" || len(text) > longestVariant || odd >= 0 {
		return "",
			&fault{
				message: fmt.Sprintf(
					"%s is not the name of a variant: want letters, digits, _, . and -, at most %d characters",
					quoted(text), longestVariant),
			}
	}
	return text, nil
}

// hostPath parses the path of a file on the host.
func hostPath(text string) (string, *fault) {
	switch {
	case strings.TrimSpace(text) == "":
		return "", &fault{message: "is blank: write the path of a file"}
	case len(text) > longestPath:
		return "", &fault{message: fmt.Sprintf("has %d bytes, but a path has at most %d", len(text), longestPath)}
	case strings.ContainsRune(text, 0):
		return "", &fault{message: "has a NUL character, which no path can contain"}
	}
	return text, nil
}

// argument parses an argument of a command; it may be empty.
func argument(text string) (string, *fault) {
	if strings.TrimSpace(text) == "" {
		return text, nil
	}
	return line(text)
}
