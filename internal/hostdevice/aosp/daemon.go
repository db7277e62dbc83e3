package aosp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Daemon is an unpacked adbd.
type Daemon struct {
	// Root is the directory of the daemon; the other paths are relative to it.
	Root string
	// Loader is the dynamic loader that runs Program; Libraries lists the
	// directories that it searches.
	Loader    string
	Libraries []string
	Program   string
	// Version is the version of the Debian package.
	Version string
}

const (
	// program is the path of adbd in the Debian package.
	program = "usr/lib/android-sdk/platform-tools/adbd"
	// stamp is the file that is written last: a directory that contains it is
	// complete.
	stamp = "version"
)

// Folder returns the directory in which `make adbd` stores the daemon; it is in
// the user's cache and shared by all clones.
func Folder() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "leakgate", "adbd"), err
}

// Unpacked returns the daemon in a directory that Fetch filled. If the
// directory contains no daemon, the error wraps fs.ErrNotExist.
func Unpacked(dir string) (Daemon, error) {
	version, err := os.ReadFile(filepath.Join(dir, stamp))
	if err != nil {
		return Daemon{}, fmt.Errorf("find adbd: %w", err)
	}
	d, err := find(dir)
	if err != nil {
		return Daemon{}, fmt.Errorf("find adbd: %w", err)
	}
	d.Version = strings.TrimSpace(string(version))
	return d, nil
}

func find(dir string) (Daemon, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return Daemon{}, err
	}
	if _, err := os.Stat(filepath.Join(root, program)); err != nil {
		return Daemon{}, err
	}
	// The name of the loader depends on the machine's architecture.
	loaders, err := filepath.Glob(filepath.Join(root, "usr/lib/*/ld-linux*.so.*"))
	if err != nil || len(loaders) == 0 {
		return Daemon{}, errors.Join(err, fmt.Errorf("find loader in %s: %w", dir, fs.ErrNotExist))
	}
	loader, err := filepath.Rel(root, loaders[0])
	if err != nil {
		return Daemon{}, err
	}
	libraries := filepath.Dir(loader)
	return Daemon{
		Root: root, Loader: loader, Program: program,
		Libraries: []string{libraries, filepath.Join(libraries, "android")},
	}, nil
}

// Command returns the command that starts the daemon; at is the path of the
// daemon's directory.
func (d Daemon) Command(at string) []string {
	paths := make([]string, len(d.Libraries))
	for i, dir := range d.Libraries {
		paths[i] = filepath.Join(at, dir)
	}
	return []string{
		filepath.Join(at, d.Loader), "--library-path", strings.Join(paths, ":"), filepath.Join(at, d.Program),
	}
}

// check makes the loader resolve every library without starting the program.
func (d Daemon) check(ctx context.Context) error {
	argv := d.Command(d.Root)
	out, err := exec.CommandContext(ctx, argv[0], append([]string{"--list"}, argv[1:]...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("load adbd: %w: %s", err, lastLine(out))
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "not found") {
			return fmt.Errorf("load adbd: %s", strings.TrimSpace(line))
		}
	}
	return nil
}
