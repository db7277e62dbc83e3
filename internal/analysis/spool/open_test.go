package spool

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/leakgate/leakgate/internal/recorded"
)

// unused returns a function that fails the test if it is called to create a
// temporary file.
func unused(t *testing.T) func(string) (*os.File, func() error, error) {
	return func(string) (*os.File, func() error, error) {
		t.Error("a temporary file was created")
		return nil, nil, fs.ErrInvalid
	}
}

// TestPlain compares reads of a plain file with reads of its bytes in memory.
func TestPlain(t *testing.T) {
	data := dumpLike(700)
	f, err := Open(t.Context(), write(t, "a.gz", data), nil, Options{Cap: 1, create: unused(t)})
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.NewReader(data)
	for off := int64(0); off <= int64(len(data))+1; off += 7 {
		for _, n := range []int{0, 1, 100, 699, 700, 701} {
			a, b := make([]byte, n), make([]byte, n)
			na, erra := f.ReadAt(a, off)
			nb, errb := want.ReadAt(b, off)
			if na != nb || !errors.Is(erra, errb) || !bytes.Equal(a, b) {
				t.Errorf("ReadAt of %d bytes at %d = %d, %v; want %d, %v", n, off, na, erra, nb, errb)
			}
		}
	}
	if n, err := f.ReadAt(make([]byte, 1), -1); n != 0 || err == nil || errors.Is(err, io.EOF) {
		t.Errorf("at -1: %d, %v", n, err)
	}
	checkWhole(t, f, nil, Plain, data)
	if _, err := f.ReadAt(make([]byte, 1), 0); !errors.Is(err, os.ErrClosed) {
		t.Errorf("read after close: %v", err)
	}
}

// TestPlainChanges changes a plain file while it is open.
func TestPlainChanges(t *testing.T) {
	data := dumpLike(1000)
	path := write(t, "a.hprof", data)
	f, err := Open(t.Context(), path, nil, Options{create: unused(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	other, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Write(data); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 2000)
	if n, err := f.ReadAt(buf, 0); n != 1000 || err != io.EOF || f.Size() != 1000 {
		t.Errorf("longer: %d, %v, size %d", n, err, f.Size())
	}
	if err := other.Truncate(400); err != nil {
		t.Fatal(err)
	}
	n, err := f.ReadAt(buf, 100)
	if n != 300 || !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		!bytes.Equal(buf[:n], data[100:400]) {
		t.Errorf("shorter: %d, %v", n, err)
	}
	if err == nil ||
		!strings.Contains(err.Error(),
			"a.hprof: it became shorter while it was read: it had 1000 bytes and now ends at 400") {
		t.Errorf("shorter: %v", err)
	}
	if n, err := f.ReadAt(buf, 500); n != 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read after the new end: %d, %v", n, err)
	}
}

func TestFormats(t *testing.T) {
	// The contents are longer than the buffers, and longer than the windows of
	// zstd and gzip.
	a, b := dumpLike(pieces*pieceSize+12345), dumpLike(999)
	for _, c := range []struct {
		name   string
		packed []byte
		format Format
		want   []byte
	}{
		{"plain", a, Plain, a},
		{"one byte", []byte{0x1f}, Plain, []byte{0x1f}},
		{"one member", gzipped(t, a), Gzip, a},
		{"members", gzipped(t, a, b, nil, b), Gzip, joined(a, b, b)},
		{"an empty member first", gzipped(t, nil, b), Gzip, b},
		{"padded", joined(gzipped(t, b, a), make([]byte, 70000)), Gzip, joined(b, a)},
		{"one frame", zstded(t, true, a), Zstd, a},
		{"frames", zstded(t, true, a, b, nil, b), Zstd, joined(a, b, b)},
		{"frames without checksums", zstded(t, false, b, a), Zstd, joined(b, a)},
		{
			"skippable frames",
			joined(skippable(5), zstded(t, true, b), skippable(0), zstded(t, false, a), skippable(9)), Zstd,
			joined(b, a),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := folder(t)
			f, err := open(t, c.packed, Options{Dir: dir})
			checkWhole(t, f, err, c.format, c.want)
			// The name does not matter.
			f, err = Open(t.Context(), write(t, "dump.zip", c.packed), nil, Options{Dir: dir})
			checkWhole(t, f, err, c.format, c.want)
			f, err = Open(t.Context(), "-", iotest.OneByteReader(iotest.DataErrReader(bytes.NewReader(c.packed))),
				Options{Dir: dir})
			checkWhole(t, f, err, c.format, c.want)
			checkNoGoroutine(t)
		})
	}
}

