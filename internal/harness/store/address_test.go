package store

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/leakgate/leakgate/internal/text"
)

func TestParse(t *testing.T) {
	for s, want := range map[string]Address{
		Default:              {scheme: "file", path: "leak-baseline.json"},
		"file:../a b/c.json": {scheme: "file", path: "../a b/c.json"},
		"file:/srv/c.json":   {scheme: "file", path: "/srv/c.json"},
		`file:C:\x\c.json`:   {scheme: "file", path: `C:\x\c.json`},
		"git:leak-baseline#shop.json": {
			scheme: "git", remote: "origin", branch: "leak-baseline", path: "shop.json",
		},
		"git:up.stream/ci/leaks#a/b/c d#.js": {
			scheme: "git", remote: "up.stream", branch: "ci/leaks", path: "a/b/c d#.js",
		},
		"command:./base.sh":               {scheme: "command", words: []string{"./base.sh"}},
		`command:aws  's3 | x' "it's" ""`: {scheme: "command", words: []string{"aws", "s3 | x", "it's", ""}},
		`command:C:\x\base.exe a'b c'd`:   {scheme: "command", words: []string{`C:\x\base.exe`, "ab cd"}},
		"artifact:leak-baseline":          {scheme: "artifact", name: "leak-baseline"},
	} {
		got, err := Parse(s)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", s, got, err)
			continue
		}
		if again, err := Parse(got.String()); err != nil || !reflect.DeepEqual(again, want) ||
			got.Scheme() != want.scheme {
			t.Errorf("%s: as %s: %+v, %v", s, got, again, err)
		}
	}
}

// An invalid address is rejected with a message that says what to write
// instead.
func TestParseRejects(t *testing.T) {
	for s, want := range map[string]string{
		"":                                "write file:leak-baseline.json",
		" ":                               "write file:leak-baseline.json",
		"leaks.json":                      `write "file:leaks.json"`,
		`C:\leaks.json`:                   `write "file:C:\\leaks.json"`,
		"leaks#shop.json":                 `write "git:leaks#shop.json"`,
		"file: leaks.json":                `write "file:leaks.json"`,
		"file:":                           "write file:leak-baseline.json",
		"file:leaks/":                     `write "file:leaks/leak-baseline.json"`,
		"file:..":                         `write "file:../leak-baseline.json"`,
		"file://leaks.json":               `write "file:leaks.json"`,
		"file:///srv/leaks.json":          `write "file:/srv/leaks.json"`,
		"file:a\x1b[2J":                   "printable",
		"file:a\xff":                      "printable",
		"fiel:leaks.json":                 `write "file:leaks.json"`,
		"File:leaks.json":                 `write "file:leaks.json"`,
		"path:leaks.json":                 `write "file:leaks.json"`,
		"gti:leaks#shop.json":             `write "git:leaks#shop.json"`,
		"branch:leaks#shop.json":          `write "git:leaks#shop.json"`,
		"artefact:leaks":                  `write "artifact:leaks"`,
		"artifacts:leaks":                 `write "artifact:leaks"`,
		"comand:base":                     "write command:PROGRAM",
		"exec:base":                       "write command:PROGRAM",
		"s3://bucket/leaks.json":          "write command:PROGRAM",
		"nats:leaks":                      "want file, git, command or artifact",
		"https://example.org/shop.git":    "git:REMOTE/BRANCH#PATH",
		"git@example.org:shop.git":        "git:REMOTE/BRANCH#PATH",
		"git:git@example.org:shop.git":    "git:REMOTE/BRANCH#PATH",
		"git:https://example.org/a#b":     "git:REMOTE/BRANCH#PATH",
		"git://example.org/shop.git":      "git:REMOTE/BRANCH#PATH",
		"git:leaks":                       `write "git:leaks#leak-baseline.json"`,
		"git:leaks#":                      `write "git:leaks#leak-baseline.json"`,
		"git:leaks:shop.json":             `write "git:leaks#shop.json"`,
		"git:#shop.json":                  "invalid branch",
		"git:-x#shop.json":                "starts with a dash",
		"git:--upload-pack=x/b#shop.json": "invalid remote",
		"git:o/a..b#shop.json":            `contains ".."`,
		"git:o/a b#shop.json":             "space",
		"git:o/.a#shop.json":              "dot",
		"git:o/a.lock#shop.json":          ".lock",
		"git:o//a#shop.json":              "empty",
		"git:o/HEAD#shop.json":            "HEAD",
		"git:leaks#/etc/passwd":           "absolute",
		"git:leaks#../x":                  `".."`,
		"git:leaks#a/./x":                 `"."`,
		"git:leaks#a//x":                  "empty",
		"git:leaks#-x":                    "dash",
		"git:leaks#a/.GIT/config":         ".git",
		"git:leaks#git~1/config":          ".git",
		"git:leaks#a\"b":                  "contains one of",
		"git:leaks#a\\b":                  "contains one of",
		"git:leaks#a\nM 100644 inline b":  "printable",
		"command:":                        "write command:PROGRAM",
		"command:'' a":                    "write command:PROGRAM",
		"command:base 'a":                 "close it with '",
		"command:base | gzip":             "not run by a shell",
		"command:base $HOME":              "not run by a shell",
		"artifact:":                       "write artifact:leak-baseline",
		"artifact:a/b":                    "cannot contain",
		"artifact:..":                     "write artifact:leak-baseline",
	} {
		a, err := Parse(s)
		if err == nil {
			t.Errorf("%q: %+v", s, a)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %s", s, err, want)
		}
	}
	if _, err := Parse("file:" + strings.Repeat("x", maxAddress)); err == nil {
		t.Error("no error for an address that is too long")
	}
}

