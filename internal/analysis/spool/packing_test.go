package spool

//unit:program gzip and zstd are the second implementation
//unit:sleep bounds a reader that hangs; nothing is measured

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/leakgate/leakgate/internal/recorded"
)

// dumpLike returns n compressible bytes that begin like a dump and have no long
// repetition.
func dumpLike(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	words := []string{
		"JAVA PROFILE 1.0.3\x00", "\x00\x00\x00\x04", "java/lang/Object", "mContext", "\x21\x12\xc0\x34\x70",
	}
	b := []byte(words[0])
	for len(b) < n {
		b = append(b, words[r.IntN(len(words))]...)
		b = append(b, byte(r.Uint32()))
	}
	return b[:n]
}

// gzipped packs each part as a gzip member, using a different implementation
// than the one under test.
func gzipped(t testing.TB, parts ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, p := range parts {
		z := gzip.NewWriter(&b)
		z.Name, z.Comment, z.Extra = "a.hprof", "a dump", []byte("extra")
		if _, err := z.Write(p); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// zstded packs each part as a zstd frame.
func zstded(t testing.TB, checksum bool, parts ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, p := range parts {
		z, err := zstd.NewWriter(&b, zstd.WithEncoderCRC(checksum), zstd.WithEncoderConcurrency(1),
			zstd.WithZeroFrames(true))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := z.Write(p); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// program packs data with a program that is installed on the system.
func program(t *testing.T, data []byte, name string, args ...string) []byte {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		recorded.Missing(t, "%s is needed: %v", name, err)
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

// skippable returns a zstd frame without content (RFC 8878, 3.1.2).
func skippable(n int) []byte {
	return append([]byte{0x5e, 0x2a, 0x4d, 0x18, byte(n), 0, 0, 0}, make([]byte, n)...)
}

func joined(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func write(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// folder returns a directory for temporary files, which must be empty at the
// end of the test.
func folder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { checkEmpty(t, dir) })
	return dir
}

func checkEmpty(t testing.TB, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("files not removed: %v, %v", left, err)
	}
}

// open opens data as if it came from standard input.
func open(t testing.TB, data []byte, o Options) (*File, error) {
	t.Helper()
	return Open(t.Context(), "-", bytes.NewReader(data), o)
}

// content reads all of a File and closes it.
func content(t testing.TB, f *File) []byte {
	t.Helper()
	data, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	if err != nil {
		t.Error(err)
	}
	if int64(len(data)) != f.Size() {
		t.Errorf("%d bytes, size %d", len(data), f.Size())
	}
	if n, err := f.ReadAt(make([]byte, 1), f.Size()); n != 0 || err != io.EOF {
		t.Errorf("read at the end: %d, %v", n, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	return data
}

// checkWhole checks that a File contains exactly the wanted bytes.
func checkWhole(t testing.TB, f *File, err error, format Format, want []byte) {
	t.Helper()
	if err != nil {
		t.Error(err)
		return
	}
	if f.Format != format || f.Truncated != nil || f.Damage != nil {
		t.Errorf("%v, truncated %v, damage %v; want %v", f.Format, f.Truncated, f.Damage, format)
	}
	if got := content(t, f); !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want %d; they differ at %d", len(got), len(want), common(got, want))
	}
}

// common returns the number of leading bytes that are equal.
func common(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// checkNoGoroutine waits until no goroutines of this package remain, except
// those of tests.
func checkNoGoroutine(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		buf := make([]byte, 1<<20)
		stacks := string(buf[:runtime.Stack(buf, true)])
		if !strings.Contains(stacks, "spool.(*unpacking)") && !strings.Contains(stacks, "spool.openPipe") {
			return
		}
		select {
		case <-ctx.Done():
			t.Errorf("goroutines are still running:\n%s", stacks)
			return
		case <-time.After(time.Millisecond):
		}
	}
}
