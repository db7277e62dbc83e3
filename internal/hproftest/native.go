package hproftest

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
)

// nativeClasses declares the classes that register native memory with the
// garbage collector.
func (h *Heap) nativeClasses() {
	phantom := h.Class("java.lang.ref.PhantomReference")
	h.Declare("sun.misc.Cleaner", phantom, "object next", "object prev", "object thunk", "static object first",
		"static object dummyQueue")
	h.Declare("libcore.util.NativeAllocationRegistry", nil, "object classLoader", "long freeFunction", "long size")
	h.Declare("libcore.util.NativeAllocationRegistry$CleanerThunk", nil, "object this$0", "long nativePtr")
}

// Native attributes native memory with the given size and address to an object.
// If the memory is from malloc, the lowest bit of the size is set, as on
// Android since version 10.
func (h *Heap) Native(owner Ref, size, pointer int64, malloced bool) {
	if malloced {
		size |= 1
	}
	registry := h.java.registries[size]
	if registry == 0 {
		registry = h.New(h.Class("libcore.util.NativeAllocationRegistry"),
			Fields{"classLoader": h.loader, "freeFunction": int64(0x7100004000), "size": size})
		h.java.registries[size] = registry
	}
	thunk := h.New(h.Class("libcore.util.NativeAllocationRegistry$CleanerThunk"),
		Fields{"this$0": registry, "nativePtr": pointer})
	cleaner := h.New(h.Class("sun.misc.Cleaner"), Fields{"referent": owner, "thunk": thunk, "next": h.java.cleaners})
	if h.java.cleaners != 0 {
		h.Set(h.java.cleaners, "prev", cleaner)
	}
	h.java.cleaners = cleaner
	h.SetStatic(h.Class("sun.misc.Cleaner"), "first", cleaner)
}

// Picture is the content of a bitmap. Two pictures with the same value of
// Content are equal.
type Picture struct {
	Width, Height int
	Content       uint64
	// Recycled is true if the bitmap was recycled: its pixels no longer exist.
	Recycled bool
}

// rgba returns the pixels in the form in which Android stores ARGB_8888: red,
// green, blue, alpha. The pixels form areas of one color, as in most pictures
// in apps.
func (p Picture) rgba() *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, p.Width, p.Height))
	for y := range p.Height {
		for x := range p.Width {
			v := mix(p.Content, uint64(y/8)<<32|uint64(x/8))
			m.SetNRGBA(x, y, color.NRGBA{byte(v), byte(v >> 8), byte(v >> 16), 0xff})
		}
	}
	return m
}

func (p Picture) png() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, p.rgba()); err != nil {
		return nil // an image without pixels has no PNG
	}
	return b.Bytes()
}

func (h *Heap) bitmapClass() {
	members := []string{
		"int mWidth", "int mHeight", "int mDensity", "boolean mIsMutable", "boolean mRecycled",
		"boolean mRequestPremultiplied", "object mNinePatchChunk", "object mColorSpace", "long mNativePtr",
		"static int sDefaultDensity",
	}
	if h.sdk < 26 {
		members = append(members, "object mBuffer")
	}
	if h.sdk >= 35 {
		members = append(members, "static object dumpData")
	}
	h.Declare("android.graphics.Bitmap", nil, members...)
	if h.sdk >= 35 {
		h.Declare("android.graphics.Bitmap$DumpData", nil, "int count", "int format", "object natives",
			"object buffers", "int max")
	}
}

