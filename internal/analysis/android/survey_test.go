package android_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// counted is a reader that counts the bytes that are read.
type counted struct {
	io.ReaderAt
	bytes atomic.Int64
}

func (c *counted) ReadAt(b []byte, at int64) (int, error) {
	c.bytes.Add(int64(len(b)))
	return c.ReaderAt.ReadAt(b, at)
}

// TestReads checks that all topics together read a file at most four times, and
// only a small part of it if the strings are not compared.
func TestReads(t *testing.T) {
	h := hproftest.Java(2)
	h.Fill(hproftest.Ballast{Bytes: 36 << 20})
	large, _, err := h.Dump(hproftest.Form{Runtime: hproftest.HotSpot})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dump []byte
		most int64
	}{
		"leak_service_binder": {recorded.Read(t, "hprof", "leak_service_binder.hprof"), 4 << 20},
		"ahat-O":              {recorded.Read(t, "hprof", "ahat-O.hprof"), 4 << 20},
		"large":               {large, 1 << 20},
	} {
		r := &counted{ReaderAt: bytes.NewReader(c.dump)}
		f, err := hprof.Open(context.Background(), r, int64(len(c.dump)))
		if err != nil {
			t.Fatal(err)
		}
		g, err := heap.Load(context.Background(), f, heap.Options{Snapshot: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		before := r.bytes.Load()
		s := read(t, g, android.Options{})
		if n := (r.bytes.Load() - before) << 20 / int64(len(c.dump)); n > c.most {
			t.Errorf("%s: the dump was read %.1f times, want at most %.1f", name, float64(n)/(1<<20),
				float64(c.most)/(1<<20))
		}
		if s.Strings.Compared != (name != "large") {
			t.Errorf("%s: got compared %[3]v for %[2]d strings", name, s.Strings.Count, s.Strings.Compared)
		}
		if name != "large" {
			continue
		}
		if s = read(t, g, android.Options{AllStrings: true}); !s.Strings.Compared ||
			s.Strings.Distinct < s.Strings.Count/2 {
			t.Errorf("with AllStrings: %+v", s.Strings)
		}
	}
}

// TestOneByOne checks that each topic yields the same result alone as together
// with all others.
func TestOneByOne(t *testing.T) {
	for _, name := range []string{"leak_service_binder.hprof", "hprof-64.bin"} {
		g, ctx, o := loadRecorded(t, name), context.Background(), android.Options{Top: 7}
		s := read(t, g, o)
		for topic, pair := range map[string]func() (any, any, error){
			"metadata": func() (any, any, error) {
				v, err := android.ReadMetadata(ctx, g, o)
				return v, s.Metadata, err
			},
			"bitmaps": func() (any, any, error) {
				v, err := android.ReadBitmaps(ctx, g, o)
				return v, s.Bitmaps, err
			},
			"strings": func() (any, any, error) {
				v, err := android.ReadStrings(ctx, g, o)
				return v, s.Strings, err
			},
			"threads": func() (any, any, error) {
				v, err := android.ReadThreads(ctx, g, o)
				return v, s.Threads, err
			},
			"components": func() (any, any, error) {
				v, err := android.ReadComponents(ctx, g, o)
				return v, s.Components, err
			},
			"unused": func() (any, any, error) { v, err := android.ReadUnused(ctx, g, o); return v, s.Unused, err },
			"finalizers": func() (any, any, error) {
				v, err := android.ReadFinalizers(ctx, g, o)
				return v, s.Finalizers, err
			},
			"exhaustion": func() (any, any, error) {
				v, err := android.ReadExhaustion(ctx, g, o)
				return v, s.Exhaustion, err
			},
		} {
			alone, together, err := pair()
			if err != nil || text(t, alone) != text(t, together) {
				t.Errorf("%s %s: %v\nalone:    %s\ntogether: %s", name, topic, err, text(t, alone), text(t, together))
			}
		}
	}
}

func TestCancelled(t *testing.T) {
	g := loadRecorded(t, "leak_service_binder.hprof")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if s, err := android.Read(ctx, g, android.Options{}); s != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v %v", s, err)
	}
	if _, err := android.ReadStrings(ctx, g, android.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// failing is a reader that returns errors once it is switched on.
type failing struct {
	io.ReaderAt
	on atomic.Bool
}

var errGone = errors.New("disk removed")

func (f *failing) ReadAt(b []byte, at int64) (int, error) {
	if f.on.Load() {
		return 0, errGone
	}
	return f.ReaderAt.ReadAt(b, at)
}

// TestTruncated reads dumps that were truncated at many positions.
func TestTruncated(t *testing.T) {
	dump := recorded.Read(t, "hprof", "leak_service_binder.hprof")
	loaded := 0
	for i := range 12 {
		cut := dump[:len(dump)*(i+1)/13+i]
		f, err := hprof.Open(context.Background(), bytes.NewReader(cut), int64(len(cut)))
		if err != nil {
			t.Fatal(err)
		}
		g, err := heap.Load(context.Background(), f, heap.Options{Snapshot: -1})
		if err != nil {
			continue // truncated before the heap
		}
		loaded++
		s := read(t, g, android.Options{})
		if s.Bitmaps.Count > 26 || s.Strings.Count > 11584 ||
			s.Strings.Distinct+s.Strings.WithoutText > s.Strings.Count || s.Threads.Count > 12 {
			t.Errorf("truncated after %d bytes: %s", len(cut), text(t, s))
		}
		g.Close()
	}
	if loaded < 6 {
		t.Errorf("only %d dumps could be loaded, want at least 6", loaded)
	}
}

// TestGone checks that reading a file that is no longer readable results in an
// error, not in an empty survey.
func TestGone(t *testing.T) {
	dump := recorded.Read(t, "hprof", "leak_service_binder.hprof")
	r := &failing{ReaderAt: bytes.NewReader(dump)}
	f, err := hprof.Open(context.Background(), r, int64(len(dump)))
	if err != nil {
		t.Fatal(err)
	}
	g, err := heap.Load(context.Background(), f, heap.Options{Snapshot: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	r.on.Store(true)
	if s, err := android.Read(context.Background(), g, android.Options{}); s != nil || !errors.Is(err, errGone) {
		t.Errorf("%v %v", s, err)
	}
}

// TestOwner checks that an object without a dominator has no owner, and that
// the search for an owner stops in a long list.
func TestOwner(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{SDK: 23})
	alone := h.Bitmap(hproftest.Picture{Width: 9, Height: 9})
	h.Root(hprof.SubRootJNIGlobal, alone)
	deep := h.Bitmap(hproftest.Picture{Width: 8, Height: 8})
	node := h.New(h.Class("java.util.LinkedList$Node"), hproftest.Fields{"item": deep})
	for range 5000 {
		node = h.New(h.Class("java.util.LinkedList$Node"), hproftest.Fields{"next": node})
	}
	h.Hold("com.shop.Deep", "sList", node)
	near := h.Bitmap(hproftest.Picture{Width: 7, Height: 7})
	view := h.New(h.Class("android.widget.ImageView"),
		hproftest.Fields{"mDrawable": h.New(h.Class("android.graphics.drawable.BitmapDrawable"), hproftest.Fields{
			"mBitmapState": h.New(h.Class("android.graphics.drawable.BitmapDrawable$BitmapState"),
				hproftest.Fields{"mBitmap": near}),
		})})
	h.Hold("com.shop.Near", "sView", view)
	s, ids := made(t, h, hproftest.Form{}, android.Options{})
	owners := map[int64]*android.Owner{}
	for _, b := range s.Bitmaps.List {
		owners[b.Width] = b.Owner
	}
	if owners[9] != nil {
		t.Errorf("alone: %+v", owners[9])
	}
	if o := owners[8]; o == nil || o.Class != "java.util.LinkedList$Node" {
		t.Errorf("deep: %+v", o)
	}
	if o := owners[7]; o == nil || o.Object != ids.Of(view) || o.Class != "android.widget.ImageView" || o.Static {
		t.Errorf("near: %+v", o)
	}
}

func BenchmarkRead(b *testing.B) {
	for _, name := range []string{"leak_service_binder.hprof", "ahat-O.hprof", "mat-openjdk_jdk11_04_x64.hprof.gz"} {
		b.Run(name, func(b *testing.B) {
			g := loadRecorded(b, name)
			for b.Loop() {
				read(b, g, android.Options{})
			}
		})
	}
}
