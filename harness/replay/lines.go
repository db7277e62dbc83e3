package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// maxLine bounds one line of samples.ndjson, as its writer does.
	maxLine = 1 << 20
	// chunkSize is how many bytes of lines are decoded at once.
	chunkSize = 128 << 10
	// maxAhead is how many chunks are under way.
	maxAhead = 8
)

// chunk is some lines on their way: cut off the file, decoded by whoever is free,
// given to their processes in the order of the file, heard by all shares.
type chunk struct {
	text    []byte
	first   int // number of the first line
	lines   []line
	samples []flat // what lines point to
	decoded chan struct{}
	left    atomic.Int32 // shares that have not heard it
}

// line is one line that was decoded: a sample, an event, or neither of them.
type line struct {
	number int
	sample *record.Sample
	event  *record.Event
	err    error
	// share hears the line; everyone where it is all.
	share int
	// opens is the number of the process that begins here, 0 for none.
	opens int
}

const (
	everyone = -1
	nobody   = -2
)

// lineReader judges samples.ndjson: each share of the processes has its own replay
// of the run.
type lineReader struct {
	o      Options
	limit  int
	in     *bufio.Reader
	n      int // lines read
	torn   bool
	shares []*share
	known  map[key]int // process to its number, from 1
	doubts doubts
}

// readLines reads the samples.ndjson of a run, also of one that was killed. A line
// that cannot be read is left out and named.
func readLines(in *bufio.Reader, o Options, limit int) (*recording, error) {
	r := &lineReader{o: o, limit: limit, in: in, known: map[key]int{}}
	if err := r.begin(); err != nil {
		return nil, err
	}
	if err := r.run(); err != nil {
		return nil, err
	}
	if r.torn {
		r.doubts.add(r.n, "it is cut; left out")
	}
	return r.finish()
}

// begin reads the header. The policy of the run counts where it is the one that is
// asked for by name.
func (r *lineReader) begin() error {
	text, err := r.line(nil)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	var h record.Header
	if err := json.Unmarshal(text, &h); err != nil {
		return fmt.Errorf("line 1 is no header of %s: %w", record.SamplesName, err)
	}
	if h.Schema != record.SamplesSchema {
		return fmt.Errorf("line 1: schema is %s, not %q: name the %s of a run, or a table with a header such as t_s,pss_kb",
			quoted(h.Schema), record.SamplesSchema, record.SamplesName)
	}
	policy := r.o.Policy
	if had, err := monitor.PolicyOf(h); err != nil {
		r.doubts.add(1, "the policy of the run cannot be used: %v", err)
	} else if had.Name == policy.Name && h.Plan != nil {
		policy = had
	}
	for i := range runtime.GOMAXPROCS(0) {
		replay, err := monitor.NewReplay(h, policy)
		if err != nil {
			return fmt.Errorf("line 1: %w", err)
		}
		r.shares = append(r.shares, &share{o: r.o, index: i, replay: replay, queue: make(chan *chunk, maxAhead)})
	}
	return nil
}

