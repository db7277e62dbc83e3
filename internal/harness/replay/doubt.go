package replay

import (
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/text"
)

// doubts are what could not be used of a recording, each with its line; the first
// of them in words, the others in number.
type doubts struct {
	first []string
	more  int
}

const (
	// maxDoubts bounds the doubts that are told of one process, or of what belongs
	// to none.
	maxDoubts = 20
	// maxQuoted bounds what is quoted of a file, in characters.
	maxQuoted = 60
)

func (d *doubts) add(line int, format string, args ...any) {
	if len(d.first) == maxDoubts {
		d.more++
		return
	}
	d.first = append(d.first, fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, args...))
}

// list is all doubts in words.
func (d *doubts) list() []string {
	out := slices.Clone(d.first)
	if d.more > 0 {
		out = append(out, fmt.Sprintf("%d more rows are left out, in whole or in part", d.more))
	}
	return out
}

// quoted returns a cell for a message.
func quoted(cell string) string { return text.Quote(cell, maxQuoted) }
