package checkout

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestOwners(t *testing.T) {
	const file = "\ufeff# a comment\r\n" +
		"*       @everyone  # inline @nobody\r\n" +
		"*.kt    @kotlin docs@example.com\n" +
		"/build/logs/ @logs\n" +
		"docs/*  @docs\n" +
		"apps/   @org/apps-team\n" +
		"/apps/github\n" +
		"with\\ space/ @space\n" +
		"!negated.txt @negated\n" +
		"[ab].txt @range\n" +
		"\\#hash @hash\n" +
		"***/x @stars\n" +
		"bad.txt not-an-owner @\n" +
		"half.txt not-an-owner @half @a/b/c a@b @-x user@example.com.\n" +
		"deep/**/end.txt @deep\n" +
		"/ @root\n" +
		"  indented.txt\t@tab\n"
	c := &Checkout{owners: func() []ownerRule { return ownerRules(file) }}
	for path, want := range map[string]string{
		"README.md": "[@everyone]", "a/b.kt": "[@kotlin docs@example.com]", "build/logs/x/y": "[@logs]",
		"x/build/logs/y": "[@everyone]",
		"docs/a.md":      "[@docs]", "docs/a/b.md": "[@everyone]", "x/docs/a.md": "[@everyone]",
		"x/apps/y":    "[@org/apps-team]",
		"apps/github": "[]", "apps/github/x.kt": "[]", "with space/x": "[@space]", "negated.txt": "[@everyone]",
		"a.txt": "[@everyone]",
		"#hash": "[@everyone]", "x": "[@everyone]", "bad.txt": "[@everyone]", "half.txt": "[@half]",
		"deep/end.txt": "[@deep]", "deep/a/b/end.txt": "[@deep]", "indented.txt": "[@tab]",
		strings.Repeat("a/", maxOwned): "[]",
	} {
		if got := fmt.Sprint(c.Owners(path)); got != want {
			t.Errorf("%.50s: %s, want %s", path, got, want)
		}
	}
}

// TestOwnersFile checks that only the first of the three files is used, even if
// it cannot be read.
func TestOwnersFile(t *testing.T) {
	r := repository{t, t.TempDir()}
	want := func(owners string) {
		t.Helper()
		if got := fmt.Sprint(r.open().Owners("a")); got != owners {
			t.Errorf("%s, want %s", got, owners)
		}
	}
	want("[]")
	r.write("docs/CODEOWNERS", "a @docs")
	want("[@docs]")
	r.write("CODEOWNERS", "a @top")
	want("[@top]")
	r.write(".github/CODEOWNERS", "a @github")
	want("[@github]")
	r.write(".github/CODEOWNERS", "a @github\n#"+strings.Repeat("a", maxOwnersFile))
	want("[]")
}

// TestOwnersAsGit compares the matches of random patterns with those of git:
// .gitignore matches like CODEOWNERS. If a pattern ends in `*`, .gitattributes
// is used instead, which does not match the content of directories. (`a**/b` is
// not tested: contrary to its manual, git matches any directories with `**`
// after literal characters.)
func TestOwnersAsGit(t *testing.T) {
	r := newRepository(t)
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	file := func() string {
		parts := make([]string, 1+random.IntN(4))
		for i := range parts {
			parts[i] = pick("a", "b", "ab", "abc", "b a", "a*", "x?")
		}
		return strings.Join(parts, "/")
	}
	pattern := func() string {
		parts := make([]string, 1+random.IntN(4))
		for i := range parts {
			parts[i] = pick("a", "b", "ab", "a*", "*b", "?", "a?c", "*", "**", `b\ a`, `a\*`, `x\?`, "*a*b*")
		}
		return pick("", "", "/") + strings.Join(parts, "/") + pick("", "", "/")
	}
	type question struct {
		pattern string
		files   []string
	}
	questions := make([]question, 250)
	var stdin strings.Builder
	for i := range questions {
		q := question{pattern: pattern()}
		dir := fmt.Sprintf("d%d", i)
		r.write(path.Join(dir, ".gitignore"), q.pattern+"\n")
		r.write(path.Join(dir, ".gitattributes"), q.pattern+" hit\n")
		for range 40 {
			f := file()
			q.files = append(q.files, f)
			stdin.WriteString(dir + "/" + f + "\x00")
		}
		questions[i] = q
	}
	ignored := strings.Split(r.gitWith(stdin.String(), "check-ignore", "--no-index", "-z", "--stdin", "-v", "-n"),
		"\x00")
	attributes := strings.Split(r.gitWith(stdin.String(), "check-attr", "-z", "--stdin", "hit"), "\x00")
	hits := 0
	for i, q := range questions {
		exact := path.Base(q.pattern) == "*" && !strings.HasSuffix(q.pattern, "/")
		p, ok := parseOwnerPattern(q.pattern)
		if !ok {
			if q.pattern != "/" {
				t.Errorf("pattern %q is not valid", q.pattern)
			}
			continue
		}
		for j, f := range q.files {
			n := i*len(q.files) + j
			want := ignored[4*n] != ""
			if exact {
				want = attributes[3*n+2] == "set"
			}
			if want {
				hits++
			}
			if got := p.matches(strings.Split(f, "/")); got != want {
				t.Errorf("%q matches %q: %v, want %v", q.pattern, f, got, want)
			}
		}
	}
	if total := len(questions) * 40; hits < total/10 || hits > total*9/10 {
		t.Errorf("%d of %d match", hits, total)
	}
}

// FuzzOwners checks that all owners are valid and occur in the file, and that
// one of its lines alone yields the same owners.
func FuzzOwners(f *testing.F) {
	f.Add("*.kt @a\ndocs/ @org/b c@d.ef # x\n", "docs/x.kt")
	f.Add(`a\ b/**/*?c @a`, "a b/x/yc")
	f.Fuzz(func(t *testing.T, content, file string) {
		owners := func(content string) []string {
			return (&Checkout{owners: func() []ownerRule { return ownerRules(content) }}).Owners(file)
		}
		got := owners(content)
		if got == nil {
			return
		}
		for _, o := range got {
			if !owner.MatchString(o) || !strings.Contains(content, o) {
				t.Fatalf("owner %q", o)
			}
		}
		lines := strings.Split(content, "\n")
		if !slices.ContainsFunc(lines, func(line string) bool { return slices.Equal(owners(line), got) }) {
			t.Fatalf("got owners %q, but no line alone yields them", got)
		}
	})
}

func TestMain(m *testing.M) {
	// The test may be running inside a hook of git.
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "GIT_") {
			os.Unsetenv(name)
		}
	}
	os.Exit(m.Run())
}
