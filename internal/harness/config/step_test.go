package config

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// FuzzStepLine checks that the parser accepts a command only if no opening
// brace remains after all placeholders are replaced, and compares the parser
// with the pattern for editors.
func FuzzStepLine(f *testing.F) {
	for _, text := range append(hostileTexts, "a {pid}", "{{pid}", "{{{pid}}", "{{{{", "{{{",
		"{pid}{user}{package}{process}", "{PID}", "{ pid }", "}", "{}", "{", "a\n{user}") {
		f.Add(text)
	}
	pattern := regexp.MustCompile(stepLineText)
	f.Fuzz(func(t *testing.T, text string) {
		got, fault := stepLine(text)
		good := !strings.Contains(filledIn(text), "{")
		possible := strings.TrimSpace(text) != "" && len(text) <= longestText && !strings.ContainsRune(text, 0)
		if (fault == nil) != (good && possible) {
			t.Errorf("%q: %v", text, fault)
		}
		if fault == nil && got != text {
			t.Errorf("%q is parsed as %q", text, got)
		}
		if fault != nil && !strings.Contains(text, fault.part) {
			t.Errorf("%q: does not contain %q", text, fault.part)
		}
		// The reader and the pattern differ in which non-ASCII characters they
		// treat as spaces.
		ascii := !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || r == '\v' })
		if ascii && len(text) <= longestText && !strings.ContainsRune(text, 0) &&
			pattern.MatchString(text) != (fault == nil) {
			t.Errorf("%q: accepted by the pattern: %v, by the reader: %v", text, pattern.MatchString(text), fault)
		}
	})
}

// FuzzStepName checks that a name is a single file name, is valid on every host
// and differs from all other names.
func FuzzStepName(f *testing.F) {
	for _, text := range append(append(hostileTexts, ownSteps...), "unreachable", "A", "a_b-9", strings.Repeat("a", 40),
		strings.Repeat("a", 41)) {
		f.Add(text)
	}
	plain := regexp.MustCompile("^[a-z0-9_-]{1,40}$")
	own := regexp.MustCompile("^(heap|showmap|s?maps|meminfo|gfxinfo|surfaceflinger|gpu|status|threads|" +
		"logcat|exit_info|summary|diagnosis|analysis)$")
	f.Fuzz(func(t *testing.T, text string) {
		got, fault := stepName(text)
		if (fault == nil) != (plain.MatchString(text) && !own.MatchString(text)) {
			t.Errorf("%q: %v", text, fault)
		}
		if fault == nil && got != text {
			t.Errorf("%q is parsed as %q", text, got)
		}
		if fault != nil && fault.suggestion != "" {
			if _, again := stepName(fault.suggestion); again != nil && !own.MatchString(fault.suggestion) {
				t.Errorf("%q: the suggestion %q is invalid too: %v", text, fault.suggestion, again)
			}
		}
	})
}

// The examples and defaults of a step are valid, and missing required values
// are reported.
func TestStepKeys(t *testing.T) {
	s := compiled(t)
	const head = "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\ndiagnose:\n  steps:\n    " +
		"java:\n"
	for _, changed := range stepKey(new(defaultStep())).keys {
		step := map[string]string{"name": "x", "command": "y", "limit": "1s"}
		for _, text := range []string{changed.example, defaultOf(changed), "-"} {
			if text == "" {
				continue
			}
			step[changed.name] = text
			file, want := head+"      -\n", "both accept"
			for name, value := range step {
				switch {
				case value != "-":
					file += "        " + name + ": " + value + "\n"
				case name != "limit":
					want = "both reject"
				}
			}
			if got := agreement(t, s, changed.name, []byte(file), nil); got != want {
				t.Errorf("%s\n%s", got, file)
			}
		}
	}
}
