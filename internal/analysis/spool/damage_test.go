package spool

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/leakgate/leakgate/internal/text"

	"github.com/klauspost/compress/zstd"
)

// symbol is the maximum number of bytes that one symbol of deflate can
// represent (RFC 1951, 3.2.5): if the input ends inside a symbol, the outputs
// of two decoders may differ by that much.
const symbol = 258

// small returns several small packed inputs. For each input it returns the
// content, the offsets at which the input may end, and how much of the content
// is in the last block, which zstd returns completely or not at all.
func small(t testing.TB) []struct {
	name    string
	format  Format
	packed  []byte
	content []byte
	ends    []int
	last    int
} {
	a, b := dumpLike(900), dumpLike(400)
	first, firstZ, plainZ := gzipped(t, a), zstded(t, true, a), zstded(t, false, a)
	return []struct {
		name    string
		format  Format
		packed  []byte
		content []byte
		ends    []int
		last    int
	}{
		{"gzip", Gzip, joined(first, gzipped(t, b)), joined(a, b), []int{len(first)}, 0},
		{
			"zstd", Zstd, joined(firstZ, skippable(6), zstded(t, true, b)), joined(a, b),
			[]int{len(firstZ), len(firstZ) + 14}, len(b),
		},
		{"zstd without checksums", Zstd, joined(plainZ, zstded(t, false, b)), joined(a, b), []int{len(plainZ)}, len(b)},
	}
}

// TestCut truncates inputs at every byte: the output must be as long as that of
// another decoder, and only an input that ends between members or frames may
// count as complete.
func TestCut(t *testing.T) {
	for _, c := range small(t) {
		t.Run(c.name, func(t *testing.T) {
			dir, most := folder(t), 0
			for n := 4; n < len(c.packed); n++ {
				want, _ := reference(c.packed[:n], len(c.content)+1)
				f, err := open(t, c.packed[:n], Options{Dir: dir})
				if err != nil {
					if len(want) > symbol || !errors.Is(err, io.ErrUnexpectedEOF) {
						t.Errorf("truncated at %d: %v, another decoder returns %d bytes", n, err, len(want))
					}
					continue
				}
				whole := false
				for _, end := range c.ends {
					whole = whole || n == end
				}
				if (f.Truncated == nil) != whole || f.Truncated != nil &&
					!errors.Is(f.Truncated, io.ErrUnexpectedEOF) || f.Damage != nil || f.Format != c.format {
					t.Errorf("truncated at %d: %v, truncated %v, damage %v", n, f.Format, f.Truncated, f.Damage)
				}
				got := content(t, f)
				if !bytes.HasPrefix(c.content, got) || len(want)-len(got) > symbol || len(got) > len(want) {
					t.Errorf("truncated at %d: %d bytes, another decoder returns %d", n, len(got), len(want))
				}
				most = max(most, len(got))
			}
			if most < len(c.content)-c.last {
				t.Errorf("unpacked at most %d of %d bytes", most, len(c.content))
			}
		})
	}
}

func TestCutSays(t *testing.T) {
	packed := gzipped(t, dumpLike(5000))
	f, err := open(t, packed[:len(packed)-1], Options{Dir: folder(t)})
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("standard input is truncated: its gzip data ends early, after %s; 5 000 bytes were unpacked: "+
		"unexpected EOF", text.Bytes(int64(len(packed)-1)))
	if f.Truncated == nil || f.Truncated.Error() != want {
		t.Errorf("%v\nwant %s", f.Truncated, want)
	}
	content(t, f)
}

// TestFlipped changes each byte of inputs with checksums: a changed input may
// count as complete only if its content is still correct.
func TestFlipped(t *testing.T) {
	for _, c := range small(t)[:2] {
		t.Run(c.name, func(t *testing.T) {
			dir, marked := folder(t), 0
			for i := range c.packed {
				for _, flip := range []byte{1, 0x20, 0xff} {
					packed := bytes.Clone(c.packed)
					packed[i] ^= flip
					f, err := open(t, packed, Options{Dir: dir})
					if err != nil {
						continue
					}
					damage, ok := errors.AsType[*DamageError](f.Damage)
					if f.Damage != nil &&
						(!ok || damage.Kept != f.Size() || damage.At <= 0 || damage.At > int64(len(packed)) ||
							damage.Format != c.format || f.Truncated != nil) {
						t.Errorf("byte %d: %v, truncated %v", i, f.Damage, f.Truncated)
					}
					if f.Damage != nil {
						marked++
					}
					suspect, plain := f.Damage != nil || f.Truncated != nil, f.Format == Plain
					got := content(t, f)
					if plain && !bytes.Equal(got, packed) || !plain && !suspect && !bytes.Equal(got, c.content) {
						t.Errorf("byte %d ^ %#x: %d bytes are accepted as complete", i, flip, len(got))
					}
				}
			}
			if marked < len(c.packed) {
				t.Errorf("detected only %d of %d flipped bytes", marked, 3*len(c.packed))
			}
		})
	}
}

func TestDamageSays(t *testing.T) {
	packed := gzipped(t, dumpLike(5000), dumpLike(10))
	first := len(gzipped(t, dumpLike(5000)))
	packed[first-8] ^= 1 // the CRC-32 of the first member
	f, err := open(t, packed, Options{Dir: folder(t)})
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("damaged gzip data before byte %d of the input: gzip: invalid checksum; 5 000 bytes were "+
		"unpacked", first)
	if f.Damage == nil || f.Damage.Error() != want {
		t.Errorf("%v\nwant %s", f.Damage, want)
	}
	if got := content(t, f); !bytes.Equal(got, dumpLike(5000)) {
		t.Errorf("%d bytes", len(got))
	}
}

