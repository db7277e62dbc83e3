package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

// bar shows on a terminal what long work does and how far it is, from the second
// second on; elsewhere nothing. It may be updated from several goroutines, and often.
type bar struct {
	mu sync.Mutex
	// out is the way to the terminal; nil where there is none.
	out   *asyncWriter
	width func() int
	began time.Time
	text  string
	// done of total is how far the phase is; total 0 is not known.
	done, total int64
	shown       bool
	// stop ends the drawing, ended is closed when it has ended.
	stop, ended chan struct{}
}

const (
	// quick is how long work may take before the bar appears, redrawn how often it is drawn.
	quick   = 2 * time.Second
	redrawn = 200 * time.Millisecond
	cells   = 24
)

func newBar(c console) *bar {
	w := drawable(c.err)
	if c.quiet {
		w = io.Discard
	}
	return barOn(w, terminalWidth(w))
}

// barOn draws on w as long as it has columns.
func barOn(w io.Writer, width func() int) *bar {
	b := &bar{width: width, began: time.Now(), stop: make(chan struct{}), ended: make(chan struct{})}
	if width() == 0 {
		close(b.ended)
		return b
	}
	b.out = newAsyncWriter(w)
	go b.run()
	return b
}

// phase names what is done now. The line goes to the terminal as it is: a text that
// quotes anything must be printable.
func (b *bar) phase(text string) { b.at(text, 0, 0) }

// at is phase and progress at once.
func (b *bar) at(text string, done, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text, b.done, b.total = text, done, total
}

// progress records how far the phase is; total 0 is unknown.
func (b *bar) progress(done, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done, b.total = done, total
}

// run draws the line again and again: work that reports no progress, such as waiting for
// input, is seen to continue, too.
func (b *bar) run() {
	defer close(b.ended)
	select {
	case <-time.After(quick):
	case <-b.stop:
		return
	}
	tick := time.NewTicker(redrawn)
	defer tick.Stop()
	for {
		b.draw()
		select {
		case <-tick.C:
		case <-b.stop:
			return
		}
	}
}

func (b *bar) draw() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.text == "" {
		return
	}
	// ECMA-48 EL: clear the line.
	fmt.Fprintf(b.out, "\r\x1b[K%s", text.Row(b.line(), b.width()))
	b.shown = true
}

func (b *bar) line() string {
	took := time.Since(b.began).Seconds()
	if b.total <= 0 && b.done <= 0 {
		return fmt.Sprintf("%s, %.0f s", b.text, took)
	}
	if b.total <= 0 {
		return fmt.Sprintf("%s, %s, %.0f s", b.text, text.Size(b.done), took)
	}
	share := min(float64(b.done)/float64(b.total), 1)
	full := int(share * cells)
	return fmt.Sprintf("[%s%s] %3.0f %%  %s, %.0f s", strings.Repeat("#", full), strings.Repeat(".", cells-full), 100*share, b.text, took)
}

// close takes the line off the terminal.
func (b *bar) close() {
	close(b.stop)
	<-b.ended
	if b.out == nil {
		return
	}
	if b.shown {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
	b.out.close()
}
