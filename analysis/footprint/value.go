package footprint

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Value is a number that a phone may not say. The zero Value is unknown.
type Value struct {
	N     int64
	Known bool
}

// Known is a number that a phone said.
func Known(n int64) Value { return Value{N: n, Known: true} }

// sane is unknown where the number is not from 0 to most.
func (v Value) sane(most int64) Value {
	if !v.Known || v.N < 0 || v.N > most {
		return Value{}
	}
	return v
}

const (
	// maxKB is a petabyte: no phone has it, and sums of it do not overflow.
	maxKB = 1 << 40
	// maxLines bounds a summary.
	maxLines = 12
)

// size is kB for people.
func size[N int64 | float64](kb N) string {
	if kb < 1024 && kb > -1024 {
		return fmt.Sprintf("%.0f kB", float64(kb))
	}
	return fmt.Sprintf("%.1f MB", float64(kb)/1024)
}

// signed is size with the sign of a change.
func signed[N int64 | float64](kb N) string {
	if kb > 0 {
		return "+" + size(kb)
	}
	return size(kb)
}

// unsure is a warning as a line of a summary.
func unsure(w error) string { return "not sure: " + w.Error() }

// printable returns at most the first n bytes of a name with a question mark for each
// character that hide replaces.
func printable(name string, n int) string {
	b := []byte(name[:min(len(name), n)])
	hide(&b)
	return string(b)
}

// hide puts a question mark for each character that a terminal might obey, that is not
// seen or that changes how others look. It works in place: mappings are many.
func hide(name *[]byte) (changed bool) {
	b, at := *name, 0
	for i := 0; i < len(b); {
		r, size := rune(b[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(b[i:])
		}
		if plain := r >= ' ' && r < 0x7f; plain || (r != utf8.RuneError && unicode.IsPrint(r) && !unicode.Is(unicode.M, r)) {
			at += copy(b[at:], b[i:i+size])
		} else {
			b[at] = '?'
			at, changed = at+1, true
		}
		i += size
	}
	*name = b[:at]
	return changed
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
