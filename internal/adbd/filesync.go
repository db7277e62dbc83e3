package adbd

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
)

// Requests and responses of the sync protocol (file_sync_protocol.h).
const (
	syncStat  = "STAT"
	syncStat2 = "STA2"
	syncLstat = "LST2"
	syncList  = "LIST"
	syncList2 = "LIS2"
	syncRecv  = "RECV"
	syncSend  = "SEND"
	syncQuit  = "QUIT"
	syncData  = "DATA"
	syncDone  = "DONE"
	syncOkay  = "OKAY"
	syncFail  = "FAIL"
	syncDent  = "DENT"
	syncDent2 = "DNT2"

	// maxSyncPath and maxSyncData are the limits of a real phone, in bytes.
	maxSyncPath = 1024
	maxSyncData = 64 << 10
)

// errSyncEnd ends a session without a response, at the peer's request.
var errSyncEnd = errors.New("end of the sync session")

// syncFailure is an error that is sent to the peer. It ends the session, as on
// a phone.
type syncFailure string

func (f syncFailure) Error() string { return string(f) }

func failSync(doing string, err error) error {
	return syncFailure(doing + ": " + errnoOf(err).text)
}

// syncService transfers files. stat64 and list64 specify whether the phone
// supports the requests with 64-bit sizes.
type syncService struct {
	stat64, list64 bool
}

func (s syncService) run(ctx context.Context, phone Phone, peer stream) {
	defer peer.Close()
	session := &syncSession{
		syncService: s, ctx: ctx, phone: phone, r: peer, w: bufio.NewWriterSize(peer, maxSyncData+8),
	}
	for {
		err := session.serve()
		var failure syncFailure
		if errors.As(err, &failure) {
			session.number(syncFail, uint32(len(failure)))
			session.w.WriteString(string(failure))
		}
		if session.w.Flush() != nil || err != nil {
			return
		}
	}
}

type syncSession struct {
	syncService
	ctx   context.Context
	phone Phone
	r     io.Reader
	w     *bufio.Writer
	chunk []byte
}

// serve answers one request. A nil error means that the session continues.
func (s *syncSession) serve() error {
	id, path, err := readSyncRequest(s.r)
	if err != nil {
		return err
	}
	switch {
	case id == syncStat:
		s.statV1(path)
	case id == syncStat2 && s.stat64:
		info, err := s.phone.Stat(path)
		s.statV2(syncStat2, info, err)
	case id == syncLstat && s.stat64:
		info, err := s.lstat(path)
		s.statV2(syncLstat, info, err)
	case id == syncList:
		s.list(path, syncDent)
	case id == syncList2 && s.list64:
		s.list(path, syncDent2)
	case id == syncRecv:
		return s.receive(path)
	case id == syncSend:
		return s.send(path)
	case id == syncQuit:
		return errSyncEnd
	default:
		return syncFailure(fmt.Sprintf("unknown command %08x", binary.LittleEndian.Uint32([]byte(id))))
	}
	return s.ctx.Err()
}

// readSyncRequest reads an id and the path that follows it.
func readSyncRequest(r io.Reader) (id, path string, err error) {
	id, n, err := readSyncNumber(r)
	if err != nil {
		return "", "", err
	}
	if n > maxSyncPath {
		return "", "", syncFailure("path too long")
	}
	buf := make([]byte, n)
	if _, err := io.ReadFull(r, buf); err != nil {
		return "", "", fmt.Errorf("read the path of %s: %w", id, err)
	}
	return id, string(buf), nil
}

// readSyncNumber reads an id and its 32-bit argument.
func readSyncNumber(r io.Reader) (id string, n uint32, err error) {
	var buf [8]byte
	if _, err := io.ReadFull(r, buf[:]); err != nil {
		return "", 0, fmt.Errorf("read a sync request: %w", err)
	}
	return string(buf[:4]), binary.LittleEndian.Uint32(buf[4:]), nil
}

func (s *syncSession) number(id string, n uint32) {
	s.w.WriteString(id)
	s.w.Write(binary.LittleEndian.AppendUint32(nil, n))
}

func (s *syncSession) lstat(path string) (fs.FileInfo, error) {
	if phone, ok := s.phone.(LinkStater); ok {
		return phone.Lstat(path)
	}
	return s.phone.Stat(path)
}

// statV1 sends mode, size and time in 32 bits each; all are 0 for a missing
// file. A size above 4 GiB wraps around, which is why version 2 exists.
func (s *syncSession) statV1(path string) {
	var mode, size, mtime uint32
	if info, err := s.lstat(path); err == nil {
		mode, size, mtime = unixMode(info.Mode()), uint32(info.Size()), uint32(info.ModTime().Unix())
	}
	s.number(syncStat, mode)
	s.w.Write(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, size), mtime))
}

func (s *syncSession) statV2(id string, info fs.FileInfo, err error) {
	s.w.WriteString(id)
	s.w.Write(appendStatV2(nil, info, err))
}