func TestPrograms(t *testing.T) {
	data := dumpLike(300 << 10)
	for _, c := range []struct {
		format Format
		args   []string
	}{
		{Gzip, []string{"gzip", "-c"}},
		{Gzip, []string{"gzip", "-c9"}},
		{Zstd, []string{"zstd", "-qc"}},
		{Zstd, []string{"zstd", "-qc19", "--no-check"}},
		{Zstd, []string{"zstd", "-qc1", "--ultra", "-22", "--long=27"}},
		{Zstd, []string{"zstd", "-qc", "-T2", "-B512KiB", "--rsyncable"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			packed := program(t, data, c.args[0], c.args[1:]...)
			f, err := open(t, joined(packed, packed), Options{Dir: folder(t)})
			checkWhole(t, f, err, c.format, joined(data, data))
		})
	}
}

// TestLargeWindow opens an input whose window needs more memory than allowed.
func TestLargeWindow(t *testing.T) {
	packed := program(t, dumpLike(1<<20), "zstd", "-qc", "--long=31")
	_, err := open(t, packed, Options{Dir: folder(t)})
	if err == nil || !strings.Contains(err.Error(), "unpack standard input: its zstd window is larger than 128 MB") ||
		!strings.Contains(err.Error(), "zstd -d --long=31") {
		t.Error(err)
	}
	// A valid frame comes first.
	b := dumpLike(999)
	f, err := open(t, joined(zstded(t, true, b), packed), Options{Dir: folder(t)})
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(f.Damage, errWindow) || f.Truncated != nil || !bytes.Equal(content(t, f), b) {
		t.Errorf("damage %v, truncated %v", f.Damage, f.Truncated)
	}
}

func TestDictionary(t *testing.T) {
	// A frame with a dictionary ID of one byte, a window of 1 KB and one raw
	// block of one byte.
	packed := []byte("\x28\xb5\x2f\xfd\x01\x00\x07\x09\x00\x00x")
	_, err := open(t, packed, Options{Dir: folder(t)})
	if err == nil || !strings.Contains(err.Error(), "packed with a dictionary; unpack it first") {
		t.Error(err)
	}
}

func TestRecorded(t *testing.T) {
	path := []string{"hprof", "mat-openjdk_jdk11_04_x64.hprof.gz"}
	want := recorded.Read(t, path...)
	if len(want) != 14080024 {
		t.Errorf("recorded dump has %d bytes", len(want))
	}
	var done, total int64
	f, err := Open(t.Context(), recorded.Path(t, path...), nil, Options{Dir: folder(t), Progress: func(d, of int64) {
		if d < done || of != 3018672 {
			t.Errorf("progress from %d to %d of %d", done, d, of)
		}
		done, total = d, of
	}})
	checkWhole(t, f, err, Gzip, want)
	if done != total {
		t.Errorf("last progress is %d of %d", done, total)
	}
	f, err = open(t, zstded(t, true, want), Options{Dir: folder(t), Progress: func(_, of int64) {
		if of != 0 {
			t.Errorf("progress reports size %d for standard input, which is unknown", of)
		}
	}})
	checkWhole(t, f, err, Zstd, want)
}

