package replay

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// source is one recording that is read once, from its beginning to its end.
type source struct {
	name     string
	in       *bufio.Reader
	f        io.Closer
	size     int64 // 0 if unknown
	done     int64 // bytes read so far
	ctx      context.Context
	progress func(file string, share float64)
	raw      io.Reader
}

// readAhead is the number of bytes that are read from a source at a time.
const readAhead = 64 << 10

// openSource opens a file, the samples of a run directory, or "-" for stdin.
func openSource(ctx context.Context, name string, o Options) (*source, error) {
	s := &source{name: name, ctx: ctx, progress: o.Progress}
	if name == "-" {
		s.raw = o.Stdin
	} else if err := s.open(); err != nil {
		return nil, err
	}
	s.in = bufio.NewReaderSize(s, readAhead)
	return s, nil
}

func (s *source) open() error {
	path := s.name
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		path = filepath.Join(path, record.SamplesName)
		if info, err = os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("open recording: %s is not a run directory: it has no %s; name a file", s.name,
				record.SamplesName)
		}
	}
	if err != nil {
		return fmt.Errorf("open recording: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open recording: %w", err)
	}
	s.raw, s.f = f, f
	if info.Mode().IsRegular() {
		s.size = info.Size()
	}
	return nil
}

// Read implements io.Reader; it returns an error once the context is done.
func (s *source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.raw.Read(p)
	s.done += int64(n)
	if s.progress != nil && s.size > 0 {
		s.progress(s.name, float64(s.done)/float64(s.size))
	}
	return n, err
}

func (s *source) close() error {
	if s.f == nil {
		return nil
	}
	return s.f.Close()
}

// form is the format of a recording.
type form int

const (
	table form = iota
	lines
)

// form detects the format from the first bytes.
func (s *source) form() (form, error) {
	head, err := s.in.Peek(readAhead)
	if err != nil && !errors.Is(err, io.EOF) {
		return table, err
	}
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	first, _, _ := bytes.Cut(head, []byte("\n"))
	what := spool.Identify(head)
	switch {
	case len(head) == 0:
		return table, errors.New("it is empty; write a header such as t_s,pss_kb and then one row per sample")
	case text.IsUTF16(head):
		return table, text.ErrUTF16
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}) && !strings.HasPrefix(what, "a heap dump"):
		return table, fmt.Errorf("it is compressed; use gunzip -c %s | leakgate replay -", s.name)
	case bytes.Contains(first, []byte(record.SamplesSchema)), head[0] == '{' && what == "":
		return lines, nil
	case what != "" && !bytes.Contains(bytes.ToLower(first), []byte(timeColumn)):
		return table, fmt.Errorf("it is %s", what)
	}
	return table, nil
}
