package hostfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestPaths(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the test cases have Unix paths")
	}
	t.Setenv("HOME", "/home/alice")
	t.Setenv("TMPDIR", "/var/tmp/ci-17")
	p := NewPaths("/home/alice/runs/r1")
	for text, want := range map[string]string{
		"mkdir /home/alice/runs/r1/artifacts: no space":                   "mkdir artifacts: no space",
		"stat /home/alice/runs/r1: no such file or directory":             "stat .: no such file or directory",
		"stat /home/alice/runs/r12: no such file or directory":            "stat r12: no such file or directory",
		`read "/home/alice/secret/mapping.txt", /var/tmp/ci-17/x1: gone.`: `read "mapping.txt", x1: gone.`,
		"in /home/alice: it is full":                                      "in alice: it is full",
		"/data/home/alice/x and /data/local/tmp/heap.hprof on the phone": "/data/home/alice/x and " +
			"/data/local/tmp/heap.hprof on the phone",
		"/home/alicebob/x":            "/home/alicebob/x",
		"file:///home/alice/a/b.yaml": "file://b.yaml",
	} {
		if got := p.Text(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	for want, err := range map[string]error{
		"run workload: fork/exec run.sh: no such file": fmt.Errorf("run workload: %w",
			&fs.PathError{Op: "fork/exec", Path: "/opt/ci/secret/run.sh", Err: errors.New("no such file")}),
		"rename a b: denied": &os.LinkError{
			Op: "rename", Old: "/mnt/x/a", New: "/mnt/y/b", Err: errors.New("denied"),
		},
		`exec: "tool": not found`: &exec.Error{Name: "/mnt/tool", Err: errors.New("not found")},
		"open first.txt: gone\nopen artifacts/two: gone": errors.Join(
			&fs.PathError{Op: "open", Path: "/srv/first.txt", Err: errors.New("gone")},
			&fs.PathError{Op: "open", Path: "/home/alice/runs/r1/artifacts/two", Err: errors.New("gone")}),
	} {
		if got := p.Error(err); got != want {
			t.Errorf("%q is %q, want %q", err, got, want)
		}
	}
}

func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: %v", err)
	}
	path := filepath.Join(dir, "a")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := Read(path, 5); err != nil || string(b) != "12345" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := Read(path, 4); err == nil || !strings.Contains(err.Error(), "larger than 4 bytes") {
		t.Errorf("limit below the size: %v", err)
	}
}
