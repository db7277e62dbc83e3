package replay

import (
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/text"
)

// rowProblems are the rows of a table that could not be used completely, each
// with its line: the first of them in words, the others counted.
type rowProblems struct {
	first []string
	// lost counts the rows that were skipped. moreLost and more count those
	// beyond first: the skipped ones, and those that lack a value.
	lost, moreLost, more int
}

const (
	// maxProblems bounds the problems reported of one process, or of what
	// belongs to none.
	maxProblems = 20
	// maxQuoted bounds what is quoted from a file, in characters.
	maxQuoted = 60
)

// add records a row that lacks a value.
func (d *rowProblems) add(line int, format string, args ...any) {
	if len(d.first) == maxProblems {
		d.more++
		return
	}
	d.first = append(d.first, fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, args...))
}

// skip records a row that is skipped.
func (d *rowProblems) skip(line int, format string, args ...any) {
	d.lost++
	if len(d.first) == maxProblems {
		d.moreLost++
		return
	}
	d.add(line, format+"; the row is skipped", args...)
}

// list returns all problems in words.
func (d *rowProblems) list() []string {
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
