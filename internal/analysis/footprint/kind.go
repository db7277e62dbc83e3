package footprint

import "bytes"

// Kind classifies memory by its use.
type Kind string

// The kinds of memory.
const (
	// Heap is the memory that malloc manages.
	Heap Kind = "heap"
	// Java is the memory of the runtime: the Java heap, its tables and compiled
	// code. Android lists parts of it as .dex mmap and .art mmap.
	Java Kind = "java"
	// Stack is the memory of thread stacks.
	Stack Kind = "stack"
	// Anonymous is memory without a name.
	Anonymous Kind = "anonymous"
	// Named is anonymous or shared memory that has a name.
	Named Kind = "named"
	// File is the memory of mapped files, and the .bss of libraries.
	File Kind = "file"
	// Device is the memory of drivers and, as in Android's classification, of
	// system properties.
	Device Kind = "device"
)

// allKinds lists all kinds.
var allKinds = []Kind{Heap, Java, Stack, Anonymous, Named, File, Device}

const (
	deleted    = " (deleted)"
	bss        = " [bss]" // written by showmap up to Android 8.1 (system/core libpagemap, showmap.c)
	bssName    = "[anon:.bss]"
	noName     = "(anonymous)"
	othersName = "(others)"
)

// kindPrefixes are matched in this order.
var kindPrefixes = []struct {
	prefix string
	kind   Kind
}{
	{"[heap]", Heap},
	{"[anon:libc_malloc]", Heap},
	{"[anon:scudo:", Heap},
	{"[anon:GWP-ASan", Heap},
	{"[stack", Stack},
	{"[anon:stack_and_tls:", Stack},
	{"[anon:dalvik-", Java},
	{"[", Named},
	// Until Android 9, the runtime allocated its memory with ashmem, and for
	// some time malloc did so too.
	{"/dev/ashmem/dalvik-", Java},
	{"/dev/ashmem/jit-zygote-cache", Java},
	{"/dev/ashmem/libc malloc", Heap},
	{"/dev/ashmem", Named},
	// The kernel uses this name for shared memory without a name (mm/shmem.c,
	// shmem_zero_setup).
	{"/dev/zero", Anonymous},
	{"/dev/", Device},
	{"/dmabuf:", Device},
	{"/memfd:jit-cache", Java},
	{"/memfd:/jit-cache", Java},
	{"/memfd:jit-zygote-cache", Java},
	{"/memfd:/jit-zygote-cache", Java},
	{"/memfd:", Named},
	{"/SYSV", Named},
	{"/", File},
	{"anon_inode:", Device},
}

// kindOf classifies a name without its " (deleted)".
func kindOf(name []byte) Kind {
	if anonymous(name) {
		return Anonymous
	}
	// Vendors may place kgsl-3d0 in a subdirectory.
	if bytes.Contains(name, []byte("kgsl-3d0")) {
		return Device
	}
	for _, p := range kindPrefixes {
		if has(name, p.prefix) {
			return p.kind
		}
	}
	return Named
}

// anonymous reports whether a name stands for memory without a name, which
// showmap lists under names such as [anon].
func anonymous(name []byte) bool {
	switch string(name) {
	case "", noName, "[anon]", "[unknown]":
		return true
	}
	return false
}

// isLibrary reports whether unnamed memory that follows a file with this name
// is the .bss of the file.
func isLibrary(name []byte) bool {
	return bytes.HasSuffix(name, []byte(".so")) || bytes.Contains(name, []byte(".so."))
}

func has(name []byte, prefix string) bool {
	return len(name) >= len(prefix) && string(name[:len(prefix)]) == prefix
}
