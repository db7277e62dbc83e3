package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/leakgate/leakgate/internal/jars"
)

// errUnwanted is the reason for missing peers if the user disabled them.
var errUnwanted = errors.New("skipped by -peers none")

// crate finds a peer that is a package on crates.io, in the directory that the
// user names or in the cache. If it is missing, it is installed in the cache.
func crate(name, version string) finder {
	return func(ctx context.Context, c cache, o options, log io.Writer) ([]string, error) {
		if o.peers == "none" {
			return nil, errUnwanted
		}
		file := name
		if runtime.GOOS == "windows" {
			file += ".exe"
		}
		if o.peers != "" {
			path, err := filepath.Abs(filepath.Join(o.peers, file))
			if err != nil {
				return nil, fmt.Errorf("use -peers: %w", err)
			}
			if _, err := os.Stat(path); err == nil {
				return []string{path}, isVersion(ctx, path, version)
			}
		}
		path := c.path("peers", "bin", file)
		if isVersion(ctx, path, version) == nil {
			return []string{path}, nil
		}
		cargo, err := find("cargo")
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(log, "heapbench: installing %s %s\n", name, version)
		if _, err := output(ctx, "", cargo, "install", "--locked", "--root", c.path("peers"), "--version", version,
			name); err != nil {
			return nil, fmt.Errorf("install %s %s: %w", name, version, err)
		}
		return []string{path}, isVersion(ctx, path, version)
	}
}

// isVersion checks the version that a program reports.
func isVersion(ctx context.Context, path, version string) error {
	out, err := output(ctx, "", path, "--version")
	if err != nil {
		return err
	}
	if words := strings.Fields(out); len(words) < 2 || words[1] != version {
		return fmt.Errorf("use %s: it reports %q, not version %s", filepath.Base(path), strings.TrimSpace(out), version)
	}
	return nil
}

// findShark returns the Java program that runs Shark.
func findShark(ctx context.Context, c cache, o options, log io.Writer) ([]string, error) {
	if o.peers == "none" {
		return nil, errUnwanted
	}
	java, err := find("java")
	if err != nil {
		return nil, err
	}
	dir := c.path("shark-" + jars.Shark.Version)
	classPath, err := jars.Shark.Installed(dir)
	if err != nil {
		fmt.Fprintf(log, "heapbench: downloading Shark %s\n", jars.Shark.Version)
		if classPath, err = jars.Shark.Fetch(ctx, dir); err != nil {
			return nil, err
		}
	}
	classes, err := c.classes(ctx, "SharkRunner", classPath)
	if err != nil {
		return nil, err
	}
	return []string{java, "-cp", classes + string(filepath.ListSeparator) + classPath, "SharkRunner"}, nil
}
