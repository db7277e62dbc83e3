package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// classes compiles a Java program of this directory, unless the cache has it,
// and returns the directory of its classes.
func (c cache) classes(ctx context.Context, class, classPath string) (string, error) {
	text, hash, err := source(class)
	if err != nil {
		return "", err
	}
	dir := c.path("classes", class+"-"+hash)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	javac, err := find("javac")
	if err != nil {
		return "", err
	}
	part, err := c.scratch()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	file := filepath.Join(part, class+".java")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return "", fmt.Errorf("write program: %w", err)
	}
	if _, err := output(ctx, part, javac, "-d", "out", "-cp", classPath, file); err != nil {
		return "", fmt.Errorf("compile %s: %w", class, err)
	}
	return dir, c.keep(filepath.Join(part, "out"), dir)
}

// keep moves complete files into the cache.
func (c cache) keep(part, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	if err := os.Rename(part, dir); err != nil {
		return fmt.Errorf("keep %s: %w", filepath.Base(dir), err)
	}
	return nil
}
