package hproftest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// Runtime selects the runtime whose dump format is written.
type Runtime uint8

// ART is Android's runtime since 5.0; HotSpot is the JDK's.
const (
	ART Runtime = iota + 1
	HotSpot
)

// Form selects how a heap is written: runtime, ID size, order, segments. The
// zero Form selects ART's usual form.
type Form struct {
	Runtime Runtime
	// IDSize is 4 or 8; 0 selects the runtime's usual ID size: 4 for ART, 8 for
	// HotSpot.
	IDSize int
	// Format is the name of the format in the header; "" selects the runtime's
	// usual format.
	Format string
	// Time is the timestamp in the header; zero selects a fixed day.
	Time time.Time
	// Segments overrides how the runtime divides the heap into segments.
	Segments *Segmentation
	// Shuffle writes the objects in a random order.
	Shuffle bool
	// HeapFirst writes the heap before the strings and classes.
	HeapFirst bool
	// Converted writes ART's dump as AOSP's hprof-conv converts it: in version
	// 1.0.2, without heaps, and with unknown roots in place of the kinds of
	// roots that only ART has.
	Converted bool
	// NoEnd omits HEAP_DUMP_END.
	NoEnd bool
	// If measure is true, the elements of large arrays are not generated.
	measure bool
}

func (f Form) withDefaults() Form {
	if f.Runtime == 0 {
		f.Runtime = ART
	}
	if f.IDSize == 0 {
		f.IDSize = map[Runtime]int{ART: 4, HotSpot: 8}[f.Runtime]
	}
	if f.Format == "" {
		f.Format = hprof.Format102
		if f.Runtime == ART && !f.Converted {
			f.Format = hprof.Format103
		}
	}
	if f.Time.IsZero() {
		f.Time = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	}
	return f
}

// IDs holds the IDs of a heap's objects in one dump.
type IDs struct {
	ids []hprof.ID
	// values holds the IDs of the arrays that contain the characters of
	// strings.
	values []hprof.ID
}

// Of returns the ID of an object, which is a Ref, Thread or *Class. It returns
// 0 for null and for objects that the runtime does not have.
func (ids IDs) Of(object any) hprof.ID {
	switch o := object.(type) {
	case Ref:
		return ids.of(o)
	case Thread:
		return ids.of(o.Ref)
	case *Class:
		if o != nil {
			return ids.of(o.ref)
		}
	}
	return 0
}

func (ids IDs) of(r Ref) hprof.ID {
	if int(r) < len(ids.ids) {
		return ids.ids[r]
	}
	return 0
}

// Value returns the ID of the array that contains the characters of a string.
func (ids IDs) Value(s Ref) hprof.ID {
	if int(s) < len(ids.values) {
		return ids.values[s]
	}
	return 0
}

// Write writes the heap as a dump. Write can be called repeatedly and with
// different forms.
func (h *Heap) Write(out io.Writer, f Form) (IDs, error) {
	all, err := Write(out, f, h)
	if len(all) == 0 {
		return IDs{}, err
	}
	return all[0], err
}

// Dump writes the heap to memory and returns the dump. If the description of
// the heap is invalid, Dump returns the error that Err returns.
func (h *Heap) Dump(f Form) ([]byte, IDs, error) {
	var b bytes.Buffer
	ids, err := h.Write(&b, f)
	return b.Bytes(), ids, err
}

// Measure returns the number of bytes that Write would write in a form. Measure
// is faster than Write, because the elements of large arrays are not generated.
func (h *Heap) Measure(f Form) (int64, error) {
	f.measure = true
	var n counter
	_, err := h.Write(&n, f)
	return int64(n), err
}

type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// Write writes several heaps to one file, one after the other, as the JVM's
// hprof agent does if it dumps more than once. Different heaps may use the same
// IDs.
func Write(out io.Writer, f Form, heaps ...*Heap) ([]IDs, error) {
	f = f.withDefaults()
	w := NewWriter(out, hprof.Header{Format: f.Format, IDSize: f.IDSize, Time: f.Time})
	var all []IDs
	for _, h := range heaps {
		d, err := newDump(h, f)
		if err != nil {
			return all, err
		}
		all = append(all, d.IDs)
		for _, s := range d.steps(w) {
			for s() && w.Err() == nil {
			}
		}
		if h.err != nil {
			return all, h.err
		}
	}
	return all, w.Close()
}

// Reader returns a reader of the bytes that Write would write. The bytes are
// generated while they are being read, so only the description of the heap is
// in memory.
func (h *Heap) Reader(f Form) io.Reader {
	f = f.withDefaults()
	r := &reader{}
	r.w = NewWriter(&r.buf, hprof.Header{Format: f.Format, IDSize: f.IDSize, Time: f.Time})
	d, err := newDump(h, f)
	if err != nil {
		r.err = err
		return r
	}
	r.steps = d.steps(r.w)
	return r
}

type reader struct {
	buf   bytes.Buffer
	w     *Writer
	steps []step
	err   error
}

