package android

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"hash"
	"math"
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// These values of Bitmaps.Pixels say where the pixels of the bitmaps are
// stored.
const (
	// PixelsInHeap: the pixels are in the byte[] Bitmap.mBuffer (before Android
	// 8).
	PixelsInHeap = "heap"
	// PixelsNative: the pixels are not in the dump (since Android 8).
	PixelsNative = "native"
	// PixelsDumped: the pixels are in Bitmap.dumpData, as compressed pictures
	// that `am dumpheap -b` adds (since Android 15).
	PixelsDumped = "dumped"
)

// These values of Bitmaps.DuplicatesBy say how duplicates were found.
const (
	ByContent = "content"
	// BySource finds copies of one bitmap that were received through Binder,
	// because each copy records its source; it does not find two bitmaps that
	// were decoded from one file.
	BySource = "source"
	// ByNothing means that the dump contains no data by which duplicates can be
	// found.
	ByNothing = "unknown"
)

// Bitmaps describes the android.graphics.Bitmap objects, reachable or not.
type Bitmaps struct {
	Count int64 `json:"count"`
	// Bytes is the size of all pixels; EstimatedBytes is the part of Bytes that
	// is estimated at 4 bytes per pixel, because the dump does not contain the
	// size.
	Bytes          int64 `json:"bytes"`
	EstimatedBytes int64 `json:"estimated_bytes"`
	// Pixels says where the pixels are stored; it is "" if the dump does not
	// contain the class Bitmap.
	Pixels string `json:"pixels,omitempty"`
	// Unreachable is the number of bitmaps that are garbage but have not been
	// collected yet.
	Unreachable      int64 `json:"unreachable"`
	UnreachableBytes int64 `json:"unreachable_bytes"`
	// Duplicates lists groups of bitmaps that have the same size and pixels.
	// Blank bitmaps contain only 0, or the filler of a stripper, and do not
	// count as duplicates.
	Duplicates        []DuplicateBitmap `json:"duplicates"`
	DuplicatesBy      string            `json:"duplicates_by"`
	DuplicatesOmitted int64             `json:"duplicates_omitted,omitempty"`
	WastedBytes       int64             `json:"wasted_bytes"`
	Blank             int64             `json:"blank,omitempty"`
	// Larger is the number of bitmaps with more than 1.1 times the pixels of
	// the screen; nil if the screen size is unknown.
	Larger      *int64 `json:"larger_than_screen,omitempty"`
	LargerBytes int64  `json:"larger_than_screen_bytes,omitempty"`
	// DumpBytes is the size of the pictures in Bitmap.dumpData, which were
	// created for the dump.
	DumpBytes int64 `json:"dump_bytes,omitempty"`
	// List holds the bitmaps with the most bytes; Omitted is the number of the
	// other bitmaps.
	List     []Bitmap `json:"list"`
	Omitted  int64    `json:"omitted,omitempty"`
	Warnings []error  `json:"-"`
}

// Bitmap describes one android.graphics.Bitmap object. Width and Height are in
// pixels, or -1 if Android 4 had not computed them yet.
type Bitmap struct {
	Object hprof.ID `json:"object"`
	Width  int64    `json:"width"`
	Height int64    `json:"height"`
	// Bytes is the size of the pixels; 0 for a recycled bitmap.
	Bytes     int64 `json:"bytes"`
	Estimated bool  `json:"estimated,omitempty"`
	// Format is guessed from the number of bytes per pixel: ALPHA_8, RGB_565,
	// ARGB_8888, RGBA_F16.
	Format       string `json:"format,omitempty"`
	Recycled     bool   `json:"recycled,omitempty"`
	Reachability string `json:"reachability"`
	// RetainedBytes includes Java and native bytes. CreditedBytes also includes
	// the pixels if something else holds them too, such as native code, which
	// holds mBuffer as a GC root before Android 6. If several bitmaps share
	// their pixels, CreditedBytes includes the pixels for only one of the
	// bitmaps.
	RetainedBytes int64 `json:"retained_bytes"`
	CreditedBytes int64 `json:"credited_bytes"`
	Larger        bool  `json:"larger_than_screen,omitempty"`
	// Owner is nil if only GC roots hold the bitmap, or if it is unreachable.
	Owner *Owner `json:"owner,omitempty"`
}

