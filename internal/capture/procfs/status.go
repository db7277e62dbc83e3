package procfs

import (
	"bytes"

	"github.com/leakgate/leakgate/internal/capture/field"
	"github.com/leakgate/leakgate/internal/known"
)

// Status holds the contents of /proc/PID/status. The shell may read the file on
// every build of Android, so memory can be measured as RssAnon + VmSwap if
// access to smaps is denied. Sizes are in kB; RssAnon, RssFile and RssShmem
// have existed since Linux 4.5. Kernel threads and zombies do not have Vm
// lines.
type Status struct {
	Name     field.Text `json:"name"`
	PID      known.Int  `json:"pid"`
	UID      known.Int  `json:"uid"` // the real uid
	Threads  known.Int  `json:"threads"`
	VmSize   known.Int  `json:"vm_size_kb"`
	VmRSS    known.Int  `json:"vm_rss_kb"`
	RssAnon  known.Int  `json:"rss_anon_kb"`
	RssFile  known.Int  `json:"rss_file_kb"`
	RssShmem known.Int  `json:"rss_shmem_kb"`
	VmSwap   known.Int  `json:"vm_swap_kb"`
	// Truncated reports whether the input ends in the middle of a line.
	Truncated bool    `json:"-"`
	Warnings  []error `json:"-"`
}

const maxStatus = 64 << 10

// ParseStatus parses /proc/PID/status. The error is ErrEmpty or ErrFormat if
// the input does not contain any line of this file.
func ParseStatus(text []byte) (Status, error) {
	var (
		in    = lines{rest: text[:min(len(text), maxStatus)]}
		s     = Status{Truncated: len(text) > maxStatus}
		d     field.Warnings
		found bool
	)
	for {
		line, whole, ok := in.next()
		if !ok {
			break
		}
		key, rest, ok := keyOf(line)
		if !ok {
			s.Truncated = s.Truncated || !whole
			continue
		}
		rest = bytes.TrimSpace(rest)
		found = found || isStatusKey(key)
		if string(key) == "Name" {
			if !whole {
				s.Truncated = true
				continue
			}
			s.Name = field.Text(rest[:min(len(rest), 64)])
			continue
		}
		to, kb := s.slot(key)
		if to == nil {
			continue
		}
		n, ok := statusValue(rest, kb, whole)
		switch {
		case ok:
			*to = known.Of(n)
		case !whole:
			s.Truncated = true
			d.Add(in.n, string(key), rest, "cut")
		default:
			d.Add(in.n, string(key), rest, "not a number")
		}
	}
	if !found {
		return Status{}, formatError("status", text)
	}
	s.Warnings = d.All()
	return s, nil
}

func statusValue(rest []byte, kb, whole bool) (int64, bool) {
	if kb {
		return kiloBytes(rest)
	}
	w, _, closed := word(rest)
	if !closed && !whole {
		return 0, false
	}
	return number(w)
}

func (s *Status) slot(key []byte) (to *known.Int, kb bool) {
	switch string(key) {
	case "Pid":
		return &s.PID, false
	case "Uid":
		return &s.UID, false
	case "Threads":
		return &s.Threads, false
	case "VmSize":
		return &s.VmSize, true
	case "VmRSS":
		return &s.VmRSS, true
	case "RssAnon":
		return &s.RssAnon, true
	case "RssFile":
		return &s.RssFile, true
	case "RssShmem":
		return &s.RssShmem, true
	case "VmSwap":
		return &s.VmSwap, true
	}
	return nil, false
}

// isStatusKey recognizes a status file by keys that do not occur in smaps and
// other files.
func isStatusKey(key []byte) bool {
	switch string(key) {
	case "State", "Tgid", "Pid", "PPid", "Uid", "Threads", "VmSize", "VmRSS", "RssAnon", "VmSwap":
		return true
	}
	return false
}
