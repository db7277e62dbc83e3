package hostmemory

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// group creates a control group; most is the content of memory.max.
func group(t *testing.T, root, name, most string, current, inactive, active int) {
	t.Helper()
	dir := filepath.Join(root, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"memory.max": most + "\n", "memory.current": fmt.Sprintln(current),
		"memory.stat": fmt.Sprintf("anon 5\nfile 999\ninactive_file %d\nactive_file %d\nfile_mapped 7\n", inactive,
			active),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestGroupMemory(t *testing.T) {
	root := t.TempDir()
	group(t, root, "", "max", 1, 0, 0)
	group(t, root, "box", "5000", 4900, 3000, 600)
	group(t, root, "box/job", "max", 4000, 0, 0)
	group(t, root, "box/small", "1000", 400, 0, 100)
	group(t, root, "box/full", "1000", 1000, 0, 0)
	group(t, root, "box/odd", "1000", 10, 500, 0)
	for own, want := range map[string]int64{
		"0::/box/job\n":                  3700,
		"12:cpu:/x\n0::/box/small\n":     700,
		"0::/box/full\n":                 1,
		"0::/box/odd\n":                  1000,
		"0::/box/job\n1:memory:/other\n": 3700,
		"0::/../box/job\n":               3700,
		"0::/gone/away\n":                0,
		"0::/\n":                         0,
		"4:memory:/box/job\n":            0,
		"":                               0,
	} {
		if got, ok := groupMemory(root, own); got != want || ok != (want > 0) {
			t.Errorf("%q: %d, %t, want %d", own, got, ok, want)
		}
	}
}

func TestMemoryOfThisMachine(t *testing.T) {
	if free, peak := Free(), Peak(); free < 1<<20 || peak < 1<<20 {
		t.Errorf("%d free, %d at most", free, peak)
	}
}