// Bitmap creates an android.graphics.Bitmap in the form of the heap's API
// level: before 26, its pixels are in mBuffer; later, they are in registered
// native memory.
func (h *Heap) Bitmap(p Picture) Ref {
	pointer := 0x7200000000 + int64(len(h.android.bitmaps))*0x100
	b := h.New(h.Class("android.graphics.Bitmap"),
		Fields{
			"mWidth": p.Width, "mHeight": p.Height, "mDensity": 420, "mRecycled": p.Recycled,
			"mRequestPremultiplied": true, "mNativePtr": pointer,
		})
	h.android.bitmaps = append(h.android.bitmaps, b)
	h.android.pictures[b] = p
	switch {
	case p.Recycled:
		h.Set(b, "mNativePtr", 0)
	case h.sdk < 26:
		h.Set(b, "mBuffer", h.Bytes(p.rgba().Pix))
	default:
		h.Native(b, int64(4*p.Width*p.Height), pointer, true)
	}
	return b
}

// Pointer returns the mNativePtr of a bitmap.
func (h *Heap) Pointer(bitmap Ref) int64 {
	for i, b := range h.android.bitmaps {
		if b == bitmap && !h.android.pictures[b].Recycled {
			return 0x7200000000 + int64(i)*0x100
		}
	}
	return 0
}

// DumpBitmaps stores the pictures of all bitmaps as PNGs in the static field
// Bitmap.dumpData, as `am dumpheap -b png` does before the dump. It requires
// SDK 35.
func (h *Heap) DumpBitmaps() {
	if h.sdk < 35 {
		h.fail("dumping bitmaps requires SDK 35, this is %d", h.sdk)
		return
	}
	var natives, buffers = []int64{}, []Ref{}
	for _, b := range h.android.bitmaps {
		p := h.android.pictures[b]
		if p.Recycled {
			continue
		}
		natives = append(natives, h.Pointer(b))
		buffers = append(buffers, h.Bytes(p.png()))
	}
	// The number of the format is that of Bitmap.CompressFormat.PNG.
	data := h.New(h.Class("android.graphics.Bitmap$DumpData"), Fields{
		"count": len(natives), "format": 1, "max": len(natives), "natives": h.Longs(natives...),
		"buffers": h.Objects(h.Class("byte[]"), buffers...),
	})
	h.SetStatic(h.Class("android.graphics.Bitmap"), "dumpData", data)
}

// Duplicates creates n strings with the same content.
func (h *Heap) Duplicates(s string, n int) List {
	l := h.ArrayList()
	for range n {
		l.Add(h.String(s))
	}
	return l
}

// Watched is the information that LeakCanary stores about a watched object.
type Watched struct {
	Key, Description string
	// WatchedAt and RetainedAt are uptimes in milliseconds; RetainedAt is -1 as
	// long as LeakCanary does not consider the object retained.
	WatchedAt, RetainedAt int64
	// Legacy selects LeakCanary 1, which does not store times.
	Legacy bool
}

// Watch creates the KeyedWeakReference with which LeakCanary watches an object.
func (h *Heap) Watch(object Ref, w Watched) Ref {
	weak := h.Class("java.lang.ref.WeakReference")
	name := "leakcanary.KeyedWeakReference"
	if w.Legacy {
		name = "com.squareup.leakcanary.KeyedWeakReference"
	}
	c := h.byName[name]
	switch {
	case c == nil && w.Legacy:
		c = h.Declare(name, weak, "object key", "object name")
	case c == nil:
		c = h.Declare(name, weak, "object key", "object description", "long watchUptimeMillis",
			"long retainedUptimeMillis", "static long heapDumpUptimeMillis")
		h.SetStatic(c, "heapDumpUptimeMillis", 3_600_000)
	}
	r := h.New(c, Fields{"referent": object, "key": w.Key})
	if w.Legacy {
		h.Set(r, "name", w.Description)
	} else {
		h.Set(r, "description", w.Description)
		h.Set(r, "watchUptimeMillis", w.WatchedAt)
		h.Set(r, "retainedUptimeMillis", w.RetainedAt)
	}
	if h.android.watched.Ref == 0 {
		h.android.watched = h.ArrayList()
		h.Hold("leakcanary.AppWatcher", "watchedObjects", h.android.watched.Ref)
	}
	h.android.watched.Add(r)
	return r
}
