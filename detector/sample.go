package detector

import (
	"time"

	"github.com/leakgate/leakgate/internal/known"
)

// Sample is one reading of the fast channel.
type Sample struct {
	// At is the time since boot on the device's own clock (/proc/uptime), so
	// that host suspends, adb delays and clock steps cannot distort a slope.
	At time.Duration
	// Bytes is Pss + SwapPss, or RssAnon + VmSwap where the device reports
	// nothing better. One series never mixes these two quantities.
	Bytes int64
}

// Amount is a number of bytes that may be unknown: Amount{N: 4096, Known: true}
// is known. The zero Amount is unknown, which is not the same as zero bytes.
type Amount = known.Int

// Dimension is one line of the App Summary of dumpsys meminfo.
type Dimension uint8

// The eight dimensions, in the order of the App Summary
// (android.os.Debug.MemoryInfo.getSummary*).
const (
	JavaHeap Dimension = iota
	NativeHeap
	Code
	Stack
	Graphics
	PrivateOther
	System
	Total
	NumDimensions
)

var dimensionNames = [NumDimensions]string{
	"Java Heap", "Native Heap", "Code", "Stack", "Graphics", "Private Other", "System", "Total",
}

// String returns the name that the App Summary uses.
func (d Dimension) String() string {
	if d < NumDimensions {
		return dimensionNames[d]
	}
	return "unknown"
}

// Breakdown is one reading of dumpsys meminfo: the memory of a process by
// dimension.
type Breakdown struct {
	// At is the time since boot on the device's clock when the reading ended.
	At time.Duration
	// Dim holds the eight dimensions; Total is TOTAL PSS as printed.
	Dim [NumDimensions]Amount
	// EGL, GL and OtherMtrack are graphics and other driver memory outside
	// smaps; GfxDev is graphics memory inside smaps.
	EGL, GL, OtherMtrack, GfxDev Amount
}

// Mapped returns the part of the total that is also in smaps, in bytes: TOTAL
// PSS minus EGL mtrack, GL mtrack and Other mtrack. It is the only figure of a
// breakdown that may be compared with Pss + SwapPss of the fast channel (AOSP
// core/jni/android_os_Debug.cpp, read_memtrack_memory).
func (b Breakdown) Mapped() Amount {
	if !b.Dim[Total].Known {
		return Amount{}
	}
	return known.Of(b.Dim[Total].N - b.driver())
}

// driver returns the driver memory outside smaps, in bytes: the sum of the
// known values of EGL, GL and Other mtrack.
func (b Breakdown) driver() int64 { return b.EGL.N + b.GL.N + b.OtherMtrack.N }
