package androidtext

// Memory is the memory of one or more mappings, in kB.
type Memory struct {
	// Size is address space; the other fields are memory in use.
	Size, Rss, Pss             int64
	SharedClean, SharedDirty   int64
	PrivateClean, PrivateDirty int64
	// Swap is the swapped-out memory; SwapPss is the process's share of that
	// memory.
	Swap, SwapPss int64
}

// Private returns the memory that would be freed if the process ended.
func (m Memory) Private() int64 { return m.PrivateClean + m.PrivateDirty }

// Plus returns the sum of m and o.
func (m Memory) Plus(o Memory) Memory {
	return Memory{
		m.Size + o.Size, m.Rss + o.Rss, m.Pss + o.Pss, m.SharedClean + o.SharedClean, m.SharedDirty + o.SharedDirty,
		m.PrivateClean + o.PrivateClean, m.PrivateDirty + o.PrivateDirty, m.Swap + o.Swap, m.SwapPss + o.SwapPss,
	}
}

// Row is a row of the table of `dumpsys meminfo`.
type Row uint8

// The rows in the order of the table
// (android.os.Debug.MemoryInfo.getOtherLabel).
const (
	NativeHeap Row = iota
	DalvikHeap
	DalvikOther
	Stack
	Ashmem
	GfxDev
	OtherDev
	SoMmap
	JarMmap
	ApkMmap
	TtfMmap
	DexMmap
	OatMmap
	ArtMmap
	OtherMmap
	EGLMtrack
	GLMtrack
	Unknown
	NumRows
)

var rowNames = [NumRows]string{
	"Native Heap", "Dalvik Heap", "Dalvik Other", "Stack", "Ashmem", "Gfx dev", "Other dev", ".so mmap", ".jar mmap",
	".apk mmap", ".ttf mmap", ".dex mmap", ".oat mmap", ".art mmap", "Other mmap", "EGL mtrack", "GL mtrack", "Unknown",
}

// String returns the label that Android has printed since 5.0.
func (r Row) String() string { return rowNames[r] }

// Rows holds the memory of a process by row.
type Rows [NumRows]Memory

// Sum adds up the given rows, or all rows if none are given.
func (r *Rows) Sum(rows ...Row) Memory {
	var sum Memory
	if len(rows) == 0 {
		for _, m := range r {
			sum = sum.Plus(m)
		}
		return sum
	}
	for _, row := range rows {
		sum = sum.Plus(r[row])
	}
	return sum
}

// Summary is the App Summary, in kB.
type Summary struct {
	JavaHeap, NativeHeap, Code, Stack, Graphics, PrivateOther, System int64
	// Total is the value of TOTAL PSS.
	Total int64

	JavaHeapRss, NativeHeapRss, CodeRss, StackRss, GraphicsRss, UnknownRss, TotalRss int64
}

// Summarize returns the App Summary (android.os.Debug.MemoryInfo.getSummary*).
// jit is the part of Dalvik Other that is code; Android 10 and later count it
// as Code. swapInTotal means that the total includes SwapPss.
func (r *Rows) Summarize(jit Memory, swapInTotal bool) Summary {
	java, graphics := r.Sum(ArtMmap), r.Sum(GfxDev, EGLMtrack, GLMtrack)
	code := r.Sum(SoMmap, JarMmap, ApkMmap, TtfMmap, DexMmap, OatMmap).Plus(jit)
	all := r.Sum()
	s := Summary{
		JavaHeap: java.Private() + r[DalvikHeap].PrivateDirty, JavaHeapRss: java.Rss + r[DalvikHeap].Rss,
		NativeHeap: r[NativeHeap].PrivateDirty, NativeHeapRss: r[NativeHeap].Rss,
		Code: code.Private(), CodeRss: code.Rss,
		Stack: r[Stack].PrivateDirty, StackRss: r[Stack].Rss,
		Graphics: graphics.Private(), GraphicsRss: graphics.Rss,
		Total: all.Pss, TotalRss: all.Rss,
	}
	if swapInTotal {
		s.Total += all.SwapPss
	}
	s.System = s.Total - all.Private()
	s.PrivateOther = all.Private() - s.JavaHeap - s.NativeHeap - s.Code - s.Stack - s.Graphics
	s.UnknownRss = all.Rss - s.JavaHeapRss - s.NativeHeapRss - s.CodeRss - s.StackRss - s.GraphicsRss
	return s
}
