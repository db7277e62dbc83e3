package ksh

//unit:sleep commands sleep by the clock of the test, which is a bubble where it matters

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// machine is an in-memory System. It uses the test's clock.
type machine struct {
	mu    sync.Mutex
	files map[string][]byte // nil for a directory
	procs map[int]Process
	last  int
}

func newMachine() *machine {
	return &machine{
		files: map[string][]byte{
			"/": nil, "/dev": nil, "/dev/null": {}, "/tmp": nil, "/proc": nil, "/proc/1": nil,
			"/proc/1/comm": []byte("init\n"),
		},
		procs: map[int]Process{}, last: 100,
	}
}

func (m *machine) Clean(dir, name string) string {
	if !strings.HasPrefix(name, "/") {
		name = dir + "/" + name
	}
	return path.Clean("/" + name)
}

type entry struct {
	name string
	data []byte
}

func (e entry) Name() string       { return e.name }
func (e entry) Size() int64        { return int64(len(e.data)) }
func (e entry) ModTime() time.Time { return time.Unix(1e9, 0) }
func (e entry) IsDir() bool        { return e.data == nil }
func (e entry) Sys() any           { return nil }
func (e entry) Owner() int         { return 2000 }
func (e entry) Target() string     { return "" }

func (e entry) Mode() fs.FileMode {
	if e.IsDir() {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

func (m *machine) Stat(name string, _ Cred) (FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.files[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return entry{path.Base(name), data}, nil
}

func (m *machine) ReadDir(name string, _ Cred) ([]FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if data, ok := m.files[name]; !ok || data != nil {
		return nil, fs.ErrNotExist
	}
	var out []FileInfo
	for at, data := range m.files {
		if at != "/" && path.Dir(at) == name {
			out = append(out, entry{path.Base(at), data})
		}
	}
	slices.SortFunc(out, func(a, b FileInfo) int { return strings.Compare(a.Name(), b.Name()) })
	return out, nil
}

func (m *machine) Open(name string, _ Cred) (io.Reader, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.files[name]
	switch {
	case !ok:
		return nil, fs.ErrNotExist
	case data == nil:
		return nil, syscall.EISDIR
	}
	return bytes.NewReader(data), nil
}

// written is a file open for writing; it holds at most 1 MB.
type written struct {
	m    *machine
	name string
}

func (w written) Write(b []byte) (int, error) {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	if w.name == "/dev/null" {
		return len(b), nil
	}
	if len(w.m.files[w.name])+len(b) > 1<<20 {
		return 0, syscall.ENOSPC
	}
	w.m.files[w.name] = append(w.m.files[w.name], b...)
	return len(b), nil
}

func (m *machine) Create(name string, _ Cred, add bool) (io.Writer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.files[name]
	parent, above := m.files[path.Dir(name)]
	switch {
	case ok && data == nil:
		return nil, syscall.EISDIR
	case !above || parent != nil:
		return nil, fs.ErrNotExist
	case len(m.files) > 1000:
		return nil, syscall.ENOSPC
	case !ok || !add:
		m.files[name] = []byte{}
	}
	return written{m, name}, nil
}

func (m *machine) Mkdir(name string, _ Cred) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.files[name]; ok {
		return fs.ErrExist
	}
	m.files[name] = nil
	return nil
}

func (m *machine) Remove(name string, _ Cred, all bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.files[name]
	switch {
	case !ok:
		return fs.ErrNotExist
	case data == nil && !all:
		return syscall.EISDIR
	}
	for at := range m.files {
		if at == name || strings.HasPrefix(at, name+"/") {
			delete(m.files, at)
		}
	}
	return nil
}

func (m *machine) Program(name string) (Program, bool) {
	p, ok := Programs()[strings.TrimPrefix(name, "/bin/")]
	return p, ok
}

func (m *machine) Start(ctx context.Context, leader Process) (context.Context, Process) {
	ctx, cancel := context.WithCancelCause(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	pid := m.last
	p := Process{PID: pid, Group: leader.Group, Parent: leader.PID, Cancel: cancel, End: func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.procs, pid)
		cancel(nil)
	}}
	m.procs[pid] = p
	return ctx, p
}

func (m *machine) Signal(_ Cred, pid, signal int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := false
	for _, p := range m.procs {
		if p.PID == pid || p.Group == -pid {
			found = true
			if signal != 0 {
				p.Cancel(Signal(signal))
			}
		}
	}
	if !found {
		return syscall.ESRCH
	}
	return nil
}

func (m *machine) UserName(int) string { return "user" }

func (m *machine) Now() time.Time { return time.Now() }

func (m *machine) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answer is the output of a command.
type answer struct {
	out, err string
	exit     int
}

func (m *machine) run(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, leader := m.Start(ctx, Process{})
	leader.Group = leader.PID
	m.mu.Lock()
	m.procs[leader.PID] = leader
	m.mu.Unlock()
	defer leader.End()
	exit := Run(ctx, Options{
		System: m, Cred: Cred{UID: 2000, PID: leader.PID}, Leader: leader, Command: command, Prompt: "$ ",
		Variables: map[string]string{"HOME": "/"}, Stdin: stdin, Stdout: stdout, Stderr: stderr,
	})
	if ctx.Err() != nil {
		return Status(ctx)
	}
	return exit
}

// ask runs a command without input.
func (m *machine) ask(t testing.TB, command string) answer {
	t.Helper()
	var out, errs bytes.Buffer
	exit := m.run(t.Context(), command, nil, &out, &errs)
	return answer{out.String(), errs.String(), exit}
}
