package procfs

import (
	"bytes"

	"github.com/leakgate/leakgate/internal/capture/field"
	"github.com/leakgate/leakgate/internal/known"
)

// maxRollup is the maximum length of the input in bytes. A kernel prints only
// about 25 lines.
const maxRollup = 64 << 10

// ParseRollup parses /proc/PID/smaps_rollup (Linux 4.14 and later), complete or
// filtered on the device. Values that are present are valid even if the input
// was truncated; Truncated reports whether lines are missing.
//
// The error is ErrEmpty or ErrFormat if the input does not contain any values.
func ParseRollup(text []byte) (Memory, error) {
	var (
		all     = text[:min(len(text), maxRollup)]
		in      = lines{rest: all}
		got     values
		bad     [numFields]bool
		d       field.Warnings
		m       Memory
		header  bool
		sawLast bool
		found   bool
	)
	m.Truncated = len(text) > maxRollup
	for {
		line, whole, ok := in.next()
		if !ok {
			break
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		key, rest, ok := keyOf(line)
		if !ok {
			switch {
			case isHeader(line) && header:
				return Memory{}, formatError("smaps_rollup: more than one mapping", line)
			case isHeader(line):
				header = true
			case !whole:
				m.Truncated = true
			default:
				d.Add(in.n, "line", line, "neither a header nor a field")
			}
			continue
		}
		// Locked is the last of the lines that every kernel prints.
		sawLast = sawLast || string(key) == "Locked"
		f, ok := fieldOf(key)
		if !ok {
			continue
		}
		n, ok := kiloBytes(rest)
		switch {
		case !ok && !whole:
			m.Truncated = true
			d.Add(in.n, fieldNames[f], rest, "cut")
		case !ok:
			found, bad[f] = true, true
			d.Add(in.n, fieldNames[f], rest, "not a number of kB")
		case got[f].Known:
			bad[f] = true
			d.Add(in.n, fieldNames[f], rest, "duplicate")
		default:
			found = true
			got[f] = known.Of(n)
		}
	}
	if !found {
		return Memory{}, formatError("smaps_rollup", text)
	}
	for f := range got {
		if bad[f] {
			got[f] = known.Int{}
		}
	}
	m.Truncated = m.Truncated || header && !sawLast
	m.Usage, m.Warnings = got.usage(), d.All()
	return m, nil
}