// DuplicateBitmap describes a picture that several bitmaps contain. Copies is
// the number of times that the pixels are stored; Reachable is the number of
// copies that are not garbage.
type DuplicateBitmap struct {
	Width       int64 `json:"width"`
	Height      int64 `json:"height"`
	Copies      int64 `json:"copies"`
	Reachable   int64 `json:"reachable"`
	BytesEach   int64 `json:"bytes_each"`
	WastedBytes int64 `json:"wasted_bytes"`
	// Content is the first 64 bits of the SHA-256 of the pixels, or of the
	// compressed picture. The same picture has the same Content in other dumps
	// of the same kind.
	Content string `json:"content,omitempty"`
	// Objects holds the first ten bitmaps.
	Objects []hprof.ID `json:"objects"`
}

const (
	// mostBitmaps is the maximum number of bitmaps that are read.
	mostBitmaps = 1 << 17
	// mostObjects is the maximum number of objects listed for a duplicate.
	mostObjects = 10
	// mostBytes is the maximum size of a bitmap, because Android stores the
	// size in an int.
	mostBytes = math.MaxInt32
)

// bitmap collects the fields and the pixels of one bitmap while the dump is
// read.
type bitmap struct {
	object        heap.Object
	width, height int64
	bytes         int64
	// pixels is the array in mBuffer, or noArray if the dump does not contain
	// one.
	pixels     heap.Object
	native     int64
	id, source int64
	recycled   bool
	estimated  bool
	// hashed reports whether content is the hash of the bitmap's pixels, blank
	// reports whether the pixels consist only of zeros or of a stripper's
	// filler, and shares reports whether a previous bitmap has the same array.
	hashed, blank, shares bool
	content               [sha256.Size]byte
}

// bitmapsTopic reads Bitmaps.
type bitmapsTopic struct {
	Bitmaps

	family heap.Family
	list   []bitmap
	fields struct {
		width, height, buffer, recycled, pointer, id, source *heap.Field
		count, natives, buffers                              *heap.Field
	}
	level int
	// pictures holds the contents of dumpData: natives[i] is the pointer of
	// buffers[i].
	count    int64
	natives  []int64
	pictures []heap.Object
	sizes    map[heap.Object]int64
	// open holds the pixels and pictures that have been read only in part,
	// keyed by the number of the bitmap.
	open map[uint32]*openPixels
	// doubts is the number of bitmaps with impossible sizes.
	doubts int64
}

type openPixels struct {
	hash  hash.Hash
	next  uint32
	blank bool
}

const (
	askBitmap uint8 = iota
	askDumpData
	askNatives
	askBuffers
	// askPixels requests mBuffer; askPicture requests an element of buffers.
	askPixels
	askPicture
)

func (t *bitmapsTopic) families() []*heap.Family {
	t.family = heap.Family{Class: "android.graphics.Bitmap", Limit: mostBitmaps}
	return []*heap.Family{&t.family}
}

func (t *bitmapsTopic) begin(p *plan) {
	field := func(name string) *heap.Field { return p.graph.Field("android.graphics.Bitmap", name) }
	f := &t.fields
	f.width, f.height, f.buffer, f.recycled = field("mWidth"), field("mHeight"), field("mBuffer"), field("mRecycled")
	f.pointer, f.id, f.source = field("mNativePtr"), field("mId"), field("mSourceId")
	f.count, f.natives, f.buffers = p.graph.Field(dumpDataClass, "count"), p.graph.Field(dumpDataClass, "natives"),
		p.graph.Field(dumpDataClass, "buffers")
	t.open, t.sizes = map[uint32]*openPixels{}, map[heap.Object]int64{}
	t.Count, t.DuplicatesBy = t.family.Count, ByNothing
	switch {
	case f.buffer.Declared():
		t.Pixels, t.DuplicatesBy = PixelsInHeap, ByContent
	case f.source.Declared():
		t.Pixels, t.DuplicatesBy = PixelsNative, BySource
	case p.graph.HasClass("android.graphics.Bitmap"):
		t.Pixels = PixelsNative
	}
	if n := t.Count - int64(len(t.family.Objects)); n > 0 {
		t.warn("%d of %d were not read", n, t.Count)
	}
	t.list = make([]bitmap, len(t.family.Objects))
	for i, o := range t.family.Objects {
		t.list[i] = bitmap{object: o, pixels: noArray, width: -1, height: -1, source: -1, id: -1}
		p.ask(o, askBitmap, i)
	}
	if o, ok := p.graph.Static("android.graphics.Bitmap", "dumpData"); ok {
		p.ask(o, askDumpData, 0)
	}
}

const dumpDataClass = "android.graphics.Bitmap$DumpData"

func (t *bitmapsTopic) warn(format string, args ...any) {
	t.Warnings = append(t.Warnings, fmt.Errorf("bitmaps: "+format, args...))
}

