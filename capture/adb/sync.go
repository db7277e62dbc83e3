package adb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
)

// The sync service (AOSP adb/SYNC.TXT, adb/file_sync_protocol.h). A request
// consists of a four-letter id, a length and a path; sizes and numbers are
// little-endian.
const (
	syncPath  = 1024     // longest path that adbd accepts, in bytes
	syncData  = 64 << 10 // longest DATA packet
	syncHead  = 8
	statV1    = 12 // bytes of STAT after its id
	statV2    = 68 // bytes of STA2 after its id
	maxReason = 4 << 10

	// refusalTimeout is how long a failed upload waits for the device to send
	// the reason.
	refusalTimeout = 100 * time.Millisecond

	errnoENOENT = 2
	errnoEACCES = 13
)

// fileInfo holds what a device reports about a file.
type fileInfo struct {
	Mode fs.FileMode
	// Size is in bytes. If Wraps is set, the size is known only modulo 4 GiB,
	// because the device's adbd does not have the stat_v2 feature.
	Size    int64
	Wraps   bool
	ModTime time.Time
}

// syncConn is one connection to the sync service.
type syncConn struct {
	*conn
	path string
}

func (d *Device) openSync(ctx context.Context, path string) (*syncConn, error) {
	if path == "" || len(path) > syncPath || strings.IndexByte(path, 0) >= 0 {
		return nil, fmt.Errorf("invalid device path %s: want 1 to %d bytes without NUL", quoted(path), syncPath)
	}
	k, err := d.transport(ctx)
	if err != nil {
		return nil, err
	}
	if err := k.request("sync:"); err != nil {
		k.close()
		return nil, err
	}
	return &syncConn{conn: k, path: path}, nil
}

// send writes a request: an id followed by a string, which may be empty.
func (s *syncConn) send(id, text string) error {
	if err := s.expect(s.wait); err != nil {
		return err
	}
	packet := append(binary.LittleEndian.AppendUint32([]byte(id), uint32(len(text))), text...)
	if _, err := s.net.Write(packet); err != nil {
		return s.fail(err)
	}
	return nil
}

// quit asks adbd to close the connection. Without this request, adbd closes the
// connection too, but logs an error.
func (s *syncConn) quit() {
	if s.expect(s.wait) == nil {
		_, _ = s.net.Write([]byte("QUIT\x00\x00\x00\x00"))
	}
}

// read fills p with the device's response.
func (s *syncConn) read(p []byte) error {
	if err := s.expect(s.wait); err != nil {
		return err
	}
	if _, err := io.ReadFull(s.r, p); err != nil {
		return s.fail(err)
	}
	return nil
}

// reason reads the message of FAIL, whose length has just been read.
func (s *syncConn) reason(size uint32) error {
	text := make([]byte, min(size, maxReason))
	if err := s.read(text); err != nil {
		return err
	}
	return &syncError{path: s.path, text: string(text)}
}

// syncError is a FAIL response of a device. The message ends with the text from
// strerror. The error unwraps to fs.ErrNotExist or fs.ErrPermission if that is
// the reason.
type syncError struct{ path, text string }

func (e *syncError) Error() string {
	return fmt.Sprintf("the device refused %s: %s", quoted(e.path), quoted(e.text))
}

func (e *syncError) Unwrap() error {
	switch {
	case strings.HasSuffix(e.text, "No such file or directory"):
		return fs.ErrNotExist
	case strings.HasSuffix(e.text, "Permission denied"), strings.HasSuffix(e.text, "Operation not permitted"):
		return fs.ErrPermission
	}
	return nil
}

func (d *Device) during(what, path string, err error) error {
	return fmt.Errorf("%s %s of device %s: %w", what, quoted(path), quoted(d.info.Serial), err)
}

func (s *syncConn) stat(v2 bool) (fileInfo, error) {
	id, size := "STAT", statV1
	if v2 {
		id, size = "STA2", statV2
	}
	if err := s.send(id, s.path); err != nil {
		return fileInfo{}, err
	}
	var packet [4 + statV2]byte
	if err := s.read(packet[:4]); err != nil {
		return fileInfo{}, err
	}
	switch got := string(packet[:4]); got {
	case id:
	case "FAIL":
		if err := s.read(packet[4:8]); err != nil {
			return fileInfo{}, err
		}
		return fileInfo{}, s.reason(binary.LittleEndian.Uint32(packet[4:]))
	default:
		return fileInfo{}, s.malformed(id, packet[:4])
	}
	body := packet[4 : 4+size]
	if err := s.read(body); err != nil {
		return fileInfo{}, err
	}
	if v2 {
		return s.parseStatV2(body)
	}
	return parseStatV1(body)
}

