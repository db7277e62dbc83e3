package adb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"
)

func u32(n uint32) string { return string(binary.LittleEndian.AppendUint32(nil, n)) }
func u64(n uint64) string { return string(binary.LittleEndian.AppendUint64(nil, n)) }

func data(text string) string { return "DATA" + u32(uint32(len(text))) + text }
func syncFail(text string) string {
	return "FAIL" + u32(uint32(len(text))) + text
}

const doneRecv = "DONE\x00\x00\x00\x00"

// sta2 and stat1 return the responses of the two versions of stat.
func sta2(errno, mode uint32, size uint64, mtime uint64) string {
	return "STA2" + u32(errno) + u64(1) + u64(2) + u32(mode) + u32(1) + u32(0) + u32(0) + u64(size) + u64(7) +
		u64(mtime) + u64(9)
}

func stat1(mode, size, mtime uint32) string { return "STAT" + u32(mode) + u32(size) + u32(mtime) }

// file returns a client whose server serves one sync connection: it responds
// first to stat, then to one RECV.
func file(t *testing.T, stat, recv string) *Client {
	return scripted(t, func(p *peer) { serveFile(p, stat, recv) })
}

func serveFile(p *peer, stat, recv string) {
	for range 2 {
		p.request()
		if !p.send("OKAY") {
			return
		}
	}
	for {
		var head [syncHead]byte
		if _, err := io.ReadFull(p, head[:]); err != nil {
			return
		}
		path := make([]byte, binary.LittleEndian.Uint32(head[4:]))
		if _, err := io.ReadFull(p, path); err != nil {
			return
		}
		switch string(head[:4]) {
		case "STAT", "STA2":
			if !p.send(stat) {
				return
			}
		case "RECV":
			if !p.send(recv) {
				return
			}
		}
	}
}

const regular = 0o100644

func TestPull(t *testing.T) {
	big := strings.Repeat("z", syncData)
	tests := map[string]struct {
		stat, recv string
		most       int64
		want       string
		err        string
		is         error
	}{
		"whole":          {stat: sta2(0, regular, 5, 0), recv: data("he") + data("llo") + doneRecv, want: "hello"},
		"old":            {stat: stat1(regular, 5, 1), recv: data("hello") + doneRecv, want: "hello"},
		"proc":           {stat: sta2(0, regular, 0, 0), recv: data("hello") + doneRecv, want: "hello"},
		"empty":          {stat: sta2(0, regular, 0, 0), recv: doneRecv},
		"empty chunk":    {stat: sta2(0, regular, 0, 0), recv: data("") + data("x") + doneRecv, want: "x"},
		"largest chunk":  {stat: sta2(0, regular, 65536, 0), recv: data(big) + doneRecv, want: big},
		"grown":          {stat: sta2(0, regular, 3, 0), recv: data("hello") + doneRecv, want: "hello"},
		"over 4 GiB, v1": {stat: stat1(regular, 1, 1), recv: data("hello") + doneRecv, want: "hello"},
		"short": {
			stat: sta2(0, regular, 6, 0), recv: data("hello") + doneRecv, want: "hello", err: "sent 5 of 6 bytes",
		},
		"short, v1": {
			stat: stat1(regular, 6, 1), recv: data("hello") + doneRecv, want: "hello", err: "sent 5 of 6 bytes",
		},
		"over 4 GiB": {
			stat: sta2(0, regular, 1<<32+5, 0), recv: data("hello") + doneRecv, want: "hello",
			err: "sent 5 of 4294967301 bytes",
		},
		"link":          {stat: stat1(0o120777, 99, 1), recv: data("hello") + doneRecv, want: "hello"},
		"directory":     {stat: sta2(0, 0o040755, 4096, 0), err: "it is a directory"},
		"missing":       {stat: sta2(2, 0, 0, 0), err: "not exist", is: fs.ErrNotExist},
		"missing, v1":   {stat: stat1(0, 0, 0), err: "not exist", is: fs.ErrNotExist},
		"denied":        {stat: sta2(13, 0, 0, 0), err: "permission denied", is: fs.ErrPermission},
		"errno":         {stat: sta2(40, 0, 0, 0), err: "errno 40"},
		"stat fails":    {stat: syncFail("gone"), err: `refused "/data/x": "gone"`},
		"negative size": {stat: sta2(0, regular, 1<<63, 0), err: "a file size", is: ErrProtocol},
		"stat garbage":  {stat: "GARBAGE" + big, err: `"GARB"`, is: ErrProtocol},
		"open fails": {
			stat: sta2(0, regular, 5, 0), recv: syncFail("open failed: Permission denied"), err: "Permission denied",
			is: fs.ErrPermission,
		},
		"missing at open": {
			stat: sta2(0, regular, 5, 0), recv: syncFail("No such file or directory"), err: "No such file",
			is: fs.ErrNotExist,
		},
		"read fails": {
			stat: sta2(0, regular, 5, 0), recv: data("he") + syncFail("read failed: I/O error"), want: "he",
			err: "I/O error",
		},
		"hostile reason": {
			stat: sta2(0, regular, 5, 0), recv: "FAIL\xff\xff\xff\xff" + strings.Repeat("\x1b", 1<<16), err: `\x1b\x1b`,
		},
		"oversize": {
			stat: sta2(0, regular, 0, 0), recv: "DATA\x01\x00\x01\x00" + big, err: "DATA, DONE or FAIL",
			is: ErrProtocol,
		},
		"4 GiB packet": {
			stat: sta2(0, regular, 0, 0), recv: "DATA\xff\xff\xff\xff", err: "DATA, DONE or FAIL", is: ErrProtocol,
		},
		"garbage": {stat: sta2(0, regular, 0, 0), recv: "GARBAGE!", err: "GARBAGE!", is: ErrProtocol},
		"endless": {
			stat: sta2(0, regular, 0, 0), recv: strings.Repeat(data(big), 100), most: 3 << 16, want: big + big + big,
			err: "more than 196608 bytes", is: ErrTooMuch,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := file(t, tt.stat, tt.recv)
			if tt.most > 0 {
				c.opt.MaxFile = tt.most
			}
			var features []string
			if !strings.HasPrefix(tt.stat, "STAT") {
				features = []string{"stat_v2"}
			}
			var got strings.Builder
			n, err := phone(c, features...).Pull(soon(t), "/data/x", &got)
			if got.String() != tt.want || n != int64(len(tt.want)) {
				t.Errorf("%d bytes: %.40q, want %.40q", n, got.String(), tt.want)
			}
			if tt.err == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.err) || tt.is != nil && !errors.Is(err, tt.is) ||
				len(err.Error()) > 999 {
				t.Errorf("error %v, want %q, %v", err, tt.err, tt.is)
			}
			if err != nil && !strings.HasPrefix(err.Error(), `pull "/data/x" of device "X": `) {
				t.Errorf("error %q does not contain the operation", err)
			}
		})
	}
	own := errors.New("disk full")
	if _, err := phone(file(t, sta2(0, regular, 5, 0), data("hello")+doneRecv), "stat_v2").
		Pull(soon(t), "/x", failingWriter{own}); !errors.Is(err, own) {
		t.Errorf("the error does not wrap the writer's error: %v", err)
	}
	for _, path := range []string{"", "a\x00b", strings.Repeat("x", 1025)} {
		if _, err := phone(file(t, "", "")).Pull(soon(t), path, io.Discard); err == nil ||
			!strings.Contains(err.Error(), "invalid device path") {
			t.Errorf("path %.20q: %v", path, err)
		}
	}
}

