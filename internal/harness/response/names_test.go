package response

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/reporters/record"
)

// named returns threads.txt with the output of grep for threads with these
// names.
func named(names ...string) map[string][]byte {
	var b strings.Builder
	for i, name := range names {
		fmt.Fprintf(&b, "/proc/4321/task/%d/comm:%s\n", 4321+i, name)
	}
	return map[string][]byte{threadsFile: []byte(b.String())}
}

// numbered returns the thread names of a pool, numbered from 1.
func numbered(format string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf(format, i+1))
	}
	return names
}

// shownNames returns the distinct names in a threads.txt.
func shownNames(t *testing.T, c *Case) []string {
	t.Helper()
	var names []string
	for line := range strings.Lines(string(contents(t, c.folder.path)[threadsFile])) {
		_, name, _ := strings.Cut(strings.TrimSpace(line), beforeName)
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Names of threads that may be personal are hidden, and names of pools are not;
// growth is measured with the full names.
func TestThreadNames(t *testing.T) {
	hash := regexp.MustCompile(`^…#[a-p]{6}$`)
	for _, c := range []struct {
		names []string
		want  string // empty for a hidden name
	}{
		{[]string{"main"}, "main"},
		{numbered("Binder:4321_%d", 4), "Binder:4321_*"},
		{numbered("pool-1-thread-%d", 2), "pool-1-thread-*"},
		{numbered("upload-%d", 5), "upload-*"},
		{numbered("Image Loader #%d", 200), "Image Loader #*"},
		{slices.Repeat([]string{"ImageDownloadPo"}, 20), "ImageDownloadPo*"},
		{numbered("net-2-worker-%d", 9), "net-2-worker-*"},
		{numbered("upload-%d", 4), ""},
		{[]string{"alice"}, ""},
		{[]string{"alice8@example"}, ""},
		{numbered("a%d@example.org", 9), ""},
		{numbered("call 49176123-%d", 9), ""},
		{numbered("10.0.0.%d", 9), ""},
		{numbered("host-10-0-0-%d", 9), ""},
		{[]string{"+4917612345678"}, ""},
		{[]string{"日本語"}, ""},
		{[]string{"x\x1b[31my"}, ""},
	} {
		got := analyzed(t, New(t.TempDir(), Options{}), "thread", nil, named(c.names...))
		shown := shownNames(t, got)
		if len(shown) != 1 || c.want != "" && shown[0] != c.want || c.want == "" && !hash.MatchString(shown[0]) {
			t.Errorf("%q... is shown as %q, want %q", c.names[0], shown, c.want)
		}
		if summary := strings.Join(got.Record.Summary, "\n"); !strings.Contains(summary, shown[0]) {
			t.Errorf("%q is not in\n%s", shown[0], summary)
		}
		asked := analyzed(t, New(t.TempDir(), Options{ShowTexts: true}), "thread", nil, named(c.names...))
		equal(t, "names requested", contents(t, asked.folder.path)[threadsFile], named(c.names...)[threadsFile])
		if step := got.Record.Steps[0]; step.Bytes != int64(len(contents(t, got.folder.path)[threadsFile])) {
			t.Errorf("%q: the step reports %d bytes, want the size of %s", c.names[0], step.Bytes, threadsFile)
		}
	}
}

// Names that were hidden because there were few threads are still compared by
// name.
func TestThreadNamesCompared(t *testing.T) {
	r := New(t.TempDir(), Options{})
	before := analyzed(t, r, Snapshot, nil, named(append(numbered("upload-%d", 2), "alice@example")...))
	after := analyzed(t, r, "thread", before.Now,
		named(append(numbered("upload-%d", 42), "alice@example", "bob@example")...))
	list := found(after, "threads")
	if len(list) != 2 || list[0].Name != "upload-*" || *list[0].CountDelta != 40 || *list[1].CountDelta != 1 ||
		!strings.HasPrefix(list[1].Name, "…#") || list[0].Key == "" || list[1].Key != "" {
		t.Errorf("%+v", list)
	}
	names := shownNames(t, before)
	if len(names) != 2 || slices.Contains(names, "upload-*") {
		t.Errorf("%q", names)
	}
}

// A killed run leaves no full names behind. Before a report compares full names
// with hidden names, it hides the full names.
func TestThreadNamesResumed(t *testing.T) {
	dir := t.TempDir()
	r := New(dir, Options{})
	before := analyzed(t, r, Snapshot, nil, named(append(numbered("upload-%d", 6), "alice@example")...))
	c := given(t, r, "thread", nil, named(append(numbered("upload-%d", 26), "alice@example")...))
	c.Record.T = before.Record.T + 60
	if err := c.write(); err != nil {
		t.Fatal(err)
	}
	untold := filepath.Join(dir, "artifacts", "com.shop", "untold")
	if err := os.MkdirAll(untold, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(untold, threadsFile), named("alice@example")[threadsFile], 0o600); err != nil {
		t.Fatal(err)
	}
	list := []record.Diagnosis{before.Record, c.Record}
	if warnings, err := Resume(t.Context(), dir, Options{}, list); err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	threads := found(&Case{Record: list[1]}, "threads")
	i := slices.IndexFunc(threads, func(f record.Finding) bool { return f.Name == "upload-*" })
	if i < 0 || *threads[i].CountDelta != 20 {
		t.Errorf("%+v", threads)
	}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "alice") {
			t.Errorf("%s has\n%s", path, text)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// If the names cannot be hidden, the file is removed.
func TestThreadNamesThatCannotBeHidden(t *testing.T) {
	c := given(t, New(t.TempDir(), Options{}), "thread", nil, named("alice@example"))
	outside := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(outside, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(c.folder.in(threadsFile)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, c.folder.in(threadsFile)); err != nil {
		t.Fatal(err)
	}
	if err := New(t.TempDir(), Options{}).Analyze(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(c.folder.in(threadsFile)); !os.IsNotExist(err) || c.Record.Steps[0].File != "" {
		t.Errorf("%v, %+v", err, c.Record.Steps[0])
	}
	says(t, c.Record.Warnings, "hide names in threads.txt: ")
	if text, err := os.ReadFile(outside); err != nil || string(text) != "mine" {
		t.Errorf("%q %v", text, err)
	}
}
