package checkout

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/recorded"
)

// odd lists names that are difficult for a parser of git's output.
var odd = []string{
	"a.java", "dir with blank/b c.kt", "\"quoted\".java", "tab\there.kt", "line\nbreak.java", "back\\slash.kt",
	"é\xff.java", "+++ b/x.kt", "a => b/{c}.java", "-x.kt",
}

// TestChanged edits random files and compares the results with git diff
// --numstat and with the files.
func TestChanged(t *testing.T) {
	r := newRepository(t)
	random := rand.New(rand.NewPCG(5, 6))
	words := []string{
		"", "int a;", "++ b/a.java", "-- a/a.java", "@@ -1,2 +3,4 @@", "diff --git a/x b/x",
		"\\ No newline at end of file", "\r", "x",
	}
	content := map[string][]string{}
	edit := func(lines []string) []string {
		out := []string{}
		for _, line := range lines {
			if random.IntN(8) > 0 {
				out = append(out, line)
			}
			for random.IntN(6) == 0 {
				out = append(out, words[random.IntN(len(words))])
			}
		}
		return append(out, words[1+random.IntN(len(words)-1)])
	}
	for _, name := range odd {
		for range 40 {
			content[name] = edit(content[name])
		}
	}
	save := func() string {
		for _, name := range odd {
			end := "\n"
			if random.IntN(2) == 0 {
				end = ""
			}
			r.write(name, strings.Join(content[name], "\n")+end)
		}
		return r.commit()
	}
	save()
	for range 6 {
		base := r.git("rev-parse", "HEAD")
		unchanged := odd[random.IntN(len(odd))]
		for _, name := range odd {
			if name != unchanged {
				content[name] = edit(content[name])
			}
		}
		head := save()
		c, err := r.open().Changed(t.Context(), base, head)
		if err != nil {
			t.Fatal(err)
		}
		numstat := r.git("diff-tree", "-r", "-z", "--numstat", "--text", "--no-renames", base, head)
		for record := range strings.SplitSeq(strings.TrimSuffix(numstat, "\x00"), "\x00") {
			fields := strings.SplitN(record, "\t", 3)
			name, want := fields[2], fields[0]
			if !c.File(name) {
				t.Errorf("%q is not reported as changed", name)
			}
			after, before := r.git("show", head+":"+name), r.git("show", base+":"+name)
			lines, kept := strings.Split(after, "\n"), []string{}
			added := 0
			for i := -1; i <= len(lines)+2; i++ {
				if c.Adds(name, i) {
					added++
				} else if i >= 1 && i <= len(lines) {
					kept = append(kept, lines[i-1])
				}
			}
			if isSource(name) && strconv.Itoa(added) != want {
				t.Errorf("%q: %d added lines, want %s", name, added, want)
			}
			if isSource(name) && !subsequence(kept, strings.Split(before, "\n")) {
				t.Errorf("%q: lines that are not reported as added did not exist before", name)
			}
		}
		if c.File("unknown.kt") || c.Adds("unknown.kt", 1) {
			t.Error("an unknown file is reported as changed")
		}
	}
}

func subsequence(part, all []string) bool {
	for _, s := range all {
		if len(part) > 0 && part[0] == s {
			part = part[1:]
		}
	}
	return len(part) == 0
}

// TestChangedSinceMergeBase checks that later commits of the base branch are
// not part of the pull request, and that a rename adds only the lines that it
// changes.
func TestChangedSinceMergeBase(t *testing.T) {
	r := newRepository(t)
	lines := func(from int) (s string) {
		for i := from; i < from+30; i++ {
			s += fmt.Sprintf("line %d\n", i)
		}
		return s
	}
	r.write("Old.kt", lines(0))
	r.write("Gone.kt", "gone\n")
	r.write("Mode.kt", "mode\n")
	r.write(".gitattributes", "*.kt -diff\n*.java diff=x\n")
	r.commit()
	r.git("checkout", "-q", "-b", "side")
	r.git("rm", "-q", "Gone.kt", "Old.kt")
	r.write("New.kt", "first\n"+lines(0))
	r.write("Binary.java", "a\x00b\nc\n")
	r.write("note.txt", "a\n")
	r.git("update-index", "--chmod=+x", "Mode.kt")
	r.git("update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",module.kt")
	r.git("add", "New.kt", "Binary.java", "note.txt")
	r.git("commit", "-q", "-m", "a")
	r.git("reset", "-q", "--hard")
	r.git("checkout", "-q", "main")
	r.write("Main.kt", "main\n")
	r.commit()
	for _, names := range [][2]string{
		{"main", "side"}, {r.git("rev-parse", "main"), r.git("rev-parse", "--short=7", "side")},
	} {
		c, err := r.open().Changed(t.Context(), names[0], names[1])
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]bool{
			"Old.kt": true, "Gone.kt": true, "New.kt": true, "Binary.java": true, "note.txt": true, "Mode.kt": true,
			"module.kt": true, "Main.kt": false, ".gitattributes": false,
		} {
			if c.File(name) != want {
				t.Errorf("%s reported as changed: %v", name, !want)
			}
		}
		for place, want := range map[string]bool{
			"New.kt 1": true, "New.kt 2": false, "New.kt 31": false, "Binary.java 1": true, "Binary.java 2": true,
			"Binary.java 3": false, "Old.kt 1": false, "Gone.kt 1": false, "Mode.kt 1": false, "note.txt 1": false,
		} {
			name, number, _ := strings.Cut(place, " ")
			line, _ := strconv.Atoi(number)
			if c.Adds(name, line) != want {
				t.Errorf("%s reported as added: %v", place, !want)
			}
		}
	}
	r.git("checkout", "-q", "--orphan", "alone")
	r.commit()
	if _, err := r.open().Changed(t.Context(), "main", "alone"); err == nil ||
		!strings.Contains(err.Error(), "no common history") {
		t.Errorf("without a common history: %v", err)
	}
}

