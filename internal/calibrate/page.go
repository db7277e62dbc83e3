package main

import (
	"bytes"
	"fmt"
)

// markers enclose what is written into a page by its name.
func markers(name string) (from, to []byte) {
	return fmt.Appendf(nil, "<!-- calibrate:%s -->\n", name), fmt.Appendf(nil, "<!-- /calibrate:%s -->", name)
}

// replace puts a text between the markers of a page. Each must be there once.
func replace(page []byte, name, text string) ([]byte, error) {
	from, to := markers(name)
	for _, m := range [][]byte{from, to} {
		if n := bytes.Count(page, m); n != 1 {
			return nil, fmt.Errorf("find marker %s: it is there %d times, not once", bytes.TrimSpace(m), n)
		}
	}
	head, rest, _ := bytes.Cut(page, from)
	_, tail, ok := bytes.Cut(rest, to)
	if !ok {
		return nil, fmt.Errorf("find marker %s: it is before %s", to, bytes.TrimSpace(from))
	}
	return bytes.Join([][]byte{head, from, []byte(text), to, tail}, nil), nil
}
