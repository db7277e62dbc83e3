package hprof

import (
	"fmt"
	"strconv"
)

// ID identifies an object, a class or a string. Objects and strings have
// separate ID spaces. An ID takes 4 or 8 bytes in a file.
type ID uint64

// MarshalText returns the ID in hexadecimal form, 0x...
func (id ID) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%#x", uint64(id)), nil }

// UnmarshalText parses the form that MarshalText returns.
func (id *ID) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 0, 64)
	if err != nil {
		return fmt.Errorf("parse object id: %w", err)
	}
	*id = ID(n)
	return nil
}

// Tag is the kind of a top-level record (hprof manual, "Record tags").
type Tag uint8

// Open reads these records and skips all others.
const (
	TagString          Tag = 0x01
	TagLoadClass       Tag = 0x02
	TagUnloadClass     Tag = 0x03
	TagStackFrame      Tag = 0x04
	TagStackTrace      Tag = 0x05
	TagAllocSites      Tag = 0x06
	TagHeapSummary     Tag = 0x07
	TagStartThread     Tag = 0x0a
	TagEndThread       Tag = 0x0b
	TagHeapDump        Tag = 0x0c
	TagCPUSamples      Tag = 0x0d
	TagControlSettings Tag = 0x0e
	TagHeapDumpSegment Tag = 0x1c
	TagHeapDumpEnd     Tag = 0x2c
)

// SubTag is the kind of a record inside a heap segment. Tags 0x89 to 0xfe are
// specific to Android (ART runtime/hprof/hprof.cc, HprofHeapTag).
type SubTag uint8

// The first group declares GC roots; the second describes the contents of the
// heap.
const (
	SubRootUnknown          SubTag = 0xff
	SubRootJNIGlobal        SubTag = 0x01
	SubRootJNILocal         SubTag = 0x02
	SubRootJavaFrame        SubTag = 0x03
	SubRootNativeStack      SubTag = 0x04
	SubRootStickyClass      SubTag = 0x05
	SubRootThreadBlock      SubTag = 0x06
	SubRootMonitorUsed      SubTag = 0x07
	SubRootThreadObject     SubTag = 0x08
	SubRootInternedString   SubTag = 0x89
	SubRootFinalizing       SubTag = 0x8a
	SubRootDebugger         SubTag = 0x8b
	SubRootReferenceCleanup SubTag = 0x8c
	SubRootVMInternal       SubTag = 0x8d
	SubRootJNIMonitor       SubTag = 0x8e
	SubRootUnreachable      SubTag = 0x90

	SubClassDump            SubTag = 0x20
	SubInstance             SubTag = 0x21
	SubObjectArray          SubTag = 0x22
	SubPrimitiveArray       SubTag = 0x23
	SubPrimitiveArrayNoData SubTag = 0xc3
	SubHeapInfo             SubTag = 0xfe
)

// IsRoot reports whether t declares a GC root.
func (t SubTag) IsRoot() bool { return rootNames[t] != "" }

// String returns, for a root, the name used in reports, such as JNI_GLOBAL; for
// any other record, it returns the name in the hprof manual.
func (t SubTag) String() string {
	if name := rootNames[t]; name != "" {
		return name
	}
	if name := heapNames[t]; name != "" {
		return name
	}
	return fmt.Sprintf("record 0x%02x", uint8(t))
}

var rootNames = [256]string{
	SubRootUnknown: "UNKNOWN", SubRootJNIGlobal: "JNI_GLOBAL", SubRootJNILocal: "JNI_LOCAL",
	SubRootJavaFrame:   "JAVA_FRAME",
	SubRootNativeStack: "NATIVE_STACK", SubRootStickyClass: "STICKY_CLASS", SubRootThreadBlock: "THREAD_BLOCK",
	SubRootMonitorUsed: "MONITOR_USED", SubRootThreadObject: "THREAD_OBJECT", SubRootInternedString: "INTERNED_STRING",
	SubRootFinalizing: "FINALIZING", SubRootDebugger: "DEBUGGER", SubRootReferenceCleanup: "REFERENCE_CLEANUP",
	SubRootVMInternal: "VM_INTERNAL", SubRootJNIMonitor: "JNI_MONITOR", SubRootUnreachable: "UNREACHABLE",
}

var heapNames = [256]string{
	SubClassDump: "CLASS_DUMP", SubInstance: "INSTANCE_DUMP", SubObjectArray: "OBJECT_ARRAY_DUMP",
	SubPrimitiveArray: "PRIMITIVE_ARRAY_DUMP", SubPrimitiveArrayNoData: "PRIMITIVE_ARRAY_NODATA_DUMP",
	SubHeapInfo: "HEAP_DUMP_INFO",
}

// Type is the type of a field or of an array's elements.
type Type uint8

// The basic types as numbered in the hprof manual.
const (
	Object  Type = 2
	Boolean Type = 4
	Char    Type = 5
	Float   Type = 6
	Double  Type = 7
	Byte    Type = 8
	Short   Type = 9
	Int     Type = 10
	Long    Type = 11
)

var typeNames = [...]string{Object: "object", Boolean: "boolean", Char: "char", Float: "float", Double: "double",
	Byte: "byte", Short: "short", Int: "int", Long: "long"}

// String returns the name of the type in Java, or "object" for references.
func (t Type) String() string {
	if int(t) < len(typeNames) && typeNames[t] != "" {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Size returns the size in bytes of one value in a file whose IDs have idSize
// bytes, and 0 for a type that does not exist.
func (t Type) Size(idSize int) int {
	switch t {
	case Object:
		return idSize
	case Boolean, Byte:
		return 1
	case Char, Short:
		return 2
	case Float, Int:
		return 4
	case Double, Long:
		return 8
	}
	return 0
}

// Root is one GC root. Thread is the serial number of the root's thread. Frame
// is the index of the frame in that thread's stack trace, or -1 if the root has
// no frame. For a thread object, Trace is the serial number of its stack trace.
type Root struct {
	Object ID
	Thread uint32
	Frame  int32
	Trace  uint32
	Kind   SubTag
}

// Field is a declared instance field; Name is the ID of a string.
type Field struct {
	Name ID
	Type Type
}

// Static is a static field with its value: an ID for Object, otherwise the bits
// of the value, which are not sign-extended.
type Static struct {
	Name  ID
	Type  Type
	Value uint64
}

// Class is a CLASS_DUMP record. InstanceSize is in bytes, as the runtime wrote
// it. Fields holds the fields that the class itself declares, in the order of
// their values in an instance.
type Class struct {
	ID, Super, Loader ID
	// Signers and Domain are the IDs of the signers and of the protection
	// domain; only HotSpot writes them.
	Signers, Domain ID
	Trace           uint32
	InstanceSize    uint32
	Statics         []Static
	Fields          []Field
}
