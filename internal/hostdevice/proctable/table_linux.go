package proctable

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a process of this machine.
type Process struct {
	PID, UID int
	// Name is the first word of the command line, or [comm] if the command line
	// is empty; Args is the entire command line, with its words separated by
	// blanks.
	Name, Args string
}

// maxCommandLine bounds how many bytes of a command line are read.
const maxCommandLine = 16 << 10

// List returns all visible processes, sorted by pid.
func List() ([]Process, error) {
	pids, err := PIDs()
	if err != nil {
		return nil, err
	}
	var list []Process
	for _, pid := range pids {
		// An error means that the process has ended in the meantime.
		if p, err := Read(pid); err == nil {
			list = append(list, p)
		}
	}
	return list, nil
}

// PIDs returns the pids of all processes in ascending order.
func PIDs() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids, nil
}

// Read returns the process with the given pid.
func Read(pid int) (Process, error) {
	line, err := read(pid, "cmdline", maxCommandLine)
	if err != nil {
		return Process{}, err
	}
	info, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	if err != nil {
		return Process{}, err
	}
	p := Process{PID: pid, UID: int(info.Sys().(*syscall.Stat_t).Uid)}
	words := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
	p.Name, p.Args = words[0], strings.Join(words, " ")
	if p.Name != "" {
		return p, nil
	}
	comm, err := read(pid, "comm", 64)
	if err != nil {
		return Process{}, err
	}
	p.Name = "[" + strings.TrimSpace(string(comm)) + "]"
	p.Args = p.Name
	return p, nil
}

// Find returns the pids of the processes with exactly the given name.
func Find(name string) ([]int, error) {
	list, err := List()
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, p := range list {
		if p.Name == name {
			pids = append(pids, p.PID)
		}
	}
	return pids, nil
}

// WithVariable returns the pids of the processes, other than this one, that
// were started with the given environment variable and value. Processes whose
// environment cannot be read are skipped.
func WithVariable(name, value string) ([]int, error) {
	pids, err := PIDs()
	if err != nil {
		return nil, err
	}
	want := []byte(name + "=" + value)
	var found []int
	for _, pid := range pids {
		if pid == os.Getpid() {
			continue
		}
		env, err := environment(pid)
		if err != nil {
			continue
		}
		for entry := range bytes.SplitSeq(env, []byte{0}) {
			if bytes.Equal(entry, want) {
				found = append(found, pid)
				break
			}
		}
	}
	return found, nil
}

// maxEnvironment is the kernel's default limit on the size of arguments and
// environment, in bytes.
const maxEnvironment = 2 << 20

// startWithin is the maximum time that a process may take to get its
// environment. Once the process runs, the kernel sets up its environment
// immediately.
const startWithin = time.Second

// environment returns the environment of a process. While a process is
// starting, the kernel reports an empty environment (fs/proc/base.c,
// environ_read); without a wait, the process would be missed.
func environment(pid int) ([]byte, error) {
	for deadline := time.Now().Add(startWithin); ; time.Sleep(50 * time.Microsecond) {
		env, err := read(pid, "environ", maxEnvironment)
		if err != nil || len(env) > 0 {
			return env, err
		}
		m, err := memoryOf(pid)
		if err != nil || m.without() || time.Now().After(deadline) {
			return nil, err
		}
	}
}

// memory holds the addresses of a process's data and environment and the size
// of its memory.
type memory struct{ size, data, start, end uint64 }

// without reports whether waiting for a process's environment is pointless: the
// process has no memory, like a kernel process or one that has ended, or its
// environment is empty. The environment is also empty while the kernel sets it
// up, but the address of the data is set only after that (fs/binfmt_elf.c:
// create_elf_tables, then load_elf_binary).
func (m memory) without() bool { return m.size == 0 || m.data != 0 && m.end == m.start }

// memoryOf reads the fields vsize, start_data, env_start and env_end of
// /proc/PID/stat (proc_pid_stat(5)), in the order in which the kernel reads
// them.
func memoryOf(pid int) (memory, error) {
	text, err := read(pid, "stat", maxCommandLine)
	if err != nil {
		return memory{}, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	const third, vsize, startData, envStart, envEnd = 3, 23, 45, 50, 51
	if len(fields) <= envEnd-third {
		return memory{}, fmt.Errorf("read state of process %d: only %d fields", pid, len(fields))
	}
	var m memory
	for field, to := range map[int]*uint64{vsize: &m.size, startData: &m.data, envStart: &m.start, envEnd: &m.end} {
		if *to, err = strconv.ParseUint(fields[field-third], 10, 64); err != nil {
			return memory{}, fmt.Errorf("read state of process %d: %w", pid, err)
		}
	}
	return m, nil
}

// killWithin is the maximum time that processes may take to exit.
const killWithin = 10 * time.Second

// KillWithVariable kills the processes that WithVariable returns until none are
// left: a process may start another one while the list is being read.
func KillWithVariable(name, value string) error {
	deadline := time.Now().Add(killWithin)
	for {
		pids, err := WithVariable(name, value)
		if err != nil {
			return err
		}
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("kill processes with %s=%s: %d did not exit", name, value, len(pids))
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func read(pid int, file string, limit int64) ([]byte, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}
