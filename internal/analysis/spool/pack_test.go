package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
)

// packed returns data packed by Pack; it writes the data to Pack in pieces.
func packed(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := Pack(&b, int64(len(data)))
	if err == nil {
		_, err = io.CopyBuffer(struct{ io.Writer }{w}, bytes.NewReader(data), make([]byte, 70_001))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The system's program and Open must unpack Pack's output completely; output
// whose end is missing must be reported as incomplete.
func TestPack(t *testing.T) {
	for _, n := range []int{1, 1000, 128 << 10, 128<<10 + 1, packWindow + 12345, 3*packWindow + 7} {
		data := dumpLike(n)
		z := packed(t, data)
		if again := program(t, z, "zstd", "-dc"); !bytes.Equal(again, data) {
			t.Errorf("zstd unpacked %d bytes, want %d", len(again), n)
		}
		if n > 1000 && len(z)*2 > n {
			t.Errorf("Pack wrote %d bytes for %d bytes of input, want at most half", len(z), n)
		}
		f, err := open(t, z, Options{Dir: folder(t)})
		checkWhole(t, f, err, Zstd, data)
		f, err = open(t, z[:len(z)-1], Options{Dir: folder(t)})
		if err == nil {
			if f.Truncated == nil {
				t.Errorf("%d bytes: accepted as complete without the last byte: %v", n, f.Damage)
			}
			content(t, f)
		} else if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// Pack must fail if a dump grows or shrinks while it is being packed.
func TestPackOfAnotherSize(t *testing.T) {
	for _, n := range []int64{999, 1001, 1 << 20} {
		w, err := Pack(io.Discard, n)
		if err != nil {
			t.Fatal(err)
		}
		_, werr := w.Write(dumpLike(1000))
		if err := errors.Join(werr, w.Close()); err == nil {
			t.Errorf("1000 bytes were accepted for a declared size of %d", n)
		}
	}
}

// Packing must use no more memory than Pack promises, and no goroutine.
func TestPackMemory(t *testing.T) {
	data := dumpLike(8 * packWindow)
	var before, after runtime.MemStats
	goroutines := runtime.NumGoroutine()
	runtime.ReadMemStats(&before)
	w, err := Pack(io.Discard, int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines, %d before", n, goroutines)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 6<<20 {
		t.Errorf("used %d bytes of memory, want at most 6 MiB", used)
	}
}

// A frame that declares more than the cap must be refused before anything is
// written; a frame that declares a wrong size must be refused, or reported as
// truncated or damaged.
func TestDeclaredSize(t *testing.T) {
	data := dumpLike(300_000)
	z := packed(t, data)
	f, err := open(t, z, Options{Cap: int64(len(data)) - 1, create: unused(t)})
	if f != nil || !errors.Is(err, ErrCap) || !strings.Contains(err.Error(), "it has 300000 bytes unpacked") {
		t.Errorf("%v, %v", f, err)
	}
	f, err = open(t, z, Options{Dir: folder(t), Cap: int64(len(data))})
	checkWhole(t, f, err, Zstd, data)
	at := bytes.Index(z, binary.LittleEndian.AppendUint32(nil, uint32(len(data))))
	if at < 4 || at > 10 {
		t.Fatalf("frame size is at offset %d, want 4 to 10", at)
	}
	for _, size := range []uint32{100_000, 299_999, 300_001, 1 << 30} {
		lying := bytes.Clone(z)
		binary.LittleEndian.PutUint32(lying[at:], size)
		f, err := open(t, lying, Options{Dir: folder(t)})
		if err != nil {
			continue // refused immediately
		}
		if f.Truncated == nil && f.Damage == nil {
			t.Errorf("declared size %d: accepted as complete", size)
		}
		if n := len(content(t, f)); n > len(data) {
			t.Errorf("declared size %d: unpacked %d bytes", size, n)
		}
	}
	checkNoGoroutine(t)
}

// OpenFile owns the file: it must close the file when the file is no longer
// needed, at the latest when the File is closed.
func TestOpenFile(t *testing.T) {
	data := dumpLike(1000)
	for _, c := range []struct {
		name     string
		data     []byte
		format   Format
		err      string
		released bool // before the File is closed
	}{
		{"plain", data, Plain, "", false},
		{"zstd", packed(t, data), Zstd, "", true},
		{"empty", nil, Plain, "open heap: the file is empty", true},
		{"nothing in it", packed(t, nil), Zstd, "unpack heap: it is packed with zstd, and empty", true},
	} {
		in, err := os.Open(write(t, "a", c.data))
		if err != nil {
			t.Fatal(err)
		}
		f, err := OpenFile(t.Context(), "heap", in, Options{Dir: folder(t)})
		if _, gone := in.Stat(); errors.Is(gone, os.ErrClosed) != c.released {
			t.Errorf("%s: file was closed: %v", c.name, gone)
		}
		if c.err != "" {
			if f != nil || err == nil || err.Error() != c.err {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		checkWhole(t, f, err, c.format, data)
		if _, gone := in.Stat(); !errors.Is(gone, os.ErrClosed) {
			t.Errorf("%s: file is still open: %v", c.name, gone)
		}
	}
}