// appendStatV2 appends struct stat_v2 without its id: error, dev, ino, mode,
// nlink, uid, gid, size, atime, mtime, ctime. A FileInfo does not contain a
// device, inode or owner, so they are 0.
func appendStatV2(b []byte, info fs.FileInfo, err error) []byte {
	le := binary.LittleEndian
	if err != nil {
		b = le.AppendUint32(b, errnoOf(err).number)
		return append(b, make([]byte, 64)...)
	}
	mtime := uint64(info.ModTime().Unix())
	b = le.AppendUint32(b, 0)
	b = append(b, make([]byte, 16)...)
	b = le.AppendUint32(b, unixMode(info.Mode()))
	b = le.AppendUint32(b, 1)
	b = append(b, make([]byte, 8)...)
	b = le.AppendUint64(b, uint64(info.Size()))
	for range 3 {
		b = le.AppendUint64(b, mtime)
	}
	return b
}

// list sends one entry per file, then DONE. An unreadable directory is sent as
// an empty one, because the protocol has no error for this request.
func (s *syncSession) list(path, entry string) {
	infos, _ := s.phone.ReadDir(path)
	var head []byte
	for _, info := range infos {
		head = appendEntry(append(head[:0], entry...), entry, info)
		s.w.Write(binary.LittleEndian.AppendUint32(head, uint32(len(info.Name()))))
		s.w.WriteString(info.Name())
	}
	s.w.WriteString(syncDone)
	rest := 16
	if entry == syncDent2 {
		rest = 72
	}
	s.w.Write(make([]byte, rest))
}

func appendEntry(b []byte, entry string, info fs.FileInfo) []byte {
	if entry == syncDent2 {
		return appendStatV2(b, info, nil)
	}
	le := binary.LittleEndian
	b = le.AppendUint32(b, unixMode(info.Mode()))
	b = le.AppendUint32(b, uint32(info.Size()))
	return le.AppendUint32(b, uint32(info.ModTime().Unix()))
}

// receive sends a file from the phone.
func (s *syncSession) receive(path string) error {
	file, err := s.phone.Open(path)
	if err != nil {
		return failSync("open failed", err)
	}
	defer file.Close()
	chunk := s.buffer()
	for s.ctx.Err() == nil {
		n, err := io.ReadFull(file, chunk)
		if n > 0 {
			s.number(syncData, uint32(n))
			if _, err := s.w.Write(chunk[:n]); err != nil {
				return fmt.Errorf("send a file: %w", err)
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			s.number(syncDone, 0)
			return nil
		}
		if err != nil {
			return failSync("read failed", err)
		}
	}
	return s.ctx.Err()
}

func (s *syncSession) buffer() []byte {
	if s.chunk == nil {
		s.chunk = make([]byte, maxSyncData)
	}
	return s.chunk
}

// send creates a file on the phone; spec is "PATH,MODE". The time that DONE
// contains is ignored.
func (s *syncSession) send(spec string) error {
	comma := strings.LastIndexByte(spec, ',')
	if comma < 0 {
		return syncFailure("missing , in ID_SEND")
	}
	mode, err := strconv.ParseUint(spec[comma+1:], 0, 32)
	if err != nil {
		return syncFailure("bad mode")
	}
	if mode&modeType == modeLink {
		return s.refuse(syncFailure("symbolic links cannot be pushed"))
	}
	file, err := s.phone.Create(spec[:comma], fs.FileMode(mode)&fs.ModePerm)
	if err != nil {
		return s.refuse(failSync("couldn't create file", err))
	}
	if err := s.fill(file); err != nil {
		abort(file)
		return err
	}
	if err := file.Close(); err != nil {
		return failSync("close failed", err)
	}
	s.number(syncOkay, 0)
	return nil
}

func abort(file io.WriteCloser) {
	if a, ok := file.(Aborter); ok {
		a.Abort()
		return
	}
	file.Close()
}

// fill copies DATA packets to w until it reads DONE.
func (s *syncSession) fill(w io.Writer) error {
	chunk := s.buffer()
	for {
		n, done, err := s.data(chunk)
		if done || err != nil {
			return err
		}
		if _, err := w.Write(chunk[:n]); err != nil {
			return s.refuse(failSync("write failed", err))
		}
	}
}

// data reads one DATA packet, or DONE.
func (s *syncSession) data(chunk []byte) (n int, done bool, err error) {
	id, size, err := readSyncNumber(s.r)
	switch {
	case err != nil:
		return 0, false, err
	case id == syncDone:
		return 0, true, nil
	case id != syncData:
		return 0, false, syncFailure("invalid data message")
	case size > maxSyncData:
		return 0, false, syncFailure("oversize data message")
	}
	if _, err := io.ReadFull(s.r, chunk[:size]); err != nil {
		return 0, false, fmt.Errorf("read file data: %w", err)
	}
	return int(size), false, nil
}

// refuse sends the error immediately, then continues to read until the peer has
// noticed it: a peer that only writes would lose the message when the stream is
// closed.
func (s *syncSession) refuse(failure error) error {
	var text syncFailure
	if !errors.As(failure, &text) {
		return failure
	}
	s.number(syncFail, uint32(len(text)))
	s.w.WriteString(string(text))
	if err := s.w.Flush(); err != nil {
		return err
	}
	for chunk := s.buffer(); ; {
		if _, done, err := s.data(chunk); done || err != nil {
			return errSyncEnd
		}
	}
}
