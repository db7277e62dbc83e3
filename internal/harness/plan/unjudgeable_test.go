package plan

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/harness/config"
)

// A run whose plan cannot judge anything is recognized before it starts.
func TestFileCannotJudge(t *testing.T) {
	const monkey, least = "workload: { monkey: { events: 9 } }\n",
		"nothing can be judged: the run ends after 12m, and a trend needs 30m: " +
			"run for 30m or longer, or dump heaps at marks"
	for name, c := range map[string]struct {
		text, want, refused string
	}{
		"12 min": {monkey + "duration: 12m\n", least, ""},
		"12 min with strict": {
			monkey + "duration: 12m\nstrict: true\n", least, "x.yaml:4:11: duration: " + least,
		},
		"12 min with allow_unjudged": {monkey + "duration: 12m\nallow_unjudged: true\n", "", ""},
		"12 min with allow_unjudged and strict": {
			monkey + "duration: 12m\nallow_unjudged: true\nstrict: true\n", least, "x.yaml:4:11: duration: " + least,
		},
		"30 min with strict":      {monkey + "duration: 30m\nstrict: true\n", "", ""},
		"until the workload ends": {monkey, "", ""},
		"dumps at marks": {
			monkey + "duration: 12m\nstrict: true\ndiagnose: { dump: at_marks }\n", "", "",
		},
		"dumps at the end":                {monkey + "duration: 12m\ndiagnose: { dump: at_end }\n", least, ""},
		"dumps at the end, with the gate": {monkey + "duration: 12m\ndiagnose: { dump: at_end }\ngate: {}\n", "", ""},
		"gate without dumps":              {monkey + "duration: 12m\ngate: {}\n", least, ""},
		"instrumented tests":              {"workload: { instrument: com.shop.test/R }\nduration: 12m\n", "", ""},
		"a command":                       {"workload: { command: [a] }\nduration: 12m\n", least, ""},
		"command with test windows": {
			"workload: { command: [a], windows: { begin: B, end: E } }\nduration: 12m\n", "", "",
		},
	} {
		cfg, err := config.Parse("x.yaml", []byte("version: 1\napp: { package: com.shop }\n"+c.text), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := FileCannotJudge(cfg); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		refused := ""
		if err := Refused(cfg); err != nil {
			refused = err.Error()
		}
		if !strings.HasPrefix(refused, c.refused) || c.refused == "" && refused != "" {
			t.Errorf("%s: rejected with %q, want %q", name, refused, c.refused)
		}
	}
}

// In the documentation, every example of a complete file describes a run that
// can judge something, with each profile.
func TestExamplesCanJudge(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n((?:#[^\n]*\n)*version: 1\napp:.*?)```")
	checked := 0
	pages, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range append(pages, "../../../README.md", "../../../docs/formats/config.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		examples, _, _ := strings.Cut(string(text), "## What only leakgate sees") // files with mistakes follow
		for _, block := range blocks.FindAllStringSubmatch(examples, -1) {
			cfg, err := config.Parse(page, []byte(block[1]), nil)
			if err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			for _, profile := range append([]string{""}, cfg.Profiles()...) {
				cfg, err := config.Parse(page, []byte(block[1]), nil, config.WithProfile(profile))
				if err != nil {
					t.Fatal(err)
				}
				if why := FileCannotJudge(cfg); why != "" {
					t.Errorf("%s, profile %q of\n%s: %s", page, profile, block[1], why)
				}
				checked++
			}
		}
	}
	if checked < 15 {
		t.Errorf("found only %d examples, want at least 15", checked)
	}
}

// The rate that a pass must rule out is copied from the file to the run.
func TestMustSeeOfTheFile(t *testing.T) {
	cfg, err := config.Parse("x.yaml",
		[]byte("version: 1\napp: { package: com.shop }\nworkload: none\nduration: 8h\ndetect: { must_see: 50MB/h }\n"),
		nil)
	if err != nil {
		t.Fatal(err)
	}
	if o, err := Of(cfg, t.TempDir()); err != nil || o.MustSee != 50<<20 {
		t.Errorf("got MustSee %v bytes/h, %v", o.MustSee, err)
	}
}
