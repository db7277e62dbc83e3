package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/text"
)

// notADirectory returns an error that identifies a file that was given instead
// of a run directory. It returns nil for a directory and for a path that does
// not exist.
func notADirectory(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return nil
	}
	err = fmt.Errorf("open run: %s is a file, not a run directory", text.Printable(path))
	if what := identify(path); what != "" {
		return fmt.Errorf("%w: it is %s", err, what)
	}
	return err
}

// identify describes the file at path, or returns "" if its type is unknown.
func identify(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() { // a pipe would block until it has a writer
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head, err := bufio.NewReaderSize(f, spool.IdentifySize).Peek(spool.IdentifySize)
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	if len(head) == 0 {
		return "empty"
	}
	return spool.Identify(head)
}
