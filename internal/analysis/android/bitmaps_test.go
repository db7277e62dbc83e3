package android_test

import (
	"context"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// gallery creates an app with 3 copies of one picture, 2 copies of another,
// pictures without copies, and a recycled bitmap.
func gallery(sdk int) (*hproftest.Heap, []hproftest.Ref) {
	h := hproftest.Android(hproftest.Phone{SDK: sdk, Width: 100, Height: 200})
	var refs []hproftest.Ref
	for _, p := range []hproftest.Picture{
		{Width: 40, Height: 30, Content: 1}, {Width: 40, Height: 30, Content: 1}, {Width: 40, Height: 30, Content: 1},
		{Width: 64, Height: 64, Content: 2}, {Width: 64, Height: 64, Content: 2},
		{Width: 30, Height: 40, Content: 1}, {Width: 220, Height: 100, Content: 3},
		{Width: 221, Height: 100, Content: 4},
		{Width: 40, Height: 30, Content: 1, Recycled: true},
	} {
		refs = append(refs, h.Bitmap(p))
	}
	h.Hold("com.shop.Pictures", "sList", h.ArrayList(refs...).Ref)
	return h, refs
}

func TestBitmapEras(t *testing.T) {
	for _, sdk := range []int{23, 28, 35} {
		for _, dumped := range []bool{false, true} {
			if dumped && sdk < 35 {
				continue
			}
			h, refs := gallery(sdk)
			if dumped {
				h.DumpBitmaps()
			}
			s, ids := made(t, h, hproftest.Form{}, android.Options{})
			b := s.Bitmaps
			want := int64(4 * (3*40*30 + 2*64*64 + 30*40 + 220*100 + 221*100))
			if b.Count != 9 || b.Bytes != want || b.EstimatedBytes != 0 || b.Unreachable != 0 || b.Omitted != 0 ||
				len(b.List) != 9 {
				t.Errorf("sdk %d: %s", sdk, text(t, b))
			}
			if b.Larger == nil || *b.Larger != 1 || b.LargerBytes != 4*221*100 {
				t.Errorf("sdk %d: larger %s", sdk, text(t, b))
			}
			for _, x := range b.List {
				if x.Recycled != (x.Object == ids.Of(refs[8])) || x.Recycled && x.Bytes != 0 || !x.Recycled &&
					x.Format != "ARGB_8888" {
					t.Errorf("sdk %d: %s", sdk, text(t, x))
				}
				if x.CreditedBytes < x.Bytes || x.Owner == nil || x.Owner.Class != "com.shop.Pictures" ||
					!x.Owner.Static {
					t.Errorf("sdk %d: %s", sdk, text(t, x))
				}
			}
			if sdk == 28 || sdk == 35 && !dumped {
				if b.Pixels != android.PixelsNative || b.DuplicatesBy != android.ByNothing || len(b.Duplicates) != 0 {
					t.Errorf("sdk %d: %s", sdk, text(t, b))
				}
				continue
			}
			if want := map[bool]string{
				true: android.PixelsDumped, false: android.PixelsInHeap,
			}[dumped]; b.Pixels != want || b.DuplicatesBy != android.ByContent || dumped != (b.DumpBytes > 0) {
				t.Errorf("sdk %d: %s", sdk, text(t, b))
			}
			if len(b.Duplicates) != 2 || b.WastedBytes != 4*(2*40*30+64*64) {
				t.Fatalf("sdk %d: %s", sdk, text(t, b.Duplicates))
			}
			// The duplicate that wastes the most bytes comes first: 2 bitmaps
			// of 64x64, then 3 of 40x30.
			for i, d := range b.Duplicates {
				members := [][]hproftest.Ref{{refs[3], refs[4]}, {refs[0], refs[1], refs[2]}}[i]
				var objects []hprof.ID
				for _, r := range members {
					objects = append(objects, ids.Of(r))
				}
				size := []int64{64, 40}[i]
				if d.Copies != int64(len(members)) || d.Reachable != d.Copies || d.Width != size ||
					d.BytesEach != 4*size*d.Height || !slices.Equal(d.Objects, objects) || len(d.Content) != 16 {
					t.Errorf("sdk %d: %s, want %x", sdk, text(t, d), objects)
				}
			}
		}
	}
}

// TestBitmapPointers checks bitmaps whose pointers no longer match the dumped
// pixels.
func TestBitmapPointers(t *testing.T) {
	h, refs := gallery(35)
	h.DumpBitmaps()
	// This bitmap now has the pointer of a freed bitmap of a different size.
	h.Set(refs[0], "mNativePtr", h.Pointer(refs[3]))
	// This bitmap now has a pointer that was not dumped.
	h.Set(refs[4], "mNativePtr", 0x1234)
	s, _ := made(t, h, hproftest.Form{}, android.Options{})
	if d := s.Bitmaps.Duplicates; len(d) != 1 || d[0].Copies != 2 || d[0].Width != 40 {
		t.Errorf("duplicates %s", text(t, d))
	}
}

// TestBitmapBufferRoot checks that mBuffer may be held by native code, as
// before Android 6.
func TestBitmapBufferRoot(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{SDK: 23})
	held, free := h.Bitmap(hproftest.Picture{Width: 10, Height: 10, Content: 1}),
		h.Bitmap(hproftest.Picture{Width: 20, Height: 10, Content: 2})
	pixels := h.Bytes(make([]byte, 4321))
	h.Set(held, "mBuffer", pixels)
	h.Root(hprof.SubRootJNIGlobal, pixels)
	// If two bitmaps share one array, the array is credited once and does not
	// count as a duplicate.
	shared := h.Bytes([]byte{1, 2, 3, 4})
	one, two := h.Bitmap(hproftest.Picture{Width: 1, Height: 1}), h.Bitmap(hproftest.Picture{Width: 1, Height: 1})
	h.Set(one, "mBuffer", shared)
	h.Set(two, "mBuffer", shared)
	h.Hold("com.shop.Pictures", "sList", h.ArrayList(held, free, one, two).Ref)
	s, ids := made(t, h, hproftest.Form{}, android.Options{})
	credited := map[hprof.ID]android.Bitmap{}
	for _, b := range s.Bitmaps.List {
		credited[b.Object] = b
	}
	at := func(r hproftest.Ref) android.Bitmap { return credited[ids.Of(r)] }
	if b := at(held); b.Bytes != 4321 || b.CreditedBytes != b.RetainedBytes+4321 || b.Format != "" {
		t.Errorf("%s", text(t, b))
	}
	if b := at(free); b.CreditedBytes != b.RetainedBytes || b.RetainedBytes <= 800 {
		t.Errorf("%s", text(t, b))
	}
	if a, b := at(one), at(two); a.CreditedBytes-a.RetainedBytes+b.CreditedBytes-b.RetainedBytes != 4 || a.Bytes != 4 ||
		b.Bytes != 4 {
		t.Errorf("%s %s", text(t, a), text(t, b))
	}
	if s.Bitmaps.Bytes != 4321+800+4 || len(s.Bitmaps.Duplicates) != 0 || s.Bitmaps.Blank != 1 {
		t.Errorf("%s", text(t, s.Bitmaps))
	}
}