func (t *bitmapsTopic) visit(p *plan, r *heap.Record, tag uint8, number uint32) {
	switch tag {
	case askBitmap:
		t.bitmap(r, &t.list[number])
	case askDumpData:
		t.dumpData(p, r)
	case askNatives:
		t.pointers(r)
	case askBuffers:
		t.buffers(r)
	case askPixels, askPicture:
		t.pixels(r, number, tag == askPicture)
	}
}

func (t *bitmapsTopic) bitmap(r *heap.Record, b *bitmap) {
	f := &t.fields
	set := func(v *int64, f *heap.Field) {
		if n, ok := r.IntOf(f); ok {
			*v = n
		}
	}
	set(&b.width, f.width)
	set(&b.height, f.height)
	set(&b.native, f.pointer)
	set(&b.id, f.id)
	set(&b.source, f.source)
	b.recycled, _ = r.BoolOf(f.recycled)
	if o, ok := r.RefOf(f.buffer); ok {
		b.pixels = o
	}
}

func (t *bitmapsTopic) dumpData(p *plan, r *heap.Record) {
	count, ok := r.IntOf(t.fields.count)
	natives, ok2 := r.RefOf(t.fields.natives)
	buffers, ok3 := r.RefOf(t.fields.buffers)
	if !ok || !ok2 || !ok3 || count <= 0 {
		return
	}
	t.count = count
	p.ask(natives, askNatives, 0)
	p.ask(buffers, askBuffers, 0)
}

// pointers appends a piece of DumpData.natives to natives.
func (t *bitmapsTopic) pointers(r *heap.Record) {
	if r.Kind != hprof.SubPrimitiveArray || r.Type != hprof.Long || int64(r.First) != int64(len(t.natives)) {
		return
	}
	for b := r.Body; len(b) >= 8 && int64(len(t.natives)) < t.count; b = b[8:] {
		t.natives = append(t.natives, int64(bigEndian(b[:8])))
	}
}

// buffers appends a piece of DumpData.buffers to pictures.
func (t *bitmapsTopic) buffers(r *heap.Record) {
	if int64(r.First) != int64(len(t.pictures)) {
		return
	}
	for i := range r.Elements() {
		if int64(len(t.pictures)) >= t.count {
			return
		}
		o, ok := r.Element(i)
		if !ok {
			o = noArray
		}
		t.pictures = append(t.pictures, o)
	}
}

func bigEndian(b []byte) (v uint64) {
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}

func (t *bitmapsTopic) advance(p *plan) {
	switch t.level++; t.level {
	case 1:
		t.askBuffers(p)
	case 2:
		t.askPictures(p)
	}
}

// askBuffers requests each mBuffer once, even if several bitmaps share it.
func (t *bitmapsTopic) askBuffers(p *plan) {
	slices.SortFunc(t.list,
		func(a, b bitmap) int { return cmp.Or(cmp.Compare(a.pixels, b.pixels), cmp.Compare(a.object, b.object)) })
	last := noArray
	for i := range t.list {
		b := &t.list[i]
		b.shares = b.pixels == last && last != noArray
		if b.pixels != last && b.pixels != noArray {
			last = b.pixels
			p.ask(last, askPixels, i)
		}
	}
}

// askPictures matches dumpData to the bitmaps by their pointers. Pointers to
// freed bitmaps are reused, so a picture is used only if it has the size of the
// bitmap.
func (t *bitmapsTopic) askPictures(p *plan) {
	n := min(len(t.natives), len(t.pictures))
	if n == 0 {
		return
	}
	byPointer := map[int64][]int{}
	for i := range t.list {
		if b := &t.list[i]; b.native != 0 && b.pixels == noArray {
			byPointer[b.native] = append(byPointer[b.native], i)
		}
	}
	asked := map[int]bool{}
	for i, pointer := range t.natives[:n] {
		if t.pictures[i] == noArray {
			continue
		}
		t.DumpBytes = sum(t.DumpBytes, p.graph.Shallow(t.pictures[i]).Java)
		for _, k := range byPointer[pointer] {
			if !asked[k] {
				asked[k] = true
				p.ask(t.pictures[i], askPicture, k)
			}
		}
	}
}

