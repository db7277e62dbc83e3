package adb

import (
	"encoding/binary"
	"io"
)

// Packets of the shell protocol (AOSP adb/shell_protocol.h): a one-byte id, a
// 32-bit little-endian length, and the data.
const (
	idStdout     = 1
	idStderr     = 2
	idExit       = 3
	idCloseStdin = 4

	packetHead = 5
)

// packets reads the shell protocol. After an error from r it continues where it
// stopped.
type packets struct {
	r    io.Reader
	head [packetHead]byte
	have int    // number of bytes in head
	left uint32 // bytes of data still to come
}

// next reads a part of a packet's data into buf and returns the size n of the
// part and the packet's id; n is 0 only for an empty packet. The device may
// claim a packet length of up to 4 GiB, but no memory is allocated for it.
// io.EOF is returned only between two packets.
func (p *packets) next(buf []byte) (id byte, n int, err error) {
	for p.have < packetHead {
		n, err := p.r.Read(p.head[p.have:])
		p.have += n
		if p.have == packetHead {
			p.left = binary.LittleEndian.Uint32(p.head[1:])
			break
		}
		if err == io.EOF && p.have > 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, 0, err
		}
	}
	id = p.head[0]
	if p.left == 0 {
		p.have = 0
		return id, 0, nil
	}
	for n == 0 && err == nil {
		n, err = p.r.Read(buf[:min(len(buf), int(min(p.left, bufferSize)))])
	}
	p.left -= uint32(n)
	if p.left == 0 {
		p.have = 0
	}
	if n > 0 {
		return id, n, nil
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return id, 0, err
}

// length returns the claimed length of the packet that is being read.
func (p *packets) length() uint32 { return binary.LittleEndian.Uint32(p.head[1:]) }
