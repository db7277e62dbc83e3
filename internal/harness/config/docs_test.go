package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const page = "../../../docs/formats/config.md"

// generated replaces the text between the markers with the given name in the
// page.
func generated(t *testing.T, name, text string) {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+": made by go test ./internal/harness/config -update -->\n", "<!-- end of "+name+" -->\n"
	before, rest, ok := strings.Cut(string(content), begin)
	is, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("the page has no section %s", name)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+text+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if is != text {
		t.Errorf("section %s of %s is outdated; run go test ./internal/harness/config -update; want\n%s", name, page,
			text)
	}
}

// defaultOf returns the default of a key as the page shows it.
func defaultOf(k key) string {
	switch shown := k.texts(); {
	case k.name == "version" || k.choice:
		return ""
	case k.holds == manyValues && k.is&mayBeEmpty != 0:
		return yamlTexts(shown)
	case k.holds == manyMappings:
		return "[]"
	case k.holds == manyPairs:
		return "{}"
	case k.holds == oneValue && len(shown) > 0:
		return k.yaml(shown[0])
	}
	return ""
}

// The page documents every key as the table of keys defines it.
func TestKeysOfThePage(t *testing.T) {
	generated(t, "keys", tableOf(leaves(schema(defaults()))))
	generated(t, "steps", tableOf(leaves(stepKey(new(defaultStep())).keys)))
}

func tableOf(leaves []leaf) string {
	var b strings.Builder
	b.WriteString("| key | what it is | value | default | example |\n|---|---|---|---|---|\n")
	cell := func(text string) string {
		if text == "" {
			return ""
		}
		return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
	}
	for _, l := range leaves {
		value, or := l.key.form.says, defaultOf(l.key)
		switch {
		case l.key.choice:
			value = "`none`, or a mapping with one of the keys below"
		case l.key.holds == manyValues && l.key.is&mayBeSingle != 0:
			value = "a rule, or a list of them: " + value
		case l.key.holds == manyValues:
			value = "a list; each entry: " + value
		case l.key.holds == manyMappings:
			value = fmt.Sprintf("a list of at most %d steps", mostSteps)
		}
		or = cell(or)
		if or == "" && l.key.unset != "" {
			or = "none: " + l.key.unset
		}
		value = strings.ReplaceAll(value, "|", `\|`)
		b.WriteString("| `" + l.path + "` | " + l.key.about + " | " + value + " | " + or + " | " + cell(l.key.example) +
			" |\n")
	}
	return b.String()
}

// The page shows every mistake with all of its messages, and no other messages.
func TestMistakesOfThePage(t *testing.T) {
	files, err := filepath.Glob("testdata/mistakes/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("find mistakes: %d, %v", len(files), err)
	}
	var b strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		said, err := os.ReadFile(strings.TrimSuffix(file, ".yaml") + ".want")
		if err != nil {
			t.Fatal(err)
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
		b.WriteString("### " + title + "\n\n```yaml\n" + string(text) + "```\n\n")
		b.WriteString("```text\n$ " + commandOf(t, file, text).line + "\n" + string(said) + "```\n\n")
	}
	generated(t, "mistakes", b.String())
}

// Every variable name is in upper case and has the prefix. The page documents
// the built-in steps, the placeholders, and what only the reader checks.
func TestVariablesOfThePage(t *testing.T) {
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Variables() {
		if got, ok := strings.CutPrefix(name, variablePrefix); !ok || got != strings.ToUpper(got) {
			t.Errorf("%q is not a variable name", name)
		}
	}
	for _, name := range slices.Concat(ownSteps, placeholders) {
		if !strings.Contains(string(content), "`"+name+"`") && !strings.Contains(string(content), "`{"+name+"}`") {
			t.Errorf("the page does not document %s", name)
		}
	}
	for _, r := range readerOnly {
		if !strings.Contains(string(content), r.reason) {
			t.Errorf("the page does not say that only the reader checks this: %s", r.reason)
		}
	}
}

// The files that the page presents as valid are valid.
func TestFilesOfThePage(t *testing.T) {
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(content), "## Mistakes")
	blocks := strings.Split(before, "```yaml\n")[1:]
	for _, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		mustParse(t, text)
	}
	if len(blocks) < 2 {
		t.Errorf("the page contains only %d example files, want at least 2", len(blocks))
	}
}
