package nest

import (
	"runtime"
	"syscall"
	"unsafe"
)

// ifreq is the kernel's struct for interface requests (netdevice(7)).
type ifreq struct {
	name  [syscall.IFNAMSIZ]byte
	flags uint16
	_     [22]byte
}

// raiseLoopback enables the loopback interface of a new network, which exists
// but is down.
func raiseLoopback() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	r := ifreq{flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	copy(r.name[:], "lo")
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS,
		uintptr(unsafe.Pointer(&r))); errno != 0 {
		return errno
	}
	return nil
}

const (
	seccompModeFilter = 2
	seccompAllow      = 0x7fff0000
	seccompErrno      = 0x00050000
	afVsock           = 40
	// Offsets in struct seccomp_data (seccomp(2)). dataArgument is the offset
	// of the low half of the first argument on little-endian machines; all
	// machines that Android supports are little-endian.
	dataNumber   = 0
	dataArgument = 16
)

// forbidVsock prevents this thread and its children from opening sockets to the
// hypervisor and, through it, to other virtual machines. adbd also listens on
// such sockets, and a network namespace does not isolate them.
func forbidVsock() error {
	const load, equal, give = syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS,
		syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, syscall.BPF_RET | syscall.BPF_K
	program := []syscall.SockFilter{
		{Code: load, K: dataNumber},
		{Code: equal, K: syscall.SYS_SOCKET, Jf: 3},
		{Code: load, K: dataArgument},
		{Code: equal, K: afVsock, Jf: 1},
		// adbd stops listening on an address family that does not exist
		// (adb/daemon/transport_local.cpp, server_socket_thread).
		{Code: give, K: seccompErrno | uint32(syscall.EAFNOSUPPORT)},
		{Code: give, K: seccompAllow},
	}
	filter := syscall.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := syscall.Syscall(
		syscall.SYS_PRCTL, syscall.PR_SET_SECCOMP, seccompModeFilter, uintptr(unsafe.Pointer(&filter)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return errno
	}
	return nil
}
