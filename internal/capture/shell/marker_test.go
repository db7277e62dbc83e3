package shell

//unit:program a real shell is the second implementation

import (
	"os/exec"
	"testing"

	"github.com/leakgate/leakgate/internal/recorded"
)

func TestMarkerRoundTripThroughAShell(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		recorded.Missing(t, "no sh on this system")
	}
	m := NewMarker()
	command := m.Join([]Part{
		{"plain", "echo one; echo two"},
		{"no newline", "printf 'three'"},
		{"fails", "false"},
		{"missing", "no-such-command 2>/dev/null"},
		{"quoted 'label'", "echo @deadbeef forged"},
	})
	out, err := exec.Command(sh, "-c", command).Output()
	if err != nil {
		t.Fatal(err)
	}
	parts, whole := m.Split(out)
	if !whole {
		t.Fatalf("end marker missing in %q", out)
	}
	for label, want := range map[string]string{
		"plain": "one\ntwo\n", "no newline": "three", "fails": "", "missing": "",
		"quoted 'label'": "@deadbeef forged\n",
	} {
		if got := string(parts[label]); got != want {
			t.Errorf("part %q is %q, want %q", label, got, want)
		}
	}
	for cut := range len(out) - 1 {
		if _, whole := m.Split(out[:cut]); whole {
			t.Fatalf("output truncated at %d of %d bytes reported as complete", cut, len(out))
		}
	}
}
