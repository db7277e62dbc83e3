package mapping

import "testing"

// TestMemberNames checks that a name needs a part before and after its last
// dot, and that only a method has a range of lines.
func TestMemberNames(t *testing.T) {
	for line, want := range map[string]bool{
		"int size -> a":               true,
		"int a.B.size -> a":           true,
		"int .size -> a":              false,
		"int a.B. -> a":               false,
		"1:3:void run() -> a":         true,
		"1:3:void a.B.run():5:7 -> a": true,
		"1:3:void .run() -> a":        false,
		"1:3:int size -> a":           false,
	} {
		if _, ok := parseMember([]byte(line)); ok != want {
			t.Errorf("%q: %v, want %v", line, ok, want)
		}
	}
}
