package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAppendAccepted(t *testing.T) {
	until := time.Date(2027, 3, 31, 0, 0, 0, 0, time.Local)
	entry := Accepted{Key: "32554831", Reason: "SHOP-12: \"the\" SDK # keeps\nit", Owner: "@anna", Until: until}
	numbers := Accepted{Key: "1234567890", Reason: "yes", Owner: "0x10", Until: until}
	for name, file := range map[string]string{
		"no file yet":   "",
		"an empty list": "version: 1\naccepted: []\n",
		"no value":      "# ours\nversion: 1\naccepted:\n",
		"not a list":    "version: 1\n",
		"with comments": "# reviewed by the app team\nversion: 1\naccepted:\n  # the SDK\n  - class: " +
			"CheckoutActivity # all of them\n    reason: SHOP-1\n    owner: kim\n    until: 2027-01-01\n# the end\n",
		"flow style":             "{version: 1, accepted: [{class: A, reason: r, owner: o, until: 2027-01-01}]}\n",
		"with CRLF line endings": "version: 1\r\naccepted:\r\n- {class: A, reason: r, owner: o, until: 2027-01-01}\r\n",
	} {
		before := []Accepted{}
		if file != "" {
			list, err := ParseAccepted("f", []byte(file))
			if err != nil {
				t.Fatal(err)
			}
			before = append(before, list...)
		}
		out, err := AppendAccepted("f", []byte(file), []Accepted{entry, numbers})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := ParseAccepted("f", out)
		if want := append(before, entry, numbers); err != nil || !slices.EqualFunc(got, want, sameAccepted) {
			t.Errorf("%s: %+v, %v\n%s", name, got, err, out)
		}
		for _, comment := range []string{
			"# reviewed by the app team", "# the SDK", "# all of them", "# the end", "# ours",
		} {
			if strings.Contains(file, comment) != strings.Contains(string(out), comment) {
				t.Errorf("%s: the comment %q:\n%s", name, comment, out)
			}
		}
		once, err := AppendAccepted("f", out, nil)
		if err != nil || string(once) != string(out) {
			t.Errorf("%s: adding no entries changed the file (error %v):\n%s\nwant\n%s", name, err, once, out)
		}
	}
	if _, err := AppendAccepted("f", []byte("version: 2\n"), []Accepted{entry}); err == nil {
		t.Error("no error for extending an invalid file")
	}
}
