package reporters

import (
	"bufio"
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
	mu  sync.Mutex
	f   *os.File
	enc *json.Encoder
	err error
}

// CreateRecorder makes the run directory dir if it is not there and begins its
// samples.ndjson. A directory that already holds a run is refused: nothing is
// ever overwritten.
func CreateRecorder(dir string, h Header) (*Recorder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create run directory: %w", err)
	}
	path := filepath.Join(dir, "samples.ndjson")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("create run: %s already holds a run; choose another --out directory", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("create run: %w", err)
	}
	r := &Recorder{f: f, enc: json.NewEncoder(f)}
	h.Schema = SamplesSchema
	if err := r.write(h); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

// Sample appends one sample.
func (r *Recorder) Sample(s Sample) error { return r.write(s) }

// Event appends one event.
func (r *Recorder) Event(e Event) error { return r.write(e) }

// write keeps the first error: after a torn line nothing more may follow it.
func (r *Recorder) write(v any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	if err := r.enc.Encode(v); err != nil {
		r.err = fmt.Errorf("append to samples.ndjson: %w", err)
	}
	return r.err
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
	r.err = fmt.Errorf("append to samples.ndjson: %w", os.ErrClosed)
	return nil
}

// maxLine bounds one line of samples.ndjson.
const maxLine = 1 << 20

// ReadSamples reads samples.ndjson: the header, then every line in order to one
// of the two functions; either may be nil. A last line without its end, as a
// killed run leaves it, is left out and told in the returned warnings. Any other
// line that cannot be read is an error with its number.
func ReadSamples(in io.Reader, sample func(Sample) error, event func(Event) error) (Header, []error, error) {
	r := lineReader{in: bufio.NewReaderSize(in, 64<<10)}
	var h Header
	text, err := r.next()
	if err != nil {
		return h, nil, fmt.Errorf("read samples header: %w", err)
	}
	if err := json.Unmarshal(text, &h); err != nil {
		return h, nil, fmt.Errorf("read samples header: %w", err)
	}
	if h.Schema != SamplesSchema {
		return h, nil, fmt.Errorf("read samples header: schema is %q, not %q", h.Schema, SamplesSchema)
	}
	for {
		text, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			return h, nil, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return h, []error{fmt.Errorf("line %d of samples.ndjson is cut; left out", r.n)}, nil
		case err != nil:
			return h, nil, fmt.Errorf("read samples: %w", err)
		}
		if err := dispatch(text, sample, event); err != nil {
			return h, nil, fmt.Errorf("read samples, line %d: %w", r.n, err)
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

// next gives one line without its end: io.EOF after the last,
// io.ErrUnexpectedEOF for a last line without an end.
func (l *lineReader) next() ([]byte, error) {
	l.n++
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("line %d is longer than %d bytes", l.n, maxLine)
		}
		switch {
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
