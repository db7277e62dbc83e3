package config

import (
	"strings"
	"testing"
)

// detect.must_see is a rate. It can be set by a variable, and `config print`
// writes it in the form in which it is parsed.
func TestMustSee(t *testing.T) {
	const file = "version: 1\napp: { package: com.shop }\nworkload: { monkey: { events: 9 } }\n"
	for text, c := range map[string]struct {
		want    int64
		written string
		wrong   string
	}{
		"50MB/h":    {50 << 20, "50MB/h", ""},
		"1.5GB/h":   {1536 << 20, "1536MB/h", ""},
		"2048KiB/h": {2 << 20, "2MB/h", ""},
		"50MB": {
			0, "",
			`x.yaml:4:21: detect.must_see: "50MB" is not a rate: write a size per hour, such as 50MB/h; did you mean 50MB/h?`,
		},
		"50": {
			0, "",
			`x.yaml:4:21: detect.must_see: "50" is not a rate: write a size per hour, such as 50MB/h; did you mean 50MB/h?`,
		},
		"50MB/min": {0, "", `x.yaml:4:21: detect.must_see: "50MB/min" is not a rate`},
		"1KB/h": {
			0, "", `x.yaml:4:21: detect.must_see: is "1KB/h", but must be from 1MB/h to 1024GB/h`,
		},
		"2048GB/h":                  {0, "", `x.yaml:4:21: detect.must_see: is "2048GB/h", but must be`},
		"-1MB/h":                    {0, "", `x.yaml:4:21: detect.must_see: is "-1MB/h", but must be`},
		"1e3MB/h":                   {0, "", `x.yaml:4:21: detect.must_see: "1e3MB/h" is not a rate`},
		"999999999999999999999GB/h": {0, "", `x.yaml:4:21: detect.must_see: `},
	} {
		cfg, err := Parse("x.yaml", []byte(file+"detect: { must_see: "+text+" }\n"), nil)
		switch {
		case c.wrong != "":
			if err == nil || !strings.HasPrefix(err.Error(), c.wrong) {
				t.Errorf("%s: %v, want %s", text, err, c.wrong)
			}
			continue
		case err != nil || cfg.Detect.MustSee != c.want:
			t.Errorf("%s: %+v, %v", text, cfg, err)
			continue
		}
		if out := string(cfg.YAML(false)); !strings.Contains(out, "  must_see: "+c.written+"\n") {
			t.Errorf("%s is written as\n%s", text, out)
		}
	}
	env := map[string]string{"LEAKGATE_DETECT_MUST_SEE": "7MB/h"}
	getenv := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	if cfg, err := Parse("x.yaml", []byte(file), getenv); err != nil || cfg.Detect.MustSee != 7<<20 ||
		cfg.Origin("detect.must_see").Layer != Environment {
		t.Errorf("%+v, %v", cfg, err)
	}
	_, err := Parse("x.yaml", []byte(file+"detect: { policy: article, must_see: 50MB/h }\n"), nil)
	if want := "x.yaml:4:28: detect.must_see: policy article has no detection limit: use policy robust"; err == nil ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
