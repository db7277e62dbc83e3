package config

import (
	"strings"
	"testing"
	"time"
)

// The duration key accepts one duration or a range, in the same forms in the
// file, in a variable and as a flag.
func TestDurationRange(t *testing.T) {
	const file = "version: 1\napp: { package: com.shop }\nworkload: none\n"
	for text, c := range map[string]struct {
		least, most time.Duration
		written     string
		wrong       string
	}{
		"8h":         {8 * time.Hour, 0, "8h", ""},
		"12m..30m":   {12 * time.Minute, 30 * time.Minute, "12m..30m", ""},
		"90s..1h30m": {90 * time.Second, 90 * time.Minute, "1m30s..1h30m", ""},
		"1.5h..2d":   {90 * time.Minute, 48 * time.Hour, "1h30m..48h", ""},
		"30m..12m": {
			0, 0, "", `x.yaml:4:11: duration: is "30m..12m", but the second duration must be longer than the first`,
		},
		"12m..12m": {0, 0, "", `x.yaml:4:11: duration: is "12m..12m", but the second duration must be longer`},
		"12..30m": {
			0, 0, "",
			`x.yaml:4:11: duration: "12" is not a duration: write numbers with units, such as 90s, 1h30m or 2d; did you mean 12h..30m?`,
		},
		"12m..30": {
			0, 0, "",
			`x.yaml:4:11: duration: "30" is not a duration: write numbers with units, such as 90s, 1h30m or 2d; did you mean 12m..30m?`,
		},
		"12m..":      {0, 0, "", `x.yaml:4:11: duration: "" is not a duration`},
		"..30m":      {0, 0, "", `x.yaml:4:11: duration: "" is not a duration`},
		"0s..30m":    {0, 0, "", `x.yaml:4:11: duration: is "0s", but must be more than 0`},
		"1m..2m..3m": {0, 0, "", `x.yaml:4:11: duration: "2m..3m" is not a duration`},
	} {
		cfg, err := Parse("x.yaml", []byte(file+"duration: "+text+"\n"), nil)
		switch {
		case c.wrong != "":
			if err == nil || !strings.HasPrefix(err.Error(), c.wrong) {
				t.Errorf("%s: %v, want %s", text, err, c.wrong)
			}
			continue
		case err != nil || cfg.Duration != c.least || cfg.LongestDuration != c.most:
			t.Errorf("%s: %+v, %v", text, cfg, err)
			continue
		}
		if out := string(cfg.YAML(false)); !strings.Contains(out, "\nduration: "+c.written+"\n") {
			t.Errorf("%s is written as\n%s", text, out)
		}
	}
	getenv := func(name string) (string, bool) { return "12m..30m", name == "LEAKGATE_DURATION" }
	cfg, err := Parse("x.yaml", []byte(file+"duration: 8h\n"), getenv)
	if err != nil || cfg.Duration != 12*time.Minute || cfg.LongestDuration != 30*time.Minute ||
		cfg.Origin("duration").Layer != Environment {
		t.Errorf("%+v, %v", cfg, err)
	}
	// A single duration in a profile replaces the range in the file.
	cfg, err = Parse("x.yaml", []byte(file+"duration: 12m..30m\nprofiles: { nightly: { duration: 8h } }\n"), nil,
		WithProfile("nightly"))
	if err != nil || cfg.Duration != 8*time.Hour || cfg.LongestDuration != 0 {
		t.Errorf("%+v, %v", cfg, err)
	}
}
