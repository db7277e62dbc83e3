// Package retired recognizes files written by a leakgate version from before
// the first release. Some keys had other names in these files. Decoding would
// silently skip such keys, so the files are rejected.
package retired

import (
	"bytes"
	"errors"
	"fmt"
)

// Err is the error that all errors from [Check] wrap.
var Err = errors.New("files written before leakgate's first release are no longer read: record them again")

// Check returns an error that names the first of the given keys that occurs in
// raw, which is JSON as written by leakgate. A key whose value is a list is
// ignored, because maps whose keys are class names have lists as values.
func Check(raw []byte, keys ...string) error {
	for _, key := range keys {
		if has(raw, []byte(`"`+key+`":`)) {
			return fmt.Errorf("unknown key %q: %w", key, Err)
		}
	}
	return nil
}

// has reports whether the key occurs outside of strings: inside a string its
// quotes would be escaped.
func has(raw, key []byte) bool {
	for {
		at := bytes.Index(raw, key)
		if at < 0 {
			return false
		}
		escaped := at > 0 && raw[at-1] == '\\'
		raw = raw[at+len(key):]
		value := bytes.TrimLeft(raw, " ")
		if !escaped && len(value) > 0 && value[0] != '[' {
			return true
		}
	}
}
