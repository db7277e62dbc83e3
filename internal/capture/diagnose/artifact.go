package diagnose

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/leakgate/leakgate/internal/capture/shell"
)

// notAllowed is the error for something that the device does not allow, as
// opposed to something that failed.
type notAllowed struct{ reason string }

func (e notAllowed) Error() string { return e.reason }

// artifact is a file in the folder of the diagnosis while it is being written:
// it has a temporary name until it is complete.
type artifact struct {
	file *os.File
	max  int64
	size int64
	// err is the first error of the host's disk, or a tooLarge error; once set,
	// it does not change.
	err error
	// held holds writes that must not reach the file yet; if it is nil, writes
	// go to the file.
	held *bytes.Buffer
}

// hold buffers writes in memory until replace is called. Output that is not to
// be kept then never reaches the disk, even if the run is killed.
func (a *artifact) hold() { a.held = &bytes.Buffer{} }

// replace discards the buffered writes and writes the given output to the file
// instead.
func (a *artifact) replace(text []byte) error {
	a.held, a.size = nil, 0
	_, err := a.Write(text)
	return err
}

// newArtifact creates the file for an artifact with the given name. Only the
// owner of the file may read it, because dumps contain personal data.
func newArtifact(dir, name string, most int64) (*artifact, error) {
	f, err := os.CreateTemp(dir, "."+name+".part-*")
	if err != nil {
		return nil, hostError(fmt.Errorf("create file for %s: %w", name, err))
	}
	return &artifact{file: f, max: most}, nil
}

// hostError adds "the host's disk is full" to an error with this cause, and
// returns any other error unchanged.
func hostError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("the host's disk is full: %w", err)
	}
	return err
}

// tooLarge is the error for an artifact that exceeds this number of bytes.
type tooLarge int64

func (e tooLarge) Error() string { return fmt.Sprintf("the output exceeds %d bytes", int64(e)) }

func (a *artifact) Write(p []byte) (int, error) {
	if a.err == nil && int64(len(p)) > a.max-a.size {
		a.err = tooLarge(a.max)
	}
	if a.err != nil {
		return 0, a.err
	}
	if a.held != nil {
		a.size += int64(len(p))
		return a.held.Write(p)
	}
	n, err := a.file.Write(p)
	a.size += int64(n)
	if err != nil {
		a.err = hostError(fmt.Errorf("write artifact: %w", err))
	}
	return n, a.err
}

// discard removes the file; after commit it does nothing.
func (a *artifact) discard() {
	if a.file == nil {
		return
	}
	name := a.file.Name()
	_ = a.file.Close() // nobody reads the error
	_ = os.Remove(name)
	a.file = nil
}

// commit renames the file to its final name. The artifact is discarded if that
// fails.
func (a *artifact) commit(dir, name string) error {
	temporary := a.file.Name()
	err := a.file.Close()
	if err == nil {
		err = os.Rename(temporary, filepath.Join(dir, name))
	}
	if err != nil {
		_ = os.Remove(temporary) // the first error is returned
	}
	a.file = nil
	if err != nil {
		return hostError(fmt.Errorf("keep %s: %w", name, err))
	}
	return nil
}

// maxClosing is the maximum length of the closing, which consists of a marker
// and an exit code.
const maxClosing = 64

// closing returns the end of a command line: commands that print a marker and
// the exit code. The marker proves that the output of the command is complete.
// This is necessary because a phone whose adbd loses the exit status reports 0
// even for a truncated output.
func closing(m shell.Marker) string { return "; r=$?; echo; echo " + string(m) + " $r" }

// closed parses the closing, which is the marker and the exit code at the end
// of the output. It returns the length of the output before the closing, and
// the exit code.
func closed(m shell.Marker, text []byte) (n, exit int, ok bool) {
	at := bytes.LastIndex(text, []byte("\n"+string(m)+" "))
	if at < 0 {
		return 0, 0, false
	}
	line, rest, ended := bytes.Cut(text[at+len(m)+2:], []byte("\n"))
	if !ended || len(rest) > 0 {
		return 0, 0, false
	}
	exit, err := strconv.Atoi(string(bytes.TrimRight(line, "\r")))
	return at, exit, err == nil
}

// open removes the closing from the artifact and returns the output before the
// closing.
func (a *artifact) open(m shell.Marker) (text []byte, exit int, err error) {
	if a.held != nil {
		text = a.held.Bytes()
	} else {
		text = make([]byte, a.size)
		if _, err := a.file.ReadAt(text, 0); err != nil && err != io.EOF {
			return nil, 0, fmt.Errorf("read artifact: %w", err)
		}
	}
	n, exit, ok := closed(m, text)
	if !ok {
		return text, 0, errors.New("truncated answer")
	}
	if a.held != nil {
		a.held.Truncate(n)
		return text[:n], exit, nil
	}
	if err := a.file.Truncate(int64(n)); err != nil {
		return nil, 0, fmt.Errorf("end artifact: %w", err)
	}
	a.size = int64(n)
	return text[:n], exit, nil
}
