package monitor

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxLeftRunning bounds the number of processes that are named.
	maxLeftRunning = 20
	// maxEnviron bounds how many bytes of an environment are read.
	maxEnviron = 256 << 10
)

// daemons are substrings of the command lines of programs that outlive their
// callers by design, such as the adb server and the daemons of build tools.
var daemons = []string{"fork-server", "GradleDaemon", "KotlinCompileDaemon"}

// leftRunning returns the names of the processes that a workload has left
// running outside its process group; the group itself is killed when the
// workload ends. A process in another session can be recognized only by its
// environment. CI servers find the leftover processes of a build in the same
// way (Jenkins, hudson.util.ProcessTree).
func leftRunning(variable string, group int) []string {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() && hasVariable(pid, variable) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	var out []string
	for _, pid := range pids {
		if name, ok := runningName(pid, group); ok {
			out = append(out, fmt.Sprintf("%s (pid %d)", name, pid))
		}
	}
	if n := len(out) - maxLeftRunning; n > 0 {
		out = append(out[:maxLeftRunning], fmt.Sprintf("%d more", n))
	}
	return out
}

// hasVariable reports whether a process was started with the given environment
// variable. The environment of other users' processes cannot be read.
func hasVariable(pid int, variable string) bool {
	environ, err := procFile(pid, "environ")
	return err == nil &&
		slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(v []byte) bool { return string(v) == variable })
}

// runningName returns the name of a process. It returns false if the process
// has ended, is about to end with its group, or is a daemon.
func runningName(pid, group int) (string, bool) {
	stat, err := procFile(pid, "stat")
	// The name, in parentheses, may contain any character (proc_pid_stat(5)).
	end := bytes.LastIndexByte(stat, ')')
	begin := bytes.IndexByte(stat, '(')
	if err != nil || begin < 0 || end < begin {
		return "", false
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 3 || fields[0] == "Z" || fields[0] == "X" || fields[2] == strconv.Itoa(group) {
		return "", false
	}
	words, _ := procFile(pid, "cmdline")
	if slices.ContainsFunc(daemons, func(d string) bool { return bytes.Contains(words, []byte(d)) }) {
		return "", false
	}
	return string(stat[begin+1 : end]), true
}

func procFile(pid int, name string) ([]byte, error) {
	f, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxEnviron))
}
