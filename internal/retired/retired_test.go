package retired

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		raw     string
		refused bool
	}{
		"a text":              {`{"reason":"x","because":"y"}`, true},
		"a number":            {`{"because":1}`, true},
		"indented":            {"{\n  \"because\": true\n}", true},
		"the second time":     {`{"classes":{"because":[1]},"because":"y"}`, true},
		"a class of its name": {`{"classes":{"because":[1,2]}}`, false},
		"an object":           {`{"because":{}}`, true},
		"the end of a key":    {`{"stopped_because":"x"}`, false},
		"a value":             {`{"reason":"because"}`, false},
		"truncated":           {`{"because":`, false},
		"nothing":             {``, false},
	} {
		err := Check([]byte(c.raw), "lasted_s", "because")
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), `"because"`) {
			t.Errorf("%s: %v, want refused %t", name, err, c.refused)
		}
	}
}

// FuzzCheck checks that no text is mistaken for a key.
func FuzzCheck(f *testing.F) {
	f.Add(`"because":1`)
	f.Add(`\"because": "x`)
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := json.Marshal(map[string]string{"reason": text})
		if err != nil {
			t.Skip(err)
		}
		if err := Check(raw, "because"); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	})
}
