package androidsim

import (
	"encoding/binary"
	"io/fs"
	"sync/atomic"
)

// devices are the files of /dev. Writes to them are discarded.
var devices = map[string]info{
	"/dev/null":    charDevice("null"),
	"/dev/urandom": charDevice("urandom"),
	"/dev/zero":    charDevice("zero"),
}

func charDevice(name string) info {
	return info{name: name, mode: fs.ModeDevice | fs.ModeCharDevice | 0o666}
}

// endless is a file without an end. Its random bytes depend on the seed.
type endless struct {
	stream uint64
	random bool
	index  atomic.Uint64
}

// endless opens an endless file.
func (p *Phone) endless(name string) (*endless, bool) {
	switch name {
	case "/dev/zero":
		return &endless{}, true
	case "/dev/urandom":
		return &endless{stream: mix(p.opt.Seed, p.opened.Add(1)), random: true}, true
	}
	return nil, false
}

func (e *endless) Read(b []byte) (int, error) {
	if !e.random {
		clear(b)
		return len(b), nil
	}
	var word [8]byte
	for n := 0; n < len(b); n += copy(b[n:], word[:]) {
		binary.LittleEndian.PutUint64(word[:], mix(e.stream, e.index.Add(1)))
	}
	return len(b), nil
}

// Close implements io.Closer for Phone.Open.
func (e *endless) Close() error { return nil }
