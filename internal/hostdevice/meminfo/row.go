package meminfo

import (
	"bytes"

	"github.com/leakgate/leakgate/internal/androidtext"
	"github.com/leakgate/leakgate/internal/capture/procfs"
)

// memoryOf converts a mapping. Fields that the kernel did not print are 0, as
// on Android.
func memoryOf(m *procfs.Mapping) androidtext.Memory {
	return androidtext.Memory{
		Size: int64(m.End-m.Start) >> 10, Rss: m.Rss.N, Pss: m.Pss.N,
		SharedClean: m.SharedClean.N, SharedDirty: m.SharedDirty.N,
		PrivateClean: m.PrivateClean.N, PrivateDirty: m.PrivateDirty.N,
		Swap: m.Swap.N, SwapPss: m.SwapPss.N,
	}
}

// fileRow returns the row of a named mapping; like Android, it checks the end
// of the name (core/jni/android_os_Debug.cpp, load_maps). The class archive of
// a Java virtual machine, which corresponds to compiled code, counts as .oat.
func fileRow(name []byte) androidtext.Row {
	name = bytes.TrimSuffix(name, []byte(" (deleted)"))
	base := name[bytes.LastIndexByte(name, '/')+1:]
	has := func(end string) bool { return bytes.HasSuffix(name, []byte(end)) }
	switch {
	case bytes.HasPrefix(name, []byte("/dev/ashmem")), bytes.HasPrefix(name, []byte("/memfd:")),
		bytes.HasPrefix(name, []byte("[anon_shmem:")):
		return androidtext.Ashmem
	case bytes.HasPrefix(name, []byte("/dev/")):
		return androidtext.OtherDev
	case has(".so"), bytes.Contains(base, []byte(".so.")), bytes.HasPrefix(base, []byte("ld-linux")),
		string(base) == "java":
		return androidtext.SoMmap
	case has(".jar"), has("/lib/modules"):
		return androidtext.JarMmap
	case has(".apk"):
		return androidtext.ApkMmap
	case has(".oat"), has(".odex"), has(".jsa"):
		return androidtext.OatMmap
	}
	return androidtext.OtherMmap
}
