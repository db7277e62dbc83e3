package procfs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/leakgate/leakgate/internal/capture/field"
	"github.com/leakgate/leakgate/internal/known"
)

const (
	maxLine = 64 << 10 // bytes in a line of smaps; a path has at most 4096
	maxName = 4096
)

// Mapping is one virtual memory area of smaps.
type Mapping struct {
	Start, End uint64
	// Perms is rwxp, with - for each permission that is missing, and s instead
	// of p for a shared mapping.
	Perms         [4]byte
	Offset, Inode uint64
	// Name is a path, a pseudo-name such as [anon:libc_malloc], or empty. It is
	// valid only until the callback returns.
	Name []byte
	// Size is the length in kB, as printed.
	Size known.Int
	Usage
}

// ParseSmaps returns the sums of the values of all mappings in /proc/PID/smaps.
// It also accepts the output of a filter on the device (`grep -E
// '^(Pss|SwapPss):'`); the number of mappings is then unknown.
//
// The error is ErrEmpty, ErrFormat, or an error of r.
func ParseSmaps(r io.Reader) (Memory, error) { return ScanSmaps(r, nil) }

// ScanSmaps does the same as ParseSmaps, and also passes each complete mapping
// to the callback, in the order of the input. The same Mapping is reused for
// the next one, so no memory is allocated per mapping. An error from the
// callback ends the scan and is returned.
//
// Truncated is set if the input is visibly truncated: the last mapping has
// fewer lines than the first, a newline is missing, or there is an error
// message at the end. In that case, the sums and the number of mappings are
// unknown, and the truncated mapping is not passed on. Truncation exactly
// between two mappings is not visible.
func ScanSmaps(r io.Reader, each func(*Mapping) error) (Memory, error) {
	s := smapsScan{each: each}
	if err := scanLines(r, s.line); err != nil {
		return Memory{}, fmt.Errorf("read smaps: %w", err)
	}
	return s.end()
}

// smapsScan holds the sums and one mapping, so its size does not depend on the
// length of the input.
type smapsScan struct {
	each func(*Mapping) error

	cur     Mapping
	name    [maxName]byte
	got     values
	gotBad  [numFields]bool
	open    bool // cur has a header
	ended   bool // cur contains the last key of the first mapping
	started int  // line of cur's header

	sum      [numFields]int64
	seen     [numFields]int64 // mappings (filtered: lines) with the field
	bad      [numFields]bool
	mappings int64
	loose    int64 // fields before any header

	lastKey  []byte // last key of the first mapping, as far as it has been read
	first    []byte // the first unrecognized line, for the error
	stray    bool   // the last line does not belong to smaps
	cut      bool   // the last line has no line feed
	headless bool   // fields precede the first header
	warnings field.Warnings
}

func (s *smapsScan) line(n int, line []byte, whole bool) error {
	// If the final newline is missing, later lines may be missing too.
	s.cut = s.cut || !whole
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	if s.first == nil {
		s.first = bytes.Clone(field.Quotable(line))
	}
	key, rest, ok := keyOf(line)
	if ok {
		s.stray = false
		s.field(n, key, rest, whole)
		return nil
	}
	var next Mapping
	if !parseHeader(line, &next) {
		s.stray = true
		if whole {
			s.warnings.Add(n, "line", line, "neither a mapping nor a field")
		}
		return nil
	}
	s.stray = false
	if s.open {
		if err := s.finish(); err != nil {
			return err
		}
	} else if s.loose > 0 {
		s.headless = true
	}
	// The line is in the reader's buffer, so the name is copied.
	next.Name = s.name[:copy(s.name[:], next.Name)]
	s.cur, s.open, s.ended, s.started = next, true, false, n
	s.got, s.gotBad = values{}, [numFields]bool{}
	return nil
}

func (s *smapsScan) field(n int, key, rest []byte, whole bool) {
	if s.open {
		if s.mappings == 0 {
			s.lastKey = append(s.lastKey[:0], key...)
		} else if bytes.Equal(key, s.lastKey) {
			s.ended = true
		}
	}
	f, ok := fieldOf(key)
	if !ok {
		return
	}
	kb, ok := kiloBytes(rest)
	if !ok && !whole {
		return
	}
	if !ok {
		s.warnings.Add(n, fieldNames[f], rest, "not a number of kB")
	}
	if !s.open {
		s.loose++
		s.count(f, kb, ok)
		return
	}
	if s.got[f].Known || s.gotBad[f] {
		s.warnings.Add(n, fieldNames[f], rest, "duplicate in one mapping")
		s.got[f], s.gotBad[f] = known.Int{}, true
		return
	}
	s.got[f], s.gotBad[f] = known.Int{N: kb, Known: ok}, !ok
}

func (s *smapsScan) count(f kind, kb int64, ok bool) {
	s.seen[f]++
	total, fits := add(s.sum[f], kb)
	if !ok || !fits {
		s.bad[f] = true
		return
	}
	s.sum[f] = total
}

// finish adds the current mapping, which must be complete, to the sums and
// passes it to the callback.
func (s *smapsScan) finish() error {
	s.mappings++
	for f := range numFields {
		if s.got[f].Known || s.gotBad[f] {
			s.count(f, s.got[f].N, s.got[f].Known)
		}
	}
	s.open = false
	if s.each == nil {
		return nil
	}
	s.cur.Size, s.cur.Usage = s.got[size], s.got.usage()
	return s.each(&s.cur)
}

