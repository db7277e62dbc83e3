package mapping

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"unicode/utf8"

	"github.com/leakgate/leakgate/internal/text"
)

// A line longer than maxLine is skipped. A mapping that exceeds any of the
// other limits is rejected. The largest known app has a mapping of a third of a
// gigabyte, with 200,000 classes and millions of names.
const (
	maxLine    = 256 << 10
	maxText    = 1 << 30
	maxClasses = 4 << 20
	maxNames   = 32 << 20
)

// caps holds the limits for one mapping; tests use lower ones.
type caps struct {
	line, text     int
	classes, names int
}

// Read reads a mapping.txt to the end. Lines that cannot be parsed, or that are
// longer than 256 KiB, are reported in Warnings. It returns an error if no line
// of the input belongs to a mapping, if the input exceeds a gigabyte, 4 million
// classes or 32 million names, or if r fails. The error includes the line
// number.
func Read(r io.Reader) (*Mapping, error) {
	return read(r, caps{line: maxLine, text: maxText, classes: maxClasses, names: maxNames})
}

func read(r io.Reader, c caps) (*Mapping, error) {
	text := &reading{
		Mapping: &Mapping{names: newNames()},
		most:    c,
		in:      bufio.NewReaderSize(r, c.line),
		seed:    maphash.MakeSeed(),
	}
	if err := text.lines(); err != nil {
		return nil, fmt.Errorf("read mapping: %w", err)
	}
	return text.Mapping, nil
}

// reading is the state of Read: the input, the mapping so far, and the class
// whose lines are being read.
type reading struct {
	*Mapping
	most caps
	in   *bufio.Reader
	seed maphash.Seed
	// number is the number of the line, from 1; size is the number of bytes
	// read.
	number, size int
	doubts       [doubts]doubt
	// version is the mapping version that R8 declared for the lines read now,
	// or 0 if it declared none.
	version version
	header  bool
	// open is true while the lines of a class are being read. The class and its
	// encoded members are collected in the fields below.
	open            bool
	current         class
	fields, methods []byte
	chunk           []byte
	// subject is the kind of the line that the next metadata describes.
	subject subject
	// last is the offset, in fields or methods, of the encoding of the line
	// above.
	last int
}

// subject is a kind of line that metadata can describe.
type subject int

const (
	ofNothing subject = iota
	ofClass
	ofField
	ofMethod
)

var errNothing = errors.New("not a ProGuard or R8 mapping")

func (r *reading) lines() error {
	for {
		line, err := r.next()
		if errors.Is(err, io.EOF) {
			return r.finish()
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", r.number, err)
		}
		if line = trim(line); len(line) == 0 {
			continue
		}
		r.line(line)
		if len(r.classes) > r.most.classes {
			return fmt.Errorf("line %d: more than %d classes", r.number, r.most.classes)
		}
		if r.names.len() > r.most.names {
			return fmt.Errorf("line %d: more than %d names", r.number, r.most.names)
		}
	}
}

var mark = []byte("\xef\xbb\xbf")

// next returns the next line without its newline; a line that is too long is
// returned as empty. The error is io.EOF after the last line.
func (r *reading) next() ([]byte, error) {
	r.number++
	line, err := r.in.ReadSlice('\n')
	r.size += len(line)
	long := errors.Is(err, bufio.ErrBufferFull)
	for errors.Is(err, bufio.ErrBufferFull) && r.size <= r.most.text {
		var more []byte
		more, err = r.in.ReadSlice('\n')
		r.size += len(more)
	}
	if r.size > r.most.text {
		return nil, fmt.Errorf("the input is longer than %d bytes", r.most.text)
	}
	if err != nil && err != io.EOF {
		return nil, err
	}
	if long {
		r.doubt(longLine, nil)
		r.subject = ofNothing
		return nil, nil
	}
	if err == io.EOF && len(line) == 0 {
		return nil, io.EOF
	}
	if r.number == 1 {
		line = bytes.TrimPrefix(line, mark)
	}
	return bytes.TrimSuffix(line, newline), nil
}

var newline = []byte("\n")

// line parses one line that is not empty. The line of a class ends in a colon;
// as in ProGuard's MappingReader, members need not be indented.
func (r *reading) line(line []byte) {
	switch {
	case line[0] == '#':
		r.comment(trim(line[1:]))
	case !utf8.Valid(line):
		r.meaningless(line)
	case line[len(line)-1] == ':':
		r.class(line)
	default:
		r.member(line)
	}
}

func (r *reading) class(line []byte) {
	original, renamed, ok := parseClass(line)
	if !ok {
		// The members below this line do not belong to the class above it.
		r.close()
		r.meaningless(line)
		return
	}
	r.close()
	r.open, r.subject = true, ofClass
	r.current = class{original: r.names.add(original), renamed: r.names.add(renamed)}
}