// TestTruncatedPull truncates a valid pull at every byte.
func TestTruncatedPull(t *testing.T) {
	stat, recv := sta2(0, regular, 5, 0), data("he")+data("llo")+doneRecv
	var sent atomic.Int64
	c := scripted(t, func(p *peer) {
		n := int(sent.Load())
		p.budget = &n
		serveFile(p, stat, recv)
	})
	whole := len("OKAYOKAY" + stat + recv)
	for n := range whole {
		sent.Store(int64(n))
		var got strings.Builder
		size, err := phone(c, "stat_v2").Pull(soon(t), "/data/x", &got)
		if !errors.Is(err, truncatedKind(n)) || errors.Is(err, io.EOF) || !strings.HasPrefix("hello", got.String()) ||
			int(size) != got.Len() {
			t.Fatalf("%d of %d bytes: %q, %v", n, whole, got.String(), err)
		}
	}
	sent.Store(int64(whole))
	if n, err := phone(c, "stat_v2").Pull(soon(t), "/data/x", io.Discard); n != 5 || err != nil {
		t.Errorf("complete response: %d, %v", n, err)
	}
}

func TestStat(t *testing.T) {
	at := time.Unix(1700000000, 0)
	tests := []struct {
		answer string
		want   fileInfo
	}{
		{sta2(0, 0o100640, 5<<32, 1700000000), fileInfo{Mode: 0o640, Size: 5 << 32, ModTime: at}},
		{stat1(0o100640, 7, 1700000000), fileInfo{Mode: 0o640, Size: 7, Wraps: true, ModTime: at}},
		{sta2(0, 0o041777, 1, 1700000000), fileInfo{Mode: fs.ModeDir | fs.ModeSticky | 0o777, Size: 1, ModTime: at}},
		{stat1(0o120777, 1, 1700000000), fileInfo{Mode: fs.ModeSymlink | 0o777, Size: 1, Wraps: true, ModTime: at}},
		{sta2(0, 0o020666, 0, 1700000000), fileInfo{Mode: fs.ModeDevice | fs.ModeCharDevice | 0o666, ModTime: at}},
		{sta2(0, 0o060600, 0, 1700000000), fileInfo{Mode: fs.ModeDevice | 0o600, ModTime: at}},
		{sta2(0, 0o010600, 0, 1700000000), fileInfo{Mode: fs.ModeNamedPipe | 0o600, ModTime: at}},
		{sta2(0, 0o140600, 0, 1700000000), fileInfo{Mode: fs.ModeSocket | 0o600, ModTime: at}},
		{sta2(0, 0o106755, 3, 1700000000), fileInfo{Mode: fs.ModeSetuid | fs.ModeSetgid | 0o755, Size: 3, ModTime: at}},
	}
	for _, tt := range tests {
		var features []string
		if !tt.want.Wraps {
			features = []string{"stat_v2"}
		}
		if got, err := phone(file(t, tt.answer, ""), features...).Stat(soon(t), "/x"); got != tt.want || err != nil {
			t.Errorf("%v, %v; want %v", got, err, tt.want)
		}
	}
	_, err := phone(file(t, sta2(2, 0, 0, 0), ""), "stat_v2").Stat(soon(t), "/x")
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), `stat "/x" of device "X"`) {
		t.Errorf("missing: %v", err)
	}
}

