package meminfo

import (
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/androidtext"
)

// TestHeapCells checks that the process's own figure for its Java heap takes
// precedence over the resident memory.
func TestHeapCells(t *testing.T) {
	l := new(Layout)
	l.Rows[androidtext.DalvikHeap] = androidtext.Memory{Size: 1000, Rss: 700, Pss: 700, PrivateDirty: 700}
	l.Rows[androidtext.NativeHeap] = androidtext.Memory{Size: 500, Rss: 300, Pss: 300, PrivateDirty: 300}
	for _, c := range []struct {
		used        int64
		heap, total string
	}{
		{0, "1000 700 300", "1500 1000 500"},
		{400, "1000 400 600", "1500 700 800"},
		{5000, "1000 1000 0", "1500 1300 200"}, // written a moment later
	} {
		text := l.Meminfo(34, 1, "a", c.used).Text(androidtext.MeminfoOptions{})
		for line := range strings.Lines(text) {
			f := strings.Fields(line)
			if len(f) < 8 {
				continue
			}
			last := strings.Join(f[len(f)-3:], " ")
			if f[0] == "Dalvik" && last != c.heap || f[0] == "TOTAL" && len(f) == 9 && f[1] != "PSS:" &&
				last != c.total {
				t.Errorf("%d in use: %s", c.used, line)
			}
		}
		if !strings.Contains(text, "Dalvik Heap ") {
			t.Errorf("the Dalvik Heap row is missing:\n%s", text)
		}
	}
}