// pixels hashes a piece of the pixels or of the picture of a bitmap.
func (t *bitmapsTopic) pixels(r *heap.Record, number uint32, picture bool) {
	b := &t.list[number]
	size := int64(r.Type.Size(8))
	if !picture && (r.Kind == hprof.SubPrimitiveArray || r.Kind == hprof.SubPrimitiveArrayNoData) {
		b.bytes = int64(r.Count) * size
	}
	if r.Kind != hprof.SubPrimitiveArray || len(r.Body) == 0 {
		return
	}
	o := t.open[number]
	if r.First == 0 {
		if picture {
			if w, h, ok := pictureSize(r.Body); !ok || w != b.width || h != b.height {
				return
			}
		}
		o = &openPixels{hash: sha256.New(), blank: r.Body[0] == 0 || r.Body[0] == '?'}
		t.open[number] = o
	}
	if o == nil || o.next != r.First {
		return
	}
	_, _ = o.hash.Write(r.Body) // a hash never fails
	o.blank = o.blank && stripped(r.Body, hprof.Byte)
	o.next += uint32(int64(len(r.Body)) / size)
	if o.next == r.Count {
		o.hash.Sum(b.content[:0])
		b.hashed, b.blank = true, o.blank
		delete(t.open, number)
	}
}

func (t *bitmapsTopic) finish(p *plan) {
	for i := range t.list {
		t.size(p, i)
	}
	if slices.ContainsFunc(t.list, func(b bitmap) bool { return b.hashed && b.pixels == noArray }) {
		t.Pixels, t.DuplicatesBy = PixelsDumped, ByContent
	}
	if t.DuplicatesBy == ByContent && len(t.list) > 0 &&
		!slices.ContainsFunc(t.list, func(b bitmap) bool { return b.hashed && !b.blank }) {
		t.DuplicatesBy = ByNothing
	}
	if t.doubts > 0 {
		t.warn("%d have impossible dimensions; their bytes are not counted", t.doubts)
	}
	t.duplicates(p)
	t.bitmaps(p)
}

// size sets the size of a bitmap in bytes.
func (t *bitmapsTopic) size(p *plan, i int) {
	b := &t.list[i]
	native := p.graph.Shallow(b.object).Native
	switch {
	case b.shares:
		// A previous bitmap has the same array.
		b.bytes, b.hashed, b.blank, b.content = t.list[i-1].bytes, t.list[i-1].hashed, t.list[i-1].blank,
			t.list[i-1].content
	case b.pixels != noArray || b.recycled:
	case native > 0 && native <= mostBytes:
		b.bytes = native
	case b.width > 0 && b.height > 0 && b.width <= mostBytes && b.height <= mostBytes:
		if area := b.width * b.height; area <= mostBytes/4 {
			b.bytes, b.estimated = 4*area, true
			break
		}
		t.doubts++
	case native > mostBytes:
		t.doubts++
	}
}

// bitmaps fills in the totals and the list.
func (t *bitmapsTopic) bitmaps(p *plan) {
	if area := p.metadata.area(); area > 0 {
		t.Larger = new(int64)
	}
	top := best[int]{limit: p.options.Top, order: func(a, b int) int {
		return cmp.Or(cmp.Compare(t.list[b].bytes, t.list[a].bytes), cmp.Compare(t.list[a].object, t.list[b].object))
	}}
	for i := range t.list {
		b := &t.list[i]
		own := b.bytes
		if b.shares {
			own = 0
		}
		t.Bytes = sum(t.Bytes, own)
		if b.estimated {
			t.EstimatedBytes = sum(t.EstimatedBytes, own)
		}
		if b.hashed && b.blank {
			t.Blank++
		}
		if !p.reachable(b.object) {
			t.Unreachable++
			t.UnreachableBytes = sum(t.UnreachableBytes, own)
		}
		if t.larger(p, b) {
			*t.Larger++
			t.LargerBytes = sum(t.LargerBytes, own)
		}
		top.add(i)
	}
	t.List = []Bitmap{}
	for _, i := range top.sorted() {
		t.List = append(t.List, t.show(p, &t.list[i]))
	}
	t.Omitted = t.Count - int64(len(t.List))
}

// larger reports whether a bitmap has more than 1.1 times the pixels of the
// screen, which is LeakCanary's limit.
func (t *bitmapsTopic) larger(p *plan, b *bitmap) bool {
	area := p.metadata.area()
	if area == 0 || b.width <= 0 || b.height <= 0 || b.recycled || b.width > mostBytes || b.height > mostBytes {
		return false
	}
	return b.width*b.height/11 > area/10 || b.width*b.height/11 == area/10 && b.width*b.height*10 > area*11
}

