package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// budgets maps package directories to CPU seconds; if it is nil, the check is
// disabled.
type budgets map[string]float64

// usual is the budget of a package that is not listed.
const usual = 20

// readBudgets parses the code block of a Markdown page that begins with
// ```budgets. Each line of the block is "package: seconds".
func readBudgets(page string) (budgets, error) {
	if page == "" {
		return nil, nil
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, fmt.Errorf("read budgets: %w", err)
	}
	_, block, ok := strings.Cut(string(text), "\n```budgets\n")
	block, _, ended := strings.Cut(block, "\n```\n")
	if !ok || !ended {
		return nil, fmt.Errorf("read budgets: %s has no block ```budgets", page)
	}
	out := budgets{}
	for line := range strings.Lines(block) {
		folder, seconds, _ := strings.Cut(strings.TrimSpace(line), ": ")
		n, err := strconv.ParseFloat(seconds, 64)
		if err != nil || n <= usual || out[folder] != 0 {
			return nil, fmt.Errorf("read budgets: invalid line %q: want PACKAGE: SECONDS above %d, each once",
				strings.TrimSpace(line), usual)
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(page), folder)); err != nil {
			return nil, fmt.Errorf("read budgets: %w", err)
		}
		out[folder] = n
	}
	return out, nil
}

// check prints the packages that used the most CPU time, and fails packages
// that used more than twice their budget. The factor allows for a machine that
// is slower than the one on which the budgets were measured.
func (b budgets) check(out io.Writer, cpu usage) (ok bool) {
	if b == nil {
		return true
	}
	ok = true
	for i, folder := range slices.SortedFunc(maps.Keys(cpu),
		func(x, y string) int { return cmp.Compare(cpu[y], cpu[x]) }) {
		limit := cmp.Or(b[folder], usual)
		took := cpu[folder]
		if i < slowest && took > usual {
			fmt.Fprintf(out, "%7.1fs of CPU, budget %3.0fs  %s\n", took, limit, folder)
		}
		if took > 2*limit {
			ok = false
			fmt.Fprintf(out,
				"FAIL  %s: used %.0f s of CPU, more than twice its budget of %.0f s: make its tests cheaper, or raise "+
					"the budget and say why\n", folder, took, limit)
		}
	}
	return ok
}

// usage maps package directories to CPU seconds.
type usage map[string]float64

// process is a test binary that ran in the directory of its package.
type process struct{ pid, folder string }

// watchEvery is the interval at which CPU times are read. CPU time that a
// package uses after the last reading is not counted.
const watchEvery = 100 * time.Millisecond

// watch reads the CPU times of the test binaries that a go command runs, until
// stop is called; stop returns the times.
func watch(pid int) (stop func() usage) {
	done, result := make(chan struct{}), make(chan usage)
	root, _ := os.Getwd()
	go func() {
		seen := map[process]float64{}
		for {
			select {
			case <-done:
				sum := usage{}
				for p, seconds := range seen {
					sum[p.folder] += seconds
				}
				result <- sum
				return
			case <-time.After(watchEvery):
				look(pid, root, seen)
			}
		}
	}()
	return func() usage {
		close(done)
		return <-result
	}
}

// look records the CPU time of each running test binary.
func look(parent int, root string, seen map[process]float64) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for pid := range strings.FieldsSeq(string(text)) {
			command, _ := os.ReadFile("/proc/" + pid + "/cmdline")
			program, _, _ := strings.Cut(string(command), "\x00")
			if !strings.HasSuffix(program, ".test") {
				continue
			}
			folder, err := filepath.Rel(root, startFolder(pid))
			if err != nil {
				continue
			}
			if seconds, ok := cpuTime(pid); ok {
				seen[process{pid, filepath.ToSlash(folder)}] = seconds
			}
		}
	}
}

// startFolder returns the directory in which the go command started a test
// binary, which is the directory of its package. The current directory may
// differ, because a test may have changed it.
func startFolder(pid string) string {
	environ, _ := os.ReadFile("/proc/" + pid + "/environ")
	for variable := range strings.SplitSeq(string(environ), "\x00") {
		if dir, ok := strings.CutPrefix(variable, "PWD="); ok {
			return dir
		}
	}
	return ""
}

// cpuTime reads the CPU time of a process and of its children that have ended
// (proc_pid_stat(5): fields 14 to 17, in hundredths of a second).
func cpuTime(pid string) (seconds float64, ok bool) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest) // begins with field 3
	if len(fields) < 15 {
		return 0, false
	}
	for _, f := range fields[11:15] {
		ticks, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return 0, false
		}
		seconds += ticks / 100
	}
	return seconds, true
}
