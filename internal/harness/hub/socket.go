package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// SocketPath returns the path of the socket on which the hub of a suite
// listens. The argument must be the same in all processes of the suite, and
// must differ from that of every other suite. The directory belongs to this
// user only, so no other user can respond instead of the hub.
func SocketPath(suite string) (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("leakgate-%d", os.Getuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("create the directory of the socket: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("check the directory of the socket: %w", err)
	}
	if !info.IsDir() || !private(info) {
		return "", fmt.Errorf("use %s for a socket: other users can write to it; remove it, or set TMPDIR", dir)
	}
	sum := sha256.Sum256([]byte(suite))
	// The path of a socket is limited to 104 bytes (macOS, sys/un.h).
	return filepath.Join(dir, hex.EncodeToString(sum[:8])), nil
}
