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
		"a string":                            {`{"reason":"x","because":"y"}`, true},
		"a number":                            {`{"because":1}`, true},
		"indented":                            {"{\n  \"because\": true\n}", true},
		"key after a list with the same name": {`{"classes":{"because":[1]},"because":"y"}`, true},
		"class with the same name":            {`{"classes":{"because":[1,2]}}`, false},
		"an object as the value":              {`{"because":{}}`, true},
		"key that ends with the name":         {`{"stopped_because":"x"}`, false},
		"a value":                             {`{"reason":"because"}`, false},
		"truncated":                           {`{"because":`, false},
		"nothing":                             {``, false},
	} {
		err := Check([]byte(c.raw), "lasted_s", "because")
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), `"because"`) {
			t.Errorf("%s: got error %v, want an error: %t", name, err, c.refused)
		}
	}
}

// FuzzCheck checks that no string is mistaken for a key.
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
