package adbd

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// tape is a stream whose peer has already sent everything.
type tape struct {
	in  io.Reader
	out bytes.Buffer
}

func (s *tape) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s *tape) Write(p []byte) (int, error) { return s.out.Write(p) }
func (s *tape) Close() error                { return nil }

func modernSync() syncService { return syncService{stat64: true, list64: true} }

// playSync runs a session and returns the phone's responses.
func playSync(svc syncService, phone Phone, requests ...string) string {
	s := &tape{in: strings.NewReader(strings.Join(requests, ""))}
	svc.run(context.Background(), phone, s)
	return s.out.String()
}

// u32 and u64 return numbers in little-endian order; ask returns a whole sync
// message.
func u32(n uint32) string { return string(binary.LittleEndian.AppendUint32(nil, n)) }
func u64(n uint64) string { return string(binary.LittleEndian.AppendUint64(nil, n)) }

func ask(id, path string) string { return id + u32(uint32(len(path))) + path }

const fileTime = 1_700_000_000

func TestSyncStat(t *testing.T) {
	phone := newMemoryPhone("s")
	phone.put("/f", 0o640, []byte("12345"))
	phone.put("/dir", fs.ModeDir|fs.ModeSticky|0o777, nil)
	phone.put("/huge", 0o600, nil).size = 5<<32 | 7
	phone.put("/link", fs.ModeSymlink|0o777, nil).target = "/f"
	// The message layouts of file_sync_protocol.h, written by hand.
	v1 := func(mode, size uint32) string { return "STAT" + u32(mode) + u32(size) + u32(fileTime) }
	v2 := func(id string, mode uint32, size uint64) string {
		return id + u32(0) + u64(0) + u64(0) + u32(mode) + u32(1) + u32(0) + u32(0) + u64(size) + u64(fileTime) +
			u64(fileTime) + u64(fileTime)
	}
	missing := func(id string) string { return id + u32(2) + strings.Repeat("\x00", 64) }
	for _, c := range []struct{ id, path, want string }{
		{"STAT", "/f", v1(0o100640, 5)},
		{"STAT", "/dir", v1(0o041777, 0)},
		{"STAT", "/huge", v1(0o100600, 7)},
		{"STAT", "/link", v1(0o120777, 0)},
		{"STAT", "/none", "STAT" + strings.Repeat("\x00", 12)},
		{"STA2", "/f", v2("STA2", 0o100640, 5)},
		{"STA2", "/link", v2("STA2", 0o100640, 5)},
		{"LST2", "/link", v2("LST2", 0o120777, 0)},
		{"LST2", "/huge", v2("LST2", 0o100600, 5<<32|7)},
		{"STA2", "/none", missing("STA2")},
		{"LST2", "/none", missing("LST2")},
	} {
		if got := playSync(modernSync(), phone, ask(c.id, c.path)); got != c.want {
			t.Errorf("%s %s = %q, want %q", c.id, c.path, got, c.want)
		}
	}
	// A phone without Lstat describes the target of the link.
	plain := struct{ Phone }{phone}
	if got := playSync(modernSync(), plain, ask("LST2", "/link")); got != v2("LST2", 0o100640, 5) {
		t.Errorf("LST2 without Lstat = %q", got)
	}
}

func TestSyncList(t *testing.T) {
	phone := newMemoryPhone("s")
	phone.put("/d/a", 0o644, []byte("12345"))
	phone.put("/d/b c", fs.ModeDir|0o700, nil)
	want := "DENT" + u32(0o100644) + u32(5) + u32(fileTime) + u32(1) + "a" +
		"DENT" + u32(0o040700) + u32(0) + u32(fileTime) + u32(3) + "b c" + "DONE" + strings.Repeat("\x00", 16)
	if got := playSync(modernSync(), phone, ask("LIST", "/d")); got != want {
		t.Errorf("LIST = %q, want %q", got, want)
	}
	v2 := func(mode uint32, size uint64, name string) string {
		return "DNT2" + u32(0) + u64(0) + u64(0) + u32(mode) + u32(1) + u32(0) + u32(0) + u64(size) +
			u64(fileTime) + u64(fileTime) + u64(fileTime) + u32(uint32(len(name))) + name
	}
	want = v2(0o100644, 5, "a") + v2(0o040700, 0, "b c") + "DONE" + strings.Repeat("\x00", 72)
	if got := playSync(modernSync(), phone, ask("LIS2", "/d")); got != want {
		t.Errorf("LIS2 = %q, want %q", got, want)
	}
	if got, want := playSync(modernSync(), phone, ask("LIST", "/none")),
		"DONE"+strings.Repeat("\x00", 16); got != want {
		t.Errorf("LIST of a missing directory = %q, want %q", got, want)
	}
}