func (r *reader) Read(b []byte) (int, error) {
	for r.buf.Len() == 0 {
		switch {
		case r.err != nil:
			return 0, r.err
		case len(r.steps) == 0:
			if r.err = r.w.Close(); r.err == nil {
				r.err = io.EOF
			}
		case !r.steps[0]():
			r.steps = r.steps[1:]
		}
	}
	return r.buf.Read(b)
}

// dump is the state of a heap that is being written.
type dump struct {
	IDs
	*Heap
	Form
	w *Writer
	// order lists the objects in the order in which they are written.
	order []Ref
	// free is the first address after the app's objects.
	free hprof.ID
	// names maps names to their string IDs, in the order of first use.
	names   map[string]hprof.ID
	listed  []string
	serials map[*Class]uint32
	// used holds the loaded classes.
	used    []*Class
	layouts map[*Class][]slot
	art     artState
	// If dry is true, nothing is written, and the pass only collects names.
	dry bool
	// buf and elements are reused for each object.
	buf      []byte
	elements []hprof.ID
	statics  []hprof.Static
	fields   []hprof.Field
}

func newDump(h *Heap, f Form) (*dump, error) {
	if h.err != nil {
		return nil, h.err
	}
	if f.Runtime != ART && f.Runtime != HotSpot {
		return nil, fmt.Errorf("write the heap: unknown runtime %d", f.Runtime)
	}
	if f.IDSize != 4 && f.IDSize != 8 {
		return nil, fmt.Errorf("write the heap: IDs of %d bytes; want 4 or 8", f.IDSize)
	}
	d := &dump{
		Heap: h, Form: f, names: map[string]hprof.ID{}, serials: map[*Class]uint32{}, layouts: map[*Class][]slot{},
	}
	if err := d.place(); err != nil {
		return nil, err
	}
	if f.Shuffle {
		rand.New(rand.NewPCG(h.seed, 1)).
			Shuffle(len(d.order), func(i, j int) { d.order[i], d.order[j] = d.order[j], d.order[i] })
	}
	return d, nil
}

// step writes a part of the dump, and reports whether more calls may be needed.
type step func() bool

// once returns a step that does all of its work at once.
func once(do func()) step { return each(1, func(int) { do() }) }

// each returns a step that does its work in n parts.
func each(n int, do func(i int)) step {
	i := 0
	return func() bool {
		if i < n {
			do(i)
			i++
		}
		return i < n
	}
}

// steps returns the steps that write the whole dump. The heap is written last,
// but the parts before it depend on its contents, so it is processed twice, as
// in ART (runtime/hprof/hprof.cc, Dump).
func (d *dump) steps(w *Writer) []step {
	last := once(func() {
		if !d.NoEnd {
			w.EndHeap()
		}
	})
	if d.HeapFirst {
		return slices.Concat([]step{once(func() { d.w = w })}, d.body(), []step{once(d.head), last})
	}
	names := once(func() {
		d.w, d.dry = NewWriter(io.Discard, hprof.Header{Format: d.Format, IDSize: d.IDSize}), true
		for _, s := range d.body() {
			for s() {
			}
		}
		d.w, d.dry = w, false
	})
	return slices.Concat([]step{names, once(d.head)}, d.body(), []step{last})
}

// body returns the steps that write the heap; if dry is true, they only collect
// the names in the heap.
func (d *dump) body() []step {
	begin := once(func() {
		d.w.Segment(d.segments())
		d.art = artState{simple: map[hprof.Root]bool{}}
	})
	end := once(func() { d.w.EndSegment() })
	if d.Runtime == ART {
		return slices.Concat([]step{begin}, d.artBody(), []step{end})
	}
	return slices.Concat([]step{begin}, d.hotSpotBody(), []step{end})
}

func (d *dump) segments() Segmentation {
	if d.Segments != nil {
		return *d.Segments
	}
	if d.Runtime == ART {
		return Segmentation{} // the code for ART divides the heap itself
	}
	return HotSpotSegments()
}

func (d *dump) head() {
	if d.Runtime == ART {
		d.artHead()
	} else {
		d.hotSpotHead()
	}
}

// name returns the string ID of a name, and assigns one on first use.
func (d *dump) name(s string) hprof.ID {
	id, ok := d.names[s]
	if !ok {
		id = d.firstName() + hprof.ID(len(d.listed))*d.nameStep()
		d.names[s] = id
		d.listed = append(d.listed, s)
	}
	return id
}

// ART numbers strings consecutively, starting with a fixed number; HotSpot's
// string IDs are addresses of symbols.
func (d *dump) firstName() hprof.ID {
	switch {
	case d.Runtime == ART:
		return 0x400000
	case d.IDSize == 8:
		return 0x800400018
	}
	return 0x8040018
}

func (d *dump) nameStep() hprof.ID {
	if d.Runtime == ART {
		return 1
	}
	return 24
}

// class returns the ID of a class and ensures that the class is loaded.
func (d *dump) class(c *Class) hprof.ID {
	if c == nil {
		return 0
	}
	if _, ok := d.serials[c]; !ok {
		d.serials[c] = uint32(len(d.serials) + 1)
		d.used = append(d.used, c)
		d.name(d.className(c))
	}
	return d.of(c.ref)
}