// TestGarbage appends unrelated data to packed data.
func TestGarbage(t *testing.T) {
	a := dumpLike(1500)
	for _, c := range []struct {
		name   string
		packed []byte
	}{
		{"text after gzip", joined(gzipped(t, a), []byte("-- the end of the log, by logger --"))},
		{"zeros and text after gzip", joined(gzipped(t, a), make([]byte, 100), []byte("x"))},
		{"zstd after gzip", joined(gzipped(t, a), zstded(t, true, a))},
		{"gzip after zstd", joined(zstded(t, true, a), gzipped(t, a))},
		{"zeros after zstd", joined(zstded(t, true, a), make([]byte, 100))},
	} {
		f, err := open(t, c.packed, Options{Dir: folder(t)})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if f.Damage == nil || f.Truncated != nil {
			t.Errorf("%s: truncated %v, damage %v", c.name, f.Truncated, f.Damage)
		}
		if got := content(t, f); !bytes.Equal(got, a) {
			t.Errorf("%s: %d bytes", c.name, len(got))
		}
	}
}

// reference unpacks up to limit bytes with other decoders: the gzip package of
// the standard library, and the concurrent zstd decoder.
func reference(packed []byte, limit int) ([]byte, error) {
	var out bytes.Buffer
	switch formatOf(packed) {
	case Gzip:
		err := referenceGzip(&out, packed, limit)
		return out.Bytes(), err
	case Zstd:
		z, err := zstd.NewReader(struct{ io.Reader }{bytes.NewReader(packed)}, zstd.WithDecoderConcurrency(3),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		_, err = io.Copy(&out, io.LimitReader(struct{ io.Reader }{z}, int64(limit)))
		return out.Bytes(), err
	}
	return packed[:min(len(packed), limit)], nil
}

func referenceGzip(out *bytes.Buffer, packed []byte, limit int) error {
	in := bufio.NewReader(bytes.NewReader(packed))
	for first := true; ; first = false {
		rest, _ := in.Peek(len(packed))
		if len(rest) == 0 {
			return nil
		}
		if !first && rest[0] == 0 {
			tail := packed[len(packed)-in.Buffered():]
			all, err := io.ReadAll(in)
			if err != nil || len(bytes.Trim(append(tail, all...), "\x00")) > 0 {
				return errFollows
			}
			return nil
		}
		if len(rest) > 3 && rest[3]>>5 != 0 {
			return gzip.ErrHeader // reserved flags, which the standard library accepts (RFC 1952, 2.3.1.2)
		}
		z, err := gzip.NewReader(in)
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		z.Multistream(false)
		if _, err := io.Copy(out, io.LimitReader(z, int64(limit-out.Len()))); err != nil || out.Len() == limit {
			return err
		}
	}
}

// FuzzOpen compares the output of Open with that of other decoders.
func FuzzOpen(f *testing.F) {
	for _, c := range small(f) {
		f.Add(c.packed, uint16(5000))
		f.Add(c.packed, uint16(1000))
		f.Add(c.packed[:len(c.packed)/2], uint16(5000))
	}
	f.Add([]byte("PK\x03\x04"), uint16(9))
	f.Add([]byte("JAVA PROFILE 1.0.3\x00"), uint16(19))
	f.Add(joined(gzipped(f, nil, dumpLike(40)), make([]byte, 5)), uint16(40))
	f.Add(joined(gzipped(f, dumpLike(40)), []byte("garbage")), uint16(40))
	f.Add([]byte("\x28\xb5\x2f\xfd\x01\x00\x07\x09\x00\x00x"), uint16(40))
	f.Fuzz(func(t *testing.T, packed []byte, most uint16) {
		limit := int(most) + 1
		want, wantErr := reference(packed, limit+1)
		got, err := open(t, packed, Options{Dir: t.TempDir(), Cap: int64(limit)})
		if (got == nil) == (err == nil) {
			t.Fatalf("%v and %v", got, err)
		}
		format := formatOf(packed)
		whole := wantErr == nil && len(want) <= limit
		if err != nil {
			refused := format == Plain && mistaken(packed) != "" ||
				format != Plain && (mistaken(want) != "" || formatOf(want) != Plain)
			switch {
			case errors.Is(err, ErrCap) && whole:
				t.Fatalf("%v, but there are %d", err, len(want))
			case !errors.Is(err, ErrCap) && !refused && len(want) > 0 && whole:
				t.Fatalf("%v, but another decoder returns %d bytes", err, len(want))
			}
			return
		}
		size, suspect := got.Size(), got.Truncated != nil || got.Damage != nil
		if size == 0 || size > int64(limit) || got.Format != format || got.Truncated != nil && got.Damage != nil {
			t.Fatalf("%d bytes of %v, cap %d, truncated %v, damage %v", size, got.Format, limit, got.Truncated,
				got.Damage)
		}
		if suspect == whole {
			t.Fatalf("truncated %v, damage %v; another decoder: %v", got.Truncated, got.Damage, wantErr)
		}
		data := content(t, got)
		if !suspect && !bytes.Equal(data, want) {
			t.Fatalf("%d bytes, another decoder returns %d", len(data), len(want))
		}
		if !bytes.HasPrefix(data, want) && !bytes.HasPrefix(want, data) {
			t.Fatalf("%d bytes, another decoder returns %d; they differ at %d", len(data), len(want),
				common(data, want))
		}
	})
}
