package replay

import (
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/text"
)

// doubts are what could not be used of a recording, each with its line; the first
// of them in words, the others in number.
type doubts struct {
	first []doubt
	more  int
}

type doubt struct {
	line int
	text string
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
	d.first = append(d.first, doubt{line, fmt.Sprintf("line %d: ", line) + fmt.Sprintf(format, args...)})
}

// merge adds the doubts of another reader of the same lines.
func (d *doubts) merge(other doubts) {
	all := slices.Concat(d.first, other.first)
	slices.SortStableFunc(all, func(a, b doubt) int { return a.line - b.line })
	d.more += other.more + max(0, len(all)-maxDoubts)
	d.first = all[:min(len(all), maxDoubts)]
}

// list is all doubts in words.
func (d *doubts) list() []string {
	var out []string
	for _, x := range d.first {
		out = append(out, x.text)
	}
	if d.more > 0 {
		out = append(out, fmt.Sprintf("%d more rows are left out, in whole or in part", d.more))
	}
	return out
}

// quoted returns a cell for a message.
func quoted(cell string) string { return text.Quote(cell, maxQuoted) }
