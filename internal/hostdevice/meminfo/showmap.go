package meminfo

import (
	"bufio"
	"fmt"
	"io"
	"sort"
	"strings"
)

// Showmap is one output of showmap. Verbose (-v) and Addresses (-a) print every
// mapping by itself, by name and by address, instead of the sums by name.
type Showmap struct {
	Layout             *Layout
	Verbose, Addresses bool
}

// WriteTo prints it as Android 14 does (system/memory libsmapinfo, smapinfo.cpp).
// Huge and locked pages are not told apart and print as 0.
func (s Showmap) WriteTo(w io.Writer) (int64, error) {
	out := &counter{w: bufio.NewWriter(w)}
	head := s.header()
	io.WriteString(out, head)
	for _, m := range s.rows() {
		if s.Addresses {
			fmt.Fprintf(out, "%16x %16x ", m.Start, m.End)
		}
		s.cells(out, m.Memory)
		if s.Verbose {
			fmt.Fprintf(out, "%5s ", m.Perms[:3])
		}
		fmt.Fprintln(out, m.Name)
	}
	io.WriteString(out, head)
	if s.Addresses {
		fmt.Fprintf(out, "%34s", "")
	}
	s.cells(out, s.Layout.Total())
	if s.Verbose {
		fmt.Fprintf(out, "%6s", "")
	}
	fmt.Fprintln(out, "TOTAL")
	return out.n, out.w.Flush()
}

// single tells that every mapping has a line, which then is not counted.
func (s Showmap) single() bool { return s.Verbose || s.Addresses }

func (s Showmap) rows() []Area {
	if !s.single() {
		rows := make([]Area, len(s.Layout.Objects))
		for i, o := range s.Layout.Objects {
			rows[i] = Area{Object: o}
		}
		return rows
	}
	if s.Addresses {
		return s.Layout.Areas
	}
	rows := append([]Area(nil), s.Layout.Areas...)
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].Name < rows[j].Name })
	return rows
}

func (s Showmap) header() string {
	var upper, lower, line strings.Builder
	add := func(a, b, dashes string) {
		upper.WriteString(a)
		lower.WriteString(b)
		line.WriteString(dashes)
	}
	if s.Addresses {
		add("           start              end ", "            addr             addr ", "---------------- ---------------- ")
	}
	add(" virtual                     shared   shared  private  private                   Anon      Shmem     File      Shared   Private",
		"    size      RSS      PSS    clean    dirty    clean    dirty     swap  swapPSS HugePages PmdMapped PmdMapped Hugetlb  Hugetlb    Locked ",
		"-------- -------- -------- -------- -------- -------- -------- -------- -------- --------- --------- --------- -------- -------- -------- ")
	if !s.single() {
		add("", "   # ", "---- ")
	}
	if s.Verbose {
		add("", "flags ", "----- ")
	}
	add("\n", "object\n", "------------------------------\n")
	return upper.String() + lower.String() + line.String()
}

func (s Showmap) cells(w io.Writer, m Memory) {
	fmt.Fprintf(w, "%8d %8d %8d %8d %8d %8d %8d %8d %8d %9d %9d %9d %8d %8d %8d ",
		m.Size, m.Rss, m.Pss, m.SharedClean, m.SharedDirty, m.PrivateClean, m.PrivateDirty, m.Swap, m.SwapPss, 0, 0, 0, 0, 0, 0)
	if !s.single() {
		fmt.Fprintf(w, "%4d ", m.Count)
	}
}
