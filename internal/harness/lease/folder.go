package lease

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// FolderVariable is the environment variable that sets the folder of the
// leases.
const FolderVariable = "LEAKGATE_LEASES"

// Folder returns the folder of this user's leases and creates it if necessary.
// If no folder is given, the folder is leakgate/leases in the user's cache
// folder or, if that folder cannot be created, leakgate-UID in the temporary
// folder. A folder that belongs to another user, or that others may write to,
// is an error, because anyone who can create files there can block runs.
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
	// Lstat is used because a symbolic link in the temporary folder may belong
	// to another user.
	info, err := os.Lstat(folder)
	if err != nil {
		return fmt.Errorf("open lease folder: %w; %s", err, elsewhere)
	}
	if !info.IsDir() {
		return fmt.Errorf("open lease folder: %s is not a directory; %s", folder, elsewhere)
	}
	if why := untrusted(info); why != "" {
		return fmt.Errorf("open lease folder: %s %s; make it private (chmod 700), or %s", folder, why, elsewhere)
	}
	return nil
}

// elsewhere is the advice shown if a folder cannot be used.
const elsewhere = "set " + FolderVariable + " to a folder of your own on a local disk"
