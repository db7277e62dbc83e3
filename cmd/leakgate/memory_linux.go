package main

import (
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
)

// freeMemory gives the bytes that a program may take before others suffer: what the
// kernel calls available, and what is left of the control group, as in a container;
// 0 if neither is known.
func freeMemory() int64 {
	free := int64(0)
	text, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "MemAvailable:" {
			kb, _ := strconv.ParseInt(f[1], 10, 64)
			free = kb << 10
		}
	}
	if group, ok := groupMemory(); ok && (free == 0 || group < free) {
		return group
	}
	return free
}

// groupMemory gives what the control group, of version 2, and those above it leave.
func groupMemory() (free int64, ok bool) {
	text, _ := os.ReadFile("/proc/self/cgroup")
	_, group, found := strings.Cut(string(text), "0::")
	if !found {
		return 0, false
	}
	for dir := strings.TrimSpace(group); ; dir = path.Dir(dir) {
		most, known := readBytes(path.Join("/sys/fs/cgroup", dir, "memory.max"))
		used, _ := readBytes(path.Join("/sys/fs/cgroup", dir, "memory.current"))
		if left := max(most-used, 1); known && (!ok || left < free) {
			free, ok = left, true
		}
		if dir == "/" || dir == "." {
			return free, ok
		}
	}
}

func readBytes(name string) (int64, bool) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n, err == nil
}

// peakMemory gives the most bytes that this program has had resident.
func peakMemory() int64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return usage.Maxrss << 10
}
