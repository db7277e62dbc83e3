package adbd

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"io"
	"strings"
	"testing"
)

func TestPacketBytes(t *testing.T) {
	// A device's CNXN from protocol.txt: six little-endian words.
	want := "434e584e" + "01000001" + "00001000" + "08000000" + "4f030000" + "bcb1a7b1" +
		hex.EncodeToString([]byte("device::"))
	want = strings.Replace(want, "4f030000",
		hex.EncodeToString(binary.LittleEndian.AppendUint32(nil, 'd'+'e'+'v'+'i'+'c'+'e'+':'+':')), 1)
	if got := hex.EncodeToString(
		appendPacket(nil, cmdConnect, skipChecksum, maxPayload, []byte("device::"), 0)); got != want {
		t.Errorf("CNXN =\n %s, want\n %s", got, want)
	}
	for command, name := range map[uint32]string{
		cmdConnect: "CNXN", cmdAuth: "AUTH", cmdOpen: "OPEN", cmdOkay: "OKAY", cmdWrite: "WRTE", cmdClose: "CLSE",
	} {
		if got := string(binary.LittleEndian.AppendUint32(nil, command)); got != name {
			t.Errorf("%s is written as %q", name, got)
		}
	}
}

func TestReadPacketRefuses(t *testing.T) {
	good := appendPacket(nil, cmdWrite, 1, 2, []byte("data"), 0)
	edit := func(at int, v uint32) []byte {
		b := bytes.Clone(good)
		binary.LittleEndian.PutUint32(b[at:], v)
		return b
	}
	for name, b := range map[string][]byte{
		"nothing":        nil,
		"half a header":  good[:packetHeader-1],
		"half a payload": good[:len(good)-1],
		"wrong magic":    edit(20, 0),
		"huge payload":   edit(12, 0xffffffff),
		"over the limit": edit(12, maxPayload+1),
	} {
		if p, err := readPacket(bytes.NewReader(b)); err == nil {
			t.Errorf("%s was read as %+v", name, p)
		}
	}
}

func TestChecksum(t *testing.T) {
	for _, c := range []struct {
		name     string
		checksum uint32
		version  uint32
		want     bool
	}{
		{"correct checksum, old version", 'a' + 'b', 0x01000000, true},
		{"no checksum, old version", 0, 0x01000000, false},
		{"wrong checksum, old version", 7, 0x01000000, false},
		{"correct checksum, new version", 'a' + 'b', skipChecksum, true},
		{"no checksum, new version", 0, skipChecksum, true},
		{"wrong checksum, new version", 7, skipChecksum, false},
	} {
		if got := (packet{payload: []byte("ab"), checksum: c.checksum}).intact(c.version); got != c.want {
			t.Errorf("%s: intact = %v", c.name, got)
		}
	}
}

func FuzzReadPacket(f *testing.F) {
	f.Add(appendPacket(nil, cmdOpen, 1, 0, []byte("shell:\x00"), 0))
	f.Add(appendPacket(nil, cmdOkay, 1, 2, nil, skipChecksum))
	f.Add(make([]byte, 30))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		p, err := readPacket(r)
		if err != nil {
			if p.payload != nil {
				t.Errorf("readPacket returned an error and a payload of %d bytes", len(p.payload))
			}
			return
		}
		used := data[:len(data)-r.Len()]
		again := appendPacket(nil, p.command, p.arg0, p.arg1, p.payload, skipChecksum)
		// Everything except the checksum must be preserved.
		copy(again[16:20], used[16:20])
		if !bytes.Equal(again, used) {
			t.Errorf("read %x, wrote %x", used, again)
		}
	})
}

// host is the adb server's end of a link, for tests.
type host struct {
	t       testing.TB
	conn    io.ReadWriter
	version uint32
}

func (h host) send(command, arg0, arg1 uint32, payload string) {
	h.t.Helper()
	if _, err := h.conn.Write(appendPacket(nil, command, arg0, arg1, []byte(payload), h.version)); err != nil {
		h.t.Fatalf("send: %v", err)
	}
}

func (h host) read() packet {
	h.t.Helper()
	p, err := readPacket(h.conn)
	if err != nil {
		h.t.Fatalf("read: %v", err)
	}
	return p
}

// want reads one packet and compares it with the arguments; a negative or empty
// argument matches anything.
func (h host) want(command uint32, arg0, arg1 int, payload string) packet {
	h.t.Helper()
	p := h.read()
	if p.command != command || arg0 >= 0 && p.arg0 != uint32(arg0) || arg1 >= 0 && p.arg1 != uint32(arg1) ||
		payload != "" && string(p.payload) != payload {
		h.t.Fatalf("got %s(%d, %d, %.60q); want %s(%d, %d, %.60q)",
			binary.LittleEndian.AppendUint32(nil, p.command), p.arg0, p.arg1, p.payload,
			binary.LittleEndian.AppendUint32(nil, command), arg0, arg1, payload)
	}
	return p
}

// greet performs the handshake as a host that accepts payloads of at most size
// bytes.
func (h host) greet(size uint32) {
	h.t.Helper()
	(host{h.t, h.conn, 0}).send(cmdConnect, h.version, size, "host::features=shell_v2")
	h.want(cmdConnect, skipChecksum, maxPayload, "")
}