func TestSyncRecv(t *testing.T) {
	phone := newMemoryPhone("s")
	data := randomText(2*maxSyncData + 3)
	phone.put("/f", 0o644, []byte(data))
	phone.put("/locked", 0, nil)
	phone.put("/empty", 0o600, nil)
	want := ask("DATA", data[:maxSyncData]) + ask("DATA", data[maxSyncData:2*maxSyncData]) +
		ask("DATA", data[2*maxSyncData:]) + "DONE" + u32(0)
	if got := playSync(modernSync(), phone, ask("RECV", "/f")); got != want {
		t.Errorf("RECV returned %d bytes, want %d", len(got), len(want))
	}
	for path, want := range map[string]string{
		"/empty":  "DONE" + u32(0),
		"/none":   ask("FAIL", "open failed: No such file or directory"),
		"/locked": ask("FAIL", "open failed: Permission denied"),
	} {
		if got := playSync(modernSync(), phone, ask("RECV", path), ask("QUIT", "")); got != want {
			t.Errorf("RECV %s = %q, want %q", path, got, want)
		}
	}
	torn := failingPhone{phone}
	if got, want := playSync(modernSync(), torn, ask("RECV", "/f")), ask("DATA", "part")+
		ask("FAIL", "read failed: I/O error"); got != want {
		t.Errorf("RECV of an unreadable file = %q, want %q", got, want)
	}
}

// failingPhone contains files for which a read fails before the end.
type failingPhone struct{ Phone }

func (failingPhone) Open(string) (io.ReadCloser, error) {
	return io.NopCloser(io.MultiReader(strings.NewReader("part"), failingReader{})), nil
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestSyncSend(t *testing.T) {
	okay := "OKAY" + u32(0)
	done := "DONE" + u32(fileTime)
	for _, c := range []struct {
		name, in, want string
		path, data     string
		mode           fs.FileMode
		aborted        bool
	}{
		{
			"two parts", ask("SEND", "/a,33188") + ask("DATA", "one") + ask("DATA", "two") + done, okay, "/a", "onetwo",
			0o644, false,
		},
		{"empty", ask("SEND", "/a,0600") + done, okay, "/a", "", 0o600, false},
		{"comma in name", ask("SEND", "/a,b,0x1a4") + done, okay, "/a,b", "", 0o644, false},
		{
			"followed by another request", ask("SEND", "/a,420") + done + ask("STAT", "/none"),
			okay + "STAT" + strings.Repeat("\x00", 12), "/a", "", 0o644, false,
		},
		{"no mode", ask("SEND", "/a"), ask("FAIL", "missing , in ID_SEND"), "", "", 0, false},
		{"bad mode", ask("SEND", "/a,rw"), ask("FAIL", "bad mode"), "", "", 0, false},
		{
			"symbolic link", ask("SEND", "/a,41471") + ask("DATA", "/b") + done,
			ask("FAIL", "symbolic links cannot be pushed"), "", "", 0, false,
		},
		{
			"refused", ask("SEND", "/system/a,420") + ask("DATA", "x") + done + ask("STAT", "/none"),
			ask("FAIL", "couldn't create file: Permission denied"), "", "", 0, false,
		},
		{
			"oversize", ask("SEND", "/a,420") + "DATA" + u32(maxSyncData+1), ask("FAIL", "oversize data message"), "",
			"", 0, true,
		},
		{"no data", ask("SEND", "/a,420") + "QUIT" + u32(0), ask("FAIL", "invalid data message"), "", "", 0, true},
		{"interrupted inside a part", ask("SEND", "/a,420") + "DATA" + u32(100) + "only this", "", "", "", 0, true},
		{"interrupted between parts", ask("SEND", "/a,420") + ask("DATA", "x"), "", "", "", 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			phone := newMemoryPhone("s")
			if got := playSync(modernSync(), phone, c.in); got != c.want {
				t.Errorf("response %q, want %q", got, c.want)
			}
			if (phone.aborted == 1) != c.aborted || phone.created != phone.closed+phone.aborted {
				t.Errorf("%d drafts created, %d closed, %d aborted", phone.created, phone.closed, phone.aborted)
			}
			f, err := phone.file(c.path)
			if c.path == "" {
				if len(phone.files) != 0 {
					t.Errorf("files were created: %v", phone.files)
				}
				return
			}
			if err != nil || string(f.data) != c.data || f.mode != c.mode {
				t.Errorf("the phone has %+v, %v; want %q with mode %v", f, err, c.data, c.mode)
			}
		})
	}
}

