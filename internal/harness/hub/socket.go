package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// SocketPath is where the hub of a suite listens that is known by a name which is the same in
// all of its processes and in no other suite. The folder is of this user alone, so that nobody
// else can answer in its place.
func SocketPath(suite string) (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("leakgate-%d", os.Getuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("create the folder of the socket: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("look at the folder of the socket: %w", err)
	}
	if !info.IsDir() || !private(info) {
		return "", fmt.Errorf("use %s for a socket: other users can write to it; remove it, or set TMPDIR", dir)
	}
	sum := sha256.Sum256([]byte(suite))
	// A path of a socket has room for 104 bytes (macOS, sys/un.h).
	return filepath.Join(dir, hex.EncodeToString(sum[:8])), nil
}
