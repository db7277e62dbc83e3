package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// Recorder appends to samples.ndjson of one run directory. Every line reaches
// the file before the call returns, so that a killed run keeps what it had. It
// may be used by several goroutines.
type Recorder struct {
	mu   sync.Mutex
	path string
	f    *os.File
	// size is the length of the whole lines, in bytes.
	size int64
	line bytes.Buffer
	enc  *json.Encoder
	err  error
}

// SamplesName is the file of a run directory that Recorder writes.
const SamplesName = "samples.ndjson"

// CreateRecorder makes the run directory dir if it is not there and begins its
// samples.ndjson, which comes into being with its first line. A directory that
// already holds a run is refused: nothing is ever overwritten.
func CreateRecorder(dir string, h Header) (*Recorder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create run directory: %w", err)
	}
	path := filepath.Join(dir, SamplesName)
	h.Schema = SamplesSchema
	first, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encode samples header: %w", err)
	}
	err = writeNew(path, append(first, '\n'))
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("create run: %s already holds a run; choose another --out directory", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("create run: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("create run: %w", err)
	}
	r := &Recorder{path: path, f: f, size: int64(len(first)) + 1}
	r.enc = json.NewEncoder(&r.line)
	return r, nil
}

// writeNew writes a file that is whole from its first moment on, and never over
// another: a link, unlike a rename, fails where the name is taken.
func writeNew(path string, content []byte) error {
	if _, err := os.Lstat(path); err == nil {
		return os.ErrExist
	}
	whole := path + ".new"
	if err := WriteWhole(whole, content); err != nil {
		return err
	}
	err := os.Link(whole, path)
	if err != nil && !errors.Is(err, os.ErrExist) {
		// No links here, as on FAT.
		return os.Rename(whole, path)
	}
	return errors.Join(err, os.Remove(whole))
}

// Sample appends one sample.
func (r *Recorder) Sample(s Sample) error { return r.write(s) }

// Event appends one event.
func (r *Recorder) Event(e Event) error { return r.write(e) }

// write keeps the first error. A line that did not fit on the disk is taken back,
// so that every line of the file is whole.
func (r *Recorder) write(v any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	r.line.Reset()
	if err := r.enc.Encode(v); err != nil {
		return fmt.Errorf("encode line of %s: %w", SamplesName, err)
	}
	if r.line.Len() > maxLine {
		return fmt.Errorf("append to %s: a line of %d bytes is too long to be read again", SamplesName, r.line.Len())
	}
	n, err := r.f.Write(r.line.Bytes())
	if err == nil {
		r.size += int64(n)
		return nil
	}
	// By its name: a file that is open for appending cannot be cut on Windows.
	r.err = fmt.Errorf("append to %s: %w", SamplesName, errors.Join(err, os.Truncate(r.path, r.size)))
	return r.err
}

// Last appends the last line, also after a line that did not fit: there may be
// room again, and every line of the file is whole.
func (r *Recorder) Last(e Event) error {
	r.mu.Lock()
	failed := r.err
	r.err = nil
	r.mu.Unlock()
	err := r.write(e)
	r.mu.Lock()
	defer r.mu.Unlock()
	if failed != nil {
		r.err = failed
	}
	return err
}

// Close ends the file. It returns the first error of any append.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.f.Close()
	if r.err != nil {
		return r.err
	}
	if err != nil {
		return fmt.Errorf("close samples.ndjson: %w", err)
	}
	r.err = fmt.Errorf("append to %s: %w", SamplesName, os.ErrClosed)
	return nil
}

const (
	// maxLine bounds one line of samples.ndjson.
	maxLine = 1 << 20
	// maxSkipped bounds what a damaged file may have in the place of one line: a
	// disk may leave zeros, but not for ever.
	maxSkipped = 64 << 20
)

// Lines hears the lines of samples.ndjson; each function may be nil.
type Lines struct {
	// Header hears the first line.
	Header func(Header) error
	Sample func(Sample) error
	Event  func(Event) error
	// Damaged hears the number of a line that cannot be read, or that Sample or
	// Event refused, and why; the lines after it are heard. Without it such a line
	// is an error.
	Damaged func(line int, why error)
}

// ReadSamples reads samples.ndjson line by line. A last line without its end, as a
// killed run leaves it, is left out and told in the returned warnings. Any other
// line that cannot be read is for Damaged, or else an error with its number; a
// blank line says nothing.
func ReadSamples(in io.Reader, to Lines) ([]error, error) {
	r := lineReader{in: bufio.NewReaderSize(in, 64<<10)}
	var h Header
	text, err := r.next()
	if err != nil {
		return nil, fmt.Errorf("read samples header: %w", err)
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return nil, fmt.Errorf("read samples header: %w", err)
	}
	if h.Schema != SamplesSchema {
		return nil, fmt.Errorf("read samples header: schema is %q, not %q", h.Schema, SamplesSchema)
	}
	if to.Header != nil {
		if err := to.Header(h); err != nil {
			return nil, fmt.Errorf("read samples header: %w", err)
		}
	}
	for {
		text, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return []error{fmt.Errorf("line %d of %s is cut; left out", r.n, SamplesName)}, nil
		case err == nil && len(bytes.TrimSpace(text)) == 0:
			continue
		case err == nil:
			err = dispatch(text, to.Sample, to.Event)
		case !errors.Is(err, errLong):
			return nil, fmt.Errorf("read samples: %w", err)
		}
		switch {
		case err != nil && to.Damaged == nil:
			return nil, fmt.Errorf("read samples, line %d: %w", r.n, err)
		case err != nil:
			to.Damaged(r.n, err)
		}
	}
}

func dispatch(text []byte, sample func(Sample) error, event func(Event) error) error {
	var kind struct {
		Event *string `json:"event"`
	}
	if err := json.Unmarshal(text, &kind); err != nil {
		return err
	}
	if kind.Event != nil {
		if event == nil {
			return nil
		}
		var e Event
		if err := json.Unmarshal(text, &e); err != nil {
			return err
		}
		return event(e)
	}
	if sample == nil {
		return nil
	}
	var s Sample
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	return sample(s)
}

type lineReader struct {
	in *bufio.Reader
	n  int
}

// errLong is a line that no recorder wrote.
var errLong = fmt.Errorf("it is longer than %d bytes", maxLine)

// next gives one line without its end: io.EOF after the last,
// io.ErrUnexpectedEOF for a last line without an end, errLong for one that is read
// over.
func (l *lineReader) next() ([]byte, error) {
	l.n++
	var line []byte
	skipped := 0
	for {
		part, err := l.in.ReadSlice('\n')
		if len(line) <= maxLine {
			line = append(line, part...)
		} else {
			skipped += len(part)
		}
		switch {
		case skipped > maxSkipped:
			return nil, fmt.Errorf("line %d is longer than %d bytes", l.n, maxSkipped)
		case err == nil && len(line) > maxLine:
			return nil, errLong
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}
