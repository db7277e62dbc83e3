package main

import (
	"bytes"
	"fmt"
)

// pageColumns is the maximum line width of the pages in docs.
const pageColumns = 120

// markers returns the lines that enclose the named text of a page.
func markers(name string) (from, to []byte) {
	return fmt.Appendf(nil, "<!-- calibrate:%s -->\n", name), fmt.Appendf(nil, "<!-- /calibrate:%s -->", name)
}

// replace replaces the text between the markers of a page. Each marker must
// occur once.
func replace(page []byte, name, text string) ([]byte, error) {
	from, to := markers(name)
	for _, m := range [][]byte{from, to} {
		if n := bytes.Count(page, m); n != 1 {
			return nil, fmt.Errorf("find marker %s: found %d times, want once", bytes.TrimSpace(m), n)
		}
	}
	head, rest, _ := bytes.Cut(page, from)
	_, tail, ok := bytes.Cut(rest, to)
	if !ok {
		return nil, fmt.Errorf("find marker %s: it is before %s", to, bytes.TrimSpace(from))
	}
	return bytes.Join([][]byte{head, from, []byte(text), to, tail}, nil), nil
}
