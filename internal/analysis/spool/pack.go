package spool

import (
	"io"

	"github.com/klauspost/compress/zstd"
)

// PackedSuffix ends the name of a file that Pack has written.
const PackedSuffix = ".zst"

// packWindow is the window of packed data. The 8 MB of the default level make
// heap dumps no smaller, because repetitions in a heap are close together, and
// cost 15 MB more memory here and 7 MB more in each reader.
const packWindow = 1 << 20

// Pack returns a writer that compresses size bytes into one zstd frame on w, at
// the default level, in less than 6 MB of memory and without a goroutine. The
// frame has the size and a checksum, so that a reader detects truncation and
// damage. Close ends the frame and leaves w open; after more or fewer bytes
// than size it fails.
func Pack(w io.Writer, size int64) (io.WriteCloser, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(packWindow), zstd.WithZeroFrames(true))
	if err != nil {
		return nil, err
	}
	z.ResetContentSize(w, size)
	return z, nil
}