func TestSyncRefuses(t *testing.T) {
	phone := newMemoryPhone("s")
	phone.put("/f", 0o644, nil)
	for _, c := range []struct {
		name, in, want string
		svc            syncService
	}{
		{"unknown", ask("SND2", "/f"), ask("FAIL", "unknown command 32444e53"), modernSync()},
		{"stat64 unsupported", ask("STA2", "/f"), ask("FAIL", "unknown command 32415453"), syncService{}},
		{"lstat64 unsupported", ask("LST2", "/f"), ask("FAIL", "unknown command 3254534c"), syncService{}},
		{"list64 unsupported", ask("LIS2", "/f"), ask("FAIL", "unknown command 3253494c"), syncService{}},
		{"long path", ask("STAT", strings.Repeat("x", maxSyncPath+1)), ask("FAIL", "path too long"), modernSync()},
		{"endless path", "STAT" + u32(0xffffffff), ask("FAIL", "path too long"), modernSync()},
		{"quit", ask("QUIT", "") + ask("STAT", "/f"), "", modernSync()},
		{"half a request", "STA", "", modernSync()},
	} {
		if got := playSync(c.svc, phone, c.in); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestErrno(t *testing.T) {
	for _, c := range []struct {
		err  error
		want uint32
	}{
		{fs.ErrNotExist, 2},
		{fmt.Errorf("open x: %w", &fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}), 2},
		{syscall.EACCES, 13}, {fs.ErrPermission, 13}, {syscall.EPERM, 1},
		{os.ErrExist, 17}, {syscall.EEXIST, 17}, {syscall.EISDIR, 21}, {syscall.ENOTDIR, 20},
		{syscall.ENOSPC, 28}, {syscall.EROFS, 30}, {errors.New("anything"), 5},
	} {
		if got := errnoOf(c.err); got.number != c.want || got.text == "" {
			t.Errorf("errnoOf(%v) = %+v, want %d", c.err, got, c.want)
		}
	}
}

func TestUnixMode(t *testing.T) {
	for mode, want := range map[fs.FileMode]uint32{
		0o644: 0o100644, fs.ModeDir | 0o755: 0o040755, fs.ModeSymlink | 0o777: 0o120777, fs.ModeNamedPipe: 0o010000,
		fs.ModeSocket: 0o140000, fs.ModeDevice: 0o060000, fs.ModeDevice | fs.ModeCharDevice | 0o666: 0o020666,
		fs.ModeSetuid | 0o755: 0o104755, fs.ModeSetgid | 0o755: 0o102755, fs.ModeDir | fs.ModeSticky | 0o777: 0o041777,
	} {
		if got := unixMode(mode); got != want {
			t.Errorf("unixMode(%v) = %o, want %o", mode, got, want)
		}
	}
}

// TestAnnouncedSizes checks that no memory is allocated for an announced length
// before its bytes arrive.
func TestAnnouncedSizes(t *testing.T) {
	phone := newMemoryPhone("s")
	for name, read := range map[string]func(){
		"sync path":  func() { playSync(modernSync(), phone, "STAT"+u32(0xffffffff)) },
		"sync data":  func() { playSync(modernSync(), phone, ask("SEND", "/a,420")+"DATA"+u32(0xffffffff)) },
		"shell":      func() { readShellPackets(strings.NewReader("\x00\xff\xff\xff\xff"), newInlet()) },
		"shell skip": func() { readShellPackets(strings.NewReader("\x05\xff\xff\xff\xff"), newInlet()) },
		"packet": func() {
			b := appendPacket(nil, cmdWrite, 1, 1, nil, 0)
			copy(b[12:16], "\xff\xff\xff\xff")
			readPacket(bytes.NewReader(b))
		},
		"request": func() { readRequest(strings.NewReader("ffff")) },
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		read()
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 512<<10 {
			t.Errorf("%s: allocated %d bytes", name, n)
		}
	}
}

// FuzzSync simulates a hostile client. A second parser of its requests
// determines which responses may arrive, and in which order.
func FuzzSync(f *testing.F) {
	f.Add([]byte(ask("STAT", "/f")+ask("STA2", "/f")+ask("LST2", "/x")+ask("LIST", "/")+ask("LIS2", "/")+
		ask("QUIT", "")), true)
	f.Add([]byte(ask("RECV", "/f")+ask("SEND", "/g,420")+ask("DATA", "x")+"DONE"+u32(1)+ask("RECV", "/g")+
		ask("RECV", "/none")), true)
	f.Add([]byte(ask("SEND", "/system/g,420")+ask("DATA", "x")+"DONE"+u32(1)+ask("STA2", "/f")), false)
	f.Add([]byte("STAT\xff\xff\xff\xff"), true)
	f.Fuzz(func(t *testing.T, in []byte, modern bool) {
		phone := newMemoryPhone("s")
		phone.put("/f", 0o644, []byte("content"))
		svc := syncService{stat64: modern, list64: modern}
		out := playSync(svc, phone, string(in))
		if err := checkAnswers(in, []byte(out), modern); err != nil {
			t.Errorf("response to %q = %q: %v", in, out, err)
		}
		if phone.created != phone.closed+phone.aborted {
			t.Errorf("%d drafts created, %d closed, %d aborted", phone.created, phone.closed, phone.aborted)
		}
	})
}

// checkAnswers compares requests and responses one by one.
func checkAnswers(in, out []byte, modern bool) error {
	for len(out) > 0 {
		id, n, rest, ok := cutMessage(in)
		if !ok {
			return fmt.Errorf("response without a request: %q", out)
		}
		if string(out[:4]) == "FAIL" {
			_, n, text, ok := cutMessage(out)
			if !ok || int(n) != len(text) || n == 0 {
				return fmt.Errorf("response continues after FAIL: %q", out)
			}
			return nil
		}
		if n > maxSyncPath || len(rest) < int(n) {
			return fmt.Errorf("response to the incomplete request %s of %d bytes", id, n)
		}
		in = rest[n:]
		var err error
		if out, err = cutAnswer(id, out, modern); err != nil {
			return err
		}
		if id == "SEND" {
			in = afterDone(in)
		}
	}
	return nil
}

func cutMessage(b []byte) (id string, n uint32, rest []byte, ok bool) {
	if len(b) < 8 {
		return "", 0, nil, false
	}
	return string(b[:4]), binary.LittleEndian.Uint32(b[4:]), b[8:], true
}

// cutAnswer removes the response to one request from the beginning of out.
func cutAnswer(id string, out []byte, modern bool) ([]byte, error) {
	fixed := map[string]int{"STAT": 16, "STA2": 72, "LST2": 72, "SEND": 8}
	if !modern && slices.Contains([]string{"STA2", "LST2", "LIS2"}, id) {
		return nil, fmt.Errorf("an old phone responded to %s", id)
	}
	if size, ok := fixed[id]; ok {
		if len(out) < size || id != "SEND" && string(out[:4]) != id || id == "SEND" &&
			string(out[:8]) != "OKAY\x00\x00\x00\x00" {
			return nil, fmt.Errorf("invalid response to %s", id)
		}
		return out[size:], nil
	}
	parts := map[string]struct {
		id         string
		head, done int
	}{"RECV": {"DATA", 8, 8}, "LIST": {"DENT", 20, 20}, "LIS2": {"DNT2", 76, 76}}
	part, ok := parts[id]
	if !ok {
		return nil, fmt.Errorf("response to unknown request %q", id)
	}
	for len(out) >= part.head && string(out[:4]) == part.id {
		n := int(binary.LittleEndian.Uint32(out[part.head-4:]))
		if n > maxSyncData || len(out) < part.head+n {
			return nil, fmt.Errorf("data part of %d bytes is too large", n)
		}
		out = out[part.head+n:]
	}
	if len(out) < part.done || string(out[:4]) != "DONE" {
		return nil, fmt.Errorf("DONE is missing after %s", id)
	}
	return out[part.done:], nil
}

// afterDone returns the input that follows the DATA and DONE packets of a SEND,
// or nil if there is no DONE.
func afterDone(in []byte) []byte {
	for {
		id, n, rest, ok := cutMessage(in)
		if !ok {
			return nil
		}
		if id == "DONE" {
			return rest
		}
		in = rest[min(int(n), len(rest)):]
	}
}
