package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// fileStore keeps a baseline in a file. Updates on one host are serialized by a
// lock of the operating system, which needs no lock file and is released when
// the process that holds it exits.
type fileStore struct{ path string }

func newFileStore(path string, o Options) *fileStore {
	path = filepath.FromSlash(path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.Dir, path)
	}
	return &fileStore{path: path}
}

func (f *fileStore) load(context.Context) ([][]byte, error) {
	content, err := readFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	return [][]byte{content}, nil
}

func (f *fileStore) update(ctx context.Context, apply func(old [][]byte) ([]byte, error)) error {
	target, err := resolve(f.path)
	if err != nil {
		return err
	}
	dir := filepath.Dir(target)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	unlock, err := lockFolder(ctx, dir, filepath.Base(target))
	if err != nil {
		return fmt.Errorf("lock directory of the baseline: %w", err)
	}
	err = updateLocked(ctx, target, apply)
	return errors.Join(err, unlock())
}

// updateLocked updates the file while the lock is held.
func updateLocked(ctx context.Context, target string, apply func(old [][]byte) ([]byte, error)) error {
	var old [][]byte
	content, err := readFile(target)
	switch {
	case err == nil:
		old = [][]byte{content}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	content, err = apply(old)
	if err != nil || content == nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return replaceFile(target, content)
}

// resolve follows a symbolic link, because the target must be replaced and not
// the link.
func resolve(path string) (string, error) {
	target, err := filepath.EvalSymlinks(path)
	if err == nil {
		return target, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("find file: %w", err)
	}
	// If the path is not a link, another writer has just created the file.
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return "", fmt.Errorf("find file: %s is a symbolic link to a file that does not exist; "+
			"create that file or remove the link", path)
	}
	return path, nil
}

// readFile reads a baseline. It returns fs.ErrNotExist if there is none.
func readFile(path string) ([]byte, error) {
	// Check the type first, because opening a named pipe would block.
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read file: %s is not a regular file; name a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxContent+1))
	if err == nil {
		err = checkSize(max(int64(len(content)), info.Size()))
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return content, nil
}

// replaceFile writes a temporary file and renames it, so a reader sees either
// the old or the new content. The caller must hold the lock. The name of the
// temporary file is always the same, so the next update removes the file if a
// process was killed.
func replaceFile(path string, content []byte) (err error) {
	whole := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	// Do not truncate the file: it may be a link created by an attacker.
	if err := os.Remove(whole); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write file: %w", err)
	}
	// A new file gets the permissions that the user's umask allows; an existing
	// file keeps its own.
	f, err := os.OpenFile(whole, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	if info, serr := os.Stat(path); serr == nil {
		err = f.Chmod(info.Mode().Perm())
	}
	if err == nil {
		_, err = f.Write(content)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = rename(whole, path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write file: %w", err), os.Remove(whole))
	}
	return nil
}

// rename replaces a file. Windows denies a rename while another process reads
// the old file.
func rename(from, to string) error {
	err := os.Rename(from, to)
	for try := 0; try < 50 && runtime.GOOS == "windows" && errors.Is(err, fs.ErrPermission); try++ {
		time.Sleep(20 * time.Millisecond)
		err = os.Rename(from, to)
	}
	return err
}

// waitForLock retries until it acquires the lock.
func waitForLock(ctx context.Context, try func() (taken bool, err error)) error {
	for {
		if taken, err := try(); taken || err != nil {
			return err
		}
		if err := pause(ctx, 0); err != nil {
			return err
		}
	}
}
