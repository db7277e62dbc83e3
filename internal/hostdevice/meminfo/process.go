package meminfo

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
)

// OfProcess reads the memory layout of a running process. The error wraps the
// kernel's error, such as fs.ErrPermission for another user's process.
func OfProcess(pid int) (*Layout, error) {
	heap, err := heapSize(pid)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, heap)
}

// maxCommandLine is the maximum number of bytes that are read from a command
// line.
const maxCommandLine = 64 << 10

// heapSize returns the -Xmx value in the process's command line in bytes, or 0
// if there is none.
func heapSize(pid int) (uint64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	line, err := io.ReadAll(io.LimitReader(f, maxCommandLine))
	if err != nil {
		return 0, fmt.Errorf("read command line: %w", err)
	}
	return parseHeapSize(line), nil
}

// parseHeapSize returns the last -Xmx value in a command line, which is the one
// that HotSpot uses.
func parseHeapSize(line []byte) (bytesMax uint64) {
	for word := range bytes.SplitSeq(line, []byte{0}) {
		text, ok := bytes.CutPrefix(word, []byte("-Xmx"))
		if !ok || len(text) == 0 {
			continue
		}
		shift := map[byte]uint{'k': 10, 'm': 20, 'g': 30}[text[len(text)-1]|0x20]
		if shift > 0 {
			text = text[:len(text)-1]
		}
		if n, err := strconv.ParseUint(string(text), 10, 32); err == nil {
			bytesMax = n << shift
		}
	}
	return bytesMax
}
