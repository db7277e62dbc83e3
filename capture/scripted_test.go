package capture

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
)

// scripted is a device whose shell is a function.
type scripted struct {
	mu       sync.Mutex
	commands []string
	shell    func(ctx context.Context, command string, stdout, stderr io.Writer) (int, error)
}

func (s *scripted) Serial() string { return "scripted" }

func (s *scripted) Shell(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
	s.mu.Lock()
	s.commands = append(s.commands, command)
	s.mu.Unlock()
	return s.shell(ctx, command, stdout, stderr)
}

func (s *scripted) Pull(context.Context, string, io.Writer) (int64, error) {
	return 0, errors.ErrUnsupported
}

func (s *scripted) Push(context.Context, io.Reader, string, fs.FileMode) error {
	return errors.ErrUnsupported
}

// bytesOf is the memory that a reading holds, in bytes.
func bytesOf(r Reading) int64 {
	if r.Level.Source == Status {
		return (r.RSSAnon.N + r.Swap.N) << 10
	}
	return (r.PSS.N + r.SwapPSS.N) << 10
}
