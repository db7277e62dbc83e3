package replay

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/reporters/record"
)

// maxRecord bounds one row of a table, in bytes.
const maxRecord = 1 << 20

// unnamed is the process of a table without a column of names.
const unnamed = "app"

// tableReader turns the rows of a table into inputs for its judges.
type tableReader struct {
	o        Options
	h        header
	ledger   *ledger.Ledger
	out      *recording
	families map[string]*family
	// name and family are those of the latest row, cells and now what it says.
	name   string
	family *family
	cells  []string
	now    reading
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
	l, err := ledger.New(record.Header{Plan: &record.Plan{Assert: record.AssertEnd, MustSee: o.MustSee / detector.MB}}, o.Policy)
	if err != nil {
		return nil, err
	}
	l.Table = true
	t := &tableReader{o: o, h: h, ledger: l, out: &recording{ledger: l}, families: map[string]*family{}, limit: limit}
	l.OpenedApp = func(x *ledger.AppSum) { t.out.addApp(x, o) }
	if err := t.read(rows); err != nil {
		return nil, err
	}
	t.out.warnings = t.doubts.list()
	if t.out.samples() == 0 {
		return nil, t.nothing(rows.n - 1)
	}
	return t.out, nil
}

func notNothing(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("there is none; write one such as t_s,pss_kb")
	}
	return err
}

// nothing says that a table holds no number to judge, and the first reason.
func (t *tableReader) nothing(rows int) error {
	why := t.doubts.list()
	for _, x := range t.out.subjects {
		why = append(why, x.doubts.list()...)
	}
	first := "there is no row below the header"
	if len(why) > 0 {
		first = why[0]
	}
	return fmt.Errorf("no usable number in column %s of %d rows: %s; write seconds into %s and kB into %s, or name another column with --column",
		quoted(t.h.source), rows, first, timeColumn, quoted(t.h.source))
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
		x, err = t.open(name, at, pid, start)
		if err != nil {
			t.doubts.add(t.line, "%v; the row is left out", err)
			return
		}
	}
	if err := errors.Join(named(timeColumn, err), named(pidColumn, perr), named(startColumn, serr)); err != nil {
		x.doubts.add(t.line, "%s; the row is left out", oneLine(err))
		return
	}
	t.now = reading{at: at, pid: pid, start: start, mark: clipped(t.cell(t.h.mark)), death: t.death(x)}
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

// death is the reason for which the process ended after the row, "" for none.
func (t *tableReader) death(x *track) string {
	cell := t.cell(t.h.death)
	if absent(cell) {
		return ""
	}
	reason := strings.ReplaceAll(strings.ToLower(cell), " ", "_")
	if reason == unknownReason || slices.Contains(ledger.Reasons(), reason) {
		return strings.Clone(reason) // the row is used again
	}
	x.doubts.add(t.line, "%s: unknown reason %s, taken as unknown; write one of %s", deathColumn, quoted(cell), strings.Join(ledger.Reasons(), ", "))
	return unknownReason
}

// unknownReason is that of a death that nothing explains.
const unknownReason = "unknown"

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
		case len(name) > ledger.MaxName:
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
	if len(t.out.subjects) < t.limit && len(t.families) <= t.limit {
		return false
	}
	t.doubts.add(t.line, "more than %d processes; the row is left out", ledger.MaxProcesses)
	return true
}

// open begins another process of the present family. Each has a time axis of its own,
// as a device has: tables may hold recordings one below the other.
func (t *tableReader) open(name string, at time.Duration, pid, start uint64) (*track, error) {
	part, err := t.ledger.AddDevice(record.HeaderDevice{Device: strconv.Itoa(len(t.out.subjects)), StartedUp: at.Seconds()})
	if err != nil {
		return nil, err
	}
	a := part.Open(capture.Process{Name: strings.Clone(name), PID: pidOf(pid), Start: start})
	x := &track{subject: t.out.add(a, t.o), part: part}
	x.key.device, x.source = "", t.h.source
	x.addEvent(record.Event{Event: "found", PID: a.PID, Start: start, Source: string(t.h.channel())}, at)
	t.family.tracks = append(t.family.tracks, x)
	return x, nil
}

// pidOf is a pid of a table as records have it.
func pidOf(pid uint64) int { return int(min(pid, math.MaxInt32)) }

// channel is the way in which a run would have read the values of the table.
func (h *header) channel() capture.Source {
	if h.mapped {
		return capture.Dumpsys
	}
	return capture.SmapsRollup
}

// addEvent adds an event about the process.
func (x *track) addEvent(e record.Event, at time.Duration) {
	e.T, e.Up, e.Process = x.part.Seconds(at), at.Seconds(), x.key.process
	x.part.AddEvent(e)
}

