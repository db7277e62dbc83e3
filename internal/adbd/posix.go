package adbd

import (
	"errors"
	"io/fs"
	"syscall"
)

// errno is an error as the phone reports it: the Linux error number, even if
// the host does not run Linux, and the message of bionic's strerror.
type errno struct {
	number uint32
	text   string
}

// errnos maps Go errors to a phone's errors. The order matters: a syscall.Errno
// also matches the more general errors of io/fs.
var errnos = []struct {
	err error
	errno
}{
	{syscall.EPERM, errno{1, "Operation not permitted"}},
	{syscall.EISDIR, errno{21, "Is a directory"}},
	{syscall.ENOTDIR, errno{20, "Not a directory"}},
	{syscall.ENOSPC, errno{28, "No space left on device"}},
	{syscall.EROFS, errno{30, "Read-only file system"}},
	{syscall.ENAMETOOLONG, errno{36, "File name too long"}},
	{syscall.ELOOP, errno{40, "Too many symbolic links encountered"}},
	{syscall.EINVAL, errno{22, "Invalid argument"}},
	{fs.ErrNotExist, errno{2, "No such file or directory"}},
	{fs.ErrPermission, errno{13, "Permission denied"}},
	{fs.ErrExist, errno{17, "File exists"}},
	{fs.ErrInvalid, errno{22, "Invalid argument"}},
}

func errnoOf(err error) errno {
	for _, e := range errnos {
		if errors.Is(err, e.err) {
			return e.errno
		}
	}
	return errno{5, "I/O error"}
}

// The file types and bits of st_mode (Linux; the same on every phone).
const (
	modeType    = 0o170000
	modeSocket  = 0o140000
	modeLink    = 0o120000
	modeRegular = 0o100000
	modeBlock   = 0o060000
	modeDir     = 0o040000
	modeChar    = 0o020000
	modeFIFO    = 0o010000
	modeSetuid  = 0o4000
	modeSetgid  = 0o2000
	modeSticky  = 0o1000
)

// unixMode converts a Go file mode to st_mode.
func unixMode(m fs.FileMode) uint32 {
	mode := uint32(m.Perm())
	switch {
	case m&fs.ModeDir != 0:
		mode |= modeDir
	case m&fs.ModeSymlink != 0:
		mode |= modeLink
	case m&fs.ModeNamedPipe != 0:
		mode |= modeFIFO
	case m&fs.ModeSocket != 0:
		mode |= modeSocket
	case m&fs.ModeCharDevice != 0:
		mode |= modeChar
	case m&fs.ModeDevice != 0:
		mode |= modeBlock
	default:
		mode |= modeRegular
	}
	for bit, flag := range map[uint32]fs.FileMode{
		modeSetuid: fs.ModeSetuid, modeSetgid: fs.ModeSetgid, modeSticky: fs.ModeSticky,
	} {
		if m&flag != 0 {
			mode |= bit
		}
	}
	return mode
}
