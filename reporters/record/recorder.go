package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Recorder appends lines to the samples.ndjson of one run directory. Every line
// is written to the file before the call returns, so no earlier line is lost if
// the run is killed. It is safe for concurrent use.
type Recorder struct {
	mu   sync.Mutex
	path string
	f    *os.File
	// file describes f; it is compared with the file at the path.
	file os.FileInfo
	// size is the total length of the complete lines, in bytes.
	size int64
	line bytes.Buffer
	enc  *json.Encoder
	err  error
}

// SamplesName is the name of the file in a run directory that Recorder writes.
const SamplesName = "samples.ndjson"

// CreateRecorder creates the run directory dir if it does not exist and begins
// its samples.ndjson, which is created together with its first line. If the
// directory already contains a run, CreateRecorder returns an error: nothing is
// ever overwritten.
func CreateRecorder(dir string, h Header) (*Recorder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
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
	file, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create run: %w", err), f.Close())
	}
	r := &Recorder{path: path, f: f, file: file, size: int64(len(first)) + 1}
	r.enc = json.NewEncoder(&r.line)
	return r, nil
}

// writeNew writes a file that is complete as soon as it exists. It never
// replaces another file: unlike a rename, a link fails if the name exists.
func writeNew(path string, content []byte) error {
	if _, err := os.Lstat(path); err == nil {
		return os.ErrExist
	}
	whole := path + ".new"
	if err := WriteFileAtomic(whole, content); err != nil {
		return err
	}
	err := os.Link(whole, path)
	if err != nil && !errors.Is(err, os.ErrExist) {
		// Some file systems, such as FAT, do not support links.
		return os.Rename(whole, path)
	}
	return errors.Join(err, os.Remove(whole))
}

// AppendSample appends one sample.
func (r *Recorder) AppendSample(s Sample) error { return r.write(s) }

// AppendEvent appends one event.
func (r *Recorder) AppendEvent(e Event) error { return r.write(e) }

// Check returns an error that wraps os.ErrNotExist if the path no longer refers
// to the file. CI cleaners or a second checkout may delete or move the
// directory of a run that is in progress. After Check has returned an error,
// only AppendLast still writes.
func (r *Recorder) Check() error {
	now, err := os.Stat(r.path)
	if err == nil && os.SameFile(now, r.file) || err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil // a file that cannot be examined may still exist
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = fmt.Errorf("append to %s: it was deleted, moved or replaced during the run: %w", SamplesName,
			os.ErrNotExist)
	}
	return r.err
}

// write keeps the first error. If a line did not fit on the disk, it is
// removed, so that the file contains only complete lines.
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
		return fmt.Errorf("append to %s: a line of %d bytes is too long to be read back", SamplesName, r.line.Len())
	}
	n, err := r.f.Write(r.line.Bytes())
	if err == nil {
		r.size += int64(n)
		return nil
	}
	// The file is truncated by its name, because Windows cannot truncate a file
	// that is open for appending.
	r.err = fmt.Errorf("append to %s: %w", SamplesName, errors.Join(err, os.Truncate(r.path, r.size)))
	return r.err
}

// AppendLast appends the last line, even after a line that did not fit: space
// may have become available, and the file contains only complete lines.
func (r *Recorder) AppendLast(e Event) error {
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

// Close closes the file. It returns the first error of all appends.
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
