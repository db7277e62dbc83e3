package hostdevice

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/leakgate/leakgate/internal/hostdevice/state"
)

// The sync protocol can read and write /data/local/tmp. It can read /proc only
// if the shell runs as the user that runs the device. Other files of this
// machine do not belong to the phone.

// Stat describes a file.
func (d *Device) Stat(name string) (fs.FileInfo, error) {
	rel, ok := inShared(name)
	if ok {
		return d.shared.Stat(rel)
	}
	if err := d.readable(name); err != nil {
		return nil, err
	}
	return os.Stat(name)
}

// Lstat describes a file; it does not follow a symbolic link.
func (d *Device) Lstat(name string) (fs.FileInfo, error) {
	rel, ok := inShared(name)
	if ok {
		return d.shared.Lstat(rel)
	}
	if err := d.readable(name); err != nil {
		return nil, err
	}
	return os.Lstat(name)
}

// Open opens a file for reading.
func (d *Device) Open(name string) (io.ReadCloser, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// open opens a file for reading. For a FIFO, it does not wait until another
// process opens the other end.
func (d *Device) open(name string) (*os.File, error) {
	rel, ok := inShared(name)
	if ok {
		return d.shared.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	}
	if err := d.readable(name); err != nil {
		return nil, err
	}
	return os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// ReadDir lists a directory.
func (d *Device) ReadDir(name string) ([]fs.FileInfo, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdir(-1)
}

// Create creates a file in /data/local/tmp, with its parent directories.
func (d *Device) Create(name string, mode fs.FileMode) (io.WriteCloser, error) {
	rel, ok := inShared(name)
	if !ok {
		return nil, &fs.PathError{Op: "create", Path: name, Err: syscall.EROFS}
	}
	if err := d.lead(path.Dir(rel)); err != nil {
		return nil, err
	}
	f, err := d.shared.OpenFile(rel, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode.Perm())
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Chmod(mode.Perm()), f.Chown(d.options.ShellUID, -1)); err != nil {
		f.Close()
		return nil, err
	}
	return &upload{File: f, root: d.shared, name: rel}, nil
}

// lead creates a directory in /data/local/tmp and any missing parents.
// Directories, like files, belong to the shell's UID, under which adbd runs on
// a phone.
func (d *Device) lead(rel string) error {
	if rel == "." {
		return nil
	}
	if err := d.lead(path.Dir(rel)); err != nil {
		return err
	}
	err := d.shared.Mkdir(rel, 0o777)
	if errors.Is(err, fs.ErrExist) {
		return nil // if the path is not a directory, opening the file fails
	}
	if err != nil {
		return err
	}
	return d.shared.Lchown(rel, d.options.ShellUID, -1)
}

// upload is a file being written.
type upload struct {
	*os.File
	root *os.Root
	name string
}

// Abort removes the file.
func (u *upload) Abort() error { return errors.Join(u.Close(), u.root.Remove(u.name)) }

// inShared returns the path relative to /data/local/tmp.
func inShared(name string) (rel string, ok bool) {
	name = path.Clean("/" + name)
	if name == state.SharedDir {
		return ".", true
	}
	return strings.CutPrefix(name, state.SharedDir+"/")
}

func (d *Device) readable(name string) error {
	switch name := path.Clean("/" + name); {
	case name != "/proc" && !strings.HasPrefix(name, "/proc/"):
		return &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case d.options.ShellUID != os.Getuid():
		return &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return nil
}