// parseStatV1 parses mode, size and time. If all are 0, lstat has failed.
func parseStatV1(p []byte) (fileInfo, error) {
	u32 := binary.LittleEndian.Uint32
	if u32(p) == 0 {
		return fileInfo{}, fs.ErrNotExist
	}
	return fileInfo{
		Mode: fileMode(u32(p)), Size: int64(u32(p[4:])), Wraps: true, ModTime: time.Unix(int64(u32(p[8:])), 0),
	}, nil
}

// parseStatV2 parses error, dev, ino, mode, nlink, uid, gid, size, atime, mtime
// and ctime (file_sync_protocol.h, sync_stat_v2).
func (s *syncConn) parseStatV2(p []byte) (fileInfo, error) {
	u32, u64 := binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
	switch errno := u32(p); errno {
	case 0:
	case errnoENOENT:
		return fileInfo{}, fs.ErrNotExist
	case errnoEACCES:
		return fileInfo{}, fs.ErrPermission
	default:
		return fileInfo{}, fmt.Errorf("the device reports errno %d", errno)
	}
	size := int64(u64(p[36:]))
	if size < 0 {
		return fileInfo{}, s.malformed("a file size", p[36:44])
	}
	return fileInfo{Mode: fileMode(u32(p[20:])), Size: size, ModTime: time.Unix(int64(u64(p[52:])), 0)}, nil
}

// fileMode converts Linux's st_mode to Go's file mode.
func fileMode(st uint32) fs.FileMode {
	mode := fs.FileMode(st & 0o777)
	switch st & 0o170000 {
	case 0o040000:
		mode |= fs.ModeDir
	case 0o120000:
		mode |= fs.ModeSymlink
	case 0o010000:
		mode |= fs.ModeNamedPipe
	case 0o140000:
		mode |= fs.ModeSocket
	case 0o020000:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	case 0o060000:
		mode |= fs.ModeDevice
	}
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if st&bit != 0 {
			mode |= flag
		}
	}
	return mode
}

// Pull copies a file from the device to w and returns the number of bytes
// written. The error is nil only if the device reported the end of the file and
// sent at least as many bytes as it announced. A file that grows in the
// meantime does not cause an error. Files without a size, such as those of
// /proc, are copied to their end.
func (d *Device) Pull(ctx context.Context, remote string, w io.Writer) (int64, error) {
	v2, err := d.has(ctx, "stat_v2")
	if err != nil {
		return 0, err
	}
	s, err := d.openSync(ctx, remote)
	if err != nil {
		return 0, d.during("pull", remote, err)
	}
	defer s.close()
	n, err := s.pull(v2, w, d.client.opt.MaxFile)
	if err != nil {
		return n, d.during("pull", remote, err)
	}
	s.quit()
	return n, nil
}

func (s *syncConn) pull(v2 bool, w io.Writer, most int64) (int64, error) {
	info, err := s.stat(v2)
	if err != nil {
		return 0, err
	}
	if info.Mode.IsDir() {
		return 0, errors.New("it is a directory")
	}
	if err := s.send("RECV", s.path); err != nil {
		return 0, err
	}
	n, err := s.receive(w, most)
	if err == nil && n < info.Size && info.Mode.IsRegular() {
		err = fmt.Errorf("the device sent %d of %d bytes: the file was truncated while it was read", n, info.Size)
	}
	return n, err
}

// receive reads DATA packets until DONE.
func (s *syncConn) receive(w io.Writer, most int64) (total int64, err error) {
	buf := chunks.Get().(*[bufferSize]byte)
	defer chunks.Put(buf)
	for {
		var head [syncHead]byte
		if err := s.read(head[:]); err != nil {
			return total, err
		}
		size := binary.LittleEndian.Uint32(head[4:])
		switch id := string(head[:4]); {
		case id == "DONE":
			return total, nil
		case id == "FAIL":
			return total, s.reason(size)
		case id != "DATA" || size > syncData:
			return total, s.malformed("DATA, DONE or FAIL", head[:])
		}
		if total+int64(size) > most {
			return total,
				faultf(ErrTooMuch,
					"%s sends more than %d bytes for one file: raise the limit if the file is that large",
					s.phase.name(), most)
		}
		if err := s.read(buf[:size]); err != nil {
			return total, err
		}
		n, err := w.Write(buf[:size])
		total += int64(n)
		if err == nil && n < int(size) {
			err = io.ErrShortWrite
		}
		if err != nil {
			return total, fmt.Errorf("write the file: %w", err)
		}
	}
}

