package monitor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/reporters"
)

// inbox is how another process puts a mark into a run that goes on: a folder in
// the run directory, one file a mark, taken and removed by the run. Files work
// the same on every system and need no port.
type inbox struct{ dir string }

// inboxName is the folder's name; it is there only while the run goes on.
const inboxName = ".live"

const (
	inboxPoll = 100 * time.Millisecond
	// maxMark bounds one mark's text, in bytes.
	maxMark = 500
)

func openInbox(run string) (*inbox, error) {
	dir := filepath.Join(run, inboxName)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create inbox: %w", err)
	}
	return &inbox{dir}, nil
}

func (b *inbox) close() error { return os.RemoveAll(b.dir) }

// watch hands over marks until ctx ends.
func (b *inbox) watch(ctx context.Context, mark func(device, text string)) {
	poll := time.NewTicker(inboxPoll)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
			b.take(mark)
		}
	}
}

func (b *inbox) take(mark func(device, text string)) {
	names, err := filepath.Glob(filepath.Join(b.dir, "*.mark"))
	if err != nil {
		return
	}
	slices.Sort(names)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil || os.Remove(name) != nil {
			continue
		}
		mark("", cleanMark(string(text)))
	}
}

// cleanMark makes one printable line of at most maxMark bytes.
func cleanMark(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > maxMark {
		text = strings.ToValidUTF8(text[:maxMark], "")
	}
	return strings.TrimSpace(text)
}

// ErrNoRun is a directory in which no run goes on.
var ErrNoRun = errors.New("no run goes on there")

// SendMark puts a mark into the run that goes on in dir and waits until it is
// taken.
func SendMark(ctx context.Context, dir, text string) error {
	text = cleanMark(text)
	if text == "" {
		return errors.New("send mark: the text is empty")
	}
	box := filepath.Join(dir, inboxName)
	if _, err := os.Stat(box); err != nil {
		return fmt.Errorf("send mark to %s: %w", dir, ErrNoRun)
	}
	path := filepath.Join(box, fmt.Sprintf("%d-%d.mark", time.Now().UnixNano(), os.Getpid()))
	if err := reporters.WriteWhole(path, []byte(text)); err != nil {
		return fmt.Errorf("send mark to %s: %w", dir, err)
	}
	for {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("send mark to %s: the run does not take it; was it killed? %w", dir, ErrNoRun), os.Remove(path))
		case <-time.After(inboxPoll / 2):
		}
	}
}
