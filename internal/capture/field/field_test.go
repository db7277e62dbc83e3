package field

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestError(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, c := range []struct{ field, text, want string }{
		{"Pss", "  1\x1b[2J kB\r\n", `line 3: Pss: not a number: "1\x1b[2J kB"`},
		{"TOTAL", "", `line 3: TOTAL: not a number: ""`},
		{long, "  " + long, fmt.Sprintf("line 3: %s: not a number: %q", long[:80], long[:80])},
	} {
		var d Warnings
		text := []byte(c.text)
		d.Add(3, c.field, text, "not a number")
		clear(text) // parsers reuse the buffer that they read into
		all := d.All()
		if len(all) != 1 || all[0].Error() != c.want {
			t.Errorf("%v, want %s", all, c.want)
		}
		var e *Error
		if !errors.As(all[0], &e) || e.Line != 3 {
			t.Errorf("%#v is not an Error for line 3", all[0])
		}
	}
}

func TestWarningsAreCapped(t *testing.T) {
	var d Warnings
	if all := d.All(); all != nil {
		t.Errorf("no warnings, but All returned %v", all)
	}
	for n := 1; n <= MaxWarnings+3; n++ {
		d.Add(n, "Pss", nil, "bad")
		for range 2 { // All does not change the state
			all := d.All()
			if got, want := len(all), min(n, MaxWarnings+1); got != want {
				t.Fatalf("%d warnings returned as %d errors, want %d", n, got, want)
			}
			want := fmt.Sprintf(`line %d: Pss: bad: ""`, n)
			if n > MaxWarnings {
				want = fmt.Sprintf("%d more warnings skipped", n-MaxWarnings)
			}
			if got := all[len(all)-1].Error(); got != want {
				t.Errorf("last warning %s, want %s", got, want)
			}
		}
	}
}

// Input that consists only of invalid lines uses no more memory once the limit
// is reached.
func TestSkippedWarningsCostNothing(t *testing.T) {
	var d Warnings
	for range MaxWarnings {
		d.Add(1, "Pss", nil, "bad")
	}
	text := strings.Repeat("x", 4000)
	if n := testing.AllocsPerRun(100, func() { d.Add(1, "Pss", []byte(text), "bad") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTextAsJSON(t *testing.T) {
	for text, want := range map[Text]string{
		"": "null", "a <b> & \"c\"\n": `"a <b> & \"c\"\n"`, "\x1b\xff": `"\u001b\ufffd"`,
	} {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(text); err != nil || b.String() != want+"\n" {
			t.Errorf("%q is %s, want %s, %v", text, b.String(), want, err)
		}
	}
}
