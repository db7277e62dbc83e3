package lease

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// FolderVariable is the environment variable that names another folder.
const FolderVariable = "LEAKGATE_LEASES"

// Folder gives the folder of this user's leases and makes it if it is not there:
// the one that is asked for, else leakgate/leases below the user's cache folder,
// else leakgate-UID below the temporary folder. One that belongs to somebody else,
// or that others may write to, is refused: whoever can put files there can keep
// runs from starting.
func Folder(asked string) (string, error) {
	if asked != "" {
		return asked, prepare(asked)
	}
	cache, err := os.UserCacheDir()
	if err == nil {
		folder := filepath.Join(cache, "leakgate", "leases")
		if err = os.MkdirAll(folder, 0o700); err == nil {
			return folder, prepare(folder)
		}
	}
	folder := filepath.Join(os.TempDir(), "leakgate-"+strconv.Itoa(os.Getuid()))
	if terr := prepare(folder); terr != nil {
		return folder, errors.Join(terr, err)
	}
	return folder, nil
}

func prepare(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("create lease folder: %w; %s", err, elsewhere)
	}
	// Lstat: a symbolic link in the temporary folder may be somebody else's.
	info, err := os.Lstat(folder)
	if err != nil {
		return fmt.Errorf("open lease folder: %w; %s", err, elsewhere)
	}
	if !info.IsDir() {
		return fmt.Errorf("open lease folder: %s is not a directory; %s", folder, elsewhere)
	}
	if why := untrusted(info); why != "" {
		return fmt.Errorf("open lease folder: %s %s; make it yours alone (chmod 700), or %s", folder, why, elsewhere)
	}
	return nil
}

// elsewhere is what to do where a folder cannot be used.
const elsewhere = "set " + FolderVariable + " to a folder of your own on a local disk"
