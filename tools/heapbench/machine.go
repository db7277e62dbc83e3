package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

var (
	cpuModel    = regexp.MustCompile(`(?m)^model name\s*:\s*(.+)$`)
	totalMemory = regexp.MustCompile(`(?m)^MemTotal:\s*(\d+) kB$`)
)

// machine describes the computer on which the measurement runs, as far as Linux
// reports it.
func machine() string {
	text := fmt.Sprintf("%d cores", runtime.NumCPU())
	if found := match("/proc/cpuinfo", cpuModel); found != "" {
		text += " of " + strings.Join(strings.Fields(found), " ")
	}
	if kilobytes, err := strconv.ParseFloat(match("/proc/meminfo", totalMemory), 64); err == nil {
		text += fmt.Sprintf(", %.0f GB of memory", kilobytes*1024/1e9)
	}
	return fmt.Sprintf("%s, %s/%s, %s", text, runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// match returns the first group of a pattern in a file, or "".
func match(path string, pattern *regexp.Regexp) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	found := pattern.FindSubmatch(data)
	if found == nil {
		return ""
	}
	return strings.TrimSpace(string(found[1]))
}