// isMissing reports whether the object has an ID but is not in the dump.
func (d *dump) isMissing(r Ref) bool { return d.objects[r].shape == ofNothing }

// exists reports whether the runtime has the object.
func (d *dump) exists(r Ref) bool {
	o := &d.objects[r]
	return (o.only == 0 || o.only == d.Runtime) && (o.class.only == 0 || o.class.only == d.Runtime)
}

// slot is the index of a field's value in the slots of an object.
type slot struct {
	at   int
	kind hprof.Type
}

// made is the position of a field that ART adds and that no class declares. The
// field holds an array whose ID is derived from the object's address.
const made = -1

// layout returns the order in which the values of an instance are written: the
// values of the class's own fields, then those of its superclass, and so on.
func (d *dump) layout(c *Class) []slot {
	if l, ok := d.layouts[c]; ok {
		return l
	}
	var l []slot
	for k := c; k != nil; k = k.super {
		for _, i := range d.fieldOrder(k) {
			l = append(l, slot{k.first + i, k.fields[i].kind})
		}
		if d.Runtime == ART && k.addsRuntimeObjects() {
			l = append(l, slot{made, hprof.Object})
		}
	}
	d.layouts[c] = l
	return l
}

// fieldOrder returns the fields of a class that the runtime has, in the
// runtime's order: ART sorts them by name, as in a dex file, and HotSpot
// reverses them.
func (d *dump) fieldOrder(c *Class) []int {
	var order []int
	for i, f := range c.fields {
		if f.only == 0 || f.only == d.Runtime {
			order = append(order, i)
		}
	}
	if d.Runtime == ART {
		slices.SortFunc(order, func(i, j int) int { return cmp.Compare(c.fields[i].name, c.fields[j].name) })
	} else {
		slices.Reverse(order)
	}
	return order
}

// value appends a value; IDs must already be resolved.
func (d *dump) value(b []byte, t hprof.Type, v uint64) []byte {
	switch t.Size(d.IDSize) {
	case 1:
		return append(b, byte(v))
	case 2:
		return binary.BigEndian.AppendUint16(b, uint16(v))
	case 4:
		return binary.BigEndian.AppendUint32(b, uint32(v))
	}
	return binary.BigEndian.AppendUint64(b, v)
}

// instance writes an object that has fields.
func (d *dump) instance(r Ref, o *object) {
	d.buf = d.buf[:0]
	for _, s := range d.layout(o.class) {
		d.buf = d.value(d.buf, s.kind, d.slotValue(r, o, s))
	}
	d.w.Instance(d.of(r), d.trace(), d.class(o.class), d.buf)
}

func (d *dump) slotValue(r Ref, o *object, s slot) uint64 {
	switch {
	case s.at == made:
		return uint64(d.of(r)) + align/2
	case r == d.ballast.registry && r != 0 && s.at == o.class.first:
		return uint64(d.free)
	case s.kind == hprof.Object:
		return uint64(d.of(Ref(o.slots[s.at])))
	}
	return o.slots[s.at]
}

// trace returns the serial number of the stack trace of an allocation.
func (d *dump) trace() uint32 {
	if d.Runtime == ART {
		return 0
	}
	return 1
}

// plain writes a primitive array or an array of references.
func (d *dump) plain(r Ref, o *object) {
	switch id := d.of(r); o.shape {
	case ofRefs:
		d.w.ObjectArray(id, d.trace(), d.class(o.class), d.refs(o))
	case ofData:
		d.w.PrimitiveArray(id, d.trace(), o.element, o.data)
	case ofCount:
		d.w.PrimitiveArrayNoData(id, d.trace(), o.element, o.count)
	case ofFiller:
		if !d.dry {
			d.w.PrimitiveArrayFrom(id, d.trace(), o.element, o.count, d.noise(&noise{stream: mix(d.seed, uint64(r))}))
		}
	}
}

// refs returns the IDs of the elements of an array.
func (d *dump) refs(o *object) []hprof.ID {
	d.elements = d.elements[:0]
	for _, r := range o.refs {
		d.elements = append(d.elements, d.of(r))
	}
	return d.elements
}

// noise generates bytes that resemble memory: most are small numbers.
type noise struct {
	stream, at uint64
}

// Read is excluded from the race detector, which would check each byte: some
// tests read 90 MB.
//
//go:norace
func (n *noise) Read(b []byte) (int, error) {
	for i := 0; i < len(b); i += 8 {
		v := mix(n.stream, n.at)
		n.at++
		// A quarter of the words are zero.
		if v&3 == 0 {
			v = 0
		}
		if i+8 <= len(b) {
			binary.LittleEndian.PutUint64(b[i:], v)
			continue
		}
		for j := i; j < len(b); j++ {
			b[j] = byte(v >> (8 * (j - i)))
		}
	}
	return len(b), nil
}

// noise returns the elements of a large array.
func (d *dump) noise(n *noise) io.Reader {
	if d.measure {
		return anything{}
	}
	return n
}

// anything generates arbitrary bytes.
type anything struct{}

func (anything) Read(b []byte) (int, error) { return len(b), nil }

var errNoRoom = errors.New("write the heap: its objects exceed the address range of 4-byte IDs")