// taker returns a client whose server accepts one SEND: it sends answer after
// DONE or, if early is set, before any file data.
func taker(t *testing.T, answer string, early bool, got chan<- string) *Client {
	return scripted(t, func(p *peer) {
		for range 2 {
			p.request()
			p.send("OKAY")
		}
		var all strings.Builder
		for {
			var head [syncHead]byte
			if _, err := io.ReadFull(p, head[:]); err != nil {
				break
			}
			id, size := string(head[:4]), int64(binary.LittleEndian.Uint32(head[4:]))
			if id == "DONE" || id == "QUIT" {
				size = 0
			}
			text, err := io.ReadAll(io.LimitReader(p, size))
			if err != nil || int64(len(text)) < size {
				break
			}
			all.WriteString(id + ":" + string(text) + ";")
			if id == "DONE" && !early || id == "SEND" && early {
				p.send(answer)
			}
			if size > syncData {
				t.Errorf("a packet of %d bytes is too large", size)
			}
		}
		got <- all.String()
	})
}

func TestPush(t *testing.T) {
	big := strings.Repeat("abc", 50_000)
	got := make(chan string, 1)
	for name, text := range map[string]string{"small": "hello", "empty": "", "big": big} {
		c := taker(t, "OKAY\x00\x00\x00\x00", false, got)
		if err := phone(c).Push(soon(t), iotest.HalfReader(strings.NewReader(text)), "/data/local/tmp/a,b",
			0o750); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want := "SEND:/data/local/tmp/a,b,33256;"
		for p := text; len(p) > 0; p = p[min(len(p), syncData):] {
			want += "DATA:" + p[:min(len(p), syncData)] + ";"
		}
		if g := <-got; g != want+"DONE:;QUIT:;" {
			t.Errorf("%s: the device received %.80q", name, g)
		}
	}
	endless := io.MultiReader(strings.NewReader(big), zeros{})
	for name, tt := range map[string]struct {
		answer string
		early  bool
		r      io.Reader
		err    string
		is     error
	}{
		"full at the end": {
			syncFail("write failed: No space left on device"), false, strings.NewReader("x"), "No space left", nil,
		},
		"full at creation": {syncFail("couldn't create file: Read-only file system"), true, endless, "Read-only", nil},
		"denied": {
			syncFail("couldn't create file: Permission denied"), true, endless, "Permission denied", fs.ErrPermission,
		},
		"premature OKAY": {"OKAY\x00\x00\x00\x00", true, endless, "nothing yet", ErrProtocol},
		"garbage":        {"WHATEVER", false, strings.NewReader("x"), "OKAY or FAIL", ErrProtocol},
		"reader fails":   {"", false, iotest.ErrReader(fs.ErrClosed), "read the file to push", fs.ErrClosed},
		"reader fails late": {
			"", false, io.MultiReader(strings.NewReader(big), iotest.ErrReader(fs.ErrClosed)), "read the file to push",
			fs.ErrClosed,
		},
	} {
		c := taker(t, tt.answer, tt.early, got)
		err := phone(c).Push(soon(t), tt.r, "/x", 0o644)
		if err == nil || !strings.Contains(err.Error(), tt.err) || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: %v, want %q", name, err, tt.err)
		}
		if g := <-got; strings.HasSuffix(name, "reader") && strings.Contains(g, "DONE") {
			t.Errorf("%s: the device received DONE for an incomplete file", name)
		}
	}
	if err := phone(taker(t, "", false, got)).
		Push(soon(t), strings.NewReader(""), strings.Repeat("x", 1020), 0); err == nil ||
		!strings.Contains(err.Error(), "adbd allows 1024") {
		t.Errorf("a path that leaves no room for the mode: %v", err)
	}
	<-got
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestTruncatedPush truncates the device's side of a valid push at every byte.
func TestTruncatedPush(t *testing.T) {
	var sent atomic.Int64
	c := scripted(t, func(p *peer) {
		n := int(sent.Load())
		p.budget = &n
		for range 2 {
			p.request()
			if !p.send("OKAY") {
				return
			}
		}
		buf, part := []byte{}, make([]byte, 512)
		for !bytes.Contains(buf, []byte("DONE")) {
			n, err := p.Read(part)
			if err != nil {
				return
			}
			buf = append(buf, part[:n]...)
		}
		if p.send("OKAY\x00\x00\x00\x00") {
			_, _ = io.Copy(io.Discard, p)
		}
	})
	whole := len("OKAYOKAYOKAY") + 4
	for n := range whole {
		sent.Store(int64(n))
		if err := phone(c).Push(soon(t), strings.NewReader("hello"), "/x", 0o644); !errors.Is(err, truncatedKind(n)) {
			t.Fatalf("%d of %d bytes: %v", n, whole, err)
		}
	}
	sent.Store(int64(whole))
	if err := phone(c).Push(soon(t), strings.NewReader("hello"), "/x", 0o644); err != nil {
		t.Error(err)
	}
}

