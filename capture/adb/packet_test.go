package adb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func packetOf(id byte, data string) []byte {
	return append(binary.LittleEndian.AppendUint32([]byte{id}, uint32(len(data))), data...)
}

// readAllPackets is a straightforward implementation of the protocol, used as
// the oracle.
func readAllPackets(data []byte) (ids []byte, out []byte, err error) {
	for {
		if len(data) == 0 {
			return ids, out, io.EOF
		}
		if len(data) < packetHead {
			return ids, out, io.ErrUnexpectedEOF
		}
		id, size := data[0], binary.LittleEndian.Uint32(data[1:])
		data = data[packetHead:]
		n := min(uint64(size), uint64(len(data)))
		if size == 0 {
			ids = append(ids, id)
		}
		for _, c := range data[:n] {
			ids, out = append(ids, id), append(out, c)
		}
		data = data[n:]
		if n < uint64(size) {
			return ids, out, io.ErrUnexpectedEOF
		}
	}
}

// readPackets reads the same input with a packets reader, with interruptions.
func readPackets(r io.Reader, buf []byte) (ids []byte, out []byte, err error) {
	p := &packets{r: r}
	for {
		id, n, err := p.next(buf)
		if errors.Is(err, iotest.ErrTimeout) {
			continue
		}
		if err != nil {
			return ids, out, err
		}
		if n == 0 {
			ids = append(ids, id)
		}
		for _, c := range buf[:n] {
			ids, out = append(ids, id), append(out, c)
		}
	}
}

func FuzzPackets(f *testing.F) {
	f.Add(append(packetOf(1, "hello"), packetOf(3, "\x07")...), 3)
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 'x'}, 64)
	f.Add(append(packetOf(2, ""), 9), 1)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		if len(data) > 4096 {
			return
		}
		buf := make([]byte, 1+uint(size)%100)
		wantIDs, wantOut, wantErr := readAllPackets(data)
		for name, r := range map[string]io.Reader{
			"whole": bytes.NewReader(data), "byte by byte": iotest.OneByteReader(bytes.NewReader(data)),
			"interrupted":    iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(data))),
			"data and error": iotest.DataErrReader(bytes.NewReader(data)),
		} {
			ids, out, err := readPackets(r, buf)
			if !bytes.Equal(ids, wantIDs) || !bytes.Equal(out, wantOut) || err != wantErr {
				t.Fatalf("%s, buffer %d:\n got %q %q %v\nwant %q %q %v", name, len(buf), ids, out, err, wantIDs,
					wantOut, wantErr)
			}
		}
	})
}
