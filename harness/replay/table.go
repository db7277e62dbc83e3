package replay

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/leakgate/leakgate/detector"
)

// maxRecord bounds one row of a table, in bytes.
const maxRecord = 1 << 20

// unnamed is the process of a table without a column of names.
const unnamed = "app"

// maxNameBytes bounds the name of a process; Android has at most 255 characters.
const maxNameBytes = 1024

// tableReader turns the rows of a table into inputs for its judges.
type tableReader struct {
	o        Options
	h        header
	crew     *crew
	families map[string]*family
	// name and family are those of the latest row, cells and now what it says.
	name   string
	family *family
	cells  []string
	now    reading
	tracks []*track
	limit  int
	doubts doubts
	line   int
}

// readTable reads a table of at most limit processes.
func readTable(in *bufio.Reader, o Options, limit int) (*recording, error) {
	rows, err := newRows(in)
	if err != nil {
		return nil, err
	}
	cells, err := rows.next()
	if err != nil {
		return nil, fmt.Errorf("read the header: %w", notNothing(err))
	}
	h, err := readHeader(cells, o.Column)
	if err != nil {
		return nil, err
	}
	t := &tableReader{o: o, h: h, crew: newCrew(), families: map[string]*family{}, limit: limit}
	err = t.read(rows)
	t.crew.finish()
	if err != nil {
		return nil, err
	}
	r := &recording{warnings: t.doubts.list(), rows: rows.n - 1}
	for _, x := range t.tracks {
		r.subjects = append(r.subjects, x.judge)
	}
	if r.samples() == 0 {
		return nil, t.nothing(r)
	}
	return r, nil
}

func notNothing(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("there is none; write one such as t_s,pss_kb")
	}
	return err
}

// nothing says that a table holds no number to judge, and the first reason.
func (t *tableReader) nothing(r *recording) error {
	why := append([]string{}, r.warnings...)
	for _, x := range t.tracks {
		why = append(why, x.doubts.list()...)
	}
	first := "there is no row below the header"
	if len(why) > 0 {
		first = why[0]
	}
	return fmt.Errorf("no usable number in column %s of %d rows: %s; write seconds into %s and kB into %s, or name another column with --column",
		quoted(t.h.source), r.rows, first, timeColumn, quoted(t.h.source))
}

func (t *tableReader) read(rows *rows) error {
	for {
		cells, err := rows.next()
		t.line = rows.line
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			var bad *csv.ParseError
			if !errors.As(err, &bad) {
				return err
			}
			t.doubts.add(bad.StartLine, "%v; the row is left out", bad.Err)
			continue
		}
		if len(cells) > t.h.width {
			t.doubts.add(t.line, "%d cells, and %d in the header; the row is left out", len(cells), t.h.width)
			continue
		}
		t.row(cells)
	}
}

// row takes one row; one that is shorter than the header ends with empty cells.
func (t *tableReader) row(cells []string) {
	t.cells = cells
	name := unnamed
	if t.h.process >= 0 {
		name = t.cell(t.h.process)
	}
	if !t.find(name) {
		return
	}
	at, err := moment(t.cell(t.h.time))
	pid, perr := identity(t.cell(t.h.pid))
	start, serr := identity(t.cell(t.h.start))
	x := t.family.find(pid, at)
	switch {
	case x == nil && err != nil:
		t.doubts.add(t.line, "%s: %v; the row is left out", timeColumn, err)
		return
	case x == nil && t.full():
		return
	case x == nil:
		x = t.open(name)
	}
	if err := errors.Join(named(timeColumn, err), named(pidColumn, perr), named(startColumn, serr)); err != nil {
		x.doubts.add(t.line, "%s; the row is left out", oneLine(err))
		return
	}
	t.now = reading{at: at, pid: pid, start: start, mark: clipped(t.cell(t.h.mark))}
	t.values(x, &t.now)
	t.tell(x, &t.now)
}

// cell is a cell of the latest row; one that is not there is empty.
func (t *tableReader) cell(i int) string {
	if i < 0 || i >= len(t.cells) {
		return ""
	}
	return strings.TrimSpace(t.cells[i])
}

func named(column string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", column, err)
}

// maxMark bounds the text of a mark, in bytes.
const maxMark = 256

func clipped(mark string) string {
	if len(mark) > maxMark {
		mark = mark[:maxMark]
	}
	return strings.Clone(mark) // the row is used again
}

// find makes the family of a name the present one.
func (t *tableReader) find(name string) bool {
	if t.family != nil && name == t.name {
		return true
	}
	f := t.families[name]
	if f == nil {
		switch {
		case name == "":
			t.doubts.add(t.line, "no name in column %s; the row is left out", processColumn)
			return false
		case len(name) > maxNameBytes:
			t.doubts.add(t.line, "the name of the process has %d bytes; the row is left out", len(name))
			return false
		case t.full():
			return false
		}
		f = &family{}
		name = strings.Clone(name)
		t.families[name] = f
	}
	t.name, t.family = name, f
	return true
}

// full tells whether no other process is taken.
func (t *tableReader) full() bool {
	// A family that never got a track counts as well: names take memory.
	if len(t.tracks) < t.limit && len(t.families) <= t.limit {
		return false
	}
	t.doubts.add(t.line, "more than %d processes; the row is left out", maxProcesses)
	return true
}

// open begins another process of the present family.
func (t *tableReader) open(name string) *track {
	x := &track{judge: newJudge(strings.Clone(name), t.h.source, t.o, t.o.Explain && len(t.tracks) < maxExplained)}
	x.judge.track, x.worker = x, t.crew.hire()
	t.tracks = append(t.tracks, x)
	t.family.tracks = append(t.family.tracks, x)
	return x
}