// addSample adds a sample of the process.
func (x *track) addSample(s record.Sample, at time.Duration) {
	s.T, s.Up, s.Process = x.part.Seconds(at), at.Seconds(), x.key.process
	x.part.AddSample(s)
}

// reading is what one row says.
type reading struct {
	at         time.Duration
	pid, start uint64
	mark       string
	death      string
	kb         int64 // 0 for none
	breakdown  record.Breakdown
	detailed   bool
}

// values reads the numbers of a row.
func (t *tableReader) values(x *track, r *reading) {
	for _, p := range t.h.parts {
		text := t.cell(p.column)
		if absent(text) {
			continue
		}
		kb, err := amount(text)
		if err != nil {
			x.doubts.add(t.line, "%s: %v", p.name, err)
			continue
		}
		*p.of(&r.breakdown) = &kb
		r.detailed = true
	}
	text := t.cell(t.h.value)
	if absent(text) {
		if !r.detailed && r.mark == "" && r.death == "" {
			x.doubts.add(t.line, "no value in %s", quoted(t.h.source))
		}
		return
	}
	if t.h.mapped && r.breakdown.TotalPSS == nil {
		return // reported as a part
	}
	kb, err := amount(text)
	if swap := t.cell(t.h.swap); err == nil && !absent(swap) {
		var more int64
		more, err = amount(swap)
		kb += more
	}
	if t.h.mapped {
		kb = mappedKB(r.breakdown)
	}
	switch {
	case err != nil:
		x.doubts.add(t.line, "%s: %v; the row is left out", quoted(t.h.source), err)
	case kb <= 0:
		x.doubts.add(t.line, "%s: no living process has %d bytes; the row is left out", quoted(t.h.source), kb<<10)
		r.detailed = r.detailed && !t.h.mapped
	default:
		r.kb = kb
	}
}

// mappedKB is TOTAL less driver memory, as the detector takes it for a sample.
func mappedKB(b record.Breakdown) int64 {
	kb := *b.TotalPSS
	for _, driver := range []*int64{b.EGL, b.GL, b.OtherMtrack} {
		if driver != nil {
			kb -= *driver
		}
	}
	return kb
}

// tell adds a row to its process, as far as it is newer than what came before.
func (t *tableReader) tell(x *track, r *reading) {
	// A breakdown or a mark may stand in a row of its own beside a sample.
	old := x.begun && (r.at < x.last || r.kb > 0 && r.at == x.last)
	if old || r.detailed && x.wasDetail && r.at <= x.detailed {
		x.doubts.add(t.line, "%s %v is not after %v; the row is left out", timeColumn, r.at.Seconds(), max(x.last, x.detailed).Seconds())
		return
	}
	if r.kb == 0 && !r.detailed && r.mark == "" && r.death == "" {
		return // reported already
	}
	t.restarted(x, r)
	t.observe(x, r)
	if r.death != "" {
		x.addEvent(record.Event{Event: "death", PID: pidOf(x.pid), Reason: r.death, EndedUp: new(r.at.Seconds())}, r.at)
		x.dead = true
	}
}

// observe adds the mark and the values of a row.
func (t *tableReader) observe(x *track, r *reading) {
	if r.mark != "" {
		x.addEvent(record.Event{Event: "mark", Text: r.mark}, r.at)
	}
	if r.kb > 0 && x.begun {
		x.stepped(r.at)
	}
	if r.detailed {
		x.detailed, x.wasDetail = r.at, true
		x.addSample(record.Sample{Source: string(capture.Dumpsys), Breakdown: &r.breakdown}, r.at)
	}
	if r.kb == 0 {
		return
	}
	x.last, x.begun = r.at, true
	if !t.h.mapped { // else the breakdown is the sample
		x.addSample(record.Sample{Source: string(capture.SmapsRollup), PSS: &r.kb}, r.at)
	}
}

// restarted looks whether the row is of another incarnation of the process.
func (t *tableReader) restarted(x *track, r *reading) {
	another := r.pid != 0 && x.pid != 0 && r.pid != x.pid || r.start != 0 && x.start != 0 && r.start != x.start
	// What comes after a death is another incarnation, also without a pid.
	another = another || x.dead && (r.kb > 0 || r.detailed)
	t.family.take(x, r.pid)
	if r.start != 0 || another {
		x.start = r.start
	}
	x.account.PID = pidOf(x.pid)
	if another {
		x.rhythm, x.dead = rhythm{}, false
		x.addEvent(record.Event{Event: "restart", PID: pidOf(x.pid), Start: x.start, Source: string(t.h.channel())}, r.at)
	}
}

// stepped looks whether the time since the last sample is a hole.
func (x *track) stepped(at time.Duration) {
	step := at - x.last
	if x.rhythm.hole(step) {
		x.addEvent(record.Event{Event: "gap", Lasted: step.Seconds()}, at)
	}
	x.rhythm.add(step)
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
