package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The example file and the example on the documentation page are valid.
func TestAcceptedExamples(t *testing.T) {
	list, err := LoadAccepted(filepath.Join("..", "..", "..", "examples", "leakcheck", "accepted.yaml"))
	if err != nil || len(list) != 1 || list[0].Held != "LegacyPage.sInstance" || list[0].Owner != "anna" ||
		list[0].Until.Format(time.DateOnly) != "2030-12-31" {
		t.Errorf("%+v, %v", list, err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "formats", "accepted.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	list, err = ParseAccepted("accepted.md", []byte(text))
	if err != nil || len(list) != 1 || list[0].Key != "32554831" || !strings.HasPrefix(list[0].Reason, "SHOP-12, ") {
		t.Errorf("%+v, %v", list, err)
	}
}

// An invalid file is rejected; the error lists all mistakes with their lines.
func TestAcceptedMistakes(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                    {"the file is empty"},
		"version: 1\naccepted:\n":             nil,
		"version: 2\naccepted: []\n":          {`:1:10: version: invalid value "2": want 1`},
		"accepted: []\n":                      {"version: write version: 1"},
		"version: 1\naccepted: 7\n":           {":2:11: accepted: want a list of leaks"},
		"version: 1\naccepted: [7]\n":         {":2:12: accepted[0]: want keys and values: key, class, held"},
		"version: 1\nacepted: []\n":           {`:2:1: unknown key "acepted"`, "did you mean accepted?"},
		"version: 1\nversion: 1\n":            {`"version"`},
		"- 1\n":                               {"want keys and values: version, accepted"},
		"version: 1\naccepted:\n- key: [1]\n": {":3:8: accepted[0].key: want a string"},
		"version: 1\naccepted:\n- key: abcdefgh\n  untli: 2030-01-01\n- until: soon\n": {
			`:4:3: accepted[0]: unknown key "untli"`, "did you mean until?",
			`:5:10: accepted[1].until: invalid date "soon": want the last day, such as 2027-03-31`,
		},
	} {
		list, err := ParseAccepted("leaks.yaml", []byte(text))
		if len(want) == 0 && err != nil || len(want) > 0 && (err == nil || list != nil) {
			t.Errorf("%q: %+v, %v", text, list, err)
		}
		for _, w := range want {
			if err != nil && !strings.Contains(err.Error(), w) {
				t.Errorf("%q: %v, want %q", text, err, w)
			}
		}
	}
	_, err := LoadAccepted(filepath.Join(t.TempDir(), "none.yaml"))
	if problems, ok := errors.AsType[Errors](err); !ok || len(problems) != 1 ||
		!strings.Contains(err.Error(), "cannot read the file") {
		t.Error(err)
	}
}

// FuzzParseAccepted checks that a file is either rejected with a reason, or
// parsed into entries whose values all occur in the file.
func FuzzParseAccepted(f *testing.F) {
	f.Add("version: 1\naccepted:\n- { key: abcdefgh, reason: r, owner: o, until: 2030-01-01 }\n- { held: A.b, until: " +
		"2030-12-31 }\n")
	f.Add("version: 1\naccepted: &a\n- *a\n")
	f.Add("version: 1\naccepted:\n- <<: { key: x }\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseAccepted("f.yaml", []byte(text))
		if err != nil {
			if problems, ok := errors.AsType[Errors](err); !ok || len(problems) == 0 || list != nil {
				t.Fatalf("%v, %+v", err, list)
			}
			return
		}
		for _, a := range list {
			for _, word := range []string{a.Key, a.Class, a.Held, a.Reason, a.Owner} {
				if word != strings.TrimSpace(word) {
					t.Fatalf("%q is not trimmed", word)
				}
			}
			if !a.Until.IsZero() && !strings.Contains(text, a.Until.Format(time.DateOnly)) {
				t.Fatalf("the file does not contain the date %v", a.Until)
			}
		}
	})
}
