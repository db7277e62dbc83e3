package replay

import (
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/text"
)

// rowProblems holds the rows of a table that could not be used completely, each
// with its line number. The first problems are kept as text; the others are
// only counted.
type rowProblems struct {
	first []string
	// lost is the number of skipped rows. moreLost and more count the problems
	// that are not listed in first: moreLost counts skipped rows, more counts
	// rows that lack a value.
	lost, moreLost, more int
}

const (
	// maxProblems is the maximum number of problems reported for one process,
	// or for rows without a process.
	maxProblems = 20
	// maxQuoted is the maximum length of a quote from a file, in characters.
	maxQuoted = 60
)

// add records a problem with a row; it only counts the problem if maxProblems
// have been recorded.
func (d *rowProblems) add(line int, format string, args ...any) {
	if len(d.first) == maxProblems {
		d.more++
		return
	}
	d.first = append(d.first, fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, args...))
}

// skip records why a row is skipped.
func (d *rowProblems) skip(line int, format string, args ...any) {
	d.lost++
	if len(d.first) == maxProblems {
		d.moreLost++
		return
	}
	d.add(line, format+"; the row is skipped", args...)
}

// list returns all problems as text.
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

// quoted returns a cell in quotes for a message.
func quoted(cell string) string { return text.Quote(cell, maxQuoted) }
