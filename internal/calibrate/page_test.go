package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPage checks that docs/detector.md has markers for every table, and that
// the table between them has the columns that the program writes.
func TestPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "detector.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range chosen(options{runs: 1, detections: 1}) {
		written, err := replace(page, table.name, "x")
		if err != nil {
			t.Error(err)
			continue
		}
		from, to := markers(table.name)
		_, rest, _ := bytes.Cut(page, from)
		text, _, _ := bytes.Cut(rest, to)
		head := "| " + strings.Join(table.head, " | ") + " |\n"
		if len(text) > 0 && !strings.Contains(string(text), head) {
			t.Errorf("the columns of table %s in docs/detector.md differ from %q: run make calibrate", table.name, head)
		}
		if want := len(page) - len(text) + 1; len(written) != want {
			t.Errorf("table %s: %d bytes after writing, want %d", table.name, len(written), want)
		}
	}
}

func TestReplace(t *testing.T) {
	page := "a\n<!-- calibrate:one -->\nold\n<!-- /calibrate:one -->\nb\n<!-- calibrate:two -->\n<!-- /calibrate:two " +
		"-->\n"
	got, err := replace([]byte(page), "one", "new\n")
	if want := strings.Replace(page, "old", "new", 1); err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	got, err = replace(got, "two", "more\n")
	if err != nil || !strings.HasSuffix(string(got), "<!-- calibrate:two -->\nmore\n<!-- /calibrate:two -->\n") {
		t.Errorf("%q, %v", got, err)
	}
	again, err := replace(got, "two", "more\n")
	if err != nil || !bytes.Equal(got, again) {
		t.Errorf("second write: %q, %v", again, err)
	}
	for _, bad := range []string{
		"", "<!-- calibrate:one -->\n", "<!-- /calibrate:one -->",
		"<!-- /calibrate:one -->\n<!-- calibrate:one -->\n", page + page,
	} {
		if got, err := replace([]byte(bad), "one", "x"); err == nil {
			t.Errorf("%q became %q", bad, got)
		}
	}
}
