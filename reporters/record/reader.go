package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/leakgate/leakgate/internal/retired"
	"github.com/leakgate/leakgate/internal/text"
)

// maxLine bounds the length of one line of samples.ndjson.
const maxLine = 1 << 20

// Lines contains the functions that are called with the lines of
// samples.ndjson. Each of them may be nil.
type Lines struct {
	// Header is called with the first line.
	Header func(Header) error
	Sample func(Sample) error
	Event  func(Event) error
	// Damaged is called with the number of a line that cannot be read, or that
	// Sample or Event rejected, and with the reason. Reading then continues. If
	// Damaged is nil, such a line is an error.
	Damaged func(line int, why error)
}

// ReadSamples reads samples.ndjson. If the last line is incomplete because the
// run was killed, it is skipped and reported in the returned warnings. Any
// other unreadable line is passed to Damaged. If Damaged is nil, ReadSamples
// returns an error that contains the number of the line. Blank lines are
// skipped. The functions are called in the order of the lines, by the calling
// goroutine.
func ReadSamples(in io.Reader, to Lines) ([]error, error) {
	r, err := text.NewLineReader(in, maxLine)
	if err != nil {
		return nil, fmt.Errorf("read samples header: %w", err)
	}
	first, err := r.Next(nil)
	if err != nil {
		return nil, fmt.Errorf("read samples header: %w", err)
	}
	h, err := decodeHeader(first)
	if err != nil {
		return nil, fmt.Errorf("read samples header: %w", err)
	}
	if to.Header != nil {
		if err := to.Header(h); err != nil {
			return nil, fmt.Errorf("read samples header: %w", err)
		}
	}
	// Decoding a line takes longer than using it, so several batches are
	// decoded concurrently.
	batches, stop := make(chan *batch, runtime.GOMAXPROCS(0)), make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() { readBatches(r, batches, stop) })
	defer reader.Wait()
	defer close(stop)
	for b := range batches {
		<-b.decoded
		if err := b.dispatch(to); err != nil {
			return nil, err
		}
		switch {
		case errors.Is(b.end, io.ErrUnexpectedEOF):
			return []error{fmt.Errorf("line %d of %s is truncated, skipped", r.N, SamplesName)}, nil
		case b.end != nil && !errors.Is(b.end, io.EOF):
			return nil, fmt.Errorf("read samples: %w", b.end)
		}
	}
	return nil, nil
}

// batch is a group of lines that is passed from the file to the caller.
type batch struct {
	text    []byte
	lines   []line
	decoded chan struct{}
	// end is the reason why the reader stopped after this batch, or nil if it
	// did not stop.
	end error
}

// line is the position of a line in its batch, and the line's content: a
// sample, an event, or nothing if the line is blank.
type line struct {
	number, begin, end int
	sample             *Sample
	event              *Event
	err                error
}

// batchSize is the approximate number of bytes that are decoded together.
const batchSize = 64 << 10

// readBatches reads all lines into batches.
func readBatches(l *text.LineReader, batches chan<- *batch, stop <-chan struct{}) {
	defer close(batches)
	for end := error(nil); end == nil; {
		b := &batch{text: make([]byte, 0, batchSize+4<<10), decoded: make(chan struct{})}
		for end == nil && len(b.text) < batchSize {
			at := len(b.text)
			read, err := l.Next(b.text)
			switch {
			case err == nil:
				b.text = read
				b.lines = append(b.lines, line{number: l.N, begin: at, end: len(read)})
			case errors.Is(err, text.ErrLongLine):
				b.lines = append(b.lines, line{number: l.N, err: err})
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
	if l.err = retired.Check(text, retiredKeys...); l.err == nil {
		l.err = json.Unmarshal(text, l.event)
	}
}

// dispatch calls the functions for the lines. It returns an error for an
// unreadable line if there is no Damaged function.
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
		case err != nil && (to.Damaged == nil || errors.Is(err, retired.Err)):
			return fmt.Errorf("read samples, line %d: %w", l.number, err)
		case err != nil:
			to.Damaged(l.number, err)
		}
	}
	return nil
}