func TestRefused(t *testing.T) {
	dir := folder(t)
	tar := make([]byte, 1024)
	copy(tar, "dump.hprof")
	copy(tar[257:], "ustar\x00")
	utf16 := []byte("\xff\xfeJ\x00A\x00V\x00A\x00")
	for _, c := range []struct {
		name, head, says string
	}{
		{"zip", "PK\x03\x04\x14\x00", "a zip archive; unpack it first"},
		{"tar", string(tar), "a tar archive; unpack it first"},
		{"bzip2", "BZh91AY", "a file packed with bzip2; unpack it first"},
		{"xz", "\xfd7zXZ\x00\x00", "a file packed with xz; unpack it first"},
		{"7z", "7z\xbc\xaf\x27\x1c\x00", "a 7z archive; unpack it first"},
		{"rar", "Rar!\x1a\x07\x01", "a rar archive; unpack it first"},
		{"lz4", "\x04\x22\x4d\x18\x00", "a file packed with lz4; unpack it first"},
		{"ELF", "\x7fELF\x02\x01", "an ELF file"},
		{"dex", "dex\n035\x00", "a dex file"},
		{"sqlite", "SQLite format 3\x00\x10", "an SQLite database"},
		{"PowerShell", string(utf16), "text in UTF-16: PowerShell writes this"},
		{
			"web page", "\xef\xbb\xbf \r\n<!DOCTYPE HTML>\n<title>Sign in</title>",
			"a web page; download the file itself",
		},
		{"web page", "<html lang=en>", "a web page"},
		{
			"adb", "adb: error: failed to stat remote object '/data/x': Permission denied\r\nmore",
			`the message of a command that failed: "adb: error: failed to stat remote object '/data/x': ` +
				`Permission denied"`,
		},
		{"adb", "error: device offline\n", `failed: "error: device offline"`},
		{"run-as", "run-as: package not debuggable: a.b", `failed: "run-as: package not debuggable: a.b"`},
		{"long", "adb: " + strings.Repeat("\u01a9", 200), `\u01a9…`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, err := range []error{
				second(Open(t.Context(), write(t, "a.hprof", []byte(c.head)), nil, Options{create: unused(t)})),
				second(open(t, []byte(c.head), Options{Dir: dir, create: unused(t)})),
				second(open(t, gzipped(t, []byte(c.head)), Options{Dir: dir, create: unused(t)})),
				second(open(t, zstded(t, true, []byte(c.head)), Options{Dir: dir, create: unused(t)})),
			} {
				says := strings.ReplaceAll(c.says, `\u01a9`, "\u01a9")
				if err == nil || !strings.Contains(err.Error(), "looks like ") || !strings.Contains(err.Error(), says) {
					t.Errorf("%v, want ...%s", err, says)
				}
			}
		})
	}
	for _, packed := range [][]byte{
		gzipped(t, gzipped(t, dumpLike(99))), gzipped(t, zstded(t, true, dumpLike(99))),
		zstded(t, true, gzipped(t, dumpLike(99))),
	} {
		err := second(open(t, packed, Options{Dir: dir, create: unused(t)}))
		if err == nil || !strings.Contains(err.Error(), "data again; unpack it once first") {
			t.Errorf("packed twice: %v", err)
		}
	}
	// Dumps, and files that may be logs, must be accepted.
	for _, head := range []string{
		"JAVA PROFILE 1.0.1\x00", "JAVA PROFILE 1.0.3\x00\x00\x00\x00\x04", "\x00\x00\x00\x01\x00\x00\x00\x12",
		"errors: 0", "{\"a\":1}", "+1,main",
	} {
		f, err := open(t, []byte(head), Options{Dir: dir})
		checkWhole(t, f, err, Plain, []byte(head))
	}
}

func second(f *File, err error) error {
	if f != nil {
		f.Close()
		return errors.New("got a file, want an error")
	}
	return err
}

// TestErrors checks the errors for unreadable inputs.
func TestErrors(t *testing.T) {
	dir := t.TempDir()
	here := Options{Dir: folder(t)}
	broken := errors.New("broken pipe in a test")
	reader := func(data []byte) io.Reader { return io.MultiReader(bytes.NewReader(data), iotest.ErrReader(broken)) }
	packed := gzipped(t, dumpLike(5000))
	for _, c := range []struct {
		name  string
		path  string
		stdin io.Reader
		o     Options
		is    error
		says  string
	}{
		{"missing", filepath.Join(dir, "none"), nil, here, fs.ErrNotExist, "open " + filepath.Join(dir, "none") + ": "},
		{"empty name", "", nil, here, nil, "open input: its name is empty"},
		{"folder", dir, nil, here, nil, "open " + dir + ": it is a folder; name a file"},
		{"below a file", filepath.Join(write(t, "a", []byte("a")), "b"), nil, here, nil, "open "},
		{"empty file", write(t, "a", nil), nil, here, nil, "the file is empty"},
		{"empty member", write(t, "a", gzipped(t, nil)), nil, here, nil, "packed with gzip, and empty"},
		{"empty frame", write(t, "a", skippable(3)), nil, here, nil, "packed with zstd, and empty"},
		{"no standard input", "-", nil, here, nil, "read standard input: it is not available"},
		{"empty standard input", "-", bytes.NewReader(nil), here, nil, "read standard input: it is empty"},
		{"reader without data", "-", nothing{}, here, io.ErrNoProgress, "read standard input: failed after 0 bytes"},
		{"fails at once", "-", reader(nil), here, broken, "read standard input: failed after 0 bytes: broken"},
		{
			"fails later", "-", reader(dumpLike(5000)), here, broken,
			"read standard input: failed after 5 000 bytes: broken",
		},
		{"fails in gzip", "-", reader(packed[:len(packed)-9]), here, broken, "read standard input: failed after"},
		{"fails after gzip", "-", reader(packed), here, broken, "read standard input: failed after"},
		{
			"fails in zstd", "-", reader(zstded(t, true, dumpLike(5000))[:70]), here, broken,
			"read standard input: failed after 70 bytes",
		},
		{
			"truncated at once", "-", bytes.NewReader(packed[:9]), here, io.ErrUnexpectedEOF,
			"unpack standard input: it ends after 9 bytes, before anything can be unpacked",
		},
		{
			"damaged at once", "-", strings.NewReader("\x1f\x8b\x09 not deflate"), here, nil,
			"unpack standard input: gzip: invalid header",
		},
		{
			"no temporary folder", "-", bytes.NewReader(packed), Options{Dir: filepath.Join(dir, "none")},
			fs.ErrNotExist,
			"spool standard input: create a temporary file in ",
		},
		{
			"TMPDIR", "-", bytes.NewReader(packed), Options{Dir: filepath.Join(dir, "none")}, nil,
			"set TMPDIR",
		},
	} {
		f, err := Open(t.Context(), c.path, c.stdin, c.o)
		if f != nil || err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v; want %s", c.name, f, err, c.says)
		}
	}
	checkNoGoroutine(t)
}

