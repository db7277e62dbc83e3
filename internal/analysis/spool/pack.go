package spool

import (
	"io"

	"github.com/klauspost/compress/zstd"
)

// PackedSuffix is the suffix of the names of files that Pack has written.
const PackedSuffix = ".zst"

// packWindow is the zstd window size of packed files. The default level's
// window of 8 MB would not make heap dumps smaller, because repetitions in a
// heap are close together, and would need 15 MB more memory here and 7 MB more
// in each reader.
const packWindow = 1 << 20

// Pack returns a writer that compresses size bytes into one zstd frame on w, at
// the default level, using less than 6 MB of memory and no goroutine. The frame
// contains the size and a checksum, so a reader can detect truncation and
// damage. Close ends the frame and does not close w; it fails if more or fewer
// than size bytes were written.
func Pack(w io.Writer, size int64) (io.WriteCloser, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(packWindow), zstd.WithZeroFrames(true))
	if err != nil {
		return nil, err
	}
	z.ResetContentSize(w, size)
	return z, nil
}
