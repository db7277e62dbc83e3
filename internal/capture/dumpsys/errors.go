package dumpsys

import (
	"bytes"
	"fmt"
	"strings"
)

// Kind classifies the error messages of a device.
type Kind string

// The kinds of error messages. `leakgate parse` also prints these values.
const (
	NoProcess      Kind = "no_process"      // the process is gone, or never existed
	Permission     Kind = "permission"      // not allowed for this user: a user build, or another app's process
	NotDebuggable  Kind = "not_debuggable"  // run-as and am dumpheap accept only apps that are android:debuggable
	UnknownPackage Kind = "unknown_package" // run-as does not know the package
	RunAs          Kind = "run_as"          // run-as failed for another reason, e.g. not allowed for this user
	Timeout        Kind = "timeout"         // the dump took longer than dumpsys waits
	Frozen         Kind = "frozen"          // the process is in the freezer (Android 11 and later) and cannot respond
	UnknownOption  Kind = "unknown_option"  // the release is older and does not support this
	NoService      Kind = "no_service"      // dumpsys has no such service
	NoCommand      Kind = "no_command"      // su, run-as, timeout, ... is missing
	// a missing path: the /proc directory of a process that is gone, or a file
	// that the kernel does not have
	NoFile       Kind = "no_file"
	NoSpace      Kind = "no_space"     // /data is full
	DumpFailed   Kind = "dump_failed"  // the process died or failed during the dump
	Disconnected Kind = "disconnected" // adb's message about a disconnected device
	Killed       Kind = "killed"       // the tool itself died on the device
	Unsupported  Kind = "unsupported"  // the device does not measure this
	InputOutput  Kind = "io"           // a read or write failed
	Usage        Kind = "usage"        // the help text: the command line was not accepted
	Failed       Kind = "failed"       // an error with other wording
	Truncated    Kind = "truncated"    // the output ends before the first value
	Empty        Kind = "empty"        // no text at all
	Format       Kind = "format"       // nothing is known
)

// DeviceError is an error message that a device printed instead of the
// requested output.
type DeviceError struct {
	Kind Kind
	Text string // the line with the message, at most 256 bytes
}

// Error returns the kind and the device's words, quoted.
func (e DeviceError) Error() string {
	return fmt.Sprintf("device reports %s: %q", e.Kind, e.Text)
}

type phrase struct {
	kind Kind
	how  func(s, part string) bool
	part string
}

func equal(s, part string) bool { return s == part }

