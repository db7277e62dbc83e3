package monitor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leakgate/leakgate/internal/hostfile"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// inbox is how another process puts a mark into a run that goes on: a folder in
// the run directory, one file a mark, taken and removed by the run. Files work
// the same on every system and need no port.
//
// A mark whose sender waits for its dumps is named ID.wait. The run renames it to ID.taken,
// whose time it keeps fresh, and writes ID.done when every process is dumped.
//
// The run directory may have been prepared by another account. The folder is made anew, for the owner
// alone, and nothing in it that is not a file is opened: a link would lead elsewhere, and a pipe would
// never end.
type inbox struct {
	// dir is its path; run and files are that of the run and of itself, kept open.
	dir        string
	run, files *os.Root
	// folder is that of files: its modification time is read five times a second.
	folder *os.File

	mu sync.Mutex
	// taken are the marks whose senders wait.
	taken map[string]bool
	stop  func()
}

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
	// inboxFresh is how often the run renews the time of a mark whose sender waits, and
	// inboxDead after how long without that a sender takes the run for killed: real time.
	inboxFresh = 2 * time.Second
	inboxDead  = 60 * time.Second
	// inboxTake is the real time within which a run takes a mark.
	inboxTake = 5 * time.Second
)

// The ends of the names of marks in an inbox.
const (
	markFile  = ".mark"
	waitFile  = ".wait"
	takenFile = ".taken"
	doneFile  = ".done"
)

func openInbox(run string) (*inbox, error) {
	b := &inbox{dir: filepath.Join(run, inboxName), taken: map[string]bool{}}
	if err := b.open(run); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	var fresh sync.WaitGroup
	b.stop = func() { stop(); fresh.Wait() }
	fresh.Go(func() { b.renew(ctx) })
	if err := b.writeNew("reserve", make([]byte, reserveBytes)); err != nil {
		return nil, errors.Join(fmt.Errorf("reserve %d MB for the end of the run: %w", reserveBytes>>20, err), b.close())
	}
	return b, nil
}

// open makes the folder in the directory of a run and opens it. What stands in its place is of
// no run: a run in progress has samples.ndjson, and that directory is refused.
func (b *inbox) open(run string) (err error) {
	if b.run, err = os.OpenRoot(run); err != nil {
		return fmt.Errorf("create inbox: %w", err)
	}
	if err = errors.Join(b.run.RemoveAll(inboxName), b.run.Mkdir(inboxName, 0o700)); err != nil {
		return errors.Join(fmt.Errorf("create inbox: %w", err), b.run.Close())
	}
	if b.files, err = b.run.OpenRoot(inboxName); err == nil {
		if b.folder, err = b.files.Open("."); err == nil {
			return nil
		}
		err = errors.Join(err, b.files.Close())
	}
	return errors.Join(fmt.Errorf("open inbox: %w", err), b.run.RemoveAll(inboxName), b.run.Close())
}

func (b *inbox) close() error {
	b.stop()
	return errors.Join(b.folder.Close(), b.files.Close(), b.run.RemoveAll(inboxName), b.run.Close())
}

// writeNew writes a file of a name that is free.
func (b *inbox) writeNew(name string, content []byte) error {
	f, err := b.files.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// maxMarkFile bounds what is read of a mark, in bytes: maxMark characters have at most four each.
const maxMarkFile = 4 * maxMark

// read reads the text of a mark.
func (b *inbox) read(file string) (string, error) {
	info, err := b.files.Lstat(file)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", errors.Join(fmt.Errorf("%s is no file", file), b.files.RemoveAll(file))
	}
	f, err := b.files.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxMarkFile))
	return cleanMark(string(text)), err
}

// renew keeps the marks fresh whose senders wait.
func (b *inbox) renew(ctx context.Context) {
	every := time.NewTicker(inboxFresh)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		b.mu.Lock()
		for id := range b.taken {
			now := time.Now()
			_ = b.files.Chtimes(id+takenFile, now, now) // one that is gone has an answer
		}
		b.mu.Unlock()
	}
}

// watch hands marks over until ctx ends. An answer is wanted where the sender waits.
func (b *inbox) watch(ctx context.Context, mark func(text string, answer func(markDumps) error)) {
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
		if info, err := b.folder.Stat(); err == nil {
			changed = info.ModTime()
		}
		if changed.Equal(seen) && left > 0 {
			continue
		}
		seen, left = changed, inboxScan
		b.take(mark)
	}
}

func (b *inbox) take(mark func(text string, answer func(markDumps) error)) {
	if _, err := b.folder.Seek(0, io.SeekStart); err != nil {
		return
	}
	names, err := b.folder.Readdirnames(-1)
	if err != nil {
		return
	}
	slices.Sort(names)
	for _, file := range names {
		end := filepath.Ext(file)
		if end != markFile && end != waitFile {
			continue
		}
		line, err := b.read(file)
		if err != nil {
			continue
		}
		switch id := strings.TrimSuffix(file, waitFile); {
		case end == markFile && b.files.Remove(file) == nil:
			mark(line, nil)
		case end == waitFile && b.files.Rename(file, id+takenFile) == nil:
			b.mu.Lock()
			b.taken[id] = true
			b.mu.Unlock()
			mark(line, func(d markDumps) error { return b.answer(id, d) })
		}
	}
}