// reading is what one row says.
type reading struct {
	at         time.Duration
	pid, start uint64
	mark       string
	bytes      int64 // 0 for none
	breakdown  detector.Breakdown
	detailed   bool
}

// values reads the numbers of a row.
func (t *tableReader) values(x *track, r *reading) {
	for _, p := range t.h.parts {
		text := t.cell(p.column)
		if absent(text) {
			continue
		}
		bytes, err := amount(text)
		if err != nil {
			x.doubts.add(t.line, "%s: %v", p.name, err)
			continue
		}
		*p.of(&r.breakdown) = detector.Known(bytes)
		r.detailed = true
	}
	text := t.cell(t.h.value)
	if absent(text) {
		if !r.detailed && r.mark == "" {
			x.doubts.add(t.line, "no value in %s", quoted(t.h.source))
		}
		return
	}
	bytes, err := amount(text)
	if swap := t.cell(t.h.swap); err == nil && !absent(swap) {
		var more int64
		more, err = amount(swap)
		bytes += more
	}
	if t.h.mapped {
		bytes = r.breakdown.Mapped().Bytes
	}
	switch {
	case err != nil && t.h.mapped: // told as a part
	case err != nil:
		x.doubts.add(t.line, "%s: %v; the row is left out", quoted(t.h.source), err)
	case bytes <= 0:
		x.doubts.add(t.line, "%s: no living process has %d bytes; the row is left out", quoted(t.h.source), bytes)
	default:
		r.bytes = bytes
	}
}

// tell gives a row to the judge of its process, as far as it is newer than what
// came before.
func (t *tableReader) tell(x *track, r *reading) {
	// A breakdown or a mark may stand in a row of its own beside a sample.
	old := x.begun && (r.at < x.last || r.bytes > 0 && r.at == x.last)
	if old || r.detailed && x.wasDetail && r.at <= x.detailed {
		x.doubts.add(t.line, "%s %v is not after %v; the row is left out", timeColumn, r.at.Seconds(), max(x.last, x.detailed).Seconds())
		return
	}
	if r.bytes == 0 && !r.detailed && r.mark == "" {
		return // told already
	}
	t.restarted(x, r)
	if r.mark != "" {
		in := t.input(x, isMark, r.at)
		in.text = r.mark
	}
	if r.bytes > 0 && x.begun {
		t.stepped(x, r.at)
	}
	if r.detailed {
		x.detailed, x.wasDetail = r.at, true
		r.breakdown.At = r.at
		t.input(x, isBreakdown, r.at).breakdown = r.breakdown
	}
	if r.bytes > 0 {
		x.last, x.begun = r.at, true
		t.input(x, isSample, r.at).bytes = r.bytes
	}
}

// restarted looks whether the row is of another incarnation of the process.
func (t *tableReader) restarted(x *track, r *reading) {
	another := r.pid != 0 && x.pid != 0 && r.pid != x.pid || r.start != 0 && x.start != 0 && r.start != x.start
	t.family.take(x, r.pid)
	if r.start != 0 || another {
		x.start = r.start
	}
	if another {
		x.rhythm = rhythm{}
		t.input(x, isRestart, r.at)
	}
}

// stepped looks whether the time since the last sample is a hole.
func (t *tableReader) stepped(x *track, at time.Duration) {
	step := at - x.last
	if x.rhythm.hole(step) {
		x.gaps++
		x.absent += step
		t.input(x, isGap, at)
	}
	x.rhythm.add(step)
}

func (t *tableReader) input(x *track, k kind, at time.Duration) *input {
	in := t.crew.next(x.worker)
	in.judge, in.kind, in.at = x.judge, k, at
	return in
}

// rows reads a table row by row.
type rows struct {
	r     *csv.Reader
	limit *limited
	n     int
	line  int
}

// newRows looks at the first line for what stands between the cells.
func newRows(in *bufio.Reader) (*rows, error) {
	head, err := in.Peek(readAhead)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err
	}
	first, _, _ := strings.Cut(string(head), "\n")
	l := &limited{in: in}
	r := csv.NewReader(l)
	r.ReuseRecord, r.FieldsPerRecord = true, -1
	for _, sep := range []rune{',', ';', '\t'} {
		if strings.ContainsRune(first, sep) {
			r.Comma = sep
			break
		}
	}
	return &rows{r: r, limit: l}, nil
}

// next gives the cells of the next row, valid until the next call.
func (r *rows) next() ([]string, error) {
	before := r.r.InputOffset()
	r.limit.until = before + maxRecord
	cells, err := r.r.Read()
	if r.limit.over || r.r.InputOffset()-before > maxRecord {
		return nil, fmt.Errorf("line %d: a row of more than %d bytes; is a quote not closed?", r.line+1, maxRecord)
	}
	if err == nil {
		r.n++
		r.line, _ = r.r.FieldPos(0)
	}
	return cells, err
}

// limited ends a reader whose row has no end. What csv reads ahead is in the way,
// so it ends later than rows, which knows where a row ends.
type limited struct {
	in          io.Reader
	read, until int64
	over        bool
}

// slack is what a csv.Reader may hold of later rows.
const slack = 64 << 10

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.read > l.until+slack {
		l.over = true
		return 0, errors.New("a row is too long")
	}
	n, err := l.in.Read(p)
	l.read += int64(n)
	return n, err
}