// phrases are sorted with the most specific one first. If a stack trace or
// several messages contain more than one phrase, the first phrase in this list
// decides. Sources: frameworks/native cmds/dumpsys/dumpsys.cpp, frameworks/base
// ActivityManagerService and ActivityManagerShellCommand, system/core
// run-as.cpp, mksh, toybox, bionic's strerror, GpuMem.cpp, libsmapinfo.
var phrases = []phrase{
	{NotDebuggable, strings.Contains, "rocess not debuggable"},
	{NotDebuggable, strings.HasPrefix, "run-as: package not debuggable"},
	{NotDebuggable, strings.HasSuffix, "is not debuggable"},
	{UnknownPackage, strings.HasPrefix, "run-as: unknown package"},
	{UnknownPackage, strings.HasSuffix, "is unknown"}, // run-as: Package 'x' is unknown (before Android 8)
	{UnknownPackage, strings.Contains, "Unknown package:"},
	{RunAs, strings.HasPrefix, "run-as: "},
	{NoProcess, strings.HasPrefix, "No process found for"},
	{NoProcess, strings.Contains, "Unknown process:"},
	{NoProcess, strings.Contains, "No such process"},
	{NoProcess, strings.HasPrefix, "No maps for pid"},
	{Timeout, strings.Contains, "DUMP TIMEOUT"},
	{Timeout, strings.Contains, "IOException: Timeout"},
	{Timeout, strings.Contains, "TimeoutException"},
	{Frozen, strings.Contains, "process is frozen"},
	{Frozen, strings.Contains, "frozen process"},
	{UnknownOption, strings.HasPrefix, "Unknown argument: -"},
	{UnknownOption, strings.Contains, "nknown option"},
	{UnknownOption, strings.Contains, "nvalid option"},
	{NoService, strings.Contains, "Can't find service:"},
	{Permission, strings.Contains, "Permission denied"},
	{Permission, strings.Contains, "ermission Denial"},
	{Permission, strings.Contains, "Operation not permitted"},
	{Permission, strings.HasPrefix, "Security exception:"},
	{Permission, strings.Contains, "java.lang.SecurityException"},
	{NoSpace, strings.Contains, "No space left on device"},
	{NoCommand, strings.HasSuffix, "inaccessible or not found"},
	{NoCommand, strings.HasSuffix, ": not found"},
	{NoCommand, strings.Contains, ": can't execute"},
	{NoFile, strings.Contains, "No such file or directory"},
	{DumpFailed, strings.HasPrefix, "Failure while dumping"},
	{DumpFailed, strings.HasPrefix, "Got error while dumping"},
	{DumpFailed, strings.HasPrefix, "Got RemoteException"},
	{DumpFailed, strings.HasPrefix, "Got a RemoteException"},
	{DumpFailed, strings.HasPrefix, "Got IoException"},
	{DumpFailed, strings.HasPrefix, "Got IOException"},
	{DumpFailed, strings.HasPrefix, "Error dumping service"},
	{DumpFailed, strings.HasPrefix, "Error with service"},
	{DumpFailed, strings.HasPrefix, "Failed to parse file"},
	{DumpFailed, strings.Contains, "DeadObjectException"},
	{Disconnected, equal, "closed"},
	{Disconnected, equal, "error: closed"},
	{Disconnected, strings.HasPrefix, "error: device "},
	{Disconnected, strings.HasPrefix, "adb: device "},
	{Disconnected, strings.HasPrefix, "error: no devices"},
	{Disconnected, strings.HasPrefix, "adb: no devices"},
	{Disconnected, strings.HasPrefix, "error: protocol fault"},
	{Unsupported, strings.HasPrefix, "Failed to initialize GPU memory eBPF"},
	{Unsupported, strings.HasPrefix, "GPU memory total usage map is empty"},
	{InputOutput, strings.HasSuffix, "I/O error"},
	{InputOutput, strings.HasSuffix, "Input/output error"},
	{InputOutput, strings.HasSuffix, "Read-only file system"},
	{InputOutput, strings.HasPrefix, "Error: Unable to open file:"},
	{Killed, equal, "Killed"},
	{Killed, equal, "Terminated"},
	{Killed, equal, "Aborted"},
	{Killed, equal, "Segmentation fault"},
	{Killed, strings.HasSuffix, "ut of memory"},
	{Usage, strings.HasPrefix, "usage: "},
	{Usage, strings.HasPrefix, "Usage: "},
	{Usage, strings.HasPrefix, "meminfo dump options:"},
	{Failed, strings.HasPrefix, "Exception occurred while"},
	{Failed, strings.HasPrefix, "Error: "},
	{Failed, strings.HasPrefix, "java.lang."},
}

const (
	maxErrorLine = 256
	maxErrorHead = 16 << 10 // only the head and the tail of long output are searched
	maxErrorTail = 4 << 10
)

// ClassifyError finds an error message in the output of any command on a
// device; it returns false if there is none. Use it for output that could not
// be parsed or was printed with a nonzero exit code, but not for valid output,
// in which file names and process names can contain any words.
func ClassifyError(text []byte) (DeviceError, bool) {
	if len(text) > maxErrorHead+maxErrorTail {
		text = append(text[:maxErrorHead:maxErrorHead], text[len(text)-maxErrorTail:]...)
	}
	best, said := len(phrases), ""
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		s := string(line[:min(len(line), 2*maxErrorLine)])
		if rank := rankOf(s); rank < best {
			best, said = rank, clip(s, maxErrorLine)
		}
	}
	if best == len(phrases) {
		return DeviceError{}, false
	}
	return DeviceError{Kind: phrases[best].kind, Text: said}, true
}

func rankOf(line string) int {
	for i, p := range phrases {
		if p.how(line, p.part) {
			return i
		}
	}
	return len(phrases)
}

// notAnAnswer returns the error for output that contains none of the expected
// values. began reports whether the expected output has begun but is truncated
// before the first value.
func notAnAnswer(text []byte, began bool) DeviceError {
	if e, ok := ClassifyError(text); ok {
		return e
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return DeviceError{Kind: Empty}
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	e := DeviceError{Kind: Format, Text: clip(string(bytes.TrimSpace(first)), maxErrorLine)}
	if began {
		e.Kind = Truncated
	}
	return e
}

// interruption returns the error message in a line that ends interrupted
// output. Such a message is always at the start of a line, and no other output
// starts a line with the same words.
func interruption(line string) (DeviceError, bool) {
	line = strings.TrimSpace(line)
	for _, start := range []string{
		"*** SERVICE ", "Got RemoteException", "Got a RemoteException", "Got IoException", "Got IOException",
		"Failure while dumping", "Got error while dumping", "Error dumping service",
	} {
		if strings.HasPrefix(line, start) {
			return ClassifyError([]byte(line))
		}
	}
	return DeviceError{}, false
}
