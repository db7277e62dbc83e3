package androidsim

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/leakgate/leakgate/internal/androidtext"
)

// maxTasks is the maximum number of tasks on the phone; each UID may have half
// as many (kernel/fork.c, fork_init).
const maxTasks = 43100

// fileLimit returns the soft and the hard limit on open files: until Android
// 8.1, the kernel's default; since then, the value set by init (system/core
// rootdir/init.rc).
func fileLimit(api int) (soft, hard int) {
	if api < 28 {
		return 1024, 4096
	}
	return maxFDs, maxFDs
}

// limitsText returns /proc/PID/limits (fs/proc/base.c, proc_pid_limits).
func (v view) limitsText(api int) string {
	var b strings.Builder
	row := func(name, soft, hard, unit string) {
		fmt.Fprintf(&b, "%-25s %-20s %-20s %-10s\n", name, soft, hard, unit)
	}
	count := func(name string, soft, hard int, unit string) {
		row(name, fmt.Sprint(soft), fmt.Sprint(hard), unit)
	}
	const any = "unlimited"
	soft, hard := fileLimit(api)
	row("Limit", "Soft Limit", "Hard Limit", "Units")
	row("Max cpu time", any, any, "seconds")
	row("Max file size", any, any, "bytes")
	row("Max data size", any, any, "bytes")
	row("Max stack size", "8388608", any, "bytes")
	row("Max core file size", "0", any, "bytes")
	row("Max resident set", any, any, "bytes")
	count("Max processes", maxTasks/2, maxTasks/2, "processes")
	count("Max open files", soft, hard, "files")
	count("Max locked memory", 67108864, 67108864, "bytes")
	row("Max address space", any, any, "bytes")
	row("Max file locks", any, any, "locks")
	count("Max pending signals", maxTasks/2, maxTasks/2, "signals")
	count("Max msgqueue size", 819200, 819200, "bytes")
	// These limits have no unit, and no padding instead of the unit.
	fmt.Fprintf(&b, "%-25s %-20d %-20d \n%-25s %-20d %-20d \n", "Max nice priority", 40, 40, "Max realtime priority", 0,
		0)
	row("Max realtime timeout", any, any, "us")
	return b.String()
}

// fdSize returns the size of the table of open files, which every UID may read
// (fs/file.c, alloc_fdtable).
func fdSize(files int) int {
	const atFirst, step = 64, 128
	if files <= atFirst {
		return atFirst
	}
	return step << bits.Len(uint(files/step))
}

// fdTarget returns the target of a file descriptor. Leaked descriptors come
// last.
func (v view) fdTarget(fd int) string {
	base := defaultFiles
	if v.spec != nil && v.spec.Files != 0 {
		base = v.spec.Files
	}
	inode := hashText(v.name, "fd")%90000 + 10000 + uint64(fd)
	switch {
	case fd < 3 || v.spec == nil:
		return "/dev/null"
	case fd >= base:
		return fmt.Sprintf("/data/data/%s/cache/page-%d.tmp", v.pkg(), fd-base)
	case fd%4 == 0:
		return "anon_inode:[eventpoll]"
	case fd%4 == 1:
		return "anon_inode:[eventfd]"
	case fd%4 == 2:
		return fmt.Sprintf("socket:[%d]", inode)
	}
	return "/system/framework/framework-res.apk"
}

// countsFDs reports whether the size of /proc/PID/fd is the number of open
// files, as it has been since Linux 6.2 (fs/proc/fd.c, proc_fd_getattr).
func countsFDs(api int) bool { return api >= 36 }

// addressBase returns the address space of a process before it allocates
// anything, in kB. Since Android 11, Scudo reserves most of this address space.
func addressBase(api int, bits32 bool) int64 {
	switch {
	case bits32 && api < 26:
		return 700 << 10
	case bits32:
		return 1000 << 10
	case api < 26:
		return 1500 << 10
	case api < 30:
		return 4 << 20
	}
	return 14 << 20
}

const (
	// stackKB is the address space of a thread (bionic, pthread_create.cpp).
	stackKB = 1008 + 32
	// maxAddresses32 is the usable address space of a 32-bit process.
	maxAddresses32 = 3840 << 10
)

// virtual returns the size of the address space in kB.
func (v view) virtual(m memory) int64 {
	if v.kernel {
		return 0
	}
	u := m.mapped()
	held := u.rss() + u.swap + m.reserved
	if v.native || v.shell {
		return held + 4<<20
	}
	held += int64(m.threads)*stackKB + addressBase(v.api, v.bits32)
	if v.bits32 {
		return min(held, maxAddresses32)
	}
	return held
}

// empty returns areas of the address space that hold no memory; used is the
// size of the other areas in kB.
func (m memory) empty(v view, used int64) []mapping {
	var out []mapping
	area := func(kb int64, perms string) {
		if kb > 0 {
			out = append(out, mapping{end: uint64(kb) << 10, perms: perms, row: androidtext.Unknown})
		}
	}
	left := v.virtual(m) - used
	each := max(maxArea, pages(float64(m.reserved/maxAreas))+4)
	for reserved := min(m.reserved, left); reserved > 0; reserved -= each {
		area(min(reserved, each), "rw-p")
		left -= min(reserved, each)
	}
	area(left, "---p")
	return out
}
