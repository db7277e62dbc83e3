package lease

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// Key is a resource that only one run at a time may use.
type Key struct {
	kind string
	// identity determines whether two keys are the same; shown is the name
	// shown to the user.
	identity, shown string
}

// DeviceKey returns the key of the device with the given serial behind the adb
// server that listens on an address (HOST:PORT, or a path). The serial may be
// any string.
func DeviceKey(server, serial string) Key {
	return Key{"device", sameHost(server) + "\x00" + serial, serial}
}

// sameHost maps all names of this machine to one name, because adb servers
// listen on all of its addresses.
func sameHost(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	ip := net.ParseIP(host)
	if host == "" || strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback() {
		host = "localhost"
	}
	return net.JoinHostPort(strings.ToLower(host), port)
}

// DirectoryKey returns the key of a directory, which is the same for every path
// to it. The directory need not exist yet. It returns an error if the path
// cannot be resolved.
func DirectoryKey(dir string) (Key, error) {
	path, err := canonical(dir)
	if err != nil {
		return Key{}, fmt.Errorf("resolve directory %q: %w", dir, err)
	}
	return Key{"directory", path, dir}, nil
}

// canonical resolves the symbolic links in the existing part of a path. The
// path is cleaned first, as path/filepath does for every file in the directory.
func canonical(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	rest := ""
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return foldCase(filepath.Join(real, rest)), nil
		}
		above := filepath.Dir(path)
		if !errors.Is(err, fs.ErrNotExist) || above == path {
			return "", err
		}
		path, rest = above, filepath.Join(filepath.Base(path), rest)
	}
}

// foldCase maps paths that differ only in case to the same path on systems
// whose file systems usually ignore case. If the actual file system is
// case-sensitive, directories whose names differ only in case exclude each
// other unnecessarily.
func foldCase(path string) string {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return strings.ToLower(path)
	}
	return path
}

// String returns the key in human-readable form; it is printable even if the
// key is not.
func (k Key) String() string { return k.kind + " " + text.Quote(k.shown, 160) }

// path returns the path of the key's file in a folder. The hash turns any key
// into a valid file name.
func (k Key) path(folder string) string {
	sum := sha256.Sum256([]byte(k.kind + "\x00" + k.identity))
	return filepath.Join(folder, k.kind+"-"+hex.EncodeToString(sum[:16])+".lock")
}