// TestBitmapSources checks the copies that newer Android versions record: each
// copy holds the ID of its source.
func TestBitmapSources(t *testing.T) {
	w := newWorld()
	w.class("android.graphics.Bitmap", "java.lang.Object",
		[]hprof.Field{
			w.field("mWidth", hprof.Int), w.field("mHeight", hprof.Int), w.field("mId", hprof.Long),
			w.field("mSourceId", hprof.Long),
		})
	for _, b := range [][4]uint64{
		{10, 10, 77, ^uint64(0)}, {10, 10, 78, 77}, {10, 10, 79, 77}, {10, 10, 80, ^uint64(0)}, {9, 9, 81, 55},
		{9, 9, 82, 55}, {8, 9, 83, 55}, {5, 5, 0, 0}, {5, 5, 0, 0},
	} {
		w.instance("android.graphics.Bitmap", w.bytes("iill", b[:]...))
	}
	b, err := android.ReadBitmaps(context.Background(), load(t, w.dump(t)), android.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Duplicates) != 2 || b.DuplicatesBy != android.BySource || b.Duplicates[0].Copies != 3 ||
		b.Duplicates[0].BytesEach != 400 || b.Duplicates[1].Copies != 2 || b.Duplicates[1].Width != 9 {
		t.Errorf("%s", text(t, b))
	}
	if b.Bytes != b.EstimatedBytes || b.Bytes != 4*(4*100+2*81+72+2*25) || b.Larger != nil {
		t.Errorf("%s", text(t, b))
	}
}