// FuzzPull sends hostile responses to stat and RECV: the result is either an
// error or exactly the bytes that a straightforward implementation of the
// protocol finds.
func FuzzPull(f *testing.F) {
	f.Add([]byte(sta2(0, regular, 5, 0)+data("he")+data("llo")+doneRecv), true)
	f.Add([]byte(stat1(regular, 5, 0)+data("hello")+syncFail("x")), false)
	f.Add([]byte(syncFail("nope")), true)
	f.Fuzz(func(t *testing.T, answer []byte, v2 bool) {
		s := memorySync(t, answer)
		var got bytes.Buffer
		n, err := s.pull(v2, &got, 1<<20)
		s.close()
		if int64(got.Len()) != n {
			t.Fatalf("returned %d bytes, wrote %d", n, got.Len())
		}
		want, wantOK := plainPull(answer, v2)
		if (err == nil) != wantOK || err == nil && !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("%q: %q, %v; want %q, %v", answer, got.Bytes(), err, want, wantOK)
		}
	})
}

// plainPull is the oracle: it parses the whole response in one slice.
func plainPull(p []byte, v2 bool) (out []byte, ok bool) {
	var mode uint32
	var size uint64
	le := binary.LittleEndian
	switch {
	case v2 && len(p) >= 72 && string(p[:4]) == "STA2" && le.Uint32(p[4:]) == 0:
		mode, size, p = le.Uint32(p[24:]), le.Uint64(p[40:]), p[72:]
	case !v2 && len(p) >= 16 && string(p[:4]) == "STAT" && le.Uint32(p[4:]) != 0:
		mode, size, p = le.Uint32(p[4:]), uint64(le.Uint32(p[8:])), p[16:]
	default:
		return nil, false
	}
	if size >= 1<<63 || mode&0o170000 == 0o040000 {
		return nil, false
	}
	for len(p) >= 8 {
		id, n := string(p[:4]), int(le.Uint32(p[4:]))
		if id == "DONE" {
			known := map[uint32]bool{0o120000: true, 0o010000: true, 0o140000: true, 0o020000: true, 0o060000: true}
			return out, known[mode&0o170000] || uint64(len(out)) >= size
		}
		if id != "DATA" || n > 65536 || len(p) < 8+n {
			return nil, false
		}
		out, p = append(out, p[8:8+n]...), p[8+n:]
	}
	return nil, false
}

// memorySync returns a sync connection that already contains the whole response
// and drops all writes.
func memorySync(t *testing.T, answer []byte) *syncConn {
	k := newConn(t.Context(), &memoryConn{r: bytes.NewReader(answer)}, time.Second, phase{serial: "X", bound: true})
	return &syncConn{conn: k, path: "/x"}
}

type memoryConn struct {
	net.Conn
	r io.Reader
}

func (m *memoryConn) Read(p []byte) (int, error)       { return m.r.Read(p) }
func (m *memoryConn) Write(p []byte) (int, error)      { return len(p), nil }
func (m *memoryConn) Close() error                     { return nil }
func (m *memoryConn) SetDeadline(time.Time) error      { return nil }
func (m *memoryConn) SetWriteDeadline(time.Time) error { return nil }