// line appends the next line, without its end, to text. The error is io.EOF for a
// last line without its end, too.
func (r *lineReader) line(text []byte) ([]byte, error) {
	r.n++
	begin := len(text)
	for {
		part, err := r.in.ReadSlice('\n')
		text = append(text, part...)
		if len(text)-begin > maxLine {
			return nil, fmt.Errorf("line %d is longer than %d bytes", r.n, maxLine)
		}
		switch {
		case err == nil:
			return text[:len(text)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return text, err
		}
	}
}

// run lets the chunks pass through all stages.
func (r *lineReader) run() error {
	undecoded, ordered := make(chan *chunk, maxAhead), make(chan *chunk, maxAhead)
	free := make(chan *chunk, maxAhead)
	for range maxAhead {
		free <- &chunk{}
	}
	var work sync.WaitGroup
	for range r.shares {
		work.Go(func() {
			var d decoder
			for c := range undecoded {
				c.decode(&d)
			}
		})
	}
	for _, s := range r.shares {
		s.free = free
		work.Go(s.work)
	}
	work.Go(func() {
		r.assign(ordered)
	})
	err := r.cut(free, undecoded, ordered)
	close(undecoded)
	close(ordered)
	work.Wait()
	return err
}

// cut reads the lines into chunks.
func (r *lineReader) cut(free, undecoded, ordered chan *chunk) error {
	for {
		c := <-free
		end, err := r.fill(c)
		if err != nil {
			return err
		}
		c.decoded = make(chan struct{})
		c.left.Store(int32(len(r.shares)))
		undecoded <- c
		ordered <- c
		if end {
			return nil
		}
	}
}

// fill reads the lines of one chunk and tells whether they are the last. A last line
// without its end is not taken.
func (r *lineReader) fill(c *chunk) (end bool, err error) {
	c.text, c.first = c.text[:0], r.n+1
	for len(c.text) < chunkSize {
		whole := len(c.text)
		text, err := r.line(c.text)
		switch {
		case errors.Is(err, io.EOF):
			if r.torn = len(text) > whole; !r.torn {
				r.n-- // there is no such line
			}
			c.text = text[:whole]
			return true, nil
		case err != nil:
			return true, err
		}
		c.text = append(text, '\n')
	}
	return false, nil
}

// decode makes lines of the text.
func (c *chunk) decode(d *decoder) {
	clear(c.lines)
	c.lines, c.samples = c.lines[:0], c.samples[:0]
	n := c.first
	for text := range bytes.Lines(c.text) {
		l := d.line(text, c)
		l.number = n
		c.lines = append(c.lines, l)
		n++
	}
	close(c.decoded)
}

// assign gives each line to the share of its process, in the order of the file.
func (r *lineReader) assign(ordered chan *chunk) {
	for c := range ordered {
		<-c.decoded
		for i := range c.lines {
			r.give(&c.lines[i])
		}
		for _, s := range r.shares {
			s.queue <- c
		}
	}
	for _, s := range r.shares {
		close(s.queue)
	}
}

func (r *lineReader) give(l *line) {
	if l.share != nobody && l.err == nil {
		l.err = r.check(l)
	}
	switch {
	case l.share == nobody:
	case l.err != nil:
		r.doubts.add(l.number, "%v; left out", l.err)
		l.share = everyone // what is missing may have been of any process
	case l.sample != nil:
		s := l.sample
		l.share, l.opens = r.shareOf(key{s.Device, s.User, s.Process}, true, l.number)
	case l.event.Process == "":
		l.share = everyone
	default:
		e := l.event
		k := key{device: e.Device, process: e.Process}
		if e.User != nil {
			k.user = *e.User
		}
		l.share, l.opens = r.shareOf(k, e.Event == "found", l.number)
	}
}

func (r *lineReader) check(l *line) error {
	if l.sample != nil {
		return r.shares[0].replay.CheckSample(*l.sample)
	}
	return r.shares[0].replay.CheckEvent(*l.event)
}

// shareOf is the share of a process, and its number if it begins here.
func (r *lineReader) shareOf(k key, opens bool, number int) (share, opened int) {
	n, known := r.known[k]
	if known {
		return n % len(r.shares), 0
	}
	switch {
	case !opens:
		return nobody, 0 // as in the run: nobody knows the process
	case len(k.process) > maxNameBytes:
		r.doubts.add(number, "the name of the process has %d bytes; left out", len(k.process))
		return nobody, 0
	case len(r.known) >= r.limit:
		r.doubts.add(number, "more than %d processes; left out", maxProcesses)
		return nobody, 0
	}
	n = len(r.known) + 1
	r.known[k] = n
	return n % len(r.shares), n
}

// finish puts the shares together again.
func (r *lineReader) finish() (*recording, error) {
	out := &recording{rows: r.n - 1, subjects: make([]subject, len(r.known))}
	last := r.shares[0].replay.Last()
	for _, s := range r.shares {
		for i, t := range s.replay.Last() {
			last[i] = max(last[i], t)
		}
	}
	all := r.doubts
	for _, s := range r.shares {
		s.replay.Until(last)
		for _, x := range s.series {
			out.subjects[x.number-1] = x
		}
		all.merge(s.doubts)
	}
	out.warnings = all.list()
	// A process that no replay took is of a device that is not in the header.
	kept := out.subjects[:0]
	for _, x := range out.subjects {
		if x != nil {
			kept = append(kept, x)
		}
	}
	out.subjects = kept
	if out.samples() == 0 {
		return nil, r.nothing(out)
	}
	return out, nil
}

func (r *lineReader) nothing(out *recording) error {
	why := "no line holds a sample with pss_kb, rss_anon_kb or a breakdown"
	if len(out.warnings) > 0 {
		why = out.warnings[0]
	}
	return fmt.Errorf("no usable number in %d lines: %s", out.rows, why)
}

// share replays some of the processes of a run.
type share struct {
	o      Options
	index  int
	replay *monitor.Replay
	queue  chan *chunk
	free   chan *chunk
	series []*lineSeries
	doubts doubts
}

func (s *share) work() {
	for c := range s.queue {
		for i := range c.lines {
			if l := &c.lines[i]; l.share == s.index || l.share == everyone {
				s.hear(l)
			}
		}
		if c.left.Add(-1) == 0 {
			s.free <- c
		}
	}
}

func (s *share) hear(l *line) {
	if l.err != nil {
		s.replay.Damaged()
		return
	}
	if l.opens > 0 {
		s.open(l)
	}
	var err error
	if l.sample != nil {
		err = s.replay.Sample(*l.sample)
	} else {
		err = s.replay.Event(*l.event)
	}
	// What everyone hears, one of them tells.
	if err != nil && (l.share != everyone || s.index == 0) {
		s.doubts.add(l.number, "%v; left out", err)
	}
}

func (s *share) open(l *line) {
	x := &lineSeries{number: l.opens}
	p := capture.Process{}
	if l.sample != nil {
		x.name.device, p.Name, p.User, p.PID, p.Start = l.sample.Device, l.sample.Process, l.sample.User, l.sample.PID, l.sample.Start
	} else {
		x.name.device, p.Name, p.PID, p.Start = l.event.Device, l.event.Process, l.event.PID, l.event.Start
		if l.event.User != nil {
			p.User = *l.event.User
		}
	}
	x.name.user, x.name.process = p.User, p.Name
	series, err := s.replay.Open(x.name.device, p)
	if err != nil {
		return // the line itself says so too
	}
	x.series = series
	if s.o.Explain && l.opens <= maxExplained {
		series.Detector().Explain(func(seen detector.Look) { x.looks.add(series.Seconds(seen.At), seen) })
	}
	s.series = append(s.series, x)
}

// lineSeries is one process of a run.
type lineSeries struct {
	number int
	name   key
	series *monitor.Series
	looks  looks
}

// The methods of subject.

func (x *lineSeries) key() key { return x.name }

func (x *lineSeries) judgedBy() *detector.Detector { return x.series.Detector() }

func (x *lineSeries) heard() int { return x.series.Samples() }

func (x *lineSeries) record(processes int) Process {
	p := Process{Process: x.series.Record(processes), Marks: x.series.Marks()}
	p.Looks = x.looks.kept // a verdict may look once more
	p.Warnings = append(p.Warnings, x.looks.leftOut()...)
	return p
}
