package procfs

import (
	"bytes"

	"github.com/leakgate/leakgate/internal/capture/field"
	"github.com/leakgate/leakgate/internal/known"
)

// Limits holds the rows of /proc/PID/limits that are relevant for an app. The
// shell may read the file on every build of Android.
type Limits struct {
	OpenFiles Limit
	// Processes is the limit on the total number of threads in all processes of
	// the uid.
	Processes Limit
	// AddressSpace is in bytes.
	AddressSpace Limit
	// Truncated reports whether the input ends in the middle of a line.
	Truncated bool
	Warnings  []error
}

// Limit is the soft limit of one row, which is the effective limit.
type Limit struct {
	Soft known.Int
	// Unlimited reports whether the row contains "unlimited" instead of a
	// number; Soft is then unknown.
	Unlimited bool
}

const maxLimits = 16 << 10

// ParseLimits parses /proc/PID/limits, or the lines of it that grep selected.
// The error is ErrEmpty or ErrFormat if the input contains no such line.
func ParseLimits(text []byte) (Limits, error) {
	var (
		in    = lines{rest: text[:min(len(text), maxLimits)]}
		l     = Limits{Truncated: len(text) > maxLimits}
		d     field.Warnings
		found bool
	)
	for {
		line, whole, ok := in.next()
		if !ok {
			break
		}
		l.Truncated = l.Truncated || !whole
		found = found || bytes.HasPrefix(line, []byte("Max ")) || bytes.HasPrefix(line, []byte("Limit "))
		to, name, rest := l.slot(line)
		if to == nil {
			continue
		}
		// The columns are padded (fs/proc/base.c, proc_pid_limits), so a
		// complete value is followed by a space.
		w, _, closed := word(rest)
		if !closed {
			d.Add(in.n, name, w, "cut")
			continue
		}
		if string(w) == "unlimited" {
			*to = Limit{Unlimited: true}
			continue
		}
		n, ok := number(w)
		if !ok {
			d.Add(in.n, name, w, "not a number")
			continue
		}
		*to = Limit{Soft: known.Of(n)}
	}
	if !found {
		return Limits{}, formatError("limits", text)
	}
	l.Warnings = d.All()
	return l, nil
}

// slot returns the limit that a line describes, the name of the row, and the
// rest of the line after this name. The limit is nil for other rows.
func (l *Limits) slot(line []byte) (to *Limit, name string, rest []byte) {
	for _, row := range [...]struct {
		name string
		to   *Limit
	}{{"Max open files", &l.OpenFiles}, {"Max processes", &l.Processes}, {"Max address space", &l.AddressSpace}} {
		rest, ok := bytes.CutPrefix(line, []byte(row.name))
		if ok && len(rest) > 0 && rest[0] == ' ' {
			return row.to, row.name, rest
		}
	}
	return nil, "", nil
}
