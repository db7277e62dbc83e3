package android

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"testing"
)

// webp returns the header of a WebP file, as specified in RFC 9649.
func webp(chunk string, body ...byte) []byte {
	b := append([]byte("RIFF\x00\x01\x00\x00WEBP"+chunk), 0, 1, 0, 0)
	return append(append(b, body...), make([]byte, 20)...)
}

func TestPictureSize(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		w, h := 1+r.IntN(200), 1+r.IntN(200)
		m := image.NewGray(image.Rect(0, 0, w, h))
		var p, j, g bytes.Buffer
		if png.Encode(&p, m) != nil || jpeg.Encode(&j, m, nil) != nil || gif.Encode(&g, m, nil) != nil {
			t.Fatal("cannot encode the picture")
		}
		// A JPEG with a comment and fill bytes before its frame.
		comment := append([]byte{0xff, 0xd8, 0xff, 0xff, 0xfe, 0, 5, 'a', 'b', 'c'}, j.Bytes()[2:]...)
		lossy := binary.LittleEndian.AppendUint16([]byte{1, 2, 3, 0x9d, 0x01, 0x2a}, uint16(w)|1<<14)
		lossy = binary.LittleEndian.AppendUint16(lossy, uint16(h)|2<<14)
		lossless := binary.LittleEndian.AppendUint32([]byte{0x2f}, uint32(w-1)|uint32(h-1)<<14|1<<28)
		extended := []byte{0x10, 0, 0, 0, byte(w - 1), byte((w - 1) >> 8), 0, byte(h - 1), byte((h - 1) >> 8), 0}
		for name, b := range map[string][]byte{
			"png": p.Bytes(), "jpeg": j.Bytes(), "comment": comment, "VP8": webp("VP8 ", lossy...),
			"VP8L": webp("VP8L", lossless...), "VP8X": webp("VP8X", extended...),
		} {
			gotW, gotH, ok := pictureSize(b)
			if !ok || gotW != int64(w) || gotH != int64(h) {
				t.Errorf("%s of %dx%d: %d %d %v", name, w, h, gotW, gotH, ok)
			}
		}
		if _, _, ok := pictureSize(g.Bytes()); ok {
			t.Error("a GIF was accepted")
		}
		// A truncated picture has no size and causes no failure.
		for n := range min(j.Len(), 160) {
			pictureSize(j.Bytes()[:n])
		}
		if _, _, ok := pictureSize(p.Bytes()[:20]); ok {
			t.Error("a truncated PNG was accepted")
		}
	}
}

// FuzzPictureSize checks that the size is the same as the one that the standard
// library reads, if it reads any.
func FuzzPictureSize(f *testing.F) {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, 3, 5)))
	f.Add(b.Bytes())
	b.Reset()
	_ = jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 30, 5)), nil)
	f.Add(b.Bytes())
	f.Add(webp("VP8L", 0x2f, 1, 2, 3, 4))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, h, ok := pictureSize(b)
		if w < 0 || h < 0 || !ok && (w != 0 || h != 0) {
			t.Errorf("%d %d %v", w, h, ok)
		}
		if c, err := png.DecodeConfig(bytes.NewReader(b)); err == nil &&
			(!ok || w != int64(c.Width) || h != int64(c.Height)) {
			t.Errorf("png: %d %d %v, want %d %d", w, h, ok, c.Width, c.Height)
		}
	})
}

func TestPattern(t *testing.T) {
	for name, want := range map[string][2]string{
		"pool-3-thread-12": {"pool-3-thread-*", "pool-*-thread-*"}, "main": {"", ""}, "7": {"*", "*"},
		"AsyncTask #1": {"AsyncTask #*", "AsyncTask #*"},
	} {
		if last, all := pattern(name); last != want[0] || all != want[1] {
			t.Errorf("%q: %q %q", name, last, all)
		}
	}
}

func TestBest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		b := best[int]{limit: r.IntN(8), order: func(a, b int) int { return b - a }}
		seen := make([]int, 1000)
		for range r.IntN(600) {
			v := r.IntN(1000)
			seen[v]++
			b.add(v)
		}
		var want []int
		for v := 999; v >= 0; v-- {
			for range seen[v] {
				if len(want) < b.limit {
					want = append(want, v)
				}
			}
		}
		got := b.sorted()
		if len(got) != len(want) {
			t.Fatalf("%v, want %v", got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%v, want %v", got, want)
			}
		}
	}
}

func TestSum(t *testing.T) {
	if sum(largest, 1) != largest || sum(largest-5, 5) != largest || sum(1, 2) != 3 || sum(5, -2) != 3 ||
		sum(largest-1, largest) != largest {
		t.Error("wrong sum")
	}
}
