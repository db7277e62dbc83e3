package main

import (
	"os"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/recorded"
)

// The file of accepted leaks may be a symbolic link. The error for an empty
// file shows what to write.
func TestAcceptFiles(t *testing.T) {
	inFolder(t)
	for name, content := range map[string]string{
		"shared.yaml": "version: 1\naccepted: []\n", "header.yaml": "# reviewed by QA\n",
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("shared.yaml", "link.yaml"); err != nil {
		recorded.Missing(t, "symbolic links: %v", err)
	}
	accept := func(file string) (int, string) {
		code, _, errOut := typed(t,
			nil, "accept", "d97295ca", "--reason", "r", "--owner", "o", "--until", "2999-01-01",
			"--accepted", file)
		return code, errOut
	}
	if code, errOut := accept("link.yaml"); code != 0 {
		t.Errorf("exit %d\n%s", code, errOut)
	}
	if raw, err := os.ReadFile("shared.yaml"); err != nil || !strings.Contains(string(raw), "d97295ca") {
		t.Errorf("the target of the link does not contain the accepted leak: %v\n%s", err, raw)
	}
	if code, errOut := accept("header.yaml"); code != 2 || strings.Contains(errOut, "workload") ||
		!strings.Contains(errOut, "accepted: []") {
		t.Errorf("exit %d\n%s", code, errOut)
	}
}
