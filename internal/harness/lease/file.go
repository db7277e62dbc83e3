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
	// lookAgain is the real time between two looks at a file that another holds.
	lookAgain = 10 * time.Millisecond
	// maxLooks bounds the looks of one attempt.
	maxLooks = 10
)

// take locks the file of a key and notes the holder in it. A HeldError tells who
// else has it; its name is given only when two looks in a row have found the same,
// for the note of one that has died stands until the next has written its own.
func take(folder string, key Key, note []byte) (*flock.Flock, error) {
	path := key.path(folder)
	var seen string
	for looks := 0; ; looks++ {
		lock, err := try(path)
		switch {
		case err != nil && !(deletePending(err) && looks < maxLooks):
			return nil, unlockable(err)
		case lock != nil:
			if err := writeNote(path, note); err != nil {
				return nil, errors.Join(fmt.Errorf("note the holder of %v: %w; %s", key, err, elsewhere), drop(lock))
			}
			return lock, nil
		}
		text := readNote(path)
		h, ok := decodeHolder([]byte(text))
		if ok && text == seen || looks >= maxLooks {
			return nil, HeldError{key, h}
		}
		seen = text
		time.Sleep(lookAgain)
	}
}

// try locks the file once. It gives nil where another holds it, or where the file
// was removed by its holder between the opening and the lock: a lock on a file
// without a name excludes nobody.
func try(path string) (*flock.Flock, error) {
	// Opened for writing, for NFS makes a POSIX lock of it, which wants that.
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

// drop removes the file and lets go of the lock, in this order: a name that
// vanishes while its file is locked is found out by whoever waits for it.
func drop(lock *flock.Flock) error {
	err := os.Remove(lock.Path())
	if uerr := lock.Unlock(); uerr != nil {
		return fmt.Errorf("release lease: %w", uerr)
	}
	// Windows removes no file that is open, ours or that of the next holder, who
	// then removes it in turn.
	if runtime.GOOS == "windows" && err != nil {
		_ = os.Remove(lock.Path())
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("release lease: %w", err)
	}
	return nil
}

// deletePending is a file on its way out: Windows denies access to one until its
// last user has closed it.
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

// readNote gives the note in a file as it stands, empty if there is none.
func readNote(path string) string {
	// Opening a named pipe would wait.
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
		return fmt.Errorf("take lease: the file system of the lease folder has no locks: %w; %s", err, elsewhere)
	}
	return fmt.Errorf("take lease: %w; if the lease folder cannot be used, %s", err, elsewhere)
}
