package spool

import (
	"bufio"
	"errors"
	"io"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// input is a stream to spool.
type input struct {
	name string
	r    io.Reader
	// size is the length of the input in bytes, 0 if unknown.
	size int64
	// stop unblocks a blocked Read; it is nil if that is not possible.
	stop func() error
}

const (
	// readSize is the size of one read in bytes. It is larger than a zstd
	// block, so every read goes through the buffer.
	readSize = 256 << 10
	// maxWindow is the maximum window size of zstd data: the default limit of
	// the zstd program, which is the window size of its highest level.
	maxWindow = 128 << 20
	// maxEmpty is the maximum number of consecutive reads without data, as in
	// package bufio.
	maxEmpty = 100
)

var (
	errStopped = errors.New("stopped")
	errFollows = errors.New("the data after the gzip data is not gzip")
	errWindow  = errors.New("its zstd window is larger than 128 MB, or the data is damaged; unpack it first, with " +
		"zstd -d --long=31")
	errDict = errors.New("it was packed with a dictionary; unpack it first, with zstd -d -D DICTIONARY")
)

// source reads the input for a decoder. It records the errors of the input
// other than io.EOF, so they can be distinguished from errors in its content.
type source struct {
	r io.Reader
	// stop is closed when no more data are wanted.
	stop <-chan struct{}
	// read is the number of bytes read.
	read  atomic.Int64
	ended bool
	err   error
}

func (s *source) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if s.ended { // a terminal or a FIFO may have more data after an end of file
		return 0, io.EOF
	}
	for range maxEmpty {
		select {
		case <-s.stop:
			s.err = errStopped
			return 0, s.err
		default:
		}
		n, err := s.r.Read(p)
		s.read.Add(int64(n))
		switch {
		case errors.Is(err, io.EOF):
			s.ended, err = true, io.EOF
		case err != nil:
			s.err = err
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
	s.err = io.ErrNoProgress
	return 0, s.err
}

// unpacked returns a reader of the contents of a stream, and a function that
// releases resources.
func unpacked(in *bufio.Reader, f Format) (r io.Reader, end func(), err error) {
	switch f {
	case Gzip:
		return &members{in: in}, func() {}, nil
	case Zstd:
		// With a concurrency of one, the decoder starts no goroutines; another
		// goroutine already writes its output.
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, err
		}
		return frames{z}, z.Close, nil
	}
	return in, func() {}, nil
}

// frames adds advice to the errors of zstd.
type frames struct{ z *zstd.Decoder }

func (f frames) Read(p []byte) (int, error) {
	n, err := f.z.Read(p)
	switch {
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		err = errWindow
	case errors.Is(err, zstd.ErrUnknownDictionary):
		err = errDict
	}
	return n, err
}

// members reads the members of a gzip stream one after the other (RFC 1952,
// 2.2). Like gzip, it skips zeros after the last member, because tapes are
// padded with zeros.
type members struct {
	in *bufio.Reader
	z  gzip.Reader
	// begun is true if a member was opened; inside is true if the current
	// member has not been read completely.
	begun, inside bool
}

func (m *members) Read(p []byte) (int, error) {
	for {
		if !m.inside {
			if err := m.next(); err != nil {
				return 0, err
			}
		}
		n, err := m.z.Read(p)
		if errors.Is(err, io.EOF) {
			m.inside, err = false, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// next opens the next member, or returns io.EOF if there is none.
func (m *members) next() error {
	head, err := m.in.Peek(1)
	if err != nil {
		return err
	}
	if m.begun && head[0] == 0 {
		return m.padding()
	}
	err = m.z.Reset(m.in)
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case m.begun && errors.Is(err, gzip.ErrHeader):
		return errFollows
	case err != nil:
		return err
	}
	m.z.Multistream(false)
	m.begun, m.inside = true, true
	return nil
}

func (m *members) padding() error {
	for {
		b, err := m.in.ReadByte()
		if err != nil {
			return err
		}
		if b != 0 {
			return errFollows
		}
	}
}
