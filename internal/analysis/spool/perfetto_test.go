package spool_test

import (
	"bytes"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/spool"
)

func TestIsPerfetto(t *testing.T) {
	// A packet with a timestamp (8), a sequence (10) and a message (6).
	packet := []byte{0x0a, 11, 8 << 3, 0x80, 0x01, 10 << 3, 1, 6<<3 | 2, 4, 1, 2, 3, 4}
	for name, c := range map[string]struct {
		data []byte
		want bool
	}{
		"trace":                     {bytes.Repeat(packet, 40), true},
		"truncated trace":           {bytes.Repeat(packet, 40)[:200], true},
		"no data":                   {nil, false},
		"heap dump":                 {[]byte("JAVA PROFILE 1.0.3\x00\x00\x00\x00\x04"), false},
		"text":                      {[]byte("\nsome lines\nof text\n"), false},
		"length beyond the end":     {[]byte{0x0a, 0xff, 0xff, 0xff, 0x7f, 1}, false},
		"field 0":                   {[]byte{0x0a, 2, 0, 1}, false},
		"invalid wire type":         {[]byte{0x0a, 2, 8<<3 | 7, 1}, false},
		"other data after a packet": {append(bytes.Clone(packet), "JAVA"...), false},
		"empty message":             {[]byte{0x0a, 0, 0x0a, 0}, true},
	} {
		if got := spool.IsPerfetto(bytes.NewReader(c.data), int64(len(c.data))); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