// No message contains the secrets of an address.
func TestParseKeepsSecrets(t *testing.T) {
	const secret = "hunter2"
	for _, s := range []string{
		"https://me:hunter2@example.org/x", "git:https://hunter2@example.org/x#y", "s3://k:p@hunter2@x/y",
		"git:https://example.org/?token=hunter2#y", "leaks/https://a:hunter2@b",
		"command:base --token=hunter2 | gzip", "comand:base --token=hunter2", "command: base --token=hunter2",
		"command:base 'hunter2", "exec:base hunter2", "https://a:x/hunter2@b",
	} {
		if _, err := Parse(s); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", s, err)
		}
	}
	a, err := Parse("command:/opt/base --token hunter2")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := Open(a, Options{}); err != nil || s.String() != "command:/opt/base ..." {
		t.Errorf("%v, %v", s, err)
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"fatal: unable to access 'https://me:a/b@c@host/x.git/': no": "fatal: unable to access " +
			"'https://***@host/x.git/': no",
		"https://host/x.git":                           "https://host/x.git",
		"https://host/x?private_token=abc&d=e failed":  "https://host/x?*** failed",
		"> Authorization: basic eDphYmM=\n< 401":       "> Authorization: ***\n< 401",
		"mail a@example.org":                           "mail a@example.org",
		"two https://a:b@c/d and ssh://e:f@g/h, ended": "two https://***@c/d and ssh://***@g/h, ended",
	} {
		if got := redact(in); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		Default, "git:a#b", "git:up/a/b#c/d", `command:a 'b c' "d'e" ''`, "artifact:x", "fiel:x",
		"https://u:hunter2@h/x", "C:x", "git:x", "command:a'\"'b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := Parse(s)
		if err != nil {
			if m := err.Error(); m != text.Printable(m) || utf8.RuneCountInString(m) > 1000 {
				t.Errorf("message %q", m)
			}
			return
		}
		again, err := Parse(a.String())
		if err != nil || !reflect.DeepEqual(again, a) {
			t.Errorf("%q: as %q: %+v, %v", s, a.String(), again, err)
		}
		if a.scheme == schemeGit &&
			(a.remote[0] == '-' || a.branch[0] == '-' || a.path[0] == '-' || a.path[0] == '/' ||
				strings.Contains("/"+a.path+"/", "/../") || strings.ContainsAny(a.path, "\n\"\\")) {
			t.Errorf("%q: %+v", s, a)
		}
	})
}
