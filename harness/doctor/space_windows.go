package doctor

import (
	"math"
	"syscall"
	"unsafe"
)

// freeBytes is what this user may still write to the file system of a directory
// (GetDiskFreeSpaceExW).
func freeBytes(dir string) (int64, bool) {
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

// mayWrite cannot be told on Windows without making a file: the lists of rights
// are read by the system alone.
func mayWrite(string) (writable, known bool) { return false, false }