// Answers to the sender of a mark begin with one of these lines, whose rest names the dumps that
// are missing.
const (
	answerDone = "done"
	answerNone = "no dump"
)

// answer reports to the sender of a mark that its dumps are done, and which are missing.
func (b *inbox) answer(id string, d markDumps) error {
	lines := []string{answerDone}
	if d.none {
		lines[0] = answerNone
	}
	lines = append(lines, d.missing...)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.taken, id)
	err := b.writeNew(id+".answer", []byte(strings.Join(lines, "\n")))
	if err == nil {
		err = b.files.Rename(id+".answer", id+doneFile)
	}
	if err != nil {
		return fmt.Errorf("answer mark: %w", err)
	}
	return nil
}

// cleanMark returns a mark as one printable line of at most maxMark characters.
func cleanMark(mark string) string { return strings.TrimSpace(text.Head(mark, maxMark)) }

// errNoRun is a directory in which no run is in progress.
var errNoRun = errors.New("no run in progress in that directory")

// errNoDump is a mark whose sender waited, at which no process was dumped.
var errNoDump = errors.New("no process was dumped")

// SendMark puts a mark into the run that goes on in dir and waits until it is taken. With
// wait it returns once every process has settled and is dumped, where the run dumps at
// marks, and says which dumps are missing. An error that comes with missing dumps means that
// the mark is in the record and no process was dumped; one without, that the run did not take
// the mark or did not answer.
func SendMark(ctx context.Context, dir, mark string, wait bool) (missing []string, err error) {
	mark = cleanMark(mark)
	if mark == "" {
		return nil, errors.New("send mark: the text is empty")
	}
	box := filepath.Join(dir, inboxName)
	if info, err := os.Lstat(box); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("send mark to %s: %w", dir, errNoRun)
	}
	id := filepath.Join(box, fmt.Sprintf("%d-%d", time.Now().UnixNano(), os.Getpid()))
	name := id + markFile
	if wait {
		name = id + waitFile
	}
	if err := record.WriteWhole(name, []byte(mark)); err != nil {
		return nil, fmt.Errorf("send mark to %s: %w", dir, err)
	}
	if err := taken(ctx, name); err != nil {
		if rerr := os.Remove(name); !errors.Is(rerr, os.ErrNotExist) {
			return nil, errors.Join(fmt.Errorf("send mark to %s: %w", dir, err), rerr)
		}
		if ctx.Err() != nil { // taken in this moment
			return nil, fmt.Errorf("wait for the dumps of the mark in %s: %w", dir, ctx.Err())
		}
	}
	if !wait {
		return nil, nil
	}
	d, err := dumped(ctx, id)
	switch {
	case err != nil:
		return nil, fmt.Errorf("wait for the dumps of the mark in %s: %w", dir, err)
	case d.none:
		return d.missing, fmt.Errorf("dump at mark %s: %w", text.Quote(mark, maxMarkShown), errNoDump)
	}
	return d.missing, nil
}

// maxAnswer bounds the answer to a mark, in bytes.
const maxAnswer = 1 << 20

// taken waits until the run has taken a mark.
func taken(ctx context.Context, name string) error {
	late := time.NewTimer(inboxTake)
	defer late.Stop()
	for {
		if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the run has not taken it: %w", ctx.Err())
		case <-late.C:
			return fmt.Errorf("the run does not take it; was it killed? %w", errNoRun)
		case <-time.After(inboxPoll / 2):
		}
	}
}

// dumped waits until the run answers that the dumps of a mark are done.
func dumped(ctx context.Context, id string) (markDumps, error) {
	var fresh time.Time // of the mark in the inbox
	seen := time.Now()  // here
	for {
		answer, err := hostfile.Read(id+doneFile, maxAnswer)
		if err == nil {
			_ = os.Remove(id + doneFile) // the run removes all that is left
			head, missing, _ := strings.Cut(string(answer), "\n")
			return markDumps{strings.FieldsFunc(missing, func(c rune) bool { return c == '\n' }), head == answerNone}, nil
		}
		info, err := os.Stat(id + takenFile)
		switch {
		case err == nil && !info.ModTime().Equal(fresh):
			fresh, seen = info.ModTime(), time.Now()
		case time.Since(seen) > inboxDead:
			return markDumps{}, fmt.Errorf("the run has said nothing for %v; was it killed? %w", inboxDead, errNoRun)
		}
		if _, err := os.Stat(filepath.Dir(id)); errors.Is(err, os.ErrNotExist) {
			return markDumps{}, fmt.Errorf("the run has ended before: %w", errNoRun)
		}
		select {
		case <-ctx.Done():
			return markDumps{}, ctx.Err()
		case <-time.After(inboxPoll / 2):
		}
	}
}