// TestNoProgram checks that the programs configured in the checkout are not
// run, although plain git runs them.
func TestNoProgram(t *testing.T) {
	r := newRepository(t)
	ran := filepath.Join(t.TempDir(), "ran")
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$0 $*\" >> '"+ran+"'\ncat \"$1\" 2>/dev/null\nexit 0\n"),
		0o700); err != nil {
		t.Fatal(err)
	}
	r.write(".gitattributes", "* diff=evil filter=evil merge=evil\n")
	r.write("A.java", "class A { int a; }\n")
	base := r.commit()
	r.write("A.java", "class A {\n  int a;\n}\n")
	head := r.commit()
	blob := r.git("rev-parse", "HEAD:A.java")
	for _, key := range []string{
		"core.fsmonitor", "diff.external", "diff.evil.command", "diff.evil.textconv", "filter.evil.clean",
		"filter.evil.smudge", "filter.evil.process", "merge.evil.driver",
		"core.pager", "pager.diff-tree", "pager.ls-files", "pager.rev-list", "core.sshCommand", "core.askPass",
		"core.editor", "credential.helper", "gpg.program", "core.gitProxy",
		"core.alternateRefsCommand", "remote.origin.uploadpack", "uploadpack.packObjectsHook", "sequence.editor",
		"alias.diff-tree", "alias.rev-list", "interactive.diffFilter",
	} {
		r.git("config", key, program)
	}
	hooks := filepath.Join(r.dir, "hooks")
	if err := os.MkdirAll(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"post-index-change", "fsmonitor-watchman", "post-checkout", "reference-transaction"} {
		if err := os.Symlink(program, filepath.Join(hooks, hook)); err != nil {
			recorded.Missing(t, "make a symbolic link: %v", err)
		}
	}
	r.git("config", "core.hooksPath", hooks)
	r.git("config", "color.ui", "always")
	r.git("config", "diff.noprefix", "true")
	r.git("config", "log.showSignature", "true")
	r.git("config", "core.worktree", filepath.Dir(program))
	r.git("config", "core.worktree", r.dir)
	// Make it a partial clone that lacks an object, which plain git would fetch
	// with the remote's program.
	r.git("config", "remote.origin.url", r.dir)
	r.git("config", "remote.origin.promisor", "true")
	r.git("config", "remote.origin.partialclonefilter", "blob:none")
	r.git("config", "core.repositoryFormatVersion", "1")
	r.git("config", "extensions.partialClone", "origin")
	// The test is valid only if plain git runs the program.
	_, _ = r.try("", "diff", base, head)
	_, _ = r.try("", "status")
	if _, err := os.Stat(ran); err != nil {
		t.Fatal("the test is ineffective: git ran no program")
	}
	os.Remove(ran)

	t.Setenv("GIT_EXTERNAL_DIFF", program)
	t.Setenv("GIT_PAGER", program)
	t.Setenv("GIT_DIR", filepath.Dir(program))
	c := r.open()
	if d, ok := c.Declaration(t.Context(), "A", "a"); !ok || d.Line != 2 {
		t.Errorf("declaration: %+v", d)
	}
	if got, err := c.Changed(t.Context(), base, head); err != nil || !got.Adds("A.java", 2) {
		t.Errorf("changes: %+v %v", got, err)
	}
	absent := strings.Repeat("0123456789", 4)
	if got, _, err := c.Ancestors(t.Context(), "HEAD", []string{base, absent}); err != nil || got[base] != 1 ||
		len(got) != 1 {
		t.Errorf("ancestors: %v %v", got, err)
	}
	object := filepath.Join(r.dir, ".git", "objects", blob[:2], blob[2:])
	if err := os.Remove(object); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Changed(t.Context(), base, head); err == nil {
		t.Error("no error for changes with a missing object")
	}
	if list, err := os.ReadFile(ran); err == nil {
		t.Errorf("programs ran:\n%s", list)
	}
	// Plain git does fetch the object.
	os.Unsetenv("GIT_DIR")
	_ = os.Remove(ran)
	if got, err := r.try("", "cat-file", "-e", blob); err == nil {
		t.Errorf("the object exists: %s", got)
	}
	if _, err := os.Stat(ran); err != nil {
		t.Error("the test is ineffective: git fetched nothing")
	}
}