type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, nil }

// TestProgress reads an input whose last part is longer than a buffer and has
// no content.
func TestProgress(t *testing.T) {
	packed := joined(gzipped(t, dumpLike(99)), make([]byte, 2*readSize))
	var done int64
	f, err := Open(t.Context(), write(t, "a", packed), nil,
		Options{Dir: folder(t), Progress: func(d, _ int64) { done = d }})
	checkWhole(t, f, err, Gzip, dumpLike(99))
	if done != int64(len(packed)) {
		t.Errorf("last progress is %d of %d", done, len(packed))
	}
}

// TestTemporaryFolder checks that the system's temporary directory is the
// default.
func TestTemporaryFolder(t *testing.T) {
	dir := folder(t)
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	asked := ""
	f, err := open(t, dumpLike(99), Options{create: func(dir string) (*os.File, func() error, error) {
		asked = dir
		return temporary(dir)
	}})
	checkWhole(t, f, err, Plain, dumpLike(99))
	if asked != dir {
		t.Errorf("created in %s, want %s", asked, dir)
	}
}

// TestCancel cancels Open while its input is waiting for data.
func TestCancel(t *testing.T) {
	cause := errors.New("cancelled by a test")
	for _, begin := range [][]byte{
		nil, dumpLike(100), dumpLike(3 * pieceSize), zstded(t, true, dumpLike(900)),
		gzipped(t, dumpLike(5000), dumpLike(2*pieceSize)),
	} {
		dir := folder(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		r, w := io.Pipe()
		go func() {
			_, err := w.Write(begin) // returns when the input has been read completely
			if err != nil {
				t.Error(err)
			}
			cancel(cause)
		}()
		f, err := Open(ctx, "-", r, Options{Dir: dir})
		if f != nil || !errors.Is(err, cause) || !strings.Contains(err.Error(), "read standard input: stopped after") {
			t.Errorf("after %d bytes: %v, %v", len(begin), f, err)
		}
		checkEmpty(t, dir)
		// A blocked Read ends only when its input ends.
		w.Close()
		checkNoGoroutine(t)
	}
	// A canceled Open also fails for a file that can be read immediately.
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for range 20 {
		if f, err := Open(ctx, write(t, "a", gzipped(t, dumpLike(9))), nil, Options{Dir: folder(t)}); f != nil ||
			!errors.Is(err, cause) {
			t.Fatalf("%v, %v", f, err)
		}
	}
	checkNoGoroutine(t)
}

// TestRemoved checks that each temporary file is removed exactly once.
func TestRemoved(t *testing.T) {
	packed := gzipped(t, dumpLike(4*pieceSize))
	for name, o := range map[string]Options{
		"whole": {}, "cap": {Cap: 3 * pieceSize},
	} {
		made, removed := 0, 0
		o.Dir = folder(t)
		o.create = func(dir string) (*os.File, func() error, error) {
			made++
			f, remove, err := temporary(dir)
			return f, func() error { removed++; return remove() }, err
		}
		f, err := open(t, packed, o)
		if err == nil {
			if removed != 0 {
				t.Errorf("%s: the temporary file was removed before Close", name)
			}
			err = f.Close()
		} else if !errors.Is(err, ErrCap) {
			t.Errorf("%s: %v", name, err)
		}
		if made != 1 || removed != 1 {
			t.Errorf("%s: made %d, removed %d, %v", name, made, removed, err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	path := []string{"hprof", "mat-openjdk_jdk11_04_x64.hprof.gz"}
	data := recorded.Read(b, path...)
	for name, file := range map[string]string{
		"gzip": recorded.Path(b, path...), "zstd": write(b, "a", zstded(b, true, data)),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				f, err := Open(b.Context(), file, nil, Options{Dir: b.TempDir()})
				if err != nil {
					b.Fatal(err)
				}
				if err := f.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
