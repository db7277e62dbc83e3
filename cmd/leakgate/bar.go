package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

// bar shows the phase and the progress of work that takes longer than two
// seconds. It draws only on a terminal. It may be updated often, and from
// several goroutines.
type bar struct {
	mu sync.Mutex
	// out is the terminal; nil if none exists.
	out   *asyncWriter
	width func() int
	began time.Time
	text  string
	// done and total are the progress of the phase; total is 0 if it is
	// unknown.
	done, total int64
	shown       bool
	// Closing stop ends the drawing goroutine, which then closes ended.
	stop, ended chan struct{}
}

const (
	// quick is how long work may take before the bar appears; redrawn is the
	// interval at which it is redrawn.
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

// barOn returns a bar that draws on w if w is a terminal.
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

// phase sets the name of the current phase. The name is written to the terminal
// unchanged, so it must be printable even if it quotes other text.
func (b *bar) phase(text string) { b.at(text, 0, 0) }

// at sets phase and progress together.
func (b *bar) at(text string, done, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text, b.done, b.total = text, done, total
}

// progress sets the progress of the phase; total is 0 if it is unknown.
func (b *bar) progress(done, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done, b.total = done, total
}

// run redraws the line regularly, so that work without progress, such as
// waiting for input, is visibly still running.
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
	return fmt.Sprintf("[%s%s] %3.0f %%  %s, %.0f s", strings.Repeat("#", full), strings.Repeat(".", cells-full),
		100*share, b.text, took)
}

// close removes the line from the terminal.
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
