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

// inbox receives marks that other processes send. It is a folder in the run
// directory that contains one file per mark. The run reads and removes these
// files. Files work the same on every system and need no port.
//
// A mark whose sender waits for its dumps is named ID.wait. The run renames it
// to ID.taken, updates its modification time regularly, and writes ID.done when
// every process has been dumped.
//
// The run directory may have been prepared by another account. Therefore the
// folder is recreated with access for its owner only, and only regular files in
// it are opened: a link could point elsewhere, and reading a pipe would block.
type inbox struct {
	// dir is the path of the folder; run is the opened run directory and files
	// is the opened folder.
	dir        string
	run, files *os.Root
	// folder is the opened folder as a file, whose modification time is read
	// five times a second.
	folder *os.File

	mu sync.Mutex
	// taken holds the marks whose senders are waiting.
	taken map[string]bool
	stop  func()
}

// inboxName is the name of the folder, which exists only during the run. The
// folder also contains the reserve.
const inboxName = ".live"

// reserveBytes is the disk space reserved so that run.json can still be written
// when the disk is full. A run.json with 100 processes is smaller than this.
const reserveBytes = 2 << 20

const (
	inboxPoll = 200 * time.Millisecond
	// inboxScan is the interval at which the folder is read even if it looks
	// unchanged: two changes within one tick of the file system's clock lead to
	// the same modification time.
	inboxScan = 2 * time.Second
	// maxMark bounds the name of a mark, in characters.
	maxMark = 500
	// inboxFresh is the interval at which the run updates the modification time
	// of a mark whose sender is waiting. After inboxTimeout without an update,
	// a sender assumes that the run was killed. Both are in wall-clock time.
	inboxFresh   = 2 * time.Second
	inboxTimeout = 60 * time.Second
	// inboxTake is the wall-clock time within which a run must take a mark.
	inboxTake = 5 * time.Second
)

// The file name extensions of marks in an inbox.
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
	fresh.Go(func() { b.keepFresh(ctx) })
	if err := b.writeNew("reserve", make([]byte, reserveBytes)); err != nil {
		return nil,
			errors.Join(fmt.Errorf("reserve %d MB for the end of the run: %w", reserveBytes>>20, err), b.close())
	}
	return b, nil
}

// open creates the folder in a run directory and opens it. An existing file or
// folder at this path is a leftover, because the directory of a run in progress
// contains samples.ndjson and would have been rejected.
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

// writeNew writes a file that does not exist yet.
func (b *inbox) writeNew(name string, content []byte) error {
	f, err := b.files.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// maxMarkFile bounds how many bytes of a mark are read: maxMark characters of
// at most four bytes.
const maxMarkFile = 4 * maxMark

// read returns the text of a mark. It removes a file that is not regular and
// returns an error.
func (b *inbox) read(file string) (string, error) {
	info, err := b.files.Lstat(file)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", errors.Join(fmt.Errorf("%s is not a regular file", file), b.files.RemoveAll(file))
	}
	f, err := b.files.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxMarkFile))
	return cleanMark(string(text)), err
}

// keepFresh updates the modification times of the marks whose senders wait.
func (b *inbox) keepFresh(ctx context.Context) {
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
			_ = b.files.Chtimes(id+takenFile, now, now) // if the file is missing, its mark has been answered
		}
		b.mu.Unlock()
	}
}

// watch calls mark for each mark until ctx is done. answer is nil if the sender
// does not wait.
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

// The answer to a sender begins with one of these lines. The list of missing
// dumps follows.
const (
	answerDone = "done"
	answerNone = "no dump"
)

// answer reports to the sender of a mark that its dumps are complete, or which
// dumps are missing.
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

// errNoRun is returned for a directory without a run in progress.
var errNoRun = errors.New("no run in progress in that directory")

// errNoDump is returned for a mark with a waiting sender if no process was
// dumped.
var errNoDump = errors.New("no process was dumped")

// SendMark sends a mark to the run in progress in dir and waits until the run
// takes it. If wait is set and the run dumps heaps at marks, it waits until
// every process has settled and been dumped, and returns the missing dumps. If
// SendMark returns an error together with missing dumps, the mark was recorded
// but no process was dumped. If it returns an error without missing dumps, the
// run did not take the mark or did not respond.
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
	if err := record.WriteFileAtomic(name, []byte(mark)); err != nil {
		return nil, fmt.Errorf("send mark to %s: %w", dir, err)
	}
	if err := awaitTaken(ctx, name); err != nil {
		if rerr := os.Remove(name); !errors.Is(rerr, os.ErrNotExist) {
			return nil, errors.Join(fmt.Errorf("send mark to %s: %w", dir, err), rerr)
		}
		if ctx.Err() != nil { // the run has just taken the mark
			return nil, fmt.Errorf("wait for the dumps of the mark in %s: %w", dir, ctx.Err())
		}
	}
	if !wait {
		return nil, nil
	}
	d, err := awaitDumps(ctx, id)
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

// awaitTaken waits until the run has taken a mark.
func awaitTaken(ctx context.Context, name string) error {
	late := time.NewTimer(inboxTake)
	defer late.Stop()
	for {
		if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the run has not accepted the mark: %w", ctx.Err())
		case <-late.C:
			return fmt.Errorf("the run does not accept the mark; was the run killed? %w", errNoRun)
		case <-time.After(inboxPoll / 2):
		}
	}
}

// awaitDumps waits until the run reports that the dumps of a mark are complete.
func awaitDumps(ctx context.Context, id string) (markDumps, error) {
	var fresh time.Time // modification time of the mark in the inbox
	seen := time.Now()  // local time at which this modification time was first seen
	for {
		answer, err := hostfile.Read(id+doneFile, maxAnswer)
		if err == nil {
			_ = os.Remove(id + doneFile) // the run removes the files that remain
			head, missing, _ := strings.Cut(string(answer), "\n")
			return markDumps{strings.FieldsFunc(missing, func(c rune) bool { return c == '\n' }), head == answerNone},
				nil
		}
		info, err := os.Stat(id + takenFile)
		switch {
		case err == nil && !info.ModTime().Equal(fresh):
			fresh, seen = info.ModTime(), time.Now()
		case time.Since(seen) > inboxTimeout:
			return markDumps{},
				fmt.Errorf("no update from the run for %v; was the run killed? %w", inboxTimeout, errNoRun)
		}
		if _, err := os.Stat(filepath.Dir(id)); errors.Is(err, os.ErrNotExist) {
			return markDumps{}, fmt.Errorf("the run has ended: %w", errNoRun)
		}
		select {
		case <-ctx.Done():
			return markDumps{}, ctx.Err()
		case <-time.After(inboxPoll / 2):
		}
	}
}