// TestForeignRepository checks that a directory of the pull request that looks
// like a repository is ignored, and that a damaged .git does not make git use
// an enclosing repository.
func TestForeignRepository(t *testing.T) {
	r := newRepository(t)
	r.write("inner/A.java", "class A { int a; }\n")
	r.commit()
	r.git("init", "-q", "--bare", filepath.Join(r.dir, "inner", "bare"))
	if got := open(t, filepath.Join(r.dir, "inner", "bare")).Top(); got != r.open().Top() {
		t.Errorf("top directory: %s", got)
	}
	r.write("inner/.git/config", "[core")
	c := open(t, filepath.Join(r.dir, "inner"))
	if _, err := c.Changed(t.Context(), "main", "HEAD"); err == nil {
		t.Error("changes of the enclosing repository are reported")
	}
	if d, ok := c.Declaration(t.Context(), "A", "a"); !ok || d.File != "A.java" {
		t.Errorf("%+v", d)
	}
}

func TestOpenFails(t *testing.T) {
	for _, dir := range []string{"missing", "doc.go"} {
		if _, err := Open(t.Context(), dir); err == nil {
			t.Errorf("no error for %s", dir)
		}
	}
}

// TestBounds checks that git fails with an error if its output is too large.
func TestBounds(t *testing.T) {
	r := newRepository(t)
	r.write("a.txt", strings.Repeat("a", 1<<20))
	r.commit()
	_, err := r.open().git(t.Context(), command{time: askGit, output: 1000}, "show", "HEAD:a.txt")
	if !errors.Is(err, errTooLarge) {
		t.Errorf("%v", err)
	}
}

// FuzzHunks checks that the lines of a file are in ascending order, and that
// the result does not depend on how the output is split.
func FuzzHunks(f *testing.F) {
	f.Add("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,2 @@ f\n-a\n\\ No newline at end of file\n+++ b/y\n+b\n", 7)
	f.Add("diff --git \"a/x\\ty\" \"b/x\\ty\"\n+++ \"b/x\\ty\"\t\n@@ -0,0 +1 @@\n+a\n", 1)
	f.Fuzz(func(t *testing.T, output string, at int) {
		whole := &hunkReader{added: map[string][]span{}}
		_, err := whole.Write([]byte(output))
		at = max(0, min(at, len(output)))
		parts := &hunkReader{added: map[string][]span{}}
		_, err1 := parts.Write([]byte(output[:at]))
		if err1 == nil {
			_, err1 = parts.Write([]byte(output[at:]))
		}
		if (err == nil) != (err1 == nil) || err == nil && fmt.Sprint(whole.added) != fmt.Sprint(parts.added) {
			t.Fatalf("%v %v, in parts %v %v", whole.added, err, parts.added, err1)
		}
		for path, spans := range whole.added {
			if path == "" {
				t.Fatal("empty path")
			}
			last := -1
			for _, s := range spans {
				if s.first <= last || s.last < s.first {
					t.Fatalf("%q: %v", path, spans)
				}
				last = s.last
			}
		}
	})
}

// The base of a pull request is its merge base, or the newest base if the merge
// into it is checked out. The base is unknown if HEAD does not contain the last
// commit of the pull request.
func TestBase(t *testing.T) {
	r := newRepository(t)
	r.write("Cart.java", "class Cart { Object last; }")
	began := r.commit()
	r.git("branch", "moved")
	r.write("Wish.java", "class Wish { }")
	head := r.commit()
	r.git("checkout", "moved")
	r.write("Cart.java", "class Cart { Object first, last; }")
	moved := r.commit()
	r.git("merge", "--no-ff", "-m", "as GitHub merges", head)
	c := r.open()
	if got, err := c.Base(t.Context(), began, head); err != nil || got != moved {
		t.Errorf("merged: %s, %v; want %s", got, err, moved)
	}
	if changes, err := c.Changed(t.Context(), moved, "HEAD"); err != nil || changes.File("Cart.java") ||
		!changes.File("Wish.java") {
		t.Errorf("%+v, %v", changes, err)
	}
	r.git("checkout", head)
	if got, err := c.Base(t.Context(), moved, head); err != nil || got != began {
		t.Errorf("base of the head: %s, %v; want %s", got, err, began)
	}
	r.git("checkout", moved)
	if got, err := c.Base(t.Context(), moved, head); err == nil {
		t.Errorf("checkout of the base, as under pull_request_target: got base %s, want an error", got)
	}
}
