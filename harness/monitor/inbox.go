package monitor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// inbox is how another process puts a mark into a run that goes on: a folder in
// the run directory, one file a mark, taken and removed by the run. Files work
// the same on every system and need no port.
type inbox struct{ dir string }

// inboxName is the folder's name; it is there only while the run goes on. It also
// holds the reserve.
const inboxName = ".live"

// reserveBytes are kept free on the disk, so that run.json can be written on one
// that is full: with 100 processes it stays below.
const reserveBytes = 2 << 20

const (
	inboxPoll = 200 * time.Millisecond
	// inboxScan is how often the folder is read although it looks unchanged: two
	// changes within one tick of the file system's clock look like one.
	inboxScan = 2 * time.Second
	// maxMark bounds one mark's text, in characters.
	maxMark = 500
)

func openInbox(run string) (*inbox, error) {
	dir := filepath.Join(run, inboxName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create inbox: %w", err)
	}
	b := &inbox{dir}
	if err := os.WriteFile(filepath.Join(dir, "reserve"), make([]byte, reserveBytes), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("reserve %d MB for the end of the run: %w", reserveBytes>>20, err), b.close())
	}
	return b, nil
}

func (b *inbox) close() error { return os.RemoveAll(b.dir) }

// watch hands over marks until ctx ends.
func (b *inbox) watch(ctx context.Context, mark func(device, text string)) {
	poll := time.NewTicker(inboxPoll)
	defer poll.Stop()
	var seen time.Time
	left := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			b.take(mark)
			return
		case <-poll.C:
		}
		left -= inboxPoll
		changed := seen
		if info, err := os.Stat(b.dir); err == nil {
			changed = info.ModTime()
		}
		if changed.Equal(seen) && left > 0 {
			continue
		}
		seen, left = changed, inboxScan
		b.take(mark)
	}
}

func (b *inbox) take(mark func(device, text string)) {
	entries, err := os.ReadDir(b.dir) // in the order of their names
	if err != nil {
		return
	}
	for _, e := range entries {
		name := filepath.Join(b.dir, e.Name())
		if filepath.Ext(name) != ".mark" {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil || os.Remove(name) != nil {
			continue
		}
		mark("", cleanMark(string(text)))
	}
}

// cleanMark returns a mark as one printable line of at most maxMark characters.
func cleanMark(mark string) string { return strings.TrimSpace(text.Head(mark, maxMark)) }

// errNoRun is a directory in which no run is in progress.
var errNoRun = errors.New("no run in progress in that directory")

// SendMark puts a mark into the run that goes on in dir and waits until it is
// taken.
func SendMark(ctx context.Context, dir, mark string) error {
	mark = cleanMark(mark)
	if mark == "" {
		return errors.New("send mark: the text is empty")
	}
	box := filepath.Join(dir, inboxName)
	if _, err := os.Stat(box); err != nil {
		return fmt.Errorf("send mark to %s: %w", dir, errNoRun)
	}
	path := filepath.Join(box, fmt.Sprintf("%d-%d.mark", time.Now().UnixNano(), os.Getpid()))
	if err := record.WriteWhole(path, []byte(mark)); err != nil {
		return fmt.Errorf("send mark to %s: %w", dir, err)
	}
	for {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("send mark to %s: the run does not take it; was it killed? %w", dir, errNoRun), os.Remove(path))
		case <-time.After(inboxPoll / 2):
		}
	}
}
