package spool

import (
	"io"

	"github.com/klauspost/compress/zstd"
)

// PackedSuffix is the suffix of the names of files that Pack has written.
const PackedSuffix = ".zst"

// packWindow is the window of packed data. The 8 MB window of the default level
// would not make heap dumps smaller, because repetitions in a heap are close
// together, and would need 15 MB more memory here and 7 MB more in each reader.
const packWindow = 1 << 20

// Pack returns a writer that compresses size bytes into one zstd frame on w, at
// the default level, in less than 6 MB of memory and without a goroutine. The
// frame has the size and a checksum, so that a reader detects truncation and
// damage. Close ends the frame and leaves w open; it fails if more or fewer
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
