package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// bar shows on a terminal how far long work is, from the second second on; elsewhere
// nothing. It may be told from several goroutines.
type bar struct {
	mu    sync.Mutex
	w     io.Writer
	width func() int
	// began is when the work was, and next when the line may be drawn again.
	began, next time.Time
	text        string
	// share is how far the phase is, from 0 to 1; less than 0 is not known.
	share float64
	shown bool
}

const (
	// quick is how long work may take without a word, redrawn how often it is told.
	quick   = 2 * time.Second
	redrawn = 200 * time.Millisecond
	cells   = 24
)

func newBar(w io.Writer) *bar {
	now := time.Now()
	return &bar{w: w, width: terminalWidth(w), began: now, next: now.Add(quick), share: -1}
}

// phase names what is done now.
func (b *bar) phase(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text, b.share = text, -1
	b.draw()
}

// progress tells how far the phase is; total 0 is not known.
func (b *bar) progress(done, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.share = -1; total > 0 {
		b.share = min(float64(done)/float64(total), 1)
	}
	b.draw()
}

func (b *bar) draw() {
	now := time.Now()
	width := b.width()
	if now.Before(b.next) || width == 0 || b.text == "" {
		return
	}
	b.next = now.Add(redrawn)
	line := fmt.Sprintf("%s, %.0f s", b.text, now.Sub(b.began).Seconds())
	if b.share >= 0 {
		full := int(b.share * cells)
		line = fmt.Sprintf("[%s%s] %3.0f %%  %s", strings.Repeat("#", full), strings.Repeat(".", cells-full), 100*b.share, line)
	}
	// ECMA-48 EL: clear the line.
	fmt.Fprintf(b.w, "\r\x1b[K%s", clipLine(line, width))
	b.shown = true
}

func (b *bar) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shown {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
	b.text = ""
}
