package lease

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

const (
	// retryInterval is the wall-clock time between two attempts to lock a file
	// that another process has locked.
	retryInterval = 10 * time.Millisecond
	// maxTries bounds the number of attempts.
	maxTries = 10
)

// take locks the file of a key and writes the holder into it. A HeldError names
// the other holder only if two attempts in a row have found the same holder,
// because the note of a dead holder remains until the next holder has written
// its own.
func take(folder string, key Key, note []byte) (*flock.Flock, error) {
	path := key.path(folder)
	var seen string
	for looks := 0; ; looks++ {
		lock, err := try(path)
		switch {
		case err != nil && !(deletePending(err) && looks < maxTries):
			return nil, unlockable(err)
		case lock != nil:
			if err := writeNote(path, note); err != nil {
				return nil, errors.Join(fmt.Errorf("write holder of %v: %w; %s", key, err, elsewhere), drop(lock))
			}
			return lock, nil
		}
		text := readNote(path)
		h, ok := decodeHolder([]byte(text))
		if ok && text == seen || looks >= maxTries {
			return nil, HeldError{key, h}
		}
		seen = text
		time.Sleep(retryInterval)
	}
}

// try locks the file once. It returns nil if another process holds the lock. It
// also returns nil if the previous holder removed the file after it was opened
// and before it was locked, because a lock on a removed file excludes nobody.
func try(path string) (*flock.Flock, error) {
	// The file is opened for writing because NFS implements flock as a POSIX
	// lock, which requires write access.
	lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	ok, err := lock.TryLock()
	if err != nil || !ok {
		return nil, err
	}
	mine, err := lock.Stat()
	if err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	named, err := os.Stat(path)
	if err != nil || !os.SameFile(mine, named) {
		return nil, lock.Unlock()
	}
	return lock, nil
}

// drop removes the file and then releases the lock. The order matters: a waiter
// that then gets the lock notices that the file was removed.
func drop(lock *flock.Flock) error {
	err := os.Remove(lock.Path())
	if uerr := lock.Unlock(); uerr != nil {
		return fmt.Errorf("release lease: %w", uerr)
	}
	// Windows cannot remove an open file, so the file is removed after the
	// unlock. If the next holder has already opened the file, that holder
	// removes it.
	if runtime.GOOS == "windows" && err != nil {
		_ = os.Remove(lock.Path())
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("release lease: %w", err)
	}
	return nil
}

// deletePending reports whether an error may be due to a file that is being
// deleted: Windows denies access until every process that has the file open has
// closed it.
func deletePending(err error) bool {
	return runtime.GOOS == "windows" && errors.Is(err, fs.ErrPermission)
}

func writeNote(path string, note []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(note, noteAt)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// readNote returns the note in a file, or "" if the file cannot be read or
// contains no note.
func readNote(path string) string {
	// Opening a named pipe would block.
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	text, err := io.ReadAll(io.NewSectionReader(f, noteAt, maxRecord))
	if cerr := f.Close(); err != nil || cerr != nil {
		return ""
	}
	return string(text)
}

// unlockable explains why a file cannot be locked.
func unlockable(err error) error {
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.ENOLCK) {
		return fmt.Errorf("take lease: the file system of the lease folder does not support locks: %w; %s", err,
			elsewhere)
	}
	return fmt.Errorf("take lease: %w; if the lease folder cannot be used, %s", err, elsewhere)
}