// TestBitmapSizes checks that impossible sizes are rejected.
func TestBitmapSizes(t *testing.T) {
	w := newWorld()
	w.class("android.graphics.Bitmap", "java.lang.Object",
		[]hprof.Field{w.field("mWidth", hprof.Int), w.field("mHeight", hprof.Int)})
	w.class("android.util.DisplayMetrics", "java.lang.Object",
		[]hprof.Field{w.field("widthPixels", hprof.Int), w.field("heightPixels", hprof.Int)})
	w.class("dalvik.system.VMRuntime", "java.lang.Object", nil)
	for _, size := range [][2]uint64{
		{0x7fffffff, 0x7fffffff}, {0x80000000, 0x80000000}, {1, 0x7fffffff}, {46341, 46341}, {23170, 23170}, {0, 5},
	} {
		w.instance("android.graphics.Bitmap", w.bytes("ii", size[0], size[1]))
	}
	w.instance("android.util.DisplayMetrics", w.bytes("ii", 0x7fffffff, 0x7fffffff))
	w.instance("android.util.DisplayMetrics", w.bytes("ii", 32768, 32768))
	s := read(t, load(t, w.dump(t)), android.Options{})
	b := s.Bitmaps
	if b.Bytes != 4*23170*23170 || len(b.Warnings) != 1 || b.Larger == nil || *b.Larger != 3 {
		t.Errorf("%s %v", text(t, b), b.Warnings)
	}
	if *s.Metadata.Screen != (android.Screen{Width: 32768, Height: 32768}) {
		t.Errorf("screen %+v", s.Metadata.Screen)
	}
}

func TestBitmapsLeftOut(t *testing.T) {
	h, _ := gallery(23)
	s, _ := made(t, h, hproftest.Form{}, android.Options{Top: 1})
	if b := s.Bitmaps; b.Count != 9 || len(b.List) != 1 || b.Omitted != 8 || len(b.Duplicates) != 1 ||
		b.DuplicatesOmitted != 1 || b.List[0].Width != 221 {
		t.Errorf("%s", text(t, b))
	}
}

// TestLargePixels compares arrays that are read in several pieces.
func TestLargePixels(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{SDK: 23, Width: 1000, Height: 1000})
	same := make([]byte, 4*700*700)
	for i := range same {
		same[i] = byte(i * i >> 8)
	}
	other := slices.Clone(same)
	other[len(other)-1]++
	var refs []hproftest.Ref
	for _, pixels := range [][]byte{same, other, slices.Clone(same)} {
		b := h.Bitmap(hproftest.Picture{Width: 700, Height: 700, Recycled: true})
		h.Set(b, "mRecycled", false)
		h.Set(b, "mBuffer", h.Bytes(pixels))
		refs = append(refs, b)
	}
	h.Hold("com.shop.Pictures", "sList", h.ArrayList(refs...).Ref)
	s, ids := made(t, h, hproftest.Form{}, android.Options{})
	d := s.Bitmaps.Duplicates
	if len(d) != 1 || !slices.Equal(d[0].Objects, []hprof.ID{ids.Of(refs[0]), ids.Of(refs[2])}) {
		t.Errorf("%s", text(t, d))
	}
}
