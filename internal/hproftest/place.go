package hproftest

import (
	"slices"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// These are ART's spaces on a 64-bit phone: the region space, large objects,
// and, after the boot image, the zygote's space.
const (
	regionSpace = 0x12c00000
	largeSpace  = 0x40000000
	imageSpace  = 0x70000000
	// highLarge and highImage replace largeSpace and imageSpace if the region
	// space would reach largeSpace.
	highLarge = 0xe0000000
	highImage = 0xf0000000
	// largeObject is the minimum size of a primitive array that ART allocates
	// as a large object (runtime/gc/heap.h, kMinLargeObjectThreshold).
	largeObject = 3 * page
	page        = 4096
	align       = 8
)

// HotSpot's heap starts at these addresses: the first applies to compressed
// references, the second to 32-bit systems.
const (
	hotSpotHeap   = 0x700000000
	hotSpotHeap32 = 0x22000000
)

// place assigns consecutive addresses to all objects.
func (d *dump) place() error {
	d.ids = make([]hprof.ID, len(d.objects))
	d.values = make([]hprof.ID, len(d.objects))
	if d.Runtime == HotSpot {
		return d.placeHotSpot()
	}
	var app, large, image, zygote []Ref
	for r := Ref(1); int(r) < len(d.objects); r++ {
		switch o := &d.objects[r]; {
		case !d.exists(r):
		case o.space == Image:
			image = append(image, r)
		case o.space == Zygote:
			zygote = append(zygote, r)
		case (o.shape == ofData || o.shape == ofFiller) && d.artSize(o) >= largeObject:
			large = append(large, r)
		default:
			app = append(app, r)
		}
	}
	end := d.placeAt(regionSpace, align, app)
	d.free = (end + page - 1) / page * page
	atLarge, atImage := hprof.ID(largeSpace), hprof.ID(imageSpace)
	if d.free+hprof.ID(d.ballast.room()) > largeSpace {
		atLarge, atImage = highLarge, highImage
	}
	endLarge := d.placeAt(atLarge, page, large)
	if d.free+hprof.ID(d.ballast.room()) > atLarge || endLarge > atImage {
		return errNoRoom
	}
	end = d.placeAt(atImage, align, image)
	end = d.placeAt((end+1<<20-1)>>20<<20, align, zygote)
	if d.IDSize == 4 && end > 1<<32 {
		return errNoRoom
	}
	d.order = slices.DeleteFunc(slices.Concat(app, large, image, zygote), d.isMissing)
	return nil
}

// placeAt assigns addresses starting with the given one, and returns the end of
// the last object.
func (d *dump) placeAt(at, step hprof.ID, refs []Ref) hprof.ID {
	for _, r := range refs {
		o := &d.objects[r]
		d.ids[r] = at
		if o.shape == ofText {
			// The characters follow the header. An empty string ends after its
			// header, so its empty array has the same ID as the next object
			// (runtime/hprof/hprof.cc, DumpHeapInstanceObject).
			d.values[r] = at + stringHeader
			if len(o.text) == 0 {
				d.values[r] = at + align
			}
		}
		at = (at + hprof.ID(d.artSize(o)) + step - 1) / step * step
	}
	return at
}

func (d *dump) placeHotSpot() error {
	at := hprof.ID(hotSpotHeap)
	if d.IDSize == 4 {
		at = hotSpotHeap32
	}
	for r := Ref(1); int(r) < len(d.objects); r++ {
		if !d.exists(r) {
			continue
		}
		o := &d.objects[r]
		d.ids[r] = at
		if !d.isMissing(r) {
			d.order = append(d.order, r)
		}
		at += hprof.ID(d.hotSpotSize(o))
		if o.shape == ofText {
			d.values[r] = at
			at += hprof.ID(aligned(16 + int64(len(latinOrUTF16(o.text)))))
		}
	}
	d.free = (at + page - 1) / page * page
	if d.IDSize == 4 && d.free+hprof.ID(d.ballast.room()) > 1<<32 {
		return errNoRoom
	}
	return nil
}

func aligned(n int64) int64 { return (n + align - 1) / align * align }

const (
	// stringHeader is the size of a String in bytes, excluding its characters
	// (mirror/string.h).
	stringHeader = 16
	// classHeader is the size of a Class in bytes, excluding its static fields
	// and embedded method table (mirror/class.h).
	classHeader = 120
	// objectHeader is the size in bytes of the class and the lock word of each
	// object (mirror/object.h).
	objectHeader = 8
)

// artSize returns the unaligned size of an object on ART.
func (d *dump) artSize(o *object) int64 {
	switch o.shape {
	case ofFields, ofNothing:
		return int64(o.class.artSize())
	case ofClass:
		return int64(o.class.artClassSize())
	case ofText:
		if d.compressed(o.text) {
			return stringHeader + int64(len(o.text))
		}
		return stringHeader + 2*int64(len(o.text))
	case ofRefs:
		return 12 + 4*int64(len(o.refs))
	}
	size := int64(o.element.Size(4))
	header := int64(12)
	if size == 8 {
		header = 16
	}
	if o.shape == ofData {
		return header + int64(len(o.data))
	}
	return header + size*int64(o.count)
}

// compressed reports whether ART stores a string in bytes: since Android 8, it
// does so if all characters are between 1 and 127 (mirror/string.h, IsASCII).
func (d *dump) compressed(text []uint16) bool {
	if d.sdk < 26 {
		return false
	}
	for _, u := range text {
		if u == 0 || u > 0x7f {
			return false
		}
	}
	return true
}

// fieldGap is unused memory between two fields.
type fieldGap struct{ at, size int }

// artSize returns the size of an instance on ART, which places references first
// and fills gaps with fields that fit (runtime/class_linker.cc, LinkFields).
func (c *Class) artSize() int {
	if c.super == nil {
		return objectHeader
	}
	at := c.super.artSize()
	var gaps []fieldGap
	for _, size := range []int{0, 8, 4, 2, 1} {
		for _, f := range c.fields {
			n := f.kind.Size(4)
			if f.only == HotSpot || (f.kind == hprof.Object) != (size == 0) || size > 0 && n != size {
				continue
			}
			if next := (at + n - 1) / n * n; next != at {
				gaps = addGap(gaps, at, next)
				at = next
			}
			if size == 0 {
				at += n
				continue
			}
			i := slices.IndexFunc(gaps, func(g fieldGap) bool { return g.size >= n })
			if i < 0 {
				at += n
				continue
			}
			g := gaps[i]
			gaps = addGap(slices.Delete(gaps, i, i+1), g.at+n, g.at+g.size)
		}
	}
	return at
}

// addGap divides a gap into aligned parts, adds these to the list of gaps, and
// returns the list sorted by size, largest first.
func addGap(gaps []fieldGap, at, end int) []fieldGap {
	for at < end {
		n := 4
		for n > 1 && (end-at < n || at%n != 0) {
			n /= 2
		}
		gaps = append(gaps, fieldGap{at, n})
		at += n
	}
	slices.SortStableFunc(gaps, func(a, b fieldGap) int { return b.size - a.size })
	return gaps
}

// artClassSize returns the size of the class object on ART (mirror/class-inl.h,
// ComputeClassSize).
func (c *Class) artClassSize() int {
	size := classHeader
	if !c.bare {
		size += 16 + 8*c.methods
	}
	var number [9]int
	for _, s := range c.statics {
		if s.kind == hprof.Object {
			size += 4
			continue
		}
		number[s.kind.Size(4)]++
	}
	if gap := -size & 7; gap > 0 && number[8] > 0 {
		size += gap
		for _, n := range []int{4, 2, 1} {
			for gap >= n && number[n] > 0 {
				number[n]--
				gap -= n
			}
		}
	}
	return size + 8*number[8] + 4*number[4] + 2*number[2] + number[1]
}

// overhead returns the size of a class object, excluding its static fields and
// the part that all classes have in common.
func (c *Class) overhead() int {
	n := c.artClassSize() - classHeader
	for _, s := range c.statics {
		n -= s.kind.Size(4)
	}
	return n
}

// hotSpotSize returns the aligned size of an object on HotSpot.
func (d *dump) hotSpotSize(o *object) int64 {
	header, ref := int64(12), int64(4)
	if d.IDSize == 4 {
		header = 8
	}
	switch o.shape {
	case ofFields, ofNothing:
		return aligned(header + int64(d.dataSize(o.class)))
	case ofClass:
		return aligned(header + 100 + ref*int64(len(o.class.statics)))
	case ofText:
		return aligned(header + ref + 5)
	case ofRefs:
		return aligned(header + 4 + ref*int64(len(o.refs)))
	case ofData:
		return aligned(header + 4 + int64(len(o.data)))
	}
	return aligned(header + 4 + int64(o.element.Size(4))*int64(o.count))
}

// dataSize returns the size of the values of an instance's fields in the dump.
func (d *dump) dataSize(c *Class) (n int) {
	for ; c != nil; c = c.super {
		for _, f := range c.fields {
			if f.only == 0 || f.only == d.Runtime {
				n += f.kind.Size(d.IDSize)
			}
		}
	}
	return n
}

// latinOrUTF16 returns the characters of a string as HotSpot has stored them
// since JDK 9: one byte per character if all are below 256, otherwise UTF-16 in
// the machine's byte order.
func latinOrUTF16(text []uint16) []byte {
	b := make([]byte, 0, 2*len(text))
	if isLatin(text) {
		for _, u := range text {
			b = append(b, byte(u))
		}
		return b
	}
	for _, u := range text {
		b = append(b, byte(u), byte(u>>8))
	}
	return b
}

func isLatin(text []uint16) bool {
	return !slices.ContainsFunc(text, func(u uint16) bool { return u > 0xff })
}
