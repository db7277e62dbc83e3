package hprof

import (
	"encoding/json"
	"testing"
)

// Decoding an ID from JSON must return the encoded ID; any other JSON must be
// an error.
func FuzzIDText(f *testing.F) {
	f.Add(uint64(0), "0x")
	f.Add(uint64(1)<<63, "-1")
	f.Fuzz(func(t *testing.T, n uint64, other string) {
		text, err := json.Marshal(map[string]ID{"id": ID(n)})
		if err != nil {
			t.Fatal(err)
		}
		var again map[string]ID
		if err := json.Unmarshal(text, &again); err != nil || again["id"] != ID(n) {
			t.Errorf("%s was parsed as %v, %v", text, again, err)
		}
		var id ID
		if err := id.UnmarshalText([]byte(other)); err == nil {
			if text, _ := id.MarshalText(); len(text) < 3 || string(text[:2]) != "0x" {
				t.Errorf("%q was parsed as %s", other, text)
			}
		} else if id != 0 {
			t.Errorf("parsing %q returned an error and %v", other, id)
		}
	})
}
