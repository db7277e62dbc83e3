package response

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/recorded"
)

// BenchmarkKeep measures how long it takes to keep a dump of a phone, compared
// with writing the stripped dump without packing it.
func BenchmarkKeep(b *testing.B) {
	data := recorded.Read(b, "hprof", "ahat-O.hprof")
	in := &dump{ReaderAt: bytes.NewReader(data), size: int64(len(data))}
	for _, form := range []struct {
		name  string
		write func(w io.Writer) error
	}{
		{"stripped", func(w io.Writer) error {
			_, err := hprof.Strip(b.Context(), w, in, in.size)
			return err
		}},
		{"stripped and packed", func(w io.Writer) error { return New("", Options{}).packInto(w, in) }},
		{"raw and packed", func(w io.Writer) error { return New("", Options{Keep: Raw}).packInto(w, in) }},
	} {
		b.Run(form.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(in.size)
			var size int64
			path := filepath.Join(b.TempDir(), "dump")
			for b.Loop() {
				f, err := os.Create(path)
				if err != nil {
					b.Fatal(err)
				}
				if err := form.write(f); err != nil {
					b.Fatal(err)
				}
				if size, err = f.Seek(0, io.SeekCurrent); err != nil {
					b.Fatal(err)
				}
				if err := f.Sync(); err != nil {
					b.Fatal(err)
				}
				if err := f.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size)/1e6, "MB")
		})
	}
}
