package meminfo

import (
	"bufio"
	"fmt"
	"io"
)

// The header of showmap in Android 14 (system/memory libsmapinfo, smapinfo.cpp).
const showmapHeader = ` virtual                     shared   shared  private  private                   Anon      Shmem     File      Shared   Private
    size      RSS      PSS    clean    dirty    clean    dirty     swap  swapPSS HugePages PmdMapped PmdMapped Hugetlb  Hugetlb    Locked    # object
-------- -------- -------- -------- -------- -------- -------- -------- -------- --------- --------- --------- -------- -------- -------- ---- ------------------------------
`

// WriteShowmap prints the layout as `showmap PID` does. Huge and locked pages
// are not told apart and print as 0.
func WriteShowmap(w io.Writer, l *Layout) error {
	out := bufio.NewWriter(w)
	out.WriteString(showmapHeader)
	for _, o := range l.Objects {
		writeObject(out, o.Name, o.Memory)
	}
	out.WriteString(showmapHeader)
	writeObject(out, "TOTAL", l.Total())
	return out.Flush()
}

func writeObject(w io.Writer, name string, m Memory) {
	fmt.Fprintf(w, "%8d %8d %8d %8d %8d %8d %8d %8d %8d %9d %9d %9d %8d %8d %8d %4d %s\n",
		m.Size, m.Rss, m.Pss, m.SharedClean, m.SharedDirty, m.PrivateClean, m.PrivateDirty, m.Swap, m.SwapPss,
		0, 0, 0, 0, 0, 0, m.Count, name)
}
