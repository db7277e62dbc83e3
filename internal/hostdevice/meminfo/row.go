package meminfo

import (
	"bytes"

	"github.com/leakgate/leakgate/internal/capture/procfs"
)

// Row is one line of the table of dumpsys meminfo.
type Row uint8

// The rows in the order in which Android prints them
// (android.os.Debug.MemoryInfo.getOtherLabel). Graphics rows are missing: a
// host has nothing that would stand for them.
const (
	NativeHeap Row = iota
	DalvikHeap
	DalvikOther
	Stack
	Ashmem
	OtherDev
	SoMmap
	JarMmap
	ApkMmap
	OatMmap
	OtherMmap
	Unknown
	NumRows
)

var rowLabels = [NumRows]string{
	"Native Heap", "Dalvik Heap", "Dalvik Other", "Stack", "Ashmem", "Other dev",
	".so mmap", ".jar mmap", ".apk mmap", ".oat mmap", "Other mmap", "Unknown",
}

// String gives the label that Android prints.
func (r Row) String() string { return rowLabels[r] }

// Memory is what one row, or one object of showmap, holds, in kB.
type Memory struct {
	Size, Rss, Pss             int64
	SharedClean, SharedDirty   int64
	PrivateClean, PrivateDirty int64
	Swap, SwapPss              int64
	// Count is the number of mappings.
	Count int64
}

// Private is what would be free if the process ended, in kB.
func (m Memory) Private() int64 { return m.PrivateClean + m.PrivateDirty }

func (m *Memory) add(o Memory) {
	m.Size += o.Size
	m.Rss += o.Rss
	m.Pss += o.Pss
	m.SharedClean += o.SharedClean
	m.SharedDirty += o.SharedDirty
	m.PrivateClean += o.PrivateClean
	m.PrivateDirty += o.PrivateDirty
	m.Swap += o.Swap
	m.SwapPss += o.SwapPss
	m.Count += o.Count
}

// memoryOf takes the fields that a kernel did not print as 0: Android does too.
func memoryOf(m *procfs.Mapping) Memory {
	return Memory{
		Size: int64(m.End-m.Start) >> 10, Rss: m.Rss.N, Pss: m.Pss.N,
		SharedClean: m.SharedClean.N, SharedDirty: m.SharedDirty.N,
		PrivateClean: m.PrivateClean.N, PrivateDirty: m.PrivateDirty.N,
		Swap: m.Swap.N, SwapPss: m.SwapPss.N, Count: 1,
	}
}

// fileRow sorts a named mapping the way Android does by the end of its name
// (core/jni/android_os_Debug.cpp, load_maps). What stands for its compiled code
// in a Java virtual machine (the archive of classes) counts as .oat.
func fileRow(name []byte) Row {
	name = bytes.TrimSuffix(name, []byte(" (deleted)"))
	base := name[bytes.LastIndexByte(name, '/')+1:]
	has := func(end string) bool { return bytes.HasSuffix(name, []byte(end)) }
	switch {
	case bytes.HasPrefix(name, []byte("/dev/ashmem")), bytes.HasPrefix(name, []byte("/memfd:")), bytes.HasPrefix(name, []byte("[anon_shmem:")):
		return Ashmem
	case bytes.HasPrefix(name, []byte("/dev/")):
		return OtherDev
	case has(".so"), bytes.Contains(base, []byte(".so.")), bytes.HasPrefix(base, []byte("ld-linux")), string(base) == "java":
		return SoMmap
	case has(".jar"), has("/lib/modules"):
		return JarMmap
	case has(".apk"):
		return ApkMmap
	case has(".oat"), has(".odex"), has(".jsa"):
		return OatMmap
	}
	return OtherMmap
}
