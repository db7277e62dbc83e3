package main

import (
	"bytes"
	"fmt"
	"os"
)

// The markers enclose the generated part of a page.
const (
	fromMarker = "<!-- bench-heap -->\n"
	toMarker   = "<!-- /bench-heap -->"
)

// replaced replaces the lines between the markers of a page. Each marker must
// occur exactly once.
func replaced(page []byte, text string) ([]byte, error) {
	for _, m := range []string{fromMarker, toMarker} {
		if n := bytes.Count(page, []byte(m)); n != 1 {
			return nil, fmt.Errorf("find marker %s: it occurs %d times, not once", bytes.TrimSpace([]byte(m)), n)
		}
	}
	head, rest, _ := bytes.Cut(page, []byte(fromMarker))
	_, foot, ok := bytes.Cut(rest, []byte(toMarker))
	if !ok {
		return nil, fmt.Errorf("find marker %s: it is before %s", toMarker, bytes.TrimSpace([]byte(fromMarker)))
	}
	return bytes.Join([][]byte{head, []byte(fromMarker), []byte(text), []byte(toMarker), foot}, nil), nil
}

// writePage replaces the tables of a page.
func writePage(path, text string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("write tables: %w", err)
	}
	if page, err = replaced(page, text); err != nil {
		return fmt.Errorf("write tables into %s: %w", path, err)
	}
	return replaceFile(path, page)
}
