package spool

import (
	"math"
	"syscall"
	"unsafe"
)

// FreeBytes returns the number of bytes that this user may still write to the
// file system of a directory (GetDiskFreeSpaceExW). It returns false if that
// number is unknown.
func FreeBytes(dir string) (int64, bool) {
	path, err := syscall.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	call := syscall.NewLazyDLL("kernel32.dll").NewProc("GetDiskFreeSpaceExW")
	if call.Find() != nil {
		return 0, false
	}
	var free uint64
	ok, _, _ := call.Call(uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&free)), 0, 0)
	return int64(min(free, math.MaxInt64)), ok != 0
}
