package meminfo

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"
)

// Report is one output of `dumpsys meminfo` for one process.
type Report struct {
	PID    int
	Name   string
	Up     time.Duration
	Layout *Layout
	// JavaUsed is what the objects of the Java heap take, garbage included, in kB; 0 where
	// the process does not tell: then all of the heap that is real memory counts as used.
	JavaUsed int64
	// Header is false for --local, which prints no head.
	Header bool
	// Summary (-s) leaves out everything but the App Summary; Details (-d) adds
	// the Dalvik Details; Full (-a) prints all columns and implies Details.
	Summary, Details, Full bool
}

// WriteTo prints the report as Android 14 does
// (ActivityThread.dumpMemInfoTable and ActivityManagerService.dumpApplicationMemoryUsage).
func (r Report) WriteTo(w io.Writer) (int64, error) {
	out := &counter{w: bufio.NewWriter(w)}
	if r.Header {
		fmt.Fprintf(out, "Applications Memory Usage (in Kilobytes):\nUptime: %d Realtime: %d\n", r.Up.Milliseconds(), r.Up.Milliseconds())
	}
	fmt.Fprintf(out, "\n** MEMINFO in pid %d [%s] **\n", r.PID, r.Name)
	if !r.Summary {
		r.table(out)
		if r.Details || r.Full {
			r.details(out)
		}
		fmt.Fprintln(out, " ")
	}
	r.summary(out)
	if !r.Summary {
		io.WriteString(out, objects)
	}
	return out.n, out.w.Flush()
}