func (t *bitmapsTopic) show(p *plan, b *bitmap) Bitmap {
	s := Bitmap{
		Object: p.id(b.object), Width: b.width, Height: b.height, Bytes: b.bytes, Estimated: b.estimated,
		Recycled:     b.recycled,
		Reachability: p.graph.Reachability(b.object).String(), RetainedBytes: p.graph.Retained(b.object).Total(),
		Larger: t.larger(p, b), Owner: p.owner(b.object),
	}
	if !b.estimated {
		s.Format = format(b)
	}
	s.CreditedBytes = s.RetainedBytes
	if !t.retains(p, b) {
		s.CreditedBytes = sum(s.CreditedBytes, b.bytes)
	}
	return s
}

// retains reports whether the pixels of a bitmap count toward its own retained
// size rather than that of another bitmap.
func (t *bitmapsTopic) retains(p *plan, b *bitmap) bool {
	if b.pixels == noArray {
		return !b.estimated && p.reachable(b.object)
	}
	d, ok := p.graph.Dominator(b.pixels)
	return b.shares || ok && d == b.object
}

// format guesses the Bitmap.Config. Native sizes include up to 64 bytes for the
// object in addition to the pixels (AOSP Bitmap.java, NATIVE_ALLOCATION_SIZE).
func format(b *bitmap) string {
	if b.width <= 0 || b.height <= 0 || b.width > mostBytes || b.height > mostBytes || b.bytes == 0 {
		return ""
	}
	slack := int64(0)
	if b.pixels == noArray {
		slack = 64
	}
	for _, f := range []struct {
		bytes int64
		name  string
	}{{1, "ALPHA_8"}, {2, "RGB_565"}, {4, "ARGB_8888"}, {8, "RGBA_F16"}} {
		if area := b.width * b.height; area <= mostBytes && b.bytes >= area*f.bytes && b.bytes <= area*f.bytes+
			min(slack, area/2) {
			return f.name
		}
	}
	return ""
}

// duplicates groups bitmaps with the same contents.
func (t *bitmapsTopic) duplicates(p *plan) {
	var list []*bitmap
	for i := range t.list {
		b := &t.list[i]
		switch {
		case b.recycled || b.shares:
		case t.DuplicatesBy == ByContent && b.hashed && !b.blank, t.DuplicatesBy == BySource && b.origin() > 0:
			list = append(list, b)
		}
	}
	same := func(a, b *bitmap) int {
		c := cmp.Or(cmp.Compare(a.width, b.width), cmp.Compare(a.height, b.height))
		if t.DuplicatesBy == BySource {
			return cmp.Or(c, cmp.Compare(a.origin(), b.origin()))
		}
		return cmp.Or(c, slices.Compare(a.content[:], b.content[:]))
	}
	slices.SortFunc(list, func(a, b *bitmap) int { return cmp.Or(same(a, b), cmp.Compare(a.object, b.object)) })
	groups := best[[]*bitmap]{limit: p.options.Top, order: func(a, b []*bitmap) int {
		return cmp.Or(cmp.Compare(wasted(b), wasted(a)), cmp.Compare(a[0].object, b[0].object))
	}}
	for i := 0; i < len(list); {
		end := i + 1
		for end < len(list) && same(list[i], list[end]) == 0 {
			end++
		}
		if end > i+1 {
			t.WastedBytes = sum(t.WastedBytes, wasted(list[i:end]))
			t.DuplicatesOmitted++
			groups.add(list[i:end])
		}
		i = end
	}
	t.Duplicates = []DuplicateBitmap{}
	for _, g := range groups.sorted() {
		t.Duplicates = append(t.Duplicates, t.duplicate(p, g))
	}
	t.DuplicatesOmitted -= int64(len(t.Duplicates))
}

// origin returns the ID of the bitmap from which b was copied, or the ID of b
// itself; 0 and -1 mean unknown.
func (b *bitmap) origin() int64 {
	if b.source > 0 {
		return b.source
	}
	return b.id
}

// wasted returns the total size of equal bitmaps, without the smallest one.
func wasted(list []*bitmap) (n int64) {
	least := int64(largest)
	for _, b := range list {
		n = sum(n, b.bytes)
		least = min(least, b.bytes)
	}
	return n - least
}

func (t *bitmapsTopic) duplicate(p *plan, list []*bitmap) DuplicateBitmap {
	first := list[0]
	d := DuplicateBitmap{
		Width: first.width, Height: first.height, Copies: int64(len(list)), BytesEach: first.bytes,
		WastedBytes: wasted(list),
	}
	if t.DuplicatesBy == ByContent {
		d.Content = fmt.Sprintf("%x", first.content[:8])
	}
	for _, b := range list {
		if p.reachable(b.object) {
			d.Reachable++
		}
	}
	for _, b := range list[:min(len(list), mostObjects)] {
		d.Objects = append(d.Objects, p.id(b.object))
	}
	return d
}
