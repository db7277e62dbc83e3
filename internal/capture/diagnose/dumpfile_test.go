package diagnose

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/recorded"
)

// naiveWhole is like wholeDump, for a dump in memory; it reads one record after
// the other.
func naiveWhole(b []byte) bool {
	rest, ok := bytes.CutPrefix(b, []byte(magicOfDump))
	if !ok {
		return false
	}
	version, rest, ok := bytes.Cut(rest, []byte{0})
	if !ok || len(version) >= maxVersion || len(rest) < 12 {
		return false
	}
	rest = rest[12:]
	var tags []byte
	for len(rest) > 0 {
		if len(rest) < 9 {
			return false
		}
		n := uint64(binary.BigEndian.Uint32(rest[5:9]))
		tag := rest[0]
		if rest = rest[9:]; uint64(len(rest)) < n || tag == 0x2c && n > 0 {
			return false
		}
		rest, tags = rest[n:], append(tags, tag)
	}
	if bytes.IndexByte(tags, 0x1c) >= 0 {
		return tags[len(tags)-1] == 0x2c
	}
	return bytes.IndexByte(tags, 0x0c) >= 0
}

func whole(b []byte) error { return wholeDump(bytes.NewReader(b), int64(len(b))) }

// records returns a dump with a record for each of these tags.
func records(tags ...byte) []byte {
	out := append([]byte("JAVA PROFILE 1.0.2\x00\x00\x00\x00\x08"), make([]byte, 8)...)
	for i, tag := range tags {
		n := i * 7
		if tag == tagHeapEnd {
			n = 0
		}
		out = append(append(out, record(tag, uint32(n))...), make([]byte, n)...)
	}
	return out
}

func TestWholeDump(t *testing.T) {
	for name, c := range map[string]struct {
		dump []byte
		says string
	}{
		"segments and an end record":               {records(1, 2, 0x1c, 0x1c, 0x2c), ""},
		"a heap in one record":                     {records(1, 2, 0x0c), ""},
		"two heaps":                                {records(1, 0x1c, 0x2c, 2, 0x1c, 0x2c), ""},
		"a heap in one record, with an end record": {records(1, 2, 0x0c, 0x2c), ""},
		"segments without an end record":           {records(1, 2, 0x1c, 0x1c), "the dump is truncated after"},
		"data after the end record":                {records(1, 0x1c, 0x2c, 2), "the dump is truncated after"},
		"no heap":                                  {records(1, 2), "the dump is truncated after"},
		"only a header":                            {records(), "the dump is truncated after"},
		"half a header":                            {records()[:20], "the dump is truncated after 20 bytes"},
		"nothing":                                  {nil, "the dump is empty"},
		"another format": {
			[]byte("Native heap dump not available. To enable, run"), "not a heap dump",
		},
		"an endless header": {[]byte(magicOfDump + strings.Repeat("1", 100)), "not a heap dump"},
		"a truncated heap":  {records(1, 0x1c, 0x2c)[:60], "the dump is truncated after 60 of "},
		"an end record with content": {
			append(records(0x1c), append(record(0x2c, 1), 0)...), "the dump's end record at",
		},
		"a length of almost 4 GB":      {append(records(0x1c), record(0x1c, 1<<32-1)...), "bytes"},
		"terminal escapes in a header": {[]byte("\x1b[2Jx"), `not a heap dump: it begins with "?[2Jx"`},
	} {
		err := whole(c.dump)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if (err == nil) != naiveWhole(c.dump) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRecordedDumpsAreWhole: dumps of HotSpot and ART are complete, and none of
// their proper prefixes is.
func TestRecordedDumpsAreWhole(t *testing.T) {
	dir := recorded.Path(t, "hprof")
	files, err := filepath.Glob(filepath.Join(dir, "*.hprof"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d dumps, %v", len(files), err)
	}
	random, cuts := rand.New(rand.NewPCG(1, 2)), 30
	if recorded.Long() {
		cuts = 300
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := whole(b); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for range cuts {
			n := random.IntN(len(b))
			if random.IntN(2) == 0 {
				n = len(b) - 1 - random.IntN(min(200, len(b)))
			}
			err := whole(b[:n])
			if (err == nil) != naiveWhole(b[:n]) {
				t.Errorf("%s, %d of %d bytes: %v", file, n, len(b), err)
			}
			var cut truncatedDump
			if err != nil && !errors.As(err, &cut) && n > 0 {
				t.Errorf("%s, %d of %d bytes: %v", file, n, len(b), err)
			}
			if errors.As(err, &cut) && (cut.have != int64(n) || cut.want < cut.have || cut.want > int64(len(b))) {
				t.Errorf("%s, %d of %d bytes: %+v", file, n, len(b), cut)
			}
		}
	}
}

// TestBrokenDisk: a read error of the disk is reported as such, not as a
// truncated dump.
func TestBrokenDisk(t *testing.T) {
	b := records(1, 2, 0x1c, 0x1c, 0x2c)
	if err := wholeDump(bytes.NewReader(b[:20]), int64(len(b))); !errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, new(truncatedDump)) {
		t.Error(err)
	}
}

func FuzzWholeDump(f *testing.F) {
	f.Add(records(1, 2, 0x1c, 0x1c, 0x2c))
	f.Add(records(1, 2, 0x0c))
	f.Add(records(1, 2, 0x1c)[:50])
	f.Add([]byte(magicOfDump))
	f.Add(append(records(0x1c), record(0x2c, 1<<31)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		err := whole(b)
		if naive := naiveWhole(b); (err == nil) != naive {
			t.Errorf("got error %v; accepted by the naive reader: %t", err, naive)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("terminal escapes in %q", err)
		}
	})
}
