package spool

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leakgate/leakgate/internal/text"
)

func TestCap(t *testing.T) {
	data := dumpLike(2*pieceSize + 77)
	size := int64(len(data))
	for _, packed := range [][]byte{data, gzipped(t, data), gzipped(t, data[:100], data[100:]), zstded(t, true, data)} {
		for _, c := range []struct {
			cap  int64
			fits bool
		}{{1, false}, {pieceSize, false}, {size - 1, false}, {size, true}, {size + 1, true}, {0, true}} {
			f, err := open(t, packed, Options{Dir: folder(t), Cap: c.cap})
			if c.fits {
				checkWhole(t, f, err, formatOf(packed), data)
				continue
			}
			if f != nil || !errors.Is(err, ErrCap) ||
				!strings.Contains(err.Error(), "larger than the cap of "+text.Bytes(c.cap)) ||
				!strings.Contains(err.Error(), "raise the cap with --spool-cap") {
				t.Errorf("cap %d: %v, %v", c.cap, f, err)
			}
		}
	}
	checkNoGoroutine(t)
	// Open reads a plain file in place, without a temporary file.
	f, err := Open(t.Context(), write(t, "a", data), nil, Options{Cap: 1})
	checkWhole(t, f, err, Plain, data)
}

// repeated returns head, followed by part n times.
type repeated struct {
	head, part []byte
	n          int
	rest       []byte
	read       atomic.Int64
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.head != nil {
		r.rest, r.head = r.head, nil
	}
	if len(r.rest) == 0 {
		if r.n == 0 {
			return 0, io.EOF
		}
		r.rest = r.part
		r.n--
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	r.read.Add(int64(n))
	return n, nil
}

// TestBombs unpacks a gigabyte of zeros, and more, with a cap of a megabyte:
// Open must read only a small part of the bomb and use little memory.
func TestBombs(t *testing.T) {
	megabyte := make([]byte, 1<<20)
	var deflated bytes.Buffer
	z, err := flate.NewWriter(&deflated, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(megabyte); err != nil {
		t.Fatal(err)
	}
	if err := z.Flush(); err != nil { // writes whole blocks, but not the last one
		t.Fatal(err)
	}
	// This block of four bytes stands for 128 KiB (RFC 8878, 3.1.1.2), and
	// needs a window of 128 KiB.
	block := []byte{0x02, 0x00, 0x10, 0x00}
	for name, bomb := range map[string]*repeated{
		"one gzip member": {
			head: []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"), part: deflated.Bytes(), n: 1 << 10,
		},
		"gzip members":     {part: gzipped(t, megabyte), n: 1 << 10},
		"one zstd frame":   {head: []byte("\x28\xb5\x2f\xfd\x00\x38"), part: bytes.Repeat(block, 1<<10), n: 1 << 10},
		"zstd frames":      {part: zstded(t, true, megabyte), n: 1 << 10},
		"a window of 128M": {head: []byte("\x28\xb5\x2f\xfd\x00\x88"), part: bytes.Repeat(block, 1<<10), n: 1 << 10},
		"plain":            {part: megabyte, n: 1 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			f, err := Open(t.Context(), "-", bomb, Options{Dir: folder(t), Cap: 1 << 20})
			runtime.ReadMemStats(&after)
			if f != nil || !errors.Is(err, ErrCap) {
				t.Fatalf("%v, %v", f, err)
			}
			bound := uint64(16 << 20) // the window that the library uses for packing is 8 MB
			if strings.Contains(name, "128M") {
				bound += maxWindow
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > bound {
				t.Errorf("used %d bytes of memory, want at most %d", used, bound)
			}
			checkNoGoroutine(t) // nothing more is read
			if read := bomb.read.Load(); read > (1<<20)+(pieces+2)*max(pieceSize, readSize) {
				t.Errorf("read %d bytes of the bomb", read)
			}
		})
	}
}

// TestBombOfNothing reads packed input without content: unpacking must stop at
// the end of the input.
func TestBombOfNothing(t *testing.T) {
	for name, part := range map[string][]byte{
		"members": gzipped(t, nil), "frames": zstded(t, true, nil), "skippable frames": skippable(200),
	} {
		_, err := Open(t.Context(), "-", &repeated{part: bytes.Repeat(part, 100), n: 100},
			Options{Dir: folder(t), create: unused(t)})
		if err == nil || !strings.Contains(err.Error(), "and empty") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNeed checks the estimate of the unpacked size.
func TestNeed(t *testing.T) {
	for _, c := range []struct {
		written, read, size int64
		want                string
	}{
		{1 << 30, 100 << 20, 400 << 20, ", needed: about 4096.0 MB"},
		{1 << 30, 100 << 20, 0, ""},
		{1 << 30, certain - 1, 400 << 20, ""},
		{1 << 30, 400 << 20, 400 << 20, ""},
	} {
		u := &unpacking{src: &source{}}
		u.src.read.Store(c.read)
		if got := (&writing{u: u, in: input{size: c.size}, size: c.written}).need(); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
