package replay

import (
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
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// unnamed is the name of the process in a table without a column for names.
const unnamed = "app"

// tableReader turns the rows of a table into inputs of the ledger.
type tableReader struct {
	o        Options
	h        header
	ledger   *ledger.Ledger
	out      *recording
	families map[string]*family
	// name and family belong to the latest row; cells and now are the contents
	// of that row.
	name     string
	family   *family
	cells    []string
	now      reading
	limit    int
	problems rowProblems
	line     int
	// damaged reports whether the latest row was damaged.
	damaged bool
}

// readTable reads a table; limit is the maximum number of processes in it.
func readTable(in io.Reader, o Options, limit int) (*recording, error) {
	lines, err := text.NewLineReader(in, maxRecord)
	if err != nil {
		return nil, err
	}
	rows, err := newRows(lines)
	if err != nil {
		return nil, err
	}
	cells, err := rows.next()
	if err != nil {
		return nil, fmt.Errorf("read the header: %w", notNothing(err, lines.N))
	}
	h, err := readHeader(cells, o.Column)
	if err != nil {
		return nil, err
	}
	l, err := ledger.New(record.Header{Plan: &record.Plan{Assert: record.AssertEnd, MustSee: o.MustSee / detector.MB}},
		o.Policy)
	if err != nil {
		return nil, err
	}
	l.Table = true
	t := &tableReader{o: o, h: h, ledger: l, out: &recording{ledger: l}, families: map[string]*family{}, limit: limit}
	l.OpenedApp = func(x *ledger.AppSum) { t.out.addApp(x, o) }
	if err := t.read(rows); err != nil {
		return nil, err
	}
	t.out.warnings, t.out.lost, t.out.rows = t.problems.list(), t.problems.lost, rows.n-1
	if t.out.samples() == 0 {
		return nil, t.nothing(rows.n - 1)
	}
	return t.out, nil
}

func notNothing(err error, line int) error {
	if errors.Is(err, io.EOF) {
		return errors.New("it is missing; write one such as t_s,pss_kb")
	}
	if bad, ok := errors.AsType[unreadable](err); ok {
		return fmt.Errorf("line %d: %w", line, bad.error)
	}
	return err
}

// nothing returns the error for a table that contains no usable number; the
// error names the first problem that was found.
func (t *tableReader) nothing(rows int) error {
	why := t.problems.list()
	for _, x := range t.out.subjects {
		why = append(why, x.problems.list()...)
	}
	first := "there is no row below the header"
	if len(why) > 0 {
		first = why[0]
	}
	return fmt.Errorf("no usable number in column %s of %s: %s; write seconds into %s and kB into %s, or name "+
		"another column with --column",
		quoted(t.h.source), text.Plural(rows, "row", "rows"), first, timeColumn, quoted(t.h.source))
}

func (t *tableReader) read(rows *rows) error {
	for {
		cells, err := rows.next()
		t.line = rows.lines.N
		bad, damaged := errors.AsType[unreadable](err)
		switch {
		case errors.Is(err, io.EOF):
			t.end()
			return nil
		case damaged:
			t.damage(bad.error)
		case err != nil:
			return err
		case len(cells) > t.h.width:
			t.damage(fmt.Errorf("%s, but %d in the header", text.Plural(len(cells), "cell", "cells"), t.h.width))
		case rows.open && len(cells) < t.h.width:
			t.damage(errTruncated)
		default:
			t.row(cells)
		}
	}
}

// damage skips a damaged row. Like a damaged line of a run, the row may have
// contained anything. The row may have reported that a process ended or was
// replaced, so the trends restart after it.
func (t *tableReader) damage(why error) {
	t.problems.skip(t.line, "%v", why)
	if !t.damaged {
		t.ledger.AddDamage(t.line, why)
	}
	t.damaged = true
}

// row adds one row. If the row is shorter than the header, the missing cells
// are empty.
func (t *tableReader) row(cells []string) {
	t.cells = cells
	at, err := moment(t.cell(t.h.time))
	if err != nil {
		t.damage(named(timeColumn, err))
		return
	}
	pid, perr := identity(t.cell(t.h.pid))
	start, serr := identity(t.cell(t.h.start))
	if err := errors.Join(named(pidColumn, perr), named(startColumn, serr)); err != nil {
		t.damage(errors.New(oneLine(err)))
		return
	}
	name := unnamed
	if t.h.process >= 0 {
		name = t.cell(t.h.process)
	}
	if !t.find(name) {
		return
	}
	x := t.family.find(pid, at)
	if x == nil {
		if t.full() {
			return
		}
		if x, err = t.open(name, at, pid, start); err != nil {
			t.damage(err)
			return
		}
	}
	x.rows++
	t.damaged = false
	t.now = reading{at: at, pid: pid, start: start, mark: clipped(t.cell(t.h.mark)), death: t.death(x)}
	t.values(x, &t.now)
	t.addReading(x, &t.now)
}

// end marks the processes whose latest rows have no value: their series ended
// before the table did.
func (t *tableReader) end() {
	for _, f := range t.families {
		for _, x := range f.tracks {
			if lasted := x.lacking - x.last; x.begun && lasted > 0 {
				x.addEvent(record.Event{
					Event: "unseen", Duration: lasted.Seconds(),
					Text: fmt.Sprintf("no usable value in the last %v", lasted),
				}, x.lacking)
			}
		}
	}
}

// cell returns a cell of the latest row, or "" if it is missing.
func (t *tableReader) cell(i int) string {
	if i < 0 || i >= len(t.cells) {
		return ""
	}
	return strings.TrimSpace(t.cells[i])
}

// death returns why the process ended after the row, or "" if it did not end.
func (t *tableReader) death(x *track) string {
	cell := t.cell(t.h.death)
	if absent(cell) {
		return ""
	}
	reason := strings.ReplaceAll(strings.ToLower(cell), " ", "_")
	if reason == unknownReason || slices.Contains(ledger.Reasons(), reason) {
		return strings.Clone(reason) // the buffer of the row is reused
	}
	x.problems.add(t.line, "%s: unknown reason %s, treated as unknown; write one of %s", deathColumn, quoted(cell),
		strings.Join(ledger.Reasons(), ", "))
	return unknownReason
}

// unknownReason is the reason that is recorded for an unexplained death.
const unknownReason = "unknown"

func named(column string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", column, err)
}

// maxMark is the maximum length of the text of a mark, in bytes.
const maxMark = 256

func clipped(mark string) string {
	if len(mark) > maxMark {
		mark = mark[:maxMark]
	}
	return strings.Clone(mark) // the buffer of the row is reused
}

// find selects the family with the given name.
func (t *tableReader) find(name string) bool {
	if t.family != nil && name == t.name {
		return true
	}
	f := t.families[name]
	if f == nil {
		switch {
		case name == "":
			t.damage(fmt.Errorf("no name in column %s", processColumn))
			return false
		case len(name) > ledger.MaxName:
			t.damage(fmt.Errorf("the name of the process has %d bytes", len(name)))
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

// full reports whether the maximum number of processes is reached.
func (t *tableReader) full() bool {
	// A family without a track counts toward this limit too, because its name
	// takes memory.
	if len(t.out.subjects) < t.limit && len(t.families) <= t.limit {
		return false
	}
	t.problems.skip(t.line, "more than %d processes", ledger.MaxProcesses)
	return true
}

// open starts tracking another process of the current family. Each process has
// its own time axis, like a device, because a table may contain several
// recordings in succession.
func (t *tableReader) open(name string, at time.Duration, pid, start uint64) (*track, error) {
	part, err := t.ledger.AddDevice(
		record.HeaderDevice{Device: strconv.Itoa(len(t.out.subjects)), StartedUp: at.Seconds()})
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

// pidOf converts a pid of a table to a pid of a record.
func pidOf(pid uint64) int { return int(min(pid, math.MaxInt32)) }

// channel returns the channel through which a run would have read the values of
// the table.
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
	s.PID, s.Start = x.account.PID, x.account.Start
	x.part.AddSample(s)
}

// reading holds the contents of one row.
type reading struct {
	at         time.Duration
	pid, start uint64
	mark       string
	death      string
	kb         int64 // 0 for none
	breakdown  record.Breakdown
	detailed   bool
}

// values parses the numbers of a row.
func (t *tableReader) values(x *track, r *reading) {
	for _, p := range t.h.parts {
		cell := t.cell(p.column)
		if absent(cell) {
			continue
		}
		kb, err := amount(cell)
		if err != nil {
			x.problems.add(t.line, "%s: %v", p.name, err)
			continue
		}
		*p.of(&r.breakdown) = &kb
		r.detailed = true
	}
	cell := t.cell(t.h.value)
	if absent(cell) {
		if !r.detailed && r.mark == "" && r.death == "" {
			x.problems.add(t.line, "no value in %s", quoted(t.h.source))
			x.lack(r.at)
		}
		return
	}
	if t.h.mapped && r.breakdown.TotalPSS == nil {
		x.lack(r.at)
		return // reported as a part
	}
	kb, err := amount(cell)
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
		x.skip(r.at, t.line, "%s: %v", quoted(t.h.source), err)
	case kb > maxKB:
		x.skip(r.at, t.line, "%s: %d kB including swap is more than any process has", quoted(t.h.source), kb)
	case kb <= 0:
		x.skip(r.at, t.line, "%s: %d kB is not plausible for a running process", quoted(t.h.source), kb)
		r.detailed = r.detailed && !t.h.mapped
	default:
		r.kb = kb
	}
}

// mappedKB returns TOTAL minus driver memory, as a sample for the detector.
func mappedKB(b record.Breakdown) int64 {
	kb := *b.TotalPSS
	for _, driver := range []*int64{b.EGL, b.GL, b.OtherMtrack} {
		if driver != nil {
			kb -= *driver
		}
	}
	return kb
}

// addReading adds a row to its process if the row is newer than the rows before
// it.
func (t *tableReader) addReading(x *track, r *reading) {
	// A breakdown or a mark may have a row of its own next to the row of a
	// sample.
	old := x.begun && (r.at < x.last || r.kb > 0 && r.at == x.last)
	if old || r.detailed && x.wasDetail && r.at <= x.detailed {
		x.problems.skip(t.line, "%s %v is not after %v", timeColumn, r.at.Seconds(), max(x.last, x.detailed).Seconds())
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

// observe adds the mark and the values of a row to its process.
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
	if !t.h.mapped { // otherwise the breakdown is the sample
		x.addSample(record.Sample{Source: string(capture.SmapsRollup), PSS: &r.kb}, r.at)
	}
}

// restarted updates the pid and start time of the process, and records a
// restart if the row belongs to another life.
func (t *tableReader) restarted(x *track, r *reading) {
	another := r.pid != 0 && x.pid != 0 && r.pid != x.pid || r.start != 0 && x.start != 0 && r.start != x.start
	// A row after a death belongs to another life, even without a pid.
	another = another || x.dead && (r.kb > 0 || r.detailed)
	t.family.take(x, r.pid)
	if r.start != 0 || another {
		x.start = r.start
	}
	x.account.PID, x.account.Start = pidOf(x.pid), x.start
	if another {
		x.spacing, x.dead = spacing{}, false
		x.addEvent(record.Event{Event: "restart", PID: pidOf(x.pid), Start: x.start, Source: string(t.h.channel())},
			r.at)
	}
}

// stepped records a gap if the time since the last sample is too long, or if a
// value was missing in between.
func (x *track) stepped(at time.Duration) {
	step := at - x.last
	switch {
	case x.spacing.gap(step):
		x.addEvent(record.Event{Event: "gap", Duration: step.Seconds()}, at)
	case x.lacking > x.last:
		x.addEvent(record.Event{Event: "missed", Duration: step.Seconds()}, at)
	}
	x.spacing.add(step)
}
