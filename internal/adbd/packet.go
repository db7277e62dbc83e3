package adbd

import (
	"encoding/binary"
	"fmt"
	"io"
)

// The commands of the transport protocol: four letters as a little-endian
// number (protocol.txt).
const (
	cmdConnect = 0x4e584e43 // CNXN
	cmdAuth    = 0x48545541 // AUTH
	cmdOpen    = 0x4e45504f // OPEN
	cmdOkay    = 0x59414b4f // OKAY
	cmdWrite   = 0x45545257 // WRTE
	cmdClose   = 0x45534c43 // CLSE
)

const (
	packetHeader = 24
	// maxPayload is MAX_PAYLOAD in adb.h, in bytes; minPayload is the limit of
	// older hosts (MAX_PAYLOAD_V1).
	maxPayload = 1 << 20
	minPayload = 4 << 10

	// From version skipChecksum on, both sides omit the checksum.
	skipChecksum = 0x01000001
)

// packet is one message of the transport protocol.
type packet struct {
	command, arg0, arg1 uint32
	payload             []byte
	// checksum is the checksum in the header; 0 may mean that it was omitted.
	checksum uint32
}

// readPacket reads a message whose payload is at most maxPayload bytes. After
// an error the position in the stream is unknown.
func readPacket(r io.Reader) (packet, error) {
	var h [packetHeader]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return packet{}, fmt.Errorf("read a header: %w", err)
	}
	le := binary.LittleEndian
	p := packet{command: le.Uint32(h[0:]), arg0: le.Uint32(h[4:]), arg1: le.Uint32(h[8:]), checksum: le.Uint32(h[16:])}
	n := le.Uint32(h[12:])
	if magic := le.Uint32(h[20:]); magic != p.command^0xffffffff {
		return packet{}, fmt.Errorf("read a header: magic %#x does not match command %#x", magic, p.command)
	}
	if n > maxPayload {
		return packet{}, fmt.Errorf("read a header: payload of %d bytes is too large", n)
	}
	p.payload = make([]byte, n)
	if _, err := io.ReadFull(r, p.payload); err != nil {
		return packet{}, fmt.Errorf("read a payload of %d bytes: %w", n, err)
	}
	return p, nil
}

// intact verifies the checksum, which a peer of version skipChecksum or later
// may omit.
func (p packet) intact(version uint32) bool {
	return p.checksum == sum(p.payload) || p.checksum == 0 && version >= skipChecksum
}

// appendPacket appends a message in its wire format. Only peers older than
// skipChecksum verify the checksum, and they require it.
func appendPacket(b []byte, command, arg0, arg1 uint32, payload []byte, version uint32) []byte {
	le := binary.LittleEndian
	var checksum uint32
	if version < skipChecksum {
		checksum = sum(payload)
	}
	for _, v := range [...]uint32{command, arg0, arg1, uint32(len(payload)), checksum, command ^ 0xffffffff} {
		b = le.AppendUint32(b, v)
	}
	return append(b, payload...)
}

// sum returns what the protocol calls a CRC: the sum of the bytes.
func sum(p []byte) uint32 {
	var n uint32
	for _, b := range p {
		n += uint32(b)
	}
	return n
}
