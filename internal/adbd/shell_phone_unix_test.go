//go:build unix

package adbd

//unit:program a real shell is the phone

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// shellPhone presents this machine as a phone: /bin/sh for commands, a
// temporary directory for files.
type shellPhone struct {
	*memoryPhone
	root string
	// canceled counts the commands that ended because their context was
	// canceled.
	canceled atomic.Int32
	running  atomic.Int32
}

func newShellPhone(t testing.TB, serial string) *shellPhone {
	p := &shellPhone{memoryPhone: newMemoryPhone(serial), root: t.TempDir()}
	p.memoryPhone.shell = p.run
	return p
}

func (p *shellPhone) run(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) int {
	p.running.Add(1)
	defer p.running.Add(-1)
	args := []string{"-c", command}
	if command == "" {
		args = nil
	}
	cmd := exec.Command("/bin/sh", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.root, stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return 126
	}
	if err := cmd.Start(); err != nil {
		return 126
	}
	go func() {
		defer in.Close()
		io.Copy(in, stdin)
	}()
	stop := context.AfterFunc(ctx, func() {
		p.canceled.Add(1)
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	})
	defer stop()
	var exit *exec.ExitError
	if err := cmd.Wait(); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

func (p *shellPhone) path(name string) string { return filepath.Join(p.root, filepath.FromSlash(name)) }

func (p *shellPhone) Stat(name string) (fs.FileInfo, error)   { return os.Stat(p.path(name)) }
func (p *shellPhone) Lstat(name string) (fs.FileInfo, error)  { return os.Lstat(p.path(name)) }
func (p *shellPhone) Open(name string) (io.ReadCloser, error) { return os.Open(p.path(name)) }
func (p *shellPhone) ReadDir(name string) ([]fs.FileInfo, error) {
	entries, err := os.ReadDir(p.path(name))
	var infos []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			infos = append(infos, info)
		}
	}
	return infos, err
}

func (p *shellPhone) Create(name string, mode fs.FileMode) (io.WriteCloser, error) {
	if strings.HasPrefix(name, "/system/") {
		return nil, &fs.PathError{Op: "create", Path: name, Err: syscall.EROFS}
	}
	if err := os.MkdirAll(filepath.Dir(p.path(name)), 0o755); err != nil {
		return nil, err
	}
	return os.OpenFile(p.path(name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
}