// whole reports whether the current mapping has all its lines. In the output of
// one kernel, all mappings have the same lines in the same order
// (fs/proc/task_mmu.c, show_smap), so each of them ends with the line that ends
// the first mapping. The first mapping itself ends with VmFlags. (Before Linux
// 3.8, it ends with Locked, but no process has only one mapping, so a rule for
// this is not needed.)
func (s *smapsScan) whole() bool {
	if s.mappings > 0 {
		return s.ended
	}
	return string(s.lastKey) == "VmFlags"
}

func (s *smapsScan) end() (Memory, error) {
	if s.mappings == 0 && !s.open && s.loose == 0 {
		return Memory{}, formatError("smaps", s.first)
	}
	m := Memory{Truncated: s.stray || s.cut || s.headless}
	if s.open {
		if s.whole() {
			// An incomplete line after the last line of a mapping is part of
			// the next mapping.
			if err := s.finish(); err != nil {
				return Memory{}, fmt.Errorf("read smaps: %w", err)
			}
		} else {
			m.Truncated = true
			s.warnings.Add(s.started, "mapping", s.cur.Name, "truncated: lines are missing")
		}
	}
	want := s.mappings
	if s.mappings == 0 {
		want = s.evenLines(&m)
	}
	if m.Truncated {
		m.Warnings = append([]error{
			fmt.Errorf("text is truncated after %d complete mappings with %d kB Pss: no sums", s.mappings, s.sum[pss]),
		}, s.warnings.All()...)
		return m, nil
	}
	if s.mappings > 0 {
		m.Mappings = known.Of(s.mappings)
	}
	m.Usage = s.sums(want)
	m.Warnings = s.warnings.All()
	return m, nil
}

// evenLines checks filtered lines: each mapping has one line for each selected
// field, so the numbers of lines are equal unless the input was truncated.
func (s *smapsScan) evenLines(m *Memory) (want int64) {
	for _, n := range s.seen {
		want = max(want, n)
	}
	for f, n := range s.seen {
		if n != 0 && n != want {
			m.Truncated = true
			s.warnings.Add(0, fieldNames[f], nil, fmt.Sprintf("found in %d lines, but another field in %d", n, want))
		}
	}
	return want
}

func (s *smapsScan) sums(want int64) Usage {
	var total values
	for f := range numFields {
		switch {
		case s.seen[f] == 0 || s.bad[f]:
		case s.seen[f] != want:
			s.warnings.Add(0, fieldNames[f], nil,
				fmt.Sprintf("present in only %d of %d mappings: no sum", s.seen[f], want))
		default:
			total[f] = known.Of(s.sum[f])
		}
	}
	return total.usage()
}

func isHeader(line []byte) bool {
	var m Mapping
	return parseHeader(line, &m)
}

// parseHeader parses "12c00000-13440000 rw-p 00000000 00:00 0 [anon:x]". A name
// may contain spaces and "(deleted)"; the kernel writes a newline in a name as
// \012.
func parseHeader(line []byte, m *Mapping) bool {
	var ok bool
	if m.Start, line, ok = hexNumber(line); !ok || len(line) == 0 || line[0] != '-' {
		return false
	}
	if m.End, line, ok = hexNumber(line[1:]); !ok || m.End < m.Start || len(line) < 6 || line[0] != ' ' ||
		line[5] != ' ' {
		return false
	}
	copy(m.Perms[:], line[1:5])
	if !isPerms(m.Perms) {
		return false
	}
	if m.Offset, line, ok = hexNumber(line[6:]); !ok || len(line) == 0 {
		return false
	}
	device, line, closed := word(line)
	if !closed || bytes.IndexByte(device, ':') < 0 {
		return false
	}
	inode, line, _ := word(line)
	n, ok := number(inode)
	if !ok {
		return false
	}
	m.Inode = uint64(n)
	m.Name = bytes.TrimLeft(line, " \t")
	return true
}

func isPerms(p [4]byte) bool {
	return (p[0] == 'r' || p[0] == '-') && (p[1] == 'w' || p[1] == '-') &&
		(p[2] == 'x' || p[2] == '-') && (p[3] == 'p' || p[3] == 's')
}

func hexNumber(text []byte) (n uint64, rest []byte, ok bool) {
	i := 0
	for ; i < len(text); i++ {
		c := text[i]
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | uint64(c-'a'+10)
		default:
			return n, text[i:], i > 0 && i <= 16
		}
	}
	return n, nil, i > 0 && i <= 16
}

// scanLines passes each line, without its terminator, to f; it truncates lines
// that are longer than maxLine. whole is false for a last line that has no
// terminator.
func scanLines(r io.Reader, f func(n int, line []byte, whole bool) error) error {
	in := bufio.NewReaderSize(r, maxLine)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !long && err != io.EOF {
			return err
		}
		if len(line) == 0 {
			return nil
		}
		text, whole := bytes.CutSuffix(line, []byte("\n"))
		if ferr := f(n, bytes.TrimRight(text, "\r"), whole || long); ferr != nil {
			return ferr
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
