package adbd

//unit:sleep polls for what comes at once; its deadline is a hang

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// memoryPhone is a phone built from functions and byte slices.
type memoryPhone struct {
	shell func(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) int

	mu    sync.Mutex
	id    Identity
	files map[string]*memoryFile
	// created, closed and aborted count the writers that were returned by
	// Create, closed and aborted, respectively.
	created, closed, aborted int
}

func newMemoryPhone(serial string) *memoryPhone {
	return &memoryPhone{
		id: Identity{
			Serial: serial, Product: "sdk_phone", Model: "Pixel 4a (5G)", Device: "bramble",
			Features: ModernFeatures(),
		},
		shell: func(context.Context, string, io.Reader, io.Writer, io.Writer) int { return 0 },
		files: map[string]*memoryFile{},
	}
}

func (p *memoryPhone) Identity() Identity {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.id
}

func (p *memoryPhone) become(state string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.id.State = state
}

func (p *memoryPhone) rename(serial string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.id.Serial = serial
}

func (p *memoryPhone) Shell(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) int {
	return p.shell(ctx, command, stdin, stdout, stderr)
}

func (p *memoryPhone) Stat(name string) (fs.FileInfo, error) {
	f, err := p.file(name)
	if err == nil && f.target != "" {
		return p.Stat(f.target)
	}
	return f, err
}

func (p *memoryPhone) Lstat(name string) (fs.FileInfo, error) { return p.file(name) }

func (p *memoryPhone) file(name string) (*memoryFile, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, ok := p.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return f, nil
}

func (p *memoryPhone) Open(name string) (io.ReadCloser, error) {
	f, err := p.file(name)
	if err != nil {
		return nil, err
	}
	if f.mode.Perm() == 0 {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return io.NopCloser(bytes.NewReader(f.data)), nil
}

func (p *memoryPhone) Create(name string, mode fs.FileMode) (io.WriteCloser, error) {
	if strings.HasPrefix(name, "/system/") {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrPermission}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.created++
	return &memoryDraft{phone: p, name: name, mode: mode}, nil
}

func (p *memoryPhone) ReadDir(name string) ([]fs.FileInfo, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var infos []fs.FileInfo
	for file, f := range p.files {
		if path.Dir(file) == name {
			infos = append(infos, f)
		}
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int { return strings.Compare(a.Name(), b.Name()) })
	return infos, nil
}

func (p *memoryPhone) put(name string, mode fs.FileMode, data []byte) *memoryFile {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &memoryFile{
		name: path.Base(name), mode: mode, data: data, size: int64(len(data)), time: time.Unix(1_700_000_000, 0),
	}
	p.files[name] = f
	return f
}

type memoryFile struct {
	name   string
	mode   fs.FileMode
	data   []byte
	size   int64
	time   time.Time
	target string
}

func (f *memoryFile) Name() string       { return f.name }
func (f *memoryFile) Size() int64        { return f.size }
func (f *memoryFile) Mode() fs.FileMode  { return f.mode }
func (f *memoryFile) ModTime() time.Time { return f.time }
func (f *memoryFile) IsDir() bool        { return f.mode.IsDir() }
func (f *memoryFile) Sys() any           { return nil }

type memoryDraft struct {
	bytes.Buffer
	phone *memoryPhone
	name  string
	mode  fs.FileMode
}

func (d *memoryDraft) Close() error {
	d.phone.put(d.name, d.mode, d.Bytes())
	d.phone.mu.Lock()
	defer d.phone.mu.Unlock()
	d.phone.closed++
	return nil
}

func (d *memoryDraft) Abort() error {
	d.phone.mu.Lock()
	defer d.phone.mu.Unlock()
	d.phone.aborted++
	return nil
}

// expectNoGoroutines fails the test if, after all its cleanups, a goroutine of
// this package remains. Call it first.
func expectNoGoroutines(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		var left []string
		for deadline := time.Now().Add(10 * time.Second); time.Now().
			Before(deadline); time.Sleep(10 * time.Millisecond) {
			if left = ownGoroutines(); len(left) == 0 {
				return
			}
		}
		t.Errorf("%d goroutines are still running:\n%s", len(left), strings.Join(left, "\n\n"))
	})
}

// ownGoroutines lists the goroutines that run code of this package, except
// those that run a test.
func ownGoroutines() []string {
	buf := make([]byte, 4<<20)
	stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	return slices.DeleteFunc(stacks, func(stack string) bool {
		return !strings.Contains(stack, "internal/adbd.") || strings.Contains(stack, "testing.tRunner") ||
			strings.Contains(stack, "testing.runTests") || strings.Contains(stack, "testing.(*F).Fuzz")
	})
}