type counter struct {
	w *bufio.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// objects are the counts of the framework's objects: a process that is no
// Android app has none.
const objects = ` 
 Objects
               Views:        0         ViewRootImpl:        0
         AppContexts:        0           Activities:        0
              Assets:        0        AssetManagers:        0
       Local Binders:        0        Proxy Binders:        0
       Parcel memory:        0         Parcel count:        0
    Death Recipients:        0             WebViews:        0
 
 SQL
         MEMORY_USED:        0
  PAGECACHE_OVERFLOW:        0          MALLOC_SIZE:        0
 
`

// swapWord is chosen when the report is made, by whether the kernel told any
// SwapPss (Debug.MemoryInfo.hasSwappedOutPss); only then the total has it.
func (r Report) swapWord() (word string, swapped bool) {
	if r.Layout.Total().SwapPss > 0 {
		return "SwapPss", true
	}
	return "Swap", false
}

func (r Report) swapOf(m Memory) int64 {
	if _, swapped := r.swapWord(); swapped {
		return m.SwapPss
	}
	return m.Swap
}

// totalPss is TOTAL PSS: with the SwapPss where the header says so.
func (r Report) totalPss() int64 {
	t := r.Layout.Total()
	if _, swapped := r.swapWord(); swapped {
		return t.Pss + t.SwapPss
	}
	return t.Pss
}

func (r Report) table(w io.Writer) {
	swap, _ := r.swapWord()
	line := func(label string, cells ...any) {
		fmt.Fprintf(w, "%13s"+strings.Repeat(" %8v", len(cells))+"\n", append([]any{label}, cells...)...)
	}
	if r.Full {
		line("", "Pss", "Pss", "Shared", "Private", "Shared", "Private", swap, "Rss", "Heap", "Heap", "Heap")
		line("", "Total", "Clean", "Dirty", "Dirty", "Clean", "Clean", "Dirty", "Total", "Size", "Alloc", "Free")
		line("", "------", "------", "------", "------", "------", "------", "------", "------", "------", "------", "------")
	} else {
		line("", "Pss", "Private", "Private", swap, "Rss", "Heap", "Heap", "Heap")
		line("", "Total", "Dirty", "Clean", "Dirty", "Total", "Size", "Alloc", "Free")
		line("", "------", "------", "------", "------", "------", "------", "------", "------")
	}
	for row, m := range r.Layout.Rows {
		switch row := Row(row); {
		case row == NativeHeap || row == DalvikHeap:
			line(row.String(), append(r.cells(m), r.heapCells(row)...)...)
		case m.Pss != 0 || m.Rss != 0 || r.swapOf(m) != 0:
			line(row.String(), append(r.cells(m), "", "", "")...)
		}
	}
	total := r.Layout.Total()
	cells := r.cells(total)
	cells[0] = r.totalPss()
	line("TOTAL", append(cells, r.heapCells(NativeHeap, DalvikHeap)...)...)
}

// cells are the columns of the kernel's numbers. Android counts as Pss Clean
// what of the Pss is neither private nor shared dirty; it is estimated here
// from the private part alone.
func (r Report) cells(m Memory) []any {
	if r.Full {
		clean := min(m.Pss, m.PrivateClean)
		return []any{m.Pss, clean, m.SharedDirty, m.PrivateDirty, m.SharedClean, m.PrivateClean, r.swapOf(m), m.Rss}
	}
	return []any{m.Pss, m.PrivateDirty, m.PrivateClean, r.swapOf(m), m.Rss}
}

// heapCells stand for what allocators would tell from inside: how much they
// have mapped, have in use and have free.
func (r Report) heapCells(rows ...Row) []any {
	var size, used int64
	for _, row := range rows {
		m := r.Layout.Rows[row]
		size += m.Size
		if row == DalvikHeap && r.JavaUsed > 0 {
			used += min(r.JavaUsed, m.Size)
			continue
		}
		used += m.Rss
	}
	return []any{size, used, size - used}
}

func (r Report) details(w io.Writer) {
	fmt.Fprint(w, " \n Dalvik Details\n")
	for _, d := range []struct {
		label string
		m     Memory
	}{{".Heap", r.Layout.Rows[DalvikHeap]}, {".AppJIT", r.Layout.JIT}} {
		if d.m.Rss == 0 {
			continue
		}
		cells := append([]any{d.label}, append(r.cells(d.m), "", "", "")...)
		fmt.Fprintf(w, "%13s"+strings.Repeat(" %8v", len(cells)-1)+"\n", cells...)
	}
}

// summary prints the App Summary (Debug.MemoryInfo.getSummary*).
func (r Report) summary(w io.Writer) {
	s := r.Layout.Summary()
	fmt.Fprintf(w, " App Summary\n%21s %8s%22s %8s\n%21s %8s%22s %8s\n", "", "Pss(KB)", "", "Rss(KB)", "", "------", "", "------")
	line := func(label string, pss, rss any) { fmt.Fprintf(w, "%21s %8v%22s %8v\n", label, pss, "", rss) }
	line("Java Heap:", s.JavaHeap, s.JavaHeapRss)
	line("Native Heap:", s.NativeHeap, s.NativeHeapRss)
	line("Code:", s.Code, s.CodeRss)
	line("Stack:", s.Stack, s.StackRss)
	line("Graphics:", 0, 0)
	fmt.Fprintf(w, "%21s %8d\n", "Private Other:", s.PrivateOther)
	fmt.Fprintf(w, "%21s %8d\n", "System:", r.totalPss()-r.Layout.Total().Private())
	line("Unknown:", "", s.UnknownRss)
	label := "TOTAL SWAP (KB):"
	if _, swapped := r.swapWord(); swapped {
		label = "TOTAL SWAP PSS:"
	}
	total := r.Layout.Total()
	fmt.Fprintf(w, " \n%21s %8d%22s %8d%22s %8d\n", "TOTAL PSS:", r.totalPss(), "TOTAL RSS:", total.Rss, label, r.swapOf(total))
}

// Summary is the App Summary, in kB, without the two lines that need the total.
type Summary struct {
	JavaHeap, JavaHeapRss     int64
	NativeHeap, NativeHeapRss int64
	Code, CodeRss             int64
	Stack, StackRss           int64
	PrivateOther, UnknownRss  int64
}

// Summary sums the rows as Debug.MemoryInfo.getSummary* do. There is no .art
// mapping here, and the code that was compiled at run time counts as Code, as
// since Android 10.
func (l *Layout) Summary() Summary {
	r := &l.Rows
	s := Summary{
		JavaHeap: r[DalvikHeap].PrivateDirty, JavaHeapRss: r[DalvikHeap].Rss,
		NativeHeap: r[NativeHeap].PrivateDirty, NativeHeapRss: r[NativeHeap].Rss,
		Code: l.JIT.Private(), CodeRss: l.JIT.Rss,
		Stack: r[Stack].PrivateDirty, StackRss: r[Stack].Rss,
	}
	for _, row := range []Row{SoMmap, JarMmap, ApkMmap, OatMmap} {
		s.Code += r[row].Private()
		s.CodeRss += r[row].Rss
	}
	total := l.Total()
	s.PrivateOther = total.Private() - s.JavaHeap - s.NativeHeap - s.Code - s.Stack
	s.UnknownRss = total.Rss - s.JavaHeapRss - s.NativeHeapRss - s.CodeRss - s.StackRss
	return s
}
