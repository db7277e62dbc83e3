package dumpsys

import "strings"

// AmHelp holds the options of am dumpheap that `am help` lists.
type AmHelp struct {
	// GC is -g: collect garbage before the dump (Android 9 and later).
	GC Answer `json:"gc"`
	// Bitmaps is -b FORMAT: dump the contents of bitmaps (Android 15).
	Bitmaps Answer `json:"bitmaps"`
	// Native is -n: dump the native heap.
	Native Answer `json:"native"`
	// MallocInfo is -m. Releases that support the option do not always list it,
	// so the value is never No.
	MallocInfo Answer `json:"malloc_info"`
	// User is --user.
	User Answer `json:"user"`
}

// ParseAmHelp parses the help of am (ActivityManagerShellCommand.dumpHelp, and
// the usage text of Am.java up to Android 7). An option is No only if the
// dumpheap entry is complete. The error is a DeviceError if there is no such
// entry.
func ParseAmHelp(text []byte) (AmHelp, error) {
	s, _ := input(text)
	in := lines{rest: s}
	var (
		listed       = map[string]bool{}
		found, whole bool
		open         = -1 // the indentation of the current entry
		began        bool
	)
	for {
		line, _, ok := in.next()
		if !ok {
			break
		}
		trimmed := strings.TrimSpace(line)
		began = began || strings.Contains(trimmed, "am [subcommand]") ||
			strings.HasPrefix(trimmed, "Activity manager (activity) commands")
		if trimmed == "" {
			continue
		}
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		if open >= 0 && indent <= open {
			open, whole = -1, true // the next command: the entry was complete
		}
		if isDumpheap(trimmed) {
			open, found = indent, true
		}
		if open >= 0 {
			options(trimmed, listed)
		}
	}
	if !found {
		return AmHelp{}, notAnAnswer(text, began)
	}
	answer := func(option string) Answer {
		switch {
		case listed[option]:
			return Yes
		case whole:
			return No
		}
		return Unknown
	}
	h := AmHelp{
		GC: answer("-g"), Bitmaps: answer("-b"), Native: answer("-n"), MallocInfo: answer("-m"), User: answer("--user"),
	}
	if h.MallocInfo == No {
		h.MallocInfo = Unknown
	}
	return h, nil
}

func isDumpheap(line string) bool {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(line, "am "), "dumpheap")
	return ok && (rest == "" || rest[0] == ' ' || rest[0] == ':')
}

// options adds the options in a line to listed; it recognizes "[-g]", "[-b
// <format>]" and "-g: force GC". The last word of a truncated line does not
// count: "[-" is not an option.
func options(line string, listed map[string]bool) {
	for _, w := range strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '[' || r == ']' }) {
		if w = strings.TrimSuffix(w, ":"); strings.HasPrefix(w, "-") && len(w) > 1 && len(w) < 16 {
			listed[w] = true
		}
	}
}
