package replay

import (
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/text"
)

// doubts are the rows of a table that could not be used in whole, each with its line; the first
// of them in words, the others in number.
type doubts struct {
	first []string
	// lost counts the rows that were skipped. moreLost and more count those beyond first: the
	// skipped ones, and those that lack a value.
	lost, moreLost, more int
}

const (
	// maxDoubts bounds the doubts that are told of one process, or of what belongs
	// to none.
	maxDoubts = 20
	// maxQuoted bounds what is quoted of a file, in characters.
	maxQuoted = 60
)

// add notes a row that lacks a value.
func (d *doubts) add(line int, format string, args ...any) {
	if len(d.first) == maxDoubts {
		d.more++
		return
	}
	d.first = append(d.first, fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, args...))
}

// lose notes a row that is skipped.
func (d *doubts) lose(line int, format string, args ...any) {
	d.lost++
	if len(d.first) == maxDoubts {
		d.moreLost++
		return
	}
	d.add(line, format+"; the row is skipped", args...)
}

// list is all doubts in words.
func (d *doubts) list() []string {
	out := slices.Clone(d.first)
	if d.moreLost > 0 {
		out = append(out, text.Plural(d.moreLost, "more row is skipped", "more rows are skipped"))
	}
	if d.more > 0 {
		out = append(out, text.Plural(d.more, "more row lacks a value", "more rows lack a value"))
	}
	return out
}

// quoted returns a cell for a message.
func quoted(cell string) string { return text.Quote(cell, maxQuoted) }