func (r *reading) member(line []byte) {
	m, ok := parseMember(line)
	if !ok {
		r.meaningless(line)
		return
	}
	if !r.open {
		r.doubt(orphan, line)
		r.subject = ofNothing
		return
	}
	if !m.method {
		r.Fields++
		r.subject, r.last = ofField, len(r.fields)
		r.fields = appendField(r.fields,
			field{renamed: r.names.add(m.renamed), name: r.names.add(m.name), kind: kindOf(m.kind)})
		return
	}
	r.Methods++
	r.subject, r.last = ofMethod, len(r.methods)
	encoded := method{
		renamed: r.names.add(m.renamed), name: r.names.add(m.name),
		obfuscated: m.obfuscated, original: m.original,
		signature: uint32(maphash.Bytes(r.seed, m.signature)),
	}
	if m.holder != nil {
		encoded.holder = r.names.add(m.holder)
	}
	r.methods = appendMethod(r.methods, encoded)
}

// meaningless counts a line that cannot be parsed; comments below it are
// ignored.
func (r *reading) meaningless(line []byte) {
	r.doubt(noMeaning, line)
	r.subject = ofNothing
}

const chunkSize = 1 << 20

// close stores the current class and its members. Many classes share a chunk of
// memory.
func (r *reading) close() {
	if !r.open {
		return
	}
	r.open, r.subject = false, ofNothing
	r.Classes++
	size := len(r.fields) + len(r.methods)
	if size > cap(r.chunk)-len(r.chunk) {
		r.chunk = make([]byte, 0, max(chunkSize, size))
	}
	at := len(r.chunk)
	r.chunk = append(append(r.chunk, r.fields...), r.methods...)
	r.current.members = r.chunk[at:len(r.chunk):len(r.chunk)]
	r.current.methods = uint32(len(r.fields))
	r.classes = append(r.classes, r.current)
	r.fields, r.methods = r.fields[:0], r.methods[:0]
}

// finish stores the last class, indexes all classes and collects the warnings.
// The mapping of a build that renames nothing has no classes, but names its
// compiler.
func (r *reading) finish() error {
	r.close()
	if r.Classes == 0 && !r.header {
		if r.size == 0 {
			return errors.New("the input is empty")
		}
		return fmt.Errorf("%w: %w", errNothing, r.reason())
	}
	r.index()
	for i := range r.classes {
		if c := &r.classes[i]; r.byRenamed[c.renamed] != uint32(i)+1 {
			r.doubts[twice].count++
			if r.doubts[twice].text == "" {
				r.doubts[twice].text = quoted([]byte(r.names.name(c.renamed)))
			}
		}
	}
	r.warn()
	return nil
}

// reason returns an error with the first line that could not be parsed.
func (r *reading) reason() error {
	for k := range r.doubts {
		if err := r.doubts[k].err(k); err != nil {
			return err
		}
	}
	return errors.New("only comments")
}

// These are the kinds of problems; each kind leads to one warning.
const (
	noMeaning = iota
	longLine
	orphan
	twice
	badInformation
	newer
	doubts
)

// doubt counts the problems of one kind, and holds the first line with that
// problem.
type doubt struct {
	count, line int
	text        string
}

func (r *reading) doubt(kind int, line []byte) {
	d := &r.doubts[kind]
	if d.count == 0 {
		d.line, d.text = r.number, quoted(line)
	}
	d.count++
}

func (d *doubt) err(kind int) error {
	if d.count == 0 {
		return nil
	}
	more := ""
	if d.count > 1 {
		more = fmt.Sprintf(", and %d more such lines", d.count-1)
	}
	switch kind {
	case noMeaning:
		return fmt.Errorf("line %d: cannot parse %s%s", d.line, d.text, more)
	case longLine:
		return fmt.Errorf("line %d: too long, skipped%s", d.line, more)
	case orphan:
		return fmt.Errorf("line %d: %s is outside a class%s", d.line, d.text, more)
	case twice:
		return fmt.Errorf("%s the name of an earlier class, first %s; the first definition is used",
			text.Count(d.count, "class repeats", "classes repeat"), d.text)
	case badInformation:
		return fmt.Errorf("line %d: invalid metadata %s%s", d.line, d.text, more)
	default:
		return fmt.Errorf("line %d: the version %s of the mapping is newer than %s: its additions are ignored", d.line,
			d.text, supported)
	}
}

func (r *reading) warn() {
	for kind := range r.doubts {
		if err := r.doubts[kind].err(kind); err != nil {
			r.Warnings = append(r.Warnings, err)
		}
	}
}

const maxQuoted = 80

// quoted returns the beginning of a line, for use in a message.
func quoted(line []byte) string {
	return text.Quote(string(line[:min(len(line), 4*maxQuoted)]), maxQuoted)
}
