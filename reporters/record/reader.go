package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
)

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

// ReadSamples reads samples.ndjson. A last line without its end, as a killed run
// leaves it, is skipped and named in the returned warnings. Any other line that cannot
// be read is for Damaged, or else an error with its number; blank lines are skipped.
// The functions are called in the order of the lines, by the calling goroutine.
func ReadSamples(in io.Reader, to Lines) ([]error, error) {
	r := &lineReader{in: bufio.NewReaderSize(in, 64<<10)}
	text, err := r.next(nil)
	if err != nil {
		return nil, fmt.Errorf("read samples header: %w", err)
	}
	h, err := decodeHeader(text)
	if err != nil {
		return nil, fmt.Errorf("read samples header: %w", err)
	}
	if to.Header != nil {
		if err := to.Header(h); err != nil {
			return nil, fmt.Errorf("read samples header: %w", err)
		}
	}
	// Decoding takes longer than what is done with a line, so that several batches
	// are decoded at a time.
	batches, stop := make(chan *batch, runtime.GOMAXPROCS(0)), make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() { r.run(batches, stop) })
	defer reader.Wait()
	defer close(stop)
	for b := range batches {
		<-b.decoded
		if err := b.dispatch(to); err != nil {
			return nil, err
		}
		switch {
		case errors.Is(b.end, io.ErrUnexpectedEOF):
			return []error{fmt.Errorf("line %d of %s is truncated, skipped", r.n, SamplesName)}, nil
		case b.end != nil && !errors.Is(b.end, io.EOF):
			return nil, fmt.Errorf("read samples: %w", b.end)
		}
	}
	return nil, nil
}

// batch is some lines on their way from the file to the caller.
type batch struct {
	text    []byte
	lines   []line
	decoded chan struct{}
	// end is why the reader stopped behind this batch, nil if it did not.
	end error
}

// line is the place of a line in its batch, and what it says: a sample, an event, or
// neither where it is blank.
type line struct {
	number, begin, end int
	sample             *Sample
	event              *Event
	err                error
}

// batchSize is about how many bytes of lines are decoded at once.
const batchSize = 64 << 10

// run reads all lines into batches.
func (l *lineReader) run(batches chan<- *batch, stop <-chan struct{}) {
	defer close(batches)
	for end := error(nil); end == nil; {
		b := &batch{text: make([]byte, 0, batchSize+4<<10), decoded: make(chan struct{})}
		for end == nil && len(b.text) < batchSize {
			at := len(b.text)
			text, err := l.next(b.text)
			switch {
			case err == nil:
				b.text = text
				b.lines = append(b.lines, line{number: l.n, begin: at, end: len(text)})
			case errors.Is(err, errLong):
				b.lines = append(b.lines, line{number: l.n, err: err})
			default:
				end = err
			}
		}
		b.end = end
		go b.decode()
		select {
		case batches <- b:
		case <-stop:
			return
		}
	}
}

func (b *batch) decode() {
	defer close(b.decoded)
	for i := range b.lines {
		if l := &b.lines[i]; l.err == nil {
			l.decode(bytes.TrimSpace(b.text[l.begin:l.end]))
		}
	}
}

func (l *line) decode(text []byte) {
	if len(text) == 0 {
		return
	}
	var s struct {
		Event *string `json:"event"`
		Sample
	}
	if err := json.Unmarshal(text, &s); s.Event == nil {
		l.sample, l.err = &s.Sample, err
		return
	}
	l.event = new(Event)
	l.err = json.Unmarshal(text, l.event)
}

// dispatch calls the functions for the lines. The error is a line that cannot be read
// and that nobody wants to know about.
func (b *batch) dispatch(to Lines) error {
	for _, l := range b.lines {
		err := l.err
		switch {
		case err != nil:
		case l.sample != nil && to.Sample != nil:
			err = to.Sample(*l.sample)
		case l.event != nil && to.Event != nil:
			err = to.Event(*l.event)
		}
		switch {
		case err != nil && to.Damaged == nil:
			return fmt.Errorf("read samples, line %d: %w", l.number, err)
		case err != nil:
			to.Damaged(l.number, err)
		}
	}
	return nil
}

type lineReader struct {
	in *bufio.Reader
	n  int
}

// errLong is a line that no recorder wrote.
var errLong = fmt.Errorf("it is longer than %d bytes", maxLine)

// next appends one line without its end to text: io.EOF after the last,
// io.ErrUnexpectedEOF for a last line without an end, errLong for one that is skipped
// because of its length.
func (l *lineReader) next(text []byte) ([]byte, error) {
	l.n++
	begin, skipped := len(text), 0
	for {
		part, err := l.in.ReadSlice('\n')
		if len(text)-begin <= maxLine {
			text = append(text, part...)
		} else {
			skipped += len(part)
		}
		switch {
		case skipped > maxSkipped:
			return nil, fmt.Errorf("line %d is longer than %d bytes", l.n, maxSkipped)
		case err == nil && len(text)-begin > maxLine:
			return nil, errLong
		case err == nil:
			return text[:len(text)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(text) > begin:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}