// Push copies r to a file on the device with the permission bits of mode. The
// error is nil only if the device has confirmed the whole file. If reading r
// fails or the call is canceled, adbd deletes the incomplete file.
func (d *Device) Push(ctx context.Context, r io.Reader, remote string, mode fs.FileMode) error {
	s, err := d.openSync(ctx, remote)
	if err != nil {
		return d.during("push", remote, err)
	}
	defer s.close()
	if err := s.push(r, mode); err != nil {
		return d.during("push", remote, err)
	}
	s.quit()
	return nil
}

func (s *syncConn) push(r io.Reader, mode fs.FileMode) error {
	target := fmt.Sprintf("%s,%d", s.path, 0o100000|uint32(mode.Perm()))
	if len(target) > syncPath {
		return fmt.Errorf("the path and its mode take %d bytes, and adbd allows %d", len(target), syncPath)
	}
	if err := s.send("SEND", target); err != nil {
		return err
	}
	// The response is read while the file is being sent: a device without free
	// space responds immediately, and then drops all further data.
	if err := s.expect(0); err != nil {
		return err
	}
	answer := make(chan error, 1)
	go func() { answer <- s.confirmed() }()
	early, err := s.upload(r, answer)
	if early {
		return err
	}
	if err != nil {
		// The refusal may explain why the device accepts no more data.
		_ = s.net.SetDeadline(time.Now().Add(refusalTimeout))
		if refused := <-answer; isRefusal(refused) {
			return refused
		}
		return err
	}
	return <-answer
}

func isRefusal(err error) bool {
	var refused *syncError
	return errors.As(err, &refused)
}

// upload sends r in DATA packets, then DONE. early reports whether the device
// responded before the end; err then contains its response.
func (s *syncConn) upload(r io.Reader, answer <-chan error) (early bool, err error) {
	packet := make([]byte, syncHead+syncData)
	copy(packet, "DATA")
	for {
		n, rerr := io.ReadFull(r, packet[syncHead:])
		if rerr != nil && rerr != io.EOF && rerr != io.ErrUnexpectedEOF {
			return false, fmt.Errorf("read the file to push: %w", rerr)
		}
		select {
		case err := <-answer:
			if err == nil {
				err = s.malformed("nothing yet", []byte("OKAY"))
			}
			return true, err
		default:
		}
		if n > 0 {
			binary.LittleEndian.PutUint32(packet[4:], uint32(n))
			if err := s.upstream(packet[:syncHead+n]); err != nil {
				return false, err
			}
		}
		if rerr != nil {
			// In a DONE packet, the length field contains the modification time
			// of the file.
			done := binary.LittleEndian.AppendUint32([]byte("DONE"), uint32(time.Now().Unix()))
			if err := s.upstream(done); err != nil {
				return false, err
			}
			return false, s.expect(s.wait)
		}
	}
}

// upstream writes with its own deadline: the reader has no deadline until the
// upload ends.
func (s *syncConn) upstream(p []byte) error {
	if err := s.net.SetWriteDeadline(time.Now().Add(s.wait)); err != nil {
		return s.fail(err)
	}
	if s.ctx.Err() != nil {
		return contextError(s.ctx)
	}
	if _, err := s.net.Write(p); err != nil {
		return s.fail(err)
	}
	return nil
}

// confirmed reads the response to a SEND: OKAY or FAIL.
func (s *syncConn) confirmed() error {
	var head [syncHead]byte
	if _, err := io.ReadFull(s.r, head[:]); err != nil {
		return s.fail(err)
	}
	size := binary.LittleEndian.Uint32(head[4:])
	switch string(head[:4]) {
	case "OKAY":
		return nil
	case "FAIL":
		text := make([]byte, min(size, maxReason))
		if _, err := io.ReadFull(s.r, text); err != nil {
			return s.fail(err)
		}
		return &syncError{path: s.path, text: string(text)}
	}
	return s.malformed("OKAY or FAIL", head[:])
}
