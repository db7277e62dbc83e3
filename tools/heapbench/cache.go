package main

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed java/*.java
var sources embed.FS

// cache is the directory where dumps and programs are kept between runs.
type cache string

func (c cache) path(parts ...string) string {
	return filepath.Join(append([]string{string(c)}, parts...)...)
}

// folder creates a directory of the cache.
func (c cache) folder(parts ...string) (string, error) {
	dir := c.path(parts...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make folder: %w", err)
	}
	return dir, nil
}

// scratch creates a directory for one run of this program.
func (c cache) scratch() (string, error) {
	dir, err := c.folder("scratch")
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp(dir, ""); err != nil {
		return "", fmt.Errorf("make folder: %w", err)
	}
	return dir, nil
}

// source returns the source code of a Java program, and its hash.
func source(class string) (text []byte, hash string, err error) {
	if text, err = sources.ReadFile("java/" + class + ".java"); err != nil {
		return nil, "", fmt.Errorf("read program: %w", err)
	}
	sum := sha256.Sum256(text)
	return text, hex.EncodeToString(sum[:8]), nil
}
