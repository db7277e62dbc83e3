package archtest

//unit:program go list names the modules

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// allowedLicenses holds the licenses that CONTRIBUTING.md allows, each with
// words that only that license contains.
var allowedLicenses = []struct {
	name  string
	words *regexp.Regexp
}{
	{"Apache-2.0",
		regexp.MustCompile(`Apache License\s+Version 2\.0, January 2004|Licensed under the Apache License, Version 2\.0`)},
	{"MIT", regexp.MustCompile(`Permission is hereby granted, free of charge, to any person`)},
	{"BSD",
		regexp.MustCompile(`Redistribution and use in source and binary forms, with or without\s+modification, are permitted`)},
	{"ISC",
		regexp.MustCompile(`Permission to use, copy, modify, and(/or)? distribute this software for any\s+purpose`)},
}

// refused holds words of licenses whose conditions require more than a notice.
var refused = regexp.MustCompile(
	`(?i)GNU (AFFERO |LESSER )?GENERAL PUBLIC|Mozilla Public|Business Source|Server Side Public|Commons Clause`)

// licenseOf returns the name of the allowed license that a file contains, or ""
// if there is none.
func licenseOf(text string) string {
	for _, l := range allowedLicenses {
		if l.words.MatchString(text) && !refused.MatchString(text) {
			return l.name
		}
	}
	return ""
}

// TestLicenses checks that each module that is linked into leakgate, on any of
// the three systems, has a license that CONTRIBUTING.md allows.
func TestLicenses(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root(t), "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range allowedLicenses {
		if !strings.Contains(string(page), l.name) {
			t.Errorf("CONTRIBUTING.md does not name %s", l.name)
		}
	}
	seen := map[string]bool{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
			"{{with .Module}}{{.Path}} {{.Dir}}{{end}}", module+"/cmd/leakgate")
		list.Dir = root(t)
		list.Env = append(os.Environ(), "GOOS="+system)
		out, err := list.Output()
		if err != nil {
			t.Fatalf("run go list: %v", err)
		}
		for line := range strings.Lines(string(out)) {
			path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
			if path != "" && !seen[path] {
				seen[path] = true
				checkLicense(t, path, dir)
			}
		}
	}
	if len(seen) < 2 {
		t.Errorf("go list prints only %v", seen)
	}
}

func checkLicense(t *testing.T, path, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "LICENSE*"))
	if err != nil || len(files) == 0 {
		t.Errorf("%s has no LICENSE: %v", path, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := licenseOf(string(text))
		if name == "" {
			t.Errorf("%s: %s is not a license that CONTRIBUTING.md allows", path, filepath.Base(file))
		}
		t.Logf("%s: %s", path, name)
	}
}

func TestLicenseOf(t *testing.T) {
	for text, want := range map[string]string{
		"Permission is hereby granted, free of charge, to any person obtaining a copy":                    "MIT",
		"Redistribution and use in source and binary forms, with or without\nmodification, are permitted": "BSD",
		"GNU GENERAL PUBLIC LICENSE": "",
		"Apache License\n Version 2.0, January 2004\n\"Commons Clause\" License Condition": "",
		"All rights reserved.": "",
	} {
		if got := licenseOf(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
