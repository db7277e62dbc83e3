package hostmemory

import (
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
)

// Free returns the number of bytes that a program may use without affecting
// others: the memory that the kernel reports as available, limited by the
// remaining memory of the control group, as in a container. It returns 0 if
// neither is known.
func Free() int64 {
	free := int64(0)
	text, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "MemAvailable:" {
			kb, _ := strconv.ParseInt(f[1], 10, 64)
			free = kb << 10
		}
	}
	text, _ = os.ReadFile("/proc/self/cgroup")
	if group, ok := groupMemory("/sys/fs/cgroup", string(text)); ok && (free == 0 || group < free) {
		return group
	}
	return free
}

// groupMemory returns the least memory that remains in the control group
// (version 2) or in any of its parents. groups is the mount point of the
// groups; own is the content of /proc/self/cgroup. File pages count as free,
// because the kernel reclaims them. After a dump has been read, the file pages
// include those of the dump itself (Documentation/admin-guide/cgroup-v2.rst,
// "memory.current").
func groupMemory(groups, own string) (free int64, ok bool) {
	_, group, found := strings.Cut("\n"+own, "\n0::")
	if !found {
		return 0, false
	}
	group, _, _ = strings.Cut(group, "\n")
	for dir := path.Clean("/" + group); ; dir = path.Dir(dir) {
		most, known := readBytes(path.Join(groups, dir, "memory.max"))
		used, _ := readBytes(path.Join(groups, dir, "memory.current"))
		left := max(most-used+filePages(path.Join(groups, dir, "memory.stat")), 1)
		if known && (!ok || left < free) {
			free, ok = min(left, most), true
		}
		if dir == "/" {
			return free, ok
		}
	}
}

// filePages returns the number of bytes of files that a control group has in
// memory.
func filePages(name string) (bytes int64) {
	text, _ := os.ReadFile(name)
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 && (f[0] == "inactive_file" || f[0] == "active_file") {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			bytes += n
		}
	}
	return bytes
}

func readBytes(name string) (int64, bool) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n, err == nil
}

// Peak returns the peak resident memory of this program in bytes.
func Peak() int64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return usage.Maxrss << 10
}
