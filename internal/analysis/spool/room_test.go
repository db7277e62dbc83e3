package spool

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
)

// disk is a disk to which other processes write, too.
type disk struct {
	free int64
	// others is the number of bytes that other processes write between two
	// calls.
	others int64
	asked  int
}

func (d *disk) left(string) (int64, bool) {
	d.asked++
	free := d.free
	d.free -= d.others
	return free, true
}

// TestRoom checks for every packing format that a tenth of the free space stays
// free.
func TestRoom(t *testing.T) {
	data := dumpLike(20 * pieceSize)
	size := int64(len(data))
	for name, packed := range map[string][]byte{
		"plain": data, "gzip": gzipped(t, data), "zstd": zstded(t, true, data),
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			for _, c := range []struct {
				free int64
				fits bool
			}{{0, false}, {pieceSize, false}, {size, false}, {size*10/9 - 1, false}, {size*10/9 + 10, true}} {
				d := &disk{free: c.free}
				f, err := open(t, packed, Options{Dir: dir, free: d.left})
				if c.fits {
					checkWhole(t, f, err, formatOf(packed), data)
					continue
				}
				if f != nil || !errors.Is(err, ErrDiskFull) || errors.Is(err, ErrCap) ||
					!strings.Contains(err.Error(), "TMPDIR") {
					t.Errorf("%d bytes free: %v, %v", c.free, f, err)
				}
				checkNothingIn(t, dir)
			}
			checkNoGoroutine(t)
		})
	}
}

// Bytes that other processes write in the meantime must count.
func TestRoomOfOthers(t *testing.T) {
	dir, d := folder(t), &disk{free: 100 * pieceSize, others: 10 * pieceSize}
	f, err := open(t, gzipped(t, dumpLike(20*pieceSize)), Options{Dir: dir, free: d.left})
	if f != nil || !errors.Is(err, ErrDiskFull) || d.asked > 12 {
		t.Errorf("%v, %v, after %d checks of the free space", f, err, d.asked)
	}
	checkNothingIn(t, dir)
}

// If the free space is unknown, only the cap must apply.
func TestRoomUnknown(t *testing.T) {
	data := dumpLike(3 * pieceSize)
	f, err := open(t, gzipped(t, data), Options{Dir: folder(t), free: func(string) (int64, bool) { return 0, false }})
	checkWhole(t, f, err, Gzip, data)
}

// A zstd file that declares more bytes than fit on the disk must be refused
// before anything is written.
func TestRoomDeclared(t *testing.T) {
	data := dumpLike(4 * pieceSize)
	packed := zstded(t, false, data)
	if declaredSize(Zstd, packed[:headSize]) == 0 {
		var b bytes.Buffer
		z, err := Pack(&b, int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := z.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		packed = b.Bytes()
	}
	d := &disk{free: int64(len(data))}
	_, err := open(t, packed, Options{Dir: folder(t), free: d.left, create: unused(t)})
	if !errors.Is(err, ErrDiskFull) || !strings.Contains(err.Error(), "bytes unpacked") {
		t.Error(err)
	}
}

// checkNothingIn checks that a folder is empty.
func checkNothingIn(t *testing.T, dir string) {
	t.Helper()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}
